//! Tries to get out of the sandbox, or to be different from run to run. `../README.md` says what it emits.
//!
//! What the standard library answers by a panic is not here, since that is a trap: `SystemTime::now`, `Instant::now`,
//! `thread::sleep`, `env::vars`.
#![expect(clippy::disallowed_methods, reason = "whether the environment can be read is what it tries")]

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::process::Command;
use std::sync::Mutex;
use std::{env, fs, thread};

use tidemill::{Handle, Out, Result, Row, Rows, StatefulProcessor, Timers};

#[derive(Row)]
struct Input {
    n: i64,
}

#[derive(Row)]
struct Finding {
    key: String,
    what: String,
    result: String,
}

type Attempt = (&'static str, fn() -> String);

const ORDER: &[Attempt] = &[
    ("order: of a set", || text((0..20).collect::<HashSet<_>>())),
    ("order: of a map", || text((0..20).map(|n| (n.to_string(), n)).collect::<HashMap<_, _>>().into_values())),
    ("order: hash with a new seed", || RandomState::new().hash_one("x").to_string()),
    ("order: address of an object", || format!("{:p}", Box::new(0))),
    ("order: address of the stack", || format!("{:p}", &0u64.to_string())),
    ("order: address of a function", || format!("{:p}", text::<Vec<i32>> as fn(_) -> _)),
    ("order: this thread", || format!("{:?}", thread::current().id())),
];

const SURROUNDINGS: &[Attempt] = &[
    ("surroundings: PATH", || format!("{:?}", env::var("PATH"))),
    ("surroundings: arguments", || text(env::args())),
    ("surroundings: folder", || told(env::current_dir())),
    ("surroundings: program", || told(env::current_exe())),
    ("surroundings: processors", || told(thread::available_parallelism())),
    ("surroundings: platform", || format!("{:?} {}", env::consts::OS, env::consts::ARCH)),
    ("surroundings: standard input", || {
        let mut input = String::new();
        told(std::io::stdin().read_to_string(&mut input).map(|_| input))
    }),
];

const FILES: &[Attempt] = &[
    ("files: read /etc/passwd", || refused(fs::read("/etc/passwd"))),
    ("files: read the environment", || refused(fs::read("/proc/self/environ"))),
    ("files: read /dev/urandom", || refused(fs::File::open("/dev/urandom"))),
    ("files: list /", || refused(fs::read_dir("/"))),
    ("files: list .", || refused(fs::read_dir("."))),
    ("files: write", || refused(fs::write("/tmp/escaped", "x"))),
    ("files: make a folder", || refused(fs::create_dir("escaped"))),
    ("files: remove", || refused(fs::remove_file("/tmp/escaped"))),
];

const NETWORK: &[Attempt] = &[
    ("network: connect", || refused(TcpStream::connect("127.0.0.1:22"))),
    ("network: listen", || refused(TcpListener::bind("127.0.0.1:0"))),
    ("network: send", || refused(UdpSocket::bind("127.0.0.1:0"))),
    ("network: look up a name", || refused(("example.com", 80).to_socket_addrs())),
];

const PROCESSES: &[Attempt] = &[("processes: run", || refused(Command::new("/bin/sh").arg("-c").arg("id").output()))];

const THREADS: &[Attempt] = &[("threads: start", || refused(thread::Builder::new().spawn(|| ())))];

/// Batches that this memory has seen.
static BATCHES: Mutex<Vec<u64>> = Mutex::new(Vec::new());

struct Escape {
    batch: u64,
}

impl StatefulProcessor for Escape {
    type Key = String;
    type Input = Input;
    type Output = Finding;

    fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self { batch: handle.query().batch_id })
    }

    fn handle_input_rows(
        &mut self,
        key: &String,
        rows: Rows<'_, Input>,
        timers: &Timers,
        out: &mut Out<Finding>,
    ) -> Result<()> {
        for row in rows {
            row?;
            let mut found =
                |what: &str, result: String| out.emit(&Finding { key: key.clone(), what: what.to_owned(), result });
            for (what, make) in [ORDER, SURROUNDINGS, FILES, NETWORK, PROCESSES, THREADS].into_iter().flatten() {
                found(what, make())?;
            }
            found("time: of the handler", timers.processing_time_ms().to_string())?;
            found("order: kept from an earlier batch", self.kept_from_earlier().to_string())?;
        }
        Ok(())
    }
}

impl Escape {
    fn kept_from_earlier(&self) -> usize {
        let Ok(mut batches) = BATCHES.lock() else { return usize::MAX };
        if !batches.contains(&self.batch) {
            batches.push(self.batch);
        }
        batches.len() - 1
    }
}

fn text<I: IntoIterator<Item: Debug>>(items: I) -> String {
    items.into_iter().map(|item| format!("{item:?}")).collect::<Vec<_>>().join(" ")
}

/// An attempt at what may be answered.
fn told<T: Debug>(answer: std::io::Result<T>) -> String {
    answer.map_or_else(|error| format!("unknown: {error}"), |value| format!("{value:?}"))
}

/// An attempt at what must be refused.
fn refused<T, E: Error>(answer: Result<T, E>) -> String {
    answer.map_or_else(|error| format!("refused: {error}"), |_| "got".to_owned())
}

tidemill::export_processor!(Escape);
