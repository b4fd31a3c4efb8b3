//! Everything that a client can ask for: one table, from which come the router, the OpenAPI document, the table of roles in
//! `docs/server.md` and the tests with evil clients.

mod ingest;
pub mod openapi;
mod operations;
mod processors;
mod queries;
mod results;
mod route;
mod signing_keys;
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
use ingest::Taken;
use operations::OperationView;
use processors::{AliasView, NewAlias, ProcessorView, VersionView};
use queries::{Progress, QueryView};
use results::{ResultsPage, Through, TrimmedView};
pub use route::Route;
use route::{delete, get, patch, post, put};
use signing_keys::{NewSigningKey, SigningKeyView};
use status::{Status, WhoAmI};
use tenants::{NewTenant, TenantChange, TenantView};
use tokens::{NewToken, TokenView};

/// Roles that may look at everything but contents.
const LOOK: &[Role] = &[Admin, Deployer, Operator, Viewer, Reader];
/// Roles that may do everything of a tenant.
const RULE: &[Role] = &[Admin];
/// Roles that bring processors and make queries of them.
const DEPLOY: &[Role] = &[Admin, Deployer];
/// Roles that let queries run and rest.
const RUN: &[Role] = &[Admin, Deployer, Operator];
/// Roles that hand over rows.
const INGEST: &[Role] = &[Admin, Role::Ingest];
/// Roles that see what queries emit, and say up to where they have it.
const RESULTS: &[Role] = &[Admin, Reader, Role::Results];

const QUERY: &str = "/v1/tenants/{tenant}/queries/{query}";

/// Bytes of a body of rows.
const INGEST_BODY_MAX: u64 = 16 << 20;

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
    .into_iter()
    .chain(of_processors())
    .chain(of_queries())
    .collect()
}

/// Processors, the keys of their signatures, and long work.
fn of_processors() -> Vec<Route> {
    vec![
        get(
            "/v1/tenants/{tenant}/signing-keys",
            "listSigningKeys",
            "Keys of signatures",
            Tenant(LOOK),
            signing_keys::list,
        )
        .lists::<SigningKeyView>(),
        put("/v1/tenants/{tenant}/signing-keys/{key}", "putSigningKey", "Sets a key", Tenant(RULE), signing_keys::put)
            .takes::<NewSigningKey>()
            .answers::<SigningKeyView>(),
        delete(
            "/v1/tenants/{tenant}/signing-keys/{key}",
            "deleteSigningKey",
            "Deletes a key",
            Tenant(RULE),
            signing_keys::delete,
        ),
        get(
            "/v1/tenants/{tenant}/processors",
            "listProcessors",
            "A tenant's processors",
            Tenant(LOOK),
            processors::list,
        )
        .lists::<ProcessorView>(),
        get(
            "/v1/tenants/{tenant}/processors/{processor}",
            "getProcessor",
            "A processor",
            Tenant(LOOK),
            processors::get,
        )
        .answers::<ProcessorView>(),
        delete(
            "/v1/tenants/{tenant}/processors/{processor}",
            "deleteProcessor",
            "Deletes a processor that no query runs",
            Tenant(DEPLOY),
            processors::delete,
        ),
        get(
            "/v1/tenants/{tenant}/processors/{processor}/versions",
            "listVersions",
            "A processor's versions",
            Tenant(LOOK),
            processors::list_versions,
        )
        .lists::<VersionView>(),
        post(
            "/v1/tenants/{tenant}/processors/{processor}/versions",
            "uploadVersion",
            "Makes a component the next version",
            Tenant(DEPLOY),
            processors::upload,
        )
        .takes_upload("application/wasm")
        .answers::<VersionView>(),
        get(
            "/v1/tenants/{tenant}/processors/{processor}/versions/{version}",
            "getVersion",
            "A version",
            Tenant(LOOK),
            processors::get_version,
        )
        .answers::<VersionView>(),
        delete(
            "/v1/tenants/{tenant}/processors/{processor}/versions/{version}",
            "deleteVersion",
            "Deletes a version that nothing names",
            Tenant(DEPLOY),
            processors::delete_version,
        ),
        get(
            "/v1/tenants/{tenant}/processors/{processor}/aliases/{alias}",
            "getAlias",
            "Which version an alias names",
            Tenant(LOOK),
            processors::get_alias,
        )
        .answers::<AliasView>(),
        put(
            "/v1/tenants/{tenant}/processors/{processor}/aliases/{alias}",
            "putAlias",
            "Has an alias name a version",
            Tenant(DEPLOY),
            processors::put_alias,
        )
        .takes::<NewAlias>()
        .answers::<AliasView>(),
        delete(
            "/v1/tenants/{tenant}/processors/{processor}/aliases/{alias}",
            "deleteAlias",
            "Deletes an alias",
            Tenant(DEPLOY),
            processors::delete_alias,
        ),
        get("/v1/tenants/{tenant}/operations", "listOperations", "Long work of a day", Tenant(LOOK), operations::list)
            .lists::<OperationView>(),
        get(
            "/v1/tenants/{tenant}/operations/{operation}",
            "getOperation",
            "Long work; with ?wait= its outcome",
            Tenant(LOOK),
            operations::get,
        )
        .answers::<OperationView>(),
    ]
}

/// Queries, rows and results.
fn of_queries() -> Vec<Route> {
    vec![
        get("/v1/tenants/{tenant}/queries", "listQueries", "A tenant's queries", Tenant(LOOK), queries::list)
            .lists::<QueryView>(),
        post("/v1/tenants/{tenant}/queries", "createQuery", "Makes a query, stopped", Tenant(DEPLOY), queries::create)
            .takes::<serde_json::Value>()
            .answers::<QueryView>(),
        get(QUERY, "getQuery", "A query, and how it fares", Tenant(LOOK), queries::get).answers::<QueryView>(),
        delete(QUERY, "deleteQuery", "Deletes a query with all it kept", Tenant(DEPLOY), queries::delete),
        post("/v1/tenants/{tenant}/queries/{query}/start", "startQuery", "Starts", Tenant(RUN), queries::start)
            .answers::<QueryView>(),
        post("/v1/tenants/{tenant}/queries/{query}/stop", "stopQuery", "Stops", Tenant(RUN), queries::stop)
            .answers::<QueryView>(),
        post("/v1/tenants/{tenant}/queries/{query}/pause", "pauseQuery", "Pauses", Tenant(RUN), queries::pause)
            .answers::<QueryView>(),
        post("/v1/tenants/{tenant}/queries/{query}/resume", "resumeQuery", "Goes on", Tenant(RUN), queries::start)
            .answers::<QueryView>(),
        get(
            "/v1/tenants/{tenant}/queries/{query}/progress",
            "getProgress",
            "What the last batches did",
            Tenant(LOOK),
            queries::progress,
        )
        .answers::<Progress>(),
        post("/v1/tenants/{tenant}/queries/{query}/rows", "ingestRows", "Takes rows", Tenant(INGEST), ingest::rows)
            .takes_bytes("application/x-ndjson", INGEST_BODY_MAX)
            .answers::<Taken>(),
        get(
            "/v1/tenants/{tenant}/queries/{query}/results",
            "readResults",
            "Rows that it emitted, by page or as a stream",
            Tenant(RESULTS),
            results::get,
        )
        .answers::<ResultsPage>(),
        post(
            "/v1/tenants/{tenant}/queries/{query}/results/trim",
            "trimResults",
            "Removes results that are no longer needed",
            Tenant(RESULTS),
            results::trim,
        )
        .takes::<Through>()
        .answers::<TrimmedView>(),
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
