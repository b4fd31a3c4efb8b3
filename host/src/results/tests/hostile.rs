//! A folder in which someone else has written.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use super::super::format::{FRAME_BYTES_MAX, Frame, FrameKind, SegmentHeader, crc};
use super::super::notes::Begin;
use super::*;

/// A segment made by hand, with checksums that are right.
struct Forged {
    seed: u32,
    bytes: Vec<u8>,
}

impl Forged {
    fn new(number: u64, begin: &Begin) -> Self {
        let header = SegmentHeader::of("q", number);
        let forged = Self { seed: header.seed(), bytes: header.encode() };
        forged.with(Frame::new(FrameKind::Begin, 0, 0), &serde_json::to_vec(begin).unwrap())
    }

    fn first() -> Self {
        Self::new(1, &Begin { query_id: "q".to_owned(), schema: "n INT".to_owned(), ..Begin::default() })
    }

    fn with(mut self, frame: Frame, payload: &[u8]) -> Self {
        let frame = Frame { length: u32::try_from(payload.len()).unwrap(), payload_crc: crc(0, payload), ..frame };
        self.bytes.extend(frame.encode(self.seed));
        self.bytes.extend(payload);
        self
    }

    fn rows(self, batch: u64, first: u64, rows: u32, text: &str) -> Self {
        self.with(Frame { first, rows, ..Frame::new(FrameKind::Rows, 0, batch) }, text.as_bytes())
    }

    fn mark(self) -> Self {
        self.with(Frame::new(FrameKind::Durable, 0, 0), b"")
    }

    fn put(&self, folder: &Path, number: u64) {
        fs::write(segment(folder, number), &self.bytes).unwrap();
    }
}

fn segment(folder: &Path, number: u64) -> std::path::PathBuf {
    folder.join(format!("{number:020}.results"))
}

/// The code of the error that a consumer gets who reads all, and what it was given before.
fn outcome(folder: &Path) -> (Vec<String>, &'static str) {
    let (mut reader, mut next, mut seen) = (reader(folder), None, Vec::new());
    loop {
        match reader.read_after(next, ALL) {
            Ok(page) => {
                seen.extend(shown(&page));
                next = page.next;
                if page.end_reached {
                    return (seen, "");
                }
            }
            Err(error) => return (seen, error.code()),
        }
    }
}

