//! The programs of the recorded scenarios (`tests/conformance/README.md`), each as its original in Python, so that what
//! they emit can be held against what Spark emitted, letter by letter. The parameter `program` picks one.

mod crud;
mod event;
mod evolution;
mod initial;
mod iterators;
mod keys;
mod misuse;
mod python;
mod restart;
mod timers;
mod ttl;

use tidemill::{
    Error, Handle, Out, Result, Row, Rows, StatefulProcessor, StatefulProcessorWithInitialState, Timers, Timestamp,
};

/// Columns of all scenarios; each uses some.
#[derive(Row)]
struct Step {
    op: Option<String>,
    a: Option<String>,
    b: Option<i64>,
    ts: Option<Timestamp>,
}

#[derive(Row)]
struct Answer {
    key: Option<String>,
    ev: String,
    out: Option<String>,
}

#[derive(Row)]
struct Initial {
    n: i64,
    timer: Option<i64>,
}

/// Where a handler emits rows of its key.
struct Emit<'a> {
    key: &'a Option<String>,
    out: &'a mut Out<Answer>,
}

impl Emit<'_> {
    fn row(&mut self, ev: &str, out: impl Into<String>) -> Result<()> {
        self.out.emit(&Answer { key: self.key.clone(), ev: ev.to_owned(), out: Some(out.into()) })
    }
}

/// One of the programs.
trait Program {
    fn rows(&mut self, rows: Rows<'_, Step>, timers: &Timers, emit: &mut Emit<'_>) -> Result<()>;

    fn timer(&mut self, expiry_ms: i64, timers: &Timers, emit: &mut Emit<'_>) -> Result<()> {
        let _ = (expiry_ms, timers, emit);
        Ok(())
    }

    fn initial(&mut self, row: Initial, timers: &Timers) -> Result<()> {
        let _ = (row, timers);
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

struct Conformance(Box<dyn Program>);

impl StatefulProcessor for Conformance {
    type Key = Option<String>;
    type Input = Step;
    type Output = Answer;

    fn init(handle: &mut Handle) -> Result<Self> {
        let name = handle.parameter("program").unwrap_or_default().to_owned();
        Ok(Self(match name.as_str() {
            "crud" => Box::new(crud::Crud::init(handle)?),
            "ttl" => Box::new(ttl::Ttl::init(handle)?),
            "timers" => Box::new(timers::ProcessingTime::init(handle)?),
            "event" => Box::new(event::EventTime::init(handle)?),
            "initial" => Box::new(initial::WithInitialState::init(handle)?),
            "iterators" => Box::new(iterators::Iterators::init(handle)?),
            "keys" => Box::new(keys::Keys::init(handle)?),
            "misuse" => Box::new(misuse::Misuse::init(handle)?),
            "evolution" => evolution::init(handle)?,
            "restart" => Box::new(restart::Restart::init(handle)?),
            _ => return Err(Error::new("NO_SUCH_PROGRAM", name)),
        }))
    }

    fn handle_input_rows(
        &mut self,
        key: &Option<String>,
        rows: Rows<'_, Step>,
        timers: &Timers,
        out: &mut Out<Answer>,
    ) -> Result<()> {
        self.0.rows(rows, timers, &mut Emit { key, out })
    }

    fn handle_expired_timer(
        &mut self,
        key: &Option<String>,
        expiry_ms: i64,
        timers: &Timers,
        out: &mut Out<Answer>,
    ) -> Result<()> {
        self.0.timer(expiry_ms, timers, &mut Emit { key, out })
    }

    fn close(&mut self) -> Result<()> {
        self.0.close()
    }
}

impl StatefulProcessorWithInitialState for Conformance {
    type InitialState = Initial;

    fn handle_initial_state(&mut self, _: &Option<String>, row: Initial, timers: &Timers) -> Result<()> {
        self.0.initial(row, timers)
    }
}

tidemill::export_processor!(Conformance, initial_state);
