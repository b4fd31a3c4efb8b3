//! `tidemill dev`: builds and tests a project again whenever one of its files changes.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use clap::Args;
use notify::{Event, EventKind, RecursiveMode, Watcher};
use toml::Table;

use super::build::{self, Built, ToolArgs, toolbox};
use super::open::{self, Lifetime, Opened};
use super::output::{self, Coded, note};
use super::query_args::{QUERY_FILE, put};
use super::test::{self, TestArgs};
use super::{Format, interrupt};
use crate::config::{Environment, QueryConfig};
use crate::engine::trigger::{self, Stop};
use crate::project::{ProjectError, Toolbox};

/// Build and test a project again whenever you save
///
/// Watches the project, builds it at once and after each change, and then runs the cases of its folder `cases`, or, if it has
/// none, the query of its query.toml, with the rows on standard output. What fails is shown, and the next change is waited
/// for. Ctrl-C ends it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DevArgs {
    /// Folder of the project.
    #[arg(default_value = ".")]
    path: PathBuf,

    /// Run the query, also if there are cases.
    #[arg(long)]
    run: bool,

    /// Let the query go on where the last change left it; else it begins anew each time.
    #[arg(long)]
    keep_state: bool,

    #[command(flatten)]
    tools: ToolArgs,
}

const EXAMPLES: &str = "\
Examples:
  tidemill dev
  tidemill dev visits --run --keep-state";

/// An editor writes a file in several steps; changes that come closer together are one.
const QUIET: Duration = Duration::from_millis(200);
/// How often an interrupt is looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Folders that builds and runs write to.
const NOT_WATCHED: [&str; 7] = ["build", "target", "node_modules", "__pycache__", "checkpoint", "out", "dist"];

/// Runs the command.
pub(super) fn run(args: &DevArgs, format: Format, environment: &Environment) -> anyhow::Result<u8> {
    let stop = Stop::default();
    let _interrupts = interrupt::watch(stop.clone(), "Stopping.")?;
    let tools = toolbox(&args.tools, stop.clone(), environment);
    let project = args.tools.open(&args.path).map_err(|error| Coded::wrap(error.code(), error))?;
    let (sender, changes) = mpsc::channel();
    let mut watcher = notify::recommended_watcher(sender).map_err(unwatchable)?;
    watcher.watch(project.root(), RecursiveMode::Recursive).map_err(unwatchable)?;
    while !stop.requested() {
        if let Err(error) = round(args, project.root(), &tools, format, environment) {
            let _failed = output::failure(&error, format);
        }
        if !stop.requested() {
            note("Waiting for a change; Ctrl-C ends.");
        }
        wait_for_change(&changes, project.root(), &stop);
    }
    Ok(0)
}

/// Builds, and shows what the processor does.
fn round(
    args: &DevArgs,
    root: &Path,
    tools: &Toolbox,
    format: Format,
    environment: &Environment,
) -> anyhow::Result<()> {
    // Its manifest may have changed.
    let project = args.tools.open(root).map_err(|error| Coded::wrap(error.code(), error))?;
    let built = match build::build(&project, None, args.tools.profile(), tools) {
        Err(ProjectError::Interrupted) => return Ok(()),
        built => built.map_err(|error| Coded::wrap(error.code(), error))?,
    };
    note(&format!("Built {}.", built.component.display()));
    let cases = root.join("cases");
    if cases.is_dir() && !args.run {
        return test::run(&TestArgs::of(cases, built.component), format, environment).map(drop);
    }
    match &built.query {
        Some(file) => run_query(file, &built, args.keep_state, tools.stop(), environment),
        None => {
            note(&format!("There is neither a folder cases nor a {QUERY_FILE}, so nothing is run."));
            Ok(())
        }
    }
}

