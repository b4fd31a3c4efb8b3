//! A virtual WASI 0.2 for languages whose runtime needs one: nothing in it comes from this machine.
//!
//! The wall clock stands at the processing time of the batch. The monotonic clock starts at 0, moves a little with every
//! reading, and jumps when the guest sleeps: waiting never takes real time. Random numbers come from the query's seed.
//! There are no arguments, no environment, no files and no network; standard input is at its end, and what is printed
//! goes to the log. So the same guest with the same input does the same, on every machine and in every replay.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use wasmtime::StoreContextMut;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable, ResourceType};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{HostMonotonicClock, HostWallClock, WasiClocks, WasiClocksView};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, random, sockets, sync};
use wasmtime_wasi::p2::{DynOutputStream, DynPollable, OutputStream, Pollable, StreamError, StreamResult, subscribe};
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView, async_trait};

use super::host::Host;
use super::logging::{Log, Stdio};
use super::random::Place;

/// The interfaces that are offered, in every patch version of WASI 0.2.
pub(super) const INTERFACES: [&str; 27] = [
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:random/random",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:cli/terminal-stderr",
    "wasi:filesystem/types",
    "wasi:filesystem/preopens",
    "wasi:sockets/network",
    "wasi:sockets/instance-network",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/tcp",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp",
    "wasi:sockets/udp-create-socket",
];

/// What the monotonic clock moves by with every reading, so that a loop that waits for time to pass comes to an end.
const READING_NS: u64 = 1_000;
/// Bytes of random numbers in one call; runtimes seed themselves with a few KiB.
const RANDOM_BYTES_MAX: u64 = 1 << 20;
/// Bytes that may be printed in one call of a stream.
const PRINT_BYTES_MAX: usize = 64 << 10;

/// The surroundings of one instance. Made up only when the guest first asks for something.
pub(super) struct Wasi {
    time_ms: i64,
    place: Place,
    log: Log,
    context: Option<WasiCtx>,
    table: ResourceTable,
    now_ns: u64,
    /// Until when the pollables of the clock wait, by their number in the table.
    deadlines_ns: BTreeMap<u32, u64>,
}

impl Wasi {
    pub(super) fn new(time_ms: i64, place: Place, log: Log, resources_max: usize) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(resources_max);
        Self { time_ms, place, log, context: None, table, now_ns: 0, deadlines_ns: BTreeMap::new() }
    }

    /// A reading of the monotonic clock.
    fn read_clock(&mut self) -> u64 {
        self.now_ns = self.now_ns.saturating_add(READING_NS);
        self.now_ns
    }

    fn wait_until(&mut self, deadline_ns: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let deadline = self.table.push(Deadline)?;
        let pollable = subscribe(&mut self.table, deadline)?;
        self.deadlines_ns.insert(pollable.rep(), deadline_ns);
        Ok(pollable)
    }

    /// When a pollable is ready. All but those of the clock always are: streams here never make anybody wait.
    fn ready_at(&self, pollable: &Resource<DynPollable>) -> u64 {
        self.deadlines_ns.get(&pollable.rep()).copied().unwrap_or(0)
    }

    /// Lets time pass until the first of these is ready, and answers all that then are.
    fn poll(&mut self, pollables: &[Resource<DynPollable>]) -> wasmtime::Result<Vec<u32>> {
        let first = pollables.iter().map(|pollable| self.ready_at(pollable)).min();
        let first = first.ok_or_else(|| wasmtime::Error::msg("wasi:io/poll was called with an empty list"))?;
        self.now_ns = self.now_ns.max(first);
        let ready = |(_, pollable): &(u32, &Resource<DynPollable>)| self.ready_at(pollable) <= self.now_ns;
        Ok((0..).zip(pollables).filter(ready).map(|(index, _)| index).collect())
    }

    fn print_stream(&mut self, to: Stdio) -> wasmtime::Result<Resource<DynOutputStream>> {
        let stream: DynOutputStream = Box::new(PrintStream { to, log: self.log.clone() });
        Ok(self.table.push(stream)?)
    }
}

impl WasiView for Host {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let Wasi { time_ms, place, context, table, .. } = self.wasi();
        WasiCtxView { ctx: context.get_or_insert_with(|| context_of(*time_ms, *place)), table }
    }
}

fn context_of(time_ms: i64, place: Place) -> WasiCtx {
    WasiCtx::builder()
        .wall_clock(StandingClock { time: Duration::from_millis(time_ms.max(0).cast_unsigned()) })
        .monotonic_clock(Unused)
        .secure_random(place.stream("secure"))
        .insecure_random(place.stream("insecure"))
        .insecure_random_seed(u128::from(place.seed()))
        .max_random_size(RANDOM_BYTES_MAX)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .build()
}

