//! Rows to one file that somebody asked for, whole or not at all.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::encoding::{Encoding, Rows};
use super::error::WriteError;
use super::format::Format;
use super::text::TextFormat;
use crate::disk::{Disk, DiskFile};
use crate::engine::sink::SinkError;
use crate::record::Schema;

/// Encoders write a few bytes at a time.
const BUFFER_BYTES: usize = 1 << 18;

/// Writes rows of this schema to a file that must not be there yet, as Parquet or JSON Lines by the ending of its name.
///
/// # Errors
/// `SINK_WRITE_FAILED` for another name, a file that is there, a failing disk; rows that fail.
pub fn write_file(disk: &dyn Disk, path: &Path, schema: &Schema, rows: Rows<'_>) -> Result<(), SinkError> {
    let encoding = match path.extension().and_then(|ending| Format::of_name(&format!(".{}", ending.to_string_lossy())))
    {
        Some(Format::Jsonl) => Encoding::Text(TextFormat::JsonLines),
        Some(Format::Parquet) => Encoding::Parquet,
        Some(Format::Csv) | None => {
            let reason = "its name must end in .jsonl or .parquet, which tells the format";
            return Err(WriteError::failed(path, io::Error::new(io::ErrorKind::InvalidInput, reason)).into());
        }
    };
    let failed = |error| WriteError::failed(path, error);
    let arrow = schema.to_arrow();
    encoding.check(&arrow)?;
    let path = &std::path::absolute(path).map_err(failed)?;
    if disk.exists(path).map_err(failed)? {
        let reason = "it is there already; give another name, or remove it";
        return Err(failed(io::Error::new(io::ErrorKind::AlreadyExists, reason)).into());
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(failed(io::ErrorKind::InvalidInput.into()).into());
    };
    let hidden = folder.join(format!(".{}.tmp", name.to_string_lossy()));
    let mut write = || -> Result<(), SinkError> {
        if disk.exists(&hidden).map_err(failed)? {
            disk.remove_file(&hidden).map_err(failed)?;
        }
        let mut file: BufWriter<Box<dyn DiskFile>> =
            BufWriter::with_capacity(BUFFER_BYTES, disk.create_new(&hidden).map_err(failed)?);
        encoding.write_rows(&arrow, rows, &mut file)?;
        file.flush().and_then(|()| file.get_mut().sync()).map_err(failed)?;
        drop(file);
        disk.rename(&hidden, path).and_then(|()| disk.sync_dir(folder)).map_err(failed)?;
        Ok(())
    };
    write().inspect_err(|_| {
        // What is left of it is in nobody's way.
        drop(disk.remove_file(&hidden));
    })
}
