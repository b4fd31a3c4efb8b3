//! A directory of files as a sink: one file per batch that emitted rows, each visible whole or not at all.
//!
//! A file's name comes from the batch id alone. Its bytes go to a hidden file in the same directory first, so that the
//! directory may stand on another file system than the checkpoint; then: sync, rename, sync of the directory, and the
//! ledger, a hidden file, the same way. Whoever reads the directory must leave out names that begin with a dot. Files may
//! be taken away once the ledger is at or past their batch.
//!
//! Invariants:
//! - The ledger never speaks of a batch whose file is not durable.
//! - A file that is there is never replaced: with the same bytes it counts as done, else the sink has diverged.
//! - Nothing is written to a directory that is not empty and has no ledger of this query.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::SchemaRef;
use serde::{Deserialize, Serialize};

use super::encoding::{Encoding, Rows};
use super::error::WriteError;
use super::format::Format;
use super::text::TextFormat;
use crate::disk::{Disk, create_dir_durably, write_durably};
use crate::engine::sink::{Ledger, Publication, Published, Sink, SinkError, Staged, Trace, Undo, Withdrawal};
use crate::record::Schema;

/// The ledger's name.
pub(super) const LEDGER_NAME: &str = ".tidemill-ledger.json";

/// Between format and path.
const DESCRIPTION: &str = " files in ";

/// Version of the ledger's form.
const LEDGER_VERSION: u32 = 1;

/// Bytes copied or compared at a time.
const COPY_BYTES: usize = 256 << 10;

/// A directory of files.
#[derive(Debug)]
pub struct DirectorySink {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    format: Format,
    encoding: Encoding,
    schema: Option<SchemaRef>,
    query_id: String,
    /// Batches whose files were there at opening although the ledger does not have them yet. There is at most one after a
    /// crash, that of the batch that is published next.
    ahead_of_ledger: Vec<u64>,
}

/// What the ledger file holds.
#[derive(Debug, Serialize, Deserialize)]
struct LedgerFile {
    version: u32,
    query_id: String,
    /// The last rollback that the directory has followed, or a later one: that of the last batch.
    generation: u32,
    /// None until the first batch: the directory is taken, and nothing is published.
    published: Option<Ledger>,
}

impl DirectorySink {
    /// Writes nothing yet. `encoding` must be that of the format.
    ///
    /// # Errors
    /// A path that cannot be made absolute.
    pub fn new(disk: Arc<dyn Disk>, path: &Path, format: Format, encoding: Encoding) -> Result<Self, WriteError> {
        let path = std::path::absolute(path).map_err(|error| WriteError::failed(path, error))?;
        let (query_id, ahead_of_ledger) = (String::new(), Vec::new());
        Ok(Self { disk, path, format, encoding, schema: None, query_id, ahead_of_ledger })
    }

    /// The sink that [`Sink::describe`] described. None: that was no directory.
    #[must_use]
    pub fn described(disk: Arc<dyn Disk>, description: &str) -> Option<Self> {
        let (format, path) = description.split_once(DESCRIPTION)?;
        let format = [Format::Jsonl, Format::Csv, Format::Parquet].into_iter().find(|f| f.to_string() == format)?;
        // Nothing is encoded by a sink that only takes back.
        Self::new(disk, Path::new(path), format, Encoding::Text(TextFormat::JsonLines)).ok()
    }

    /// Takes the directory.
    fn take(&mut self, query_id: &str) -> Result<(), WriteError> {
        create_dir_durably(self.disk.as_ref(), &self.path).map_err(|error| WriteError::failed(&self.path, error))?;
        let entries = self.disk.list(&self.path).map_err(|error| WriteError::failed(&self.path, error))?;
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        let batches: Vec<u64> = names.iter().filter_map(|name| self.batch_of(name)).collect();
        let ledger = match self.read_ledger()? {
            // Another query took the directory but never published anything.
            Some(LedgerFile { published: None, query_id: owner, .. }) if owner != query_id && batches.is_empty() => {
                self.write_ledger(query_id, 0, None)?
            }
            Some(ledger) => ledger,
            None => {
                self.refuse_foreign_files(&names)?;
                self.write_ledger(query_id, 0, None)?
            }
        };
        self.check_owner(&ledger, query_id)?;
        for name in names.iter().filter(|name| self.is_unfinished(name)) {
            let path = self.path.join(name);
            self.disk.remove_file(&path).map_err(|error| WriteError::failed(&path, error))?;
        }
        let published = ledger.published.map(|ledger| ledger.batch_id);
        self.ahead_of_ledger = batches.into_iter().filter(|batch| published.is_none_or(|last| *batch > last)).collect();
        query_id.clone_into(&mut self.query_id);
        Ok(())
    }

