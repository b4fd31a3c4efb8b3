//! Sources and sinks.

mod error;
mod files;
mod format;
mod text;
