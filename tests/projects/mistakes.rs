//! What an author is told of mistakes in the project.

use std::fs;

use tempfile::TempDir;

use super::{Begun, LANGUAGES, is_wanted, manifest, source};
use crate::support::{fail_with, run, succeed, tidemill};

/// An error in the code, by the text it takes the place of, and what must be told.
struct Mistake {
    language: &'static str,
    from: &'static str,
    to: &'static str,
    told: &'static [&'static str],
}

const MISTAKES: [Mistake; 6] = [
    Mistake {
        language: "rust",
        from: "visits += 1;",
        to: "visits += \"1\";",
        told: &["src/lib.rs:", "cannot add-assign"],
    },
    Mistake { language: "go", from: "visits++", to: "visits += \"1\"", told: &["main.go:", "mismatched types"] },
    Mistake { language: "ts", from: "visits += 1;", to: "visits += true;", told: &["src/processor.ts(", "error TS"] },
    Mistake {
        language: "js",
        from: "visits += 1;",
        to: "visits += ;",
        told: &["src/processor.js:", "Unexpected \";\""],
    },
    Mistake {
        language: "python",
        from: "visits += 1",
        to: "visits +=",
        told: &["visits/processor.py\", line 21", "SyntaxError"],
    },
    Mistake {
        language: "python",
        from: "QUIET_MS = 30 * 60 * 1000",
        to: "QUIET_MS = 1000 // 0",
        told: &["visits/processor.py\", line 7, in <module>", "ZeroDivisionError"],
    },
];

#[test]
fn an_error_of_the_author_is_told_with_file_and_line() {
    for Mistake { language, from, to, told } in MISTAKES.iter().filter(|mistake| is_wanted(mistake.language)) {
        let project = Begun::new(language);
        project.change(source(language), from, to);

        let said = fail_with(&mut project.command(["build", "--offline"]), "BUILD_COMPILE");

        for words in *told {
            assert!(said.err.contains(words), "{language} should tell {words:?}:\n{}", said.err);
        }
        assert!(!said.err.contains("Stack backtrace"), "{}", said.err);
        assert!(!project.path().join("build/visits.wasm").exists());
    }
}

#[test]
fn a_build_that_works_is_quiet() {
    if !is_wanted("go") {
        return;
    }
    let said = succeed(&mut Begun::new("go").command(["build", "--offline"]));
    assert_eq!(said.err, "");
}

#[test]
fn a_package_with_native_code_is_explained() {
    if !is_wanted("python") {
        return;
    }
    let (project, environment) = (Begun::new("python"), TempDir::new().unwrap());
    let package = environment.path().join("lib/python3.12/site-packages/fastmath");
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join("__init__.py"), "from fastmath._core import add\n").unwrap();
    fs::write(package.join("_core.cpython-312-x86_64-linux-gnu.so"), "\x7fELF").unwrap();
    project.change("processor.py", "import tidemill\n", "import fastmath\nimport tidemill\n");

    let mut build = project.command(["build", "--offline"]);
    let said = fail_with(build.env("VIRTUAL_ENV", environment.path()), "BUILD_NATIVE_CODE");

    assert!(said.err.contains("fastmath has native code"), "{}", said.err);
    assert!(said.err.contains("pure Python"), "{}", said.err);
}

#[test]
fn a_folder_that_is_no_project_is_told_what_makes_one() {
    let place = TempDir::new().unwrap();
    for path in [".", "missing"] {
        let said = fail_with(tidemill().current_dir(place.path()).args(["build", path]), "BUILD_NOTHING_THERE");
        for manifest in ["Cargo.toml", "pyproject.toml", "package.json", "go.mod", "tidemill new"] {
            assert!(said.err.contains(manifest), "{}", said.err);
        }
    }
}

