//! `tidemill dev`: builds and tests again after a change, goes on after a mistake, ends with Ctrl-C.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use super::{Begun, is_wanted};
use crate::support::succeed;

struct Dev {
    process: Child,
    told: Box<dyn BufRead>,
}

impl Dev {
    fn start(project: &Begun, arguments: &[&str]) -> Self {
        let mut command = project.command(["dev", "--offline"]);
        let mut process = command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let told = Box::new(BufReader::new(process.stderr.take().unwrap()));
        Self { process, told }
    }

    /// What is told until it waits for a change.
    fn round(&mut self) -> String {
        let mut told = String::new();
        while !told.ends_with("Waiting for a change; Ctrl-C ends.\n") {
            let read = self.told.read_line(&mut told).unwrap();
            assert!(read > 0, "it has ended:\n{told}");
        }
        told
    }

    /// Interrupts it; its exit code and what it printed.
    fn interrupt(mut self) -> (Option<i32>, String) {
        succeed(Command::new("kill").args(["-INT", &self.process.id().to_string()]));
        let mut printed = String::new();
        self.process.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        (self.process.wait().unwrap().code(), printed)
    }
}

#[test]
fn a_change_is_built_and_tested_and_a_mistake_is_survived() {
    if !is_wanted("go") {
        return;
    }
    let project = Begun::new("go");
    let mut dev = Dev::start(&project, &[]);

    assert!(dev.round().contains("Built "));
    project.change("main.go", "visits++", "visits += 2");
    assert!(dev.round().contains("Built "));
    project.change("main.go", "visits += 2", "visits +=");
    let mistaken = dev.round();
    project.change("main.go", "visits +=", "visits++");
    assert!(dev.round().contains("Built "));

    let (code, printed) = dev.interrupt();
    assert!(mistaken.contains("error[BUILD_COMPILE]") && mistaken.contains("main.go:"), "{mistaken}");
    let verdicts: Vec<_> = printed.lines().filter(|line| line.ends_with(" failed")).collect();
    assert_eq!(verdicts, ["1 passed, 0 failed", "0 passed, 1 failed", "1 passed, 0 failed"]);
    assert_eq!(code, Some(0));
}

#[test]
fn the_query_begins_anew_with_each_change_unless_its_state_is_kept() {
    if !is_wanted("go") {
        return;
    }
    for (arguments, expected) in [(&["--run"][..], 4), (&["--run", "--keep-state"], 2)] {
        let project = Begun::new("go");
        let mut dev = Dev::start(&project, arguments);
        dev.round();
        project.change("main.go", "Counts the visits", "Counts visits");
        dev.round();

        let (_, printed) = dev.interrupt();

        let rows = printed.lines().filter(|line| line.contains("\"here\":true")).count();
        assert_eq!(rows, expected, "{arguments:?}: {printed}");
    }
}
