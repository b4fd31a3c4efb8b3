//! Iterators over more than one page, two of them at a time, and with other calls between their steps.

use tidemill::{Error, Handle, ListState, MapState, Result, Row, Rows, Timers, ValueState};

use crate::python::{Repr, none, tuple};
use crate::{Emit, Program, Step};

/// A row of more than 100 bytes, so that some thousands are several pages.
#[derive(Row)]
struct Padded {
    x: i64,
    pad: String,
}

impl Padded {
    fn of(x: i64) -> Self {
        Self { x, pad: "-".repeat(100) }
    }
}

pub struct Iterators {
    v: ValueState<i64>,
    l: ListState<Padded>,
    m: MapState<i64, Padded>,
}

impl Iterators {
    pub fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self { v: handle.value_state("v")?, l: handle.list_state("l")?, m: handle.map_state("m")? })
    }

    fn one(&self, op: &str, n: i64) -> Result<String> {
        match op {
            "l.fill" => {
                self.l.put(&(0..n).map(Padded::of).collect::<Vec<_>>())?;
                Ok(none())
            }
            "m.fill" => {
                (0..n).try_for_each(|x| self.m.update(&x, &Padded::of(x)))?;
                Ok(none())
            }
            "l.first" => Ok(self.l.get()?.next().transpose()?.map(|first| first.x).repr()),
            "l.sum" => sum(self.l.get()?.map(|element| Ok(element?.x))),
            "m.sum" => sum(self.m.iter()?.map(|entry| entry.map(|(key, value)| key + value.x))),
            "m.sumKeys" => sum(self.m.keys()?),
            "m.sumValues" => sum(self.m.values()?.map(|value| Ok(value?.x))),
            "l.twice" => {
                let pairs = self.l.get()?.zip(self.l.get()?);
                sum(pairs.map(|(one, other)| Ok(one?.x + other?.x)))
            }
            "l.andMap" => {
                let pairs = self.l.get()?.zip(self.m.values()?);
                sum(pairs.map(|(element, value)| Ok(element?.x + value?.x)))
            }
            "l.busy" => self.busy_list(),
            "m.busy" => self.busy_map(),
            _ => Err(Error::new("NO_SUCH_OP", op)),
        }
    }

    /// Writes to all kinds of state, and reads them, while a list is walked.
    fn busy_list(&self) -> Result<String> {
        let mut seen = 0_i64;
        for element in self.l.get()? {
            let Padded { x, .. } = element?;
            seen += 1;
            self.v.update(&(self.v.get()?.unwrap_or(0) + x))?;
            self.m.update(&x, &Padded::of(x))?;
            self.l.append(&Padded::of(-x))?;
        }
        Ok(tuple([seen.repr(), self.v.get()?.repr(), count(self.m.keys()?)?.repr(), count(self.l.get()?)?.repr()]))
    }

    /// Removes the entries of a map while it is walked.
    fn busy_map(&self) -> Result<String> {
        let mut seen = 0_i64;
        for key in self.m.keys()? {
            let key = key?;
            self.m.remove(&key)?;
            seen += i64::from(!self.m.contains_key(&key)?);
        }
        Ok(tuple([seen.repr(), self.m.exists()?.repr()]))
    }
}

impl Program for Iterators {
    fn rows(&mut self, rows: Rows<'_, Step>, _: &Timers, emit: &mut Emit<'_>) -> Result<()> {
        for row in rows {
            let Step { op, b, .. } = row?;
            let op = op.unwrap_or_default();
            emit.row(&op, self.one(&op, b.unwrap_or_default())?)?;
        }
        Ok(())
    }
}

/// How many numbers there are, and their sum.
fn sum(numbers: impl Iterator<Item = Result<i64>>) -> Result<String> {
    let (mut count, mut sum) = (0_i64, 0);
    for number in numbers {
        count += 1;
        sum += number?;
    }
    Ok(tuple([count.repr(), sum.repr()]))
}

fn count<T>(mut items: impl Iterator<Item = Result<T>>) -> Result<i64> {
    items.try_fold(0, |count, item| item.map(|_| count + 1))
}
