//! Conformance with Spark's transformWithState: the cases of `tests/conformance`, which say there what they are.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use tidemill_host::testkit::{Case, Kit, Report};

use super::languages::{Language, component_in};
use super::support::{component, repository};

mod coverage;

/// Numbers of workers that every case runs with, unless it says a number itself.
const WORKERS: [i64; 2] = [1, 3];

fn folder() -> PathBuf {
    repository().join("tests/conformance")
}

/// All cases: those of any language, and those of what one language alone can do.
fn cases() -> Vec<Case> {
    let paths = ["cases", "languages"]
        .into_iter()
        .flat_map(|place| files(&folder().join(place)))
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml") && !path.ends_with("query.toml"));
    let cases = paths.map(|path| Case::load(&path).unwrap_or_else(|error| panic!("{error}")));
    cases.collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn kit(workers: i64) -> Kit {
    kit_of(component("script").parent().unwrap(), workers)
}

/// A kit for the components of a folder.
fn kit_of(components: &Path, workers: i64) -> Kit {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache/compiled");
    let settings = format!("query.workers = {workers}").parse().unwrap();
    Kit::new(components, Some(&cache)).unwrap().with_defaults(settings)
}

#[test]
fn every_case_passes() {
    // To work on some cases: those whose name has the text in it.
    let wanted = std::env::var("TIDEMILL_CASE").unwrap_or_default();
    let cases: Vec<_> = cases().into_iter().filter(|case| case.name.contains(&wanted)).collect();
    let mut failed = 0;
    for workers in WORKERS {
        for (case, report) in cases.iter().zip(run(&kit(workers), &cases)) {
            if !report.passed() {
                failed += 1;
                println!("with {workers} worker(s), {}: {}\n{report}", case.shows.join(" "), case.about);
            }
        }
    }
    let steps: usize = cases.iter().map(|case| case.steps.len()).sum();
    let differing = cases.iter().flat_map(|case| &case.steps).filter(|step| step.differs.is_some()).count();
    println!("{} cases, {steps} steps, {differing} of them differ from Spark, {failed} failed", cases.len());
    assert_eq!(failed, 0, "see the differences above");
}

/// The programs of the recorded scenarios are there in every language, with the same rows, metrics and errors.
#[test]
fn cases_of_the_recorded_programs_pass_in_every_language() {
    let recorded = |case: &Case| case.folder.ends_with("spark") || case.component.as_deref() == Some("conformance");
    let cases: Vec<_> = cases().into_iter().filter(recorded).collect();
    assert!(cases.len() > 100, "{} cases", cases.len());
    let mut failed = 0;
    for language in Language::ALL {
        let components = TempDir::new().unwrap();
        symlink(component_in(language, "conformance"), components.path().join("conformance.wasm")).unwrap();
        for (case, report) in cases.iter().zip(run(&kit_of(components.path(), 1), &cases)) {
            if !report.passed() {
                failed += 1;
                println!("{language:?}, {}: {}\n{report}", case.name, case.about);
            }
        }
    }
    assert_eq!(failed, 0, "see the differences above");
}

/// Runs cases on all cores; the reports are in the order of the cases.
fn run(kit: &Kit, cases: &[Case]) -> Vec<Report> {
    let next = AtomicUsize::new(0);
    let reports = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(number) else { break };
                    let report = kit.run(case);
                    reports.lock().unwrap().push((number, report));
                }
            });
        }
    });
    let mut reports = reports.into_inner().unwrap();
    reports.sort_by_key(|(number, _)| *number);
    reports.into_iter().map(|(_, report)| report).collect()
}

#[test]
fn cases_are_those_that_the_recorded_answers_make() {
    let script = folder().join("generate.py");
    match Command::new("python3").arg(script).arg("--check").output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => println!("skipped: python3 cannot be run: {error}"),
    }
}

/// That each fault turns its case red is for `scripts/mutants.sh`, which takes an hour; that it still can be put in, here.
#[test]
fn every_mutant_still_applies_and_names_a_case() {
    let mutants: Vec<_> = files(&folder().join("mutants"))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|it| it == "patch"))
        .collect();
    let cases: Vec<_> = cases().into_iter().map(|case| case.name).collect();
    for path in &mutants {
        let text = fs::read_to_string(path).unwrap();
        let named = |what: &str| text.lines().find_map(|line| line.strip_prefix(what)).unwrap_or_default();
        let source = fs::read_to_string(repository().join(named("file: "))).unwrap();
        let before: Vec<_> = text.lines().filter_map(|line| line.strip_prefix('-')).collect();
        let source: Vec<_> = source.lines().collect();
        let found = source.windows(before.len()).filter(|lines| *lines == before).count();
        assert_eq!(
            found,
            1,
            "{}: its lines stand {found} times in {}; mend the mutant",
            path.display(),
            named("file: ")
        );
        assert!(cases.iter().any(|case| case == named("case: ")), "{}: there is no such case", path.display());
    }
    assert!(mutants.len() >= 25, "{} mutants", mutants.len());
}
