//! Whether the walls hold on this machine: a child enters a worker's walls and then does what an attacker would. `tidemill
//! doctor` and the tests of the product run it; no worker does.

mod attacks;
mod ground;
mod native;

use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};

use serde::{Deserialize, Serialize};

pub use self::attacks::{ATTACKS, Attack};
pub use self::ground::Ground;
use super::{IsolationError, Program, Report, spawn};
use super::{calls, handshake};

/// What there is to attack.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Targets {
    /// A file of another tenant.
    other_tenant: PathBuf,
    /// A file in the child's own folder, a link to that one.
    link: PathBuf,
    /// A file that is not there yet, in a folder that anyone may write to.
    outside: PathBuf,
    /// A port on loopback that someone listens at.
    tcp: std::net::SocketAddr,
    /// A socket in the child's own folder that someone listens at.
    unix: PathBuf,
    /// An abstract socket that someone listens at.
    abstract_unix: String,
    /// Where eight bytes lie in the server's memory.
    secret_address: u64,
}

/// What came of an attack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The attacker was told no.
    Refused(String),
    /// The attacker was killed by this signal.
    Killed(i32),
    /// It got what it wanted.
    Succeeded,
}

/// The walls of a worker on this machine, and what came of each attack on them.
#[derive(Debug)]
pub struct Findings {
    /// Which layers there are.
    pub report: Report,
    /// Each attack once.
    pub attacks: Vec<(&'static str, Outcome)>,
}

/// The child that attacks.
#[must_use]
pub fn program() -> Program {
    Program::new("probe-walls", "probe of the walls")
}

/// System calls of this machine of which each attempt kills.
pub fn deadly_calls() -> impl Iterator<Item = &'static str> {
    calls::deadly().filter(|name| calls::number_of(name).is_some())
}

/// Attacks the walls in every way, each from a child of its own.
///
/// # Errors
/// No child could be started, or no targets be made.
pub fn run(program: &Program) -> Result<Findings, IsolationError> {
    let not_started = |cause| IsolationError::Start { label: program.label.clone(), cause };
    let ground = Ground::new().map_err(not_started)?;
    let mut findings = Findings { report: Report::default(), attacks: Vec::new() };
    for attack in ATTACKS {
        let child = spawn(program, &ground.walls())?;
        findings.report = child.report;
        let outcome = ground.attacked_by(child.child, &child.socket, attack.name).map_err(not_started)?;
        findings.attacks.push((attack.name, outcome));
    }
    Ok(findings)
}

/// The child's part, once it has entered: makes the attack that it is told to.
///
/// # Errors
/// The server is gone.
pub fn attack(socket: &UnixStream) -> io::Result<()> {
    let (attack, targets): (String, Targets) = handshake::hear(socket)?;
    let outcome = match attacks::attempt(&attack, &targets) {
        Ok(()) => Outcome::Succeeded,
        Err(error) => Outcome::Refused(error.to_string()),
    };
    handshake::say(socket, &outcome)
}

/// A child that ended without an answer was killed, or went on as another program.
fn outcome_of(mut child: Child, answer: io::Result<Outcome>) -> io::Result<Outcome> {
    let status: ExitStatus = child.wait()?;
    Ok(match (answer, status.signal()) {
        (Ok(outcome), _) => outcome,
        (Err(_), Some(signal)) => Outcome::Killed(signal),
        (Err(_), None) => Outcome::Succeeded,
    })
}
