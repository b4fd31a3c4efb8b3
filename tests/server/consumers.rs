//! Consumers that go on behind the last row that they have.

use serde_json::json;

use super::follow::{Event, Follower};
use super::harness::Server;
use super::queries::{VISITS, ingest, with_counter};

const RESULTS: &str = "/v1/tenants/acme/queries/visits/results";

fn consumer(server: &Server) -> String {
    server.token("acme", &json!({ "role": "results", "queries": ["visits"] }))
}

#[test]
fn a_consumer_misses_nothing_and_gets_nothing_twice_through_stops_and_kills_of_the_server() {
    let mut server = Server::start();
    let acme_token = {
        with_counter(&server);
        server.token("acme", &json!({ "role": "admin" }))
    };
    let token = consumer(&server);
    let mut seen: Vec<Event> = Vec::new();
    for life in 0..4 {
        let acme = server.client(&acme_token);
        for n in 0..5 {
            ingest(&acme, &format!("{{\"key\":\"a\",\"n\":{n}}}\n")).expect(200);
        }
        // It leaves some to be read in the next life, if not all were in one batch.
        let wanted = if life == 3 { 20 } else { life * 5 + 3 };
        let last = seen.last().map(|event| event.id.clone());
        for event in Follower::new(server.api(), &token, RESULTS, last.as_deref()) {
            let count = event.data["count"].as_u64().unwrap();
            seen.push(event);
            if count >= wanted {
                break;
            }
        }
        if life % 2 == 0 {
            server.kill();
        } else {
            server.stop();
        }
        server.restart();
    }

    let counts: Vec<_> = seen.iter().map(|event| event.data["count"].as_u64().unwrap()).collect();
    // Requests that a batch took together give one row with the last of their counts.
    assert!(counts.is_sorted_by(|before, after| before < after), "{counts:?}");
    assert_eq!(counts.last(), Some(&20));
}

#[test]
fn a_stream_ends_with_a_code_when_the_server_stops() {
    let mut server = Server::start();
    let acme = with_counter(&server);
    ingest(&acme, "{\"key\":\"a\",\"n\":1}\n").expect(200);
    let mut stream = Follower::new(server.api(), &consumer(&server), RESULTS, None);
    assert_eq!(stream.next().unwrap().kind, "row");

    server.stop();

    assert_eq!(stream.next().unwrap().data["code"], "SERVER_STOPPING");
}

#[test]
fn positions_that_were_never_given_out_or_are_gone_are_told_apart() {
    let server = Server::start();
    let acme = with_counter(&server);
    ingest(&acme, "{\"key\":\"a\",\"n\":1}\n").expect(200);
    let first = Follower::new(server.api(), &consumer(&server), RESULTS, None).next().unwrap();
    assert_eq!(first.id, "0-0-0");

    acme.get(&format!("{RESULTS}?after=0-7-0")).expect_problem(422, "RESULTS_POSITION_UNKNOWN");
    acme.get(&format!("{RESULTS}?after=../etc")).expect_problem(422, "RESULTS_POSITION_INVALID");
    acme.get(&format!("{VISITS}/results?after=0-0-0")).expect(200);
}
