//! The admin port: health and metrics, for machines that watch the server. No token, bound like the API.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use tower_http::catch_panic::CatchPanicLayer;

use super::App;
use super::http::{Problem, internal_error};
use super::meta::tokens;

pub(super) fn router(app: &Arc<App>) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .fallback(|| async { Problem::not_found() })
        .layer(CatchPanicLayer::custom(internal_error))
        .layer(middleware::from_fn_with_state(Arc::clone(app), meant_for_us))
        .with_state(Arc::clone(app))
}

/// Ready: metadata can be read.
async fn ready(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    app.read(|view| Ok(tokens::is_started(view)?)).await?;
    Ok("ready\n")
}

/// OpenMetrics.
async fn metrics(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let text = app.metrics.text().map_err(|error| Problem::new("SERVER_DEFECT", error.to_string()))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

async fn meant_for_us(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match app.names.check(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}
