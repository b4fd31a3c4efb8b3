//! Rows on their way to the workers: late ones dropped, the rest grouped by key, in the one order of keys.
//!
//! Key order is (hash, key row). Key groups are ranges of the hash, so a worker's share is one contiguous run.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array, RecordBatch};

use super::error::QueryError;
use super::operator::{Group, GroupedRows, RowRef};
use super::watermark::is_late;
use crate::record::{KeyEncoder, RowLayout, Schema, cast_batch, key_group};

/// What of the input a processor gets, and by what it is grouped.
#[derive(Debug, Clone)]
pub struct Routing {
    /// The grouping key as wanted.
    pub key: RowLayout,
    /// The columns that rows shall carry.
    pub columns: Schema,
    /// Event-time column, where rows can be late or move the watermark.
    pub event_time: Option<String>,
    /// Key groups of the checkpoint.
    pub key_groups: u16,
}

/// Which rows are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LateRows {
    /// None.
    Keep,
    /// Those with an event time at or before this watermark, in milliseconds.
    DropUpTo(i64),
}

/// The rows of a batch, grouped by key.
#[derive(Debug, Default)]
pub struct Routed {
    grouped: GroupedRows,
    /// Rows dropped because they came too late.
    pub late: u64,
    /// Latest event time among all rows, late ones included, in microseconds.
    pub event_time_max_us: Option<i64>,
}

impl Routing {
    /// Routes the rows of a batch.
    ///
    /// # Errors
    /// Columns that are missing or do not widen; more than 4 G rows.
    pub fn route(&self, input: &[RecordBatch], late: LateRows) -> Result<Routed, QueryError> {
        let (mut routed, mut arrived) = (Routed::default(), Arrived::default());
        for batch in input {
            self.add(&mut routed, &mut arrived, batch, late)?;
        }
        arrived.group(&mut routed.grouped);
        Ok(routed)
    }

    fn add(
        &self,
        routed: &mut Routed,
        arrived: &mut Arrived,
        input: &RecordBatch,
        late: LateRows,
    ) -> Result<(), QueryError> {
        let keys = cast_batch(input, self.key.schema()).map_err(columns_unfit)?;
        let encoder = KeyEncoder::new(&self.key, &keys).map_err(columns_unfit)?;
        let event_times = self.event_time.as_ref().and_then(|name| {
            let (_, column) = input.schema_ref().column_with_name(name).map(|(i, _)| (i, input.column(i)))?;
            column.as_primitive_opt::<TimestampMicrosecondType>()
        });
        arrived.reserve(input.num_rows());
        let batch_index = u32::try_from(routed.grouped.batches.len()).map_err(|_| too_many_rows())?;
        for row in 0..input.num_rows() {
            let event_time = event_times.filter(|times| times.is_valid(row)).map(|times| times.value(row));
            routed.event_time_max_us = routed.event_time_max_us.max(event_time);
            if let (LateRows::DropUpTo(watermark_ms), Some(at)) = (late, event_time)
                && is_late(at, watermark_ms)
            {
                routed.late += 1;
                continue;
            }
            let hash = encoder.encode(row, &mut arrived.keys);
            let number = u32::try_from(arrived.rows.len()).map_err(|_| too_many_rows())?;
            arrived.rows.push(RowRef { batch: batch_index, row: u32::try_from(row).map_err(|_| too_many_rows())? });
            arrived.key_ends.push(arrived.keys.len());
            arrived.hashes.push((hash, number));
        }
        routed.grouped.batches.push(cast_batch(input, &self.columns).map_err(columns_unfit)?);
        Ok(())
    }
}

impl Routed {
    /// Rows that are left.
    pub fn rows(&self) -> u64 {
        self.grouped.rows.len() as u64
    }

    /// The rows of each of these ranges of key groups.
    pub fn into_shares(self, ranges: &[Range<u16>], of: u16) -> Vec<GroupedRows> {
        match ranges {
            [all] if *all == (0..of) => vec![self.grouped],
            ranges => ranges.iter().map(|key_groups| share(&self.grouped, key_groups, of)).collect(),
        }
    }
}

/// A part of the groups, with the rows and keys that are theirs.
fn share(grouped: &GroupedRows, key_groups: &Range<u16>, of: u16) -> GroupedRows {
    let place = |bound: u16| grouped.groups.partition_point(|group| key_group(group.hash, of) < bound);
    let groups = grouped.groups.get(place(key_groups.start)..place(key_groups.end)).unwrap_or_default();
    let (Some(first), Some(last)) = (groups.first(), groups.last()) else { return GroupedRows::default() };
    let (key, row) = (first.key.start, first.rows.start);
    GroupedRows {
        batches: grouped.batches.clone(),
        rows: grouped.rows.get(row..last.rows.end).unwrap_or_default().to_vec(),
        groups: groups
            .iter()
            .map(|group| Group {
                hash: group.hash,
                key: group.key.start - key..group.key.end - key,
                rows: group.rows.start - row..group.rows.end - row,
            })
            .collect(),
        keys: grouped.keys.get(key..last.key.end).unwrap_or_default().to_vec(),
    }
}

