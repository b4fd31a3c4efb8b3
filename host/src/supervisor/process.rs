//! A worker process, as its server has it.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::process::Child;
use std::sync::mpsc::SyncSender;
use std::thread;

use super::Settings;
use super::status::WorkerStatus;
use super::tenant::Event;
use crate::ipc::worker::{self, INGEST, Open, Order, QUERIES};
use crate::ipc::{IpcError, Receiver, Sealed, Sender, decode, encode, split};
use crate::isolation::{self, IsolationError, LastWords, Program, Report, Walls};

/// A worker.
pub(super) struct Worker {
    child: Child,
    sender: Sender,
    last_words: LastWords,
    walls: Report,
}

/// Whose worker it is.
pub(super) struct Owner<'a> {
    pub(super) tenant: &'a str,
    pub(super) folder: PathBuf,
    pub(super) user: Option<u32>,
}

impl Worker {
    /// Starts one. What it says comes as events of this incarnation, until it is gone.
    ///
    /// # Errors
    /// It does not start, or its walls do not stand.
    pub(super) fn start(
        owner: Owner<'_>,
        settings: &Settings,
        incarnation: u64,
        events: SyncSender<Event>,
    ) -> Result<Self, IsolationError> {
        let label = format!("worker of tenant {}", owner.tenant);
        let program = Program { executable: settings.executable.clone(), ..Program::new("worker", label.clone()) };
        let walls = Walls {
            read_write: vec![PathBuf::from(QUERIES)],
            read_only: vec![PathBuf::from(INGEST)],
            ..Walls::worker(owner.folder, owner.user, settings.limits, settings.sandbox)
        };
        let spawned = isolation::spawn(&program, &walls)?;
        for (layer, reason) in spawned.report.missing() {
            tracing::warn!(tenant = owner.tenant, layer = layer.name(), reason, "a wall of the worker is missing");
        }
        let mut child = spawned.child;
        let listening = split(spawned.socket).and_then(|(sender, receiver)| {
            let listen = move || listen(receiver, incarnation, &events);
            thread::Builder::new().name("worker-listener".to_owned()).spawn(listen).map(|_| sender)
        });
        match listening {
            Ok(sender) => Ok(Self { child, sender, last_words: spawned.last_words, walls: spawned.report }),
            Err(cause) => {
                end(&mut child);
                Err(IsolationError::Start { label, cause })
            }
        }
    }

    /// What is to be known of it.
    pub(super) fn describe(&self, tenant: &str) -> WorkerStatus {
        WorkerStatus { tenant: tenant.to_owned(), pid: self.child.id(), walls: self.walls.clone() }
    }

    /// Says something.
    ///
    /// # Errors
    /// The worker is gone, or does not listen: it is to be ended.
    pub(super) fn say(&self, order: &Order) -> Result<(), IpcError> {
        self.say_with(order, &[])
    }

    /// Hands over the components of a query, then has it opened.
    ///
    /// # Errors
    /// As [`Self::say`].
    pub(super) fn open(&self, open: Open, components: &[(String, (Sealed, Sealed))]) -> Result<(), IpcError> {
        for (digest, (wasm, native)) in components {
            self.say_with(&Order::Component { digest: digest.clone() }, &[wasm.as_fd(), native.as_fd()])?;
        }
        self.say(&Order::Open(open))
    }

    fn say_with(&self, order: &Order, descriptors: &[BorrowedFd<'_>]) -> Result<(), IpcError> {
        self.sender.send(&encode(order)?, descriptors)
    }

    /// Kills it, unless it is dead already, and reaps it; answers with its last words.
    pub(super) fn end(mut self) -> String {
        self.sender.close();
        end(&mut self.child);
        self.last_words.wait()
    }
}

/// A child that has ended by itself cannot be killed, so the answer of the kill says nothing.
fn end(child: &mut Child) {
    drop(child.kill());
    drop(child.wait());
}

/// Passes on what the worker says, until it is gone or says what makes no sense.
fn listen(mut receiver: Receiver, incarnation: u64, events: &SyncSender<Event>) {
    let mut hear = || -> Result<Option<worker::Report>, IpcError> {
        let Some(frame) = receiver.receive()? else { return Ok(None) };
        let report: worker::Report = decode(&frame.bytes)?;
        report.check()?;
        Ok(Some(report))
    };
    let reason = loop {
        match hear() {
            Ok(Some(report)) => {
                if events.send(Event::Said { incarnation, report }).is_err() {
                    return;
                }
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    // The tenant's thread has ended if nobody takes it.
    drop(events.send(Event::Gone { incarnation, reason }));
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::ipc::pair;
    use crate::ipc::worker::{Input, PROGRESS_BYTES_MAX};

    /// What becomes of bytes that a worker sends before it ends: what it said, and why it is no longer listened to.
    fn heard(send: impl FnOnce(&mut UnixStream)) -> (Vec<worker::Report>, Option<IpcError>) {
        let (mut theirs, ours) = pair().unwrap();
        let (sender, events) = sync_channel(16);
        let (_, receiver) = split(ours.into()).unwrap();
        send(&mut theirs);
        drop(theirs);
        listen(receiver, 1, &sender);
        let (mut said, mut gone) = (Vec::new(), None);
        while let Ok(event) = events.try_recv() {
            match event {
                Event::Said { report, .. } => said.push(report),
                Event::Gone { reason, .. } => gone = Some(reason),
                Event::Asked(_) => panic!("nobody asked"),
            }
        }
        (said, gone.unwrap())
    }

    fn batch(progress: &str) -> worker::Report {
        worker::Report::Batch { query: "q".to_owned(), progress: progress.to_owned(), input: Input::default() }
    }

    fn say(stream: &UnixStream, report: &worker::Report) {
        split(stream.try_clone().unwrap()).unwrap().0.send(&encode(report).unwrap(), &[]).unwrap();
    }

    #[test]
    fn a_worker_that_ends_is_gone_without_a_reason() {
        let (said, reason) = heard(|stream| say(stream, &batch("{}")));

        assert_eq!(said, [batch("{}")]);
        assert!(reason.is_none());
    }

    #[test]
    fn a_worker_that_says_what_makes_no_sense_is_listened_to_no_more() {
        let nonsense: [&dyn Fn(&mut UnixStream); 4] = [
            &|stream| stream.write_all(&[0xff; 64]).unwrap(),
            &|stream| stream.write_all(&[3, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9]).unwrap(),
            &|stream| stream.write_all(&[3, 0, 0, 0, 0, 0, 0, 0, 1]).unwrap(),
            &|stream| say(stream, &batch(&format!(r#"{{"a": "{}"}}"#, "a".repeat(PROGRESS_BYTES_MAX)))),
        ];
        for nonsense in nonsense {
            let (said, reason) = heard(|stream| {
                nonsense(stream);
                drop(stream.write_all(&[0; 8]));
            });

            assert_eq!(said, []);
            assert_eq!(reason.unwrap().code(), "IPC_PROTOCOL_VIOLATED");
        }
    }
}
