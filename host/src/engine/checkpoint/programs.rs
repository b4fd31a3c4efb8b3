//! The programs that retained batches ran, so that those can be replayed after an upgrade: `components/<digest>.wasm`.

use std::io;
use std::path::Path;

use crate::disk::{Disk, write_durably};

const IDENTITY_PREFIX: &str = "sha256:";
const DIGEST_CHARS: usize = 64;
const SUFFIX: &str = ".wasm";

/// Keeps a program, durably, unless it is kept already. One without digest has no name to be kept under.
pub(super) fn keep(disk: &dyn Disk, dir: &Path, identity: &str, program: &[u8]) -> io::Result<()> {
    let Some(name) = file_name(identity) else { return Ok(()) };
    let path = dir.join(name);
    if disk.exists(&path)? { Ok(()) } else { write_durably(disk, &path, program) }
}

/// A program, if it is kept.
pub(super) fn read(disk: &dyn Disk, dir: &Path, identity: &str) -> io::Result<Option<Vec<u8>>> {
    let Some(name) = file_name(identity) else { return Ok(None) };
    let path = dir.join(name);
    if disk.exists(&path)? { disk.read(&path).map(Some) } else { Ok(None) }
}

/// Removes all programs but these.
pub(super) fn retain(disk: &dyn Disk, dir: &Path, identities: &[&str]) -> io::Result<()> {
    let names: Vec<String> = identities.iter().filter_map(|identity| file_name(identity)).collect();
    let mut removed = false;
    for entry in disk.list(dir)?.into_iter().filter(|entry| !names.contains(&entry.name)) {
        disk.remove_file(&dir.join(&entry.name))?;
        removed = true;
    }
    if removed { disk.sync_dir(dir) } else { Ok(()) }
}

/// Identities stand in records, so nothing but a digest becomes part of a path.
fn file_name(identity: &str) -> Option<String> {
    let digest = identity.strip_prefix(IDENTITY_PREFIX)?;
    let is_digest = digest.len() == DIGEST_CHARS && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| format!("{digest}{SUFFIX}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    fn identity(digit: &str) -> String {
        format!("sha256:{}", digit.repeat(DIGEST_CHARS))
    }

    #[test]
    fn a_program_is_read_as_it_was_kept_until_no_batch_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        for digit in ["a", "b"] {
            keep(&RealDisk, folder.path(), &identity(digit), digit.as_bytes()).unwrap();
        }
        keep(&RealDisk, folder.path(), &identity("a"), b"is there already").unwrap();
        assert_eq!(read(&RealDisk, folder.path(), &identity("a")).unwrap().unwrap(), b"a");

        retain(&RealDisk, folder.path(), &[&identity("b"), "native"]).unwrap();

        assert_eq!(read(&RealDisk, folder.path(), &identity("a")).unwrap(), None);
        assert_eq!(read(&RealDisk, folder.path(), &identity("b")).unwrap().unwrap(), b"b");
    }

    #[test]
    fn only_a_digest_names_a_file() {
        assert_eq!(file_name("native count"), None);
        assert_eq!(file_name("sha256:../../x"), None);
        assert_eq!(file_name(&format!("sha256:{}", "/".repeat(DIGEST_CHARS))), None);
    }
}
