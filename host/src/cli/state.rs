//! `tidemill state`: the state of a query, running or not, after any retained batch.

mod changes;
mod export;
mod metadata;
mod rows;
mod target;
mod verify;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tempfile::TempDir;

use self::rows::{RowShape, TimerShape, layout_of_key, put};
use self::target::{Place, Target};
use super::Format;
use super::listing::{Listing, column, duration_text};
use super::output::Coded;
use crate::disk::RealDisk;
use crate::engine::view::{QueryView, StateView};
use crate::record::{GroupingKey, Schema, key_from_json, timestamp_text};
use crate::state::{Catalog, CatalogVariable, Reader, StateError, Store, for_each_row, for_each_timer};

/// Look at the state of a query
///
/// Shows what a query's checkpoint holds, after the last committed batch or an earlier one. The query may run meanwhile: it
/// is not stopped, does not wait, and only whole batches are seen. Nothing in the checkpoint is changed: the state is rebuilt
/// from a snapshot and the log in a temporary folder.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StateArgs {
    /// The checkpoint's folder
    checkpoint: PathBuf,

    #[command(subcommand)]
    look: Look,

    /// The state after this batch, instead of after the last one; it must be retained
    #[arg(long, value_name = "BATCH", global = true)]
    batch: Option<u64>,

    /// The step of the query, where it has several; `metadata` shows them
    #[arg(long, value_name = "NAME", global = true)]
    step: Option<String>,

    /// Folder for the temporary copy of the state [default: that of the system]. On the file system of the checkpoint,
    /// large files are linked instead of copied
    #[arg(long, value_name = "DIR", global = true)]
    scratch: Option<PathBuf>,

    /// Write the rows to this new file, typed, instead of showing them; its ending tells the format: .jsonl or .parquet
    #[arg(long, value_name = "FILE", global = true)]
    file: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tidemill state checkpoint list
  tidemill state checkpoint get count --key '{\"key\":\"a\"}'
  tidemill state checkpoint scan count --limit 10
  tidemill state checkpoint scan count --output json > count.jsonl
  tidemill state checkpoint timers
  tidemill state checkpoint scan count --batch 41
  tidemill state checkpoint scan times --collect --file times.parquet
  tidemill state checkpoint changes count --from 40 --to 41
  tidemill state checkpoint export --file state.parquet
  tidemill state checkpoint metadata
  tidemill state checkpoint verify
  tidemill state checkpoint --step sessions list

A key is a JSON object with the columns that the query groups by; `metadata` shows them. Rows come in the order of the \
hashes of their keys. A row whose TTL has passed is shown until a batch removes it, though the processor no longer sees \
it.";

#[derive(Debug, Subcommand)]
enum Look {
    /// The state variables: kinds, schemas, number of keys and rows
    List,
    /// What a variable holds for one key
    Get {
        /// The state variable
        variable: String,
        /// The grouping key, as a JSON object
        #[arg(long, value_name = "JSON")]
        key: String,
    },
    /// What a variable holds for all keys
    Scan {
        /// The state variable
        variable: String,
        /// Stop after so many rows
        #[arg(long, value_name = "ROWS")]
        limit: Option<u64>,
        /// One row per key, with all elements of its list or all entries of its map
        #[arg(long)]
        collect: bool,
    },
    /// What batches did to a variable: puts, appends and deletes, in order. What expired is deleted
    Changes {
        /// The state variable
        variable: String,
        /// The first batch
        #[arg(long, value_name = "BATCH")]
        from: u64,
        /// The last batch [default: the last committed]
        #[arg(long, value_name = "BATCH")]
        to: Option<u64>,
    },
    /// All state in flat rows, which another query can take as its initial state
    Export {
        /// Only these variables
        variables: Vec<String>,
    },
    /// The timers that wait
    Timers {
        /// Those of this grouping key only, a JSON object
        #[arg(long, value_name = "JSON")]
        key: Option<String>,
    },
    /// Read all of a stopped query's checkpoint: log, snapshots and state against their checksums and each other. Exits with
    /// 1 if something is not as it was written
    Verify,
    /// The query itself: identity, position, time, what is retained
    Metadata,
}

