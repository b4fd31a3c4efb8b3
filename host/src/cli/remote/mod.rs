//! Commands that talk to a server: `login`, `deploy`, `tenant`, `query`, `ingest`, `results`.

pub(super) mod deploy;
pub(super) mod ingest;
pub(super) mod login;
pub(super) mod query;
pub(super) mod results;
pub(super) mod tenant;

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use super::Format;
use super::listing::{Listing, column};
use super::output::{self, Coded};
use crate::client::profile::{Profile, Profiles};
use crate::client::{Answer, Body, ClientError, Connection, Method};
use crate::config::Environment;

/// Which server, and as whom. Without any of these: the profile of the last `tidemill login`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(super) struct RemoteArgs {
    /// Its address, e.g. http://127.0.0.1:8080; with the token in TIDEMILL_TOKEN. [env: TIDEMILL_SERVER]
    #[arg(long, value_name = "URL")]
    server: Option<String>,

    /// A profile that `tidemill login` has kept
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,

    /// The tenant; default: that of the profile. [env: TIDEMILL_TENANT]
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,

    /// Certificates to trust instead of the usual ones, a PEM file
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// A server to talk to.
pub(super) struct Remote {
    connection: Connection,
    tenant: Option<String>,
}

impl RemoteArgs {
    /// What is given here, else in the environment, else in the profile.
    fn connect(&self, environment: &Environment) -> anyhow::Result<Remote> {
        let server = self.server.clone().or_else(|| environment.server.clone());
        let tenant = self.tenant.clone().or_else(|| environment.tenant.clone());
        let profile = match (&self.profile, &environment.token, server) {
            (None, Some(token), Some(server)) => Profile { server, tenant: None, token: token.clone(), ca: None },
            (name, _, server) => {
                let file = profiles_file(environment)?;
                let profiles = Profiles::read(&file).map_err(failed)?;
                let profile = profiles.get(name.as_deref()).map_err(failed)?.clone();
                // A token is for one server only.
                if let Some(server) = server.filter(|server| server.trim_end_matches('/') != profile.server) {
                    return Err(failed(ClientError::Profile(format!(
                        "no token for {server}: set TIDEMILL_TOKEN, or log in with `tidemill login --server {server}`"
                    ))));
                }
                profile
            }
        };
        let ca = self.ca.as_deref().or(profile.ca.as_deref());
        let connection = Connection::new(&profile.server, &profile.token, ca).map_err(failed)?;
        Ok(Remote { connection, tenant: tenant.or(profile.tenant) })
    }
}

impl Remote {
    /// The path of something of the tenant; each part is a name, or a word of the interface.
    fn of_tenant(&self, parts: &[&str]) -> anyhow::Result<String> {
        let tenant = self.tenant.as_deref().ok_or_else(|| {
            failed(ClientError::Profile(
                "no tenant is given: name it with --tenant, TIDEMILL_TENANT, or once for all with `tidemill login --tenant`"
                    .to_owned(),
            ))
        })?;
        Ok(path(&[&["tenants", tenant], parts].concat()))
    }

    fn ask(&self, method: Method, path: &str, body: Body<'_>) -> anyhow::Result<Answer> {
        self.connection.ask(method, path, &[], body).map_err(failed)
    }

    /// All items of a list, page by page.
    fn list(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let mut items = Vec::new();
        let mut next = Some(path.to_owned());
        while let Some(page) = next {
            let mut answer = self.ask(Method::GET, &page, Body::Empty)?.body;
            let fields = answer.as_object_mut().map(std::mem::take).unwrap_or_default();
            let cursor = fields.get("next_cursor").and_then(Value::as_str);
            next = cursor.map(|cursor| format!("{path}?cursor={}", escaped(cursor)));
            // A page is a list under its own name, and where the next one begins.
            items.extend(
                fields
                    .into_iter()
                    .filter_map(|(_, value)| if let Value::Array(page) = value { Some(page) } else { None })
                    .flatten(),
            );
        }
        Ok(items)
    }
}

/// A path of the interface. What a person gives is escaped, so that it stays one part.
fn path(parts: &[&str]) -> String {
    let parts: Vec<String> = parts.iter().map(|part| escaped(part)).collect();
    format!("/v1/{}", parts.join("/"))
}

/// As in a URL: everything but letters, digits and `-._~` by its bytes. `.` and `..` are no names, but steps of a path.
fn escaped(text: &str) -> String {
    if !text.is_empty() && text.bytes().all(|byte| byte == b'.') {
        return "%2E".repeat(text.len());
    }
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

fn profiles_file(environment: &Environment) -> anyhow::Result<PathBuf> {
    let folder = environment.config_dir.as_ref().ok_or_else(|| {
        failed(ClientError::Profile("there is no home to keep profiles in; set HOME or XDG_CONFIG_HOME".to_owned()))
    })?;
    Ok(folder.join("profiles.toml"))
}

fn failed(error: ClientError) -> anyhow::Error {
    Coded::wrap(error.code(), error)
}

/// Prints items: these columns for people, everything for programs.
fn print_list(items: &[Value], columns: &[&str], format: Format) -> anyhow::Result<()> {
    let mut listing = Listing::start(format, columns.iter().map(|name| column(name)).collect());
    for item in items {
        if listing.row(item)?.is_break() {
            break;
        }
    }
    listing.finish()
}

/// Prints one thing: a line per field for people.
fn print_one(item: &Value, format: Format) -> anyhow::Result<()> {
    let text = match (format, item) {
        (Format::Text, Value::Object(fields)) => {
            let width = fields.keys().map(String::len).max().unwrap_or_default();
            let line = |(name, value): (&String, &Value)| match value {
                Value::String(text) => format!("{name:width$}  {}\n", super::listing::plain(text)),
                other => format!("{name:width$}  {other}\n"),
            };
            fields.iter().filter(|(_, value)| !value.is_null()).map(line).collect()
        }
        _ => format!("{item}\n"),
    };
    output::result(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_part_of_the_path() {
        assert_eq!(path(&["tenants", "shop", "queries", "a/b?c d"]), "/v1/tenants/shop/queries/a%2Fb%3Fc%20d");
        assert_eq!(path(&["tenants", "..", "queries"]), "/v1/tenants/%2E%2E/queries");
    }
}
