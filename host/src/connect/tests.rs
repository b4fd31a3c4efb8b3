//! Settings that go together, and those that do not.

use std::io;

use super::*;
use crate::disk::RealDisk;

fn source(toml: &str) -> Result<Box<dyn Source>, &'static str> {
    open_source(&toml::from_str(toml).unwrap(), Box::new(io::empty())).map_err(|error| error.code)
}

fn sink(toml: &str) -> Result<Box<dyn Sink>, &'static str> {
    open_sink(&toml::from_str(toml).unwrap(), Arc::new(RealDisk), Box::new(io::sink())).map_err(|error| error.code)
}

#[test]
fn settings_pick_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    std::fs::write(folder.path().join("a.csv"), "n\n1\n").unwrap();
    std::fs::write(folder.path().join("b.txt"), "{\"n\":1}\n").unwrap();
    for (toml, described, schema) in [
        (format!("path = '{path}/a.csv'"), format!("{path}/a.csv"), "n BIGINT"),
        (format!("path = '{path}'\nschema = 'n INT'"), format!("{path}"), "n INT"),
        (format!("path = '{path}/b.txt'\nformat = 'jsonl'"), format!("{path}/b.txt"), "n BIGINT"),
        ("stdin = true\nschema = 'n INT'".to_owned(), "stdin".to_owned(), "n INT"),
    ] {
        let source = source(&toml).unwrap();
        assert_eq!((source.describe(), source.schema().to_string()), (described, schema.to_owned()));
    }
}

#[test]
fn source_settings_that_do_not_go_together_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    std::fs::write(folder.path().join("b.txt"), "{\"n\":1}\n").unwrap();
    for (toml, code) in [
        (String::new(), "SOURCE_SETTING_INVALID"),
        ("path = 'x'\nstdin = true".to_owned(), "SOURCE_SETTING_INVALID"),
        ("path = 'x'\nskip_committed = true".to_owned(), "SOURCE_SETTING_INVALID"),
        (format!("path = '{path}/b.txt'"), "SOURCE_SETTING_INVALID"),
        (format!("path = '{path}/b.txt'\nformat = 'jsonl'\nheader = true"), "SOURCE_SETTING_INVALID"),
        (format!("path = '{path}/b.txt'\nformat = 'csv'\ndelimiter = '\u{e9}'"), "SOURCE_SETTING_INVALID"),
        (format!("path = '{path}/b.txt'\nformat = 'csv'\nnull_value = ','"), "SOURCE_SETTING_INVALID"),
        (format!("path = '{path}/b.txt'\nformat = 'parquet'"), "SOURCE_UNREADABLE"),
        (format!("path = '{path}/b.txt'\nformat = 'csv'\nschema = 'a ARRAY<INT>'"), "SOURCE_SCHEMA_UNSUPPORTED"),
        (format!("path = '{path}/none'"), "SOURCE_NOT_FOUND"),
        ("stdin = true".to_owned(), "SOURCE_SCHEMA_REQUIRED"),
        ("stdin = true\nformat = 'parquet'\nschema = 'n INT'".to_owned(), "SOURCE_SETTING_INVALID"),
    ] {
        assert_eq!(source(&toml).map(drop), Err(code), "{toml}");
    }
}

#[test]
fn settings_pick_the_sink() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    for (toml, described) in [
        (format!("path = '{path}/x'"), Ok(format!("JSON Lines files in {path}/x"))),
        (format!("path = '{path}/x'\nformat = 'parquet'"), Ok(format!("Parquet files in {path}/x"))),
        ("stdout = true\nformat = 'csv'".to_owned(), Ok("stdout".to_owned())),
        (String::new(), Err("SINK_SETTING_INVALID")),
        ("stdout = true\npath = 'x'".to_owned(), Err("SINK_SETTING_INVALID")),
        ("stdout = true\nformat = 'parquet'".to_owned(), Err("SINK_SETTING_INVALID")),
        ("stdout = true\nnull_value = 'NA'".to_owned(), Err("SINK_SETTING_INVALID")),
    ] {
        assert_eq!(sink(&toml).map(|sink| sink.describe()), described, "{toml}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
