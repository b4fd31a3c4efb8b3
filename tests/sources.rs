//! Queries over several sources: one input, one watermark of all, a position of each.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use tidemill_host::connect::memory::{MemoryRows, MemorySource};
use tidemill_host::engine::error::QueryError;
use tidemill_host::engine::operator::TimeMode;
use tidemill_host::engine::query::{Parts, Query};
use tidemill_host::engine::settings::{InputSettings, QuerySettings, Trigger, WatermarkPolicy, WatermarkSettings};
use tidemill_host::engine::source::{ReadLimits, Source};

use super::native_query::{MemoryQuery, code, drain, event_time, in_mode, settings, source};
use super::tally::{INPUT, Tally, Timers, input, schema};

/// A query over sources in memory.
struct OverSources {
    query: MemoryQuery,
    rows: Vec<(String, MemoryRows)>,
}

impl OverSources {
    fn new(settings: QuerySettings) -> Self {
        let rows = settings.sources.iter().map(|source| (source.name.clone(), MemoryRows::default())).collect();
        Self { query: MemoryQuery::new(settings), rows }
    }

    /// Sources `a` and `b` in event time, without delay.
    fn two() -> Self {
        Self::new(QuerySettings { sources: vec![source("a", Some(0)), source("b", Some(0))], ..event_time(0) })
    }

    fn open(&self) -> Result<Query, QueryError> {
        let read = |input: &InputSettings| -> Box<dyn Source> {
            let rows = self.rows.iter().find(|(name, _)| *name == input.name).unwrap();
            Box::new(MemorySource::new(schema(INPUT), rows.1.clone()))
        };
        let settings = self.query.settings.clone();
        let inputs = settings.sources.iter().map(read).collect();
        Query::open(settings, Parts { inputs, ..self.query.parts() })
    }

    /// Adds rows (key, event time in milliseconds, number) to a source.
    fn feed(&self, source: &str, rows: &[(&str, i64, i64)]) {
        let rows: Vec<_> = rows.iter().map(|(key, at_ms, n)| (*key, *at_ms, Some(*n))).collect();
        self.rows.iter().find(|(name, _)| name == source).unwrap().1.push(input(&rows));
    }
}

/// The watermark after all that was fed.
fn watermark_ms(query: &mut Query) -> i64 {
    drain(query).unwrap();
    query.head().watermark.last_ms()
}

#[test]
fn the_watermark_waits_for_the_slower_source() {
    let over = OverSources::two();
    let mut running = over.open().unwrap();

    over.feed("a", &[("k", 900, 1)]);
    assert_eq!(watermark_ms(&mut running), 0, "a source without data holds it at 0");
    over.feed("b", &[("k", 300, 1)]);
    assert_eq!(watermark_ms(&mut running), 300);
    over.feed("b", &[("k", 2_000, 1)]);
    assert_eq!(watermark_ms(&mut running), 900);
}

#[test]
fn by_the_policy_max_it_follows_the_faster_for_the_life_of_the_checkpoint() {
    let mut over = OverSources::two();
    over.query.settings.watermark_policy = WatermarkPolicy::Max;
    let mut running = over.open().unwrap();
    over.feed("a", &[("k", 900, 1)]);
    assert_eq!(watermark_ms(&mut running), 900);
    drop(running);

    over.query.settings.watermark_policy = WatermarkPolicy::Min;

    assert_eq!(code(over.open()), "STATE_STORE_INVALID_CONFIG_AFTER_RESTART");
}

#[test]
fn every_source_knows_its_event_time_after_a_restart() {
    let over = OverSources::two();
    over.feed("a", &[("k", 900, 1)]);
    over.feed("b", &[("k", 300, 1)]);
    assert_eq!(watermark_ms(&mut over.open().unwrap()), 300);

    // Spark restores the watermark of all only: `a` would have to send a row before it moves again.
    let mut running = over.open().unwrap();
    over.feed("b", &[("k", 700, 1)]);

    assert_eq!(watermark_ms(&mut running), 700);
}

