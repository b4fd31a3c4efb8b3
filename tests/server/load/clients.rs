//! Those who send rows, and those who read results: both go on until they have what they want, whatever breaks.

use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::http::Method;

use super::checker::Seen;
use super::{KEYS, Place, ROWS, Scale, Target};
use crate::server::harness::{Answer, Client};

/// Before a request is repeated.
const PAUSE: Duration = Duration::from_millis(50);

/// What a client has sent, all of it acknowledged.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub(super) requests: u64,
    /// Requests that were taken already when they were sent again.
    pub(super) repeated: u64,
}

impl Sent {
    /// The key of a row.
    pub(super) fn key(sequence: u64) -> String {
        format!("key-{}", sequence.wrapping_mul(0x9E37_79B9_7F4A_7C15) % KEYS)
    }
}

/// Sends requests at the wanted pace until the time is over.
pub(super) fn send(target: &Target, place: &Place, scale: Scale, begun: Instant) -> Sent {
    let mut sent = Sent::default();
    while begun.elapsed() < scale.time {
        let due = Duration::from_secs_f64(sent.requests as f64 / scale.requests_per_s);
        sleep(due.saturating_sub(begun.elapsed()).min(Duration::from_millis(200)));
        if begun.elapsed() < due {
            continue;
        }
        let rows = (0..ROWS).map(|row| sent.requests * ROWS + row);
        let mut body = String::new();
        for sequence in rows {
            let key = Sent::key(sequence);
            writeln!(body, r#"{{"key":"{key}","producer":"p","sequence":{sequence}}}"#).unwrap();
        }
        let answer = until_acknowledged(target, place, sent.requests, &body);
        assert_eq!(answer.body["first_row"], sent.requests * ROWS, "{answer:?}");
        sent.repeated += u64::from(answer.body["repeated"] == true);
        sent.requests += 1;
    }
    sent
}

fn until_acknowledged(target: &Target, place: &Place, sequence: u64, body: &str) -> Answer {
    loop {
        if let Some(client) = client(target, place) {
            let client = client.with("tidemill-producer", "p").with("tidemill-epoch", "0");
            let client = client.with("tidemill-sequence", &sequence.to_string());
            let client = client.with("content-type", "application/x-ndjson");
            match client.try_send(Method::POST, &format!("{}/rows", place.path), body.as_bytes()) {
                Some(answer) if answer.status == 200 => return answer,
                Some(answer) => assert!(matches!(answer.status, 429 | 503), "{answer:?}"),
                None => {}
            }
        }
        sleep(PAUSE);
    }
}

/// Reads results until all is over and nothing more is there.
pub(super) fn consume(target: &Target, place: &Place) -> Seen {
    let mut seen = Seen::default();
    loop {
        let over = target.over.load(Ordering::SeqCst);
        let after = seen.last().map(|last| format!("?after={last}")).unwrap_or_default();
        let answer = client(target, place)
            .and_then(|client| client.try_send(Method::GET, &format!("{}/results{after}", place.path), &[]));
        let Some(answer) = answer else {
            sleep(PAUSE);
            continue;
        };
        assert!(matches!(answer.status, 200 | 503), "{answer:?}");
        let entries = answer.body["entries"].as_array().map_or(&[][..], Vec::as_slice);
        entries.iter().for_each(|entry| seen.take(entry));
        if entries.is_empty() && answer.body["end_reached"] == Value::Bool(true) {
            if over {
                return seen;
            }
            sleep(PAUSE);
        }
    }
}

fn client(target: &Target, place: &Place) -> Option<Client> {
    Some(Client::new(&target.api()?, Some(&place.token)))
}
