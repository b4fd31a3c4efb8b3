//! The bytes of every key in the store; no other module knows them. Integers are big-endian, so bytes sort as numbers
//! do.
//!
//! | family | key |
//! |---|---|
//! | `Meta` | a name |
//! | `State` | step u8, variable u16, **rest** |
//! | `Ttl` | step u8, key group u16, expiry, variable u16, **rest** of the state key |
//! | `Timers` | step u8, key group u16, expiry, hash u64, key row |
//!
//! The rest of a state key: hash u64, length of the key row u32, key row, suffix. The length keeps a key row that
//! begins with another apart from that one's suffixes. Suffix: none for a value and for the header of a list, a
//! sequence number u64 for an element, the packed map key for an entry. Variable 0 holds the timers of a key.
//!
//! The key group is a range of the hash, so each worker owns one range of every part. An expiry is an i64 with its sign
//! bit turned over.

use super::error::StateError;
use crate::record::GroupingKey;

/// The variable that holds the timers of each key. Variables of the processor count from 1.
pub(crate) const TIMERS_VARIABLE: u16 = 0;

/// Meta key of the marker that tells which batch the store holds.
pub(crate) const APPLIED: &[u8] = b"applied";
/// Meta key of the marker that a batch has been applied in part.
pub(crate) const APPLYING: &[u8] = b"applying";
/// Meta key of the catalog of variables.
pub(crate) const CATALOG: &[u8] = b"catalog";
/// Meta key of the format version.
pub(crate) const FORMAT: &[u8] = b"format";

/// Bytes of step and variable, which a state key begins with.
const STATE_HEAD: usize = 3;
/// Bytes of step, key group and expiry, which keys of the time indexes begin with.
const TIME_HEAD: usize = 11;

/// Where and what `State` holds for a key and variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StateKey<'a> {
    pub(crate) variable: u16,
    pub(crate) key: GroupingKey<'a>,
    pub(crate) suffix: &'a [u8],
}

/// Appends the state key of a grouping key, without suffix.
pub(crate) fn push_state_key(out: &mut Vec<u8>, step: u8, variable: u16, key: GroupingKey<'_>) {
    push_variable(out, step, variable);
    out.extend_from_slice(&key.hash.to_be_bytes());
    out.extend_from_slice(&(key.row.len() as u32).to_be_bytes());
    out.extend_from_slice(key.row);
}

/// The state key of a grouping key with a suffix.
pub(crate) fn state_key(step: u8, variable: u16, key: GroupingKey<'_>, suffix: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(STATE_HEAD + 12 + key.row.len() + suffix.len());
    push_state_key(&mut out, step, variable, key);
    out.extend_from_slice(suffix);
    out
}

/// What all state keys of a variable begin with.
pub(crate) fn push_variable(out: &mut Vec<u8>, step: u8, variable: u16) {
    out.push(step);
    out.extend_from_slice(&variable.to_be_bytes());
}

/// Takes a state key apart.
pub(crate) fn parse_state_key(bytes: &[u8]) -> Result<StateKey<'_>, StateError> {
    let parsed = bytes.get(1..).and_then(|bytes| {
        let (variable, rest) = take_u16(bytes)?;
        let (hash, rest) = take_u64(rest)?;
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let (row, suffix) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
        Some(StateKey { variable, key: GroupingKey { hash, row }, suffix })
    });
    parsed.ok_or_else(|| StateError::corrupt("family State", format!("key {} is cut short", hex(bytes))))
}

/// Sequence number of a list element, from its key's suffix.
pub(crate) fn parse_sequence(suffix: &[u8]) -> Result<u64, StateError> {
    let bytes =
        suffix.try_into().map_err(|_| StateError::corrupt("family State", "a list element without sequence number"))?;
    Ok(u64::from_be_bytes(bytes))
}

/// Appends the index key of something that expires. `state_key` is that of the record.
pub(crate) fn push_ttl_key(out: &mut Vec<u8>, key_group: u16, expiry_ms: i64, state_key: &[u8]) {
    let (step, rest) = state_key.split_first().map_or((0, state_key), |(step, rest)| (*step, rest));
    push_time(out, step, key_group, expiry_ms);
    out.extend_from_slice(rest);
}

/// From an index key to the expiry and the key of the record.
pub(crate) fn parse_ttl_key(bytes: &[u8]) -> Result<(i64, Vec<u8>), StateError> {
    let parsed = bytes.split_at_checked(TIME_HEAD).and_then(|(head, rest)| {
        let mut state_key = Vec::with_capacity(1 + rest.len());
        state_key.push(*head.first()?);
        state_key.extend_from_slice(rest);
        Some((time_of(head)?, state_key))
    });
    parsed.ok_or_else(|| StateError::corrupt("family Ttl", format!("key {} is cut short", hex(bytes))))
}

/// Appends the key of a timer in the time index.
pub(crate) fn push_timer_key(out: &mut Vec<u8>, step: u8, key_group: u16, expiry_ms: i64, key: GroupingKey<'_>) {
    push_time(out, step, key_group, expiry_ms);
    out.extend_from_slice(&key.hash.to_be_bytes());
    out.extend_from_slice(key.row);
}

