//! `tidemill new` to a running query.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use super::{Begun, LANGUAGES, cargo_target, is_wanted, source};
use crate::support::{fail_with, json_lines, repository, rows, succeed, tidemill};

/// Begins, builds, tests and runs a project, and runs its tests in the language.
fn goes_from_new_to_rows(language: &str) {
    if !is_wanted(language) {
        return;
    }
    let project = Begun::new(language);

    let built = succeed(&mut project.command(["build", "--offline"]));
    let tested = succeed(&mut project.command(["test"]));
    succeed(&mut project.command(["run", "--workers", "1"]));
    succeed(&mut native_tests(language, &project));

    assert!(built.out.starts_with("component     build/visits.wasm\n"), "{}", built.out);
    assert!(built.out.contains("state         value visits <value BIGINT>"), "{}", built.out);
    assert!(tested.out.contains("1 passed, 0 failed"), "{}", tested.out);
    let mut rows: Vec<_> = rows(&project.path().join("out")).lines().map(str::to_owned).collect();
    rows.sort();
    assert_eq!(rows, [r#"{"user":"ada","visits":3,"here":true}"#, r#"{"user":"bob","visits":1,"here":true}"#]);
}

/// The tests of the project as its README says to run them.
fn native_tests(language: &str, project: &Begun) -> Command {
    let words: &[&str] = match language {
        "rust" => &["cargo", "test", "--offline"],
        "python" => &["python3", "-m", "unittest"],
        "js" | "ts" => &["npm", "test"],
        _ => &["go", "test"],
    };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(project.path()).env("CARGO_TARGET_DIR", cargo_target());
    command.env("PYTHONPATH", ".tidemill/sdk/python");
    command
}

#[test]
fn a_project_in_rust_goes_from_new_to_rows() {
    goes_from_new_to_rows("rust");
}

#[test]
fn a_project_in_python_goes_from_new_to_rows() {
    goes_from_new_to_rows("python");
}

#[test]
fn a_project_in_javascript_goes_from_new_to_rows() {
    goes_from_new_to_rows("js");
}

#[test]
fn a_project_in_typescript_goes_from_new_to_rows() {
    goes_from_new_to_rows("ts");
}

#[test]
fn a_project_in_go_goes_from_new_to_rows() {
    goes_from_new_to_rows("go");
}

#[test]
fn a_project_that_was_not_built_is_told_so_once() {
    let project = Begun::new("go");

    for command in ["test", "run"] {
        let said = fail_with(&mut project.command([command]), "COMPONENT_UNREADABLE");
        assert_eq!((said.out.as_str(), said.err.lines().count()), ("", 1), "{}", said.err);
        assert!(said.err.contains("build/visits.wasm") && said.err.contains("tidemill build"), "{}", said.err);
    }
}

#[test]
fn the_processors_that_the_page_shows_give_the_same_rows() {
    for (language, tests) in [("python", "test_processor.py"), ("ts", "test/processor.test.ts"), ("go", "main_test.go")]
    {
        if is_wanted(language) {
            assert_eq!(
                rows_of_the_page("authors.md", language, tests),
                "{\"account\":\"a\",\"total\":5}\n",
                "{language}"
            );
        }
    }
}

#[test]
fn the_processor_that_comes_from_pyspark_runs_as_the_page_shows_it() {
    if is_wanted("python") {
        let rows = rows_of_the_page("python.md", "python", "test_processor.py");
        assert_eq!(rows, "{\"account\":\"a\",\"total\":5,\"largest\":3}\n");
    }
}

/// What the first processor of a page in a language makes of two payments, 2 and 3. `tests`: of the project that it goes
/// into, about another processor.
fn rows_of_the_page(page: &str, language: &str, tests: &str) -> String {
    let page = fs::read_to_string(repository().join("docs").join(page)).unwrap();
    let shown = page.split(&format!("```{language}\n")).nth(1).unwrap().split("```").next().unwrap();
    let project = Begun::new(language);
    fs::write(project.path().join(source(language)), shown).unwrap();
    fs::remove_file(project.path().join(tests)).unwrap();
    project.change("query.toml", "user STRING, page STRING", "account STRING, amount BIGINT");
    project.change("query.toml", "key = [\"user\"]", "key = [\"account\"]");
    let payments = "{\"account\":\"a\",\"amount\":2}\n{\"account\":\"a\",\"amount\":3}\n";
    fs::write(project.path().join("input/visits.jsonl"), payments).unwrap();

    succeed(&mut project.command(["build", "--offline"]));
    succeed(&mut project.command(["run"]));

    rows(&project.path().join("out"))
}

#[test]
fn the_readme_of_a_project_names_its_commands_and_files() {
    for (language, _) in LANGUAGES {
        let project = Begun::new(language);
        let readme = fs::read_to_string(project.path().join("README.md")).unwrap();
        for command in ["$ tidemill build", "$ tidemill test", "$ tidemill run"] {
            assert!(readme.contains(command), "{language}: {command}");
        }
        assert!(readme.contains(&format!("| `{}` |", source(language))), "{language}");
    }
}

#[test]
fn git_sees_none_of_what_builds_and_runs_make() {
    for (language, _) in LANGUAGES {
        let project = Begun::new(language);
        for made in ["build/visits.wasm", "checkpoint/log/1", "out/part-0", ".tidemill/lock"] {
            let path = project.path().join(made);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let git = |arguments: &[&str]| succeed(Command::new("git").args(arguments).current_dir(project.path())).out;
        git(&["init", "--quiet"]);
        let seen = git(&["status", "--porcelain", "--untracked-files=all"]);
        for ignored in ["build/", "checkpoint/", "out/", ".tidemill/"] {
            assert!(!seen.contains(ignored), "{language}: {seen}");
        }
        assert!(seen.contains("query.toml"), "{language}: {seen}");
    }
}

#[test]
fn a_name_that_no_project_can_have_is_refused() {
    let place = TempDir::new().unwrap();
    for name in ["Visits", "2visits", "my visits", "tidemill", "match", ".."] {
        let said = fail_with(
            tidemill().current_dir(place.path()).args(["new", "--lang", "go", "--", name]),
            "PROJECT_NAME_INVALID",
        );
        assert!(said.err.contains("lower-case letters"), "{}", said.err);
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "nothing was written");
}

#[test]
fn a_folder_that_is_there_is_left_as_it_is() {
    let project = Begun::new("go");
    let said = fail_with(
        tidemill().current_dir(project.place.path()).args(["new", "visits", "--lang", "rust"]),
        "PROJECT_EXISTS",
    );
    assert!(said.err.contains("visits is there already"), "{}", said.err);
    assert!(!project.path().join("Cargo.toml").exists());
}

#[test]
fn the_files_of_a_new_project_are_listed_for_programs() {
    let place = TempDir::new().unwrap();
    let said =
        succeed(tidemill().current_dir(place.path()).args(["new", "a/visits", "--lang", "ts", "--output", "json"]));
    let document = json_lines(&said.out).remove(0);
    assert_eq!(document["project"], "a/visits");
    assert!(document["files"].as_array().unwrap().iter().any(|file| file == "tsconfig.json"), "{document}");
}
