//! Components on their way to workers: the bytes as they were uploaded, and native code that this server vouches for.

use std::sync::Arc;

use crate::compiler::{CompileError, CompileLimits, Compiler, NativeStore, StoreError};
use crate::ipc::Sealed;
use crate::supervisor::{Failure, LoadComponent};

/// Gives components by digest. Code that is missing, was forged, or is of another machine or version is compiled anew.
pub fn loader(compiler: Arc<Compiler>, store: Arc<NativeStore>) -> Arc<LoadComponent> {
    Arc::new(move |digest| load(&compiler, &store, digest))
}

fn load(compiler: &Compiler, store: &NativeStore, digest: &str) -> Result<(Sealed, Sealed), Failure> {
    let component = store.component(digest).map_err(|error| broken(&error))?.ok_or_else(|| {
        failure("COMPONENT_MISSING", format!("the component {digest} is no longer in the data folder; upload it again"))
    })?;
    if let Some(native) = store.native(digest, compiler.target()).map_err(|error| broken(&error))? {
        return Ok((component, native));
    }
    let name = format!("component {digest}");
    let compiled = compiler
        .compile(&name, digest, &component, None, &CompileLimits::default())
        .map_err(|error: CompileError| failure(error.code(), error.to_string()))?;
    store.keep_native(digest, compiler.target(), &compiled.native).map_err(|error| broken(&error))?;
    Ok((component, compiled.native))
}

fn broken(error: &StoreError) -> Failure {
    failure(error.code(), error.to_string())
}

fn failure(code: &str, message: String) -> Failure {
    Failure { code: code.to_owned(), message, batch: None }
}
