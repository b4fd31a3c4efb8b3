//! Whether a declared variable can go on with stored state, and what becomes of that state.
//!
//! - The kind, and the key schema of a map, are fixed: they are what stored records are found by.
//! - A value schema must be able to read the rows of every schema that the variable has had, since rows are rewritten
//!   only when they are written: see [`crate::record`] for what may follow what.
//! - TTL belongs to each record, which carries the expiry that it was written with. So a TTL that is added, changed or
//!   taken away holds for what is written from then on, and never brings back or cuts short what is stored.

use super::catalog::CatalogVariable;
use super::error::StateError;
use super::limits::StateLimits;
use super::variable::{Conversions, VariableKind, VariableSpec};
use crate::record::{Difference, Evolution, FieldChange, Schema};

/// What would become of a variable.
#[derive(Debug)]
pub struct VariableOutlook {
    /// Its name.
    pub name: String,
    /// Its kind: as declared, or as stored if it is not.
    pub kind: VariableKind,
    /// What becomes of it.
    pub outlook: Outlook,
}

/// What would become of a variable.
#[derive(Debug)]
pub enum Outlook {
    /// It is not in the checkpoint, and begins empty.
    New,
    /// It goes on with its state.
    Kept {
        /// What is different in its value schema.
        differences: Vec<Difference>,
        /// Whether rows of the last schema have other bytes in the declared one.
        converted: bool,
        /// The TTL of the checkpoint.
        ttl_before_ms: Option<u64>,
    },
    /// It is not declared, and keeps its state.
    Undeclared {
        /// Whether it was not declared before either.
        before: bool,
    },
    /// It goes, with its state.
    Dropped,
    /// The processor cannot go on with the checkpoint.
    Refused(StateError),
}

/// How a declared variable goes on with a stored one.
pub(super) struct Fit {
    /// Id of the declared value schema.
    pub(super) schema_id: u16,
    /// How rows of the other schemas are read.
    pub(super) conversions: Conversions,
    /// What is different to the schema in force so far.
    pub(super) differences: Vec<Difference>,
}

impl CatalogVariable {
    pub(super) fn fit(&self, spec: &VariableSpec, limits: &StateLimits) -> Result<Fit, StateError> {
        let name = || self.name.clone();
        if self.kind != spec.kind {
            return Err(StateError::KindChanged { name: name(), stored: self.kind.name(), declared: spec.kind.name() });
        }
        if let (Some(stored), Some(declared)) = (&self.key, &spec.key)
            && !same_key(stored, declared)
        {
            let (stored, declared) = (stored.to_string(), declared.to_string());
            return Err(StateError::KeySchemaChanged { name: name(), stored, declared });
        }
        let known = self.values().find(|(_, value)| **value == spec.value).map(|(id, _)| id);
        let schema_id = known.unwrap_or_else(|| self.values().map(|(id, _)| id).max().unwrap_or(0).saturating_add(1));
        let conversions = self.read_as(schema_id, &spec.value)?;
        if known.is_none() && schema_id >= limits.value_schemas_max {
            return Err(StateError::TooManySchemas { name: name(), schemas_max: limits.value_schemas_max });
        }
        Ok(Fit { schema_id, conversions, differences: Evolution::between(&self.value, &spec.value).differences })
    }

    /// How rows of all schemas become rows of this one.
    pub(super) fn read_as(&self, schema_id: u16, declared: &Schema) -> Result<Conversions, StateError> {
        let others = self.values().filter(|(id, _)| *id != schema_id);
        let conversions = others.map(|(id, stored)| match Evolution::between(stored, declared).conversion() {
            Ok(conversion) => Ok((id, conversion)),
            Err(differences) => Err(StateError::ValueSchemaChanged {
                name: self.name.clone(),
                in_force: id == self.schema_id,
                stored: stored.to_string(),
                declared: declared.to_string(),
                differences,
            }),
        });
        conversions.collect::<Result<Vec<_>, _>>().map(Conversions::new)
    }
}

/// Whether keys packed by one schema are found by the other: names and types are the same, and NULL is nowhere excluded
/// where it was possible.
fn same_key(stored: &Schema, declared: &Schema) -> bool {
    let differences = Evolution::between(stored, declared).differences;
    differences.iter().all(|difference| difference.change == FieldChange::MadeNullable)
}
