//! What a guest is granted: every function that it can call is named here, or in [`super::wasi`] if it asks for WASI.
//!
//! Functions that are called per chunk or per key read guest memory in place; the batch is taken out of the store for
//! that time, since the memory belongs to the store too.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, LinkerInstance, WasmList};

use super::bindings::tidemill::processor::effects::ApplyFault;
use super::bindings::tidemill::processor::logging as guest_logging;
use super::bindings::tidemill::processor::state::{Page, Part};
use super::bindings::tidemill::processor::timers::TimerPage;
use super::bindings::tidemill::processor::types::Fault;
use super::declarations::Declaration;
use super::effects::{self, Stopped};
use super::engine::Sandbox;
use super::failure::Refusal;
use super::host::{Batch, Host, charge, refill};
use super::logging::{Level, Stdio};
use super::state_host::{RowPage, TimersPage};
use super::wasi;
use crate::state::{MapPart, VariableKind};

/// The package of the contract.
pub(super) const PACKAGE: &str = "tidemill:processor";
/// The version of it that this host implements.
pub(super) const VERSION: &str = "0.1.0";
/// The interfaces that are offered.
pub(super) const INTERFACES: [&str; 6] = ["types", "input", "state", "timers", "effects", "logging"];
/// The interface that a component must export.
pub(super) const HANDLER: &str = "handler";

/// Whether a component needs the virtual WASI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grants {
    /// The contract.
    Contract,
    /// The contract and WASI.
    ContractAndWasi,
}

type Store<'a> = StoreContextMut<'a, Host>;
type Answer<T> = wasmtime::Result<(Result<T, Fault>,)>;

/// All that is granted.
pub(super) fn linker(sandbox: &Sandbox, grants: Grants) -> wasmtime::Result<Linker<Host>> {
    let mut linker = Linker::new(&sandbox.engine);
    interface(&mut linker, "types")?;
    add_input(interface(&mut linker, "input")?)?;
    add_declarations(interface(&mut linker, "state")?)?;
    add_state_reads(interface(&mut linker, "state")?)?;
    add_timers(interface(&mut linker, "timers")?)?;
    add_effects(interface(&mut linker, "effects")?)?;
    add_logging(interface(&mut linker, "logging")?)?;
    if grants == Grants::ContractAndWasi {
        wasi::add_to_linker(&mut linker)?;
    }
    Ok(linker)
}

fn interface<'a>(linker: &'a mut Linker<Host>, name: &str) -> wasmtime::Result<LinkerInstance<'a, Host>> {
    linker.instance(&format!("{PACKAGE}/{name}@{VERSION}"))
}

fn add_input(mut input: LinkerInstance<'_, Host>) -> wasmtime::Result<()> {
    input.func_wrap("next", |mut store: Store<'_>, (): ()| {
        let batch = store.data_mut().batch("input.next").map_err(Refusal::into_trap)?;
        batch.cursors.end_all_but(batch.feed.continuing());
        let chunk = batch.feed.next(&mut batch.session).map_err(Refusal::into_trap)?;
        refill(&mut store)?;
        Ok((chunk,))
    })
}

fn add_declarations(mut state: LinkerInstance<'_, Host>) -> wasmtime::Result<()> {
    state.func_wrap(
        "get-value-state",
        |mut store: Store<'_>, (name, value, ttl_ms): (String, String, Option<u64>)| {
            let declaration = Declaration { name, kind: VariableKind::Value, key: None, value, ttl_ms };
            declare(&mut store, "get-value-state", declaration)
        },
    )?;
    state.func_wrap(
        "get-list-state",
        |mut store: Store<'_>, (name, value, ttl_ms): (String, String, Option<u64>)| {
            let declaration = Declaration { name, kind: VariableKind::List, key: None, value, ttl_ms };
            declare(&mut store, "get-list-state", declaration)
        },
    )?;
    state.func_wrap(
        "get-map-state",
        |mut store: Store<'_>, (name, key, value, ttl_ms): (String, String, String, Option<u64>)| {
            let declaration = Declaration { name, kind: VariableKind::Map, key: Some(key), value, ttl_ms };
            declare(&mut store, "get-map-state", declaration)
        },
    )?;
    state.func_wrap("delete-if-exists", |mut store: Store<'_>, (name,): (String,)| {
        charge(&mut store, name.len())?;
        let declarations = store.data_mut().declarations("delete-if-exists");
        answer(declarations.and_then(|declarations| declarations.delete_if_exists(name)))
    })
}

fn declare(store: &mut Store<'_>, operation: &str, declaration: Declaration) -> Answer<u32> {
    charge(store, declaration.value.len())?;
    let declarations = store.data_mut().declarations(operation);
    answer(declarations.and_then(|declarations| declarations.declare(declaration)))
}