    fn refuse_foreign_files(&self, names: &[&str]) -> Result<(), WriteError> {
        let Some(found) = names.iter().find(|name| !name.starts_with('.')) else { return Ok(()) };
        if self.batch_of(found).is_some() {
            return Err(WriteError::diverged(
                &self.path,
                format!("it holds {found}, but its ledger {LEDGER_NAME} is gone. Restore it, or use another directory"),
            ));
        }
        Err(WriteError::NotEmpty { path: self.path.clone(), found: (*found).to_owned() })
    }

    fn check_owner(&self, ledger: &LedgerFile, query_id: &str) -> Result<(), WriteError> {
        if ledger.query_id == query_id {
            return Ok(());
        }
        let (owner, query_id) = (ledger.query_id.clone(), query_id.to_owned());
        Err(WriteError::OfAnotherQuery { path: self.path.clone(), owner, query_id })
    }

    /// Makes a batch visible, then advances the ledger.
    fn publish_batch(&mut self, entry: &Ledger, staged: &Staged) -> Result<(), WriteError> {
        let ledger = self.own_ledger()?;
        if ledger.generation > entry.generation {
            return Err(self.rolled_back(ledger.generation, entry.generation));
        }
        if let Some(last) = &ledger.published
            && last.batch_id >= entry.batch_id
        {
            return if last == entry { Ok(()) } else { Err(self.behind(last, entry)) };
        }
        if let Some(batch) = self.ahead_of_ledger.iter().find(|batch| **batch != entry.batch_id) {
            let (name, next) = (self.name_of(*batch), entry.batch_id);
            return Err(WriteError::diverged(
                &self.path,
                format!(
                    "it holds {name}, but the next batch of the log with output is {next}. Is this an older copy of the \
                     checkpoint? Use the newest one, or another directory"
                ),
            ));
        }
        let target = self.path.join(self.name_of(entry.batch_id));
        let failed = |error| WriteError::failed(&target, error);
        if !self.disk.exists(&target).map_err(failed)? {
            self.put(staged, &target).map_err(failed)?;
        } else if !self.is_same(staged, &target).map_err(failed)? {
            let batch_id = entry.batch_id;
            return Err(WriteError::diverged(
                &target,
                format!(
                    "it is there with other bytes than batch {batch_id} of the log has. Move it away to publish the batch"
                ),
            ));
        }
        self.disk.sync_dir(&self.path).map_err(failed)?;
        self.write_ledger(&self.query_id, entry.generation, Some(entry.clone()))?;
        self.ahead_of_ledger.clear();
        Ok(())
    }

    fn own_ledger(&self) -> Result<LedgerFile, WriteError> {
        let ledger = self.read_ledger()?.ok_or_else(|| {
            WriteError::diverged(
                &self.path,
                format!("its ledger {LEDGER_NAME} is gone. Restore it, or use another directory"),
            )
        })?;
        self.check_owner(&ledger, &self.query_id)?;
        Ok(ledger)
    }

    fn rolled_back(&self, there: u32, here: u32) -> WriteError {
        WriteError::diverged(
            &self.path,
            format!(
                "its ledger is of generation {there}, this checkpoint of {here}: another copy of the checkpoint was rolled back. \
                 Use that one, or another directory"
            ),
        )
    }

