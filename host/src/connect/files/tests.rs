//! Files as a source: order, limits, restarts, files that change, vanish or end early.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow_array::builder::{Int32Builder, MapBuilder, StringBuilder};
use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;

use super::super::contract::{Content, Kept, NO_LIMITS, check_source};
use super::super::text::{CsvDialect, CsvHeader, TextFormat};
use super::*;

const JSONL: FileFormat = FileFormat::Text(TextFormat::JsonLines);

fn csv_format() -> FileFormat {
    FileFormat::Text(TextFormat::Csv(CsvDialect::default()))
}

fn schema(ddl: &str) -> Schema {
    Schema::parse(ddl).unwrap()
}

fn open(path: &Path, format: &FileFormat, ddl: &str) -> FileSource {
    FileSource::open(path, format.clone(), Some(schema(ddl))).unwrap()
}

/// Writes a file that was modified that many seconds after the epoch.
fn write(path: &Path, bytes: impl AsRef<[u8]>, modified_s: u64) {
    fs::write(path, bytes).unwrap();
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(modified_s);
    File::options().append(true).open(path).unwrap().set_modified(modified).unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn parquet(batches: &[RecordBatch]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(3)).build();
    let mut writer = ArrowWriter::try_new(&mut bytes, batches[0].schema(), Some(properties)).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.close().unwrap();
    bytes
}

/// Rows with a string and a number each.
fn numbers(numbers: std::ops::Range<i32>) -> RecordBatch {
    let strings: ArrayRef = Arc::new(StringArray::from_iter_values(numbers.clone().map(|number| format!("s{number}"))));
    let all: ArrayRef = Arc::new(Int32Array::from_iter(numbers.map(|number| (number % 5 != 4).then_some(number))));
    RecordBatch::try_from_iter([("S", strings), ("n", all)]).unwrap()
}

fn one_row(limits: ReadLimits) -> ReadLimits {
    ReadLimits { rows_max: 1, ..limits }
}

/// Everything that the source gives now.
fn drain(source: &mut FileSource, kept: &mut Kept) -> Result<Vec<String>, &'static str> {
    let mut rows = Vec::new();
    while let Some(slice) = source.next(&NO_LIMITS).map_err(|error| error.code)? {
        kept.commit(&slice);
        rows.extend(Content::of(&slice).rows);
    }
    Ok(rows)
}

#[test]
fn a_directory_of_json_lines_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write(&at("z-first.jsonl"), "{\"n\":1,\"s\":\"é\"}\r\n\n{\"n\":\"x\"}\n{\"n\":2}\n", 10);
    write(&at("b.jsonl.gz"), [gzip(b"{\"n\":3}\n{\"n\""), gzip(b":4}\n{\"n\":5,")].concat(), 20);
    write(&at("a.jsonl.zst"), zstd::encode_all(&b"{\"n\":6}\n\n"[..], 1).unwrap(), 30);
    write(&at("empty.jsonl"), "", 30);
    write(&at("last.jsonl"), "{\"n\":7}", 40);
    write(&at("_unfinished"), "?", 1);
    write(&at(".hidden"), "?", 1);
    fs::create_dir(at("folder")).unwrap();
    write(&at("folder/x.jsonl"), "?", 1);

    let content = check_source(|| Box::new(open(folder.path(), &JSONL, "n INT, s STRING")));
    let numbers: Vec<_> = content.rows.iter().map(|row| row.split([':', ',']).nth(1).unwrap()).collect();
    assert_eq!(numbers, ["1", "2", "3", "4", "6", "7"]);
    let rejected: Vec<_> =
        content.rejected.iter().map(|row| (row.origin.as_str(), row.row, row.code.as_str())).collect();
    assert_eq!(rejected, [("z-first.jsonl", 3, "WRONG_TYPE"), ("b.jsonl.gz", 3, "MALFORMED_ROW")]);
}

#[test]
fn a_csv_file_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let text = "\u{feff}s,other,N\n\"a\nb\",x,1\n,x,2\n\nx,x\n\"\",x,\n\"c\",x,3";
    for (name, bytes) in [("a.csv", text.as_bytes().to_vec()), ("a.csv.gz", gzip(text.as_bytes()))] {
        let path = folder.path().join(name);
        write(&path, bytes, 1);
        let content = check_source(|| Box::new(open(&path, &csv_format(), "n INT NOT NULL, s STRING")));
        assert_eq!(content.rows, ["{\"n\":1,\"s\":\"a\\nb\"}", "{\"n\":2,\"s\":null}", "{\"n\":3,\"s\":\"c\"}"]);
        let rejected: Vec<_> =
            content.rejected.iter().map(|row| (row.row, row.code.as_str(), row.text.as_str())).collect();
        assert_eq!(rejected, [(4, "MALFORMED_ROW", "x,x"), (5, "NULL_IN_NOT_NULL_COLUMN", "\"\",x,")]);
    }
}

