//! Requests that make something, made safe to send again by `Idempotency-Key`.

use std::sync::Arc;

use axum::http::StatusCode;
use sha2::{Digest, Sha256};

use super::{Answer, Input, Problem};
use crate::server::App;
use crate::server::auth::Caller;
use crate::server::id::hex;
use crate::server::meta::{Writing, idempotency};

/// Makes something and keeps the answer, in one transaction; a repeated request gets the same answer and makes nothing.
///
/// `path`: what the request was sent to, so that one key can be used for two of them.
///
/// # Errors
/// The key was used with another body; what `make` says.
pub async fn create_once<T: Send + 'static>(
    app: &Arc<App>,
    caller: &Caller,
    path: String,
    input: Input<T>,
    make: impl FnOnce(&Writing, T) -> Result<Answer, Problem> + Send + 'static,
) -> Result<Answer, Problem> {
    let Input { value, sha256, idempotency_key } = input;
    let Some(key) = idempotency_key else { return app.write(|writing| make(writing, value)).await };
    let request = hex(&Sha256::digest(format!("{path}\n{key}")));
    let kept_as = format!("{}/{request}", caller.token);
    let now_ms = app.now_ms();
    app.write(move |writing| {
        if let Some(kept) = idempotency::get(writing, &kept_as, now_ms)? {
            return if kept.body_sha256 == sha256 { Ok(again(kept)) } else { Err(reused()) };
        }
        let answer = make(writing, value)?;
        let kept = idempotency::Answer {
            body_sha256: sha256,
            given_ms: now_ms,
            status: answer.status.as_u16(),
            location: answer.location.clone(),
            etag: answer.etag.clone(),
            body: answer.body.clone(),
        };
        idempotency::put(writing, &kept_as, &kept)?;
        Ok(answer)
    })
    .await
}

fn again(kept: idempotency::Answer) -> Answer {
    let status = StatusCode::from_u16(kept.status).unwrap_or(StatusCode::OK);
    Answer { status, location: kept.location, etag: kept.etag, body: kept.body }
}

fn reused() -> Problem {
    Problem::new("IDEMPOTENCY_KEY_REUSED", "this Idempotency-Key was used with another body; take a new key")
}