/// Rows in the order of the input.
#[derive(Debug, Default)]
struct Arrived {
    rows: Vec<RowRef>,
    /// Packed key rows, one after another.
    keys: Vec<u8>,
    /// Where each row's key ends.
    key_ends: Vec<usize>,
    /// Hash of each row's key, and the row's number.
    hashes: Vec<(u64, u32)>,
}

/// A guess at the bytes of a packed key: null bits, a slot and a short text.
const KEY_BYTES: usize = 32;

impl Arrived {
    fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
        self.keys.reserve(rows * KEY_BYTES);
        self.key_ends.reserve(rows);
        self.hashes.reserve(rows);
    }

    fn key(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let begin = number.checked_sub(1).map_or(Some(0), |before| self.key_ends.get(before).copied());
        let range = begin.zip(self.key_ends.get(number).copied()).map(|(begin, end)| begin..end);
        range.and_then(|range| self.keys.get(range)).unwrap_or_default()
    }

    /// Brings the rows into key order, a key's rows in that of the input.
    fn group(mut self, into: &mut GroupedRows) {
        let mut sorted = sort_by_hash(std::mem::take(&mut self.hashes));
        into.rows.reserve(sorted.len());
        into.groups.reserve(sorted.len());
        into.keys.reserve(self.keys.len());
        for same_hash in sorted.chunk_by_mut(|a, b| a.0 == b.0) {
            let [(_, first), others @ ..] = &*same_hash else { continue };
            // Keys that share a hash are rare, rows that share a key are not.
            if others.iter().any(|(_, number)| self.key(*number) != self.key(*first)) {
                same_hash.sort_by(|a, b| self.key(a.1).cmp(self.key(b.1)).then(a.1.cmp(&b.1)));
                for same_key in same_hash.chunk_by(|a, b| self.key(a.1) == self.key(b.1)) {
                    self.push_group(same_key, into);
                }
            } else {
                self.push_group(same_hash, into);
            }
        }
    }

    fn push_group(&self, rows: &[(u64, u32)], into: &mut GroupedRows) {
        let Some(&(hash, first)) = rows.first() else { return };
        let (key, row) = (into.keys.len(), into.rows.len());
        into.keys.extend_from_slice(self.key(first));
        into.rows.extend(rows.iter().filter_map(|(_, number)| self.rows.get(*number as usize)));
        into.groups.push(Group { hash, key: key..into.keys.len(), rows: row..into.rows.len() });
    }
}

/// Rows of a bucket, on average: so few that sorting them compares little.
const BUCKET_ROWS: usize = 8;
/// Buckets, at most: more than the cache of the processor has room for the ends of gain nothing.
const BUCKET_BITS_MAX: u32 = 14;

/// Sorts by hash, then number. Hashes spread evenly, so their first bits tell already about where each belongs; where they
/// do not, as with one key only, this is an ordinary sort.
fn sort_by_hash(hashes: Vec<(u64, u32)>) -> Vec<(u64, u32)> {
    let bits = (hashes.len() / BUCKET_ROWS).checked_ilog2().unwrap_or(0).min(BUCKET_BITS_MAX);
    let bucket = |hash: u64| hash.checked_shr(u64::BITS - bits).unwrap_or(0) as usize;
    let mut ends = vec![0_usize; (1 << bits) + 1];
    for (hash, _) in &hashes {
        if let Some(count) = ends.get_mut(bucket(*hash) + 1) {
            *count += 1;
        }
    }
    let mut sum = 0;
    for end in &mut ends {
        sum += *end;
        *end = sum;
    }
    // Each end moves from the begin of its bucket, which is the end of the one before, to its own.
    let mut sorted = vec![(0, 0); hashes.len()];
    for entry in hashes {
        if let Some(end) = ends.get_mut(bucket(entry.0)) {
            if let Some(place) = sorted.get_mut(*end) {
                *place = entry;
            }
            *end += 1;
        }
    }
    let mut begin = 0;
    for end in ends {
        if let Some(bucket) = sorted.get_mut(begin..end) {
            bucket.sort_unstable();
        }
        begin = end;
    }
    sorted
}

fn columns_unfit(error: impl std::fmt::Display) -> QueryError {
    QueryError::settings("INPUT_SCHEMA_MISMATCH", error.to_string())
}