#[test]
fn of_two_manifests_the_author_chooses() {
    if !is_wanted("go") {
        return;
    }
    let project = Begun::new("go");
    fs::write(project.path().join("package.json"), r#"{ "name": "tools" }"#).unwrap();

    let said = fail_with(&mut project.command(["build", "--offline"]), "BUILD_LANGUAGE_AMBIGUOUS");
    assert!(said.err.contains("package.json and a go.mod"), "{}", said.err);

    succeed(&mut project.command(["build", "--offline", "--lang", "go"]));
}

#[test]
fn a_manifest_that_cannot_be_used_is_told_why() {
    for (language, text, why) in [
        ("rust", "[workspace]\n", "no [package]"),
        ("python", "[tool.tidemill]\n", "[project] has no name"),
        ("js", "{", "EOF"),
        ("js", r#"{ "name": "visits" }"#, "\"entry\""),
        ("go", "go 1.24\n", "names no module"),
    ] {
        let project = Begun::new(language);
        fs::write(project.path().join(manifest(language)), text).unwrap();
        let said = fail_with(&mut project.command(["build", "--offline"]), "BUILD_MANIFEST_INVALID");
        assert!(said.err.contains(why) && said.err.contains(manifest(language)), "{}", said.err);
    }
}

#[test]
fn a_project_for_another_version_of_the_sdk_is_refused() {
    for (language, from, to) in [
        ("rust", "version = \"0.1\" }", "version = \"9.0\" }"),
        ("python", "version = \"0.1\"\n", "version = \"9.0\"\n"),
        ("js", "\"version\": \"0.1\" }", "\"version\": \"9.0\" }"),
        ("go", "guest-sdk/go v0.1.0", "guest-sdk/go v9.0.0"),
    ] {
        let project = Begun::new(language);
        project.change(manifest(language), from, to);
        let said = fail_with(&mut project.command(["build", "--offline"]), "SDK_VERSION_MISMATCH");
        assert!(said.err.contains("9.0") && said.err.contains("this tidemill has 0.1.0"), "{}", said.err);
    }
}

#[test]
fn a_project_whose_sdk_is_nowhere_is_told_the_entry() {
    for (language, from, to, entry) in [
        ("python", "module = ", "sdk = \"elsewhere\"\nmodule = ", "sdk = \".tidemill/sdk/python\""),
        ("js", "file:.tidemill/sdk/js", "file:elsewhere", "file:.tidemill/sdk/js"),
        ("go", "=> ./.tidemill/sdk/go", "=> ./elsewhere", "=> ./.tidemill/sdk/go"),
    ] {
        let project = Begun::new(language);
        project.change(manifest(language), from, to);
        let said = fail_with(&mut project.command(["build", "--offline"]), "SDK_MISSING");
        assert!(said.err.contains("elsewhere") && said.err.contains(entry), "{}", said.err);
    }
}

#[test]
fn the_sdk_of_this_version_is_put_in_place_again() {
    for (language, _) in LANGUAGES {
        let project = Begun::new(language);
        let own = project.path().join(".tidemill");
        fs::write(own.join("wit/world.wit"), "package other:world;\n").unwrap();
        fs::remove_dir_all(own.join("sdk")).unwrap();

        succeed(&mut project.command(["build", "--sdk-only"]));

        let world = fs::read_to_string(own.join("wit/world.wit")).unwrap();
        assert!(world.contains("package tidemill:processor@0.1.0;"), "{language}");
        assert!(own.join("sdk").read_dir().unwrap().count() == 1, "{language}");
    }
}

#[test]
fn a_component_of_another_version_of_the_world_is_told_apart() {
    let place = TempDir::new().unwrap();
    let other = r#"(component (instance $i) (export "tidemill:processor/handler@9.0.0" (instance $i)))"#;
    fs::write(place.path().join("other.wasm"), wat::parse_str(other).unwrap()).unwrap();
    let said = run(tidemill().current_dir(place.path()).args(["inspect", "other.wasm"]));
    assert!(said.err.contains("COMPONENT_WORLD_MISMATCH") && said.err.contains("@9.0.0"), "{}", said.err);
}
