//! Whole instances: a guest does something, and the worker reports it.

use super::engine::Metering;
use super::limits::Limits;
use super::testing::grouped;
use super::testing::guests::{open, open_as, processor, query};
use crate::engine::operator::{AtKey, Operator, OperatorError};

const INPUT_ROWS: &str =
    r#"(func $of_the_guest (export "tidemill:processor/handler@0.1.0#handle-input-rows") (param i64 i64) (result i32)"#;

/// How a guest fails whose `handle-input-rows` has this body.
fn failure(metering: Metering, limits: Limits, body: &str) -> OperatorError {
    failure_with(metering, limits, &format!("{INPUT_ROWS} {body})"))
}

fn failure_with(metering: Metering, limits: Limits, parts: &str) -> OperatorError {
    let processor = processor(metering, limits, parts);
    open(&processor).unwrap().input_rows(grouped(&[("a", &[1]), ("b", &[2, 3])])).unwrap_err()
}

#[test]
fn a_guest_that_pulls_everything_and_does_nothing_succeeds() {
    let processor = processor(Metering::Epoch, Limits::default(), "");
    let mut worker = open(&processor).unwrap();
    worker.input_rows(grouped(&[("a", &[1]), ("b", &[2, 3])])).unwrap();
    worker.expired_timers(1_000).unwrap();
    let closed = worker.close().unwrap();
    assert_eq!(closed.output.rows(), 0);
    assert_eq!(closed.fuel, None);
}

#[test]
fn the_same_rows_have_the_same_digest_and_others_another() {
    let processor = processor(Metering::Epoch, Limits::default(), "");
    let digest = |rows: &[i64]| {
        let mut worker = open(&processor).unwrap();
        worker.input_rows(grouped(&[("a", rows)])).unwrap();
        worker.close().unwrap().input_digest
    };
    assert_eq!(digest(&[1, 2]), digest(&[1, 2]));
    assert_ne!(digest(&[1, 2]), digest(&[1, 3]));
}

#[test]
fn a_trap_names_the_keys_in_hand_and_the_last_words() {
    let body = "(call $next (i32.const 512)) (call $log (i32.const 4) (i32.const 264) (i32.const 10)) unreachable";
    let error = failure(Metering::Epoch, Limits::default(), body);
    let message = error.to_string();
    let OperatorError::Trap { code, log_tail, backtrace, at, .. } = error else { panic!("not a trap") };
    assert_eq!(code, "GUEST_TRAP");
    assert!(message.contains(r#"with 2 keys in hand, one of which may be the cause ({"key":"#), "{message}");
    assert_eq!(log_tail, ["last words"]);
    assert!(backtrace.contains("of_the_guest"), "{backtrace}");
    assert!(matches!(at, AtKey::OneOf(suspects) if suspects.len() == 2));
}

#[test]
fn an_endless_loop_meets_the_deadline_or_the_end_of_its_fuel() {
    let short = Limits { chunk_time_ms: 30, chunk_fuel: 100_000, ..Limits::default() };
    let endless = "(loop $for_ever (br $for_ever)) unreachable";
    assert_eq!(failure(Metering::Epoch, short.clone(), endless).code(), "GUEST_DEADLINE");
    assert_eq!(failure(Metering::Fuel, short, endless).code(), "GUEST_FUEL");
}

#[test]
fn fuel_is_reported_and_the_same_in_every_run() {
    let processor = processor(Metering::Fuel, Limits::default(), "");
    let fuel = || {
        let mut worker = open(&processor).unwrap();
        worker.input_rows(grouped(&[("a", &[1, 2, 3])])).unwrap();
        worker.close().unwrap().fuel.unwrap()
    };
    assert!(fuel() > 0);
    assert_eq!(fuel(), fuel());
}

#[test]
fn a_recursion_without_end_is_a_stack_overflow() {
    let parts = format!("(func $deeper (call $deeper) (call $deeper)) {INPUT_ROWS} (call $deeper) unreachable)");
    assert_eq!(failure_with(Metering::Epoch, Limits::default(), &parts).code(), "GUEST_STACK_OVERFLOW");
}

#[test]
fn a_recursion_that_leaves_linear_memory_is_a_stack_overflow_too() {
    let parts = format!(
        "(func $deeper (param $stack i32)
            (i32.store (local.get $stack) (i32.const 0))
            (call $deeper (i32.sub (local.get $stack) (i32.const 4096)))
            (i32.store (local.get $stack) (i32.const 0)))
        {INPUT_ROWS} (call $deeper (i32.const 131072)) unreachable)"
    );
    assert_eq!(failure_with(Metering::Epoch, Limits::default(), &parts).code(), "GUEST_STACK_OVERFLOW");
}

