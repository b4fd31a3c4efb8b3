//! How rows of state are shown and written: as JSON documents, with a schema of their own for typed files.

use serde_json::{Value, json};

use super::super::listing::column;
use super::super::output::Coded;
use super::{instant, row_failed, state_failed};
use crate::record::{DataType, Field, GroupingKey, RowLayout, Schema, key_group, key_layout, row_to_json};
use crate::state::{CatalogVariable, Contents, StateRow, StoredRows, TimerRow, VariableKind};

/// How the rows of a variable are shown.
pub(super) struct RowShape<'a> {
    variable: &'a CatalogVariable,
    key: RowLayout,
    entry: Option<RowLayout>,
    value: RowLayout,
    stored: StoredRows,
    key_groups: u16,
}

impl<'a> RowShape<'a> {
    pub(super) fn of(key: &Schema, variable: &'a CatalogVariable, key_groups: u16) -> anyhow::Result<Self> {
        Ok(Self {
            variable,
            key: layout_of_key(key)?,
            entry: variable.key.as_ref().map(layout_of_key).transpose()?,
            value: RowLayout::new(&variable.value),
            stored: variable.stored_rows().map_err(state_failed)?,
            key_groups,
        })
    }

    /// What people see.
    pub(super) fn columns(&self) -> Vec<Vec<String>> {
        let mut columns: Vec<_> = fields("key", self.key.schema()).collect();
        if self.variable.kind == VariableKind::List {
            columns.push(column("sequence"));
        }
        if let Some(entry) = &self.entry {
            columns.extend(fields("entry", entry.schema()));
        }
        columns.extend(fields("value", self.value.schema()));
        if self.variable.expires {
            columns.push(column("expires"));
        }
        columns
    }

    /// What programs read.
    pub(super) fn schema(&self) -> anyhow::Result<Schema> {
        let mut columns = vec![required("key", DataType::Struct(self.key.schema().clone()))];
        if self.variable.kind == VariableKind::List {
            columns.push(required("sequence", DataType::BigInt));
        }
        columns.extend(self.contents());
        columns.push(required("key_group", DataType::Int));
        schema(columns)
    }

    /// Of changes: what is deleted has no value.
    pub(super) fn change_schema(&self) -> anyhow::Result<Schema> {
        let mut columns = vec![required("batch_id", DataType::BigInt), required("change_type", DataType::String)];
        columns.extend(self.schema()?.fields().iter().map(|field| match field.name.as_str() {
            "value" => optional("value", field.data_type.clone()),
            _ => field.clone(),
        }));
        schema(columns)
    }

    /// Entry, value and expiry.
    fn contents(&self) -> Vec<Field> {
        let mut columns = Vec::new();
        if let Some(entry) = &self.entry {
            columns.push(required("entry", DataType::Struct(entry.schema().clone())));
        }
        columns.push(required("value", DataType::Struct(self.value.schema().clone())));
        if self.variable.expires {
            columns.push(optional("expires", DataType::Timestamp));
        }
        columns
    }

    pub(super) fn document(&self, row: StateRow<'_>) -> anyhow::Result<Value> {
        let mut document = json!({ "key": self.key_of(row.key)? });
        self.put_contents(row, &mut document)?;
        put(&mut document, "key_group", self.key_group_of(row.key).into());
        Ok(document)
    }

    /// The grouping key.
    pub(super) fn key_of(&self, key: GroupingKey<'_>) -> anyhow::Result<Value> {
        row_to_json(&self.key, key.row).map_err(row_failed)
    }

    pub(super) fn key_group_of(&self, key: GroupingKey<'_>) -> u16 {
        key_group(key.hash, self.key_groups)
    }

    /// The key of an entry.
    pub(super) fn entry_of(&self, entry: &[u8]) -> anyhow::Result<Value> {
        self.entry.as_ref().map_or(Ok(Value::Null), |layout| row_to_json(layout, entry).map_err(row_failed))
    }

