//! JSON Lines into Arrow batches: one object per line, members found by name, driven by the schema.
//!
//! Members that the schema does not have are skipped; a member that is missing is NULL. Names count without regard to
//! case where no member has the exact one, as everywhere in schemas. A column given twice is an error, as is a string
//! where a number belongs. A MAP with STRING keys is an object; with other keys it is an array of
//! `[key, value]`. A DECIMAL is a number or a string; every digit counts, so nothing is rounded.

use arrow_schema::{Fields, SchemaRef};

use super::column::{ArrayColumn, Cell, Column, StructColumn};
use super::json_scan::{Kind, Scanner};
use super::scalar::{excerpt, expected, push_text};
use super::table::{RowFault, Table};

/// Reads lines into the columns of a table.
#[derive(Debug, Default)]
pub(crate) struct JsonReader {
    layout: MemberLayout,
}

impl JsonReader {
    /// Appends one line, without its line end.
    ///
    /// # Errors
    /// Why the row was rejected.
    pub(crate) fn read(&mut self, line: &[u8], table: &mut Table) -> Result<(), RowFault> {
        let layout = &mut self.layout;
        table.push_row(|schema, columns, row| {
            let line = std::str::from_utf8(line)
                .map_err(|error| RowFault::malformed(format!("not UTF-8 at byte {}", error.valid_up_to() + 1)))?;
            let mut scanner = Scanner::new(line);
            if scanner.kind()? != Kind::Object {
                return Err(scanner.unexpected("an object"));
            }
            layout.read_members(&mut scanner, schema, columns, row)?;
            scanner.end()
        })
    }
}

/// Which member stands at which place of the last line. Lines of one source look alike, so nearly always a name is found
/// by one comparison with the one at its place in the line before.
#[derive(Debug, Default)]
struct MemberLayout {
    places: Vec<(String, Option<usize>)>,
}

/// Places that are remembered; members behind are looked up in the schema.
const PLACES_MAX: usize = 2_048;

impl MemberLayout {
    fn read_members(
        &mut self,
        scanner: &mut Scanner<'_>,
        schema: &SchemaRef,
        columns: &mut [Column],
        row: usize,
    ) -> Result<(), RowFault> {
        let mut place = 0;
        let mut more = scanner.open(b'{', b'}')?;
        while more {
            let name = scanner.name()?;
            match self.find(place, &name, schema.fields()) {
                None => scanner.skip()?,
                Some(index) => read_member(scanner, schema.fields(), columns, index, row)?,
            }
            place += 1;
            more = scanner.more(b'}')?;
        }
        Ok(())
    }

    fn find(&mut self, place: usize, name: &str, fields: &Fields) -> Option<usize> {
        if let Some((known, index)) = self.places.get(place)
            && known == name
        {
            return *index;
        }
        let index = index_of(fields, name);
        match self.places.get_mut(place) {
            Some(known) => *known = (name.to_owned(), index),
            None if place < PLACES_MAX => self.places.push((name.to_owned(), index)),
            None => {}
        }
        index
    }
}

/// The field of that name, else the one that differs in case only.
fn index_of(fields: &Fields, name: &str) -> Option<usize> {
    let exact = fields.iter().position(|field| field.name() == name);
    exact.or_else(|| {
        let name = name.to_lowercase();
        fields.iter().position(|field| field.name().to_lowercase() == name)
    })
}

/// Reads the value of one member into its column, which holds `row` cells if the member is new.
fn read_member(
    scanner: &mut Scanner<'_>,
    fields: &Fields,
    columns: &mut [Column],
    index: usize,
    row: usize,
) -> Result<(), RowFault> {
    let (Some(column), Some(field)) = (columns.get_mut(index), fields.get(index)) else {
        return scanner.skip();
    };
    if column.len() > row {
        return Err(RowFault::malformed(format!("column `{}` is given twice", field.name())));
    }
    if scanner.kind()? != Kind::Null {
        return read_value(scanner, column).map_err(|fault| fault.in_column(field.name()));
    }
    scanner.null()?;
    if field.is_nullable() {
        column.push_null();
        Ok(())
    } else {
        column.push_placeholder();
        Err(RowFault::null(field.name()))
    }
}

/// Reads a value that is not null. Appends exactly one cell, also when it fails.
fn read_value(scanner: &mut Scanner<'_>, column: &mut Column) -> Result<(), RowFault> {
    match column {
        Column::Array(array) => {
            let result = read_elements(scanner, array);
            array.close(Cell::Value);
            result
        }
        Column::Map(map) => {
            let result = read_entries(scanner, map);
            map.close(Cell::Value);
            result
        }
        Column::Struct(rows) => read_struct(scanner, rows),
        scalar => {
            let result = read_scalar(scanner, scalar);
            match result {
                Ok(Read::Pushed(result)) => result,
                Ok(Read::Other(found)) => {
                    let fault = RowFault::wrong_type(format!("expected {}, found {found}", expected(scalar)));
                    scalar.push_placeholder();
                    Err(fault)
                }
                Err(fault) => {
                    scalar.push_placeholder();
                    Err(fault)
                }
            }
        }
    }
}

