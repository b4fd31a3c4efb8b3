//! Several sources as one input: one schema, and rows brought to it.
//!
//! Columns go by name. A column that a source lacks is NULL in its rows; one that has another type in another source must
//! widen to that without loss. Rows come source by source, in the order of the settings.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};

use super::error::QueryError;
use super::settings::InputSettings;
use crate::record::{DataType, Field, Schema, cast_batch, widens};

/// In rows of several sources, the column that holds the event time of each, whatever its source calls it.
const EVENT_TIME: &str = "$event_time";

/// Brings rows of each source to the input's schema.
#[derive(Debug, Clone)]
pub(super) struct Union {
    /// The input.
    pub(super) schema: Schema,
    /// The column that holds the event time of rows. None: no source has one.
    pub(super) event_time: Option<String>,
    /// Schema and event-time column of each source.
    sources: Vec<(Schema, Option<String>)>,
}

impl Union {
    /// One source is the input as it is.
    ///
    /// # Errors
    /// `INCOMPATIBLE_COLUMN_TYPE`, `WATERMARK_COLUMN_MISSING`, `WATERMARK_COLUMN_TYPE`.
    pub(super) fn new(inputs: &[InputSettings], schemas: &[Schema]) -> Result<Self, QueryError> {
        let mut sources = Vec::new();
        for (input, schema) in inputs.iter().zip(schemas) {
            let watermark = input.watermark.as_ref();
            let event_time = watermark.map(|watermark| event_time_column(&watermark.column, schema)).transpose();
            let event_time = event_time.map_err(|error| in_source(inputs, input, error))?;
            sources.push((schema.clone(), event_time));
        }
        let (schema, event_time) = match sources.as_slice() {
            [(schema, event_time)] => (schema.clone(), event_time.clone()),
            sources => {
                let any = sources.iter().any(|(_, event_time)| event_time.is_some());
                (union(inputs, schemas)?, any.then(|| EVENT_TIME.to_owned()))
            }
        };
        Ok(Self { schema, event_time, sources })
    }

    /// The columns to read of a source: of those that are needed those that it has, with its own types.
    ///
    /// # Errors
    /// `INPUT_SCHEMA_MISMATCH`: it lacks a column in which no NULL is taken.
    pub(super) fn columns_of(
        &self,
        inputs: &[InputSettings],
        number: usize,
        needed: &Schema,
    ) -> Result<Schema, QueryError> {
        let (Some((schema, event_time)), Some(input)) = (self.sources.get(number), inputs.get(number)) else {
            return Ok(needed.clone());
        };
        if self.sources.len() == 1 {
            return Ok(needed.clone());
        }
        if let Some(missing) =
            needed.fields().iter().find(|field| !field.nullable && schema.field(&field.name).is_none())
        {
            let error = QueryError::settings(
                "INPUT_SCHEMA_MISMATCH",
                format!(
                    "column {} is wanted NOT NULL, and the source ({schema}) does not have it; give it the column, or let the \
                     processor take NULL",
                    missing.name
                ),
            );
            return Err(in_source(inputs, input, error));
        }
        let is_event_time = |name: &str| event_time.as_deref() == Some(name);
        let read = schema.fields().iter().filter_map(|field| match needed.field(&field.name) {
            Some(wanted) => Some(Field { nullable: field.nullable && wanted.nullable, ..field.clone() }),
            None => is_event_time(&field.name).then(|| field.clone()),
        });
        Ok(Schema::new(read.collect())?)
    }

