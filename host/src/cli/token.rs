//! `tidemill token`: tokens of a server that does not run.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::Format;
use super::output::{self, Coded};
use crate::clock::{Clock, SystemClock};
use crate::server::auth::Role;
use crate::server::id::Name;
use crate::server::tokens::create_offline;

/// Make a token while no server runs
#[derive(Debug, Args)]
pub(super) struct TokenArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a token and print it, this once
    #[command(after_help = EXAMPLES)]
    Create(CreateArgs),
}

#[derive(Debug, Args)]
struct CreateArgs {
    /// The data folder of the server
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// What it may do: platform-admin, admin, deployer, operator, viewer, reader, ingest or results
    #[arg(long)]
    role: Role,
    /// For which tenant, for every role but platform-admin
    #[arg(long, value_name = "NAME")]
    tenant: Option<Name>,
    /// For which query, for the roles ingest and results; again for more
    #[arg(long, value_name = "NAME")]
    query: Vec<Name>,
    /// How long it holds, e.g. 30d [default: it does not end]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    lifetime: Option<Duration>,
}

const EXAMPLES: &str = "\
Examples:
  tidemill token create --data data --role platform-admin
  tidemill token create --data data --role ingest --tenant shop --query visits --lifetime 30d";

/// Runs the command.
pub(super) fn run(args: TokenArgs, format: Format) -> anyhow::Result<u8> {
    let Action::Create(CreateArgs { data, role, tenant, query, lifetime }) = args.action;
    let now_ms = SystemClock.now_ms(0).unwrap_or_default();
    let lifetime_ms = lifetime.map(|lifetime| i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX));
    let token = create_offline(&data, role, tenant.as_ref(), query, lifetime_ms, now_ms)
        .map_err(|error| Coded::wrap(error.code(), error))?;
    output::result(&match format {
        Format::Text => format!("{}\n", token.reveal()),
        Format::Json => format!("{}\n", json!({ "id": token.id.as_str(), "token": token.reveal() })),
    })?;
    Ok(0)
}
