//! The walls around workers, attacked from inside by native code.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};
use tempfile::TempDir;
use tidemill_host::isolation::probe::{self, ATTACKS, Ground, Outcome};
use tidemill_host::isolation::{Layer, Limits, Program, Sandbox, Spawned, Walls, spawn};

use crate::support::{json_lines, run, tidemill};

/// "Bad system call."
const SIGSYS: i32 = 31;

fn probing() -> Program {
    Program { executable: PathBuf::from(env!("CARGO_BIN_EXE_tidemill")), ..probe::program() }
}

#[test]
fn the_walls_that_a_server_requires_stand_here() {
    let ground = Ground::new().unwrap();

    let mut spawned = spawn(&probing(), &Walls { sandbox: Sandbox::Require, ..ground.walls() }).unwrap();

    assert!(spawned.report.is_active(Layer::Seccomp), "{:?}", spawned.report);
    assert!(spawned.report.is_active(Layer::LandlockFiles), "{:?}", spawned.report);
    drop(spawned.socket);
    spawned.child.wait().unwrap();
}

#[test]
fn every_attack_from_inside_fails() {
    let inheritable = inheritable_file();

    let findings = probe::run(&probing()).unwrap();

    let through: Vec<_> = findings.attacks.iter().filter(|(_, outcome)| *outcome == Outcome::Succeeded).collect();
    assert!(through.is_empty(), "{through:?} with {:?}", findings.report);
    assert_eq!(findings.attacks.len(), ATTACKS.len());
    drop(inheritable);
}

/// Else the test above would pass with attacks that hit nothing. What a kernel may lack or forbid to everyone is not in the list.
#[test]
fn without_walls_the_attacks_hit() {
    let inheritable = inheritable_file();
    let ground = Ground::new().unwrap();

    let through: BTreeSet<_> = ATTACKS
        .iter()
        .filter(|attack| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let child = {
                let mut command = tidemill();
                let command = command.args(["probe-walls", "--without"]).current_dir(ground.attacker());
                command.stdin(OwnedFd::from(theirs)).spawn().unwrap()
            };
            ground.attacked_by(child, &ours, attack.name).unwrap() == Outcome::Succeeded
        })
        .map(|attack| attack.name)
        .collect();

    let privileged = ["become-root", "make-device", "raise-limits", "open-memory-of-server", "read-memory-of-server"];
    let may_lack = [
        "io-uring",
        "perf-events",
        "user-faults",
        "bpf",
        "kernel-module",
        "open-by-handle",
        "mount",
        "new-namespace",
        "trace-server",
    ];
    let must = ATTACKS.iter().map(|attack| attack.name);
    let must =
        must.filter(|name| geteuid().is_root() || !privileged.contains(name)).filter(|name| !may_lack.contains(name));
    let harmless: Vec<_> = must.filter(|name| !through.contains(name)).collect();
    assert!(harmless.is_empty(), "these hit nothing even without walls: {harmless:?}");
    drop(inheritable);
}

/// A descriptor that a child inherits unless someone closes it.
fn inheritable_file() -> File {
    let file = File::open(env!("CARGO_MANIFEST_DIR")).unwrap();
    fcntl_setfd(&file, FdFlags::empty()).unwrap();
    file
}

/// The root directory and the user hold these back as well; here nothing but landlock does.
#[test]
fn landlock_alone_keeps_a_worker_in_its_folder() {
    let ground = Ground::new().unwrap();
    let own = ground.attacker().strip_prefix("/").unwrap().to_owned();
    let walls = Walls { home: Some(PathBuf::from("/")), read_write: vec![own], user: None, ..ground.walls() };

    for name in ["open-file-of-other-tenant", "open-passwords", "list-processes", "list-root", "write-outside"] {
        let Spawned { child, socket, .. } = spawn(&probing(), &walls).unwrap();

        let outcome = ground.attacked_by(child, &socket, name).unwrap();

        assert_eq!(outcome, Outcome::Refused("Permission denied (os error 13)".to_owned()), "{name}");
    }
}

