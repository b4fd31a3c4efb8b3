//! `format.json`: which version of the layout a data folder has.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::DataError;
use crate::disk::{RealDisk, write_durably};

/// The layout that this program writes, and the newest that it reads.
const FORMAT: u64 = 1;

/// What may stand in a folder before its `format.json` does.
const BEFORE_FORMAT: [&str; 2] = ["lock", ".format.json.tmp"];

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Format {
    format: u64,
    /// The version of the program that made the folder.
    created_by: String,
}

/// Makes sure that the folder is one of ours, or empty; answers whether it is one already.
pub(super) fn check(root: &Path) -> Result<bool, DataError> {
    let path = root.join("format.json");
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return is_empty(root).map(|()| false),
        Err(error) => return Err(DataError::Disk(error)),
    };
    let found: Format = serde_json::from_slice(&text)
        .map_err(|_| DataError::Damaged { path, defect: "it is no description of a format" })?;
    if found.format > FORMAT {
        return Err(DataError::VersionUnsupported {
            root: root.to_owned(),
            format: found.format,
            created_by: found.created_by,
            supported: FORMAT,
        });
    }
    Ok(true)
}

fn is_empty(root: &Path) -> Result<(), DataError> {
    for entry in fs::read_dir(root).map_err(DataError::Disk)? {
        let name = entry.map_err(DataError::Disk)?.file_name().to_string_lossy().into_owned();
        if !BEFORE_FORMAT.contains(&name.as_str()) {
            return Err(DataError::NotEmpty { root: root.to_owned(), found: name });
        }
    }
    Ok(())
}

/// Makes an empty folder ours.
pub(super) fn begin(root: &Path) -> Result<(), DataError> {
    let format = Format { format: FORMAT, created_by: env!("CARGO_PKG_VERSION").to_owned() };
    let text = serde_json::to_vec(&format).map_err(|error| DataError::Disk(error.into()))?;
    write_durably(&RealDisk, &root.join("format.json"), &text).map_err(DataError::Disk)
}
