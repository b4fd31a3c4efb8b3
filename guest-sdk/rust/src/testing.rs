//! Runs a processor in a native test: the same handlers, the same bytes between them and the host, with state, timers
//! and TTL in memory and time that the test sets.
//!
//! ```
//! use tidemill::testing::TestQuery;
//! use tidemill::{Handle, Out, Result, Rows, StatefulProcessor, TimeMode, Timers, ValueState};
//!
//! struct Total(ValueState<i64>);
//!
//! impl StatefulProcessor for Total {
//!     type Key = String;
//!     type Input = i64;
//!     type Output = (String, i64);
//!
//!     fn init(handle: &mut Handle) -> Result<Self> {
//!         Ok(Total(handle.value_state("total")?))
//!     }
//!
//!     fn handle_input_rows(&mut self, key: &String, rows: Rows<'_, i64>, _: &Timers, out: &mut Out<(String, i64)>) -> Result<()> {
//!         let mut total = self.0.get()?.unwrap_or(0);
//!         for n in rows {
//!             total += n?;
//!         }
//!         self.0.update(&total)?;
//!         out.emit(&(key.clone(), total))
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let mut query = TestQuery::<Total>::new(TimeMode::None);
//! query.input("a".to_owned(), [1, 2]);
//! assert_eq!(query.run_batch()?, [("a".to_owned(), 3)]);
//! query.input("a".to_owned(), [4]);
//! assert_eq!(query.run_batch()?, [("a".to_owned(), 7)]);
//! # Ok(())
//! # }
//! ```
//!
//! What is the host's is not here: late rows are not dropped, NULLs in columns that are no `Option` are not bad rows
//! but errors of the handler, and the watermark is what the test says. [`run_cases`] tests with all of that.

mod cases;

use std::collections::BTreeMap;

pub use cases::run_cases;

use crate::contract::{Failure, OutputMode, Plan, Query, TimeMode, TimerValues};
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::log::Level;
use crate::memory::{self, Host, Key, Limits, Phase, State};
use crate::processor::{StatefulProcessor, StatefulProcessorWithInitialState};
use crate::row::{Row, from_packed, key_to_packed, schema, to_packed};

/// A query that runs a processor batch by batch, on a fresh instance each time, as a host does.
pub struct TestQuery<P: StatefulProcessor> {
    time_mode: TimeMode,
    output_mode: OutputMode,
    parameters: BTreeMap<String, String>,
    time: TimerValues,
    batch_id: u64,
    limits: Limits,
    state: State,
    input: Vec<(Key, Vec<Vec<u8>>)>,
    initial_state: Vec<(Key, Vec<Vec<u8>>)>,
    fault: Option<Error>,
    processor: std::marker::PhantomData<P>,
}

/// How an instance is made: with or without an initial state.
type Init<P> = fn(Host, Query) -> std::result::Result<(Instance<P>, Plan), Failure>;

impl<P: StatefulProcessor> TestQuery<P> {
    /// A query without state, at time 0 and without a watermark.
    pub fn new(time_mode: TimeMode) -> Self {
        Self {
            time_mode,
            output_mode: OutputMode::Append,
            parameters: BTreeMap::new(),
            time: TimerValues::default(),
            batch_id: 0,
            limits: Limits { groups_per_chunk: 128, rows_per_chunk: 1024, rows_per_page: 1024 },
            state: State::default(),
            input: Vec::new(),
            initial_state: Vec::new(),
            fault: None,
            processor: std::marker::PhantomData,
        }
    }

