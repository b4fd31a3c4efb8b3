//! What can be wrong with the settings.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the settings were refused.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// No data folder.
    #[error("no data folder was given. Say where the server keeps its data: tidemill serve --data DIR")]
    DataMissing,
    /// The file cannot be read.
    #[error("the settings {} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A setting is unknown or wrong.
    #[error("the settings of the server in {place} are wrong: {defect}")]
    Invalid {
        /// The file, or the environment.
        place: String,
        /// What is wrong.
        defect: String,
    },
    /// Others could listen in.
    #[error(
        "{address} can be reached from other machines, and tokens would go there in the clear. Give --tls-cert and \
         --tls-key, or --behind-proxy if a proxy in front does TLS, or listen on 127.0.0.1"
    )]
    TlsRequired {
        /// Where it should listen.
        address: SocketAddr,
    },
    /// Half of what TLS needs.
    #[error("TLS needs a certificate and its key. Give both --tls-cert and --tls-key")]
    TlsHalf,
    /// TLS here and in the proxy.
    #[error("with --behind-proxy the proxy does TLS. Leave out --tls-cert and --tls-key, or --behind-proxy")]
    TlsTwice,
}

impl SettingsError {
    /// Its stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::DataMissing => "DATA_MISSING",
            Self::Unreadable { .. } => "SERVE_CONFIG_UNREADABLE",
            Self::Invalid { .. } => "SERVE_CONFIG_INVALID",
            Self::TlsRequired { .. } => "TLS_REQUIRED",
            Self::TlsHalf | Self::TlsTwice => "TLS_SETTINGS_CONFLICT",
        }
    }
}
