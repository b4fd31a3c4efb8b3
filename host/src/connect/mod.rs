//! The ends of a query: files and standard streams as sources and sinks of the engine.
//!
//! One function per end looks at the settings and picks the connector: [`open_source`] and [`open_sink`]. Formats are
//! separate from places: `text` and `encoding` know bytes and batches, [`FileSource`], [`StdinSource`],
//! [`DirectorySink`] and [`StdoutSink`] know where those come from and go to. [`memory`] serves tests.
//!
//! It knows nothing of processors, state or the log, and does no durable I/O but through [`Disk`].

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::disk::Disk;
use crate::engine::sink::{Sink, SinkError};
use crate::engine::source::{Source, SourceError, SourceRange};

mod directory;
mod encoding;
mod error;
mod file;
mod files;
mod format;
mod map_keys;
pub mod memory;
mod settings;
mod stdin;
mod stdout;
mod text;

#[cfg(test)]
pub(crate) mod contract;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;

pub use directory::DirectorySink;
pub use encoding::Encoding;
pub use error::{ReadError, WriteError};
pub use file::write_file;
pub use files::{FileFormat, FileSource};
pub(crate) use files::{bad_row_code, check_projection};
pub use format::Format;
pub(crate) use map_keys::{DUPLICATE_MAP_KEY, without_rows};
pub use settings::{SinkSettings, SourceSettings};
pub use stdin::{AfterRestart, StdinSource};
pub use stdout::StdoutSink;
pub(crate) use text::{Columns, RowCutter, TextDecoder};
pub use text::{CsvDialect, CsvHeader, TextFormat};

/// How long a batch waits for the first row of a stream: long enough not to spin, short enough that timers and a wish to
/// stop are not kept waiting.
const STDIN_WAIT: Duration = Duration::from_millis(20);

/// Opens the source of the settings; `stdin` is read only if they say so. A schema that was not given is seen in the
/// files: [`Source::schema`] then tells it.
///
/// # Errors
/// Settings that do not go together, a place that cannot be read, no schema.
pub fn open_source(settings: &SourceSettings, stdin: Box<dyn Read + Send>) -> Result<Box<dyn Source>, SourceError> {
    let (setting, reason) = match (&settings.path, settings.stdin) {
        (Some(path), false) if settings.skip_committed => {
            ("skip_committed", format!("is for stdin; {} is not read again anyway", path.display()))
        }
        (Some(path), false) => return Ok(Box::new(open_files(path, settings)?)),
        (None, true) => return Ok(Box::new(open_stdin(settings, stdin)?)),
        (Some(_), true) => ("stdin", "give either a path or stdin, not both".to_owned()),
        (None, false) => ("path", "say where rows come from: a path, or stdin = true".to_owned()),
    };
    Err(ReadError::Setting { setting, reason }.into())
}

/// Opens the source of a query's initial state, of which only the files are read that are there at the beginning.
///
/// # Errors
/// As [`open_source`]; standard input.
pub fn open_initial_state(settings: &SourceSettings) -> Result<Box<dyn Source>, SourceError> {
    match &settings.path {
        Some(path) if !settings.stdin && !settings.skip_committed => Ok(Box::new(open_files(path, settings)?.fixed())),
        _ => {
            let reason = "an initial state is read from files, and needs a path and nothing of stdin".to_owned();
            Err(ReadError::Setting { setting: "path", reason }.into())
        }
    }
}

/// Opens the sink of the settings; `stdout` is written only if they say so. Nothing is touched before [`Sink::open`].
///
/// # Errors
/// Settings that do not go together.
pub fn open_sink(
    settings: &SinkSettings,
    disk: Arc<dyn Disk>,
    stdout: Box<dyn Write + Send>,
) -> Result<Box<dyn Sink>, SinkError> {
    let format = settings.format.unwrap_or(Format::Jsonl);
    let dialect = dialect(settings.delimiter, settings.null_value.as_deref(), None, format)
        .map_err(|(setting, reason)| WriteError::Setting { setting, reason })?;
    let encoding = match format {
        Format::Jsonl => Encoding::Text(TextFormat::JsonLines),
        Format::Csv => Encoding::Text(TextFormat::Csv(dialect)),
        Format::Parquet => Encoding::Parquet,
    };
    let (setting, reason) = match (&settings.path, settings.stdout, encoding) {
        (Some(path), false, encoding) => return Ok(Box::new(DirectorySink::new(disk, path, format, encoding)?)),
        (None, true, Encoding::Text(text)) => return Ok(Box::new(StdoutSink::new(disk, stdout, text))),
        (None, true, Encoding::Parquet) => {
            ("format", "Parquet cannot be written to stdout; use jsonl or csv".to_owned())
        }
        (Some(_), true, _) => ("stdout", "give either a path or stdout, not both".to_owned()),
        (None, false, _) => ("path", "say where rows go: a path, or stdout = true".to_owned()),
    };
    Err(WriteError::Setting { setting, reason }.into())
}

