//! All state in flat rows, one kind of row for everything, so that a processor can take them as its initial state.

use serde_json::{Map, Value, json};

use super::super::listing::column;
use super::State;
use super::rows::{self, RowShape, TimerShape, optional, required};
use crate::record::{DataType, Field, Schema};
use crate::state::{CatalogVariable, for_each_row, for_each_timer};

/// What stands in the column `variable` for a timer. No variable may begin with it.
const TIMERS: &str = "$timers";

/// The only field of a row that an SDK makes of a plain value.
const PLAIN: &str = "value";

/// Writes the rows of these variables, or of all of them and the timers.
pub(super) fn write(state: &State, names: &[String]) -> anyhow::Result<()> {
    let key = state.key()?;
    let variables: Vec<&CatalogVariable> = match names {
        [] => state.catalog.variables(state.step).iter().collect(),
        names => names.iter().map(|name| state.variable(name)).collect::<anyhow::Result<_>>()?,
    };
    let mut columns = Columns::of(key);
    let places: Vec<Places> = variables.iter().map(|variable| columns.add(variable)).collect();
    let expires = columns.push("expires", DataType::Timestamp);
    let names_of = Names { variable: columns.variable.clone(), expires };
    let shown = columns.fields.iter().map(|field| column(&field.name)).collect();
    let mut target = state.place.open(shown, rows::schema(columns.fields)?)?;
    for (variable, places) in variables.iter().zip(&places) {
        let shape = RowShape::of(key, variable, state.key_groups)?;
        state.each(&mut target, |reader, visit| {
            for_each_row(reader, state.step, variable.id, variable.kind, None, &mut |row| {
                visit(shape.document(row).map(|document| flat(document, &variable.name, places, &names_of)))
            })
        })?;
    }
    if names.is_empty() {
        let shape = TimerShape::of(key, state.key_groups)?;
        state.each(&mut target, |reader, visit| {
            for_each_timer(reader, state.step, None, &mut |timer| {
                visit(shape.document(timer).map(|document| flat(document, TIMERS, &Places::default(), &names_of)))
            })
        })?;
    }
    target.finish()
}

/// The columns of the rows: those of the grouping key, the variable's name, those of each variable.
struct Columns {
    fields: Vec<Field>,
    variable: String,
}

/// The columns that every row has.
struct Names {
    variable: String,
    expires: String,
}

/// Where the fields of a variable's rows go.
#[derive(Default)]
struct Places {
    entry: Vec<(String, String)>,
    value: Vec<(String, String)>,
}

impl Columns {
    fn of(key: &Schema) -> Self {
        let mut columns = Self { fields: key.fields().to_vec(), variable: String::new() };
        columns.variable = columns.free("variable");
        columns.fields.push(required(&columns.variable, DataType::String));
        columns
    }

    fn add(&mut self, variable: &CatalogVariable) -> Places {
        let name = &variable.name;
        let entry = variable.key.as_ref().map(|entry| self.add_fields(&format!("{name}_key"), entry));
        Places { entry: entry.unwrap_or_default(), value: self.add_fields(name, &variable.value) }
    }

    /// A plain value goes by the name alone.
    fn add_fields(&mut self, name: &str, row: &Schema) -> Vec<(String, String)> {
        let is_plain = row.len() == 1 && row.field(PLAIN).is_some();
        let places = row.fields().iter().map(|field| {
            let column = if is_plain { name.to_owned() } else { format!("{name}_{}", field.name) };
            (field.name.clone(), self.push(&column, field.data_type.clone()))
        });
        places.collect()
    }

    fn push(&mut self, name: &str, data_type: DataType) -> String {
        let name = self.free(name);
        self.fields.push(optional(&name, data_type));
        name
    }

    /// A name that is taken gets an underscore.
    fn free(&self, name: &str) -> String {
        let mut name = name.to_owned();
        while self.fields.iter().any(|field| field.name.eq_ignore_ascii_case(&name)) {
            name.push('_');
        }
        name
    }
}

fn flat(mut document: Value, variable: &str, places: &Places, names: &Names) -> Value {
    let mut row = Map::new();
    if let Some(Value::Object(key)) = document.get_mut("key").map(Value::take) {
        row.extend(key);
    }
    row.insert(names.variable.clone(), json!(variable));
    for (part, places) in [("entry", &places.entry), ("value", &places.value)] {
        for (field, column) in places {
            if let Some(value) = document.get_mut(part).and_then(|part| part.get_mut(field)) {
                row.insert(column.clone(), value.take());
            }
        }
    }
    if let Some(expires) = document.get_mut("expires") {
        row.insert(names.expires.clone(), expires.take());
    }
    Value::Object(row)
}
