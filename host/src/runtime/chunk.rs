//! What a guest is fed: groups of input rows or of expired timers, packed into chunks of bounded size.
//!
//! A [`Feed`] is opened per phase. It takes groups a window at a time, so that their values are read from the store in
//! one sorted multi-get, and packs as many as fit. The bytes of a chunk are those of `wit/README.md`; where chunks end
//! depends on the rows and the constants here only, so a replay sends the same bytes.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::failure::Refusal;
use crate::engine::operator::GroupedRows;
use crate::record::{GroupingKey, RowEncoder, RowLayout};
use crate::state::{GroupId, Session};

/// Bytes of a chunk, unless the first row of a group alone is larger. Larger chunks leave the cache of the processor,
/// smaller ones pay more calls.
const CHUNK_BYTES: usize = 128 << 10;
/// Groups of a chunk. From 64 on, more make no difference; each is a slot in SDKs.
const CHUNK_GROUPS: usize = 128;
/// Bytes sent within one call of an export. JavaScript frees what it was sent only when the export returns, so a call
/// must end long before the guest's memory does.
const CALL_BYTES: usize = 8 << 20;

const HEAD_BYTES: usize = 16;
const GROUP_HEAD_BYTES: usize = 24;
/// A group's rows came in the chunk before as well.
const FLAG_CONTINUED: u32 = 1;
/// More rows of the group follow in the next chunk.
const FLAG_CONTINUES: u32 = 2;
const VALUE_PRESENT: u32 = 1;
const VALUE_UNKNOWN: u32 = 2;

/// The chunks of one phase after another, and the digest over all of them.
pub(super) struct Feed {
    source: Source,
    /// Variables whose values are sent along, as indexes.
    prefetch: Vec<u16>,
    window: VecDeque<Waiting>,
    chunk: Chunk,
    buffer: Arc<Vec<u8>>,
    next_id: u32,
    call_bytes: usize,
    /// The guest has been told that this call has no more chunks.
    ended: bool,
    /// The guest has asked for timers before, so those of further groups are read ahead as well.
    timers_used: bool,
    digest: Xxh3,
}

/// Where groups come from.
enum Source {
    Nothing,
    Rows { grouped: GroupedRows, encoders: Vec<RowEncoder>, next_group: usize },
    Timers(DueTimers),
}

/// Timers taken from the session: those of the groups in the window, one group after another.
#[derive(Default)]
struct DueTimers {
    expiries_ms: Vec<i64>,
    /// Rows taken before `expiries_ms[0]`; rows are numbered through the phase.
    taken: usize,
    /// Scratch.
    of_next: Vec<i64>,
}

/// A group whose rows have not all been sent.
struct Waiting {
    group: GroupId,
    /// Numbers of its rows that are still to be sent.
    rows: Range<usize>,
    /// Its id, once the guest has seen it.
    id: Option<u32>,
}

/// The groups that the guest has in hand.
#[derive(Default)]
struct Chunk {
    /// With the rows that this chunk has of them.
    groups: Vec<(GroupId, Range<usize>)>,
    /// Ids are consecutive from here.
    first_id: u32,
    /// The last group goes on in the next chunk.
    continues: bool,
}

/// How much of a group went into a chunk.
enum Packed {
    All,
    Some(usize),
    Nothing,
}

impl Feed {
    pub(super) fn new(prefetch: Vec<u16>) -> Self {
        Self {
            source: Source::Nothing,
            prefetch,
            window: VecDeque::with_capacity(CHUNK_GROUPS),
            chunk: Chunk::default(),
            buffer: Arc::default(),
            next_id: 0,
            call_bytes: 0,
            ended: true,
            timers_used: false,
            digest: Xxh3::new(),
        }
    }

    /// Opens a phase of rows, which have the layout's columns.
    pub(super) fn open_rows(&mut self, grouped: GroupedRows, layout: &RowLayout) -> Result<(), Refusal> {
        let encoders = grouped.batches.iter().map(|batch| RowEncoder::new(layout, batch)).collect::<Result<_, _>>()?;
        self.source = Source::Rows { grouped, encoders, next_group: 0 };
        Ok(())
    }

