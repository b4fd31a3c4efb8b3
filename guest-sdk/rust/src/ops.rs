//! The ops of a chunk, collected until they are applied together. Layout: `wit/README.md`, "Ops".

use std::ops::Range;

use crate::codec::read_u32;
use crate::contract::{Group, Variable};
use crate::error::Error;
use crate::error::{Result, code};

/// Bytes at which pending ops are applied. More buys no speed, and the host holds a copy.
pub(crate) const APPLY_AT_BYTES: usize = 64 << 10;
/// Bytes of an op's head.
pub(crate) const HEAD_BYTES: usize = 16;

/// What an op does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Code {
    ValuePut = 1,
    Clear = 2,
    ListPut = 3,
    ListAppend = 4,
    MapPut = 5,
    MapRemove = 6,
    TimerRegister = 7,
    TimerDelete = 8,
    Emit = 9,
}

/// Where the payload of an op lies, as long as it is pending.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    generation: u32,
    start: u32,
    end: u32,
}

/// Ops that have not been applied.
pub(crate) struct Ops {
    bytes: Vec<u8>,
    /// Grows when the ops are applied; tells whether a [`Place`] still holds. Never 0.
    generation: u32,
}

impl Ops {
    pub(crate) const fn new() -> Self {
        Self { bytes: Vec::new(), generation: 1 }
    }

    /// Adds an op whose payload `write` appends. Nothing is added if it fails.
    #[inline]
    pub(crate) fn push(
        &mut self,
        code: Code,
        variable: Variable,
        group: Group,
        write: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<Place> {
        let head = self.bytes.len();
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(APPLY_AT_BYTES + APPLY_AT_BYTES / 8);
        }
        self.bytes.extend_from_slice(&(code as u64 | u64::from(variable) << 32).to_le_bytes());
        self.bytes.extend_from_slice(&u64::from(group).to_le_bytes());
        let start = self.bytes.len();
        if let Err(error) = write(&mut self.bytes) {
            self.bytes.truncate(head);
            return Err(error);
        }
        let end = self.bytes.len();
        let (Ok(length), Ok(start), Ok(end)) = (u32::try_from(end - start), u32::try_from(start), u32::try_from(end))
        else {
            self.bytes.truncate(head);
            return Err(too_long());
        };
        if let Some(slot) = self.bytes.get_mut(head + 12..).and_then(|rest| rest.first_chunk_mut::<4>()) {
            *slot = length.to_le_bytes();
        }
        Ok(Place { generation: self.generation, start, end })
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= APPLY_AT_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) const fn generation(&self) -> u32 {
        self.generation
    }

    /// The payload of an op, if it is still pending.
    #[inline]
    pub(crate) fn payload(&self, place: Place) -> Option<&[u8]> {
        let range: Range<usize> = place.start as usize..place.end as usize;
        if place.generation == self.generation { self.bytes.get(range) } else { None }
    }

    /// The group that op number `op` belongs to.
    pub(crate) fn group_of(&self, op: u32) -> Option<Group> {
        let mut head = 0usize;
        for _ in 0..op {
            head += HEAD_BYTES + read_u32(&self.bytes, head + 12).ok()? as usize;
        }
        read_u32(&self.bytes, head + 8).ok()
    }

    /// Forgets the ops: they have been applied, or refused.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.generation = self.generation.checked_add(1).unwrap_or(1);
    }
}

#[cold]
fn too_long() -> Error {
    Error::new(code::MALFORMED_ROW, "a write is longer than 4 GiB")
}
