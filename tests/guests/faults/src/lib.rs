//! Fails in every way that an author can. `../README.md` says which there are.

use tidemill::{
    Decimal, Error, Handle, MapState, Out, Result, Row, Rows, StatefulProcessor, StatefulProcessorWithInitialState,
    Timers, ValueState,
};

#[derive(Row)]
struct Numbered {
    key: String,
    n: i64,
}

#[derive(Row)]
struct Start {
    n: i64,
}

struct Faults {
    fault: String,
    text: ValueState<String>,
    by_name: MapState<Option<String>, i64>,
}

impl StatefulProcessor for Faults {
    type Key = String;
    type Input = Numbered;
    type Output = Numbered;

    fn init(handle: &mut Handle) -> Result<Self> {
        let fault = handle.parameter("fault").unwrap_or_default().to_owned();
        let faults = Self { text: handle.value_state("text")?, by_name: handle.map_state("by_name")?, fault };
        match faults.fault.as_str() {
            "init" => panic("a fault in init"),
            "init-access" => faults.text.get().map(|_| ())?,
            _ => {}
        }
        Ok(faults)
    }

    fn handle_input_rows(
        &mut self,
        key: &String,
        rows: Rows<'_, Numbered>,
        timers: &Timers,
        out: &mut Out<Numbered>,
    ) -> Result<()> {
        if key == "bad" && self.fault == "timer" {
            return timers.register(timers.processing_time_ms());
        }
        if key == "bad" {
            self.fail()?;
        }
        rows.into_iter().try_for_each(|row| out.emit(&row?))
    }

    fn handle_expired_timer(&mut self, _: &String, expiry_ms: i64, _: &Timers, _: &mut Out<Numbered>) -> Result<()> {
        panic(&format!("a fault in the timer of {expiry_ms}"));
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        if self.fault == "close" { Err(Error::msg("a fault in close")) } else { Ok(()) }
    }
}

impl StatefulProcessorWithInitialState for Faults {
    type InitialState = Start;

    fn handle_initial_state(&mut self, key: &String, row: Start, _: &Timers) -> Result<()> {
        if key == "bad" && self.fault == "initial-state" {
            panic(&format!("a fault in the initial state at n = {}", row.n));
        }
        Ok(())
    }
}

impl Faults {
    fn fail(&mut self) -> Result<()> {
        match self.fault.as_str() {
            "" | "init" | "initial-state" | "close" | "init-access" => {}
            "rows" => panic(&format!("{} is there", index(&[1, 2, 3], self.fault.len()))),
            "own-code" => return Err(Error::new("OVERDRAWN", "the account is 5 short")),
            "state-range" => drop(Decimal::<4, 2>::from_unscaled(12_345)?),
            "state-null" => self.by_name.update(&None, &1)?,
            "endless" => endless(),
            "print" => print(),
            "recursion" => self.text.update(&recurse(&self.fault))?,
            "memory" => self.text.update(&"x".repeat(1_500_000_000))?,
            "exit" => exit(),
            other => return Err(Error::new("FAULT_UNKNOWN", format!("there is no fault {other:?} in Rust"))),
        }
        Ok(())
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "it is what this guest is for")]
fn panic(message: &str) {
    panic!("{message}");
}

#[track_caller]
#[expect(clippy::indexing_slicing, reason = "it is what this guest is for")]
fn index(numbers: &[i64], at: usize) -> i64 {
    numbers[at]
}

#[expect(clippy::empty_loop, reason = "it is what this guest is for")]
fn endless() {
    loop {}
}

/// 100 MB. `println!` says nothing in a component.
fn print() {
    let line = "x".repeat(999);
    (0..100_000).for_each(|_| tidemill::info!("{line}"));
}

#[expect(unconditional_recursion, reason = "it is what this guest is for")]
fn recurse(text: &str) -> String {
    format!("{}.", recurse(&format!("{text}.")))
}

#[expect(clippy::exit, reason = "it is what this guest is for")]
fn exit() {
    std::process::exit(3);
}

tidemill::export_processor!(Faults, initial_state);
