//! Rows on their way to the workers: late ones dropped, the rest grouped by key, in the one order of keys.
//!
//! Key order is (hash, key row). Key groups are ranges of the hash, so a worker's share is one contiguous run.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array, RecordBatch, RecordBatchOptions};
use arrow_schema::ArrowError;
use arrow_select::interleave::interleave;

use super::error::QueryError;
use super::operator::{Group, GroupedRows};
use super::watermark::is_late;
use crate::record::{GroupingKey, KeyEncoder, RowLayout, Schema, cast_batch, key_group};

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

/// The rows of a batch, in the order of their keys' hashes.
#[derive(Debug, Default)]
pub struct Routed {
    /// The wanted columns, in the order of the input.
    batches: Vec<RecordBatch>,
    rows: Vec<Row>,
    /// Packed key rows, one for each row.
    keys: Vec<u8>,
    /// Rows dropped because they came too late.
    pub late: u64,
    /// Latest event time up to the horizon among the rows of each batch of the input, late ones included, in microseconds.
    pub event_time_max_us: Vec<Option<i64>>,
    /// Rows with an event time behind the horizon.
    pub in_future: u64,
}

/// Where a row and its key stand. In order of the hash, then of the input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    hash: u64,
    batch: u32,
    row: u32,
    /// Where its key begins, in words of [`KEY_WORD`] bytes, and how many it has.
    key: u32,
    key_words: u32,
}

impl Row {
    /// Hash of its key.
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

/// A key and its rows, in the order of the input.
#[derive(Debug, Clone, Default)]
pub struct KeyRows {
    /// The packed key row.
    pub key: Vec<u8>,
    /// Of a [`Routed`] that knows them.
    pub rows: Vec<Row>,
}

/// Packed rows are a multiple of it.
const KEY_WORD: usize = 8;

/// A guess at the bytes of a packed key: null bits, a slot and a short text.
const KEY_BYTES: usize = 32;

impl Routing {
    /// Routes the rows of a batch. Those with an event time after the horizon of their record batch, if that has one, are
    /// routed, but do not count for the latest one.
    ///
    /// # Errors
    /// Columns that are missing or do not widen; more than 4 G rows.
    pub fn route(&self, input: &[RecordBatch], late: LateRows, horizons_us: &[i64]) -> Result<Routed, QueryError> {
        let mut routed = Routed::default();
        for (number, batch) in input.iter().enumerate() {
            self.add(&mut routed, batch, late, horizons_us.get(number).copied().unwrap_or(i64::MAX))?;
        }
        routed.rows = sort_by_hash(&routed.rows);
        Ok(routed)
    }

    fn add(&self, routed: &mut Routed, input: &RecordBatch, late: LateRows, horizon_us: i64) -> Result<(), QueryError> {
        let keys = cast_batch(input, self.key.schema()).map_err(columns_unfit)?;
        let encoder = KeyEncoder::new(&self.key, &keys).map_err(columns_unfit)?;
        let event_times = self.event_time.as_ref().and_then(|name| {
            let (_, column) = input.schema_ref().column_with_name(name).map(|(i, _)| (i, input.column(i)))?;
            column.as_primitive_opt::<TimestampMicrosecondType>()
        });
        routed.rows.reserve(input.num_rows());
        routed.keys.reserve(input.num_rows() * KEY_BYTES);
        let batch = u32::try_from(routed.batches.len()).map_err(|_| too_many_rows())?;
        let mut event_time_max_us = None;
        for number in 0..input.num_rows() {
            let event_time = event_times.filter(|times| times.is_valid(number)).map(|times| times.value(number));
            if event_time.is_none_or(|at| at <= horizon_us) {
                event_time_max_us = event_time_max_us.max(event_time);
            } else {
                routed.in_future += 1;
            }
            if let (LateRows::DropUpTo(watermark_ms), Some(at)) = (late, event_time)
                && is_late(at, watermark_ms)
            {
                routed.late += 1;
                continue;
            }
            let begin = routed.keys.len();
            let hash = encoder.encode(number, &mut routed.keys);
            let word = |bytes: usize| u32::try_from(bytes / KEY_WORD).map_err(|_| too_many_rows());
            let row = u32::try_from(number).map_err(|_| too_many_rows())?;
            let (key, key_words) = (word(begin)?, word(routed.keys.len() - begin)?);
            routed.rows.push(Row { hash, batch, row, key, key_words });
        }
        routed.event_time_max_us.push(event_time_max_us);
        routed.batches.push(cast_batch(input, &self.columns).map_err(columns_unfit)?);
        Ok(())
    }
}

impl Routed {
    /// Rows that are left.
    pub fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    /// The rows of each of these ranges of key groups, grouped by key.
    ///
    /// # Errors
    /// Rows too large for the batches they are gathered in.
    pub fn into_shares(self, ranges: &[Range<u16>], of: u16) -> Result<Vec<GroupedRows>, QueryError> {
        let place = |bound: u16| self.rows.partition_point(|row| key_group(row.hash, of) < bound);
        let share = |range: &Range<u16>| self.share(place(range.start)..place(range.end));
        ranges.iter().map(share).collect()
    }

