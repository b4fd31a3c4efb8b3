//! Uploads, versions, aliases and signatures.

use std::fs;

use ed25519_dalek::{Signer, SigningKey};
use serde_json::json;
use tidemill_host::server::id::hex;
use ureq::http::Method;

use super::harness::{Answer, Client, Server};
use crate::support::component;

const COUNTER: &str = "/v1/tenants/acme/processors/counter";

fn counter() -> Vec<u8> {
    fs::read(component("counter")).unwrap()
}

fn upload(client: &Client, bytes: &[u8]) -> Answer {
    let path = format!("{COUNTER}/versions?wait=60s");
    client.with("content-type", "application/wasm").send(Method::POST, &path, bytes)
}

/// The bytes with a custom section behind them: another component that does the same.
fn variant(bytes: &[u8], mark: u8) -> Vec<u8> {
    // Section 0 of 3 bytes: a name of 1 byte, and 1 byte.
    [bytes, &[0, 3, 1, b'x', mark]].concat()
}

#[test]
fn an_upload_becomes_a_version_and_the_same_bytes_are_the_same_version() {
    let mut server = Server::start();
    let acme = server.tenant("acme");

    let first = upload(&acme, &counter()).expect(201);
    let second = upload(&acme, &variant(&counter(), 1)).expect(201);
    let again = upload(&acme, &counter()).expect(200);

    assert_eq!(first.header("location"), format!("{COUNTER}/versions/1"));
    assert_eq!((&first.body["version"], &second.body["version"]), (&json!(1), &json!(2)));
    assert_eq!(again.body, first.body);
    assert_eq!(acme.get(first.header("location")).expect(200).body, first.body);
    let listed = acme.get(&format!("{COUNTER}/versions")).expect(200).body;
    assert_eq!(listed["items"], json!([first.body, second.body]));
    server.kill();
    server.restart();
    let acme = server.client(&server.token("acme", &json!({ "role": "viewer" })));
    assert_eq!(acme.get(first.header("location")).expect(200).body, first.body, "a kill loses no version");
}

#[test]
fn who_does_not_wait_is_told_where_to_look() {
    let server = Server::start();
    let acme = server.tenant("acme");

    let begun = acme.send(Method::POST, &format!("{COUNTER}/versions"), &counter()).expect(202);

    assert_eq!(begun.body["state"], "running");
    let location = begun.header("location");
    let version = acme.get(&format!("{location}?wait=60s")).expect(201);
    assert_eq!(version.body["version"], 1);
    let operation = acme.get(location).expect(200).body;
    assert_eq!((&operation["state"], &operation["result"]), (&json!("done"), &version.body));
    server.tenant("other");
    let other = server.client(&server.token("other", &json!({ "role": "admin" })));
    other.get(&location.replace("acme", "other")).expect_problem(404, "NOT_FOUND");
}

#[test]
fn what_is_no_processor_is_refused_with_its_code_and_the_server_goes_on() {
    let server = Server::start();
    let acme = server.tenant("acme");
    let cut = counter().split_at(1000).0.to_vec();
    let bad: [(&str, &[u8]); 4] =
        [("empty", b""), ("text", b"hello"), ("a core module", b"\0asm\x01\0\0\0"), ("cut off", &cut)];

    for (what, bytes) in bad {
        let refused = upload(&acme, bytes).expect(422);
        assert!(refused.code().starts_with("COMPONENT_"), "{what}: {refused:?}");
        assert_eq!(refused.header("content-type"), "application/problem+json");
    }

    upload(&acme, &counter()).expect(201);
}

#[test]
fn an_upload_has_a_size_that_holds_while_it_streams() {
    let server = Server::start_where(&[("UPLOAD_MAX_BYTES", "1000")]);
    let acme = server.tenant("acme");

    let refused = upload(&acme, &counter()).expect_problem(413, "BODY_TOO_LARGE");

    assert_eq!(refused.body["maxBytes"], 1000);
    let chunked =
        acme.with("transfer-encoding", "chunked").send(Method::POST, &format!("{COUNTER}/versions"), &[0; 1001]);
    chunked.expect_problem(413, "BODY_TOO_LARGE");
    assert_eq!(fs::read_dir(server.data().join("tmp")).unwrap().count(), 0, "nothing is left of it");
}

