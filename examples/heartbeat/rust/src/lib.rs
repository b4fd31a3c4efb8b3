//! Reports sensors that have been silent for five minutes.

use tidemill::{Handle, Out, Result, Row, Rows, StatefulProcessor, Timers, Timestamp, ValueState};

const SILENCE_MS: i64 = 5 * 60 * 1000;

#[derive(Row)]
struct Reading {
    celsius: f64,
}

/// What is known of a sensor that is alive. Its timer is at `last_seen` + five minutes.
#[derive(Row)]
struct Sensor {
    last_seen: Timestamp,
    celsius: f64,
}

#[derive(Row, Debug, PartialEq)]
struct Silent {
    sensor: String,
    last_seen: Timestamp,
    /// Its last reading.
    celsius: f64,
}

struct Heartbeat {
    sensor: ValueState<Sensor>,
}

impl StatefulProcessor for Heartbeat {
    type Key = String;
    type Input = Reading;
    type Output = Silent;

    fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self { sensor: handle.value_state("sensor")? })
    }

    fn handle_input_rows(
        &mut self,
        _: &String,
        rows: Rows<'_, Reading>,
        timers: &Timers,
        _: &mut Out<Silent>,
    ) -> Result<()> {
        if let Some(before) = self.sensor.get()? {
            timers.delete(before.last_seen.millis() + SILENCE_MS)?;
        }
        let now = timers.processing_time_ms();
        for reading in rows {
            self.sensor.update(&Sensor { last_seen: Timestamp::from_millis(now), celsius: reading?.celsius })?;
        }
        timers.register(now + SILENCE_MS)
    }

    fn handle_expired_timer(&mut self, sensor: &String, _: i64, _: &Timers, out: &mut Out<Silent>) -> Result<()> {
        let Some(Sensor { last_seen, celsius }) = self.sensor.get()? else { return Ok(()) };
        self.sensor.clear()?;
        out.emit(&Silent { sensor: sensor.clone(), last_seen, celsius })
    }
}

tidemill::export_processor!(Heartbeat);

#[cfg(test)]
mod tests {
    use super::*;
    use tidemill::TimeMode;
    use tidemill::testing::TestQuery;

    const MINUTE_MS: i64 = 60_000;

    #[test]
    fn a_sensor_is_reported_once_when_five_minutes_have_passed() {
        let mut query = TestQuery::<Heartbeat>::new(TimeMode::ProcessingTime);
        query.input("s1".into(), [Reading { celsius: 20.0 }]);
        assert_eq!(query.run_batch().unwrap(), []);
        assert_eq!(query.set_time_ms(5 * MINUTE_MS - 1).run_batch().unwrap(), []);
        let silent = Silent { sensor: "s1".into(), last_seen: Timestamp::from_millis(0), celsius: 20.0 };
        assert_eq!(query.set_time_ms(5 * MINUTE_MS).run_batch().unwrap(), [silent]);
        assert_eq!(query.set_time_ms(60 * MINUTE_MS).run_batch().unwrap(), []);
    }

    #[test]
    fn every_reading_moves_the_timer() {
        let mut query = TestQuery::<Heartbeat>::new(TimeMode::ProcessingTime);
        for minute in [0, 4, 8] {
            query.set_time_ms(minute * MINUTE_MS).input("s1".into(), [Reading { celsius: minute as f64 }]);
            assert_eq!(query.run_batch().unwrap(), []);
        }
        assert_eq!(query.timers(&"s1".into()).unwrap(), [13 * MINUTE_MS]);
    }
}
