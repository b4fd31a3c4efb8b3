//! The variables of every step: their stable ids, kinds and schemas; kept in family `Meta` as JSON.
//!
//! An id is given once and never again, so that a variable that was dropped and comes back starts empty. A variable
//! that is no longer declared keeps its id and its state until it is dropped.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::changes::Changes;
use super::error::StateError;
use super::keys::CATALOG;
use super::store::{Family, Reader, get};
use crate::record::{DataType, Schema};

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
    /// As declared.
    pub spec: VariableSpec,
}

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
    /// How long a row that is written now lives, in milliseconds of processing time; None is for ever.
    pub ttl_ms: Option<u64>,
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
    /// Bad, reserved or double names; a kind, map key, value schema or presence of TTL other than in the checkpoint; a
    /// negative TTL; too many variables.
    pub fn resolve(&self, step: u8, declared: &[VariableSpec], deleted: &[String]) -> Result<Resolution, StateError> {
        check_declarations(declared, deleted)?;
        let mut catalog = self.clone();
        let variables_of_step = catalog.step_mut(step);
        let dropped = variables_of_step.drop_named(deleted);
        let variables = declared.iter().map(|spec| variables_of_step.admit(spec)).collect::<Result<Arc<[_]>, _>>()?;
        let mut changes = Changes::default();
        if catalog != *self {
            let json = serde_json::to_vec(&catalog)
                .map_err(|error| StateError::corrupt("the catalog of variables", error.to_string()))?;
            changes.push(Family::Meta, CATALOG, Some(&json));
        }
        Ok(Resolution { catalog, variables, dropped, changes })
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

    fn admit(&mut self, spec: &VariableSpec) -> Result<Variable, StateError> {
        let ttl_ms = spec.ttl_ms.filter(|ttl_ms| *ttl_ms > 0);
        let spec = VariableSpec { ttl_ms, ..spec.clone() };
        if let Some(known) = self.variables.iter_mut().find(|known| known.name == spec.name) {
            known.check(&spec)?;
            // Names, nullability and the length of the TTL may have changed; what is declared now is what is shown and
            // written from now on.
            known.value.clone_from(&spec.value);
            known.ttl_ms = spec.ttl_ms;
            return Ok(Variable { id: known.id, schema_id: known.schema_id, spec });
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
            ttl_ms: spec.ttl_ms,
        });
        Ok(Variable { id, schema_id: 0, spec })
    }
}

impl CatalogVariable {
    fn check(&self, spec: &VariableSpec) -> Result<(), StateError> {
        let name = || self.name.clone();
        if self.kind != spec.kind {
            return Err(StateError::KindChanged { name: name(), stored: self.kind.name(), declared: spec.kind.name() });
        }
        if let (Some(stored), Some(declared)) = (&self.key, &spec.key)
            && !same_types(stored, declared)
        {
            let (stored, declared) = (stored.to_string(), declared.to_string());
            return Err(StateError::KeySchemaChanged { name: name(), stored, declared });
        }
        if !reads_as(&self.value, &spec.value) {
            let (stored, declared) = (self.value.to_string(), spec.value.to_string());
            return Err(StateError::ValueSchemaChanged { name: name(), stored, declared });
        }
        if self.ttl_ms.is_some() != spec.ttl_ms.is_some() {
            return Err(StateError::TtlChanged { name: name(), stored: self.ttl_ms.is_some() });
        }
        Ok(())
    }
}

