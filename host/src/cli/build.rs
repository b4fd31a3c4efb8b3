//! `tidemill build`: a crate with a processor, or a core module that was built from one, becomes a component.
//!
//! Runs the user's own cargo; all that is special is which standard library it is given when the wasm target is not
//! installed (`scripts/setup.sh` notes that), and the encoding at the end.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::{fs, io};

use crate::runtime::{ComponentizeError, componentize, imports};

/// The target of Rust guests: no operating system, so that a component imports nothing but the host's interfaces.
const TARGET: &str = "wasm32-unknown-unknown";
/// What `scripts/setup.sh` writes, within the cache folder: `NAME=value` lines.
const STD_SETTINGS: &str = "wasm-std.env";

/// Build a processor into a component
///
/// Compiles the Rust crate at PATH for wasm32-unknown-unknown and encodes the result as a component, which `tidemill
/// run` takes. A core module (.wasm) that was compiled elsewhere is only encoded.
#[derive(Debug, clap::Args)]
pub struct BuildArgs {
    /// Folder of the processor's crate, or a core module
    #[arg(default_value = ".")]
    pub path: PathBuf,

    /// Where the component goes [default: target/components/NAME.wasm of the crate's workspace]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Cargo profile to build with
    #[arg(long, default_value = "release")]
    pub profile: String,

    /// The cargo to run
    #[arg(long, env = "CARGO", default_value = "cargo", hide = true)]
    pub cargo: PathBuf,
}

/// What was built.
#[derive(Debug, serde::Serialize)]
pub struct BuildReport {
    /// The component.
    pub component: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// The interfaces it imports, sorted.
    pub imports: Vec<String>,
}

/// Why nothing was built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is neither a crate nor a module at the path.
    #[error("{} is neither a folder with a Cargo.toml nor a .wasm file", path.display())]
    NothingToBuild {
        /// The path given.
        path: PathBuf,
    },
    /// Cargo could not be run.
    #[error("cannot run {}: {source}; building a processor needs Rust, see https://rustup.rs", program.display())]
    NoCargo {
        /// The program tried.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The target's standard library is missing.
    #[error(
        "the Rust target {TARGET} is not installed: run `rustup target add {TARGET}`, or scripts/setup.sh of the repository"
    )]
    NoTarget,
    /// The crate does not compile; cargo has said why.
    #[error("cargo failed ({status}); its messages are above")]
    Compile {
        /// How cargo ended.
        status: ExitStatus,
    },
    /// The crate compiles, but to no module.
    #[error("{} builds no module: its Cargo.toml needs `[lib] crate-type = [\"cdylib\"]`", path.display())]
    NoModule {
        /// The crate.
        path: PathBuf,
    },
    /// The module could not be made a component.
    #[error("{}: {source}", module.display())]
    Componentize {
        /// The module.
        module: PathBuf,
        /// Why.
        source: ComponentizeError,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl BuildError {
    /// Stable code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NothingToBuild { .. } => "BUILD_NOTHING_THERE",
            Self::NoCargo { .. } => "BUILD_NO_CARGO",
            Self::NoTarget => "BUILD_NO_TARGET",
            Self::Compile { .. } => "BUILD_COMPILE",
            Self::NoModule { .. } => "BUILD_NO_MODULE",
            Self::Componentize { source, .. } => source.code(),
            Self::File { .. } => "BUILD_FILE",
        }
    }
}

/// Builds the component. What cargo says goes to stderr as it comes. `cache_dir`: where the set-up leaves its notes.
pub fn build(args: &BuildArgs, cache_dir: Option<&Path>) -> Result<BuildReport, BuildError> {
    let (module, default_out) = if args.path.join("Cargo.toml").is_file() {
        let built = compile(args, cache_dir)?;
        let out = built.target_dir.join("components").join(component_name(&built.module));
        (built.module, out)
    } else if args.path.is_file() {
        (args.path.clone(), args.path.with_extension("component.wasm"))
    } else {
        return Err(BuildError::NothingToBuild { path: args.path.clone() });
    };
    let core = fs::read(&module).map_err(file(&module))?;
    let refused = |source| BuildError::Componentize { module: module.clone(), source };
    let component = componentize(&core).map_err(refused)?;
    let imports = imports(&component).map_err(refused)?;
    let out = args.out.clone().unwrap_or(default_out);
    if let Some(folder) = out.parent() {
        fs::create_dir_all(folder).map_err(file(folder))?;
    }
    fs::write(&out, &component).map_err(file(&out))?;
    Ok(BuildReport { component: out, bytes: component.len() as u64, imports })
}

impl fmt::Display for BuildReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}  {} bytes", self.component.display(), self.bytes)?;
        write!(f, "imports {}", self.imports.join(", "))
    }
}

