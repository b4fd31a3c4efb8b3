//! Answers that are kept, so that a request that is sent again has no second effect.

use serde::{Deserialize, Serialize};

use super::{Family, MetaError, View, Writing};

/// `OWNER/OPERATION/KEY`.
const ANSWERS: Family<Answer> = Family::new("answers");

/// How long an answer is kept.
pub const KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// What a request was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// SHA-256 of the request's body, in hex.
    pub body_sha256: String,
    /// When it was given, in ms since the epoch.
    pub given_ms: i64,
    /// Status of HTTP.
    pub status: u16,
    /// Where what was made is found.
    pub location: Option<String>,
    /// What state of it the answer shows.
    pub etag: Option<String>,
    /// The document.
    pub body: serde_json::Value,
}

/// The answer that was given to a request with this key, if it is still kept.
///
/// # Errors
/// The store fails.
pub fn get(view: &impl View, key: &str, now_ms: i64) -> Result<Option<Answer>, MetaError> {
    let found = view.get(&ANSWERS, key)?;
    Ok(found.filter(|answer| now_ms < answer.given_ms.saturating_add(KEPT_MS)))
}

/// Keeps an answer.
///
/// # Errors
/// The store fails.
pub fn put(writing: &Writing, key: &str, answer: &Answer) -> Result<(), MetaError> {
    writing.put(&ANSWERS, key, answer)
}

/// Forgets the answers that need not be kept any more.
///
/// # Errors
/// The store fails.
pub fn sweep(writing: &Writing, now_ms: i64) -> Result<(), MetaError> {
    for (key, answer) in writing.all(&ANSWERS, "")? {
        if now_ms >= answer.given_ms.saturating_add(KEPT_MS) {
            writing.remove(&ANSWERS, &key)?;
        }
    }
    Ok(())
}
