//! Where one attack runs, within bounds of time and memory.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tidemill_host::clock::Stopwatch;

use super::attacks::Attack;
use crate::support::{component, published, tidemill};

/// What a run may take on a machine that is busy with other tests.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Two workers with 128 MiB each, what they hand over, and the host.
const MEMORY_KIB_MAX: u64 = 448 << 10;

/// Input, checkpoint and output of one attack.
pub struct Place(TempDir);

impl Place {
    pub fn new(attack: &Attack) -> Self {
        let folder = TempDir::new().unwrap();
        let row = |key| format!("{{\"key\":\"k{key}\",\"n\":{key}}}\n");
        fs::write(folder.path().join("input.jsonl"), (0..attack.keys).map(row).collect::<String>()).unwrap();
        fs::write(folder.path().join("initial.jsonl"), row(0)).unwrap();
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn attack(&self, attack: &Attack) -> Command {
        self.run_guest(&component("evil"), attack)
    }

    pub fn run_guest(&self, component: &Path, attack: &Attack) -> Command {
        let mut command = tidemill();
        let at = |name: &str| self.path().join(name);
        command.arg("run").arg(component).args(["--key", "key", "--schema", SCHEMA, "--workers", "2", "-o", "json"]);
        command
            .arg("--input")
            .arg(at("input.jsonl"))
            .arg("--sink")
            .arg(at("rows"))
            .arg("--checkpoint")
            .arg(at("checkpoint"));
        command.args(["--time-mode", attack.time_mode, "--param", &format!("attack={}", attack.name)]);
        if attack.name.contains("initial-state") {
            command.arg("--initial-state").arg(at("initial.jsonl")).args(["--initial-state-schema", SCHEMA]);
        }
        for setting in attack.settings {
            command.args(["--set", setting]);
        }
        command
    }

    /// Runs a command to its end, within bounds of time and memory.
    pub fn run(&self, command: &mut Command) -> Ended {
        let (out, err) = (self.path().join("stdout"), self.path().join("stderr"));
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let (watch, mut child) = (Stopwatch::start(), command.spawn().unwrap());
        let mut memory_kib = 0;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            memory_kib = memory_kib.max(memory_kib_of(child.id()));
            if watch.elapsed() > TIME_MAX {
                child.kill().unwrap();
                panic!("{command:?} takes more than {TIME_MAX:?}");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let text = String::from_utf8_lossy(&fs::read(err).unwrap()).into_owned();
        assert!(memory_kib < MEMORY_KIB_MAX, "{command:?} took {memory_kib} KiB of memory\n{text}");
        Ended { code: status.code(), out: fs::read_to_string(out).unwrap(), text }
    }

    /// Nothing is to be seen of the attack, and batch 0 is still to come.
    pub fn nothing_was_committed(&self, attack: &Attack) {
        assert!(published(&self.path().join("rows")).is_empty(), "{} published something", attack.name);
        let polite = Attack {
            name: if attack.name.contains("initial-state") { "none-initial-state" } else { "none" },
            settings: &[],
            ..*attack
        };
        let mut command = self.run_guest(&component("evil"), &polite);

        let said = self.run(command.args(["--param", "attack=none"]));

        assert_eq!(said.code, Some(0), "after {}: {}", attack.name, said.text);
        let summary: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let batches = summary["batches"].as_u64().unwrap();
        assert_eq!(
            summary["lastBatch"].as_u64().map(|last| last + 1),
            Some(batches),
            "after {}: {summary}",
            attack.name
        );
        assert_eq!(summary["rowsOut"], 0);
    }
}

const SCHEMA: &str = "key STRING, n BIGINT";

/// The most memory that a process has had, while it lives.
fn memory_kib_of(process: u32) -> u64 {
    // Until a new process has begun its own program, it shows the memory of the one that made it.
    let program = fs::read_link(format!("/proc/{process}/exe")).ok();
    if program == std::env::current_exe().ok() {
        return 0;
    }
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// How a run ended.
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub text: String,
}

impl Ended {
    pub fn failed_with(&self, attack: &Attack, code: &str) {
        let Self { text, .. } = self;
        assert_eq!(self.code, Some(1), "{}: {text}", attack.name);
        // JSON spells line ends and quotes out.
        let says = serde_json::to_string(attack.says).unwrap();
        let says = says.trim_matches('"');
        assert!(
            text.contains(&format!("\"code\":\"{code}\"")),
            "{} should have failed with {code}: {text}",
            attack.name
        );
        assert!(text.contains(says) || text.contains(attack.says), "{} should say {says:?}: {text}", attack.name);
    }
}