/// What a person asked for that is not there.
#[derive(Debug, thiserror::Error)]
enum Unknown {
    #[error("there is no state variable {name:?}; this checkpoint has: {}", known.join(", "))]
    Variable { name: String, known: Vec<String> },
    #[error("there is no state variable {name:?}: this checkpoint has none yet")]
    AnyVariable { name: String },
    #[error("{text} is no grouping key of this query ({key}): {reason}")]
    Key { text: String, key: String, reason: String },
    #[error("{asked}; the steps of this query are: {}", known.join(", "))]
    Step { asked: String, known: Vec<String> },
    #[error("this checkpoint has no committed batch yet, and so no grouping key and no state")]
    Nothing,
    #[error("{0} and {1} do not go together; leave one of them out")]
    Conflict(&'static str, &'static str),
}

impl Unknown {
    fn coded(self) -> anyhow::Error {
        let code = match self {
            Self::Variable { .. } | Self::AnyVariable { .. } => "STDS_INVALID_OPTION_VALUE",
            Self::Conflict(..) => "STDS_CONFLICT_OPTIONS",
            Self::Key { .. } => "STATE_KEY_INVALID",
            Self::Step { .. } => "STATE_STEP_UNKNOWN",
            Self::Nothing => "STATE_EMPTY",
        };
        Coded::wrap(code, self)
    }
}

/// Runs the command.
pub(super) fn run(args: &StateArgs, format: Format) -> anyhow::Result<u8> {
    refuse_conflicts(args)?;
    if let Look::Verify = args.look {
        return verify::run(&args.checkpoint, scratch(args.scratch.as_deref())?.path(), format);
    }
    let mut query = QueryView::open(Arc::new(RealDisk), &args.checkpoint).map_err(query_failed)?;
    if let Look::Metadata = args.look {
        metadata::show(&query, &args.checkpoint, format)?;
        return Ok(0);
    }
    let batch = match &args.look {
        Look::Changes { to, .. } => *to,
        _ => args.batch,
    };
    let scratch = scratch(args.scratch.as_deref())?;
    let view = query.state(batch, &scratch.path().join("state")).map_err(query_failed)?;
    let (step, key) = step(&view, args.step.as_deref())?;
    let state = State {
        catalog: Catalog::load(view.store.as_ref()).map_err(state_failed)?,
        step,
        key,
        key_groups: query.metadata().key_groups,
        store: view.store,
        place: Place { format, file: args.file.clone() },
    };
    match &args.look {
        Look::List => state.list(format)?,
        Look::Get { variable, key } => {
            let key = state.parse_key(key)?;
            state.rows(variable, Some(GroupingKey::new(&key)), None)?;
        }
        Look::Scan { variable, limit, collect: false } => state.rows(variable, None, *limit)?,
        Look::Scan { variable, limit, collect: true } => state.collected(variable, *limit)?,
        Look::Changes { variable, from, .. } => match view.batch_id {
            Some(last) => changes::show(&state, &query, variable, *from, last)?,
            None => return Err(Unknown::Nothing.coded()),
        },
        Look::Export { variables } => export::write(&state, variables)?,
        Look::Timers { key } => {
            let key = key.as_ref().map(|key| state.parse_key(key)).transpose()?;
            state.timers(key.as_deref().map(GroupingKey::new))?;
        }
        Look::Metadata | Look::Verify => {}
    }
    Ok(0)
}

/// The number of the step that is meant, and its grouping key if anything was committed.
fn step(view: &StateView, name: Option<&str>) -> anyhow::Result<(u8, Option<Schema>)> {
    let found = match (name, view.steps.as_slice()) {
        (Some(name), steps) => steps.iter().position(|step| step.name == name),
        (None, [] | [_]) => Some(0),
        (None, _) => None,
    };
    let Some(number) = found.and_then(|number| u8::try_from(number).ok()) else {
        let asked = match name {
            Some(name) => format!("there is no step {name:?}"),
            None => "say which step is meant with --step NAME".to_owned(),
        };
        return Err(Unknown::Step { asked, known: view.steps.iter().map(|step| step.name.clone()).collect() }.coded());
    };
    Ok((number, view.steps.get(usize::from(number)).map(|step| step.key.clone())))
}

