//! One place where settings are written: the flags, the environment, or a file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::{SandboxPolicy, SettingsError};

/// What one place says; what it does not say, another one may. See [`super::Settings`] for what it means.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "each field is one of Settings, which says what it means")]
pub struct Layer {
    pub data: Option<PathBuf>,
    pub listen: Option<SocketAddr>,
    pub admin_listen: Option<SocketAddr>,
    pub ports_file: Option<PathBuf>,
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub behind_proxy: Option<bool>,
    pub public_names: Option<Vec<String>>,
    pub sandbox: Option<SandboxPolicy>,
    pub upload_max_bytes: Option<u64>,
    pub compilers: Option<usize>,
    pub backlog_max_bytes: Option<u64>,
    pub results_max_bytes: Option<u64>,
    pub worker_queries_max: Option<usize>,
    pub worker_memory_bytes: Option<u64>,
    #[serde(deserialize_with = "duration::said")]
    pub unload_after: Option<Duration>,
    pub failed_logins_per_minute: Option<u32>,
    pub requests_max: Option<u32>,
    #[serde(deserialize_with = "duration::said")]
    pub header_timeout: Option<Duration>,
    #[serde(deserialize_with = "duration::said")]
    pub body_timeout: Option<Duration>,
    #[serde(deserialize_with = "duration::said")]
    pub stop_timeout: Option<Duration>,
}

impl Layer {
    /// What a file says, in TOML.
    ///
    /// # Errors
    /// It cannot be read, or has an unknown or wrong setting.
    pub fn from_file(path: &Path) -> Result<Self, SettingsError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| SettingsError::Unreadable { path: path.to_owned(), source })?;
        toml::from_str(&text).map_err(|error| SettingsError::Invalid {
            place: path.display().to_string(),
            defect: error.to_string().trim_end().to_owned(),
        })
    }

    /// What the environment says: names of settings with values as in the file, where quotes may be left out.
    ///
    /// # Errors
    /// An unknown or wrong setting.
    pub fn from_environment(variables: &[(String, String)]) -> Result<Self, SettingsError> {
        let value = |text: &str| {
            let read = format!("value = {text}").parse::<toml::Table>();
            let read = read.ok().and_then(|mut table| table.remove("value"));
            read.unwrap_or_else(|| toml::Value::String(text.to_owned()))
        };
        let table: toml::Table = variables.iter().map(|(name, text)| (name.clone(), value(text))).collect();
        table.try_into().map_err(|error: toml::de::Error| SettingsError::Invalid {
            place: "the environment (TIDEMILL_SERVE_...)".to_owned(),
            defect: error.to_string().trim_end().to_owned(),
        })
    }

    /// What this one says, and what `below` says beside it.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            data: self.data.or(below.data),
            listen: self.listen.or(below.listen),
            admin_listen: self.admin_listen.or(below.admin_listen),
            ports_file: self.ports_file.or(below.ports_file),
            tls_cert: self.tls_cert.or(below.tls_cert),
            tls_key: self.tls_key.or(below.tls_key),
            behind_proxy: self.behind_proxy.or(below.behind_proxy),
            public_names: self.public_names.or(below.public_names),
            sandbox: self.sandbox.or(below.sandbox),
            upload_max_bytes: self.upload_max_bytes.or(below.upload_max_bytes),
            compilers: self.compilers.or(below.compilers),
            backlog_max_bytes: self.backlog_max_bytes.or(below.backlog_max_bytes),
            results_max_bytes: self.results_max_bytes.or(below.results_max_bytes),
            worker_queries_max: self.worker_queries_max.or(below.worker_queries_max),
            worker_memory_bytes: self.worker_memory_bytes.or(below.worker_memory_bytes),
            unload_after: self.unload_after.or(below.unload_after),
            failed_logins_per_minute: self.failed_logins_per_minute.or(below.failed_logins_per_minute),
            requests_max: self.requests_max.or(below.requests_max),
            header_timeout: self.header_timeout.or(below.header_timeout),
            body_timeout: self.body_timeout.or(below.body_timeout),
            stop_timeout: self.stop_timeout.or(below.stop_timeout),
        }
    }
}

/// Durations as people write them: `10s`.
pub(super) mod duration {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::server::config) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&humantime::format_duration(*value))
    }

    pub(super) fn said<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        let text = String::deserialize(from)?;
        humantime::parse_duration(&text).map(Some).map_err(serde::de::Error::custom)
    }
}
