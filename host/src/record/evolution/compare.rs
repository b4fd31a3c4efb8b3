//! One walk over two schemas: it finds the differences and makes the plan by which rows are converted.

use std::collections::HashMap;
use std::fmt;

use super::super::cast::widens;
use super::super::error::join_path;
use super::super::packed::cell::SLOT_DECIMAL_PRECISION_MAX;
use super::super::schema::{DataType, Field, Schema};
use super::convert::{Place, RowConversion, RowPlan, Step};

/// How a field differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where: names joined by points; `element` stands for the elements of an ARRAY, `key` and `value` for those of a MAP.
    /// Empty for the row as a whole.
    pub path: String,
    /// What.
    pub change: FieldChange,
}

/// What became of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldChange {
    /// It is new, and NULL in earlier rows.
    Added {
        /// Its type.
        to: DataType,
    },
    /// It is gone, and with it what earlier rows hold.
    Removed {
        /// Its type.
        from: DataType,
    },
    /// Its type holds every value of the type before.
    Widened {
        /// The type before.
        from: DataType,
        /// The type now.
        to: DataType,
    },
    /// It may be NULL now.
    MadeNullable,
    /// The fields of this row or struct stand in another order.
    Reordered,
    /// Earlier rows cannot be read in this way.
    Refused {
        /// The type before; None: the field is new.
        from: Option<DataType>,
        /// The type now; None: the field is gone.
        to: Option<DataType>,
        /// Why not.
        obstacle: Obstacle,
    },
}

/// Why earlier rows cannot be read by a later schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// The new type does not hold every value of the old one.
    Lossy,
    /// A new field that must not be NULL, which it is in earlier rows.
    AddedNotNull,
    /// A field that may be NULL in earlier rows must not be any more.
    MadeNotNull,
    /// Without a field, two keys of a MAP could become one.
    KeyFieldRemoved,
}

impl Difference {
    /// Whether earlier rows cannot be read.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.change, FieldChange::Refused { .. })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "fields" } else { self.path.as_str() };
        match &self.change {
            FieldChange::Added { to } => write!(f, "{path} {to} added"),
            FieldChange::Removed { from } => write!(f, "{path} {from} removed"),
            FieldChange::Widened { from, to } => write!(f, "{path} widened from {from} to {to}"),
            FieldChange::MadeNullable => write!(f, "{path} may be NULL now"),
            FieldChange::Reordered => write!(f, "{path} in another order"),
            FieldChange::Refused { from, to, obstacle } => {
                match (from, to) {
                    (Some(from), Some(to)) if from != to => write!(f, "{path} from {from} to {to}: ")?,
                    (Some(from), None) => write!(f, "{path} {from} removed: ")?,
                    (None, Some(to)) => write!(f, "{path} {to} NOT NULL added: ")?,
                    _ => write!(f, "{path}: ")?,
                }
                f.write_str(match obstacle {
                    Obstacle::Lossy => "values could be lost; keep the type, or give the field another name",
                    Obstacle::AddedNotNull => "earlier rows have no value for it; let it be NULL",
                    Obstacle::MadeNotNull => "it may be NULL in earlier rows and is NOT NULL now; let it be NULL",
                    Obstacle::KeyFieldRemoved => "without it two keys of a MAP could become one; keep it",
                })
            }
        }
    }
}

/// What lies between an earlier schema and a later one.
#[derive(Debug, Clone, PartialEq)]
pub struct Evolution {
    /// In the order of the later schema's fields, with what was removed behind those of its level.
    pub differences: Vec<Difference>,
    plan: RowPlan,
}

impl Evolution {
    /// Compares two schemas. Linear in their sizes.
    #[must_use]
    pub fn between(from: &Schema, to: &Schema) -> Self {
        let mut walk = Walk { differences: Vec::new(), in_map_key: false };
        let plan = walk.rows("", from, to);
        Self { differences: walk.differences, plan }
    }

    /// What earlier rows cannot be read because of.
    pub fn refused(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|difference| difference.is_refused())
    }

    /// How earlier rows become later ones. None: their bytes are the same.
    ///
    /// # Errors
    /// The differences that cannot be.
    pub fn conversion(self) -> Result<Option<RowConversion>, Vec<Difference>> {
        let refused: Vec<_> = self.refused().cloned().collect();
        match refused.is_empty() {
            true => Ok((!self.plan.changes_nothing()).then(|| RowConversion::new(self.plan))),
            false => Err(refused),
        }
    }
}

struct Walk {
    differences: Vec<Difference>,
    in_map_key: bool,
}

