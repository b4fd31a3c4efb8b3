//! Making tokens: at the first start, offline, and for the routes.

use std::path::Path;

use super::auth::{Role, Scope, Secret, TokenText};
use super::data::{DataError, DataFolder};
use super::id::{Id, Name};
use super::meta::tokens::{self as store, Token};
use super::meta::{Meta, MetaError, tenants};
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
    if app.meta.read(store::is_started)? {
        return Ok(None);
    }
    let scope = Scope { role: Role::PlatformAdmin, tenant: None, queries: Vec::new() };
    let order = Order { description: "first token".to_owned(), scope, expires_ms: None, created_by: None };
    let (text, token) = draw(order, app.now_ms()).map_err(ServeError::System)?;
    app.data.write_first_token(&text.reveal())?;
    app.meta.write(|writing| {
        store::put(writing, &token)?;
        store::note_first_start(writing, token.created_ms)
    })?;
    Ok(Some(text.reveal()))
}

/// Why a token was not made offline.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// The data folder.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The metadata.
    #[error(transparent)]
    Meta(#[from] MetaError),
    /// The tenant does not exist.
    #[error("there is no tenant {0}. Names of tenants are listed by: tidemill tenant list")]
    TenantUnknown(String),
    /// Role, tenant and queries do not go together.
    #[error(
        "the role {} wants {}. Give {}",
        role.name(),
        if *role == Role::PlatformAdmin { "no tenant" } else { "a tenant, and ingest and results, only those, queries" },
        if *role == Role::PlatformAdmin { "no --tenant" } else { "--tenant, and --query where it wants some" }
    )]
    Scope {
        /// The role.
        role: Role,
    },
}

impl OfflineError {
    /// Its stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Data(error) => error.code(),
            Self::Meta(error) => error.code(),
            Self::TenantUnknown(_) => "TENANT_UNKNOWN",
            Self::Scope { .. } => "TOKEN_SCOPE_INVALID",
        }
    }
}

/// Makes a token in a data folder that no server runs on: for who has lost the last one. `lifetime_ms`: None: it does not
/// end.
///
/// # Errors
/// A server runs on it; the tenant does not exist; the role wants another scope.
pub fn create_offline(
    root: &Path,
    role: Role,
    tenant: Option<&Name>,
    queries: Vec<Name>,
    lifetime_ms: Option<i64>,
    now_ms: i64,
) -> Result<TokenText, OfflineError> {
    let data = DataFolder::open_existing(root)?;
    let meta = Meta::open(&data.meta())?;
    let tenant = match tenant {
        Some(name) => {
            let found = meta.read(|view| tenants::by_name(view, name.as_str()))?;
            Some(found.ok_or_else(|| OfflineError::TenantUnknown(name.to_string()))?.id)
        }
        None => None,
    };
    let scope = Scope { role, tenant, queries };
    if !scope.is_whole() {
        return Err(OfflineError::Scope { role });
    }
    let expires_ms = lifetime_ms.map(|lifetime| now_ms.saturating_add(lifetime));
    let order = Order { description: "made offline".to_owned(), scope, expires_ms, created_by: None };
    let (text, token) = draw(order, now_ms).map_err(DataError::Disk)?;
    meta.write(|writing| store::put(writing, &token))?;
    Ok(text)
}
