//! What a fuzzer calls: one function for each kind of bytes that comes from outside.
//!
//! The functions stand beside what they try, in modules named `fuzz`. Each takes any bytes and panics on what must never be:
//! a parser that panics, a row that is accepted and does not come back as the same bytes, text that reads otherwise when it
//! arrives in other pieces. `fuzz/` hands them to libFuzzer; the test below replays its corpus, changed a little.
//!
//! Only built for tests and for fuzzers.

use crate::{compiler, config, connect, engine, ingest, ipc, log, record, results, runtime};

/// Takes any bytes, and panics on what must never be.
pub type Target = fn(&[u8]);

/// Each target with its name, which is also that of its file in `fuzz/fuzz_targets` and of its corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("bookkeeping", connect::fuzz::bookkeeping),
    ("checkpoint_files", engine::checkpoint::fuzz::checkpoint_files),
    ("commit_records", engine::fuzz::commit_records),
    ("compiler_messages", compiler::fuzz::compiler_messages),
    ("components", runtime::fuzz::components),
    ("ddl", record::fuzz::ddl),
    ("hosted_queries", config::fuzz::hosted_queries),
    ("ingest_bodies", ingest::fuzz::ingest_bodies),
    ("ingest_records", ingest::fuzz::ingest_records),
    ("input_files", connect::fuzz::input_files),
    ("json_rows", record::fuzz::json_rows),
    ("log_segments", log::fuzz::log_segments),
    ("ops", runtime::fuzz::ops),
    ("packed_rows", record::fuzz::packed_rows),
    ("plans", runtime::fuzz::plans),
    ("query_files", config::fuzz::query_files),
    ("results", results::fuzz::results),
    ("text_rows", connect::fuzz::text_rows),
    ("worker_reports", ipc::fuzz::worker_reports),
];

/// Runs the target of this name.
///
/// # Panics
/// On a name that is none, and on what must never be.
#[expect(clippy::panic, reason = "a fuzzer is told by a panic")]
pub fn run(target: &str, bytes: &[u8]) {
    match TARGETS.iter().find(|(name, _)| *name == target) {
        Some((_, body)) => body(bytes),
        None => panic!("there is no target {target}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::{Path, PathBuf};

    use super::*;

    /// Changed inputs of each target, over all files of its corpus.
    const MUTATIONS: u64 = 1_000;

    fn fuzz_folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
    }

    fn names_in(folder: &Path) -> BTreeSet<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn every_target_has_a_corpus_and_a_program_of_its_own() {
        let targets: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(names_in(&fuzz_folder().join("corpus")), targets);
        assert_eq!(names_in(&fuzz_folder().join("fuzz_targets")), targets);
    }

    /// Says which input it was before the panic goes on.
    fn check(target: &str, what: &str, input: &[u8]) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(target, input))) {
            println!("target {target}, {what}: b\"{}\"", input.escape_ascii());
            std::panic::resume_unwind(panic);
        }
    }

    fn replay(target: &str) {
        let mut corpus: Vec<_> = fs::read_dir(fuzz_folder().join("corpus").join(target)).unwrap().collect();
        corpus.sort_by_key(|entry| entry.as_ref().unwrap().path());
        let inputs: Vec<_> = corpus.into_iter().map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
        for (number, input) in inputs.iter().enumerate() {
            check(target, &format!("file {number} of the corpus"), input);
        }
        for seed in 0..MUTATIONS {
            let mut dice = Dice(seed);
            let input = dice.one_of(&inputs).clone();
            let other = dice.one_of(&inputs).clone();
            check(target, &format!("seed {seed}"), &dice.changed(input, &other));
        }
    }

    macro_rules! replays {
        ($($target:ident)*) => {
            #[test]
            fn every_target_is_replayed() {
                let replayed = BTreeSet::from([$(stringify!($target)),*]);
                assert_eq!(replayed, TARGETS.iter().map(|(name, _)| *name).collect());
            }

            mod replayed {
                $(#[test] fn $target() { super::replay(stringify!($target)); })*
            }
        };
    }

    replays!(bookkeeping checkpoint_files commit_records compiler_messages components ddl hosted_queries ingest_bodies ingest_records input_files json_rows log_segments ops packed_rows plans query_files results text_rows worker_reports);

    /// Makes the same changes for the same seed.
    struct Dice(u64);

    impl Dice {
        /// SplitMix64.
        fn roll(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }

        fn below(&mut self, end: usize) -> usize {
            usize::try_from(self.roll() % end.max(1) as u64).unwrap()
        }

        fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
            &all[self.below(all.len())]
        }

        /// The input with one to four changes, which take pieces of another.
        fn changed(&mut self, mut input: Vec<u8>, other: &[u8]) -> Vec<u8> {
            for _ in 0..=self.below(4) {
                let at = self.below(input.len() + 1);
                let end = (at + 1 + self.below(8)).min(input.len());
                match self.below(7) {
                    0 => input.truncate(at),
                    1 => drop(input.drain(at.min(end)..end)),
                    2 => input.insert(at, self.roll() as u8),
                    3 => input.splice(at..at, input[at.min(end)..end].to_vec()).for_each(drop),
                    4 => {
                        let from = self.below(other.len() + 1);
                        let until = (from + self.below(64)).min(other.len());
                        input.splice(at..at, other[from..until].iter().copied()).for_each(drop);
                    }
                    5 => input[at.min(end)..end].fill(*self.one_of(&[0, 1, 0x7f, 0x80, 0xff, b'0', b'"', b'\n'])),
                    _ => {
                        if let Some(byte) = input.get_mut(at) {
                            *byte ^= 1 << (self.roll() % 8);
                        }
                    }
                }
            }
            input
        }
    }
}
