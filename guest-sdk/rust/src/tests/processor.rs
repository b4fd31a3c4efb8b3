//! What the SDK promises beyond state and timers (those: `tests/guests/script`): schemas, columns by position,
//! errors, `init` and `close`.

use std::cell::Cell;

use tidemill::testing::TestQuery;
use tidemill::{
    Binary, Decimal, Error, Handle, Out, Result, Row, Rows, StatefulProcessor, TimeMode, Timers, Timestamp, ValueState,
};

#[derive(Row)]
struct Reading {
    #[row(rename = "time_hour")]
    at: Timestamp,
    r#type: Option<String>,
    #[row(rename = "raw bytes")]
    raw: Binary,
    price: Decimal<10, 2>,
    nested: Option<Nested>,
}

#[derive(Row)]
struct Nested {
    tags: Vec<Option<String>>,
}

#[test]
fn a_schema_says_what_the_fields_say() {
    assert_eq!(
        tidemill::schema::<Reading>().unwrap(),
        "time_hour TIMESTAMP NOT NULL, type STRING, `raw bytes` BINARY NOT NULL, price DECIMAL(10,2) NOT NULL, nested STRUCT<tags: ARRAY<STRING>>"
    );
    assert_eq!(tidemill::schema::<(i8, Option<f32>)>().unwrap(), "_1 TINYINT NOT NULL, _2 FLOAT");
    assert_eq!(tidemill::row::stored_schema::<i64>().unwrap(), "value BIGINT");
}

#[derive(Row)]
struct Tree {
    children: Vec<Tree>,
}

#[test]
fn a_type_that_contains_itself_has_no_schema() {
    let error = tidemill::schema::<Tree>().unwrap_err();
    assert_eq!(error.code(), "SCHEMA_MISMATCH");
    assert!(error.message().starts_with("column `children.children."), "{error}");
}

/// Reads nothing but the number of rows, and misuses what it holds where it is told to.
struct Count {
    total: ValueState<i64>,
    misuse: Option<String>,
}

impl StatefulProcessor for Count {
    type Key = (String, Option<i32>);
    type Input = ();
    type Output = i64;

    fn init(handle: &mut Handle) -> Result<Self> {
        let misuse = handle.parameter("misuse").map(str::to_owned);
        let total = handle.value_state("total")?;
        match misuse.as_deref() {
            Some("read in init") => drop(total.get()?),
            Some("same name") => drop(handle.list_state::<i64>("total")?),
            Some("bad name") => drop(handle.list_state::<i64>("$total")?),
            _ => {}
        }
        Ok(Self { total, misuse })
    }

    fn handle_input_rows(&mut self, _: &Self::Key, rows: Rows<'_, ()>, _: &Timers, out: &mut Out<i64>) -> Result<()> {
        match self.misuse.as_deref() {
            Some("parse") => drop("x".parse::<i64>()?),
            Some("own code") => return Err(Error::new("OVERDRAWN", "no money left")),
            _ => {}
        }
        let total = self.total.get()?.unwrap_or(0) + rows.count() as i64;
        self.total.update(&total)?;
        out.emit(&total)
    }

    fn close(&mut self) -> Result<()> {
        if self.misuse.as_deref() == Some("write in close") { self.total.update(&0) } else { Ok(()) }
    }
}

fn code_of(misuse: &str) -> String {
    let mut query = TestQuery::<Count>::new(TimeMode::None);
    query.parameter("misuse", misuse).input(("a".to_owned(), None), [()]);
    query.run_batch().unwrap_err().code().to_owned()
}

#[test]
fn rows_without_columns_are_counted() {
    let mut query = TestQuery::<Count>::new(TimeMode::None);
    query.input(("a".to_owned(), None), [(), ()]).input(("a".to_owned(), Some(1)), [()]);
    let mut totals = query.run_batch().unwrap();
    totals.sort_unstable();
    assert_eq!(totals, [1, 2]);
    assert_eq!(query.schemas().unwrap(), ["", "_1 STRING NOT NULL, _2 INT", "value BIGINT NOT NULL"]);
}

#[test]
fn state_is_out_of_reach_in_init_and_close() {
    let invalid = "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_HANDLE_STATE";
    assert_eq!(code_of("read in init"), invalid);
    assert_eq!(code_of("write in close"), invalid);
}

#[test]
fn names_of_variables_are_checked() {
    assert_eq!(code_of("same name"), "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED");
    assert_eq!(code_of("bad name"), "STATE_STORE_CANNOT_CREATE_COLUMN_FAMILY_WITH_RESERVED_CHARS");
}

#[test]
fn errors_of_other_crates_become_user_errors_and_own_codes_are_kept() {
    assert_eq!(code_of("parse"), "USER_CODE");
    assert_eq!(code_of("own code"), "OVERDRAWN");
}

thread_local!(static INSTANCES: Cell<i64> = const { Cell::new(0) });

struct Fresh(i64);

impl StatefulProcessor for Fresh {
    type Key = i64;
    type Input = i64;
    type Output = i64;

    fn init(_: &mut Handle) -> Result<Self> {
        INSTANCES.set(INSTANCES.get() + 1);
        Ok(Self(INSTANCES.get()))
    }

    fn handle_input_rows(&mut self, _: &i64, _: Rows<'_, i64>, _: &Timers, out: &mut Out<i64>) -> Result<()> {
        out.emit(&self.0)
    }
}

#[test]
fn every_batch_has_an_instance_of_its_own() {
    let mut query = TestQuery::<Fresh>::new(TimeMode::None);
    for batch in 1..=2 {
        query.input(7, [1]);
        assert_eq!(query.run_batch().unwrap(), [batch]);
    }
}
