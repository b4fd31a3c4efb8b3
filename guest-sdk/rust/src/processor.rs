//! What an author writes, and what the handlers are given.

use std::marker::PhantomData;
use std::rc::Rc;

use crate::error::Result;
use crate::handle::Handle;
use crate::ops::Code;
use crate::row::{Row, from_packed, to_packed};
use crate::session::Session;
use crate::timers::Timers;

/// Ops that emit name no variable.
const NO_VARIABLE: u32 = 0;

/// A stateful processor: handlers that the host calls per grouping key, in every batch on a fresh instance.
///
/// What must outlive a batch belongs into state variables, not into fields. An error of a handler, or a panic, fails
/// the batch, which then has had no effect.
pub trait StatefulProcessor: Sized + 'static {
    /// The grouping key. A struct names the query's key columns; a primitive or tuple takes them by position.
    /// `Option` where a NULL is a key like any other; without it, a row with a NULL key is a bad row.
    type Key: Row;
    /// The columns of the input that the handlers want; others are not even read. A NULL in a column that is no
    /// `Option` makes a row bad.
    type Input: Row;
    /// Rows that the handlers emit.
    type Output: Row;

    /// Makes the processor and its state variables. There is no grouping key yet, so state cannot be read or written.
    ///
    /// Which variables are made may depend on the query's settings, not on run id, batch id or time.
    fn init(handle: &mut Handle) -> Result<Self>;

    /// Handles the rows of one grouping key in this batch. Rows that are left unread are skipped.
    fn handle_input_rows(
        &mut self,
        key: &Self::Key,
        rows: Rows<'_, Self::Input>,
        timers: &Timers,
        out: &mut Out<Self::Output>,
    ) -> Result<()>;

    /// Handles one timer of a grouping key, after all input of the batch. It is deleted unless it is registered again
    /// here.
    fn handle_expired_timer(
        &mut self,
        key: &Self::Key,
        expiry_ms: i64,
        timers: &Timers,
        out: &mut Out<Self::Output>,
    ) -> Result<()> {
        let _ = (key, expiry_ms, timers, out);
        Ok(())
    }

    /// The last call of a batch, before it is committed. Changes and emits nothing.
    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A processor that takes an initial state; exported by `export_processor!(Name, initial_state)`.
pub trait StatefulProcessorWithInitialState: StatefulProcessor {
    /// Rows of the initial state; its key columns are the query's.
    type InitialState: Row;

    /// Handles one row of the initial state, before any input of the query. Timers registered here fire from the
    /// first batch of input on.
    fn handle_initial_state(&mut self, key: &Self::Key, row: Self::InitialState, timers: &Timers) -> Result<()>;
}

/// The rows of one grouping key in a batch, in the order of the source. Pulls as it goes, so there may be any number
/// of them.
pub struct Rows<'a, T> {
    session: &'a Session,
    row: PhantomData<T>,
}

impl<'a, T> Rows<'a, T> {
    pub(crate) fn new(session: &'a Session) -> Self {
        Self { session, row: PhantomData }
    }
}

impl<T: Row> Iterator for Rows<'_, T> {
    type Item = Result<T>;

    #[inline]
    fn next(&mut self) -> Option<Result<T>> {
        self.session.next_row(from_packed).transpose()
    }
}

/// Where a handler emits rows.
pub struct Out<T> {
    session: Rc<Session>,
    row: PhantomData<fn(T)>,
}

impl<T: Row> Out<T> {
    pub(crate) fn new(session: Rc<Session>) -> Self {
        Self { session, row: PhantomData }
    }

    /// Emits a row. It is published with the batch.
    #[inline]
    pub fn emit(&mut self, row: &T) -> Result<()> {
        self.session.write("emit", Code::Emit, NO_VARIABLE, |bytes| to_packed(row, bytes))?;
        Ok(())
    }
}
