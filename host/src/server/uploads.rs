//! From an upload to a version: received into a file of its own, signature looked at, compiled elsewhere, kept.

use std::io::Write;
use std::sync::{Arc, PoisonError};

use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::App;
use super::auth::Caller;
use super::http::{Content, Problem};
use super::id::{Id, Name, hex, unhex};
use super::meta::processors::{self, Version};
use super::meta::signing_keys;
use super::meta::tenants::{SignaturePolicy, Tenant};
use crate::compiler::{CompileError, CompileLimits};
use crate::ipc::Sealed;

/// A component that somebody sent.
#[derive(Debug)]
pub struct Upload {
    /// Its bytes, in a file that is gone when this is dropped.
    file: NamedTempFile,
    /// SHA-256 of them, in hex.
    pub sha256: String,
    /// What the client says about who signed it: `KEY:SIGNATURE`.
    pub signature: Option<String>,
}

/// Receives a component; only a piece of it is in memory at a time.
///
/// # Errors
/// Too large, too slow, cut off; the disk says no.
pub async fn receive(app: &Arc<App>, mut content: Content, signature: Option<String>) -> Result<Upload, Problem> {
    let tmp = app.data.tmp();
    let mut file = app.blocking(move |_| Ok(NamedTempFile::new_in(tmp)?)).await?;
    let mut digest = Sha256::new();
    while let Some(piece) = content.next().await? {
        digest.update(&piece);
        file = app
            .blocking(move |_| {
                file.write_all(&piece)?;
                Ok(file)
            })
            .await?;
    }
    Ok(Upload { file, sha256: hex(&digest.finalize()), signature })
}

/// Whose processor an upload is for, and who sent it.
#[derive(Debug)]
pub struct Destination {
    /// The tenant, as it was when the upload came.
    pub tenant: Tenant,
    /// The processor.
    pub processor: Name,
    /// Who sent it.
    pub caller: Caller,
}

/// Makes an upload the next version of a processor. It takes seconds, and blocks.
///
/// # Errors
/// The signature, the component, a limit of its compilation, the disk.
pub fn admit(app: &App, destination: &Destination, upload: &Upload) -> Result<Version, Problem> {
    let Destination { tenant, processor, caller } = destination;
    let bytes = std::fs::read(upload.file.path())?;
    let signed_by = signer(app, tenant, upload.signature.as_deref(), &bytes)?;
    let component = Sealed::of(&bytes)?;
    let compiled = app
        .compiler
        .compile(processor.as_str(), &upload.sha256, &component, None, &CompileLimits::default())
        .map_err(refused)?;
    let description = serde_json::to_value(&compiled.description)
        .map_err(|error| Problem::new("SERVER_DEFECT", error.to_string()))?;
    let version = Version {
        number: 0,
        sha256: upload.sha256.clone(),
        bytes: compiled.description.bytes,
        created_ms: app.now_ms(),
        created_by: caller.token.clone(),
        signed_by,
        description,
    };
    let _held = app.components.lock().unwrap_or_else(PoisonError::into_inner);
    app.store.keep_component(&upload.sha256, &bytes)?;
    app.store.keep_native(&upload.sha256, app.compiler.target(), &compiled.native)?;
    app.meta.write(|writing| Ok(processors::add_version(writing, &tenant.id, processor, version)?))
}

/// Removes a component that no version has any more.
///
/// # Errors
/// The store or the disk fails.
pub fn forget(app: &App, sha256: &str) -> Result<(), Problem> {
    let _held = app.components.lock().unwrap_or_else(PoisonError::into_inner);
    if !app.meta.read(|view| processors::is_used(view, sha256))? {
        app.store.remove(sha256)?;
    }
    Ok(())
}

/// Whose signature an upload has, by the tenant's policy.
fn signer(app: &App, tenant: &Tenant, signature: Option<&str>, bytes: &[u8]) -> Result<Option<Name>, Problem> {
    if tenant.signatures == SignaturePolicy::Off {
        return Ok(None);
    }
    match (verify(app, &tenant.id, signature, bytes), tenant.signatures) {
        (Err(problem), SignaturePolicy::Warn) if !problem.status().is_server_error() => {
            tracing::warn!(code = problem.code(), tenant = %tenant.name, "an upload without a right signature");
            Ok(None)
        }
        (verified, _) => verified.map(Some),
    }
}

/// Whose signature it is: one of the tenant's keys, over the bytes of the component.
fn verify(app: &App, tenant: &Id, signature: Option<&str>, bytes: &[u8]) -> Result<Name, Problem> {
    let signature = signature.ok_or_else(|| {
        let detail =
            "this tenant takes signed components only: send Tidemill-Signature: KEY:SIGNATURE, the signature in hex";
        Problem::new("SIGNATURE_MISSING", detail)
    })?;
    let invalid = || {
        Problem::new(
            "SIGNATURE_INVALID",
            "the signature is none of the named key over these bytes; sign the component as it is sent, with a key of the \
             tenant",
        )
    };
    let (key, signature) = signature.split_once(':').ok_or_else(invalid)?;
    let signature: [u8; 64] = unhex(signature).and_then(|bytes| bytes.try_into().ok()).ok_or_else(invalid)?;
    let key = app.meta.read(|view| signing_keys::get(view, tenant, key))?.ok_or_else(invalid)?;
    let public = public_key(&key.public_key).ok_or_else(invalid)?;
    public.verify_strict(bytes, &Signature::from_bytes(&signature)).map_err(|_mismatch| invalid())?;
    Ok(key.name)
}

/// The key that these hexadecimal digits stand for.
pub fn public_key(digits: &str) -> Option<VerifyingKey> {
    let bytes: [u8; 32] = unhex(digits)?.try_into().ok()?;
    VerifyingKey::from_bytes(&bytes).ok().filter(|key| !key.is_weak())
}

/// The compiler's code comes from a process that a component may have taken over, so it does not decide on the status.
fn refused(error: CompileError) -> Problem {
    if let CompileError::Crashed { last_words, .. } = &error {
        tracing::warn!(code = error.code(), ?last_words, "a compiler ended without an answer");
    }
    if error.is_refusal() {
        Problem::unprocessable(error.code().to_owned(), error.to_string())
    } else {
        Problem::new(error.code().to_owned(), error.to_string())
    }
}
