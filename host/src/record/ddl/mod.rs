//! Schemas as text: Spark's DDL, read and printed. `parse(print(schema)) == schema`.

mod parse;
mod print;
mod token;

pub(super) use parse::parse;
