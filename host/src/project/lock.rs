//! One process at a time: for folders that several builds may want to make.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use super::command::Stop;
use super::error::ProjectError;

const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Waits until nobody else has the lock; it is free again when the answer is dropped, or its process is gone.
pub(super) fn lock(path: &Path, stop: &Stop) -> Result<File, ProjectError> {
    let file = File::options().create(true).append(true).open(path).map_err(ProjectError::file(path))?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if stop.wait(LOOK_INTERVAL) => return Err(ProjectError::Interrupted),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(ProjectError::file(path)(error)),
        }
    }
}
