//! The worker of a tenant: a process of its own that runs the engine of all queries that the tenant has loaded.
//!
//! It is started by a server, enters its walls, and from then on has one socket and its tenant's folder. It does what
//! [`Order`]s say and tells by [`Report`]s what became of it. A query is a thread ([`query`]) that sleeps until there are rows,
//! a timer is due, or it shall end ([`wake`]); one that has nothing to do for a while is closed, and the server opens it again.
//!
//! Whatever goes wrong in a query ends that query with a coded failure. A panic ends the process: after a defect of the host
//! nothing in it is believed any more, and the server starts another.

mod error;
mod lines;
mod query;
mod wake;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use crate::clock::SystemClock;
use crate::disk::RealDisk;
use crate::ipc::worker::{End, Failure, Order, Report, TEXT_BYTES_MAX};
use crate::ipc::{IpcError, Receiver, Sealed, Sender, decode, encode, split};
use crate::isolation;
use crate::runtime::{COMPONENT_BYTES_MAX, Metering, NATIVE_BYTES_MAX, Sandbox};
pub use error::WorkerError;
use query::{Components, Running};

/// Runs the worker until its server ends the conversation. To be called first in the process.
///
/// # Errors
/// The walls do not stand, the server is gone or says what makes no sense.
pub fn run() -> Result<(), WorkerError> {
    let socket = isolation::enter().map_err(WorkerError::Walls)?;
    end_with_a_panic();
    let (sender, receiver) = split(socket).map_err(IpcError::from)?;
    let sender = Arc::new(sender);
    lines::send_to(&sender);
    let host =
        Host { sender, sandbox: Sandbox::new(Metering::Fuel)?, disk: Arc::new(RealDisk), clock: Arc::new(SystemClock) };
    Worker { host: Arc::new(host), queries: HashMap::new(), components: Components::new() }.obey(receiver)
}

/// What all queries share.
struct Host {
    sender: Arc<Sender>,
    sandbox: Sandbox,
    disk: Arc<RealDisk>,
    clock: Arc<SystemClock>,
}

impl Host {
    /// Tells the server. One that is gone is noticed where orders are received.
    fn say(&self, report: &Report) {
        drop(encode(report).and_then(|bytes| self.sender.send(&bytes, &[])));
    }
}

struct Worker {
    host: Arc<Host>,
    /// By id. One that has ended stays until it is opened again.
    queries: HashMap<String, Running>,
    /// Of the query that is opened next.
    components: Components,
}

impl Worker {
    fn obey(mut self, mut receiver: Receiver) -> Result<(), WorkerError> {
        while let Some(frame) = receiver.receive()? {
            match decode(&frame.bytes)? {
                Order::Component { digest } => {
                    let mut memory = frame.descriptors.into_iter();
                    let (Some(wasm), Some(native), None) = (memory.next(), memory.next(), memory.next()) else {
                        return Err(IpcError::Malformed("a component without its two parts".to_owned()).into());
                    };
                    let wasm = Sealed::received(wasm, COMPONENT_BYTES_MAX)?;
                    self.components.insert(digest, (wasm, Sealed::received(native, NATIVE_BYTES_MAX)?));
                }
                Order::Open(open) => {
                    let id = open.query.clone();
                    if let Some(ended) = self.queries.remove(&id) {
                        ended.join();
                    }
                    match Running::start(open, std::mem::take(&mut self.components), &self.host) {
                        Ok(running) => drop(self.queries.insert(id, running)),
                        Err(error) => self.host.say(&Report::Closed { query: id, end: End::Failed(no_thread(&error)) }),
                    }
                }
                Order::Rows { query, end } => {
                    if let Some(running) = self.queries.get(&query) {
                        running.wake.rows(end);
                    }
                }
                Order::Close { query } => {
                    if let Some(running) = self.queries.get(&query) {
                        running.wake.stop();
                    }
                }
            }
        }
        self.queries.values().for_each(|running| running.wake.stop());
        self.queries.into_values().for_each(Running::join);
        Ok(())
    }
}

fn no_thread(error: &io::Error) -> Failure {
    Failure {
        code: "WORKER_THREAD_FAILED".to_owned(),
        message: format!("no thread could be started for the query: {error}; run fewer queries at once"),
        batch: None,
    }
}

/// A panic anywhere ends the process, after it was written to standard error, which the server reads.
fn end_with_a_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}

/// The beginning of a text that a report has room for.
fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        let end = (0..=TEXT_BYTES_MAX - '…'.len_utf8()).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}
