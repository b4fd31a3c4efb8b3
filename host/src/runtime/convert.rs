//! Between the engine's words and the contract's: the query that `init` is told of, and the plan that it answers, which
//! must fit the query.

use super::bindings::exports::tidemill::processor::handler;
use super::bindings::tidemill::processor::types;
use super::limits::Limits;
use super::random::Place;
use crate::engine::operator::{OperatorError, OperatorPlan, OutputMode, QueryInfo, TimeMode, TimerValues};
use crate::record::{Field, Schema, SchemaError, key_layout, widens};
use crate::state::{VariableKind, VariableSpec};

/// Names of parameters that begin so are the host's.
const RESERVED_PREFIX: &str = "tidemill.";
/// Value states that are sent along with each group, at most. More is a row that should have been one state.
const PREFETCH_MAX: usize = 8;

/// The query as `init` is told of it, at one place of one batch.
pub(super) fn query(query: &QueryInfo, place: Place, time: TimerValues) -> Result<handler::Query, OperatorError> {
    if let Some((name, _)) = query.parameters.iter().find(|(name, _)| name.starts_with(RESERVED_PREFIX)) {
        let message = format!("the parameter {name:?} begins with {RESERVED_PREFIX:?}, which is the host's; rename it");
        return Err(OperatorError::Unfit { code: "PARAMETER_RESERVED", message });
    }
    let mut parameters = query.parameters.clone();
    parameters.push(("tidemill.batch-time-ms".to_owned(), time.processing_time_ms.to_string()));
    parameters.push(("tidemill.seed".to_owned(), place.seed().to_string()));
    parameters.sort();
    Ok(handler::Query {
        query_id: query.query_id.clone(),
        run_id: query.run_id.clone(),
        batch_id: place.batch_id,
        time_mode: match query.time_mode {
            TimeMode::None => types::TimeMode::None,
            TimeMode::ProcessingTime => types::TimeMode::ProcessingTime,
            TimeMode::EventTime => types::TimeMode::EventTime,
        },
        output_mode: match query.output_mode {
            OutputMode::Append => types::OutputMode::Append,
            OutputMode::Update => types::OutputMode::Update,
        },
        key: query.key.to_string(),
        input: query.input.to_string(),
        initial_state: query.initial_state.as_ref().map(Schema::to_string),
        parameters,
    })
}

/// The clock as handlers are told of it.
pub(super) fn timer_values(time: TimerValues) -> types::TimerValues {
    types::TimerValues { processing_time_ms: time.processing_time_ms, watermark_ms: time.watermark_ms }
}

/// What `init` answered and declared, checked against the query.
pub(super) fn plan(
    query: &QueryInfo,
    answer: handler::Plan,
    variables: Vec<VariableSpec>,
    dropped_variables: Vec<String>,
    limits: &Limits,
) -> Result<OperatorPlan, OperatorError> {
    let parse = |what: &str, ddl: &str| parse(what, ddl, limits.schema_bytes);
    let wanted = |what: &str, ddl: Option<&str>, offered: &Schema| match ddl {
        Some(ddl) => check_columns(what, parse(what, ddl)?, offered),
        None => Ok(offered.clone()),
    };
    let initial_state = match &query.initial_state {
        Some(offered) => Some(wanted("initial state", answer.initial_state.as_deref(), offered)?),
        None => None,
    };
    let key = match &answer.key {
        Some(ddl) => check_key(&parse("key", ddl)?, &query.key)?,
        None => query.key.clone(),
    };
    key_layout(&key).map_err(|error| unfit_schema("key", &error))?;
    Ok(OperatorPlan {
        output: parse("output", &answer.output)?,
        columns: wanted("columns", answer.columns.as_deref(), &query.input)?,
        initial_state,
        key,
        prefetch: check_prefetch(answer.prefetch, &variables)?,
        variables,
        dropped_variables,
    })
}

/// The first difference between what `init` answered when the query was planned and now.
pub(super) fn difference(planned: &OperatorPlan, now: &OperatorPlan) -> Option<String> {
    let schema = |what: &str, planned: &Schema, now: &Schema| {
        (planned != now).then(|| format!("{what} was <{planned}> and is <{now}>"))
    };
    let other = |what: &str, same: bool| (!same).then(|| format!("{what} are not the same"));
    schema("the output", &planned.output, &now.output)
        .or_else(|| schema("the wanted columns", &planned.columns, &now.columns))
        .or_else(|| schema("the key", &planned.key, &now.key))
        .or_else(|| other("the wanted columns of the initial state", planned.initial_state == now.initial_state))
        .or_else(|| other("the state variables", planned.variables == now.variables))
        .or_else(|| other("the dropped state variables", planned.dropped_variables == now.dropped_variables))
        .or_else(|| other("the prefetched state variables", planned.prefetch == now.prefetch))
}

