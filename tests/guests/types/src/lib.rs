//! Stores and emits a column of every type, under a composite key: each row goes into a value, a list and, under a
//! composite key of its own, a map; then what these hold is emitted.

use std::collections::BTreeMap;

use tidemill::{
    Binary, Date, Decimal, Handle, ListState, MapState, Out, Result, Row, Rows, StatefulProcessor, Timers, Timestamp,
    ValueState,
};

/// The grouping key; its columns do not stand side by side in the input.
#[derive(Row)]
struct Key {
    user: Option<String>,
    shop: Option<i32>,
}

/// Everything that a column can be.
#[derive(Row)]
struct All {
    truth: bool,
    tiny: i8,
    small: i16,
    int: i32,
    big: i64,
    float: f32,
    double: f64,
    text: String,
    bytes: Binary,
    day: Date,
    instant: Timestamp,
    price: Decimal<9, 2>,
    huge: Decimal<38, 10>,
    numbers: Vec<Option<i32>>,
    counts: BTreeMap<String, i64>,
    place: Place,
    maybe: Option<String>,
}

#[derive(Row)]
struct Place {
    name: String,
    tags: Vec<String>,
    inner: Inner,
}

#[derive(Row)]
struct Inner {
    x: f64,
    when: Option<Date>,
}

/// Key of the map.
#[derive(Row)]
struct Entry {
    small: i16,
    text: String,
    place: Place,
}

#[derive(Row)]
struct Stored {
    user: Option<String>,
    shop: Option<i32>,
    from: String,
    row: All,
}

struct Types {
    value: ValueState<All>,
    list: ListState<All>,
    map: MapState<Entry, All>,
}

impl StatefulProcessor for Types {
    type Key = Key;
    type Input = All;
    type Output = Stored;

    fn init(handle: &mut Handle) -> Result<Self> {
        Ok(Self {
            value: handle.value_state("value")?,
            list: handle.list_state("list")?,
            map: handle.map_state("map")?,
        })
    }

    fn handle_input_rows(&mut self, key: &Key, rows: Rows<'_, All>, _: &Timers, out: &mut Out<Stored>) -> Result<()> {
        for row in rows {
            let row = row?;
            self.value.update(&row)?;
            self.map.update(&entry(&row), &row)?;
            self.list.append(&row)?;
        }
        let mut emit = |from: &str, row: All| {
            out.emit(&Stored { user: key.user.clone(), shop: key.shop, from: from.to_owned(), row })
        };
        if let Some(row) = self.value.get()? {
            let at = self.map.get(&entry(&row))?;
            emit("value", row)?;
            at.map_or(Ok(()), |row| emit("map", row))?;
        }
        for row in self.list.get()? {
            emit("list", row?)?;
        }
        Ok(())
    }
}

fn entry(row: &All) -> Entry {
    let Place { name, tags, inner } = &row.place;
    let place = Place { name: name.clone(), tags: tags.clone(), inner: Inner { x: inner.x, when: inner.when } };
    Entry { small: row.small, text: row.text.clone(), place }
}

tidemill::export_processor!(Types);
