//! Just enough of the contract's bytes to misuse them.

/// The groups of a chunk.
pub(crate) fn groups_of(chunk: &[u8]) -> Vec<u32> {
    let mut at = 16 + (word(chunk, 4) as usize * 4).next_multiple_of(8);
    (0..word(chunk, 0))
        .map(|_| {
            let group = word(chunk, at);
            at += 24 + word(chunk, at + 16) as usize;
            group
        })
        .collect()
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word))
}

/// An op, as it should be.
pub(crate) fn op(code: u32, variable: u32, group: u32, payload: &[u8]) -> Vec<u8> {
    op_of_length(code, variable, group, payload.len() as u32, payload)
}

/// An op whose head says any length.
pub(crate) fn op_of_length(code: u32, variable: u32, group: u32, length: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = words32(&[code, variable, group, length]);
    bytes.extend_from_slice(payload);
    bytes
}

/// The row of one STRING column.
pub(crate) fn text_row(text: &[u8]) -> Vec<u8> {
    let mut row = words64(&[0, 16 | (text.len() as u64) << 32]);
    row.extend_from_slice(text);
    row.resize(row.len().next_multiple_of(8), 0);
    row
}

/// A row with its length, as in list ops.
pub(crate) fn listed(row: &[u8]) -> Vec<u8> {
    let mut bytes = words32(&[row.len() as u32, 0]);
    bytes.extend_from_slice(row);
    bytes
}

/// The payload of a map put.
pub(crate) fn entry(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = words32(&[key.len() as u32, 0]);
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value);
    bytes
}

pub(crate) fn words32(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(crate) fn words64(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(crate) const VALUE_PUT: u32 = 1;
pub(crate) const CLEAR: u32 = 2;
pub(crate) const LIST_PUT: u32 = 3;
pub(crate) const LIST_APPEND: u32 = 4;
pub(crate) const MAP_PUT: u32 = 5;
pub(crate) const TIMER_REGISTER: u32 = 7;
pub(crate) const EMIT: u32 = 9;
