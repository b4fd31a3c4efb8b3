//! Standard input: waiting, restarting, and a prefix that was read before.

use std::io::Cursor;

use super::super::contract::{Content, Kept, NO_LIMITS, check_source};
use super::*;

const LINES: &str = "\u{feff}{\"n\":1}\n\n{\"n\":\"x\"}\n{\"n\":2}\n{\"n\":3}\n{\"n\":4}";
const CSV: &str = "s,n\n\"a\nb\",1\n?\n,2\n";

fn open(text: &str, format: TextFormat, ddl: &str, after_restart: AfterRestart) -> StdinSource {
    let input = Box::new(Cursor::new(text.as_bytes().to_vec()));
    StdinSource::new(input, format, Schema::parse(ddl).unwrap(), after_restart, Duration::from_secs(10)).unwrap()
}

fn lines(text: &str, after_restart: AfterRestart) -> StdinSource {
    open(text, TextFormat::JsonLines, "n BIGINT", after_restart)
}

fn csv_format() -> TextFormat {
    TextFormat::Csv(super::super::text::CsvDialect::default())
}

/// Everything that the stream still gives.
fn drain(source: &mut StdinSource, kept: &mut Kept) -> Result<Content, &'static str> {
    let mut whole = Content::default();
    while source.outlook() == Outlook::Open {
        if let Some(slice) = source.next(&NO_LIMITS).map_err(|error| error.code)? {
            kept.commit(&slice);
            let content = Content::of(&slice);
            whole.rows.extend(content.rows);
            whole.rejected.extend(content.rejected);
        }
    }
    Ok(whole)
}

#[test]
fn the_same_stream_again_keeps_the_contract() {
    let content = check_source(|| Box::new(lines(LINES, AfterRestart::SkipCommitted)));
    assert_eq!(content.rows, ["{\"n\":1}", "{\"n\":2}", "{\"n\":3}", "{\"n\":4}"]);
    assert_eq!(content.rejected.iter().map(|row| (row.origin.as_str(), row.row)).collect::<Vec<_>>(), [("stdin", 3)]);
    let content = check_source(|| Box::new(open(CSV, csv_format(), "n INT, s STRING", AfterRestart::SkipCommitted)));
    assert_eq!(content.rows, ["{\"n\":1,\"s\":\"a\\nb\"}", "{\"n\":2,\"s\":null}"]);
    assert_eq!(content.rejected.len(), 1);
}

#[test]
fn another_stream_continues() {
    let mut kept = Kept::default();
    let (first, second) = ("n,s\n1,a\n", "s,n\nb,2\n?\n");
    for (text, rows) in [(first, ["{\"n\":1}"]), (second, ["{\"n\":2}"])] {
        let mut source = open(text, csv_format(), "n INT, s STRING", AfterRestart::Continue);
        source.project(&Schema::parse("n INT").unwrap()).unwrap();
        kept.restore(&mut source).unwrap();
        let content = drain(&mut source, &mut kept).unwrap();
        assert_eq!(content.rows, rows);
        // Rows are counted over all streams.
        assert!(content.rejected.iter().all(|row| row.row == 3));
    }
}

#[test]
fn the_place_is_known_when_the_log_no_longer_holds_the_last_rows() {
    let mut kept = Kept::default();
    drain(&mut lines("{\"n\":1}\n{\"n\":2}\n", AfterRestart::Continue), &mut kept).unwrap();
    kept.last = None;

    let mut source = lines("{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n", AfterRestart::SkipCommitted);
    kept.restore(&mut source).unwrap();

    assert_eq!(drain(&mut source, &mut kept).unwrap().rows, ["{\"n\":3}"]);
}

