//! Settings that cannot be, of flags and of files.

use std::fs;

use super::{A, B, Counter, SCHEMA, owned, says};
use crate::support::{component, fail_with, run, succeed, tidemill};

#[test]
fn settings_that_cannot_be_are_named_with_what_could_be() {
    let query = Counter::over(&[("1.jsonl", A)]);
    let cases: &[(&[&str], &str, &[&str])] = &[
        (&["--set", "limits.rows_per_bach=1"], "CONFIG_INVALID", &["rows_per_bach", "`rows_per_batch`"]),
        (&["--set", "limits.sandbox.memory=1"], "CONFIG_INVALID", &["`memory`", "`memory_bytes`", "limits.sandbox"]),
        (&["--set", "queri.name=x"], "CONFIG_INVALID", &["`queri`", "`query`"]),
        (&["--set", "nothing"], "CONFIG_INCOMPLETE", &["NAME=VALUE"]),
        (&["--time-mode", "sometimes"], "CONFIG_INVALID", &["`sometimes`", "`processing-time`", "query.time_mode"]),
        (&["--bad-rows", "ignore"], "CONFIG_INVALID", &["`ignore`", "`skip`", "query.bad_rows"]),
        (&["--trigger", "soon"], "CONFIG_INVALID", &["\"soon\" is no trigger", "5s"]),
        (&["--trigger", "0s"], "CONFIG_INVALID", &["\"0s\" is no trigger"]),
        (&["--watermark", "at, 5 parsecs"], "CONFIG_INVALID", &["5 parsecs", "10 minutes", "query.watermark.delay"]),
        (&["--watermark", "at"], "CONFIG_INCOMPLETE", &["COLUMN, DELAY"]),
        (
            &["--watermark", "at, 5s", "--time-mode", "event-time"],
            "WATERMARK_COLUMN_MISSING",
            &["at", SCHEMA, "TIMESTAMP"],
        ),
        (&["--time-mode", "event-time"], "WATERMARK_MISSING", &["--watermark 'COLUMN, DELAY'"]),
        (&["--schema", "key STRNG"], "CONFIG_INVALID", &["no type STRNG", "STRING", "source.schema"]),
        (&["--schema", "key STRING, KEY INT"], "CONFIG_INVALID", &["`KEY` is there twice", "rename"]),
        (&["--format", "xml"], "CONFIG_INVALID", &["`xml`", "`jsonl`", "source.format"]),
        (&["--key", "kee"], "KEY_COLUMN_MISSING", &["`kee`", "there are: key, n"]),
        (&["--workers", "many"], "", &["many", "--workers"]),
        (&["--config", "nowhere.toml"], "CONFIG_UNREADABLE", &["nowhere.toml", "check the path"]),
        (&["--clock", "nowhere"], "CONFIG_UNREADABLE", &["nowhere", "check the path"]),
        (&["--sink-format", "parquet", "--sink", "-"], "SINK_SETTING_INVALID", &["jsonl or csv"]),
    ];
    for (arguments, code, words) in cases {
        let said = run(&mut query.command(arguments.iter().copied()));
        // A flag of the wrong kind is wrong usage, and for clap to say.
        let (exit, head) = if code.is_empty() { (2, "error: ".to_owned()) } else { (1, format!("error[{code}]: ")) };
        assert_eq!(said.code, Some(exit), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(&head), "{arguments:?}: {}", said.err);
        says(&said, words);
    }
    assert_eq!(query.summary([])["rowsIn"], 1);
}

#[test]
fn what_a_query_does_not_say_is_asked_for() {
    let query = Counter::over(&[("1.jsonl", A)]);
    let (component, input) = (component("counter"), query.path().join("input"));
    let (component, input) = (component.to_str().unwrap(), input.to_str().unwrap());
    let cases: [(&[&str], &str, &str); 6] = [
        (&[], "CONFIG_INCOMPLETE", "a component as first argument"),
        (&[component], "CONFIG_INCOMPLETE", "--input PATH"),
        (&[component, "--input", input], "CONFIG_INCOMPLETE", "--sink PATH"),
        (&[component, "--input", input, "--sink", "-"], "CONFIG_INCOMPLETE", "--key COLUMN"),
        (&[component, "--input", input, "--sink", "-", "--key", "key"], "CHECKPOINT_MISSING", "--checkpoint DIR"),
        (
            &[component, "--input", "-", "--sink", "-", "--key", "key", "--ephemeral"],
            "SOURCE_SCHEMA_REQUIRED",
            "source.schema",
        ),
    ];
    for (arguments, code, how) in cases {
        says(&fail_with(tidemill().arg("run").args(arguments), code), &[how]);
    }
}

#[test]
fn a_typing_error_in_a_query_file_is_named_with_its_table() {
    let query = Counter::over(&[("1.jsonl", A)]);
    let file = query.path().join("query.toml");
    let text = format!(
        "[processor]\ncomponent = {:?}\n[source]\npath = \"input\"\nschema = \"{SCHEMA}\"\n[query]\nkey = [\"key\"]\n\
         checkpoint = \"checkpoint\"\n[sink]\npath = \"rows\"\n",
        component("counter")
    );
    let config = |text: &str| {
        fs::write(&file, text).unwrap();
        let mut command = tidemill();
        command.arg("run").arg("--config").arg(&file);
        command
    };
    let cases = [
        (text.replace("checkpoint =", "chekpoint ="), ["`chekpoint`", "`checkpoint`", "`query`"]),
        (text.replace("[sink]", "[skin]"), ["`skin`", "`sink`", "query.toml"]),
        (text.replace("schema =", "schema = ="), ["line 5", "query.toml", "schema"]),
        (text.replace("[\"key\"]", "1"), ["query.key", "sequence", "query.toml"]),
    ];
    for (text, words) in cases {
        says(&fail_with(&mut config(&text), "CONFIG_INVALID"), &words);
    }
    succeed(&mut config(&text));
    assert_eq!(query.counts(), [("a", 1)].map(owned));
}

#[test]
fn a_clock_file_that_is_none_or_ends_too_soon_is_named() {
    let query = Counter::over(&[("1.jsonl", A), ("2.jsonl", B)]);
    let clock = query.path().join("clock");
    let by_file = ["--clock", clock.to_str().unwrap(), "--set", "limits.files_per_batch=1"];

    fs::write(&clock, "2026-01-01T00:00:00Z\nnoon\n").unwrap();
    says(&fail_with(&mut query.command(by_file), "CLOCK_FILE_INVALID"), &["line 2", "noon", "RFC 3339"]);

    fs::write(&clock, "2026-01-01T00:00:00Z\n").unwrap();
    says(&fail_with(&mut query.command(by_file), "CLOCK_EXHAUSTED"), &["batch 1", "add a line"]);
}