    /// Opens the phase of the timers that the session has found due.
    pub(super) fn open_timers(&mut self) {
        self.source = Source::Timers(DueTimers::default());
    }

    /// Begins a call of the export, if there is anything left for it.
    pub(super) fn begin_call(&mut self, session: &mut Session) -> Result<bool, Refusal> {
        self.call_bytes = 0;
        self.fill_window(session)?;
        self.ended = self.window.is_empty();
        Ok(!self.ended)
    }

    /// Whether the guest has pulled all chunks of the call.
    pub(super) fn drained(&self) -> bool {
        self.ended
    }

    /// Ends the chunk in hand and packs the next one. None: the call has no more.
    pub(super) fn next(&mut self, session: &mut Session) -> Result<Option<Arc<Vec<u8>>>, Refusal> {
        self.end_chunk(session);
        self.fill_window(session)?;
        let continued = self.window.front().is_some_and(|group| group.id.is_some());
        if self.window.is_empty() || (self.call_bytes >= CALL_BYTES && !continued) {
            self.ended = true;
            return Ok(None);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        // The last chunk has been copied into the guest, so nobody else has the buffer and it is used again.
        let out = Arc::make_mut(&mut buffer);
        out.clear();
        self.pack(session, out)?;
        self.digest.update(out);
        self.call_bytes += out.len();
        self.buffer = Arc::clone(&buffer);
        Ok(Some(buffer))
    }

    /// The group of an id in the chunk in hand.
    pub(super) fn group(&self, id: u32) -> Option<GroupId> {
        let index = id.checked_sub(self.chunk.first_id)?;
        self.chunk.groups.get(index as usize).map(|(group, _)| *group)
    }

    /// The groups in hand.
    pub(super) fn groups(&self) -> impl ExactSizeIterator<Item = GroupId> {
        self.chunk.groups.iter().map(|(group, _)| *group)
    }

    /// The id of the group that goes on in the next chunk.
    pub(super) fn continuing(&self) -> Option<u32> {
        let groups = u32::try_from(self.chunk.groups.len()).ok()?;
        self.chunk.continues.then(|| self.chunk.first_id.wrapping_add(groups).wrapping_sub(1))
    }

    /// The guest reads or writes timers.
    pub(super) fn use_timers(&mut self) {
        self.timers_used = true;
    }

    /// XXH3-128 over all chunks, in order.
    pub(super) fn digest(&self) -> u128 {
        self.digest.digest128()
    }

    /// Timers that were sent are gone, unless the guest registered them again; those of a group that goes on and were
    /// deleted are not sent.
    fn end_chunk(&mut self, session: &mut Session) {
        if let Source::Timers(timers) = &mut self.source {
            for (group, rows) in &self.chunk.groups {
                session.delivered(*group, timers.of(rows));
            }
            if let Some((_, rows)) = self.chunk.groups.last() {
                timers.forget_before(rows.end);
            }
            if let (true, Some(waiting)) = (self.chunk.continues, self.window.front_mut()) {
                timers.forget_deleted(waiting, session);
            }
        }
        self.chunk.groups.clear();
        self.chunk.continues = false;
    }

    /// Takes further groups until there are enough for a chunk, and reads their values ahead.
    fn fill_window(&mut self, session: &mut Session) -> Result<(), Refusal> {
        let known = self.window.len();
        while self.window.len() < CHUNK_GROUPS {
            let Some((group, rows)) = self.source.take(session)? else { break };
            self.window.push_back(Waiting { group, rows, id: None });
        }
        let new: Vec<GroupId> = self.window.iter().skip(known).map(|waiting| waiting.group).collect();
        if !new.is_empty() {
            session.prefetch(&self.prefetch, &new)?;
            if self.timers_used {
                session.prefetch_timers(&new)?;
            }
        }
        Ok(())
    }

    fn pack(&mut self, session: &mut Session, out: &mut Vec<u8>) -> Result<(), Refusal> {
        out.resize(HEAD_BYTES, 0);
        for variable in &self.prefetch {
            out.extend_from_slice(&u32::from(*variable).to_le_bytes());
        }
        out.resize(out.len().next_multiple_of(8), 0);

        while self.chunk.groups.len() < CHUNK_GROUPS {
            let Some(mut waiting) = self.window.pop_front() else { break };
            let id = match waiting.id {
                Some(id) => id,
                None => self.new_id()?,
            };
            let first = self.chunk.groups.is_empty();
            let packed = self.pack_group(session, &waiting, id, first, out)?;
            if matches!(packed, Packed::Nothing) {
                // The id goes to the same group in the next chunk: it is the first there.
                self.next_id = id;
                self.window.push_front(waiting);
                break;
            }
            if first {
                self.chunk.first_id = id;
            }
            let sent = match packed {
                Packed::Some(rows) => waiting.rows.start..waiting.rows.start + rows,
                _ => waiting.rows.clone(),
            };
            self.chunk.groups.push((waiting.group, sent.clone()));
            if sent.end < waiting.rows.end {
                waiting.rows.start = sent.end;
                waiting.id = Some(id);
                self.window.push_front(waiting);
                self.chunk.continues = true;
                break;
            }
        }
        put_u32(out, 0, self.chunk.groups.len())?;
        put_u32(out, 4, self.prefetch.len())
    }

    /// Appends one group. A group that is the first of its chunk gets at least one row in, whatever its size.
    fn pack_group(
        &self,
        session: &mut Session,
        waiting: &Waiting,
        id: u32,
        first: bool,
        out: &mut Vec<u8>,
    ) -> Result<Packed, Refusal> {
        let begin = out.len();
        out.extend_from_slice(&[0; GROUP_HEAD_BYTES]);
        out.extend_from_slice(session.key(waiting.group).row);
        let key_length = out.len() - begin - GROUP_HEAD_BYTES;
        for variable in &self.prefetch {
            if waiting.id.is_some() {
                push_value_head(out, 0, VALUE_UNKNOWN)?;
            } else if let Some(row) = session.value(usize::from(*variable), waiting.group)? {
                push_value_head(out, row.len(), VALUE_PRESENT)?;
                out.extend_from_slice(row);
            } else {
                push_value_head(out, 0, 0)?;
            }
        }

        let mut rows = 0;
        for number in waiting.rows.clone() {
            let at = out.len();
            out.extend_from_slice(&[0; 8]);
            self.source.encode(number, out)?;
            if out.len() > CHUNK_BYTES && !(first && rows == 0) {
                out.truncate(at);
                break;
            }
            let length = out.len() - at - 8;
            put_u32(out, at, length)?;
            rows += 1;
        }
        // One that goes on has none left when the guest has deleted all of its timers.
        if rows == 0 && !waiting.rows.is_empty() {
            out.truncate(begin);
            return Ok(Packed::Nothing);
        }

        let all = rows == waiting.rows.len();
        let length = out.len() - begin - GROUP_HEAD_BYTES;
        let continued = if waiting.id.is_some() { FLAG_CONTINUED } else { 0 };
        let continues = if all { 0 } else { FLAG_CONTINUES };
        put_u32(out, begin, id as usize)?;
        put_u32(out, begin + 4, (continued | continues) as usize)?;
        put_u32(out, begin + 8, rows)?;
        put_u32(out, begin + 12, key_length)?;
        put_u32(out, begin + 16, length)?;
        Ok(if all { Packed::All } else { Packed::Some(rows) })
    }

    fn new_id(&mut self) -> Result<u32, Refusal> {
        let id = self.next_id;
        self.next_id = id.checked_add(1).ok_or_else(|| host_error("more than 4 billion groups in one batch"))?;
        Ok(id)
    }
}

impl Source {
    /// The next group, with the numbers of its rows.
    fn take(&mut self, session: &mut Session) -> Result<Option<(GroupId, Range<usize>)>, Refusal> {
        match self {
            Self::Nothing => Ok(None),
            Self::Rows { grouped, next_group, .. } => {
                let Some(group) = grouped.groups.get(*next_group) else { return Ok(None) };
                let row = grouped.keys.get(group.key.clone()).ok_or_else(|| host_error("a key out of range"))?;
                *next_group += 1;
                Ok(Some((session.enter(GroupingKey { hash: group.hash, row }), group.rows.clone())))
            }
            Self::Timers(timers) => {
                let Some(group) = session.next_due(&mut timers.of_next)? else { return Ok(None) };
                let begin = timers.taken + timers.expiries_ms.len();
                timers.expiries_ms.extend_from_slice(&timers.of_next);
                Ok(Some((group, begin..begin + timers.of_next.len())))
            }
        }
    }

