//! State: values, lists, maps and timers per grouping key, with TTL, over a store of bytes.
//!
//! Read in this order: [`store`](Store) (what a store can do, with [`MemoryStore`] and [`RocksStore`]), `keys` and
//! `codec` (the bytes), [`Catalog`] (names to ids), `evolution` (how a variable may change), [`Session`] (a worker's view
//! of a batch), [`Changes`] (what a batch commits), [`DueIndex`] (when something is due).
//!
//! Invariants:
//! - Committed state does not change while a batch runs; a batch's writes are seen only by its own session.
//! - The same operations give the same bytes of changes, and changes may be applied again.
//! - The time index of timers holds exactly what the records say. Every record that expires is in the TTL index; an entry
//!   without such a record, as a dropped variable leaves them, goes at its time.
//!
//! It knows bytes and ids: nothing of row formats, WebAssembly, the clock or the log. RocksDB is named in `rocks` only.

mod catalog;
mod changes;
mod check;
mod codec;
mod due;
mod error;
mod evolution;
mod inspect;
mod keys;
mod limits;
mod memory;
mod rocks;
mod session;
mod store;
mod variable;

#[cfg(test)]
mod tests;

pub use catalog::{Catalog, CatalogVariable, Dropped, Resolution, StoredRows};
pub use changes::{Change, Changes, Operation};
pub use check::{Checked, check_store, digest_store};
pub use due::DueIndex;
pub use error::StateError;
pub use evolution::{Outlook, VariableOutlook};
pub use inspect::{
    Contents, DroppedRecords, RowChange, StateRow, TimerRow, drop_variable, for_each_change, for_each_row,
    for_each_timer,
};
pub use limits::StateLimits;
pub use memory::MemoryStore;
pub use rocks::{RocksSettings, RocksStore};
pub use session::{Cursor, Finished, GroupId, ListCursor, MapCursor, MapPart, Scope, Session, SessionMetrics};
pub use store::{Applied, Family, Reader, Store, StoreActivity, StoreMetrics, Visit};
pub use variable::{Conversions, NAME_CHARS_MAX, VARIABLES_MAX, Variable, VariableKind, VariableSpec, check_name};
