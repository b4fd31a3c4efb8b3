//! Another version of a component on the same checkpoint: as docs/evolution.md shows it, over crashes, and on a checkpoint
//! that was made by the first version of every format.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    component, copy_with_times, fail_with, json_lines, repository, rows, run, succeed, tidemill, write_at,
};

/// A folder with both versions and what docs/evolution.md has of files.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        for name in ["visits-1", "visits-2"] {
            fs::copy(component(name), folder.path().join(format!("{name}.wasm"))).unwrap();
        }
        Self { folder }
    }

    /// With the files of the page, and the first version run over the first of them.
    fn upgradable() -> Self {
        let place = Self::new();
        for block in blocks() {
            if let ("toml", file) = (block.language.as_str(), &block.file) {
                place.write(file, &block.text, 1);
            }
        }
        place.input(1);
        succeed(&mut place.tidemill("run --config query.toml"));
        place.input(2);
        place
    }

    fn input(&self, number: u64) {
        let file = format!("visits/{number}.jsonl");
        let text = blocks().into_iter().find(|block| block.file == file).unwrap().text;
        self.write(&file, &text, number);
    }

    fn write(&self, file: &str, text: &str, seconds: u64) {
        write_at(&self.path(file), text, 1_000_000_000 + seconds);
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn tidemill(&self, arguments: &str) -> Command {
        let mut command = tidemill();
        command.current_dir(self.folder.path()).args(arguments.split_whitespace());
        command
    }

    fn reports(&self) -> Vec<Value> {
        json_lines(&rows(&self.path("reports")))
    }
}

/// A block of the page between fences: its language, the file that it stands for, its text.
struct Block {
    language: String,
    file: String,
    text: String,
}

fn blocks() -> Vec<Block> {
    let page = fs::read_to_string(repository().join("docs/evolution.md")).unwrap();
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(head) = line.strip_prefix("```") {
            let (language, file) = head.split_once(' ').unwrap_or((head, ""));
            let text: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(Block { language: language.into(), file: file.into(), text: text.join("\n") + "\n" });
        }
    }
    blocks
}

#[test]
fn the_page_on_evolution_shows_what_happens() {
    let place = Place::new();
    for (number, block) in blocks().into_iter().enumerate() {
        match block.language.as_str() {
            "rust" => {
                let source = repository().join("tests/guests").join(&block.file).join("src/lib.rs");
                assert!(fs::read_to_string(source).unwrap().contains(block.text.trim()), "{}", block.text);
            }
            "console" => {
                let mut shown = String::new();
                for command in block.text.lines().filter_map(|line| line.strip_prefix("$ ")) {
                    let said = run(&mut place.tidemill(command.strip_prefix("tidemill ").unwrap()));
                    let said = format!("{}{}", said.out, without_digests(&said.err));
                    shown.push_str(&format!(
                        "$ {command}\n{}",
                        said.replace(place.folder.path().to_str().unwrap(), "/srv")
                    ));
                }
                assert_eq!(shown, block.text);
            }
            _ => place.write(&block.file, &block.text, number as u64),
        }
    }
}

fn without_digests(text: &str) -> String {
    let mut parts = text.split("sha256:");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| text + "sha256:…" + part.trim_start_matches(|c: char| c.is_ascii_hexdigit()))
}

#[test]
fn a_newer_version_goes_on_with_the_rows_of_an_older_one() {
    let place = Place::upgradable();

    succeed(&mut place.tidemill("run visits-2.wasm --config query.toml --progress progress.jsonl"));

    assert_eq!(
        place.reports()[2..],
        [
            json!({"user": "ann", "visits": 3, "ms": 40, "seen": "/ /help /:40", "pages": "/=2 /help=1"}),
            json!({"user": "cid", "visits": 1, "ms": 7, "seen": "/:7", "pages": "/=1"}),
        ]
    );
    let progress = json_lines(&fs::read_to_string(place.path("progress.jsonl")).unwrap()).remove(0);
    let state = &progress["stateOperators"][0];
    assert_eq!((&state["customMetrics"]["numDeletedStateVars"], &state["numRowsTotal"]), (&json!(1), &json!(12)));
    let changes: Vec<_> = state["upgrade"]["variables"].as_array().unwrap().iter().map(|of| &of["change"]).collect();
    assert_eq!(changes, ["converted", "converted", "changed", "new", "dropped"]);
    assert!(state["upgrade"]["from"].as_str().unwrap().starts_with("sha256:"));
}

#[test]
fn the_state_after_an_earlier_batch_is_shown_in_the_schema_of_then() {
    let place = Place::upgradable();
    succeed(&mut place.tidemill("run visits-2.wasm --config query.toml"));
    let totals = |arguments: &str| {
        let said = succeed(&mut place.tidemill(&format!("state checkpoint scan totals -o json {arguments}")));
        json_lines(&said.out).into_iter().find(|row| row["key"]["user"] == "bob").unwrap()["value"].take()
    };
    assert_eq!(totals("--batch 0"), json!({"visits": 1, "last_page": "/"}));
    assert_eq!(totals(""), json!({"visits": 1, "ms": null}));
}

