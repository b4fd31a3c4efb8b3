//! Values as Python prints them.

use tidemill::{Result, Timers};

/// What Python's `repr` says.
pub trait Repr {
    fn repr(&self) -> String;
}

impl Repr for bool {
    fn repr(&self) -> String {
        if *self { "True" } else { "False" }.to_owned()
    }
}

impl Repr for i32 {
    fn repr(&self) -> String {
        self.to_string()
    }
}

impl Repr for i64 {
    fn repr(&self) -> String {
        self.to_string()
    }
}

impl Repr for f64 {
    fn repr(&self) -> String {
        format!("{self:?}")
    }
}

impl Repr for str {
    fn repr(&self) -> String {
        format!("'{self}'")
    }
}

impl Repr for String {
    fn repr(&self) -> String {
        self.as_str().repr()
    }
}

impl<T: Repr> Repr for Option<T> {
    fn repr(&self) -> String {
        self.as_ref().map_or_else(none, Repr::repr)
    }
}

impl<T: Repr> Repr for [T] {
    fn repr(&self) -> String {
        list(self.iter().map(Repr::repr))
    }
}

impl<T: Repr> Repr for Vec<T> {
    fn repr(&self) -> String {
        self.as_slice().repr()
    }
}

/// `None`.
pub fn none() -> String {
    "None".to_owned()
}

/// `(a, b)`, with one item `(a,)`.
pub fn tuple<const N: usize>(items: [String; N]) -> String {
    if N == 1 { format!("({},)", items.concat()) } else { format!("({})", items.join(", ")) }
}

/// `[a, b]`
pub fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// The timers of the key.
pub fn timers(timers: &Timers) -> Result<Vec<i64>> {
    timers.list()?.collect()
}