    /// Rows of a source with the needed columns of the input.
    ///
    /// # Errors
    /// Never for rows with the columns of [`Self::columns_of`].
    pub(super) fn complete(
        &self,
        number: usize,
        needed: &Schema,
        rows: &RecordBatch,
    ) -> Result<RecordBatch, QueryError> {
        let Some((schema, event_time)) = self.sources.get(number).filter(|_| self.sources.len() > 1) else {
            return Ok(rows.clone());
        };
        let there = needed.fields().iter().filter(|field| schema.field(&field.name).is_some());
        let there = Schema::new(there.cloned().collect())?;
        let cast = cast_batch(rows, &there).map_err(|error| defect(&error))?;
        let mut arrays: Vec<ArrayRef> = Vec::new();
        let mut fields: Vec<_> = needed.to_arrow().fields().iter().cloned().collect();
        for (field, arrow) in needed.fields().iter().zip(&fields) {
            arrays.push(match there.index_of(&field.name).and_then(|index| cast.columns().get(index)) {
                Some(array) => Arc::clone(array),
                None => new_null_array(arrow.data_type(), rows.num_rows()),
            });
        }
        if self.event_time.is_some() {
            let time = Schema::new(vec![Field::nullable(EVENT_TIME, DataType::Timestamp)])?.to_arrow();
            let column = event_time.as_ref().and_then(|name| rows.column_by_name(name));
            for field in time.fields() {
                let nulls = || new_null_array(field.data_type(), rows.num_rows());
                arrays.push(column.map_or_else(nulls, Arc::clone));
                fields.push(Arc::clone(field));
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let schema = Arc::new(arrow_schema::Schema::new(fields));
        RecordBatch::try_new_with_options(schema, arrays, &options).map_err(|error| defect(&error))
    }
}

fn event_time_column(column: &str, schema: &Schema) -> Result<String, QueryError> {
    match schema.field(column) {
        Some(field) if field.data_type == DataType::Timestamp => Ok(field.name.clone()),
        Some(field) => Err(QueryError::settings(
            "WATERMARK_COLUMN_TYPE",
            format!("the watermark column {} is {}; it must be TIMESTAMP", field.name, field.data_type),
        )),
        None => Err(QueryError::settings(
            "WATERMARK_COLUMN_MISSING",
            format!("the watermark column {column} is not in the input ({schema}); name a TIMESTAMP column of it"),
        )),
    }
}

/// All columns of all sources, each with the type that the others widen to.
fn union(inputs: &[InputSettings], schemas: &[Schema]) -> Result<Schema, QueryError> {
    let mut fields: Vec<Field> = Vec::new();
    for (input, schema) in inputs.iter().zip(schemas) {
        for field in schema.fields() {
            match fields.iter_mut().find(|known| known.name.eq_ignore_ascii_case(&field.name)) {
                None => fields.push(field.clone()),
                Some(known) if widens(&field.data_type, &known.data_type) => {}
                Some(known) if widens(&known.data_type, &field.data_type) => known.data_type = field.data_type.clone(),
                Some(known) => {
                    let problem = format!(
                        "column {} is {}, and {} in a source before it; neither widens to the other without loss. Give one of \
                         them a schema in which it has a type that both fit",
                        field.name, field.data_type, known.data_type
                    );
                    let error = QueryError::settings("INCOMPATIBLE_COLUMN_TYPE", problem);
                    return Err(in_source(inputs, input, error));
                }
            }
        }
    }
    for field in &mut fields {
        let always = schemas.iter().all(|schema| schema.field(&field.name).is_some_and(|of| !of.nullable));
        field.nullable = !always;
    }
    Ok(Schema::new(fields)?)
}

fn in_source(inputs: &[InputSettings], input: &InputSettings, error: QueryError) -> QueryError {
    match inputs.len() {
        1 => error,
        _ => QueryError::InPart { part: format!("source {}", input.name), source: Box::new(error) },
    }
}

fn defect(error: &dyn std::fmt::Display) -> QueryError {
    QueryError::settings("HOST_DEFECT", format!("rows of several sources: {error}"))
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{Array, Int32Array, StringArray};

    use super::*;

    fn union_of(ddls: &[&str]) -> Result<Union, QueryError> {
        let inputs = ddls.iter().enumerate().map(|(number, _)| InputSettings {
            name: format!("s{number}"),
            watermark: None,
            idle_timeout_ms: None,
        });
        let inputs: Vec<_> = inputs.collect();
        Union::new(&inputs, &ddls.iter().map(|ddl| Schema::parse(ddl).unwrap()).collect::<Vec<_>>())
    }

    #[test]
    fn columns_go_by_name_and_take_the_wider_type() {
        let union =
            union_of(&["k STRING NOT NULL, n INT NOT NULL", "N BIGINT NOT NULL, k STRING NOT NULL, x DATE"]).unwrap();

        assert_eq!(union.schema.to_string(), "k STRING NOT NULL, n BIGINT NOT NULL, x DATE");
    }

    #[test]
    fn types_that_do_not_widen_are_refused() {
        let error = union_of(&["k STRING, n BIGINT", "k STRING, n DOUBLE"]).unwrap_err();

        assert_eq!(error.code(), "INCOMPATIBLE_COLUMN_TYPE");
        assert!(error.to_string().starts_with("source s1: column n is DOUBLE, and BIGINT"), "{error}");
    }

    #[test]
    fn a_column_that_a_source_lacks_is_null_in_its_rows() {
        let union = union_of(&["k STRING, n INT", "k STRING, n BIGINT, x DATE"]).unwrap();
        let schema = Schema::parse("k STRING, n INT").unwrap();
        let columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from(vec!["a"])), Arc::new(Int32Array::from(vec![7]))];
        let rows = RecordBatch::try_new(schema.to_arrow(), columns).unwrap();

        let rows = union.complete(0, &union.schema, &rows).unwrap();

        assert_eq!(rows.column(1).as_primitive::<Int64Type>().value(0), 7);
        assert!(rows.column(2).is_null(0));
    }
}
