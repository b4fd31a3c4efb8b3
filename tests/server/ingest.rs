//! Rows on the way in: repeated requests, and those that are refused.

use serde_json::json;
use ureq::http::Method;

use super::harness::{Answer, Client, Server};
use super::queries::{VISITS, processed, with_counter};

const ROW: &str = "{\"key\":\"a\",\"n\":1}\n";

fn send(client: &Client, headers: &[(&str, &str)], body: &str) -> Answer {
    let client = headers.iter().fold(client.clone(), |client, (name, value)| client.with(name, value));
    let client = client.with("content-type", "application/x-ndjson");
    client.send(Method::POST, &format!("{VISITS}/rows"), body.as_bytes())
}

fn numbered(client: &Client, epoch: &str, sequence: &str) -> Answer {
    let headers = [("tidemill-producer", "p"), ("tidemill-epoch", epoch), ("tidemill-sequence", sequence)];
    send(client, &headers, ROW)
}

#[test]
fn a_request_of_a_producer_is_taken_once_also_by_a_server_that_was_killed_meanwhile() {
    let mut server = Server::start();
    with_counter(&server);
    let token = server.token("acme", &json!({ "role": "ingest", "queries": ["visits"] }));
    let first = numbered(&server.client(&token), "0", "0").expect(200);
    assert_eq!((&first.body["first_row"], &first.body["repeated"]), (&json!(0), &json!(false)));
    server.kill();
    server.restart();

    let again = numbered(&server.client(&token), "0", "0").expect(200);

    assert_eq!((&again.body["first_row"], &again.body["repeated"]), (&json!(0), &json!(true)));
    numbered(&server.client(&token), "0", "1").expect(200);
    processed(&server.client(&server.token("acme", &json!({ "role": "viewer" }))), 2);
}

#[test]
fn a_gap_in_the_count_of_a_producer_and_an_older_instance_of_it_are_refused() {
    let server = Server::start();
    let acme = with_counter(&server);
    numbered(&acme, "1", "0").expect(200);

    let gap = numbered(&acme, "1", "5").expect_problem(409, "PRODUCER_SEQUENCE_GAP");

    assert_eq!(gap.body["expected_sequence"], 1);
    let fenced = numbered(&acme, "0", "0").expect_problem(409, "PRODUCER_FENCED");
    assert_eq!(fenced.body["current_epoch"], 1);
    numbered(&acme, "2", "0").expect(200);
}

#[test]
fn a_request_with_a_key_is_taken_once_and_the_key_is_for_that_body_only() {
    let server = Server::start();
    let acme = with_counter(&server);
    let key = [("idempotency-key", "monday")];
    send(&acme, &key, ROW).expect(200);

    assert_eq!(send(&acme, &key, ROW).expect(200).body["repeated"], true);
    send(&acme, &key, "{\"key\":\"b\",\"n\":1}\n").expect_problem(422, "IDEMPOTENCY_KEY_REUSED");
}

#[test]
fn what_is_no_request_with_rows_is_refused() {
    let server = Server::start();
    let acme = with_counter(&server);

    let both = [("idempotency-key", "k"), ("tidemill-producer", "p")];
    send(&acme, &both, ROW).expect_problem(400, "HEADER_INVALID");
    send(&acme, &[("tidemill-producer", "p")], ROW).expect_problem(400, "HEADER_INVALID");
    let csv = acme.with("content-type", "text/csv").send(Method::POST, &format!("{VISITS}/rows"), b"a,1");
    csv.expect_problem(415, "CONTENT_TYPE_NOT_TAKEN");
    processed(&acme, 0);
}
