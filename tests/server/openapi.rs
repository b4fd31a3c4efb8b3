//! What the server says about itself, held against the table and against what it answers.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use tidemill_host::server::auth::{Access, Role};
use tidemill_host::server::http::STATUS;
use tidemill_host::server::routes::table;

use super::harness::{Answer, Server};
use crate::support::repository;

#[test]
fn the_document_has_every_route_of_the_table_and_no_other() {
    let server = Server::start();

    let document = server.stranger().get("/v1/openapi.json").expect(200).body;

    assert_eq!(document["openapi"], "3.1.0");
    let mut documented = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let operation = operation["operationId"].as_str().unwrap();
            documented.insert(format!("{} {path} {operation}", method.to_uppercase()));
        }
    }
    let routes: BTreeSet<_> =
        table().iter().map(|route| format!("{} {} {}", route.method, route.path, route.operation)).collect();
    assert_eq!(documented, routes);
}

#[test]
fn every_schema_that_the_document_names_is_in_it() {
    let server = Server::start();
    let text = server.stranger().get("/v1/openapi.json").expect(200).text;
    let document: Value = serde_json::from_str(&text).unwrap();

    for named in text.split("\"#/components/schemas/").skip(1) {
        let name = named.split('"').next().unwrap();
        assert!(document["components"]["schemas"].get(name).is_some(), "{name} is missing");
    }
}

#[test]
fn what_is_answered_is_what_the_document_says() {
    let server = Server::start();
    server.tenant("acme");
    let admin = server.admin_client();
    let document = admin.get("/v1/openapi.json").expect(200).body;

    for path in ["/v1/status", "/v1/whoami", "/v1/tenants", "/v1/tokens"] {
        fits(&document, path, &admin.get(path).expect(200));
    }
    fits(&document, "/v1/tenants/{tenant}", &admin.get("/v1/tenants/acme").expect(200));
    fits(&document, "/v1/tenants/{tenant}/tokens", &admin.get("/v1/tenants/acme/tokens").expect(200));
}

/// The answer of a GET has the members that its schema says, and so have those in it.
#[track_caller]
fn fits(document: &Value, path: &str, answer: &Answer) {
    let content = &document["paths"][path]["get"]["responses"]["2XX"]["content"]["application/json"];
    has_members(document, &content["schema"], &answer.body);
}

#[track_caller]
fn has_members(document: &Value, schema: &Value, value: &Value) {
    let schema = match schema["$ref"].as_str() {
        Some(named) => &document["components"]["schemas"][named.rsplit('/').next().unwrap()],
        None => schema,
    };
    if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        values.iter().for_each(|value| has_members(document, items, value));
    }
    let Some(properties) = schema["properties"].as_object() else { return };
    let members = value.as_object().unwrap_or_else(|| panic!("{value} should be an object: {schema}"));
    for required in schema["required"].as_array().into_iter().flatten() {
        assert!(members.contains_key(required.as_str().unwrap()), "{required} is missing in {value}");
    }
    for (name, member) in members {
        let property = properties.get(name).unwrap_or_else(|| panic!("{name} is not in {schema}"));
        has_members(document, property, member);
    }
}

#[test]
fn the_tables_of_routes_and_of_statuses_in_the_docs_are_those_of_the_code() {
    let path = repository().join("docs/server.md");
    let text = fs::read_to_string(&path).unwrap();

    let expected = replace(&replace(&text, "routes", &routes_table()), "statuses", &statuses_table());

    if std::env::var_os("TIDEMILL_UPDATE_DOCS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    assert!(text == expected || std::env::var_os("TIDEMILL_UPDATE_DOCS").is_some(), "run with TIDEMILL_UPDATE_DOCS=1");
}

/// The text with what stands between the marks of a table replaced.
fn replace(text: &str, table: &str, with: &str) -> String {
    let (begin, end) = (format!("<!-- {table}: generated -->\n"), format!("<!-- {table}: end -->"));
    let (before, rest) = text.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    format!("{before}{begin}{with}{end}{after}")
}

fn routes_table() -> String {
    let columns = Role::ALL.map(Role::name).join(" | ");
    let mut text = format!("| route | what it does | {columns} |\n|---|---|{}\n", "---|".repeat(Role::ALL.len()));
    for route in table() {
        let open = |role: Role| match route.access {
            Access::Open => "open",
            access if access.allows(role) => "yes",
            _ => "",
        };
        let cells = Role::ALL.map(open).join(" | ");
        text.push_str(&format!("| `{} {}` | {} | {cells} |\n", route.method, route.path, route.summary));
    }
    text
}

fn statuses_table() -> String {
    let mut text = "| status | codes |\n|---|---|\n".to_owned();
    for (status, codes) in STATUS {
        let codes: Vec<_> = codes.iter().map(|code| format!("`{code}`")).collect();
        text.push_str(&format!("| {} | {} |\n", status.as_u16(), codes.join(", ")));
    }
    text
}

#[test]
fn a_problem_has_the_members_that_the_document_says() {
    let server = Server::start();
    let document = server.stranger().get("/v1/openapi.json").expect(200).body;

    let problem = server.stranger().get("/v1/status").expect_problem(401, "TOKEN_MISSING");

    has_members(&document, &json!({ "$ref": "#/components/schemas/ProblemDocument" }), &problem.body);
}
