//! Tokens of the platform and of tenants.

use std::sync::Arc;

use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::server::App;
use crate::server::auth::{Caller, Role, Scope};
use crate::server::http::{Answer, Input, Paging, Problem, next_page};
use crate::server::id::{Id, Name};
use crate::server::meta::View;
use crate::server::meta::tenants::{TENANTS, Tenant};
use crate::server::meta::tokens::{self as store, Token};
use crate::server::tokens::{Order, draw};

/// A token to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewToken {
    role: Role,
    /// What it is for.
    #[serde(default)]
    description: String,
    /// Which queries, for the roles `ingest` and `results`.
    #[serde(default)]
    queries: Vec<Name>,
    /// Milliseconds until it ends. None: as late as the token that makes it.
    lives_ms: Option<u64>,
}

/// A token, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenView {
    id: String,
    role: Role,
    description: String,
    queries: Vec<Name>,
    /// Milliseconds since the epoch, as the others.
    created_ms: i64,
    /// The id of the token that made it.
    created_by: Option<String>,
    expires_ms: Option<i64>,
    revoked_ms: Option<i64>,
    /// The token itself, which is shown this once.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

/// Some tokens.
#[derive(Debug, Serialize, ToSchema)]
pub struct TokenPage {
    tokens: Vec<TokenView>,
    /// Cursor of the next page.
    next: Option<String>,
}

/// The token that asks.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Whoami {
    /// The token's id.
    token: String,
    role: Role,
    /// Name of the tenant that it is for. None: it is the platform's.
    tenant: Option<Name>,
    queries: Vec<Name>,
    /// Milliseconds since the epoch.
    expires_ms: Option<i64>,
}

impl From<Token> for TokenView {
    fn from(token: Token) -> Self {
        Self {
            id: token.id.to_string(),
            role: token.scope.role,
            description: token.description,
            queries: token.scope.queries,
            created_ms: token.created_ms,
            created_by: token.created_by.map(|id| id.to_string()),
            expires_ms: token.expires_ms,
            revoked_ms: token.revoked_ms,
            token: None,
        }
    }
}

pub(super) async fn whoami(State(app): State<Arc<App>>, caller: Caller) -> Result<Answer, Problem> {
    let Caller { token, scope, expires_ms } = caller;
    let id = scope.tenant;
    let tenant = app.read(move |view| Ok(id.map(|id| view.get(&TENANTS, id.as_str())).transpose()?.flatten())).await?;
    let tenant = tenant.map(|tenant: Tenant| tenant.name);
    Answer::ok(&Whoami { token: token.to_string(), role: scope.role, tenant, queries: scope.queries, expires_ms })
}

pub(super) async fn list_platform(State(app): State<Arc<App>>, paging: Paging) -> Result<Answer, Problem> {
    page(&app, None, paging).await
}

pub(super) async fn list(State(app): State<Arc<App>>, tenant: Tenant, paging: Paging) -> Result<Answer, Problem> {
    page(&app, Some(tenant.id), paging).await
}

pub(super) async fn create_platform(
    State(app): State<Arc<App>>,
    caller: Caller,
    input: Input<NewToken>,
) -> Result<Answer, Problem> {
    make(&app, caller, None, input).await
}

pub(super) async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    tenant: Tenant,
    input: Input<NewToken>,
) -> Result<Answer, Problem> {
    make(&app, caller, Some(tenant), input).await
}

pub(super) async fn revoke_platform(State(app): State<Arc<App>>, Path(token): Path<String>) -> Result<Answer, Problem> {
    end(&app, None, token).await
}

pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    tenant: Tenant,
    Path((_, token)): Path<(String, String)>,
) -> Result<Answer, Problem> {
    end(&app, Some(tenant.id), token).await
}

async fn page(app: &Arc<App>, tenant: Option<Id>, paging: Paging) -> Result<Answer, Problem> {
    let read = move |view: &_| Ok(store::page(view, tenant.as_ref(), paging.after.as_deref(), paging.limit)?);
    let (tokens, more) = app.read(read).await?;
    let next = next_page(more, tokens.last().map(|token| token.id.as_str()));
    Answer::ok(&TokenPage { tokens: tokens.into_iter().map(TokenView::from).collect(), next })
}

/// Characters of a description.
const DESCRIPTION_MAX: usize = 200;

async fn make(
    app: &Arc<App>,
    caller: Caller,
    tenant: Option<Tenant>,
    input: Input<NewToken>,
) -> Result<Answer, Problem> {
    if input.idempotency_key.is_some() {
        let detail = "a token is shown once and not kept, so its answer cannot be repeated: leave out Idempotency-Key, and \
                      revoke a token whose answer was lost";
        return Err(Problem::new("IDEMPOTENCY_KEY_NOT_TAKEN", detail));
    }
    let NewToken { role, description, queries, lives_ms } = input.value;
    let now_ms = app.now_ms();
    let path = tenant.as_ref().map_or_else(|| "/v1".to_owned(), |tenant| format!("/v1/tenants/{}", tenant.name));
    let scope = Scope { role, tenant: tenant.map(|tenant| tenant.id), queries };
    if !scope.is_whole() || description.chars().count() > DESCRIPTION_MAX {
        let detail = "the role platform-admin is for /v1/tokens, all others for a tenant's; ingest and results, and only \
                      those, name their queries; a description has at most 200 characters";
        return Err(Problem::new("SETTING_INVALID", detail));
    }
    let expires_ms = expiry(now_ms, lives_ms, caller.expires_ms);
    if !caller.scope.covers(&scope) || outlives(expires_ms, caller.expires_ms) {
        let detail = "a token makes only tokens that may do no more and live no longer than itself";
        return Err(Problem::new("SCOPE_TOO_WIDE", detail));
    }
    let order = Order { description, scope, expires_ms, created_by: Some(caller.token) };
    let (text, token) = draw(order, now_ms)?;
    let kept = token.clone();
    app.write(move |writing| Ok(store::put(writing, &kept)?)).await?;
    let location = format!("{path}/tokens/{}", token.id);
    Answer::created(location, &TokenView { token: Some(text.reveal()), ..token.into() })
}

fn expiry(now_ms: i64, lives_ms: Option<u64>, at_most: Option<i64>) -> Option<i64> {
    let asked = lives_ms.map(|lives| now_ms.saturating_add(i64::try_from(lives).unwrap_or(i64::MAX)));
    asked.or(at_most)
}

fn outlives(expires_ms: Option<i64>, maker: Option<i64>) -> bool {
    maker.is_some_and(|maker| expires_ms.is_none_or(|expires| expires > maker))
}

async fn end(app: &Arc<App>, tenant: Option<Id>, token: String) -> Result<Answer, Problem> {
    let id = Id::try_from(token).map_err(|_none| Problem::not_found())?;
    let now_ms = app.now_ms();
    app.write(move |writing| {
        let found = store::get(writing, &id)?.filter(|token| token.scope.tenant == tenant);
        let mut token = found.ok_or_else(Problem::not_found)?;
        token.revoked_ms.get_or_insert(now_ms);
        Ok(store::put(writing, &token)?)
    })
    .await?;
    app.auth.revoked();
    Ok(Answer::nothing())
}