    /// Leaves rows out, by their [numbers](Self::number), ascending.
    pub fn leave_out(&mut self, numbers: &[u64]) {
        if !numbers.is_empty() {
            let begins = self.begins();
            self.rows.retain(|row| numbers.binary_search(&number(&begins, row)).is_err());
        }
    }

    /// The number of a row among all that were routed, late ones and those left out included, from 0: the same however
    /// the input is cut into record batches.
    pub fn number(&self, row: &Row) -> u64 {
        number(&self.begins(), row)
    }

    /// The number of the first row of each batch.
    fn begins(&self) -> Vec<u64> {
        let mut next = 0;
        let begin = |batch: &RecordBatch| {
            let begin = next;
            next += batch.num_rows() as u64;
            begin
        };
        self.batches.iter().map(begin).collect()
    }

    /// The rows of a range of key groups, key by key.
    pub fn by_key(&self, range: &Range<u16>, of: u16) -> Vec<KeyRows> {
        let place = |bound: u16| self.rows.partition_point(|row| key_group(row.hash, of) < bound);
        let rows = self.rows.get(place(range.start)..place(range.end)).unwrap_or_default();
        let mut keys = Vec::new();
        self.each_group(rows, |rows| {
            let key = rows.first().map(|row| self.key(row).to_vec()).unwrap_or_default();
            keys.push(KeyRows { key, rows: rows.to_vec() });
        });
        keys
    }

    /// One key with its rows; there may be none.
    pub fn of_key(&self, key: GroupingKey<'_>) -> KeyRows {
        let begin = self.rows.partition_point(|row| row.hash < key.hash);
        let same_hash = self.rows.get(begin..).unwrap_or_default().iter().take_while(|row| row.hash == key.hash);
        let rows = same_hash.filter(|row| self.key(row) == key.row).copied().collect();
        KeyRows { key: key.row.to_vec(), rows }
    }

    /// Rows of some keys, which are in order.
    ///
    /// # Errors
    /// As [`Self::into_shares`].
    pub fn gather<'r>(&self, keys: impl IntoIterator<Item = &'r [Row]>) -> Result<GroupedRows, QueryError> {
        let (mut grouped, mut order) = (GroupedRows::default(), Vec::new());
        keys.into_iter().for_each(|rows| self.push_group(rows, &mut grouped, &mut order));
        grouped.batches = gather(&self.batches, &order)?;
        Ok(grouped)
    }

    fn share(&self, rows: Range<usize>) -> Result<GroupedRows, QueryError> {
        let rows = self.rows.get(rows).unwrap_or_default();
        let mut order = Vec::with_capacity(rows.len());
        let mut grouped = GroupedRows::default();
        grouped.groups.reserve(rows.len());
        self.each_group(rows, |same_key| self.push_group(same_key, &mut grouped, &mut order));
        grouped.batches = gather(&self.batches, &order)?;
        Ok(grouped)
    }

    /// Visits rows in the order of their keys, those of a key together.
    #[inline]
    fn each_group(&self, rows: &[Row], mut visit: impl FnMut(&[Row])) {
        for same_hash in rows.chunk_by(|a, b| a.hash == b.hash) {
            let [first, others @ ..] = same_hash else { continue };
            // Keys that share a hash are rare, rows that share a key are not.
            if others.iter().all(|other| self.key(other) == self.key(first)) {
                visit(same_hash);
            } else {
                let mut sorted = same_hash.to_vec();
                sorted.sort_by(|a, b| self.key(a).cmp(self.key(b)).then(a.cmp(b)));
                sorted.chunk_by(|a, b| self.key(a) == self.key(b)).for_each(&mut visit);
            }
        }
    }

    fn push_group(&self, rows: &[Row], into: &mut GroupedRows, order: &mut Vec<(usize, usize)>) {
        let Some(first) = rows.first() else { return };
        let (key, row) = (into.keys.len(), order.len());
        into.keys.extend_from_slice(self.key(first));
        order.extend(rows.iter().map(|row| (row.batch as usize, row.row as usize)));
        into.groups.push(Group { hash: first.hash, key: key..into.keys.len(), rows: row..order.len() });
    }

