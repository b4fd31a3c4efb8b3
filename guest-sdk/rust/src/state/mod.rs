//! State variables: what a processor keeps for each grouping key.
//!
//! All reads and writes are those of the group whose handler runs; they see the writes before them at once, and
//! become durable with the batch. With a TTL, what has expired is not seen, and reading does not refresh.

mod list;
mod map;
mod pages;
mod value;

pub use list::{ListIter, ListState};
pub use map::{MapEntries, MapKeys, MapState, MapValues};
pub use value::ValueState;
