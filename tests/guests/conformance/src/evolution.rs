//! A variable whose kind and schema the parameters give, so that they can change over a restart: what was there is
//! emitted, then a row is written.
//!
//! `kind` is `v`, `l`, `m` or `none`; `schema` names the row type, `val` and `text` what is written; `name` and `ttl_ms`
//! are the variable's; `map_key` is `k`, `kl` or `int` and names the type of a map's key; `also` is the kind of a second
//! variable with the same schema, `extra` names a further one, `drop` one to delete.

use std::time::Duration;

use tidemill::{Error, Handle, ListState, MapState, Result, Row, Rows, Timers, ValueState};

use crate::python::{Repr, tuple};
use crate::{Emit, Program, Step};

/// What is written.
struct Told {
    val: i64,
    text: String,
}

/// A row type that a state is declared with.
trait Stored: Row + Repr + 'static {
    fn of(told: &Told) -> Result<Self>;
}

/// A row type with its fields, each with what is written of `val` and `text`.
macro_rules! stored {
    ($($name:ident { $($field:ident: $type:ty = |$told:ident| $value:expr),+ })+) => {$(
        #[derive(Row)]
        struct $name { $($field: Option<$type>),+ }

        impl Stored for $name {
            fn of(told: &Told) -> Result<Self> {
                Ok(Self { $($field: { let $told = told; Some($value) }),+ })
            }
        }

        impl Repr for $name {
            fn repr(&self) -> String {
                tuple([$(self.$field.repr()),+])
            }
        }
    )+};
}

stored! {
    Xy { x: i32 = |told| int(told)?, y: String = |told| told.text.clone() }
    Xyz { x: i32 = |told| int(told)?, y: String = |told| told.text.clone(), z: i64 = |told| told.val + 1 }
    Zxy { z: i64 = |told| told.val + 1, x: i32 = |told| int(told)?, y: String = |told| told.text.clone() }
    X { x: i32 = |told| int(told)? }
    Y { y: String = |told| told.text.clone() }
    Xyy { x: i32 = |told| int(told)?, yy: String = |told| told.text.clone() }
    Yx { y: String = |told| told.text.clone(), x: i32 = |told| int(told)? }
    LongXy { x: i64 = |told| told.val, y: String = |told| told.text.clone() }
    DoubleXy { x: f64 = |told| half(told), y: String = |told| told.text.clone() }
    StringXy { x: String = |told| told.val.to_string(), y: String = |told| told.text.clone() }
    NestedA { x: i32 = |told| int(told)?, n: A = |told| A::of(told)? }
    NestedAb { x: i32 = |told| int(told)?, n: Ab = |told| Ab::of(told)? }
    A { a: i32 = |told| int(told)? }
    Ab { a: i32 = |told| int(told)?, b: String = |_told| "q".to_owned() }
    Ints { x: Vec<i32> = |told| vec![int(told)?] }
    Longs { x: Vec<i64> = |told| vec![told.val] }
    K { k: String = |_told| "k".to_owned() }
    Kl { k: String = |_told| "k".to_owned(), k2: String = |_told| "l".to_owned() }
    IntK { k: i32 = |_told| 5 }
}

fn int(told: &Told) -> Result<i32> {
    Ok(i32::try_from(told.val)?)
}

#[expect(clippy::cast_precision_loss, reason = "tests write small numbers")]
fn half(told: &Told) -> f64 {
    told.val as f64 + 0.5
}

/// A declared variable: what is there, as text, and one write.
trait Variable {
    fn got(&self) -> Result<String>;
    fn write(&self, told: &Told) -> Result<()>;
}

impl<T: Stored> Variable for ValueState<T> {
    fn got(&self) -> Result<String> {
        Ok(self.get()?.repr())
    }

    fn write(&self, told: &Told) -> Result<()> {
        self.update(&T::of(told)?)
    }
}

impl<T: Stored> Variable for ListState<T> {
    fn got(&self) -> Result<String> {
        Ok(self.get()?.collect::<Result<Vec<_>>>()?.repr())
    }

    fn write(&self, told: &Told) -> Result<()> {
        self.append(&T::of(told)?)
    }
}

impl<K: Stored, T: Stored> Variable for MapState<K, T> {
    fn got(&self) -> Result<String> {
        let entries = self.iter()?.map(|entry| entry.map(|(key, value)| tuple([key.repr(), value.repr()])));
        Ok(format!("[{}]", entries.collect::<Result<Vec<_>>>()?.join(", ")))
    }

