//! Guests that do the same in every language: what reaches the user of one must reach that of any.

mod determinism;
mod examples;
mod faults;

use std::path::PathBuf;

pub use tidemill_host::project::Language;

use super::support::component;

/// Folders of projects in a language, beside each other in an example.
fn folders_of(language: Language) -> &'static [&'static str] {
    match language {
        Language::Rust => &["rust"],
        Language::Python => &["python"],
        Language::JavaScript => &["js", "ts"],
        Language::Go => &["go"],
    }
}

/// The component of a guest in a language, which `scripts/build-guests.sh` made.
pub fn component_in(language: Language, guest: &str) -> PathBuf {
    match language {
        Language::Rust => component(guest),
        Language::Python => component(&format!("{guest}-python")),
        Language::JavaScript => component(&format!("{guest}-js")),
        Language::Go => component(&format!("{guest}-go")),
    }
}
