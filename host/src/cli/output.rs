//! Where text leaves the program: results on standard output, everything else on standard error.

use std::io::{BufWriter, IsTerminal, StdoutLock, Write};
use std::ops::ControlFlow;

use tracing_subscriber::EnvFilter;

use super::Format;
use crate::config::Environment;

/// A failure with its stable code.
#[derive(Debug)]
pub(super) struct Coded {
    code: String,
}

impl Coded {
    /// Gives an error the code that it is shown with.
    pub(super) fn wrap(
        code: impl Into<String>,
        error: impl std::error::Error + Send + Sync + 'static,
    ) -> anyhow::Error {
        anyhow::Error::new(error).context(Self { code: code.into() })
    }
}

impl std::fmt::Display for Coded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.code)
    }
}

/// Exit code of a failure.
pub(super) const FAILED: u8 = 1;

/// Prints clap's answer to a wrong command line, or to `--help`.
pub(super) fn usage(error: &clap::Error) -> u8 {
    drop(error.print());
    u8::try_from(error.exit_code()).unwrap_or(2)
}

/// Prints a failure and answers with the exit code.
pub(super) fn failure(error: &anyhow::Error, format: Format) -> u8 {
    let code = error.downcast_ref::<Coded>().map_or("HOST_ERROR", |coded| coded.code.as_str());
    let mut chain: Vec<String> =
        error.chain().skip(usize::from(error.is::<Coded>())).map(ToString::to_string).collect();
    chain.dedup_by(|cause, effect| effect.contains(&*cause));
    let text = match format {
        Format::Text => {
            let mut lines = chain.into_iter();
            let mut text = format!("error[{code}]: {}\n", lines.next().unwrap_or_default());
            for cause in lines {
                text.push_str(&format!("  caused by: {cause}\n"));
            }
            text
        }
        Format::Json => format!("{}\n", serde_json::json!({ "error": { "code": code, "message": chain.join(": ") } })),
    };
    drop(std::io::stderr().lock().write_all(text.as_bytes()));
    FAILED
}

/// Writes a result. A reader that has gone away is no failure of ours.
pub(super) fn result(text: &str) -> anyhow::Result<()> {
    flow(std::io::stdout().lock().write_all(text.as_bytes())).map(drop)
}

/// A result that is written bit by bit.
pub(super) struct Results(BufWriter<StdoutLock<'static>>);

impl Results {
    /// Has standard output to itself from now on.
    pub(super) fn start() -> Self {
        Self(BufWriter::new(std::io::stdout().lock()))
    }

    /// Writes some of it. Breaks when the reader has gone away, and nothing more need be written.
    pub(super) fn write(&mut self, text: &str) -> anyhow::Result<ControlFlow<()>> {
        flow(self.0.write_all(text.as_bytes()))
    }

    /// Lets the reader see what was written so far.
    pub(super) fn flush(&mut self) -> anyhow::Result<ControlFlow<()>> {
        flow(self.0.flush())
    }
}

fn flow(written: std::io::Result<()>) -> anyhow::Result<ControlFlow<()>> {
    match written {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(Coded::wrap("OUTPUT_FAILED", error)),
    }
}

/// Writes a line for a person to standard error.
pub(super) fn note(text: &str) {
    drop(std::io::stderr().lock().write_all(format!("{text}\n").as_bytes()));
}

/// Sends log lines, those of processors included, to standard error.
pub(super) fn start_logging(verbose: u8, environment: &Environment) {
    let default = match verbose {
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    let filter = environment.log_filter.clone().unwrap_or_else(|| default.to_owned());
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new(default)))
        .with_ansi(std::io::stderr().is_terminal() && !environment.no_color)
        .with_writer(std::io::stderr)
        .without_time();
    drop(subscriber.try_init());
}
