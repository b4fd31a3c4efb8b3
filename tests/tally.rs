//! A native operator for tests of the engine: it counts and sums rows per key, with a value state and timers.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use tidemill_host::engine::operator::{
    AtKey, Closed, GroupedRows, Operator, OperatorError, OperatorPlan, QueryInfo, Task, TimeMode, Worker,
};
use tidemill_host::engine::output::Phase;
use tidemill_host::record::{GroupingKey, RowEncoder, RowLayout, Schema, decode_rows};
use tidemill_host::state::{GroupId, VariableKind, VariableSpec};
use xxhash_rust::xxh3::Xxh3;

/// What it reads. A row with a NULL in `n` makes it fail.
pub const INPUT: &str = "k STRING, at TIMESTAMP, n BIGINT";
/// What it takes as initial state.
pub const INITIAL_STATE: &str = "k STRING, sum BIGINT";
/// What it emits: for each row and each timer, what is known of the key.
pub const OUTPUT: &str = "k STRING, event STRING, at BIGINT, count BIGINT, sum BIGINT, padding STRING, time TIMESTAMP";
const STATE: &str = "count BIGINT, sum BIGINT";

/// The operator.
#[derive(Debug, Clone)]
pub struct Tally {
    /// Timers that rows register.
    pub timers: Timers,
    /// Bytes that each emitted row has besides.
    pub padding_bytes: usize,
    /// How long a key is remembered; None: for ever.
    pub ttl_ms: Option<u64>,
    /// The type of its state, which a checkpoint holds it to.
    pub key: &'static str,
    /// The columns of time and number that it reads.
    pub reads: (&'static str, &'static str),
}

/// Timers that rows register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timers {
    /// None.
    Unused,
    /// One, so long after the row (event time) or the batch (processing time).
    After { ms: i64 },
    /// One at the time of the row or batch, which registers itself again when it fires.
    AgainAndAgain,
}

impl Default for Tally {
    fn default() -> Self {
        Self { timers: Timers::Unused, padding_bytes: 0, ttl_ms: None, key: "k STRING", reads: ("at", "n") }
    }
}

impl Tally {
    /// The same over what a tally emits.
    pub fn of_a_tally(&self) -> Self {
        Self { reads: ("time", "sum"), ..self.clone() }
    }
}

impl Operator for Tally {
    fn identity(&self) -> String {
        "native:tally".to_owned()
    }

    fn plan(&self, query: &QueryInfo) -> Result<OperatorPlan, OperatorError> {
        let state = VariableSpec {
            name: "tally".to_owned(),
            kind: VariableKind::Value,
            key: None,
            value: schema(STATE),
            ttl_ms: self.ttl_ms,
        };
        Ok(OperatorPlan {
            output: schema(OUTPUT),
            columns: schema(&format!("{} TIMESTAMP, {} BIGINT", self.reads.0, self.reads.1)),
            initial_state: query.initial_state.is_some().then(|| schema("sum BIGINT")),
            key: schema(self.key),
            variables: vec![state],
            dropped_variables: Vec::new(),
            prefetch: vec![0],
        })
    }

    fn open(&self, task: Task) -> Result<Box<dyn Worker>, OperatorError> {
        let layouts = Layouts {
            key: RowLayout::new(&task.plan.key),
            state: RowLayout::new(&schema(STATE)),
            output: RowLayout::new(&schema(OUTPUT)),
        };
        Ok(Box::new(TallyWorker { tally: self.clone(), task, layouts, digest: Xxh3::new() }))
    }
}

struct Layouts {
    key: RowLayout,
    state: RowLayout,
    output: RowLayout,
}

struct TallyWorker {
    tally: Tally,
    task: Task,
    layouts: Layouts,
    digest: Xxh3,
}

/// What is known of a key.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    count: i64,
    sum: i64,
}

impl TallyWorker {
    fn each_group(
        &mut self,
        rows: &GroupedRows,
        mut handle: impl FnMut(&mut Self, GroupId, &RecordBatch, usize) -> Result<(), OperatorError>,
    ) -> Result<(), OperatorError> {
        for group in &rows.groups {
            let key = &rows.keys[group.key.clone()];
            self.digest.update(key);
            let id = self.task.session.enter(GroupingKey { hash: group.hash, row: key });
            for row in group.rows.clone() {
                let (batch, row) = GroupedRows::place(row);
                handle(self, id, &rows.batches[batch], row)?;
            }
        }
        Ok(())
    }

    fn known(&mut self, group: GroupId) -> Result<Known, OperatorError> {
        let Some(row) = self.task.session.value(0, group).map_err(host)? else { return Ok(Known::default()) };
        let row = decode_rows(&self.layouts.state, [row]).map_err(host)?;
        let column = |index: usize| row.column(index).as_primitive::<Int64Type>().value(0);
        Ok(Known { count: column(0), sum: column(1) })
    }

    fn remember(&mut self, group: GroupId, known: Known) -> Result<(), OperatorError> {
        let row = packed(&self.layouts.state, vec![number(known.count), number(known.sum)]);
        self.task.session.put_value(0, group, &row).map_err(host)
    }

