//! Making tokens: at the first start, offline, and for the routes.

use super::auth::{Scope, Secret, TokenText};
use super::id::Id;
use super::meta::tokens::{self as store, Token};
use super::{App, ServeError};

/// What a new token should be.
#[derive(Debug, Clone)]
pub struct Order {
    /// What it is for.
    pub description: String,
    /// What it may do.
    pub scope: Scope,
    /// When it ends, in ms since the epoch.
    pub expires_ms: Option<i64>,
    /// The token that asks for it.
    pub created_by: Option<Id>,
}

/// Draws a token: what its owner gets, and what is kept.
///
/// # Errors
/// The system has no random bytes.
pub fn draw(order: Order, now_ms: i64) -> std::io::Result<(TokenText, Token)> {
    let text = TokenText { id: Id::random()?, secret: Secret::random()? };
    let token = Token {
        id: text.id.clone(),
        description: order.description,
        scope: order.scope,
        secret_sha256: text.secret.sha256(),
        created_ms: now_ms,
        created_by: order.created_by,
        expires_ms: order.expires_ms,
        revoked_ms: None,
    };
    Ok((text, token))
}

/// The first platform admin's token, at the first start. It goes to its file before it holds, so that it is never lost: a
/// crash in between makes another one.
pub(super) fn first(app: &App) -> Result<Option<String>, ServeError> {
    if app.meta.read(|view| store::is_started(view))? {
        return Ok(None);
    }
    let scope = Scope { role: super::auth::Role::PlatformAdmin, tenant: None, queries: Vec::new() };
    let order = Order { description: "first token".to_owned(), scope, expires_ms: None, created_by: None };
    let (text, token) = draw(order, app.now_ms()).map_err(ServeError::System)?;
    app.data.write_first_token(&text.reveal())?;
    app.meta.write(|writing| {
        store::put(writing, &token)?;
        store::note_first_start(writing, token.created_ms)
    })?;
    Ok(Some(text.reveal()))
}
