//! Answers that go on and on: a revoked token ends what it has opened, and what is open takes room.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use super::harness::{Answer, Client, Server};
use crate::support::component;

/// A tenant with a query, and a token that may read its results.
fn with_reader(server: &Server) -> (Client, Answer) {
    let acme = server.tenant("acme");
    acme.upload("/v1/tenants/acme/processors/counter", &std::fs::read(component("counter")).unwrap());
    let input = "key STRING, n BIGINT NOT NULL";
    let query = json!({ "name": "visits", "processor": "counter@1", "input_schema": input, "key": ["key"] });
    acme.post("/v1/tenants/acme/queries", &query).expect(201);
    let reader = acme.post("/v1/tenants/acme/tokens", &json!({ "role": "reader" })).expect(201);
    (acme, reader)
}

/// Follows the results with this token; comes back when the answer has begun.
fn follow(server: &Server, token: &Answer) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(server.api().strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let token = token.body["token"].as_str().unwrap();
    let head = "GET /v1/tenants/acme/queries/visits/results HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
    write!(stream, "{head}accept: text/event-stream\r\nauthorization: Bearer {token}\r\n\r\n").unwrap();
    let mut stream = BufReader::new(stream);
    let mut first = String::new();
    stream.read_line(&mut first).unwrap();
    assert!(first.starts_with("HTTP/1.1 200"), "{first}");
    stream
}

#[test]
fn a_stream_ends_within_a_second_when_its_token_is_revoked() {
    let server = Server::start();
    let (acme, reader) = with_reader(&server);
    let mut stream = follow(&server, &reader);

    acme.delete(reader.header("location")).expect(204);
    let revoked = Instant::now();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();

    assert!(revoked.elapsed() < Duration::from_secs(1), "{:?}", revoked.elapsed());
    assert!(rest.contains("TOKEN_INVALID"), "{rest}");
}

#[test]
fn an_open_stream_takes_the_room_of_a_request_until_it_is_closed() {
    let server = Server::start_where(&[("REQUESTS_MAX", "1")]);
    let (acme, reader) = with_reader(&server);

    let stream = follow(&server, &reader);

    acme.get("/v1/tenants/acme").expect_problem(503, "SERVER_BUSY");
    drop(stream);
    let closed = Instant::now();
    while acme.get("/v1/tenants/acme").status != 200 {
        assert!(closed.elapsed() < Duration::from_secs(10), "the room was not given back");
    }
}