#[test]
fn an_alias_names_a_version_until_it_is_given_to_another() {
    let server = Server::start();
    let acme = server.tenant("acme");
    upload(&acme, &counter()).expect(201);
    upload(&acme, &variant(&counter(), 1)).expect(201);
    let live = format!("{COUNTER}/aliases/live");

    let first = acme.put(&live, &json!({ "version": 1 })).expect(200);
    acme.put(&live, &json!({ "version": 9 })).expect_problem(422, "VERSION_UNKNOWN");
    acme.delete(&format!("{COUNTER}/versions/1")).expect_problem(409, "VERSION_IN_USE");
    let mine = acme.with("if-match", first.header("etag"));
    mine.put(&live, &json!({ "version": 2 })).expect(200);
    mine.put(&live, &json!({ "version": 1 })).expect_problem(412, "PRECONDITION_FAILED");

    assert_eq!(acme.get(&live).expect(200).body, json!({ "alias": "live", "version": 2 }));
    assert_eq!(acme.get(COUNTER).expect(200).body["aliases"], json!({ "live": 2 }));
    acme.delete(&format!("{COUNTER}/versions/1")).expect(204);
    let next = upload(&acme, &variant(&counter(), 2)).expect(201);
    assert_eq!(next.body["version"], 3, "a number is not given out twice");
}

#[test]
fn a_component_is_kept_as_long_as_some_tenant_has_a_version_of_it() {
    let server = Server::start();
    let (acme, other) = (server.tenant("acme"), server.tenant("other"));
    let components = || fs::read_dir(server.data().join("components")).unwrap().count();
    upload(&acme, &counter()).expect(201);
    let theirs = "/v1/tenants/other/processors/same/versions?wait=60s";
    other.send(Method::POST, theirs, &counter()).expect(201);
    assert_eq!(components(), 1);

    acme.delete(COUNTER).expect(204);
    assert_eq!(components(), 1);
    other.delete("/v1/tenants/other/processors/same/versions/1").expect(204);
    assert_eq!((components(), fs::read_dir(server.data().join("native")).unwrap().count()), (0, 0));
}

#[test]
fn a_tenant_that_requires_signatures_takes_only_what_its_keys_have_signed() {
    let server = Server::start();
    let acme = server.tenant("acme");
    let key = SigningKey::from_bytes(&[7; 32]);
    let public = json!({ "public_key": hex(key.verifying_key().as_bytes()) });
    acme.put("/v1/tenants/acme/signing-keys/release", &public).expect(200);
    acme.patch("/v1/tenants/acme", &json!({ "signatures": "require" })).expect(200);
    let signed = |key: &SigningKey, name: &str| {
        let signature = key.sign(&counter()).to_bytes();
        acme.with("tidemill-signature", &format!("{name}:{}", hex(&signature)))
    };

    upload(&acme, &counter()).expect_problem(422, "SIGNATURE_MISSING");
    upload(&acme.with("tidemill-signature", "release:00"), &counter()).expect_problem(422, "SIGNATURE_INVALID");
    upload(&signed(&SigningKey::from_bytes(&[8; 32]), "release"), &counter()).expect_problem(422, "SIGNATURE_INVALID");
    upload(&signed(&key, "unknown"), &counter()).expect_problem(422, "SIGNATURE_INVALID");
    upload(&signed(&key, "release"), &variant(&counter(), 1)).expect_problem(422, "SIGNATURE_INVALID");
    let version = upload(&signed(&key, "release"), &counter()).expect(201);

    assert_eq!(version.body["signed_by"], "release");
    acme.patch("/v1/tenants/acme", &json!({ "signatures": "warn" })).expect(200);
    let unsigned = upload(&acme, &variant(&counter(), 2)).expect(201);
    assert!(unsigned.body["signed_by"].is_null());
}

#[test]
fn an_operation_that_a_kill_cut_off_has_failed_after_the_restart() {
    let mut server = Server::start();
    let acme = server.tenant("acme");
    let begun = acme.send(Method::POST, &format!("{COUNTER}/versions"), &counter()).expect(202);

    server.kill();
    server.restart();

    let acme = server.client(&server.token("acme", &json!({ "role": "admin" })));
    let operation = acme.get(begun.header("location")).expect(200).body;
    assert_eq!(operation["state"], "failed");
    assert_eq!(operation["problem"]["code"], "OPERATION_INTERRUPTED");
    upload(&acme, &counter()).expect(201);
}
