//! Follows aircraft through their departures: what the last flight arrived late with travels into the next departure,
//! and an aircraft that was not seen for three days is reported.

use tidemill::{Handle, Out, Result, Row, Rows, StatefulProcessor, Timers, Timestamp, ValueState};

const NOT_SEEN_MS: i64 = 3 * 24 * 60 * 60 * 1000;

/// A scheduled departure. What did not happen is NULL: a cancelled flight has no `dep_time`, a diverted one no
/// `arr_delay`.
#[derive(Row, Clone)]
struct Flight {
    time_hour: Timestamp,
    carrier: String,
    flight: i32,
    origin: String,
    dest: String,
    dep_time: Option<i32>,
    dep_delay: Option<i32>,
    arr_delay: Option<i32>,
}

/// The last departure of an aircraft. Its timer is at `time_hour` + three days.
#[derive(Row)]
struct LastFlight {
    time_hour: Timestamp,
    carrier: String,
    flight: i32,
    origin: String,
    dest: String,
    arr_delay: Option<i32>,
}

#[derive(Row, Debug, PartialEq)]
struct Event {
    /// `departed`, `cancelled`, or `not seen`, which tells of the last departure.
    event: String,
    tailnum: Option<String>,
    time_hour: Timestamp,
    carrier: String,
    flight: i32,
    origin: String,
    dest: String,
    /// Minutes.
    dep_delay: Option<i32>,
    /// Minutes that the aircraft's flight before arrived late (early if negative).
    carried_delay: Option<i32>,
}

struct Flights {
    last: ValueState<LastFlight>,
}

impl StatefulProcessor for Flights {
    /// The tail number. Flights that were cancelled before an aircraft was assigned have none; they are one group
    /// like any other.
    type Key = Option<String>;
    type Input = Flight;
    type Output = Event;

    fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self { last: handle.value_state("last_flight")? })
    }

    fn handle_input_rows(
        &mut self,
        tailnum: &Option<String>,
        rows: Rows<'_, Flight>,
        timers: &Timers,
        out: &mut Out<Event>,
    ) -> Result<()> {
        let before = self.last.get()?;
        let timer_before = before.as_ref().map(timer_ms);
        let mut last = before;
        for flight in rows {
            let flight = flight?;
            let carried_delay = last.as_ref().and_then(|last| last.arr_delay);
            let departed = flight.dep_time.is_some();
            out.emit(&event(if departed { "departed" } else { "cancelled" }, tailnum, &flight, carried_delay))?;
            // No aircraft, no history: without a tail number the flights before are those of other aircraft. And a
            // row that comes out of order does not set the aircraft back.
            let is_latest = last.as_ref().is_none_or(|last| last.time_hour <= flight.time_hour);
            if departed && tailnum.is_some() && is_latest {
                last = Some(flight.into());
            }
        }
        let Some(last) = last else { return Ok(()) };
        if timer_before != Some(timer_ms(&last)) {
            if let Some(timer_before) = timer_before {
                timers.delete(timer_before)?;
            }
            timers.register(timer_ms(&last))?;
        }
        self.last.update(&last)
    }

    fn handle_expired_timer(
        &mut self,
        tailnum: &Option<String>,
        _: i64,
        _: &Timers,
        out: &mut Out<Event>,
    ) -> Result<()> {
        let Some(last) = self.last.get()? else { return Ok(()) };
        self.last.clear()?;
        let carried_delay = last.arr_delay;
        out.emit(&event("not seen", tailnum, &last.into(), carried_delay))
    }
}

fn timer_ms(last: &LastFlight) -> i64 {
    last.time_hour.millis() + NOT_SEEN_MS
}

fn event(event: &str, tailnum: &Option<String>, flight: &Flight, carried_delay: Option<i32>) -> Event {
    let Flight { time_hour, carrier, flight: number, origin, dest, dep_delay, .. } = flight.clone();
    Event {
        event: event.to_owned(),
        tailnum: tailnum.clone(),
        time_hour,
        carrier,
        flight: number,
        origin,
        dest,
        dep_delay,
        carried_delay,
    }
}

impl From<Flight> for LastFlight {
    fn from(flight: Flight) -> Self {
        let Flight { time_hour, carrier, flight: number, origin, dest, arr_delay, .. } = flight;
        Self { time_hour, carrier, flight: number, origin, dest, arr_delay }
    }
}

impl From<LastFlight> for Flight {
    fn from(last: LastFlight) -> Self {
        let LastFlight { time_hour, carrier, flight, origin, dest, arr_delay } = last;
        Self { time_hour, carrier, flight, origin, dest, dep_time: None, dep_delay: None, arr_delay }
    }
}

tidemill::export_processor!(Flights);

#[cfg(test)]
mod tests {
    use super::*;
    use tidemill::TimeMode;
    use tidemill::testing::TestQuery;

    const HOUR_MS: i64 = 3_600_000;

    fn flight(hour: i64, number: i32, dep_delay: Option<i32>, arr_delay: Option<i32>) -> Flight {
        Flight {
            time_hour: Timestamp::from_millis(hour * HOUR_MS),
            carrier: "UA".into(),
            flight: number,
            origin: "LGA".into(),
            dest: "ORD".into(),
            dep_time: dep_delay.map(|_| 600),
            dep_delay,
            arr_delay,
        }
    }

    fn carried(events: &[Event]) -> Vec<(&str, i32, Option<i32>)> {
        events.iter().map(|event| (event.event.as_str(), event.flight, event.carried_delay)).collect()
    }

    #[test]
    fn a_late_arrival_travels_into_the_next_departure() {
        let mut query = TestQuery::<Flights>::new(TimeMode::EventTime);
        query.input(Some("N1".into()), [flight(1, 10, Some(5), Some(40)), flight(9, 11, None, None)]);
        assert_eq!(carried(&query.run_batch().unwrap()), [("departed", 10, None), ("cancelled", 11, Some(40))]);
        query.input(Some("N1".into()), [flight(12, 12, Some(35), Some(-3)), flight(20, 13, Some(0), None)]);
        assert_eq!(carried(&query.run_batch().unwrap()), [("departed", 12, Some(40)), ("departed", 13, Some(-3))]);
    }

    #[test]
    fn an_aircraft_that_is_not_seen_for_three_days_is_reported_once() {
        let mut query = TestQuery::<Flights>::new(TimeMode::EventTime);
        query.input(Some("N1".into()), [flight(0, 10, Some(5), Some(40))]);
        query.run_batch().unwrap();
        query.set_watermark_ms(24 * HOUR_MS).input(Some("N1".into()), [flight(48, 11, Some(0), Some(0))]);
        query.run_batch().unwrap();
        assert_eq!(query.timers(&Some("N1".into())).unwrap(), [120 * HOUR_MS]);
        assert_eq!(carried(&query.set_watermark_ms(120 * HOUR_MS).run_batch().unwrap()), [("not seen", 11, Some(0))]);
        assert_eq!(query.set_watermark_ms(500 * HOUR_MS).run_batch().unwrap(), []);
    }

    #[test]
    fn flights_without_a_tail_number_pass_and_leave_nothing_behind() {
        let mut query = TestQuery::<Flights>::new(TimeMode::EventTime);
        query.input(None, [flight(1, 10, None, None), flight(2, 11, None, None)]);
        assert_eq!(carried(&query.run_batch().unwrap()), [("cancelled", 10, None), ("cancelled", 11, None)]);
        assert!(query.timers(&None).unwrap().is_empty());
        assert_eq!(query.value::<i64>("last_flight", &None).unwrap(), None);
    }
}
