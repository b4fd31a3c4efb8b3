//! A component that has been found fit to run, as an [`Operator`] of the engine.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;
use wasmtime::OutOfMemory;
use wasmtime::component::Component;

use super::ahead::Ahead;
use super::bindings::StatefulProcessorPre;
use super::bounds::Bounds;
use super::cache::{CompileCache, sha256_hex};
use super::engine::Sandbox;
use super::error::ComponentError;
use super::host::Host;
use super::instance::Instance;
use super::limits::Limits;
use super::linker::{self, Grants, HANDLER, PACKAGE, VERSION};
use super::random::Place;
use super::wasi;
use crate::engine::operator::{Operator, OperatorError, OperatorPlan, QueryInfo, Task, TimerValues, Worker};

/// Largest component that is compiled. A Python program with many modules has 30 MB; compiling takes twenty times the
/// memory and is not bounded otherwise.
pub const COMPONENT_BYTES_MAX: u64 = 96 << 20;

/// A component, compiled and linked.
pub struct Processor {
    pub(super) ready: Arc<Ready>,
    inspection: Inspection,
    bytes: Vec<u8>,
}

/// What a new instance is made of.
pub(super) struct Ready {
    pub(super) sandbox: Sandbox,
    pub(super) component: StatefulProcessorPre<Host>,
    pub(super) limits: Limits,
    pub(super) ahead: Ahead,
}

/// What can be said of a component without running it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Inspection {
    /// SHA-256, in hex.
    pub digest: String,
    /// Size of the file.
    pub bytes: u64,
    /// Version of the world that it implements.
    pub world_version: String,
    /// Interfaces that it imports, sorted.
    pub imports: Vec<String>,
    /// Interfaces that it exports, sorted.
    pub exports: Vec<String>,
}

impl Processor {
    /// Reads, compiles and links a component. With a cache, compiling is skipped when it has been done before.
    ///
    /// # Errors
    /// What is wrong with the component, see [`ComponentError`].
    pub fn from_file(
        sandbox: &Sandbox,
        path: &Path,
        limits: Limits,
        cache: Option<&CompileCache>,
    ) -> Result<Self, ComponentError> {
        let name = path.display().to_string();
        let unreadable = |source| ComponentError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        check_size(&name, length)?;
        let mut bytes = Vec::new();
        file.take(COMPONENT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        Self::from_bytes(sandbox, &name, &bytes, limits, cache)
    }

    /// As [`Processor::from_file`]; `name` is for errors.
    ///
    /// # Errors
    /// What is wrong with the component, see [`ComponentError`].
    pub fn from_bytes(
        sandbox: &Sandbox,
        name: &str,
        bytes: &[u8],
        limits: Limits,
        cache: Option<&CompileCache>,
    ) -> Result<Self, ComponentError> {
        check_bytes(name, bytes)?;
        let compile = || compile(sandbox, name, bytes);
        let digest = sha256_hex(bytes);
        let component = match cache {
            Some(cache) => cache.load_or_compile(sandbox, &digest, bytes, compile)?,
            None => compile()?,
        };
        Self::link(sandbox, name, &component, (digest, bytes.to_vec()), limits)
    }

    /// As [`Processor::from_bytes`], of bytes that a stranger has sent: counted, and looked at from outside, before they are
    /// compiled.
    ///
    /// # Errors
    /// What is wrong with the component, see [`ComponentError`].
    pub fn from_upload(
        sandbox: &Sandbox,
        name: &str,
        bytes: &[u8],
        bounds: &Bounds,
        limits: Limits,
    ) -> Result<Self, ComponentError> {
        check_bytes(name, bytes)?;
        bounds.check(name, bytes)?;
        let (imports, exports) = Bounds::interfaces(name, bytes)?;
        check_exports(name, &exports)?;
        check_imports(name, &imports)?;
        let component = compile(sandbox, name, bytes)?;
        Self::link(sandbox, name, &component, (sha256_hex(bytes), bytes.to_vec()), limits)
    }

    /// Links what has been compiled, if it fits the contract.
    pub(super) fn link(
        sandbox: &Sandbox,
        name: &str,
        component: &Component,
        (digest, bytes): (String, Vec<u8>),
        limits: Limits,
    ) -> Result<Self, ComponentError> {
        let (imports, exports) = interfaces(component);
        let world_version = check_exports(name, &exports)?;
        let grants = check_imports(name, &imports)?;

        let mismatch = |error: wasmtime::Error| mismatch(name, format!("{error:#}"));
        let linker = linker::linker(sandbox, grants).map_err(|error| ComponentError::Sandbox(format!("{error:#}")))?;
        let linked = linker.instantiate_pre(component).map_err(mismatch)?;
        let component = StatefulProcessorPre::new(linked).map_err(mismatch)?;
        Ok(Self {
            ready: Arc::new(Ready { sandbox: sandbox.clone(), component, limits, ahead: Ahead::default() }),
            inspection: Inspection { digest, bytes: bytes.len() as u64, world_version, imports, exports },
            bytes,
        })
    }

    /// SHA-256 of the component, in hex. It names the program in records and caches.
    pub fn digest(&self) -> &str {
        &self.inspection.digest
    }

    /// What can be said of the component without running it.
    pub fn inspect(&self) -> &Inspection {
        &self.inspection
    }
}

impl Operator for Processor {
    fn identity(&self) -> String {
        format!("sha256:{}", self.digest())
    }

