//! Counts rows per key, and begins where an earlier system stopped.

use tidemill::{
    Handle, Out, Result, Row, Rows, StatefulProcessor, StatefulProcessorWithInitialState, Timers, ValueState,
};

#[derive(Row)]
struct Input {
    value: String,
}

/// A row of the initial state; its key column is the query's.
#[derive(Row)]
struct Start {
    count: i64,
}

#[derive(Row, Debug, PartialEq)]
struct Count {
    id: String,
    count: i64,
}

struct Counter {
    count: ValueState<i64>,
}

impl StatefulProcessor for Counter {
    type Key = String;
    type Input = Input;
    type Output = Count;

    fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self { count: handle.value_state("count")? })
    }

    fn handle_input_rows(
        &mut self,
        id: &String,
        rows: Rows<'_, Input>,
        _: &Timers,
        out: &mut Out<Count>,
    ) -> Result<()> {
        let mut count = self.count.get()?.unwrap_or(0);
        for row in rows {
            // An empty value is a sign of life, not a count.
            count += i64::from(!row?.value.is_empty());
        }
        self.count.update(&count)?;
        out.emit(&Count { id: id.clone(), count })
    }
}

impl StatefulProcessorWithInitialState for Counter {
    type InitialState = Start;

    fn handle_initial_state(&mut self, _: &String, row: Start, _: &Timers) -> Result<()> {
        self.count.update(&row.count)
    }
}

tidemill::export_processor!(Counter, initial_state);

#[cfg(test)]
mod tests {
    use super::*;
    use tidemill::TimeMode;
    use tidemill::testing::TestQuery;

    #[test]
    fn counting_begins_at_the_initial_state() {
        let mut query = TestQuery::<Counter>::new(TimeMode::None);
        query.initial_state("x".into(), [Start { count: 10 }]).initial_state("y".into(), [Start { count: 5 }]);
        query.run_initial_state().unwrap();
        query.input("x".into(), ["a", "b"].map(|value| Input { value: value.into() }));
        assert_eq!(query.run_batch().unwrap(), [Count { id: "x".into(), count: 12 }]);
        assert_eq!(query.value("count", &"y".into()).unwrap(), Some(5));
    }
}