    fn emit(&mut self, phase: Phase, group: GroupId, at_ms: i64, known: Known) -> Result<(), OperatorError> {
        let key = decode_rows(&self.layouts.key, [self.task.session.key(group).row]).map_err(host)?;
        let event = match phase {
            Phase::Input => "row",
            Phase::Timers => "timer",
        };
        let columns = vec![
            Arc::clone(key.column(0)),
            text(event),
            number(at_ms),
            number(known.count),
            number(known.sum),
            text(&"x".repeat(self.tally.padding_bytes)),
            Arc::new(TimestampMicrosecondArray::from(vec![at_ms * 1000]).with_timezone("UTC")),
        ];
        let row = packed(&self.layouts.output, columns);
        self.task.output.push(phase, &row).map_err(|error| failure(error.code(), &error.to_string()))
    }

    fn row(&mut self, group: GroupId, batch: &RecordBatch, row: usize) -> Result<(), OperatorError> {
        let numbers = batch.column(1).as_primitive::<Int64Type>();
        if numbers.is_null(row) {
            return Err(failure("USER_CODE", "a number is missing"));
        }
        let before = self.known(group)?;
        let known = Known { count: before.count + 1, sum: before.sum + numbers.value(row) };
        self.digest.update(&numbers.value(row).to_le_bytes());
        self.remember(group, known)?;
        let at_ms = match self.task.query.time_mode {
            TimeMode::EventTime => batch.column(0).as_primitive::<TimestampMicrosecondType>().value(row) / 1000,
            TimeMode::None | TimeMode::ProcessingTime => self.task.time.processing_time_ms,
        };
        self.emit(Phase::Input, group, at_ms, known)?;
        let expiry_ms = match self.tally.timers {
            Timers::Unused => return Ok(()),
            Timers::After { ms } => at_ms + ms,
            Timers::AgainAndAgain => at_ms,
        };
        self.task.session.register_timer(group, expiry_ms).map_err(host)
    }
}

impl Worker for TallyWorker {
    fn initial_state(&mut self, rows: GroupedRows) -> Result<(), OperatorError> {
        self.each_group(&rows, |worker, group, batch, row| {
            let sum = batch.column(0).as_primitive::<Int64Type>().value(row);
            worker.remember(group, Known { count: 0, sum })
        })
    }

    fn input_rows(&mut self, rows: GroupedRows) -> Result<(), OperatorError> {
        self.each_group(&rows, Self::row)
    }

    fn expired_timers(&mut self, threshold_ms: i64) -> Result<(), OperatorError> {
        self.task.session.open_due(threshold_ms).map_err(host)?;
        let mut expiries_ms = Vec::new();
        while let Some(group) = self.task.session.next_due(&mut expiries_ms).map_err(host)? {
            let known = self.known(group)?;
            for &at_ms in &expiries_ms {
                self.emit(Phase::Timers, group, at_ms, known)?;
                if self.tally.timers == Timers::AgainAndAgain {
                    self.task.session.register_timer(group, at_ms).map_err(host)?;
                }
            }
            self.task.session.delivered(group, &expiries_ms);
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<Closed, OperatorError> {
        let Task { session, output, .. } = self.task;
        Ok(Closed { session, output, input_digest: self.digest.digest128(), fuel: None, sandbox_bytes: 0 })
    }
}

/// Rows of [`INPUT`], with event times in milliseconds.
pub fn input(rows: &[(&str, i64, Option<i64>)]) -> RecordBatch {
    let at = rows.iter().map(|(_, at_ms, _)| at_ms * 1000);
    let at = TimestampMicrosecondArray::from_iter_values(at).with_timezone("UTC");
    let keys = StringArray::from_iter_values(rows.iter().map(|(key, ..)| key));
    let numbers = rows.iter().map(|(.., n)| *n).collect::<Int64Array>();
    let columns: Vec<ArrayRef> = vec![Arc::new(keys), Arc::new(at), Arc::new(numbers)];
    RecordBatch::try_new(schema(INPUT).to_arrow(), columns).unwrap()
}

/// Rows of [`INITIAL_STATE`].
pub fn initial_state(rows: &[(&str, i64)]) -> RecordBatch {
    let keys = StringArray::from_iter_values(rows.iter().map(|(key, _)| key));
    let sums = Int64Array::from_iter_values(rows.iter().map(|(_, sum)| *sum));
    let columns: Vec<ArrayRef> = vec![Arc::new(keys), Arc::new(sums)];
    RecordBatch::try_new(schema(INITIAL_STATE).to_arrow(), columns).unwrap()
}

pub fn schema(ddl: &str) -> Schema {
    Schema::parse(ddl).unwrap()
}

fn failure(code: &str, message: &str) -> OperatorError {
    OperatorError::Guest {
        export: "handle-input-rows",
        guest_code: code.to_owned(),
        message: message.to_owned(),
        stack: String::new(),
        at: AtKey::NoKey,
    }
}

fn packed(layout: &RowLayout, columns: Vec<ArrayRef>) -> Vec<u8> {
    let row = RecordBatch::try_new(Arc::clone(layout.arrow_schema()), columns).unwrap();
    let mut packed = Vec::new();
    RowEncoder::new(layout, &row).unwrap().encode(0, &mut packed);
    packed
}

fn number(value: i64) -> ArrayRef {
    Arc::new(Int64Array::from(vec![value]))
}

fn text(value: &str) -> ArrayRef {
    Arc::new(StringArray::from(vec![value]))
}

fn host(error: impl std::error::Error + Send + Sync + 'static) -> OperatorError {
    OperatorError::Host(Box::new(error))
}