    fn artifact(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }

    fn plan(&self, query: &QueryInfo) -> Result<OperatorPlan, OperatorError> {
        let place = Place { query_seed: query.seed, batch_id: 0, step: query.step, key_group: 0 };
        let time = TimerValues { processing_time_ms: 0, watermark_ms: 0 };
        let (_, plan) = Instance::start(&self.ready, query, place, time)?;
        Ahead::wish(&self.ready);
        Ok(plan)
    }

    fn open(&self, task: Task) -> Result<Box<dyn Worker>, OperatorError> {
        let place = Place {
            query_seed: task.query.seed,
            batch_id: task.batch_id,
            step: task.query.step,
            key_group: task.key_groups.start,
        };
        let (instance, plan) = Instance::start(&self.ready, &task.query, place, task.time)?;
        Ok(Box::new(instance.open(task, &plan)?))
    }
}

fn compile(sandbox: &Sandbox, name: &str, bytes: &[u8]) -> Result<Component, ComponentError> {
    let name = name.to_owned();
    Component::new(&sandbox.engine, bytes).map_err(|error| match is_out_of_memory(&error) {
        true => ComponentError::OutOfMemory { name },
        false => ComponentError::Invalid { name, reason: format!("{error:#}") },
    })
}

fn is_out_of_memory(error: &wasmtime::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<Errno>() == Some(&Errno::NOMEM)) || error.is::<OutOfMemory>()
}

fn check_size(name: &str, bytes: u64) -> Result<(), ComponentError> {
    if bytes > COMPONENT_BYTES_MAX {
        return Err(ComponentError::TooLarge { name: name.to_owned(), bytes, bytes_max: COMPONENT_BYTES_MAX });
    }
    Ok(())
}

/// The eight bytes with which a component begins: magic, version, layer.
const COMPONENT_HEAD: &[u8] = b"\0asm\x0d\0\x01\0";
/// The eight bytes with which a core module begins.
const MODULE_HEAD: &[u8] = b"\0asm\x01\0\0\0";

pub(super) fn check_bytes(name: &str, bytes: &[u8]) -> Result<(), ComponentError> {
    check_size(name, bytes.len() as u64)?;
    let name = || name.to_owned();
    if bytes.is_empty() {
        return Err(ComponentError::Empty { name: name() });
    }
    if bytes.starts_with(MODULE_HEAD) {
        return Err(ComponentError::CoreModule { name: name() });
    }
    if !bytes.starts_with(COMPONENT_HEAD) {
        let reason = "it does not begin like one".to_owned();
        return Err(ComponentError::Invalid { name: name(), reason });
    }
    Ok(())
}

fn interfaces(component: &Component) -> (Vec<String>, Vec<String>) {
    let engine = component.engine();
    let component = component.component_type();
    let mut imports: Vec<_> = component.imports(engine).map(|(name, _)| name.to_owned()).collect();
    let mut exports: Vec<_> = component.exports(engine).map(|(name, _)| name.to_owned()).collect();
    imports.sort();
    exports.sort();
    (imports, exports)
}

/// The version of our world that the component exports.
fn check_exports(name: &str, exports: &[String]) -> Result<String, ComponentError> {
    let ours = format!("{PACKAGE}/{HANDLER}");
    let version = exports.iter().map(|export| split_version(export)).find(|(interface, _)| *interface == ours);
    match version {
        Some((_, version)) if is_ours(version) => Ok(version.to_owned()),
        Some((_, version)) => Err(mismatch(name, format!("it exports {ours}@{version}"))),
        None if exports.is_empty() => Err(mismatch(name, "it exports nothing".to_owned())),
        None => Err(mismatch(name, format!("it does not export {ours}; it exports {}", shown(exports).join(", ")))),
    }
}

/// Whether the component needs WASI besides the contract.
fn check_imports(name: &str, imports: &[String]) -> Result<Grants, ComponentError> {
    let mut unknown = Vec::new();
    let mut grants = Grants::Contract;
    for import in imports {
        let (interface, version) = split_version(import);
        if interface.strip_prefix(PACKAGE).and_then(|rest| rest.strip_prefix('/')).is_some_and(is_contract) {
            if !is_ours(version) {
                return Err(mismatch(name, format!("it imports {import}")));
            }
        } else if wasi::INTERFACES.contains(&interface) && version.starts_with("0.2.") {
            grants = Grants::ContractAndWasi;
        } else {
            unknown.push(import.clone());
        }
    }
    if unknown.is_empty() {
        return Ok(grants);
    }
    Err(ComponentError::ImportsUnknown { name: name.to_owned(), imports: shown(&unknown) })
}

