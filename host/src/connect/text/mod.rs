//! Rows as text: JSON Lines and CSV, read into Arrow batches and written from them.
//!
//! Reading is strict and one pass: a row either fits the schema or is rejected with its reason. What is written can be
//! read back as the same rows. Knows bytes and batches, never files or streams.

mod base64;
mod column;
mod instant;
mod json_reader;
mod json_scan;
mod scalar;

pub mod framing;
pub mod table;
