//! List states of a session.
//!
//! A list is a header and one record per element. An append needs no read: rows collect in a tail, which gets its
//! sequence numbers at the commit, when the headers of all lists written are read together.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::super::codec::{
    ListHeader, RowKind, StoredRow, parse_list_header, parse_row_record, push_row_record, row_record_len,
};
use super::super::error::StateError;
use super::super::keys::{parse_sequence, parse_state_key, successor};
use super::super::store::{Family, get, scan_checked};
use super::cursor::{Cursor, ListCursor};
use super::finish::Output;
use super::{GroupId, Session, read_groups};

/// What a batch did to the list of one key.
#[derive(Debug, Default)]
pub(super) struct ListState {
    /// The committed header, once it was read.
    pub(super) header: Option<Option<ListHeader>>,
    pub(super) base: Base,
    /// Rows appended in this batch.
    pub(super) tail: Arc<Tail>,
    /// Sequence numbers of committed elements that the TTL sweep removed.
    pub(super) evicted: Vec<u64>,
}

/// What became of the committed elements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Base {
    #[default]
    Kept,
    /// Gone by a put, which counts as an update only.
    Replaced,
    /// Gone by a clear, which counts each as removed.
    Cleared,
}

/// Rows one after another.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Tail {
    fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let begin = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.bytes.get(begin..end)
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes that count as written.
    fn bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<usize>()
    }
}