    /// Gives the query a setting.
    pub fn parameter(&mut self, name: &str, value: &str) -> &mut Self {
        self.parameters.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Sets the output mode.
    pub fn output_mode(&mut self, output_mode: OutputMode) -> &mut Self {
        self.output_mode = output_mode;
        self
    }

    /// Makes chunks and pages of at most `rows` rows and `groups` keys, so that a few rows cross their borders.
    pub fn small_chunks(&mut self, groups: usize, rows: usize) -> &mut Self {
        self.limits =
            Limits { groups_per_chunk: groups.max(1), rows_per_chunk: rows.max(1), rows_per_page: rows.max(1) };
        self
    }

    /// Sets the processing time of the batches to come, milliseconds since the epoch.
    pub fn set_time_ms(&mut self, processing_time_ms: i64) -> &mut Self {
        self.time.processing_time_ms = processing_time_ms;
        self
    }

    /// Sets the watermark of the batches to come, milliseconds since the epoch.
    pub fn set_watermark_ms(&mut self, watermark_ms: i64) -> &mut Self {
        self.time.watermark_ms = watermark_ms;
        self
    }

    /// Adds rows of a key to the next batch.
    pub fn input(&mut self, key: P::Key, rows: impl IntoIterator<Item = P::Input>) -> &mut Self {
        let added = add(&mut self.input, &key, rows);
        self.remember(added);
        self
    }

    /// Runs a batch: the input that was added, then timers that are due, then expiry of TTLs. Answers what was
    /// emitted. A batch that fails has no effect, its input is gone.
    pub fn run_batch(&mut self) -> Result<Vec<P::Output>> {
        self.run(Instance::init, None)
    }

    /// Makes an instance, and answers the schemas it gives and wants: input columns, key, output.
    pub fn schemas(&mut self) -> Result<[String; 3]> {
        let host = self.host();
        let (_, plan) = Instance::<P>::init(host, self.query(None)?).map_err(error)?;
        Ok([plan.columns, plan.key, plan.output])
    }

    /// The value that a key has in the value state `name`.
    pub fn value<T: Row>(&self, name: &str, key: &P::Key) -> Result<Option<T>> {
        self.state.value(name, &packed_key(key)?, self.time.processing_time_ms).map(from_packed).transpose()
    }

    /// The elements that a key has in the list state `name`.
    pub fn list<T: Row>(&self, name: &str, key: &P::Key) -> Result<Vec<T>> {
        self.state.list(name, &packed_key(key)?, self.time.processing_time_ms).map(from_packed).collect()
    }

    /// The entries that a key has in the map state `name`, in the order in which a processor reads them.
    pub fn map<K: Row, V: Row>(&self, name: &str, key: &P::Key) -> Result<Vec<(K, V)>> {
        let key = packed_key(key)?;
        let entries = self.state.map(name, &key, self.time.processing_time_ms);
        entries.map(|(key, value)| Ok((from_packed(key)?, from_packed(value)?))).collect()
    }

    /// The timers that a key has, earliest first.
    pub fn timers(&self, key: &P::Key) -> Result<Vec<i64>> {
        Ok(self.state.timers(&packed_key(key)?).collect())
    }

    /// What processors have logged on this thread since the last call.
    pub fn take_log(&self) -> Vec<(Level, String)> {
        memory::take_log()
    }

    fn run(&mut self, init: Init<P>, initial_state: Option<InitialStatePhase<P>>) -> Result<Vec<P::Output>> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let host = self.host();
        self.batch_id += 1;
        let initial_schema = initial_state.as_ref().map(|phase| phase.schema.clone());
        let (mut instance, _) = init(host.clone(), self.query(initial_schema)?).map_err(error)?;
        if let Some(phase) = initial_state {
            let rows = std::mem::take(&mut self.initial_state);
            run_phase(&host, Phase::InitialState, rows, || (phase.call)(&mut instance, self.time))?;
        } else {
            let rows = std::mem::take(&mut self.input);
            run_phase(&host, Phase::Input, rows, || instance.handle_input_rows(self.time))?;
            let due = self.due_timers(&host)?;
            run_phase(&host, Phase::Timer, due, || instance.handle_expired_timer(self.time))?;
        }
        host.open(Phase::Close, Vec::new());
        instance.close().map_err(error)?;

        let (mut state, output) =
            host.with(|batch| (std::mem::take(&mut batch.state), std::mem::take(&mut batch.output)));
        state.evict(self.time.processing_time_ms);
        self.state = state;
        output.iter().map(|row| from_packed(row)).collect()
    }

