//! Queries over HTTP: rows in, results out, restarts.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use ureq::http::Method;

use super::harness::{Answer, Client, Server};
use crate::support::component;

const QUERIES: &str = "/v1/tenants/acme/queries";
/// Where the query of [`with_counter`] is.
pub const VISITS: &str = "/v1/tenants/acme/queries/visits";

/// Longer than anything takes here, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// A tenant with the counter of the examples, and a query of it that runs.
pub fn with_counter(server: &Server) -> Client {
    let acme = server.tenant("acme");
    acme.upload("/v1/tenants/acme/processors/counter", &std::fs::read(component("counter")).unwrap());
    acme.post(QUERIES, &visits()).expect(201);
    acme.post(&format!("{VISITS}/start"), &json!({})).expect(200);
    acme
}

fn visits() -> Value {
    json!({ "name": "visits", "processor": "counter@1", "input_schema": "key STRING, n BIGINT NOT NULL", "key": ["key"] })
}

/// Hands over rows, as JSON Lines.
pub fn ingest(client: &Client, rows: &str) -> Answer {
    let client = client.with("content-type", "application/x-ndjson");
    client.send(Method::POST, &format!("{VISITS}/rows"), rows.as_bytes())
}

/// Waits until the query stands like this.
pub fn wait(client: &Client, until: impl Fn(&Value) -> bool) -> Value {
    wait_at(client, VISITS, until)
}

/// Waits until the query at this path stands like this.
pub fn wait_at(client: &Client, path: &str, until: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let query = client.get(path).expect(200).body;
        if until(&query) {
            return query;
        }
        assert!(begun.elapsed() < PATIENCE, "{query:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until so many rows are processed.
pub fn processed(client: &Client, rows: u64) -> Value {
    wait(client, |query| query["rows_processed"] == rows)
}

fn results(client: &Client) -> Vec<Value> {
    let page = client.get(&format!("{VISITS}/results")).expect(200).body;
    page["entries"].as_array().unwrap().iter().map(|entry| entry["row"].clone()).collect()
}

#[test]
fn rows_go_in_and_results_come_out() {
    let server = Server::start();
    let acme = with_counter(&server);

    let taken = ingest(&acme, "{\"key\":\"a\",\"n\":1}\n{\"key\":\"b\",\"n\":2}\n").expect(200).body;

    assert_eq!(taken, json!({ "first_row": 0, "rows": 2, "repeated": false }));
    processed(&acme, 2);
    let mut rows = results(&acme);
    rows.sort_by_key(ToString::to_string);
    assert_eq!(rows[0], json!({ "key": "a", "count": 1, "listed": 1, "distinct": 1 }));
    assert_eq!(rows.len(), 2);
}

#[test]
fn a_row_that_does_not_fit_refuses_the_whole_request_and_is_named() {
    let server = Server::start();
    let acme = with_counter(&server);

    let refused = ingest(&acme, "{\"key\":\"a\",\"n\":1}\n{\"key\":\"b\",\"n\":\"two\"}\n");

    let refused = refused.expect_problem(422, "INGEST_ROW_INVALID");
    assert_eq!((&refused.body["row"], &refused.body["row_code"]), (&json!(2), &json!("WRONG_TYPE")));
    assert_eq!(acme.get(VISITS).expect(200).body["rows_ingested"], 0);
}

#[test]
fn a_paused_query_takes_rows_and_processes_them_when_it_goes_on() {
    let server = Server::start();
    let acme = with_counter(&server);
    acme.post(&format!("{VISITS}/pause"), &json!({})).expect(200);
    wait(&acme, |query| query["state"] == "paused");

    ingest(&acme, "{\"key\":\"a\",\"n\":1}\n").expect(200);

    assert_eq!(acme.get(VISITS).expect(200).body["rows_processed"], 0);
    acme.post(&format!("{VISITS}/resume"), &json!({})).expect(200);
    processed(&acme, 1);
}

#[test]
fn after_a_kill_of_the_server_and_after_a_stop_a_query_goes_on_where_it_was() {
    let mut server = Server::start();
    let acme = with_counter(&server);
    let token = server.token("acme", &json!({ "role": "admin" }));
    ingest(&acme, "{\"key\":\"a\",\"n\":1}\n").expect(200);
    processed(&acme, 1);

    server.kill();
    server.restart();
    let acme = server.client(&token);
    ingest(&acme, "{\"key\":\"a\",\"n\":2}\n").expect(200);
    processed(&acme, 2);
    assert!(server.stop().success());
    server.restart();
    let acme = server.client(&token);
    ingest(&acme, "{\"key\":\"a\",\"n\":3}\n").expect(200);
    processed(&acme, 3);

    let counts: Vec<_> = results(&acme).iter().map(|row| row["count"].clone()).collect();
    assert_eq!(counts, [json!(1), json!(2), json!(3)]);
}

#[test]
fn an_idle_query_is_unloaded_and_its_worker_ends_until_rows_come() {
    let server = Server::start_where(&[("UNLOAD_AFTER", "100ms")]);
    let acme = with_counter(&server);
    ingest(&acme, "{\"key\":\"a\",\"n\":1}\n").expect(200);
    wait(&acme, |query| query["state"] == "idle" && query["rows_processed"] == 1);

    ingest(&acme, "{\"key\":\"a\",\"n\":2}\n").expect(200);

    processed(&acme, 2);
    assert_eq!(results(&acme).len(), 2);
}

#[test]
fn a_page_of_results_goes_on_behind_the_one_before() {
    let server = Server::start();
    let acme = with_counter(&server);
    let rows: String = (0..10).map(|n| format!("{{\"key\":\"k{n}\",\"n\":{n}}}\n")).collect();
    ingest(&acme, &rows).expect(200);
    processed(&acme, 10);

    let all = acme.get(&format!("{VISITS}/results")).expect(200).body["entries"].clone();
    let first = acme.get(&format!("{VISITS}/results?limit=4")).expect(200).body;
    let after = first["next"].as_str().unwrap();
    let second = acme.get(&format!("{VISITS}/results?after={after}")).expect(200).body;

    let both = [first["entries"].as_array().unwrap().as_slice(), second["entries"].as_array().unwrap()].concat();
    assert_eq!(json!(both), all);
    acme.get(&format!("{VISITS}/results?after=9-9-9")).expect_problem(422, "RESULTS_POSITION_UNKNOWN");
}

#[test]
fn a_query_is_gone_with_all_it_kept_once_it_is_deleted() {
    let server = Server::start();
    let acme = with_counter(&server);
    ingest(&acme, "{\"key\":\"a\",\"n\":1}\n").expect(200);
    processed(&acme, 1);

    acme.delete(VISITS).expect(204);

    acme.get(VISITS).expect_problem(404, "NOT_FOUND");
    let tenants = std::fs::read_dir(server.data().join("tenants")).unwrap();
    let kept: usize = tenants
        .flat_map(|tenant| ["queries", "ingest"].map(|part| tenant.as_ref().unwrap().path().join(part)))
        .map(|folder| std::fs::read_dir(folder).unwrap().count())
        .sum();
    assert_eq!(kept, 0);
    acme.post(QUERIES, &visits()).expect(201);
    assert_eq!(acme.get(VISITS).expect(200).body["rows_ingested"], 0);
}

#[test]
fn a_query_of_a_processor_that_is_not_there_is_refused_with_the_command_to_type() {
    let server = Server::start();
    let acme = server.tenant("acme");
    let refused = acme.post(QUERIES, &visits()).expect_problem(422, "PROCESSOR_UNKNOWN");
    assert!(refused.body["detail"].as_str().unwrap().contains("tidemill deploy"));
}
