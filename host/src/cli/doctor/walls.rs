//! What `tidemill doctor` tells about the walls around the workers of `tidemill serve`: which layers this machine has, and
//! whether they hold.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::isolation::probe::{self, Findings, Outcome};
use crate::isolation::{IsolationError, LayerState};

/// Attacks the walls of this machine.
pub(super) fn findings() -> Result<Findings, IsolationError> {
    probe::run(&probe::program())
}

pub(super) fn text(findings: &Result<Findings, IsolationError>) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let findings = match findings {
        Ok(findings) => findings,
        Err(error) => {
            writeln!(text, "walls around workers: not known\n  missing  {error}")?;
            return Ok(text);
        }
    };
    let (through, safe) = (through(findings), findings.report.missing().all(|(layer, _)| !layer.is_required()));
    let verdict = if safe && through.is_empty() { "hold" } else { "do not hold" };
    writeln!(text, "walls around workers: {verdict}")?;
    for LayerState { layer, missing } in &findings.report.layers {
        match missing {
            None => writeln!(text, "  ok       {}", layer.name())?,
            Some(reason) => writeln!(text, "  missing  {:17}  {reason}", layer.name())?,
        }
    }
    let tried = findings.attacks.len();
    match through.as_slice() {
        [] => writeln!(text, "  ok       all of {tried} attacks from within were held back")?,
        through => {
            writeln!(text, "  broken   {} of {tried} attacks went through: {}", through.len(), through.join(", "))?
        }
    }
    Ok(text)
}

pub(super) fn document(findings: &Result<Findings, IsolationError>) -> Value {
    match findings {
        Ok(findings) => json!({
            "layers": findings.report.layers.iter().map(|LayerState { layer, missing }| match missing {
                None => json!({ "layer": layer.name(), "state": "ok" }),
                Some(reason) => json!({ "layer": layer.name(), "state": "missing", "message": reason }),
            }).collect::<Vec<_>>(),
            "attacks": { "tried": findings.attacks.len(), "wentThrough": through(findings) },
        }),
        Err(error) => json!({ "code": error.code(), "message": error.to_string() }),
    }
}

fn through(findings: &Findings) -> Vec<&'static str> {
    let attacks = findings.attacks.iter();
    attacks.filter(|(_, outcome)| *outcome == Outcome::Succeeded).map(|(name, _)| *name).collect()
}
