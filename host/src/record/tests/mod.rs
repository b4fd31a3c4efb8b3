//! Specification of rows: by example, by property, and by the test vectors that every SDK runs.

mod arbitrary;
mod calendar;
mod casts;
mod ddl;
mod evolution;
mod hostile;
mod json;
mod keys;
mod packed;
mod vectors;