struct Built {
    module: PathBuf,
    target_dir: PathBuf,
}

fn compile(args: &BuildArgs, cache_dir: Option<&Path>) -> Result<Built, BuildError> {
    let settings = std_settings(cache_dir)?;
    let manifest = args.path.join("Cargo.toml");
    let mut cargo = Command::new(&args.cargo);
    cargo
        .args(["build", "--lib", "--target", TARGET, "--message-format", "json-render-diagnostics"])
        .args(["--profile", &args.profile, "--manifest-path"])
        .arg(&manifest)
        .envs(settings)
        .stderr(Stdio::inherit());
    let output = cargo.output().map_err(|source| BuildError::NoCargo { program: args.cargo.clone(), source })?;
    if !output.status.success() {
        return Err(BuildError::Compile { status: output.status });
    }
    let module = built_module(&String::from_utf8_lossy(&output.stdout), &manifest);
    let module = module.ok_or_else(|| BuildError::NoModule { path: args.path.clone() })?;
    // TARGET_DIR/wasm32-unknown-unknown/PROFILE/name.wasm
    let target_dir = module.ancestors().nth(3).unwrap_or(&args.path).to_owned();
    Ok(Built { module, target_dir })
}

/// The module that cargo reports for the crate itself; its dependencies build none.
fn built_module(messages: &str, manifest: &Path) -> Option<PathBuf> {
    #[derive(serde::Deserialize)]
    struct Artifact {
        manifest_path: PathBuf,
        filenames: Vec<PathBuf>,
    }
    let manifest = manifest.canonicalize().ok()?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Artifact>(line).ok())
        .filter(|artifact| artifact.manifest_path.canonicalize().is_ok_and(|path| path == manifest))
        .flat_map(|artifact| artifact.filenames)
        .find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
}

/// `heart_beat.wasm` of the compiler is `heart-beat.wasm` to people.
fn component_name(module: &Path) -> PathBuf {
    let name = module.file_name().unwrap_or_default().to_string_lossy().replace('_', "-");
    PathBuf::from(name)
}

/// Settings for cargo that give it a standard library for the target: none if it is installed.
fn std_settings(cache_dir: Option<&Path>) -> Result<Vec<(String, String)>, BuildError> {
    let noted = cache_dir.and_then(|cache| fs::read_to_string(cache.join(STD_SETTINGS)).ok());
    let settings: Vec<_> = noted.as_deref().map(parse_settings).unwrap_or_default();
    if settings.is_empty() && !target_is_installed() {
        return Err(BuildError::NoTarget);
    }
    Ok(settings)
}

fn parse_settings(text: &str) -> Vec<(String, String)> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn target_is_installed() -> bool {
    let Ok(output) = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output() else {
        return false;
    };
    let folder = String::from_utf8_lossy(&output.stdout);
    fs::read_dir(folder.trim_end()).is_ok_and(|mut files| {
        files.any(|file| file.is_ok_and(|file| file.file_name().to_string_lossy().starts_with("libstd-")))
    })
}

fn file(path: &Path) -> impl FnOnce(io::Error) -> BuildError {
    let path = path.to_owned();
    move |source| BuildError::File { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_set_up_are_lines_of_name_and_value() {
        let text = "# written by setup\nRUSTC=/usr/bin/rustc\nCARGO_X_RUSTFLAGS=--sysroot=/a b\n";
        assert_eq!(
            parse_settings(text),
            [
                ("RUSTC".to_owned(), "/usr/bin/rustc".to_owned()),
                ("CARGO_X_RUSTFLAGS".to_owned(), "--sysroot=/a b".to_owned())
            ]
        );
    }

    #[test]
    fn the_component_is_named_after_the_crate() {
        assert_eq!(component_name(Path::new("t/release/heart_beat.wasm")), Path::new("heart-beat.wasm"));
    }

    #[test]
    fn the_module_is_found_among_cargo_messages() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join("Cargo.toml");
        fs::write(&manifest, "").unwrap();
        let messages = format!(
            "{{\"reason\":\"compiler-artifact\",\"manifest_path\":\"/nowhere/Cargo.toml\",\"filenames\":[\"/t/other.wasm\"]}}\n\
             {{\"reason\":\"compiler-artifact\",\"manifest_path\":{manifest:?},\"filenames\":[\"/t/counter.wasm\"]}}\n\
             {{\"reason\":\"build-finished\",\"success\":true}}\n"
        );
        assert_eq!(built_module(&messages, &manifest), Some(PathBuf::from("/t/counter.wasm")));
    }

    #[test]
    fn a_path_with_nothing_to_build_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let args = BuildArgs { path, out: None, profile: "release".to_owned(), cargo: "cargo".into() };
        assert_eq!(build(&args, None).unwrap_err().code(), "BUILD_NOTHING_THERE");
    }
}
