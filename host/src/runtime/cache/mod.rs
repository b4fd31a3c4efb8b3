//! Compiled components on disk: compiling a Python or JavaScript component takes ten seconds, loading one a few
//! milliseconds, and compiling a second one of the same language three.
//!
//! A compiled file is native code. It is therefore written by this host only, into a folder that nobody else can write,
//! and read back only if its checksum agrees; anything else is compiled anew. The name of a file is the digest of the
//! component and of everything in wasmtime that code depends on (version, CPU, settings, metering). Beside whole
//! components ([`COMPONENTS`]) stand the functions that were compiled for them ([`PACKS`], see [`functions`]).

mod folder;
mod functions;

use std::hash::{Hash, Hasher};
use std::path::Path;

use sha2::{Digest, Sha256};
use wasmtime::component::Component;
use xxhash_rust::xxh3::Xxh3;

use self::folder::Folder;
pub(super) use self::functions::FunctionStore;
use super::engine::Sandbox;
use super::error::ComponentError;

/// Ending of compiled components.
const COMPONENTS: &str = ".cwasm";
/// Ending of packs of functions.
const PACKS: &str = ".functions";
/// Bytes of all files. A compiled Python or JavaScript component has 35 MB, its functions as much again if it is the
/// first of its language.
const CACHE_BYTES_MAX: u64 = 1 << 30;
/// Bytes of packs that are read for one compilation, those that were used last first. All of two languages fit.
const PACK_BYTES_MAX: u64 = 128 << 20;
/// Components from this size on bring a runtime that others may have too. Smaller ones compile faster than packs load.
const SHARED_FROM_BYTES: usize = 1 << 20;

/// A folder of compiled components.
#[derive(Debug, Clone)]
pub struct CompileCache {
    folder: Folder,
}

impl CompileCache {
    /// Opens the folder, made if it is missing.
    ///
    /// # Errors
    /// [`ComponentError::Cache`] when it cannot be made, belongs to another user, or others may enter it.
    pub fn open(folder: &Path) -> Result<Self, ComponentError> {
        Folder::open(folder, CACHE_BYTES_MAX).map(|folder| Self { folder })
    }

    /// The compiled form of the component with this digest, from disk where there is a sound one, else compiled and
    /// kept. A cache that cannot be written costs time, not correctness, so it is only warned of.
    pub(super) fn load_or_compile(
        &self,
        sandbox: &Sandbox,
        digest: &str,
        component: &[u8],
        compile: impl FnOnce() -> Result<Component, ComponentError>,
    ) -> Result<Component, ComponentError> {
        let target = target(sandbox);
        let name = format!("{digest}-{target}{COMPONENTS}");
        if let Some(compiled) = self.load(sandbox, &name) {
            return Ok(compiled);
        }
        let compiled = match component.len() >= SHARED_FROM_BYTES {
            true => self.compile_shared(sandbox, digest, &target, compile)?,
            false => compile()?,
        };
        match compiled.serialize() {
            Ok(code) => self.keep(&name, &code),
            Err(error) => tracing::warn!("a compiled component could not be kept: {error:#}"),
        }
        Ok(compiled)
    }

    fn load(&self, sandbox: &Sandbox, name: &str) -> Option<Component> {
        let path = self.folder.file(name);
        self.folder.read(name)?;
        #[expect(unsafe_code, reason = "loading native code is what a compile cache is for; see SAFETY")]
        // SAFETY: the file must be what `Component::serialize` of this wasmtime wrote. The folder is ours alone (owner
        // and mode were checked), only `keep` writes to it, its name carries wasmtime's compatibility hash, and its
        // checksum has just been compared. Files are replaced by renaming, so a mapped file is never written to.
        let loaded = unsafe { Component::deserialize_file(&sandbox.engine, &path) };
        if let Err(error) = &loaded {
            tracing::warn!(file = %path.display(), "not loaded, compiled again: {error:#}");
        }
        self.folder.used(name);
        loaded.ok()
    }

    /// Compiles with the functions that others have left, and leaves those that were new.
    fn compile_shared(
        &self,
        sandbox: &Sandbox,
        digest: &str,
        target: &str,
        compile: impl FnOnce() -> Result<Component, ComponentError>,
    ) -> Result<Component, ComponentError> {
        let ending = format!("-{target}{PACKS}");
        let mut bytes_left = PACK_BYTES_MAX;
        let mut packs = Vec::new();
        for (name, bytes) in self.folder.names(&ending) {
            let Some(left) = bytes_left.checked_sub(bytes) else { break };
            bytes_left = left;
            if let Some(pack) = self.folder.read(&name) {
                packs.push((name, pack));
            }
        }
        let (compiled, functions) = sandbox.functions.compile(packs, compile);
        functions.used.iter().for_each(|name| self.folder.used(name));
        if !functions.pack.is_empty() {
            self.keep(&format!("{digest}{ending}"), &functions.pack);
        }
        compiled
    }