#[test]
fn only_a_regular_file_is_opened() {
    type Put<'p> = &'p dyn Fn(&Path, &Path);
    let things: [(&str, Put<'_>); 6] = [
        ("a link to a file of someone else", &|place, other| symlink(other, place).unwrap()),
        ("a link to nothing", &|place, _| symlink("nowhere", place).unwrap()),
        ("a link to a device", &|place, _| symlink("/dev/zero", place).unwrap()),
        ("a pipe, which nobody writes to", &|place, _| {
            let (file_type, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
            rustix::fs::mknodat(rustix::fs::CWD, place, file_type, mode, 0).unwrap();
        }),
        ("a socket", &|place, _| drop(UnixListener::bind(place).unwrap())),
        ("a folder", &|place, _| fs::create_dir(place).unwrap()),
    ];
    for (what, put) in things {
        let (root, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        publish(&mut open(other.path()).unwrap(), 0, 1, 1).unwrap();
        let place = segment(root.path(), 1);
        put(&place, &segment(other.path(), 1));

        assert_eq!(outcome(root.path()), (Vec::new(), "RESULTS_CORRUPT"), "{what}");
        if !place.is_dir() || place.is_symlink() {
            publish(&mut open(other.path()).unwrap(), 0, 2, 1).unwrap();
            assert_eq!(read_all(other.path()).len(), 2, "{what}: the other file is as it was");
        }
    }
}

#[test]
fn a_folder_is_opened_without_leaving_the_one_above_it() {
    let root = TempDir::new().unwrap();
    fs::create_dir_all(root.path().join("query/results")).unwrap();
    symlink("query", root.path().join("link")).unwrap();
    symlink("/", root.path().join("outside")).unwrap();
    fs::write(root.path().join("file"), "").unwrap();
    let descriptor = File::open(root.path()).unwrap();

    assert!(open_folder(descriptor.as_fd(), Path::new("query/results")).is_ok());
    for path in ["link/results", "outside", "outside/tmp", "..", "query/../../tmp", "/tmp", "file", "absent"] {
        assert!(open_folder(descriptor.as_fd(), Path::new(path)).is_err(), "{path}");
    }
}

#[test]
fn whatever_bytes_stand_there_a_consumer_gets_what_is_right_before_them_and_a_code() {
    let row = "{\"n\":1}\n";
    let one = || Forged::first().rows(1, 0, 1, row);
    let given = vec![r#"0-1-0 {"n":1}"#.to_owned()];
    let cases: Vec<(&str, Forged)> = vec![
        ("rows of a batch that came before", one().rows(1, 0, 1, row).rows(0, 0, 1, row)),
        ("a gap in a batch", one().rows(1, 2, 1, row)),
        ("a batch without its first row", one().rows(2, 1, 1, row)),
        ("a batch of an earlier generation", one().with(Frame::new(FrameKind::Rollback, 0, 0), b"{}")),
        ("fewer rows than the frame says", one().rows(2, 0, 3, row)),
        ("no rows", one().rows(2, 0, 0, "")),
        ("a row without its end", one().rows(2, 0, 1, r#"{"n":1}"#)),
        ("no JSON", one().rows(2, 0, 1, "{n}\n")),
        ("no object", one().rows(2, 0, 1, "7\n")),
        ("two objects", one().rows(2, 0, 1, "{} {}\n")),
        ("an end of line that ends no row", one().rows(2, 0, 1, "{\"n\":\r1}\n")),
        ("a control character", one().rows(2, 0, 1, "{\"n\":\"\u{1b}[2J\"}\n")),
        ("brackets without end", one().rows(2, 0, 1, &format!("{{\"n\":{}\n", "[".repeat(1 << 20)))),
        ("no text", one().with(Frame { rows: 1, ..Frame::new(FrameKind::Rows, 0, 2) }, b"{\"n\":\"\xff\"}\n")),
        ("a rollback that is none", one().with(Frame::new(FrameKind::Rollback, 1, 2), b"[]")),
        ("a second beginning", one().with(Frame::new(FrameKind::Begin, 0, 0), b"{}")),
    ];
    for (what, forged) in cases {
        let folder = TempDir::new().unwrap();
        forged.mark().put(folder.path(), 1);

        let (seen, code) = outcome(folder.path());

        assert_eq!(code, "RESULTS_CORRUPT", "{what}");
        assert!(seen == given || seen.first() == given.first(), "{what}: {seen:?}");
    }
}

#[test]
fn bytes_that_are_no_frame_end_the_stream_unless_something_durable_follows() {
    let row = "{\"n\":1}\n";
    let durable = || Forged::first().rows(1, 0, 1, row).mark();
    let length = |length: u32| {
        let frame = Frame { length, rows: 1, ..Frame::new(FrameKind::Rows, 0, 2) };
        let mut forged = durable();
        forged.bytes.extend(frame.encode(forged.seed));
        forged
    };
    for (what, forged) in [
        ("a frame that reaches beyond the file", length(1 << 20)),
        ("a frame longer than any", length(u32::MAX)),
        ("a frame as long as can be", length(u32::try_from(FRAME_BYTES_MAX).unwrap())),
    ] {
        let folder = TempDir::new().unwrap();
        forged.put(folder.path(), 1);
        assert_eq!(outcome(folder.path()), (vec![r#"0-1-0 {"n":1}"#.to_owned()], ""), "{what}");
        // A file that has no end.
        let file = File::options().write(true).open(segment(folder.path(), 1)).unwrap();
        file.set_len(1 << 40).unwrap();
        assert_eq!(outcome(folder.path()).1, "", "{what}");
    }
    for position in 0..4 {
        let folder = TempDir::new().unwrap();
        let mut forged = durable();
        let damaged = [8, 40, 100, forged.bytes.len() - 100][position];
        forged.bytes[damaged] ^= 1;
        forged.put(folder.path(), 1);
        assert!(outcome(folder.path()).1.starts_with("RESULTS_"), "byte {damaged}");
        assert!(open(folder.path()).is_err(), "byte {damaged}");
    }
}

#[test]
fn the_sink_takes_no_stream_that_was_damaged_in_front_of_a_mark() {
    let folder = TempDir::new().unwrap();
    let mut sink = open(folder.path()).unwrap();
    publish(&mut sink, 0, 1, 1).unwrap();
    let first_end = fs::metadata(segment(folder.path(), 1)).unwrap().len();
    publish(&mut sink, 0, 2, 1).unwrap();
    let whole = fs::read(segment(folder.path(), 1)).unwrap();
    let damage = |at: u64| {
        let mut bytes = whole.clone();
        bytes[usize::try_from(at).unwrap()] ^= 1;
        fs::write(segment(folder.path(), 1), bytes).unwrap();
        open(folder.path()).map(drop)
    };

    assert_eq!(damage(first_end + 20), Err("RESULTS_CORRUPT"), "the header of a frame");
    assert_eq!(
        damage(first_end - 20),
        Err("RESULTS_CORRUPT"),
        "the mark of the first batch, which was synced with the second"
    );
}

#[test]
fn segments_that_do_not_fit_together_are_refused() {
    let begin = |previous_end: u64, end: Option<&str>| {
        let mut begin = Begin { query_id: "q".to_owned(), previous_end, ..Begin::default() };
        begin.so_far.end = end.map(at);
        begin
    };
    let first = Forged::first().rows(1, 0, 1, "{}\n").mark();
    let end = first.bytes.len() as u64 - 40;
    let cases: [(&str, Forged); 5] = [
        ("the first ends behind its end", Forged::new(2, &begin(end + 1_000, Some("0-1-0")))),
        ("the first ends in front of its beginning", Forged::new(2, &begin(10, Some("0-1-0")))),
        ("the first ends in a frame", Forged::new(2, &begin(end - 1, Some("0-1-0")))),
        ("the second goes on elsewhere", Forged::new(2, &begin(end, Some("0-7-0"))).rows(8, 0, 1, "{}\n").mark()),
        ("the second has the number of another", Forged::new(3, &begin(end, Some("0-1-0")))),
    ];
    for (what, second) in cases {
        let folder = TempDir::new().unwrap();
        first.put(folder.path(), 1);
        second.put(folder.path(), 2);
        let (seen, code) = outcome(folder.path());
        assert!(code == "RESULTS_CORRUPT" || what == "the first ends in a frame", "{what}: {seen:?} {code}");
        assert!(seen.len() <= 1, "{what}");
    }
    let folder = TempDir::new().unwrap();
    first.put(folder.path(), 1);
    Forged::new(3, &begin(end, Some("0-1-0"))).put(folder.path(), 3);
    assert_eq!(outcome(folder.path()).1, "RESULTS_CORRUPT", "one between is gone");
}

#[test]
fn very_many_frames_and_very_many_files_cost_a_call_no_more_than_a_bound() {
    let folder = TempDir::new().unwrap();
    let mut forged = Forged::first();
    let mark = Frame { payload_crc: crc(0, b""), ..Frame::new(FrameKind::Durable, 0, 0) }.encode(forged.seed);
    forged.bytes.extend(mark.repeat((1 << 20) + 5));
    let forged = forged.rows(1, 0, 1, "{}\n").mark();
    forged.put(folder.path(), 1);
    let mut one_reader = reader(folder.path());
    assert_eq!(one_reader.read_after(None, ALL).unwrap().entries.len(), 0);
    assert_eq!(one_reader.read_after(None, ALL).unwrap().entries.len(), 0);

    fs::remove_file(segment(folder.path(), 1)).unwrap();
    for number in 0..=100_000 {
        File::create(segment(folder.path(), number)).unwrap();
    }
    assert_eq!(outcome(folder.path()).1, "RESULTS_CORRUPT");
}
