//! Requests that are meant to hurt: too large, too slow, too many, too deep, not meant for this server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;
use ureq::http::Method;

use super::harness::Server;

/// Sends bytes as they are, and reads until the server closes or the patience is over.
fn raw(server: &Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.api().strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // The server may close before it has read everything.
    let _sent = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _closed = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_request_for_another_name_or_from_another_site_is_refused_on_both_ports() {
    let server = Server::start();
    let admin = server.admin_client();

    admin.with("host", "evil.example").get("/v1/status").expect_problem(421, "HOST_NOT_ALLOWED");
    admin.with("origin", "https://evil.example").get("/v1/status").expect_problem(403, "ORIGIN_NOT_ALLOWED");
    admin.with("origin", server.api()).get("/v1/status").expect(200);
    let metrics = super::harness::Client::new(server.admin(), None);
    metrics.with("host", "evil.example").get("/healthz").expect_problem(421, "HOST_NOT_ALLOWED");
}

#[test]
fn a_document_that_is_too_large_too_deep_or_none_is_refused() {
    let server = Server::start();
    let admin = server.admin_client().with("content-type", "application/json");
    let post = |body: &[u8]| admin.send(Method::POST, "/v1/tenants", body);
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));

    post(&vec![b' '; 65 << 10]).expect_problem(413, "BODY_TOO_LARGE");
    post(deep.as_bytes()).expect_problem(422, "SETTING_INVALID");
    post(format!("{{\"name\":{deep}}}").as_bytes()).expect_problem(422, "SETTING_INVALID");
    post(b"{").expect_problem(400, "JSON_INVALID");
    post(b"\xff").expect_problem(400, "JSON_INVALID");
    post(br#"{"name":"a","nome":"b"}"#).expect_problem(422, "SETTING_INVALID");
    post(br#"{"name":"../a"}"#).expect_problem(422, "SETTING_INVALID");
    let text = server.admin_client().with("content-type", "text/plain");
    text.send(Method::POST, "/v1/tenants", br#"{"name":"a"}"#).expect_problem(415, "CONTENT_TYPE_NOT_TAKEN");
    assert_eq!(admin.get("/v1/tenants").expect(200).body["items"], json!([]), "nothing was made");
}

#[test]
fn heads_that_do_not_end_are_cut_off() {
    let server = Server::start_where(&[("HEADER_TIMEOUT", "200ms")]);
    let many: String = (0..1000).map(|number| format!("x-{number}: y\r\n")).collect();

    let many = raw(&server, format!("GET /v1/status HTTP/1.1\r\nhost: localhost\r\n{many}\r\n").as_bytes());
    let long = raw(&server, format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(1 << 20)).as_bytes());
    let started = Instant::now();
    let slow = raw(&server, b"GET /v1/status HTTP/1.1\r\nhost: loc");

    assert!(many.starts_with("HTTP/1.1 431"), "{many}");
    assert!(long.starts_with("HTTP/1.1 4"), "{long}");
    assert!(slow.is_empty() || slow.starts_with("HTTP/1.1 408"), "{slow}");
    assert!(started.elapsed() < Duration::from_secs(10));
    server.admin_client().get("/v1/status").expect(200);
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let server = Server::start_where(&[("BODY_TIMEOUT", "200ms")]);
    let head =
        "POST /v1/tenants HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n";

    let answer = raw(&server, format!("{head}authorization: Bearer {}\r\n\r\n{{", server.first_token()).as_bytes());

    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("BODY_TOO_SLOW"), "{answer}");
}

#[test]
fn wrong_tokens_from_one_address_are_slowed_down_and_right_ones_are_not() {
    let server = Server::start_where(&[("FAILED_LOGINS_PER_MINUTE", "3")]);

    for _ in 0..3 {
        server.stranger().get("/v1/status").expect_problem(401, "TOKEN_MISSING");
    }

    let slowed = server.client("tdm_wrong").get("/v1/status").expect_problem(429, "LOGIN_RATE_LIMITED");
    assert!(slowed.header("retry-after").parse::<u32>().unwrap() <= 21, "{slowed:?}");
    server.admin_client().get("/v1/status").expect(200);
}

#[test]
fn tricks_with_paths_reach_nothing() {
    let server = Server::start();
    let admin = server.admin_client();
    admin.post("/v1/tenants", &json!({ "name": "acme" })).expect(201);

    for path in [
        "/v1/tenants/..%2f..%2f..%2fetc%2fpasswd",
        "/v1/tenants/%2e%2e",
        "/v1/tenants/acme%00",
        "/v1/tenants/acme/../acme",
        "/v1//tenants/acme",
        "/v1/tenants/acme/",
        "/V1/tenants/acme",
        "/v1/tenants/acme%2fprocessors",
    ] {
        let answer = admin.get(path);
        assert_eq!((answer.status, answer.code()), (404, "NOT_FOUND"), "{path}: {answer:?}");
    }
    admin.send(Method::PUT, "/v1/tenants/acme", b"").expect_problem(405, "METHOD_NOT_ALLOWED");
}

#[test]
fn more_requests_than_there_is_room_for_are_sent_away_and_the_next_one_is_not() {
    let server = Server::start_where(&[("REQUESTS_MAX", "1"), ("BODY_TIMEOUT", "30s")]);
    let address = server.api().strip_prefix("http://").unwrap();
    let mut held = TcpStream::connect(address).unwrap();
    let head =
        "POST /v1/tenants HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n";
    let head = format!("{head}expect: 100-continue\r\nauthorization: Bearer {}\r\n\r\n", server.first_token());
    held.write_all(head.as_bytes()).unwrap();
    // The server asks for the body once a handler has the request in hand.
    held.read_exact(&mut [0; 25]).unwrap();

    server.admin_client().get("/v1/status").expect_problem(503, "SERVER_BUSY");
    drop(held);

    let started = Instant::now();
    while server.admin_client().get("/v1/status").status != 200 {
        assert!(started.elapsed() < Duration::from_secs(10), "the room was not given back");
    }
}