    fn due_timers(&self, host: &Host) -> Result<Vec<(Key, Vec<Vec<u8>>)>> {
        let threshold_ms = match self.time_mode {
            TimeMode::None => return Ok(Vec::new()),
            TimeMode::ProcessingTime => self.time.processing_time_ms,
            TimeMode::EventTime => self.time.watermark_ms,
        };
        let due = host.with(|batch| batch.state.due_timers(threshold_ms));
        due.into_iter()
            .map(|(key, expiries_ms)| Ok((key, expiries_ms.iter().map(packed).collect::<Result<_>>()?)))
            .collect()
    }

    fn host(&self) -> Host {
        Host::new(self.state.clone(), self.time_mode, self.time, self.limits)
    }

    fn query(&self, initial_state: Option<String>) -> Result<Query> {
        Ok(Query {
            query_id: "00000000-0000-0000-0000-000000000000".to_owned(),
            run_id: "00000000-0000-0000-0000-000000000001".to_owned(),
            batch_id: self.batch_id,
            time_mode: self.time_mode,
            output_mode: self.output_mode,
            key: schema::<P::Key>()?,
            input: schema::<P::Input>()?,
            initial_state,
            parameters: self.parameters.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        })
    }

    fn remember(&mut self, added: Result<()>) {
        if let Err(error) = added {
            self.fault.get_or_insert(error);
        }
    }
}

impl<P: StatefulProcessorWithInitialState> TestQuery<P> {
    /// Adds rows of a key to the initial state.
    pub fn initial_state(&mut self, key: P::Key, rows: impl IntoIterator<Item = P::InitialState>) -> &mut Self {
        let added = add(&mut self.initial_state, &key, rows);
        self.remember(added);
        self
    }

    /// Runs a bootstrap batch over the initial state that was added. Timers that it registers fire in a later batch.
    pub fn run_initial_state(&mut self) -> Result<()> {
        let phase = InitialStatePhase { schema: schema::<P::InitialState>()?, call: Instance::handle_initial_state };
        self.run(Instance::init_with_initial_state, Some(phase)).map(|_| ())
    }
}

struct InitialStatePhase<P: StatefulProcessor> {
    schema: String,
    call: fn(&mut Instance<P>, TimerValues) -> std::result::Result<(), Failure>,
}

fn run_phase(
    host: &Host,
    phase: Phase,
    groups: Vec<(Key, Vec<Vec<u8>>)>,
    call: impl FnOnce() -> std::result::Result<(), Failure>,
) -> Result<()> {
    if groups.is_empty() {
        return Ok(());
    }
    host.open(phase, groups);
    call().map_err(error)
}

fn error(failure: Failure) -> Error {
    Error::new(failure.code, failure.message).of_group(failure.of)
}

/// Adds rows to a key's, or a new key in its place: keys are fed in the order of their bytes.
fn add<T: Row, K: Row>(
    groups: &mut Vec<(Key, Vec<Vec<u8>>)>,
    key: &K,
    rows: impl IntoIterator<Item = T>,
) -> Result<()> {
    let key = packed_key(key)?;
    let rows = rows.into_iter().map(|row| packed(&row)).collect::<Result<Vec<_>>>()?;
    if rows.is_empty() {
        return Ok(());
    }
    match groups.binary_search_by(|(other, _)| other.cmp(&key)) {
        Ok(at) => groups.get_mut(at).into_iter().for_each(|(_, of_key)| of_key.extend(rows.iter().cloned())),
        Err(at) => groups.insert(at, (key, rows)),
    }
    Ok(())
}

fn packed<T: Row>(row: &T) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    to_packed(row, &mut bytes)?;
    Ok(bytes)
}

fn packed_key<K: Row>(key: &K) -> Result<Key> {
    let mut bytes = Vec::new();
    key_to_packed(key, &mut bytes)?;
    Ok(bytes)
}
