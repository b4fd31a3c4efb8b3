//! Counts per key and nothing else, so that a benchmark measures the way to the processor and back. The native operator
//! of `host/benches/count` does the same.

use tidemill::{Handle, Out, Result, Row, Rows, StatefulProcessor, Timers, ValueState};

#[derive(Row)]
struct Input {
    /// What the row counts for.
    n: i64,
}

#[derive(Row)]
struct Count {
    key: String,
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
        key: &String,
        rows: Rows<'_, Input>,
        _: &Timers,
        out: &mut Out<Count>,
    ) -> Result<()> {
        let mut count = self.count.get()?.unwrap_or(0);
        for row in rows {
            count += row?.n;
        }
        self.count.update(&count)?;
        out.emit(&Count { key: key.clone(), count })
    }
}

tidemill::export_processor!(Counter);