    fn write(&self, told: &Told) -> Result<()> {
        self.update(&K::of(told)?, &T::of(told)?)
    }
}

struct Evolution {
    /// None of them, one, or two.
    variables: Vec<Box<dyn Variable>>,
    extra: Option<ValueState<i64>>,
    told: Told,
}

pub fn init(handle: &mut Handle) -> Result<Box<dyn Program>> {
    if let Some(name) = handle.parameter("drop").filter(|name| !name.is_empty()).map(str::to_owned) {
        handle.delete_if_exists(&name)?;
    }
    let told = |name: &str| handle.parameter(name).unwrap_or_default();
    let val = told("val").parse().unwrap_or(1);
    let text = told("text").to_owned();
    let schema = told("schema").to_owned();
    let variables = match schema.as_str() {
        "" => Vec::new(),
        "xy" => declare::<Xy>(handle)?,
        "xyz" => declare::<Xyz>(handle)?,
        "zxy" => declare::<Zxy>(handle)?,
        "x" => declare::<X>(handle)?,
        "y" => declare::<Y>(handle)?,
        "xyy" => declare::<Xyy>(handle)?,
        "yx" => declare::<Yx>(handle)?,
        "long xy" => declare::<LongXy>(handle)?,
        "double xy" => declare::<DoubleXy>(handle)?,
        "string xy" => declare::<StringXy>(handle)?,
        "nested a" => declare::<NestedA>(handle)?,
        "nested ab" => declare::<NestedAb>(handle)?,
        "ints" => declare::<Ints>(handle)?,
        "longs" => declare::<Longs>(handle)?,
        _ => return Err(Error::new("NO_SUCH_SCHEMA", schema)),
    };
    let extra = handle.parameter("extra").map(str::to_owned).map(|name| handle.value_state(&name)).transpose()?;
    Ok(Box::new(Evolution { variables, extra, told: Told { val, text } }))
}

fn declare<T: Stored>(handle: &mut Handle) -> Result<Vec<Box<dyn Variable>>> {
    let told = |handle: &Handle, name: &str, default: &str| handle.parameter(name).unwrap_or(default).to_owned();
    let (name, kind, also) = (told(handle, "name", "v"), told(handle, "kind", "v"), told(handle, "also", ""));
    let mut variables = vec![declare_one::<T>(handle, &name, &kind)?];
    if !also.is_empty() {
        variables.push(declare_one::<T>(handle, "also", &also)?);
    }
    Ok(variables)
}

fn declare_one<T: Stored>(handle: &mut Handle, name: &str, kind: &str) -> Result<Box<dyn Variable>> {
    let ttl = Duration::from_millis(handle.parameter("ttl_ms").unwrap_or("0").parse()?);
    let key = handle.parameter("map_key").unwrap_or("k").to_owned();
    Ok(match (kind, key.as_str()) {
        ("v", _) => Box::new(handle.value_state_with_ttl::<T>(name, ttl)?),
        ("l", _) => Box::new(handle.list_state_with_ttl::<T>(name, ttl)?),
        ("m", "k") => Box::new(handle.map_state_with_ttl::<K, T>(name, ttl)?),
        ("m", "kl") => Box::new(handle.map_state_with_ttl::<Kl, T>(name, ttl)?),
        ("m", "int") => Box::new(handle.map_state_with_ttl::<IntK, T>(name, ttl)?),
        _ => return Err(Error::new("NO_SUCH_KIND", kind)),
    })
}

impl Program for Evolution {
    fn rows(&mut self, rows: Rows<'_, Step>, _: &Timers, emit: &mut Emit<'_>) -> Result<()> {
        let rows = rows.collect::<Result<Vec<_>>>()?;
        if self.variables.is_empty() {
            return emit.row("got", "-");
        }
        for variable in &self.variables {
            let got = variable.got()?;
            // A row with the op `look` writes nothing.
            if rows.iter().any(|row| row.op.as_deref() != Some("look")) {
                variable.write(&self.told)?;
            }
            emit.row("got", got)?;
        }
        if let Some(extra) = &self.extra {
            if let Some(extra) = extra.get()? {
                emit.row("extra", extra.repr())?;
            }
            extra.update(&1)?;
        }
        Ok(())
    }
}
