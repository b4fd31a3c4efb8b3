//! Rows for a query: taken whole or not at all, checked at the door, durable before they are acknowledged.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use serde::Serialize;
use utoipa::ToSchema;

use super::queries::At;
use crate::ingest::{BodyFormat, BodyLimits, Dedup, parse};
use crate::server::App;
use crate::server::http::{Answer, Content, Problem};
use crate::server::meta::tenants::Tenant;

/// Rows that are durable.
#[derive(Debug, Serialize, ToSchema)]
pub struct Taken {
    /// Number of the first among all rows of the query, from 0.
    first_row: u64,
    /// How many they are.
    rows: u64,
    /// The request was taken before, and this is the answer of then.
    repeated: bool,
}

pub(super) async fn rows(
    State(app): State<Arc<App>>,
    tenant: Tenant,
    at: At,
    headers: HeaderMap,
    content: Content,
) -> Result<Answer, Problem> {
    let (_, query) = at.open(&app, &tenant).await?;
    let format = format(&headers)?;
    let dedup = dedup(&headers)?;
    let body = content.all().await?;
    let taken = app
        .blocking(move |_| {
            let rows = parse(format, &body, &query.schema, &BodyLimits::default())?;
            let accepted = query.ingest.append(rows, dedup)?;
            query.rows()?;
            Ok(accepted)
        })
        .await?;
    Answer::ok(&Taken { first_row: taken.first_row, rows: taken.rows, repeated: taken.repeated })
}

fn format(headers: &HeaderMap) -> Result<BodyFormat, Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/x-ndjson" | "application/jsonl" | "application/json-lines" => Ok(BodyFormat::JsonLines),
        "application/vnd.apache.arrow.stream" => Ok(BodyFormat::ArrowStream),
        _ => {
            let detail = "rows are JSON Lines (Content-Type: application/x-ndjson) or an Arrow IPC stream \
                          (application/vnd.apache.arrow.stream)";
            Err(Problem::new("CONTENT_TYPE_NOT_TAKEN", detail))
        }
    }
}

/// How a repetition of the request is known.
fn dedup(headers: &HeaderMap) -> Result<Dedup, Problem> {
    let bad = |detail: &str| Problem::new("HEADER_INVALID", detail);
    let text = |name: &str| {
        let value = headers.get(name).map(|value| value.to_str().map(str::to_owned));
        value.transpose().map_err(|_| bad("headers that name a producer or a key are ASCII"))
    };
    let number = |value: Option<String>, name: &str| {
        let parsed = value.and_then(|value| value.parse().ok());
        parsed.ok_or_else(|| bad(&format!("with Tidemill-Producer goes {name}, a number from 0 on")))
    };
    match (text("tidemill-producer")?, text("idempotency-key")?) {
        (None, None) => Ok(Dedup::None),
        (None, Some(key)) => Ok(Dedup::Key(key)),
        (Some(id), None) => Ok(Dedup::Producer {
            id,
            epoch: number(text("tidemill-epoch")?, "Tidemill-Epoch")?,
            sequence: number(text("tidemill-sequence")?, "Tidemill-Sequence")?,
        }),
        (Some(_), Some(_)) => Err(bad("give either Tidemill-Producer or Idempotency-Key, not both")),
    }
}
