//! `tidemill results`: what a query emitted.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::{Remote, RemoteArgs, escaped, failed};
use crate::cli::output::Results;
use crate::client::{Body, ClientError, Method};
use crate::config::Environment;

/// Print what a query emitted, a row per line
///
/// Every row has a position: generation, batch and number in the batch. --after goes on behind one, without gap or double.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct ResultsArgs {
    /// The query
    #[arg(value_name = "QUERY")]
    query: String,

    /// Go on as rows come, until interrupted
    #[arg(short, long)]
    follow: bool,

    /// Begin behind this position, e.g. 0-12-3; default: at the oldest row there is
    #[arg(long, value_name = "POSITION")]
    after: Option<String>,

    /// At most so many rows
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// Print the position before each row
    #[arg(long)]
    positions: bool,

    #[command(flatten)]
    remote: RemoteArgs,
}

const EXAMPLES: &str = "\
Examples:
  tidemill results visits
  tidemill results visits --follow --after 0-12-3";

/// How long to wait before a stream that broke off is taken up again.
const PAUSE: Duration = Duration::from_secs(1);
/// How often in a row it is taken up again without a row in between.
const ATTEMPTS: u32 = 60;

/// Runs the command.
pub(in crate::cli) fn run(args: &ResultsArgs, environment: &Environment) -> anyhow::Result<u8> {
    let remote = args.remote.connect(environment)?;
    let path = remote.of_tenant(&["queries", &args.query, "results"])?;
    let mut printer = Printer {
        out: Results::start(),
        positions: args.positions,
        left: args.limit.unwrap_or(u64::MAX),
        after: args.after.clone(),
    };
    if args.follow {
        follow(&remote, &path, &mut printer)?
    } else {
        pages(&remote, &path, &mut printer)?
    };
    let _reader_gone = printer.out.flush()?;
    Ok(0)
}

/// All there is now.
fn pages(remote: &Remote, path: &str, printer: &mut Printer) -> anyhow::Result<()> {
    loop {
        let after = printer.after.as_deref().map(|after| format!("?after={}", escaped(after))).unwrap_or_default();
        let page = remote.ask(Method::GET, &format!("{path}{after}"), Body::Empty)?.body;
        for entry in page.get("entries").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default() {
            let position = entry.get("position").and_then(Value::as_str).unwrap_or_default();
            // An entry without a row is a rollback: what is told here is what there is.
            let Some(row) = entry.get("row") else { continue };
            if printer.row(position, &row.to_string())?.is_break() {
                return Ok(());
            }
        }
        if page.get("end_reached").and_then(Value::as_bool).unwrap_or(true) {
            return Ok(());
        }
        printer.after = page.get("next").and_then(Value::as_str).map(str::to_owned).or(printer.after.take());
    }
}

/// What there is and what comes. A stream that breaks off is taken up behind the last row that was printed.
fn follow(remote: &Remote, path: &str, printer: &mut Printer) -> anyhow::Result<()> {
    let mut attempts = 0;
    loop {
        let broke_off = match remote.connection.follow(path, printer.after.as_deref()) {
            Err(error) => error,
            Ok(events) => {
                let mut broke_off = None;
                for event in events {
                    match event {
                        Ok(event) if matches!(event.kind.as_str(), "" | "message" | "row") => {
                            attempts = 0;
                            let position = event.id.unwrap_or_default();
                            if printer.row(&position, &event.data)?.is_break() || printer.out.flush()?.is_break() {
                                return Ok(());
                            }
                        }
                        Ok(_) => {}
                        Err(error) => {
                            broke_off = Some(error);
                            break;
                        }
                    }
                }
                broke_off.unwrap_or_else(|| ClientError::Interrupted {
                    server: remote.connection.server().to_owned(),
                    reason: "it ended".to_owned(),
                })
            }
        };
        attempts += 1;
        if matches!(broke_off, ClientError::Refused(_)) || attempts > ATTEMPTS {
            return Err(failed(broke_off));
        }
        thread::sleep(PAUSE);
    }
}

struct Printer {
    out: Results,
    positions: bool,
    left: u64,
    after: Option<String>,
}

impl Printer {
    fn row(&mut self, position: &str, row: &str) -> anyhow::Result<ControlFlow<()>> {
        if self.left == 0 {
            return Ok(ControlFlow::Break(()));
        }
        self.left -= 1;
        let shown = if self.positions { format!("{position}\t{row}\n") } else { format!("{row}\n") };
        let flow = self.out.write(&shown)?;
        self.after = Some(position.to_owned());
        Ok(if self.left == 0 { ControlFlow::Break(()) } else { flow })
    }
}
