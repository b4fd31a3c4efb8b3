//! `/v1/status`: what this server is.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;

use crate::server::App;
use crate::server::http::{Answer, Problem};

/// What this server is.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Version of the program.
    version: &'static str,
    /// Milliseconds since the epoch, by the server's clock.
    now_ms: i64,
}

pub(super) async fn get(State(app): State<Arc<App>>) -> Result<Answer, Problem> {
    Answer::ok(&Status { version: env!("CARGO_PKG_VERSION"), now_ms: app.now_ms() })
}
