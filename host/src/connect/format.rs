//! File formats, and how files are compressed by their names.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use serde::Deserialize;

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// JSON Lines: one object per line.
    Jsonl,
    /// CSV (RFC 4180), with a header unless said otherwise.
    Csv,
    /// Apache Parquet.
    Parquet,
}

impl Format {
    /// The format that a file's name says, `.gz` and `.zst` aside. None: it says none.
    pub fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let name = [".gz", ".zst"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
        match name.rsplit_once('.')?.1 {
            "jsonl" | "ndjson" | "json" => Some(Self::Jsonl),
            "csv" => Some(Self::Csv),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }

    /// The ending of the names of files that are written.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Jsonl => "JSON Lines",
            Self::Csv => "CSV",
            Self::Parquet => "Parquet",
        })
    }
}

/// How the bytes of a file are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    /// Not at all: a position can be sought.
    None,
    /// gzip, any number of members.
    Gzip,
    /// Zstandard, any number of frames.
    Zstd,
}

impl Compression {
    /// By the ending of the name.
    pub(crate) fn of(path: &Path) -> Self {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => Self::None,
        }
    }

    /// What reads the plain bytes. A file that ends too early fails with `UnexpectedEof`.
    ///
    /// # Errors
    /// Those of the decompressor's making.
    pub(crate) fn reader(self, file: File) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::None => Box::new(file),
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(file))),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::new(file)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_format_and_compression() {
        assert_eq!(Format::of_name("a.b.JSONL"), Some(Format::Jsonl));
        assert_eq!(Format::of_name("a.csv.gz"), Some(Format::Csv));
        assert_eq!(Format::of_name("a.gz"), None);
        assert_eq!(Compression::of(Path::new("/x/a.csv.GZ")), Compression::Gzip);
        assert_eq!(Compression::of(Path::new("/x.gz/a.csv")), Compression::None);
    }
}
