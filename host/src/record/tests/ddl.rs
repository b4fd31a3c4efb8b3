//! What DDL is read, how it is printed, and how errors read.

use proptest::prelude::*;

use super::super::{DataType, Field, Schema};
use super::arbitrary::schema;

proptest! {
    #[test]
    fn printed_schemas_are_read_back(schema in schema()) {
        let printed = schema.to_string();
        prop_assert_eq!(Schema::parse(&printed).unwrap(), schema, "{}", printed);
    }

    #[test]
    fn schemas_survive_arrow_and_serde(schema in schema()) {
        prop_assert_eq!(&Schema::from_arrow(&schema.to_arrow()).unwrap(), &schema);
        let json = serde_json::to_string(&schema).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Schema>(&json).unwrap(), &schema);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[a-zA-Z<>(),:`' 0-9\\PC]{0,80}") {
        if let Err(error) = Schema::parse(&text) {
            prop_assert_eq!(error.code(), "INVALID_SCHEMA");
        }
    }
}

#[test]
fn types_have_the_synonyms_of_spark() {
    let cases = [
        ("byte", "TINYINT"),
        ("Short", "SMALLINT"),
        ("integer", "INT"),
        ("LONG", "BIGINT"),
        ("real", "FLOAT"),
        ("dec", "DECIMAL(10,0)"),
        ("numeric(5)", "DECIMAL(5,0)"),
        ("DECIMAL ( 5 , 2 )", "DECIMAL(5,2)"),
        ("timestamp_ltz", "TIMESTAMP"),
        (
            "array<map<string,struct<a int,b:string not null>>>",
            "ARRAY<MAP<STRING, STRUCT<a: INT, b: STRING NOT NULL>>>",
        ),
        ("struct<>", "STRUCT<>"),
        ("string not null comment 'text'", "STRING NOT NULL"),
    ];
    for (written, printed) in cases {
        let parsed = Schema::parse(&format!("c {written}")).unwrap();
        assert_eq!(parsed.to_string(), format!("c {printed}"));
    }
}

#[test]
fn columns_may_have_colons_comments_quotes_and_keywords_as_names() {
    let schema = Schema::parse(
        "a: INT COMMENT 'it\\'s', `b ``c` STRING NOT NULL COMMENT \"x\", int INT, struct STRING, not BOOLEAN",
    )
    .unwrap();
    let expected = [
        Field::nullable("a", DataType::Int),
        Field::required("b `c", DataType::String),
        Field::nullable("int", DataType::Int),
        Field::nullable("struct", DataType::String),
        Field::nullable("not", DataType::Boolean),
    ];
    assert_eq!(schema.fields(), expected);
    assert_eq!(schema.to_string(), "a INT, `b ``c` STRING NOT NULL, int INT, struct STRING, not BOOLEAN");
}

#[test]
fn a_schema_may_be_written_as_one_struct_or_be_empty() {
    assert_eq!(Schema::parse("struct<a: int, b string>").unwrap(), Schema::parse("a INT, b STRING").unwrap());
    assert!(Schema::parse("").unwrap().is_empty());
    assert!(Schema::parse(" STRUCT < > ").unwrap().is_empty());
}

#[test]
fn errors_say_where_and_what() {
    let cases = [
        ("a", "character 2 (``): expected a type, found the end"),
        ("a INT b INT", "character 7 (`b INT`): expected `,` or the end, found `b`"),
        ("a INT,", "character 7 (``): expected a column name"),
        ("ä INT, b FOO", "character 10 (`FOO`): there is no type FOO; there are BOOLEAN"),
        ("a ARRAY<INT", "expected `>`, found the end"),
        ("a MAP<INT>", "expected `,`, found `>`"),
        ("a INT NOT", "expected NULL after NOT, found the end"),
        ("a-b INT", "expected a type, found `-`"),
        ("`a INT", "the back-quoted name has no end"),
        ("a INT COMMENT 'b", "the quoted text has no end"),
        ("a DECIMAL(300,0)", "the number is too large"),
        ("a DECIMAL(39,0)", "DECIMAL(39,0) is out of range"),
        ("a DECIMAL(5,6)", "DECIMAL(5,6) is out of range"),
        ("a INT, A STRING", "column `A` is there twice"),
        ("s STRUCT<x: INT, X: INT>", "column `X` is there twice"),
        ("a INTERVAL", "the type INTERVAL is not supported; use BIGINT"),
        ("a VARCHAR(10)", "the type VARCHAR is not supported; use STRING"),
        ("a timestamp_ntz", "the type TIMESTAMP_NTZ is not supported; use TIMESTAMP"),
        ("a MAP<MAP<INT, INT>, INT>", "the key of a MAP cannot hold a MAP"),
    ];
    for (ddl, message) in cases {
        let error = Schema::parse(ddl).unwrap_err();
        assert_eq!(error.code(), "INVALID_SCHEMA", "{ddl}");
        let text = error.to_string();
        assert!(text.contains(message), "{ddl}: {text}");
    }
}

#[test]
fn columns_are_found_and_projected_without_regard_to_case() {
    let schema = Schema::parse("Ä INT, b STRING, c DATE").unwrap();
    assert_eq!(schema.index_of("ä"), Some(0));
    assert_eq!(schema.project(["C", "b"]).unwrap().to_string(), "c DATE, b STRING");
    let error = schema.project(["d"]).unwrap_err();
    assert_eq!(error.code(), "UNRESOLVED_COLUMN.WITH_SUGGESTION");
    assert_eq!(error.to_string(), "there is no column `d`; there are: Ä, b, c");
    assert!(schema.project(["b", "B"]).is_err());
}
