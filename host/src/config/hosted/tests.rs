//! What a tenant may write, and that no setting of a query file escapes the decision.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::json;

use super::super::tables::{
    DeadLettersConfig, LimitsTable, ProcessorConfig, QuarantineConfig, QueryTable, SourceTable, StepConfig,
};
use super::super::{QueryFile, SinkSettings, SourceSettings};
use super::refused::REFUSED;
use super::*;
use crate::state::StateLimits;

fn parse(document: &Value) -> Result<HostedQuery, HostedError> {
    let query = HostedQuery::parse(document.to_string().as_bytes())?;
    Ceilings::default().check(&query).map(|()| query)
}

fn visits() -> Value {
    json!({
        "name": "visits", "processor": "counter@live", "input_schema": "user STRING, at TIMESTAMP", "key": ["user"],
    })
}

fn with(mut document: Value, setting: &str, value: Value) -> Value {
    document.as_object_mut().unwrap().insert(setting.to_owned(), value);
    document
}

fn refusal(document: &Value) -> (&'static str, String) {
    let error = parse(document).map(drop).unwrap_err();
    (error.code(), error.to_string())
}

#[test]
fn a_query_of_one_step_is_written_flat_and_runs_continuously() {
    let settings = parse(&visits()).unwrap().settings();

    assert_eq!(settings.name.as_deref(), Some("visits"));
    assert_eq!(settings.steps.len(), 1);
    assert_eq!((settings.trigger, settings.workers, settings.bad_rows), (Trigger::Continuous, 1, BadRows::Fail));
}

#[test]
fn several_steps_are_a_list_and_inherit_the_limits_of_the_query() {
    let document = json!({
        "name": "chain", "input_schema": "user STRING",
        "limits": { "rows_per_batch": 10, "output_rows": 7, "sandbox": { "memory_bytes": 1000, "log_lines": 5 } },
        "steps": [
            { "name": "first", "processor": "a@1", "key": ["user"], "limits": { "sandbox": { "log_lines": 9 } } },
            { "name": "second", "processor": "b@2", "key": ["n"] },
        ],
    });

    let query = parse(&document).unwrap();

    assert_eq!(query.settings().read.rows_max, 10);
    let limits = |number: usize| &query.steps[number].limits;
    assert_eq!((limits(0).output_rows, limits(1).output_rows), (7, 7));
    assert_eq!((limits(0).sandbox.memory_bytes, limits(0).sandbox.log_lines), (1000, 9));
    assert_eq!((limits(1).sandbox.memory_bytes, limits(1).sandbox.log_lines), (1000, 5));
}

#[test]
fn settings_of_a_step_beside_a_list_of_steps_are_refused() {
    let (code, message) = refusal(&with(visits(), "steps", json!([])));

    assert_eq!(code, "CONFIG_INVALID");
    assert!(message.contains("beside steps"), "{message}");
}

#[test]
fn columns_that_rows_do_not_have_are_refused() {
    for document in [
        with(visits(), "key", json!(["/etc/passwd"])),
        with(visits(), "watermark", json!({ "column": "${HOME}", "delay": "1s" })),
    ] {
        assert_eq!(refusal(&document).0, "CONFIG_INVALID", "{document}");
    }
}

#[test]
fn what_goes_further_than_the_ceilings_is_refused_with_the_setting() {
    let cases = [
        ("workers", json!(1000), "workers"),
        ("key_groups", json!(60_000), "key_groups"),
        ("limits", json!({ "rows_per_batch": u64::MAX }), "limits.rows_per_batch"),
        ("limits", json!({ "sandbox": { "memory_bytes": 1_u64 << 40 } }), "limits.sandbox.memory_bytes"),
        ("limits", json!({ "state": { "timers_per_key_max": 1_u64 << 40 } }), "limits.state.timers_per_key_max"),
        ("retention", json!({ "batches": u64::MAX }), "retention.batches"),
        ("trigger", json!("1ms"), "trigger"),
        ("trigger", json!("available-now"), "trigger"),
        ("min_batch_interval", json!("0s"), "min_batch_interval"),
        ("ttl_sweep", json!("0s"), "ttl_sweep"),
    ];
    for (setting, value, named) in cases {
        let (code, message) = refusal(&with(visits(), setting, value));
        assert_eq!(code, "HOSTED_SETTING_OUT_OF_BOUNDS", "{message}");
        assert!(message.contains(named), "{message}");
    }
}

#[test]
fn references_to_processors_have_a_grammar_without_paths() {
    let digest = format!("sha256:{}", "0a".repeat(32));
    for text in ["counter@live", "counter@3", &digest] {
        assert_eq!(text.parse::<ProcessorReference>().unwrap().to_string(), text);
    }
    let upper = digest.to_uppercase();
    for text in ["counter", "counter@", "@live", "counter@0", "counter@+3", "a/b@1", "../a@1", "Counter@1", &upper, ""]
    {
        assert!(text.parse::<ProcessorReference>().is_err(), "{text}");
    }
}

#[test]
fn parameters_may_be_named_like_settings_that_are_refused() {
    let document = with(visits(), "parameters", json!({ "path": "/var/lib", "clock": "${CLOCK}" }));

    assert_eq!(parse(&document).unwrap().settings().steps[0].parameters["path"], "/var/lib");
}

