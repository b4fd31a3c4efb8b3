//! A processor that does what its input rows say; the ops are in README.md.

use std::time::Duration;

use tidemill::{
    Error, Handle, ListState, MapState, Out, Result, Row, Rows, StatefulProcessor, StatefulProcessorWithInitialState,
    TimeMode, Timers, ValueState, info,
};

#[derive(Row)]
struct Step {
    op: String,
    arg: Option<String>,
}

#[derive(Row, Debug, PartialEq)]
struct Answer {
    key: String,
    op: String,
    result: Option<String>,
}

/// One variable of each kind.
struct Variables {
    value: ValueState<String>,
    list: ListState<String>,
    map: MapState<String, String>,
}

struct Script {
    plain: Variables,
    with_ttl: Option<Variables>,
    on_timer: ValueState<String>,
    time_mode: TimeMode,
    /// Id of the query, of its run, and of the batch.
    ids: [String; 3],
    fail_in_close: bool,
}

/// What a step leads to.
enum Outcome {
    Silent,
    Answer(Option<String>),
    /// Leave the rest of the rows.
    Skip,
}

impl StatefulProcessor for Script {
    type Key = String;
    type Input = Step;
    type Output = Answer;

    fn init(handle: &mut Handle) -> Result<Self> {
        if handle.parameter("fail_in") == Some("init") {
            return Err(Error::new("SCRIPTED", "init was told to fail"));
        }
        if let Some(name) = handle.parameter("drop").filter(|name| !name.is_empty()).map(str::to_owned) {
            handle.delete_if_exists(&name)?;
        }
        let plain = Variables::make(handle, "", Duration::ZERO)?;
        let on_timer = handle.value_state("on_timer")?;
        let ttl = handle
            .parameter("ttl_ms")
            .filter(|ms| !ms.is_empty())
            .map(str::parse)
            .transpose()?
            .map(Duration::from_millis);
        let with_ttl = ttl.map(|ttl| Variables::make(handle, "ttl_", ttl)).transpose()?;
        let fail_in_close = handle.parameter("fail_in") == Some("close");
        let query = handle.query();
        let ids = [query.query_id.clone(), query.run_id.clone(), query.batch_id.to_string()];
        Ok(Self { plain, with_ttl, on_timer, time_mode: handle.time_mode(), ids, fail_in_close })
    }

    fn handle_input_rows(
        &mut self,
        key: &String,
        rows: Rows<'_, Step>,
        timers: &Timers,
        out: &mut Out<Answer>,
    ) -> Result<()> {
        for step in rows {
            let Step { op, arg } = step?;
            if self.step(key, &op, arg.as_deref().unwrap_or(""), timers, Some(out))? {
                break;
            }
        }
        Ok(())
    }

