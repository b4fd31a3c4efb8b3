//! `tidemill query`: the queries of a tenant.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::{RemoteArgs, print_list, print_one};
use crate::cli::Format;
use crate::cli::output::Coded;
use crate::client::{Body, Method};
use crate::config::Environment;

/// Make, look at, start and stop the queries of a tenant
#[derive(Debug, Args)]
pub(in crate::cli) struct QueryArgs {
    #[command(subcommand)]
    action: Action,

    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a query, and start it
    Create {
        /// What it is: a JSON document, see docs/server.md
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Do not start it
        #[arg(long)]
        stopped: bool,
    },
    /// List queries
    List,
    /// Show what a query is and how it fares
    Get {
        /// Which one
        name: String,
    },
    /// Show what its last batches did
    Progress {
        /// Which one
        name: String,
    },
    /// Start a query that was stopped or has failed
    Start {
        /// Which one
        name: String,
    },
    /// Stop a query after the batch in hand; its state stays
    Stop {
        /// Which one
        name: String,
    },
    /// Let a query rest; rows are taken meanwhile
    Pause {
        /// Which one
        name: String,
    },
    /// Let a paused query go on
    Resume {
        /// Which one
        name: String,
    },
    /// Remove a query with its state, rows and results
    Delete {
        /// Which one
        name: String,
        /// It is what you want: nothing of it can be had back
        #[arg(long, required = true)]
        yes: bool,
    },
}

/// Runs the command.
pub(in crate::cli) fn run(args: &QueryArgs, format: Format, environment: &Environment) -> anyhow::Result<u8> {
    let remote = args.remote.connect(environment)?;
    let act = |name: &str, verb: &str| {
        let answer = remote.ask(Method::POST, &remote.of_tenant(&["queries", name, verb])?, Body::Empty)?;
        print_one(&answer.body, format)
    };
    match &args.action {
        Action::Create { file, stopped } => {
            let text = fs::read(file).map_err(|error| Coded::wrap("QUERY_FILE_UNREADABLE", error))?;
            let query: Value =
                serde_json::from_slice(&text).map_err(|error| Coded::wrap("QUERY_FILE_INVALID", error))?;
            let mut made = remote.ask(Method::POST, &remote.of_tenant(&["queries"])?, Body::Json(&query))?.body;
            if !stopped {
                let name = made.get("name").and_then(Value::as_str).unwrap_or_default();
                let start = remote.of_tenant(&["queries", name, "start"])?;
                made = remote.ask(Method::POST, &start, Body::Empty)?.body;
            }
            print_one(&made, format)?;
        }
        Action::List => {
            let mut queries = remote.list(&remote.of_tenant(&["queries"])?)?;
            if format == Format::Text {
                queries.iter_mut().for_each(in_brief);
            }
            let columns = ["name", "state", "runs", "rows_ingested", "rows_processed", "reason"];
            print_list(&queries, &columns, format)?;
        }
        Action::Get { name } => {
            print_one(&remote.ask(Method::GET, &remote.of_tenant(&["queries", name])?, Body::Empty)?.body, format)?;
        }
        Action::Progress { name } => {
            let progress = remote.of_tenant(&["queries", name, "progress"])?;
            print_one(&remote.ask(Method::GET, &progress, Body::Empty)?.body, format)?;
        }
        Action::Start { name } => act(name, "start")?,
        Action::Stop { name } => act(name, "stop")?,
        Action::Pause { name } => act(name, "pause")?,
        Action::Resume { name } => act(name, "resume")?,
        Action::Delete { name, yes: _ } => {
            remote.ask(Method::DELETE, &remote.of_tenant(&["queries", name])?, Body::Empty)?;
        }
    }
    Ok(0)
}

/// What fits into a line: versions as they are written in a query, and the code of a reason.
fn in_brief(query: &mut Value) {
    let runs = query.get("runs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let text = |run: &Value, field: &str| run.get(field).map(|value| value.to_string().replace('"', ""));
    let runs = runs.iter().filter_map(|run| Some(format!("{}@{}", text(run, "processor")?, text(run, "version")?)));
    let brief = [
        ("runs", Some(runs.collect::<Vec<_>>().join(" "))),
        ("reason", query.get("reason").and_then(|reason| text(reason, "code"))),
    ];
    if let Value::Object(fields) = query {
        for (name, value) in brief {
            fields.insert(name.to_owned(), value.unwrap_or_default().into());
        }
    }
}
