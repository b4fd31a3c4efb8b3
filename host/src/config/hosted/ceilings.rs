//! How far a tenant may go with the settings of a query.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::{HostedError, HostedQuery, ReadTable};
use crate::config::tables::{RetentionTable, StepLimits, millis};
use crate::engine::settings::Trigger;
use crate::state::StateLimits;

/// The most that one query may ask for.
#[derive(Debug, Clone)]
pub struct Ceilings {
    /// Steps.
    pub steps: usize,
    /// Worker threads.
    pub workers: u16,
    /// Key groups.
    pub key_groups: u16,
    /// What each step may use.
    pub step: StepLimits,
    /// How much of the past is kept.
    pub retention: RetentionTable,
    /// Rows of a batch.
    pub rows_per_batch: u64,
    /// Bytes of a batch's input.
    pub bytes_per_batch: u64,
}

/// Batches without rows, and batches of an interval, do not come faster than this: each costs an fsync.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

impl Default for Ceilings {
    /// What one tenant can have without being felt by the others on a small machine.
    fn default() -> Self {
        Self {
            steps: 16,
            workers: 16,
            key_groups: 1024,
            step: StepLimits {
                state: StateLimits { write_bytes_max: 512 << 20, ..StateLimits::default() },
                sandbox: crate::runtime::Limits { memory_bytes: 512 << 20, ..crate::runtime::Limits::default() },
                ..StepLimits::default()
            },
            retention: RetentionTable { batches: 10_000, snapshot_batches: 10_000, snapshot_bytes: 1 << 30 },
            rows_per_batch: 1_000_000,
            bytes_per_batch: 256 << 20,
        }
    }
}

impl Ceilings {
    /// Whether the query stays below.
    ///
    /// # Errors
    /// The first setting that does not.
    pub fn check(&self, query: &HostedQuery) -> Result<(), HostedError> {
        let reads = ReadTable { rows_per_batch: self.rows_per_batch, bytes_per_batch: self.bytes_per_batch };
        at_most("steps", &query.steps.len(), &self.steps)?;
        at_most("workers", &query.workers, &self.workers)?;
        at_most("key_groups", &query.key_groups, &self.key_groups)?;
        at_most("limits", &query.limits, &reads)?;
        at_most("retention", &query.retention, &self.retention)?;
        for step in &query.steps {
            at_most(&format!("limits of step {}: limits", step.name), &step.limits, &self.step)?;
        }
        let out_of_bounds = |setting: &str, value: String, bound| {
            Err(HostedError::OutOfBounds { setting: setting.to_owned(), value, bound })
        };
        let interval_min = u64::try_from(INTERVAL_MIN.as_millis()).unwrap_or(u64::MAX);
        let at_least = format!("at least {interval_min} ms");
        match query.trigger.0 {
            Trigger::AvailableNow => {
                return out_of_bounds("trigger", "available-now".to_owned(), "continuous or an interval".to_owned());
            }
            Trigger::Interval(ms) if ms < interval_min => {
                return out_of_bounds("trigger", format!("{ms} ms"), at_least);
            }
            Trigger::Interval(_) | Trigger::Continuous => {}
        }
        for (setting, interval) in [("min_batch_interval", query.min_batch_interval), ("ttl_sweep", query.ttl_sweep)] {
            if interval < INTERVAL_MIN {
                return out_of_bounds(setting, format!("{} ms", millis(interval)), at_least);
            }
        }
        Ok(())
    }
}

/// Compares numbers of the same names, so that no limit is left out.
fn at_most<T: Serialize>(setting: &str, given: &T, ceiling: &T) -> Result<(), HostedError> {
    let as_json = |value: &T| serde_json::to_value(value).map_err(super::malformed);
    numbers_at_most(setting, &as_json(given)?, &as_json(ceiling)?)
}

fn numbers_at_most(setting: &str, given: &Value, ceiling: &Value) -> Result<(), HostedError> {
    if let (Value::Object(given), Value::Object(ceiling)) = (given, ceiling) {
        let both = given.iter().filter_map(|(name, given)| Some((name, given, ceiling.get(name)?)));
        return both
            .into_iter()
            .try_for_each(|(name, given, ceiling)| numbers_at_most(&format!("{setting}.{name}"), given, ceiling));
    }
    match (given.as_u64(), ceiling.as_u64()) {
        (Some(given), Some(ceiling)) if given > ceiling => Err(HostedError::OutOfBounds {
            setting: setting.to_owned(),
            value: given.to_string(),
            bound: format!("at most {ceiling}"),
        }),
        _ => Ok(()),
    }
}
