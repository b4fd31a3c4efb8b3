//! Turns the core module that a compiler made into a component.
//!
//! The interface the module was compiled against travels inside it, in custom sections that the SDK's bindings put
//! there; the encoder checks the module's imports and exports against it. Knows nothing of processors: whether the
//! component is one is for `inspect` and the linker to say.

use std::path::Path;

use wit_component::{ComponentEncoder, DecodedWasm, StringEncoding, embed_component_metadata, metadata};
use wit_parser::{PackageId, Resolve};

/// The world of a processor, in `wit/`.
pub const WORLD: &str = "stateful-processor";
/// Where it stands; for modules of compilers that know nothing of interfaces.
const WIT: &str = include_str!("../../../wit/world.wit");
/// What the names of a processor's exports begin with.
const HANDLER: &[u8] = b"tidemill:processor/handler@";
/// The module whose functions an adapter has, as compilers name it.
const ADAPTED: &str = "wasi_snapshot_preview1";
/// What an adapter may import of ours: it has no system to write to but the log.
const ADAPTER_WORLD: &str = "package tidemill:adapter;\nworld adapter { import tidemill:processor/logging@0.1.0; }\n";

/// First eight bytes of a core module: magic number, version 1.
const CORE_MODULE_HEAD: [u8; 8] = *b"\0asm\x01\0\0\0";
/// First eight bytes of a component: magic number, version 13, layer 1.
const COMPONENT_HEAD: [u8; 8] = *b"\0asm\x0d\0\x01\0";

/// Why a file cannot be made a component.
#[derive(Debug, thiserror::Error)]
pub enum ComponentizeError {
    /// The file is a component already.
    #[error("the file is a component already: run it as it is")]
    AlreadyComponent,
    /// The file is not WebAssembly.
    #[error("the file is no WebAssembly module: {bytes} bytes that do not start with the module header")]
    NotAModule {
        /// Size of the file.
        bytes: usize,
    },
    /// The module does not say which interface it was compiled against.
    #[error(
        "the module carries no interface (it has no `component-type` section) \
         and does not export `tidemill:processor/handler` either; \
         a processor in Rust calls `tidemill::export_processor!(...)` and is a crate of type `cdylib`"
    )]
    NoInterface,
    /// The world cannot be read.
    #[error("the world in {folder} cannot be read: {reason}")]
    World {
        /// Where it is.
        folder: String,
        /// What its parser says.
        reason: String,
    },
    /// The adapter is no WebAssembly text.
    #[error("the adapter cannot be assembled: {reason}")]
    Adapter {
        /// What the assembler says, with line and column.
        reason: String,
    },
    /// The module and the interface it carries do not fit.
    #[error("the module does not fit the interface it was compiled against: {reason}")]
    Encoding {
        /// The encoder's words, outermost first.
        reason: String,
    },
}

impl ComponentizeError {
    /// Stable code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::AlreadyComponent => "COMPONENTIZE_ALREADY_COMPONENT",
            Self::NotAModule { .. } => "COMPONENTIZE_NOT_A_MODULE",
            Self::NoInterface => "COMPONENTIZE_NO_INTERFACE",
            Self::World { .. } => "COMPONENTIZE_WORLD",
            Self::Adapter { .. } => "COMPONENTIZE_ADAPTER",
            Self::Encoding { .. } => "COMPONENTIZE_ENCODING",
        }
    }
}

/// Encodes a core module as a component with the interface that the module carries; else, if it has the exports of a
/// processor, with our world.
///
/// # Errors
/// Not a module, neither interface nor exports, or a module that does not fit its interface.
pub fn componentize(core: &[u8]) -> Result<Vec<u8>, ComponentizeError> {
    check_head(core)?;
    // The encoder rewrites what it decodes and takes a well-formed module for granted, so look for the interface first.
    let (_, interface) = metadata::decode(core).map_err(encoding)?;
    let exports_something =
        interface.resolve.worlds.get(interface.world).is_some_and(|world| !world.exports.is_empty());
    let mut core = core.to_vec();
    if !exports_something {
        memchr::memmem::find(&core, HANDLER).ok_or(ComponentizeError::NoInterface)?;
        let mut world = Resolve::default();
        let package = world.push_source("world.wit", WIT).map_err(encoding)?;
        embed(&mut core, &world, package, WORLD)?;
    }
    ComponentEncoder::default().validate(true).module(&core).and_then(|mut encoder| encoder.encode()).map_err(encoding)
}

/// Encodes a core module that does not say which interface it has: a compiler that knows nothing of components made it, for
/// WASI. `wit`: folder with the world. `adapter`: WebAssembly text of a module with the functions of WASI, which imports at
/// most our log; the component then imports nothing of WASI.
///
/// # Errors
/// Not a module; a world or an adapter that cannot be read; a module that does not have the world's exports.
pub fn componentize_with_adapter(core: &[u8], wit: &Path, adapter: &[u8]) -> Result<Vec<u8>, ComponentizeError> {
    check_head(core)?;
    let mut world = Resolve::default();
    let unreadable = |reason| ComponentizeError::World { folder: wit.display().to_string(), reason };
    let (package, _) = world.push_path(wit).map_err(|error| unreadable(format!("{error:#}")))?;
    let mut core = core.to_vec();
    embed(&mut core, &world, package, WORLD)?;
    let adapter =
        wat::parse_bytes(adapter).map_err(|error| ComponentizeError::Adapter { reason: error.to_string() })?;
    let mut adapter = adapter.into_owned();
    let package = world.push_source("adapter.wit", ADAPTER_WORLD).map_err(encoding)?;
    embed(&mut adapter, &world, package, "adapter")?;
    ComponentEncoder::default()
        .validate(true)
        .module(&core)
        .and_then(|encoder| encoder.adapter(ADAPTED, &adapter))
        .and_then(|mut encoder| encoder.encode())
        .map_err(encoding)
}

/// Writes into a module which world it has.
fn embed(module: &mut Vec<u8>, resolve: &Resolve, package: PackageId, world: &str) -> Result<(), ComponentizeError> {
    let world = resolve.select_world(&[package], Some(world)).map_err(encoding)?;
    embed_component_metadata(module, resolve, world, StringEncoding::UTF8).map_err(encoding)
}

fn check_head(core: &[u8]) -> Result<(), ComponentizeError> {
    match core.first_chunk::<8>() {
        Some(&COMPONENT_HEAD) => Err(ComponentizeError::AlreadyComponent),
        Some(&CORE_MODULE_HEAD) => Ok(()),
        _ => Err(ComponentizeError::NotAModule { bytes: core.len() }),
    }
}

/// Names of what a component imports, as in its interface, sorted.
pub fn imports(component: &[u8]) -> Result<Vec<String>, ComponentizeError> {
    let decoded = wit_component::decode(component).map_err(encoding)?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        return Err(ComponentizeError::NotAModule { bytes: component.len() });
    };
    let mut names: Vec<String> = resolve
        .worlds
        .get(world)
        .map(|world| world.imports.keys().map(|key| resolve.name_world_key(key)).collect())
        .unwrap_or_default();
    names.sort();
    Ok(names)
}

fn encoding(error: impl std::fmt::Display) -> ComponentizeError {
    ComponentizeError::Encoding { reason: format!("{error:#}") }
}
