//! What a build may use: the machine's programs, and the few tools that we install into the cache.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::carried::{Files, write_files};
use super::command::{self, Done, Stop};
use super::error::ProjectError;
use super::lock::lock;

/// Whether tools may be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// They may.
    Allowed,
    /// They may not.
    Offline,
}

/// Tells the author something while it goes on.
pub type Tell = Box<dyn Fn(&str)>;

/// What a build may use.
pub struct Toolbox {
    /// As the variable PATH.
    pub path: OsString,
    /// The virtual environment of Python that is active, if any.
    pub virtual_env: Option<PathBuf>,
    /// Where tools are installed. None: nowhere.
    pub cache: Option<PathBuf>,
    /// Whether they may be fetched.
    pub network: Network,
    /// Set when the author interrupts.
    pub stop: Stop,
    /// Tells the author what takes long.
    pub tell: Tell,
}

/// The commands that install a tool into a folder, one after the other.
pub(super) type Install = Box<dyn Fn(&Path) -> Vec<Command>>;

/// A tool that is installed into the cache.
pub(super) struct Installed {
    /// With its version, for people.
    pub(super) what: String,
    /// Name of its folder; another version has another one.
    pub(super) folder: String,
    /// A file in it that is there when it can be run. Of one that was installed with a Python that has gone, it is not.
    pub(super) proof: &'static str,
    /// Files that its commands find in the folder.
    pub(super) files: Files,
    /// How it gets there.
    pub(super) install: Install,
}

impl Toolbox {
    /// Set when the author interrupts.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Where a tool would be installed, and whether it is.
    pub(super) fn place(&self, tool: &Installed) -> Result<(PathBuf, bool), ProjectError> {
        let cache = self.cache.as_ref().ok_or_else(|| ProjectError::NoCache { what: tool.what.clone() })?;
        let place = cache.join("tools").join(&tool.folder);
        let is_there = place.join(tool.proof).exists();
        Ok((place, is_there))
    }

    /// The folder of an installed tool; the first time, it is installed, and the author told how.
    ///
    /// It is made beside its place, under a lock, and moved there when it is whole.
    pub(super) fn installed(&self, tool: &Installed) -> Result<PathBuf, ProjectError> {
        let (place, is_there) = self.place(tool)?;
        if is_there {
            return Ok(place);
        }
        let beside = |ending: &str| place.with_file_name(format!("{}{ending}", tool.folder));
        let partial = beside(".partial");
        if self.network == Network::Offline {
            let commands = (tool.install)(&place);
            let commands = commands.iter().map(command::shown).collect::<Vec<_>>().join(" && ");
            let command = format!("tidemill build, which runs {commands}");
            return Err(ProjectError::ToolOffline { what: tool.what.clone(), command });
        }
        let tools = place.parent().unwrap_or(&place);
        fs::create_dir_all(tools).map_err(ProjectError::file(tools))?;
        let _held = lock(&beside(".lock"), &self.stop)?;
        if place.join(tool.proof).exists() {
            return Ok(place);
        }
        // What an installation that was killed has left, and a tool that cannot be run any more.
        for leftover in [&partial, &place].into_iter().filter(|folder| folder.exists()) {
            fs::remove_dir_all(leftover).map_err(ProjectError::file(leftover))?;
        }
        fs::create_dir_all(&partial).map_err(ProjectError::file(&partial))?;
        let made = write_files(&partial, &tool.files).and_then(|()| self.install(tool, &partial));
        if made.is_err() {
            drop(fs::remove_dir_all(&partial));
        }
        made?;
        fs::rename(&partial, &place).map_err(ProjectError::file(&place))?;
        Ok(place)
    }

    fn install(&self, tool: &Installed, partial: &Path) -> Result<(), ProjectError> {
        (self.tell)(&format!("Installing {} into {}, once:", tool.what, partial.with_extension("").display()));
        for mut command in (tool.install)(partial) {
            let shown = command::shown(&command);
            (self.tell)(&format!("  {shown}"));
            let done = self.run(&mut command)?;
            if !done.status.success() {
                return Err(ProjectError::ToolInstall { what: tool.what.clone(), command: shown, output: done.said() });
            }
        }
        Ok(())
    }

