//! A count per key, with what the rows of a batch brought.

use tidemill::{Handle, Result, Rows, Timers, ValueState};

use crate::python::{Repr, tuple};
use crate::{Emit, Program, Step};

pub struct Keys {
    n: ValueState<i64>,
}

impl Keys {
    pub fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self { n: handle.value_state("n")? })
    }
}

impl Program for Keys {
    fn rows(&mut self, rows: Rows<'_, Step>, _: &Timers, emit: &mut Emit<'_>) -> Result<()> {
        let xs = rows.map(|row| Ok(row?.b.unwrap_or_default())).collect::<Result<Vec<_>>>()?;
        let n = self.n.get()?.unwrap_or(0) + i64::try_from(xs.len())?;
        self.n.update(&n)?;
        emit.row("ROWS", tuple([n.repr(), xs.repr()]))
    }
}