#[test]
fn parquet_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("b.parquet"), parquet(&[numbers(0..8)]), 1);
    write(&folder.path().join("a.parquet"), parquet(&[numbers(8..8)]), 2);
    write(&folder.path().join("c.parquet"), parquet(&[numbers(8..12)]), 3);
    // A wider type, in another order, and NOT NULL where the file has a NULL.
    let content = check_source(|| {
        let mut source = open(folder.path(), &FileFormat::Parquet, "n BIGINT, s STRING");
        source.project(&schema("n BIGINT NOT NULL, s STRING")).unwrap();
        Box::new(source)
    });
    assert_eq!(content.rows.len(), 10);
    assert_eq!(content.rows[4], "{\"n\":5,\"s\":\"s5\"}");
    let rejected: Vec<_> =
        content.rejected.iter().map(|row| (row.origin.as_str(), row.row, row.text.as_str())).collect();
    assert_eq!(rejected, [("b.parquet", 5, "S=s4, n="), ("c.parquet", 2, "S=s9, n=")]);
    assert_eq!(content.rejected[0].code, "NULL_IN_NOT_NULL_COLUMN");
}

#[test]
fn parquet_maps_with_a_key_twice_are_rejected_in_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for keys in [["a", "b"], ["a", "a"], ["b", "a"], ["c", "c"]] {
        keys.iter().for_each(|key| maps.keys().append_value(key));
        maps.values().append_slice(&[1, 2]);
        maps.append(true).unwrap();
    }
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(1), Some(2), Some(3)]));
    let batch = RecordBatch::try_from_iter([("m", Arc::new(maps.finish()) as ArrayRef), ("n", numbers)]).unwrap();
    write(&folder.path().join("a.parquet"), parquet(&[batch]), 1);
    let content = check_source(|| {
        let mut source = open(folder.path(), &FileFormat::Parquet, "n INT, m MAP<STRING, INT>");
        source.project(&schema("n INT NOT NULL, m MAP<STRING, INT>")).unwrap();
        Box::new(source)
    });
    assert_eq!(content.rows, ["{\"n\":2,\"m\":{\"b\":1,\"a\":2}}"]);
    let rejected: Vec<_> = content.rejected.iter().map(|row| (row.row, row.code.as_str())).collect();
    assert_eq!(rejected, [(1, "NULL_IN_NOT_NULL_COLUMN"), (2, "DUPLICATE_MAP_KEY"), (4, "DUPLICATE_MAP_KEY")]);
}

#[test]
fn only_wanted_columns_are_read_even_none() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a.parquet"), parquet(&[numbers(0..4)]), 1);
    write(&folder.path().join("a.jsonl"), "{\"n\":1,\"S\":1}\n{\"n\":2,\"s\":[]}\n", 1);
    write(&folder.path().join("a.csv"), "n,s\n1,x\n2,y\n", 1);
    for (name, format, rows) in
        [("a.parquet", FileFormat::Parquet, 4), ("a.jsonl", JSONL, 2), ("a.csv", csv_format(), 2)]
    {
        for (wanted, first) in [("", "{}"), ("n INT", if rows == 4 { "{\"n\":0}" } else { "{\"n\":1}" })] {
            let mut source = open(&folder.path().join(name), &format, "n INT, s STRING");
            source.project(&schema(wanted)).unwrap();
            let content = Content::of(&source.next(&NO_LIMITS).unwrap().unwrap());
            assert_eq!(
                (content.rows.len(), content.rows[0].as_str(), content.rejected.len()),
                (rows, first, 0),
                "{name}"
            );
        }
    }
    let mut source = open(&folder.path().join("a.csv"), &csv_format(), "n INT, s STRING");
    for wanted in ["x INT", "n BIGINT"] {
        assert_eq!(source.project(&schema(wanted)).unwrap_err().code, "SOURCE_SCHEMA_MISMATCH");
    }
}