#[test]
fn another_prefix_is_refused() {
    let mut kept = Kept::default();
    drain(&mut lines("{\"n\":1}\n{\"n\":2}\n", AfterRestart::Continue), &mut kept).unwrap();
    for (text, result) in [
        ("{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n", Ok(1)),
        ("{\"n\":1}\n{\"n\":2}\n", Ok(0)),
        ("{\"n\":1}\n{\"n\":3}\n{\"n\":3}\n", Err("STDIN_PREFIX_MISMATCH")),
        ("{\"n\":1}\n", Err("STDIN_PREFIX_MISMATCH")),
        ("", Err("STDIN_PREFIX_MISMATCH")),
    ] {
        let mut source = lines(text, AfterRestart::SkipCommitted);
        kept.restore(&mut source).unwrap();
        let rows = drain(&mut source, &mut Kept::default()).map(|content| content.rows.len());
        assert_eq!(rows, result, "{text}");
    }
}

#[test]
fn a_batch_takes_what_has_arrived_and_does_not_wait_for_more() {
    let (sender, receiver) = sync_channel::<Vec<u8>>(0);
    let mut source = StdinSource::new(
        Box::new(Pipe(receiver)),
        TextFormat::JsonLines,
        Schema::parse("n BIGINT").unwrap(),
        AfterRestart::Continue,
        Duration::ZERO,
    )
    .unwrap();
    assert!(source.next(&NO_LIMITS).unwrap().is_none());
    assert_eq!(source.outlook(), Outlook::Open);
    sender.send(b"{\"n\":1}\n{\"n\"".to_vec()).unwrap();
    let slice = std::iter::repeat_with(|| source.next(&NO_LIMITS).unwrap()).flatten().next().unwrap();
    assert_eq!(Content::of(&slice).rows, ["{\"n\":1}"]);
    assert!(source.next(&NO_LIMITS).unwrap().is_none());
    sender.send(b":2}".to_vec()).unwrap();
    drop(sender);
    let slice = std::iter::repeat_with(|| source.next(&NO_LIMITS).unwrap()).flatten().next().unwrap();
    assert_eq!(Content::of(&slice).rows, ["{\"n\":2}"]);
    assert_eq!(source.outlook(), Outlook::Ended);
}

#[test]
fn a_row_that_is_too_long_is_rejected_again_in_the_same_way() {
    let text = format!("{{\"n\":1}}\n{}\n{{\"n\":2}}\n", "x".repeat(17 << 20));
    let mut source = lines(&text, AfterRestart::Continue);
    let mut kept = Kept::default();
    let mut slices = Vec::new();
    while source.outlook() == Outlook::Open {
        if let Some(slice) = source.next(&NO_LIMITS).unwrap() {
            kept.commit(&slice);
            assert!(slice.range.inline.as_ref().unwrap().len() < 100);
            slices.push((kept.last.clone().unwrap(), Content::of(&slice)));
        }
    }
    let rejected: Vec<_> = slices.iter().flat_map(|(_, content)| &content.rejected).collect();
    assert_eq!(rejected.iter().map(|row| (row.row, row.code.as_str())).collect::<Vec<_>>(), [(2, "ROW_TOO_LONG")]);
    for (range, content) in slices {
        assert_eq!(Content::of(&source.read_again(&range).unwrap()), content);
    }
}

#[test]
fn a_stream_that_breaks_is_an_error_behind_its_rows() {
    struct Broken(bool);
    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match std::mem::replace(&mut self.0, true) {
                true => Err(io::Error::other("broken")),
                false => (&b"{\"n\":1}\n"[..]).read(buffer),
            }
        }
    }
    let mut source = StdinSource::new(
        Box::new(Broken(false)),
        TextFormat::JsonLines,
        Schema::parse("n BIGINT").unwrap(),
        AfterRestart::Continue,
        Duration::from_secs(10),
    )
    .unwrap();
    assert_eq!(drain(&mut source, &mut Kept::default()), Err("SOURCE_UNREADABLE"));
}

/// A stream whose bytes a test sends.
struct Pipe(Receiver<Vec<u8>>);

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let chunk = self.0.recv().unwrap_or_default();
        buffer[..chunk.len()].copy_from_slice(&chunk);
        Ok(chunk.len())
    }
}
