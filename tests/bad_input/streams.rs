//! Runs and streams: nothing new, interrupts, readers that go away, standard input that begins anew.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{A, B, Counter, owned};
use crate::support::{component, fail_with, json_lines, run, succeed, tidemill, write_at};

#[test]
fn a_query_that_has_read_everything_does_nothing_until_there_are_new_files() {
    let query = Counter::over(&[("1.jsonl", A)]);
    assert_eq!(query.summary([])["batches"], 1);
    assert_eq!(query.summary([])["batches"], 0);
    assert_eq!(query.counts(), [("a", 1)].map(owned));

    query.write("2.jsonl", A);

    assert_eq!(query.summary([])["batches"], 1);
    assert_eq!(query.counts(), [("a", 1), ("a", 2)].map(owned));
}

#[test]
fn an_ephemeral_query_keeps_nothing() {
    let query = Counter::over(&[("1.jsonl", A)]);
    let mut command = tidemill();
    command.arg("run").arg(component("counter")).args(["--key", "key", "--sink", "-", "--ephemeral", "--input"]);
    command.arg(query.path().join("input"));

    for _ in 0..2 {
        assert_eq!(json_lines(&succeed(&mut command).out)[0]["count"], 1);
    }
    assert!(!query.path().join("checkpoint").exists());
}

#[test]
fn a_summary_and_an_error_can_be_read_by_programs() {
    let query = Counter::over(&[("1.jsonl", &format!("{A}{A}{B}"))]);
    let summary = query.summary([]);
    let expected = json!({
        "batches": 1, "lastBatch": 0, "rowsIn": 3, "rowsOut": 2, "rowsLate": 0, "rowsRejected": 0, "deadLetters": 0, "stateRows": 6,
        "watermarkMs": 0
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!((name, &summary[name]), (name, value));
    }

    let said = run(&mut query.command(["--key", "kee", "-o", "json"]));
    let error: Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!(error["error"]["code"], "KEY_COLUMN_MISSING");
    assert!(error["error"]["message"].as_str().unwrap().contains("there are: key, n"));
    assert!(said.out.is_empty());
}

#[test]
fn a_stream_that_is_interrupted_goes_on_with_another_one() {
    let query = Counter::over(&[]);
    let mut first = Stream::start(&query, []);
    first.send(A);
    assert_eq!(first.emitted_row()["count"], 1);
    first.interrupt();
    let (code, err) = first.end_without_closing();
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("Stopping after the batch in hand"), "{err}");

    let mut second = Stream::start(&query, []);
    second.send(A);
    assert_eq!(second.emitted_row()["count"], 2);
    assert_eq!(second.end().0, Some(0));
}

#[test]
fn a_stream_that_begins_anew_can_skip_what_is_committed_after_it_was_compared() {
    let query = Counter::over(&[]);
    let skip = ["--set", "source.skip_committed=true"];
    let mut first = Stream::start(&query, []);
    first.send(A);
    first.emitted_row();
    first.end();

    let mut again = Stream::start(&query, skip);
    again.send(A);
    again.send(A);
    assert_eq!(again.emitted_row()["count"], 2);
    again.end();

    let mut other = Stream::start(&query, skip);
    other.send(B);
    other.send(B);
    let (code, err) = other.end();
    assert_eq!(code, Some(1));
    assert!(err.contains("error[STDIN_PREFIX_MISMATCH]") && err.contains("nothing was processed"), "{err}");
}

#[test]
fn a_reader_that_goes_away_ends_the_query_with_a_code_and_the_rows_come_again() {
    let query = Counter::over(&[]);
    let mut stream = Stream::start(&query, []);
    stream.send(A);
    stream.emitted_row();
    stream.close_output();
    stream.send(A);

    let (code, err) = stream.end_without_closing();

    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("error[SINK_CLOSED]") && err.contains("written again by the next start"), "{err}");
    let mut next = Stream::start(&query, []);
    assert_eq!(next.emitted_row()["count"], 2);
    assert_eq!(next.end().0, Some(0));
}

/// Rows that one batch emits: far more than a pipe holds.
const MANY: usize = 20_000;

/// A script whose one batch emits many rows to standard output.
fn many_rows(query: &Counter) -> Command {
    let step = json!({ "key": "k", "op": "repeat", "arg": format!("{MANY} emit a line of some length") });
    query.write("1.jsonl", format!("{step}\n"));
    query.script(["--sink", "-"])
}

/// Starts it and takes one row, so that it is in the midst of its output.
fn amid_the_output(mut command: Command) -> (Interrupted, BufReader<std::process::ChildStdout>) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::with_capacity(64, child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    let err = BufReader::new(child.stderr.take().unwrap());
    (Interrupted { child, err }, out)
}

#[test]
fn a_reader_that_takes_one_line_of_many_ends_the_query_with_a_code_and_all_rows_come_again() {
    let query = Counter::over(&[]);
    let (mut running, out) = amid_the_output(many_rows(&query));
    drop(out);

    running.wait_for("error[SINK_CLOSED]");
    assert_eq!(running.end(), Some(1));

    assert_eq!(succeed(&mut many_rows(&query)).out.lines().count(), MANY);
    assert_eq!(succeed(&mut many_rows(&query)).out, "", "and only once");
}

