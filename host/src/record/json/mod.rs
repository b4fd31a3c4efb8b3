//! Rows as JSON, for the command line, test vectors and tests; not for speed.
//!
//! | type | JSON |
//! |---|---|
//! | BOOLEAN | `true`, `false` |
//! | TINYINT, SMALLINT, INT, BIGINT | a number without fraction or exponent |
//! | FLOAT, DOUBLE | a number; `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | DECIMAL | a string with exactly `scale` digits after the point when written, at most as many when read |
//! | STRING | a string |
//! | BINARY | a string in base64 with padding (RFC 4648, section 4) |
//! | DATE | `"2013-01-31"` |
//! | TIMESTAMP | `"2013-01-31T05:06:07.000008Z"`; read with other offsets and fewer digits too |
//! | ARRAY | an array |
//! | MAP | an object if keys are STRING, else an array of `[key, value]`; in the order of packed keys when written, in any when read |
//! | STRUCT, row | an object; when read, a field that is left out is NULL |
//! | NULL | `null` |

mod number;
mod read;
mod write;

pub use read::{key_from_json, row_from_json};
pub use write::row_to_json;
