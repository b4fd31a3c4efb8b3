//! The processor of `tests/guests/bench` in native Rust, on the engine's rows: no chunks, no packing, no checks.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use tidemill_host::engine::operator::{
    Closed, GroupedRows, Operator, OperatorError, OperatorPlan, QueryInfo, Task, Worker,
};
use tidemill_host::engine::output::{Output, Phase};
use tidemill_host::record::{GroupingKey, Schema};
use tidemill_host::state::{GroupId, Session, VariableKind, VariableSpec};

/// Groups whose values are read at a time, as many as the sandbox takes.
const GROUPS_AT_A_TIME: usize = 128;

/// Counts per key.
pub struct NativeCount;

impl Operator for NativeCount {
    fn identity(&self) -> String {
        "native:count".to_owned()
    }

    fn plan(&self, _: &QueryInfo) -> Result<OperatorPlan, OperatorError> {
        let schema = |ddl| Schema::parse(ddl).map_err(host_error);
        let count = VariableSpec {
            name: "count".to_owned(),
            kind: VariableKind::Value,
            key: None,
            value: schema("value BIGINT NOT NULL")?,
            ttl_ms: None,
        };
        Ok(OperatorPlan {
            output: schema("key STRING NOT NULL, count BIGINT NOT NULL")?,
            columns: schema("n BIGINT NOT NULL")?,
            initial_state: None,
            key: schema("key STRING NOT NULL")?,
            variables: vec![count],
            dropped_variables: Vec::new(),
            prefetch: vec![0],
        })
    }

    fn open(&self, task: Task) -> Result<Box<dyn Worker>, OperatorError> {
        Ok(Box::new(Counting { session: task.session, output: task.output }))
    }
}

struct Counting {
    session: Session,
    output: Output,
}

impl Worker for Counting {
    fn initial_state(&mut self, _: GroupedRows) -> Result<(), OperatorError> {
        Ok(())
    }

    fn input_rows(&mut self, rows: GroupedRows) -> Result<(), OperatorError> {
        let columns: Vec<_> = rows.batches.iter().map(|batch| batch.column(0).as_primitive::<Int64Type>()).collect();
        let (mut ids, mut row): (Vec<GroupId>, _) = (Vec::with_capacity(GROUPS_AT_A_TIME), Vec::new());
        for groups in rows.groups.chunks(GROUPS_AT_A_TIME) {
            ids.clear();
            for group in groups {
                let key = GroupingKey { hash: group.hash, row: &rows.keys[group.key.clone()] };
                ids.push(self.session.enter(key));
            }
            self.session.prefetch(&[0], &ids).map_err(host_error)?;
            for (group, id) in groups.iter().zip(&ids) {
                let before = self.session.value(0, *id).map_err(host_error)?.map_or(0, count_of);
                let counted = group.rows.clone().map(GroupedRows::place);
                let count = counted.fold(before, |sum, (batch, row)| sum + columns[batch].value(row));
                self.session.put_value(0, *id, &value_row(count)).map_err(host_error)?;
                row.clear();
                push_count(&mut row, &rows.keys[group.key.clone()], count);
                self.output.push(Phase::Input, &row).map_err(host_error)?;
            }
        }
        Ok(())
    }

    fn expired_timers(&mut self, _: i64) -> Result<(), OperatorError> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<Closed, OperatorError> {
        Ok(Closed { session: self.session, output: self.output, input_digest: 0, fuel: None, sandbox_bytes: 0 })
    }
}

/// The count in a row of `value BIGINT NOT NULL`: no null bits, then the number.
pub fn count_of(row: &[u8]) -> i64 {
    row.last_chunk().map_or(0, |number| i64::from_le_bytes(*number))
}

/// The row of a count.
pub fn value_row(count: i64) -> [u8; 16] {
    (count.cast_unsigned() as u128).wrapping_shl(64).to_le_bytes()
}

/// The row of `key STRING NOT NULL, count BIGINT NOT NULL`. The key row has null bits, a slot, and the text behind it;
/// here one more slot stands before the text.
fn push_count(out: &mut Vec<u8>, key: &[u8], count: i64) {
    let (head, text) = key.split_at(16);
    let slot = u64::from_le_bytes(*head.last_chunk().unwrap_or(&[0; 8])) + 8;
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&slot.to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(text);
}

fn host_error(error: impl std::error::Error + Send + Sync + 'static) -> OperatorError {
    OperatorError::Host(Box::new(error))
}

/// As an operator of the engine.
pub fn operator() -> Arc<dyn Operator> {
    Arc::new(NativeCount)
}
