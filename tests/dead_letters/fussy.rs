//! A tally that fails at rows without a number, in the ways in which a processor can.

use std::sync::{Arc, Mutex};

use arrow_array::Array;
use tidemill_host::engine::operator::{
    AtKey, Closed, Group, GroupedRows, Operator, OperatorError, OperatorPlan, QueryInfo, Suspect, Task, Worker,
};

use crate::tally::Tally;

#[derive(Debug, Clone, Default)]
pub struct Fussy {
    pub tally: Tally,
    pub names: Names,
    pub fails: Fails,
    /// How many keys each of its runs was given.
    pub runs: Arc<Mutex<Vec<usize>>>,
}

/// What it says of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Names {
    #[default]
    ItsKey,
    /// Up to so many that it has in hand.
    OneOf(usize),
    Nothing,
}

/// How it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fails {
    #[default]
    WithAnError,
    WithTrap(&'static str),
    OfItsHost,
    /// As an error, but only with several keys in hand.
    OnlyTogether,
    /// As an error the first time, and never again.
    Once,
    InClose,
}

impl Operator for Fussy {
    fn identity(&self) -> String {
        "native:fussy".to_owned()
    }

    fn plan(&self, query: &QueryInfo) -> Result<OperatorPlan, OperatorError> {
        self.tally.plan(query)
    }

    fn open(&self, task: Task) -> Result<Box<dyn Worker>, OperatorError> {
        Ok(Box::new(FussyWorker { fussy: self.clone(), tally: self.tally.open(task)?, ate_poison: false }))
    }
}

struct FussyWorker {
    fussy: Fussy,
    tally: Box<dyn Worker>,
    ate_poison: bool,
}

impl FussyWorker {
    fn failure(&self, rows: &GroupedRows, at: usize) -> OperatorError {
        let suspect = |group: &Group| Suspect { key: rows.keys[group.key.clone()].to_vec(), shown: "a key".to_owned() };
        let group = &rows.groups[at];
        let at = match self.fussy.names {
            Names::Nothing => AtKey::NoKey,
            Names::OneOf(several) => {
                let begin = at / several * several;
                let in_hand = &rows.groups[begin..rows.groups.len().min(begin + several)];
                AtKey::OneOf(in_hand.iter().map(suspect).collect())
            }
            Names::ItsKey => AtKey::Key(Box::new(suspect(group))),
        };
        match self.fussy.fails {
            Fails::OfItsHost => OperatorError::Host("the disk is gone".into()),
            Fails::WithTrap(code) => OperatorError::Trap {
                code,
                export: "handle-input-rows",
                message: "a trap".to_owned(),
                log_tail: Vec::new(),
                backtrace: "".into(),
                at,
            },
            _ => error("handle-input-rows", at),
        }
    }
}

pub fn error(export: &'static str, at: AtKey) -> OperatorError {
    OperatorError::Guest {
        export,
        guest_code: "NO_NUMBER".to_owned(),
        message: "a number is missing".to_owned(),
        stack: String::new(),
        at,
    }
}

impl Worker for FussyWorker {
    fn initial_state(&mut self, rows: GroupedRows) -> Result<(), OperatorError> {
        self.tally.initial_state(rows)
    }

    fn input_rows(&mut self, rows: GroupedRows) -> Result<(), OperatorError> {
        self.fussy.runs.lock().unwrap().push(rows.groups.len());
        let is_poison = |row: usize| {
            let (batch, row) = GroupedRows::place(row);
            rows.batches[batch].column(1).is_null(row)
        };
        let poisoned = rows.groups.iter().position(|group| group.rows.clone().any(is_poison));
        let Some(poisoned) = poisoned else { return self.tally.input_rows(rows) };
        match self.fussy.fails {
            Fails::InClose => {
                self.ate_poison = true;
                Ok(())
            }
            Fails::OnlyTogether if rows.groups.len() == 1 => Ok(()),
            Fails::Once if self.fussy.runs.lock().unwrap().len() > 1 => Ok(()),
            _ => Err(self.failure(&rows, poisoned)),
        }
    }

    fn expired_timers(&mut self, threshold_ms: i64) -> Result<(), OperatorError> {
        self.tally.expired_timers(threshold_ms)
    }

    fn close(self: Box<Self>) -> Result<Closed, OperatorError> {
        match self.ate_poison {
            true => Err(error("close", AtKey::NoKey)),
            false => self.tally.close(),
        }
    }
}