fn parse(what: &str, ddl: &str, bytes_max: usize) -> Result<Schema, OperatorError> {
    if ddl.len() > bytes_max {
        let message = format!(
            "the processor's {what} schema has {} bytes, it may have {bytes_max}; raise limits.sandbox.schema_bytes",
            ddl.len()
        );
        return Err(OperatorError::Unfit { code: "SCHEMA_TOO_LONG", message });
    }
    Schema::parse(ddl).map_err(|error| unfit_schema(what, &error))
}

fn unfit_schema(what: &str, error: &SchemaError) -> OperatorError {
    OperatorError::Unfit { code: error.code(), message: format!("the processor's {what}: {error}") }
}

/// Wanted columns must be there and widen. They take the names of the input, which may differ in case.
fn check_columns(what: &str, wanted: Schema, offered: &Schema) -> Result<Schema, OperatorError> {
    for field in wanted.fields() {
        let Some(column) = offered.field(&field.name) else {
            let message = format!(
                "the processor wants the column {:?} ({what}), which is not there; there are: {}",
                field.name,
                names(offered)
            );
            return Err(OperatorError::Unfit { code: "UNRESOLVED_COLUMN.WITH_SUGGESTION", message });
        };
        if !widens(&column.data_type, &field.data_type) {
            let message = format!(
                "the processor wants the column {:?} ({what}) as {}, it is {}, which does not widen to that without loss",
                field.name, field.data_type, column.data_type
            );
            return Err(OperatorError::Unfit { code: "CANNOT_WIDEN_COLUMN", message });
        }
    }
    Ok(wanted)
}

fn names(schema: &Schema) -> String {
    let names: Vec<_> = schema.fields().iter().take(30).map(|field| field.name.as_str()).collect();
    let more = if schema.len() > names.len() { ", ..." } else { "" };
    format!("{}{more}", names.join(", "))
}

/// The key is stored, so it has the query's columns and types; only NOT NULL may be added.
fn check_key(wanted: &Schema, key: &Schema) -> Result<Schema, OperatorError> {
    let same = wanted.len() == key.len()
        && wanted.fields().iter().zip(key.fields()).all(|(wanted, field)| {
            wanted.name.to_lowercase() == field.name.to_lowercase() && wanted.data_type == field.data_type
        });
    if !same {
        let message = format!(
            "the processor wants the grouping key <{wanted}>, the query groups by <{key}>; columns and types must be the \
             same, only NOT NULL may be added"
        );
        return Err(OperatorError::Unfit { code: "KEY_MISMATCH", message });
    }
    let field =
        |(wanted, field): (&Field, &Field)| Field { nullable: wanted.nullable && field.nullable, ..field.clone() };
    let fields = wanted.fields().iter().zip(key.fields()).map(field).collect();
    Schema::new(fields).map_err(|error| unfit_schema("key", &error))
}

