//! Points where a test lets the process die, as `kill -9` would: both sides of every arrow of a batch. [`abandon_at`]
//! does it to the work of one thread instead, for tests that stay in their process.
//!
//! Without either a point costs one load. What a kill cannot show, as the system goes on and writes what was not
//! synced, is for [`crate::disk::testing`].

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::abort;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Every point, in the order of a batch's life, and what has happened when it is hit.
pub const POINTS: &[(&str, &str)] = &[
    ("plan.done", "the batch is planned and read; nothing of it is on the disk"),
    ("process.opened", "a worker has its operator; hit once per worker"),
    ("process.between-input-and-timers", "a worker has handled its input, and no timer; hit once per worker"),
    ("poison.attempt", "the processor has failed and is about to run without effect; hit once per such run"),
    ("process.done", "every worker has ended"),
    ("stage.before-sync", "a staged file is written and not synced; only for a large output"),
    ("stage.after-sync", "a staged file is durable, and no record names it; only for a large output"),
    ("commit.before-append", "all is staged; the log does not know of the batch"),
    ("commit.after-sync", "the batch is committed and not published"),
    ("publish.before-sink", "a sink is about to be given the batch; hit once per sink"),
    ("publish.after-sink", "a sink and its ledger have the batch; hit once per sink"),
    ("apply.before", "the sinks have the batch; the state store does not"),
    ("apply.after", "the state store has the batch, in memory"),
    ("snapshot.begin", "a snapshot is about to be made"),
    ("snapshot.filled", "a snapshot is complete under its temporary name, and not synced"),
    ("snapshot.renamed", "a snapshot is durable under its own name; what it makes superfluous is still there"),
    ("rollback.snapshot-taken", "the state to go back to is a durable snapshot; the log does not know of the rollback"),
    ("rollback.recorded", "the rollback has happened; no sink knows of it"),
    ("rollback.withdrawn", "the sinks have taken back what they published"),
    ("recovery.log-open", "the log's tail is durable"),
    ("recovery.state-applied", "the state store has every committed batch"),
    ("recovery.published", "the sinks have every committed batch"),
];

/// A specification of a fault that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// Not `name:n`.
    #[error("a fault is written name:n, the process dies when the point is hit for the n-th time; {0:?} is not")]
    Malformed(String),
    /// No such point.
    #[error("there is no point named {0:?} to die at; there are: {names}", names = names())]
    Unknown(String),
}

impl FaultError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "FAULT_MALFORMED",
            Self::Unknown(_) => "FAULT_UNKNOWN",
        }
    }
}

static IS_ARMED: AtomicBool = AtomicBool::new(false);
static FAULT: OnceLock<Fault> = OnceLock::new();

/// Lets the process die when a point is hit for the n-th time: `name:n`, n from 1. Only the first call of a process
/// counts.
///
/// # Errors
/// [`FaultError`].
pub fn arm(fault: &str) -> Result<(), FaultError> {
    let fault = Fault::parse(fault)?;
    FAULT.get_or_init(|| fault);
    IS_ARMED.store(true, Ordering::Release);
    Ok(())
}

/// Dies here if the process was armed for it.
#[inline]
pub fn point(name: &'static str) {
    if IS_ARMED.load(Ordering::Relaxed) {
        hit(name);
    }
}

#[cold]
fn hit(name: &'static str) {
    if FAULT.get().is_some_and(|fault| fault.hit(name)) {
        abort();
    }
    if OF_THREAD.with_borrow(|fault| fault.as_ref().is_some_and(|fault| fault.hit(name))) {
        resume_unwind(Box::new(Abandoned));
    }
}

thread_local! {
    /// The point at which the work of this thread is abandoned.
    static OF_THREAD: RefCell<Option<Fault>> = const { RefCell::new(None) };
}

struct Abandoned;

/// Whether a panic is work that [`abandon_at`] ends, which nothing may take for a failure.
pub(super) fn is_abandoned(panic: &(dyn Any + Send)) -> bool {
    panic.is::<Abandoned>()
}

/// Does the work up to the n-th hit of a point on this thread, `name:n`, and leaves the rest undone. None: it was
/// abandoned there; what the work has a hold of must then be dropped, as a process that dies would lose it.
///
/// # Errors
/// [`FaultError`].
pub fn abandon_at<T>(fault: &str, work: impl FnOnce() -> T) -> Result<Option<T>, FaultError> {
    let fault = Fault::parse(fault)?;
    OF_THREAD.set(Some(fault));
    IS_ARMED.store(true, Ordering::Release);
    let done = catch_unwind(AssertUnwindSafe(work));
    OF_THREAD.set(None);
    match done {
        Ok(done) => Ok(Some(done)),
        Err(panic) if is_abandoned(panic.as_ref()) => Ok(None),
        Err(panic) => resume_unwind(panic),
    }
}

struct Fault {
    point: &'static str,
    /// Hits up to the one that kills.
    hits_left: AtomicU64,
}

impl Fault {
    fn parse(fault: &str) -> Result<Self, FaultError> {
        let malformed = || FaultError::Malformed(fault.to_owned());
        let (name, hits) = fault.split_once(':').ok_or_else(malformed)?;
        let hits: u64 = hits.parse().ok().filter(|hits| *hits > 0).ok_or_else(malformed)?;
        let known = POINTS.iter().find(|(known, _)| *known == name);
        let (point, _) = known.ok_or_else(|| FaultError::Unknown(name.to_owned()))?;
        Ok(Self { point, hits_left: AtomicU64::new(hits) })
    }

    /// Whether this is the hit that kills.
    fn hit(&self, name: &str) -> bool {
        name == self.point && self.hits_left.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

fn names() -> String {
    let names: Vec<_> = POINTS.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_nth_hit_of_the_named_point_kills_and_no_other() {
        let fault = Fault::parse("commit.after-sync:2").unwrap();
        let hits = ["commit.after-sync", "plan.done", "commit.after-sync", "commit.after-sync"];
        assert_eq!(hits.map(|name| fault.hit(name)), [false, false, true, false]);
    }

    #[test]
    fn work_is_abandoned_at_the_point_and_not_elsewhere() {
        let passes = |count: u32| abandon_at("plan.done:2", || (0..count).for_each(|_| point("plan.done"))).unwrap();
        assert_eq!(passes(1), Some(()));
        assert_eq!(passes(2), None);
        point("plan.done");
    }

    #[test]
    fn a_fault_that_does_not_fit_is_refused() {
        for malformed in ["", "plan.done", "plan.done:", "plan.done:0", "plan.done:-1", "plan.done:x"] {
            assert_eq!(Fault::parse(malformed).err().unwrap().code(), "FAULT_MALFORMED", "{malformed}");
        }
        let unknown = Fault::parse("plan.undone:1").err().unwrap();
        assert_eq!(unknown.code(), "FAULT_UNKNOWN");
        assert!(unknown.to_string().contains("plan.done, "), "{unknown}");
    }

    #[test]
    fn the_table_holds_exactly_the_points_of_the_code() {
        let mut used = BTreeSet::new();
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut used);
        let named: BTreeSet<String> = POINTS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(used, named);
    }

    fn collect(folder: &Path, used: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, used);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let calls = text.split("faults::point(\"").skip(1);
                used.extend(calls.filter_map(|call| call.split('"').next()).map(str::to_owned));
            }
        }
    }
}
