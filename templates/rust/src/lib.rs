//! Counts the visits of a user, and tells when the user has left: after half an hour without one.

use tidemill::{Handle, Out, Result, Row, Rows, StatefulProcessor, Timers, ValueState};

/// Without a visit for so long, a user has left.
const QUIET_MS: i64 = 30 * 60 * 1000;

/// The columns that are wanted of the input; others are not even read.
#[derive(Row)]
struct Visit {
    page: String,
}

/// What comes out.
#[derive(Row, Debug, PartialEq)]
struct Visits {
    user: String,
    visits: i64,
    here: bool,
}

struct Counter {
    visits: ValueState<i64>,
}

impl StatefulProcessor for Counter {
    type Key = String;
    type Input = Visit;
    type Output = Visits;

    fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self { visits: handle.value_state("visits")? })
    }

    fn handle_input_rows(
        &mut self,
        user: &String,
        rows: Rows<'_, Visit>,
        timers: &Timers,
        out: &mut Out<Visits>,
    ) -> Result<()> {
        let mut visits = self.visits.get()?.unwrap_or(0);
        for row in rows {
            let visit = row?;
            tidemill::debug!("{user} visits {}", visit.page);
            visits += 1;
        }
        self.visits.update(&visits)?;

        for expiry_ms in timers.list()? {
            timers.delete(expiry_ms?)?;
        }
        timers.register(timers.processing_time_ms() + QUIET_MS)?;
        out.emit(&Visits { user: user.clone(), visits, here: true })
    }

    fn handle_expired_timer(
        &mut self,
        user: &String,
        _expiry_ms: i64,
        _timers: &Timers,
        out: &mut Out<Visits>,
    ) -> Result<()> {
        let visits = self.visits.get()?.unwrap_or(0);
        self.visits.clear()?;
        out.emit(&Visits { user: user.clone(), visits, here: false })
    }
}

tidemill::export_processor!(Counter);

#[cfg(test)]
mod tests {
    use tidemill::TimeMode;
    use tidemill::testing::TestQuery;

    use super::*;

    fn visits(user: &str, visits: i64, here: bool) -> Visits {
        Visits { user: user.to_owned(), visits, here }
    }

    #[test]
    fn visits_are_counted_until_half_an_hour_has_passed_without_one() {
        let mut query = TestQuery::<Counter>::new(TimeMode::ProcessingTime);
        query.input("ada".to_owned(), [Visit { page: "/".to_owned() }, Visit { page: "/prices".to_owned() }]);
        assert_eq!(query.run_batch().unwrap(), [visits("ada", 2, true)]);

        query.set_time_ms(QUIET_MS);
        assert_eq!(query.run_batch().unwrap(), [visits("ada", 2, false)]);
        assert_eq!(query.value::<i64>("visits", &"ada".to_owned()).unwrap(), None);
    }
}
