//! What ops do, and what becomes of bytes that are none.

use proptest::prelude::*;
use serde_json::json;

use super::super::failure::{Fault, Violation};
use super::super::testing::{batch, row};
use super::*;
use crate::record::push_row;

const VALUE: u32 = 0;
const LIST: u32 = 1;
const MAP: u32 = 2;
/// The one group in hand.
const GROUP: u32 = 0;

fn op(code: u32, variable: u32, payload: &[u8]) -> Vec<u8> {
    let mut op = Vec::new();
    for word in [code, variable, GROUP, payload.len() as u32] {
        op.extend_from_slice(&word.to_le_bytes());
    }
    op.extend_from_slice(payload);
    op
}

fn n(n: i64) -> Vec<u8> {
    row("n BIGINT NOT NULL", &json!({ "n": n }))
}

fn k(k: &str) -> Vec<u8> {
    row("k STRING", &json!({ "k": k }))
}

fn list(rows: &[i64]) -> Vec<u8> {
    let mut list = Vec::new();
    rows.iter().for_each(|number| push_row(&mut list, &n(*number)));
    list
}

fn entry(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut entry = (key.len() as u64).to_le_bytes().to_vec();
    entry.extend_from_slice(key);
    entry.extend_from_slice(value);
    entry
}

fn violation(batch: &mut Batch, ops: &[u8]) -> String {
    match apply(batch, ops) {
        Err(Stopped { refusal: Refusal::Trap(Violation { code: "CONTRACT_VIOLATION", message }), .. }) => message,
        other => panic!("not a violation: {other:?}"),
    }
}

fn fault(batch: &mut Batch, ops: &[u8]) -> (u32, &'static str) {
    match apply(batch, ops) {
        Err(Stopped { op, refusal: Refusal::Fault(Fault { code, .. }) }) => (op, code),
        other => panic!("not a fault: {other:?}"),
    }
}

#[test]
fn ops_are_applied_in_order() {
    let mut batch = batch(TimeMode::ProcessingTime);
    let ops = [
        op(VALUE_PUT, VALUE, &n(1)),
        op(VALUE_PUT, VALUE, &n(2)),
        op(LIST_PUT, LIST, &list(&[1, 2])),
        op(LIST_APPEND, LIST, &list(&[3])),
        op(MAP_PUT, MAP, &entry(&k("a"), &n(4))),
        op(MAP_PUT, MAP, &entry(&k("b"), &n(5))),
        op(MAP_REMOVE, MAP, &k("a")),
        op(TIMER_REGISTER, 0, &7_i64.to_le_bytes()),
        op(TIMER_REGISTER, 0, &8_i64.to_le_bytes()),
        op(TIMER_DELETE, 0, &7_i64.to_le_bytes()),
        op(EMIT, 0, &row("n BIGINT", &json!({ "n": null }))),
    ];
    apply(&mut batch, &ops.concat()).unwrap();

    assert_eq!(batch.value(VALUE, GROUP).unwrap(), Some(n(2).as_slice()));
    assert_eq!(batch.list(LIST, GROUP).unwrap().rows, list(&[1, 2, 3]));
    assert_eq!(batch.map_value(MAP, GROUP, &k("a")).unwrap(), None);
    assert!(batch.map_contains(MAP, GROUP, &k("b")).unwrap());
    assert_eq!(batch.timers(GROUP).unwrap().expiries_ms, [8]);
    assert_eq!(batch.output.rows(), 1);

    let clear = [op(CLEAR, VALUE, &[]), op(CLEAR, LIST, &[]), op(CLEAR, MAP, &[])];
    apply(&mut batch, &clear.concat()).unwrap();
    for variable in [VALUE, LIST, MAP] {
        assert!(!batch.exists(variable, GROUP).unwrap());
    }
}

#[test]
fn ops_before_a_fault_are_applied_and_those_after_it_not() {
    let mut batch = batch(TimeMode::ProcessingTime);
    let null = row("n BIGINT", &json!({ "n": null }));
    let ops = [op(VALUE_PUT, VALUE, &n(1)), op(VALUE_PUT, VALUE, &null), op(VALUE_PUT, VALUE, &n(3))].concat();
    assert_eq!(fault(&mut batch, &ops), (1, "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE"));
    assert_eq!(batch.value(VALUE, GROUP).unwrap(), Some(n(1).as_slice()));
}

#[test]
fn a_list_with_one_bad_row_is_not_taken_at_all() {
    let mut batch = batch(TimeMode::ProcessingTime);
    let mut rows = list(&[1]);
    push_row(&mut rows, &row("n BIGINT", &json!({ "n": null })));
    assert_eq!(fault(&mut batch, &op(LIST_APPEND, LIST, &rows)).1, "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE");
    assert!(!batch.exists(LIST, GROUP).unwrap());
}

