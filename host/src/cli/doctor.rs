//! `tidemill doctor`: what is installed for which language, what to do about the rest, and whether the walls of workers hold.

mod walls;

use std::fmt::Write;

use clap::Args;
use serde_json::{Value, json};

use super::Format;
use super::build::{Lang, ToolArgs, toolbox};
use super::output;
use crate::config::Environment;
use crate::engine::trigger::Stop;
use crate::project::{Checkup, Finding, Language, State, checkup};

/// Tell what this machine has to build projects and to run those of others
///
/// For each language: the programs that it needs, where they are and in which version, what `tidemill build` will install by
/// itself, and how to get what is missing. Without --lang also the walls around the workers of `tidemill serve`: each layer, and
/// what came of attacks on them from a child that is made for it. The exit code is 0 if the language asked for can be used; without
/// --lang, if any can.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DoctorArgs {
    /// Only this language.
    #[arg(long, value_enum)]
    lang: Option<Lang>,
}

const EXAMPLES: &str = "\
Examples:
  tidemill doctor
  tidemill doctor --lang python --output json";

/// Exit code when nothing that was asked for can be used.
const UNUSABLE: u8 = output::FAILED;

/// Runs the command.
pub(super) fn run(args: &DoctorArgs, format: Format, environment: &Environment) -> anyhow::Result<u8> {
    let tools = toolbox(&ToolArgs::default(), Stop::default(), environment);
    let asked = args.lang.map_or_else(|| Language::ALL.to_vec(), |lang| vec![lang.into()]);
    let checkups: Vec<_> = asked.into_iter().map(|language| checkup(language, &tools)).collect();
    let walls = args.lang.is_none().then(walls::findings);
    output::result(&match format {
        Format::Text => {
            let sections = checkups.iter().map(text).chain(walls.as_ref().map(walls::text));
            sections.collect::<Result<Vec<_>, _>>()?.join("\n")
        }
        Format::Json => {
            let mut answer = json!({ "languages": checkups.iter().map(document).collect::<Vec<_>>() });
            if let (Some(walls), Some(answer)) = (&walls, answer.as_object_mut()) {
                answer.insert("walls".to_owned(), walls::document(walls));
            }
            format!("{answer}\n")
        }
    })?;
    Ok(if checkups.iter().any(Checkup::is_usable) { 0 } else { UNUSABLE })
}

fn text(checkup: &Checkup) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let verdict = if checkup.is_usable() { "can be used" } else { "cannot be used" };
    writeln!(text, "{}: {verdict}", checkup.language.name())?;
    let width = checkup.findings.iter().map(|finding| finding.what.len()).max().unwrap_or_default();
    for Finding { what, state } in &checkup.findings {
        match state {
            State::There { version, place } => {
                let place = place.as_ref().map(|place| place.display().to_string());
                let known: Vec<_> = [version.clone(), place].into_iter().flatten().collect();
                let known = if known.is_empty() { "installed".to_owned() } else { known.join("  ") };
                writeln!(text, "  ok       {what:width$}  {known}")?;
            }
            State::Later => writeln!(text, "  later    {what:width$}  the first `tidemill build` installs it")?,
            State::Missing(error) => writeln!(text, "  missing  {what:width$}  {error}")?,
        }
    }
    Ok(text)
}

fn document(checkup: &Checkup) -> Value {
    let findings = checkup.findings.iter().map(|Finding { what, state }| match state {
        State::There { version, place } => json!({ "what": what, "state": "ok", "version": version, "place": place }),
        State::Later => json!({ "what": what, "state": "later" }),
        State::Missing(error) => {
            json!({ "what": what, "state": "missing", "code": error.code(), "message": error.to_string() })
        }
    });
    json!({
        "language": checkup.language.name(),
        "usable": checkup.is_usable(),
        "needs": findings.collect::<Vec<_>>(),
    })
}
