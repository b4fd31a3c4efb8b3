//! A processor whose state another query can take over.

use std::time::Duration;

use tidemill::{
    Error, Handle, ListState, MapState, Out, Result, Row, Rows, StatefulProcessor, StatefulProcessorWithInitialState,
    Timers, Timestamp, ValueState,
};

#[derive(Row)]
struct Input {
    n: i64,
    wait_ms: i64,
}

#[derive(Row, Debug, PartialEq)]
struct Fired {
    key: String,
    expiry_ms: i64,
}

/// A row of an export, with the columns of all variables.
#[derive(Row)]
struct Exported {
    variable: String,
    total: Option<i64>,
    seen: Option<i64>,
    times_key: Option<i64>,
    times: Option<i64>,
    recent: Option<i64>,
    expires: Option<Timestamp>,
}

struct Keeper {
    total: ValueState<i64>,
    seen: ListState<i64>,
    times: MapState<i64, i64>,
    recent: ValueState<i64>,
}

impl StatefulProcessor for Keeper {
    type Key = String;
    type Input = Input;
    type Output = Fired;

    fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self {
            total: handle.value_state("total")?,
            seen: handle.list_state("seen")?,
            times: handle.map_state("times")?,
            recent: handle.value_state_with_ttl("recent", Duration::from_secs(3600))?,
        })
    }

    fn handle_input_rows(
        &mut self,
        _: &String,
        rows: Rows<'_, Input>,
        timers: &Timers,
        _: &mut Out<Fired>,
    ) -> Result<()> {
        for row in rows {
            let Input { n, wait_ms } = row?;
            self.total.update(&(self.total.get()?.unwrap_or(0) + n))?;
            self.seen.append(&n)?;
            self.times.update(&n, &(self.times.get(&n)?.unwrap_or(0) + 1))?;
            self.recent.update(&n)?;
            timers.register(wait_ms)?;
        }
        Ok(())
    }

    fn handle_expired_timer(&mut self, key: &String, expiry_ms: i64, _: &Timers, out: &mut Out<Fired>) -> Result<()> {
        out.emit(&Fired { key: key.clone(), expiry_ms })
    }
}

impl StatefulProcessorWithInitialState for Keeper {
    type InitialState = Exported;

    fn handle_initial_state(&mut self, _: &String, row: Exported, timers: &Timers) -> Result<()> {
        let missing = || Error::new("EXPORT_INCOMPLETE", row.variable.clone());
        match row.variable.as_str() {
            "total" => self.total.update(&row.total.ok_or_else(missing)?),
            "seen" => self.seen.append(&row.seen.ok_or_else(missing)?),
            "times" => self.times.update(&row.times_key.ok_or_else(missing)?, &row.times.ok_or_else(missing)?),
            "recent" => self.recent.update(&row.recent.ok_or_else(missing)?),
            "$timers" => timers.register(row.expires.ok_or_else(missing)?.millis()),
            other => Err(Error::new("EXPORT_UNKNOWN", other)),
        }
    }
}

tidemill::export_processor!(Keeper, initial_state);
