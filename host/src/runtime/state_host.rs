//! Reads of state and timers: what `state` and `timers` answer.

use super::failure::Refusal;
use super::host::{Batch, OpenCursor, Rest};
use crate::state::{Cursor, MapPart, VariableKind};

/// Bytes of a page, unless a single entry is larger; as much as a chunk.
const PAGE_BYTES: usize = 128 << 10;
/// Timers of a page; as many bytes.
const PAGE_TIMERS: usize = PAGE_BYTES / 8;

/// Rows, and the cursor of those that follow.
pub(super) struct RowPage {
    pub(super) rows: Vec<u8>,
    pub(super) rest: Option<u32>,
}

/// Expiries, and the cursor of those that follow.
pub(super) struct TimersPage {
    pub(super) expiries_ms: Vec<i64>,
    pub(super) rest: Option<u32>,
}

impl Batch {
    /// Whether a group has anything in a variable of any kind.
    pub(super) fn exists(&mut self, variable: u32, group: u32) -> Result<bool, Refusal> {
        let (index, group) = (self.any_variable(variable)?, self.group(group)?);
        Ok(self.session.exists(index, group)?)
    }

    /// The value of a group.
    pub(super) fn value(&mut self, variable: u32, group: u32) -> Result<Option<&[u8]>, Refusal> {
        let (index, _) = self.variable(variable, VariableKind::Value)?;
        let group = self.group(group)?;
        Ok(self.session.value(index, group)?)
    }

    /// The first page of a group's list.
    pub(super) fn list(&mut self, variable: u32, group_id: u32) -> Result<RowPage, Refusal> {
        let (index, _) = self.variable(variable, VariableKind::List)?;
        let group = self.group(group_id)?;
        let cursor = self.session.list(index, group)?;
        self.first_page(group_id, cursor)
    }

    /// The value at a key of a group's map.
    pub(super) fn map_value(&mut self, variable: u32, group: u32, key: &[u8]) -> Result<Option<&[u8]>, Refusal> {
        let (index, map) = self.variable(variable, VariableKind::Map)?;
        map.check_key(key)?;
        let group = self.group(group)?;
        Ok(self.session.map_value(index, group, key)?)
    }

    /// Whether a group's map has a key.
    pub(super) fn map_contains(&mut self, variable: u32, group: u32, key: &[u8]) -> Result<bool, Refusal> {
        let (index, map) = self.variable(variable, VariableKind::Map)?;
        map.check_key(key)?;
        let group = self.group(group)?;
        Ok(self.session.map_contains(index, group, key)?)
    }

    /// The first page of a group's map.
    pub(super) fn map(&mut self, variable: u32, group_id: u32, part: MapPart) -> Result<RowPage, Refusal> {
        let (index, _) = self.variable(variable, VariableKind::Map)?;
        let group = self.group(group_id)?;
        let cursor = self.session.map(index, group, part)?;
        self.first_page(group_id, cursor)
    }

    /// A further page of a list or map.
    pub(super) fn next_page(&mut self, id: u32) -> Result<RowPage, Refusal> {
        let mut open = self.cursors.take(id)?;
        let Rest::Rows(cursor) = &mut open.rest else {
            return Err(Refusal::violation("next-page with a cursor of timers"));
        };
        let mut rows = Vec::new();
        let more = self.session.page(cursor, PAGE_BYTES, &mut rows)?;
        let rest = more.then(|| {
            self.cursors.put_back(id, open);
            id
        });
        Ok(RowPage { rows, rest })
    }

    /// The first page of a group's timers.
    pub(super) fn timers(&mut self, group_id: u32) -> Result<TimersPage, Refusal> {
        self.use_timers()?;
        let group = self.group(group_id)?;
        let expiries_ms = self.session.timers(group)?.to_vec();
        self.timers_page(group_id, expiries_ms)
    }

    /// A further page of timers.
    pub(super) fn next_timers(&mut self, id: u32) -> Result<TimersPage, Refusal> {
        let open = self.cursors.take(id)?;
        match open.rest {
            Rest::Timers(expiries_ms) => self.timers_page(open.group, expiries_ms),
            Rest::Rows(_) => Err(Refusal::violation("next-timers with a cursor of rows")),
        }
    }

    fn first_page(&mut self, group: u32, mut cursor: Cursor) -> Result<RowPage, Refusal> {
        let mut rows = Vec::new();
        let more = self.session.page(&mut cursor, PAGE_BYTES, &mut rows)?;
        let rest = if more { Some(self.cursors.keep(OpenCursor { group, rest: Rest::Rows(cursor) })?) } else { None };
        Ok(RowPage { rows, rest })
    }

    fn timers_page(&mut self, group: u32, mut expiries_ms: Vec<i64>) -> Result<TimersPage, Refusal> {
        if expiries_ms.len() <= PAGE_TIMERS {
            return Ok(TimersPage { expiries_ms, rest: None });
        }
        let rest = Rest::Timers(expiries_ms.split_off(PAGE_TIMERS));
        Ok(TimersPage { expiries_ms, rest: Some(self.cursors.keep(OpenCursor { group, rest })?) })
    }
}
