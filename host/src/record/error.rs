//! What can be wrong with a schema, a row or a batch, each with its stable code.

use std::borrow::Cow;
use std::fmt;

use thiserror::Error;

/// Code of a row that does not have the bytes its schema asks for.
pub(super) const INVALID_ROW: &str = "INVALID_ROW";
/// Code of a NULL in a column that is NOT NULL.
pub(super) const NULL_VALUE: &str = "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE";

/// Bytes of column names that an error lists; a few lines of a terminal.
const NAMES_SHOWN_BYTES_MAX: usize = 400;

/// Why a schema was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SchemaError {
    /// The text is not DDL as we read it.
    #[error("schema, at character {position} (`{excerpt}`): {problem}")]
    Syntax {
        /// Counted from 1.
        position: usize,
        /// The text from there on, shortened.
        excerpt: String,
        /// What was expected and what was found.
        problem: String,
    },
    /// A type that exists in Spark and not here.
    #[error("schema, at character {position}: the type {data_type} is not supported; {instead}")]
    UnsupportedType {
        /// Counted from 1.
        position: usize,
        /// As written.
        data_type: String,
        /// What to use in its place.
        instead: &'static str,
    },
    /// The text is longer than any schema needs to be.
    #[error("schema of {bytes} bytes; at most {bytes_max} are read")]
    TextTooLong {
        /// Length of the text.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Two columns of one row have the same name, upper and lower case being the same.
    #[error("column `{column}` is there twice (upper and lower case are the same); rename one of them")]
    DuplicateName {
        /// The second of the two.
        column: String,
    },
    /// More columns in one row than supported.
    #[error("{columns} columns in one row; at most {columns_max} are supported")]
    TooManyColumns {
        /// Columns of that row.
        columns: usize,
        /// The limit.
        columns_max: usize,
    },
    /// ARRAY, MAP and STRUCT nested too deep.
    #[error("column `{column}` nests ARRAY, MAP and STRUCT more than {nesting_max} deep")]
    TooDeep {
        /// Name of the top-level column.
        column: String,
        /// The limit.
        nesting_max: usize,
    },
    /// A decimal whose precision or scale is out of range.
    #[error(
        "column `{column}`: DECIMAL({precision},{scale}) is out of range; precision is 1 to 38, scale 0 to the precision"
    )]
    DecimalOutOfRange {
        /// Path of the column.
        column: String,
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// A MAP within the key of a MAP; it has no order.
    #[error("column `{column}`: the key of a MAP cannot hold a MAP; use an ARRAY of STRUCT")]
    MapInMapKey {
        /// Path of the column.
        column: String,
    },
    /// A MAP within a grouping key or the key of map state.
    #[error("key column `{column}` holds a MAP, which cannot be grouped by; use its entries as an ARRAY of STRUCT")]
    MapInKey {
        /// Name of the column.
        column: String,
    },
    /// An Arrow type without a counterpart.
    #[error("column `{column}` has the Arrow type {arrow_type}, which cannot be read; {instead}")]
    UnsupportedArrowType {
        /// Path of the column.
        column: String,
        /// As Arrow prints it.
        arrow_type: String,
        /// What to do about it.
        instead: &'static str,
    },
    /// A column that is not in the schema.
    #[error("there is no column `{name}`; there are: {columns}")]
    UnknownColumn {
        /// As asked for.
        name: String,
        /// Those that exist, shortened.
        columns: String,
    },
}

impl SchemaError {
    /// A column that is not among those there are.
    pub(super) fn unknown_column<'n>(name: &str, there: impl Iterator<Item = &'n str>) -> Self {
        let mut columns = String::new();
        for column in there {
            if columns.len() + column.len() > NAMES_SHOWN_BYTES_MAX {
                columns.push_str(", ...");
                break;
            }
            if !columns.is_empty() {
                columns.push_str(", ");
            }
            columns.push_str(column);
        }
        Self::UnknownColumn { name: name.to_owned(), columns }
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownColumn { .. } => "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            Self::UnsupportedArrowType { .. } => "UNSUPPORTED_COLUMN_TYPE",
            Self::MapInKey { .. } => "GROUP_EXPRESSION_TYPE_IS_NOT_ORDERABLE",
            _ => "INVALID_SCHEMA",
        }
    }
}

/// A packed row that does not fit its schema. Small, since it travels through the hot path of validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFault(Box<RowFaultDetail>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct RowFaultDetail {
    code: &'static str,
    column: String,
    message: Cow<'static, str>,
}

impl RowFault {
    #[cold]
    pub(super) fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(RowFaultDetail { code: INVALID_ROW, column: String::new(), message: message.into() }))
    }

    #[cold]
    pub(super) fn null() -> Self {
        Self(Box::new(RowFaultDetail {
            code: NULL_VALUE,
            column: String::new(),
            message: Cow::Borrowed("is NULL, and the column is NOT NULL"),
        }))
    }

    /// The same fault seen from one level further out.
    #[cold]
    pub(super) fn within(mut self, outer: &str) -> Self {
        self.0.column = join_path(outer, &self.0.column);
        self
    }

    /// `ILLEGAL_STATE_STORE_VALUE.NULL_VALUE` for a NULL in a NOT NULL column, else `INVALID_ROW`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.code
    }

    /// Path of the column, e.g. `address.lines[3]`; empty when the row as a whole is wrong.
    #[must_use]
    pub fn column(&self) -> &str {
        &self.0.column
    }
}