    /// Appends a row.
    fn encode(&self, number: usize, out: &mut Vec<u8>) -> Result<(), Refusal> {
        match self {
            Self::Nothing => Err(host_error("rows without a phase")),
            Self::Rows { encoders, .. } => {
                let (batch, row) = GroupedRows::place(number);
                let encoder = encoders.get(batch).ok_or_else(|| host_error("a row out of range"))?;
                encoder.encode(row, out);
                Ok(())
            }
            Self::Timers(timers) => {
                let expiry_ms = timers.of(&(number..number + 1)).first().copied();
                let expiry_ms = expiry_ms.ok_or_else(|| host_error("a timer out of range"))?;
                // A packed row of the one column `expiry_ms BIGINT`: no null bits, then the slot.
                out.extend_from_slice(&0_u64.to_le_bytes());
                out.extend_from_slice(&expiry_ms.to_le_bytes());
                Ok(())
            }
        }
    }
}

impl DueTimers {
    /// The expiries of rows by their numbers.
    fn of(&self, rows: &Range<usize>) -> &[i64] {
        let range = rows.start.saturating_sub(self.taken)..rows.end.saturating_sub(self.taken);
        self.expiries_ms.get(range).unwrap_or_default()
    }

    fn forget_before(&mut self, row: usize) {
        let sent = row.saturating_sub(self.taken).min(self.expiries_ms.len());
        self.expiries_ms.drain(..sent);
        self.taken += sent;
    }

