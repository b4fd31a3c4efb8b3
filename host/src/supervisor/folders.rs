//! The folders of a query: who makes them, who may write to them.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use crate::disk::{Disk, RealDisk, create_dir_durably};
use crate::ipc::worker::{INGEST, QUERIES, QueryFolders};

/// Whoever may pass the data folder may look, and nobody else: that is its owner's alone.
const MODE: u32 = 0o755;

/// Makes the folders of a query, durably. What a worker writes belongs to the worker's user; what it only reads, to the
/// server's.
///
/// # Errors
/// What the disk says.
pub fn make_folders(tenant_folder: &Path, query: &str, user: Option<u32>) -> io::Result<()> {
    let QueryFolders { ingest, checkpoint, results } = QueryFolders::of(query);
    let own = Path::new(QUERIES).join(query);
    for folder in [Path::new(INGEST), &ingest, Path::new(QUERIES), &own, &checkpoint, &results] {
        let folder = tenant_folder.join(folder);
        create_dir_durably(&RealDisk, &folder)?;
        fs::set_permissions(&folder, Permissions::from_mode(MODE))?;
    }
    for folder in [&own, &checkpoint, &results] {
        let folder = tenant_folder.join(folder);
        user.map_or(Ok(()), |user| chown(folder, Some(user), Some(user)))?;
    }
    Ok(())
}

/// Removes the folders of a query that nobody has open.
///
/// # Errors
/// What the disk says; a part may be gone then.
pub fn remove_folders(tenant_folder: &Path, query: &str) -> io::Result<()> {
    for folder in [Path::new(QUERIES).join(query), Path::new(INGEST).join(query)] {
        let folder = tenant_folder.join(folder);
        if RealDisk.exists(&folder)? {
            RealDisk.remove_dir_all(&folder)?;
        }
    }
    Ok(())
}
