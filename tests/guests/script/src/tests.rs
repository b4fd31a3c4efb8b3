//! The ops, and through them what the SDK promises of reads after writes and of timers.

use super::*;
use tidemill::testing::TestQuery;

fn steps(script: &str) -> Vec<Step> {
    let step = |line: &str| {
        let (op, arg) = line.split_once(' ').map_or((line, None), |(op, arg)| (op, Some(arg.to_owned())));
        Step { op: op.to_owned(), arg }
    };
    script.lines().map(str::trim).filter(|line| !line.is_empty()).map(step).collect()
}

/// The results of a batch, in order.
fn run(query: &mut TestQuery<Script>, script: &str) -> Vec<String> {
    query.input("k".to_owned(), steps(script));
    query.run_batch().unwrap().into_iter().map(|answer| answer.result.unwrap_or_else(|| "NULL".to_owned())).collect()
}

fn query(time_mode: TimeMode) -> TestQuery<Script> {
    TestQuery::new(time_mode)
}

#[test]
fn a_value_is_read_as_it_was_last_written() {
    let mut query = query(TimeMode::None);
    let script = "value.get\nvalue.exists\nvalue.put a\nvalue.get\nvalue.exists\nvalue.put b\nvalue.get\nvalue.clear\nvalue.get\nvalue.exists\nvalue.put c";
    assert_eq!(run(&mut query, script), ["NULL", "false", "a", "true", "b", "NULL", "false"]);
    assert_eq!(run(&mut query, "value.exists\nvalue.get"), ["true", "c"]);
}

#[test]
fn a_value_is_read_back_after_its_write_was_applied() {
    let mut query = query(TimeMode::None);
    let script = format!("value.put a\nrepeat 2 list.append {}\nvalue.get\nvalue.exists", "x".repeat(70_000));
    assert_eq!(run(&mut query, &script), ["a", "true"]);
    let script = format!("value.clear\nrepeat 2 list.append {}\nvalue.get", "x".repeat(70_000));
    assert_eq!(run(&mut query, &script), ["NULL"]);
}

#[test]
fn a_list_keeps_the_order_of_its_writes() {
    let mut query = query(TimeMode::None);
    let script = "list.append a\nlist.append b,c\nlist.get\nlist.put d\nlist.append e\nlist.get\nlist.clear\nlist.exists\nlist.append f";
    assert_eq!(run(&mut query, script), ["[a,b,c]", "[d,e]", "false"]);
    assert_eq!(run(&mut query, "list.get"), ["[f]"]);
}

#[test]
fn an_empty_list_is_refused() {
    let mut query = query(TimeMode::None);
    query.input("k".to_owned(), steps("list.put"));
    assert_eq!(query.run_batch().unwrap_err().code(), "ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE");
}

#[test]
fn a_list_larger_than_the_ops_buffer_is_put_whole() {
    let mut query = query(TimeMode::None);
    let elements: Vec<_> = (0..200).map(|n| format!("{n:0>1000}")).collect();
    query.small_chunks(4, 7);
    run(&mut query, &format!("list.append old\nlist.put {}", elements.join(",")));
    assert_eq!(query.list::<String>("list", &"k".to_owned()).unwrap(), elements);
    assert_eq!(run(&mut query, "list.get"), [format!("[{}]", elements.join(","))]);
}

#[test]
fn a_map_is_read_through_pending_writes() {
    let mut query = query(TimeMode::None);
    let script = "map.put a=1\nmap.put b=2\nmap.get a\nmap.remove a\nmap.get a\nmap.contains a\nmap.contains b\nmap.put b=3\nmap.get b\nmap.iter";
    assert_eq!(run(&mut query, script), ["1", "NULL", "false", "true", "3", "[b=3]"]);
    let script = "map.get b\nmap.clear\nmap.get b\nmap.exists\nmap.put c=4\nmap.get b\nmap.get c\nmap.keys\nmap.values";
    assert_eq!(run(&mut query, script), ["3", "NULL", "false", "NULL", "4", "[c]", "[4]"]);
}

#[test]
fn writes_of_one_key_are_not_seen_by_another() {
    let mut query = query(TimeMode::None);
    query.input("j".to_owned(), steps("value.put a\nlist.append a\nmap.put a=1"));
    query.input("k".to_owned(), steps("value.get\nlist.get\nmap.get a"));
    let answers: Vec<_> = query.run_batch().unwrap().into_iter().map(|answer| answer.result).collect();
    assert_eq!(answers, [None, Some("[]".to_owned()), None]);
}

#[test]
fn reads_and_writes_go_on_over_the_border_of_a_chunk() {
    let mut query = query(TimeMode::None);
    query.small_chunks(1, 2);
    let script = "value.put a\nmap.put a=1\nvalue.get\nmap.get a\nvalue.put b\nlist.append x\nlist.append y\nvalue.get\nlist.get";
    assert_eq!(run(&mut query, script), ["a", "1", "b", "[x,y]"]);
}

#[test]
fn rows_that_are_left_unread_do_not_disturb_the_next_key() {
    let mut query = query(TimeMode::None);
    query.small_chunks(2, 2);
    query.input("j".to_owned(), steps("emit 1\nskip\nemit 2\nemit 3\nemit 4\nemit 5"));
    query.input("k".to_owned(), steps("emit 6"));
    let answers: Vec<_> = query.run_batch().unwrap().into_iter().filter_map(|answer| answer.result).collect();
    assert_eq!(answers, ["1", "6"]);
}

