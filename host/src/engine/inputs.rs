//! The sources of a query as one input: a batch reads of each its fair share.

use super::error::QueryError;
use super::settings::InputSettings;
use super::source::{Outlook, ReadLimits, Slice, Source, SourceError, SourceRange};
use super::union::Union;
use super::watermark::Watermark;
use crate::record::Schema;

/// The sources of a query, in the order of its settings.
pub(super) struct Inputs {
    settings: Vec<InputSettings>,
    sources: Vec<Box<dyn Source>>,
    union: Union,
    /// The columns of the input that are needed.
    needed: Schema,
}

impl Inputs {
    /// Sources that are read for these columns of the input.
    ///
    /// # Errors
    /// A column that a source lacks and in which no NULL is taken.
    pub(super) fn new(
        settings: &[InputSettings],
        sources: Vec<Box<dyn Source>>,
        union: Union,
        needed: &Schema,
    ) -> Result<Self, QueryError> {
        let mut inputs = Self { settings: settings.to_vec(), sources, union, needed: needed.clone() };
        inputs.project(needed)?;
        Ok(inputs)
    }

    /// Reads other columns from now on.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(super) fn project(&mut self, needed: &Schema) -> Result<(), QueryError> {
        self.needed = needed.clone();
        for (number, source) in self.sources.iter_mut().enumerate() {
            let columns = self.union.columns_of(&self.settings, number, needed)?;
            source.project(&columns).map_err(|error| failed(source.as_ref(), error))?;
        }
        Ok(())
    }

    /// A source with its name.
    pub(super) fn get(&self, number: usize) -> Option<(&str, &dyn Source)> {
        Some((self.settings.get(number)?.name.as_str(), self.sources.get(number)?.as_ref()))
    }

    /// All of them with their names.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Box<dyn Source>)> {
        self.settings.iter().map(|input| input.name.as_str()).zip(&mut self.sources)
    }

    /// Reads the next rows: a slice of each source that has some, in their order. What a source leaves of its share goes to
    /// those that are read after it, and those with the fewest rows in the batch before are read first: so a busy source
    /// takes what quiet ones leave, and two busy ones get half each. Files are counted for each source by itself.
    ///
    /// # Errors
    /// A source that cannot be read.
    pub(super) fn next(
        &mut self,
        limits: &ReadLimits,
        watermark: &Watermark,
    ) -> Result<Vec<(usize, Slice)>, QueryError> {
        let rows_before = |input: &InputSettings| watermark.source(&input.name).map_or(0, |time| time.rows);
        let mut order: Vec<usize> = (0..self.sources.len()).collect();
        order.sort_by_key(|number| self.settings.get(*number).map_or(0, rows_before));
        let (mut rows_left, mut bytes_left) = (limits.rows_max, limits.bytes_max);
        let mut slices = Vec::new();
        for (turn, number) in order.iter().enumerate() {
            let sharers = (order.len() - turn) as u64;
            let Some(source) = self.sources.get_mut(*number).filter(|_| rows_left > 0 && bytes_left > 0) else { break };
            let share = ReadLimits {
                rows_max: rows_left.div_ceil(sharers),
                bytes_max: bytes_left.div_ceil(sharers),
                files_max: limits.files_max,
            };
            if let Some(mut slice) = source.next(&share).map_err(|error| failed(source.as_ref(), error))? {
                rows_left = rows_left.saturating_sub(slice.rows() + slice.rejected.len() as u64);
                bytes_left = bytes_left.saturating_sub(slice.bytes);
                self.complete(*number, &mut slice)?;
                slices.push((*number, slice));
            }
        }
        slices.sort_by_key(|(number, _)| *number);
        Ok(slices)
    }

    /// What may follow behind the positions.
    pub(super) fn outlook(&self) -> Outlook {
        let all: Vec<_> = self.sources.iter().map(|source| source.outlook()).collect();
        let any = |outlook| all.contains(&outlook).then_some(outlook);
        any(Outlook::Open).or(any(Outlook::Growing)).unwrap_or(Outlook::Ended)
    }

    /// Reads a committed range of a source again.
    ///
    /// # Errors
    /// As `read`.
    pub(super) fn read_again(
        &mut self,
        number: usize,
        range: &SourceRange,
        read: impl FnOnce(&mut dyn Source, &SourceRange) -> Result<Slice, SourceError>,
    ) -> Result<Slice, QueryError> {
        let Some(source) = self.sources.get_mut(number) else { return Ok(Slice::default()) };
        let mut slice = read(source.as_mut(), range).map_err(|error| failed(source.as_ref(), error))?;
        self.complete(number, &mut slice)?;
        Ok(slice)
    }

    fn complete(&self, number: usize, slice: &mut Slice) -> Result<(), QueryError> {
        for rows in &mut slice.batches {
            *rows = self.union.complete(number, &self.needed, rows)?;
        }
        Ok(())
    }
}

fn failed(source: &dyn Source, error: SourceError) -> QueryError {
    QueryError::Source { source_name: source.describe(), source: error }
}
