//! Cuts each user's events into sessions: one ends when 30 minutes have passed without an event, by the time of the
//! events.

use tidemill::{Handle, ListState, Out, Result, Row, Rows, StatefulProcessor, Timers, Timestamp};

const GAP_MS: i64 = 30 * 60 * 1000;

#[derive(Row)]
struct Event {
    at: Timestamp,
}

/// A session that may still grow. Its timer is at `last` + 30 minutes.
#[derive(Row)]
struct Open {
    first: Timestamp,
    last: Timestamp,
    events: i64,
}

impl Open {
    fn end_ms(&self) -> i64 {
        self.last.millis() + GAP_MS
    }
}

#[derive(Row, Debug, PartialEq)]
struct Session {
    user: String,
    first: Timestamp,
    last: Timestamp,
    /// `last` + 30 minutes: when it was known that no more comes.
    ended: Timestamp,
    events: i64,
}

struct Sessions {
    /// Ordered by time. There is more than one when events are further apart than the gap, and the watermark is
    /// behind them.
    open: ListState<Open>,
}

impl StatefulProcessor for Sessions {
    type Key = String;
    type Input = Event;
    type Output = Session;

    fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self { open: handle.list_state("open")? })
    }

    fn handle_input_rows(
        &mut self,
        _: &String,
        rows: Rows<'_, Event>,
        timers: &Timers,
        _: &mut Out<Session>,
    ) -> Result<()> {
        let mut sessions = self.open.get()?.collect::<Result<Vec<_>>>()?;
        for session in &sessions {
            timers.delete(session.end_ms())?;
        }
        for event in rows {
            let at = event?.at;
            sessions.push(Open { first: at, last: at, events: 1 });
        }
        let sessions = merge(sessions);
        for session in &sessions {
            timers.register(session.end_ms())?;
        }
        self.open.put(&sessions)
    }

    fn handle_expired_timer(
        &mut self,
        user: &String,
        expiry_ms: i64,
        _: &Timers,
        out: &mut Out<Session>,
    ) -> Result<()> {
        let sessions = self.open.get()?.collect::<Result<Vec<_>>>()?;
        let (ended, open): (Vec<_>, Vec<_>) = sessions.into_iter().partition(|session| session.end_ms() <= expiry_ms);
        for session in ended {
            let ended = Timestamp::from_millis(session.end_ms());
            let Open { first, last, events } = session;
            out.emit(&Session { user: user.clone(), first, last, ended, events })?;
        }
        if open.is_empty() { self.open.clear() } else { self.open.put(&open) }
    }
}

/// Joins what is less than the gap apart. Events may come in any order, so one can join two sessions.
fn merge(mut sessions: Vec<Open>) -> Vec<Open> {
    sessions.sort_by_key(|session| session.first);
    let mut merged: Vec<Open> = Vec::new();
    for session in sessions {
        match merged.last_mut() {
            Some(before) if session.first.millis() < before.end_ms() => {
                before.last = before.last.max(session.last);
                before.events += session.events;
            }
            _ => merged.push(session),
        }
    }
    merged
}

tidemill::export_processor!(Sessions);

#[cfg(test)]
mod tests {
    use super::*;
    use tidemill::TimeMode;
    use tidemill::testing::TestQuery;

    const MINUTE_MS: i64 = 60_000;

    fn events(minutes: &[i64]) -> Vec<Event> {
        minutes.iter().map(|minute| Event { at: minute_of(*minute) }).collect()
    }

    fn minute_of(minute: i64) -> Timestamp {
        Timestamp::from_millis(minute * MINUTE_MS)
    }

    fn session(first: i64, last: i64, events: i64) -> Session {
        Session {
            user: "ann".into(),
            first: minute_of(first),
            last: minute_of(last),
            ended: minute_of(last + 30),
            events,
        }
    }

    #[test]
    fn a_session_ends_when_the_watermark_is_half_an_hour_past_its_last_event() {
        let mut query = TestQuery::<Sessions>::new(TimeMode::EventTime);
        query.input("ann".into(), events(&[0, 10]));
        assert_eq!(query.run_batch().unwrap(), []);
        assert_eq!(query.set_watermark_ms(40 * MINUTE_MS - 1).run_batch().unwrap(), []);
        assert_eq!(query.set_watermark_ms(40 * MINUTE_MS).run_batch().unwrap(), [session(0, 10, 2)]);
        assert_eq!(query.timers(&"ann".into()).unwrap(), []);
    }

    #[test]
    fn an_event_between_two_sessions_joins_them() {
        let mut query = TestQuery::<Sessions>::new(TimeMode::EventTime);
        query.input("ann".into(), events(&[50, 0]));
        query.run_batch().unwrap();
        assert_eq!(query.timers(&"ann".into()).unwrap(), [30 * MINUTE_MS, 80 * MINUTE_MS]);
        query.input("ann".into(), events(&[25]));
        query.run_batch().unwrap();
        assert_eq!(query.set_watermark_ms(200 * MINUTE_MS).run_batch().unwrap(), [session(0, 50, 3)]);
    }

    #[test]
    fn sessions_end_one_by_one() {
        let mut query = TestQuery::<Sessions>::new(TimeMode::EventTime);
        query.input("ann".into(), events(&[0, 30, 100]));
        query.run_batch().unwrap();
        assert_eq!(
            query.set_watermark_ms(100 * MINUTE_MS).run_batch().unwrap(),
            [session(0, 0, 1), session(30, 30, 1)]
        );
        assert_eq!(query.timers(&"ann".into()).unwrap(), [130 * MINUTE_MS]);
    }
}