#[test]
fn a_reader_that_takes_nothing_more_is_left_by_two_interrupts_and_all_rows_come_again() {
    let query = Counter::over(&[]);
    let (mut running, out) = amid_the_output(many_rows(&query));

    running.interrupt();
    running.wait_for("interrupt again to abandon it");
    running.interrupt();

    assert_eq!(running.end(), Some(130));
    drop(out);
    assert_eq!(succeed(&mut many_rows(&query)).out.lines().count(), MANY);
}

#[test]
fn an_interrupt_amid_the_initial_state_ends_after_the_file_in_hand_and_the_next_start_goes_on() {
    let query = Counter::over(&[]);
    let step = |op: &str, arg: &str| format!("{}\n", json!({ "key": "k", "op": op, "arg": arg }));
    let first = step("log", "in hand") + &step("repeat", "300000 value.clear") + &step("list.append", "first");
    for (name, text, seconds) in [("1.jsonl", first, 1), ("2.jsonl", step("list.append", "second"), 2)] {
        write_at(&query.path().join("initial").join(name), text, seconds);
    }
    query.write("1.jsonl", step("list.get", ""));
    let arguments = [
        "--initial-state",
        "initial",
        "--initial-state-schema",
        "key STRING, op STRING, arg STRING",
        "--set",
        "limits.files_per_batch=1",
    ];

    let interrupted = Interrupted::in_hand(query.script(arguments));
    interrupted.interrupt();
    assert_eq!(interrupted.end(), Some(0));
    assert!(query.rows().is_empty(), "input comes after all of the initial state");

    succeed(&mut query.script(arguments));
    assert_eq!(json_lines(&query.rows())[0]["result"], "[first,second]");
}

#[test]
fn rows_of_a_stream_do_not_come_again_after_a_batch_that_failed() {
    let query = Counter::over(&[("1.jsonl", A), ("2.jsonl", "no JSON\n")]);
    let to_stdout = ["--sink", "-", "--set", "limits.files_per_batch=1"];
    let failed = fail_with(&mut query.command(to_stdout), "MALFORMED_ROW");
    assert_eq!(json_lines(&failed.out)[0]["count"], 1);

    let again = fail_with(&mut query.command(to_stdout), "MALFORMED_ROW");

    assert_eq!(again.out, "", "the first batch was published and is not pending");
}

#[test]
fn one_interrupt_lets_the_batch_in_hand_end_and_a_second_abandons_it() {
    let query = Counter::over(&[]);
    let steps = |times: u32| {
        let step = |op: &str, arg: &str| format!("{}\n", json!({ "key": "k", "op": op, "arg": arg }));
        step("log", "in hand") + &step("repeat", &format!("{times} value.clear")) + &step("emit", "done")
    };
    let endless = ["--set", "limits.rows_per_batch=3", "--set", "limits.sandbox.chunk_time_ms=3600000"];
    let emit = "{\"key\":\"k\",\"op\":\"emit\",\"arg\":\"next\"}\n";

    query.write("1.jsonl", steps(4_000_000_000));
    let mut abandoned = Interrupted::in_hand(query.script(endless));
    abandoned.interrupt();
    abandoned.wait_for("interrupt again to abandon it");
    abandoned.interrupt();
    assert_eq!(abandoned.end(), Some(130));
    assert!(query.rows().is_empty(), "a batch that was abandoned has not happened");

    query.write("1.jsonl", steps(1_000_000) + emit);
    let finished = Interrupted::in_hand(query.script(endless));
    finished.interrupt();
    assert_eq!(finished.end(), Some(0));
    let results: Vec<_> = json_lines(&query.rows()).iter().map(|row| row["result"].clone()).collect();
    assert_eq!(results, [json!("done")], "the batch in hand is committed, the next is not begun");

    succeed(&mut query.script(endless));
    assert_eq!(json_lines(&query.rows()).len(), 2);
}

/// A running query from standard input to standard output.
pub struct Stream {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<std::process::ChildStdout>>,
}

impl Stream {
    pub fn start<'a>(query: &Counter, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        let mut command = query.streaming(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Self { child, input, output }
    }

    pub fn send(&mut self, rows: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(rows.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// Waits for the next row.
    pub fn emitted_row(&mut self) -> Value {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn close_output(&mut self) {
        self.output = None;
    }

    fn interrupt(&self) {
        interrupt(&self.child);
    }

    /// Ends the input, and waits for the end of the query: its exit code and what it said.
    pub fn end(mut self) -> (Option<i32>, String) {
        self.input = None;
        self.end_without_closing()
    }

    fn end_without_closing(mut self) -> (Option<i32>, String) {
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code(), err)
    }
}

/// A query whose processor has said that a batch is in hand.
struct Interrupted {
    child: Child,
    err: BufReader<std::process::ChildStderr>,
}

impl Interrupted {
    fn in_hand(mut command: Command) -> Self {
        let mut child = command.env("TIDEMILL_LOG", "processor=info").stderr(Stdio::piped()).spawn().unwrap();
        let err = BufReader::new(child.stderr.take().unwrap());
        let mut this = Self { child, err };
        this.wait_for("in hand");
        this
    }

    fn wait_for(&mut self, words: &str) {
        let mut said = String::new();
        while !said.contains(words) {
            let read = self.err.read_line(&mut said).unwrap();
            assert!(read > 0, "it ended without {words:?}: {said}");
        }
    }

    fn interrupt(&self) {
        interrupt(&self.child);
    }

    fn end(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}