    /// Takes back what a rollback wants back, then notes its generation.
    fn follow(&mut self, withdrawal: &Withdrawal) -> Result<(), WriteError> {
        let Some(ledger) = self.read_ledger()? else { return Ok(()) };
        self.check_owner(&ledger, &withdrawal.query_id)?;
        if ledger.generation >= withdrawal.generation {
            return Ok(());
        }
        let published = match (&withdrawal.undo, ledger.published) {
            (None, published) => published,
            (Some(undo), published) => {
                if let Some(last) = &published {
                    self.check_known(last, undo)?;
                }
                for entry in &undo.batches {
                    let path = self.path.join(self.name_of(entry.batch_id));
                    let failed = |error| WriteError::failed(&path, error);
                    if self.disk.exists(&path).map_err(failed)? {
                        self.disk.remove_file(&path).map_err(failed)?;
                    }
                }
                self.disk.sync_dir(&self.path).map_err(|error| WriteError::failed(&self.path, error))?;
                undo.published.clone()
            }
        };
        self.write_ledger(&withdrawal.query_id, withdrawal.generation, published)?;
        self.ahead_of_ledger.retain(|batch| *batch > withdrawal.last_batch);
        Ok(())
    }

    /// What was published last must be something that the log knows.
    fn check_known(&self, last: &Ledger, undo: &Undo) -> Result<(), WriteError> {
        let is_kept = undo.published.as_ref().is_some_and(|kept| last.batch_id <= kept.batch_id);
        if is_kept || undo.batches.iter().any(|entry| entry == last) {
            return Ok(());
        }
        Err(WriteError::diverged(
            &self.path,
            format!(
                "its ledger has batch {} with rows that the log does not know. Does another copy of the checkpoint write to \
                 it? Use that one, or another directory",
                last.batch_id
            ),
        ))
    }

    fn behind(&self, last: &Ledger, entry: &Ledger) -> WriteError {
        let Ledger { batch_id, generation, .. } = last;
        let detail = if *batch_id == entry.batch_id && *generation == entry.generation {
            format!("its ledger has batch {batch_id} with other rows than the log")
        } else {
            format!("its ledger is at batch {batch_id} of generation {generation}, the log at batch {}", entry.batch_id)
        };
        WriteError::diverged(
            &self.path,
            detail + ". Does another copy of the checkpoint write to it? Use that one, or another directory",
        )
    }

    /// Copies the staged bytes under the name of the batch. The directory is not synced yet.
    fn put(&self, staged: &Staged, target: &Path) -> io::Result<()> {
        let hidden = self.path.join(format!(".{}.tmp", file_name(target)));
        if self.disk.exists(&hidden)? {
            self.disk.remove_file(&hidden)?;
        }
        let mut file = self.disk.create_new(&hidden)?;
        match staged {
            Staged::Inline(bytes) => file.write_all(bytes)?,
            Staged::File(path) => {
                let mut from = self.disk.open(path)?;
                let mut chunk = vec![0; COPY_BYTES];
                loop {
                    match read_full(&mut from, &mut chunk)? {
                        [] => break,
                        bytes => file.write_all(bytes)?,
                    }
                }
            }
        }
        file.sync()?;
        drop(file);
        self.disk.rename(&hidden, target)
    }

