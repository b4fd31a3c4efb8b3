//! Tokens: who may do what until when. Of the secret there is only the hash.

use serde::{Deserialize, Serialize};

use super::{Family, MetaError, View, Writing};
use crate::server::auth::Scope;
use crate::server::id::Id;

/// By id.
const TOKENS: Family<Token> = Family::new("tokens");
/// `OWNER/ID`: the tokens of a tenant, or of the platform.
const TOKENS_OF: Family<()> = Family::new("tokens-of");
/// The one record: when the first token was made.
const FIRST_START: Family<i64> = Family::new("first-start");

/// A token.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Token {
    /// The part of its text that is no secret.
    pub id: Id,
    /// What it is for, in its owner's words.
    pub description: String,
    /// What it may do.
    pub scope: Scope,
    /// SHA-256 of its secret, in hex.
    pub secret_sha256: String,
    /// When it was made, in ms since the epoch.
    pub created_ms: i64,
    /// The token that made it. None: made offline, or at the first start.
    pub created_by: Option<Id>,
    /// From when on it is refused, in ms since the epoch.
    pub expires_ms: Option<i64>,
    /// When it was revoked.
    pub revoked_ms: Option<i64>,
}

/// Whose tokens: a tenant's, or the platform's.
fn owner(scope: &Scope) -> String {
    scope.tenant.as_ref().map_or_else(|| "platform/".to_owned(), |tenant| format!("{tenant}/"))
}

/// A token.
///
/// # Errors
/// The store fails.
pub fn get(view: &impl View, id: &Id) -> Result<Option<Token>, MetaError> {
    view.get(&TOKENS, id.as_str())
}

/// Writes a token.
///
/// # Errors
/// The store fails.
pub fn put(writing: &Writing, token: &Token) -> Result<(), MetaError> {
    writing.put(&TOKENS_OF, &format!("{}{}", owner(&token.scope), token.id), &())?;
    writing.put(&TOKENS, token.id.as_str(), token)
}

/// The tokens of a tenant, or of the platform, by id.
///
/// # Errors
/// The store fails.
pub fn page(
    view: &impl View,
    tenant: Option<&Id>,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<Token>, bool), MetaError> {
    let prefix = tenant.map_or_else(|| "platform/".to_owned(), |tenant| format!("{tenant}/"));
    let page = view.page(&TOKENS_OF, &prefix, after, limit)?;
    let mut tokens = Vec::new();
    for (id, ()) in page.records {
        tokens.extend(view.get(&TOKENS, &id)?);
    }
    Ok((tokens, page.more))
}

/// Forgets all tokens of a tenant.
///
/// # Errors
/// The store fails.
pub fn remove_all(writing: &Writing, tenant: &Id) -> Result<(), MetaError> {
    for (id, ()) in writing.all(&TOKENS_OF, &format!("{tenant}/"))? {
        writing.remove(&TOKENS, &id)?;
        writing.remove(&TOKENS_OF, &format!("{tenant}/{id}"))?;
    }
    Ok(())
}

/// Whether there was a first start already.
///
/// # Errors
/// The store fails.
pub fn is_started(view: &impl View) -> Result<bool, MetaError> {
    Ok(view.get(&FIRST_START, "")?.is_some())
}

/// Notes the first start.
///
/// # Errors
/// The store fails.
pub fn note_first_start(writing: &Writing, now_ms: i64) -> Result<(), MetaError> {
    writing.put(&FIRST_START, "", &now_ms)
}