impl Walk {
    fn rows(&mut self, path: &str, from: &Schema, to: &Schema) -> RowPlan {
        let mut earlier: HashMap<String, (usize, &Field)> = from
            .fields()
            .iter()
            .enumerate()
            .map(|(index, field)| (field.name.to_lowercase(), (index, field)))
            .collect();
        let sources: Vec<_> = to.fields().iter().map(|field| earlier.remove(&field.name.to_lowercase())).collect();
        if !sources.iter().flatten().is_sorted_by_key(|(index, _)| *index) {
            self.note(path, FieldChange::Reordered);
        }
        let columns = to.fields().iter().zip(sources).map(|(field, source)| {
            let path = join_path(path, &field.name);
            let Some((index, before)) = source else {
                self.added(&path, field);
                return None;
            };
            self.nullability(&path, before, field);
            Some((index, self.types(&path, &before.data_type, &field.data_type)))
        });
        let columns = columns.collect();
        for field in from.fields().iter().filter(|field| earlier.contains_key(&field.name.to_lowercase())) {
            self.removed(&join_path(path, &field.name), field);
        }
        RowPlan { from: from.fields().iter().map(|field| Place::of(&field.data_type)).collect(), columns }
    }

    fn types(&mut self, path: &str, from: &DataType, to: &DataType) -> Step {
        match (from, to) {
            (DataType::Array(from), DataType::Array(to)) => {
                let element = self.types(&join_path(path, "element"), from, to);
                if element.changes_nothing() { Step::Same } else { Step::array(from, element) }
            }
            (DataType::Map(from_key, from_value), DataType::Map(to_key, to_value)) => {
                let outer = std::mem::replace(&mut self.in_map_key, true);
                let key = self.types(&join_path(path, "key"), from_key, to_key);
                self.in_map_key = outer;
                let value = self.types(&join_path(path, "value"), from_value, to_value);
                if key.changes_nothing() && value.changes_nothing() {
                    Step::Same
                } else {
                    Step::map((from_key, key), (from_value, value))
                }
            }
            (DataType::Struct(from), DataType::Struct(to)) => {
                let plan = self.rows(path, from, to);
                if plan.changes_nothing() { Step::Same } else { Step::Struct(plan) }
            }
            _ if from == to => Step::Same,
            _ if widens(from, to) => {
                self.note(path, FieldChange::Widened { from: from.clone(), to: to.clone() });
                widening(from, to)
            }
            _ => {
                self.refuse(path, Some(from), Some(to), Obstacle::Lossy);
                Step::Same
            }
        }
    }

    fn added(&mut self, path: &str, field: &Field) {
        if field.nullable {
            self.note(path, FieldChange::Added { to: field.data_type.clone() });
        } else {
            self.refuse(path, None, Some(&field.data_type), Obstacle::AddedNotNull);
        }
    }

    fn removed(&mut self, path: &str, field: &Field) {
        if self.in_map_key {
            self.refuse(path, Some(&field.data_type), None, Obstacle::KeyFieldRemoved);
        } else {
            self.note(path, FieldChange::Removed { from: field.data_type.clone() });
        }
    }

    fn nullability(&mut self, path: &str, before: &Field, now: &Field) {
        match (before.nullable, now.nullable) {
            (false, true) => self.note(path, FieldChange::MadeNullable),
            (true, false) => {
                self.refuse(path, Some(&before.data_type), Some(&now.data_type), Obstacle::MadeNotNull);
            }
            _ => {}
        }
    }

    fn refuse(&mut self, path: &str, from: Option<&DataType>, to: Option<&DataType>, obstacle: Obstacle) {
        self.note(path, FieldChange::Refused { from: from.cloned(), to: to.cloned(), obstacle });
    }

    fn note(&mut self, path: &str, change: FieldChange) {
        self.differences.push(Difference { path: path.to_owned(), change });
    }
}

/// How a value becomes one of a type that it widens to.
fn widening(from: &DataType, to: &DataType) -> Step {
    match (from, to) {
        (DataType::TinyInt | DataType::SmallInt | DataType::Int, DataType::Double) => Step::IntToDouble,
        (
            DataType::Decimal { precision: from_precision, scale: from_scale },
            DataType::Decimal { precision, scale },
        ) => {
            let zeros = scale.saturating_sub(*from_scale);
            let stands_in_slot = |precision: &u8| *precision <= SLOT_DECIMAL_PRECISION_MAX;
            if zeros == 0 && stands_in_slot(from_precision) == stands_in_slot(precision) {
                Step::Same
            } else {
                Step::Decimal { zeros, in_slot: stands_in_slot(precision) }
            }
        }
        // Integers of all widths are the same 64 bits, and so are FLOAT and DOUBLE.
        _ => Step::Same,
    }
}
