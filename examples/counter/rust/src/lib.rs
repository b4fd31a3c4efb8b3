//! Counts rows per key, and keeps what it saw: a value, a list and a map per grouping key.

use tidemill::{Handle, ListState, MapState, Out, Result, Row, Rows, StatefulProcessor, Timers, ValueState};

#[derive(Row)]
struct Input {
    n: i64,
}

#[derive(Row)]
struct Count {
    key: String,
    count: i64,
    /// Rows since the first, as many as the list holds.
    listed: i64,
    /// Different values of `n`.
    distinct: i64,
}

struct Counter {
    count: ValueState<i64>,
    seen: ListState<i64>,
    times: MapState<i64, i64>,
}

impl StatefulProcessor for Counter {
    type Key = String;
    type Input = Input;
    type Output = Count;

    fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self { count: handle.value_state("count")?, seen: handle.list_state("seen")?, times: handle.map_state("times")? })
    }

    fn handle_input_rows(&mut self, key: &String, rows: Rows<'_, Input>, _: &Timers, out: &mut Out<Count>) -> Result<()> {
        let mut count = self.count.get()?.unwrap_or(0);
        for row in rows {
            let n = row?.n;
            count += 1;
            self.seen.append(&n)?;
            self.times.update(&n, &(self.times.get(&n)?.unwrap_or(0) + 1))?;
        }
        self.count.update(&count)?;
        let listed = self.seen.get()?.count() as i64;
        let distinct = self.times.keys()?.count() as i64;
        out.emit(&Count { key: key.clone(), count, listed, distinct })
    }
}

tidemill::export_processor!(Counter);
