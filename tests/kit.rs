//! `tidemill test`: what authors of processors test with.

use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::support::{EXAMPLES, Example, component, fail_with, json_lines, run, succeed, tidemill};

/// A folder with cases for the component `script`.
fn cases(cases: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    let settings =
        "source.schema = 'key STRING, op STRING, arg STRING'\nquery = { key = ['key'], time_mode = 'none' }\n";
    fs::write(folder.path().join("query.toml"), settings).unwrap();
    fs::create_dir(folder.path().join("cases")).unwrap();
    for (name, text) in cases {
        fs::write(folder.path().join("cases").join(name), text).unwrap();
    }
    folder
}

/// `tidemill test` in a folder.
fn test(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = tidemill();
    command.current_dir(folder.path()).arg("test").arg("--component").arg(component("script")).args(arguments);
    command
}

const RIGHT: &str = r#"
[[step]]
rows = '{"key":"a","op":"emit","arg":"x"}'
expect = '{"key":"a","op":"emit","result":"x"}'
"#;

const WRONG: &str = r#"
[[step]]
rows = '{"key":"a","op":"value.put","arg":"x"}'

[[step]] # a comment stays
about = "what was put is there"
rows = '{"key":"a","op":"value.get"}'
expect = '{"key":"a","op":"value.get","result":"y"}'
"#;

#[test]
fn the_cases_of_every_example_pass() {
    for name in EXAMPLES {
        let example = Example::new(name);
        let said = succeed(tidemill().arg("test").arg(example.path().join("cases")));
        assert!(said.out.contains(" passed, 0 failed"), "{}", said.out);
    }
}

#[test]
fn a_case_that_fails_is_told_by_name_step_and_key_without_colour_in_a_pipe() {
    let folder = cases(&[("right.toml", RIGHT), ("wrong.toml", WRONG)]);

    let said = run(&mut test(&folder, &[]));

    assert_eq!(said.code, Some(3), "{}{}", said.out, said.err);
    let expected = r#"ok      right (1 step)
FAILED  wrong (2 steps)
  step 2: what was put is there
    rows of key "a"
      - {"key": "a", "op": "value.get", "result": "y"}
      + {"key": "a", "op": "value.get", "result": "x"}

1 passed, 1 failed
"#;
    assert_eq!(said.out, expected);
}

#[test]
fn results_are_given_as_json_and_as_junit_too() {
    let folder = cases(&[("right.toml", RIGHT), ("wrong.toml", WRONG)]);

    let said = run(&mut test(&folder, &["-o", "json", "--junit", "junit.xml"]));

    let [right, wrong, summary] = <[Value; 3]>::try_from(json_lines(&said.out)).unwrap();
    assert_eq!((right["passed"].as_bool(), wrong["passed"].as_bool()), (Some(true), Some(false)));
    assert_eq!(wrong["differences"][0]["step"], 2);
    assert_eq!((&summary["passed"], &summary["failed"]), (&1.into(), &1.into()));
    let junit = fs::read_to_string(folder.path().join("junit.xml")).unwrap();
    assert!(junit.contains(r#"<testsuite name="tidemill" tests="2" failures="1">"#), "{junit}");
    assert!(junit.contains("+ {&quot;key&quot;: &quot;a&quot;"), "{junit}");
}

#[test]
fn an_update_accepts_what_happened_and_leaves_the_rest_as_it_was() {
    let folder = cases(&[("wrong.toml", WRONG)]);

    succeed(&mut test(&folder, &["--update"]));

    let text = fs::read_to_string(folder.path().join("cases/wrong.toml")).unwrap();
    let old = r#"expect = '{"key":"a","op":"value.get","result":"y"}'"#;
    let new = "expect = '''\n{\"key\":\"a\",\"op\":\"value.get\",\"result\":\"x\"}\n'''";
    assert_eq!(text, WRONG.replace(old, new));
    assert!(succeed(&mut test(&folder, &[])).out.contains("1 passed, 0 failed"));
}

#[test]
fn a_filter_picks_cases_by_their_path() {
    let folder = cases(&[("right.toml", RIGHT), ("wrong.toml", WRONG)]);
    let said = succeed(&mut test(&folder, &["--filter", "right"]));
    assert!(said.out.contains("1 passed, 0 failed"), "{}", said.out);
    fail_with(&mut test(&folder, &["--filter", "neither"]), "CASE_MISSING");
}

#[test]
fn what_cannot_be_run_is_an_error_before_any_case_runs() {
    let folder = cases(&[("right.toml", RIGHT)]);
    fail_with(&mut test(&folder, &["elsewhere"]), "CASE_UNREADABLE");
    fs::create_dir(folder.path().join("empty")).unwrap();
    fail_with(&mut test(&folder, &["empty"]), "CASE_MISSING");
    fail_with(tidemill().current_dir(folder.path()).args(["test", "-c", "nowhere.wasm"]), "COMPONENT_UNREADABLE");
    for (wrong, says) in
        [("[[step]]\nrowz = ''", "rowz"), ("[[step]]\nexpect = '{'", "step 1"), ("about = 'x'", "step")]
    {
        fs::write(folder.path().join("cases/malformed.toml"), wrong).unwrap();
        let said = fail_with(&mut test(&folder, &[]), "CASE_INVALID");
        assert!(said.err.contains(says) && said.out.is_empty(), "{}", said.err);
    }
}

#[test]
fn a_variable_that_is_not_there_is_told() {
    let folder = cases(&[("unknown.toml", "[[step]]\nrows = '{\"key\":\"a\",\"op\":\"time\"}'\nstate.nothing = ''")]);
    let said = run(&mut test(&folder, &[]));
    assert_eq!(said.code, Some(3));
    assert!(said.out.contains("error[STATE_VARIABLE_UNKNOWN]"), "{}", said.out);
}

#[test]
fn a_case_without_a_component_says_how_to_name_one() {
    let folder = cases(&[("right.toml", RIGHT)]);
    let said = run(tidemill().current_dir(folder.path()).arg("test"));
    assert_eq!(said.code, Some(3));
    assert!(said.out.contains("error[CONFIG_INCOMPLETE]"), "{}", said.out);
}
