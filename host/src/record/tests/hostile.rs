//! What hostile schemas and rows cannot do.

use super::super::{DataType, RowLayout, Schema, decode_rows};

fn layout(ddl: &str) -> RowLayout {
    RowLayout::new(&Schema::parse(ddl).unwrap())
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn ddl_that_nests_endlessly_is_refused_without_deep_recursion() {
    for open in ["ARRAY<", "MAP<STRING, ", "STRUCT<a: ", "MAP<"] {
        let ddl = format!("a {}", open.repeat(64 * 1024 / open.len() - 1));
        let error = Schema::parse(&ddl).unwrap_err();
        assert_eq!(error.code(), "INVALID_SCHEMA");
    }
}

#[test]
fn sixteen_levels_are_allowed_and_seventeen_are_not() {
    let nested = |levels| format!("a {}INT{}", "ARRAY<".repeat(levels), ">".repeat(levels));
    assert!(Schema::parse(&nested(16)).is_ok());
    let error = Schema::parse(&nested(17)).unwrap_err().to_string();
    assert!(error.contains("more than 16 deep"), "{error}");
    let too_deep = (0..17).fold(DataType::Int, |inner, _| DataType::Array(Box::new(inner)));
    let error = Schema::new(vec![super::super::Field::nullable("a", too_deep)]).unwrap_err().to_string();
    assert!(error.contains("`a`") && error.contains("more than 16 deep"), "{error}");
}

#[test]
fn structs_within_structs_count_as_levels_when_a_schema_is_built() {
    let wrap = |inner: Schema| Schema::new(vec![super::super::Field::nullable("s", DataType::Struct(inner))]);
    let mut schema = Schema::parse("").unwrap();
    for _ in 0..16 {
        schema = wrap(schema).unwrap();
    }
    assert!(wrap(schema).is_err());
}

#[test]
fn a_thousand_and_twenty_four_columns_are_allowed_and_one_more_is_not() {
    let columns = |count| (0..count).map(|i| format!("c{i} INT")).collect::<Vec<_>>().join(",");
    assert_eq!(Schema::parse(&columns(1_024)).unwrap().len(), 1_024);
    assert!(Schema::parse(&columns(1_025)).is_err());
    assert!(Schema::parse(&format!("s STRUCT<{}>", columns(1_025))).is_err());
}

#[test]
fn long_ddl_is_refused_and_the_longest_is_read_quickly() {
    assert!(Schema::parse(&" ".repeat(64 * 1024 + 1)).is_err());
    for piece in ["`", "``", "'", "<", "(", ",", "a", "\u{7fff}", "a INT,", "-", "'a' "] {
        let text = piece.repeat(64 * 1024 / piece.len());
        let error = Schema::parse(&text).unwrap_err();
        assert!(error.to_string().len() < 500, "{error}");
    }
}

#[test]
fn a_claimed_count_allocates_nothing() {
    let layout = layout("a ARRAY<STRUCT<x: INT, y: STRING>>");
    for count in [1 << 20, 1 << 40, u64::MAX, u64::MAX / 8, (1 << 61) + 1] {
        let row = words(&[0, 16 | 24 << 32, count, 0, 0]);
        assert!(layout.validate(&row).is_err());
        assert!(decode_rows(&layout, [row.as_slice()]).is_err());
    }
}

#[test]
fn a_small_row_of_null_structs_does_not_become_a_large_batch() {
    let fields = (0..1_024).map(|i| format!("f{i}: DECIMAL(38,0)")).collect::<Vec<_>>().join(", ");
    let layout = layout(&format!("a ARRAY<STRUCT<{fields}>>"));
    // 80,000 NULLs: 650 KB of row, 1.3 GB of Arrow.
    let count: u64 = 80_000;
    let bitmap = count.div_ceil(64);
    let length = 8 + bitmap * 8 + count * 8;
    let mut row = words(&[0, 16 | length << 32, count]);
    row.extend(std::iter::repeat_n(0xff, count as usize / 8));
    row.resize(24 + (bitmap + count) as usize * 8, 0);
    layout.validate(&row).unwrap();

    let fault = decode_rows(&layout, [row.as_slice()]).unwrap_err();

    assert!(fault.to_string().contains("1 GiB"), "{fault}");
}

#[test]
fn a_fault_names_the_path_of_the_column() {
    let layout = layout("a STRUCT<`x y`: ARRAY<TINYINT>>");
    let row = words(&[0, 16 | 48 << 32, 0, 16 | 32 << 32, 2, 0, 1, 1_000]);
    let fault = layout.validate(&row).unwrap_err();
    assert_eq!((fault.code(), fault.column()), ("INVALID_ROW", "a.x y[1]"));
    assert_eq!(fault.to_string(), "column `a.x y[1]`: 1000 is out of range of the type");
}
