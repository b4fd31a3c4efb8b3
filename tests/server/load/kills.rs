//! Kills servers, workers and compilers, at times of their own.

use std::fmt;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Scale, Target};
use crate::server::harness::Client;
use crate::support::component;

/// What was killed how often.
#[derive(Debug, Default)]
pub(super) struct Kills {
    servers: u32,
    workers: u32,
    compilers: u32,
    /// From the start of the next server until it answers.
    restarts: Vec<Duration>,
}

impl Kills {
    pub(super) fn all(&self) -> u32 {
        self.servers + self.workers + self.compilers
    }
}

impl fmt::Display for Kills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = self.restarts.iter().max().copied().unwrap_or_default();
        write!(
            f,
            "killed: {} servers (slowest restart {longest:?}), {} workers, {} compilers",
            self.servers, self.workers, self.compilers
        )
    }
}

/// Kills at even distances until the time is over.
pub(super) fn kill(target: &Target, scale: Scale, begun: Instant) -> Kills {
    let mut kills = Kills::default();
    for number in 0..scale.kills {
        let at = scale.time.mul_f64((f64::from(number) + 0.7) / f64::from(scale.kills));
        sleep(at.saturating_sub(begun.elapsed()));
        // In turns, so that each kind is killed also in a short run.
        match number % 3 {
            0 => kill_a_worker(target, &mut kills),
            1 => kill_the_server(target, &mut kills),
            _ => kill_a_compiler(target, &mut kills),
        }
    }
    kills
}

fn kill_the_server(target: &Target, kills: &mut Kills) {
    let mut server = target.server.lock().unwrap();
    server.kill();
    let begun = Instant::now();
    server.restart();
    kills.restarts.push(begun.elapsed());
    kills.servers += 1;
}

/// A worker that runs; there is one soon, as rows come all the time.
fn kill_a_worker(target: &Target, kills: &mut Kills) {
    let server = target.server.lock().unwrap().pid();
    let worker = wait_for_child(server, "worker");
    kill_process(worker, Signal::KILL).unwrap();
    kills.workers += 1;
}

/// An upload whose compiler is killed is refused, or was faster; either way it can be sent again.
fn kill_a_compiler(target: &Target, kills: &mut Kills) {
    let (pid, client) = {
        let server = target.server.lock().unwrap();
        (server.pid(), Client::new(server.api(), Some(&server.first_token())))
    };
    let bytes = fs::read(component("flights")).unwrap();
    let path = format!("/v1/tenants/tenant-0/processors/flights-{}", kills.compilers);
    let killed = std::thread::scope(|scope| {
        let upload = scope.spawn(|| client.try_upload(&path, &bytes));
        let compiler = wait_for_child(pid, "compile");
        // It may have ended by itself just now.
        let killed = kill_process(compiler, Signal::KILL).is_ok();
        let answer = upload.join().unwrap();
        assert!(matches!(answer.status, 200 | 201 | 422 | 500 | 503), "{answer:?}");
        killed
    });
    kills.compilers += u32::from(killed);
    client.upload(&path, &bytes);
}

/// A child of this process that runs this subcommand.
fn wait_for_child(parent: u32, subcommand: &str) -> Pid {
    let begun = Instant::now();
    loop {
        if let Some(child) = children(parent).into_iter().find(|child| runs(*child, subcommand)) {
            return Pid::from_raw(child).unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "no {subcommand} runs");
        sleep(Duration::from_millis(1));
    }
}

fn children(parent: u32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let texts = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    texts.flat_map(|text| text.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()).collect()
}

fn runs(pid: i32, subcommand: &str) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).any(|word| word == subcommand.as_bytes())
}