    fn handle_expired_timer(
        &mut self,
        key: &String,
        expiry_ms: i64,
        timers: &Timers,
        out: &mut Out<Answer>,
    ) -> Result<()> {
        out.emit(&Answer { key: key.clone(), op: "timer".to_owned(), result: Some(expiry_ms.to_string()) })?;
        let script = self.on_timer.get()?.unwrap_or_default();
        for step in script.split(';').map(str::trim).filter(|step| !step.is_empty()) {
            let (op, arg) = step.split_once(' ').unwrap_or((step, ""));
            if self.step(key, op, arg, timers, Some(out))? {
                break;
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        if self.fail_in_close { Err(Error::new("SCRIPTED", "close was told to fail")) } else { Ok(()) }
    }
}

impl StatefulProcessorWithInitialState for Script {
    type InitialState = Step;

    fn handle_initial_state(&mut self, key: &String, Step { op, arg }: Step, timers: &Timers) -> Result<()> {
        self.step(key, &op, arg.as_deref().unwrap_or(""), timers, None)?;
        Ok(())
    }
}

impl Script {
    /// Runs a step and emits its answer, if there is where to; true if the rest of the rows is to be left.
    fn step(&self, key: &str, op: &str, arg: &str, timers: &Timers, mut out: Option<&mut Out<Answer>>) -> Result<bool> {
        let (times, op, arg) = match op {
            "repeat" => repeated(arg)?,
            _ => (1, op, arg),
        };
        for _ in 0..times {
            match self.run(op, arg, timers)? {
                Outcome::Silent => {}
                Outcome::Skip => return Ok(true),
                Outcome::Answer(result) => {
                    if let Some(out) = &mut out {
                        out.emit(&Answer { key: key.to_owned(), op: op.to_owned(), result })?;
                    }
                }
            }
        }
        Ok(false)
    }

    fn run(&self, op: &str, arg: &str, timers: &Timers) -> Result<Outcome> {
        let (variables, op) = match op.strip_prefix("ttl.") {
            None => (&self.plain, op),
            Some(op) => {
                (self.with_ttl.as_ref().ok_or_else(|| Error::new("NO_TTL", "the parameter `ttl_ms` is not set"))?, op)
            }
        };
        let Variables { value, list, map } = variables;
        let answer = match op {
            "value.get" => value.get()?,
            "value.exists" => Some(value.exists()?.to_string()),
            "value.put" => return done(value.update(&arg.to_owned())),
            "value.clear" => return done(value.clear()),
            "value.fill" => return done(value.update(&"x".repeat(arg.parse()?))),
            "value.length" => value.get()?.map(|value| value.len().to_string()),
            "list.get" => listed(list.get()?)?,
            "list.first" => list.get()?.next().transpose()?,
            "list.exists" => Some(list.exists()?.to_string()),
            "list.put" => return done(list.put(&elements(arg))),
            "list.append" => return done(list.append_list(&elements(arg))),
            "list.clear" => return done(list.clear()),
            "map.get" => map.get(&arg.to_owned())?,
            "map.contains" => Some(map.contains_key(&arg.to_owned())?.to_string()),
            "map.put" => {
                let (key, value) = arg.split_once('=').unwrap_or((arg, ""));
                return done(map.update(&key.to_owned(), &value.to_owned()));
            }
            "map.remove" => return done(map.remove(&arg.to_owned())),
            "map.iter" => listed(map.iter()?.map(|entry| entry.map(|(key, value)| format!("{key}={value}"))))?,
            "map.keys" => listed(map.keys()?)?,
            "map.values" => listed(map.values()?)?,
            "map.exists" => Some(map.exists()?.to_string()),
            "map.clear" => return done(map.clear()),
            "timer.register" => return done(timers.register(self.expiry_ms(arg, timers)?)),
            "timer.delete" => return done(timers.delete(self.expiry_ms(arg, timers)?)),
            "timer.list" => listed(timers.list()?.map(|expiry_ms| expiry_ms.map(|expiry_ms| expiry_ms.to_string())))?,
            "time" => Some(format!("{}/{}", timers.processing_time_ms(), timers.watermark_ms())),
            "time.put" => {
                let time = format!("{}/{}", timers.processing_time_ms(), timers.watermark_ms());
                return done(value.update(&time));
            }
            "query.put" => return done(value.update(&self.ids.join(" "))),
            "query.get" => Some(self.compared(&value.get()?.unwrap_or_default())),
            "on_timer" => return done(self.on_timer.update(&arg.to_owned())),
            "emit" => Some(arg.to_owned()),
            "skip" => return Ok(Outcome::Skip),
            "log" => {
                info!("{arg}");
                return Ok(Outcome::Silent);
            }
            "fail" => return Err(Error::new("SCRIPTED", arg)),
            "error" => return Err(Error::msg(arg)),
            #[expect(clippy::panic, reason = "that is the op")]
            "panic" => panic!("{arg}"),
            _ => return Err(Error::new("NO_SUCH_OP", op)),
        };
        Ok(Outcome::Answer(answer))
    }

    /// The ids of now, each held against one of those that were put.
    fn compared(&self, put: &str) -> String {
        let [query, run, batch] = &self.ids;
        let mut put = put.split(' ');
        let mut compare = |id: &String| if put.next() == Some(id) { "same" } else { "other" };
        format!("query {}, run {}, batch {batch}", compare(query), compare(run))
    }

    fn expiry_ms(&self, arg: &str, timers: &Timers) -> Result<i64> {
        let threshold_ms = match self.time_mode {
            TimeMode::EventTime => timers.watermark_ms(),
            TimeMode::None | TimeMode::ProcessingTime => timers.processing_time_ms(),
        };
        Ok(match arg.strip_prefix('+') {
            Some(offset_ms) => threshold_ms + offset_ms.parse::<i64>()?,
            None => arg.parse()?,
        })
    }
}

impl Variables {
    fn make(handle: &mut Handle, prefix: &str, ttl: Duration) -> Result<Self> {
        Ok(Self {
            value: handle.value_state_with_ttl(&format!("{prefix}value"), ttl)?,
            list: handle.list_state_with_ttl(&format!("{prefix}list"), ttl)?,
            map: handle.map_state_with_ttl(&format!("{prefix}map"), ttl)?,
        })
    }
}

fn done(result: Result<()>) -> Result<Outcome> {
    result.map(|()| Outcome::Silent)
}

fn elements(arg: &str) -> Vec<String> {
    if arg.is_empty() { Vec::new() } else { arg.split(',').map(str::to_owned).collect() }
}

fn listed(items: impl Iterator<Item = Result<String>>) -> Result<Option<String>> {
    Ok(Some(format!("[{}]", items.collect::<Result<Vec<_>>>()?.join(","))))
}

/// `n op arg`
fn repeated(arg: &str) -> Result<(u64, &str, &str)> {
    let (times, step) = arg.split_once(' ').ok_or_else(|| Error::new("NO_SUCH_OP", "`repeat` takes `n op arg`"))?;
    let (op, arg) = step.split_once(' ').unwrap_or((step, ""));
    Ok((times.parse()?, op, arg))
}

tidemill::export_processor!(Script, initial_state);

#[cfg(test)]
mod tests;
