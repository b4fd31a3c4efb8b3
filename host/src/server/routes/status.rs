//! `/v1/status`: what this server is; `/v1/whoami`: what the caller is to it.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;

use crate::server::App;
use crate::server::auth::{Caller, Role};
use crate::server::http::{Answer, Problem, moment};
use crate::server::id::Name;
use crate::server::meta::View;
use crate::server::meta::tenants::TENANTS;

/// What this server is.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Status {
    /// Version of the program.
    version: &'static str,
    /// What time it is by the server's clock.
    now: String,
    /// The walls around processes that compile and run what tenants uploaded.
    walls: Vec<Wall>,
}

/// A wall around a process.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Wall {
    layer: &'static str,
    active: bool,
    /// Why it is missing.
    missing: Option<String>,
}

pub(super) async fn get(State(app): State<Arc<App>>) -> Result<Answer, Problem> {
    let walls = app.compiler.walls().layers.iter().map(|state| Wall {
        layer: state.layer.name(),
        active: state.missing.is_none(),
        missing: state.missing.clone(),
    });
    Answer::ok(&Status { version: env!("CARGO_PKG_VERSION"), now: moment(app.now_ms()), walls: walls.collect() })
}

/// What the token of a request may do.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct WhoAmI {
    /// Id of the token.
    token: String,
    role: Role,
    /// Its tenant. None: the platform's.
    tenant: Option<Name>,
    /// Which queries, for the roles `ingest` and `results`.
    queries: Vec<Name>,
    expires_at: Option<String>,
}

pub(super) async fn who_am_i(State(app): State<Arc<App>>, caller: Caller) -> Result<Answer, Problem> {
    let Caller { token, scope, expires_ms } = caller;
    let tenant = match scope.tenant {
        Some(id) => app.read(move |view| Ok(view.get(&TENANTS, id.as_str())?)).await?.map(|tenant| tenant.name),
        None => None,
    };
    let (token, expires_at) = (token.to_string(), expires_ms.map(moment));
    Answer::ok(&WhoAmI { token, role: scope.role, tenant, queries: scope.queries, expires_at })
}
