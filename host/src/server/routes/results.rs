//! What queries emitted: page by page, or as a stream that goes on.
//!
//! A consumer goes on behind the last position that it was given, by `?after=` or `Last-Event-ID`, without gap or double.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use utoipa::ToSchema;

use super::queries::At;
use crate::results::{Entry, Page, PageLimits, Position, Rollback, RolledBackRows, Trimmed};
use crate::server::App;
use crate::server::auth::Caller;
use crate::server::hosting::OpenQuery;
use crate::server::http::{Answer, Input, Problem};
use crate::server::meta::tenants::Tenant;

/// Which results are wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// The position of the last row that is known.
    after: Option<String>,
    /// Entries of a page.
    limit: Option<usize>,
}

/// Entries of a page, and their bytes.
const ROWS_MAX: usize = 1_000;
const BYTES_MAX: usize = 4 << 20;
/// Events that wait for a slow consumer.
const EVENTS_MAX: usize = 64;
/// Bytes of rows that are read ahead for a stream.
const STREAM_BYTES_MAX: usize = 256 << 10;
/// A consumer that takes nothing for so long is disconnected; it goes on where it was.
const PATIENCE: Duration = Duration::from_secs(30);

/// Some results.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResultsPage {
    /// Schema of the rows, in DDL; empty: nothing was ever emitted.
    schema: String,
    /// Rows and rollbacks, in order.
    #[schema(value_type = Vec<Object>)]
    entries: Vec<serde_json::Value>,
    /// What to ask for the next page with, as `?after=`.
    #[schema(value_type = Option<String>)]
    next: Option<Position>,
    /// Nothing more is there for now.
    end_reached: bool,
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    tenant: Tenant,
    at: At,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (_, query) = at.open(&app, &tenant).await?;
    let last_event = headers.get("last-event-id").map(|id| id.to_str().unwrap_or_default().to_owned());
    let after = last_event.or(wanted.after).map(|text| text.parse()).transpose()?;
    let streams = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if streams.is_some_and(|accept| accept.contains("text/event-stream")) {
        return stream(app, caller, query, after).await;
    }
    let limits = PageLimits { rows_max: wanted.limit.unwrap_or(ROWS_MAX).clamp(1, ROWS_MAX), bytes_max: BYTES_MAX };
    let page = read(&app, &query, after, limits).await?;
    let mut response = document(&page).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

async fn read(
    app: &Arc<App>,
    query: &Arc<OpenQuery>,
    after: Option<Position>,
    limits: PageLimits,
) -> Result<Page, Problem> {
    let query = Arc::clone(query);
    app.blocking(move |_| Ok(query.results(|results| results.read_after(after, limits))?)).await
}

/// Rows stand in it as they were written, so no number loses a digit on the way.
fn document(page: &Page) -> String {
    let entries: Vec<_> = page.entries.iter().map(entry).collect();
    format!(
        "{{\"schema\":{},\"entries\":[{}],\"next\":{},\"end_reached\":{}}}",
        json!(page.schema),
        entries.join(","),
        json!(page.next),
        page.end_reached
    )
}

fn entry(entry: &Entry) -> String {
    match entry {
        Entry::Row { position, json } => format!("{{\"position\":\"{position}\",\"row\":{json}}}"),
        Entry::Rollback(rollback) => {
            format!("{{\"position\":\"{}\",\"rollback\":{}}}", rollback.position, undone(rollback))
        }
    }
}

fn undone(rollback: &Rollback) -> serde_json::Value {
    match rollback.rows {
        RolledBackRows::Kept => json!({ "rows": "kept" }),
        RolledBackRows::Withdrawn { after } => json!({ "rows": "withdrawn", "after_batch": after }),
    }
}

/// Follows the results. The first page is read before the answer begins, so that a position that is not there is a problem
/// and no stream.
async fn stream(
    app: Arc<App>,
    caller: Caller,
    query: Arc<OpenQuery>,
    after: Option<Position>,
) -> Result<Response, Problem> {
    let limits = PageLimits { rows_max: EVENTS_MAX, bytes_max: STREAM_BYTES_MAX };
    let news = query.news();
    let first = read(&app, &query, after, limits).await?;
    let (events, stream) = mpsc::channel(EVENTS_MAX);
    tokio::spawn(async move {
        let stopping = Arc::clone(&app);
        let ended = Arc::clone(&app).ended(caller);
        tokio::select! {
            () = feed(&app, &query, first, after, limits, news, &events) => {}
            () = ended => tell(&events, "TOKEN_INVALID", "the token was revoked or has expired").await,
            () = stopping.stopped() => tell(&events, "SERVER_STOPPING", "the server stops; go on with the last id").await,
        }
    });
    Ok(Sse::new(ReceiverStream::new(stream)).keep_alive(KeepAlive::default()).into_response())
}

type Events = mpsc::Sender<Result<Event, Infallible>>;

/// The last event of a stream that the server ends.
async fn tell(events: &Events, code: &str, detail: &str) {
    let event = Event::default().event("end").data(json!({ "code": code, "detail": detail }).to_string());
    // A consumer that is gone has nothing to be told.
    drop(timeout(PATIENCE, events.send(Ok(event))).await);
}

async fn feed(
    app: &Arc<App>,
    query: &Arc<OpenQuery>,
    mut page: Page,
    mut after: Option<Position>,
    limits: PageLimits,
    mut news: tokio::sync::watch::Receiver<()>,
    events: &Events,
) {
    loop {
        for entry in &page.entries {
            let event = Event::default().id(entry.position().to_string());
            let event = match entry {
                Entry::Row { json, .. } => event.event("row").data(json),
                Entry::Rollback(rollback) => event.event("rollback").data(undone(rollback).to_string()),
            };
            match timeout(PATIENCE, events.send(Ok(event))).await {
                Ok(Ok(())) => {}
                Ok(Err(_gone)) => return,
                Err(_elapsed) => {
                    let detail = "the consumer takes no rows; go on with the last id";
                    return tell(events, "RESULTS_READER_TOO_SLOW", detail).await;
                }
            }
        }
        after = page.next.or(after);
        if page.end_reached {
            tokio::select! {
                changed = news.changed() => if changed.is_err() { return },
                () = events.closed() => return,
            }
        }
        page = match read(app, query, after, limits).await {
            Ok(page) => page,
            Err(problem) => return tell(events, problem.code(), problem.detail()).await,
        };
    }
}

/// Up to where a consumer has what it needs.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Through {
    /// The position of the last row that is no longer needed.
    #[schema(value_type = String)]
    through: Position,
}

/// What was removed: whole files of results, so less than was asked for, until more is.
#[derive(Debug, Serialize, ToSchema)]
pub struct TrimmedView {
    entries: u64,
    bytes: u64,
}

pub(super) async fn trim(
    State(app): State<Arc<App>>,
    tenant: Tenant,
    at: At,
    input: Input<Through>,
) -> Result<Answer, Problem> {
    let (_, query) = at.open(&app, &tenant).await?;
    let through = input.value.through;
    let Trimmed { entries, bytes, .. } = app
        .blocking(move |_| {
            let trimmed = query.results(|results| results.trim(through))?;
            query.make_room()?;
            Ok(trimmed)
        })
        .await?;
    Answer::ok(&TrimmedView { entries, bytes })
}