/// What became of a single value.
enum Read {
    /// A cell was appended: the value, or a placeholder and the fault.
    Pushed(Result<(), RowFault>),
    /// No cell was appended, since the value is of another kind.
    Other(String),
}

fn read_scalar(scanner: &mut Scanner<'_>, column: &mut Column) -> Result<Read, RowFault> {
    Ok(match (scanner.kind()?, column) {
        (Kind::Boolean, Column::Boolean(values)) => {
            values.append_value(scanner.boolean()?);
            Read::Pushed(Ok(()))
        }
        (
            Kind::Number,
            column @ (Column::TinyInt(_)
            | Column::SmallInt(_)
            | Column::Int(_)
            | Column::BigInt(_)
            | Column::Float(_)
            | Column::Double(_)
            | Column::Decimal { .. }),
        ) => Read::Pushed(push_text(column, scanner.number()?)),
        (
            Kind::String,
            column @ (Column::String(_)
            | Column::Binary(_)
            | Column::Date(_)
            | Column::Timestamp(_)
            | Column::Decimal { .. }),
        ) => Read::Pushed(push_text(column, &scanner.string()?)),
        (Kind::String, column @ (Column::Float(_) | Column::Double(_))) => {
            let string = scanner.string()?;
            match &*string {
                "NaN" | "Infinity" | "-Infinity" => Read::Pushed(push_text(column, &string)),
                other => Read::Other(format!("the string `{}`", excerpt(other))),
            }
        }
        (Kind::String, _) => Read::Other(format!("the string `{}`", excerpt(&scanner.string()?))),
        (Kind::Number, _) => Read::Other(format!("the number {}", excerpt(scanner.number()?))),
        (Kind::Boolean, _) => Read::Other(scanner.boolean()?.to_string()),
        (Kind::Array, _) => Read::Other("an array".to_owned()),
        (Kind::Object, _) => Read::Other("an object".to_owned()),
        (Kind::Null, _) => Read::Other("null".to_owned()),
    })
}

/// Reads the elements of an array into the open cell.
fn read_elements(scanner: &mut Scanner<'_>, array: &mut ArrayColumn) -> Result<(), RowFault> {
    if scanner.kind()? != Kind::Array {
        return Err(other_than("an ARRAY", scanner));
    }
    let mut more = scanner.open(b'[', b']')?;
    while more {
        if scanner.kind()? == Kind::Null {
            scanner.null()?;
            array.elements.push_null();
        } else {
            read_value(scanner, &mut array.elements)?;
        }
        more = scanner.more(b']')?;
    }
    Ok(())
}

/// Reads the entries of a map into the open cell. A key given twice is found once the batch is whole.
fn read_entries(scanner: &mut Scanner<'_>, map: &mut ArrayColumn) -> Result<(), RowFault> {
    let Column::Struct(entries) = &mut *map.elements else {
        return scanner.skip();
    };
    if !matches!(entries.columns.first(), Some(Column::String(_))) {
        return read_listed_entries(scanner, entries);
    }
    if scanner.kind()? != Kind::Object {
        return Err(other_than("a MAP, which is an object", scanner));
    }
    let mut more = scanner.open(b'{', b'}')?;
    while more {
        let name = scanner.name()?;
        let result = read_named_value(scanner, entries, &name);
        entries.close(Cell::Value);
        result?;
        more = scanner.more(b'}')?;
    }
    Ok(())
}

fn read_named_value(scanner: &mut Scanner<'_>, entries: &mut StructColumn, name: &str) -> Result<(), RowFault> {
    let [Column::String(keys), values] = entries.columns.as_mut_slice() else {
        return scanner.skip();
    };
    keys.append_value(name);
    if scanner.kind()? == Kind::Null {
        values.push_null();
        return scanner.null();
    }
    read_value(scanner, values)
}

/// Reads `[[key, value], ...]`.
fn read_listed_entries(scanner: &mut Scanner<'_>, entries: &mut StructColumn) -> Result<(), RowFault> {
    if scanner.kind()? != Kind::Array {
        return Err(other_than("a MAP, which is an array of [key, value]", scanner));
    }
    let mut more = scanner.open(b'[', b']')?;
    while more {
        let result = read_pair(scanner, entries);
        entries.close(Cell::Value);
        result?;
        more = scanner.more(b']')?;
    }
    Ok(())
}