    fn is_same(&self, staged: &Staged, target: &Path) -> io::Result<bool> {
        let mut there = self.disk.open(target)?;
        let mut wanted: Box<dyn Read + '_> = match staged {
            Staged::Inline(bytes) => Box::new(bytes.as_slice()),
            Staged::File(path) => Box::new(self.disk.open(path)?),
        };
        let (mut one, mut other) = (vec![0; COPY_BYTES], vec![0; COPY_BYTES]);
        loop {
            let (one, other) = (read_full(&mut wanted, &mut one)?, read_full(&mut there, &mut other)?);
            if one != other {
                return Ok(false);
            }
            if one.is_empty() {
                return Ok(true);
            }
        }
    }

    fn read_ledger(&self) -> Result<Option<LedgerFile>, WriteError> {
        let path = self.path.join(LEDGER_NAME);
        let bytes = match self.disk.read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(|error| WriteError::failed(&path, error))?,
        };
        let damaged = |problem: String| WriteError::Ledger { path: path.clone(), problem };
        let ledger: LedgerFile = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if ledger.version != LEDGER_VERSION {
            return Err(damaged(format!(
                "it has version {}, this tidemill knows version {LEDGER_VERSION}",
                ledger.version
            )));
        }
        Ok(Some(ledger))
    }

    fn write_ledger(
        &self,
        query_id: &str,
        generation: u32,
        published: Option<Ledger>,
    ) -> Result<LedgerFile, WriteError> {
        let path = self.path.join(LEDGER_NAME);
        let ledger = LedgerFile { version: LEDGER_VERSION, query_id: query_id.to_owned(), generation, published };
        let bytes =
            serde_json::to_vec(&ledger).map_err(|error| WriteError::defect(&path.display().to_string(), error))?;
        write_durably(self.disk.as_ref(), &path, &bytes).map_err(|error| WriteError::failed(&path, error))?;
        Ok(ledger)
    }

    /// Twenty digits hold every batch id, so that names sort as batches do.
    fn name_of(&self, batch_id: u64) -> String {
        format!("part-{batch_id:020}.{}", self.format.ending())
    }

    fn batch_of(&self, name: &str) -> Option<u64> {
        let (digits, _ending) = name.strip_prefix("part-")?.split_once('.')?;
        (digits.len() == 20).then(|| digits.parse().ok())?
    }

    /// Whether a crash left this file behind.
    fn is_unfinished(&self, name: &str) -> bool {
        name.strip_prefix('.')
            .and_then(|name| name.strip_suffix(".tmp"))
            .is_some_and(|name| self.batch_of(name).is_some())
    }
}

impl Sink for DirectorySink {
    fn describe(&self) -> String {
        format!("{}{DESCRIPTION}{}", self.format, self.path.display())
    }

    fn open(&mut self, query_id: &str, schema: &Schema) -> Result<(), SinkError> {
        let schema = schema.to_arrow();
        self.encoding.check(&schema)?;
        self.take(query_id)?;
        self.schema = Some(schema);
        Ok(())
    }

    fn published(&self) -> Result<Published, SinkError> {
        Ok(match self.own_ledger()?.published {
            None => Published::Nothing,
            Some(ledger) => Published::UpTo(ledger),
        })
    }

    fn encode(&self, rows: Rows<'_>, out: &mut dyn io::Write) -> Result<(), SinkError> {
        let schema = self.schema.as_ref().ok_or_else(|| WriteError::defect(&self.describe(), "it was not opened"))?;
        let preamble = self.encoding.preamble(schema);
        out.write_all(preamble.as_bytes())
            .map_err(|error| WriteError::failed(Path::new("the staged output"), error))?;
        self.encoding.write_rows(schema, rows, out)
    }

    fn publish(&mut self, publication: &Publication<'_>) -> Result<(), SinkError> {
        Ok(self.publish_batch(publication.entry, publication.staged)?)
    }

    fn trace(&self, query_id: &str, batches: &[u64]) -> Result<Option<Trace>, SinkError> {
        let Some(ledger) = self.read_ledger()? else {
            return Ok(Some(Trace { places: Vec::new(), missing: vec!["everything".to_owned()] }));
        };
        self.check_owner(&ledger, query_id)?;
        let published = ledger.published.map(|ledger| ledger.batch_id);
        let mut trace = Trace::default();
        for batch in batches {
            let name = self.name_of(*batch);
            let path = self.path.join(&name);
            if self.disk.exists(&path).map_err(|error| WriteError::failed(&path, error))? {
                trace.places.push(path.display().to_string());
            } else if published >= Some(*batch) {
                trace.missing.push(name);
            }
        }
        Ok(Some(trace))
    }

    fn withdraw(&mut self, withdrawal: &Withdrawal) -> Result<(), SinkError> {
        Ok(self.follow(withdrawal)?)
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Fills the buffer as far as the input reaches.
fn read_full<'b>(input: &mut dyn Read, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(buffer.get(..filled).unwrap_or_default())
}

#[cfg(test)]
mod tests;
