//! Prints schemas and types as DDL.

use std::fmt::{self, Display, Formatter, Write};

use super::super::schema::{DataType, Field, Schema};

impl Display for Schema {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        columns(self, " ", f)
    }
}

impl Display for DataType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("BOOLEAN"),
            Self::TinyInt => f.write_str("TINYINT"),
            Self::SmallInt => f.write_str("SMALLINT"),
            Self::Int => f.write_str("INT"),
            Self::BigInt => f.write_str("BIGINT"),
            Self::Float => f.write_str("FLOAT"),
            Self::Double => f.write_str("DOUBLE"),
            Self::Decimal { precision, scale } => write!(f, "DECIMAL({precision},{scale})"),
            Self::String => f.write_str("STRING"),
            Self::Binary => f.write_str("BINARY"),
            Self::Date => f.write_str("DATE"),
            Self::Timestamp => f.write_str("TIMESTAMP"),
            Self::Array(element) => write!(f, "ARRAY<{element}>"),
            Self::Map(key, value) => write!(f, "MAP<{key}, {value}>"),
            Self::Struct(schema) => {
                f.write_str("STRUCT<")?;
                columns(schema, ": ", f)?;
                f.write_str(">")
            }
        }
    }
}

fn columns(schema: &Schema, between: &str, f: &mut Formatter<'_>) -> fmt::Result {
    for (index, Field { name, data_type, nullable }) in schema.fields().iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        column_name(name, f)?;
        f.write_str(between)?;
        data_type.fmt(f)?;
        if !nullable {
            f.write_str(" NOT NULL")?;
        }
    }
    Ok(())
}

/// The name, in back-quotes unless it is a plain word.
fn column_name(name: &str, f: &mut Formatter<'_>) -> fmt::Result {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty();
    if plain {
        return f.write_str(name);
    }
    f.write_char('`')?;
    for c in name.chars() {
        if c == '`' {
            f.write_char('`')?;
        }
        f.write_char(c)?;
    }
    f.write_char('`')
}
