//! Tenants and their tokens.

use serde_json::json;

use super::harness::Server;

#[test]
fn a_tenant_is_made_looked_at_changed_and_deleted() {
    let server = Server::start();
    let admin = server.admin_client();

    let made = admin.post("/v1/tenants", &json!({ "name": "acme" })).expect(201);
    assert_eq!(made.header("location"), "/v1/tenants/acme");
    let looked = admin.get("/v1/tenants/acme").expect(200);
    assert_eq!(looked.body["signatures"], "off");
    let change = json!({ "signatures": "require" });
    let changed = admin.with("if-match", looked.header("etag")).patch("/v1/tenants/acme", &change).expect(200);
    assert_eq!(changed.body["signatures"], "require");
    let stale = admin.with("if-match", looked.header("etag")).patch("/v1/tenants/acme", &change);
    stale.expect_problem(412, "PRECONDITION_FAILED");
    admin.delete("/v1/tenants/acme").expect(204);
    admin.get("/v1/tenants/acme").expect_problem(404, "NOT_FOUND");
}

#[test]
fn a_name_is_given_out_once() {
    let server = Server::start();
    let admin = server.admin_client();
    let wanted = json!({ "name": "acme" });

    let racing: Vec<_> = (0..8).map(|_| (admin.clone(), wanted.clone())).collect();
    let racing =
        racing.into_iter().map(|(admin, wanted)| std::thread::spawn(move || admin.post("/v1/tenants", &wanted)));
    let mut statuses: Vec<_> = racing.collect::<Vec<_>>().into_iter().map(|one| one.join().unwrap().status).collect();

    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409]);
}

#[test]
fn a_repeated_request_with_its_key_makes_nothing_twice() {
    let server = Server::start();
    let admin = server.admin_client().with("idempotency-key", "one");

    let first = admin.post("/v1/tenants", &json!({ "name": "acme" })).expect(201);
    let again = admin.post("/v1/tenants", &json!({ "name": "acme" })).expect(201);

    assert_eq!((&again.body, again.header("location")), (&first.body, first.header("location")));
    admin.post("/v1/tenants", &json!({ "name": "other" })).expect_problem(422, "IDEMPOTENCY_KEY_REUSED");
}

#[test]
fn tenants_are_listed_page_by_page() {
    let server = Server::start();
    let admin = server.admin_client();
    for name in ["c", "a", "b"] {
        admin.post("/v1/tenants", &json!({ "name": name })).expect(201);
    }
    let names = |page: &super::harness::Answer| -> Vec<String> {
        page.body["items"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };

    let first = admin.get("/v1/tenants?limit=2").expect(200);
    let second =
        admin.get(&format!("/v1/tenants?limit=2&cursor={}", first.body["next_cursor"].as_str().unwrap())).expect(200);

    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(names(&second), ["c"]);
    assert!(second.body["next_cursor"].is_null());
    admin.get("/v1/tenants?cursor=zz").expect_problem(400, "CURSOR_INVALID");
}

#[test]
fn a_token_makes_only_tokens_that_may_do_no_more_and_live_no_longer() {
    let server = Server::start();
    let admin = server.admin_client();
    admin.post("/v1/tenants", &json!({ "name": "acme" })).expect(201);
    let hour = 3600;
    let made = server.token("acme", &json!({ "role": "admin", "lifetime_s": hour }));
    let tenant = server.client(&made);
    let tokens = "/v1/tenants/acme/tokens";

    tenant.post(tokens, &json!({ "role": "viewer", "lifetime_s": 1 })).expect(201);
    tenant.post(tokens, &json!({ "role": "viewer", "lifetime_s": 2 * hour })).expect_problem(403, "SCOPE_TOO_WIDE");
    tenant.post(tokens, &json!({ "role": "platform-admin" })).expect_problem(422, "SETTING_INVALID");
    tenant.post("/v1/tokens", &json!({ "role": "platform-admin" })).expect_problem(403, "ROLE_MISSING");
    tenant.post(tokens, &json!({ "role": "ingest" })).expect_problem(422, "SETTING_INVALID");
    let unlimited = tenant.post(tokens, &json!({ "role": "viewer" })).expect(201);
    let mine = tenant.get(tokens).expect(200);
    let mine = mine.body["items"].as_array().unwrap();
    let own = mine.iter().find(|token| made.contains(token["id"].as_str().unwrap())).unwrap();
    assert_eq!(unlimited.body["expires_at"], own["expires_at"], "as late as the token that made it");
    assert!(mine.iter().all(|token| token.get("token").is_none()), "a token is shown once");
}

#[test]
fn a_revoked_token_and_one_that_expired_are_refused() {
    let server = Server::start();
    let acme = server.tenant("acme");
    let made = acme.post("/v1/tenants/acme/tokens", &json!({ "role": "viewer" })).expect(201);
    let viewer = server.client(made.body["token"].as_str().unwrap());
    viewer.get("/v1/tenants/acme").expect(200);

    acme.delete(made.header("location")).expect(204);

    viewer.get("/v1/tenants/acme").expect_problem(401, "TOKEN_INVALID");
    let short = server.token("acme", &json!({ "role": "viewer", "lifetime_s": 0 }));
    let expired = server.client(&short).get("/v1/tenants/acme").expect_problem(401, "TOKEN_INVALID");
    assert_eq!(expired.header("www-authenticate"), "Bearer realm=\"tidemill\"");
}
