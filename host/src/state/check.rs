//! A whole store, looked through: whether its records are what they should be, and what it holds altogether.

use std::collections::HashMap;
use std::ops::ControlFlow;

use xxhash_rust::xxh3::Xxh3;

use super::catalog::Catalog;
use super::codec::{parse_list_header, parse_row_record, parse_timers_record};
use super::error::StateError;
use super::keys::{
    APPLIED, APPLYING, TIMERS_VARIABLE, hex, parse_state_key, parse_timer_key, push_timer_key, push_ttl_key,
};
use super::store::{Family, Reader, get, scan_checked};
use super::variable::VariableKind;
use crate::record::{RowLayout, key_group};

/// Above every key of a store.
const END: [u8; 1] = [u8::MAX];

/// What a store was found to hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checked {
    /// Values, elements and entries.
    pub rows: u64,
    /// Timers.
    pub timers: u64,
}

/// Reads every record: rows must fit the schema that they name, and the time indexes must have what the records say.
///
/// # Errors
/// The disk, or the first damage.
pub fn check_store(reader: &dyn Reader, key_groups: u16) -> Result<Checked, StateError> {
    let layouts = layouts(&Catalog::load(reader)?);
    let mut checked = Checked::default();
    let (mut index_key, mut expiries_ms) = (Vec::new(), Vec::new());
    scan_checked(reader, Family::State, &[], &END, &mut |record_key, record| {
        let damaged = |what: &str| StateError::corrupt("family State", format!("key {}: {what}", hex(record_key)));
        let step = record_key.first().copied().unwrap_or_default();
        let key = parse_state_key(record_key)?;
        let group = key_group(key.key.hash, key_groups);
        if key.variable == TIMERS_VARIABLE {
            parse_timers_record(record, &mut expiries_ms)?;
            for expiry_ms in &expiries_ms {
                index_key.clear();
                push_timer_key(&mut index_key, step, group, *expiry_ms, key.key);
                if get(reader, Family::Timers, &index_key)?.is_none() {
                    return Err(damaged("a timer is not in the time index"));
                }
            }
            checked.timers += expiries_ms.len() as u64;
            return Ok(ControlFlow::Continue(()));
        }
        // A variable that is not in the catalog was dropped.
        let Some((kind, schemas)) = layouts.get(&(step, key.variable)) else { return Ok(ControlFlow::Continue(())) };
        if *kind == VariableKind::List && key.suffix.is_empty() {
            parse_list_header(record)?;
            return Ok(ControlFlow::Continue(()));
        }
        let stored = parse_row_record(record)?;
        let layout = schemas.get(&stored.schema_id).ok_or_else(|| damaged("its schema is unknown"))?;
        layout.validate(stored.row).map_err(|fault| damaged(&fault.to_string()))?;
        if let Some(expiry_ms) = stored.expiry_ms {
            index_key.clear();
            push_ttl_key(&mut index_key, group, expiry_ms, record_key);
            if get(reader, Family::Ttl, &index_key)?.is_none() {
                return Err(damaged("what expires is not in the time index"));
            }
        }
        checked.rows += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    let mut indexed = 0;
    scan_checked(reader, Family::Timers, &[], &END, &mut |key, _| {
        parse_timer_key(key)?;
        indexed += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    if indexed != checked.timers {
        let problem = format!("the time index has {indexed} timers, the records {}", checked.timers);
        return Err(StateError::corrupt("family Timers", problem));
    }
    Ok(checked)
}

/// XXH3-128 over all that a store holds but its marks: equal for equal states.
///
/// # Errors
/// The disk, or damage.
pub fn digest_store(reader: &dyn Reader) -> Result<u128, StateError> {
    let mut digest = Xxh3::new();
    for family in Family::ALL {
        scan_checked(reader, family, &[], &END, &mut |key, value| {
            if family != Family::Meta || (key != APPLIED && key != APPLYING) {
                digest.update(&[family as u8]);
                for part in [key, value] {
                    digest.update(&(part.len() as u64).to_le_bytes());
                    digest.update(part);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(digest.digest128())
}

/// Per variable of a step, its kind and the layouts of its rows by schema.
type Layouts = HashMap<(u8, u16), (VariableKind, HashMap<u16, RowLayout>)>;

fn layouts(catalog: &Catalog) -> Layouts {
    let variables = (0..=u8::MAX).flat_map(|step| catalog.variables(step).iter().map(move |variable| (step, variable)));
    let layouts = variables.map(|(step, variable)| {
        let schemas = variable.values().map(|(id, schema)| (id, RowLayout::new(schema))).collect();
        ((step, variable.id), (variable.kind, schemas))
    });
    layouts.collect()
}
