//! Tells of each row that it came, and as which of its key: what is lost or doubled on the way is seen in what it emits.

use std::time::Duration;

use tidemill::{Handle, MapState, Out, Result, Row, Rows, StatefulProcessor, Timers, ValueState};

/// A key that has been silent for so long says so.
const SILENCE_MS: i64 = 200;

#[derive(Row)]
struct Input {
    producer: String,
    sequence: i64,
}

#[derive(Row, Debug, PartialEq)]
struct Entry {
    key: String,
    /// NULL: the key is silent.
    producer: Option<String>,
    sequence: Option<i64>,
    /// Rows of the key so far.
    count: i64,
}

struct Ledger {
    count: ValueState<i64>,
    timer: ValueState<i64>,
    last: MapState<String, i64>,
}

impl StatefulProcessor for Ledger {
    type Key = String;
    type Input = Input;
    type Output = Entry;

    fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self {
            count: handle.value_state("count")?,
            timer: handle.value_state("timer")?,
            last: handle.map_state_with_ttl("last", Duration::from_secs(1))?,
        })
    }

    fn handle_input_rows(
        &mut self,
        key: &String,
        rows: Rows<'_, Input>,
        timers: &Timers,
        out: &mut Out<Entry>,
    ) -> Result<()> {
        let mut count = self.count.get()?.unwrap_or(0);
        for row in rows {
            let Input { producer, sequence } = row?;
            count += 1;
            self.last.update(&producer, &sequence)?;
            out.emit(&Entry { key: key.clone(), producer: Some(producer), sequence: Some(sequence), count })?;
        }
        self.count.update(&count)?;
        if let Some(before) = self.timer.get()? {
            timers.delete(before)?;
        }
        let at = timers.processing_time_ms() + SILENCE_MS;
        self.timer.update(&at)?;
        timers.register(at)
    }

    fn handle_expired_timer(&mut self, key: &String, _: i64, _: &Timers, out: &mut Out<Entry>) -> Result<()> {
        self.timer.clear()?;
        let count = self.count.get()?.unwrap_or(0);
        out.emit(&Entry { key: key.clone(), producer: None, sequence: None, count })
    }
}

tidemill::export_processor!(Ledger);

#[cfg(test)]
mod tests {
    use super::*;
    use tidemill::TimeMode;
    use tidemill::testing::TestQuery;

    #[test]
    fn rows_of_a_key_are_counted_and_its_silence_is_told_once() {
        let mut query = TestQuery::<Ledger>::new(TimeMode::ProcessingTime);
        let entry = |producer: Option<&str>, sequence, count| Entry {
            key: "k".into(),
            producer: producer.map(str::to_owned),
            sequence,
            count,
        };
        query.input("k".into(), [1, 2].map(|sequence| Input { producer: "p".into(), sequence }));
        let said = query.run_batch().unwrap();
        assert_eq!(said, [entry(Some("p"), Some(1), 1), entry(Some("p"), Some(2), 2)]);
        assert_eq!(query.set_time_ms(SILENCE_MS).run_batch().unwrap(), [entry(None, None, 2)]);
        assert_eq!(query.set_time_ms(10 * SILENCE_MS).run_batch().unwrap(), []);
    }
}