#[test]
fn files_that_come_later_are_read_later_however_old() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("b"), "{\"n\":1}\n", 20);
    let (mut source, mut kept) = (open(folder.path(), &JSONL, "n INT"), Kept::default());
    assert_eq!(drain(&mut source, &mut kept).unwrap(), ["{\"n\":1}"]);
    assert_eq!(source.outlook(), Outlook::Growing);
    write(&folder.path().join("a"), "{\"n\":2}\n", 10);
    assert_eq!(drain(&mut source, &mut kept).unwrap(), ["{\"n\":2}"]);
    assert_eq!(drain(&mut source, &mut kept).unwrap(), [""; 0]);
    // Also after a restart, and without the files that are finished.
    fs::remove_file(folder.path().join("b")).unwrap();
    write(&folder.path().join("a"), "{\"n\":9}\n{\"n\":9}\n", 50);
    write(&folder.path().join("c"), "{\"n\":3}\n", 5);
    let mut source = open(folder.path(), &JSONL, "n INT");
    kept.restore(&mut source).unwrap();
    assert_eq!(drain(&mut source, &mut kept).unwrap(), ["{\"n\":3}"]);
}

#[test]
fn a_fixed_source_reads_what_was_there_at_its_first_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (name, modified_s) in [("b", 20), ("c", 30), ("empty", 40)] {
        let row = format!("{{\"n\":{modified_s}}}\n");
        write(&at(name), if name == "empty" { "" } else { &row }, modified_s);
    }
    let open = || open(folder.path(), &JSONL, "n INT").fixed();
    check_source(|| Box::new(open()));
    let (mut source, mut kept) = (open(), Kept::default());
    assert_eq!(source.outlook(), Outlook::Open);

    kept.commit(&source.next(&one_row(NO_LIMITS)).unwrap().unwrap());
    write(&at("a"), "{\"n\":1}\n", 1);
    let mut restarted = open();
    kept.restore(&mut restarted).unwrap();
    write(&at("d"), "{\"n\":9}\n", 90);

    for mut source in [source, restarted] {
        assert_eq!(source.outlook(), Outlook::Open);
        assert_eq!(drain(&mut source, &mut kept).unwrap(), ["{\"n\":30}"]);
        assert_eq!(source.outlook(), Outlook::Ended);
    }
    let mut ended = open();
    kept.restore(&mut ended).unwrap();
    assert_eq!((drain(&mut ended, &mut kept).unwrap().len(), ended.outlook()), (0, Outlook::Ended));
}

#[test]
fn a_fixed_source_misses_a_listed_file_that_has_gone_or_changed() {
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    let change = |path: &Path| write(path, "{\"n\":3}\n", 2);
    for (change, code) in [(&remove as &dyn Fn(&Path), "SOURCE_FILE_MISSING"), (&change, "SOURCE_FILE_CHANGED")] {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("a"), "{\"n\":1}\n", 1);
        write(&folder.path().join("b"), "{\"n\":2}\n", 2);
        let (mut source, mut kept) = (open(folder.path(), &JSONL, "n INT").fixed(), Kept::default());
        kept.commit(&source.next(&one_row(NO_LIMITS)).unwrap().unwrap());

        change(&folder.path().join("b"));

        let mut restarted = open(folder.path(), &JSONL, "n INT").fixed();
        kept.restore(&mut restarted).unwrap();
        assert_eq!(drain(&mut source, &mut kept), Err(code));
        assert_eq!(drain(&mut restarted, &mut kept), Err(code));
    }
}

#[test]
fn a_link_to_nothing_is_passed_over_until_it_leads_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join(".elsewhere");
    std::os::unix::fs::symlink(&target, folder.path().join("a")).unwrap();
    let (mut source, mut kept) = (open(folder.path(), &JSONL, "n INT"), Kept::default());

    assert_eq!(drain(&mut source, &mut kept).unwrap(), [""; 0]);
    assert_eq!(open(folder.path(), &JSONL, "n INT").fixed().next(&NO_LIMITS).unwrap_err().code, "SOURCE_NOT_A_FILE");
    write(&target, "{\"n\":1}\n", 1);

    assert_eq!(drain(&mut source, &mut kept).unwrap(), ["{\"n\":1}"]);
}

#[test]
fn a_single_file_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    write(&path, "{\"n\":1}\n{\"n\":2}\n", 1);
    let (mut source, mut kept) = (open(&path, &JSONL, "n INT"), Kept::default());
    assert_eq!(source.outlook(), Outlook::Open);
    for outlook in [Outlook::Open, Outlook::Ended] {
        kept.commit(&source.next(&one_row(NO_LIMITS)).unwrap().unwrap());
        assert_eq!(source.outlook(), outlook);
    }
    let mut source = open(&path, &JSONL, "n INT");
    kept.restore(&mut source).unwrap();
    assert_eq!(source.outlook(), Outlook::Ended);
    assert!(source.next(&NO_LIMITS).unwrap().is_none());
}