#[test]
fn a_compiler_stands_within_walls_too_and_opens_no_file() {
    let ground = Ground::new().unwrap();
    let walls = Walls::compiler(Limits::default(), Sandbox::Require);
    let Spawned { child, socket, report, .. } = spawn(&probing(), &walls).unwrap();

    let outcome = ground.attacked_by(child, &socket, "open-passwords").unwrap();

    assert_eq!(outcome, Outcome::Refused("Function not implemented (os error 38)".to_owned()));
    assert!(report.is_active(Layer::Seccomp) && report.is_active(Layer::LandlockFiles), "{report:?}");
}

#[test]
fn a_system_call_that_only_an_attacker_makes_kills_him() {
    let ground = Ground::new().unwrap();

    for call in probe::deadly_calls() {
        let Spawned { child, socket, .. } = spawn(&probing(), &ground.walls()).unwrap();

        let outcome = ground.attacked_by(child, &socket, call).unwrap();

        assert_eq!(outcome, Outcome::Killed(SIGSYS), "{call}");
    }
}

#[test]
fn a_child_that_cannot_enter_does_not_start_and_says_why() {
    let ground = Ground::new().unwrap();
    let walls = Walls { home: Some(ground.attacker().join("nowhere")), ..ground.walls() };

    let error = spawn(&probing(), &walls).unwrap_err();

    assert_eq!(error.code(), "SANDBOX_FAILED");
    assert!(error.to_string().contains("home: No such file or directory"), "{error}");
}

#[test]
fn a_program_that_is_no_child_of_ours_is_given_up_with_its_last_words() {
    let ground = Ground::new().unwrap();
    let other = Program { subcommand: "inspect", ..probing() };

    let error = spawn(&other, &ground.walls()).unwrap_err();

    assert_eq!(error.code(), "CHILD_DIED_EARLY");
    assert!(error.to_string().contains("CONFIG_INCOMPLETE"), "{error}");
}

#[test]
fn the_doctor_tells_which_walls_stand_and_that_they_hold() {
    let said = run(tidemill().arg("doctor"));
    let json = run(tidemill().args(["doctor", "-o", "json"]));

    let (_, walls) = said.out.split_once("\nwalls around workers: ").unwrap();
    assert!(walls.starts_with("hold\n"), "{walls}");
    for line in ["  ok       seccomp\n", "  ok       landlock-files\n"] {
        assert!(walls.contains(line), "{walls}");
    }
    let json = &json_lines(&json.out)[0]["walls"]["attacks"];
    assert_eq!((&json["tried"], &json["wentThrough"]), (&ATTACKS.len().into(), &serde_json::json!([])));
}

#[test]
fn a_child_dies_with_its_server_even_where_its_socket_stays_open() {
    let (this, folder) = (std::env::current_exe().unwrap(), TempDir::new().unwrap());
    let mut server = Command::new(this)
        .args(["--exact", "isolation::server_that_waits_to_be_killed", "--ignored", "--nocapture"])
        .env("TMPDIR", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    let child = said.filter_map(|line| line.rsplit_once("child=")?.1.parse().ok()).next().unwrap();
    let child = pidfd_open(Pid::from_raw(child).unwrap(), PidfdFlags::empty()).unwrap();

    server.kill().unwrap();

    let ended = poll(&mut [PollFd::new(&child, PollFlags::IN)], Some(&Timespec { tv_sec: 20, tv_nsec: 0 })).unwrap();
    assert_eq!(ended, 1, "the child goes on without its server");
    server.wait().unwrap();
}

/// The server of the test above. A neighbour holds the socket open after its death.
#[test]
#[ignore = "a process of another test"]
fn server_that_waits_to_be_killed() {
    let ground = Ground::new().unwrap();
    let spawned = spawn(&probing(), &ground.walls()).unwrap();
    fcntl_setfd(&spawned.socket, FdFlags::empty()).unwrap();
    let mut neighbour = Command::new("cat").spawn().unwrap();
    println!("child={}", spawned.child.id());
    neighbour.wait().unwrap();
}