fn read_pair(scanner: &mut Scanner<'_>, entries: &mut StructColumn) -> Result<(), RowFault> {
    if scanner.kind()? != Kind::Array {
        return Err(other_than("[key, value] in a MAP", scanner));
    }
    let row = entries.len();
    let mut more = scanner.open(b'[', b']')?;
    for index in 0..2 {
        if !more {
            return Err(scanner.unexpected("[key, value] in a MAP"));
        }
        read_member(scanner, &entries.fields, &mut entries.columns, index, row)?;
        more = scanner.more(b']')?;
    }
    if more { Err(scanner.unexpected("the end of [key, value] in a MAP")) } else { Ok(()) }
}

/// Reads an object into a struct column. Appends exactly one cell, also when it fails.
fn read_struct(scanner: &mut Scanner<'_>, rows: &mut StructColumn) -> Result<(), RowFault> {
    let row = rows.len();
    let result = read_struct_members(scanner, rows, row);
    let result = result.and_then(|()| {
        let missing =
            rows.columns.iter().zip(&rows.fields).find(|(column, field)| column.len() == row && !field.is_nullable());
        missing.map_or(Ok(()), |(_, field)| Err(RowFault::null(field.name())))
    });
    rows.close(Cell::Value);
    result
}

fn read_struct_members(scanner: &mut Scanner<'_>, rows: &mut StructColumn, row: usize) -> Result<(), RowFault> {
    if scanner.kind()? != Kind::Object {
        return Err(other_than("a STRUCT, which is an object", scanner));
    }
    let mut more = scanner.open(b'{', b'}')?;
    while more {
        let name = scanner.name()?;
        match index_of(&rows.fields, &name) {
            None => scanner.skip()?,
            Some(index) => read_member(scanner, &rows.fields, &mut rows.columns, index, row)?,
        }
        more = scanner.more(b'}')?;
    }
    Ok(())
}

fn other_than(expected: &str, scanner: &mut Scanner<'_>) -> RowFault {
    let found = match scanner.kind() {
        Ok(Kind::Null) => "null",
        Ok(Kind::Boolean) => "a boolean",
        Ok(Kind::Number) => "a number",
        Ok(Kind::String) => "a string",
        Ok(Kind::Array) => "an array",
        Ok(Kind::Object) => "an object",
        Err(fault) => return fault,
    };
    RowFault::wrong_type(format!("expected {expected}, found {found}"))
}

#[cfg(test)]
mod tests {
    use arrow_array::RecordBatch;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    use super::super::table::{MALFORMED_ROW, NULL_IN_NOT_NULL_COLUMN, WRONG_TYPE};
    use super::*;
    use crate::record::Schema;

    fn read(ddl: &str, lines: &[&str]) -> (Option<RecordBatch>, Vec<(usize, RowFault)>) {
        let mut table = Table::new(Schema::parse(ddl).unwrap().to_arrow()).unwrap();
        let mut reader = JsonReader::default();
        let faults = lines
            .iter()
            .enumerate()
            .filter_map(|(row, line)| reader.read(line.as_bytes(), &mut table).err().map(|fault| (row, fault)))
            .collect();
        (table.take().unwrap(), faults)
    }