fn add_state_reads(mut state: LinkerInstance<'_, Host>) -> wasmtime::Result<()> {
    state.func_wrap("exists", |mut store: Store<'_>, (variable, group): (u32, u32)| {
        read(&mut store, "exists", |batch| batch.exists(variable, group))
    })?;
    state.func_wrap("get-value", |mut store: Store<'_>, (variable, group): (u32, u32)| {
        read(&mut store, "get-value", |batch| Ok(batch.value(variable, group)?.map(<[u8]>::to_vec)))
    })?;
    state.func_wrap("get-list", |mut store: Store<'_>, (variable, group): (u32, u32)| {
        read(&mut store, "get-list", |batch| batch.list(variable, group).map(Page::from))
    })?;
    state.func_wrap("get-map-value", |mut store: Store<'_>, (variable, group, key): (u32, u32, WasmList<u8>)| {
        read_with(&mut store, "get-map-value", &key, |batch, key| {
            Ok(batch.map_value(variable, group, key)?.map(<[u8]>::to_vec))
        })
    })?;
    state.func_wrap("contains-key", |mut store: Store<'_>, (variable, group, key): (u32, u32, WasmList<u8>)| {
        read_with(&mut store, "contains-key", &key, |batch, key| batch.map_contains(variable, group, key))
    })?;
    state.func_wrap("get-map", |mut store: Store<'_>, (variable, group, part): (u32, u32, Part)| {
        let part = match part {
            Part::Keys => MapPart::Keys,
            Part::Values => MapPart::Values,
            Part::Entries => MapPart::Entries,
        };
        read(&mut store, "get-map", |batch| batch.map(variable, group, part).map(Page::from))
    })?;
    state.func_wrap("next-page", |mut store: Store<'_>, (cursor,): (u32,)| {
        read(&mut store, "next-page", |batch| batch.next_page(cursor).map(Page::from))
    })
}

fn add_timers(mut timers: LinkerInstance<'_, Host>) -> wasmtime::Result<()> {
    timers.func_wrap("list-timers", |mut store: Store<'_>, (group,): (u32,)| {
        read(&mut store, "list-timers", |batch| batch.timers(group).map(TimerPage::from))
    })?;
    timers.func_wrap("next-timers", |mut store: Store<'_>, (cursor,): (u32,)| {
        read(&mut store, "next-timers", |batch| batch.next_timers(cursor).map(TimerPage::from))
    })
}

fn add_effects(mut effects: LinkerInstance<'_, Host>) -> wasmtime::Result<()> {
    effects.func_wrap("apply", |mut store: Store<'_>, (ops,): (WasmList<u8>,)| {
        if ops.len() == 0 {
            return Ok((Ok(()),));
        }
        let stopped = match lent(&mut store, "effects.apply", &ops, effects::apply)? {
            Ok(Ok(())) => return Ok((Ok(()),)),
            Ok(Err(stopped)) => stopped,
            Err(refusal) => Stopped { op: 0, refusal },
        };
        let fault = stopped.refusal.into_fault()?;
        Ok((Err(ApplyFault { op: stopped.op, code: fault.code.to_owned(), message: fault.message }),))
    })
}

fn add_logging(mut logging: LinkerInstance<'_, Host>) -> wasmtime::Result<()> {
    logging.func_wrap("log", |mut store: Store<'_>, (level, message): (guest_logging::Level, String)| {
        charge(&mut store, message.len())?;
        store.data().log.message(Level::from(level), &message);
        Ok(())
    })?;
    logging.func_wrap("write", |mut store: Store<'_>, (to, bytes): (guest_logging::Stdio, WasmList<u8>)| {
        charge(&mut store, bytes.len())?;
        store.data().log.print(Stdio::from(to), bytes.as_le_slice(&store));
        Ok(())
    })
}

/// Runs a read that takes numbers only.
fn read<T>(store: &mut Store<'_>, operation: &str, read: impl FnOnce(&mut Batch) -> Result<T, Refusal>) -> Answer<T> {
    charge(store, 0)?;
    answer(store.data_mut().batch(operation).and_then(read))
}

/// Runs a read that takes bytes.
fn read_with<T>(
    store: &mut Store<'_>,
    operation: &str,
    bytes: &WasmList<u8>,
    read: impl FnOnce(&mut Batch, &[u8]) -> Result<T, Refusal>,
) -> Answer<T> {
    answer(lent(store, operation, bytes, read)?.and_then(|result| result))
}

/// Runs something on the batch with bytes that stay where they are, in guest memory.
fn lent<T>(
    store: &mut Store<'_>,
    operation: &str,
    bytes: &WasmList<u8>,
    run: impl FnOnce(&mut Batch, &[u8]) -> T,
) -> wasmtime::Result<Result<T, Refusal>> {
    charge(store, bytes.len())?;
    let mut batch = match store.data_mut().lend(operation) {
        Ok(batch) => batch,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let result = run(&mut batch, bytes.as_le_slice(&*store));
    store.data_mut().give_back(batch);
    Ok(Ok(result))
}

fn answer<T>(result: Result<T, Refusal>) -> Answer<T> {
    match result {
        Ok(value) => Ok((Ok(value),)),
        Err(refusal) => {
            let fault = refusal.into_fault()?;
            Ok((Err(Fault { code: fault.code.to_owned(), message: fault.message }),))
        }
    }
}

impl From<RowPage> for Page {
    fn from(page: RowPage) -> Self {
        Self { rows: page.rows, rest: page.rest }
    }
}

impl From<TimersPage> for TimerPage {
    fn from(page: TimersPage) -> Self {
        Self { expiries_ms: page.expiries_ms, rest: page.rest }
    }
}

impl From<guest_logging::Level> for Level {
    fn from(level: guest_logging::Level) -> Self {
        match level {
            guest_logging::Level::Trace => Self::Trace,
            guest_logging::Level::Debug => Self::Debug,
            guest_logging::Level::Info => Self::Info,
            guest_logging::Level::Warn => Self::Warn,
            guest_logging::Level::Error => Self::Error,
        }
    }
}

impl From<guest_logging::Stdio> for Stdio {
    fn from(to: guest_logging::Stdio) -> Self {
        match to {
            guest_logging::Stdio::Stdout => Self::Stdout,
            guest_logging::Stdio::Stderr => Self::Stderr,
        }
    }
}
