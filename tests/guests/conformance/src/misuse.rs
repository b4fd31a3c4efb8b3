//! A count, and what should not be done: the parameters `init`, `rows`, `timer` and `close` say what is done there.

use std::time::Duration;

use tidemill::{Error, Handle, Result, Rows, Timers, ValueState};

use crate::python::{Repr, timers as listed};
use crate::{Emit, Program, Step};

pub struct Misuse {
    n: ValueState<i64>,
    rows: String,
    timer: String,
    close: String,
}

impl Misuse {
    pub fn init(handle: &mut Handle) -> Result<Self> {
        let told = |handle: &Handle, what: &str| handle.parameter(what).unwrap_or_default().to_owned();
        let misuse = Self {
            n: handle.value_state("n")?,
            rows: told(handle, "rows"),
            timer: told(handle, "timer"),
            close: told(handle, "close"),
        };
        let init = told(handle, "init");
        let ttl = |handle: &Handle| -> Result<Duration> {
            Ok(Duration::from_millis(handle.parameter("ttl_ms").unwrap_or("1000").parse()?))
        };
        match init.as_str() {
            "" => {}
            "boom" => return Err(Error::msg("boom")),
            "value" => drop(handle.value_state::<i64>(&told(handle, "name"))?),
            "list" => drop(handle.list_state::<i64>(&told(handle, "name"))?),
            "map" => drop(handle.map_state::<i64, i64>(&told(handle, "name"))?),
            "ttl value" => drop(handle.value_state_with_ttl::<i64>("t", ttl(handle)?)?),
            "ttl list" => drop(handle.list_state_with_ttl::<i64>("t", ttl(handle)?)?),
            "ttl map" => drop(handle.map_state_with_ttl::<i64, i64>("t", ttl(handle)?)?),
            "ttl below a millisecond" => drop(handle.value_state_with_ttl::<i64>("t", Duration::from_nanos(1))?),
            "get" => drop(misuse.n.get()?),
            "update" => misuse.n.update(&1)?,
            "exists" => drop(misuse.n.exists()?),
            "clear" => misuse.n.clear()?,
            "list exists" => drop(handle.list_state::<i64>("l")?.exists()?),
            "map exists" => drop(handle.map_state::<i64, i64>("m")?.exists()?),
            "delete" => handle.delete_if_exists(&told(handle, "name"))?,
            _ => return Err(Error::new("NO_SUCH_OP", init)),
        }
        Ok(misuse)
    }
}

impl Program for Misuse {
    fn rows(&mut self, rows: Rows<'_, Step>, timers: &Timers, emit: &mut Emit<'_>) -> Result<()> {
        let rows = rows.collect::<Result<Vec<_>>>()?;
        match self.rows.as_str() {
            "" => {
                let n = self.n.get()?.unwrap_or(0) + i64::try_from(rows.len())?;
                self.n.update(&n)?;
                emit.row("n", n.repr())
            }
            "boom" => Err(Error::msg("boom")),
            "coded" => Err(Error::new("OF_MY_OWN", "boom")),
            "register" => timers.register(1),
            "register now" => timers.register(0),
            "delete" => timers.delete(1),
            "list" => emit.row("timers", listed(timers)?.repr()),
            "times" => {
                emit.row("now", timers.processing_time_ms().repr())?;
                emit.row("wm", timers.watermark_ms().repr())
            }
            "nothing" => Ok(()),
            "two" => {
                emit.row("1", "1")?;
                emit.row("2", "2")
            }
            told => Err(Error::new("NO_SUCH_OP", told)),
        }
    }

    fn timer(&mut self, _: i64, _: &Timers, _: &mut Emit<'_>) -> Result<()> {
        if self.timer == "boom" { Err(Error::msg("boom")) } else { Ok(()) }
    }

    fn close(&mut self) -> Result<()> {
        match self.close.as_str() {
            "" => Ok(()),
            "boom" => Err(Error::msg("boom")),
            "get" => self.n.get().map(drop),
            told => Err(Error::new("NO_SUCH_OP", told)),
        }
    }
}
