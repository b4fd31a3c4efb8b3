//! A query of several steps and sources, from its file and through every command.

use std::fs;
use std::process::Command;

use insta::assert_snapshot;
use tempfile::TempDir;

use super::{Ran, shown};
use crate::support::{Example, Said, component, fail_with, json_lines, published, rows, run, succeed, tidemill};

/// The example of two steps, `sessions` and `per-day`, over two sources, `web` and `app`.
const TWO: &str = "sessions-per-day";

/// Runs a copy of the example whose query file reads otherwise.
fn edited(edits: &[(&str, &str)]) -> (Example, TempDir) {
    let example = Example::new(TWO);
    edit(&example, edits);
    (example, TempDir::new().unwrap())
}

fn edit(example: &Example, edits: &[(&str, &str)]) {
    let file = example.path().join("query.toml");
    let mut text = fs::read_to_string(&file).unwrap();
    for (from, to) in edits {
        assert!(text.contains(from), "{from} is not in the query file");
        text = text.replace(from, to);
    }
    fs::write(&file, text).unwrap();
}

/// The query goes on, with these arguments.
fn again<'a>(ran: &Ran, arguments: impl IntoIterator<Item = &'a str>) -> Command {
    ran.example.command(ran.place.path(), arguments)
}

#[test]
fn inspect_shows_the_plan_of_each_step_and_what_one_hands_to_the_next() {
    let example = Example::new(TWO);
    let mut inspect = tidemill();
    inspect.arg("inspect").arg("--config").arg(example.path().join("query.toml"));

    let steps = json_lines(&succeed(inspect.args(["-o", "json"])).out).remove(0)["steps"].take();

    assert_eq!((&steps[0]["step"], &steps[1]["step"]), (&"sessions".into(), &"per-day".into()));
    assert_eq!(
        steps[0]["plan"]["output"],
        "user STRING NOT NULL, first TIMESTAMP NOT NULL, last TIMESTAMP NOT NULL, ended TIMESTAMP NOT NULL, events BIGINT \
         NOT NULL"
    );
    assert_eq!(steps[1]["plan"]["columns"], "ended TIMESTAMP NOT NULL, events BIGINT NOT NULL");
}

