//! Clients that may not: every route of the table is tried with every token that must not open it. A new route is in the
//! table, so it is tried as well.

use std::collections::BTreeMap;

use serde_json::json;
use tidemill_host::server::auth::{Access, Role};
use tidemill_host::server::routes::{Route, table};

use super::harness::{Answer, Client, Server};

/// Wrong tokens are not slowed down here: there are hundreds of them.
const PATIENT: (&str, &str) = ("FAILED_LOGINS_PER_MINUTE", "1000000");

/// The path of a route, for a tenant, and for a query where it names one. Nothing else that it names exists.
fn path(route: &Route, tenant: &str) -> String {
    let part = |part: &str| match part {
        "{tenant}" => tenant.to_owned(),
        "{query}" => "mine".to_owned(),
        "{version}" => "1".to_owned(),
        part if part.starts_with('{') => "0123456789abcdef0123456789abcdef".to_owned(),
        part => part.to_owned(),
    };
    route.path.split('/').map(part).collect::<Vec<_>>().join("/")
}

fn call(client: &Client, route: &Route, tenant: &str) -> Answer {
    client.with("content-type", "application/json").send(route.method.clone(), &path(route, tenant), b"{}")
}

fn guarded() -> impl Iterator<Item = Route> {
    table().into_iter().filter(|route| route.access != Access::Open)
}

#[test]
fn only_what_is_meant_for_everybody_opens_without_a_token() {
    let open: Vec<_> =
        table().iter().filter(|route| route.access == Access::Open).map(|route| route.operation).collect();

    assert_eq!(open, ["getOpenApi"]);
}

#[test]
fn no_route_opens_to_no_token_a_wrong_an_expired_or_a_revoked_one() {
    let server = Server::start_where(&[PATIENT]);
    let admin = server.tenant("acme");
    let good = server.first_token();
    let (id, _) = good.rsplit_once('_').unwrap();
    let expired = server.token("acme", &json!({ "role": "admin", "lifetime_s": 0 }));
    let revoked = admin.post("/v1/tenants/acme/tokens", &json!({ "role": "admin" })).expect(201);
    admin.delete(revoked.header("location")).expect(204);
    let wrong = [
        format!("Bearer {id}_{}", "0".repeat(64)),
        format!("Bearer {good}0"),
        format!("Bearer {}", good.to_uppercase()),
        format!("Basic {good}"),
        good.clone(),
        "Bearer".to_owned(),
        "Bearer tdm_".to_owned(),
        format!("Bearer {}", "x".repeat(4000)),
        format!("Bearer {expired}"),
        format!("Bearer {}", revoked.body["token"].as_str().unwrap()),
    ];

    for route in guarded() {
        let answer = call(&server.stranger(), &route, "acme").expect_problem(401, "TOKEN_MISSING");
        assert!(answer.header("www-authenticate").starts_with("Bearer"), "{}", route.operation);
        for header in &wrong {
            let answer = call(&server.stranger().with("authorization", header), &route, "acme");
            assert_eq!(answer.status, 401, "{} with {header}: {answer:?}", route.operation);
        }
        let in_address = format!("{}?access_token={good}&token={good}", path(&route, "acme"));
        server.stranger().send(route.method.clone(), &in_address, b"").expect_problem(401, "TOKEN_MISSING");
    }
}

#[test]
fn another_tenants_objects_are_answered_exactly_as_missing_ones() {
    let server = Server::start();
    server.tenant("acme");
    server.tenant("other");

    for role in Role::ALL.into_iter().filter(|role| *role != Role::PlatformAdmin) {
        let stranger = client_as(&server, "other", role);
        for route in guarded().filter(|route| matches!(route.access, Access::Tenant(_))) {
            let theirs = call(&stranger, &route, "acme").expect_problem(404, "NOT_FOUND");
            let missing = call(&stranger, &route, "nobody").expect_problem(404, "NOT_FOUND");
            let unknown = stranger.get("/v1/no-such-route").expect_problem(404, "NOT_FOUND");

            assert_eq!(theirs.text, missing.text, "{} as {role:?}", route.operation);
            assert_eq!(theirs.text, unknown.text, "{} as {role:?}", route.operation);
            let shown = |answer: &Answer| -> BTreeMap<String, String> {
                let headers = answer.headers.iter().filter(|(name, _)| *name != "date");
                headers.map(|(name, value)| (name.to_string(), format!("{value:?}"))).collect()
            };
            assert_eq!(shown(&theirs), shown(&missing), "{} as {role:?}", route.operation);
        }
    }
}

#[test]
fn a_route_opens_to_the_roles_of_its_row_and_to_no_other() {
    let server = Server::start();
    server.tenant("acme");

    for role in Role::ALL {
        let client = client_as(&server, "acme", role);
        for route in guarded().filter(|route| route.operation != "deleteTenant") {
            let answer = call(&client, &route, "acme");
            let refused = answer.status == 403 && answer.code() == "ROLE_MISSING";
            assert_eq!(!refused, route.access.allows(role), "{} as {role:?}: {answer:?}", route.operation);
        }
    }
}

#[test]
fn a_token_for_named_queries_opens_no_other_query() {
    let server = Server::start();
    server.tenant("acme");

    for role in [Role::Ingest, Role::Results] {
        let wanted = json!({ "role": role.name(), "queries": ["another"] });
        let client = server.client(&server.token("acme", &wanted));
        let routes = guarded().filter(|route| route.path.contains("{query}") && route.access.allows(role));
        for route in routes {
            call(&client, &route, "acme").expect_problem(404, "NOT_FOUND");
        }
    }
}

fn client_as(server: &Server, tenant: &str, role: Role) -> Client {
    if role == Role::PlatformAdmin {
        return server.admin_client();
    }
    let queries: &[&str] = if role.names_queries() { &["mine"] } else { &[] };
    server.client(&server.token(tenant, &json!({ "role": role.name(), "queries": queries })))
}
