//! Plans that ask for what there is not, or that change from instance to instance.

use crate::bindings::tidemill::processor::state;
use crate::polite::{LIST, VALUE, fault, init, plan};
use crate::{Attack, Failure, Plan, Query};

pub(crate) const ATTACKS: &[Attack] = &[
    Attack { init: output_changes, ..Attack::polite("plan-output-changes") },
    Attack { init: variables_change, ..Attack::polite("plan-variables-change") },
    Attack { init: drops_change, ..Attack::polite("plan-drops-change") },
    Attack { init: |query| columns(query, "no_such_column STRING"), ..Attack::polite("plan-column-unknown") },
    Attack { init: |query| columns(query, "key BINARY"), ..Attack::polite("plan-column-type") },
    Attack { init: key_other, ..Attack::polite("plan-key-other") },
    Attack { init: initial_state_unasked, ..Attack::polite("plan-initial-state") },
    Attack { init: |query| prefetch(query, vec![4_000_000_000]), ..Attack::polite("prefetch-unknown") },
    Attack { init: |query| prefetch(query, vec![LIST]), ..Attack::polite("prefetch-list") },
    Attack { init: |query| prefetch(query, vec![VALUE; 1_000_000]), ..Attack::polite("prefetch-many") },
];

/// `init` is run once before the first batch, as batch 0 perhaps; run id and time differ from instance to instance
/// anyway.
fn differs(query: &Query) -> u64 {
    let time = query
        .parameters
        .iter()
        .find(|(name, _)| name == "tidemill.batch-time-ms")
        .map_or("", |(_, value)| value.as_str());
    query.batch_id.wrapping_add(time.bytes().map(u64::from).sum())
}

fn output_changes(query: &Query) -> Result<Plan, Failure> {
    Ok(Plan { output: format!("result_{} STRING", differs(query)), ..init(query)? })
}

fn variables_change(query: &Query) -> Result<Plan, Failure> {
    state::get_value_state(&format!("value_{}", differs(query)), "value STRING", None).map_err(fault)?;
    Ok(plan())
}

fn drops_change(query: &Query) -> Result<Plan, Failure> {
    state::delete_if_exists(&format!("value_{}", differs(query))).map_err(fault)?;
    init(query)
}

fn columns(query: &Query, columns: &str) -> Result<Plan, Failure> {
    Ok(Plan { columns: Some(columns.to_owned()), ..init(query)? })
}

fn key_other(query: &Query) -> Result<Plan, Failure> {
    Ok(Plan { key: Some("another DOUBLE, key DATE".to_owned()), ..init(query)? })
}

fn initial_state_unasked(query: &Query) -> Result<Plan, Failure> {
    Ok(Plan { initial_state: Some("no_such_column STRING".to_owned()), ..init(query)? })
}

fn prefetch(query: &Query, variables: Vec<u32>) -> Result<Plan, Failure> {
    Ok(Plan { prefetch: Some(variables), ..init(query)? })
}
