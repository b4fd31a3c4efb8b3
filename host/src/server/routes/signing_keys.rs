//! Keys whose signatures a tenant takes on its components.

use std::sync::Arc;

use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::server::App;
use crate::server::http::{Answer, Input, List, Paging, Problem, moment};
use crate::server::id::Name;
use crate::server::meta::signing_keys::{self, SigningKey};
use crate::server::meta::tenants::Tenant;
use crate::server::uploads::public_key;

/// A key to be made known.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSigningKey {
    /// A public key of ed25519: 64 hexadecimal digits.
    public_key: String,
}

/// A key.
#[derive(Debug, Serialize, ToSchema)]
pub struct SigningKeyView {
    name: Name,
    public_key: String,
    created_at: String,
}

impl From<SigningKey> for SigningKeyView {
    fn from(key: SigningKey) -> Self {
        Self { name: key.name, public_key: key.public_key, created_at: moment(key.created_ms) }
    }
}

pub(super) async fn list(State(app): State<Arc<App>>, tenant: Tenant, paging: Paging) -> Result<Answer, Problem> {
    let read = move |view: &_| Ok(signing_keys::page(view, &tenant.id, paging.after.as_deref(), paging.limit)?);
    let page = app.read(read).await?;
    let last = page.records.last().map(|(name, _)| name.clone());
    let keys = page.records.into_iter().map(|(_, key)| SigningKeyView::from(key)).collect();
    Answer::ok(&List::page(keys, page.more, last.as_deref()))
}

pub(super) async fn put(
    State(app): State<Arc<App>>,
    tenant: Tenant,
    Path((_, name)): Path<(String, String)>,
    input: Input<NewSigningKey>,
) -> Result<Answer, Problem> {
    let invalid = |detail: &str| Problem::new("SETTING_INVALID", detail);
    let name: Name = name.parse().map_err(|error: crate::server::id::NotAName| invalid(&error.to_string()))?;
    let public_key = input.value.public_key;
    if self::public_key(&public_key).is_none() {
        return Err(invalid("public_key is a public key of ed25519: 64 hexadecimal digits"));
    }
    let key = SigningKey { name, public_key, created_ms: app.now_ms() };
    let kept = key.clone();
    app.write(move |writing| Ok(signing_keys::put(writing, &tenant.id, &kept)?)).await?;
    Answer::ok(&SigningKeyView::from(key))
}

pub(super) async fn delete(
    State(app): State<Arc<App>>,
    tenant: Tenant,
    Path((_, name)): Path<(String, String)>,
) -> Result<Answer, Problem> {
    let removed = app.write(move |writing| Ok(signing_keys::remove(writing, &tenant.id, &name)?)).await?;
    if removed { Ok(Answer::nothing()) } else { Err(Problem::not_found()) }
}
