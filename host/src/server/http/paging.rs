//! Lists, page by page: `?cursor=...&limit=...`, and `next_cursor` in the answer.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use serde::{Deserialize, Serialize};

use super::Problem;
use crate::server::App;
use crate::server::id::{hex, unhex};

/// Entries of a page that does not say how many it wants, and at most.
const LIMIT: usize = 100;
const LIMIT_MAX: usize = 1000;

/// Which page is wanted.
#[derive(Debug, Clone)]
pub struct Paging {
    /// The key of the last entry of the page before.
    pub after: Option<String>,
    /// Entries of a page.
    pub limit: usize,
}

#[derive(Debug, Deserialize)]
struct Wanted {
    cursor: Option<String>,
    limit: Option<usize>,
}

impl FromRequestParts<Arc<App>> for Paging {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _app: &Arc<App>) -> Result<Self, Problem> {
        let wanted = Query::<Wanted>::try_from_uri(&parts.uri)
            .map_err(|error| Problem::new("QUERY_STRING_INVALID", error.body_text()))?;
        let Query(Wanted { cursor, limit }) = wanted;
        let bad =
            || Problem::new("CURSOR_INVALID", "a cursor is the next_cursor of the page before; begin without one");
        let read = |cursor: String| unhex(&cursor).and_then(|key| String::from_utf8(key).ok()).ok_or_else(bad);
        let after = cursor.map(read).transpose()?;
        Ok(Self { after, limit: limit.unwrap_or(LIMIT).clamp(1, LIMIT_MAX) })
    }
}

/// Some entries of a list.
#[derive(Debug, Serialize)]
pub struct List<T> {
    /// The entries.
    pub items: Vec<T>,
    /// What to ask for the next page with, as `?cursor=`. None: there is none.
    pub next_cursor: Option<String>,
}

impl<T> List<T> {
    /// A page. `more`: whether there are entries behind `last`, the key of its last one.
    pub fn page(items: Vec<T>, more: bool, last: Option<&str>) -> Self {
        Self { items, next_cursor: last.filter(|_| more).map(|key| hex(key.as_bytes())) }
    }
}
