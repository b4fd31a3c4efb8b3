//! Adds up each user's sessions by the day on which they ended. A day is told when it is over, by the time of the events.

use tidemill::{Handle, MapState, Out, Result, Row, Rows, StatefulProcessor, Timers, Timestamp};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// What the example `sessions` emits, as far as it is needed.
#[derive(Row)]
struct Session {
    ended: Timestamp,
    events: i64,
}

#[derive(Row, Default)]
struct Sum {
    sessions: i64,
    events: i64,
}

#[derive(Row, Debug, PartialEq)]
struct Day {
    user: String,
    day: Timestamp,
    sessions: i64,
    events: i64,
}

struct SessionsPerDay {
    /// Days that are not over, by their ends. Each has a timer then.
    days: MapState<i64, Sum>,
}

impl StatefulProcessor for SessionsPerDay {
    type Key = String;
    type Input = Session;
    type Output = Day;

    fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self { days: handle.map_state("days")? })
    }

    fn handle_input_rows(
        &mut self,
        _: &String,
        rows: Rows<'_, Session>,
        timers: &Timers,
        _: &mut Out<Day>,
    ) -> Result<()> {
        for session in rows {
            let Session { ended, events } = session?;
            let over_ms = (ended.millis().div_euclid(DAY_MS) + 1) * DAY_MS;
            let sum = self.days.get(&over_ms)?.unwrap_or_default();
            self.days.update(&over_ms, &Sum { sessions: sum.sessions + 1, events: sum.events + events })?;
            timers.register(over_ms)?;
        }
        Ok(())
    }

    fn handle_expired_timer(&mut self, user: &String, over_ms: i64, _: &Timers, out: &mut Out<Day>) -> Result<()> {
        if let Some(Sum { sessions, events }) = self.days.get(&over_ms)? {
            out.emit(&Day { user: user.clone(), day: Timestamp::from_millis(over_ms - DAY_MS), sessions, events })?;
        }
        self.days.remove(&over_ms)
    }
}

tidemill::export_processor!(SessionsPerDay);

#[cfg(test)]
mod tests {
    use super::*;
    use tidemill::TimeMode;
    use tidemill::testing::TestQuery;

    const HOUR_MS: i64 = 60 * 60 * 1000;

    fn session(ended_hour: i64, events: i64) -> Session {
        Session { ended: Timestamp::from_millis(ended_hour * HOUR_MS), events }
    }

    fn day(number: i64, sessions: i64, events: i64) -> Day {
        Day { user: "ann".into(), day: Timestamp::from_millis(number * DAY_MS), sessions, events }
    }

    #[test]
    fn a_day_is_told_once_it_is_over() {
        let mut query = TestQuery::<SessionsPerDay>::new(TimeMode::EventTime);
        query.input("ann".into(), vec![session(10, 3), session(20, 1)]);
        assert_eq!(query.run_batch().unwrap(), []);
        assert_eq!(query.set_watermark_ms(DAY_MS - 1).run_batch().unwrap(), []);
        assert_eq!(query.set_watermark_ms(DAY_MS).run_batch().unwrap(), [day(0, 2, 4)]);
        assert_eq!(query.timers(&"ann".into()).unwrap(), []);
    }

    #[test]
    fn a_session_belongs_to_the_day_on_which_it_ended() {
        let mut query = TestQuery::<SessionsPerDay>::new(TimeMode::EventTime);
        query.input("ann".into(), vec![session(23, 1), session(24, 2)]);
        query.run_batch().unwrap();
        assert_eq!(query.set_watermark_ms(2 * DAY_MS).run_batch().unwrap(), [day(0, 1, 1), day(1, 1, 2)]);
    }
}
