//! Every row is one operation on one of the state variables.

use tidemill::{Error, Handle, ListState, MapState, Result, Row, Rows, Timers, ValueState};

use crate::python::{Repr, list, none, tuple};
use crate::{Emit, Program, Step};

#[derive(Row)]
struct Pair {
    x: Option<i32>,
    y: Option<String>,
}

#[derive(Row)]
struct Number {
    x: Option<i32>,
}

#[derive(Row)]
struct Name {
    k: Option<String>,
}

impl Repr for Pair {
    fn repr(&self) -> String {
        tuple([self.x.repr(), self.y.repr()])
    }
}

impl Repr for Number {
    fn repr(&self) -> String {
        tuple([self.x.repr()])
    }
}

impl Repr for Name {
    fn repr(&self) -> String {
        tuple([self.k.repr()])
    }
}

pub struct Crud {
    v: ValueState<Pair>,
    l: ListState<Number>,
    m: MapState<Name, Number>,
}

impl Crud {
    pub fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self { v: handle.value_state("v")?, l: handle.list_state("l")?, m: handle.map_state("m")? })
    }

    fn one(&self, op: &str, a: Option<String>, b: Option<i64>) -> Result<String> {
        let x = b.map(i32::try_from).transpose()?;
        let number = |add: i32| Number { x: x.map(|x| x + add) };
        let key = Name { k: a.clone() };
        match op {
            "v.exists" => return Ok(self.v.exists()?.repr()),
            "v.get" => return Ok(self.v.get()?.repr()),
            "v.update" => self.v.update(&Pair { x, y: a })?,
            "v.updateNulls" => self.v.update(&Pair { x: None, y: None })?,
            "v.clear" => self.v.clear()?,
            "l.exists" => return Ok(self.l.exists()?.repr()),
            "l.get" => return Ok(self.l.get()?.collect::<Result<Vec<_>>>()?.repr()),
            "l.put" => self.l.put(&[number(0), number(1)])?,
            "l.putEmpty" => self.l.put(&[])?,
            "l.append" => self.l.append(&number(0))?,
            "l.appendList" => self.l.append_list(&[number(0), number(0)])?,
            "l.appendEmpty" => self.l.append_list(&[])?,
            "l.clear" => self.l.clear()?,
            "m.exists" => return Ok(self.m.exists()?.repr()),
            // PySpark answers a Row here, and a tuple everywhere else.
            "m.get" => return Ok(self.m.get(&key)?.map_or_else(none, |value| format!("Row(x={})", value.x.repr()))),
            "m.contains" => return Ok(self.m.contains_key(&key)?.repr()),
            "m.update" => self.m.update(&key, &number(0))?,
            "m.remove" => self.m.remove(&key)?,
            "m.keys" => return Ok(self.m.keys()?.collect::<Result<Vec<_>>>()?.repr()),
            "m.values" => return Ok(self.m.values()?.collect::<Result<Vec<_>>>()?.repr()),
            "m.iter" => {
                let entries = self.m.iter()?.map(|entry| entry.map(|(key, value)| tuple([key.repr(), value.repr()])));
                return Ok(list(entries.collect::<Result<Vec<_>>>()?.into_iter()));
            }
            "m.clear" => self.m.clear()?,
            _ => return Err(Error::new("NO_SUCH_OP", op)),
        }
        Ok(none())
    }
}

impl Program for Crud {
    /// An op that begins with `!` lets its error pass; the error of others is what they emit.
    fn rows(&mut self, rows: Rows<'_, Step>, _: &Timers, emit: &mut Emit<'_>) -> Result<()> {
        for row in rows {
            let Step { op, a, b, .. } = row?;
            let op = op.unwrap_or_default();
            let out = match (self.one(op.trim_start_matches('!'), a, b), op.starts_with('!')) {
                (Err(error), false) => error.code().to_owned(),
                (out, _) => out?,
            };
            emit.row(&op, out)?;
        }
        Ok(())
    }
}
