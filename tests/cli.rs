//! The command line as a person meets it: what `inspect`, `state` and `replay` print, and with which exit code.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use flate2::read::GzDecoder;
use insta::assert_snapshot;
use tempfile::TempDir;

use super::support::{
    EXAMPLES, Example, Said, component, fail_with, json_lines, published, rows, run, succeed, tidemill, write_at,
};

mod inspect {
    use super::*;

    #[test]
    fn a_component_is_shown_with_its_interfaces() {
        let said = succeed(tidemill().arg("inspect").arg(component("counter")));

        assert_snapshot!(shown(&said), @r"
        component     counter.wasm
        size          [n] bytes
        digest        sha256:[digest]
        world version 0.1.0
        imports       tidemill:processor/effects@0.1.0
                      tidemill:processor/input@0.1.0
                      tidemill:processor/logging@0.1.0
                      tidemill:processor/state@0.1.0
                      tidemill:processor/types@0.1.0
        exports       tidemill:processor/handler@0.1.0
        ");
    }

    #[test]
    fn with_key_and_schema_the_plan_is_shown() {
        let said = succeed(tidemill().arg("inspect").arg(component("counter")).args([
            "--key",
            "key",
            "--schema",
            "key STRING, n BIGINT",
        ]));

        let plan: Vec<_> = said.out.lines().skip_while(|line| !line.starts_with("key")).collect();
        assert_snapshot!(plan.join("\n"), @r"
        key           key STRING NOT NULL
        columns       n BIGINT NOT NULL
        output        key STRING NOT NULL, count BIGINT NOT NULL, listed BIGINT NOT NULL, distinct BIGINT NOT NULL
        state         value count <value BIGINT>
                      list seen <value BIGINT>
                      map times <value BIGINT> to <value BIGINT>
        prefetch      count
        ");
    }

    #[test]
    fn a_query_file_gives_the_plan_with_ttl_and_initial_state() {
        let plan = |name| {
            let example = Example::new(name);
            let mut command = tidemill();
            command.arg("inspect").arg(component(name)).arg("--config").arg(example.path().join("query.toml"));
            json_lines(&succeed(command.args(["-o", "json"])).out).remove(0)["plan"].take()
        };

        let dedup = plan("dedup");
        assert_eq!(dedup["variables"][0]["name"], "seen");
        assert_eq!(dedup["variables"][0]["ttlMs"], 3_600_000);
        assert_eq!(dedup["initialState"], serde_json::Value::Null);
        assert_eq!(plan("counter-initial-state")["initialState"], "count BIGINT NOT NULL");
    }

    #[test]
    fn a_file_that_is_no_processor_is_told_what_it_is() {
        let folder = TempDir::new().unwrap();
        let other_world = r#"(component (instance $i) (export "other:package/thing@1.0.0" (instance $i)))"#;
        let files: [(&str, Vec<u8>); 4] = [
            ("empty.wasm", Vec::new()),
            ("core.wasm", wat::parse_str("(module)").unwrap()),
            ("text.wasm", b"fn main() {}\n".to_vec()),
            ("other.wasm", wat::parse_str(other_world).unwrap()),
        ];
        let mut told = String::new();
        for (name, bytes) in files {
            fs::write(folder.path().join(name), bytes).unwrap();
            let said = run(tidemill().current_dir(folder.path()).args(["inspect", name]));
            assert_eq!(said.code, Some(1), "{}", said.err);
            told.push_str(&said.err);
        }
        told.push_str(&run(tidemill().current_dir(folder.path()).args(["inspect", "missing.wasm"])).err);

        assert_snapshot!(told, @r"
        error[COMPONENT_EMPTY]: empty.wasm is empty; build the processor again
        error[COMPONENT_IS_CORE_MODULE]: core.wasm is a core WebAssembly module, not a component; turn it into one (`tidemill build` does it for every supported language)
        error[COMPONENT_INVALID]: text.wasm is not a WebAssembly component that this host accepts: it does not begin like one; `tidemill build` makes one of a compiled processor
        error[COMPONENT_WORLD_MISMATCH]: other.wasm does not implement the world of this host, tidemill:processor@0.1.0: it does not export tidemill:processor/handler; it exports other:package/thing@1.0.0; build it with a matching SDK
        error[COMPONENT_UNREADABLE]: missing.wasm could not be read: No such file or directory (os error 2); check the path, and that it is a file
        ");
    }

    #[test]
    fn a_query_that_does_not_fit_is_refused() {
        let mut command = tidemill();
        command.arg("inspect").arg(component("counter")).args(["--key", "city", "--schema", "key STRING, n BIGINT"]);
        fail_with(&mut command, "KEY_COLUMN_MISSING");
        fail_with(tidemill().arg("inspect"), "CONFIG_INCOMPLETE");
    }
}

mod state {
    use super::*;

    #[test]
    fn variables_are_listed_with_kinds_schemas_and_counts() {
        let ran = Ran::new("counter");

        assert_snapshot!(shown(&succeed(&mut ran.state(["list"]))), @r"
        name   kind   key           value         ttl  keys  rows
        count  value                value BIGINT       2     2
        seen   list                 value BIGINT       2     5
        times  map    value BIGINT  value BIGINT       2     3
        ");
    }

    #[test]
    fn a_ttl_is_listed_with_its_length() {
        let ran = Ran::new("dedup");

        let listed = json_lines(&succeed(&mut ran.state(["list", "-o", "json"])).out);

        assert_eq!(listed[0]["ttl"], "1h");
    }

    #[test]
    fn get_shows_what_one_key_has() {
        let ran = Ran::new("counter");
        let get = |variable| succeed(&mut ran.state(["get", variable, "--key", r#"{"key":"a"}"#]));

        assert_snapshot!(shown(&get("count")), @r"
        key.key  value.value
        a        3
        ");
        assert_snapshot!(shown(&get("seen")), @r"
        key.key  sequence  value.value
        a        0         1
        a        1         2
        a        2         1
        ");
        assert_snapshot!(shown(&get("times")), @r"
        key.key  entry.value  value.value
        a        1            2
        a        2            1
        ");
        let nobody = succeed(&mut ran.state(["get", "count", "--key", r#"{"key":"nobody"}"#, "-o", "json"]));
        assert_eq!(nobody.out, "");
    }

    #[test]
    fn scan_shows_all_keys_up_to_a_limit() {
        let ran = Ran::new("counter");

        let all = json_lines(&succeed(&mut ran.state(["scan", "times", "-o", "json"])).out);
        let two = json_lines(&succeed(&mut ran.state(["scan", "times", "--limit", "2", "-o", "json"])).out);

        assert_eq!(all.len(), 3);
        assert_eq!(two, all[..2]);
        assert!(
            all.contains(
                &serde_json::json!({ "key": { "key": "b" }, "entry": { "value": 7 }, "value": { "value": 2 } })
            )
        );
    }

    #[test]
    fn rows_with_a_ttl_show_when_they_expire() {
        let ran = Ran::new("dedup");

        assert_snapshot!(shown(&succeed(&mut ran.state(["scan", "seen"]))), @r"
        key.id  value.value  expires
        e3      true         2026-01-01T13:30:00Z
        e1      true         2026-01-01T14:00:00Z
        ");
    }

    #[test]
    fn timers_are_shown_while_they_wait() {
        let ran = Ran::with("heartbeat", |example| {
            fs::remove_file(example.path().join("input/0002.jsonl")).unwrap();
            fs::remove_file(example.path().join("input/0003.jsonl")).unwrap();
            fs::write(example.path().join("clock"), "2026-01-01T12:00:00Z\n").unwrap();
        });

        assert_snapshot!(shown(&succeed(&mut ran.state(["timers"]))), @r"
        key.sensor  expires
        cellar      2026-01-01T12:05:00Z
        boiler      2026-01-01T12:05:00Z
        ");
        let one = succeed(&mut ran.state(["timers", "--key", r#"{"sensor":"cellar"}"#, "-o", "json"]));
        assert_eq!(one.out, "{\"key\":{\"sensor\":\"cellar\"},\"expires\":\"2026-01-01T12:05:00Z\"}\n");
    }

    #[test]
    fn metadata_tells_who_the_query_is_and_where_it_stands() {
        let ran = Ran::new("sessions");

        let metadata = json_lines(&succeed(&mut ran.state(["metadata", "-o", "json"])).out).remove(0);

        assert_eq!(metadata["lastBatch"], 3);
        assert_eq!(metadata["retainedBatches"], serde_json::json!({ "first": 0, "last": 3, "count": 4 }));
        assert_eq!(metadata["timeMode"], "event-time");
        assert_eq!(metadata["watermark"], "2026-01-01T11:50:00Z");
        assert_eq!(metadata["key"], "user STRING NOT NULL");
        assert_eq!(metadata["sources"][0]["lastRead"]["files"][0]["path"], "0003.jsonl");
        assert_eq!(metadata["sinks"][0]["rows"], 2);
        assert!(metadata["processor"].as_str().unwrap().starts_with("sha256:"));
        let text = succeed(&mut ran.state(["metadata"])).out;
        assert!(text.contains("retainedBatches   first 0, last 3, count 4\n"), "{text}");
    }

    #[test]
    fn a_batch_that_was_committed_before_a_crash_is_there() {
        let example = Example::new("counter");
        let place = TempDir::new().unwrap();
        let crashed = run(example.command(place.path(), []).env("TIDEMILL_CRASH_AT", "commit.after-sync:1"));
        assert_eq!(crashed.code, None, "{}", crashed.err);
        let ran = Ran { example, place };

        let before = files_below(&ran.checkpoint());
        let said = succeed(&mut ran.state(["get", "count", "--key", r#"{"key":"a"}"#, "-o", "json"]));

        assert_eq!(said.out, "{\"key\":{\"key\":\"a\"},\"value\":{\"value\":3}}\n");
        assert!(files_below(&ran.checkpoint()) == before, "looking at a checkpoint has changed it");
    }

    #[test]
    fn looking_changes_nothing() {
        let ran = Ran::new("flights");
        let before = files_below(&ran.checkpoint());

        for look in [&["list"][..], &["scan", "last_flight"], &["timers"], &["metadata"]] {
            succeed(&mut ran.state(look.iter().copied()));
        }

        assert!(files_below(&ran.checkpoint()) == before);
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        let ran = Ran::new("counter");

        let unknown = fail_with(&mut ran.state(["scan", "total"]), "STATE_VARIABLE_UNKNOWN");
        assert!(unknown.err.contains("count, seen, times"), "{}", unknown.err);
        let key = fail_with(&mut ran.state(["get", "count", "--key", r#"{"city":"a"}"#]), "STATE_KEY_INVALID");
        assert!(key.err.contains("key STRING NOT NULL"), "{}", key.err);
        fail_with(&mut ran.state(["get", "count", "--key", "a"]), "STATE_KEY_INVALID");
        let nowhere = ran.place.path().join("nowhere");
        fail_with(tidemill().arg("state").arg(nowhere).arg("list"), "CHECKPOINT_NOT_FOUND");
    }

    #[test]
    fn a_query_that_runs_is_left_alone() {
        let ran = Ran::new("counter");
        let running = fs::File::options().write(true).open(ran.checkpoint().join("lock")).unwrap();
        running.lock().unwrap();

        fail_with(&mut ran.state(["list"]), "CHECKPOINT_IN_USE");
        fail_with(&mut ran.replay([]), "CHECKPOINT_IN_USE");
    }

    #[test]
    fn a_reader_that_goes_away_ends_it_quietly() {
        let ran = Ran::new("flights");
        for arguments in [&["scan", "last_flight", "-o", "json"][..], &["scan", "last_flight"]] {
            let mut command = ran.state(arguments.iter().copied());
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            drop(child.stdout.take());

            let output = child.wait_with_output().unwrap();

            assert!(output.status.success());
            assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        }
    }
}

mod replay {
    use super::*;

    #[test]
    fn every_example_replays_as_recorded() {
        for name in EXAMPLES {
            let ran = Ran::new(name);
            let before = files_below(ran.place.path());

            let said = succeed(&mut ran.replay([]));

            assert!(said.out.starts_with("Replaying "), "{name}: {}", said.out);
            assert!(!said.out.contains("DIFFERENT"), "{name}: {}", said.out);
            assert!(files_below(ran.place.path()) == before, "{name}: a replay has changed something");
        }
    }

    #[test]
    fn it_tells_batch_by_batch_what_it_has_proved() {
        let ran = Ran::new("heartbeat");

        assert_snapshot!(shown(&succeed(&mut ran.replay([]))), @r"
        Replaying 4 batch(es) from the empty state.
        batch 0                2 rows in         0 out  as recorded
        batch 1                1 rows in         0 out  as recorded
        batch 2                1 rows in         1 out  as recorded
        batch 3                0 rows in         1 out  as recorded
        4 batch(es) with 4 rows in are as recorded.
        ");
        assert_snapshot!(shown(&succeed(&mut ran.replay(["--quiet"]))), @"4 batch(es) with 4 rows in are as recorded.");
        assert_snapshot!(shown(&succeed(&mut ran.replay(["-q", "-o", "json"]))), @r#"{"batches":4,"rowsIn":4,"firstDifferent":null}"#);
    }

    #[test]
    fn it_begins_with_the_oldest_retained_snapshot() {
        let ran = Ran::with_arguments(
            "flights",
            |_| {},
            ["--set", "retention.snapshot_batches=2", "--set", "retention.batches=3", "--workers", "3"],
        );
        let metadata = json_lines(&succeed(&mut ran.state(["metadata", "-o", "json"])).out).remove(0);
        assert!(metadata["retainedBatches"]["first"].as_u64() > Some(0), "{metadata}");

        let said = succeed(&mut ran.replay([]));

        let snapshot = metadata["snapshots"][0].as_str().unwrap();
        assert!(said.out.contains(&format!("from snapshot {snapshot}.")), "{}", said.out);
        assert!(said.out.contains("batch 9 "), "{}", said.out);
    }

    #[test]
    fn a_changed_file_is_told_before_anything_runs() {
        let ran = Ran::with("flights", unpack);
        change_cell(&ran.example, 1600, "dep_delay", "77");

        let said = fail_with(&mut ran.replay([]), "SOURCE_FILE_CHANGED");

        assert_eq!(said.out, "", "a batch was replayed");
        assert!(said.err.contains("lga-2013-01-05.csv"), "{}", said.err);
    }

    #[test]
    fn the_first_batch_that_differs_is_named() {
        let ran = Ran::with("flights", unpack);
        change_cell(&ran.example, 1600, "dep_delay", "77");

        let said = run(&mut ran.replay(["--changed-input", "replay"]));

        assert_eq!(said.code, Some(3), "{}{}", said.out, said.err);
        assert!(said.err.contains("SOURCE_FILE_CHANGED"), "{}", said.err);
        let shown: Vec<_> = said.out.lines().skip(1).collect();
        assert_snapshot!(shown.join("\n"), @r"
        batch 0              500 rows in       500 out  as recorded
        batch 1              500 rows in       500 out  as recorded
        batch 2              500 rows in       500 out  as recorded
        batch 3              500 rows in       704 out  DIFFERENT: input, output
        Batch 3 is not as recorded: input, output differ(s); the 3 batch(es) before are.
        ");
        let json = run(&mut ran.replay(["--changed-input", "replay", "-q", "-o", "json"]));
        assert_eq!((json.code, json.out.as_str()), (Some(3), "{\"batches\":4,\"rowsIn\":2000,\"firstDifferent\":3}\n"));
    }

    #[test]
    fn a_column_that_the_processor_does_not_want_may_change_and_move_all_others() {
        let ran = Ran::with("flights", unpack);
        change_cell(&ran.example, 100, "distance", "123456");

        fail_with(&mut ran.replay([]), "SOURCE_FILE_CHANGED");
        let said = succeed(&mut ran.replay(["--changed-input", "replay", "-q"]));

        assert_eq!(said.out, "10 batch(es) with 4087 rows in are as recorded.\n");
    }

    #[test]
    fn a_row_that_is_malformed_now_is_a_difference() {
        let ran = Ran::with("flights", unpack);
        change_cell(&ran.example, 600, "dep_delay", "late");

        let said = run(&mut ran.replay(["--changed-input", "replay", "-q"]));

        assert_eq!(said.code, Some(3), "{}{}", said.out, said.err);
        assert!(said.out.starts_with("Batch 1 is not as recorded: input"), "{}", said.out);
    }

    #[test]
    fn rows_of_a_stream_stand_in_the_log() {
        let place = TempDir::new().unwrap();
        let query = |command: &str| {
            let mut tidemill = tidemill();
            tidemill
                .arg(command)
                .arg(component("counter"))
                .args(["--input", "-", "--schema", "key STRING, n BIGINT", "--key", "key", "--bad-rows", "quarantine"])
                .args(["--set", "limits.rows_per_batch=2", "--sink"])
                .arg(place.path().join("rows"))
                .arg("--quarantine")
                .arg(place.path().join("quarantine"))
                .arg("--checkpoint")
                .arg(place.path().join("checkpoint"));
            tidemill
        };
        let mut child = query("run").stdin(Stdio::piped()).spawn().unwrap();
        let rows = "{\"key\":\"a\",\"n\":1}\n{\"key\":\"a\",\"n\":\"one\"}\n{\"key\":\"b\",\"n\":2}\nnonsense\n{\"key\":\"a\",\"n\":3}\n";
        child.stdin.take().unwrap().write_all(rows.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
        assert!(!published(&place.path().join("quarantine")).is_empty(), "nothing was malformed");

        let said = succeed(&mut query("replay"));

        assert!(said.out.ends_with(" with 3 rows in are as recorded.\n"), "{}", said.out);
    }

    #[test]
    fn each_batch_runs_with_the_component_that_it_ran_then() {
        let ran = Ran::new("counter");
        write_at(&ran.example.path().join("input/0002.jsonl"), "{\"key\":\"a\",\"n\":9}\n", 2_000_000_000);
        run_upgraded(&ran, []);
        assert_eq!(fs::read_dir(ran.checkpoint().join("components")).unwrap().count(), 2);

        assert_eq!(succeed(&mut ran.replay(["-q"])).out, "2 batch(es) with 6 rows in are as recorded.\n");

        for kept in fs::read_dir(ran.checkpoint().join("components")).unwrap() {
            let kept = kept.unwrap().path();
            let mut bytes = fs::read(&kept).unwrap();
            *bytes.last_mut().unwrap() = b'!';
            fs::write(&kept, bytes).unwrap();
        }
        fail_with(&mut ran.replay([]), "CHECKPOINT_DAMAGED");

        fs::remove_dir_all(ran.checkpoint().join("components")).unwrap();
        let said = fail_with(&mut ran.replay([]), "REPLAY_OTHER_PROCESSOR");
        assert!(said.err.contains("give the component that it ran"), "{}", said.err);
    }

    #[test]
    fn components_go_with_the_last_batch_that_ran_them() {
        let ran = Ran::with_arguments("flights", |_| {}, ["--set", "limits.rows_per_batch=3000"]);
        let old = components(&ran);
        for (month, name) in [(2, "lga-2013-02.csv"), (3, "lga-2013-03.csv"), (4, "lga-2013-04.csv")] {
            let header = "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,\
                          tailnum,origin,dest,air_time,distance,hour,minute,time_hour";
            let row = format!(
                "2013,{month},1,533,529,4,850,830,20,UA,1714,N24211,LGA,IAH,227,1416,5,29,2013-0{month}-01T10:00:00Z"
            );
            write_at(&ran.example.path().join("input").join(name), format!("{header}\n{row}\n"), 2_000_000_000 + month);
        }

        let often = [
            "--set",
            "retention.snapshot_batches=1",
            "--set",
            "retention.batches=1",
            "--set",
            "limits.rows_per_batch=1",
        ];
        run_upgraded(&ran, often);

        let kept = components(&ran);
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert_ne!(kept, old);
    }

    fn components(ran: &Ran) -> Vec<String> {
        let entries = fs::read_dir(ran.checkpoint().join("components")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Runs the query on with another component that does the same: it has a custom section, which nobody reads, more.
    fn run_upgraded<'a>(ran: &Ran, arguments: impl IntoIterator<Item = &'a str>) {
        let (custom_section, name) = (0_u8, b"upgraded");
        let mut bytes = fs::read(component(ran.example.name)).unwrap();
        bytes.extend([custom_section, name.len() as u8 + 1, name.len() as u8]);
        bytes.extend(name);
        let upgraded = ran.place.path().join("upgraded.wasm");
        fs::write(&upgraded, bytes).unwrap();
        let mut command = tidemill();
        command.arg("run").arg(&upgraded).arg("--config").arg(ran.example.path().join("query.toml"));
        command.arg("--checkpoint").arg(ran.checkpoint()).arg("--sink").arg(ran.place.path().join("rows"));
        succeed(command.args(arguments));
    }

    /// Replaces the compressed input with plain files of the same rows and times.
    fn unpack(example: &Example) {
        for packed in input_files(example) {
            let modified = fs::metadata(&packed).unwrap().modified().unwrap();
            let mut text = String::new();
            GzDecoder::new(fs::File::open(&packed).unwrap()).read_to_string(&mut text).unwrap();
            fs::remove_file(&packed).unwrap();
            write_with_time(&packed.with_extension(""), &text, modified);
        }
    }

    /// Changes a cell of the row with this number, from 0, over all files. Nothing but the bytes tells: the file has the
    /// time that it had.
    fn change_cell(example: &Example, number: usize, column: &str, cell: &str) {
        let mut left = number;
        for path in input_files(example) {
            let text = fs::read_to_string(&path).unwrap();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let rows = lines.len() - 1;
            if left >= rows {
                left -= rows;
                continue;
            }
            let index = lines[0].split(',').position(|name| name == column).unwrap();
            let line = &mut lines[left + 1];
            let mut cells: Vec<&str> = line.split(',').collect();
            cells[index] = cell;
            *line = cells.join(",");
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            write_with_time(&path, &(lines.join("\n") + "\n"), modified);
            return;
        }
        panic!("there is no row {number}");
    }

    fn input_files(example: &Example) -> Vec<PathBuf> {
        let entries = fs::read_dir(example.path().join("input")).unwrap();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    fn write_with_time(path: &Path, text: &str, modified: SystemTime) {
        fs::write(path, text).unwrap();
        fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
    }
}

#[test]
fn examples_give_the_rows_that_they_promise() {
    for name in EXAMPLES.into_iter().filter(|name| *name != "flights") {
        let ran = Ran::new(name);
        assert_eq!(rows(&ran.place.path().join("rows")), ran.example.expected(), "{name}");
    }
}

#[test]
fn two_runs_give_identical_files() {
    let example = Example::new("flights");
    let files = |arguments: &[&'static str]| {
        let place = TempDir::new().unwrap();
        succeed(&mut example.command(place.path(), arguments.iter().copied()));
        published(&place.path().join("rows"))
    };

    let first = files(&[]);

    assert!(first.len() > 5, "{} files", first.len());
    assert!(files(&[]) == first);
    assert!(files(&["--workers", "5"]) == first, "another number of workers gives other files");
}

#[test]
fn every_command_teaches_with_examples() {
    for command in ["run", "inspect", "state", "replay"] {
        let said = succeed(tidemill().args([command, "--help"]));
        assert!(said.out.contains(&format!("Examples:\n  tidemill {command} ")), "{}", said.out);
    }
}

/// An example that was run, with its checkpoint.
struct Ran {
    example: Example,
    place: TempDir,
}

impl Ran {
    fn new(name: &'static str) -> Self {
        Self::with(name, |_| {})
    }

    /// Of a copy of the example that was changed before.
    fn with(name: &'static str, change: impl FnOnce(&Example)) -> Self {
        Self::with_arguments(name, change, [])
    }

    fn with_arguments<'a>(
        name: &'static str,
        change: impl FnOnce(&Example),
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let (example, place) = (Example::new(name), TempDir::new().unwrap());
        change(&example);
        succeed(&mut example.command(place.path(), arguments));
        Self { example, place }
    }

    fn checkpoint(&self) -> PathBuf {
        self.place.path().join("checkpoint")
    }

    fn state<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = tidemill();
        command.arg("state").arg(self.checkpoint()).args(arguments);
        command
    }

    fn replay<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = tidemill();
        command
            .arg("replay")
            .arg(component(self.example.name))
            .arg("--config")
            .arg(self.example.path().join("query.toml"));
        command.arg("--checkpoint").arg(self.checkpoint()).args(arguments);
        command
    }
}

/// What a command printed, without what is of this build or machine.
fn shown(said: &Said) -> String {
    assert_eq!(said.err, "");
    let mut text = String::new();
    for line in said.out.lines() {
        let words = line.split(' ').map(|word| match word.strip_prefix("sha256:") {
            Some(_) => "sha256:[digest]".to_owned(),
            None if word.starts_with('/') => Path::new(word).file_name().unwrap().to_string_lossy().into_owned(),
            None => word.to_owned(),
        });
        let line = words.collect::<Vec<_>>().join(" ");
        text += if line.starts_with("size ") { "size          [n] bytes" } else { &line };
        text.push('\n');
    }
    text
}

/// Everything below a folder.
fn files_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut folders, mut files) = (vec![folder.to_owned()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    files
}
