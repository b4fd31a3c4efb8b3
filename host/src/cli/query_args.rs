//! A query on the command line: a file, flags, or both; a flag wins over the file.

use std::path::{Path, PathBuf};

use clap::Args;
use toml::{Table, Value};

use super::output::Coded;
use crate::config::{ConfigError, QueryConfig};

/// The query file of a project.
pub(super) const QUERY_FILE: &str = "query.toml";

/// A query.
#[derive(Debug, Args)]
pub(super) struct QueryArgs {
    /// The processor: a WebAssembly component.
    #[arg(value_name = "COMPONENT")]
    component: Option<PathBuf>,

    /// A query file (TOML); flags win over it. Default: query.toml, if it is there and no component is named.
    #[arg(short, long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// Input: a file, a directory that is watched for new files, or `-` for standard input.
    #[arg(short, long, value_name = "PATH", help_heading = "Input")]
    input: Option<String>,

    /// Format of the input: jsonl, csv or parquet; default: by the name.
    #[arg(long, value_name = "FORMAT", help_heading = "Input")]
    format: Option<String>,

    /// Schema of the input in DDL; default: inferred from the first file, and shown.
    #[arg(long, value_name = "DDL", help_heading = "Input")]
    schema: Option<String>,

    /// State to begin with, read before the first input of a new checkpoint: a file, or what a directory holds then.
    #[arg(long, value_name = "PATH", help_heading = "Input")]
    initial_state: Option<String>,

    /// Schema of the initial state.
    #[arg(long, value_name = "DDL", help_heading = "Input")]
    initial_state_schema: Option<String>,

    /// What becomes of malformed rows: fail, skip or quarantine.
    #[arg(long, value_name = "POLICY", help_heading = "Input")]
    bad_rows: Option<String>,

    /// Directory for malformed rows.
    #[arg(long, value_name = "DIR", help_heading = "Input")]
    quarantine: Option<String>,

    /// What becomes of rows and timers at which the processor fails each time: fail (the batch fails) or dead-letter (they
    /// are put aside).
    #[arg(long, value_name = "POLICY", help_heading = "Query")]
    on_poison: Option<String>,

    /// What becomes of later rows of their keys: continue (they are processed) or hold (they are dead letters too, until a
    /// start with continue).
    #[arg(long, value_name = "POLICY", help_heading = "Query")]
    after_poison: Option<String>,

    /// Directory for dead letters.
    #[arg(long, value_name = "DIR", help_heading = "Query")]
    dead_letters: Option<String>,

    /// Columns that rows are grouped by.
    #[arg(short, long, value_name = "COLUMN,…", value_delimiter = ',', help_heading = "Query")]
    key: Vec<String>,

    /// When timers and TTL move: none, processing-time or event-time.
    #[arg(long, value_name = "MODE", help_heading = "Query")]
    time_mode: Option<String>,

    /// append or update.
    #[arg(long, value_name = "MODE", help_heading = "Query")]
    output_mode: Option<String>,

    /// Event-time column and how late a row may come, e.g. 'at, 10 minutes'. Rows more than a day ahead of the clock do
    /// not move the watermark (--set query.watermark.max_future=1h, or off; off by default with --clock).
    #[arg(long, value_name = "COLUMN, DELAY", help_heading = "Query")]
    watermark: Option<String>,

    /// available-now (process what is there, then end), continuous, or an interval such as 5s.
    #[arg(long, value_name = "TRIGGER", help_heading = "Query")]
    trigger: Option<String>,

    /// A setting for the processor; may be given again.
    #[arg(short, long = "param", value_name = "NAME=VALUE", help_heading = "Query")]
    parameters: Vec<String>,

    /// A name for the query, kept in the checkpoint.
    #[arg(long, value_name = "NAME", help_heading = "Query")]
    name: Option<String>,

    /// Seed of everything random, for a new checkpoint.
    #[arg(long, value_name = "NUMBER", help_heading = "Query")]
    seed: Option<u64>,

    /// File with the time of each batch, for reproducible runs.
    #[arg(long, value_name = "FILE", help_heading = "Query")]
    clock: Option<String>,

    /// Output: a directory, or `-` for standard output (at least once).
    #[arg(short, long, value_name = "PATH", help_heading = "Output")]
    sink: Option<String>,

    /// Format of the output: jsonl, csv or parquet.
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    sink_format: Option<String>,

    /// Folder for state, log and snapshots.
    #[arg(long, value_name = "DIR", help_heading = "Resources")]
    checkpoint: Option<String>,

    /// Worker threads; default: one per core.
    #[arg(long, value_name = "NUMBER", help_heading = "Resources")]
    workers: Option<u16>,

    /// How a processor that runs too long is stopped: epoch (cheap) or fuel (reproducible).
    #[arg(long, value_name = "KIND", help_heading = "Resources")]
    metering: Option<String>,

    /// Any setting of the query file by its name, e.g. limits.rows_per_batch=3000; may be given again.
    #[arg(long = "set", value_name = "SETTING=VALUE", help_heading = "Resources")]
    settings: Vec<String>,
}

