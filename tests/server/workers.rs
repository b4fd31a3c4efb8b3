//! The processes that run queries, seen from outside.

use std::fs;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::{Value, json};

use super::harness::{Client, Server};
use super::queries::{wait, with_counter};
use crate::support::component;

const SCRIPT: &str = "/v1/tenants/acme/queries/script";

/// A tenant with a query that does what its rows say.
fn with_script(server: &Server) -> Client {
    let acme = server.tenant("acme");
    acme.upload("/v1/tenants/acme/processors/script", &fs::read(component("script")).unwrap());
    let query = json!({
        "name": "script", "processor": "script@1", "input_schema": "key STRING, op STRING NOT NULL, arg STRING",
        "key": ["key"], "time_mode": "processing-time",
    });
    acme.post("/v1/tenants/acme/queries", &query).expect(201);
    acme.post(&format!("{SCRIPT}/start"), &json!({})).expect(200);
    acme
}

fn step(client: &Client, op: &str, arg: &str) {
    let row = json!({ "key": "a", "op": op, "arg": arg }).to_string();
    let client = client.with("content-type", "application/x-ndjson");
    client.send(ureq::http::Method::POST, &format!("{SCRIPT}/rows"), row.as_bytes()).expect(200);
}

/// The processes that a process has started.
fn children(parent: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).unwrap();
    let children = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("children")).ok());
    children.flat_map(|line| line.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()).collect()
}

#[test]
fn workers_die_with_their_server() {
    let mut server = Server::start();
    let acme = with_counter(&server);
    wait(&acme, |query| query["state"] == "running");
    let workers = children(server.pid());
    let open =
        |pid: &u32| pidfd_open(Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap(), PidfdFlags::empty()).unwrap();
    let workers: Vec<_> = workers.iter().map(open).collect();
    assert_eq!(workers.len(), 1);

    server.kill();

    let patience = Timespec::try_from(Duration::from_secs(60)).unwrap();
    for worker in &workers {
        assert_eq!(poll(&mut [PollFd::new(worker, PollFlags::IN)], Some(&patience)), Ok(1), "the worker lives on");
    }
}

#[test]
fn a_query_that_was_unloaded_comes_back_when_a_timer_is_due() {
    let server = Server::start_where(&[("UNLOAD_AFTER", "50ms")]);
    let acme = with_script(&server);
    step(&acme, "timer.register", "+2000");

    let idle = wait_for(&acme, |query| query["state"] == "idle" && query["wakes_at"].is_string());

    assert_eq!(idle["rows_processed"], 1);
    let results = || acme.get(&format!("{SCRIPT}/results")).expect(200).body["entries"].clone();
    assert_eq!(results(), json!([]));
    wait_for(&acme, |_| results()[0]["row"]["op"] == "timer");
}

#[test]
fn what_a_processor_logs_stands_in_the_servers_log_with_its_tenant_and_query() {
    let server = Server::start_with(&["-v"]);
    let acme = with_script(&server);

    step(&acme, "log", "so far so good");

    wait_for(&acme, |_| server.log().contains("so far so good"));
    let log = server.log();
    let line = log.lines().find(|line| line.contains("so far so good")).unwrap();
    assert!(line.contains("tenant=") && line.contains("query=") && line.contains("batch=0"), "{line}");
}

#[test]
fn a_query_whose_processor_fails_says_why_it_is_tried_again() {
    let server = Server::start();
    let acme = with_script(&server);
    step(&acme, "fail", "of my own will");

    let failing = wait_for(&acme, |query| query["state"] == "restarting");

    assert_eq!(failing["reason"]["code"], "SCRIPTED");
    assert_eq!(failing["reason"]["batch"], 0);
    assert!(failing["reason"]["message"].as_str().unwrap().contains("of my own will"), "{failing:#}");
}

/// Waits until the query of the script stands like this.
fn wait_for(client: &Client, until: impl Fn(&Value) -> bool) -> Value {
    super::queries::wait_at(client, SCRIPT, until)
}
