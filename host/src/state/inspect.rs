//! Reads over whole variables, beside any session: for listings, and for dropping a variable.

use std::ops::ControlFlow;

use super::changes::{Changes, Operation};
use super::codec::{RowKind, StoredRow, parse_list_header, parse_row_record, parse_timers_record};
use super::error::StateError;
use super::keys::{StateKey, TIMERS_VARIABLE, parse_sequence, parse_state_key, push_variable, state_key, successor};
use super::store::{Family, Reader, scan_checked};
use super::variable::VariableKind;
use crate::record::GroupingKey;

/// A stored row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateRow<'a> {
    /// The grouping key.
    pub key: GroupingKey<'a>,
    /// What is stored for it.
    pub contents: Contents<'a>,
    /// Schema of the row.
    pub schema_id: u16,
    /// When it expires; rows that have expired are listed until they are swept.
    pub expiry_ms: Option<i64>,
}

/// A row by kind of its variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents<'a> {
    /// A value.
    Value(&'a [u8]),
    /// An element of a list.
    Element {
        /// Ascends within the list; has gaps where elements expired.
        sequence: u64,
        /// The element.
        row: &'a [u8],
    },
    /// An entry of a map.
    Entry {
        /// Key row.
        key: &'a [u8],
        /// Value row.
        row: &'a [u8],
    },
}

/// A timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimerRow<'a> {
    /// The grouping key.
    pub key: GroupingKey<'a>,
    /// When it is due, in milliseconds since the epoch.
    pub expiry_ms: i64,
}

/// What a batch did to a row of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowChange<'a> {
    /// It is there now: a new row, or other contents.
    Put(StateRow<'a>),
    /// It is not there any more: deleted, expired, or a leftover of a list that was replaced.
    Deleted {
        /// The grouping key.
        key: GroupingKey<'a>,
        /// Of an element.
        sequence: Option<u64>,
        /// Key row of an entry.
        entry: Option<&'a [u8]>,
    },
}

/// What goes with a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedRecords {
    /// Deletes all its records, in a few bytes.
    pub changes: Changes,
    /// Number of its rows, a list being one.
    pub rows: u64,
}

