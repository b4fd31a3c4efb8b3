//! `?wait=30s`: how long a client is willing to wait for the outcome of long work.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use serde::Deserialize;

use super::Problem;
use crate::server::App;

/// Longest wait; a client that wants more asks again.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How long a client waits. None: not at all.
#[derive(Debug, Clone, Copy)]
pub struct Wait(pub Option<Duration>);

#[derive(Debug, Deserialize)]
struct Wanted {
    wait: Option<String>,
}

impl FromRequestParts<Arc<App>> for Wait {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _app: &Arc<App>) -> Result<Self, Problem> {
        let bad = || Problem::new("QUERY_STRING_INVALID", "wait is a duration such as 30s");
        let Query(Wanted { wait }) = Query::try_from_uri(&parts.uri).map_err(|_unreadable| bad())?;
        let wait = wait.map(|text| humantime::parse_duration(&text).map_err(|_unreadable| bad())).transpose()?;
        Ok(Self(wait.map(|wait| wait.min(WAIT_MAX))))
    }
}