#[test]
fn a_file_in_use_must_stay_as_it_is() {
    let text = "{\"n\":1}\n{\"n\":2}\n";
    type Change<'c> = (&'static str, &'c dyn Fn(&Path));
    let changes: [Change<'_>; 4] = [
        ("SOURCE_FILE_CHANGED", &|path| write(path, "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n", 1)),
        ("SOURCE_FILE_CHANGED", &|path| write(path, "{\"n\":1}\n{\"n\":3}\n", 1)),
        ("SOURCE_FILE_CHANGED", &|path| write(path, "{\"n\":1}\n{\"n\":2}\n", 2)),
        ("SOURCE_FILE_MISSING", &|path| fs::remove_file(path).unwrap()),
    ];
    for (number, (code, change)) in changes.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write(&path, text, 1);
        let (mut source, mut kept) = (open(folder.path(), &JSONL, "n INT"), Kept::default());
        kept.commit(&source.next(&one_row(NO_LIMITS)).unwrap().unwrap());
        change(&path);
        let range = kept.last.as_ref().unwrap();
        assert_eq!(source.verify(range).unwrap_err().code, code, "{number}");
        assert_eq!(source.read_again(range).unwrap_err().code, code, "{number}");
        // The second change cannot be seen from the stamp while the file is open; a restart sees it.
        if number != 1 {
            assert_eq!(source.next(&NO_LIMITS).unwrap_err().code, code, "{number}");
        }
        let mut restarted = open(folder.path(), &JSONL, "n INT");
        assert_eq!(kept.restore(&mut restarted).unwrap_err().code, code, "{number}");
    }
}

#[test]
fn a_bad_file_does_not_hold_up_those_before_it() {
    let whole = gzip("{\"n\":1}\n".repeat(100_000).as_bytes());
    let corrupt = [&whole[..whole.len() / 2], &[0xff; 64], &whole[whole.len() / 2..]].concat();
    for (name, bytes, code) in [
        ("b.gz", &whole[..whole.len() / 2], "SOURCE_FILE_TRUNCATED"),
        ("b.gz", &[], "SOURCE_FILE_TRUNCATED"),
        ("b.gz", &corrupt, "SOURCE_UNREADABLE"),
        ("b.gz", b"no gzip at all", "SOURCE_UNREADABLE"),
        ("b.zst", b"no zstd at all", "SOURCE_UNREADABLE"),
        ("b.zst", &zstd::encode_all(&[b'\n'; 100_000][..], 1).unwrap()[..12], "SOURCE_FILE_TRUNCATED"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("a"), "{\"n\":1}\n", 1);
        write(&folder.path().join(name), bytes, 2);
        let mut source = open(folder.path(), &JSONL, "n INT");
        let mut kept = Kept::default();
        let slice = source.next(&NO_LIMITS).unwrap().unwrap();
        assert_eq!(Content::of(&slice).rows, ["{\"n\":1}"], "{code}");
        kept.commit(&slice);
        let error = source.next(&NO_LIMITS).unwrap_err();
        assert_eq!(error.code, code);
        assert!(error.message.contains(name), "{}", error.message);
        assert_eq!(source.next(&NO_LIMITS).unwrap_err().code, code, "again");
        // Nothing of the bad file was committed, so a good one may take its place.
        write(&folder.path().join(name), if name == "b.gz" { whole.clone() } else { vec![] }, 3);
        let mut source = open(folder.path(), &JSONL, "n INT");
        kept.restore(&mut source).unwrap();
        if name == "b.gz" {
            assert_eq!(drain(&mut source, &mut kept).unwrap().len(), 100_000);
        }
    }
}

#[test]
fn a_truncated_file_says_how_far_it_could_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gz");
    let whole = [gzip(b"{\"n\":1}\n{\"n\":2}\n{\"n\""), gzip(b":3}\n")].concat();
    write(&path, &whole[..whole.len() - 12], 1);
    let mut source = open(&path, &JSONL, "n INT");
    let error = source.next(&NO_LIMITS).unwrap_err();
    assert_eq!(error.code, "SOURCE_FILE_TRUNCATED");
    assert!(error.message.contains("after 2 whole rows"), "{}", error.message);
}

