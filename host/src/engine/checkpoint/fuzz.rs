//! The small files of a checkpoint.

#![allow(clippy::unwrap_used, reason = "a fuzzer is told by a panic")]

use std::fs;

use serde_json::{Map, Value};
use tempfile::TempDir;

use super::manifest::{Check, MANIFEST, Manifest};
use super::metadata::{METADATA, Metadata};
use super::sealed::{checksum, seal};
use super::snapshot::SnapshotName;
use crate::disk::RealDisk;

/// Which file, whether its checksum is made right, and the file: what is read is written so that it reads the same.
pub(crate) fn checkpoint_files(bytes: &[u8]) {
    let Some((which, rest)) = bytes.split_first() else { return };
    if let Some(name) = std::str::from_utf8(rest).ok().and_then(|name| name.parse::<SnapshotName>().ok()) {
        assert_eq!(name.to_string().as_bytes(), rest);
    }
    let bytes = match which & 1 {
        0 => rest.to_vec(),
        _ => mended(rest).unwrap_or_else(|| rest.to_vec()),
    };
    let dir = TempDir::new().unwrap();
    if which & 2 == 0 {
        let file = dir.path().join(METADATA);
        fs::write(&file, bytes).unwrap();
        if let Ok(Some(metadata)) = Metadata::read(&RealDisk, dir.path()) {
            fs::write(&file, seal(&metadata).unwrap()).unwrap();
            assert_eq!(Metadata::read(&RealDisk, dir.path()).unwrap(), Some(metadata));
        }
    } else {
        let file = dir.path().join(MANIFEST);
        fs::write(&file, bytes).unwrap();
        if let Ok(manifest) = Manifest::read(&RealDisk, dir.path()) {
            let _ = manifest.check(&RealDisk, dir.path(), Check::Bytes);
            fs::remove_file(&file).unwrap();
            manifest.write(&RealDisk, dir.path()).unwrap();
            assert_eq!(Manifest::read(&RealDisk, dir.path()).unwrap(), manifest);
        }
    }
}

fn mended(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut object: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
    object.remove("checksum");
    let sum = checksum(&object).unwrap();
    object.insert("checksum".to_owned(), sum.into());
    serde_json::to_vec(&object).ok()
}