#[test]
fn an_upgrade_is_said_once_and_only_where_it_is_one() {
    let place = Place::upgradable();
    let mut upgraded = place.tidemill("run visits-2.wasm --config query.toml");
    assert!(succeed(&mut upgraded).err.starts_with("Upgraded behind batch 0: from sha256:"));
    assert_eq!(succeed(&mut upgraded).err, "");
}

#[test]
fn a_component_that_differs_only_in_its_bytes_takes_over_and_changes_nothing() {
    let place = Place::upgradable();
    let mut bytes = fs::read(place.path("visits-1.wasm")).unwrap();
    // A custom section: id, length, length of the name, name.
    bytes.extend_from_slice(b"\0\x06\x05build");
    fs::write(place.path("again.wasm"), bytes).unwrap();

    let inspected = succeed(&mut place.tidemill("inspect again.wasm --config query.toml --against checkpoint"));
    assert_eq!(inspected.out.matches("unchanged").count(), 4, "{}", inspected.out);
    let said = succeed(&mut place.tidemill("run again.wasm --config query.toml"));

    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    assert_eq!(place.reports()[2], json!({"user": "ann", "visits": 3}));
}

#[test]
fn an_upgrade_that_is_cut_off_anywhere_is_made_whole_by_the_next_start() {
    let undisturbed = Place::upgradable();
    succeed(&mut undisturbed.tidemill("run visits-2.wasm --config query.toml"));
    let listed = |place: &Place, arguments: &str| succeed(&mut place.tidemill(arguments)).out;
    for point in [
        "process.done",
        "commit.before-append",
        "commit.after-sync",
        "publish.after-sink",
        "apply.before",
        "apply.after",
    ] {
        let place = Place::upgradable();
        let mut upgrade = place.tidemill("run visits-2.wasm --config query.toml");
        assert_ne!(run(upgrade.env("TIDEMILL_CRASH_AT", format!("{point}:1"))).code, Some(0), "{point}");

        succeed(upgrade.env_remove("TIDEMILL_CRASH_AT"));

        assert_eq!(place.reports(), undisturbed.reports(), "{point}");
        for look in ["state checkpoint list", "state checkpoint scan totals", "state checkpoint scan pages"] {
            assert_eq!(listed(&place, look), listed(&undisturbed, look), "{point}");
        }
        succeed(&mut place.tidemill("replay visits-2.wasm --config query.toml"));
    }
}

#[test]
fn a_version_that_does_not_fit_is_refused_before_and_when_it_runs_and_changes_nothing() {
    let place = Place::upgradable();
    succeed(&mut place.tidemill("run visits-2.wasm --config query.toml"));

    let inspected = run(&mut place.tidemill("inspect visits-1.wasm --config query.toml --against checkpoint -o json"));
    assert_eq!(inspected.code, Some(3));
    let documents = json_lines(&inspected.out);
    assert_eq!(documents[0]["fits"], false);
    let refused: Vec<_> = documents[1..].iter().filter(|of| of["change"] == "refused").map(|of| &of["name"]).collect();
    assert_eq!(refused, ["totals", "pages"]);
    assert_eq!(documents[1]["refused"]["code"], "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION");
    fail_with(
        &mut place.tidemill("run visits-1.wasm --config query.toml"),
        "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION",
    );

    place.write("visits/3.jsonl", "{\"user\":\"ann\",\"page\":\"/\"}\n", 3);
    succeed(&mut place.tidemill("run visits-2.wasm --config query.toml"));
    assert_eq!(place.reports().last().unwrap()["visits"], 4);
}

#[test]
fn other_settings_than_the_checkpoint_has_are_told_before_too() {
    let place = Place::upgradable();
    let arguments = "inspect visits-2.wasm --config query.toml --against checkpoint --time-mode processing-time";
    let inspected = run(&mut place.tidemill(arguments));
    assert_eq!(inspected.code, Some(3));
    assert!(inspected.out.contains("refused: [STATE_STORE_INVALID_CONFIG_AFTER_RESTART]"), "{}", inspected.out);
    let without_query = place.tidemill("inspect visits-2.wasm --against checkpoint");
    assert!(run(&mut { without_query }).err.contains("describe the query"));
}

/// Checkpoints as every version of the formats made them, by `scripts/make-checkpoint-fixture.sh`. While a format is not
/// released, one that moves is made anew; afterwards its fixture stays, and a new one joins it.
#[test]
fn a_checkpoint_of_every_format_is_opened_by_a_newer_component() {
    let fixtures = repository().join("tests/fixtures/checkpoints");
    let mut formats = 0;
    for fixture in fs::read_dir(fixtures).unwrap().map(|entry| entry.unwrap().path()) {
        let place = Place::new();
        copy_with_times(&fixture, place.folder.path());
        place.input(2);

        let said = run(&mut place.tidemill("run visits-2.wasm --config query.toml"));

        let hint = "if an unreleased format has moved, run scripts/make-checkpoint-fixture.sh";
        assert_eq!(said.code, Some(0), "{}: {hint}\n{}", fixture.display(), said.err);
        assert_eq!(place.reports()[2]["seen"], "/ /help /:40", "{}", fixture.display());
        assert_eq!(published_first(&place.path("reports")), "{\"user\":\"ann\",\"visits\":2}");
        formats += 1;
    }
    assert!(formats > 0);
}

fn published_first(folder: &Path) -> String {
    rows(folder).lines().next().unwrap().to_owned()
}
