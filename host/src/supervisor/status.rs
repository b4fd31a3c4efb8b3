//! Where a query stands, for people and programs.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Serialize;

pub use crate::ipc::worker::Failure;
use crate::ipc::worker::Input;
use crate::isolation::Report;

/// Where a query stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Status {
    /// In a word.
    pub state: State,
    /// Why it failed, or why it is tried again.
    pub failure: Option<Failure>,
    /// Attempts since the last batch.
    pub attempts: u32,
    /// When an idle query will be loaded again, in milliseconds since the epoch. None: when there are rows.
    pub wake_at_ms: Option<i64>,
    /// Schema of the rows that it emits, in DDL; None: not known yet.
    pub output_schema: Option<String>,
    /// How far it has come.
    pub input: Input,
    /// What the last batches did, oldest first: JSON objects.
    pub recent: VecDeque<Arc<str>>,
}

/// A worker that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkerStatus {
    /// Whose.
    pub tenant: String,
    /// Its process.
    pub pid: u32,
    /// Which walls it has.
    pub walls: Report,
}

/// Batches whose reports are remembered.
const RECENT_MAX: usize = 20;

impl Status {
    /// After a batch.
    pub(super) fn batch(&mut self, progress: String, input: Input) {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(progress.into());
        self.input = input;
        self.attempts = 0;
        self.failure = None;
    }
}

/// In a word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is closed.
    #[default]
    Stopped,
    /// It is being loaded.
    Starting,
    /// It is loaded.
    Running,
    /// It had nothing to do and is unloaded until there are rows or a timer is due.
    Idle,
    /// It is closed, and takes rows.
    Paused,
    /// It ends the batch in hand.
    Stopping,
    /// It failed, or its worker did, and is tried again soon.
    Restarting,
    /// It failed again and again, and waits for someone to start it.
    Failed,
}
