//! What is written can be read back as the same rows.

use std::sync::Arc;

use arrow_array::RecordBatch;
use proptest::prelude::*;

use super::*;
use crate::engine::source::Slice;
use crate::record::Schema;

const SCALARS: &str =
    "a BOOLEAN, b TINYINT, c BIGINT, d FLOAT, e DOUBLE, f DECIMAL(20,3), g STRING, h BINARY, i DATE, j TIMESTAMP";

fn read(format: &TextFormat, ddl: &str, text: &[u8]) -> Slice {
    let schema = Schema::parse(ddl).unwrap().to_arrow();
    let columns = Columns { all: Arc::clone(&schema), wanted: schema };
    let mut decoder = TextDecoder::new(format, columns, "test".into()).unwrap();
    let mut cutter = RowCutter::new(format.row_end());
    cutter.push(text);
    cutter.finish();
    if format.has_header() {
        decoder.read_header(cutter.next_row().unwrap()).unwrap();
    }
    let mut slice = Slice::default();
    let mut number = 0;
    while let Some(row) = cutter.next_row() {
        number += 1;
        decoder.read(row, number, &mut slice).unwrap();
    }
    decoder.flush(&mut slice).unwrap();
    slice
}

fn json(batch: &RecordBatch) -> String {
    let mut text = String::new();
    write_json_lines(batch, &mut text).unwrap();
    text
}

fn csv(batch: &RecordBatch, dialect: &CsvDialect) -> String {
    let mut text = String::new();
    write_csv_header(batch.schema_ref(), dialect, &mut text);
    write_csv(batch, dialect, &mut text).unwrap();
    text
}

#[test]
fn the_forms_of_json_lines() {
    let ddl =
        format!("{SCALARS}, k ARRAY<INT>, l MAP<STRING, INT>, m MAP<INT, STRING>, n STRUCT<x: INT, y: ARRAY<STRING>>");
    let lines = [
        r#"{"a":true,"b":-1,"c":9223372036854775807,"d":0.1,"e":1e300,"f":"12345678901234567.890","g":"é\"\\\n\u0001","h":"AP8=","i":"2013-01-31","j":"2013-01-31T10:00:00.500Z","k":[1,null],"l":{"b":1,"a":null},"m":[[2,"x"],[1,null]],"n":{"x":null,"y":["z"]}}"#,
        r#"{"a":null,"b":null,"c":null,"d":"NaN","e":"-Infinity","f":null,"g":null,"h":null,"i":null,"j":null,"k":null,"l":null,"m":null,"n":null}"#,
    ];
    let text = format!("{}\n{}\n", lines[0], lines[1]);
    let slice = read(&TextFormat::JsonLines, &ddl, text.as_bytes());
    assert_eq!(slice.rejected, []);
    assert_eq!(json(&slice.batches[0]), text);
}

#[test]
fn the_forms_of_csv() {
    let text = "a,b,c,d,e,f,g,h,i,j\n\
                true,-1,1,0.1,1e300,1.500,\"a,\"\"b\n\",AP8=,2013-01-31,2013-01-31T10:00:00Z\n\
                NA,NA,NA,NaN,-Infinity,NA,\"NA\",NA,NA,NA\n\
                NA,NA,NA,NA,NA,NA,\"\",\"\",NA,NA\n";
    let dialect = CsvDialect { null_value: Some("NA".to_owned()), ..CsvDialect::default() };
    let slice = read(&TextFormat::Csv(dialect.clone()), SCALARS, text.as_bytes());
    assert_eq!(slice.rejected, []);
    assert_eq!(csv(&slice.batches[0], &dialect), text);
}

#[test]
fn blank_rows_do_not_count_and_rows_keep_their_numbers() {
    let slice = read(&TextFormat::JsonLines, "x INT", b"\xef\xbb\xbf{\"x\":1}\r\n\n  \n{\"x\":\"\xff\"}\n{\"x\":2}");
    assert_eq!(slice.rows(), 2);
    assert_eq!(slice.rejected.len(), 1);
    assert_eq!((slice.rejected[0].row, slice.rejected[0].text.as_str()), (4, "{\"x\":\"\u{fffd}\"}"));
}

#[test]
fn blanks_and_marks_of_values_are_not_those_of_the_text() {
    let tabs = CsvDialect { delimiter: b'\t', ..CsvDialect::default() };
    for (dialect, ddl, text) in [
        (CsvDialect::default(), "s STRING NOT NULL", "s\n\"\"\n\" \"\n\"\u{feff}x\"\n"),
        (CsvDialect::default(), "`\u{feff}s` STRING NOT NULL", "\"\u{feff}s\"\nx\n"),
        (tabs, "s STRING, t STRING", "s\tt\n\t\n\" \"\t\" \"\n"),
    ] {
        let slice = read(&TextFormat::Csv(dialect.clone()), ddl, text.as_bytes());
        assert_eq!(slice.rejected, []);
        assert_eq!(slice.rows() as usize, text.lines().count() - 1, "{text}");
        assert_eq!(csv(&slice.batches[0], &dialect), text);
    }
}

