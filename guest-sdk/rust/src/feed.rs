//! Walks a chunk: groups, their keys, prefetched values and rows. Layout: `wit/README.md`, "Chunks".
//!
//! Knows only the bytes of the chunk in hand; [`crate::session`] fetches the next one.

use std::ops::Range;

use crate::codec::{malformed, read_u32};
use crate::contract::{Group, Variable};
use crate::error::Result;

const CHUNK_HEAD_BYTES: usize = 16;
const GROUP_HEAD_BYTES: usize = 24;
/// Rows and prefetched values: `length:u32` and a second word.
const LENGTH_BYTES: usize = 8;
/// Value states that a chunk can carry.
const PREFETCHED_MAX: usize = 8;
/// Rows of the group came in the chunk before.
const CONTINUED: u32 = 1;
/// More rows of the group follow in the next chunk.
const CONTINUES: u32 = 2;

/// What a chunk says about a value state of a group.
pub(crate) enum Prefetched {
    Absent,
    Present(Range<usize>),
}

/// The chunk in hand and the place in it.
#[derive(Default)]
pub(crate) struct Feed {
    chunk: Vec<u8>,
    at: usize,
    groups_left: u32,
    prefetched: Vec<Variable>,
    group: Option<GroupInHand>,
    /// Where the group in hand ends in this chunk.
    group_end: usize,
}

struct GroupInHand {
    id: Group,
    continued: bool,
    continues: bool,
    key: Range<usize>,
    rows_left: u32,
}

impl Feed {
    /// Takes a chunk in hand. The group that was in hand stays so until [`Feed::enter_group`].
    pub(crate) fn load(&mut self, chunk: Vec<u8>) -> Result<()> {
        self.groups_left = read_u32(&chunk, 0)?;
        let prefetched = read_u32(&chunk, 4)? as usize;
        if prefetched > PREFETCHED_MAX {
            return Err(malformed());
        }
        self.prefetched.clear();
        for number in 0..prefetched {
            self.prefetched.push(read_u32(&chunk, CHUNK_HEAD_BYTES + number * 4)?);
        }
        self.at = CHUNK_HEAD_BYTES + (prefetched * 4).next_multiple_of(8);
        self.group_end = 0;
        self.chunk = chunk;
        Ok(())
    }

    /// Whether the chunk in hand has groups that were not entered.
    pub(crate) fn has_groups(&self) -> bool {
        self.groups_left > 0
    }

    /// Enters the next group of the chunk, leaving unread what is left of the one in hand, and reports its prefetched
    /// values.
    #[inline]
    pub(crate) fn enter_group(&mut self, mut prefetched: impl FnMut(Variable, Prefetched)) -> Result<()> {
        self.at = self.at.max(self.group_end);
        self.groups_left = self.groups_left.checked_sub(1).ok_or_else(malformed)?;
        let head: &[u8; GROUP_HEAD_BYTES] =
            self.chunk.get(self.at..).and_then(|rest| rest.first_chunk()).ok_or_else(malformed)?;
        let [id, flags, rows_left, key_length, length] =
            [0, 4, 8, 12, 16].map(|at| read_u32(head, at).unwrap_or_default());
        self.at += GROUP_HEAD_BYTES;
        self.group_end = self.at + length as usize;
        let key = self.at..self.at + key_length as usize;
        self.at = key.end;
        for number in 0..self.prefetched.len() {
            let value_length = read_u32(&self.chunk, self.at)? as usize;
            let present = read_u32(&self.chunk, self.at + 4)?;
            self.at += LENGTH_BYTES;
            let value = self.at..self.at + value_length;
            self.at = value.end;
            let Some(variable) = self.prefetched.get(number) else { break };
            match present {
                0 => prefetched(*variable, Prefetched::Absent),
                1 => prefetched(*variable, Prefetched::Present(value)),
                _ => {}
            }
        }
        let (continued, continues) = (flags & CONTINUED != 0, flags & CONTINUES != 0);
        self.group = Some(GroupInHand { id, continued, continues, key, rows_left });
        Ok(())
    }

    /// Leaves the group in hand: the handlers of this phase are done.
    pub(crate) fn leave_group(&mut self) {
        self.group = None;
    }

    #[inline]
    pub(crate) fn group(&self) -> Option<Group> {
        self.group.as_ref().map(|group| group.id)
    }

    /// Whether the group in hand had rows in the chunk before.
    pub(crate) fn group_is_continued(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.continued)
    }

    /// Whether the group in hand has rows in the next chunk.
    pub(crate) fn group_continues(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.continues)
    }

    /// The packed key of the group in hand.
    pub(crate) fn key(&self) -> Result<&[u8]> {
        self.group.as_ref().and_then(|group| self.chunk.get(group.key.clone())).ok_or_else(malformed)
    }

    /// The next row of the group in hand that lies in this chunk.
    #[inline]
    pub(crate) fn next_row(&mut self) -> Result<Option<&[u8]>> {
        let Some(group) = &mut self.group else { return Ok(None) };
        if group.rows_left == 0 {
            return Ok(None);
        }
        group.rows_left -= 1;
        let length = read_u32(&self.chunk, self.at)? as usize;
        let row = self.at + LENGTH_BYTES..self.at + LENGTH_BYTES + length;
        self.at = row.end;
        self.chunk.get(row).map(Some).ok_or_else(malformed)
    }

    /// Bytes of the chunk in hand.
    #[inline]
    pub(crate) fn bytes(&self, range: Range<usize>) -> Result<&[u8]> {
        self.chunk.get(range).ok_or_else(malformed)
    }
}
