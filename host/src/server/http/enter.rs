//! The door of every route: who sends the request, and may they? A handler behind it is given the answer.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Problem;
use super::body::discard;
use crate::clock::Stopwatch;
use crate::server::App;
use crate::server::auth::{self, Access, Caller};
use crate::server::meta::tenants::{self, Tenant};

/// What the table of routes says about the route that a request is for.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// What the route is called.
    pub operation: &'static str,
    /// Who may use it.
    pub access: Access,
    /// Bytes that a body may have.
    pub body_max: u64,
}

/// Lets a request through to its handler, with [`Caller`] and [`Tenant`] for it to take.
pub async fn enter(
    State((app, entry)): State<(Arc<App>, Entry)>,
    parameters: RawPathParams,
    request: Request,
    next: Next,
) -> Response {
    let watch = Stopwatch::start();
    let answer = pass(&app, entry, parameters, request, next).await;
    app.metrics.answered(entry.operation, answer.status().as_u16(), watch.elapsed());
    answer
}

async fn pass(app: &Arc<App>, entry: Entry, parameters: RawPathParams, mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(entry);
    if entry.access != Access::Open {
        let named =
            |wanted: &str| parameters.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.to_owned());
        let visitor = Visitor {
            peer: peer(app, &request),
            token: bearer(request.headers()),
            tenant: named("tenant"),
            query: named("query"),
        };
        match admit(app, entry.access, visitor).await {
            Ok((caller, tenant)) => {
                request.extensions_mut().insert(caller);
                if let Some(tenant) = tenant {
                    request.extensions_mut().insert(tenant);
                }
            }
            Err(problem) => {
                discard(request).await;
                return problem.into_response();
            }
        }
    }
    next.run(request).await
}

/// Who is at the door, and what for.
struct Visitor {
    peer: IpAddr,
    token: Option<String>,
    tenant: Option<String>,
    query: Option<String>,
}

async fn admit(app: &Arc<App>, access: Access, visitor: Visitor) -> Result<(Caller, Option<Tenant>), Problem> {
    let Visitor { peer, token, tenant, query } = visitor;
    let Some(text) = token else {
        let missing = Problem::new("TOKEN_MISSING", "send a token: Authorization: Bearer tdm_...");
        return Err(app.failed_login(peer, missing));
    };
    let now_ms = app.now_ms();
    let found = app
        .read(move |view| {
            let Some(caller) = auth::authenticate(view, &text, now_ms)? else { return Ok(None) };
            let tenant = tenant.map(|name| tenants::by_name(view, &name)).transpose()?.flatten();
            Ok(Some((caller, tenant)))
        })
        .await?;
    let Some((caller, tenant)) = found else {
        let detail = "the token is wrong, expired or revoked; ask for a new one, or make one: tidemill token create";
        return Err(app.failed_login(peer, Problem::new("TOKEN_INVALID", detail)));
    };
    if let Access::Tenant(_) = access {
        let theirs =
            tenant.as_ref().is_some_and(|tenant| caller.scope.tenant.as_ref().is_none_or(|own| *own == tenant.id));
        if !theirs {
            return Err(Problem::not_found());
        }
    }
    if !access.allows(caller.scope.role) {
        let detail = format!("this token's role, {}, may not do this", caller.scope.role.name());
        return Err(Problem::new("ROLE_MISSING", detail));
    }
    let limited = caller.scope.role.names_queries();
    if let Some(query) = query.filter(|_| limited) {
        // The same answer whether there is such a query or not.
        if !caller.scope.queries.iter().any(|own| own.as_str() == query) {
            return Err(Problem::not_found());
        }
    }
    Ok((caller, tenant))
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

/// Where a request comes from. Behind a proxy it is the proxy that says so, in the last entry that was added.
fn peer(app: &App, request: &Request) -> IpAddr {
    let forwarded = || {
        let header = request.headers().get_all("x-forwarded-for").iter().next_back()?;
        header.to_str().ok()?.rsplit(',').next()?.trim().parse().ok()
    };
    let connected = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
    let connected = connected.unwrap_or(IpAddr::from([0, 0, 0, 0]));
    if app.settings.behind_proxy { forwarded().unwrap_or(connected) } else { connected }
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _app: &Arc<App>) -> Result<Self, Problem> {
        let defect = || Problem::new("SERVER_DEFECT", "a route that is open asks who calls");
        parts.extensions.get::<Self>().cloned().ok_or_else(defect)
    }
}

impl FromRequestParts<Arc<App>> for Tenant {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _app: &Arc<App>) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(Problem::not_found)
    }
}