/// The sink for malformed rows, or for dead letters: JSON Lines in a directory of their own.
///
/// # Errors
/// A path that cannot be made absolute.
pub fn open_aside(path: &Path, disk: Arc<dyn Disk>) -> Result<Box<dyn Sink>, SinkError> {
    let encoding = Encoding::Text(TextFormat::JsonLines);
    Ok(Box::new(DirectorySink::new(disk, path, Format::Jsonl, encoding)?))
}

/// Why files cannot be opened of which this range was the last that was committed, if that is that the one in use is gone.
pub fn gone_since(settings: &SourceSettings, last: &SourceRange) -> Option<SourceError> {
    FileSource::gone_since(settings.path.as_ref()?, last).map(SourceError::from)
}

fn open_files(path: &Path, settings: &SourceSettings) -> Result<FileSource, ReadError> {
    let format = match settings.format {
        Some(format) => format,
        None => FileSource::format_of(path)?.ok_or_else(|| ReadError::Setting {
            setting: "format",
            reason: format!(
                "{} has no file whose name ends in .jsonl, .csv or .parquet (and perhaps .gz or .zst), by which the format \
                 could be told; set jsonl, csv or parquet",
                path.display()
            ),
        })?,
    };
    let format = match text_format(format, settings)? {
        Some(text) => FileFormat::Text(text),
        None => FileFormat::Parquet,
    };
    FileSource::open(path, format, settings.schema.clone())
}

fn open_stdin(settings: &SourceSettings, stdin: Box<dyn Read + Send>) -> Result<StdinSource, ReadError> {
    let Some(format) = text_format(settings.format.unwrap_or(Format::Jsonl), settings)? else {
        let reason = "Parquet cannot be read from stdin; use jsonl or csv".to_owned();
        return Err(ReadError::Setting { setting: "format", reason });
    };
    let Some(schema) = settings.schema.clone() else {
        let reason = "it can be read only once".to_owned();
        return Err(ReadError::NoSchema { place: "stdin".to_owned(), reason });
    };
    let after_restart = if settings.skip_committed { AfterRestart::SkipCommitted } else { AfterRestart::Continue };
    StdinSource::new(stdin, format, schema, after_restart, STDIN_WAIT)
}

/// None: Parquet, which is no text.
fn text_format(format: Format, settings: &SourceSettings) -> Result<Option<TextFormat>, ReadError> {
    let dialect = dialect(settings.delimiter, settings.null_value.as_deref(), settings.header, format)
        .map_err(|(setting, reason)| ReadError::Setting { setting, reason })?;
    Ok(match format {
        Format::Jsonl => Some(TextFormat::JsonLines),
        Format::Csv => Some(TextFormat::Csv(dialect)),
        Format::Parquet => None,
    })
}

/// The dialect of the settings, or the setting that is wrong and why.
fn dialect(
    delimiter: Option<char>,
    null_value: Option<&str>,
    header: Option<bool>,
    format: Format,
) -> Result<CsvDialect, (&'static str, String)> {
    let given =
        [("delimiter", delimiter.is_some()), ("null_value", null_value.is_some()), ("header", header.is_some())];
    if let Some((setting, _)) = given.iter().find(|(_, given)| *given && format != Format::Csv) {
        return Err((*setting, format!("is for CSV, and the format is {format}")));
    }
    let delimiter = match delimiter {
        None => b',',
        Some(delimiter) => match u8::try_from(delimiter) {
            Ok(byte) if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => byte,
            _ => return Err(("delimiter", "must be one ASCII character, neither a quote nor a line end".to_owned())),
        },
    };
    if null_value.is_some_and(|text| text.contains(['"', '\n', '\r', char::from(delimiter)])) {
        return Err(("null_value", "must hold no delimiter, quote or line end".to_owned()));
    }
    let header = if header.unwrap_or(true) { CsvHeader::FirstRow } else { CsvHeader::None };
    Ok(CsvDialect { delimiter, null_value: null_value.map(str::to_owned), header })
}

#[cfg(test)]
mod tests;
