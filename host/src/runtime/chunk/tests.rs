//! What a guest is sent: every row once and in order, whatever the size of groups and chunks.

use super::super::testing::{grouped, row, session, variable};
use super::*;
use crate::state::{VariableKind, VariableSpec};

/// A chunk, read as `wit/README.md` says.
#[derive(Debug, PartialEq)]
struct ReadChunk {
    prefetched: Vec<u32>,
    groups: Vec<ReadGroup>,
}

#[derive(Debug, PartialEq)]
struct ReadGroup {
    id: u32,
    flags: u32,
    key: Vec<u8>,
    values: Vec<(u32, Vec<u8>)>,
    rows: Vec<Vec<u8>>,
}

fn word(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn read(chunk: &[u8]) -> ReadChunk {
    let prefetched = word(chunk, 4);
    let mut at = 16;
    let variables = (0..prefetched).map(|index| word(chunk, at + 4 * index) as u32).collect();
    at = (at + 4 * prefetched).next_multiple_of(8);
    let mut groups = Vec::new();
    for _ in 0..word(chunk, 0) {
        let head: Vec<usize> = (0..6).map(|index| word(chunk, at + 4 * index)).collect();
        let [id, flags, rows, key_length, length, zero] = head[..] else { unreachable!() };
        assert_eq!(zero, 0);
        at += 24;
        let end = at + length;
        let key = chunk[at..at + key_length].to_vec();
        at += key_length;
        let mut take = || {
            let (length, second) = (word(chunk, at), word(chunk, at + 4));
            let bytes = chunk[at + 8..at + 8 + length].to_vec();
            at += 8 + length;
            (second as u32, bytes)
        };
        let values = (0..prefetched).map(|_| take()).collect();
        let rows = (0..rows).map(|_| take().1).collect();
        assert_eq!(at, end, "the length of group {id} is that of its parts");
        groups.push(ReadGroup { id: id as u32, flags: flags as u32, key, values, rows });
    }
    assert_eq!(at, chunk.len(), "nothing follows the last group");
    ReadChunk { prefetched: variables, groups }
}

fn layout() -> RowLayout {
    RowLayout::new(&super::super::testing::schema("n BIGINT"))
}

fn feed_of(rows: GroupedRows, prefetch: Vec<u16>) -> Feed {
    let mut feed = Feed::new(prefetch);
    feed.open_rows(rows, &layout()).unwrap();
    feed
}

fn next(feed: &mut Feed, session: &mut Session) -> Option<ReadChunk> {
    feed.next(session).unwrap().map(|chunk| read(&chunk))
}

fn values() -> Vec<VariableSpec> {
    vec![variable("a", VariableKind::Value), variable("b", VariableKind::Value)]
}

#[test]
fn a_chunk_carries_keys_prefetched_values_and_rows() {
    let mut session = session(&values());
    let mut feed = feed_of(grouped(&[("x", &[1, 2])]), vec![1, 0]);
    let key = row("key STRING", &serde_json::json!({ "key": "x" }));
    let group = session.enter(GroupingKey::new(&key));
    let value = row("n BIGINT NOT NULL", &serde_json::json!({ "n": 7 }));
    session.put_value(1, group, &value).unwrap();

    assert!(feed.begin_call(&mut session).unwrap());
    let chunk = next(&mut feed, &mut session).unwrap();

    assert_eq!(chunk.prefetched, [1, 0]);
    let n = |n: i64| row("n BIGINT", &serde_json::json!({ "n": n }));
    let expected =
        ReadGroup { id: 0, flags: 0, key, values: vec![(VALUE_PRESENT, value), (0, vec![])], rows: vec![n(1), n(2)] };
    assert_eq!(chunk.groups, [expected]);
    assert_eq!(feed.group(0), Some(group));
    assert_eq!(feed.group(1), None);

    assert_eq!(next(&mut feed, &mut session), None);
    assert!(feed.drained());
    assert_eq!(feed.group(0), None, "the chunk has ended");
    assert_eq!(next(&mut feed, &mut session), None, "none again after none");
}

#[test]
fn a_phase_without_groups_needs_no_call() {
    let mut session = session(&[]);
    assert!(!feed_of(grouped(&[]), vec![]).begin_call(&mut session).unwrap());
}

#[test]
fn many_groups_come_in_chunks_of_128() {
    let keys: Vec<String> = (0..300).map(|key| format!("key {key}")).collect();
    let groups: Vec<(&str, &[i64])> = keys.iter().map(|key| (key.as_str(), [1].as_slice())).collect();
    let mut session = session(&values());
    let mut feed = feed_of(grouped(&groups), vec![0]);
    feed.begin_call(&mut session).unwrap();

    let mut ids = Vec::new();
    let mut sizes = Vec::new();
    while let Some(chunk) = next(&mut feed, &mut session) {
        sizes.push(chunk.groups.len());
        ids.extend(chunk.groups.iter().map(|group| group.id));
    }

    assert_eq!(sizes, [128, 128, 44]);
    assert_eq!(ids, (0..300).collect::<Vec<_>>());
}

#[test]
fn a_group_with_more_rows_than_fit_goes_on_under_its_id() {
    let rows: Vec<i64> = (0..20_000).collect();
    let mut session = session(&values());
    let mut feed = feed_of(grouped(&[("x", &rows), ("y", &[1])]), vec![0]);
    feed.begin_call(&mut session).unwrap();

    let mut chunks = Vec::new();
    while let Some(chunk) = feed.next(&mut session).unwrap() {
        assert!(chunk.len() <= CHUNK_BYTES);
        chunks.push(read(&chunk));
        let last = chunks.last().unwrap().groups.last().unwrap();
        assert_eq!(feed.continuing(), (last.flags & FLAG_CONTINUES != 0).then_some(last.id));
    }

    let of = |key: &str| {
        let key = row("key STRING", &serde_json::json!({ "key": key }));
        chunks.iter().flat_map(|chunk| &chunk.groups).filter(move |group| group.key == key).collect::<Vec<_>>()
    };
    let parts = of("x");
    assert!(parts.len() > 3);
    assert!(parts.iter().all(|part| part.id == parts[0].id && !part.rows.is_empty()));
    assert_eq!(parts.iter().map(|part| part.rows.len()).sum::<usize>(), 20_000);
    assert_eq!(parts[0].flags, FLAG_CONTINUES);
    assert_eq!(parts[1].flags, FLAG_CONTINUED | FLAG_CONTINUES);
    assert_eq!(parts.last().unwrap().flags, FLAG_CONTINUED);
    assert_eq!(parts[0].values, [(0, vec![])]);
    assert_eq!(parts[1].values, [(VALUE_UNKNOWN, vec![])]);
    assert_ne!(of("y")[0].id, parts[0].id);
}

#[test]
fn a_call_ends_after_some_mebibytes_and_never_within_a_group() {
    let rows: Vec<i64> = (0..400_000).collect();
    let mut session = session(&[]);
    let mut feed = feed_of(grouped(&[("x", &rows), ("y", &[1])]), vec![]);
    let mut groups_of_calls = Vec::new();
    while feed.begin_call(&mut session).unwrap() {
        let mut keys = std::collections::BTreeSet::new();
        while let Some(chunk) = next(&mut feed, &mut session) {
            keys.extend(chunk.groups.into_iter().map(|group| group.key));
        }
        groups_of_calls.push(keys);
    }
    assert!(groups_of_calls.len() <= 2);
    let total: usize = groups_of_calls.iter().map(|keys| keys.len()).sum();
    assert_eq!(total, 2, "no group is in two calls");
}

#[test]
fn due_timers_come_as_rows_and_are_gone_after_their_chunk() {
    let mut session = session(&[]);
    let key = row("key STRING", &serde_json::json!({ "key": "x" }));
    let group = session.enter(GroupingKey::new(&key));
    for expiry_ms in [20, 10, 500] {
        session.register_timer(group, expiry_ms).unwrap();
    }
    session.open_due(100).unwrap();
    let mut feed = Feed::new(vec![]);
    feed.open_timers();

    assert!(feed.begin_call(&mut session).unwrap());
    let chunk = next(&mut feed, &mut session).unwrap();

    let expiry = |ms: i64| row("expiry_ms BIGINT", &serde_json::json!({ "expiry_ms": ms }));
    assert_eq!(chunk.groups[0].rows, [expiry(10), expiry(20)]);
    assert_eq!(session.timers(group).unwrap(), [10, 20, 500], "while it fires, a timer is listed");
    assert_eq!(next(&mut feed, &mut session), None);
    assert_eq!(session.timers(group).unwrap(), [500]);
}

#[test]
fn a_timer_registered_again_while_it_fires_stays() {
    let mut session = session(&[]);
    let key = row("key STRING", &serde_json::json!({ "key": "x" }));
    let group = session.enter(GroupingKey::new(&key));
    session.register_timer(group, 10).unwrap();
    session.open_due(100).unwrap();
    let mut feed = Feed::new(vec![]);
    feed.open_timers();
    feed.begin_call(&mut session).unwrap();
    next(&mut feed, &mut session).unwrap();

    session.delete_timer(group, 10).unwrap();
    session.register_timer(group, 10).unwrap();

    assert_eq!(next(&mut feed, &mut session), None);
    assert_eq!(session.timers(group).unwrap(), [10]);
    assert!(!feed.begin_call(&mut session).unwrap(), "it is due in the next batch");
}

/// The timers of `x` and `y`, all due, in the phase; the first chunk has been sent.
fn timers_in_several_chunks(session: &mut Session, of_x: std::ops::Range<i64>) -> (Feed, GroupId, ReadChunk) {
    let key = |key: &str| row("key STRING", &serde_json::json!({ "key": key }));
    // `x` comes first, as its earliest timer is earlier.
    let x = session.enter(GroupingKey::new(&key("x")));
    of_x.for_each(|expiry_ms| session.register_timer(x, expiry_ms).unwrap());
    let y = session.enter(GroupingKey::new(&key("y")));
    [i64::MAX - 1, i64::MAX].into_iter().for_each(|expiry_ms| session.register_timer(y, expiry_ms).unwrap());
    session.open_due(i64::MAX).unwrap();
    let mut feed = Feed::new(vec![]);
    feed.open_timers();
    feed.begin_call(session).unwrap();
    let first = next(&mut feed, session).unwrap();
    assert_eq!((first.groups.len(), first.groups[0].flags), (1, FLAG_CONTINUES));
    (feed, x, first)
}

fn expiries(rows: &[Vec<u8>]) -> Vec<i64> {
    rows.iter().map(|row| i64::from_le_bytes(row[8..16].try_into().unwrap())).collect()
}

/// Over one key group, in which `x` and `y` come one after the other.
fn session_of_one_key_group() -> Session {
    let mut scope = session(&[]).scope().clone();
    (scope.groups, scope.range, scope.due) = (1, 0..1, Arc::new(crate::state::DueIndex::unknown(0, 1)));
    Session::new(Arc::new(crate::state::MemoryStore::new()), Arc::from([]), scope)
}

#[test]
fn a_timer_deleted_in_an_earlier_chunk_does_not_come_in_a_later_one() {
    let mut session = session_of_one_key_group();
    let (mut feed, x, first) = timers_in_several_chunks(&mut session, 0..10_000);
    let sent = first.groups[0].rows.len() as i64;
    assert!(sent < 8_998, "the deleted ones come later");

    for expiry_ms in [8_998, 8_999, 9_001, 9_999] {
        session.delete_timer(x, expiry_ms).unwrap();
    }
    session.register_timer(x, 9_001).unwrap();

    let (mut of_x, mut of_y) = (expiries(&first.groups[0].rows), Vec::new());
    while let Some(chunk) = next(&mut feed, &mut session) {
        for group in chunk.groups {
            if group.key == first.groups[0].key { &mut of_x } else { &mut of_y }.extend(expiries(&group.rows));
        }
    }
    let expected: Vec<i64> = (0..10_000).filter(|ms| ![8_998, 8_999, 9_001, 9_999].contains(ms)).collect();
    assert_eq!(of_x, expected);
    assert_eq!(of_y, [i64::MAX - 1, i64::MAX]);
    assert_eq!(session.timers(x).unwrap(), [9_001], "registered again, it waits for the next batch");
}

#[test]
fn a_group_goes_on_without_rows_when_all_timers_that_were_left_have_been_deleted() {
    let mut session = session_of_one_key_group();
    let (mut feed, x, first) = timers_in_several_chunks(&mut session, 0..10_000);

    (0..10_000).for_each(|expiry_ms| session.delete_timer(x, expiry_ms).unwrap());

    let chunk = next(&mut feed, &mut session).unwrap();
    let [of_x, of_y] = &chunk.groups[..] else { panic!("not two groups") };
    assert_eq!((of_x.id, of_x.flags, of_x.rows.len()), (first.groups[0].id, FLAG_CONTINUED, 0));
    assert_eq!(expiries(&of_y.rows), [i64::MAX - 1, i64::MAX]);
    assert_eq!(next(&mut feed, &mut session), None);
    assert!(session.timers(x).unwrap().is_empty());
}

proptest::proptest! {
    // Each case packs tens of thousands of rows.
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]

    #[test]
    fn every_row_is_sent_once_and_in_order(sizes in proptest::collection::vec(1_usize..3_000, 0..40)) {
        let rows: Vec<i64> = (0..3_000).collect();
        let keys: Vec<String> = (0..sizes.len()).map(|key| format!("key {key}")).collect();
        let groups: Vec<(&str, &[i64])> = keys.iter().zip(&sizes).map(|(key, size)| (key.as_str(), &rows[..*size])).collect();
        let mut session = session(&[]);
        let mut feed = feed_of(grouped(&groups), vec![]);
        let mut sent: std::collections::BTreeMap<Vec<u8>, Vec<Vec<u8>>> = std::collections::BTreeMap::new();
        while feed.begin_call(&mut session).unwrap() {
            while let Some(chunk) = next(&mut feed, &mut session) {
                for group in chunk.groups {
                    sent.entry(group.key).or_default().extend(group.rows);
                }
            }
        }
        let mut lengths: Vec<_> = sent.values().map(Vec::len).collect();
        let mut expected = sizes.clone();
        lengths.sort_unstable();
        expected.sort_unstable();
        proptest::prop_assert_eq!(lengths, expected);
        for rows in sent.values() {
            let numbers: Vec<i64> = rows.iter().map(|row| i64::from_le_bytes(row[8..16].try_into().unwrap())).collect();
            proptest::prop_assert!(numbers.iter().copied().eq(0..numbers.len() as i64));
        }
    }
}
