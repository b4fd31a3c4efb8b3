//! Lets each event through once, and forgets it after an hour.

use std::time::Duration;

use tidemill::{Handle, Out, Result, Row, Rows, StatefulProcessor, Timers, ValueState};

const REMEMBERED: Duration = Duration::from_secs(3600);

#[derive(Row, Debug, PartialEq)]
struct Event {
    id: String,
    body: Option<String>,
}

struct Dedup {
    seen: ValueState<bool>,
}

impl StatefulProcessor for Dedup {
    type Key = String;
    type Input = Event;
    type Output = Event;

    fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self { seen: handle.value_state_with_ttl("seen", REMEMBERED)? })
    }

    fn handle_input_rows(
        &mut self,
        _: &String,
        mut rows: Rows<'_, Event>,
        _: &Timers,
        out: &mut Out<Event>,
    ) -> Result<()> {
        // Repeats are not even read, and do not prolong the hour.
        if self.seen.exists()? {
            return Ok(());
        }
        let Some(first) = rows.next() else { return Ok(()) };
        self.seen.update(&true)?;
        out.emit(&first?)
    }
}

tidemill::export_processor!(Dedup);

#[cfg(test)]
mod tests {
    use super::*;
    use tidemill::TimeMode;
    use tidemill::testing::TestQuery;

    const MINUTE_MS: i64 = 60_000;

    fn event(id: &str, body: &str) -> Event {
        Event { id: id.into(), body: Some(body.into()) }
    }

    #[test]
    fn an_event_passes_once_an_hour() {
        let mut query = TestQuery::<Dedup>::new(TimeMode::ProcessingTime);
        query.input("e1".into(), [event("e1", "first"), event("e1", "again")]);
        assert_eq!(query.run_batch().unwrap(), [event("e1", "first")]);
        query.set_time_ms(60 * MINUTE_MS - 1).input("e1".into(), [event("e1", "late")]);
        assert_eq!(query.run_batch().unwrap(), []);
        query.set_time_ms(60 * MINUTE_MS).input("e1".into(), [event("e1", "new")]);
        assert_eq!(query.run_batch().unwrap(), [event("e1", "new")]);
    }
}