#[test]
fn a_guest_that_is_refused_memory_and_dies_is_out_of_memory() {
    let grow = "(if (i32.eq (memory.grow (i32.const 10000)) (i32.const -1)) (then unreachable)) (i32.const 128)";
    let error = failure(Metering::Epoch, Limits::default(), grow);
    assert_eq!(error.code(), "GUEST_MEMORY");
    assert!(error.to_string().contains("limits.sandbox.memory_bytes"), "{error}");
}

#[test]
fn a_call_that_leaves_input_unread_fails() {
    assert_eq!(failure(Metering::Epoch, Limits::default(), "(i32.const 128)").code(), "INPUT_NOT_DRAINED");
    let one_chunk = "(call $next (i32.const 512)) (i32.const 128)";
    assert_eq!(failure(Metering::Epoch, Limits::default(), one_chunk).code(), "INPUT_NOT_DRAINED");
}

#[test]
fn ops_that_no_sdk_writes_are_a_breach_of_the_contract() {
    let error = failure(
        Metering::Epoch,
        Limits::default(),
        "(call $next (i32.const 512)) (call $apply (i32.const 0) (i32.const 7) (i32.const 600)) unreachable",
    );
    assert_eq!(error.code(), "CONTRACT_VIOLATION");
    assert!(error.to_string().contains("op 0"), "{error}");
}

#[test]
fn more_bytes_in_one_call_than_allowed_trap_before_they_are_read() {
    let limits = Limits { host_call_bytes: 1_000, ..Limits::default() };
    let error = failure(
        Metering::Epoch,
        limits,
        "(call $next (i32.const 512)) (call $apply (i32.const 0) (i32.const 4096) (i32.const 600)) unreachable",
    );
    assert_eq!(error.code(), "HOST_CALL_BYTES_EXCEEDED");
}

#[test]
fn host_calls_of_a_chunk_are_bounded() {
    let limits = Limits { chunk_host_calls: 100, ..Limits::default() };
    let chatter = "(loop $again (call $log (i32.const 0) (i32.const 264) (i32.const 10)) (br $again)) unreachable";
    assert_eq!(failure(Metering::Epoch, limits, chatter).code(), "HOST_CALLS_EXCEEDED");
}

#[test]
fn pulling_input_in_init_traps() {
    let parts = r#"(func (export "tidemill:processor/handler@0.1.0#init")
        (param i32 i32 i32 i32 i64 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
        (call $next (i32.const 512)) (i32.const 16))"#;
    let error = processor(Metering::Epoch, Limits::default(), parts).plan(&query()).unwrap_err();
    assert_eq!(error.code(), "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_HANDLE_STATE");
}

#[test]
fn a_failure_that_is_answered_is_the_guests_own() {
    match failure_with(Metering::Epoch, Limits::default(), &answering_an_err("(call $drain)")) {
        OperatorError::Guest { export, guest_code, message, at, .. } => {
            assert_eq!(export, "handle-input-rows");
            assert_eq!((guest_code.as_str(), message.as_str(), at), ("last_words", "last words", AtKey::NoKey));
        }
        other => panic!("not the guest's: {other}"),
    }
}

#[test]
fn a_failure_without_a_group_is_that_of_one_of_the_keys_in_hand() {
    let parts = answering_an_err("(call $next (i32.const 512))");
    match failure_with(Metering::Epoch, Limits::default(), &parts) {
        OperatorError::Guest { at: AtKey::OneOf(suspects), .. } => assert_eq!(suspects.len(), 2),
        other => panic!("not the guest's at one of two keys: {other}"),
    }
}

/// After this an err at 640: discriminant 1, no group, code, message and stack all "last words".
fn answering_an_err(after: &str) -> String {
    format!(
        r#"{INPUT_ROWS} {after} (i32.const 640))
        (data (i32.const 640) "\01\00\00\00\00\00\00\00\00\00\00\00\08\01\00\00\0a\00\00\00\08\01\00\00\0a\00\00\00\08\01\00\00\0a\00\00\00")"#
    )
}

#[test]
fn an_instance_that_answers_init_otherwise_than_planned_is_refused() {
    let processor = processor(Metering::Epoch, Limits::default(), "");
    let mut plan = processor.plan(&query()).unwrap();
    plan.prefetch = vec![0];
    let error = open_as(&processor, plan).map(drop).unwrap_err();
    assert_eq!(error.code(), "PLAN_CHANGED");
}

#[test]
fn a_worker_that_failed_is_not_called_again() {
    let processor = processor(Metering::Epoch, Limits::default(), &format!("{INPUT_ROWS} unreachable)"));
    let mut worker = open(&processor).unwrap();
    worker.input_rows(grouped(&[("a", &[1])])).unwrap_err();
    assert_eq!(worker.input_rows(grouped(&[("a", &[1])])).unwrap_err().code(), "HOST_ERROR");
}
