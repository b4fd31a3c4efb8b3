//! Disks for tests: they record what a run made durable, rebuild the disk as a power loss leaves it, and fail on
//! demand.
//!
//! A crash test stacks [`FaultyDisk`] over [`RecordingDisk`] over [`RealDisk`](super::RealDisk) on scratch folders, runs
//! once, and for every operation rebuilds and recovers:
//!
//! ```
//! use std::sync::Arc;
//! use tidemill_host::disk::testing::{Loss, RecordingDisk};
//! use tidemill_host::disk::{Disk, write_durably};
//!
//! let (scratch, rebuilt) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! let disk = RecordingDisk::over(&[scratch.path()])?;
//! write_durably(&disk, &scratch.path().join("ledger"), b"7")?;
//! for point in 0..=disk.operations() {
//!     disk.rebuild(point, Loss::Random { seed: 1 }, &[&rebuilt.path().join(point.to_string())])?;
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Nothing of the product uses these.

mod crash;
mod faulty;
mod recording;

pub use crash::Loss;
pub use faulty::{Failure, FaultyDisk, SyncKind};
pub use recording::RecordingDisk;

#[cfg(test)]
mod tests;
