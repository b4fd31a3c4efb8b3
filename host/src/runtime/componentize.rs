//! Turns the core module that a compiler made into a component.
//!
//! The interface the module was compiled against travels inside it, in custom sections that the SDK's bindings put
//! there; the encoder checks the module's imports and exports against it. Knows nothing of processors: whether the
//! component is one is for `inspect` and the linker to say.

use wit_component::{ComponentEncoder, DecodedWasm, metadata};

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
        "the module carries no interface (it has no `component-type` section): \
         a processor in Rust calls `tidemill::export_processor!(...)` and is a crate of type `cdylib`"
    )]
    NoInterface,
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
            Self::Encoding { .. } => "COMPONENTIZE_ENCODING",
        }
    }
}

/// Encodes a core module as a component with the interface that the module carries.
pub fn componentize(core: &[u8]) -> Result<Vec<u8>, ComponentizeError> {
    match core.first_chunk::<8>() {
        Some(&COMPONENT_HEAD) => return Err(ComponentizeError::AlreadyComponent),
        Some(&CORE_MODULE_HEAD) => {}
        _ => return Err(ComponentizeError::NotAModule { bytes: core.len() }),
    }
    // The encoder rewrites what it decodes and takes a well-formed module for granted, so look for the interface first.
    let (_, interface) = metadata::decode(core).map_err(encoding)?;
    let exports_something =
        interface.resolve.worlds.get(interface.world).is_some_and(|world| !world.exports.is_empty());
    if !exports_something {
        return Err(ComponentizeError::NoInterface);
    }
    ComponentEncoder::default().validate(true).module(core).and_then(|mut encoder| encoder.encode()).map_err(encoding)
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