fn check_prefetch(wanted: Option<Vec<u32>>, variables: &[VariableSpec]) -> Result<Vec<u16>, OperatorError> {
    let is_value =
        |number: &u16| variables.get(usize::from(*number)).is_some_and(|variable| variable.kind == VariableKind::Value);
    let Some(wanted) = wanted else {
        return Ok((0..=u16::MAX).take(variables.len()).filter(is_value).take(PREFETCH_MAX).collect());
    };
    let unfit = |message: String| OperatorError::Unfit { code: "PREFETCH_INVALID", message };
    if wanted.len() > PREFETCH_MAX {
        let message =
            format!("the processor wants {} value states sent along, at most {PREFETCH_MAX} are", wanted.len());
        return Err(unfit(message));
    }
    let mut numbers = Vec::with_capacity(wanted.len());
    for number in wanted {
        let known = u16::try_from(number).ok().filter(is_value);
        let known =
            known.ok_or_else(|| unfit(format!("state variable {number}, to be sent along, is not a value state")))?;
        if numbers.contains(&known) {
            return Err(unfit(format!("state variable {number} is to be sent along twice")));
        }
        numbers.push(known);
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(ddl: &str) -> Schema {
        Schema::parse(ddl).unwrap()
    }

    fn info() -> QueryInfo {
        QueryInfo {
            query_id: "q".into(),
            run_id: "r".into(),
            step: 0,
            time_mode: TimeMode::None,
            output_mode: OutputMode::Append,
            key: schema("user STRING"),
            input: schema("user STRING, n INT, at TIMESTAMP"),
            initial_state: None,
            parameters: vec![("z".into(), "1".into())],
            seed: 7,
        }
    }

    fn answer() -> handler::Plan {
        handler::Plan {
            output: "user STRING, n BIGINT".into(),
            columns: None,
            initial_state: None,
            key: None,
            prefetch: None,
        }
    }

    fn value(name: &str) -> VariableSpec {
        let value = schema("n BIGINT");
        VariableSpec { name: name.into(), kind: VariableKind::Value, key: None, value, ttl_ms: None }
    }

    fn list(name: &str) -> VariableSpec {
        VariableSpec { kind: VariableKind::List, ..value(name) }
    }

    fn planned(answer: handler::Plan, variables: Vec<VariableSpec>) -> Result<OperatorPlan, OperatorError> {
        plan(&info(), answer, variables, Vec::new(), &Limits::default())
    }

    fn code(result: Result<OperatorPlan, OperatorError>) -> String {
        result.unwrap_err().code().to_owned()
    }

    #[test]
    fn nothing_wanted_means_everything_as_it_is() {
        let plan = planned(answer(), vec![list("a"), value("b")]).unwrap();
        assert_eq!(plan.columns, info().input);
        assert_eq!(plan.key, info().key);
        assert_eq!(plan.prefetch, [1]);
    }

    #[test]
    fn wanted_columns_exist_and_widen() {
        let wants = |columns: &str| planned(handler::Plan { columns: Some(columns.into()), ..answer() }, vec![]);
        assert_eq!(wants("n BIGINT NOT NULL").unwrap().columns, schema("n BIGINT NOT NULL"));
        assert_eq!(wants("").unwrap().columns.len(), 0);
        assert_eq!(code(wants("m BIGINT")), "UNRESOLVED_COLUMN.WITH_SUGGESTION");
        assert_eq!(code(wants("n SMALLINT")), "CANNOT_WIDEN_COLUMN");
        assert_eq!(code(wants("n BIGINT,,")), "INVALID_SCHEMA");
    }

    #[test]
    fn the_key_may_only_become_not_null() {
        let wants = |key: &str| planned(handler::Plan { key: Some(key.into()), ..answer() }, vec![]);
        assert_eq!(wants("USER STRING NOT NULL").unwrap().key, schema("user STRING NOT NULL"));
        assert_eq!(code(wants("user BINARY")), "KEY_MISMATCH");
        assert_eq!(code(wants("user STRING, n INT")), "KEY_MISMATCH");
    }

    #[test]
    fn only_value_states_are_sent_along_each_once_and_at_most_eight() {
        let wants = |numbers: Vec<u32>| {
            planned(handler::Plan { prefetch: Some(numbers), ..answer() }, vec![value("a"), list("b"), value("c")])
        };
        assert_eq!(wants(vec![2, 0]).unwrap().prefetch, [2, 0]);
        assert_eq!(wants(vec![]).unwrap().prefetch, Vec::<u16>::new());
        for bad in [vec![1], vec![3], vec![0, 0], vec![u32::MAX], vec![0; 9]] {
            assert_eq!(code(wants(bad)), "PREFETCH_INVALID");
        }
    }

    #[test]
    fn parameters_are_sorted_with_the_hosts_own() {
        let place = Place { query_seed: 7, batch_id: 3, step: 0, key_group: 0 };
        let time = TimerValues { processing_time_ms: 5, watermark_ms: 0 };
        let told = query(&info(), place, time).unwrap();
        let names: Vec<_> = told.parameters.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["tidemill.batch-time-ms", "tidemill.seed", "z"]);

        let mut reserved = info();
        reserved.parameters.push(("tidemill.seed".into(), "1".into()));
        assert_eq!(query(&reserved, place, time).unwrap_err().code(), "PARAMETER_RESERVED");
    }

    #[test]
    fn a_difference_of_plans_is_named() {
        let first = planned(answer(), vec![value("a")]).unwrap();
        assert_eq!(difference(&first, &first), None);
        let second = planned(answer(), vec![VariableSpec { ttl_ms: Some(1), ..value("a") }]).unwrap();
        assert_eq!(difference(&first, &second).unwrap(), "the state variables are not the same");
    }
}
