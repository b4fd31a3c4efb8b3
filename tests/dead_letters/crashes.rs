//! A crash at any point, also during the search, neither loses nor doubles a dead letter.

use tidemill_host::engine::faults::{POINTS, abandon_at};
use tidemill_host::engine::settings::QuerySettings;

use super::fussy::Fussy;
use super::{FussyQuery, POISON, Row, State, state};
use crate::native_query::{drain, settings};
use crate::support::published;

const ROWS: usize = 400;

/// A tenth of it is poison.
fn batch(query: &FussyQuery, number: usize) {
    let keys: Vec<_> = (0..ROWS).map(|row| format!("key-{}", (row * 7 + number) % 150)).collect();
    let number = |row: usize| if row % 10 == 4 { POISON } else { Some(row as i64) };
    let rows: Vec<Row> = keys.iter().enumerate().map(|(row, key)| (key.as_str(), number(row))).collect();
    query.feed(&rows);
}

fn new() -> FussyQuery {
    // One worker runs on this thread, where a test can abandon it.
    FussyQuery::with(Fussy::default(), QuerySettings { workers: 1, ..settings() })
}

fn run(query: &FussyQuery) -> State {
    let mut running = query.open().unwrap();
    drain(&mut running).unwrap();
    let state = state(&running);
    running.close().unwrap();
    state
}

#[test]
fn a_crash_at_any_point_is_as_if_it_had_not_been() {
    let undisturbed = new();
    for number in 0..2 {
        batch(&undisturbed, number);
        run(&undisturbed);
    }
    let expected = (run(&undisturbed), undisturbed.query.emitted(), undisturbed.letters());
    assert_eq!(expected.2.len(), 2 * ROWS / 10);

    let points = POINTS.iter().map(|(point, _)| *point).filter(|point| !point.starts_with("rollback."));
    let mut crashes: Vec<_> = points.flat_map(|point| [1, 2].map(|hit| format!("{point}:{hit}"))).collect();
    crashes.extend([20, 40, 81].map(|hit| format!("poison.attempt:{hit}")));
    let mut crashed = 0;
    for crash in crashes {
        let query = new();
        batch(&query, 0);
        run(&query);
        batch(&query, 1);

        crashed += u32::from(abandon_at(&crash, || run(&query)).unwrap().is_none());

        let state = run(&query);
        let after = (state, query.query.emitted(), query.letters());
        assert!(after == expected, "a crash at {crash}");
        query.replays();
    }
    assert!(crashed > 18, "{crashed} crashes");
}

#[test]
fn the_files_of_dead_letters_are_the_same_byte_for_byte() {
    let [once, again] = [new(), new()];
    for query in [&once, &again] {
        batch(query, 0);
    }
    run(&once);

    assert!(abandon_at("poison.attempt:7", || run(&again)).unwrap().is_none());
    assert!(abandon_at("publish.before-sink:2", || run(&again)).unwrap().is_none());
    run(&again);

    assert!(!published(&once.folder()).is_empty());
    assert!(published(&once.folder()) == published(&again.folder()));
}