/// Offers [`INTERFACES`]. The clock that moves, waiting and printing are our own; the rest comes from wasmtime-wasi,
/// with a context that denies everything.
pub(super) fn add_to_linker(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    sync::io::error::add_to_linker::<Host, Table>(linker, table)?;
    sync::io::streams::add_to_linker::<Host, Table>(linker, table)?;
    add_poll(linker)?;
    add_monotonic_clock(linker)?;
    add_printing(linker)?;

    clocks::wall_clock::add_to_linker::<Host, WasiClocks>(linker, Host::clocks)?;
    random::random::add_to_linker::<Host, WasiRandom>(linker, |host| host.ctx().ctx.random())?;
    random::insecure::add_to_linker::<Host, WasiRandom>(linker, |host| host.ctx().ctx.random())?;
    random::insecure_seed::add_to_linker::<Host, WasiRandom>(linker, |host| host.ctx().ctx.random())?;

    cli::environment::add_to_linker::<Host, WasiCli>(linker, Host::cli)?;
    cli::exit::add_to_linker::<Host, WasiCli>(linker, Host::cli)?;
    cli::stdin::add_to_linker::<Host, WasiCli>(linker, Host::cli)?;
    cli::terminal_input::add_to_linker::<Host, WasiCli>(linker, Host::cli)?;
    cli::terminal_output::add_to_linker::<Host, WasiCli>(linker, Host::cli)?;
    cli::terminal_stdin::add_to_linker::<Host, WasiCli>(linker, Host::cli)?;
    cli::terminal_stdout::add_to_linker::<Host, WasiCli>(linker, Host::cli)?;
    cli::terminal_stderr::add_to_linker::<Host, WasiCli>(linker, Host::cli)?;

    sync::filesystem::types::add_to_linker::<Host, WasiFilesystem>(linker, Host::filesystem)?;
    filesystem::preopens::add_to_linker::<Host, WasiFilesystem>(linker, Host::filesystem)?;

    let options = sockets::network::LinkOptions::default();
    sockets::network::add_to_linker::<Host, WasiSockets>(linker, &options, Host::sockets)?;
    sockets::instance_network::add_to_linker::<Host, WasiSockets>(linker, Host::sockets)?;
    sockets::ip_name_lookup::add_to_linker::<Host, WasiSockets>(linker, Host::sockets)?;
    sync::sockets::tcp::add_to_linker::<Host, WasiSockets>(linker, Host::sockets)?;
    sockets::tcp_create_socket::add_to_linker::<Host, WasiSockets>(linker, Host::sockets)?;
    sync::sockets::udp::add_to_linker::<Host, WasiSockets>(linker, Host::sockets)?;
    sync::sockets::udp_create_socket::add_to_linker::<Host, WasiSockets>(linker, Host::sockets)
}

fn add_poll(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    let mut poll = linker.instance("wasi:io/poll@0.2.12")?;
    poll.resource("pollable", ResourceType::host::<DynPollable>(), |mut store, rep| {
        let wasi = store.data_mut().wasi();
        wasi.deadlines_ns.remove(&rep);
        sync::io::poll::HostPollable::drop(&mut wasi.table, Resource::new_own(rep))
    })?;
    poll.func_wrap(
        "[method]pollable.ready",
        |mut store: StoreContextMut<'_, Host>, (pollable,): (Resource<DynPollable>,)| {
            let wasi = store.data_mut().wasi();
            Ok((wasi.ready_at(&pollable) <= wasi.now_ns,))
        },
    )?;
    poll.func_wrap(
        "[method]pollable.block",
        |mut store: StoreContextMut<'_, Host>, (pollable,): (Resource<DynPollable>,)| {
            store.data_mut().wasi().poll(&[pollable]).map(drop)
        },
    )?;
    poll.func_wrap("poll", |mut store: StoreContextMut<'_, Host>, (pollables,): (Vec<Resource<DynPollable>>,)| {
        Ok((store.data_mut().wasi().poll(&pollables)?,))
    })
}

fn add_monotonic_clock(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    let mut clock = linker.instance("wasi:clocks/monotonic-clock@0.2.12")?;
    clock
        .func_wrap("now", |mut store: StoreContextMut<'_, Host>, (): ()| Ok((store.data_mut().wasi().read_clock(),)))?;
    clock.func_wrap("resolution", |_: StoreContextMut<'_, Host>, (): ()| Ok((READING_NS,)))?;
    clock.func_wrap("subscribe-instant", |mut store: StoreContextMut<'_, Host>, (when_ns,): (u64,)| {
        Ok((store.data_mut().wasi().wait_until(when_ns)?,))
    })?;
    clock.func_wrap("subscribe-duration", |mut store: StoreContextMut<'_, Host>, (for_ns,): (u64,)| {
        let wasi = store.data_mut().wasi();
        Ok((wasi.wait_until(wasi.now_ns.saturating_add(for_ns))?,))
    })
}

