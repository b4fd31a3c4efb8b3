//! The schema of text that comes without one, from a sample of its rows.
//!
//! Every column is nullable. A column is
//! - `BIGINT` if all its values are whole numbers of 64 bits (in CSV without leading zeros, which would be lost),
//! - `DOUBLE` if all are numbers,
//! - `BOOLEAN` if all are `true` or `false`,
//! - `TIMESTAMP` if all read as one (an RFC 3339 string, or `YYYY-MM-DD HH:MM:SS`),
//! - in JSON, `ARRAY<...>` or `STRUCT<...>` if all are arrays or objects, with the types of what they hold,
//! - else, or if it has no value at all, `STRING`.
//!
//! Columns stand in the order in which they are first seen; in CSV in that of the header. A row that is malformed is
//! passed over: it will be rejected when it is read. Values behind the sample that do not fit are rejected, too.

use serde_json::Value;

use super::csv_reader::{CsvDialect, CsvHeader, header_names, values};
use super::decoder::{TextFormat, without_mark};
use crate::record::{COLUMNS_MAX, DataType, Field, Schema, SchemaError, parse_timestamp};

/// Why no schema was found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InferError {
    /// The header row is broken.
    #[error("the header cannot be read: {0}")]
    Header(String),
    /// Without names there is nothing to call the columns.
    #[error("CSV without a header has no column names; give the schema")]
    NoHeader,
    /// No row has a column.
    #[error("there are no rows to see columns in; give the schema")]
    NoRows,
    /// The names do not make a schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// Finds the schema of the sampled rows, each without its line end; the first one of a CSV stream is its header.
///
/// # Errors
/// [`InferError`]
pub(crate) fn infer_schema<'r>(
    format: &TextFormat,
    rows: impl Iterator<Item = &'r [u8]>,
) -> Result<Schema, InferError> {
    let mut members = Members::default();
    let mut rows = rows.enumerate().map(|(index, row)| if index == 0 { without_mark(row) } else { row });
    match format {
        TextFormat::JsonLines => {
            for row in rows {
                if let Ok(Value::Object(object)) = serde_json::from_slice(row) {
                    object.iter().for_each(|(name, value)| members.see(name, Seen::in_json(value)));
                }
            }
        }
        TextFormat::Csv(dialect) if dialect.header == CsvHeader::FirstRow => {
            let header = rows.next().ok_or(InferError::NoRows)?;
            see_csv(dialect, header, rows, &mut members)?;
        }
        TextFormat::Csv(_) => return Err(InferError::NoHeader),
    }
    if members.0.is_empty() {
        return Err(InferError::NoRows);
    }
    Ok(members.into_schema()?)
}

fn see_csv<'r>(
    dialect: &CsvDialect,
    header: &[u8],
    rows: impl Iterator<Item = &'r [u8]>,
    members: &mut Members,
) -> Result<(), InferError> {
    let names = header_names(dialect, header).map_err(InferError::Header)?;
    for name in &names {
        members.see(name, Seen::Nothing);
    }
    for row in rows {
        let Ok(values) = values(dialect, row) else { continue };
        if values.len() == names.len() {
            for (name, value) in names.iter().zip(values) {
                members.see(name, value.map_or(Seen::Nothing, |value| Seen::in_csv(&value)));
            }
        }
    }
    Ok(())
}

/// What all values seen have in common.
#[derive(Debug, Clone, PartialEq, Default)]
enum Seen {
    #[default]
    Nothing,
    Boolean,
    Integer,
    Number,
    Timestamp,
    Array(Box<Seen>),
    Object(Members),
    /// Something that only a string can hold.
    Anything,
}

/// Names in the order of their first appearance.
#[derive(Debug, Clone, PartialEq, Default)]
struct Members(Vec<(String, Seen)>);

impl Members {
    fn see(&mut self, name: &str, seen: Seen) {
        let is_full = self.0.len() > COLUMNS_MAX;
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = std::mem::take(known).and(seen),
            // One too many is enough for the schema to be refused, and more would cost their square.
            None if !is_full => self.0.push((name.to_owned(), seen)),
            None => {}
        }
    }

    fn into_schema(self) -> Result<Schema, SchemaError> {
        let fields = self.0.into_iter().map(|(name, seen)| Ok(Field::nullable(name, seen.into_type()?)));
        Schema::new(fields.collect::<Result<_, SchemaError>>()?)
    }
}

