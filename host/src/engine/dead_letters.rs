//! Rows and timers at which a processor fails, as rows: what the policy `dead-letter` publishes, with the reason.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};

use super::commit::{Skipped, SkippedTimer};
use super::error::QueryError;
use super::pipeline::Pipeline;
use crate::record::{RowEncoder, RowLayout, Schema, row_to_json};

/// A row or timer that was not processed.
#[derive(Debug, Clone)]
pub(super) struct DeadLetter {
    pub(super) of: DeadOf,
    /// The packed key row.
    pub(super) key: Vec<u8>,
    /// Of the failure; [`KEY_HELD`] where there was none.
    pub(super) code: String,
    pub(super) message: String,
    /// What the failing run burnt, where that is metered.
    pub(super) fuel: Option<u64>,
    /// Times that the key ran alone.
    pub(super) attempts: u64,
}

/// What a dead letter was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DeadOf {
    /// The processor fails at this row of the step's input.
    Row(u64),
    /// This row came after one at which it fails.
    HeldRow(u64),
    /// It fails at the timer with this expiry.
    Timer(i64),
}

/// The code of rows that are held back behind a dead letter.
pub(super) const KEY_HELD: &str = "KEY_HELD";

impl DeadLetter {
    /// The number of the row among those of the step's input.
    pub(super) fn row(&self) -> Option<u64> {
        match self.of {
            DeadOf::Row(row) | DeadOf::HeldRow(row) => Some(row),
            DeadOf::Timer(_) => None,
        }
    }

    /// The expiry, of a timer.
    pub(super) fn expiry_ms(&self) -> Option<i64> {
        match self.of {
            DeadOf::Row(_) | DeadOf::HeldRow(_) => None,
            DeadOf::Timer(expiry_ms) => Some(expiry_ms),
        }
    }

    /// Whether the processor failed at it.
    pub(super) fn is_poison(&self) -> bool {
        !matches!(self.of, DeadOf::HeldRow(_))
    }

    fn kind(&self) -> &'static str {
        match self.of {
            DeadOf::Row(_) => "row",
            DeadOf::HeldRow(_) => "held-row",
            DeadOf::Timer(_) => "timer",
        }
    }
}

/// What a step leaves out of a batch with these dead letters.
pub(super) fn skipped(letters: &[DeadLetter]) -> Skipped {
    let mut rows: Vec<u64> = letters.iter().filter_map(DeadLetter::row).collect();
    rows.sort_unstable();
    let timer = |letter: &DeadLetter| Some(SkippedTimer { key: letter.key.clone(), expiry_ms: letter.expiry_ms()? });
    let mut timers: Vec<_> = letters.iter().filter_map(timer).collect();
    timers.sort_unstable();
    Skipped { rows, timers }
}

/// The dead letters of one step, in the order in which they are published.
#[derive(Debug, Default)]
pub(super) struct StepLetters {
    /// Name of the step.
    step: String,
    /// In order of their numbers, rows first.
    pub(super) letters: Vec<DeadLetter>,
    /// Their keys as JSON.
    keys: Vec<String>,
    /// Their rows as JSON.
    texts: Vec<Option<String>>,
}

impl StepLetters {
    /// Of a step that was given these rows.
    ///
    /// # Errors
    /// Never for rows of the step.
    pub(super) fn new(
        pipeline: &Pipeline,
        rows: &[RecordBatch],
        mut letters: Vec<DeadLetter>,
    ) -> Result<Self, QueryError> {
        letters.sort_by(|a, b| {
            let order = |letter: &DeadLetter| (letter.row().is_none(), letter.row(), letter.expiry_ms());
            order(a).cmp(&order(b)).then_with(|| a.key.cmp(&b.key))
        });
        let key = |letter: &DeadLetter| json(&pipeline.routing.key, &letter.key);
        Ok(Self {
            step: pipeline.settings.name.clone(),
            keys: letters.iter().map(key).collect::<Result<_, _>>()?,
            texts: texts(pipeline, rows, &letters)?,
            letters,
        })
    }

    /// The ids of these dead letters; those of a batch count through its steps, from `first`.
    pub(super) fn ids(&self, batch_id: u64, first: usize) -> impl Iterator<Item = (String, &DeadLetter)> {
        let id = move |(number, letter)| (format!("{batch_id}-{number}"), letter);
        (first..).zip(&self.letters).map(id)
    }
}

