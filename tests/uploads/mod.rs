//! What a server does with what strangers upload: each is compiled by a child of the real program, within walls.
//!
//! Every attack ends with a code, in bounded time and memory, and the next upload is compiled as if there had been none.
//! Attacks on a limit are made twice: against it, and with it raised, where they must come to something else.

mod attacks;
mod forge;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::thread;

use sha2::{Digest, Sha256};
use tidemill_host::compiler::{
    CompileError, CompileLimits, Compiled, Compiler, Init, InitQuery, NativeStore, StoreError,
};
use tidemill_host::disk::RealDisk;
use tidemill_host::ipc::Sealed;
use tidemill_host::isolation::{Layer, Sandbox as Walls};
use tidemill_host::runtime::{ComponentError, Limits, Metering, Processor, Sandbox};

use self::attacks::{Attack, BOMBS, COSTS, HARMLESS, REFUSALS, limits};
use self::forge::polite;
use crate::support::component;

/// Two at once, as the machines that run this have two cores.
static COMPILER: LazyLock<Compiler> =
    LazyLock::new(|| Compiler::start(Walls::Require, 2, Some(PathBuf::from(env!("CARGO_BIN_EXE_tidemill")))).unwrap());

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn compile_in(bytes: &[u8], query: Option<&InitQuery>, limits: &CompileLimits) -> Result<Compiled, CompileError> {
    COMPILER.compile("upload", &sha256(bytes), &Sealed::of(bytes).unwrap(), query, limits)
}

fn compile(bytes: &[u8]) -> Result<Compiled, CompileError> {
    compile_in(bytes, None, &CompileLimits::default())
}

fn refused(bytes: &[u8], limits: &CompileLimits, code: &str, what: &str) -> CompileError {
    let error = compile_in(bytes, None, limits).map(drop).expect_err(what);
    assert_eq!(error.code(), code, "{what}: {error:?}");
    error
}

/// Makes an attack, against its limit and with the limit raised, and a polite upload after each.
fn meet(attack: &Attack) {
    let bytes = (attack.make)();
    let mut limits = CompileLimits::default();
    (attack.set)(&mut limits);

    let error = refused(&bytes, &limits, attack.code, attack.limit);
    if attack.code == "COMPONENT_OUT_OF_BOUNDS" {
        assert!(error.to_string().contains(&format!("(limit {})", attack.limit)), "{error}");
    }
    compile(&polite()).unwrap();

    (attack.raise)(&mut limits);
    match attack.then {
        Some(code) => drop(refused(&bytes, &limits, code, attack.limit)),
        None => drop(compile_in(&bytes, None, &limits).expect(attack.limit)),
    }
    compile(&polite()).unwrap();
}

#[test]
fn a_processor_is_compiled_described_and_loaded() {
    let bytes = fs::read(component("counter")).unwrap();

    let Compiled { description, native } = compile(&bytes).unwrap();

    assert_eq!(description.digest, sha256(&bytes));
    assert_eq!(description.world_version, "0.1.0");
    let Init::Answered(answer) = &description.init else { panic!("{:?}", description.init) };
    assert!(answer.output.contains("count"), "{answer:?}");
    assert_eq!(answer.variables.len(), 3, "{answer:?}");
    assert!(answer.fuel > 0 && answer.memory_bytes > 0, "{answer:?}");
    let sandbox = Sandbox::new(Metering::Fuel).unwrap();
    assert_eq!(sandbox.target(), COMPILER.target());
    let wasm = Sealed::of(&bytes).unwrap();
    let loaded = Processor::from_native(&sandbox, "counter", &wasm, &native, Limits::default()).unwrap();
    assert_eq!(loaded.digest(), description.digest);
}

#[test]
fn code_for_another_configuration_does_not_load() {
    let bytes = polite();
    let Compiled { native, .. } = compile(&bytes).unwrap();
    let other = Sandbox::new(Metering::Epoch).unwrap();

    let loaded = Processor::from_native(&other, "p", &Sealed::of(&bytes).unwrap(), &native, Limits::default());

    assert!(matches!(loaded.map(drop).unwrap_err(), ComponentError::Native { .. }));
}

#[test]
fn an_init_that_says_no_is_a_warning_and_the_settings_of_a_query_may_mend_it() {
    let bytes = fs::read(component("conformance")).unwrap();
    let Init::Failed { code, .. } = compile(&bytes).unwrap().description.init else { panic!("it answered") };
    assert_eq!(code, "NO_SUCH_PROGRAM");

    let query = InitQuery { parameters: vec![("program".to_owned(), "crud".to_owned())], ..InitQuery::default() };
    let init = compile_in(&bytes, Some(&query), &CompileLimits::default()).unwrap().description.init;

    assert!(matches!(init, Init::Answered(_)), "{init:?}");
}

#[test]
fn the_child_is_within_walls() {
    for layer in [Layer::Seccomp, Layer::LandlockFiles, Layer::NoNewPrivileges, Layer::ResourceLimits] {
        assert!(COMPILER.walls().is_active(layer), "{layer:?}: {:?}", COMPILER.walls());
    }
}

#[test]
fn bombs_are_found_before_they_are_compiled() {
    BOMBS.iter().for_each(meet);
}

#[test]
fn what_costs_too_much_kills_the_child_only() {
    COSTS.iter().for_each(meet);
}

#[test]
fn what_is_no_processor_is_refused_with_the_reason() {
    for (what, make, code) in REFUSALS {
        refused(&make(), &CompileLimits::default(), code, what);
    }
    compile(&polite()).unwrap();
}

