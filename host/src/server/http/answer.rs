//! What a route answers.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;

use super::Problem;

/// A document, where it is found, and which state of it this is.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status of HTTP.
    pub status: StatusCode,
    /// The path of what was made.
    pub location: Option<String>,
    /// The state that `If-Match` can name.
    pub etag: Option<String>,
    /// The document; null: none.
    pub body: Value,
}

impl Answer {
    /// 200 with a document.
    ///
    /// # Errors
    /// A defect: the document is no JSON.
    pub fn ok(document: &impl Serialize) -> Result<Self, Problem> {
        let body = serde_json::to_value(document).map_err(|error| Problem::new("SERVER_DEFECT", error.to_string()))?;
        Ok(Self { status: StatusCode::OK, location: None, etag: None, body })
    }

    /// 201 with what was made, and where it is found.
    ///
    /// # Errors
    /// A defect: the document is no JSON.
    pub fn created(location: String, document: &impl Serialize) -> Result<Self, Problem> {
        Ok(Self { status: StatusCode::CREATED, location: Some(location), ..Self::ok(document)? })
    }

    /// 204.
    pub fn nothing() -> Self {
        Self { status: StatusCode::NO_CONTENT, location: None, etag: None, body: Value::Null }
    }

    /// With the state that it shows.
    #[must_use]
    pub fn with_etag(mut self, etag: String) -> Self {
        self.etag = Some(etag);
        self
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = if self.body.is_null() {
            self.status.into_response()
        } else {
            (self.status, axum::Json(self.body)).into_response()
        };
        let headers = [(header::LOCATION, self.location), (header::ETAG, self.etag)];
        for (name, value) in headers {
            if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}
