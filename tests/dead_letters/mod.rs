//! Rows and timers at which a processor fails become dead letters: these and no others, once, and the rest is as if they
//! had never been there.

mod crashes;
mod fussy;
mod guest;
mod hold;
mod policy;
mod search;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tidemill_host::connect::memory::MemorySource;
use tidemill_host::connect::open_aside;
use tidemill_host::disk::RealDisk;
use tidemill_host::engine::error::QueryError;
use tidemill_host::engine::operator::Operator;
use tidemill_host::engine::query::{Parts, Query};
use tidemill_host::engine::replay::{ChangedInput, ReplayParts, replay};
use tidemill_host::engine::settings::{OnPoison, PoisonPolicy, QuerySettings};
use tidemill_host::state::Family;

use crate::native_query::{MemoryQuery, Seen, drain, settings};
use crate::support::{json_lines, rows};
use crate::tally::{INPUT, Tally, input, schema};
use fussy::Fussy;

/// A row: its key and number, where none is poison.
type Row<'a> = (&'a str, Option<i64>);

const POISON: Option<i64> = None;

/// A query whose first step is a [`Fussy`] tally.
struct FussyQuery {
    query: MemoryQuery,
    fussy: Fussy,
}

impl FussyQuery {
    fn new(fussy: Fussy, policy: PoisonPolicy) -> Self {
        Self::with(fussy, QuerySettings { poison: policy, ..settings() })
    }

    fn with(fussy: Fussy, settings: QuerySettings) -> Self {
        let poison = PoisonPolicy { on_poison: OnPoison::DeadLetter, ..settings.poison };
        Self { query: MemoryQuery::new(QuerySettings { poison, ..settings }), fussy }
    }

    fn parts(&self) -> Parts {
        let mut parts = self.query.parts();
        parts.steps[0].operator = Arc::new(self.fussy.clone());
        parts.dead_letters = Some(open_aside(&self.folder(), Arc::new(RealDisk)).unwrap());
        parts
    }

    fn open(&self) -> Result<Query, QueryError> {
        Query::open(self.query.settings.clone(), self.parts())
    }

    /// One batch of these rows.
    fn batch(&self, rows: &[Row<'_>]) -> Result<Query, QueryError> {
        self.feed(rows);
        let mut running = self.open()?;
        drain(&mut running)?;
        Ok(running)
    }

    fn feed(&self, rows: &[Row<'_>]) {
        let rows: Vec<_> = rows.iter().map(|(key, number)| (*key, 0, *number)).collect();
        self.query.rows.push(input(&rows));
    }

    fn folder(&self) -> PathBuf {
        self.query.folder.path().join("dead-letters")
    }

    /// What was published of dead letters.
    fn letters(&self) -> Vec<Value> {
        letters(&self.folder())
    }

    /// `id kind key row code` of each.
    fn shown(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let shown = |letter: Value| ["id", "kind", "key", "row", "code"].map(|name| text(&letter[name])).join(" ");
        self.letters().into_iter().map(shown).collect()
    }

    /// Runs all batches again, which must be as recorded.
    fn replays(&self) {
        let operators: Vec<Arc<dyn Operator>> = self.parts().steps.into_iter().map(|step| step.operator).collect();
        let scratch = tempfile::TempDir::new().unwrap();
        let parts = ReplayParts {
            operators,
            load: Box::new(|_, _, _| panic!("native operators are not kept")),
            inputs: vec![Box::new(MemorySource::new(schema(INPUT), self.query.rows.clone()))],
            initial_states: Vec::new(),
            disk: Arc::new(RealDisk),
            checkpoint: self.query.checkpoint(),
            scratch: scratch.path().to_owned(),
        };
        let mut seen = Seen::default();
        // The records know what was left out.
        let settings = QuerySettings { poison: PoisonPolicy::default(), ..self.query.settings.clone() };
        replay(&settings, parts, ChangedInput::Refuse, &mut seen).unwrap();
        assert!(!seen.0.is_empty() && seen.0.iter().all(|batch| batch.differences.is_empty()), "{:?}", seen.0);
    }
}

fn letters(folder: &Path) -> Vec<Value> {
    json_lines(&rows(folder))
}

/// Keys with what stands there.
type State = Vec<(Vec<u8>, Vec<u8>)>;

/// All state, timers and expiries of a query.
fn state(query: &Query) -> State {
    let mut all = Vec::new();
    for family in [Family::State, Family::Timers, Family::Ttl] {
        let mut visit = |key: &[u8], value: &[u8]| {
            all.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        };
        query.store().scan(family, &[], &[u8::MAX; 64], &mut visit).unwrap();
    }
    all
}

/// The same query over the rows that are no poison.
fn model(rows: &[Row<'_>], workers: u16) -> (State, Vec<String>) {
    let query = MemoryQuery::new(QuerySettings { workers, ..settings() });
    let query = MemoryQuery { operator: Tally::default(), ..query };
    let good: Vec<_> = rows.iter().filter_map(|(key, number)| number.map(|number| (*key, 0, Some(number)))).collect();
    query.rows.push(input(&good));
    let mut running = query.open().unwrap();
    drain(&mut running).unwrap();
    (state(&running), query.emitted())
}
