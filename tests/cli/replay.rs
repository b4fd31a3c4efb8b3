//! `replay`: retained batches again, and what differs.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::SystemTime;

use flate2::read::GzDecoder;
use insta::assert_snapshot;
use tempfile::TempDir;

use super::{Ran, files_below, shown};
use crate::support::{
    EXAMPLES, Example, component, fail_with, json_lines, published, run, succeed, tidemill, write_at,
};

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

    let often =
        ["--set", "retention.snapshot_batches=1", "--set", "retention.batches=1", "--set", "limits.rows_per_batch=1"];
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
    let mut bytes = fs::read(component(&ran.example.name)).unwrap();
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
