//! Version 2 of the processor that docs/evolution.md upgrades: more visits than an INT counts, and how long they took.

use tidemill::{Handle, ListState, MapState, Out, Result, Row, Rows, StatefulProcessor, Timers, ValueState};

#[derive(Row)]
struct Visit {
    page: String,
    ms: Option<i64>,
}

#[derive(Row)]
struct Totals {
    visits: i64,
    ms: Option<i64>,
}

#[derive(Row)]
struct Seen {
    page: String,
    ms: Option<i64>,
}

#[derive(Row)]
struct Report {
    user: String,
    visits: i64,
    ms: Option<i64>,
    /// The pages seen, each with its time where that is known.
    seen: String,
    /// How often each page was seen.
    pages: String,
}

struct Visits {
    totals: ValueState<Totals>,
    seen: ListState<Seen>,
    pages: MapState<String, i64>,
    longest: ValueState<i64>,
}

impl StatefulProcessor for Visits {
    type Key = String;
    type Input = Visit;
    type Output = Report;

    fn init(handle: &mut Handle) -> Result<Self> {
        handle.delete_if_exists("greeted")?;
        Ok(Self {
            totals: handle.value_state("totals")?,
            seen: handle.list_state("seen")?,
            pages: handle.map_state("pages")?,
            longest: handle.value_state("longest")?,
        })
    }

    fn handle_input_rows(
        &mut self,
        user: &String,
        visits: Rows<'_, Visit>,
        _: &Timers,
        out: &mut Out<Report>,
    ) -> Result<()> {
        let mut totals = self.totals.get()?.unwrap_or(Totals { visits: 0, ms: None });
        for visit in visits {
            let Visit { page, ms } = visit?;
            totals.visits += 1;
            totals.ms = ms.map(|ms| totals.ms.unwrap_or(0) + ms).or(totals.ms);
            self.pages.update(&page, &(self.pages.get(&page)?.unwrap_or(0) + 1))?;
            self.seen.append(&Seen { page, ms })?;
            if let Some(ms) = ms {
                self.longest.update(&self.longest.get()?.unwrap_or(0).max(ms))?;
            }
        }
        self.totals.update(&totals)?;
        let seen = self.seen.get()?.map(|seen| {
            let Seen { page, ms } = seen?;
            Ok(ms.map_or(page.clone(), |ms| format!("{page}:{ms}")))
        });
        let pages = self.pages.iter()?.map(|entry| entry.map(|(page, times)| format!("{page}={times}")));
        out.emit(&Report {
            user: user.clone(),
            visits: totals.visits,
            ms: totals.ms,
            seen: seen.collect::<Result<Vec<_>>>()?.join(" "),
            pages: pages.collect::<Result<Vec<_>>>()?.join(" "),
        })
    }
}

tidemill::export_processor!(Visits);