fn run_query(
    file: &Path,
    built: &Built,
    keep_state: bool,
    stop: &Stop,
    environment: &Environment,
) -> anyhow::Result<()> {
    let component = std::path::absolute(&built.component).unwrap_or_else(|_| built.component.clone());
    let checkpoint = component.with_extension("dev-checkpoint");
    let mut overrides = Table::new();
    for (name, value) in [
        ("processor.component", component.to_string_lossy().into_owned().into()),
        ("query.trigger", "available-now".into()),
        ("query.checkpoint", checkpoint.to_string_lossy().into_owned().into()),
        ("sink.stdout", true.into()),
        ("sink.path", "".into()),
    ] {
        put(&mut overrides, name, value);
    }
    let config = QueryConfig::load(Some(file), overrides).map_err(|error| Coded::wrap(error.code(), error))?;
    let lifetime = if keep_state { Lifetime::Kept } else { Lifetime::Ephemeral };
    let Opened { mut query, folder } = open::query(&config, lifetime, environment)?;
    let outcome = trigger::run(&mut query, stop, &mut |_| ());
    let closed = query.close();
    drop(folder);
    outcome.and(closed).map_err(|error| Coded::wrap(error.code().to_owned(), error))
}

/// Waits until a file of the project has changed and no more follow, or someone interrupts.
fn wait_for_change(changes: &Receiver<notify::Result<Event>>, root: &Path, stop: &Stop) {
    let mut has_changed = false;
    while !stop.requested() {
        match changes.recv_timeout(if has_changed { QUIET } else { LOOK_INTERVAL }) {
            Ok(Ok(event)) => has_changed |= matters(&event, root),
            Err(RecvTimeoutError::Timeout) if has_changed => return,
            Ok(Err(_)) | Err(RecvTimeoutError::Timeout) => {}
            // The watcher lives as long as this loop.
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Whether a change is one of the author's.
fn matters(event: &Event, root: &Path) -> bool {
    let is_source = |path: &PathBuf| {
        let inside = path.strip_prefix(root).unwrap_or(path);
        !inside.components().any(|part| {
            let name = part.as_os_str().to_string_lossy();
            // Hidden ones are `.git`, `.tidemill`, and what editors keep beside a file.
            name.starts_with('.') || name.ends_with('~') || NOT_WATCHED.contains(&&*name)
        })
    };
    !matches!(event.kind, EventKind::Access(_)) && event.paths.iter().any(is_source)
}

fn unwatchable(error: notify::Error) -> anyhow::Error {
    Coded::wrap("WATCH_FAILED", error)
}

#[cfg(test)]
mod tests {
    use notify::event::{AccessKind, CreateKind, ModifyKind};

    use super::*;

    fn event(kind: EventKind, path: &str) -> Event {
        Event::new(kind).add_path(PathBuf::from("/home/me/visits").join(path))
    }

    #[test]
    fn only_changes_of_the_authors_files_matter() {
        let root = Path::new("/home/me/visits");
        let changed = EventKind::Modify(ModifyKind::Any);
        for path in ["src/lib.rs", "query.toml", "cases/a.toml", "input/new.jsonl"] {
            assert!(matters(&event(changed, path), root), "{path}");
        }
        for path in
            ["build/visits.wasm", ".tidemill/sdk/go/doc.go", "target/x", ".git/index", "src/.lib.rs.swp", "a.py~"]
        {
            assert!(!matters(&event(changed, path), root), "{path}");
        }
        assert!(!matters(&event(EventKind::Access(AccessKind::Any), "src/lib.rs"), root));
        assert!(matters(&event(EventKind::Create(CreateKind::File), "src/new.rs"), root));
    }

    #[test]
    fn changes_that_follow_each_other_are_one() {
        let (sender, changes) = mpsc::channel();
        for path in ["src/a.rs", "src/b.rs", "build/x"] {
            sender.send(Ok(event(EventKind::Modify(ModifyKind::Any), path))).unwrap();
        }

        wait_for_change(&changes, Path::new("/home/me/visits"), &Stop::default());

        assert!(changes.try_recv().is_err(), "none is left for a second build");
    }
}
