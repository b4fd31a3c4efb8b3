//! `tidemill tenant`: the tenants of a server, for those who run it.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{RemoteArgs, path, print_list, print_one};
use crate::cli::Format;
use crate::client::{Body, Method};
use crate::config::Environment;

/// Make, list and remove the tenants of a server
#[derive(Debug, Args)]
pub(in crate::cli) struct TenantArgs {
    #[command(subcommand)]
    action: Action,

    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a tenant
    Create {
        /// Lower-case letters, digits and hyphens
        name: String,
    },
    /// List tenants
    List,
    /// Remove a tenant with all its processors, queries and rows
    Delete {
        /// Which one
        name: String,
        /// It is what you want: nothing of it can be had back
        #[arg(long, required = true)]
        yes: bool,
    },
}

/// Runs the command.
pub(in crate::cli) fn run(args: &TenantArgs, format: Format, environment: &Environment) -> anyhow::Result<u8> {
    let remote = args.remote.connect(environment)?;
    match &args.action {
        Action::Create { name } => {
            let answer = remote.ask(Method::POST, &path(&["tenants"]), Body::Json(&json!({ "name": name })))?;
            print_one(&answer.body, format)?;
        }
        Action::List => print_list(&remote.list(&path(&["tenants"]))?, &["name", "created_at"], format)?,
        Action::Delete { name, yes: _ } => {
            remote.ask(Method::DELETE, &path(&["tenants", name]), Body::Empty)?;
        }
    }
    Ok(0)
}