#[test]
fn what_was_written_longer_ago_than_the_ttl_is_not_seen() {
    let mut query = query(TimeMode::ProcessingTime);
    query.parameter("ttl_ms", "100");
    run(&mut query, "ttl.value.put a\nttl.list.append a\nttl.map.put a=1");
    query.set_time_ms(60);
    run(&mut query, "ttl.list.append b\nttl.map.put b=2");
    query.set_time_ms(100);
    let script = "ttl.value.get\nttl.value.exists\nttl.list.get\nttl.map.iter\nttl.map.put a=3\nttl.map.remove a\nttl.map.put a=4";
    assert_eq!(run(&mut query, script), ["NULL", "false", "[b]", "[b=2]"]);
    query.set_time_ms(199);
    assert_eq!(run(&mut query, "ttl.map.iter\nttl.list.exists"), ["[a=4]", "false"]);
}

#[test]
fn a_ttl_needs_processing_time() {
    let mut query = query(TimeMode::EventTime);
    query.parameter("ttl_ms", "100");
    assert_eq!(query.run_batch().unwrap_err().code(), "STATEFUL_PROCESSOR_INCORRECT_TIME_MODE_TO_ASSIGN_TTL");
}

#[test]
fn timers_need_a_time_mode() {
    let mut query = query(TimeMode::None);
    query.input("k".to_owned(), steps("timer.list"));
    let code = query.run_batch().unwrap_err().code().to_owned();
    assert_eq!(code, "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_TIME_MODE");
}

#[test]
fn a_timer_in_the_past_fires_in_its_batch_and_is_listed_while_it_fires() {
    let mut query = query(TimeMode::ProcessingTime);
    query.set_time_ms(1000);
    let script = "on_timer timer.list\ntimer.register 900\ntimer.register 1000\ntimer.register 1001\ntimer.list";
    assert_eq!(run(&mut query, script), ["[900,1000,1001]", "900", "[900,1000,1001]", "1000", "[1000,1001]"]);
    assert_eq!(query.timers(&"k".to_owned()).unwrap(), [1001]);
}

#[test]
fn a_handler_that_registers_its_own_expiry_keeps_the_timer() {
    let mut query = query(TimeMode::EventTime);
    query.set_watermark_ms(10);
    assert_eq!(run(&mut query, "on_timer timer.register 5; timer.list\ntimer.register 5"), ["5", "[5]"]);
    assert_eq!(query.timers(&"k".to_owned()).unwrap(), [5]);
    assert_eq!(run(&mut query, "on_timer emit last"), ["5", "last"]);
    assert_eq!(query.timers(&"k".to_owned()).unwrap(), [] as [i64; 0]);
}

#[test]
fn a_due_timer_that_a_handler_deletes_does_not_fire_even_if_it_is_registered_again() {
    let mut query = query(TimeMode::ProcessingTime);
    query.set_time_ms(10).small_chunks(1, 1);
    let script = "on_timer timer.delete 2; timer.register 2; timer.delete 3\ntimer.register 1\ntimer.register 2\ntimer.register 3\ntimer.register 4";
    assert_eq!(run(&mut query, script), ["1", "4"]);
    assert_eq!(query.timers(&"k".to_owned()).unwrap(), [2]);
}

#[test]
fn a_handler_that_deletes_the_timer_that_fires_no_longer_lists_it() {
    let mut query = query(TimeMode::ProcessingTime);
    assert_eq!(run(&mut query, "on_timer timer.delete 0; timer.list\ntimer.register 0"), ["0", "[]"]);
}

#[test]
fn a_timer_of_the_initial_state_waits_for_the_first_batch() {
    let mut query = query(TimeMode::ProcessingTime);
    query.initial_state("k".to_owned(), steps("value.put start\ntimer.register 0\non_timer value.get"));
    query.run_initial_state().unwrap();
    assert_eq!(query.value::<String>("value", &"k".to_owned()).unwrap().as_deref(), Some("start"));
    let answers: Vec<_> = query.run_batch().unwrap().into_iter().filter_map(|answer| answer.result).collect();
    assert_eq!(answers, ["0", "start"]);
}

#[test]
fn a_batch_that_fails_has_no_effect() {
    let mut query = query(TimeMode::None);
    run(&mut query, "value.put a");
    query.input("k".to_owned(), steps("value.put b\nfail enough"));
    let error = query.run_batch().unwrap_err();
    assert_eq!((error.code(), error.message()), ("SCRIPTED", "enough"));
    assert_eq!(run(&mut query, "value.get"), ["a"]);
}

#[test]
fn a_variable_can_be_dropped_but_not_used_at_once() {
    let mut query = query(TimeMode::None);
    query.parameter("drop", "value");
    assert_eq!(query.run_batch().unwrap_err().code(), "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED");
    query.parameter("drop", "of_an_earlier_version");
    assert!(query.run_batch().is_ok());
}

#[test]
fn messages_reach_the_log() {
    let mut query = query(TimeMode::None);
    run(&mut query, "log so far so good");
    assert_eq!(query.take_log(), [(tidemill::log::Level::Info, "so far so good".to_owned())]);
}
