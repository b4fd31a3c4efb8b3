//! Settings of `query.toml` that are not a tenant's.

use serde_json::{Map, Value};

use super::HostedError;

const INGESTED: &str = "rows come from the query's own ingest log";
const RESULTS: &str = "rows go to the query's own results";
const SERVER: &str = "the server decides where its data lies";
const UPLOADED: &str = "processors are uploaded, and named with processor";
const CHECKED: &str = "rows are checked when they are ingested, and a request with a bad one is refused";
const FAILS: &str = "hosted queries have no dead letters yet: a batch at which a processor fails is tried again";
const CLOCK: &str = "hosted queries run by the server's clock";
const FUEL: &str = "hosted processors are metered by fuel";

/// Each with who decides it instead, wherever it stands in a document.
pub(super) const REFUSED: [(&str, &str); 26] = [
    ("after_poison", FAILS),
    ("bad_rows", CHECKED),
    ("checkpoint", SERVER),
    ("clock", CLOCK),
    ("component", UPLOADED),
    ("dead_letters", FAILS),
    ("delimiter", INGESTED),
    ("dropped_sources", INGESTED),
    ("files_per_batch", INGESTED),
    ("format", INGESTED),
    ("header", INGESTED),
    ("idle_timeout", INGESTED),
    ("initial_state", "initial state is not taken from files here; ingest the rows instead"),
    ("metering", FUEL),
    ("null_value", INGESTED),
    ("on_poison", FAILS),
    ("path", SERVER),
    ("poison", FAILS),
    ("quarantine", CHECKED),
    ("sink", RESULTS),
    ("skip_committed", INGESTED),
    ("source", INGESTED),
    ("sources", INGESTED),
    ("stdin", INGESTED),
    ("stdout", RESULTS),
    ("watermark_policy", INGESTED),
];

/// Finds the first of them. The names of parameters are their author's.
pub(super) fn check(document: &Map<String, Value>) -> Result<(), HostedError> {
    in_table(document, "")
}

fn in_table(table: &Map<String, Value>, place: &str) -> Result<(), HostedError> {
    for (key, value) in table.iter().filter(|(key, _)| *key != "parameters") {
        let setting = format!("{place}{key}");
        if let Some((_, why)) = REFUSED.iter().find(|(name, _)| name == key) {
            return Err(HostedError::NotAllowed { setting, why });
        }
        in_value(value, &format!("{setting}."))?;
    }
    Ok(())
}

fn in_value(value: &Value, place: &str) -> Result<(), HostedError> {
    match value {
        Value::Object(table) => in_table(table, place),
        Value::Array(values) => {
            values.iter().enumerate().try_for_each(|(number, value)| in_value(value, &format!("{place}{number}.")))
        }
        _ => Ok(()),
    }
}
