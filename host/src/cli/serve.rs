//! `tidemill serve`: the host as a service for many tenants.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::output::{self, Coded};
use super::{Format, output::note};
use crate::clock::SystemClock;
use crate::config::Environment;
use crate::server::config::{Layer, SandboxPolicy, Settings};
use crate::server::{self, Started};

/// Serve many tenants: they upload processors over HTTP, and the server runs them
///
/// Everything that the server keeps lies in one folder. It listens on this machine only; for others to reach it, it wants
/// TLS. At the first start it makes a token for the platform's admin.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ServeArgs {
    /// The folder where everything is kept.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where the API is [default: 127.0.0.1:8080]. Port 0: any free one.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Where health and metrics are [default: 127.0.0.1:9090].
    #[arg(long, value_name = "ADDRESS")]
    admin_listen: Option<SocketAddr>,
    /// A file to write both addresses to, as JSON, once the server answers.
    #[arg(long, value_name = "FILE")]
    ports_file: Option<PathBuf>,
    /// The certificate, in PEM.
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key, in PEM.
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// A proxy in front does TLS.
    #[arg(long)]
    behind_proxy: bool,
    /// A name, beside those of this machine, that requests may be sent to; again for more.
    #[arg(long, value_name = "NAME")]
    public_name: Vec<String>,
    /// What happens where this system cannot wall off workers: require (not start) or warn [default: require].
    #[arg(long, value_name = "POLICY")]
    sandbox: Option<SandboxPolicy>,
    /// A file with settings, in TOML.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the settings that hold, and end.
    #[arg(long)]
    check: bool,
}

const EXAMPLES: &str = "\
Examples:
  tidemill serve --data /var/lib/tidemill
  tidemill serve --data data --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --ports-file ports.json
  tidemill serve --data data --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem --public-name tide.example
Settings are also read from TIDEMILL_SERVE_... (TIDEMILL_SERVE_DATA=DIR) and from the file; flags come first.";

/// Runs the command.
pub(super) fn run(args: ServeArgs, format: Format, environment: &Environment) -> anyhow::Result<u8> {
    let check = args.check;
    let settings = settings(args, environment).map_err(|error| Coded::wrap(error.code().to_owned(), error))?;
    if check {
        output::result(&shown(&settings, format)?)?;
        return Ok(0);
    }
    let file = settings.data.join("first-token");
    server::run(settings, Arc::new(SystemClock), |started| tell(started, &file))
        .map_err(|error| Coded::wrap(error.code().to_owned(), error))?;
    Ok(0)
}

fn settings(args: ServeArgs, environment: &Environment) -> Result<Settings, server::config::SettingsError> {
    let flags = Layer {
        data: args.data,
        listen: args.listen,
        admin_listen: args.admin_listen,
        ports_file: args.ports_file,
        tls_cert: args.tls_cert,
        tls_key: args.tls_key,
        behind_proxy: args.behind_proxy.then_some(true),
        public_names: Some(args.public_name).filter(|names| !names.is_empty()),
        sandbox: args.sandbox,
        ..Layer::default()
    };
    let file = args.config.as_deref().map(Layer::from_file).transpose()?.unwrap_or_default();
    Settings::from_layers([flags, Layer::from_environment(&environment.serve)?, file])
}

fn shown(settings: &Settings, format: Format) -> anyhow::Result<String> {
    Ok(match format {
        Format::Text => toml::to_string(settings)?,
        Format::Json => format!("{}\n", serde_json::to_string(settings)?),
    })
}

/// Where the server is; and the first token, if a person is there to see it.
fn tell(started: &Started, file: &std::path::Path) {
    note(&format!("listening on {}, health and metrics on {}", started.addresses.api, started.addresses.admin));
    if let Some(token) = &started.first_token {
        if std::io::stderr().is_terminal() {
            note(&format!("the first token, shown this once: {token}"));
        }
        note(&format!("the first token is in {}", file.display()));
    }
}