    #[inline]
    fn key(&self, row: &Row) -> &[u8] {
        let begin = row.key as usize * KEY_WORD;
        self.keys.get(begin..begin + row.key_words as usize * KEY_WORD).unwrap_or_default()
    }
}

fn number(begins: &[u64], row: &Row) -> u64 {
    begins.get(row.batch as usize).copied().unwrap_or_default() + u64::from(row.row)
}

/// Brings rows into an order, given as (batch, row). Now, all at once, since rows that are next to each other in it lie
/// far apart, and the processor would wait for each.
fn gather(batches: &[RecordBatch], order: &[(usize, usize)]) -> Result<Vec<RecordBatch>, QueryError> {
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let columns: Vec<Vec<&dyn Array>> = (0..first.num_columns())
        .map(|column| batches.iter().map(|batch| batch.column(column).as_ref()).collect())
        .collect();
    let batch = |order: &[(usize, usize)]| {
        let columns = columns.iter().map(|column| interleave(column, order)).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(order.len()));
        RecordBatch::try_new_with_options(first.schema(), columns, &options)
    };
    order.chunks(GroupedRows::BATCH_ROWS).map(batch).collect::<Result<_, _>>().map_err(rows_too_large)
}

/// Rows of a bucket, on average: so few that sorting them compares little.
const BUCKET_ROWS: usize = 8;
/// Buckets, at most: more than the cache of the processor has room for the ends of gain nothing.
const BUCKET_BITS_MAX: u32 = 14;

