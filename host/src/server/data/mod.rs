//! The data folder: everything that a server keeps, for one server at a time.
//!
//! ```text
//! DIR/lock               held for the life of the server
//! DIR/format.json        which version of this layout it is
//! DIR/secret.key         authenticates native code
//! DIR/meta.redb          metadata
//! DIR/first-token        the first platform admin's token
//! DIR/tmp/               emptied at each start
//! DIR/components/        uploaded components
//! DIR/native/            their native code
//! DIR/tenants/TENANT/queries/QUERY/{ingest,checkpoint,results}/
//! ```
//! Only ids and digests become names in it, never what a person wrote.

mod error;
mod format;

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::id::{Id, fill_random};
use crate::disk::{RealDisk, create_dir_durably, write_durably};
pub use error::DataError;

/// The folder, held by this process until it is dropped.
#[derive(Debug)]
pub struct DataFolder {
    root: PathBuf,
    secret: SecretKey,
    _lock: File,
}

/// The key that native code is authenticated with.
#[derive(Clone)]
pub struct SecretKey([u8; 32]);

impl SecretKey {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretKey")
    }
}

impl DataFolder {
    /// Takes the folder; makes what is missing of it.
    ///
    /// # Errors
    /// Another server has it; it holds something else; it was written by a newer version; the disk says no.
    pub fn open(root: &Path) -> Result<Self, DataError> {
        // Workers have another working directory.
        let root = &std::path::absolute(root).map_err(DataError::Disk)?;
        create_dir_durably(&RealDisk, root).map_err(DataError::Disk)?;
        // Before anything is written, the lock included, the folder is known to be ours.
        let begun = format::check(root)?;
        let lock = lock(root)?;
        if !begun {
            format::begin(root)?;
        }
        let private = fs::set_permissions(root, Permissions::from_mode(0o700));
        private.map_err(DataError::Disk)?;
        for folder in ["components", "native", "tenants"] {
            create_dir_durably(&RealDisk, &root.join(folder)).map_err(DataError::Disk)?;
        }
        let secret = secret_key(&root.join("secret.key"))?;
        let data = Self { root: root.to_owned(), secret, _lock: lock };
        data.empty_tmp().map_err(DataError::Disk)?;
        Ok(data)
    }

    /// Takes a folder that a server has begun already.
    ///
    /// # Errors
    /// As [`DataFolder::open`]; there is no such folder.
    pub fn open_existing(root: &Path) -> Result<Self, DataError> {
        if !root.join("format.json").exists() {
            return Err(DataError::NotFound { root: root.to_owned() });
        }
        Self::open(root)
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The key of native code.
    pub fn secret(&self) -> &SecretKey {
        &self.secret
    }

    /// The metadata's file.
    pub fn meta(&self) -> PathBuf {
        self.root.join("meta.redb")
    }

    /// Files in the making; a start empties it.
    pub fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// Uploaded components, by digest.
    pub fn components(&self) -> PathBuf {
        self.root.join("components")
    }

    /// Native code, by digest and target.
    pub fn native(&self) -> PathBuf {
        self.root.join("native")
    }

    /// What tenants have, a folder for each.
    pub fn tenants(&self) -> PathBuf {
        self.root.join("tenants")
    }

    /// All that one tenant has.
    pub fn tenant(&self, tenant: &Id) -> PathBuf {
        self.root.join("tenants").join(tenant.as_str())
    }

    /// All that one query has.
    pub fn query(&self, tenant: &Id, query: &Id) -> PathBuf {
        self.tenant(tenant).join("queries").join(query.as_str())
    }

    /// Where the first token stands.
    pub fn first_token(&self) -> PathBuf {
        self.root.join("first-token")
    }

    /// Writes the first token, for its owner's eyes only.
    ///
    /// # Errors
    /// What the disk says.
    pub fn write_first_token(&self, token: &str) -> Result<(), DataError> {
        let path = self.first_token();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(DataError::Disk(error)),
            _ => {}
        }
        let written = private(&path).and_then(|mut file| {
            writeln!(file, "{token}")?;
            file.sync_all()?;
            File::open(&self.root)?.sync_all()
        });
        written.map_err(DataError::Disk)
    }

