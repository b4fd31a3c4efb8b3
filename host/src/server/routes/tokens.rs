//! Tokens of the platform and of tenants.

use std::sync::Arc;

use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::server::App;
use crate::server::auth::{Caller, Role, Scope};
use crate::server::http::{Answer, Input, List, Paging, Problem, moment};
use crate::server::id::{Id, Name};
use crate::server::meta::tenants::Tenant;
use crate::server::meta::tokens::{self as store, Token};
use crate::server::tokens::{Order, draw};

/// A token to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    role: Role,
    /// What it is for.
    #[serde(default)]
    description: String,
    /// Which queries, for the roles `ingest` and `results`.
    #[serde(default)]
    queries: Vec<Name>,
    /// Seconds until it ends. None: it ends when the token does that makes it.
    lifetime_s: Option<u64>,
}

/// A token, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub struct TokenView {
    id: String,
    role: Role,
    description: String,
    queries: Vec<Name>,
    created_at: String,
    /// The id of the token that made it.
    created_by: Option<String>,
    expires_at: Option<String>,
    revoked_at: Option<String>,
    /// The token itself, which is shown this once.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl From<Token> for TokenView {
    fn from(token: Token) -> Self {
        Self {
            id: token.id.to_string(),
            role: token.scope.role,
            description: token.description,
            queries: token.scope.queries,
            created_at: moment(token.created_ms),
            created_by: token.created_by.map(|id| id.to_string()),
            expires_at: token.expires_ms.map(moment),
            revoked_at: token.revoked_ms.map(moment),
            token: None,
        }
    }
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
    let last = tokens.last().map(|token| token.id.to_string());
    let tokens = tokens.into_iter().map(TokenView::from).collect();
    Answer::ok(&List::page(tokens, more, last.as_deref()))
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
    let NewToken { role, description, queries, lifetime_s } = input.value;
    let now_ms = app.now_ms();
    let path = tenant.as_ref().map_or_else(|| "/v1".to_owned(), |tenant| format!("/v1/tenants/{}", tenant.name));
    let scope = Scope { role, tenant: tenant.map(|tenant| tenant.id), queries };
    if !scope.is_whole() || description.chars().count() > DESCRIPTION_MAX {
        let detail = "the role platform-admin is for /v1/tokens, all others for a tenant's; ingest and results, and only \
                      those, name their queries; a description has at most 200 characters";
        return Err(Problem::new("SETTING_INVALID", detail));
    }
    let expires_ms = expiry(now_ms, lifetime_s, caller.expires_ms);
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

fn expiry(now_ms: i64, lifetime_s: Option<u64>, at_most: Option<i64>) -> Option<i64> {
    let ms = |seconds: u64| i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
    let asked = lifetime_s.map(|seconds| now_ms.saturating_add(ms(seconds)));
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