    /// Adds all but the key.
    pub(super) fn put_contents(&self, row: StateRow<'_>, document: &mut Value) -> anyhow::Result<()> {
        let json = |layout: &RowLayout, row: &[u8]| row_to_json(layout, row).map_err(row_failed);
        let value = match (row.contents, &self.entry) {
            (Contents::Value(value), _) => value,
            (Contents::Element { sequence, row }, _) => {
                put(document, "sequence", sequence.into());
                row
            }
            (Contents::Entry { key, row }, Some(entry)) => {
                put(document, "entry", json(entry, key)?);
                row
            }
            (Contents::Entry { row, .. }, None) => row,
        };
        let value = self.stored.in_force(row.schema_id, value).map_err(state_failed)?;
        put(document, "value", json(&self.value, &value)?);
        if let Some(expiry_ms) = row.expiry_ms {
            put(document, "expires", instant(expiry_ms).into());
        }
        Ok(())
    }

    /// Of one row per key.
    pub(super) fn collected_columns(&self) -> Vec<Vec<String>> {
        fields("key", self.key.schema()).chain([column(self.collection())]).collect()
    }

    pub(super) fn collected_schema(&self) -> anyhow::Result<Schema> {
        let element = DataType::Struct(schema(self.contents())?);
        schema(vec![
            required("key", DataType::Struct(self.key.schema().clone())),
            required(self.collection(), DataType::Array(Box::new(element))),
            required("key_group", DataType::Int),
        ])
    }

    fn collection(&self) -> &'static str {
        match self.variable.kind {
            VariableKind::Value => "values",
            VariableKind::List => "elements",
            VariableKind::Map => "entries",
        }
    }

    /// The row of a key, with the first of what it holds.
    pub(super) fn begin_collecting(&self, row: StateRow<'_>) -> anyhow::Result<Value> {
        let mut collected = json!({ "key": self.key_of(row.key)? });
        put(&mut collected, self.collection(), Value::Array(Vec::new()));
        put(&mut collected, "key_group", self.key_group_of(row.key).into());
        self.collect(row, &mut collected)?;
        Ok(collected)
    }

    /// Adds one more of what it holds.
    pub(super) fn collect(&self, row: StateRow<'_>, collected: &mut Value) -> anyhow::Result<()> {
        let mut element = json!({});
        self.put_contents(row, &mut element)?;
        if let Value::Object(element) = &mut element {
            element.remove("sequence");
        }
        if let Some(Value::Array(elements)) = collected.get_mut(self.collection()) {
            elements.push(element);
        }
        Ok(())
    }
}

/// How timers are shown.
pub(super) struct TimerShape {
    key: RowLayout,
    key_groups: u16,
}

impl TimerShape {
    pub(super) fn of(key: &Schema, key_groups: u16) -> anyhow::Result<Self> {
        Ok(Self { key: layout_of_key(key)?, key_groups })
    }

    pub(super) fn columns(&self) -> Vec<Vec<String>> {
        fields("key", self.key.schema()).chain([column("expires")]).collect()
    }

    pub(super) fn schema(&self) -> anyhow::Result<Schema> {
        schema(vec![
            required("key", DataType::Struct(self.key.schema().clone())),
            required("expires", DataType::Timestamp),
            required("key_group", DataType::Int),
        ])
    }

    pub(super) fn document(&self, timer: TimerRow<'_>) -> anyhow::Result<Value> {
        let key = row_to_json(&self.key, timer.key.row).map_err(row_failed)?;
        let key_group = key_group(timer.key.hash, self.key_groups);
        Ok(json!({ "key": key, "expires": instant(timer.expiry_ms), "key_group": key_group }))
    }
}

/// Columns of a row within a row.
fn fields<'s>(prefix: &'s str, schema: &'s Schema) -> impl Iterator<Item = Vec<String>> + 's {
    schema.fields().iter().map(move |field| vec![prefix.to_owned(), field.name.clone()])
}

pub(super) fn layout_of_key(schema: &Schema) -> anyhow::Result<RowLayout> {
    key_layout(schema).map_err(|error| Coded::wrap(error.code(), error))
}

pub(super) fn schema(columns: Vec<Field>) -> anyhow::Result<Schema> {
    Schema::new(columns).map_err(|error| Coded::wrap(error.code(), error))
}

pub(super) fn required(name: &str, data_type: DataType) -> Field {
    Field { name: name.to_owned(), data_type, nullable: false }
}

pub(super) fn optional(name: &str, data_type: DataType) -> Field {
    Field { name: name.to_owned(), data_type, nullable: true }
}

pub(super) fn put(document: &mut Value, name: &str, value: Value) {
    if let Value::Object(object) = document {
        object.insert(name.to_owned(), value);
    }
}