/// From a key of the time index to expiry and grouping key.
pub(crate) fn parse_timer_key(bytes: &[u8]) -> Result<(i64, GroupingKey<'_>), StateError> {
    let parsed = bytes.split_at_checked(TIME_HEAD).and_then(|(head, rest)| {
        let (hash, row) = take_u64(rest)?;
        Some((time_of(head)?, GroupingKey { hash, row }))
    });
    parsed.ok_or_else(|| StateError::corrupt("family Timers", format!("key {} is cut short", hex(bytes))))
}

/// Step, key group and expiry of a key in either time index.
pub(crate) fn parse_time(bytes: &[u8]) -> Option<(u8, u16, i64)> {
    let head = bytes.get(..TIME_HEAD)?;
    let (key_group, _) = take_u16(head.get(1..)?)?;
    Some((*head.first()?, key_group, time_of(head)?))
}

/// Bounds `[from, to)` of what a time index holds of one key group, with expiries from `from_ms` to `until_ms`
/// inclusive.
pub(crate) fn time_range(step: u8, key_group: u16, from_ms: i64, until_ms: i64) -> (Vec<u8>, Vec<u8>) {
    let mut from = Vec::with_capacity(TIME_HEAD);
    push_time(&mut from, step, key_group, from_ms);
    let mut until = Vec::with_capacity(TIME_HEAD);
    push_time(&mut until, step, key_group, until_ms);
    (from, successor(until))
}

/// The least key after all keys that begin with `prefix`.
pub(crate) fn successor(mut prefix: Vec<u8>) -> Vec<u8> {
    while let Some(last) = prefix.pop() {
        if last < u8::MAX {
            prefix.push(last + 1);
            break;
        }
    }
    prefix
}

/// Bytes in an error message, cut to a length that a person can read.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const BYTES_SHOWN_MAX: usize = 64;
    let mut out: String = bytes.iter().take(BYTES_SHOWN_MAX).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > BYTES_SHOWN_MAX {
        out.push_str("...");
    }
    out
}

fn push_time(out: &mut Vec<u8>, step: u8, key_group: u16, expiry_ms: i64) {
    out.push(step);
    out.extend_from_slice(&key_group.to_be_bytes());
    out.extend_from_slice(&(expiry_ms.cast_unsigned() ^ (1 << 63)).to_be_bytes());
}

fn time_of(head: &[u8]) -> Option<i64> {
    let (ordered, _) = take_u64(head.get(3..)?)?;
    Some((ordered ^ (1 << 63)).cast_signed())
}

fn take_u16(bytes: &[u8]) -> Option<(u16, &[u8])> {
    bytes.split_first_chunk::<2>().map(|(head, rest)| (u16::from_be_bytes(*head), rest))
}

fn take_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    bytes.split_first_chunk::<8>().map(|(head, rest)| (u64::from_be_bytes(*head), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: GroupingKey<'_> = GroupingKey { hash: 0x0102_0304_0506_0708, row: b"key-row!" };

    #[test]
    fn state_keys_come_apart_as_they_were_made() {
        let bytes = state_key(7, 300, KEY, b"suffix");
        assert_eq!(parse_state_key(&bytes).unwrap(), StateKey { variable: 300, key: KEY, suffix: b"suffix" });
    }

    #[test]
    fn a_key_row_that_begins_with_another_never_lies_within_its_suffixes() {
        let short = GroupingKey { hash: 5, row: b"aaaaaaaa" };
        let long = GroupingKey { hash: 5, row: b"aaaaaaaabbbbbbbb" };
        assert!(!state_key(0, 1, long, b"").starts_with(&state_key(0, 1, short, b"")));
    }

    #[test]
    fn expiries_sort_as_numbers_do_from_the_least_to_the_greatest() {
        let expiries = [i64::MIN, i64::MIN + 1, -1, 0, 1, 1_000, i64::MAX - 1, i64::MAX];
        let keys: Vec<Vec<u8>> = expiries
            .iter()
            .map(|&expiry_ms| {
                let mut out = Vec::new();
                push_timer_key(&mut out, 1, 2, expiry_ms, KEY);
                assert_eq!(parse_timer_key(&out).unwrap(), (expiry_ms, KEY));
                assert_eq!(parse_time(&out), Some((1, 2, expiry_ms)));
                out
            })
            .collect();
        assert!(keys.is_sorted());
    }

    #[test]
    fn a_time_range_holds_its_last_expiry_also_when_that_is_the_greatest() {
        for until_ms in [-5, 0, i64::MAX] {
            let (from, to) = time_range(0, u16::MAX, i64::MIN, until_ms);
            let mut key = Vec::new();
            push_timer_key(&mut key, 0, u16::MAX, until_ms, KEY);
            assert!(from <= key && key < to);
        }
    }

    #[test]
    fn ttl_keys_lead_back_to_the_record() {
        let record = state_key(3, 9, KEY, &7_u64.to_be_bytes());
        let mut bytes = Vec::new();
        push_ttl_key(&mut bytes, 200, -4, &record);
        assert_eq!(parse_ttl_key(&bytes).unwrap(), (-4, record));
    }

    #[test]
    fn keys_cut_short_are_damage_not_a_panic() {
        let bytes = state_key(7, 300, KEY, b"");
        for len in 0..bytes.len() {
            assert_eq!(parse_state_key(&bytes[..len]).unwrap_err().code(), "STATE_CORRUPT");
        }
        assert!(parse_ttl_key(&bytes[..5]).is_err());
        assert!(parse_timer_key(&bytes[..12]).is_err());
        assert!(parse_sequence(b"abc").is_err());
    }
}
