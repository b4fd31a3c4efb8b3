//! Why a server did not do what it was asked.

use serde::Deserialize;

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No server answers there.
    #[error("{server} cannot be reached: {reason}; check the address, and that `tidemill serve` runs there")]
    Unreachable {
        /// Its address.
        server: String,
        /// What the system says.
        reason: String,
    },
    /// The address is none.
    #[error("{server:?} is no address of a server: {reason}; write for example http://127.0.0.1:8080")]
    Address {
        /// As given.
        server: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// A token would cross a network that others can read.
    #[error("{server} is another machine, and over plain HTTP others could read the token; use https://")]
    Insecure {
        /// Its address.
        server: String,
    },
    /// The file of trusted certificates is none.
    #[error("{file} holds no certificate that can be used: {reason}; give a file in PEM form")]
    Certificate {
        /// Its path.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// The server refused.
    #[error("{0}")]
    Refused(Box<Problem>),
    /// The answer makes no sense.
    #[error("{server} gave an answer that is not understood ({reason}); is it a Tidemill server of this version?")]
    Answer {
        /// Its address.
        server: String,
        /// What is wrong.
        reason: String,
    },
    /// A stream broke off.
    #[error("{server} broke the stream off: {reason}; give the command again")]
    Interrupted {
        /// Its address.
        server: String,
        /// What the system says.
        reason: String,
    },
    /// No profile, and nothing that stands for one.
    #[error("{0}")]
    Profile(String),
}

/// How a server refuses, RFC 9457.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Problem {
    /// The status of the answer.
    pub status: u16,
    /// The server's own code of the error.
    pub code: String,
    /// The kind of error, in words.
    pub title: String,
    /// What happened, where, and what to do.
    pub detail: String,
    /// After how many seconds to ask again, from the header of that name.
    #[serde(skip)]
    pub retry_after: Option<u64>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.detail.as_str(), self.title.as_str()) {
            ("", "") => write!(f, "the server answered with status {}", self.status),
            ("", title) => f.write_str(title),
            (detail, _) => f.write_str(detail),
        }
    }
}

impl ClientError {
    /// The stable code of this error: the server's own where it refused.
    pub fn code(&self) -> String {
        let code = match self {
            Self::Unreachable { .. } => "SERVER_UNREACHABLE",
            Self::Address { .. } => "SERVER_ADDRESS_INVALID",
            Self::Insecure { .. } => "SERVER_NEEDS_HTTPS",
            Self::Certificate { .. } => "CA_CERTIFICATE_INVALID",
            Self::Refused(problem) if problem.code.is_empty() => "SERVER_REFUSED",
            Self::Refused(problem) => problem.code.as_str(),
            Self::Answer { .. } => "SERVER_ANSWER_INVALID",
            Self::Interrupted { .. } => "SERVER_STREAM_INTERRUPTED",
            Self::Profile(_) => "PROFILE_INVALID",
        };
        code.to_owned()
    }
}
