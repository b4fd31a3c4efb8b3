//! Timers of event time.

use tidemill::{Handle, MapState, Result, Rows, Timers, Timestamp, ValueState};

use crate::python::{Repr, none, timers as listed, tuple};
use crate::{Emit, Program, Step};

pub struct EventTime {
    cnt: ValueState<i64>,
    /// What to do when the timer of that time fires.
    todo: MapState<i64, String>,
}

impl EventTime {
    pub fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self { cnt: handle.value_state("cnt")?, todo: handle.map_state("todo")? })
    }
}

impl Program for EventTime {
    fn rows(&mut self, rows: Rows<'_, Step>, timers: &Timers, emit: &mut Emit<'_>) -> Result<()> {
        let wm = timers.watermark_ms();
        for row in rows {
            let Step { op, b: d, ts, .. } = row?;
            let at = d.unwrap_or_default();
            self.cnt.update(&(self.cnt.get()?.unwrap_or(0) + 1))?;
            let mut out = none();
            match op.as_deref() {
                Some("reg") => timers.register(at)?,
                Some("regWm") => timers.register(wm + at)?,
                Some("del") => timers.delete(at)?,
                Some("list") => out = listed(timers)?.repr(),
                Some(op) => {
                    if let Some(what) = op.strip_prefix("plan:") {
                        self.todo.update(&at, &what.to_owned())?;
                        timers.register(at)?;
                    }
                }
                None => {}
            }
            emit.row("ROW", tuple([ts.map(Timestamp::millis).repr(), op.repr(), d.repr(), out]))?;
        }
        let now = timers.processing_time_ms();
        emit.row("rows-done", tuple(["wm".repr(), wm.repr(), "now".repr(), now.repr()]))
    }

    fn timer(&mut self, at: i64, timers: &Timers, emit: &mut Emit<'_>) -> Result<()> {
        let (wm, now) = (timers.watermark_ms(), timers.processing_time_ms());
        let what = self.todo.get(&at)?;
        match what.as_deref() {
            Some("past") => timers.register(at - 10)?,
            Some("atWm") => timers.register(wm)?,
            Some("later") => timers.register(wm + 1)?,
            _ => {}
        }
        let cnt = self.cnt.get()?.map_or_else(none, |cnt| tuple([cnt.repr()]));
        emit.row("TIMER", tuple([at.repr(), "wm".repr(), wm.repr(), "now".repr(), now.repr(), what.repr(), cnt]))
    }
}
