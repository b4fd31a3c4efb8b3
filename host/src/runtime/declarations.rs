//! The state variables that `init` makes and drops.

use super::failure::Refusal;
use crate::engine::operator::TimeMode;
use crate::record::{Schema, key_layout};
use crate::state::{self, StateError, VARIABLES_MAX, VariableKind, VariableSpec};

/// What one `init` has declared so far.
#[derive(Debug)]
pub(super) struct Declarations {
    time_mode: TimeMode,
    schema_bytes_max: usize,
    variables: Vec<VariableSpec>,
    dropped: Vec<String>,
}

/// A variable as a guest asks for it. Schemas are DDL.
#[derive(Debug)]
pub(super) struct Declaration {
    pub(super) name: String,
    pub(super) kind: VariableKind,
    /// Set exactly for maps.
    pub(super) key: Option<String>,
    pub(super) value: String,
    pub(super) ttl_ms: Option<u64>,
}

impl Declarations {
    pub(super) fn new(time_mode: TimeMode, schema_bytes_max: usize) -> Self {
        Self { time_mode, schema_bytes_max, variables: Vec::new(), dropped: Vec::new() }
    }

    /// Makes a variable; the answer is its number in this instance.
    pub(super) fn declare(&mut self, declaration: Declaration) -> Result<u32, Refusal> {
        let Declaration { name, kind, key, value, ttl_ms } = declaration;
        if self.variables.len() >= VARIABLES_MAX {
            let message = format!("it makes more than {VARIABLES_MAX} state variables");
            return Err(Refusal::trap("STATE_VARIABLES_EXCEEDED", message));
        }
        self.check_name(&name)?;
        if self.dropped.contains(&name) {
            return Err(duplicate(name, "both made and dropped"));
        }
        if self.variables.iter().any(|variable| variable.name == name) {
            return Err(duplicate(name, "made twice"));
        }
        let ttl_ms = self.check_ttl(&name, ttl_ms)?;
        let value = self.parse(&name, &value)?;
        let key = match key {
            Some(key) => Some(self.parse(&name, &key)?),
            None => None,
        };
        if let Some(key) = &key {
            key_layout(key)?;
        }
        let number = self.variables.len() as u32;
        self.variables.push(VariableSpec { name, kind, key, value, ttl_ms });
        Ok(number)
    }

    /// Drops a variable of an earlier version.
    pub(super) fn delete_if_exists(&mut self, name: String) -> Result<(), Refusal> {
        self.check_name(&name)?;
        if self.variables.iter().any(|variable| variable.name == name) {
            return Err(duplicate(name, "both made and dropped"));
        }
        if self.dropped.contains(&name) {
            return Ok(());
        }
        if self.dropped.len() >= VARIABLES_MAX {
            let message = format!("it drops more than {VARIABLES_MAX} state variables");
            return Err(Refusal::trap("STATE_VARIABLES_EXCEEDED", message));
        }
        self.dropped.push(name);
        Ok(())
    }

    /// The variables and the names to drop, in order.
    pub(super) fn into_parts(self) -> (Vec<VariableSpec>, Vec<String>) {
        (self.variables, self.dropped)
    }

    fn check_name(&self, name: &str) -> Result<(), Refusal> {
        state::check_name(name).map_err(|error| Refusal::fault(error.code(), error.to_string()))
    }

    fn check_ttl(&self, name: &str, ttl_ms: Option<u64>) -> Result<Option<u64>, Refusal> {
        let Some(ttl_ms) = ttl_ms.filter(|ttl_ms| *ttl_ms > 0) else { return Ok(None) };
        if self.time_mode != TimeMode::ProcessingTime {
            return Err(Refusal::fault(
                "STATEFUL_PROCESSOR_INCORRECT_TIME_MODE_TO_ASSIGN_TTL",
                format!(
                    "state variable {name:?} has a TTL, which moves with processing time; run the query in that time mode"
                ),
            ));
        }
        Ok(Some(ttl_ms))
    }