/// Sorts by hash, then place. Hashes spread evenly, so their first bits tell already about where each belongs; where they
/// do not, as with one key only, this is an ordinary sort.
fn sort_by_hash(rows: &[Row]) -> Vec<Row> {
    let bits = (rows.len() / BUCKET_ROWS).checked_ilog2().unwrap_or(0).min(BUCKET_BITS_MAX);
    let bucket = |hash: u64| hash.checked_shr(u64::BITS - bits).unwrap_or(0) as usize;
    let mut ends = vec![0_usize; (1 << bits) + 1];
    for row in rows {
        if let Some(count) = ends.get_mut(bucket(row.hash) + 1) {
            *count += 1;
        }
    }
    let mut sum = 0;
    for end in &mut ends {
        sum += *end;
        *end = sum;
    }
    // Each end moves from the begin of its bucket, which is the end of the one before, to its own.
    let mut sorted = vec![Row::default(); rows.len()];
    for row in rows {
        if let Some(end) = ends.get_mut(bucket(row.hash)) {
            if let Some(place) = sorted.get_mut(*end) {
                *place = *row;
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
        "a batch cannot hold more than 4,294,967,295 rows or 32 GiB of keys; lower limits.rows_per_batch",
    )
}

fn rows_too_large(error: ArrowError) -> QueryError {
    let rows = GroupedRows::BATCH_ROWS;
    let message = format!("{rows} rows of a batch are more than 2 GiB; lower limits.bytes_per_batch ({error})");
    QueryError::settings("BATCH_TOO_LARGE", message)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use arrow_array::{Int64Array, StringArray};
    use proptest::prelude::*;

    use super::*;
    use crate::record::key_layout;

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
        routing.route(&batches, LateRows::Keep, &[]).unwrap()
    }

    /// Key rows with the numbers of their rows.
    fn groups(grouped: &GroupedRows) -> Vec<(Vec<u8>, Vec<i64>)> {
        use arrow_array::types::Int64Type;
        let number = |row: usize| {
            let (batch, row) = GroupedRows::place(row);
            grouped.batches[batch].column(0).as_primitive::<Int64Type>().value(row)
        };
        let group =
            |group: &Group| (grouped.keys[group.key.clone()].to_vec(), group.rows.clone().map(number).collect());
        grouped.groups.iter().map(group).collect()
    }

    fn whole(routed: Routed) -> Vec<(Vec<u8>, Vec<i64>)> {
        let shares = routed.into_shares(std::slice::from_ref(&(0..KEY_GROUPS)), KEY_GROUPS).unwrap();
        groups(&shares[0])
    }

    proptest! {
        #[test]
        fn groups_are_in_key_order_and_their_rows_in_that_of_the_input(
            keys in prop::collection::vec("[a-d]{0,3}", 0..400),
            batch_rows in 1_usize..100,
        ) {
            let groups = whole(route(&keys, batch_rows));

            prop_assert_eq!(groups.iter().map(|(_, rows)| rows.len()).sum::<usize>(), keys.len());
            prop_assert!(groups.is_sorted_by(|(a, _), (b, _)| GroupingKey::new(a) < GroupingKey::new(b)));
            prop_assert!(groups.iter().all(|(_, rows)| rows.is_sorted_by(|a, b| a < b)));
            for (key, rows) in &groups {
                let routed = route(&keys, batch_rows);
                let alone = routed.of_key(GroupingKey::new(key));
                let numbers: Vec<_> = alone.rows.iter().map(|row| routed.number(row) as i64).collect();
                prop_assert_eq!(&numbers, rows);
                prop_assert_eq!(self::groups(&routed.gather([alone.rows.as_slice()]).unwrap()), [(key.clone(), rows.clone())]);
                prop_assert!(rows.iter().all(|row| keys[*row as usize] == keys[rows[0] as usize]));
            }
        }

        #[test]
        fn shares_together_are_all_groups_in_order(keys in prop::collection::vec("[a-z]{0,2}", 0..300), cut in 0..=KEY_GROUPS) {
            let whole = whole(route(&keys, 64));

            let shares = route(&keys, 64).into_shares(&[0..cut, cut..KEY_GROUPS], KEY_GROUPS).unwrap();

            prop_assert!(shares[0].groups.iter().all(|group| key_group(group.hash, KEY_GROUPS) < cut));
            prop_assert_eq!(shares.iter().flat_map(groups).collect::<Vec<_>>(), whole);
        }

        #[test]
        fn rows_that_are_left_out_are_in_no_share(
            keys in prop::collection::vec("[a-c]{0,2}", 1..200),
            out in prop::collection::btree_set(0..200_u64, 0..50),
            batch_rows in 1_usize..100,
        ) {
            let mut routed = route(&keys, batch_rows);

            routed.leave_out(&out.iter().copied().collect::<Vec<_>>());

            let by_key = routed.by_key(&(0..KEY_GROUPS), KEY_GROUPS);
            let left = groups(&routed.gather(by_key.iter().map(|key| key.rows.as_slice())).unwrap());
            let numbers: BTreeSet<_> = left.iter().flat_map(|(_, rows)| rows).map(|number| *number as u64).collect();
            prop_assert_eq!(numbers, (0..keys.len() as u64).filter(|number| !out.contains(number)).collect());
            prop_assert_eq!(left, whole(routed));
        }

        #[test]
        fn hashes_sort_whatever_they_are(hashes in prop::collection::vec(prop_oneof![any::<u64>(), 0..4_u64, Just(u64::MAX)], 0..500)) {
            let rows: Vec<Row> = hashes.into_iter().zip(0..).map(|(hash, row)| Row { hash, row, ..Row::default() }).collect();
            let mut expected = rows.clone();
            expected.sort_unstable();

            prop_assert_eq!(sort_by_hash(&rows), expected);
        }
    }

    #[test]
    fn a_key_without_rows_has_none_alone() {
        let routed = route(&["a".to_owned()], 1);

        let alone = routed.of_key(GroupingKey { hash: 7, row: b"none" });

        assert!(alone.rows.is_empty());
        assert!(routed.gather([alone.rows.as_slice()]).unwrap().groups.is_empty());
    }

    #[test]
    fn keys_that_share_a_hash_are_put_apart() {
        let batch = route(&["b", "a", "b", "a"].map(str::to_owned), 4).batches.remove(0);
        let routed = Routed {
            batches: vec![batch],
            rows: (0..4).map(|row| Row { hash: 7, batch: 0, row, key: row, key_words: 1 }).collect(),
            keys: b"bbbbbbbbaaaaaaaabbbbbbbbaaaaaaaa".to_vec(),
            ..Routed::default()
        };

        assert_eq!(whole(routed), [(b"aaaaaaaa".to_vec(), vec![1, 3]), (b"bbbbbbbb".to_vec(), vec![0, 2])]);
    }

    #[test]
    fn rows_without_columns_are_counted() {
        let key = key_layout(&Schema::parse("n BIGINT").unwrap()).unwrap();
        let routing =
            Routing { key, columns: Schema::new(Vec::new()).unwrap(), event_time: None, key_groups: KEY_GROUPS };
        let batch = route(&["a", "b", "c"].map(str::to_owned), 3).batches.remove(0);

        let routed = routing.route(&[batch], LateRows::Keep, &[]).unwrap();

        let shares = routed.into_shares(std::slice::from_ref(&(0..KEY_GROUPS)), KEY_GROUPS).unwrap();
        assert_eq!(shares[0].batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
    }
}
