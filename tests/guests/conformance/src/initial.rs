//! State that a query begins with.

use tidemill::{Handle, Result, Rows, Timers, ValueState};

use crate::python::{Repr, none, tuple};
use crate::{Emit, Initial, Program, Step};

pub struct WithInitialState {
    n: ValueState<i64>,
    /// The clock of the initial rows, and whether there was something before each.
    seen: ValueState<String>,
}

impl WithInitialState {
    pub fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self { n: handle.value_state("n")?, seen: handle.value_state("seen")? })
    }

    fn n(&self) -> Result<String> {
        Ok(self.n.get()?.map_or_else(none, |n| tuple([n.repr()])))
    }
}

impl Program for WithInitialState {
    fn initial(&mut self, row: Initial, timers: &Timers) -> Result<()> {
        let (now, wm) = (timers.processing_time_ms(), timers.watermark_ms());
        let exists = self.n.exists()?.repr();
        self.seen.update(&format!("now {now} wm {wm} exists {exists}"))?;
        self.n.update(&(self.n.get()?.unwrap_or(0) + row.n))?;
        row.timer.map_or(Ok(()), |timer| timers.register(timer))
    }

    fn rows(&mut self, rows: Rows<'_, Step>, _: &Timers, emit: &mut Emit<'_>) -> Result<()> {
        let rows = rows.collect::<Result<Vec<_>>>()?;
        self.n.update(&(self.n.get()?.unwrap_or(0) + i64::try_from(rows.len())?))?;
        emit.row("ROWS", self.n()?)?;
        if rows.iter().any(|row| row.op.as_deref() == Some("seen")) {
            emit.row("SEEN", self.seen.get()?.repr())?;
        }
        Ok(())
    }

    fn timer(&mut self, at: i64, _: &Timers, emit: &mut Emit<'_>) -> Result<()> {
        emit.row("TIMER", tuple([at.repr(), self.n()?]))
    }
}
