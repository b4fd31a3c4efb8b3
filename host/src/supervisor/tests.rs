//! What is to be done with a query, by where it stands and what is wanted.

use std::sync::mpsc::{TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;

use super::query::{Action, Managed};
use super::{Failure, Hosted, Retry, State, Status, Wanted};
use crate::clock::ManualClock;
use crate::disk::RealDisk;
use crate::ingest::{IngestLog, IngestSettings};
use crate::ipc::worker::{End, Input};
use crate::record::Schema;

const RETRY: Retry = Retry { attempts: 2, pause: Duration::from_millis(100), pause_max: Duration::from_secs(1) };

/// A query, and its time.
struct Query {
    managed: Managed,
    status: Arc<Mutex<Status>>,
    now_ms: i64,
    /// Rows that it was handed.
    end: u64,
    _folder: TempDir,
}

impl Query {
    fn wanted(wanted: Wanted) -> Self {
        let folder = TempDir::new().unwrap();
        let ingest = IngestLog::open(
            Arc::new(RealDisk),
            folder.path(),
            "query",
            &Schema::parse("key STRING").unwrap(),
            IngestSettings::default(),
            Arc::new(ManualClock::default()),
        );
        let hosted = Hosted {
            tenant: "tenant".to_owned(),
            tenant_folder: folder.path().to_owned(),
            user: None,
            query: "query".to_owned(),
            document: String::new(),
            components: Vec::new(),
            load: Arc::new(|_| Err(failure())),
            ingest: Arc::new(ingest.unwrap()),
            changed: Box::new(|| {}),
        };
        let status = Arc::<Mutex<Status>>::default();
        let managed = Managed::new(hosted, wanted, Arc::clone(&status));
        Self { managed, status, now_ms: 0, end: 0, _folder: folder }
    }

    /// Open and running.
    fn running() -> Self {
        let mut query = Self::wanted(Wanted::Running);
        assert_eq!(query.act(), Action::Open);
        query.managed.opened("key STRING".to_owned(), Input::default());
        query
    }

    fn act(&mut self) -> Action {
        self.managed.act(self.now_ms, self.end)
    }

    fn closed(&mut self, end: End) {
        self.managed.closed(end, self.now_ms, &RETRY);
    }

    fn state(&self) -> State {
        self.status.lock().unwrap().state
    }
}

fn failure() -> Failure {
    Failure { code: "SCRIPTED".to_owned(), message: "as told".to_owned(), batch: Some(3) }
}

#[test]
fn a_query_that_shall_run_is_opened_and_one_that_shall_not_is_closed() {
    let mut query = Query::wanted(Wanted::Running);
    assert_eq!((query.state(), query.act(), query.state()), (State::Starting, Action::Open, State::Starting));
    assert_eq!(query.act(), Action::Nothing);
    query.managed.opened("key STRING".to_owned(), Input::default());
    assert_eq!((query.state(), query.act()), (State::Running, Action::Nothing));

    query.managed.want(Wanted::Paused);

    assert_eq!((query.act(), query.state()), (Action::Close, State::Stopping));
    query.closed(End::Asked);
    assert_eq!((query.act(), query.state()), (Action::Nothing, State::Paused));
}

#[test]
fn one_that_is_wanted_again_while_it_closes_is_opened_when_it_is_closed() {
    let mut query = Query::running();
    query.managed.want(Wanted::Stopped);
    assert_eq!(query.act(), Action::Close);

    query.managed.want(Wanted::Running);

    assert_eq!(query.act(), Action::Nothing, "its folder is in use");
    query.closed(End::Asked);
    assert_eq!(query.act(), Action::Open);
}

#[test]
fn an_idle_query_is_opened_when_its_time_has_come() {
    let mut query = Query::running();
    query.closed(End::Idle { end: 0, wake_at_ms: Some(500) });
    assert_eq!((query.state(), query.act(), query.managed.due_ms()), (State::Idle, Action::Nothing, Some(500)));

    query.now_ms = 500;

    assert_eq!(query.act(), Action::Open);
}

#[test]
fn an_idle_query_is_opened_by_rows_also_by_those_that_came_while_it_closed() {
    let mut query = Query::running();
    query.end = 7;

    query.closed(End::Idle { end: 5, wake_at_ms: None });

    assert_eq!(query.act(), Action::Open);
}

#[test]
fn a_failing_query_is_tried_again_ever_later_and_then_no_more() {
    let mut query = Query::running();
    for pause_ms in [100, 200] {
        query.closed(End::Failed(failure()));
        assert_eq!((query.state(), query.act()), (State::Restarting, Action::Nothing));
        assert_eq!(query.managed.due_ms(), Some(query.now_ms + pause_ms));
        query.now_ms += pause_ms;
        assert_eq!(query.act(), Action::Open);
    }

    query.closed(End::Failed(failure()));

    query.now_ms += 1_000_000;
    assert_eq!((query.state(), query.act(), query.managed.due_ms()), (State::Failed, Action::Nothing, None));
    assert_eq!(query.status.lock().unwrap().failure, Some(failure()));
    query.managed.want(Wanted::Running);
    assert_eq!(query.act(), Action::Open);
}

#[test]
fn a_batch_shows_that_it_no_longer_fails() {
    let mut query = Query::running();
    query.closed(End::Failed(failure()));
    query.now_ms += 100;
    assert_eq!(query.act(), Action::Open);

    query.managed.batch("{}".to_owned(), Input { consumed: 4, needed: 2 });

    let status = query.status.lock().unwrap();
    assert_eq!((status.attempts, status.failure.is_none(), status.input.consumed), (0, true, 4));
}

#[test]
fn what_a_worker_says_of_a_query_that_it_does_not_have_changes_nothing() {
    let mut query = Query::wanted(Wanted::Stopped);

    query.closed(End::Failed(failure()));
    query.managed.opened("key STRING".to_owned(), Input::default());

    assert_eq!((query.state(), query.act()), (State::Stopped, Action::Nothing));
}

#[test]
fn a_query_whose_worker_died_counts_no_failure_of_its_own() {
    let mut query = Query::running();

    query.managed.lost(failure(), 300);

    assert_eq!((query.state(), query.act(), query.managed.due_ms()), (State::Restarting, Action::Nothing, Some(300)));
    assert_eq!(query.status.lock().unwrap().attempts, 0);
    query.now_ms = 300;
    assert_eq!(query.act(), Action::Open);
}

#[test]
fn a_query_is_gone_only_when_it_is_closed() {
    let mut query = Query::running();
    let (done, told) = channel();
    query.managed.remove(done);

    assert_eq!((query.act(), query.managed.is_gone()), (Action::Close, false));
    assert_eq!(told.try_recv(), Err(TryRecvError::Empty));
    query.closed(End::Asked);
    assert!(query.managed.is_gone());
    assert_eq!(told.try_recv(), Ok(()));
}
