//! What a processor declares: the variables of its state, by name, kind, schemas and TTL.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::error::StateError;
use crate::record::{ConversionError, RowConversion, Schema};

/// Most variables that a processor may declare; each costs a slot per key of a batch, and a reader of the processor
/// loses track far sooner.
pub const VARIABLES_MAX: usize = 256;

/// Most characters of a variable's name. They travel in errors, progress reports and the catalog.
pub const NAME_CHARS_MAX: usize = 300;

/// What a variable holds per grouping key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VariableKind {
    /// One row.
    Value,
    /// Rows in order.
    List,
    /// Rows by key.
    Map,
}

impl VariableKind {
    /// As errors and listings show it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::List => "list",
            Self::Map => "map",
        }
    }
}

/// A variable as a processor declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct VariableSpec {
    /// Unique in the processor, over all kinds.
    pub name: String,
    /// What it holds.
    pub kind: VariableKind,
    /// Key of a map's entries; set exactly for maps.
    pub key: Option<Schema>,
    /// Value, list element, or map value.
    pub value: Schema,
    /// How long a write lives, in milliseconds of processing time; None or 0 is for ever.
    pub ttl_ms: Option<u64>,
}

/// A declared variable with what the catalog gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Stable over restarts, unique in its step, at least 1.
    pub id: u16,
    /// The schema of rows that are written now.
    pub schema_id: u16,
    /// Whether stored rows may expire: it has a TTL or had one.
    pub expires: bool,
    /// How rows of other schemas are read.
    pub conversions: Conversions,
    /// As declared.
    pub spec: VariableSpec,
}

/// From rows that were written under other schemas of a variable to rows of the one that is declared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversions(Arc<[(u16, Option<RowConversion>)]>);

/// What a row may grow to by conversion, beside four times its size: far more than added fields make of ordinary rows,
/// and bounded where a hostile schema makes an array of wide structs of an array of narrow ones.
const CONVERTED_BYTES_MAX: usize = 16 << 20;

impl Conversions {
    /// Ids of schemas, each with what makes its rows rows of the declared schema; None: they are.
    pub(super) fn new(mut by_id: Vec<(u16, Option<RowConversion>)>) -> Self {
        by_id.sort_by_key(|(id, _)| *id);
        Self(by_id.into())
    }

    /// Whether rows of this schema have other bytes in the declared one.
    pub(super) fn convert(&self, schema_id: u16) -> bool {
        self.0.iter().any(|(id, conversion)| *id == schema_id && conversion.is_some())
    }

    /// Appends a row that was written under schema `schema_id` as a row of the declared schema.
    ///
    /// # Errors
    /// A schema that the variable has never had, or a row that is none of it; a row that would become too large.
    #[cold]
    pub fn append(&self, schema_id: u16, row: &[u8], out: &mut Vec<u8>) -> Result<(), StateError> {
        let corrupt = |message: String| StateError::corrupt("family State", message);
        let place = self.0.binary_search_by_key(&schema_id, |(id, _)| *id);
        match place.ok().and_then(|place| self.0.get(place)) {
            None => Err(corrupt(format!("a row names schema {schema_id}, which its variable never had"))),
            Some((_, None)) => {
                out.extend_from_slice(row);
                Ok(())
            }
            Some((_, Some(conversion))) => {
                let bytes_max = CONVERTED_BYTES_MAX.saturating_add(row.len().saturating_mul(4));
                conversion.convert(row, out, bytes_max).map_err(|error| match error {
                    ConversionError::Row(fault) => corrupt(format!("a row of schema {schema_id}: {fault}")),
                    ConversionError::TooLarge { bytes_max } => StateError::ConvertedTooLarge { schema_id, bytes_max },
                })
            }
        }
    }
}

impl Variable {
    /// Appends a stored row as one of the declared schema.
    ///
    /// # Errors
    /// As [`Conversions::append`].
    #[inline]
    pub(super) fn append(&self, schema_id: u16, row: &[u8], out: &mut Vec<u8>) -> Result<(), StateError> {
        if schema_id != self.schema_id {
            return self.conversions.append(schema_id, row, out);
        }
        out.extend_from_slice(row);
        Ok(())
    }
}

/// Whether a processor can declare and drop these together.
///
/// # Errors
/// Too many, bad, reserved or double names, a negative TTL, a map without key schema.
pub(super) fn check_declarations(declared: &[VariableSpec], deleted: &[String]) -> Result<(), StateError> {
    if declared.len() > VARIABLES_MAX {
        return Err(StateError::TooManyVariables { variables: declared.len(), variables_max: VARIABLES_MAX });
    }
    let mut names = HashSet::new();
    for spec in declared {
        check_name(&spec.name)?;
        let duplicate = |conflict| StateError::DuplicateVariable { name: spec.name.clone(), conflict };
        if !names.insert(spec.name.as_str()) {
            return Err(duplicate("declared twice"));
        }
        if deleted.contains(&spec.name) {
            return Err(duplicate("declared and dropped at once"));
        }
        if let Some(ttl_ms) = spec.ttl_ms.map(u64::cast_signed).filter(|ttl_ms| *ttl_ms < 0) {
            return Err(StateError::TtlNotPositive { name: spec.name.clone(), ttl_ms });
        }
        if spec.key.is_some() != (spec.kind == VariableKind::Map) {
            let message = "a map has a key schema, other kinds have none";
            return Err(StateError::Misuse { variable: spec.name.clone(), message });
        }
    }
    Ok(())
}

/// Whether a variable can have this name: 1 to [`NAME_CHARS_MAX`] characters, no control characters, no blanks at the
/// ends, not reserved.
///
/// # Errors
/// [`StateError::InvalidName`], [`StateError::ReservedName`].
pub fn check_name(name: &str) -> Result<(), StateError> {
    if name.starts_with('$') {
        return Err(StateError::ReservedName { name: name.to_owned() });
    }
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.trim() != name {
        "it begins or ends with a blank"
    } else if name == "default" {
        "the name is reserved"
    } else if name.chars().count() > NAME_CHARS_MAX {
        "it has more than 300 characters"
    } else if name.chars().any(char::is_control) {
        "it holds a control character"
    } else {
        return Ok(());
    };
    Err(StateError::InvalidName { name: name.chars().take(NAME_CHARS_MAX).collect(), reason })
}
