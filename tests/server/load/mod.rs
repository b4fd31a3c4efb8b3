//! Many tenants under load while servers, workers and compilers are killed: what was acknowledged is in the results, once.
//!
//! Clients send numbered rows and repeat each request until it is acknowledged; consumers read the results and go on where
//! they were after each break. In the end nothing that was acknowledged may be missing, nothing may be there twice, and the
//! counts of each key, which are state, must run from 1 on without a gap.

mod checker;
mod clients;
mod kills;

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;

use super::harness::Server;
use crate::support::component;

/// How much of it.
#[derive(Debug, Clone, Copy)]
struct Scale {
    tenants: usize,
    queries: usize,
    time: Duration,
    kills: u32,
    /// Of each query.
    requests_per_s: f64,
}

impl Scale {
    /// `TIDEMILL_LOAD="tenants queries seconds kills requests-per-second"`, else a minute of little; `make server-load` is
    /// ten minutes of much.
    fn wanted() -> Self {
        let text = std::env::var("TIDEMILL_LOAD").unwrap_or_else(|_| "3 2 60 10 10".to_owned());
        let numbers: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
        let [tenants, queries, seconds, kills, requests_per_s] = numbers[..] else { panic!("five numbers: {text}") };
        Self {
            tenants: tenants as usize,
            queries: queries as usize,
            time: Duration::from_secs_f64(seconds),
            kills: kills as u32,
            requests_per_s,
        }
    }
}

/// Keys of a query, rows of a request.
const KEYS: u64 = 1_000;
const ROWS: u64 = 10;
/// How long a server may take to come to the end of what was sent.
const PATIENCE: Duration = Duration::from_secs(120);

/// A query of a tenant, with what may be done to it.
#[derive(Debug, Clone)]
struct Place {
    path: String,
    token: String,
}

/// The server, and where it is: at another port after each kill.
struct Target {
    server: Mutex<Server>,
    over: AtomicBool,
}

impl Target {
    fn api(&self) -> Option<String> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).running_api().map(str::to_owned)
    }
}

#[test]
fn what_was_acknowledged_is_in_the_results_once_whatever_is_killed() {
    let scale = Scale::wanted();
    let server = Server::start();
    let places = set_up(&server, scale);
    let target = Target { server: Mutex::new(server), over: AtomicBool::new(false) };

    let begun = Instant::now();
    let (sent, seen, kills) = std::thread::scope(|scope| {
        let clients: Vec<_> =
            places.iter().map(|place| scope.spawn(|| clients::send(&target, place, scale, begun))).collect();
        let consumers: Vec<_> = places.iter().map(|place| scope.spawn(|| clients::consume(&target, place))).collect();
        let killer = scope.spawn(|| kills::kill(&target, scale, begun));
        let sent: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        let kills = killer.join().unwrap();
        checker::wait_until_processed(&target, &places, &sent);
        target.over.store(true, std::sync::atomic::Ordering::SeqCst);
        let seen: Vec<_> = consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect();
        (sent, seen, kills)
    });

    let rows: u64 = sent.iter().map(|sent| sent.requests * ROWS).sum();
    let repeated: u64 = sent.iter().map(|sent| sent.repeated).sum();
    let batches: usize = seen.iter().map(|seen| seen.batches()).sum();
    println!("{rows} rows, {repeated} requests repeated, {batches} batches with rows, {kills}");
    for ((place, sent), seen) in places.iter().zip(&sent).zip(&seen) {
        assert!(sent.requests > 0, "{}: nothing was sent", place.path);
        seen.check(place, sent);
    }
    assert!(kills.all() >= scale.kills, "{kills}");
}

fn set_up(server: &Server, scale: Scale) -> Vec<Place> {
    let bytes = std::fs::read(component("ledger")).unwrap();
    let mut places = Vec::new();
    for tenant in 0..scale.tenants {
        let name = format!("tenant-{tenant}");
        server.tenant(&name);
        let token = server.token(&name, &json!({ "role": "admin" }));
        let admin = server.client(&token);
        let base = format!("/v1/tenants/{name}");
        admin.upload(&format!("{base}/processors/ledger"), &bytes);
        for query in 0..scale.queries {
            let name = format!("query-{query}");
            let document = json!({
                "name": name,
                "processor": "ledger@1",
                "input_schema": "key STRING NOT NULL, producer STRING NOT NULL, sequence BIGINT NOT NULL",
                "key": ["key"],
                "time_mode": "processing-time",
                "key_groups": 16,
            });
            admin.post(&format!("{base}/queries"), &document).expect(201);
            let path = format!("{base}/queries/{name}");
            admin.post(&format!("{path}/start"), &json!({})).expect(200);
            places.push(Place { path, token: token.clone() });
        }
    }
    places
}
