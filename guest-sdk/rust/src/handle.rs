//! What `init` is given: the query's settings, and the making of state variables.

use std::rc::Rc;
use std::time::Duration;

use crate::contract::{OutputMode, Query, TimeMode};
use crate::error::{Error, Result};
use crate::row::{Row, stored_schema};
use crate::session::Session;
use crate::state::{ListState, MapState, ValueState};

/// The query that a processor runs in. State variables are made here, and only here.
///
/// A variable that has the name and kind of an earlier one finds its state. Its row type may gain fields (`Option`s),
/// lose some, reorder them, and widen numbers; its name may have up to 300 characters.
pub struct Handle {
    session: Rc<Session>,
    query: Query,
}

impl Handle {
    pub(crate) fn new(session: Rc<Session>, query: Query) -> Self {
        Self { session, query }
    }

    /// Makes a value state.
    pub fn value_state<T: Row>(&mut self, name: &str) -> Result<ValueState<T>> {
        self.value_state_with_ttl(name, Duration::ZERO)
    }

    /// Makes a value state whose value expires so long after it was written, in processing time; zero is never.
    pub fn value_state_with_ttl<T: Row>(&mut self, name: &str, ttl: Duration) -> Result<ValueState<T>> {
        let variable = self.session.host.value_state(name, &stored_schema::<T>()?, ttl_ms(ttl)?)?;
        Ok(ValueState::new(Rc::clone(&self.session), variable))
    }

    /// Makes a list state.
    pub fn list_state<T: Row>(&mut self, name: &str) -> Result<ListState<T>> {
        self.list_state_with_ttl(name, Duration::ZERO)
    }

    /// Makes a list state whose elements expire so long after they were written, each on its own; zero is never.
    pub fn list_state_with_ttl<T: Row>(&mut self, name: &str, ttl: Duration) -> Result<ListState<T>> {
        let variable = self.session.host.list_state(name, &stored_schema::<T>()?, ttl_ms(ttl)?)?;
        Ok(ListState::new(Rc::clone(&self.session), variable))
    }

    /// Makes a map state.
    pub fn map_state<K: Row, V: Row>(&mut self, name: &str) -> Result<MapState<K, V>> {
        self.map_state_with_ttl(name, Duration::ZERO)
    }

    /// Makes a map state whose entries expire so long after they were written, each on its own; zero is never.
    pub fn map_state_with_ttl<K: Row, V: Row>(&mut self, name: &str, ttl: Duration) -> Result<MapState<K, V>> {
        let (key, value) = (stored_schema::<K>()?, stored_schema::<V>()?);
        let variable = self.session.host.map_state(name, &key, &value, ttl_ms(ttl)?)?;
        Ok(MapState::new(Rc::clone(&self.session), variable))
    }

    /// Drops a variable that an earlier version of the processor made, for all grouping keys. No effect if there is
    /// none.
    pub fn delete_if_exists(&mut self, name: &str) -> Result<()> {
        self.session.host.delete_if_exists(name)
    }

    /// A setting of the query.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// When timers and TTL move.
    pub fn time_mode(&self) -> TimeMode {
        self.query.time_mode
    }

    /// What emitted rows mean to a sink with keys.
    pub fn output_mode(&self) -> OutputMode {
        self.query.output_mode
    }

    /// All that is known of the query.
    pub fn query(&self) -> &Query {
        &self.query
    }
}

fn ttl_ms(ttl: Duration) -> Result<Option<u64>> {
    if ttl.is_zero() {
        return Ok(None);
    }
    match u64::try_from(ttl.as_millis()) {
        Ok(0) => Err(Error::new(
            "STATEFUL_PROCESSOR_TTL_DURATION_MUST_BE_POSITIVE",
            "a TTL counts milliseconds; this one is shorter",
        )),
        Ok(ms) => Ok(Some(ms)),
        Err(_) => Err(Error::new(
            "STATEFUL_PROCESSOR_TTL_DURATION_MUST_BE_POSITIVE",
            "a TTL of more milliseconds than 64 bits count",
        )),
    }
}
