//! Everything that a client can ask for: one table, from which come the router, the OpenAPI document, the table of roles in
//! `docs/server.md` and the tests with evil clients.

pub mod openapi;
mod route;
mod status;
mod tenants;
mod tokens;

use std::sync::Arc;

use axum::{Router, middleware};
use tower_http::catch_panic::CatchPanicLayer;

use super::App;
use super::auth::Access::{AnyToken, Open, Platform, Tenant};
use super::auth::Role::{self, Admin, Deployer, Operator, Reader, Viewer};
use super::http::{Problem, guard, internal_error};
pub use route::Route;
use route::{delete, get, patch, post};
use status::{Status, WhoAmI};
use tenants::{NewTenant, TenantChange, TenantView};
use tokens::{NewToken, TokenView};

/// Roles that may look at everything but contents.
const LOOK: &[Role] = &[Admin, Deployer, Operator, Viewer, Reader];
/// Roles that may do everything of a tenant.
const RULE: &[Role] = &[Admin];

/// The table.
pub fn table() -> Vec<Route> {
    vec![
        get("/v1/openapi.json", "getOpenApi", "This interface, as OpenAPI 3.1", Open, openapi::get),
        get("/v1/status", "getStatus", "What this server is", AnyToken, status::get).answers::<Status>(),
        get("/v1/whoami", "whoAmI", "What the token of the request may do", AnyToken, status::who_am_i)
            .answers::<WhoAmI>(),
        get("/v1/tenants", "listTenants", "All tenants", Platform, tenants::list).lists::<TenantView>(),
        post("/v1/tenants", "createTenant", "Makes a tenant", Platform, tenants::create)
            .takes::<NewTenant>()
            .answers::<TenantView>(),
        get("/v1/tenants/{tenant}", "getTenant", "A tenant", Tenant(LOOK), tenants::get).answers::<TenantView>(),
        patch("/v1/tenants/{tenant}", "changeTenant", "Changes a tenant's settings", Tenant(RULE), tenants::change)
            .takes::<TenantChange>()
            .answers::<TenantView>(),
        delete("/v1/tenants/{tenant}", "deleteTenant", "Deletes an empty tenant", Platform, tenants::delete),
        get("/v1/tokens", "listPlatformTokens", "The platform's tokens", Platform, tokens::list_platform)
            .lists::<TokenView>(),
        post("/v1/tokens", "createPlatformToken", "Makes a token for the platform", Platform, tokens::create_platform)
            .takes::<NewToken>()
            .answers::<TokenView>(),
        delete("/v1/tokens/{token}", "revokePlatformToken", "Revokes one", Platform, tokens::revoke_platform),
        get("/v1/tenants/{tenant}/tokens", "listTokens", "A tenant's tokens", Tenant(RULE), tokens::list)
            .lists::<TokenView>(),
        post("/v1/tenants/{tenant}/tokens", "createToken", "Makes a token for a tenant", Tenant(RULE), tokens::create)
            .takes::<NewToken>()
            .answers::<TokenView>(),
        delete("/v1/tenants/{tenant}/tokens/{token}", "revokeToken", "Revokes one", Tenant(RULE), tokens::revoke),
    ]
}

/// The router of the table.
pub fn router(app: &Arc<App>) -> Router {
    let router = table().into_iter().fold(Router::new(), |router, route| route.mount(router, app));
    router
        .fallback(|| async { Problem::not_found() })
        .method_not_allowed_fallback(|| async {
            Problem::new("METHOD_NOT_ALLOWED", "this path takes other methods; see /v1/openapi.json")
        })
        .layer(CatchPanicLayer::custom(internal_error))
        .layer(middleware::from_fn_with_state(Arc::clone(app), guard))
        .with_state(Arc::clone(app))
}