fn too_many_rows() -> QueryError {
    QueryError::settings(
        "BATCH_TOO_LARGE",
        "a batch cannot hold more than 4,294,967,295 rows; lower limits.rows_per_batch",
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, StringArray};
    use proptest::prelude::*;

    use super::*;
    use crate::record::{GroupingKey, key_layout};

    const KEY_GROUPS: u16 = 16;

    fn route(keys: &[String], batch_rows: usize) -> Routed {
        let schema = Schema::parse("key STRING, n BIGINT").unwrap();
        let numbered: Vec<(i64, &String)> = (0..).zip(keys).collect();
        let batches: Vec<RecordBatch> = numbered
            .chunks(batch_rows)
            .map(|rows| {
                let keys = StringArray::from_iter_values(rows.iter().map(|(_, key)| key));
                let numbers = Int64Array::from_iter_values(rows.iter().map(|(number, _)| *number));
                RecordBatch::try_new(schema.to_arrow(), vec![Arc::new(keys), Arc::new(numbers)]).unwrap()
            })
            .collect();
        let routing = Routing {
            key: key_layout(&Schema::parse("key STRING").unwrap()).unwrap(),
            columns: Schema::parse("n BIGINT").unwrap(),
            event_time: None,
            key_groups: KEY_GROUPS,
        };
        routing.route(&batches, LateRows::Keep).unwrap()
    }

    /// Key rows with the numbers of their rows.
    fn groups(grouped: &GroupedRows) -> Vec<(Vec<u8>, Vec<i64>)> {
        use arrow_array::types::Int64Type;
        let number = |at: &RowRef| {
            let column = grouped.batches[at.batch as usize].column(0).as_primitive::<Int64Type>();
            column.value(at.row as usize)
        };
        let group = |group: &Group| {
            (grouped.keys[group.key.clone()].to_vec(), grouped.rows[group.rows.clone()].iter().map(number).collect())
        };
        grouped.groups.iter().map(group).collect()
    }

    proptest! {
        #[test]
        fn groups_are_in_key_order_and_their_rows_in_that_of_the_input(
            keys in prop::collection::vec("[a-d]{0,3}", 0..400),
            batch_rows in 1_usize..100,
        ) {
            let routed = route(&keys, batch_rows);

            let groups = groups(&routed.grouped);
            prop_assert_eq!(routed.rows(), keys.len() as u64);
            prop_assert!(groups.is_sorted_by(|(a, _), (b, _)| GroupingKey::new(a) < GroupingKey::new(b)));
            prop_assert!(groups.iter().all(|(_, rows)| rows.is_sorted_by(|a, b| a < b)));
            for (_, rows) in &groups {
                prop_assert!(rows.iter().all(|row| keys[*row as usize] == keys[rows[0] as usize]));
            }
        }

        #[test]
        fn shares_together_are_all_groups_in_order(keys in prop::collection::vec("[a-z]{0,2}", 0..300), cut in 0..=KEY_GROUPS) {
            let whole = groups(&route(&keys, 64).grouped);

            let shares = route(&keys, 64).into_shares(&[0..cut, cut..KEY_GROUPS], KEY_GROUPS);

            prop_assert!(shares[0].groups.iter().all(|group| key_group(group.hash, KEY_GROUPS) < cut));
            prop_assert_eq!(shares.iter().flat_map(groups).collect::<Vec<_>>(), whole);
        }

        #[test]
        fn hashes_sort_whatever_they_are(hashes in prop::collection::vec(prop_oneof![any::<u64>(), 0..4_u64, Just(u64::MAX)], 0..500)) {
            let hashes: Vec<(u64, u32)> = hashes.into_iter().zip(0..).collect();
            let mut expected = hashes.clone();
            expected.sort_unstable();

            prop_assert_eq!(sort_by_hash(hashes), expected);
        }
    }

    #[test]
    fn keys_that_share_a_hash_are_put_apart() {
        let arrived = Arrived {
            rows: (0..4).map(|row| RowRef { batch: 0, row }).collect(),
            keys: b"bbaabbaa".to_vec(),
            key_ends: vec![2, 4, 6, 8],
            hashes: (0..4).map(|number| (7, number)).collect(),
        };
        let mut grouped = GroupedRows::default();

        arrived.group(&mut grouped);

        assert_eq!(grouped.keys, b"aabb");
        assert_eq!(grouped.rows.iter().map(|row| row.row).collect::<Vec<_>>(), [1, 3, 0, 2]);
        assert_eq!(grouped.groups.iter().map(|group| group.rows.clone()).collect::<Vec<_>>(), [0..2, 2..4]);
    }
}