    fn parse(&self, name: &str, ddl: &str) -> Result<Schema, Refusal> {
        if ddl.len() > self.schema_bytes_max {
            let message = format!(
                "a schema of state variable {name:?} has {} bytes, it may have {}; raise limits.sandbox.schema_bytes",
                ddl.len(),
                self.schema_bytes_max
            );
            return Err(Refusal::trap("SCHEMA_TOO_LONG", message));
        }
        Schema::parse(ddl).map_err(|error| Refusal::fault(error.code(), format!("state variable {name:?}: {error}")))
    }
}

fn duplicate(name: String, conflict: &'static str) -> Refusal {
    let error = StateError::DuplicateVariable { name, conflict };
    Refusal::fault(error.code(), error.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::failure::{Fault, Violation};
    use super::*;

    fn declarations(time_mode: TimeMode) -> Declarations {
        Declarations::new(time_mode, 1_000)
    }

    fn value(name: &str) -> Declaration {
        Declaration { name: name.into(), kind: VariableKind::Value, key: None, value: "n BIGINT".into(), ttl_ms: None }
    }

    fn fault<T: std::fmt::Debug>(result: Result<T, Refusal>) -> &'static str {
        match result {
            Err(Refusal::Fault(Fault { code, .. })) => code,
            other => panic!("not a fault: {other:?}"),
        }
    }

    #[test]
    fn variables_are_numbered_in_order_over_all_kinds() {
        let mut declarations = declarations(TimeMode::None);
        let map = Declaration { kind: VariableKind::Map, key: Some("k STRING".into()), ..value("b") };
        assert_eq!(declarations.declare(value("a")).unwrap(), 0);
        assert_eq!(declarations.declare(map).unwrap(), 1);
        let (variables, _) = declarations.into_parts();
        assert_eq!(variables.iter().map(|variable| variable.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn a_name_is_used_once_over_all_kinds() {
        let mut declarations = declarations(TimeMode::None);
        declarations.declare(value("a")).unwrap();
        let list = Declaration { kind: VariableKind::List, ..value("a") };
        assert_eq!(fault(declarations.declare(list)), "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED");
        assert_eq!(
            fault(declarations.delete_if_exists("a".into())),
            "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED"
        );
    }

    #[test]
    fn a_name_that_was_dropped_cannot_be_made() {
        let mut declarations = declarations(TimeMode::None);
        declarations.delete_if_exists("a".into()).unwrap();
        assert_eq!(fault(declarations.declare(value("a"))), "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED");
    }

    #[test]
    fn bad_names_have_the_codes_of_spark() {
        let mut declarations = declarations(TimeMode::None);
        for name in ["", " a", "a ", "default", "a\u{0}b"] {
            let code = fault(declarations.declare(value(name)));
            assert_eq!(code, "STATE_STORE_CANNOT_USE_COLUMN_FAMILY_WITH_INVALID_NAME", "{name:?}");
        }
        assert_eq!(
            fault(declarations.declare(value("$a"))),
            "STATE_STORE_CANNOT_CREATE_COLUMN_FAMILY_WITH_RESERVED_CHARS"
        );
    }

    #[test]
    fn ttl_needs_processing_time_and_zero_is_none() {
        let with_ttl = |ttl_ms| Declaration { ttl_ms: Some(ttl_ms), ..value("a") };
        assert_eq!(
            fault(declarations(TimeMode::EventTime).declare(with_ttl(1))),
            "STATEFUL_PROCESSOR_INCORRECT_TIME_MODE_TO_ASSIGN_TTL"
        );
        let mut none = declarations(TimeMode::EventTime);
        none.declare(with_ttl(0)).unwrap();
        assert_eq!(none.into_parts().0[0].ttl_ms, None);
        declarations(TimeMode::ProcessingTime).declare(with_ttl(u64::MAX)).unwrap();
    }

    #[test]
    fn schemas_and_counts_are_bounded() {
        let mut declarations = declarations(TimeMode::None);
        let long = Declaration { value: "n BIGINT, ".repeat(200), ..value("a") };
        assert!(matches!(declarations.declare(long), Err(Refusal::Trap(Violation { code: "SCHEMA_TOO_LONG", .. }))));
        for number in 0..VARIABLES_MAX {
            declarations.declare(value(&format!("v{number}"))).unwrap();
        }
        assert!(matches!(declarations.declare(value("more")), Err(Refusal::Trap(_))));
    }
}
