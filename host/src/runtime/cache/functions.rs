//! Compiled functions that components share. Two Python programs differ in a few modules and a heap image; their ten
//! thousand functions of CPython are the same, and compiling those is what takes ten seconds.
//!
//! Cranelift asks here for each function by a digest of all that its code depends on (its intermediate form, the
//! compiler's version, CPU and flags), and hands over what it had to compile. What one compilation hands over becomes
//! one file, a pack, which later compilations read whole. Outside of a compilation the store holds nothing.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use wasmtime::CacheStore;

/// Digest of a function, SHA-256.
type Key = [u8; 32];

/// Where an engine looks for functions; made with the engine, opened for one compilation at a time.
#[derive(Debug, Default)]
pub(in super::super) struct FunctionStore {
    compiling: Mutex<()>,
    shelf: RwLock<Option<Shelf>>,
}

/// Functions of earlier compilations, and those of this one.
#[derive(Debug, Default)]
struct Shelf {
    packs: Vec<Pack>,
    /// Where each function is: the number of its pack, and its place there.
    places: HashMap<Key, (usize, Range<usize>)>,
    compiled: Mutex<Vec<u8>>,
}

/// The functions that one compilation had to compile: for each its key, `length:u32`, and its code.
#[derive(Debug)]
struct Pack {
    name: String,
    bytes: Vec<u8>,
    used: AtomicBool,
}

/// What a compilation leaves.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    /// A new pack; empty if all functions were found.
    pub(super) pack: Vec<u8>,
    /// Names of the packs in which functions were found.
    pub(super) used: Vec<String>,
}

impl FunctionStore {
    /// Runs a compilation with the functions of these packs. Others that use the same engine wait.
    pub(super) fn compile<T>(&self, packs: Vec<(String, Vec<u8>)>, compile: impl FnOnce() -> T) -> (T, Compiled) {
        let _one_at_a_time = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        *self.shelf.write().unwrap_or_else(PoisonError::into_inner) = Some(Shelf::of(packs));
        let result = compile();
        let shelf = self.shelf.write().unwrap_or_else(PoisonError::into_inner).take();
        (result, shelf.map(Shelf::into_compiled).unwrap_or_default())
    }
}

impl CacheStore for FunctionStore {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        let shelf = self.shelf.read().unwrap_or_else(PoisonError::into_inner);
        shelf.as_ref()?.find(key).map(|code| Cow::Owned(code.to_vec()))
    }

    fn insert(&self, key: &[u8], code: Vec<u8>) -> bool {
        let shelf = self.shelf.read().unwrap_or_else(PoisonError::into_inner);
        shelf.as_ref().is_some_and(|shelf| shelf.add(key, &code))
    }
}

impl Shelf {
    fn of(packs: Vec<(String, Vec<u8>)>) -> Self {
        let mut shelf = Self::default();
        for (name, bytes) in packs {
            let pack = Pack { name, bytes, used: AtomicBool::new(false) };
            let number = shelf.packs.len();
            shelf.places.extend(pack.functions().map(|(key, place)| (key, (number, place))));
            shelf.packs.push(pack);
        }
        shelf
    }

    fn find(&self, key: &[u8]) -> Option<&[u8]> {
        let (pack, place) = self.places.get(key)?;
        let pack = self.packs.get(*pack)?;
        pack.used.store(true, Ordering::Relaxed);
        pack.bytes.get(place.clone())
    }

    fn add(&self, key: &[u8], code: &[u8]) -> bool {
        let (Ok(key), Ok(length)) = (Key::try_from(key), u32::try_from(code.len())) else { return false };
        let mut compiled = self.compiled();
        compiled.extend_from_slice(&key);
        compiled.extend_from_slice(&length.to_le_bytes());
        compiled.extend_from_slice(code);
        true
    }

    fn compiled(&self) -> MutexGuard<'_, Vec<u8>> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn into_compiled(self) -> Compiled {
        let pack = std::mem::take(&mut *self.compiled());
        let used = |pack: Pack| pack.used.into_inner().then_some(pack.name);
        Compiled { pack, used: self.packs.into_iter().filter_map(used).collect() }
    }
}

impl Pack {
    /// Each function and its place. Ends where the bytes make no sense.
    fn functions(&self) -> impl Iterator<Item = (Key, Range<usize>)> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (key, rest) = self.bytes.get(at..)?.split_first_chunk::<32>()?;
            let (length, rest) = rest.split_first_chunk::<4>()?;
            let length = u32::from_le_bytes(*length) as usize;
            rest.get(..length)?;
            let begin = at + key.len() + 4;
            at = begin + length;
            Some((*key, begin..at))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Key = [1; 32];
    const B: Key = [2; 32];

    fn pack(functions: &[(Key, &[u8])]) -> Vec<u8> {
        let store = FunctionStore::default();
        let compile = || functions.iter().for_each(|(key, code)| assert!(store.insert(key, code.to_vec())));
        store.compile(vec![], compile).1.pack
    }

    #[test]
    fn what_one_compilation_hands_over_the_next_one_finds() {
        let packs = vec![("first".to_owned(), pack(&[(A, b"code of a"), (B, b"")]))];
        let store = FunctionStore::default();

        let (found, compiled) = store.compile(packs, || [A, B].map(|key| store.get(&key).unwrap().into_owned()));

        assert_eq!(found, [b"code of a".to_vec(), vec![]]);
        assert!(compiled.pack.is_empty());
        assert_eq!(compiled.used, ["first"]);
    }

    #[test]
    fn a_pack_in_which_nothing_is_found_is_not_used() {
        let packs = vec![("a".to_owned(), pack(&[(A, b"a")])), ("b".to_owned(), pack(&[(B, b"b")]))];
        let store = FunctionStore::default();
        let (_, compiled) = store.compile(packs, || store.get(&B).is_some());
        assert_eq!(compiled.used, ["b"]);
    }

    #[test]
    fn outside_of_a_compilation_there_is_nothing() {
        let store = FunctionStore::default();
        store.compile(vec![("a".to_owned(), pack(&[(A, b"a")]))], || ());
        assert!(store.get(&A).is_none());
        assert!(!store.insert(&A, vec![]));
    }

    #[test]
    fn a_pack_that_is_cut_anywhere_gives_what_is_whole() {
        let whole = pack(&[(A, b"code of a"), (B, b"code of b")]);
        for length in 0..whole.len() {
            let store = FunctionStore::default();
            let cut = vec![("cut".to_owned(), whole[..length].to_vec())];
            let (found, _) = store.compile(cut, || store.get(&A).map(Cow::into_owned));
            assert!(found.is_none_or(|code| code == b"code of a"));
        }
    }
}
