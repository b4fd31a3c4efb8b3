//! Tests of the kit itself: what a case may say, and how a difference reads. That whole cases run is for
//! `tests/conformance`.

use std::path::Path;

use serde_json::json;

use super::case::{Case, ExpectedError, Step};
use super::compare::differences;
use super::report::{Actual, Failure, Report, StepReport};
use super::update::updated;

fn step(text: &str) -> Step {
    Case::parse("case", Path::new(""), &format!("[[step]]\n{text}")).unwrap().steps.remove(0)
}

fn actual(rows: &[serde_json::Value]) -> Actual {
    Actual { rows: rows.to_vec(), ..Actual::default() }
}

fn key() -> Vec<String> {
    vec!["k".to_owned()]
}

#[test]
fn rows_of_a_key_have_an_order_and_keys_have_none() {
    let step = step(
        r#"expect = '''
        {"k":"a","n":1}
        {"k":"a","n":2}
        {"k":"b","n":null}
    '''"#,
    );
    let rows = [json!({"k": "b"}), json!({"k": "a", "n": 1}), json!({"n": 2, "k": "a"})];
    assert_eq!(differences(&step, &actual(&rows), &key()), []);

    let [b, a1, a2] = rows;
    let found = differences(&step, &actual(&[a2, a1, b]), &key());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].what, r#"rows of key "a""#);
}

#[test]
fn a_difference_shows_what_is_common_once() {
    let step = step(
        r#"expect = '''
        {"k":1,"n":1}
        {"k":1,"n":2}
        {"k":1,"n":3}
    '''"#,
    );
    let rows = [json!({"k": 1, "n": 1}), json!({"k": 1, "n": 7}), json!({"k": 1, "n": 3})];
    let found = differences(&step, &actual(&rows), &key());
    assert_eq!(
        found[0].lines,
        [r#"  {"k": 1, "n": 1}"#, r#"- {"k": 1, "n": 2}"#, r#"+ {"k": 1, "n": 7}"#, r#"  {"k": 1, "n": 3}"#]
    );
}

#[test]
fn rows_that_nobody_expects_are_a_difference() {
    assert_eq!(differences(&step(""), &actual(&[json!({"k": 1})]), &key()).len(), 1);
}

#[test]
fn an_error_is_held_against_its_code_and_words() {
    let failure = Failure { code: "USER_CODE".to_owned(), message: "at key a".to_owned() };
    let failed = Actual { failure: Some(failure), ..Actual::default() };
    let same = |text: &str| differences(&step(text), &failed, &key()).is_empty();
    assert!(same("error = 'USER_CODE'"));
    assert!(same("error = { code = 'USER_CODE', says = ['key a'] }"));
    assert!(!same("error = { code = 'USER_CODE', says = ['key b'] }"));
    assert!(!same("error = 'HOST_DEFECT'"));
    assert!(!same(""));
    assert_eq!(differences(&step("error = 'USER_CODE'"), &Actual::default(), &key()).len(), 1);
    assert_eq!(step("error = 'USER_CODE'").error, Some(ExpectedError::Code("USER_CODE".to_owned())));
}

#[test]
fn elements_have_an_order_and_entries_have_none() {
    let with = |expected: &str, rows: Vec<serde_json::Value>| {
        let mut actual = Actual::default();
        actual.state.insert("v".to_owned(), rows);
        differences(&step(&format!("state.v = '''{expected}'''")), &actual, &key()).is_empty()
    };
    let element = |n: i32| json!({"key": {"k": 1}, "value": {"n": n}});
    let entry = |n: i32| json!({"key": {"k": 1}, "entry": {"e": n}, "value": {"n": n}});
    let text = |rows: &[serde_json::Value]| rows.iter().map(|row| format!("{row}\n")).collect::<String>();
    assert!(with(&text(&[element(1), element(2)]), vec![element(1), element(2)]));
    assert!(!with(&text(&[element(2), element(1)]), vec![element(1), element(2)]));
    assert!(with(&text(&[entry(2), entry(1)]), vec![entry(1), entry(2)]));
}

#[test]
fn a_reference_that_does_not_differ_is_told() {
    let step = step(
        r#"
        differs = "why"
        expect = '{"k":1}'
        reference = '{"k":1}'
    "#,
    );
    assert_eq!(differences(&step, &actual(&[json!({"k": 1})]), &key()).len(), 1);
}

#[test]
fn a_misspelt_case_is_refused() {
    for (text, reason) in [
        ("rowz = ''", "rowz"),
        ("expect = '{'", "step 1"),
        ("clock = 1\nadvance = 1", "not as both"),
        ("run = 'forever'", "forever"),
    ] {
        let error = Case::parse("case", Path::new(""), &format!("[[step]]\n{text}")).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn times_are_milliseconds_or_what_people_write() {
    let step = step("clock = '2026-01-01T00:00:01Z'\nrows = ''");
    assert_eq!(step.clock, Some(1_767_225_601_000));
    assert_eq!(self::step("advance = '5m'").advance, Some(300_000));
    assert!(Case::parse("case", Path::new(""), "[[step]]\nclock = 'soon'").unwrap_err().contains("soon"));
}

/// What `updated` makes of a case when this happens in its steps.
fn updated_with(text: &str, steps: &[Actual]) -> String {
    let case = Case::parse("case", Path::new(""), text).unwrap();
    let reports = case.steps.iter().zip(steps).map(|(step, actual)| StepReport {
        about: String::new(),
        differs: None,
        actual: actual.clone(),
        differences: differences(step, actual, &key()),
    });
    let report = Report { name: "case".to_owned(), broken: None, steps: reports.collect() };
    let new = updated(text, &report).unwrap();
    let case = Case::parse("case", Path::new(""), &new).unwrap();
    for (step, actual) in case.steps.iter().zip(steps) {
        assert_eq!(differences(step, actual, &key()), [], "{new}");
    }
    new
}

#[test]
fn an_update_changes_what_differs_and_nothing_else() {
    let text = r#"# First of all
settings.query.key = ["k"]

[[step]] # one
clock = 1
rows = '{"k":"a"}' # in
expect = '''
{"k":"a","n":1}
'''

[[step]]
rows = ""
error = { code = "USER_CODE", says = ["x"] }
batches = 2
state.v = ''
"#;
    let state = [("v".to_owned(), vec![json!({"key": {"k": "b"}, "value": {"n": 2}})])].into();
    let second = Actual { rows: vec![json!({"k": "b"})], state, ..Actual::default() };

    let new = updated_with(text, &[actual(&[json!({"k": "a", "n": 2})]), second]);

    let expected = r#"# First of all
settings.query.key = ["k"]

[[step]] # one
clock = 1
rows = '{"k":"a"}' # in
expect = '''
{"k":"a","n":2}
'''

[[step]]
rows = ""
expect = '''
{"k":"b"}
'''
batches = 0
state.v = '''
{"key":{"k":"b"},"value":{"n":2}}
'''
"#;
    assert_eq!(new, expected);
}

#[test]
fn an_update_writes_an_error_where_none_was_expected() {
    let failure = Failure { code: "USER_CODE".to_owned(), message: "boom".to_owned() };
    let failed = Actual { failure: Some(failure), ..Actual::default() };
    assert_eq!(updated_with("[[step]]", &[failed]), "[[step]]\nerror = \"USER_CODE\"\n");
}

#[test]
fn a_document_with_quotes_is_written_so_that_it_reads_the_same() {
    updated_with("[[step]]\nrows = ''\n", &[actual(&[json!({"k": "'''\\\"\n"})])]);
}
