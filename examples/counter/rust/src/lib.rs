//! Counts rows per key, and keeps what it saw: a value, a list and a map per grouping key.

use tidemill::{Handle, ListState, MapState, Out, Result, Row, Rows, StatefulProcessor, Timers, ValueState};

#[derive(Row)]
struct Input {
    n: i64,
}

#[derive(Row, Debug, PartialEq)]
struct Count {
    key: String,
    /// Rows so far.
    count: i64,
    /// Elements of the list, one per row.
    listed: i64,
    /// Entries of the map, one per value of `n`.
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
        Ok(Self {
            count: handle.value_state("count")?,
            seen: handle.list_state("seen")?,
            times: handle.map_state("times")?,
        })
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

#[cfg(test)]
mod tests {
    use super::*;
    use tidemill::TimeMode;
    use tidemill::testing::TestQuery;

    fn input(values: &[i64]) -> Vec<Input> {
        values.iter().map(|n| Input { n: *n }).collect()
    }

    #[test]
    fn counts_go_on_from_batch_to_batch() {
        let mut query = TestQuery::<Counter>::new(TimeMode::None);
        query.input("a".into(), input(&[1, 2, 1])).input("b".into(), input(&[7, 7]));
        assert_eq!(
            query.run_batch().unwrap(),
            [
                Count { key: "a".into(), count: 3, listed: 3, distinct: 2 },
                Count { key: "b".into(), count: 2, listed: 2, distinct: 1 },
            ]
        );
        query.input("a".into(), input(&[9]));
        assert_eq!(query.run_batch().unwrap(), [Count { key: "a".into(), count: 4, listed: 4, distinct: 3 }]);
        assert_eq!(query.list::<i64>("seen", &"a".into()).unwrap(), [1, 2, 1, 9]);
        let mut times = query.map::<i64, i64>("times", &"a".into()).unwrap();
        times.sort_unstable();
        assert_eq!(times, [(1, 2), (2, 1), (9, 1)]);
    }

    #[test]
    fn a_key_with_more_rows_than_a_chunk_is_one_sequence() {
        let mut query = TestQuery::<Counter>::new(TimeMode::None);
        query.small_chunks(2, 3).input("a".into(), input(&[1; 20])).input("b".into(), input(&[2; 2]));
        let counts: Vec<i64> = query.run_batch().unwrap().iter().map(|row| row.count).collect();
        assert_eq!(counts, [20, 2]);
    }
}
