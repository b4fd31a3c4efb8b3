//! `tidemill deploy`: uploads a component as the next version of a processor.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::{Remote, RemoteArgs, print_one};
use crate::cli::Format;
use crate::cli::output::Coded;
use crate::client::{Body, Method};
use crate::config::Environment;

/// Upload a component as the next version of a processor
///
/// The server checks and compiles it, which takes seconds for Python and JavaScript. The same bytes again are the same
/// version. An alias, `live` if no other is given, then names this version; queries that name the alias run it from their
/// next start on.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct DeployArgs {
    /// The component, a `.wasm` file that `tidemill build` made
    #[arg(value_name = "COMPONENT")]
    component: PathBuf,

    /// The processor's name; default: that of the file
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// The alias that names this version from now on
    #[arg(long, value_name = "NAME", default_value = "live", conflicts_with = "no_alias")]
    alias: String,

    /// Upload only
    #[arg(long)]
    no_alias: bool,

    #[command(flatten)]
    remote: RemoteArgs,
}

const EXAMPLES: &str = "\
Examples:
  tidemill deploy build/visits.wasm
  tidemill deploy build/visits.wasm --name visits --alias canary";

/// How long the server is asked to wait for the outcome, before it is asked again.
const WAIT: &str = "60s";

/// Runs the command.
pub(in crate::cli) fn run(args: &DeployArgs, format: Format, environment: &Environment) -> anyhow::Result<u8> {
    let remote = args.remote.connect(environment)?;
    let bytes = fs::read(&args.component).map_err(|error| Coded::wrap("COMPONENT_UNREADABLE", error))?;
    let of_file = args.component.file_stem().map(|stem| stem.to_string_lossy().to_lowercase().replace('_', "-"));
    let name = args.name.clone().or(of_file).unwrap_or_default();

    let mut version = upload(&remote, &name, &bytes)?;
    if !args.no_alias {
        let path = remote.of_tenant(&["processors", &name, "aliases", &args.alias])?;
        let number = version.get("version").cloned().unwrap_or_default();
        remote.ask(Method::PUT, &path, Body::Json(&json!({ "version": number })))?;
        if let Value::Object(fields) = &mut version {
            fields.insert("alias".to_owned(), json!(args.alias));
        }
    }
    if let (Format::Text, Value::Object(fields)) = (format, &mut version) {
        // What `tidemill inspect` shows better.
        fields.remove("description");
    }
    print_one(&version, format)?;
    Ok(0)
}

/// Uploads, and waits until the version is ready or refused.
fn upload(remote: &Remote, name: &str, bytes: &[u8]) -> anyhow::Result<Value> {
    let path = remote.of_tenant(&["processors", name, "versions"])?;
    let mut answer =
        remote.ask(Method::POST, &format!("{path}?wait={WAIT}"), Body::Bytes("application/wasm", bytes))?;
    while answer.status == 202 {
        let id = answer.body.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let operation = remote.of_tenant(&["operations", &id])?;
        answer = remote.ask(Method::GET, &format!("{operation}?wait={WAIT}"), Body::Empty)?;
    }
    Ok(answer.body)
}