#[test]
fn state_is_that_of_the_step_that_is_named() {
    // The second day is not over.
    let ran = Ran::with(TWO, |example| {
        fs::remove_file(example.path().join("input/web/0004.jsonl")).unwrap();
    });

    assert_snapshot!(shown(&succeed(&mut ran.state(["--step", "sessions", "list"]))), @r"
    name  kind  key  value                                           ttl  declared  keys  rows
    open  list       first TIMESTAMP, last TIMESTAMP, events BIGINT       true      2     3
    ");
    assert_snapshot!(shown(&succeed(&mut ran.state(["--step", "per-day", "list"]))), @r"
    name  kind  key           value                           ttl  declared  keys  rows
    days  map   value BIGINT  sessions BIGINT, events BIGINT       true      2     2
    ");
    assert_snapshot!(shown(&succeed(&mut ran.state(["--step", "per-day", "scan", "days"]))), @r"
    key.user  entry.value    value.sessions  value.events
    cid       1767398400000  1               1
    bob       1767398400000  1               2
    ");
    let unnamed = fail_with(&mut ran.state(["list"]), "STATE_STEP_UNKNOWN");
    assert!(unnamed.err.contains("the steps of this query are: sessions, per-day"), "{}", unnamed.err);
    fail_with(&mut ran.state(["--step", "per-week", "list"]), "STATE_STEP_UNKNOWN");
    let metadata = json_lines(&succeed(&mut ran.state(["metadata", "-o", "json"])).out).remove(0);
    assert_eq!(metadata["steps"][1]["name"], "per-day");
    assert_eq!(metadata["steps"][1]["timeMode"], "event-time");
    assert_eq!((&metadata["sources"][0]["name"], &metadata["sources"][1]["name"]), (&"app".into(), &"web".into()));
}

#[test]
fn a_flag_changes_a_setting_of_one_step() {
    let (example, place) = edited(&[]);
    let run_with = |settings: &[&str]| {
        let arguments: Vec<_> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        run(&mut example.command(place.path(), arguments.iter().copied()))
    };
    let refused = |said: &Said| said.err.contains("error[OUTPUT_LIMIT_EXCEEDED]") && said.err.contains("step per-day");

    let of_the_second = run_with(&["step.per-day.limits.output_rows=0"]);
    assert!(refused(&of_the_second), "{}", of_the_second.err);
    let of_all_but_the_second = run_with(&["limits.output_rows=0", "step.per-day.limits.output_rows=9"]);
    assert!(of_all_but_the_second.err.contains("step sessions"), "{}", of_all_but_the_second.err);

    assert_eq!(run_with(&["step.sessions.limits.output_rows=9"]).code, Some(0));
    assert_eq!(rows(&place.path().join("rows")), example.expected());
}

#[test]
fn a_step_can_have_another_component_and_its_replay_has_the_old_one_where_it_ran() {
    let ran = Ran::new(TWO);
    let mut bytes = fs::read(component(TWO)).unwrap();
    // A custom section with a name of one letter, which nobody reads.
    bytes.extend([0, 2, 1, b'x']);
    let upgraded = ran.place.path().join("upgraded.wasm");
    fs::write(&upgraded, bytes).unwrap();
    fs::write(ran.example.path().join("input/web/0005.jsonl"), r#"{"user":"dan","at":"2026-01-05T10:00:00Z"}"#)
        .unwrap();

    let said = succeed(&mut again(&ran, ["--set", &format!("step.per-day.component={}", upgraded.display())]));

    assert!(said.err.contains("in step per-day"), "{}", said.err);
    assert!(!said.err.contains("in step sessions"), "{}", said.err);
    let replayed = succeed(&mut ran.replay(["-q"]));
    assert!(replayed.out.ends_with("15 rows in are as recorded.\n"), "{}", replayed.out);
}

#[test]
fn it_goes_back_with_all_its_steps_and_sources_and_comes_to_the_same_end() {
    let ran = Ran::new(TWO);
    let mut rollback = tidemill();

    let said = succeed(rollback.arg("rollback").arg(ran.checkpoint()).args(["--to", "1"]));

    let read_again = said.out.lines().filter(|line| line.ends_with(" will be read again.")).count();
    assert_eq!(read_again, 2, "{}", said.out);
    assert_eq!(published(&ran.place.path().join("rows")).len(), 0);
    succeed(&mut again(&ran, []));
    assert_eq!(rows(&ran.place.path().join("rows")), ran.example.expected());
    assert_eq!(succeed(&mut ran.replay(["-q"])).out, "5 batch(es) with 14 rows in are as recorded.\n");
}

#[test]
fn the_watermark_waits_for_the_slower_source_and_an_event_time_behind_it_is_refused() {
    let (example, place) = edited(&[]);
    let run_in = |folder: &str, setting: &'static str| example.command(&place.path().join(folder), ["--set", setting]);

    succeed(&mut run_in("max", "query.watermark_policy=max"));

    let day_of_cid = |text: &str| json_lines(text).into_iter().find(|row| row["user"] == "cid").unwrap();
    assert_eq!(day_of_cid(&rows(&place.path().join("max/rows")))["sessions"], 1, "an event was not late");
    assert_eq!(day_of_cid(&example.expected())["sessions"], 2);
    let refused = fail_with(
        &mut run_in("last", "step.sessions.output_event_time=last"),
        "EMITTING_ROWS_OLDER_THAN_WATERMARK_NOT_ALLOWED",
    );
    assert!(refused.err.contains("step sessions"), "{}", refused.err);
}

#[test]
fn steps_of_a_checkpoint_keep_their_names_and_their_order() {
    let code = "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA";
    let ran = Ran::new(TWO);

    let renamed = fail_with(&mut again(&ran, ["--set", "step.per-day.name=per-week"]), code);
    assert!(
        renamed.err.contains("sessions, per-day in this checkpoint and are sessions, per-week now"),
        "{}",
        renamed.err
    );
    let [name, other] = [r#"name = "sessions""#, r#"name = "per-day""#];
    edit(&ran.example, &[(name, "name = 'x'"), (other, name), ("name = 'x'", other)]);
    fail_with(&mut again(&ran, []), code);
}

#[test]
fn sources_of_a_checkpoint_go_only_if_someone_says_so() {
    let ran = Ran::new(TWO);

    fail_with(&mut again(&ran, ["--set", "source.app.name=phones"]), "SOURCE_REMOVED");

    let dropped = ["--set", "source.app.name=phones", "--set", r#"query.dropped_sources=["app"]"#];
    succeed(&mut again(&ran, dropped));
    let policy = fail_with(
        &mut again(&ran, dropped.into_iter().chain(["--set", "query.watermark_policy=max"])),
        "STATE_STORE_INVALID_CONFIG_AFTER_RESTART",
    );
    assert!(policy.err.contains("was min in this checkpoint and is max now"), "{}", policy.err);
}

#[test]
fn what_is_wrong_in_a_list_of_steps_or_sources_is_told_with_its_code() {
    let (example, place) = edited(&[]);
    let refused = |arguments: &[&'static str], code: &str, says: &str| {
        let said = fail_with(&mut example.command(place.path(), arguments.iter().copied()), code);
        assert!(said.err.contains(says), "{arguments:?}: {}", said.err);
    };

    refused(&["--set", "step.per-day.name=sessions"], "STEP_NAME_INVALID", "two of the steps");
    refused(&["--set", "step.per-day.name=per day"], "STEP_NAME_INVALID", "letters, digits");
    refused(&["--set", "source.web.name=app"], "SOURCE_NAME_INVALID", "two of the sources");
    refused(&["--set", "source.web.speed=1"], "CONFIG_INVALID", "`speed`");
    refused(&["--set", "step.per-day.speed=1"], "CONFIG_INVALID", "`speed`");
    refused(&["--set", "step.per-day.limits.speed=1"], "CONFIG_INVALID", "`speed`");
    refused(&["--set", "step.per-week.time_mode=none"], "CONFIG_INVALID", "[[step]]: sessions, per-day");
    refused(&["--set", "source.format=csv"], "CONFIG_INVALID", "[[source]]: web, app");
    refused(&["--input", "rows"], "CONFIG_INVALID", "[[source]]: web, app");
    refused(&["--key", "user"], "CONFIG_INVALID", "query.key is for a query of one step");
    refused(&["a.wasm"], "CONFIG_INVALID", "processor is for a query of one step");
    refused(&["--set", "step.per-day.key=['nobody']"], "KEY_COLUMN_MISSING", "step per-day");
    refused(&["--set", "step.sessions.output_event_time=events"], "WATERMARK_COLUMN_TYPE", "step sessions");
    refused(&["--set", "source.app.schema=user BIGINT, at TIMESTAMP"], "INCOMPATIBLE_COLUMN_TYPE", "source app");
    refused(&["--set", "source.app.path=none"], "SOURCE_NOT_FOUND", "none");
    let both_of_standard_input = ["web", "app"].map(|source| format!("source.{source}.stdin=true"));
    let said = fail_with(
        example.command(place.path(), []).args([
            "--set",
            &both_of_standard_input[0],
            "--set",
            &both_of_standard_input[1],
        ]),
        "CONFIG_INVALID",
    );
    assert!(said.err.contains("standard input can be one source only"), "{}", said.err);
}