    fn empty_tmp(&self) -> io::Result<()> {
        let tmp = self.tmp();
        match fs::remove_dir_all(&tmp) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::create_dir(&tmp)
    }
}

fn lock(root: &Path) -> Result<File, DataError> {
    let path = root.join("lock");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let file = options.open(&path).map_err(DataError::Disk)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(DataError::AlreadyRunning { root: root.to_owned() }),
        Err(error) => Err(DataError::Disk(error.into())),
    }
}

/// A file that is made anew and that only its owner may read.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Read, or drawn where there is none. Without the old key native code is compiled again, and nothing else is lost.
fn secret_key(path: &Path) -> Result<SecretKey, DataError> {
    let mut key = [0; 32];
    match File::open(path) {
        Ok(mut file) => {
            let whole = file.metadata().map_err(DataError::Disk)?.len() == 32;
            if !whole {
                return Err(DataError::Damaged { path: path.to_owned(), defect: "it is not 32 bytes long" });
            }
            file.read_exact(&mut key).map_err(DataError::Disk)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fill_random(&mut key).map_err(DataError::Disk)?;
            write_durably(&RealDisk, path, &key).map_err(DataError::Disk)?;
            fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(DataError::Disk)?;
        }
        Err(error) => return Err(DataError::Disk(error)),
    }
    Ok(SecretKey(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_server_is_refused_until_the_first_is_gone() {
        let place = tempfile::tempdir().unwrap();
        let first = DataFolder::open(&place.path().join("data")).unwrap();

        let second = DataFolder::open(&place.path().join("data")).unwrap_err();

        assert_eq!(second.code(), "SERVER_ALREADY_RUNNING");
        drop(first);
        assert!(DataFolder::open(&place.path().join("data")).is_ok());
    }

    #[test]
    fn a_folder_with_something_else_in_it_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("thesis.txt"), "years of work").unwrap();

        let error = DataFolder::open(place.path()).unwrap_err();

        assert_eq!(error.code(), "DATA_NOT_EMPTY");
        assert!(!place.path().join("components").exists());
    }

    #[test]
    fn a_folder_of_a_newer_version_is_refused() {
        let place = tempfile::tempdir().unwrap();
        drop(DataFolder::open(place.path()).unwrap());
        fs::write(place.path().join("format.json"), r#"{"format": 2, "createdBy": "9.0.0"}"#).unwrap();

        let error = DataFolder::open(place.path()).unwrap_err();

        assert_eq!(error.code(), "DATA_VERSION_UNSUPPORTED");
        assert!(error.to_string().contains("9.0.0"), "{error}");
    }

    #[test]
    fn only_the_owner_may_look_and_the_key_stays_the_same() {
        let place = tempfile::tempdir().unwrap();
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let first = DataFolder::open(place.path()).unwrap();
        first.write_first_token("tdm_x").unwrap();
        let key = *first.secret().bytes();
        drop(first);

        let second = DataFolder::open(place.path()).unwrap();

        assert_eq!(*second.secret().bytes(), key);
        assert_eq!(mode(place.path().to_owned()), 0o700);
        assert_eq!(mode(place.path().join("secret.key")), 0o600);
        assert_eq!(mode(place.path().join("first-token")), 0o600);
    }

    #[test]
    fn what_was_in_the_making_is_gone_after_a_start() {
        let place = tempfile::tempdir().unwrap();
        let first = DataFolder::open(place.path()).unwrap();
        fs::write(first.tmp().join("upload"), "half of it").unwrap();
        drop(first);

        let second = DataFolder::open(place.path()).unwrap();

        assert_eq!(fs::read_dir(second.tmp()).unwrap().count(), 0);
    }
}
