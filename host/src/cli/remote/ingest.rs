//! `tidemill ingest`: rows to a query, each exactly once however often a request must be repeated.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{Remote, RemoteArgs, failed, print_one};
use crate::cli::Format;
use crate::cli::output::{Coded, note};
use crate::client::{Body, ClientError, Method};
use crate::config::Environment;

/// Send rows to a query
///
/// Rows are JSON Lines, from a file or from standard input. They are sent in requests, each of which the server takes whole
/// or not at all, and repeated until the server has answered; the server knows a repeated request, so no row is taken
/// twice. A row that does not fit the query's schema is named, and nothing of its request is taken; what was sent before
/// stays.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct IngestArgs {
    /// The query
    #[arg(value_name = "QUERY")]
    query: String,

    /// A file of JSON Lines; - is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,

    /// Rows in a request
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch_rows: u32,

    #[command(flatten)]
    remote: RemoteArgs,
}

const EXAMPLES: &str = "\
Examples:
  tidemill ingest visits rows.jsonl
  tail -f rows.jsonl | tidemill ingest visits --batch-rows 1";

/// Bytes from which a request is sent, whatever its rows.
const REQUEST_BYTES: usize = 2 << 20;
/// Longest line that is read.
const LINE_BYTES_MAX: u64 = 8 << 20;
/// How often a request is repeated that the server did not answer, or asked to come later.
const ATTEMPTS: u32 = 60;
/// Between two attempts, where the server does not say how long.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs the command.
pub(in crate::cli) fn run(args: &IngestArgs, format: Format, environment: &Environment) -> anyhow::Result<u8> {
    let remote = args.remote.connect(environment)?;
    let path = remote.of_tenant(&["queries", &args.query, "rows"])?;
    let mut lines: Box<dyn BufRead> = match args.file.to_str() {
        Some("-") => Box::new(BufReader::new(io::stdin())),
        _ => Box::new(BufReader::new(File::open(&args.file).map_err(unreadable)?)),
    };
    let mut producer = Producer::new(&remote, &path)?;
    let mut request = Vec::new();
    let (mut rows_in_request, mut line_number) = (0, 0_u64);
    loop {
        let begun = request.len();
        let read = (&mut lines).take(LINE_BYTES_MAX).read_until(b'\n', &mut request).map_err(unreadable)?;
        line_number += u64::from(read > 0);
        if request.get(begun..).unwrap_or_default().trim_ascii().is_empty() {
            request.truncate(begun);
        } else {
            rows_in_request += 1;
        }
        let full = rows_in_request >= args.batch_rows || request.len() >= REQUEST_BYTES;
        if rows_in_request > 0 && (full || read == 0) {
            producer.send(&request, line_number)?;
            request.clear();
            rows_in_request = 0;
        }
        if read == 0 {
            break;
        }
    }
    print_one(&json!({ "rows": producer.rows, "requests": producer.sequence }), format)?;
    Ok(0)
}

/// Numbers its requests, so that the server knows one that it has taken.
struct Producer<'a> {
    remote: &'a Remote,
    path: &'a str,
    id: String,
    sequence: u64,
    rows: u64,
}

impl<'a> Producer<'a> {
    fn new(remote: &'a Remote, path: &'a str) -> anyhow::Result<Self> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| Coded::wrap("HOST_ERROR", error))?;
        let id = id.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { remote, path, id, sequence: 0, rows: 0 })
    }

    /// Sends a request until it is answered. `last_line` is where the input stands, for errors.
    fn send(&mut self, rows: &[u8], last_line: u64) -> anyhow::Result<()> {
        let sequence = self.sequence.to_string();
        let headers = [
            ("tidemill-producer", self.id.as_str()),
            ("tidemill-epoch", "0"),
            ("tidemill-sequence", sequence.as_str()),
        ];
        let body = Body::Bytes("application/x-ndjson", rows);
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.remote.connection.ask(Method::POST, self.path, &headers, body) {
                Ok(answer) => {
                    self.rows += answer.body.get("rows").and_then(serde_json::Value::as_u64).unwrap_or_default();
                    self.sequence += 1;
                    return Ok(());
                }
                Err(error) if attempts < ATTEMPTS && error.passes() => {
                    if attempts == 1 {
                        note(&format!("{error}; trying again"));
                    }
                    thread::sleep(error.retry_after().unwrap_or(PAUSE));
                }
                Err(error) => {
                    note(&format!("{} rows were taken; the request that was not ends at line {last_line}", self.rows));
                    return Err(failed(error));
                }
            }
        }
    }
}

fn unreadable(error: io::Error) -> anyhow::Error {
    Coded::wrap("INPUT_UNREADABLE", error)
}

impl ClientError {
    /// Whether the same request may succeed a little later.
    fn passes(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(problem) => matches!(problem.status, 429 | 502 | 503 | 504),
            _ => false,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(problem) => problem.retry_after.map(|seconds| Duration::from_secs(seconds.clamp(1, 60))),
            _ => None,
        }
    }
}