#[test]
fn an_empty_list_is_a_fault() {
    let mut batch = batch(TimeMode::ProcessingTime);
    for code in [LIST_PUT, LIST_APPEND] {
        assert_eq!(fault(&mut batch, &op(code, LIST, &[])), (0, "ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE"));
    }
}

#[test]
fn rows_that_do_not_fit_their_schema_are_faults() {
    let mut batch = batch(TimeMode::ProcessingTime);
    for ops in [
        op(VALUE_PUT, VALUE, &[]),
        op(VALUE_PUT, VALUE, &k("text")),
        op(MAP_PUT, MAP, &entry(&n(1), &n(1))),
        op(MAP_REMOVE, MAP, &[1; 8]),
        op(EMIT, 0, &[0xff; 16]),
    ] {
        assert_eq!(fault(&mut batch, &ops), (0, "INVALID_ROW"));
    }
}

#[test]
fn timers_need_a_time_mode() {
    let mut batch = batch(TimeMode::None);
    let code = "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_TIME_MODE";
    for operation in [TIMER_REGISTER, TIMER_DELETE] {
        assert_eq!(fault(&mut batch, &op(operation, 0, &[0; 8])), (0, code));
    }
    assert!(matches!(batch.timers(GROUP), Err(Refusal::Fault(Fault { code: found, .. })) if found == code));
}

#[test]
fn nothing_is_emitted_while_the_initial_state_is_loaded() {
    let mut batch = batch(TimeMode::None);
    batch.phase = BatchPhase::InitialState;
    assert_eq!(
        fault(&mut batch, &op(EMIT, 0, &n(1))),
        (0, "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_HANDLE_STATE")
    );
    apply(&mut batch, &op(VALUE_PUT, VALUE, &n(1))).unwrap();
}

#[test]
fn what_no_sdk_writes_is_a_violation_that_names_the_op() {
    let mut batch = batch(TimeMode::ProcessingTime);
    let good = op(VALUE_PUT, VALUE, &n(1));
    let mut unknown_group = op(VALUE_PUT, VALUE, &n(1));
    unknown_group[8] = 9;
    let mut too_long = op(VALUE_PUT, VALUE, &n(1));
    too_long[12] = 200;
    let mut odd = op(VALUE_PUT, VALUE, &n(1));
    odd[12] = 7;
    for bad in [
        op(0, VALUE, &[]),
        op(10, VALUE, &[]),
        unknown_group,
        too_long,
        odd,
        good[..15].to_vec(),
        op(VALUE_PUT, LIST, &n(1)),
        op(VALUE_PUT, 3, &n(1)),
        op(LIST_PUT, VALUE, &list(&[1])),
        op(LIST_PUT, LIST, &[1, 0, 0, 0, 0, 0, 0, 0]),
        op(MAP_PUT, MAP, &[]),
        op(MAP_PUT, MAP, &entry(&[0; 4], &[0; 4])),
        op(MAP_PUT, MAP, &u64::MAX.to_le_bytes()),
        op(CLEAR, VALUE, &n(1)),
        op(CLEAR, 3, &[]),
        op(TIMER_REGISTER, 0, &[0; 16]),
        op(TIMER_REGISTER, 1, &[0; 8]),
        op(EMIT, 1, &n(1)),
    ] {
        let message = violation(&mut batch, &[good.clone(), bad.clone()].concat());
        assert!(message.starts_with("op 1 of effects.apply"), "{bad:?}: {message}");
    }
}

#[test]
fn the_limit_of_the_output_traps() {
    let mut batch = batch(TimeMode::None);
    let ops = op(EMIT, 0, &n(1)).repeat(1_001);
    match apply(&mut batch, &ops) {
        Err(Stopped { op: 1_000, refusal: Refusal::Trap(Violation { code, .. }) }) => {
            assert_eq!(code, "OUTPUT_LIMIT_EXCEEDED");
        }
        other => panic!("not a limit: {other:?}"),
    }
}

fn any_op() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        Just(Vec::new()),
        Just(n(1)),
        Just(k("a")),
        Just(list(&[1, 2])),
        Just(entry(&k("a"), &n(1))),
        proptest::collection::vec(any::<u8>(), 0..64),
    ];
    (0_u32..11, 0_u32..4, payload).prop_map(|(code, variable, payload)| op(code, variable, &payload))
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
        let _ = apply(&mut batch(TimeMode::ProcessingTime), &bytes);
    }

    #[test]
    fn almost_right_ops_never_panic(
        ops in proptest::collection::vec(any_op(), 0..8),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut bytes = ops.concat();
        for (index, byte) in flips {
            if !bytes.is_empty() {
                let at = index.index(bytes.len());
                bytes[at] = byte;
            }
        }
        let mut batch = batch(TimeMode::ProcessingTime);
        let _ = apply(&mut batch, &bytes);
        for variable in [VALUE, LIST, MAP] {
            batch.exists(variable, GROUP).unwrap();
        }
    }
}
