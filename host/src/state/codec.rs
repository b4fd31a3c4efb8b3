//! The bytes of every record in family `State`; no other module knows them. Integers are little-endian.
//!
//! | tag u8 | record |
//! |---|---|
//! | 1 | row (value, map entry): schema id u16, packed row |
//! | 2 | the same with TTL: schema id u16, expiry i64, packed row |
//! | 3, 4 | list element, as 1 and 2 |
//! | 5 | list header: first u64, next u64, count u64, latest expiry i64 |
//! | 6 | timers: expiries i64, ascending |

use super::error::StateError;
use super::keys::hex;

const ROW: u8 = 1;
const ROW_TTL: u8 = 2;
const ELEMENT: u8 = 3;
const ELEMENT_TTL: u8 = 4;
const LIST_HEADER: u8 = 5;
const TIMERS: u8 = 6;

/// Whether a row stands alone or in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// The row of a value state or of a map entry.
    Single,
    /// An element of a list.
    Element,
}

/// A stored row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredRow<'a> {
    pub(crate) kind: RowKind,
    pub(crate) schema_id: u16,
    pub(crate) expiry_ms: Option<i64>,
    pub(crate) row: &'a [u8],
}

impl StoredRow<'_> {
    /// Whether its time is over.
    pub(crate) fn expired(&self, now_ms: i64) -> bool {
        expired(self.expiry_ms, now_ms)
    }
}

/// Where the elements of a list stand: sequence numbers from `first`, below `next`; gaps are possible where elements
/// expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListHeader {
    pub(crate) first: u64,
    pub(crate) next: u64,
    /// Elements stored, those included that are expired but not yet swept.
    pub(crate) count: u64,
    /// The latest expiry of all elements; `i64::MAX` without TTL. An element with it is there until then.
    pub(crate) latest_expiry_ms: i64,
}

/// Whether something with that expiry is over at `now_ms`.
pub(crate) fn expired(expiry_ms: Option<i64>, now_ms: i64) -> bool {
    expiry_ms.is_some_and(|expiry_ms| now_ms >= expiry_ms)
}

/// Appends a row record.
pub(crate) fn push_row_record(out: &mut Vec<u8>, stored: StoredRow<'_>) {
    out.push(match (stored.kind, stored.expiry_ms.is_some()) {
        (RowKind::Single, false) => ROW,
        (RowKind::Single, true) => ROW_TTL,
        (RowKind::Element, false) => ELEMENT,
        (RowKind::Element, true) => ELEMENT_TTL,
    });
    out.extend_from_slice(&stored.schema_id.to_le_bytes());
    if let Some(expiry_ms) = stored.expiry_ms {
        out.extend_from_slice(&expiry_ms.to_le_bytes());
    }
    out.extend_from_slice(stored.row);
}

/// Bytes that [`push_row_record`] appends.
pub(crate) fn row_record_len(row_len: usize, ttl: Option<i64>) -> usize {
    3 + if ttl.is_some() { 8 } else { 0 } + row_len
}

/// Reads a row record.
pub(crate) fn parse_row_record(bytes: &[u8]) -> Result<StoredRow<'_>, StateError> {
    let parsed = bytes.split_first().and_then(|(tag, rest)| {
        let kind = match *tag {
            ROW | ROW_TTL => RowKind::Single,
            ELEMENT | ELEMENT_TTL => RowKind::Element,
            _ => return None,
        };
        let (schema_id, rest) = rest.split_first_chunk::<2>()?;
        let (expiry_ms, row) = if matches!(*tag, ROW_TTL | ELEMENT_TTL) {
            let (expiry_ms, row) = rest.split_first_chunk::<8>()?;
            (Some(i64::from_le_bytes(*expiry_ms)), row)
        } else {
            (None, rest)
        };
        Some(StoredRow { kind, schema_id: u16::from_le_bytes(*schema_id), expiry_ms, row })
    });
    parsed.ok_or_else(|| damaged("a row", bytes))
}

/// Appends a list header.
pub(crate) fn push_list_header(out: &mut Vec<u8>, header: ListHeader) {
    out.push(LIST_HEADER);
    for number in [header.first, header.next, header.count] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&header.latest_expiry_ms.to_le_bytes());
}