fn refuse_conflicts(args: &StateArgs) -> anyhow::Result<()> {
    let conflict = match &args.look {
        Look::Changes { .. } if args.batch.is_some() => Some(("changes", "--batch")),
        Look::Changes { from, to: Some(to), .. } if from > to => Some(("--from", "an earlier --to")),
        Look::Metadata | Look::Verify if args.batch.is_some() => Some(("metadata or verify", "--batch")),
        Look::Metadata | Look::Verify | Look::List if args.file.is_some() => {
            Some(("list, metadata or verify", "--file"))
        }
        _ => None,
    };
    conflict.map_or(Ok(()), |(one, other)| Err(Unknown::Conflict(one, other).coded()))
}

/// A temporary folder, in the place that was asked for.
pub(super) fn scratch(place: Option<&Path>) -> anyhow::Result<TempDir> {
    let folder = match place {
        Some(place) => TempDir::new_in(place),
        None => TempDir::new(),
    };
    folder.map_err(|error| Coded::wrap("TEMPORARY_FOLDER_FAILED", error))
}

struct State {
    store: Arc<dyn Store>,
    catalog: Catalog,
    step: u8,
    /// None: nothing was committed.
    key: Option<Schema>,
    key_groups: u16,
    place: Place,
}

impl State {
    fn list(&self, format: Format) -> anyhow::Result<()> {
        let columns = ["name", "kind", "key", "value", "ttl", "declared", "keys", "rows"].map(column);
        let mut listing = Listing::start(format, columns.into());
        for variable in self.catalog.variables(self.step) {
            let (keys, rows) = self.count(variable)?;
            let mut row = json!({ "name": variable.name, "kind": variable.kind.name() });
            if let Some(key) = &variable.key {
                put(&mut row, "key", key.to_string().into());
            }
            put(&mut row, "value", variable.value.to_string().into());
            if let Some(ttl_ms) = variable.ttl_ms {
                put(&mut row, "ttl", duration_text(ttl_ms).into());
            }
            put(&mut row, "declared", variable.declared.into());
            put(&mut row, "keys", keys.into());
            put(&mut row, "rows", rows.into());
            if listing.row(&row)?.is_break() {
                return Ok(());
            }
        }
        listing.finish()
    }

    /// Grouping keys of a variable, and its rows: values, elements of lists, entries of maps.
    fn count(&self, variable: &CatalogVariable) -> anyhow::Result<(u64, u64)> {
        let (mut keys, mut rows) = (0, 0);
        let mut last: Option<Vec<u8>> = None;
        for_each_row(self.store.as_ref(), self.step, variable.id, variable.kind, None, &mut |row| {
            rows += 1;
            if last.as_deref() != Some(row.key.row) {
                keys += 1;
                last = Some(row.key.row.to_vec());
            }
            ControlFlow::Continue(())
        })
        .map_err(state_failed)?;
        Ok((keys, rows))
    }

    fn rows(&self, name: &str, only: Option<GroupingKey<'_>>, limit: Option<u64>) -> anyhow::Result<()> {
        let variable = self.variable(name)?;
        let shape = RowShape::of(self.key()?, variable, self.key_groups)?;
        let mut target = self.place.open(shape.columns(), shape.schema()?)?;
        let mut left = limit.unwrap_or(u64::MAX);
        self.each(&mut target, |reader, visit| {
            for_each_row(reader, self.step, variable.id, variable.kind, only, &mut |row| {
                if left == 0 {
                    return ControlFlow::Break(());
                }
                left -= 1;
                visit(shape.document(row))
            })
        })?;
        target.finish()
    }

