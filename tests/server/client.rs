//! The commands that talk to a server, as a person types them.

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::harness::Server;
use crate::support::{component, tidemill};

/// A person with a home of their own.
struct Person<'a> {
    server: &'a Server,
    home: TempDir,
}

impl<'a> Person<'a> {
    fn of(server: &'a Server) -> Self {
        Self { server, home: TempDir::new().unwrap() }
    }

    fn types(&self, line: &str) -> Command {
        let mut command = tidemill();
        command.args(line.split_whitespace()).env("XDG_CONFIG_HOME", self.home.path());
        command.env("TIDEMILL_SERVER", self.server.api()).current_dir(self.home.path());
        command
    }

    fn gets(&self, line: &str) -> Vec<Value> {
        let output = self.types(line).args(["-o", "json"]).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn is_refused(&self, line: &str, code: &str) -> String {
        let output = self.types(line).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        assert!(said.contains(&format!("error[{code}]")), "{line}: {said}");
        said
    }

    fn logs_in(self, options: &str) -> Self {
        let file = self.server.data().join("first-token");
        let said = self.gets(&format!("login --token-file {} {options}", file.display()));
        assert_eq!(said[0]["role"], "platform-admin");
        self
    }
}

#[test]
fn who_has_logged_in_needs_to_name_no_server_and_no_token_again() {
    let server = Server::start();
    let person = Person::of(&server).logs_in("");

    person.gets("tenant create shop");
    person.gets("tenant create bank");

    let names: Vec<_> = person.gets("tenant list").iter().map(|tenant| tenant["name"].clone()).collect();
    assert_eq!(names, ["bank", "shop"]);
}

#[test]
fn lists_are_whole_however_many_pages_they_have() {
    let server = Server::start();
    let person = Person::of(&server).logs_in("");
    let admin = server.admin_client();
    for number in 0..120 {
        admin.post("/v1/tenants", &serde_json::json!({ "name": format!("t{number}") })).expect(201);
    }
    assert_eq!(person.gets("tenant list").len(), 120);
}

#[test]
fn refusals_come_with_the_code_of_the_server_and_say_what_to_type() {
    let server = Server::start();
    let stranger = Person::of(&server);
    assert!(stranger.is_refused("tenant list", "PROFILE_INVALID").contains("tidemill login"));
    std::fs::write(stranger.home.path().join("wrong"), "tdm_wrong_wrong").unwrap();
    stranger.is_refused("login --token-file wrong", "TOKEN_INVALID");
    stranger.is_refused("tenant list", "PROFILE_INVALID");

    let person = Person::of(&server).logs_in("");
    person.gets("tenant create shop");
    person.is_refused("tenant create shop", "NAME_TAKEN");
    assert!(person.is_refused("query list", "PROFILE_INVALID").contains("--tenant"));
}

#[test]
fn a_token_is_not_sent_to_another_server() {
    let (server, other) = (Server::start(), Server::start());
    let person = Person::of(&server).logs_in("");
    let said = person.types("tenant list").env("TIDEMILL_SERVER", other.api()).output().unwrap();
    assert!(String::from_utf8(said.stderr).unwrap().contains("error[PROFILE_INVALID]"));
}

#[test]
fn results_are_printed_to_their_end_behind_a_position_and_up_to_a_limit() {
    let server = Server::start();
    let person = Person::of(&server).logs_in("--tenant shop");
    person.gets("tenant create shop");
    person.gets(&format!("deploy {}", component("counter").display()));
    let query = serde_json::json!({
        "name": "visits", "processor": "counter@live", "input_schema": "key STRING, n BIGINT NOT NULL", "key": ["key"],
    });
    std::fs::write(person.home.path().join("visits.json"), query.to_string()).unwrap();
    person.gets("query create visits.json");
    let rows: String = (0..2_500).map(|n| format!("{{\"key\":\"k{n}\",\"n\":{n}}}\n")).collect();
    std::fs::write(person.home.path().join("rows.jsonl"), rows).unwrap();

    let sent = person.gets("ingest visits rows.jsonl");

    assert_eq!(sent[0], serde_json::json!({ "rows": 2500, "requests": 3 }));
    // Follows until all are there.
    assert_eq!(person.gets("results visits --follow --limit 2500").len(), 2500);
    assert_eq!(person.gets("results visits").len(), 2500, "more than a page");
    assert_eq!(person.gets("results visits --limit 7").len(), 7);
    let positions = String::from_utf8(person.types("results visits --positions").output().unwrap().stdout).unwrap();
    let of_the_2400th = positions.lines().nth(2399).unwrap().split('\t').next().unwrap();
    assert_eq!(person.gets(&format!("results visits --after {of_the_2400th}")).len(), 100);
    person.is_refused("results visits --after 7-7-7", "RESULTS_POSITION_UNKNOWN");
    person.is_refused("results nothing", "NOT_FOUND");
}
