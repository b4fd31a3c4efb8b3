//! The child: reads one order, obeys, answers, ends. It has one thread, no file, and nothing to lose.

use std::error::Error;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use super::messages::{Description, Init, InitAnswer, InitQuery, Order, Reply, Upload, Variable};
use crate::clock::Stopwatch;
use crate::engine::operator::{OperatorError, QueryInfo};
use crate::ipc::{self, IpcError, Receiver, Sealed, Sender};
use crate::record::Schema;
use crate::runtime::{COMPONENT_BYTES_MAX, ComponentError, Limits, Metering, Processor, Rehearsed, Sandbox};

/// Obeys the order that comes over this socket, within the walls that stand already.
///
/// # Errors
/// What cannot be told the server, since it is about the way to it.
pub fn run(socket: UnixStream) -> Result<(), IpcError> {
    let (sender, mut receiver) = ipc::split(socket)?;
    let Some((order, component)) = hear(&mut receiver)? else { return Ok(()) };
    let (reply, native) = obey(&order, component).unwrap_or_else(|refusal| (refusal.into_reply(), None));
    say(&sender, &reply, native.as_ref())
}

fn hear(receiver: &mut Receiver) -> Result<Option<(Order, Option<OwnedFd>)>, IpcError> {
    let Some(frame) = receiver.receive()? else { return Ok(None) };
    Ok(Some((ipc::decode(&frame.bytes)?, frame.descriptors.into_iter().next())))
}

fn say(sender: &Sender, reply: &Reply, native: Option<&Sealed>) -> Result<(), IpcError> {
    let native: Vec<_> = native.into_iter().map(AsFd::as_fd).collect();
    sender.send(&ipc::encode(reply)?, &native)
}

fn obey(order: &Order, component: Option<OwnedFd>) -> Result<(Reply, Option<Sealed>), Refusal> {
    let sandbox = Sandbox::single_threaded(Metering::Fuel)?;
    let target = sandbox.target();
    let upload = match order {
        Order::Introduce => return Ok((Reply::Introduced { target }, None)),
        Order::Compile(upload) => upload,
    };
    let component = component.ok_or_else(|| IpcError::Malformed("no component came with the order".to_owned()))?;
    let wasm = Sealed::received(component, COMPONENT_BYTES_MAX)?.bytes()?;
    let (description, native) = compile(&sandbox, target, upload, &wasm)?;
    let native = Sealed::of(&native)?;
    Ok((Reply::Compiled(Box::new(description)), Some(native)))
}

fn compile(sandbox: &Sandbox, target: String, upload: &Upload, wasm: &[u8]) -> Result<(Description, Vec<u8>), Refusal> {
    let limits = Limits {
        memory_bytes: usize::try_from(upload.init_memory_bytes).unwrap_or(usize::MAX),
        chunk_fuel: upload.init_fuel,
        ..Limits::default()
    };
    let watch = Stopwatch::start();
    let processor = Processor::from_upload(sandbox, &upload.name, wasm, &upload.bounds, limits)?;
    let native = processor.native()?;
    let compile_ms = watch.elapsed_ms();
    let init = rehearse(&processor, upload.query.clone().unwrap_or_default())?;
    let found = processor.inspect().clone();
    let description = Description {
        digest: found.digest,
        bytes: found.bytes,
        world_version: found.world_version,
        imports: found.imports,
        exports: found.exports,
        target,
        native_bytes: native.len() as u64,
        compile_ms,
        init,
    };
    Ok((description, native))
}

/// Runs `init`. What the author's code says no to is told; what no settings can mend is refused.
fn rehearse(processor: &Processor, query: InitQuery) -> Result<Init, Refusal> {
    let answered = query_info(query).and_then(|query| processor.rehearse(&query));
    match answered {
        Ok(answer) => Ok(Init::Answered(init_answer(answer))),
        Err(error @ OperatorError::Trap { .. }) => Err(Refusal::of(error.code(), &error)),
        Err(error @ OperatorError::Host(_)) => Err(Refusal::of_host(error)),
        Err(error) => Ok(Init::Failed { code: error.code().to_owned(), message: error.to_string() }),
    }
}

fn query_info(query: InitQuery) -> Result<QueryInfo, OperatorError> {
    let schema = |ddl: &str| {
        Schema::parse(ddl).map_err(|error| OperatorError::Unfit { code: error.code(), message: error.to_string() })
    };
    let mut parameters = query.parameters;
    parameters.sort();
    Ok(QueryInfo {
        query_id: "upload".to_owned(),
        run_id: "upload".to_owned(),
        step: 0,
        time_mode: query.time_mode,
        output_mode: query.output_mode,
        key: schema(&query.key)?,
        input: schema(&query.input)?,
        initial_state: query.initial_state.as_deref().map(schema).transpose()?,
        parameters,
        seed: 0,
    })
}

fn init_answer(answer: Rehearsed) -> InitAnswer {
    let variables = answer.variables.into_iter().map(|variable| Variable {
        name: variable.name,
        kind: variable.kind.name().to_owned(),
        key: variable.key.as_ref().map(ToString::to_string),
        value: variable.value.to_string(),
        ttl_ms: variable.ttl_ms,
    });
    InitAnswer {
        output: answer.output,
        columns: answer.columns,
        initial_state: answer.initial_state,
        key: answer.key,
        variables: variables.collect(),
        dropped_variables: answer.dropped_variables,
        fuel: answer.fuel.unwrap_or_default(),
        memory_bytes: answer.memory_bytes,
    }
}

/// Why there is no native code.
#[derive(Debug)]
enum Refusal {
    /// Because of the component.
    Coded { code: String, message: String },
    /// Because of the limit on memory.
    OutOfMemory,
}

impl Refusal {
    fn of(code: &str, error: &dyn Error) -> Self {
        Self::Coded { code: code.to_owned(), message: error.to_string() }
    }

    /// The host's own failures are for want of memory, or defects.
    fn of_host(error: impl Error + 'static) -> Self {
        if is_out_of_memory(&error) { Self::OutOfMemory } else { Self::of("HOST_DEFECT", &error) }
    }

    fn into_reply(self) -> Reply {
        match self {
            Self::Coded { code, message } => Reply::Refused { code, message },
            Self::OutOfMemory => Reply::OutOfMemory,
        }
    }
}

impl From<ComponentError> for Refusal {
    fn from(error: ComponentError) -> Self {
        match error {
            ComponentError::OutOfMemory { .. } => Self::OutOfMemory,
            error => Self::of(error.code(), &error),
        }
    }
}

impl From<IpcError> for Refusal {
    fn from(error: IpcError) -> Self {
        Self::of_host(error)
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::of_host(error)
    }
}

fn is_out_of_memory(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::OutOfMemory) {
            return true;
        }
        cause = error.source();
    }
    false
}
