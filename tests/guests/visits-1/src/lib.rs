//! Version 1 of the processor that docs/evolution.md upgrades: the visits of each user.

use tidemill::{Handle, ListState, MapState, Out, Result, Row, Rows, StatefulProcessor, Timers, ValueState};

#[derive(Row)]
struct Visit {
    page: String,
}

#[derive(Row)]
struct Totals {
    visits: i32,
    last_page: Option<String>,
}

#[derive(Row)]
struct Seen {
    page: String,
}

#[derive(Row)]
struct Report {
    user: String,
    visits: i32,
}

struct Visits {
    totals: ValueState<Totals>,
    seen: ListState<Seen>,
    pages: MapState<String, i32>,
    greeted: ValueState<bool>,
}

impl StatefulProcessor for Visits {
    type Key = String;
    type Input = Visit;
    type Output = Report;

    fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self {
            totals: handle.value_state("totals")?,
            seen: handle.list_state("seen")?,
            pages: handle.map_state("pages")?,
            greeted: handle.value_state("greeted")?,
        })
    }

    fn handle_input_rows(
        &mut self,
        user: &String,
        visits: Rows<'_, Visit>,
        _: &Timers,
        out: &mut Out<Report>,
    ) -> Result<()> {
        let mut totals = self.totals.get()?.unwrap_or(Totals { visits: 0, last_page: None });
        for visit in visits {
            let Visit { page } = visit?;
            totals.visits += 1;
            self.pages.update(&page, &(self.pages.get(&page)?.unwrap_or(0) + 1))?;
            self.seen.append(&Seen { page: page.clone() })?;
            totals.last_page = Some(page);
        }
        self.totals.update(&totals)?;
        self.greeted.update(&true)?;
        out.emit(&Report { user: user.clone(), visits: totals.visits })
    }
}

tidemill::export_processor!(Visits);
