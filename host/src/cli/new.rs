//! `tidemill new`: a project to begin with.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::Format;
use super::build::{Lang, ToolArgs, toolbox};
use super::output::{self, Coded};
use crate::config::Environment;
use crate::engine::trigger::Stop;
use crate::project::{Template, scaffold};

/// Begin a project: a processor with its query, tests, and the SDK
///
/// Writes a processor that counts and has a timer, which builds and passes its tests at once, into a new folder. The SDK of
/// this version goes into its folder .tidemill, so nothing else need be fetched.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct NewArgs {
    /// The project's folder; its last part is the name.
    #[arg(value_name = "NAME")]
    folder: PathBuf,

    /// The language to write it in.
    #[arg(long, value_enum)]
    lang: Lang,
}

const EXAMPLES: &str = "\
Examples:
  tidemill new visits --lang python
  tidemill new visits --lang ts && cd visits && tidemill build && tidemill test";

/// Runs the command.
pub(super) fn run(args: &NewArgs, format: Format, environment: &Environment) -> anyhow::Result<u8> {
    let tools = toolbox(&ToolArgs::default(), Stop::default(), environment);
    let files =
        scaffold(&args.folder, Template::from(args.lang), &tools).map_err(|error| Coded::wrap(error.code(), error))?;
    output::result(&match format {
        Format::Text => {
            let shown = args.folder.display();
            let files: String = files.iter().map(|file| format!("  {shown}/{}\n", file.display())).collect();
            format!("{files}\nNext:\n  cd {shown}\n  tidemill build\n  tidemill test\n")
        }
        Format::Json => format!("{}\n", json!({ "project": args.folder, "files": files })),
    })?;
    Ok(0)
}

impl From<Lang> for Template {
    fn from(lang: Lang) -> Self {
        match lang {
            Lang::Rust => Self::Rust,
            Lang::Python => Self::Python,
            Lang::Js => Self::JavaScript,
            Lang::Ts => Self::TypeScript,
            Lang::Go => Self::Go,
        }
    }
}
