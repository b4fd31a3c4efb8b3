//! However a consumer pages, it is given the same stream.

use proptest::prelude::*;

use super::*;

/// Batches as numbers of rows; none of 0, as a batch without rows is not published.
fn batches() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(prop_oneof![3 => 1..4_u64, 1 => 1..200_u64], 1..12)
}

fn limits() -> impl Strategy<Value = PageLimits> {
    (prop_oneof![0..4_usize, 0..300_usize], prop_oneof![0..200_usize, 0..20_000_usize])
        .prop_map(|(rows_max, bytes_max)| PageLimits { rows_max, bytes_max })
}

fn json_bytes(entry: &Entry) -> usize {
    match entry {
        Entry::Row { json, .. } => json.len(),
        Entry::Rollback(_) => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn pages_of_any_size_make_up_the_same_stream(
        batches in batches(),
        segment_bytes in 0..4_000_u64,
        pages in prop::collection::vec((limits(), any::<bool>()), 1..8),
    ) {
        let folder = TempDir::new().unwrap();
        let mut sink = open(folder.path()).unwrap().with_sizes(segment_bytes, 100);
        let mut expected = Vec::new();
        for (id, count) in (1..).zip(batches) {
            publish(&mut sink, 0, id, count).unwrap();
            let rows = String::from_utf8(lines(id, count)).unwrap();
            expected.extend(rows.lines().zip(0..).map(|(row, index)| format!("0-{id}-{index} {row}")));
        }

        let (mut reader, mut next, mut seen) = (super::reader(folder.path()), None, Vec::new());
        for (limits, with_a_new_reader) in pages.into_iter().cycle() {
            if with_a_new_reader {
                reader = super::reader(folder.path());
            }
            let page = reader.read_after(next, limits).unwrap();
            let bytes: usize = page.entries.iter().map(json_bytes).sum();
            prop_assert!(page.entries.len() <= limits.rows_max.max(1));
            prop_assert!(bytes <= limits.bytes_max || page.entries.len() == 1);
            prop_assert!(!page.entries.is_empty() || page.end_reached, "there is always something, but at the end");
            seen.extend(shown(&page));
            next = page.next;
            if page.end_reached {
                break;
            }
        }
        prop_assert_eq!(seen, expected);
    }
}

#[test]
fn a_large_batch_is_paged_without_reading_all_of_it() {
    let folder = TempDir::new().unwrap();
    let mut sink = open(folder.path()).unwrap();
    let row = format!("{{\"text\":\"{}\"}}\n", "x".repeat(100_000));
    let staged = folder.path().join("staged");
    std::fs::write(&staged, row.repeat(50)).unwrap();
    sink.publish(&Publication { entry: &entry(1), staged: &Staged::File(staged) }).unwrap();
    publish(&mut sink, 0, 2, 1).unwrap();
    // The last rows of the batch are overwritten: who reads the first ones does not look at them.
    let segment = folder.path().join("00000000000000000001.results");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[4_900_000] ^= 1;
    std::fs::write(&segment, &bytes).unwrap();
    let limits = PageLimits { rows_max: 10, bytes_max: usize::MAX };
    let (mut reader, mut next, mut rows) = (reader(folder.path()), None, 0);

    let error = loop {
        match reader.read_after(next, limits) {
            Ok(page) => {
                rows += page.entries.len();
                next = page.next;
            }
            Err(error) => break error,
        }
    };

    assert_eq!(error.code(), "RESULTS_CORRUPT");
    assert!((40..50).contains(&rows), "{rows}");
}