/// Reads a list header.
pub(crate) fn parse_list_header(bytes: &[u8]) -> Result<ListHeader, StateError> {
    let parsed = bytes.split_first().filter(|(tag, _)| **tag == LIST_HEADER).and_then(|(_, rest)| {
        let (first, rest) = rest.split_first_chunk::<8>()?;
        let (next, rest) = rest.split_first_chunk::<8>()?;
        let (count, rest) = rest.split_first_chunk::<8>()?;
        let latest: [u8; 8] = rest.try_into().ok()?;
        let header = ListHeader {
            first: u64::from_le_bytes(*first),
            next: u64::from_le_bytes(*next),
            count: u64::from_le_bytes(*count),
            latest_expiry_ms: i64::from_le_bytes(latest),
        };
        let room = header.next.checked_sub(header.first)?;
        (1..=room).contains(&header.count).then_some(header)
    });
    parsed.ok_or_else(|| damaged("the header of a list", bytes))
}

/// Appends the timers of a key.
pub(crate) fn push_timers_record(out: &mut Vec<u8>, expiries_ms: &[i64]) {
    out.push(TIMERS);
    for expiry_ms in expiries_ms {
        out.extend_from_slice(&expiry_ms.to_le_bytes());
    }
}

/// Reads the timers of a key into `out`.
pub(crate) fn parse_timers_record(bytes: &[u8], out: &mut Vec<i64>) -> Result<(), StateError> {
    let (chunks, rest) = match bytes.split_first() {
        Some((&TIMERS, rest)) => rest.as_chunks::<8>(),
        _ => return Err(damaged("the timers of a key", bytes)),
    };
    out.clear();
    out.extend(chunks.iter().map(|chunk| i64::from_le_bytes(*chunk)));
    let ascending = out.is_sorted_by(|a, b| a < b);
    if rest.is_empty() && ascending && !out.is_empty() { Ok(()) } else { Err(damaged("the timers of a key", bytes)) }
}

fn damaged(what: &str, bytes: &[u8]) -> StateError {
    StateError::corrupt("family State", format!("{} is not {what}", hex(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_records_read_as_they_were_written() {
        for kind in [RowKind::Single, RowKind::Element] {
            for expiry_ms in [None, Some(i64::MIN), Some(61_000)] {
                let stored = StoredRow { kind, schema_id: 513, expiry_ms, row: b"rowbytes" };
                let mut bytes = Vec::new();
                push_row_record(&mut bytes, stored);
                assert_eq!(bytes.len(), row_record_len(8, expiry_ms));
                assert_eq!(parse_row_record(&bytes).unwrap(), stored);
            }
        }
    }

    #[test]
    fn list_headers_read_as_they_were_written() {
        let header = ListHeader { first: 3, next: 9, count: 5, latest_expiry_ms: -1 };
        let mut bytes = Vec::new();
        push_list_header(&mut bytes, header);
        assert_eq!(parse_list_header(&bytes).unwrap(), header);
    }

    #[test]
    fn a_header_that_counts_more_elements_than_it_spans_is_damage() {
        let mut bytes = Vec::new();
        push_list_header(&mut bytes, ListHeader { first: 3, next: 9, count: 7, latest_expiry_ms: 0 });
        assert_eq!(parse_list_header(&bytes).unwrap_err().code(), "STATE_CORRUPT");
    }

    #[test]
    fn timers_read_as_they_were_written_and_must_ascend() {
        let (mut bytes, mut read) = (Vec::new(), Vec::new());
        push_timers_record(&mut bytes, &[i64::MIN, 0, i64::MAX]);
        parse_timers_record(&bytes, &mut read).unwrap();
        assert_eq!(read, [i64::MIN, 0, i64::MAX]);
        bytes.clear();
        push_timers_record(&mut bytes, &[5, 5]);
        assert!(parse_timers_record(&bytes, &mut read).is_err());
    }

    #[test]
    fn something_expires_at_its_expiry_not_after_it() {
        assert!(!expired(Some(61_000), 60_999));
        assert!(expired(Some(61_000), 61_000));
        assert!(!expired(None, i64::MAX));
    }
}
