//! The variables of every step: their stable ids, kinds and schemas; kept in family `Meta` as JSON.
//!
//! An id is given once and never again, so that a variable that was dropped and comes back starts empty. A variable
//! that is no longer declared keeps its id and its state until it is dropped. Every value schema that a variable has had
//! keeps its id too, since stored rows name it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::changes::Changes;
use super::error::StateError;
use super::evolution::{Fit, Outlook, VariableOutlook};
use super::keys::CATALOG;
use super::limits::StateLimits;
use super::store::{Family, Reader, get};
use super::variable::{Conversions, Variable, VariableKind, VariableSpec, check_declarations};
use crate::record::Schema;

/// All variables that have or may have state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalog {
    steps: Vec<StepVariables>,
}

/// The variables of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StepVariables {
    step: u8,
    next_id: u16,
    variables: Vec<CatalogVariable>,
}

/// A variable as the checkpoint knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogVariable {
    /// Stable id.
    pub id: u16,
    /// Name.
    pub name: String,
    /// What it holds.
    pub kind: VariableKind,
    /// Key of a map's entries.
    pub key: Option<Schema>,
    /// Schema of the rows written now.
    pub value: Schema,
    /// Id of that schema; stored rows name it.
    pub schema_id: u16,
    /// The other value schemas that rows may have been written with, by id.
    pub other_values: BTreeMap<u16, Schema>,
    /// How long a row that is written now lives, in milliseconds of processing time; None is for ever.
    pub ttl_ms: Option<u64>,
    /// Whether stored rows may expire: it has a TTL or had one.
    pub expires: bool,
    /// Whether the processor still declares it.
    pub declared: bool,
}

/// What [`Catalog::resolve`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// The catalog from the next commit on.
    pub catalog: Catalog,
    /// The declared variables, in order of declaration.
    pub variables: Arc<[Variable]>,
    /// Variables to drop, with the same commit; see [`super::drop_variable`].
    pub dropped: Vec<Dropped>,
    /// Puts the catalog into the store; empty when it is as it was.
    pub changes: Changes,
}

/// A variable that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// Its id.
    pub id: u16,
    /// Its name.
    pub name: String,
}

impl Catalog {
    /// The catalog in the store; an empty one before the first commit.
    ///
    /// # Errors
    /// The disk, or damage.
    pub fn load(reader: &dyn Reader) -> Result<Self, StateError> {
        let Some(bytes) = get(reader, Family::Meta, CATALOG)? else {
            return Ok(Self::default());
        };
        serde_json::from_slice(&bytes)
            .map_err(|error| StateError::corrupt("the catalog of variables", error.to_string()))
    }

    /// The variables of a step, in order of their ids.
    #[must_use]
    pub fn variables(&self, step: u8) -> &[CatalogVariable] {
        self.steps.iter().find(|variables| variables.step == step).map_or(&[], |variables| &variables.variables)
    }

    /// Decides whether the declared variables fit what the checkpoint holds, and gives them their ids. Names in
    /// `deleted` that are unknown have no effect.
    ///
    /// # Errors
    /// Bad, reserved or double names; a kind or map key other than in the checkpoint; a value schema that cannot read
    /// every earlier one, or is one too many; a negative TTL; too many variables.
    pub fn resolve(
        &self,
        step: u8,
        declared: &[VariableSpec],
        deleted: &[String],
        limits: &StateLimits,
    ) -> Result<Resolution, StateError> {
        check_declarations(declared, deleted)?;
        let mut catalog = self.clone();
        let variables_of_step = catalog.step_mut(step);
        let dropped = variables_of_step.drop_named(deleted);
        variables_of_step.mark_declared(declared);
        let variables =
            declared.iter().map(|spec| variables_of_step.admit(spec, limits)).collect::<Result<Arc<[_]>, _>>()?;
        let mut changes = Changes::default();
        if catalog != *self {
            let json = serde_json::to_vec(&catalog)
                .map_err(|error| StateError::corrupt("the catalog of variables", error.to_string()))?;
            changes.push(Family::Meta, CATALOG, Some(&json));
        }
        Ok(Resolution { catalog, variables, dropped, changes })
    }

    /// What would become of every variable of a step, the declared ones first.
    ///
    /// # Errors
    /// Declarations that no checkpoint could hold.
    pub fn outlook(
        &self,
        step: u8,
        declared: &[VariableSpec],
        deleted: &[String],
        limits: &StateLimits,
    ) -> Result<Vec<VariableOutlook>, StateError> {
        check_declarations(declared, deleted)?;
        let stored = self.variables(step);
        let of_declared = declared.iter().map(|spec| {
            let outlook = match stored.iter().find(|known| known.name == spec.name) {
                None => Outlook::New,
                Some(known) => match known.fit(spec, limits) {
                    Ok(Fit { differences, conversions, .. }) => Outlook::Kept {
                        differences,
                        converted: conversions.convert(known.schema_id),
                        ttl_before_ms: known.ttl_ms,
                    },
                    Err(error) => Outlook::Refused(error),
                },
            };
            VariableOutlook { name: spec.name.clone(), kind: spec.kind, outlook }
        });
        let rest = stored.iter().filter(|known| declared.iter().all(|spec| spec.name != known.name)).map(|known| {
            let outlook = match deleted.contains(&known.name) {
                true => Outlook::Dropped,
                false => Outlook::Undeclared { before: !known.declared },
            };
            VariableOutlook { name: known.name.clone(), kind: known.kind, outlook }
        });
        Ok(of_declared.chain(rest).collect())
    }

