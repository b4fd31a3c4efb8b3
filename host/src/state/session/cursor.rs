//! Open reads of lists and maps. A cursor holds the overlay as it was when the read began and where it stands;
//! committed state does not change during a batch, so together they are a stable view in bounded memory.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use super::super::codec::parse_row_record;
use super::super::error::StateError;
use super::super::keys::{parse_state_key, successor};
use super::super::store::{Family, Reader, scan_checked};
use super::super::variable::Variable;
use super::Session;
use super::lists::Tail;
use super::maps::{Entries, EntryChange, MapPart};
use super::values::Committed;
use crate::record::push_row;

/// Bytes of framing before each row in a page.
const FRAME_BYTES: usize = 8;

/// An open read; see [`Session::page`].
#[derive(Debug)]
pub enum Cursor {
    /// Of a list.
    List(ListCursor),
    /// Of a map.
    Map(MapCursor),
}

/// An open read of a list.
#[derive(Debug)]
pub struct ListCursor {
    variable: usize,
    base: Option<Base>,
    tail: Arc<Tail>,
    tail_next: usize,
}

/// An open read of a map.
#[derive(Debug)]
pub struct MapCursor {
    variable: usize,
    base: Option<Base>,
    entries: Arc<Entries>,
    /// The last key given.
    after: Option<Box<[u8]>>,
    part: MapPart,
}

/// Committed records still to be read.
#[derive(Debug)]
struct Base {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl ListCursor {
    /// `header_key` is set if there are committed elements to read.
    pub(super) fn new(variable: usize, header_key: Option<Vec<u8>>, tail: Arc<Tail>) -> Self {
        // Elements follow their header.
        let base = header_key.map(|key| Base { from: after(&key), to: successor(key) });
        Self { variable, base, tail, tail_next: 0 }
    }
}

impl MapCursor {
    /// `prefix` is set if there may be committed entries that `entries` lacks.
    pub(super) fn new(variable: usize, prefix: Option<Vec<u8>>, entries: Arc<Entries>, part: MapPart) -> Self {
        let base = prefix.map(|key| Base { from: key.clone(), to: successor(key) });
        Self { variable, base, entries, after: None, part }
    }
}

/// A page under way.
struct Page<'a> {
    out: &'a mut Vec<u8>,
    begin: usize,
    bytes_max: usize,
}

impl Page<'_> {
    /// Adds rows that belong together; false if they do not fit.
    fn add(&mut self, rows: &[&[u8]]) -> bool {
        let bytes: usize = rows.iter().map(|row| FRAME_BYTES + row.len()).sum();
        let used = self.out.len() - self.begin;
        if used > 0 && used + bytes > self.bytes_max {
            return false;
        }
        for row in rows {
            push_row(self.out, row);
        }
        true
    }
}

impl Session {
    /// Appends the next rows of a read to `out`, framed as packed rows: whole entries, at least one if any is left,
    /// else up to `bytes_max` bytes. True if more follow.
    ///
    /// # Errors
    /// The disk, or damage.
    pub fn page(&self, cursor: &mut Cursor, bytes_max: usize, out: &mut Vec<u8>) -> Result<bool, StateError> {
        let begin = out.len();
        let mut page = Page { out, begin, bytes_max };
        let (Cursor::List(ListCursor { variable, .. }) | Cursor::Map(MapCursor { variable, .. })) = cursor;
        let Some(variable) = self.variables.get(*variable) else { return Ok(false) };
        let committed = CommittedRows { reader: &*self.store, now_ms: self.scope.now_ms, variable };
        match cursor {
            Cursor::List(cursor) => cursor.page(&committed, &mut page),
            Cursor::Map(cursor) => cursor.page(&committed, &mut page),
        }
    }
}

/// Where a cursor reads.
struct CommittedRows<'a> {
    reader: &'a dyn Reader,
    now_ms: i64,
    variable: &'a Variable,
}