    fn keep(&self, name: &str, bytes: &[u8]) {
        if let Err(error) = self.folder.write(name, bytes) {
            let file = self.folder.file(name);
            tracing::warn!(file = %file.display(), %error, "what was compiled could not be kept");
        }
    }
}

/// What code is compiled for.
pub(super) fn target(sandbox: &Sandbox) -> String {
    let mut compatibility = Xxh3::new();
    sandbox.engine.precompile_compatibility_hash().hash(&mut compatibility);
    sandbox.metering().hash(&mut compatibility);
    format!("{:016x}", compatibility.finish())
}

/// SHA-256 in lower-case hex.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::path::PathBuf;

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
            self.load_component(&self.component);
        }

        fn load_component(&self, component: &[u8]) -> Component {
            let compile = || {
                self.compilations.set(self.compilations.get() + 1);
                Ok(Component::new(&self.sandbox.engine, component).unwrap())
            };
            self.cache.load_or_compile(&self.sandbox, &sha256_hex(component), component, compile).unwrap()
        }

        fn compiled_file(&self) -> PathBuf {
            let name = format!("{}-{}{COMPONENTS}", sha256_hex(&self.component), target(&self.sandbox));
            self.cache.folder.file(&name)
        }

        fn packs(&self) -> Vec<(String, u64)> {
            self.cache.folder.names(PACKS)
        }
    }

    /// A component with a runtime of so many functions, a megabyte of data, and this function of its own.
    fn large(functions: u32, own: &str) -> Vec<u8> {
        let runtime: String = (0..functions)
            .map(|n| format!("(func (param i32) (result i32) (i32.mul (local.get 0) (i32.const {n})))"))
            .collect();
        let data = "x".repeat(SHARED_FROM_BYTES);
        let module = format!("(memory 32) (data (i32.const 0) \"{data}\") {runtime} (func (export \"own\") {own})");
        wat::parse_str(format!("(component (core module {module}))")).unwrap()
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
        let name = fixture.compiled_file().file_name().unwrap().to_str().unwrap().to_owned();
        fixture.cache.folder.write(&name, b"not compiled by wasmtime").unwrap();

        fixture.load();

        assert_eq!(fixture.compilations.get(), 1);
    }

    #[test]
    fn a_second_component_takes_the_functions_of_the_first_and_adds_its_own() {
        let fixture = Fixture::new();
        fixture.load_component(&large(500, "nop"));
        fixture.load_component(&large(500, "unreachable"));

        let packs = fixture.packs();

        // How large a function is depends on the CPU it is compiled for.
        let mut sizes: Vec<u64> = packs.iter().map(|(_, bytes)| *bytes).collect();
        sizes.sort_unstable();
        assert!(matches!(sizes[..], [own, all] if 0 < own && own * 10 < all), "{packs:?}");
    }

    #[test]
    fn code_made_of_functions_of_others_is_the_same_as_code_compiled_alone() {
        let fixture = Fixture::new();
        fixture.load_component(&large(50, "nop"));
        let second = large(50, "unreachable");

        let shared = fixture.load_component(&second);

        let alone = Component::new(&fixture.sandbox.engine, &second).unwrap();
        assert!(shared.serialize().unwrap() == alone.serialize().unwrap());
    }

    #[test]
    fn a_damaged_pack_is_not_used() {
        let fixture = Fixture::new();
        fixture.load_component(&large(500, "nop"));
        let (name, whole) = fixture.packs().remove(0);
        let mut pack = fs::read(fixture.cache.folder.file(&name)).unwrap();
        pack[40] ^= 1;
        fs::write(fixture.cache.folder.file(&name), pack).unwrap();

        fixture.load_component(&large(500, "unreachable"));

        let packs = fixture.packs();
        assert!(packs.len() == 1 && packs[0].0 != name && packs[0].1 * 2 > whole, "{packs:?}");
    }

    #[test]
    fn small_components_leave_no_functions() {
        let fixture = Fixture::new();
        fixture.load();
        assert!(fixture.packs().is_empty());
    }
}
