//! Schemas: the columns of a row and their types, checked once when a schema is made.

use std::collections::HashSet;
use std::sync::Arc;

use super::error::SchemaError;

/// Most columns of one row, at every level. More than real tables have; keeps null bitmaps and decoders small.
pub const COLUMNS_MAX: usize = 1_024;

/// Most ARRAY, MAP and STRUCT within one another. Every walk over a type recurses no deeper, so no stack can overflow.
pub const NESTING_MAX: usize = 16;

/// Most digits of a decimal; what 128 bits hold.
pub(super) const DECIMAL_PRECISION_MAX: u8 = 38;

/// Type of a column, an array's elements, or a map's keys or values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DataType {
    /// `BOOLEAN`
    Boolean,
    /// `TINYINT`, 8 bits
    TinyInt,
    /// `SMALLINT`, 16 bits
    SmallInt,
    /// `INT`, 32 bits
    Int,
    /// `BIGINT`, 64 bits
    BigInt,
    /// `FLOAT`, 32 bits
    Float,
    /// `DOUBLE`, 64 bits
    Double,
    /// `DECIMAL(precision, scale)`
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits after the point, 0 to the precision.
        scale: u8,
    },
    /// `STRING`, UTF-8
    String,
    /// `BINARY`
    Binary,
    /// `DATE`, days since 1970-01-01 in 32 bits
    Date,
    /// `TIMESTAMP`, an instant, microseconds since the epoch in 64 bits
    Timestamp,
    /// `ARRAY<element>`; elements may be NULL.
    Array(Box<DataType>),
    /// `MAP<key, value>`; keys are never NULL and hold no MAP, values may be NULL.
    Map(Box<DataType>, Box<DataType>),
    /// `STRUCT<...>`
    Struct(Schema),
}

/// A column: of a row or of a struct.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    /// Free text; unique in its row, upper and lower case being the same.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// False for NOT NULL.
    pub nullable: bool,
}

impl Field {
    /// A column that may be NULL.
    pub fn nullable(name: impl Into<String>, data_type: DataType) -> Self {
        Self { name: name.into(), data_type, nullable: true }
    }

    /// A column that is NOT NULL.
    pub fn required(name: impl Into<String>, data_type: DataType) -> Self {
        Self { name: name.into(), data_type, nullable: false }
    }
}

/// The columns of a row, in order. Cheap to clone. It may have no columns: a processor that only counts rows wants none.
#[derive(Default, Debug, Clone, PartialEq, Eq, Hash)]
pub struct Schema(Arc<[Field]>);

impl Schema {
    /// Checks names (unique at every level), the number of columns, nesting, decimals and map keys.
    ///
    /// # Errors
    /// [`SchemaError`] naming the column.
    pub fn new(fields: Vec<Field>) -> Result<Self, SchemaError> {
        if fields.len() > COLUMNS_MAX {
            return Err(SchemaError::TooManyColumns { columns: fields.len(), columns_max: COLUMNS_MAX });
        }
        let mut names = HashSet::with_capacity(fields.len());
        for field in &fields {
            if !names.insert(field.name.to_lowercase()) {
                return Err(SchemaError::DuplicateName { column: field.name.clone() });
            }
            check_type(&field.data_type, &field.name, NESTING_MAX)?;
        }
        Ok(Self(fields.into()))
    }

    /// Reads DDL, e.g. `user_id STRING NOT NULL, n BIGINT, tags ARRAY<STRING>`. Linear in the length of the text.
    ///
    /// # Errors
    /// [`SchemaError`] with the position in the text, or naming the column.
    pub fn parse(ddl: &str) -> Result<Self, SchemaError> {
        super::ddl::parse(ddl)
    }

    /// The columns, in order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.0
    }

    /// Number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no columns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Position of a column, upper and lower case being the same.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        if let Some(exact) = self.0.iter().position(|field| field.name == name) {
            return Some(exact);
        }
        let name = name.to_lowercase();
        self.0.iter().position(|field| field.name.to_lowercase() == name)
    }

    /// The column of that name, upper and lower case being the same.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.index_of(name).and_then(|index| self.0.get(index))
    }

    /// The named columns, in the order of the names.
    ///
    /// # Errors
    /// A name that is not there, or there twice.
    pub fn project<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Self, SchemaError> {
        let fields = names
            .into_iter()
            .map(|name| self.field(name).cloned().ok_or_else(|| self.unknown_column(name)))
            .collect::<Result<Vec<_>, _>>()?;
        Self::new(fields)
    }

    /// The canonical Arrow schema; the one that encoders take and decoders make.
    #[must_use]
    pub fn to_arrow(&self) -> arrow_schema::SchemaRef {
        super::arrow::schema_to_arrow(self)
    }

    /// The schema of a foreign Arrow schema. Unsigned integers become the next wider type (64 bits: `DECIMAL(20,0)`), half floats
    /// `FLOAT`, timestamps of any unit and zone `TIMESTAMP` (without a zone they count as UTC), dictionaries their values.
    ///
    /// # Errors
    /// The column and the type that has no counterpart.
    pub fn from_arrow(schema: &arrow_schema::Schema) -> Result<Self, SchemaError> {
        super::arrow::schema_from_arrow(schema)
    }

    pub(super) fn unknown_column(&self, name: &str) -> SchemaError {
        SchemaError::unknown_column(name, self.fields().iter().map(|field| field.name.as_str()))
    }
}

impl serde::Serialize for Schema {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Schema {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ddl = String::deserialize(deserializer)?;
        Self::parse(&ddl).map_err(serde::de::Error::custom)
    }
}

/// Whether a MAP is anywhere in the type.
pub(super) fn holds_map(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(..) => true,
        DataType::Array(element) => holds_map(element),
        DataType::Struct(schema) => schema.fields().iter().any(|field| holds_map(&field.data_type)),
        _ => false,
    }
}

/// Checks a type of which `nesting_left` levels may nest. Names within structs have been checked when those were made.
fn check_type(data_type: &DataType, column: &str, nesting_left: usize) -> Result<(), SchemaError> {
    let deeper = |inner: &DataType| match nesting_left.checked_sub(1) {
        Some(left) => check_type(inner, column, left),
        None => Err(SchemaError::TooDeep { column: column.to_owned(), nesting_max: NESTING_MAX }),
    };
    match data_type {
        DataType::Decimal { precision, scale } => {
            if (1..=DECIMAL_PRECISION_MAX).contains(precision) && scale <= precision {
                Ok(())
            } else {
                let (precision, scale) = (*precision, *scale);
                Err(SchemaError::DecimalOutOfRange { column: column.to_owned(), precision, scale })
            }
        }
        DataType::Array(element) => deeper(element),
        DataType::Map(key, value) => {
            deeper(key)?;
            deeper(value)?;
            if holds_map(key) { Err(SchemaError::MapInMapKey { column: column.to_owned() }) } else { Ok(()) }
        }
        DataType::Struct(schema) if schema.is_empty() => deeper(&DataType::Boolean),
        DataType::Struct(schema) => schema.fields().iter().try_for_each(|field| deeper(&field.data_type)),
        _ => Ok(()),
    }
}