/// The rows with these letters as JSON, in the order of the letters: rows ascending, then timers.
fn texts(pipeline: &Pipeline, rows: &[RecordBatch], letters: &[DeadLetter]) -> Result<Vec<Option<String>>, QueryError> {
    let (mut texts, mut begin, mut packed) = (Vec::with_capacity(letters.len()), 0, Vec::new());
    let mut numbers = letters.iter().filter_map(DeadLetter::row).peekable();
    for batch in rows {
        let end = begin + batch.num_rows() as u64;
        if numbers.peek().is_some_and(|number| *number < end) {
            let batch = columns_of_the_input(pipeline, batch)?;
            let layout = RowLayout::new(&Schema::from_arrow(&batch.schema())?);
            let encoder = RowEncoder::new(&layout, &batch).map_err(|error| defect(&error))?;
            while let Some(number) = numbers.next_if(|number| *number < end) {
                packed.clear();
                encoder.encode((number - begin) as usize, &mut packed);
                texts.push(Some(json(&layout, &packed)?));
            }
        }
        begin = end;
    }
    texts.resize(letters.len(), None);
    Ok(texts)
}

/// Without what the host has put beside them.
fn columns_of_the_input(pipeline: &Pipeline, batch: &RecordBatch) -> Result<RecordBatch, QueryError> {
    let info = &pipeline.info;
    let is_known = |name: &str| {
        let initial_state = info.initial_state.as_ref().and_then(|schema| schema.field(name));
        info.input.field(name).or(initial_state).is_some()
    };
    let schema = batch.schema();
    let known = schema.fields().iter().enumerate().filter(|(_, field)| is_known(field.name()));
    let known: Vec<usize> = known.map(|(index, _)| index).collect();
    batch.project(&known).map_err(|error| defect(&error))
}

const DDL: &str = "id STRING NOT NULL, batch_id BIGINT NOT NULL, step STRING NOT NULL, kind STRING NOT NULL, \
                   key STRING NOT NULL, row BIGINT, expiry_ms BIGINT, code STRING NOT NULL, message STRING NOT NULL, \
                   fuel BIGINT, attempts BIGINT NOT NULL, text STRING";

/// What is known of a dead letter.
///
/// # Errors
/// Never.
pub(super) fn schema() -> Result<Schema, QueryError> {
    Ok(Schema::parse(DDL)?)
}

/// The dead letters of a batch; None if there are none.
///
/// # Errors
/// Never for letters of the host's own making.
pub(super) fn rows(batch_id: u64, steps: &[&StepLetters]) -> Result<Option<RecordBatch>, QueryError> {
    let letters: Vec<(&StepLetters, usize, &DeadLetter)> = steps
        .iter()
        .flat_map(|step| step.letters.iter().enumerate().map(|(number, letter)| (*step, number, letter)))
        .collect();
    if letters.is_empty() {
        return Ok(None);
    }
    let mut first = 0;
    let ids = steps.iter().flat_map(|step| {
        let ids = step.ids(batch_id, first);
        first += step.letters.len();
        ids.map(|(id, _)| id)
    });
    let ids: ArrayRef = Arc::new(StringArray::from_iter_values(ids));
    let text = |of: &dyn Fn(&StepLetters, usize, &DeadLetter) -> Option<String>| -> ArrayRef {
        Arc::new(letters.iter().map(|(step, number, letter)| of(step, *number, letter)).collect::<StringArray>())
    };
    let number = |of: &dyn Fn(&DeadLetter) -> Option<i64>| -> ArrayRef {
        Arc::new(letters.iter().map(|(.., letter)| of(letter)).collect::<Int64Array>())
    };
    let bounded = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let columns = vec![
        ids,
        number(&|_| Some(bounded(batch_id))),
        text(&|step, _, _| Some(step.step.clone())),
        text(&|_, _, letter| Some(letter.kind().to_owned())),
        text(&|step, number, _| step.keys.get(number).cloned()),
        number(&|letter| letter.row().map(bounded)),
        number(&DeadLetter::expiry_ms),
        text(&|_, _, letter| Some(letter.code.clone())),
        text(&|_, _, letter| Some(letter.message.clone())),
        number(&|letter| letter.fuel.map(bounded)),
        number(&|letter| Some(bounded(letter.attempts))),
        text(&|step, number, _| step.texts.get(number).cloned().flatten()),
    ];
    let batch = RecordBatch::try_new(schema()?.to_arrow(), columns).map_err(|error| defect(&error))?;
    Ok(Some(batch))
}

fn json(layout: &RowLayout, packed: &[u8]) -> Result<String, QueryError> {
    Ok(row_to_json(layout, packed).map_err(|fault| defect(&fault))?.to_string())
}

fn defect(error: &dyn std::fmt::Display) -> QueryError {
    QueryError::settings("HOST_DEFECT", format!("dead letters: {error}"))
}