#[test]
fn a_map_with_a_key_twice_is_rejected_in_its_place() {
    let lines = [
        r#"{"m":{"a":1,"b":2}}"#,
        r#"{"m":{"a":1,"a":2}}"#,
        r#"{"m":1}"#,
        r#"{"l":[[0.0,1],[-0,1]]}"#,
        r#"{"l":[[0.0,1],[1,1]],"s":[{"m":{"x":null}}]}"#,
        r#"{"s":[null,{"m":{"x":1,"y":1,"x":1}}]}"#,
    ];
    let ddl = "m MAP<STRING, INT>, l MAP<DOUBLE, INT>, s ARRAY<STRUCT<m: MAP<STRING, INT>>>";
    let slice = read(&TextFormat::JsonLines, ddl, lines.join("\n").as_bytes());
    assert_eq!(slice.rows(), 2);
    let rejected: Vec<_> = slice.rejected.iter().map(|row| (row.row, row.code.as_str(), row.text.as_str())).collect();
    let code = "DUPLICATE_MAP_KEY";
    assert_eq!(rejected, [(2, code, lines[1]), (3, "WRONG_TYPE", lines[2]), (4, code, lines[3]), (6, code, lines[5])]);
}

proptest! {
    #[test]
    fn any_row_survives_both_formats(
        a in prop::option::of(any::<bool>()), c in prop::option::of(any::<i64>()), d in prop::option::of(any::<f32>()),
        e in prop::option::of(any::<f64>()), f in prop::option::of(-10_i64.pow(18)..10_i64.pow(18)),
        g in prop::option::of("[ -~\n\r\"é\u{1}]{0,8}"), h in prop::option::of(prop::collection::vec(any::<u8>(), 0..5)),
        i in prop::option::of(any::<i32>()), j in prop::option::of(any::<i64>()),
    ) {
        use arrow_array::*;
        let schema = Schema::parse(SCALARS).unwrap().to_arrow();
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(BooleanArray::from(vec![a])),
            Arc::new(Int8Array::from(vec![1])),
            Arc::new(Int64Array::from(vec![c])),
            Arc::new(Float32Array::from(vec![d])),
            Arc::new(Float64Array::from(vec![e])),
            Arc::new(Decimal128Array::from(vec![f.map(i128::from)]).with_precision_and_scale(20, 3).unwrap()),
            Arc::new(StringArray::from(vec![g])),
            Arc::new(BinaryArray::from_iter([h])),
            Arc::new(Date32Array::from(vec![i])),
            Arc::new(TimestampMicrosecondArray::from(vec![j]).with_timezone("UTC")),
        ];
        let batch = RecordBatch::try_new(schema, arrays).unwrap();
        let dialect = CsvDialect::default();
        for (format, text) in [(TextFormat::JsonLines, json(&batch)), (TextFormat::Csv(dialect.clone()), csv(&batch, &dialect))] {
            let slice = read(&format, SCALARS, text.as_bytes());
            prop_assert_eq!(&slice.rejected, &vec![]);
            prop_assert_eq!(json(&slice.batches[0]), json(&batch), "{}", text);
        }
    }

    /// Whatever the bytes are, every row is either there or rejected, and columns stay even.
    #[test]
    fn every_row_is_read_or_rejected(
        lines in prop::collection::vec(
            prop_oneof![
                Just(r#"{"a":[{"x":1,"m":{"k":[1,null]}},null],"l":[[[1],{"y":"é"}]],"n":0.5}"#.as_bytes().to_vec()),
                Just(r#"{"l":[],"a":null,"other":{"deep":[[[]]]},"n":"NaN"}"#.as_bytes().to_vec()),
                prop::collection::vec(any::<u8>(), 0..12),
            ],
            1..6,
        ),
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(&b"{}[]\":,1-\\nx \xff"[..])), 0..4),
    ) {
        let mut text = lines.join(&b'\n');
        for (at, byte) in changes {
            if !text.is_empty() {
                let at = at.index(text.len());
                text[at] = byte;
            }
        }
        let ddl = "a ARRAY<STRUCT<x: INT NOT NULL, m: MAP<STRING, ARRAY<INT>>>>, \
                   l MAP<ARRAY<INT>, STRUCT<y: STRING>>, n DOUBLE";
        let rows = |text: &[u8]| {
            let rows = text.split(|byte| *byte == b'\n');
            rows.filter(|row| !row.iter().all(u8::is_ascii_whitespace)).count() as u64
        };
        let slice = read(&TextFormat::JsonLines, ddl, &text);
        prop_assert_eq!(slice.rows() + slice.rejected.len() as u64, rows(&text));
        for batch in &slice.batches {
            let again = read(&TextFormat::JsonLines, ddl, json(batch).as_bytes());
            prop_assert_eq!(json(&again.batches[0]), json(batch));
        }
        let dialect = CsvDialect { header: CsvHeader::None, ..CsvDialect::default() };
        let slice = read(&TextFormat::Csv(dialect), "a STRING, n INT", &text);
        prop_assert!(slice.rows() + slice.rejected.len() as u64 <= rows(&text));
    }
}
