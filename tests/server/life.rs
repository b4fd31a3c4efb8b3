//! Start, stop, and what keeps a server from starting.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::harness::{Client, Server};
use crate::support::{fail_with, succeed, tidemill};

#[test]
fn a_server_starts_on_an_empty_folder_and_stops_when_asked() {
    let mut server = Server::start();

    let status = server.admin_client().get("/v1/status").expect(200);

    assert_eq!(status.body["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn what_was_answered_is_there_after_a_kill() {
    let mut server = Server::start();
    server.admin_client().post("/v1/tenants", &json!({ "name": "acme" })).expect(201);

    server.kill();
    server.restart();

    server.admin_client().get("/v1/tenants/acme").expect(200);
}

#[test]
fn the_first_token_is_in_a_file_for_its_owner_and_never_in_the_log() {
    let mut server = Server::start();
    let token = server.first_token();

    let mode = std::fs::metadata(server.data().join("first-token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!server.log().contains(token.rsplit('_').next().unwrap()));

    server.stop();
    server.restart();
    assert_eq!(server.first_token(), token, "a second start makes no second token");
}

#[test]
fn a_second_server_on_the_same_folder_is_refused() {
    let server = Server::start();

    let said = fail_with(&mut server.command(), "SERVER_ALREADY_RUNNING");

    assert!(said.err.contains("tidemill serve --data"), "{}", said.err);
}

#[test]
fn a_port_that_is_taken_is_named_with_the_next_command_to_type() {
    let server = Server::start();
    let taken = server.api().strip_prefix("http://").unwrap();
    let place = tempfile::tempdir().unwrap();

    let mut command = tidemill();
    command.arg("serve").arg("--data").arg(place.path().join("data")).args(["--listen", taken]);
    let said = fail_with(&mut command, "PORT_TAKEN");

    assert!(said.err.contains("tidemill serve --listen 127.0.0.1:0"), "{}", said.err);
}

#[test]
fn nobody_but_this_machine_is_let_in_without_tls() {
    let place = tempfile::tempdir().unwrap();
    let mut command = tidemill();
    command.arg("serve").arg("--data").arg(place.path().join("data")).args(["--listen", "0.0.0.0:0"]);

    fail_with(&mut command, "TLS_REQUIRED");

    assert!(!place.path().join("data").exists(), "it is refused before anything is made");
}

#[test]
fn with_a_certificate_it_speaks_tls_on_both_ports() {
    let place = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let (cert, key) = (place.path().join("cert.pem"), place.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let paths = [cert.to_str().unwrap(), key.to_str().unwrap()];

    let server = Server::start_with(&["--tls-cert", paths[0], "--tls-key", paths[1]]);

    Client::with_certificate(server.api(), Some(&server.first_token()), &cert).get("/v1/status").expect(200);
    Client::with_certificate(server.admin(), None, &cert).get("/healthz").expect(200);
}

#[test]
fn check_prints_the_settings_that_hold_and_touches_nothing() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("serve.toml");
    std::fs::write(&file, "listen = '127.0.0.1:1'\nrequests_max = 7\ndata = '/file'\n").unwrap();
    let mut command = tidemill();
    command.args(["serve", "--check", "--output", "json", "--listen", "127.0.0.1:3", "--config"]).arg(&file);
    command.env("TIDEMILL_SERVE_DATA", place.path().join("data")).env("TIDEMILL_SERVE_LISTEN", "127.0.0.1:2");

    let said = succeed(&mut command);

    let settings: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(settings["listen"], "127.0.0.1:3");
    assert_eq!(settings["requests_max"], 7);
    assert_eq!(settings["data"], place.path().join("data").to_str().unwrap());
    assert!(!place.path().join("data").exists());
}

#[test]
fn health_is_on_the_admin_port_and_the_api_is_not() {
    let server = Server::start();
    let admin = Client::new(server.admin(), None);

    assert_eq!(admin.get("/healthz").expect(200).text, "ok\n");
    assert_eq!(admin.get("/readyz").expect(200).text, "ready\n");
    server.stranger().get("/v1/status").expect(401);
    let metrics = admin.get("/metrics").expect(200).text;
    assert!(metrics.contains("tidemill_http_requests_total{operation=\"getStatus\",status=\"401\"} 1"), "{metrics}");
    admin.get("/v1/status").expect(404);
    server.stranger().get("/healthz").expect(404);
}

#[test]
fn a_lost_token_is_replaced_offline_and_only_then() {
    let mut server = Server::start();
    server.tenant("acme");
    let create = |data: &std::path::Path, more: &str| {
        let mut command = tidemill();
        command.args(["token", "create", "--data"]).arg(data).args(more.split_whitespace());
        command
    };
    let data = server.data();
    fail_with(&mut create(&data, "--role platform-admin"), "SERVER_ALREADY_RUNNING");
    server.stop();

    fail_with(&mut create(&data, "--role admin --tenant nobody"), "TENANT_UNKNOWN");
    fail_with(&mut create(&data, "--role admin"), "TOKEN_SCOPE_INVALID");
    fail_with(&mut create(&data.join("absent"), "--role platform-admin"), "DATA_NOT_FOUND");
    let token = succeed(&mut create(&data, "--role viewer --tenant acme --lifetime 1h")).out;

    server.restart();
    let who = server.client(token.trim()).get("/v1/whoami").expect(200).body;
    assert_eq!((&who["role"], &who["tenant"]), (&json!("viewer"), &json!("acme")));
}
