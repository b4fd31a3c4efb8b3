//! What went wrong, as a client sees it: `application/problem+json` (RFC 9457) with our code.

use std::borrow::Cow;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::status_of;
use crate::compiler::StoreError;
use crate::config::hosted::HostedError;
use crate::ingest::{IngestError, ParseError};
use crate::results::ResultsError;
use crate::server::data::DataError;
use crate::server::meta::MetaError;
use crate::supervisor::SupervisorError;

/// Seconds after which a client may try again whose rows found no room.
const ROOM_AFTER_S: u32 = 1;

/// A problem. Its status follows from its code.
#[derive(Debug, Clone)]
pub struct Problem {
    code: Cow<'static, str>,
    detail: String,
    members: Map<String, Value>,
    status: Option<StatusCode>,
    retry_after_s: Option<u32>,
}

impl Problem {
    /// `detail`: what happened, where, and what to do. A problem of the host itself is logged, and a client is told its
    /// code only: what the disk or the store says is not for tenants.
    pub fn new(code: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Self { code: code.into(), detail: detail.into(), members: Map::new(), status: None, retry_after_s: None }
    }

    /// What a client sent is refused with a code that the server does not vouch for: 422, whatever the code.
    pub fn unprocessable(code: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Self { status: Some(StatusCode::UNPROCESSABLE_ENTITY), ..Self::new(code, detail) }
    }

    /// What is not there, or not for the caller to know of. Every such answer is the same.
    pub fn not_found() -> Self {
        Self::new("NOT_FOUND", "there is nothing here, or nothing that this token may see")
    }

    /// A further member of the document.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.members.insert(member.to_owned(), value.into());
        self
    }

    /// When to try again.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// Its code.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// What happened.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.status.unwrap_or_else(|| status_of(&self.code))
    }

    /// The document.
    pub fn document(&self) -> Value {
        let status = self.status();
        let detail = if status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE {
            "the server failed; its log says more"
        } else {
            &self.detail
        };
        let mut document = json!({
            "type": format!("urn:tidemill:error:{}", self.code),
            "title": status.canonical_reason().unwrap_or("Error"),
            "status": status.as_u16(),
            "detail": detail,
            "code": self.code,
        });
        if let Some(object) = document.as_object_mut() {
            object.extend(self.members.clone());
        }
        document
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        if status.is_server_error() {
            tracing::error!(code = %self.code, "{}", self.detail);
        }
        let mut response = (status, self.document().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"tidemill\""));
        }
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// Errors that are told as they are: by their code, in their words.
macro_rules! told_as_it_is {
    ($($error:ty),*) => {$(
        impl From<$error> for Problem {
            fn from(error: $error) -> Self {
                Self::new(error.code(), error.to_string())
            }
        }
    )*};
}

told_as_it_is!(MetaError, DataError, StoreError, HostedError, SupervisorError);

impl From<IngestError> for Problem {
    fn from(error: IngestError) -> Self {
        let problem = Self::new(error.code(), error.to_string());
        match error {
            IngestError::SequenceGap { expected, .. } | IngestError::SequenceOld { expected, .. } => {
                problem.with("expected_sequence", expected)
            }
            IngestError::Fenced { current, .. } => problem.with("current_epoch", current),
            IngestError::BacklogFull { .. } | IngestError::KeysFull { .. } | IngestError::ProducersFull { .. } => {
                problem.retry_after(ROOM_AFTER_S)
            }
            _ => problem,
        }
    }
}

impl From<ParseError> for Problem {
    fn from(error: ParseError) -> Self {
        let problem = Self::new(error.code(), error.to_string());
        match error {
            ParseError::Row { row, row_code, .. } => problem.with("row", row).with("row_code", row_code),
            _ => problem,
        }
    }
}

impl From<ResultsError> for Problem {
    fn from(error: ResultsError) -> Self {
        let problem = Self::new(error.code(), error.to_string());
        match error {
            ResultsError::PositionExpired { oldest: Some(oldest), .. } => problem.with("oldest", oldest.to_string()),
            _ => problem,
        }
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self::from(DataError::Disk(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_what_happened_with_the_status_of_its_code() {
        let problem = Problem::new("NAME_TAKEN", "there is a tenant acme").with("name", "acme");

        let document = problem.document();

        assert_eq!(document["status"], 409);
        assert_eq!(document["code"], "NAME_TAKEN");
        assert_eq!(document["detail"], "there is a tenant acme");
        assert_eq!(document["name"], "acme");
    }

    #[test]
    fn what_the_disk_says_is_not_for_clients() {
        let problem = Problem::from(std::io::Error::other("/var/lib/secret-place: no space"));

        assert_eq!(problem.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!problem.document().to_string().contains("secret-place"));
    }
}