    fn step_mut(&mut self, step: u8) -> &mut StepVariables {
        let place = self.steps.partition_point(|variables| variables.step < step);
        if self.steps.get(place).is_none_or(|variables| variables.step != step) {
            self.steps.insert(place, StepVariables { step, next_id: 1, variables: Vec::new() });
        }
        #[expect(clippy::indexing_slicing, reason = "the step stands at this place or was just put there")]
        &mut self.steps[place]
    }
}

impl StepVariables {
    fn drop_named(&mut self, deleted: &[String]) -> Vec<Dropped> {
        let (gone, kept) =
            std::mem::take(&mut self.variables).into_iter().partition(|known| deleted.contains(&known.name));
        self.variables = kept;
        gone.into_iter().map(|known: CatalogVariable| Dropped { id: known.id, name: known.name }).collect()
    }

    fn mark_declared(&mut self, declared: &[VariableSpec]) {
        let names: HashSet<_> = declared.iter().map(|spec| spec.name.as_str()).collect();
        for known in &mut self.variables {
            known.declared = names.contains(known.name.as_str());
        }
    }

    fn admit(&mut self, spec: &VariableSpec, limits: &StateLimits) -> Result<Variable, StateError> {
        let ttl_ms = spec.ttl_ms.filter(|ttl_ms| *ttl_ms > 0);
        let spec = VariableSpec { ttl_ms, ..spec.clone() };
        if let Some(known) = self.variables.iter_mut().find(|known| known.name == spec.name) {
            let Fit { schema_id, conversions, .. } = known.fit(&spec, limits)?;
            known.take(&spec, schema_id);
            return Ok(Variable { id: known.id, schema_id, expires: known.expires, conversions, spec });
        }
        let id = self.next_id;
        let used_up = StateError::TooManyVariables { variables: id.into(), variables_max: u16::MAX.into() };
        self.next_id = id.checked_add(1).ok_or(used_up)?;
        self.variables.push(CatalogVariable {
            id,
            name: spec.name.clone(),
            kind: spec.kind,
            key: spec.key.clone(),
            value: spec.value.clone(),
            schema_id: 0,
            other_values: BTreeMap::new(),
            ttl_ms,
            expires: ttl_ms.is_some(),
            declared: true,
        });
        Ok(Variable { id, schema_id: 0, expires: ttl_ms.is_some(), conversions: Conversions::default(), spec })
    }
}

impl CatalogVariable {
    /// Takes over what is declared now, under this schema id.
    fn take(&mut self, spec: &VariableSpec, schema_id: u16) {
        self.key.clone_from(&spec.key);
        self.ttl_ms = spec.ttl_ms;
        self.expires |= spec.ttl_ms.is_some();
        if schema_id != self.schema_id {
            self.other_values.remove(&schema_id);
            let before = std::mem::replace(&mut self.value, spec.value.clone());
            self.other_values.insert(std::mem::replace(&mut self.schema_id, schema_id), before);
        }
    }

    /// Every value schema that rows may have been written with, the one in force first.
    pub(super) fn values(&self) -> impl Iterator<Item = (u16, &Schema)> {
        let others = self.other_values.iter().rev().map(|(id, schema)| (*id, schema));
        std::iter::once((self.schema_id, &self.value)).chain(others)
    }

    /// Reads stored rows by the schema in force.
    ///
    /// # Errors
    /// A catalog that this program cannot have written.
    pub fn stored_rows(&self) -> Result<StoredRows, StateError> {
        let conversions = self.read_as(self.schema_id, &self.value)?;
        Ok(StoredRows { schema_id: self.schema_id, conversions })
    }
}

/// Stored rows of a variable as the processor of the last batch sees them: of the schema in force, whichever they were
/// written under.
#[derive(Debug, Clone)]
pub struct StoredRows {
    schema_id: u16,
    conversions: Conversions,
}

impl StoredRows {
    /// A row that was written under schema `schema_id`, as one of the schema in force.
    ///
    /// # Errors
    /// As [`Conversions::append`].
    pub fn in_force<'a>(&self, schema_id: u16, row: &'a [u8]) -> Result<Cow<'a, [u8]>, StateError> {
        if schema_id == self.schema_id {
            return Ok(Cow::Borrowed(row));
        }
        let mut converted = Vec::new();
        self.conversions.append(schema_id, row, &mut converted)?;
        Ok(Cow::Owned(converted))
    }
}
