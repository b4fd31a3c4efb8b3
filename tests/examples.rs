//! Every example gives exactly the rows it promises, and the flights of a whole year behave as its README says.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use flate2::read::GzDecoder;
use tempfile::TempDir;
use tidemill_host::record::parse_timestamp;

use super::support::{EXAMPLES, Example, json_lines, rows, succeed};

#[test]
fn every_example_gives_exactly_the_expected_rows() {
    for name in EXAMPLES {
        let example = Example::new(name);
        let place = TempDir::new().unwrap();

        succeed(&mut example.command(place.path(), []));

        let (rows, expected) = (rows(&place.path().join("rows")), example.expected());
        let differs = rows.lines().zip(expected.lines()).enumerate().find(|(_, (row, expected))| row != expected);
        assert!(rows == expected, "{name}: other rows; the first that differs: {differs:#?}");
    }
}

#[test]
fn the_expected_rows_do_not_depend_on_the_number_of_workers() {
    for name in EXAMPLES {
        let example = Example::new(name);
        for workers in ["1", "5"] {
            let place = TempDir::new().unwrap();

            succeed(&mut example.command(place.path(), ["--workers", workers]));

            assert!(rows(&place.path().join("rows")) == example.expected(), "{name} with {workers} workers");
        }
    }
}

/// Rows of the whole flights file.
const FLIGHTS: u64 = 336_776;
/// Those without a tail number.
const WITHOUT_TAIL_NUMBER: usize = 2_512;
/// Rows of a batch.
const BATCH_ROWS: usize = 3_000;
/// The watermark delay of the example, a day.
const DELAY_MS: i64 = 24 * 60 * 60 * 1000;
/// `TIDEMILL_FLIGHTS` says where the whole file is, gzipped.
const FLIGHTS_FILE: &str = "TIDEMILL_FLIGHTS";

#[test]
fn a_year_of_flights_has_no_late_row_and_loses_none() {
    let Some(file) = whole_flights() else { return };
    let place = TempDir::new().unwrap();

    let totals = run_flights(&place, file.as_ref());

    assert_eq!((totals.rows_in, totals.late, totals.rejected), (FLIGHTS, 0, 0));
    assert_eq!(totals.batches, FLIGHTS.div_ceil(BATCH_ROWS as u64) as usize + totals.rowless);
    let emitted = rows(&place.path().join("rows"));
    let count = |text: &str| emitted.lines().filter(|row| row.contains(text)).count();
    assert_eq!(count(r#""event":"departed""#) + count(r#""event":"cancelled""#), FLIGHTS as usize);
    assert_eq!(count(r#""tailnum":null"#), WITHOUT_TAIL_NUMBER);
    assert!(count(r#""event":"not seen""#) > 1_000, "an aircraft flies from New York now and then");
    assert_eq!(emitted.lines().count(), totals.rows_out as usize);
}

#[test]
fn a_year_of_flights_with_the_months_out_of_order_has_exactly_the_late_rows_that_it_must() {
    let Some(file) = whole_flights() else { return };
    let place = TempDir::new().unwrap();
    let shuffled = place.path().join("flights.csv");
    let times_us = write_by_month(file.as_ref(), &shuffled);

    let totals = run_flights(&place, &shuffled);

    let late = late_rows(&times_us);
    println!("{late} of {} rows are late", times_us.len());
    assert!(late > 100_000, "months 2 to 9 come after month 12");
    assert_eq!((totals.rows_in, totals.late), (FLIGHTS, late));
}

/// The file of `TIDEMILL_FLIGHTS`, if it is set.
fn whole_flights() -> Option<std::ffi::OsString> {
    let file = std::env::var_os(FLIGHTS_FILE);
    if file.is_none() {
        println!("left out: {FLIGHTS_FILE} does not say where the whole flights file is");
    }
    file
}

/// What the batches of a run reported, added up.
#[derive(Default)]
struct Totals {
    batches: usize,
    rowless: usize,
    rows_in: u64,
    rows_out: u64,
    late: u64,
    rejected: u64,
}

fn run_flights(place: &TempDir, input: &Path) -> Totals {
    let progress = place.path().join("progress.jsonl");
    let example = Example::new("flights");
    let batch_rows = format!("limits.rows_per_batch={BATCH_ROWS}");
    let arguments =
        ["--set", &batch_rows, "--input", input.to_str().unwrap(), "--progress", progress.to_str().unwrap()];
    succeed(&mut example.command(place.path(), arguments));

    let mut totals = Totals::default();
    for batch in json_lines(&fs::read_to_string(progress).unwrap()) {
        let number = |pointer: &str| batch.pointer(pointer).unwrap().as_u64().unwrap();
        totals.batches += 1;
        totals.rowless += usize::from(number("/numInputRows") == 0);
        totals.rows_in += number("/numInputRows");
        totals.rows_out += number("/sink/numOutputRows");
        totals.late += number("/stateOperators/0/numRowsDroppedByWatermark");
        // A batch without rows has read no source.
        totals.rejected += if batch.pointer("/sources/0").is_some() { number("/sources/0/numRejectedRows") } else { 0 };
    }
    totals
}

/// Writes the flights with their months in the order 1, 10, 11, 12, 2 to 9, and answers their event times.
fn write_by_month(from: &Path, to: &Path) -> Vec<i64> {
    let mut lines = BufReader::new(GzDecoder::new(fs::File::open(from).unwrap())).lines().map(Result::unwrap);
    let header = lines.next().unwrap();
    let column = |name: &str| header.split(',').position(|column| column.trim_matches('"') == name).unwrap();
    let (month, time_hour) = (column("month"), column("time_hour"));
    let field = |line: &str, index: usize| line.split(',').nth(index).unwrap().trim_matches('"').to_owned();
    let mut flights: Vec<String> = lines.collect();
    // As text, which is that order; stable, so that the order within a month stays.
    flights.sort_by_key(|line| field(line, month));
    let mut out = std::io::BufWriter::new(fs::File::create(to).unwrap());
    writeln!(out, "{header}").unwrap();
    flights.iter().for_each(|line| writeln!(out, "{line}").unwrap());
    out.flush().unwrap();
    flights.iter().map(|line| parse_timestamp(&field(line, time_hour)).unwrap()).collect()
}

/// How many rows are late: those at or before the watermark of the batch before theirs, which is the latest event time
/// of the batches before that one, less the delay.
fn late_rows(times_us: &[i64]) -> u64 {
    let (mut watermark_ms, mut watermark_before_ms, mut latest_us) = (0, 0, i64::MIN);
    let mut late = 0;
    for batch in times_us.chunks(BATCH_ROWS) {
        late += batch.iter().filter(|time_us| **time_us <= watermark_before_ms * 1000).count() as u64;
        latest_us = latest_us.max(*batch.iter().max().unwrap());
        watermark_before_ms = watermark_ms;
        watermark_ms = watermark_ms.max(latest_us / 1000 - DELAY_MS);
    }
    late
}
