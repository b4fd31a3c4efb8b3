//! Tenants.

use std::sync::Arc;

use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::server::App;
use crate::server::auth::Caller;
use crate::server::http::{Answer, IfMatch, Input, List, Paging, Problem, create_once, etag, moment};
use crate::server::id::{Id, Name};
use crate::server::meta::tenants::{self, SignaturePolicy, Tenant};
use crate::server::meta::{processors, queries, signing_keys, tokens};

/// A tenant to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTenant {
    name: Name,
    #[serde(default)]
    signatures: SignaturePolicy,
}

/// What is to be changed about a tenant.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantChange {
    signatures: SignaturePolicy,
}

/// A tenant.
#[derive(Debug, Serialize, ToSchema)]
pub struct TenantView {
    name: Name,
    created_at: String,
    signatures: SignaturePolicy,
}

impl From<Tenant> for TenantView {
    fn from(tenant: Tenant) -> Self {
        Self { name: tenant.name, created_at: moment(tenant.created_ms), signatures: tenant.signatures }
    }
}

pub(super) async fn list(State(app): State<Arc<App>>, paging: Paging) -> Result<Answer, Problem> {
    let read = move |view: &_| Ok(tenants::page(view, paging.after.as_deref(), paging.limit)?);
    let (tenants, more) = app.read(read).await?;
    let last = tenants.last().map(|tenant| tenant.name.to_string());
    let tenants = tenants.into_iter().map(TenantView::from).collect();
    Answer::ok(&List::page(tenants, more, last.as_deref()))
}

pub(super) async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    input: Input<NewTenant>,
) -> Result<Answer, Problem> {
    let now_ms = app.now_ms();
    create_once(&app, &caller, "/v1/tenants".to_owned(), input, move |writing, NewTenant { name, signatures }| {
        if tenants::by_name(writing, name.as_str())?.is_some() {
            let detail = format!("there is a tenant {name} already; choose another name");
            return Err(Problem::new("NAME_TAKEN", detail));
        }
        let tenant = Tenant { id: Id::random()?, name, created_ms: now_ms, revision: 1, signatures };
        tenants::put(writing, &tenant)?;
        shown(tenant, |tenant| Answer::created(format!("/v1/tenants/{}", tenant.name), tenant))
    })
    .await
}

pub(super) async fn get(tenant: Tenant) -> Result<Answer, Problem> {
    shown(tenant, Answer::ok)
}

pub(super) async fn change(
    State(app): State<Arc<App>>,
    tenant: Tenant,
    wanted: IfMatch,
    input: Input<TenantChange>,
) -> Result<Answer, Problem> {
    app.write(move |writing| {
        let mut tenant = tenants::by_name(writing, tenant.name.as_str())?.ok_or_else(Problem::not_found)?;
        wanted.check(Some(tenant.revision))?;
        tenant.revision += 1;
        tenant.signatures = input.value.signatures;
        tenants::put(writing, &tenant)?;
        shown(tenant, Answer::ok)
    })
    .await
}

pub(super) async fn delete(State(app): State<Arc<App>>, Path(name): Path<String>) -> Result<Answer, Problem> {
    app.write(move |writing| {
        let tenant = tenants::by_name(writing, &name)?.ok_or_else(Problem::not_found)?;
        let has_queries = !queries::page(writing, &tenant.id, None, 1)?.records.is_empty();
        let has_processors = !processors::page(writing, &tenant.id, None, 1)?.records.is_empty();
        if has_queries || has_processors {
            let detail = format!("the tenant {name} has queries or processors; delete those first");
            return Err(Problem::new("TENANT_NOT_EMPTY", detail));
        }
        tokens::remove_all(writing, &tenant.id)?;
        signing_keys::remove_all(writing, &tenant.id)?;
        Ok(tenants::remove(writing, &tenant)?)
    })
    .await?;
    app.auth.revoked();
    Ok(Answer::nothing())
}

fn shown(tenant: Tenant, answer: impl FnOnce(&TenantView) -> Result<Answer, Problem>) -> Result<Answer, Problem> {
    let tag = etag(tenant.revision);
    Ok(answer(&TenantView::from(tenant))?.with_etag(tag))
}