fn check_declarations(declared: &[VariableSpec], deleted: &[String]) -> Result<(), StateError> {
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

/// Whether rows of both schemas have the same bytes.
fn same_types(a: &Schema, b: &Schema) -> bool {
    a.len() == b.len()
        && a.fields().iter().zip(b.fields()).all(|(a, b)| same_type(&a.data_type, &b.data_type, same_types))
}

/// Whether each row of `stored` is one of `declared`: the same types, and NOT NULL nowhere where it was not.
fn reads_as(stored: &Schema, declared: &Schema) -> bool {
    stored.len() == declared.len()
        && stored.fields().iter().zip(declared.fields()).all(|(stored, declared)| {
            (declared.nullable || !stored.nullable) && same_type(&stored.data_type, &declared.data_type, reads_as)
        })
}

fn same_type(a: &DataType, b: &DataType, structs: fn(&Schema, &Schema) -> bool) -> bool {
    match (a, b) {
        (DataType::Array(a), DataType::Array(b)) => same_type(a, b, structs),
        (DataType::Map(a_key, a_value), DataType::Map(b_key, b_value)) => {
            same_type(a_key, b_key, structs) && same_type(a_value, b_value, structs)
        }
        (DataType::Struct(a), DataType::Struct(b)) => structs(a, b),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::MemoryStore;
    use super::super::store::{Applied, Store};
    use super::*;

    fn schema(ddl: &str) -> Schema {
        Schema::parse(ddl).unwrap()
    }

    fn value(name: &str, ddl: &str) -> VariableSpec {
        VariableSpec { name: name.into(), kind: VariableKind::Value, key: None, value: schema(ddl), ttl_ms: None }
    }

    fn map(name: &str, key: &str, ddl: &str) -> VariableSpec {
        VariableSpec { kind: VariableKind::Map, key: Some(schema(key)), ..value(name, ddl) }
    }

    fn resolved(specs: &[VariableSpec]) -> Catalog {
        Catalog::default().resolve(0, specs, &[]).unwrap().catalog
    }

    fn code(catalog: &Catalog, spec: VariableSpec) -> &'static str {
        catalog.resolve(0, &[spec], &[]).unwrap_err().code()
    }

    #[test]
    fn ids_are_stable_whatever_the_order_of_declaration() {
        let catalog = resolved(&[value("a", "n BIGINT"), value("b", "n BIGINT")]);
        let again =
            catalog.resolve(0, &[value("c", "n BIGINT"), value("b", "n BIGINT"), value("a", "n BIGINT")], &[]).unwrap();
        assert_eq!(again.variables.iter().map(|variable| variable.id).collect::<Vec<_>>(), [3, 2, 1]);
    }

    #[test]
    fn steps_have_ids_of_their_own() {
        let catalog = resolved(&[value("a", "n BIGINT")]);
        assert_eq!(catalog.resolve(1, &[value("b", "n BIGINT")], &[]).unwrap().variables[0].id, 1);
    }

    #[test]
    fn a_catalog_in_the_store_is_read_back_and_an_unchanged_one_is_not_written_again() {
        let store = MemoryStore::new();
        let specs = [value("a", "n BIGINT"), map("m", "k STRING", "tags ARRAY<STRING>")];
        let first = Catalog::load(&store).unwrap().resolve(0, &specs, &[]).unwrap();
        store.apply(&[first.changes], Applied { batch: Some(0), generation: 0 }).unwrap();

        let read = Catalog::load(&store).unwrap();

        assert_eq!(read, first.catalog);
        assert!(read.resolve(0, &specs, &[]).unwrap().changes.is_empty());
    }

    #[test]
    fn a_dropped_variable_that_comes_back_has_a_new_id() {
        let catalog = resolved(&[value("a", "n BIGINT")]);
        let dropped = catalog.resolve(0, &[], &["a".into(), "unknown".into()]).unwrap();
        assert_eq!(dropped.dropped, [Dropped { id: 1, name: "a".into() }]);
        assert_eq!(dropped.catalog.resolve(0, &[map("a", "k INT", "v INT")], &[]).unwrap().variables[0].id, 2);
    }

    #[test]
    fn a_variable_no_longer_declared_keeps_its_id() {
        let catalog = resolved(&[value("a", "n BIGINT")]).resolve(0, &[value("b", "n INT")], &[]).unwrap().catalog;
        assert_eq!(catalog.resolve(0, &[value("a", "n BIGINT")], &[]).unwrap().variables[0].id, 1);
    }

    #[test]
    fn changes_of_kind_schema_or_ttl_are_refused() {
        let catalog = resolved(&[value("v", "n BIGINT"), map("m", "k STRING", "v INT")]);
        assert_eq!(code(&catalog, map("v", "k INT", "n BIGINT")), "STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE");
        assert_eq!(code(&catalog, map("m", "k INT", "v INT")), "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE");
        assert_eq!(code(&catalog, map("m", "k STRING", "v BIGINT")), "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE");
        assert_eq!(code(&catalog, value("v", "n BIGINT, m BIGINT")), "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE");
        let with_ttl = VariableSpec { ttl_ms: Some(5), ..value("v", "n BIGINT") };
        assert_eq!(code(&catalog, with_ttl), "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE");
    }

    #[test]
    fn names_of_fields_and_wider_nullability_may_change_but_not_null_may_not_be_added() {
        let catalog = resolved(&[value("v", "n BIGINT NOT NULL, s STRUCT<a: INT>")]);
        assert!(catalog.resolve(0, &[value("v", "m BIGINT, s STRUCT<b: INT>")], &[]).is_ok());
        let catalog = resolved(&[value("v", "n BIGINT")]);
        assert_eq!(code(&catalog, value("v", "n BIGINT NOT NULL")), "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE");
    }

    #[test]
    fn a_ttl_duration_may_change_zero_means_none_and_a_negative_one_is_refused() {
        let ttl = |ttl_ms: i64| VariableSpec { ttl_ms: Some(ttl_ms.cast_unsigned()), ..value("v", "n BIGINT") };
        let catalog = resolved(&[ttl(5)]);
        let longer = catalog.resolve(0, &[ttl(50)], &[]).unwrap();
        assert_eq!(longer.variables[0].spec.ttl_ms, Some(50));
        assert_eq!(longer.catalog.variables(0)[0].ttl_ms, Some(50));
        assert_eq!(code(&catalog, ttl(-1)), "STATEFUL_PROCESSOR_TTL_DURATION_MUST_BE_POSITIVE");
        assert_eq!(Catalog::default().resolve(0, &[ttl(0)], &[]).unwrap().variables[0].spec.ttl_ms, None);
    }

    #[test]
    fn names_follow_the_rules() {
        let none = Catalog::default();
        for name in ["", " a", "a ", "default", "a\u{7}", &"x".repeat(301)] {
            assert_eq!(code(&none, value(name, "n INT")), "STATE_STORE_CANNOT_USE_COLUMN_FAMILY_WITH_INVALID_NAME");
        }
        assert_eq!(code(&none, value("$a", "n INT")), "STATE_STORE_CANNOT_CREATE_COLUMN_FAMILY_WITH_RESERVED_CHARS");
        assert!(none.resolve(0, &[value("_a", "n INT"), value(&"é".repeat(300), "n INT")], &[]).is_ok());
    }

    #[test]
    fn one_name_for_two_variables_is_refused_also_over_kinds() {
        let twice = [value("a", "n INT"), map("a", "k INT", "v INT")];
        let error = Catalog::default().resolve(0, &twice, &[]).unwrap_err();
        assert_eq!(error.code(), "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED");
        let error = Catalog::default().resolve(0, &[value("a", "n INT")], &["a".into()]).unwrap_err();
        assert_eq!(error.code(), "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED");
    }

    #[test]
    fn too_many_variables_are_refused() {
        let many: Vec<VariableSpec> = (0..=VARIABLES_MAX).map(|n| value(&format!("v{n}"), "n INT")).collect();
        assert_eq!(Catalog::default().resolve(0, &many, &[]).unwrap_err().code(), "STATE_VARIABLES_EXCEEDED");
    }

    #[test]
    fn a_damaged_catalog_is_reported() {
        let store = MemoryStore::new();
        let mut changes = Changes::default();
        changes.push(Family::Meta, CATALOG, Some(b"{"));
        store.apply(&[changes], Applied::default()).unwrap();
        assert_eq!(Catalog::load(&store).unwrap_err().code(), "STATE_CORRUPT");
    }
}