#[test]
fn a_document_of_any_depth_or_length_is_an_error_and_no_crash() {
    let deep = "[".repeat(100_000);
    let long = format!("{{\"name\": \"{}\"}}", "a".repeat(DOCUMENT_BYTES_MAX));
    for document in [deep.as_str(), &long, "", "null", "[]"] {
        let error = HostedQuery::parse(document.as_bytes()).map(drop).unwrap_err();
        assert_eq!(error.code(), "CONFIG_INVALID");
    }
}

/// What serde knows to stand in a table, by the error that it makes of a setting that cannot be there.
fn settings_of<T: DeserializeOwned>() -> BTreeSet<String> {
    let message = serde_json::from_str::<T>(r#"{"no such setting": 1}"#).map(drop).unwrap_err().to_string();
    let names: BTreeSet<_> = message.split('`').skip(1).step_by(2).skip(1).map(str::to_owned).collect();
    assert!(!names.is_empty(), "{message}");
    names
}

/// Every setting of a query file, of all its tables.
fn settings_of_query_files() -> BTreeSet<String> {
    [
        settings_of::<QueryFile>(),
        settings_of::<ProcessorConfig>(),
        settings_of::<StepConfig>(),
        settings_of::<SourceTable>(),
        settings_of::<SourceSettings>(),
        settings_of::<SinkSettings>(),
        settings_of::<QuarantineConfig>(),
        settings_of::<DeadLettersConfig>(),
        settings_of::<QueryTable>(),
        settings_of::<WatermarkConfig>(),
        settings_of::<LimitsTable>(),
        settings_of::<StepLimits>(),
        settings_of::<StateLimits>(),
        settings_of::<SandboxLimits>(),
        settings_of::<RetentionTable>(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Settings of a query file that a hosted query has as well. Before one is added here: can it hold a path, a URI or a
/// variable of the environment?
const TAKEN: [&str; 47] = [
    "batches",
    "bytes_per_batch",
    "chunk_fuel",
    "chunk_host_calls",
    "chunk_time_ms",
    "column",
    "delay",
    "host_call_bytes",
    "instances",
    "key",
    "key_groups",
    "limits",
    "list_elements_max",
    "log_bytes",
    "log_lines",
    "max_future",
    "memories",
    "memory_bytes",
    "min_batch_interval",
    "name",
    "open_cursors",
    "output_bytes",
    "output_event_time",
    "output_mode",
    "output_rows",
    "parameters",
    "processor",
    "retention",
    "rows_per_batch",
    "sandbox",
    "schema_bytes",
    "seed",
    "snapshot_batches",
    "snapshot_bytes",
    "state",
    "table_elements",
    "tables",
    "time_mode",
    "timers_per_key_max",
    "trigger",
    "ttl_evictions_max",
    "ttl_sweep",
    "value_schemas_max",
    "wasi_resources",
    "watermark",
    "workers",
    "write_bytes_max",
];

/// Tables of a query file whose settings stand elsewhere in a hosted query, and its schema, which is `input_schema`.
const OTHERWISE: [&str; 3] = ["query", "schema", "step"];

#[test]
fn every_setting_of_a_query_file_is_taken_or_refused() {
    let decided: BTreeSet<_> = TAKEN.into_iter().chain(OTHERWISE).chain(REFUSED.map(|(name, _)| name)).collect();

    let settings = settings_of_query_files();

    let settings: BTreeSet<_> = settings.iter().map(String::as_str).collect();
    assert_eq!(settings.difference(&decided).collect::<Vec<_>>(), Vec::<&&str>::new(), "decide on these");
    assert_eq!(decided.difference(&settings).collect::<Vec<_>>(), Vec::<&&str>::new(), "these are gone");
    assert!(TAKEN.iter().all(|name| REFUSED.iter().all(|(refused, _)| refused != name)));
}

#[test]
fn no_setting_of_a_query_file_takes_a_path_a_uri_or_a_variable() {
    // Named where it is used, so that a query that has it fails when it is opened.
    let column_of_the_output = "output_event_time";
    for setting in settings_of_query_files() {
        for text in ["/etc/passwd", "../../secret", "file:///etc/passwd", "https://example.com/a", "${HOME}"] {
            let of_step = with(json!({ "name": "a", "processor": "a@1", "key": ["user"] }), &setting, json!(text));
            let documents = [
                with(visits(), &setting, json!(text)),
                with(visits(), "limits", json!({ setting.as_str(): text })),
                with(visits(), "watermark", json!({ "column": "at", "delay": "1s", setting.as_str(): text })),
                json!({ "name": "visits", "input_schema": "user STRING", "steps": [of_step] }),
            ];
            for document in documents {
                match parse(&document) {
                    Ok(_) => assert_eq!(setting, column_of_the_output, "{document}"),
                    Err(error) => {
                        let refused = REFUSED.iter().any(|(name, _)| *name == setting);
                        assert_eq!(refused, error.code() == "HOSTED_SETTING_NOT_ALLOWED", "{document}: {error}");
                    }
                }
            }
        }
    }
}
