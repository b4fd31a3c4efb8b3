//! One value per grouping key.

use std::marker::PhantomData;
use std::rc::Rc;

use crate::contract::Variable;
use crate::error::Result;
use crate::row::{Row, from_packed, to_packed};
use crate::session::Session;

/// One value of type `T` per grouping key.
pub struct ValueState<T> {
    session: Rc<Session>,
    variable: Variable,
    row: PhantomData<fn(T) -> T>,
}

impl<T: Row> ValueState<T> {
    pub(crate) fn new(session: Rc<Session>, variable: Variable) -> Self {
        Self { session, variable, row: PhantomData }
    }

    /// The value, if there is one.
    #[inline]
    pub fn get(&self) -> Result<Option<T>> {
        self.session.read_value(self.variable, from_packed)
    }

    /// Whether there is a value.
    pub fn exists(&self) -> Result<bool> {
        self.session.value_exists(self.variable)
    }

    /// Replaces the value, and starts its TTL anew.
    #[inline]
    pub fn update(&self, value: &T) -> Result<()> {
        self.session.put_value(self.variable, |bytes| to_packed(value, bytes))
    }

    /// Removes the value.
    pub fn clear(&self) -> Result<()> {
        self.session.clear_value(self.variable)
    }
}