fn is_contract(interface: &str) -> bool {
    linker::INTERFACES.contains(&interface)
}

/// Whether a component for `version` can run: the same minor version, while the major one is 0.
fn is_ours(version: &str) -> bool {
    let minor = |version: &str| version.rsplit_once('.').map(|(minor, _)| minor.to_owned());
    minor(version).is_some_and(|theirs| Some(theirs) == minor(VERSION))
}

fn split_version(interface: &str) -> (&str, &str) {
    interface.split_once('@').unwrap_or((interface, ""))
}

fn mismatch(name: &str, reason: String) -> ComponentError {
    let ours = format!("{PACKAGE}@{VERSION}");
    ComponentError::WorldMismatch { name: name.to_owned(), ours, reason }
}

/// Names of interfaces for an error. They come from the file, so they are cut in number and length.
fn shown(names: &[String]) -> Vec<String> {
    let cut = |name: &String| name.chars().filter(|character| !character.is_control()).take(100).collect();
    names.iter().take(20).map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::super::engine::Metering;
    use super::*;

    fn load(bytes: &[u8]) -> Result<Processor, ComponentError> {
        let sandbox = Sandbox::new(Metering::Epoch).unwrap();
        Processor::from_bytes(&sandbox, "p.wasm", bytes, Limits::default(), None)
    }

    fn refused(wat: &str) -> ComponentError {
        load(&wat::parse_str(wat).unwrap()).map(drop).unwrap_err()
    }

    #[test]
    fn what_is_not_a_component_is_named() {
        assert_eq!(load(b"").map(drop).unwrap_err().code(), "COMPONENT_EMPTY");
        assert_eq!(refused("(module)").code(), "COMPONENT_IS_CORE_MODULE");
        assert_eq!(load(b"#!/bin/sh\n").map(drop).unwrap_err().code(), "COMPONENT_INVALID");
        assert_eq!(load(COMPONENT_HEAD.split_at(5).0).map(drop).unwrap_err().code(), "COMPONENT_INVALID");
        let mut cut = wat::parse_str("(component (core module))").unwrap();
        cut.pop();
        assert_eq!(load(&cut).map(drop).unwrap_err().code(), "COMPONENT_INVALID");
    }

    #[test]
    fn a_component_without_our_handler_is_refused() {
        let error = refused(r#"(component (instance $i) (export "other:package/thing@1.0.0" (instance $i)))"#);
        assert_eq!(error.code(), "COMPONENT_WORLD_MISMATCH");
        assert!(error.to_string().contains("other:package/thing@1.0.0"), "{error}");
    }

    #[test]
    fn another_version_of_the_world_is_refused_with_both_named() {
        let error = refused(r#"(component (instance $i) (export "tidemill:processor/handler@0.2.0" (instance $i)))"#);
        assert_eq!(error.code(), "COMPONENT_WORLD_MISMATCH");
        let text = error.to_string();
        assert!(text.contains("tidemill:processor@0.1.0") && text.contains("handler@0.2.0"), "{text}");
    }

    #[test]
    fn imports_that_are_not_granted_are_named() {
        let error = refused(
            r#"(component
                (import "wasi:http/types@0.2.10" (instance))
                (import "wasi:io/poll@0.2.0" (instance))
                (import "evil:host/shell" (instance))
                (instance $i)
                (export "tidemill:processor/handler@0.1.0" (instance $i)))"#,
        );
        assert_eq!(error.code(), "COMPONENT_IMPORTS_UNKNOWN");
        let text = error.to_string();
        assert!(text.contains("evil:host/shell") && text.contains("wasi:http/types@0.2.10"), "{text}");
        assert!(!text.contains("wasi:io/poll"), "{text}");
    }

    #[test]
    fn a_handler_without_the_exports_is_refused() {
        let error = refused(r#"(component (instance $i) (export "tidemill:processor/handler@0.1.0" (instance $i)))"#);
        assert_eq!(error.code(), "COMPONENT_WORLD_MISMATCH");
    }

    #[test]
    fn a_file_that_is_too_large_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(COMPONENT_BYTES_MAX + 1).unwrap();
        let sandbox = Sandbox::new(Metering::Epoch).unwrap();
        let error = Processor::from_file(&sandbox, file.path(), Limits::default(), None).map(drop).unwrap_err();
        assert_eq!(error.code(), "COMPONENT_TOO_LARGE");
    }
}