impl fmt::Display for RowFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.column.is_empty() {
            write!(f, "row: {}", self.0.message)
        } else {
            write!(f, "column `{}`: {}", self.0.column, self.0.message)
        }
    }
}

impl std::error::Error for RowFault {}

/// Broken lengths around the rows of a list of packed rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("packed rows, at byte {at}: {problem}")]
pub struct FramingError {
    /// Offset from the start of the list.
    pub at: usize,
    /// What is wrong there.
    pub problem: &'static str,
}

impl FramingError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "INVALID_FRAMING"
    }
}

/// One row of a batch that cannot be taken as it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("row {row}, column `{column}`: {problem}")]
pub struct BadRow {
    /// Number in the batch, from 0.
    pub row: usize,
    /// Path of the column.
    pub column: String,
    /// What is wrong with the value.
    pub problem: &'static str,
}

/// Why a batch could not be brought to the wanted schema.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CastError {
    /// The schemas do not fit, whatever the rows.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A column whose type does not widen to the wanted one.
    #[error(
        "column `{column}` is {from} and {to} is wanted, which could lose values; only widenings without loss are made \
         (TINYINT to SMALLINT to INT to BIGINT, those up to INT and FLOAT to DOUBLE, DECIMAL to a wider one)"
    )]
    DoesNotWiden {
        /// Name of the column.
        column: String,
        /// Its type, as DDL.
        from: String,
        /// The wanted type, as DDL.
        to: String,
    },
    /// Rows that do not fit, all of them, at most one entry per row, in order of rows. Without these rows the batch fits.
    #[error("{}", describe_bad_rows(.0))]
    BadRows(Vec<BadRow>),
    /// The batch contradicts itself.
    #[error("column `{column}` cannot be converted: {problem}")]
    Arrow {
        /// Name of the column.
        column: String,
        /// As Arrow tells it.
        problem: String,
    },
}

impl CastError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Schema(e) => e.code(),
            Self::DoesNotWiden { .. } => "CANNOT_WIDEN_COLUMN",
            Self::BadRows(_) => "BAD_ROW",
            Self::Arrow { .. } => "INVALID_BATCH",
        }
    }
}

/// Why a batch cannot be packed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The batch has another schema than the layout.
    #[error("the batch has the columns {found}, the layout {wanted}")]
    SchemaMismatch {
        /// Fields of the batch.
        found: String,
        /// Schema of the layout.
        wanted: String,
    },
    /// Rows with a MAP that has a key twice, in order of rows. Without these rows the batch can be packed.
    #[error("{}", describe_bad_rows(.0))]
    BadRows(Vec<BadRow>),
    /// A batch so large that a row's 32-bit offsets might not reach.
    #[error("the batch takes up to {bytes} bytes when packed; at most 4 GiB can be: read fewer rows per batch")]
    BatchTooLarge {
        /// Upper bound of the packed size.
        bytes: u64,
    },
}

impl EncodeError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::SchemaMismatch { .. } => "SCHEMA_MISMATCH",
            Self::BadRows(_) => "BAD_ROW",
            Self::BatchTooLarge { .. } => "BATCH_TOO_LARGE",
        }
    }
}

/// A JSON value that is no row of the schema.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", describe_json(.column, .problem))]
pub struct JsonError {
    pub(super) code: &'static str,
    /// Path of the column; empty when the row as a whole is wrong.
    pub column: String,
    /// What was expected and what was found.
    pub problem: String,
}

impl JsonError {
    pub(super) fn invalid(problem: impl Into<String>) -> Self {
        Self { code: "INVALID_JSON_ROW", column: String::new(), problem: problem.into() }
    }

    pub(super) fn null() -> Self {
        Self { code: NULL_VALUE, column: String::new(), problem: "is NULL, and the column is NOT NULL".into() }
    }

    pub(super) fn within(mut self, outer: &str) -> Self {
        self.column = join_path(outer, &self.column);
        self
    }

    /// `ILLEGAL_STATE_STORE_VALUE.NULL_VALUE` for a NULL in a NOT NULL column, else `INVALID_JSON_ROW`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.code
    }
}

/// `a` and `b` make `a.b`, `a` and `[3]` make `a[3]`.
pub(super) fn join_path(outer: &str, inner: &str) -> String {
    if inner.is_empty() {
        outer.to_owned()
    } else if inner.starts_with('[') || outer.is_empty() {
        format!("{outer}{inner}")
    } else {
        format!("{outer}.{inner}")
    }
}

fn describe_json(column: &str, problem: &str) -> String {
    if column.is_empty() { format!("row: {problem}") } else { format!("column `{column}`: {problem}") }
}

fn describe_bad_rows(rows: &[BadRow]) -> String {
    match rows {
        [] => "no bad row".to_owned(),
        [one] => one.to_string(),
        [first, rest @ ..] => format!("{first} (and {} more rows of this batch)", rest.len()),
    }
}