impl QueryArgs {
    /// The component named by flag.
    pub(super) fn component(&self) -> Option<&Path> {
        self.component.as_deref()
    }

    /// Whether a query is described at all, and not just a component named.
    pub(super) fn describes_query(&self) -> bool {
        let named = [&self.input, &self.schema, &self.time_mode, &self.watermark, &self.initial_state_schema];
        self.config.is_some() || !self.key.is_empty() || named.iter().any(|flag| flag.is_some())
    }

    /// The query file with the flags on top.
    pub(super) fn load(&self) -> anyhow::Result<QueryConfig> {
        let overrides = self.overrides().map_err(|error| Coded::wrap(error.code(), error))?;
        let of_the_project = Path::new(QUERY_FILE);
        let named = self.config.as_deref();
        let file = named.or_else(|| (self.component.is_none() && of_the_project.is_file()).then_some(of_the_project));
        QueryConfig::load(file, overrides).map_err(|error| Coded::wrap(error.code(), error))
    }

    fn overrides(&self) -> Result<Table, ConfigError> {
        let mut table = Table::new();
        for setting in &self.settings {
            let (name, value) = setting.split_once('=').ok_or_else(|| not_a_setting(setting))?;
            let value = value.parse::<Value>().unwrap_or_else(|_| Value::String(value.to_owned()));
            put(&mut table, name.trim(), value);
        }
        let text = |value: &Option<String>| value.clone().map(Value::String);
        let path = self.component.as_ref().map(|path| Value::String(path.to_string_lossy().into_owned()));
        let flags = [
            ("processor.component", path),
            ("query.metering", text(&self.metering)),
            ("source.format", text(&self.format)),
            ("source.schema", text(&self.schema)),
            ("initial_state.path", text(&self.initial_state)),
            ("initial_state.schema", text(&self.initial_state_schema)),
            ("quarantine.path", text(&self.quarantine)),
            ("query.bad_rows", text(&self.bad_rows)),
            ("dead_letters.path", text(&self.dead_letters)),
            ("query.on_poison", text(&self.on_poison)),
            ("query.after_poison", text(&self.after_poison)),
            ("query.time_mode", text(&self.time_mode)),
            ("query.output_mode", text(&self.output_mode)),
            ("query.trigger", text(&self.trigger)),
            ("query.name", text(&self.name)),
            ("query.clock", text(&self.clock)),
            ("query.seed", self.seed.map(|seed| Value::Integer(i64::from_ne_bytes(seed.to_ne_bytes())))),
            ("query.checkpoint", text(&self.checkpoint)),
            ("query.workers", self.workers.map(|workers| Value::Integer(workers.into()))),
            ("sink.format", text(&self.sink_format)),
        ];
        for (name, value) in flags {
            if let Some(value) = value {
                put(&mut table, name, value);
            }
        }
        put_place(&mut table, "source", "stdin", &self.input);
        put_place(&mut table, "sink", "stdout", &self.sink);
        if !self.key.is_empty() {
            let key = self.key.iter().map(|column| Value::String(column.trim().to_owned()));
            put(&mut table, "query.key", Value::Array(key.collect()));
        }
        if let Some(watermark) = &self.watermark {
            let (column, delay) = watermark.split_once(',').ok_or_else(|| not_a_setting(watermark))?;
            put(&mut table, "query.watermark.column", Value::String(column.trim().to_owned()));
            put(&mut table, "query.watermark.delay", Value::String(delay.trim().to_owned()));
        }
        for parameter in &self.parameters {
            let (name, value) = parameter.split_once('=').ok_or_else(|| not_a_setting(parameter))?;
            let parameters = section(section(&mut table, "processor"), "parameters");
            parameters.insert(name.to_owned(), Value::String(value.to_owned()));
        }
        Ok(table)
    }
}

/// A place is a path, or `-` for a standard stream; the other of the two that a file may name then does not count.
fn put_place(table: &mut Table, name: &str, stream: &str, place: &Option<String>) {
    let Some(place) = place else { return };
    let is_stream = place == "-";
    let section = section(table, name);
    section.insert(stream.to_owned(), Value::Boolean(is_stream));
    section.insert("path".to_owned(), Value::String(if is_stream { String::new() } else { place.clone() }));
}

/// Puts a value at a dotted name.
pub(super) fn put(table: &mut Table, name: &str, value: Value) {
    match name.split_once('.') {
        None => {
            table.insert(name.to_owned(), value);
        }
        Some((first, rest)) => put(section(table, first), rest, value),
    }
}

/// The table of that name, made if it is not there or not a table.
fn section<'t>(table: &'t mut Table, name: &str) -> &'t mut Table {
    let entry = table.entry(name).or_insert_with(|| Value::Table(Table::new()));
    if !entry.is_table() {
        *entry = Value::Table(Table::new());
    }
    match entry {
        Value::Table(table) => table,
        _ => unreachable!("made a table just above"),
    }
}

fn not_a_setting(text: &str) -> ConfigError {
    ConfigError::Missing(format!("{text:?} must have the form NAME=VALUE (or COLUMN, DELAY for a watermark)"))
}