#[test]
fn a_file_without_the_wanted_columns_is_refused_before_its_first_row() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a.csv"), "n,x\n1,2\n", 1);
    write(&folder.path().join("a.parquet"), parquet(&[numbers(0..1)]), 1);
    for (name, format, ddl) in [
        ("a.csv", csv_format(), "n INT, s STRING"),
        ("a.parquet", FileFormat::Parquet, "n INT, x STRING"),
        ("a.parquet", FileFormat::Parquet, "n SMALLINT"),
        ("a.parquet", FileFormat::Parquet, "n STRING"),
    ] {
        let error = open(&folder.path().join(name), &format, ddl).next(&NO_LIMITS).unwrap_err();
        assert_eq!(error.code, "SOURCE_SCHEMA_MISMATCH", "{ddl}");
    }
}

#[test]
fn damaged_parquet_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let whole = parquet(&[numbers(0..1_000)]);
    let mut no_footer = whole.clone();
    no_footer.truncate(whole.len() - 9);
    let mut bad_pages = whole.clone();
    bad_pages[4..2_000].fill(0xee);
    for bytes in [vec![], b"PAR1".to_vec(), no_footer, bad_pages] {
        write(&path, &bytes, 1);
        let error = open(&path, &FileFormat::Parquet, "n INT").next(&NO_LIMITS).unwrap_err();
        assert_eq!(error.code, "SOURCE_UNREADABLE", "{}", error.message);
    }
}

#[test]
fn csv_without_a_header_has_its_columns_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    write(&path, "1,x,NA\n2,NA,7\n", 1);
    let null_value = Some("NA".to_owned());
    let dialect = CsvDialect { header: CsvHeader::None, null_value, ..CsvDialect::default() };
    let format = FileFormat::Text(TextFormat::Csv(dialect));
    let mut source = open(&path, &format, "a INT, b STRING, c INT");
    source.project(&schema("c INT, a INT")).unwrap();
    let content = Content::of(&source.next(&NO_LIMITS).unwrap().unwrap());
    assert_eq!(content.rows, ["{\"c\":null,\"a\":1}", "{\"c\":7,\"a\":2}"]);
}

#[test]
fn a_schema_that_is_not_given_is_that_of_the_first_file_with_rows() {
    let folder = tempfile::tempdir().unwrap();
    let infer = |path: &Path, format| FileSource::open(path, format, None).map_err(|error| error.code());
    assert_eq!(infer(folder.path(), JSONL).map(drop), Err("SOURCE_SCHEMA_REQUIRED"));
    write(&folder.path().join("a.gz"), gzip(b""), 1);
    assert_eq!(infer(folder.path(), JSONL).map(drop), Err("SOURCE_SCHEMA_REQUIRED"));
    write(&folder.path().join("c"), "{\"x\":true}\n", 3);
    write(&folder.path().join("b.zst"), zstd::encode_all(&b"{\"n\":1}\n"[..], 1).unwrap(), 2);
    assert_eq!(infer(folder.path(), JSONL).unwrap().schema().to_string(), "n BIGINT");
    let path = folder.path().join("p");
    write(&path, parquet(&[numbers(0..5)]), 1);
    assert_eq!(infer(&path, FileFormat::Parquet).unwrap().schema().to_string(), "S STRING NOT NULL, n INT");
}

#[test]
fn a_position_that_makes_no_sense_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for (key, value) in [("position", "{}"), ("finished/a", "?"), ("listed/a", "?"), ("x", "{}"), ("", "")] {
        let mut source = open(folder.path(), &JSONL, "n INT");
        let pair = (key.as_bytes().to_vec(), value.as_bytes().to_vec());
        assert_eq!(source.restore(vec![pair], None).unwrap_err().code, "SOURCE_POSITION_INVALID");
    }
    let range = SourceRange { at: serde_json::json!([]), inline: None };
    assert_eq!(open(folder.path(), &JSONL, "n INT").verify(&range).unwrap_err().code, "SOURCE_POSITION_INVALID");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_files_keep_the_contract(files in prop::collection::vec(("[a-c]", "[\"{}n:1,\n\r é]{0,40}", 0_u64..3), 0..4)) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text, modified_s) in &files {
            write(&folder.path().join(format!("{name}.gz")), gzip(text.as_bytes()), *modified_s);
            write(&folder.path().join(name), text.replace('\n', "\n{\"n\":1}\n"), *modified_s);
        }
        check_source(|| Box::new(open(folder.path(), &JSONL, "n INT")));
        let dialect = CsvDialect { header: CsvHeader::None, ..CsvDialect::default() };
        let format = FileFormat::Text(TextFormat::Csv(dialect));
        check_source(|| Box::new(open(folder.path(), &format, "s STRING, n INT")));
    }
}
