//! A count that lives through restarts, and timers beside it.

use tidemill::{Handle, Result, Rows, TimeMode, Timers, ValueState};

use crate::python::{Repr, none, timers as listed, tuple};
use crate::{Emit, Program, Step};

pub struct Restart {
    n: ValueState<i64>,
    time_mode: TimeMode,
}

impl Restart {
    pub fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self { n: handle.value_state("n")?, time_mode: handle.time_mode() })
    }
}

impl Program for Restart {
    fn rows(&mut self, rows: Rows<'_, Step>, timers: &Timers, emit: &mut Emit<'_>) -> Result<()> {
        let xs = rows.map(|row| Ok(row?.b.unwrap_or_default())).collect::<Result<Vec<_>>>()?;
        let n = self.n.get()?.unwrap_or(0) + i64::try_from(xs.len())?;
        self.n.update(&n)?;
        // A large number is a time.
        xs.iter().filter(|x| **x > 1000).try_for_each(|x| timers.register(*x))?;
        let (now, wm) = (timers.processing_time_ms(), timers.watermark_ms());
        let timers = if self.time_mode == TimeMode::None { none() } else { listed(timers)?.repr() };
        emit.row(
            "ROWS",
            tuple([n.repr(), xs.repr(), "now".repr(), now.repr(), "wm".repr(), wm.repr(), "timers".repr(), timers]),
        )
    }

    fn timer(&mut self, at: i64, timers: &Timers, emit: &mut Emit<'_>) -> Result<()> {
        let (now, wm) = (timers.processing_time_ms(), timers.watermark_ms());
        let n = self.n.get()?.map_or_else(none, |n| tuple([n.repr()]));
        emit.row("TIMER", tuple([at.repr(), "now".repr(), now.repr(), "wm".repr(), wm.repr(), n]))
    }
}
