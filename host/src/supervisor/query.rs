//! One query: where it stands, what is wanted of it, and so what is to be done. Nothing here does anything.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::status::{Failure, State, Status};
use super::{Hosted, Retry, Wanted};
use crate::ipc::worker::{End, Input};

/// A query of a tenant.
pub(super) struct Managed {
    pub(super) hosted: Hosted,
    wanted: Wanted,
    place: Place,
    /// Given up: told once it is closed.
    removal: Option<Sender<()>>,
    status: Arc<Mutex<Status>>,
}

/// Where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nowhere.
    Out,
    /// In the worker, being opened.
    Opening,
    /// In the worker.
    In,
    /// In the worker, told to end.
    Closing,
    /// Unloaded: it knew the rows before `end`, and has something to do then.
    Resting { end: u64, wake_at_ms: Option<i64> },
    /// It is tried again then.
    Retrying { at_ms: i64 },
    /// It is not tried again.
    Failed,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Nothing,
    Open,
    Close,
}

impl Managed {
    pub(super) fn new(hosted: Hosted, wanted: Wanted, status: Arc<Mutex<Status>>) -> Self {
        let managed = Self { hosted, wanted, place: Place::Out, removal: None, status };
        managed.show(|_| {});
        managed
    }

    /// What is to be done now, with rows up to `end`. It is taken to be done.
    pub(super) fn act(&mut self, now_ms: i64, end: u64) -> Action {
        let runs = self.wanted == Wanted::Running && self.removal.is_none();
        let action = match self.place {
            Place::Opening | Place::In if !runs => Action::Close,
            Place::Opening | Place::In | Place::Closing | Place::Failed => Action::Nothing,
            Place::Out | Place::Resting { .. } | Place::Retrying { .. } if !runs => Action::Nothing,
            Place::Out => Action::Open,
            Place::Resting { end: known, wake_at_ms } => {
                if end > known || wake_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
                    Action::Open
                } else {
                    Action::Nothing
                }
            }
            Place::Retrying { at_ms } => {
                if at_ms <= now_ms {
                    Action::Open
                } else {
                    Action::Nothing
                }
            }
        };
        match action {
            Action::Open => self.move_to(Place::Opening),
            Action::Close => self.move_to(Place::Closing),
            Action::Nothing => {}
        }
        action
    }

    /// When it is to be looked at again, in milliseconds since the epoch.
    pub(super) fn due_ms(&self) -> Option<i64> {
        match self.place {
            _ if self.wanted != Wanted::Running => None,
            Place::Out => Some(i64::MIN),
            Place::Resting { wake_at_ms, .. } => wake_at_ms,
            Place::Retrying { at_ms } => Some(at_ms),
            Place::Opening | Place::In | Place::Closing | Place::Failed => None,
        }
    }

    /// Whether the worker has it.
    pub(super) fn is_loaded(&self) -> bool {
        matches!(self.place, Place::Opening | Place::In | Place::Closing)
    }

    /// Whether rows are to be told to the worker.
    pub(super) fn takes_rows(&self) -> bool {
        matches!(self.place, Place::Opening | Place::In)
    }

    pub(super) fn want(&mut self, wanted: Wanted) {
        self.wanted = wanted;
        if matches!(self.place, Place::Failed | Place::Retrying { .. }) {
            self.place = Place::Out;
        }
        self.show(|status| status.attempts = 0);
    }

    /// It is given up.
    pub(super) fn remove(&mut self, done: Sender<()>) {
        self.removal = Some(done);
    }

    /// Whether it is given up and closed; then its remover is told.
    pub(super) fn is_gone(&self) -> bool {
        match &self.removal {
            Some(done) if !self.is_loaded() => {
                // Whoever does not wait any more need not be told.
                let _ = done.send(());
                true
            }
            _ => false,
        }
    }

    pub(super) fn opened(&mut self, output_schema: String, input: Input) {
        if self.place == Place::Opening {
            self.place = Place::In;
        }
        self.show(|status| {
            status.output_schema = Some(output_schema);
            status.input = input;
        });
    }

    pub(super) fn batch(&mut self, progress: String, input: Input) {
        self.show(|status| status.batch(progress, input));
    }

    pub(super) fn closed(&mut self, end: End, now_ms: i64, retry: &Retry) {
        match end {
            _ if !self.is_loaded() => {}
            End::Asked => self.move_to(Place::Out),
            End::Idle { end, wake_at_ms } => self.move_to(Place::Resting { end, wake_at_ms }),
            End::Failed(failure) => self.failed(failure, now_ms, retry),
        }
    }

    /// It could not be opened, or go on, by a fault of its own.
    pub(super) fn failed(&mut self, failure: Failure, now_ms: i64, retry: &Retry) {
        let attempts = self.lock().attempts + 1;
        self.place = match attempts > retry.attempts {
            true => Place::Failed,
            false => Place::Retrying { at_ms: now_ms.saturating_add_unsigned(retry.pause_ms(attempts)) },
        };
        self.show(|status| {
            status.attempts = attempts;
            status.failure = Some(failure);
        });
    }

    /// The worker died, or could not be started: nobody knows by whose fault.
    pub(super) fn lost(&mut self, failure: Failure, at_ms: i64) {
        self.place = Place::Retrying { at_ms };
        self.show(|status| status.failure = Some(failure));
    }

    fn move_to(&mut self, place: Place) {
        self.place = place;
        self.show(|_| {});
    }

    fn state(&self) -> State {
        match (self.place, self.wanted) {
            (Place::Closing, _) => State::Stopping,
            (Place::Failed, Wanted::Running) => State::Failed,
            (Place::Opening, _) => State::Starting,
            (Place::In, _) => State::Running,
            (_, Wanted::Paused) => State::Paused,
            (_, Wanted::Stopped) => State::Stopped,
            (Place::Out, Wanted::Running) => State::Starting,
            (Place::Resting { .. }, Wanted::Running) => State::Idle,
            (Place::Retrying { .. }, Wanted::Running) => State::Restarting,
        }
    }

    /// Changes what is shown of it, and tells.
    fn show(&self, change: impl FnOnce(&mut Status)) {
        let mut status = self.lock();
        change(&mut status);
        status.state = self.state();
        status.wake_at_ms = match self.place {
            Place::Resting { wake_at_ms, .. } => wake_at_ms,
            _ => None,
        };
        drop(status);
        (self.hosted.changed)();
    }

    fn lock(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