    /// Runs a program to its end, with the path of this toolbox.
    pub(super) fn run(&self, command: &mut Command) -> Result<Done, ProjectError> {
        command::run(command.env("PATH", &self.path), &self.stop)
    }

    /// A toolbox for unit tests: the machine's programs, nothing installed.
    #[cfg(test)]
    #[expect(clippy::disallowed_methods, reason = "a test runs with the path it was started with")]
    pub(super) fn for_tests() -> Self {
        Self {
            path: std::env::var("PATH").unwrap().into(),
            virtual_env: None,
            cache: None,
            network: Network::Offline,
            stop: Stop::default(),
            tell: Box::new(|_| ()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::Barrier;

    use super::*;

    fn toolbox(path: &Path, network: Network) -> Toolbox {
        Toolbox {
            path: path.into(),
            virtual_env: None,
            cache: Some(path.join("cache")),
            network,
            stop: Stop::default(),
            tell: Box::new(|_| ()),
        }
    }

    /// A tool that is installed by a shell in its folder.
    fn tool(script: &'static str) -> Installed {
        let install = move |place: &Path| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]).current_dir(place);
            vec![command]
        };
        Installed {
            what: "the tool 1.2".to_owned(),
            folder: "tool-1.2".to_owned(),
            proof: "made",
            files: Files::from([("list".into(), b"x\n".to_vec())]),
            install: Box::new(install),
        }
    }

    #[test]
    fn a_tool_is_installed_once_and_the_command_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let told = Rc::new(RefCell::new(Vec::new()));
        let teller = Rc::clone(&told);
        let mut tools = toolbox(folder.path(), Network::Allowed);
        tools.tell = Box::new(move |line| teller.borrow_mut().push(line.to_owned()));
        let tool = tool("read -r line < list; echo $line >> made");

        let place = tools.installed(&tool).unwrap();
        assert_eq!(tools.installed(&tool).unwrap(), place);

        assert_eq!(fs::read_to_string(place.join("made")).unwrap(), "x\n");
        assert!(told.borrow()[0].contains("the tool 1.2"));
        assert!(told.borrow()[1].contains("/bin/sh -c"), "{:?}", told.borrow());
        assert_eq!(told.borrow().len(), 2);
    }

    #[test]
    fn half_a_tool_is_never_used() {
        let folder = tempfile::tempdir().unwrap();
        let tools = toolbox(folder.path(), Network::Allowed);
        let error = tools.installed(&tool(": > half; echo no such package; exit 1")).unwrap_err();
        assert_eq!(error.code(), "TOOL_INSTALL_FAILED");
        assert!(error.to_string().contains("no such package"), "{error}");

        // A killed installation leaves its folder beside the place.
        let left = folder.path().join("cache/tools/tool-1.2.partial");
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("half"), "x").unwrap();
        let place = tools.installed(&tool(": > made")).unwrap();
        assert!(place.join("made").exists() && !place.join("half").exists());
    }

    #[test]
    fn a_tool_that_cannot_be_run_any_more_is_installed_again() {
        let folder = tempfile::tempdir().unwrap();
        let tools = toolbox(folder.path(), Network::Allowed);
        let place = tools.installed(&tool(": > made; : > old")).unwrap();
        fs::remove_file(place.join("made")).unwrap();

        tools.installed(&tool(": > made")).unwrap();

        assert!(place.join("made").exists() && !place.join("old").exists());
    }

    #[test]
    fn of_two_builds_at_once_one_installs_and_the_other_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let begun = Barrier::new(2);
        let install = || {
            begun.wait();
            toolbox(path, Network::Allowed).installed(&tool("echo x >> ../count; : > made")).unwrap()
        };

        let places =
            std::thread::scope(|scope| [scope.spawn(install), scope.spawn(install)].map(|one| one.join().unwrap()));

        assert!(places.iter().all(|place| place.join("made").exists()));
        assert_eq!(fs::read_to_string(path.join("cache/tools/count")).unwrap(), "x\n");
    }

    #[test]
    fn offline_nothing_is_fetched_and_the_command_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let tools = toolbox(folder.path(), Network::Offline);
        let error = tools.installed(&tool(": > made")).unwrap_err();
        assert_eq!(error.code(), "TOOL_OFFLINE");
        assert!(error.to_string().contains("/bin/sh -c"), "{error}");
        assert!(!folder.path().join("cache").exists());
    }
}
