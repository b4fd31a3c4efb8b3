//! Compiled components on disk: compiling a Python or JavaScript component takes ten seconds, loading one a few
//! milliseconds.
//!
//! A compiled file is native code. It is therefore written by this host only, into a folder that nobody else can write,
//! and read back only if its checksum agrees; anything else is compiled anew. The name of a file is the digest of the
//! component and of everything in wasmtime that code depends on (version, CPU, settings, metering).

use std::fs::{self, DirBuilder};
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use wasmtime::component::Component;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::engine::Sandbox;
use super::error::ComponentError;

/// A folder of compiled components.
#[derive(Debug, Clone)]
pub struct CompileCache {
    folder: PathBuf,
}

impl CompileCache {
    /// Opens the folder, made if it is missing.
    ///
    /// # Errors
    /// [`ComponentError::Cache`] when it cannot be made, belongs to another user, or others may enter it.
    pub fn open(folder: &Path) -> Result<Self, ComponentError> {
        let unusable = |reason: String| ComponentError::Cache { folder: folder.to_owned(), reason };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|e| unusable(e.to_string()))?;
        let metadata = fs::metadata(folder).map_err(|e| unusable(e.to_string()))?;
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(unusable(
                "it belongs to another user, who could put native code there; choose another folder".into(),
            ));
        }
        if metadata.mode() & 0o077 != 0 {
            return Err(unusable("other users may enter it; run `chmod 700` on it or choose another folder".into()));
        }
        Ok(Self { folder: folder.to_owned() })
    }

    /// The compiled form of `component`, from disk where there is a sound one, else compiled and kept. A cache that
    /// cannot be written costs time, not correctness, so it is only warned of.
    pub(super) fn load_or_compile(
        &self,
        sandbox: &Sandbox,
        component: &[u8],
        compile: impl FnOnce() -> Result<Component, ComponentError>,
    ) -> Result<Component, ComponentError> {
        let path = self.folder.join(file_stem(sandbox, component) + ".cwasm");
        if let Some(compiled) = load(sandbox, &path) {
            return Ok(compiled);
        }
        let compiled = compile()?;
        if let Err(error) = self.keep(&path, &compiled) {
            tracing::warn!(folder = %self.folder.display(), %error, "a compiled component could not be kept");
        }
        Ok(compiled)
    }

    fn keep(&self, path: &Path, compiled: &Component) -> io::Result<()> {
        let code = compiled.serialize().map_err(|e| io::Error::other(format!("{e:#}")))?;
        self.write(path, &code)?;
        self.write(&checksum_path(path), checksum(&code).as_bytes())
    }

    /// A reader sees the old file, the new file or none, never half of one.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(bytes)?;
        file.persist(path).map_err(|e| e.error)?;
        Ok(())
    }
}

/// Name of a compiled file: what was compiled, and for what.
pub(super) fn file_stem(sandbox: &Sandbox, component: &[u8]) -> String {
    let mut compatibility = Xxh3::new();
    sandbox.engine.precompile_compatibility_hash().hash(&mut compatibility);
    sandbox.metering().hash(&mut compatibility);
    format!("{}-{:016x}", sha256_hex(component), compatibility.finish())
}

/// SHA-256 in lower-case hex.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn load(sandbox: &Sandbox, path: &Path) -> Option<Component> {
    let expected = fs::read_to_string(checksum_path(path)).ok()?;
    let code = fs::read(path).ok()?;
    if checksum(&code) != expected {
        tracing::warn!(file = %path.display(), "a compiled component is damaged; it is compiled again");
        return None;
    }
    drop(code);
    #[expect(unsafe_code, reason = "loading native code is what a compile cache is for; see SAFETY")]
    // SAFETY: the file must be what `Component::serialize` of this wasmtime wrote. The folder is ours alone (owner and
    // mode were checked), only `keep` writes to it, its name carries wasmtime's compatibility hash, and its checksum
    // has just been compared. Files are replaced by renaming, so a mapped file is never written to.
    let loaded = unsafe { Component::deserialize_file(&sandbox.engine, path) };
    loaded.inspect_err(|error| tracing::warn!(file = %path.display(), "not loaded, compiled again: {error:#}")).ok()
}

fn checksum_path(path: &Path) -> PathBuf {
    path.with_extension("xxh3")
}

fn checksum(code: &[u8]) -> String {
    format!("{:032x}", xxh3_128(code))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::unix::fs::PermissionsExt;

    use super::super::engine::Metering;
    use super::*;

    struct Fixture {
        _folder: tempfile::TempDir,
        cache: CompileCache,
        sandbox: Sandbox,
        component: Vec<u8>,
        compilations: Cell<u32>,
    }

    impl Fixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            Self {
                cache: CompileCache::open(&folder.path().join("cache")).unwrap(),
                _folder: folder,
                sandbox: Sandbox::new(Metering::Epoch).unwrap(),
                component: wat::parse_str("(component (core module (func (export \"f\"))))").unwrap(),
                compilations: Cell::new(0),
            }
        }

        fn load(&self) {
            self.cache
                .load_or_compile(&self.sandbox, &self.component, || {
                    self.compilations.set(self.compilations.get() + 1);
                    Ok(Component::new(&self.sandbox.engine, &self.component).unwrap())
                })
                .unwrap();
        }

        fn compiled_file(&self) -> PathBuf {
            self.cache.folder.join(file_stem(&self.sandbox, &self.component) + ".cwasm")
        }
    }

    #[test]
    fn a_component_is_compiled_once() {
        let fixture = Fixture::new();
        fixture.load();
        fixture.load();
        assert_eq!(fixture.compilations.get(), 1);
    }

    #[test]
    fn a_damaged_file_is_compiled_again_and_replaced() {
        let fixture = Fixture::new();
        fixture.load();
        let mut code = fs::read(fixture.compiled_file()).unwrap();
        let middle = code.len() / 2;
        code[middle] ^= 1;
        fs::write(fixture.compiled_file(), code).unwrap();

        fixture.load();
        fixture.load();

        assert_eq!(fixture.compilations.get(), 2);
    }

    #[test]
    fn a_foreign_file_with_a_matching_checksum_is_compiled_again() {
        let fixture = Fixture::new();
        fs::write(fixture.compiled_file(), b"not compiled by wasmtime").unwrap();
        fs::write(checksum_path(&fixture.compiled_file()), checksum(b"not compiled by wasmtime")).unwrap();

        fixture.load();

        assert_eq!(fixture.compilations.get(), 1);
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let error = CompileCache::open(folder.path()).unwrap_err();
        assert_eq!(error.code(), "COMPILE_CACHE_UNUSABLE");
    }
}