impl Seen {
    fn in_json(value: &Value) -> Self {
        match value {
            Value::Null => Self::Nothing,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_i64() => Self::Integer,
            Value::Number(_) => Self::Number,
            Value::String(text) if parse_timestamp(text).is_some() => Self::Timestamp,
            Value::String(_) => Self::Anything,
            Value::Array(elements) => {
                let seen = elements.iter().map(Self::in_json).fold(Self::Nothing, Self::and);
                Self::Array(Box::new(seen))
            }
            Value::Object(object) => {
                let mut members = Members::default();
                object.iter().for_each(|(name, value)| members.see(name, Self::in_json(value)));
                Self::Object(members)
            }
        }
    }

    fn in_csv(text: &str) -> Self {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let padded = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
        if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
            Self::Boolean
        } else if padded || text.starts_with('+') {
            Self::Anything
        } else if text.parse::<i64>().is_ok() {
            Self::Integer
        } else if digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
            && text.parse::<f64>().is_ok_and(f64::is_finite)
        {
            Self::Number
        } else if parse_timestamp(text).is_some() {
            Self::Timestamp
        } else {
            Self::Anything
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, seen) | (seen, Self::Nothing) => seen,
            (Self::Integer, Self::Number) | (Self::Number, Self::Integer) => Self::Number,
            (Self::Array(one), Self::Array(other)) => Self::Array(Box::new(one.and(*other))),
            (Self::Object(mut one), Self::Object(other)) => {
                other.0.into_iter().for_each(|(name, seen)| one.see(&name, seen));
                Self::Object(one)
            }
            (one, other) if one == other => one,
            _ => Self::Anything,
        }
    }

    fn into_type(self) -> Result<DataType, SchemaError> {
        Ok(match self {
            Self::Nothing | Self::Anything => DataType::String,
            Self::Boolean => DataType::Boolean,
            Self::Integer => DataType::BigInt,
            Self::Number => DataType::Double,
            Self::Timestamp => DataType::Timestamp,
            Self::Array(element) => DataType::Array(Box::new(element.into_type()?)),
            Self::Object(members) => DataType::Struct(members.into_schema()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn infer(format: &TextFormat, rows: &[&str]) -> String {
        infer_schema(format, rows.iter().map(|row| row.as_bytes())).unwrap().to_string()
    }

    #[test]
    fn json_columns_are_found_in_all_rows() {
        let rows = [
            r#"{"i":1,"d":1,"b":true,"t":"2013-01-01T10:00:00Z","s":"x","n":null,"m":1}"#,
            "{broken",
            r#"{"i":2,"d":0.5,"b":null,"t":"2013-01-01 10:00:00","s":"y","n":null,"m":"1","a":[1,null,2.5],"o":{"x":[]}}"#,
            r#"{"o":{"y":{"z":false}}}"#,
        ];
        assert_eq!(
            infer(&TextFormat::JsonLines, &rows),
            "i BIGINT, d DOUBLE, b BOOLEAN, t TIMESTAMP, s STRING, n STRING, m STRING, a ARRAY<DOUBLE>, \
             o STRUCT<x: ARRAY<STRING>, y: STRUCT<z: BOOLEAN>>"
        );
    }

    #[test]
    fn csv_columns_are_those_of_the_header() {
        let dialect = CsvDialect { null_value: Some("NA".to_owned()), ..CsvDialect::default() };
        let rows = [
            "\u{feff}i,d,b,t,s,zip,none,day",
            "1,1,TRUE,2013-01-01T10:00:00Z,inf,01234,,2013-01-01",
            "NA,-0.5,false,NA,nan,7,,2013-01-02",
            "too,few",
        ];
        assert_eq!(
            infer(&TextFormat::Csv(dialect), &rows),
            "i BIGINT, d DOUBLE, b BOOLEAN, t TIMESTAMP, s STRING, zip STRING, none STRING, day STRING"
        );
    }

    #[test]
    fn without_columns_or_with_too_many_there_is_no_schema() {
        let too_many = (0..=COLUMNS_MAX).map(|number| format!("c{number}")).collect::<Vec<_>>().join(",");
        for (format, rows) in [
            (TextFormat::JsonLines, vec![]),
            (TextFormat::JsonLines, vec!["{}", "1"]),
            (TextFormat::Csv(CsvDialect::default()), vec![]),
            (TextFormat::Csv(CsvDialect { header: CsvHeader::None, ..CsvDialect::default() }), vec!["1"]),
            (TextFormat::Csv(CsvDialect::default()), vec!["a,A"]),
            (TextFormat::Csv(CsvDialect::default()), vec![&too_many]),
        ] {
            assert!(infer_schema(&format, rows.iter().map(|row: &&str| row.as_bytes())).is_err(), "{rows:?}");
        }
    }
}