#[test]
fn a_source_that_has_been_silent_for_long_no_longer_holds_the_watermark_back() {
    let mut over = OverSources::two();
    over.query.operator = Tally { timers: Timers::After { ms: 50 }, ..Tally::default() };
    over.query.settings.trigger = Trigger::Continuous;
    over.query.settings.sources[1].idle_timeout_ms = Some(5_000);
    let mut running = over.open().unwrap();
    over.feed("a", &[("k", 100, 1)]);
    over.feed("a", &[("l", 200, 1)]);
    drain(&mut running).unwrap();

    over.query.clock.set(5_999);
    assert!(drain(&mut running).unwrap().is_empty());
    over.query.clock.set(6_000);
    let batches = drain(&mut running).unwrap();

    assert_eq!((batches[0].num_input_rows, batches[0].event_time.watermark_ms), (0, 200));
    assert!(!batches[0].event_time.sources[0].idle && batches[0].event_time.sources[1].idle);
    assert_eq!(over.query.emitted().last().unwrap(), "k timer 150 1 1");
    over.feed("b", &[("k", 150, 1)]);
    let late = drain(&mut running).unwrap().remove(0).state_operators[0].num_rows_dropped_by_watermark;
    assert_eq!(late, 1, "what it sends afterwards is judged as all rows are");
}

#[test]
fn rows_of_a_key_come_source_by_source() {
    let over = OverSources::two();
    over.feed("b", &[("k", 1, 10), ("k", 2, 20)]);
    over.feed("a", &[("k", 3, 1), ("k", 4, 2)]);

    drain(&mut over.open().unwrap()).unwrap();

    assert_eq!(over.query.emitted(), ["k row 3 1 1", "k row 4 2 3", "k row 1 3 13", "k row 2 4 33"]);
}

#[test]
fn columns_go_by_name_are_widened_and_are_null_where_they_are_missing() {
    let renamed = "n INT, seen TIMESTAMP, k STRING";
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![7])),
        Arc::new(TimestampMicrosecondArray::from(vec![500_000]).with_timezone("UTC")),
        Arc::new(StringArray::from(vec!["k"])),
    ];
    let other = MemoryRows::default();
    other.push(RecordBatch::try_new(schema(renamed).to_arrow(), columns).unwrap());
    let seen = Some(WatermarkSettings { column: "seen".to_owned(), delay_ms: 0, max_future_ms: None });
    let second = InputSettings { watermark: seen, ..source("b", None) };
    let query = MemoryQuery::new(QuerySettings { sources: vec![source("a", Some(0)), second], ..settings() });
    query.feed(&[("k", 100, 1)]);
    let open = |ddl: &str| {
        let inputs: Vec<Box<dyn Source>> = vec![
            Box::new(MemorySource::new(schema(INPUT), query.rows.clone())),
            Box::new(MemorySource::new(schema(ddl), other.clone())),
        ];
        Query::open(query.settings.clone(), Parts { inputs, ..query.parts() })
    };
    assert_eq!(code(open("n DOUBLE, seen TIMESTAMP, k STRING")), "INCOMPATIBLE_COLUMN_TYPE");
    assert_eq!(code(open("n INT, k STRING")), "WATERMARK_COLUMN_MISSING");

    let mut running = open(renamed).unwrap();

    assert_eq!(watermark_ms(&mut running), 100, "each source has its own column of event times");
    assert_eq!(query.emitted(), ["k row 1000 1 1", "k row 1000 2 8"]);
}