/// Visits the rows of a variable, or of one key of it, in order of the keys, until `visit` breaks.
///
/// # Errors
/// The disk, or damage, which a variable of another kind is too.
pub fn for_each_row(
    reader: &dyn Reader,
    step: u8,
    variable: u16,
    kind: VariableKind,
    only: Option<GroupingKey<'_>>,
    visit: &mut dyn FnMut(StateRow<'_>) -> ControlFlow<()>,
) -> Result<(), StateError> {
    scan_variable(reader, step, variable, only, &mut |key, record| {
        if kind == VariableKind::List && key.suffix.is_empty() {
            parse_list_header(record)?;
            return Ok(ControlFlow::Continue(()));
        }
        let stored = parse_row_record(record)?;
        let contents = contents(kind, key, stored)?;
        let StoredRow { schema_id, expiry_ms, .. } = stored;
        Ok(visit(StateRow { key: key.key, contents, schema_id, expiry_ms }))
    })
}

/// Visits what the changes of a batch do to the rows of a variable, in their order, until `visit` breaks. A variable that is
/// dropped as a whole is not told of.
///
/// # Errors
/// Damage.
pub fn for_each_change(
    changes: &Changes,
    step: u8,
    variable: u16,
    kind: VariableKind,
    visit: &mut dyn FnMut(RowChange<'_>) -> ControlFlow<()>,
) -> Result<(), StateError> {
    let mut prefix = Vec::new();
    push_variable(&mut prefix, step, variable);
    for change in changes.iter() {
        let change = change?;
        if change.family != Family::State || !change.key.starts_with(&prefix) {
            continue;
        }
        let key = parse_state_key(change.key)?;
        if kind == VariableKind::List && key.suffix.is_empty() {
            continue;
        }
        let row_change = match change.operation {
            Operation::DeleteBelow(_) => continue,
            Operation::Put(record) => {
                let stored = parse_row_record(record)?;
                let StoredRow { schema_id, expiry_ms, .. } = stored;
                let contents = contents(kind, key, stored)?;
                RowChange::Put(StateRow { key: key.key, contents, schema_id, expiry_ms })
            }
            Operation::Delete => RowChange::Deleted {
                key: key.key,
                sequence: (kind == VariableKind::List).then(|| parse_sequence(key.suffix)).transpose()?,
                entry: (kind == VariableKind::Map).then_some(key.suffix),
            },
        };
        if visit(row_change).is_break() {
            break;
        }
    }
    Ok(())
}

/// Visits the timers of all keys, or of one, in order of the keys, until `visit` breaks.
///
/// # Errors
/// The disk, or damage.
pub fn for_each_timer(
    reader: &dyn Reader,
    step: u8,
    only: Option<GroupingKey<'_>>,
    visit: &mut dyn FnMut(TimerRow<'_>) -> ControlFlow<()>,
) -> Result<(), StateError> {
    let mut expiries_ms = Vec::new();
    scan_variable(reader, step, TIMERS_VARIABLE, only, &mut |key, record| {
        parse_timers_record(record, &mut expiries_ms)?;
        Ok(expiries_ms.iter().try_for_each(|&expiry_ms| visit(TimerRow { key: key.key, expiry_ms })))
    })
}

/// What makes a variable disappear, for all keys: its records are one range. Their entries in the TTL index are not, and
/// stay until their time: the sweep removes an entry that has no record.
///
/// # Errors
/// The disk, or damage.
pub fn drop_variable(reader: &dyn Reader, step: u8, variable: u16) -> Result<DroppedRecords, StateError> {
    let mut rows = 0;
    scan_variable(reader, step, variable, None, &mut |_, record| {
        // Of a list the header counts, not the elements.
        rows += u64::from(parse_row_record(record).map_or(true, |stored| stored.kind == RowKind::Single));
        Ok(ControlFlow::Continue(()))
    })?;
    let mut from = Vec::new();
    push_variable(&mut from, step, variable);
    let mut changes = Changes::default();
    changes.push_range(Family::State, &from, &successor(from.clone()));
    Ok(DroppedRecords { changes, rows })
}

fn contents<'a>(kind: VariableKind, key: StateKey<'a>, stored: StoredRow<'a>) -> Result<Contents<'a>, StateError> {
    let row = stored.row;
    match (kind, stored.kind, key.suffix.is_empty()) {
        (VariableKind::Value, RowKind::Single, true) => Ok(Contents::Value(row)),
        (VariableKind::List, RowKind::Element, false) => {
            Ok(Contents::Element { sequence: parse_sequence(key.suffix)?, row })
        }
        (VariableKind::Map, RowKind::Single, false) => Ok(Contents::Entry { key: key.suffix, row }),
        _ => Err(StateError::corrupt(
            "family State",
            format!("variable {} holds what is no {}", key.variable, kind.name()),
        )),
    }
}

/// Sees a record of family `State` and breaks to end the scan.
type VisitRecord<'a> = dyn FnMut(StateKey<'_>, &[u8]) -> Result<ControlFlow<()>, StateError> + 'a;

fn scan_variable(
    reader: &dyn Reader,
    step: u8,
    variable: u16,
    only: Option<GroupingKey<'_>>,
    visit: &mut VisitRecord<'_>,
) -> Result<(), StateError> {
    let mut from = Vec::new();
    match only {
        Some(key) => from = state_key(step, variable, key, &[]),
        None => push_variable(&mut from, step, variable),
    }
    let to = successor(from.clone());
    scan_checked(reader, Family::State, &from, &to, &mut |key, record| visit(parse_state_key(key)?, record))
}
