//! Bodies of requests: bounded in size and in time, and read as what they should be.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use tokio::time::timeout;
use tokio_stream::StreamExt;

use super::{Entry, Problem};
use crate::server::App;
use crate::server::id::hex;

/// A body, piece by piece.
pub struct Content {
    body: axum::body::BodyDataStream,
    left: u64,
    max: u64,
    pause: Duration,
}

impl Content {
    /// The next piece; None: it is over.
    ///
    /// # Errors
    /// Too large, too slow, or the client went away.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        let piece = timeout(self.pause, self.body.next()).await;
        let piece = piece.map_err(|_elapsed| {
            let pause = self.pause.as_secs();
            Problem::new("BODY_TOO_SLOW", format!("no bytes of the body came for {pause} s; send it faster"))
        })?;
        let Some(piece) = piece else { return Ok(None) };
        let piece = piece.map_err(|error| Problem::new("BODY_INCOMPLETE", format!("the body ended early: {error}")))?;
        let bytes = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        let Some(left) = self.left.checked_sub(bytes) else {
            discard_from(&mut self.body).await;
            return Err(too_large(self.max));
        };
        self.left = left;
        Ok(Some(piece))
    }

    /// All of it.
    ///
    /// # Errors
    /// As [`Content::next`].
    pub async fn all(mut self) -> Result<Bytes, Problem> {
        let mut all = Vec::new();
        while let Some(piece) = self.next().await? {
            all.extend_from_slice(&piece);
        }
        Ok(all.into())
    }
}

/// Bytes of a refused body that are still read, and for how long: a client that is sending does not look at the answer, and
/// never sees it when the connection is closed on what it sends.
const DISCARD_MAX: usize = 1 << 20;
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// Reads the rest of a request that is refused. One that asked first whether to send its body is not made to.
pub(super) async fn discard(request: Request) {
    if !request.headers().contains_key(header::EXPECT) {
        discard_from(&mut request.into_body().into_data_stream()).await;
    }
}

async fn discard_from(body: &mut axum::body::BodyDataStream) {
    let rest = async {
        let mut left = DISCARD_MAX;
        while let Some(Ok(piece)) = body.next().await {
            let Some(less) = left.checked_sub(piece.len()) else { break };
            left = less;
        }
    };
    // Whether it came to its end or not: nobody looks at it.
    let _either = timeout(DISCARD_TIME, rest).await;
}

fn too_large(max: u64) -> Problem {
    Problem::new("BODY_TOO_LARGE", format!("the body is longer than the {max} bytes that this route takes"))
        .with("maxBytes", max)
}

impl FromRequest<Arc<App>> for Content {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let max = request.extensions().get::<Entry>().map_or(0, |entry| entry.body_max);
        let announced = request.headers().get(header::CONTENT_LENGTH);
        let announced = announced.and_then(|length| length.to_str().ok()).and_then(|length| length.parse::<u64>().ok());
        if announced.is_some_and(|length| length > max) {
            discard(request).await;
            return Err(too_large(max));
        }
        let body = Body::into_data_stream(request.into_body());
        Ok(Self { body, left: max, max, pause: app.settings.body_timeout })
    }
}

/// A JSON document, and what makes a repetition of the request known.
pub struct Input<T> {
    /// The document.
    pub value: T,
    /// SHA-256 of the body, in hex.
    pub sha256: String,
    /// `Idempotency-Key`.
    pub idempotency_key: Option<String>,
}

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Input<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let idempotency_key = idempotency_key(request.headers())?;
        must_be_json(request.headers())?;
        let bytes = Content::from_request(request, app).await?.all().await?;
        let value = parse(&bytes)?;
        Ok(Self { value, sha256: hex(&Sha256::digest(&bytes)), idempotency_key })
    }
}

/// Text that is no JSON is one thing, a document of another shape another. serde_json bounds the depth by 128.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        if error.is_data() {
            Problem::new("SETTING_INVALID", format!("the document is not as this route wants it: {error}"))
        } else {
            Problem::new("JSON_INVALID", format!("the body is no JSON: {error}"))
        }
    })
}

fn must_be_json(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Problem::new("CONTENT_TYPE_NOT_TAKEN", "this route takes JSON: send Content-Type: application/json"))
}

const IDEMPOTENCY_KEY_MAX: usize = 255;

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(given) = headers.get("idempotency-key") else { return Ok(None) };
    let text = given.to_str().ok().filter(|text| (1..=IDEMPOTENCY_KEY_MAX).contains(&text.len()));
    let bad = || Problem::new("HEADER_INVALID", "Idempotency-Key is 1 to 255 characters of ASCII");
    text.map(|text| Some(text.to_owned())).ok_or_else(bad)
}
