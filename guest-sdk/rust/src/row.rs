//! What a Rust type must say to be a row or a column.
//!
//! Authors derive [`Row`] for their structs; primitives, [`Option`], [`Vec`], maps and tuples are rows of their own.

use crate::codec::{RowReader, RowWriter, Zero};
use crate::ddl::quoted;
use crate::error::{Error, Result, code};

/// Types nest at most this deep in a schema; the host refuses more.
const NESTING_MAX: usize = 16;

/// A type whose values are rows: keys, input, output and everything that is stored.
///
/// Derive it for structs with named fields. A field's type is its column's type, `Option` makes the column nullable,
/// and `#[row(rename = "time_hour")]` gives the column another name than the field's.
///
/// ```
/// use tidemill::{Row, Timestamp};
///
/// #[derive(Row)]
/// struct Reading {
///     sensor: String,
///     #[row(rename = "time_hour")]
///     at: Timestamp,
///     celsius: Option<f64>,
///     tags: Vec<String>,
/// }
/// assert_eq!(
///     tidemill::schema::<Reading>().unwrap(),
///     "sensor STRING NOT NULL, time_hour TIMESTAMP NOT NULL, celsius DOUBLE, tags ARRAY<STRING> NOT NULL"
/// );
/// ```
///
/// A primitive is a row of one column `value`, a tuple a row of columns `_1`, `_2` and so on. As a processor's `Key`
/// and `Input`, these go by position: their columns take the names that the query has at their places.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no row",
    note = "derive it: `#[derive(tidemill::Row)]` on a struct with named fields; bytes are `tidemill::Binary`"
)]
pub trait Row: Sized {
    /// Number of columns.
    const COLUMNS: usize;
    /// Whether the columns have names of their own; false for primitives and tuples.
    const NAMED: bool;
    /// Names and types of the columns, in order. `depth`: how deep the row lies in another; 0 outside of one.
    fn columns(depth: usize) -> Result<Vec<ColumnSchema>>;
    /// Reads a value from a packed row with these columns.
    fn read_row(row: RowReader<'_>) -> Result<Self>;
    /// Writes the columns, in order, into a packed row that has been begun.
    fn write_row(&self, row: &mut RowWriter<'_>) -> Result<()>;
}

/// A type whose values are columns of a row.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no column type",
    note = "columns are bool, i8..i64, f32, f64, String, tidemill::{{Binary, Date, Timestamp, Decimal}}, Option, Vec, BTreeMap, HashMap, \
            tuples and structs with `#[derive(tidemill::Row)]`; bytes are `tidemill::Binary`"
)]
pub trait Column: Sized {
    /// Whether NULL is one of the values.
    const NULLABLE: bool = false;
    /// The type in DDL, without nullability. `depth`: how deep the column lies in nested types; 0 for a column of a
    /// row.
    fn data_type(depth: usize) -> Result<String>;
    /// Reads the column; an error where it is NULL and the type is not nullable.
    fn read(row: RowReader<'_>, column: usize) -> Result<Self>;
    /// Writes the column.
    fn write(&self, row: &mut RowWriter<'_>, column: usize) -> Result<()>;
}

/// One column of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSchema {
    name: String,
    data_type: String,
    nullable: bool,
}

impl ColumnSchema {
    /// The column `name` with the values of `T`.
    pub fn of<T: Column>(name: &str, depth: usize) -> Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            data_type: T::data_type(depth).map_err(|e| e.at(name))?,
            nullable: T::NULLABLE,
        })
    }

    fn ddl(&self, nulls: Nulls) -> String {
        let not_null = if nulls == Nulls::AsDeclared && !self.nullable { " NOT NULL" } else { "" };
        format!("{} {}{not_null}", quoted(&self.name), self.data_type)
    }
}

/// Which columns of a schema are nullable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nulls {
    /// Those that are an `Option`.
    AsDeclared,
    /// All. What is stored must be able to lack a column that a later version of the processor adds.
    Everywhere,
}

/// The schema of a row type in DDL, `NOT NULL` where a field is no `Option`.
pub fn schema<T: Row>() -> Result<String> {
    ddl::<T>(Nulls::AsDeclared)
}

/// The schema that a row type is stored with: all columns nullable, so that fields can be added later.
pub fn stored_schema<T: Row>() -> Result<String> {
    ddl::<T>(Nulls::Everywhere)
}

fn ddl<T: Row>(nulls: Nulls) -> Result<String> {
    Ok(join(&T::columns(0)?, nulls))
}

/// The schema of a row type that the query knows by `names`: a positional type takes them, a struct keeps its own.
pub(crate) fn schema_at<T: Row>(what: &str, names: &[String]) -> Result<String> {
    let mut columns = T::columns(0)?;
    if !T::NAMED {
        if columns.len() != names.len() {
            return Err(Error::new(
                code::SCHEMA_MISMATCH,
                format!(
                    "the {what} of the query has {} columns, the processor's type has {}",
                    names.len(),
                    columns.len()
                ),
            ));
        }
        for (column, name) in columns.iter_mut().zip(names) {
            column.name.clone_from(name);
        }
    }
    Ok(join(&columns, Nulls::AsDeclared))
}

fn join(columns: &[ColumnSchema], nulls: Nulls) -> String {
    columns.iter().map(|column| column.ddl(nulls)).collect::<Vec<_>>().join(", ")
}

/// Checks that a nested type lies no deeper than the host allows; a type that contains itself ends here.
pub(crate) fn nested(depth: usize) -> Result<usize> {
    if depth >= NESTING_MAX {
        return Err(Error::new(code::SCHEMA_MISMATCH, format!("types nest deeper than {NESTING_MAX}")));
    }
    Ok(depth + 1)
}

/// Reads a value from the bytes of a packed row.
#[inline]
pub fn from_packed<T: Row>(bytes: &[u8]) -> Result<T> {
    T::read_row(RowReader::new(bytes, T::COLUMNS)?)
}

/// Appends a value as a packed row.
#[inline]
pub fn to_packed<T: Row>(value: &T, bytes: &mut Vec<u8>) -> Result<()> {
    value.write_row(&mut RowWriter::begin(bytes, T::COLUMNS, Zero::Signed))
}

/// Appends a value as a packed row that is compared by its bytes: the key of a map state.
#[inline]
pub fn key_to_packed<T: Row>(value: &T, bytes: &mut Vec<u8>) -> Result<()> {
    value.write_row(&mut RowWriter::begin(bytes, T::COLUMNS, Zero::Unsigned))
}

/// What `#[derive(Row)]` makes a struct a STRUCT column with.
#[doc(hidden)]
pub mod nested_row {
    use super::{Result, Row, RowReader, RowWriter, nested};
    use crate::ddl::quoted;

    /// Nested fields carry no NOT NULL: the host checks the columns of a row, the SDK what lies in them.
    pub fn data_type<T: Row>(depth: usize) -> Result<String> {
        let columns = T::columns(nested(depth)?)?;
        let fields: Vec<_> =
            columns.iter().map(|column| format!("{}: {}", quoted(&column.name), column.data_type)).collect();
        Ok(format!("STRUCT<{}>", fields.join(", ")))
    }

    #[inline]
    pub fn read<T: Row>(row: RowReader<'_>, column: usize) -> Result<T> {
        T::read_row(RowReader::new(row.part(column)?, T::COLUMNS)?)
    }

    #[inline]
    pub fn write<T: Row>(value: &T, row: &mut RowWriter<'_>, column: usize) -> Result<()> {
        row.put_row(column, T::COLUMNS, |nested| value.write_row(nested))
    }
}