    fn code(ddl: &str, line: &str) -> Option<&'static str> {
        let (batch, faults) = read(ddl, &[line]);
        assert_eq!(batch.is_none(), !faults.is_empty());
        faults.first().map(|(_, fault)| fault.code)
    }

    #[test]
    fn bad_rows_are_left_out_and_good_ones_keep_their_order() {
        let (batch, faults) = read(
            "k STRING NOT NULL, n BIGINT",
            &[r#"{"k":"a","n":1}"#, r#"{"k":"b","n":"2"}"#, r#"{"n":3}"#, "{", r#"{"n":null,"k":"c"}"#, r#"{"K":"d"}"#],
        );
        let batch = batch.unwrap();
        let keys: Vec<_> = batch.column(0).as_string::<i32>().iter().collect();
        assert_eq!(keys, [Some("a"), Some("c"), Some("d")]);
        let numbers: Vec<_> = batch.column(1).as_primitive::<Int64Type>().iter().collect();
        assert_eq!(numbers, [Some(1), None, None]);
        let faults: Vec<_> = faults.iter().map(|(row, fault)| (*row, fault.code)).collect();
        assert_eq!(faults, [(1, WRONG_TYPE), (2, NULL_IN_NOT_NULL_COLUMN), (3, MALFORMED_ROW)]);
    }

    #[test]
    fn a_reason_names_the_column_and_the_value() {
        let (_, faults) = read("n BIGINT", &[r#"{"n":"x"}"#, r#"{"n":9223372036854775808}"#, r#"{"n":1} x"#]);
        let reasons: Vec<_> = faults.into_iter().map(|(_, fault)| fault.reason).collect();
        assert_eq!(
            reasons,
            [
                "column `n`: expected a BIGINT (a whole number of 64 bits), found the string `x`",
                "column `n`: expected a BIGINT (a whole number of 64 bits), found `9223372036854775808`",
                "expected the end of the line at character 9, found `x`",
            ]
        );
    }

    #[test]
    fn types_are_strict() {
        for (ddl, good, bad) in [
            ("x BOOLEAN", vec!["true", "null"], vec!["1", "\"true\""]),
            ("x TINYINT", vec!["-128"], vec!["128", "1.0", "1e1"]),
            ("x INT", vec!["2147483647"], vec!["2147483648", "true"]),
            ("x FLOAT", vec!["1", "1.5", "\"NaN\""], vec!["1e39", "\"1\""]),
            ("x DECIMAL(4,2)", vec!["12.3", "12.340", "\"1.50\""], vec!["123", "1.234", "\"x\""]),
            ("x STRING", vec!["\"\"", "\"1\""], vec!["1", "[]", "{}"]),
            ("x BINARY", vec!["\"Zg==\""], vec!["\"?\"", "1"]),
            ("x DATE", vec!["\"2013-01-31\""], vec!["\"2013-02-31\"", "15000"]),
            ("x TIMESTAMP", vec!["\"2013-01-31T00:00:00Z\"", "\"2013-01-31 00:00:00\""], vec!["0", "\"2013-01-31\""]),
            ("x ARRAY<INT>", vec!["[]", "[1,null]"], vec!["1", "[\"1\"]", "{}"]),
            ("x MAP<STRING, INT>", vec!["{}", "{\"a\":1,\"b\":null}"], vec!["[]", "{\"a\":\"1\"}"]),
            ("x MAP<INT, INT>", vec!["[[1,2],[3,null]]"], vec!["{}", "[{}]", "[[null,1]]"]),
            ("x STRUCT<a: INT NOT NULL>", vec!["{\"a\":1}", "{\"a\":1,\"b\":[{}]}"], vec!["{}", "[]", "{\"a\":\"1\"}"]),
        ] {
            for value in good {
                assert_eq!(code(ddl, &format!("{{\"x\":{value}}}")), None, "{ddl} {value}");
            }
            for value in bad {
                let code = code(ddl, &format!("{{\"x\":{value}}}"));
                assert!(matches!(code, Some(WRONG_TYPE | NULL_IN_NOT_NULL_COLUMN)), "{ddl} {value}: {code:?}");
            }
        }
    }

    #[test]
    fn a_line_is_one_object_whose_names_are_unique() {
        for line in [
            "",
            "1",
            "[]",
            "{}{}",
            "{\"x\":1,\"x\":1}",
            "{\"x\":1,\"X\":1}",
            "{\"x\":1,}",
            "{\"x\":}",
            "{\"p\":[[1]]}",
            "{\"p\":[[1,2,3]]}",
        ] {
            assert_eq!(code("x INT, m MAP<STRING, INT>, p MAP<INT, INT>", line), Some(MALFORMED_ROW), "{line}");
        }
        let mut table = Table::new(Schema::parse("x STRING").unwrap().to_arrow()).unwrap();
        let fault = JsonReader::default().read(b"{\"x\":\"\xff\"}", &mut table).unwrap_err();
        assert_eq!(fault.reason, "not UTF-8 at byte 7");
    }

    #[test]
    fn a_fault_deep_within_leaves_the_columns_even() {
        let ddl = "id INT, x ARRAY<STRUCT<a: INT NOT NULL, b: MAP<STRING, ARRAY<INT>>>>";
        let (batch, faults) = read(
            ddl,
            &[
                r#"{"x":[{"a":1,"b":{"k":[1,2]}}],"id":1}"#,
                r#"{"x":[{"a":1,"b":{"k":[1,"2"]}}],"id":2}"#,
                r#"{"x":[{"b":{"k":[1]},"a":3},{"b":{"#,
                r#"{"x":[{"a":1},{}],"id":4}"#,
                r#"{"x":[null,{"a":1}],"id":5}"#,
            ],
        );
        assert_eq!(faults.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [1, 2, 3]);
        let batch = batch.unwrap();
        let ids: Vec<_> = batch.column(0).as_primitive::<arrow_array::types::Int32Type>().iter().flatten().collect();
        assert_eq!(ids, [1, 5]);
        assert_eq!(batch.column(1).as_list::<i32>().value(1).len(), 2);
    }
}