impl ListCursor {
    fn page(&mut self, committed: &CommittedRows<'_>, page: &mut Page<'_>) -> Result<bool, StateError> {
        if let Some(base) = &mut self.base {
            let full = base.read(committed, &mut |_, row| page.add(&[row]))?;
            if full {
                return Ok(true);
            }
            self.base = None;
        }
        while let Some(row) = self.tail.get(self.tail_next) {
            if !page.add(&[row]) {
                return Ok(true);
            }
            self.tail_next += 1;
        }
        Ok(false)
    }
}

impl MapCursor {
    fn page(&mut self, committed: &CommittedRows<'_>, page: &mut Page<'_>) -> Result<bool, StateError> {
        let part = self.part;
        let mut add = |key: &[u8], row: &[u8]| match part {
            MapPart::Keys => page.add(&[key]),
            MapPart::Values => page.add(&[row]),
            MapPart::Entries => page.add(&[key, row]),
        };
        let lower = self.after.take().map_or(Bound::Unbounded, Bound::Excluded);
        let mut overlay =
            self.entries.range::<[u8], _>((lower.as_ref().map(|key| &**key), Bound::Unbounded)).peekable();
        let mut last: Option<Box<[u8]>> = None;
        let mut full = false;
        if let Some(base) = &mut self.base {
            full = base.read(committed, &mut |map_key, row| {
                while let Some((key, entry)) = overlay.next_if(|(key, _)| ***key < *map_key) {
                    if let EntryChange::Written(row) = &entry.current {
                        if !add(key, row) {
                            return false;
                        }
                        last = Some(key.clone());
                    }
                }
                let row = match overlay.next_if(|(key, _)| ***key == *map_key).map(|(_, entry)| &entry.current) {
                    Some(EntryChange::Written(row)) => row,
                    Some(EntryChange::Removed) => return true,
                    Some(EntryChange::AsCommitted) | None => row,
                };
                let added = add(map_key, row);
                if added {
                    last = Some(map_key.into());
                }
                added
            })?;
            if !full {
                self.base = None;
            }
        }
        while let Some((key, entry)) = overlay.next().filter(|_| !full) {
            if let EntryChange::Written(row) = &entry.current {
                if add(key, row) {
                    last = Some(key.clone());
                } else {
                    full = true;
                }
            }
        }
        self.after = last.or(match lower {
            Bound::Excluded(key) => Some(key),
            _ => None,
        });
        Ok(full)
    }
}

impl Base {
    /// Gives suffix and row, in today's schema, of each record that has not expired to `visit`, until that says false; then the answer is
    /// true, and the next read begins with the record refused.
    fn read(
        &mut self,
        committed: &CommittedRows<'_>,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<bool, StateError> {
        let CommittedRows { reader, now_ms, variable } = committed;
        let mut refused = None;
        let mut converted = Vec::new();
        scan_checked(*reader, Family::State, &self.from, &self.to, &mut |key, record| {
            let stored = parse_row_record(record)?;
            if stored.expired(*now_ms) {
                return Ok(ControlFlow::Continue(()));
            }
            let mut row = stored.row;
            if stored.schema_id != variable.schema_id {
                converted.clear();
                variable.conversions.append(stored.schema_id, row, &mut converted)?;
                row = &converted;
            }
            if visit(parse_state_key(key)?.suffix, row) {
                return Ok(ControlFlow::Continue(()));
            }
            refused = Some(key.to_vec());
            Ok(ControlFlow::Break(()))
        })?;
        let full = refused.is_some();
        if let Some(key) = refused {
            self.from = key;
        }
        Ok(full)
    }
}

/// The least key after `key`.
fn after(key: &[u8]) -> Vec<u8> {
    let mut key = key.to_vec();
    key.push(0);
    key
}

impl Committed {
    /// The expiry of the record, if there is one that expires.
    pub(super) fn expiry_ms(self) -> Option<i64> {
        if let Self::Present(expiry_ms) = self { expiry_ms } else { None }
    }
}
