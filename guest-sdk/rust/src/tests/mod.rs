//! The SDK as an author sees it, without WebAssembly. State and timers: `tests/guests/script`.

mod processor;
mod vectors;
