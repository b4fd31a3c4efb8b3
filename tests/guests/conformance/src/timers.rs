//! Timers of processing time: times are offsets to the batch's, or absolute where the op says `Abs`.

use tidemill::{Handle, MapState, Result, Rows, Timers, ValueState};

use crate::python::{Repr, none, timers as listed, tuple};
use crate::{Emit, Program, Step};

pub struct ProcessingTime {
    /// What to do when the timer of that time fires.
    todo: MapState<i64, String>,
    cnt: ValueState<i64>,
}

impl ProcessingTime {
    pub fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self { todo: handle.map_state("todo")?, cnt: handle.value_state("cnt")? })
    }
}

impl Program for ProcessingTime {
    fn rows(&mut self, rows: Rows<'_, Step>, timers: &Timers, emit: &mut Emit<'_>) -> Result<()> {
        let now = timers.processing_time_ms();
        for row in rows {
            let Step { op, b, .. } = row?;
            let (op, d) = (op.unwrap_or_default(), b.unwrap_or_default());
            self.cnt.update(&(self.cnt.get()?.unwrap_or(0) + 1))?;
            let out = match op.as_str() {
                "reg" => timers.register(now + d).map(|()| none())?,
                "regAbs" => timers.register(d).map(|()| none())?,
                "del" => timers.delete(now + d).map(|()| none())?,
                "delAbs" => timers.delete(d).map(|()| none())?,
                "list" => listed(timers)?.repr(),
                _ => match op.strip_prefix("plan:") {
                    Some(what) => {
                        self.todo.update(&(now + d), &what.to_owned())?;
                        timers.register(now + d)?;
                        none()
                    }
                    None => "noop".repr(),
                },
            };
            emit.row(&op, out)?;
        }
        emit.row("rows-done", tuple([now.repr(), timers.watermark_ms().repr()]))
    }

    fn timer(&mut self, at: i64, timers: &Timers, emit: &mut Emit<'_>) -> Result<()> {
        let now = timers.processing_time_ms();
        let what = self.todo.get(&at)?;
        let before = listed(timers)?;
        match what.as_deref() {
            Some("rearm") => timers.register(now + 1000)?,
            Some("same") => {
                // Once, or the timer is due for ever.
                self.todo.remove(&at)?;
                timers.register(at)?;
            }
            Some("past") => {
                self.todo.remove(&at)?;
                timers.register(at - 10)?;
            }
            Some("mid") => {
                self.todo.remove(&at)?;
                timers.register(at + 1)?;
            }
            Some("delNext") => timers.delete(at + 1)?,
            Some("clear") => self.cnt.clear()?,
            _ => {}
        }
        let cnt = self.cnt.get()?.map_or_else(none, |cnt| tuple([cnt.repr()]));
        emit.row("TIMER", tuple([at.repr(), now.repr(), what.repr(), before.repr(), cnt]))
    }
}
