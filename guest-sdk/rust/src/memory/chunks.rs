//! Builds chunks and lists of rows, as `wit/README.md` lays them out.

use std::collections::{BTreeMap, VecDeque};

use super::state::Key;
use crate::codec::{malformed, read_u32};
use crate::contract::{Group, Variable};
use crate::error::Result;

/// Value states that a chunk carries at most.
const PREFETCHED_MAX: usize = 8;
const CONTINUED: u32 = 1;
const CONTINUES: u32 = 2;
const UNKNOWN: u32 = 2;

/// Where chunks and pages end. A host counts bytes; so few rows that a test can reach them say the same.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) groups_per_chunk: usize,
    pub(crate) rows_per_chunk: usize,
    pub(crate) rows_per_page: usize,
}

/// What a phase has left to feed, and the groups of the chunk in hand.
#[derive(Default)]
pub(crate) struct Groups {
    left: VecDeque<Waiting>,
    in_chunk: BTreeMap<Group, Key>,
    handed_out: Group,
}

struct Waiting {
    key: Key,
    rows: VecDeque<Vec<u8>>,
    /// Set once rows of it were sent.
    group: Option<Group>,
}

impl Groups {
    pub(crate) fn new(groups: Vec<(Key, Vec<Vec<u8>>)>) -> Self {
        let left = groups.into_iter().map(|(key, rows)| Waiting { key, rows: rows.into(), group: None }).collect();
        Self { left, ..Self::default() }
    }

    pub(crate) fn key(&self, group: Group) -> Option<&Key> {
        self.in_chunk.get(&group)
    }

    /// The next chunk, with the values that `value(key, n)` gives for the n-th of the variables.
    pub(crate) fn next_chunk(
        &mut self,
        limits: &Limits,
        variables: &[Variable],
        value: impl Fn(&Key, usize) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        self.in_chunk.clear();
        if self.left.is_empty() {
            return None;
        }
        let prefetched = variables.get(..variables.len().min(PREFETCHED_MAX))?;
        let mut body = Vec::new();
        let mut rows_left = limits.rows_per_chunk;
        while self.in_chunk.len() < limits.groups_per_chunk && rows_left > 0 {
            let Some(mut waiting) = self.left.pop_front() else { break };
            let continued = waiting.group.is_some();
            let group = waiting.group.unwrap_or_else(|| {
                self.handed_out += 1;
                self.handed_out
            });
            let rows: Vec<_> = waiting.rows.drain(..waiting.rows.len().min(rows_left)).collect();
            let continues = !waiting.rows.is_empty();
            rows_left -= rows.len();

            let mut content = waiting.key.clone();
            for at in 0..prefetched.len() {
                match value(&waiting.key, at) {
                    _ if continued => push_row(&[], UNKNOWN, &mut content),
                    Some(row) => push_row(&row, 1, &mut content),
                    None => push_row(&[], 0, &mut content),
                }
            }
            for row in &rows {
                push_row(row, 0, &mut content);
            }
            let flags = if continued { CONTINUED } else { 0 } | if continues { CONTINUES } else { 0 };
            push_words(
                &[group, flags, rows.len() as u32, waiting.key.len() as u32, content.len() as u32, 0],
                &mut body,
            );
            body.extend_from_slice(&content);

            self.in_chunk.insert(group, waiting.key.clone());
            if continues {
                waiting.group = Some(group);
                self.left.push_front(waiting);
                break;
            }
        }
        let mut chunk = Vec::new();
        push_words(&[self.in_chunk.len() as u32, prefetched.len() as u32, 0, 0], &mut chunk);
        push_words(prefetched, &mut chunk);
        chunk.resize(chunk.len().next_multiple_of(8), 0);
        chunk.extend_from_slice(&body);
        Some(chunk)
    }
}

/// A row with its length and a second word before it.
pub(crate) fn push_row(row: &[u8], word: u32, bytes: &mut Vec<u8>) {
    push_words(&[row.len() as u32, word], bytes);
    bytes.extend_from_slice(row);
}

/// The rows of a list of rows.
pub(crate) fn rows(mut bytes: &[u8]) -> Result<Vec<&[u8]>> {
    let mut rows = Vec::new();
    while !bytes.is_empty() {
        let length = read_u32(bytes, 0)? as usize;
        let (row, rest) = bytes.get(8..).and_then(|rest| rest.split_at_checked(length)).ok_or_else(malformed)?;
        rows.push(row);
        bytes = rest;
    }
    Ok(rows)
}

fn push_words(words: &[u32], bytes: &mut Vec<u8>) {
    for word in words {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
}