impl Session {
    /// Replaces a list by `rows`, at least one.
    ///
    /// # Errors
    /// `STATE_LIMIT_EXCEEDED`; `STATE_MISUSE` without rows or if the variable is no list.
    pub fn list_put(
        &mut self,
        variable: usize,
        group: GroupId,
        rows: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<(), StateError> {
        let place = self.list_place(variable)?;
        let Some(first) = rows.next() else {
            return Err(self.misuse(variable, "a list is put without rows"));
        };
        let list = self.lists.entry((group, place)).or_default();
        if list.base == Base::Kept {
            list.base = Base::Replaced;
        }
        let freed = std::mem::take(&mut list.tail);
        self.write_bytes -= freed.bytes();
        self.append(variable, place, group, &mut std::iter::once(first).chain(rows))
    }

    /// Appends `rows`, at least one.
    ///
    /// # Errors
    /// `STATE_LIMIT_EXCEEDED`; `STATE_MISUSE` without rows or if the variable is no list.
    pub fn list_append(
        &mut self,
        variable: usize,
        group: GroupId,
        rows: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<(), StateError> {
        let place = self.list_place(variable)?;
        let Some(first) = rows.next() else {
            return Err(self.misuse(variable, "no rows are appended to a list"));
        };
        self.append(variable, place, group, &mut std::iter::once(first).chain(rows))
    }

    /// Opens a read of a list, in order of insertion, without expired elements.
    ///
    /// # Errors
    /// The disk, or damage; `STATE_MISUSE` if the variable is no list.
    pub fn list(&mut self, variable: usize, group: GroupId) -> Result<Cursor, StateError> {
        let place = self.list_place(variable)?;
        self.load_list(variable, place, group)?;
        let state_key = self.state_key(variable, group);
        let list = self.lists.entry((group, place)).or_default();
        let base = list.base == Base::Kept && list.header.flatten().is_some();
        Ok(Cursor::List(ListCursor::new(variable, base.then_some(state_key), Arc::clone(&list.tail))))
    }

    pub(super) fn list_exists(&mut self, variable: usize, place: u16, group: GroupId) -> Result<bool, StateError> {
        match self.lists.get(&(group, place)) {
            Some(list) if list.tail.len() > 0 => return Ok(true),
            Some(list) if list.base != Base::Kept => return Ok(false),
            _ => {}
        }
        self.load_list(variable, place, group)?;
        let header = self.lists.get(&(group, place)).and_then(|list| list.header.flatten());
        Ok(header.is_some_and(|header| !header.over(self.scope.now_ms)))
    }

    pub(super) fn list_clear(&mut self, place: u16, group: GroupId) {
        let list = self.lists.entry((group, place)).or_default();
        if list.base == Base::Kept {
            list.base = Base::Cleared;
        }
        let freed = std::mem::take(&mut list.tail);
        self.write_bytes -= freed.bytes();
        self.metrics.rows_removed += freed.len() as u64;
    }

    fn append(
        &mut self,
        variable: usize,
        place: u16,
        group: GroupId,
        rows: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<(), StateError> {
        let list = self.lists.entry((group, place)).or_default();
        let tail = Arc::make_mut(&mut list.tail);
        for row in rows {
            tail.push(row);
            self.write_bytes += row.len() + size_of::<usize>();
            self.metrics.rows_updated += 1;
            if self.write_bytes > self.scope.limits.write_bytes_max {
                break;
            }
        }
        let elements = tail.len() as u64;
        self.check_list_len(variable, group, elements)?;
        self.check_room(variable, group)
    }

    fn check_list_len(&self, variable: usize, group: GroupId, elements: u64) -> Result<(), StateError> {
        let limit = self.scope.limits.list_elements_max;
        if elements <= limit {
            return Ok(());
        }
        Err(self.limit("list_elements_max", "elements in a list", limit, Some(variable), Some(group)))
    }

    fn load_list(&mut self, variable: usize, place: u16, group: GroupId) -> Result<(), StateError> {
        if self.lists.get(&(group, place)).is_some_and(|list| list.header.is_some()) {
            return Ok(());
        }
        let key = self.state_key(variable, group);
        let header = get(&*self.store, Family::State, &key)?;
        let header = header.map(|bytes| parse_list_header(&bytes)).transpose()?;
        self.lists.entry((group, place)).or_default().header = Some(header);
        Ok(())
    }

    /// Emits what the batch did to the lists of one variable; `groups` are those with one, in key order.
    pub(super) fn finish_lists(
        &mut self,
        variable: usize,
        place: u16,
        groups: &[GroupId],
        out: &mut Output,
    ) -> Result<(), StateError> {
        self.load_headers(variable, place, groups)?;
        for &group in groups {
            let Some(list) = self.lists.remove(&(group, place)) else { continue };
            if list.base == Base::Kept && list.tail.len() == 0 && list.evicted.is_empty() {
                continue;
            }
            self.finish_list(variable, group, list, out)?;
        }
        Ok(())
    }

    /// Reads the headers that no operation needed yet, in one sorted multi-get per 128.
    fn load_headers(&mut self, variable: usize, place: u16, groups: &[GroupId]) -> Result<(), StateError> {
        let unread = |group: &GroupId| self.lists.get(&(*group, place)).is_some_and(|list| list.header.is_none());
        let unread: Vec<GroupId> = groups.iter().copied().filter(unread).collect();
        let id = self.variable_id(variable);
        let Self { store, lists, groups, scope, .. } = self;
        read_groups(&**store, groups, (scope.step, id), &unread, |group, record| {
            if let Some(list) = lists.get_mut(&(group, place)) {
                list.header = Some(record.map(parse_list_header).transpose()?);
            }
            Ok(())
        })
    }

    fn finish_list(
        &mut self,
        variable: usize,
        group: GroupId,
        list: ListState,
        out: &mut Output,
    ) -> Result<(), StateError> {
        let Some(declared) = self.variables.get(variable) else { return Ok(()) };
        let (id, schema_id, expires) = (declared.id, declared.schema_id, declared.expires);
        let expiry_ms = self.write_expiry(variable);
        let mut key = self.state_key(variable, group);
        let prefix_len = key.len();
        let key_group = self.key_group_of(group);
        let committed = list.header.flatten();

        // Where the tail begins, and the header that stays without it.
        let (begin, kept) = match committed {
            Some(header) if list.base == Base::Kept => (header.next, header.without(&list.evicted)),
            _ => (0, None),
        };
        let end = begin + list.tail.len() as u64;
        let mut kept_indexes = BTreeSet::new();
        if list.base != Base::Kept
            && let Some(header) = committed
        {
            if list.base == Base::Cleared {
                self.metrics.rows_removed += header.count;
            }
            kept_indexes = if expires {
                self.drop_elements(&key, key_group, header, end, expiry_ms, out)?
            } else {
                drop_lasting_elements(&key, header, end, out);
                BTreeSet::new()
            };
        }
        let header = kept.into_iter().chain((end > begin).then_some(ListHeader {
            first: begin,
            next: end,
            count: end - begin,
            latest_expiry_ms: expiry_ms.unwrap_or(i64::MAX),
        }));
        let header = header.reduce(|kept, tail| ListHeader {
            first: kept.first,
            next: tail.next,
            count: kept.count + tail.count,
            latest_expiry_ms: kept.latest_expiry_ms.max(tail.latest_expiry_ms),
        });
        self.check_list_len(variable, group, header.map_or(0, |header| header.count))?;
        match header {
            Some(header) => out.put_header(&key, header),
            None if committed.is_some() => out.state.delete(&key),
            None => {}
        }
        self.metrics.add_rows(id, i64::from(header.is_some()) - i64::from(committed.is_some()));

        let elements = (begin..end).zip((0..).map_while(|index| list.tail.get(index)));
        for (sequence, row) in elements {
            key.truncate(prefix_len);
            key.extend_from_slice(&sequence.to_be_bytes());
            let stored = StoredRow { kind: RowKind::Element, schema_id, expiry_ms, row };
            out.state.put_with(&key, row_record_len(row.len(), expiry_ms), |out| push_row_record(out, stored));
            if let Some(expiry_ms) = expiry_ms
                && !kept_indexes.contains(&sequence)
            {
                out.index_put(key_group, expiry_ms, &key);
            }
        }
        Ok(())
    }

    /// Deletes the committed elements of a list. Those below `end` are written over, so only their index entries go,
    /// unless the new element expires at the same time: the sequence numbers of these are the answer.
    fn drop_elements(
        &self,
        header_key: &[u8],
        key_group: u16,
        header: ListHeader,
        end: u64,
        expiry_ms: Option<i64>,
        out: &mut Output,
    ) -> Result<BTreeSet<u64>, StateError> {
        let mut kept_indexes = BTreeSet::new();
        let mut from = header_key.to_vec();
        from.extend_from_slice(&header.first.to_be_bytes());
        let to = successor(header_key.to_vec());
        scan_checked(&*self.store, Family::State, &from, &to, &mut |key, record| {
            let sequence = parse_sequence(parse_state_key(key)?.suffix)?;
            let stored = parse_row_record(record)?;
            if sequence >= end {
                out.state.delete(key);
            }
            match stored.expiry_ms {
                Some(old_ms) if sequence < end && expiry_ms == Some(old_ms) => {
                    kept_indexes.insert(sequence);
                }
                Some(old_ms) => out.index_delete(key_group, old_ms, key),
                None => {}
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(kept_indexes)
    }
}

/// Deletes the committed elements of a list, of a variable that has never had a TTL, from `end` on. The others are written
/// over.
fn drop_lasting_elements(header_key: &[u8], header: ListHeader, end: u64, out: &mut Output) {
    let mut key = header_key.to_vec();
    for sequence in header.first.max(end)..header.next {
        key.truncate(header_key.len());
        key.extend_from_slice(&sequence.to_be_bytes());
        out.state.delete(&key);
    }
}

impl ListHeader {
    /// Whether all elements have expired.
    pub(super) fn over(&self, now_ms: i64) -> bool {
        self.latest_expiry_ms != i64::MAX && now_ms >= self.latest_expiry_ms
    }

    /// The header when those elements are gone; None if none is left. `sequences` ascend.
    pub(super) fn without(mut self, sequences: &[u64]) -> Option<Self> {
        self.count = self.count.saturating_sub(sequences.len() as u64);
        for sequence in sequences {
            if *sequence == self.first {
                self.first += 1;
            }
        }
        (self.count > 0).then_some(self)
    }
}
