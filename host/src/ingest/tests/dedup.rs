//! Repeated requests are answered as before, whatever happened between; a model of one page says what must come.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn small() -> IngestSettings {
    IngestSettings { segment_bytes: 600, ..IngestSettings::default() }
}

fn code(result: Result<Accepted, IngestError>) -> &'static str {
    result.unwrap_err().code()
}

#[test]
fn a_producer_that_repeats_a_request_gets_the_answer_of_then() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    let first = log.append(rows("a", 2), producer("p", 0, 0)).unwrap();
    log.append(rows("b", 1), producer("p", 0, 1)).unwrap();

    let again = log.append(rows("a", 2), producer("p", 0, 0)).unwrap();

    assert_eq!(again, Accepted { repeated: true, ..first });
    assert_eq!(log.end(), 3);
}

#[test]
fn a_gap_tells_the_sequence_that_is_next() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    log.append(rows("a", 1), producer("p", 0, 0)).unwrap();

    let gap = log.append(rows("c", 1), producer("p", 0, 2)).unwrap_err();

    assert!(matches!(gap, IngestError::SequenceGap { sequence: 2, expected: 1, .. }), "{gap}");
    assert_eq!(code(log.append(rows("a", 1), producer("new", 0, 1))), "PRODUCER_SEQUENCE_GAP");
}

#[test]
fn a_new_epoch_begins_at_sequence_0_and_shuts_out_the_one_before() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    log.append(rows("a", 1), producer("p", 1, 0)).unwrap();

    assert_eq!(code(log.append(rows("b", 1), producer("p", 2, 1))), "PRODUCER_SEQUENCE_GAP");
    log.append(rows("b", 1), producer("p", 2, 0)).unwrap();

    assert_eq!(code(log.append(rows("c", 1), producer("p", 1, 1))), "PRODUCER_FENCED");
}

#[test]
fn the_answers_to_the_last_8_requests_of_a_producer_are_kept() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    for sequence in 0..10 {
        log.append(rows("a", 1), producer("p", 0, sequence)).unwrap();
    }

    assert_eq!(log.append(rows("a", 1), producer("p", 0, 2)).unwrap().first_row, 2);
    assert_eq!(code(log.append(rows("a", 1), producer("p", 0, 1))), "PRODUCER_SEQUENCE_OLD");
}

#[test]
fn a_key_is_for_one_request_for_24_hours() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::at(0));
    let log = open_with(dir.path(), small(), &clock).unwrap();
    let key = || Dedup::Key("k".to_owned());
    log.append(rows("a", 1), key()).unwrap();

    clock.set(DAY_MS - 1);
    assert!(log.append(rows("a", 1), key()).unwrap().repeated);
    assert_eq!(code(log.append(rows("b", 1), key())), "IDEMPOTENCY_KEY_REUSED");
    clock.set(DAY_MS);
    assert!(!log.append(rows("b", 1), key()).unwrap().repeated);
}

#[test]
fn keys_beyond_the_limit_are_refused_until_one_is_a_day_old() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::at(0));
    let log = open_with(dir.path(), IngestSettings { keys_max: 2, ..small() }, &clock).unwrap();
    let append = |key: &str| log.append(rows("a", 1), Dedup::Key(key.to_owned()));
    append("1").unwrap();
    append("2").unwrap();

    assert_eq!(code(append("3")), "INGEST_KEYS_FULL");
    assert!(append("2").unwrap().repeated);
    clock.set(DAY_MS);
    append("3").unwrap();
}

#[test]
fn a_producer_makes_room_for_another_once_it_was_idle_for_7_days() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::at(0));
    let log = open_with(dir.path(), IngestSettings { producers_max: 1, ..small() }, &clock).unwrap();
    log.append(rows("a", 1), producer("old", 0, 0)).unwrap();

    assert_eq!(code(log.append(rows("a", 1), producer("new", 0, 0))), "INGEST_PRODUCERS_FULL");
    clock.set(7 * DAY_MS);
    log.append(rows("a", 1), producer("new", 0, 0)).unwrap();
}

#[test]
fn names_have_1_to_128_bytes() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());

    assert_eq!(code(log.append(rows("a", 1), producer("", 0, 0))), "INGEST_NAME_INVALID");
    assert_eq!(code(log.append(rows("a", 1), Dedup::Key("k".repeat(129)))), "INGEST_NAME_INVALID");
    log.append(rows("a", 1), Dedup::Key("k".repeat(128))).unwrap();
}