#[test]
fn what_is_only_unusual_is_compiled() {
    for (what, make) in HARMLESS {
        compile(&make()).expect(what);
    }
}

#[test]
fn an_upload_that_is_cut_anywhere_is_refused() {
    let whole = polite();
    for cut in (8..whole.len()).step_by(whole.len() / 40) {
        let error = compile(&whole[..cut]).map(drop).expect_err("a part of a component");
        let codes = ["COMPONENT_INVALID", "COMPONENT_WORLD_MISMATCH"];
        assert!(codes.contains(&error.code()), "cut at {cut}: {error:?}");
    }
}

#[test]
fn an_upload_that_is_too_large_is_not_even_handed_over() {
    let error = compile(&vec![0; (96 << 20) + 1]).map(drop).unwrap_err();
    assert_eq!(error.code(), "COMPONENT_TOO_LARGE");
}

#[test]
fn uploads_wait_for_their_turn_and_all_have_one() {
    let bytes = polite();
    thread::scope(|scope| {
        let uploads: Vec<_> = (0..6).map(|_| scope.spawn(|| compile(&bytes).is_ok())).collect();
        assert!(uploads.into_iter().all(|upload| upload.join().unwrap()));
    });
}

#[test]
fn a_program_that_is_no_compiler_is_told() {
    let error = Compiler::start(Walls::Require, 1, Some(PathBuf::from("/bin/true"))).map(drop).unwrap_err();
    assert_eq!(error.code(), "CHILD_DIED_EARLY");
}

#[test]
fn every_limit_is_met_by_an_attack() {
    let met: BTreeSet<_> = BOMBS.iter().chain(COSTS).map(|attack| attack.limit).collect();
    let left_out: Vec<_> = limits().into_iter().filter(|limit| !met.contains(limit)).collect();
    assert!(left_out.is_empty(), "limits without an attack: {left_out:?}");
}

/// A store that holds the native code of a polite processor.
struct Stored {
    folder: tempfile::TempDir,
    store: NativeStore,
    digest: String,
    target: &'static str,
}

impl Stored {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Self::open(folder.path(), [1; 32]);
        let (bytes, target) = (polite(), COMPILER.target());
        let digest = sha256(&bytes);
        store.keep_component(&digest, &bytes).unwrap();
        store.keep_native(&digest, target, &compile(&bytes).unwrap().native).unwrap();
        Self { folder, store, digest, target }
    }

    fn open(folder: &Path, key: [u8; 32]) -> NativeStore {
        NativeStore::open(Arc::new(RealDisk), folder, key).unwrap()
    }

    fn native_file(&self) -> PathBuf {
        self.folder.path().join("native").join(format!("{}-{}.cwasm", self.digest, self.target))
    }

    fn is_there(&self) -> bool {
        self.store.native(&self.digest, self.target).unwrap().is_some()
    }
}

#[test]
fn what_was_kept_is_given_back() {
    let stored = Stored::new();
    assert_eq!(stored.store.component(&stored.digest).unwrap().unwrap().bytes().unwrap(), polite());
    assert!(stored.is_there());
    stored.store.remove(&stored.digest).unwrap();
    assert!(!stored.is_there() && stored.store.component(&stored.digest).unwrap().is_none());
}

#[test]
fn native_code_that_was_changed_cut_or_made_by_others_counts_as_none() {
    let stored = Stored::new();
    let file = stored.native_file();
    let code = fs::read(&file).unwrap();
    let mut changed = code.clone();
    changed[code.len() / 2] ^= 1;
    for forged in [changed.as_slice(), &code[..code.len() - 1], b""] {
        fs::write(&file, forged).unwrap();
        assert!(!stored.is_there());
    }
    fs::write(&file, &code).unwrap();
    assert!(stored.is_there());
    assert!(Stored::open(stored.folder.path(), [2; 32]).native(&stored.digest, stored.target).unwrap().is_none());
}

#[test]
fn native_code_of_another_component_counts_as_none() {
    let stored = Stored::new();
    let other = "0".repeat(64);
    let elsewhere = stored.folder.path().join("native").join(format!("{other}-{}.cwasm", stored.target));
    fs::copy(stored.native_file(), &elsewhere).unwrap();
    fs::copy(stored.native_file().with_extension("cwasm.mac"), elsewhere.with_extension("cwasm.mac")).unwrap();

    assert!(stored.store.native(&other, stored.target).unwrap().is_none());
}

#[test]
fn code_of_an_earlier_target_goes_when_there_is_new_code() {
    let stored = Stored::new();
    let native = stored.store.native(&stored.digest, stored.target).unwrap().unwrap();

    stored.store.keep_native(&stored.digest, "abc", &native).unwrap();

    assert!(!stored.is_there());
    assert!(stored.store.native(&stored.digest, "abc").unwrap().is_some());
}

#[test]
fn a_component_with_other_bytes_than_its_name_says_is_damaged() {
    let stored = Stored::new();
    fs::write(stored.folder.path().join("components").join(format!("{}.wasm", stored.digest)), b"other").unwrap();
    assert!(matches!(stored.store.component(&stored.digest), Err(StoreError::ComponentDamaged { .. })));
}

#[test]
fn a_name_that_is_no_digest_is_never_a_path() {
    let stored = Stored::new();
    for name in ["../secret", "", "ABC", "a/b", "0\0"] {
        assert!(stored.store.component(name).is_err(), "{name:?}");
        assert!(stored.store.native(name, "0").is_err() && stored.store.native("0", name).is_err(), "{name:?}");
    }
}
