//! Schema evolution: what differs between an earlier schema of stored rows and a later one, and how rows that were packed
//! by the earlier become rows of the later.
//!
//! Columns and the fields of structs are matched by name, upper and lower case being the same, so a name that changed is
//! a field removed and another added. Fields may be added if they may be NULL, removed, moved and widened, at any depth.

mod compare;
mod convert;

pub use compare::{Difference, Evolution, FieldChange, Obstacle};
pub use convert::{ConversionError, RowConversion};
