//! The `tidemill` command.

fn main() {}