    fn collected(&self, name: &str, limit: Option<u64>) -> anyhow::Result<()> {
        let variable = self.variable(name)?;
        let shape = RowShape::of(self.key()?, variable, self.key_groups)?;
        let mut target = self.place.open(shape.collected_columns(), shape.collected_schema()?)?;
        let mut left = limit.unwrap_or(u64::MAX);
        let mut hand: Option<(Vec<u8>, Value)> = None;
        self.each(&mut target, |reader, visit| {
            for_each_row(reader, self.step, variable.id, variable.kind, None, &mut |row| {
                match &mut hand {
                    Some((key, collected)) if key == row.key.row => {
                        return match shape.collect(row, collected) {
                            Ok(()) => ControlFlow::Continue(()),
                            Err(error) => visit(Err(error)),
                        };
                    }
                    _ => {}
                }
                let (key, next) = (row.key.row.to_vec(), shape.begin_collecting(row));
                let done = match next {
                    Ok(next) => hand.replace((key, next)),
                    Err(error) => return visit(Err(error)),
                };
                let Some((_, collected)) = done else { return ControlFlow::Continue(()) };
                if left == 0 {
                    return ControlFlow::Break(());
                }
                left -= 1;
                visit(Ok(collected))
            })?;
            if let Some((_, collected)) = hand.take().filter(|_| left > 0) {
                let _was_the_last = visit(Ok(collected));
            }
            Ok(())
        })?;
        target.finish()
    }

    fn timers(&self, only: Option<GroupingKey<'_>>) -> anyhow::Result<()> {
        let Some(key) = &self.key else { return self.place.open(Vec::new(), rows::schema(Vec::new())?)?.finish() };
        let shape = TimerShape::of(key, self.key_groups)?;
        let mut target = self.place.open(shape.columns(), shape.schema()?)?;
        self.each(&mut target, |reader, visit| {
            for_each_timer(reader, self.step, only, &mut |timer| visit(shape.document(timer)))
        })?;
        target.finish()
    }

    /// Adds what a walk over the store visits to a target, until nobody reads any more.
    fn each(
        &self,
        target: &mut Target,
        walk: impl FnOnce(&dyn Reader, &mut dyn FnMut(anyhow::Result<Value>) -> ControlFlow<()>) -> Result<(), StateError>,
    ) -> anyhow::Result<()> {
        let mut outcome = Ok(());
        walk(self.store.as_ref(), &mut |document| {
            document.and_then(|document| target.row(&document)).unwrap_or_else(|error| {
                outcome = Err(error);
                ControlFlow::Break(())
            })
        })
        .map_err(state_failed)?;
        outcome
    }

    fn variable(&self, name: &str) -> anyhow::Result<&CatalogVariable> {
        let variables = self.catalog.variables(self.step);
        variables.iter().find(|variable| variable.name == name).ok_or_else(|| {
            let (name, known) =
                (name.to_owned(), variables.iter().map(|variable| variable.name.clone()).collect::<Vec<_>>());
            if known.is_empty() {
                Unknown::AnyVariable { name }.coded()
            } else {
                Unknown::Variable { name, known }.coded()
            }
        })
    }

    fn key(&self) -> anyhow::Result<&Schema> {
        self.key.as_ref().ok_or_else(|| Unknown::Nothing.coded())
    }

    /// The packed key.
    fn parse_key(&self, text: &str) -> anyhow::Result<Vec<u8>> {
        let schema = self.key()?;
        let layout = layout_of_key(schema)?;
        let invalid = |reason: String| Unknown::Key { text: text.to_owned(), key: schema.to_string(), reason }.coded();
        let json: Value = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
        key_from_json(&layout, &json).map_err(|error| invalid(error.to_string()))
    }
}

fn instant(ms: i64) -> String {
    timestamp_text(ms.saturating_mul(1000))
}

fn query_failed(error: crate::engine::error::QueryError) -> anyhow::Error {
    Coded::wrap(error.code().to_owned(), error)
}

fn state_failed(error: StateError) -> anyhow::Error {
    Coded::wrap(error.code(), error)
}

fn row_failed(fault: crate::record::RowFault) -> anyhow::Error {
    Coded::wrap(fault.code(), fault)
}
