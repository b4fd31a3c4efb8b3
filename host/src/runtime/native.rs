//! Compiled code that comes from another process of this program: the compiler makes it, the server vouches for it, a worker
//! runs it.

use wasmtime::component::Component;

use super::cache::{self, sha256_hex};
use super::engine::Sandbox;
use super::error::ComponentError;
use super::limits::Limits;
use super::processor::{Processor, check_bytes};
use crate::ipc::Sealed;

/// Largest native code that is kept and loaded. That of a Python program has one and a half times the component's bytes.
pub const NATIVE_BYTES_MAX: u64 = 512 << 20;

impl Sandbox {
    /// What code is compiled for here: a digest of the version of wasmtime, the CPU and the configuration. Code of another
    /// target does not load.
    pub fn target(&self) -> String {
        cache::target(self)
    }
}

impl Processor {
    /// The compiled code, for [`Processor::from_native`] in a process with the same [`Sandbox::target`].
    ///
    /// # Errors
    /// [`ComponentError::Sandbox`], which does not happen to code that was compiled here.
    pub fn native(&self) -> Result<Vec<u8>, ComponentError> {
        let component = self.ready.component.instance_pre().component();
        component.serialize().map_err(|error| ComponentError::Sandbox(format!("{error:#}")))
    }

    /// Loads a component with its compiled code, which must be what [`Processor::native`] gave for it: **whoever hands over the
    /// code may do whatever this process may**. So only a server may call this that has authenticated the code, or a worker that
    /// was given it by its server. `name` is for errors.
    ///
    /// # Errors
    /// [`ComponentError::Native`] for code of another target or version; what is wrong with the component.
    pub fn from_native(
        sandbox: &Sandbox,
        name: &str,
        wasm: &Sealed,
        native: &Sealed,
        limits: Limits,
    ) -> Result<Self, ComponentError> {
        let refused = |reason: String| ComponentError::Native { name: name.to_owned(), reason };
        let wasm = wasm.bytes().map_err(|error| refused(error.to_string()))?;
        check_bytes(name, &wasm)?;
        let code = native.bytes().map_err(|error| refused(error.to_string()))?;
        #[expect(unsafe_code, reason = "loading native code is what this is for; see SAFETY")]
        // SAFETY: the bytes must be what `Component::serialize` of this wasmtime wrote. wasmtime checks version and target.
        // The rest is the caller's promise, above: the server keeps a message authentication code of the compiler's answer and
        // compares it before it hands the bytes over. They were sealed, so nobody has changed them since.
        let component = unsafe { Component::deserialize(&sandbox.engine, code) };
        let component = component.map_err(|error| refused(format!("{error:#}")))?;
        let digest = sha256_hex(&wasm);
        Self::link(sandbox, name, &component, (digest, wasm), limits)
    }
}
