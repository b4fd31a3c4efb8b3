//! Every example gives the same rows in every language that it is in, and passes its cases.

use std::fs;

use tempfile::TempDir;

use super::{Language, component_in, folders_of};
use crate::support::{Example, repository, rows, succeed, tidemill};

/// Examples that are in every language.
const IN_ALL: [&str; 5] = ["counter", "counter-initial-state", "heartbeat", "sessions", "dedup"];

/// Examples with the languages that they are in, by their folders.
fn examples() -> Vec<(String, Language)> {
    let folders = fs::read_dir(repository().join("examples")).unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<_> = folders
        .filter(|folder| folder.path().is_dir())
        .map(|folder| folder.file_name().into_string().unwrap())
        .collect();
    names.sort();
    let in_languages = |name: String| {
        let languages = Language::ALL.into_iter().filter({
            let folder = repository().join("examples").join(&name);
            move |language| folders_of(*language).iter().any(|language| folder.join(language).is_dir())
        });
        languages.map(move |language| (name.clone(), language)).collect::<Vec<_>>()
    };
    names.into_iter().flat_map(in_languages).collect()
}

#[test]
fn the_first_five_are_in_every_language() {
    let examples = examples();
    for name in IN_ALL {
        let count = examples.iter().filter(|(other, _)| other == name).count();
        assert_eq!(count, Language::ALL.len(), "{name} is in {count} languages");
    }
    assert!(examples.contains(&("flight-rules".to_owned(), Language::Python)));
    assert!(examples.contains(&("top-pages".to_owned(), Language::JavaScript)));
}

#[test]
fn the_rows_are_the_same_in_every_language_with_any_number_of_workers() {
    for (name, language) in others() {
        let example = Example::running(&name, &component_in(language, &name));
        for workers in ["1", "5"] {
            let place = TempDir::new().unwrap();

            succeed(&mut example.command(place.path(), ["--workers", workers]));

            assert!(
                rows(&place.path().join("rows")) == example.expected(),
                "{name} in {language:?} with {workers} workers gives other rows; compare them with expected/"
            );
        }
    }
}

#[test]
fn the_cases_pass_in_every_language() {
    for (name, language) in others() {
        let example = Example::running(&name, &component_in(language, &name));
        let said = succeed(tidemill().arg("test").arg(example.path().join("cases")));
        assert!(said.out.contains(" passed, 0 failed"), "{name} in {language:?}: {}", said.out);
    }
}

/// All but Rust, which the tests of examples and of the test kit run.
fn others() -> Vec<(String, Language)> {
    examples().into_iter().filter(|(_, language)| *language != Language::Rust).collect()
}
