//! Tells new requests from repeated ones: by producer and sequence, or by idempotency key. In memory; what it knows is
//! rebuilt from the log, where each request stands with its entry.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::error::IngestError;
use super::format::RowsHeader;
use super::ingest_log::Accepted;

/// How long an idempotency key is remembered.
const KEY_KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// A producer that has sent nothing for so long may be forgotten to make room for another.
const PRODUCER_KEPT_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// Answers kept of each producer: how many requests it may have under way, and repeat.
const ANSWERS_KEPT: usize = 8;

/// Of a producer's id or an idempotency key.
pub(super) const NAME_BYTES_MAX: usize = 128;

/// How the repetition of a request is told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dedup {
    /// Not at all: rows that are sent twice are there twice.
    #[default]
    None,
    /// By the sender and its count.
    Producer {
        /// Names the sender, for good: 1 to 128 bytes.
        id: String,
        /// Grows with each new instance of the sender, which shuts out those before.
        epoch: u64,
        /// Counts the requests of the epoch, from 0.
        sequence: u64,
    },
    /// By a key that the client made up for this request: 1 to 128 bytes, remembered for 24 hours.
    Key(String),
}

/// How many are told apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) producers_max: usize,
    pub(super) keys_max: usize,
}

/// What is known of earlier requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    producers: BTreeMap<String, Producer>,
    keys: BTreeMap<String, KeyedRequest>,
    /// The keys by age, the oldest first.
    keys_by_age: VecDeque<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Producer {
    epoch: u64,
    next_sequence: u64,
    at_ms: i64,
    /// Those of its last requests, the newest last.
    answers: VecDeque<RowRange>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KeyedRequest {
    at_ms: i64,
    digest: u128,
    answer: RowRange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct RowRange {
    first_row: u64,
    rows: u64,
}

impl RowRange {
    fn repeated(self) -> Accepted {
        Accepted { first_row: self.first_row, rows: self.rows, end: self.first_row + self.rows, repeated: true }
    }
}

impl Known {
    /// The answer that the request got before; None: it is new. Makes room for it if need be.
    pub(super) fn check(
        &mut self,
        dedup: &Dedup,
        digest: u128,
        now_ms: i64,
        bounds: Bounds,
    ) -> Result<Option<Accepted>, IngestError> {
        match dedup {
            Dedup::None => Ok(None),
            Dedup::Producer { id, epoch, sequence } => {
                check_name("the id of a producer", id)?;
                match self.producers.get(id) {
                    Some(producer) => producer.check(id, *epoch, *sequence),
                    None => {
                        expect(id, 0, *sequence)?;
                        self.make_room_for_producer(now_ms, bounds.producers_max)?;
                        Ok(None)
                    }
                }
            }
            Dedup::Key(key) => {
                check_name("an idempotency key", key)?;
                self.forget_old_keys(now_ms);
                match self.keys.get(key) {
                    Some(known) if known.digest != digest => Err(IngestError::KeyReused),
                    Some(known) => Ok(Some(known.answer.repeated())),
                    None if self.keys.len() >= bounds.keys_max => {
                        Err(IngestError::KeysFull { keys_max: bounds.keys_max })
                    }
                    None => Ok(None),
                }
            }
        }
    }

    /// Learns of a request that is in the log.
    pub(super) fn learn(&mut self, request: &RowsHeader) {
        let answer = RowRange { first_row: request.first_row, rows: request.rows };
        match &request.dedup {
            Dedup::None => {}
            Dedup::Producer { id, epoch, sequence } => {
                let producer = self.producers.entry(id.clone()).or_insert_with(|| Producer::of(*epoch));
                if producer.epoch != *epoch {
                    *producer = Producer::of(*epoch);
                }
                producer.next_sequence = sequence + 1;
                producer.at_ms = request.at_ms;
                producer.answers.push_back(answer);
                if producer.answers.len() > ANSWERS_KEPT {
                    producer.answers.pop_front();
                }
            }
            Dedup::Key(key) => {
                self.forget_old_keys(request.at_ms);
                let known = KeyedRequest { at_ms: request.at_ms, digest: request.digest, answer };
                if self.keys.insert(key.clone(), known).is_none() {
                    self.keys_by_age.push_back(key.clone());
                }
            }
        }
    }

    /// When the next idempotency key is forgotten, so that requests with new ones are taken again.
    fn forget_old_keys(&mut self, now_ms: i64) {
        while let Some(oldest) = self.keys_by_age.front() {
            if self.keys.get(oldest).is_some_and(|known| now_ms < known.at_ms.saturating_add(KEY_KEPT_MS)) {
                return;
            }
            self.keys.remove(oldest);
            self.keys_by_age.pop_front();
        }
    }

    fn make_room_for_producer(&mut self, now_ms: i64, producers_max: usize) -> Result<(), IngestError> {
        if self.producers.len() < producers_max {
            return Ok(());
        }
        let idle_longest = self.producers.iter().min_by_key(|(_, producer)| producer.at_ms);
        match idle_longest {
            Some((id, producer)) if producer.at_ms.saturating_add(PRODUCER_KEPT_MS) <= now_ms => {
                let id = id.clone();
                self.producers.remove(&id);
                Ok(())
            }
            _ => Err(IngestError::ProducersFull { producers_max }),
        }
    }
}

impl Producer {
    fn of(epoch: u64) -> Self {
        Self { epoch, next_sequence: 0, at_ms: 0, answers: VecDeque::new() }
    }

    fn check(&self, id: &str, epoch: u64, sequence: u64) -> Result<Option<Accepted>, IngestError> {
        if epoch < self.epoch {
            return Err(IngestError::Fenced { producer: id.to_owned(), epoch, current: self.epoch });
        }
        if epoch > self.epoch {
            return expect(id, 0, sequence).map(|()| None);
        }
        let Some(age) = self.next_sequence.checked_sub(sequence).filter(|age| *age > 0) else {
            return expect(id, self.next_sequence, sequence).map(|()| None);
        };
        let answer = usize::try_from(age).ok().and_then(|age| self.answers.len().checked_sub(age));
        match answer.and_then(|index| self.answers.get(index)) {
            Some(answer) => Ok(Some(answer.repeated())),
            None => Err(IngestError::SequenceOld { producer: id.to_owned(), sequence, expected: self.next_sequence }),
        }
    }
}

fn expect(producer: &str, expected: u64, sequence: u64) -> Result<(), IngestError> {
    if sequence == expected && sequence < u64::MAX {
        return Ok(());
    }
    Err(IngestError::SequenceGap { producer: producer.to_owned(), sequence, expected })
}

fn check_name(what: &'static str, name: &str) -> Result<(), IngestError> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(IngestError::NameInvalid { what, bytes: name.len(), bytes_max: NAME_BYTES_MAX });
    }
    Ok(())
}
