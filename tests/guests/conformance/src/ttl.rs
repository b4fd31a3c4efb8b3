//! Value, list and map state that expire.

use std::time::Duration;

use tidemill::{Error, Handle, ListState, MapState, Result, Rows, Timers, ValueState};

use crate::python::{Repr, list, none, tuple};
use crate::{Emit, Program, Step};

const TTL: Duration = Duration::from_millis(5_000);

pub struct Ttl {
    v: ValueState<Option<i64>>,
    l: ListState<Option<i64>>,
    m: MapState<String, Option<i64>>,
    /// Without TTL.
    n: ValueState<Option<i64>>,
}

impl Ttl {
    pub fn init(handle: &mut Handle) -> Result<Self> {
        let ttl = handle.parameter("ttl_ms").map(str::parse).transpose()?.map_or(TTL, Duration::from_millis);
        Ok(Self {
            v: handle.value_state_with_ttl("v", ttl)?,
            l: handle.list_state_with_ttl("l", ttl)?,
            m: handle.map_state_with_ttl("m", ttl)?,
            n: handle.value_state("n")?,
        })
    }

    fn one(&self, op: &str, a: &str, b: Option<i64>) -> Result<String> {
        let one = |value: Option<Option<i64>>| value.map_or_else(none, |value| tuple([value.repr()]));
        let a = &a.to_owned();
        match op {
            "set" => {
                self.v.update(&b)?;
                self.n.update(&b)?;
            }
            "append" => self.l.append(&b)?,
            "put" => self.l.put(&[b, b.map(|b| b + 1)])?,
            "mset" => self.m.update(a, &b)?,
            "mremove" => self.m.remove(a)?,
            "clear" => self.v.clear()?,
            "get" => {
                let elements = self.l.get()?.map(|element| Ok(tuple([element?.repr()]))).collect::<Result<Vec<_>>>()?;
                let entry = |entry: Result<(String, Option<i64>)>| {
                    let (key, value) = entry?;
                    Ok(tuple([key.repr(), value.repr()]))
                };
                let entries = self.m.iter()?.map(entry).collect::<Result<Vec<_>>>()?;
                return Ok(tuple([
                    self.v.exists()?.repr(),
                    one(self.v.get()?),
                    self.l.exists()?.repr(),
                    list(elements.into_iter()),
                    self.m.exists()?.repr(),
                    list(entries.into_iter()),
                    self.m.contains_key(&"p".to_owned())?.repr(),
                    one(self.n.get()?),
                ]));
            }
            _ => return Err(Error::new("NO_SUCH_OP", op)),
        }
        Ok(none())
    }
}

impl Program for Ttl {
    fn rows(&mut self, rows: Rows<'_, Step>, timers: &Timers, emit: &mut Emit<'_>) -> Result<()> {
        for row in rows {
            let Step { op, a, b, .. } = row?;
            let op = op.unwrap_or_default();
            emit.row(&op, self.one(&op, &a.unwrap_or_default(), b)?)?;
        }
        emit.row("now", tuple([timers.processing_time_ms().repr(), timers.watermark_ms().repr()]))
    }
}
