//! Compares what was acknowledged with what came out.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::clients::Sent;
use super::{PATIENCE, Place, ROWS, Target};
use crate::server::harness::Client;

/// What a consumer was given.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Generation, batch, index.
    last: Option<(u64, u64, u64)>,
    batches: BTreeSet<u64>,
    /// Numbers of rows by key, in the order of the results.
    keys: BTreeMap<String, Vec<u64>>,
    /// Keys that said that they were silent.
    silences: u64,
}

impl Seen {
    /// The position of the last row.
    pub(super) fn last(&self) -> Option<String> {
        self.last.map(|(generation, batch, index)| format!("{generation}-{batch}-{index}"))
    }

    pub(super) fn batches(&self) -> usize {
        self.batches.len()
    }

    /// Takes an entry, which must stand behind all before.
    pub(super) fn take(&mut self, entry: &Value) {
        let text = entry["position"].as_str().unwrap();
        let numbers: Vec<u64> = text.split('-').map(|number| number.parse().unwrap()).collect();
        let position = (numbers[0], numbers[1], numbers[2]);
        assert!(self.last < Some(position), "{text} comes behind {:?}", self.last);
        self.last = Some(position);
        self.batches.insert(position.1);

        let row = &entry["row"];
        let rows = self.keys.entry(row["key"].as_str().unwrap().to_owned()).or_default();
        match row["sequence"].as_u64() {
            Some(sequence) => rows.push(sequence),
            None => self.silences += 1,
        }
        // What the processor has counted is what has come: state is neither behind nor ahead of the results.
        assert_eq!(row["count"].as_u64(), Some(rows.len() as u64), "{entry}");
    }

    /// Every row that was sent is there once, under its key.
    pub(super) fn check(&self, place: &Place, sent: &Sent) {
        let mut expected: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for sequence in 0..sent.requests * ROWS {
            expected.entry(Sent::key(sequence)).or_default().push(sequence);
        }
        for (key, rows) in &expected {
            assert_eq!(self.keys.get(key), Some(rows), "{} {key}", place.path);
        }
        assert_eq!(self.keys.len(), expected.len(), "{}: keys that nobody sent", place.path);
        assert!(self.silences > 0, "{}: no timer fired", place.path);
    }
}

/// Waits until every query has processed every row, and told of the silence that followed.
pub(super) fn wait_until_processed(target: &Target, places: &[Place], sent: &[Sent]) {
    let begun = Instant::now();
    for (place, sent) in places.iter().zip(sent) {
        loop {
            let client = Client::new(&target.api().unwrap(), Some(&place.token));
            let query = client.get(&place.path).expect(200).body;
            // An idle query has no timer left but those of its time to live.
            let processed = query["rows_processed"] == sent.requests * ROWS;
            if processed && query["state"] == "idle" {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{} of {} rows, {query:#}", place.path, sent.requests * ROWS);
            sleep(Duration::from_millis(100));
        }
    }
}
