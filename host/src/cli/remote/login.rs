//! `tidemill login`: which server is meant from now on, and as whom.

use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{failed, print_one, profiles_file};
use crate::cli::Format;
use crate::cli::output::{Coded, note};
use crate::client::profile::{Profile, Profiles};
use crate::client::{Body, Connection, Method};
use crate::config::Environment;

/// Keep a server and a token, for the commands that talk to it
///
/// The token is read from --token-file, else from TIDEMILL_TOKEN, else from standard input. It is tried at the server
/// before it is kept, in a file that only you can read.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct LoginArgs {
    /// The server's address; default: http://127.0.0.1:8080. [env: TIDEMILL_SERVER]
    #[arg(long, value_name = "URL")]
    server: Option<String>,

    /// The tenant that is meant where none is given
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,

    /// A file with the token, e.g. `first-token` in the server's data folder
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// A name for server and token; the current profile from now on
    #[arg(long, value_name = "NAME", default_value = "default")]
    profile: String,

    /// Certificates to trust instead of the usual ones, a PEM file
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tidemill login --token-file data/first-token
  tidemill login --server https://streams.example.org --tenant shop < token";

/// Where a server listens if nobody says otherwise.
const SERVER: &str = "http://127.0.0.1:8080";
/// Longest token that is read.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Runs the command.
pub(in crate::cli) fn run(args: LoginArgs, format: Format, environment: &Environment) -> anyhow::Result<u8> {
    let token = token(&args, environment)?;
    let ca = args.ca.as_deref().map(std::path::absolute).transpose().map_err(unreadable)?;
    let server = args.server.as_deref().or(environment.server.as_deref()).unwrap_or(SERVER);
    let connection = Connection::new(server, &token, ca.as_deref()).map_err(failed)?;
    let whoami = connection.ask(Method::GET, "/v1/whoami", &[], Body::Empty).map_err(failed)?.body;

    let file = profiles_file(environment)?;
    let mut profiles = Profiles::read(&file).map_err(failed)?;
    let tenant = args.tenant.or_else(|| whoami.get("tenant").and_then(|tenant| tenant.as_str()).map(str::to_owned));
    let profile = Profile { server: connection.server().to_owned(), tenant: tenant.clone(), token, ca };
    profiles.profiles.insert(args.profile.clone(), profile);
    profiles.current = Some(args.profile.clone());
    profiles.write(&file).map_err(failed)?;

    let role = whoami.get("role").cloned();
    let said = json!({ "profile": args.profile, "server": connection.server(), "tenant": tenant, "role": role });
    print_one(&said, format)?;
    Ok(0)
}

fn token(args: &LoginArgs, environment: &Environment) -> anyhow::Result<String> {
    let text = match (&args.token_file, &environment.token) {
        (Some(file), _) => fs::read_to_string(file).map_err(unreadable)?,
        (None, Some(token)) => token.clone(),
        (None, None) => {
            if io::stdin().is_terminal() {
                note("Paste the token, then press Enter and Ctrl-D. It will be seen on this screen.");
            }
            let mut text = String::new();
            io::stdin().take(TOKEN_BYTES_MAX).read_to_string(&mut text).map_err(unreadable)?;
            text
        }
    };
    Ok(text.trim().to_owned())
}

fn unreadable(error: io::Error) -> anyhow::Error {
    Coded::wrap("TOKEN_UNREADABLE", error)
}
