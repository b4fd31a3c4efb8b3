//! The environment, which is read here and nowhere else.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the host takes from its environment.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `TIDEMILL_LOG`: a filter for log lines, e.g. `tidemill=debug`.
    pub log_filter: Option<String>,
    /// `PATH`: where the tools of other languages are looked for.
    pub path: OsString,
    /// `VIRTUAL_ENV`: the virtual environment of Python that is active, whose packages a processor may import.
    pub virtual_env: Option<PathBuf>,
    /// `TIDEMILL_CACHE`, else the user's cache folder: where compiled components and tools are kept.
    pub cache_dir: Option<PathBuf>,
    /// `TIDEMILL_CRASH_AT`, for tests: `point:n` aborts the process at the n-th pass of a named point.
    pub crash_at: Option<String>,
    /// The user's folder of settings: where the profiles of servers are kept.
    pub config_dir: Option<PathBuf>,
    /// `TIDEMILL_SERVER`, `TIDEMILL_TOKEN`, `TIDEMILL_TENANT`: a server, and who asks, instead of a profile.
    pub server: Option<String>,
    /// See [`Environment::server`].
    pub token: Option<String>,
    /// See [`Environment::server`].
    pub tenant: Option<String>,
    /// `NO_COLOR` is set.
    pub no_color: bool,
    /// `TIDEMILL_SERVE_NAME=value`: settings of the server, as `name` (in lower case) and value.
    pub serve: Vec<(String, String)>,
}

impl Environment {
    /// Reads it.
    #[expect(clippy::disallowed_methods, reason = "this is the place that reads the environment")]
    pub fn read() -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let in_home = |folder: &str| set("HOME").map(|home| Path::new(&home).join(folder));
        let ours = |base: PathBuf| base.join("tidemill");
        let cache_dir = set("TIDEMILL_CACHE")
            .map(PathBuf::from)
            .or_else(|| set("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| in_home(".cache")).map(ours));
        let serve = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.to_str()?.strip_prefix("TIDEMILL_SERVE_")?.to_ascii_lowercase();
            Some((name, value.into_string().ok()?))
        });
        Self {
            serve: serve.collect(),
            log_filter: set("TIDEMILL_LOG"),
            path: std::env::var_os("PATH").unwrap_or_default(),
            virtual_env: set("VIRTUAL_ENV").map(PathBuf::from),
            cache_dir,
            config_dir: set("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| in_home(".config")).map(ours),
            server: set("TIDEMILL_SERVER"),
            token: set("TIDEMILL_TOKEN"),
            tenant: set("TIDEMILL_TENANT"),
            crash_at: set("TIDEMILL_CRASH_AT"),
            no_color: set("NO_COLOR").is_some(),
        }
    }
}