    /// Takes out what was deleted of a group whose rows are the first.
    fn forget_deleted(&mut self, waiting: &mut Waiting, session: &Session) {
        let before = waiting.rows.len().min(self.expiries_ms.len());
        let mut left: Vec<i64> = self.expiries_ms.drain(..before).collect();
        session.still_due(waiting.group, &mut left);
        let gone = before - left.len();
        self.expiries_ms.splice(..0, left);
        self.taken += gone;
        waiting.rows.start += gone;
    }
}

fn push_value_head(out: &mut Vec<u8>, length: usize, presence: u32) -> Result<(), Refusal> {
    let length = u32::try_from(length).map_err(|_| too_large())?;
    out.extend_from_slice(&(u64::from(length) | u64::from(presence) << u32::BITS).to_le_bytes());
    Ok(())
}

fn put_u32(out: &mut [u8], at: usize, number: usize) -> Result<(), Refusal> {
    let number = u32::try_from(number).map_err(|_| too_large())?;
    let place = out.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<4>());
    *place.ok_or_else(|| host_error("a chunk without room for its head"))? = number.to_le_bytes();
    Ok(())
}

#[cold]
fn too_large() -> Refusal {
    host_error("a group of more than 4 GiB")
}

/// What only a mistake of the host can bring about.
fn host_error(what: &'static str) -> Refusal {
    Refusal::Host(format!("a chunk could not be packed: {what}").into())
}

#[cfg(test)]
mod tests;
