//! What is checked at the door.

use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};

use super::*;

fn json(body: &str) -> Result<Rows, ParseError> {
    parse(BodyFormat::JsonLines, body.as_bytes(), &schema(), &BodyLimits::default())
}

fn arrow(body: &[u8]) -> Result<Rows, ParseError> {
    parse(BodyFormat::ArrowStream, body, &schema(), &BodyLimits::default())
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn users(count: usize) -> ArrayRef {
    Arc::new(StringArray::from(vec!["a"; count]))
}

fn numbers(count: i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(0..count))
}

fn stream(batches: &[RecordBatch], options: IpcWriteOptions) -> Vec<u8> {
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn plain(batches: &[RecordBatch]) -> Vec<u8> {
    stream(batches, IpcWriteOptions::default())
}

#[test]
fn one_bad_row_refuses_the_request_with_its_line_and_code() {
    let good = r#"{"user":"a","n":1}"#;
    for (bad, code) in
        [("{", "MALFORMED_ROW"), (r#"{"user":"a","n":"1"}"#, "WRONG_TYPE"), (r#"{"n":1}"#, "NULL_IN_NOT_NULL_COLUMN")]
    {
        let error = json(&format!("{good}\n\n{bad}\n{good}\n{bad}\n")).unwrap_err();

        assert_eq!(error.code(), "INGEST_ROW_INVALID");
        assert!(matches!(&error, ParseError::Row { row: 3, row_code, .. } if row_code == code), "{error:?}");
    }
}

#[test]
fn equal_rows_are_equal_bytes_however_they_were_sent() {
    let sent = json("{\"user\":\"a\",\"n\":0}\n{\"n\":1,\"user\":\"a\",\"more\":[]}").unwrap();

    let columns = vec![("more", numbers(2)), ("n", numbers(2)), ("user", users(2))];
    assert_eq!(arrow(&plain(&[batch(columns)])), Ok(sent));
}

#[test]
fn a_bad_row_of_a_later_arrow_batch_is_numbered_in_the_request() {
    let n: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2)]));
    let user: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    let nullable = batch(vec![("n", Arc::clone(&n)), ("user", user)]);
    let good = RecordBatch::try_new(nullable.schema(), vec![n, users(2)]).unwrap();

    let error = arrow(&plain(&[good, nullable])).unwrap_err();

    assert!(
        matches!(&error, ParseError::Row { row: 4, row_code, .. } if row_code == "NULL_IN_NOT_NULL_COLUMN"),
        "{error:?}"
    );
}

#[test]
fn columns_that_do_not_fit_are_told_from_bytes_that_are_no_stream() {
    assert_eq!(arrow(&plain(&[batch(vec![("n", numbers(1))])])).unwrap_err().code(), "INGEST_SCHEMA_MISMATCH");
    let wide = batch(vec![("n", users(1)), ("user", users(1))]);
    assert_eq!(arrow(&plain(&[wide])).unwrap_err().code(), "INGEST_SCHEMA_MISMATCH");
    for body in [&b""[..], b"{}", &[0xff; 100]] {
        assert_eq!(arrow(body).unwrap_err().code(), "INGEST_BODY_INVALID", "{body:?}");
    }
}

#[test]
fn what_could_become_much_larger_in_memory_is_refused() {
    let good = batch(vec![("n", numbers(1000)), ("user", users(1000))]);
    for compression in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let options = IpcWriteOptions::default().try_with_compression(Some(compression)).unwrap();
        let error = arrow(&stream(std::slice::from_ref(&good), options)).unwrap_err();
        assert!(error.to_string().contains("without compression"), "{error}");
    }
    let keys = Int32Array::from(vec![0; 1000]);
    let dictionary: ArrayRef = Arc::new(DictionaryArray::new(keys, users(1)));
    let error = arrow(&plain(&[batch(vec![("n", numbers(1000)), ("user", dictionary)])])).unwrap_err();
    assert!(error.to_string().contains("plain columns"), "{error}");
}

#[test]
fn a_stream_that_was_cut_or_changed_anywhere_is_refused_or_read_but_never_more() {
    let body = plain(&[batch(vec![("n", numbers(3)), ("user", users(3))])]);
    let end_mark = 8;
    for length in 0..body.len() - end_mark {
        let read = arrow(&body[..length]);
        assert!(read.as_ref().is_err() || read.as_ref().is_ok_and(|rows| rows.count() == 0), "{length}: {read:?}");
    }
    for at in 0..body.len() {
        for bit in [1, 0x80] {
            let mut changed = body.clone();
            changed[at] ^= bit;
            let read = arrow(&changed);
            assert!(read.as_ref().is_err() || read.as_ref().is_ok_and(|rows| rows.count() <= 3), "{at}: {read:?}");
        }
    }
}

#[test]
fn a_request_has_bounds_in_rows_and_bytes() {
    let limits = BodyLimits { rows_max: 2, bytes_max: 100 };
    let parse = |format, body: &[u8]| parse(format, body, &schema(), &limits).map(|rows| rows.count());
    let row = "{\"user\":\"a\"}\n";

    assert_eq!(parse(BodyFormat::JsonLines, row.repeat(2).as_bytes()), Ok(2));
    assert_eq!(parse(BodyFormat::JsonLines, row.repeat(3).as_bytes()), Err(ParseError::TooManyRows { rows_max: 2 }));
    let long = format!("{{\"user\":\"{}\"}}", "a".repeat(100));
    let too_many = parse(BodyFormat::JsonLines, long.as_bytes()).unwrap_err();
    assert!(matches!(too_many, ParseError::TooManyBytes { bytes_max: 100, .. }), "{too_many}");
}

#[test]
fn rows_that_grow_in_the_log_are_bounded_too() {
    let columns: Vec<_> = (0..1000).map(|number| format!("c{number} BIGINT")).collect();
    let wide = Schema::parse(&columns.join(", ")).unwrap();
    let limits = BodyLimits { rows_max: 10_000, bytes_max: 10_000 };

    let error = parse(BodyFormat::JsonLines, "{}\n".repeat(3_000).as_bytes(), &wide, &limits).unwrap_err();

    assert!(matches!(error, ParseError::TooManyBytes { bytes_max: 40_000, .. }), "{error}");
}
