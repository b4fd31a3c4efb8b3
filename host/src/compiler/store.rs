//! What the server keeps of uploads: the bytes as they came, and the native code that was made of them.
//!
//! Native code does whatever the process may that loads it. So beside each file of it stands a message authentication code
//! over its name and bytes, by a key that only the server has: what was put there by anybody else, or moved from another
//! name, counts as none and is compiled anew. Components are named by their digest, which is compared on each read.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::disk::{Disk, create_dir_durably, write_durably};
use crate::ipc::Sealed;
use crate::runtime::{COMPONENT_BYTES_MAX, NATIVE_BYTES_MAX, sha256_hex};

const COMPONENTS: &str = "components";
const NATIVE: &str = "native";
/// What the name of a file's authentication code has after that of the file.
const MAC: &str = ".mac";

/// Why the store could not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk said no.
    #[error("the store of components failed: {0}; look at the data folder's disk")]
    Disk(#[from] io::Error),
    /// What is stored under a digest has another.
    #[error("the stored component {digest} is damaged: its bytes have another digest; upload it again")]
    ComponentDamaged {
        /// SHA-256 in hex.
        digest: String,
    },
}

impl StoreError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Disk(_) => "COMPONENT_STORE_FAILED",
            Self::ComponentDamaged { .. } => "COMPONENT_DAMAGED",
        }
    }
}

/// The folders `components` and `native` of a data folder. Digests are SHA-256 in lower-case hex; targets are those of
/// [`super::Compiler::target`].
#[derive(Debug)]
pub struct NativeStore {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    key: [u8; 32],
}

impl NativeStore {
    /// Opens the store in a data folder; what is missing is made. `key` is the server's secret.
    ///
    /// # Errors
    /// [`StoreError::Disk`].
    pub fn open(disk: Arc<dyn Disk>, folder: &Path, key: [u8; 32]) -> Result<Self, StoreError> {
        for part in [COMPONENTS, NATIVE] {
            create_dir_durably(disk.as_ref(), &folder.join(part))?;
        }
        Ok(Self { disk, folder: folder.to_owned(), key })
    }

    /// Keeps the bytes of a component, durably. One that is there already is left alone.
    ///
    /// # Errors
    /// [`StoreError::Disk`].
    pub fn keep_component(&self, digest: &str, component: &[u8]) -> Result<(), StoreError> {
        let path = self.component_file(digest)?;
        if !self.disk.exists(&path)? {
            write_durably(self.disk.as_ref(), &path, component)?;
        }
        Ok(())
    }

    /// The bytes of a component, sealed; None: it is not there.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn component(&self, digest: &str) -> Result<Option<Sealed>, StoreError> {
        let Some(bytes) = self.read(&self.component_file(digest)?, COMPONENT_BYTES_MAX)? else { return Ok(None) };
        if sha256_hex(&bytes) != digest {
            return Err(StoreError::ComponentDamaged { digest: digest.to_owned() });
        }
        Ok(Some(Sealed::of(&bytes)?))
    }

    /// Keeps native code, durably, in place of what there was for this component.
    ///
    /// # Errors
    /// [`StoreError::Disk`].
    pub fn keep_native(&self, digest: &str, target: &str, native: &Sealed) -> Result<(), StoreError> {
        let name = native_name(digest, target)?;
        let path = self.folder.join(NATIVE).join(&name);
        let bytes = native.bytes()?;
        let mac = self.mac(&name, &bytes).finalize().into_bytes();
        write_durably(self.disk.as_ref(), &path, &bytes)?;
        write_durably(self.disk.as_ref(), &mac_file(&path), &mac)?;
        self.remove_native(digest, Some(&name))
    }

    /// Native code, sealed; None: there is none that this server has kept, and it has to be compiled.
    ///
    /// # Errors
    /// [`StoreError::Disk`].
    pub fn native(&self, digest: &str, target: &str) -> Result<Option<Sealed>, StoreError> {
        let name = native_name(digest, target)?;
        let path = self.folder.join(NATIVE).join(&name);
        let (Some(bytes), Some(mac)) = (self.read(&path, NATIVE_BYTES_MAX)?, self.read(&mac_file(&path), 32)?) else {
            return Ok(None);
        };
        if self.mac(&name, &bytes).verify_slice(&mac).is_err() {
            tracing::warn!(file = %path.display(), "native code that this server has not written; it is compiled anew");
            return Ok(None);
        }
        Ok(Some(Sealed::of(&bytes)?))
    }

    /// Removes a component and its native code.
    ///
    /// # Errors
    /// [`StoreError::Disk`].
    pub fn remove(&self, digest: &str) -> Result<(), StoreError> {
        self.remove_native(digest, None)?;
        let path = self.component_file(digest)?;
        if self.disk.exists(&path)? {
            self.disk.remove_file(&path)?;
            self.disk.sync_dir(&self.folder.join(COMPONENTS))?;
        }
        Ok(())
    }

    /// Removes the native code of a component, but for the file of this name.
    fn remove_native(&self, digest: &str, but: Option<&str>) -> Result<(), StoreError> {
        let folder = self.folder.join(NATIVE);
        for entry in self.disk.list(&folder)? {
            let is_kept = but.is_some_and(|but| entry.name.strip_suffix(MAC).unwrap_or(&entry.name) == but);
            if entry.name.starts_with(digest) && !is_kept {
                self.disk.remove_file(&folder.join(&entry.name))?;
            }
        }
        Ok(())
    }

    /// A file's bytes; None: it is not there, or too large to be ours.
    fn read(&self, path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let file = match self.disk.open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut bytes = Vec::new();
        file.take(bytes_max + 1).read_to_end(&mut bytes)?;
        Ok((bytes.len() as u64 <= bytes_max).then_some(bytes))
    }

    fn component_file(&self, digest: &str) -> Result<PathBuf, StoreError> {
        check_hex(digest)?;
        Ok(self.folder.join(COMPONENTS).join(format!("{digest}.wasm")))
    }

    fn mac(&self, name: &str, bytes: &[u8]) -> Hmac<Sha256> {
        let mut mac = keyed(&self.key);
        // The name's length first, so that no part of it can pass for bytes.
        mac.update(&(name.len() as u64).to_le_bytes());
        mac.update(name.as_bytes());
        mac.update(bytes);
        mac
    }
}

fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    let mut block = [0; 64];
    block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    // A key shorter than a block is padded with zeros, by definition of HMAC.
    Hmac::new(&block.into())
}

fn native_name(digest: &str, target: &str) -> Result<String, StoreError> {
    check_hex(digest)?;
    check_hex(target)?;
    Ok(format!("{digest}-{target}.cwasm"))
}

fn check_hex(text: &str) -> Result<(), StoreError> {
    let is_hex = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, format!("{text:?} is no digest"));
    if is_hex { Ok(()) } else { Err(refused().into()) }
}

fn mac_file(path: &Path) -> PathBuf {
    let mut file = path.as_os_str().to_owned();
    file.push(MAC);
    file.into()
}