#[derive(Debug, Clone)]
enum Step {
    Send { body: u8, dedup: Dedup },
    Reopen,
    Pass { ms: i64 },
    Trim { part: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    let dedup = prop_oneof![
        1 => Just(Dedup::None),
        4 => (0_u8..2, 0_u64..3, 0_u64..4).prop_map(|(id, epoch, sequence)| producer(&id.to_string(), epoch, sequence)),
        3 => (0_u8..3).prop_map(|key| Dedup::Key(key.to_string())),
    ];
    prop_oneof![
        12 => (0_u8..3, dedup).prop_map(|(body, dedup)| Step::Send { body, dedup }),
        2 => Just(Step::Reopen),
        1 => (0..DAY_MS).prop_map(|ms| Step::Pass { ms }),
        2 => (0_u8..=4).prop_map(|part| Step::Trim { part }),
    ]
}

/// What a log must say.
#[derive(Default)]
struct Model {
    rows: Vec<String>,
    /// Epoch and answers of each producer.
    producers: BTreeMap<String, (u64, Vec<(u64, u64)>)>,
    /// When, with which body, and the answer.
    keys: BTreeMap<String, (i64, u8, (u64, u64))>,
}

impl Model {
    /// The answer (first row, rows, repeated), or the code.
    fn send(&mut self, body: u8, dedup: &Dedup, now_ms: i64) -> Result<(u64, u64, bool), &'static str> {
        match dedup {
            Dedup::None => {}
            Dedup::Producer { id, epoch, sequence } => {
                let (known, answers) = self.producers.get(id).cloned().unwrap_or_default();
                let answers = if *epoch > known { Vec::new() } else { answers };
                if *epoch < known {
                    return Err("PRODUCER_FENCED");
                }
                if let Some((first, rows)) = answers.get(usize::try_from(*sequence).unwrap()) {
                    return Ok((*first, *rows, true));
                }
                if *sequence > answers.len() as u64 {
                    return Err("PRODUCER_SEQUENCE_GAP");
                }
            }
            Dedup::Key(key) => match self.keys.get(key) {
                Some((at_ms, known, (first, rows))) if now_ms < at_ms + DAY_MS => {
                    return if *known == body { Ok((*first, *rows, true)) } else { Err("IDEMPOTENCY_KEY_REUSED") };
                }
                _ => {}
            },
        }
        let (first, count) = (self.rows.len() as u64, u64::from(body));
        self.rows.extend((0..count).map(|n| format!("{body} {n}")));
        match dedup {
            Dedup::None => {}
            Dedup::Producer { id, epoch, .. } => {
                let known = self.producers.entry(id.clone()).or_default();
                if known.0 != *epoch {
                    *known = (*epoch, Vec::new());
                }
                known.1.push((first, count));
            }
            Dedup::Key(key) => drop(self.keys.insert(key.clone(), (now_ms, body, (first, count)))),
        }
        Ok((first, count, false))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn answers_and_rows_are_those_of_the_model(steps in prop::collection::vec(step(), 1..60)) {
        let dir = TempDir::new().unwrap();
        let (mut model, mut now_ms, mut trimmed) = (Model::default(), 0, 0);
        let clock = Arc::new(ManualClock::at(0));
        let mut log = Some(open_with(dir.path(), small(), &clock).unwrap());
        for step in steps {
            match step {
                Step::Send { body, dedup } => {
                    let expected = model.send(body, &dedup, now_ms);
                    let found = log.as_ref().unwrap().append(rows(&body.to_string(), u64::from(body)), dedup);
                    let found = found.map(|a| (a.first_row, a.rows, a.repeated)).map_err(|error| error.code());
                    prop_assert_eq!(found, expected);
                }
                Step::Reopen => {
                    drop(log.take());
                    log = Some(open_with(dir.path(), small(), &clock).unwrap());
                }
                Step::Pass { ms } => {
                    now_ms += ms;
                    clock.set(now_ms);
                }
                Step::Trim { part } => {
                    let row = model.rows.len() as u64 * u64::from(part) / 4;
                    let log = log.as_ref().unwrap();
                    log.consumed(row);
                    log.trim(row).unwrap();
                    trimmed = row.max(trimmed);
                    prop_assert!(log.first_row() <= trimmed);
                }
            }
            let log = log.as_ref().unwrap();
            prop_assert_eq!(log.end(), model.rows.len() as u64);
            let first = usize::try_from(log.first_row()).unwrap();
            prop_assert_eq!(&read_from(dir.path(), log.first_row(), log.end()), &model.rows[first..]);
        }
    }
}