#[test]
fn a_batch_reads_of_each_source_its_share_and_what_another_leaves() {
    let read = ReadLimits { files_max: None, rows_max: 6, bytes_max: u64::MAX };
    let sources = vec![source("a", None), source("b", None)];
    let mut over = OverSources::new(QuerySettings { sources, ..settings() });
    over.query.settings.read = read;
    let many: Vec<_> = (0..20).map(|n| ("k", 0, n)).collect();
    over.feed("a", &many);
    over.feed("b", &many[..4]);

    let mut running = over.open().unwrap();
    let batches = drain(&mut running).unwrap();

    let rows = |name: &str| -> Vec<u64> {
        let of = |batch: &tidemill_host::engine::progress::Progress| {
            batch.sources.iter().find(|source| source.name == name).map_or(0, |source| source.num_input_rows)
        };
        batches.iter().map(of).collect()
    };
    // From the third batch on `b`, which had fewer rows in the one before, is read first and leaves all.
    assert_eq!(rows("a"), [3, 3, 6, 6, 2]);
    assert_eq!(rows("b"), [3, 1, 0, 0, 0]);
}

#[test]
fn the_shares_are_the_same_if_the_query_is_started_anew_for_each_batch() {
    let emitted = |restarts: bool| {
        let sources = vec![source("a", None), source("b", None)];
        let mut over = OverSources::new(QuerySettings { sources, ..in_mode(TimeMode::ProcessingTime) });
        over.query.settings.read = ReadLimits { files_max: None, rows_max: 5, bytes_max: u64::MAX };
        let many: Vec<_> = (0..30).map(|n| (["k", "l", "m"][n as usize % 3], 0, n)).collect();
        over.feed("a", &many);
        over.feed("b", &many[..7]);
        let mut running = over.open().unwrap();
        for _ in 0..10 {
            if restarts {
                drop(running);
                running = over.open().unwrap();
            }
            running.step().unwrap();
        }
        over.query.table.batches()
    };

    assert_eq!(emitted(true), emitted(false));
}

#[test]
fn a_source_is_given_up_only_if_someone_says_so() {
    let mut over = OverSources::two();
    over.feed("a", &[("k", 100, 1)]);
    over.feed("b", &[("k", 100, 10)]);
    drain(&mut over.open().unwrap()).unwrap();
    let both = over.query.settings.sources.clone();

    over.query.settings.sources.pop();
    assert_eq!(code(over.open()), "SOURCE_REMOVED");

    over.query.settings.dropped_sources = vec!["b".to_owned()];
    over.feed("a", &[("k", 900, 2)]);
    assert_eq!(watermark_ms(&mut over.open().unwrap()), 900, "it does not hold the watermark back any more");
    over.query.settings.dropped_sources.clear();
    over.open().unwrap();

    // It comes back as a new one: from its start, and with no say on what the watermark was.
    over.query.settings.sources = both;
    let batch = drain(&mut over.open().unwrap()).unwrap().remove(0);
    assert_eq!((batch.num_input_rows, batch.state_operators[0].num_rows_dropped_by_watermark), (1, 1));
}

#[test]
fn a_source_that_is_added_begins_at_its_start() {
    let mut over = OverSources::two();
    let both = over.query.settings.sources.clone();
    over.query.settings.sources.pop();
    over.feed("a", &[("k", 100, 1)]);
    over.feed("b", &[("k", 200, 10)]);
    drain(&mut over.open().unwrap()).unwrap();

    over.query.settings.sources = both;
    drain(&mut over.open().unwrap()).unwrap();

    assert_eq!(over.query.emitted(), ["k row 100 1 1", "k row 200 2 11"]);
}

#[test]
fn sources_have_names_of_their_own() {
    let open = |names: &[&str]| {
        let sources = names.iter().map(|name| source(name, None)).collect();
        code(OverSources::new(QuerySettings { sources, ..settings() }).open())
    };
    assert_eq!(open(&["a", "a"]), "SOURCE_NAME_INVALID");
    assert_eq!(open(&["a b"]), "SOURCE_NAME_INVALID");
}

#[test]
fn a_query_has_up_to_64_sources() {
    let open = |count: usize| {
        let sources = (0..count).map(|number| source(&format!("s{number}"), None)).collect();
        OverSources::new(QuerySettings { sources, ..settings() }).open()
    };
    assert!(open(64).is_ok());
    assert_eq!(code(open(65)), "SOURCES_INVALID");
    assert_eq!(code(open(0)), "SOURCES_INVALID");
}