fn add_printing(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker
        .instance("wasi:cli/stdout@0.2.12")?
        .func_wrap("get-stdout", |mut store: StoreContextMut<'_, Host>, (): ()| {
            Ok((store.data_mut().wasi().print_stream(Stdio::Stdout)?,))
        })?;
    linker
        .instance("wasi:cli/stderr@0.2.12")?
        .func_wrap("get-stderr", |mut store: StoreContextMut<'_, Host>, (): ()| {
            Ok((store.data_mut().wasi().print_stream(Stdio::Stderr)?,))
        })
}

struct Table;

impl HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

fn table(host: &mut Host) -> &mut ResourceTable {
    &mut host.wasi().table
}

/// What a pollable of the clock stands for in the table; the deadline itself is in [`Wasi::deadlines_ns`].
struct Deadline;

#[async_trait]
impl Pollable for Deadline {
    async fn ready(&mut self) {}
}

/// Standard output or error of the guest.
struct PrintStream {
    to: Stdio,
    log: Log,
}

#[async_trait]
impl Pollable for PrintStream {
    async fn ready(&mut self) {}
}

impl OutputStream for PrintStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if bytes.len() > PRINT_BYTES_MAX {
            return Err(StreamError::trap("more was printed at once than the stream had agreed to"));
        }
        self.log.print(self.to, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PRINT_BYTES_MAX)
    }
}

/// The wall clock of a batch.
struct StandingClock {
    time: Duration,
}

impl HostWallClock for StandingClock {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        self.time
    }
}

/// Stands in the context for the monotonic clock, which [`add_monotonic_clock`] offers instead, so that no real one can
/// ever be read through it.
struct Unused;

impl HostMonotonicClock for Unused {
    fn resolution(&self) -> u64 {
        READING_NS
    }

    fn now(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::super::limits::Limits;
    use super::super::logging::Origin;
    use super::*;

    fn wasi() -> Wasi {
        let origin = Origin { query_id: "q".into(), step: 0, batch_id: 0, key_group: 0 };
        let place = Place { query_seed: 1, batch_id: 0, step: 0, key_group: 0 };
        Wasi::new(1_000, place, Log::new(origin, &Limits::default()), 16)
    }

    #[test]
    fn sleeping_moves_the_clock_and_takes_no_time() {
        let mut wasi = wasi();
        let hour = wasi.wait_until(3_600_000_000_000).unwrap();
        assert_eq!(wasi.poll(&[hour]).unwrap(), [0]);
        assert_eq!(wasi.read_clock(), 3_600_000_000_000 + READING_NS);
    }

    #[test]
    fn of_two_deadlines_only_the_first_is_reached() {
        let mut wasi = wasi();
        let late = wasi.wait_until(20).unwrap();
        let early = wasi.wait_until(10).unwrap();
        assert_eq!(wasi.poll(&[late, early]).unwrap(), [1]);
        assert_eq!(wasi.now_ns, 10);
    }

    #[test]
    fn a_stream_is_ready_before_any_deadline() {
        let mut wasi = wasi();
        let late = wasi.wait_until(20).unwrap();
        let stream = wasi.print_stream(Stdio::Stdout).unwrap();
        let ready = subscribe(&mut wasi.table, Resource::<DynOutputStream>::new_borrow(stream.rep())).unwrap();
        assert_eq!(wasi.poll(&[late, ready]).unwrap(), [1]);
        assert_eq!(wasi.now_ns, 0);
    }

    #[test]
    fn waiting_for_nothing_is_an_error() {
        assert!(wasi().poll(&[]).is_err());
    }

    #[test]
    fn resources_are_bounded() {
        let mut wasi = wasi();
        assert!((0..100).any(|_| wasi.wait_until(0).is_err()));
    }

    #[test]
    fn the_clock_moves_with_every_reading() {
        let mut wasi = wasi();
        assert!(wasi.read_clock() < wasi.read_clock());
    }

    #[test]
    fn what_is_printed_reaches_the_log() {
        let wasi = wasi();
        let mut stream = PrintStream { to: Stdio::Stderr, log: wasi.log.clone() };
        stream.write(Bytes::from_static(b"Traceback\n")).unwrap();
        assert_eq!(wasi.log.tail(), ["Traceback"]);
    }
}
