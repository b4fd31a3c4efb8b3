//! Bytes in memory that nobody can change any more, handed from process to process as a descriptor.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create};

use super::error::IpcError;

/// Neither written, nor longer, nor shorter, nor unsealed.
const SEALS: SealFlags = SealFlags::WRITE.union(SealFlags::GROW).union(SealFlags::SHRINK).union(SealFlags::SEAL);

/// Sealed bytes. Processes that have it share the memory.
#[derive(Debug)]
pub struct Sealed(File);

impl Sealed {
    /// Copies these bytes and seals the copy.
    ///
    /// # Errors
    /// What the system says.
    pub fn of(bytes: &[u8]) -> std::io::Result<Self> {
        let mut file = File::from(memfd_create("tidemill", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        file.write_all(bytes)?;
        fcntl_add_seals(&file, SEALS)?;
        Ok(Self(file))
    }

    /// Takes what another process handed over, if it is sealed and no larger than this.
    ///
    /// # Errors
    /// [`IpcError::NotSealed`].
    pub fn received(descriptor: OwnedFd, bytes_max: u64) -> Result<Self, IpcError> {
        let refused = |reason: String| IpcError::NotSealed(reason);
        // Anything that is no such memory has no seals.
        let seals = fcntl_get_seals(&descriptor).map_err(|error| refused(error.to_string()))?;
        if !seals.contains(SEALS) {
            return Err(refused("seals are missing".to_owned()));
        }
        let sealed = Self(File::from(descriptor));
        let length = sealed.length()?;
        if length > bytes_max {
            return Err(refused(format!("it has {length} bytes, and {bytes_max} are the most")));
        }
        Ok(sealed)
    }

    /// How many bytes there are. By the one call for it that a child within walls has.
    ///
    /// # Errors
    /// What the system says.
    pub fn length(&self) -> std::io::Result<u64> {
        u64::try_from(fstat(&self.0)?.st_size).map_err(std::io::Error::other)
    }

    /// A copy of the bytes.
    ///
    /// # Errors
    /// What the system says.
    pub fn bytes(&self) -> std::io::Result<Vec<u8>> {
        // The position is the file's, and every process that has it shares that.
        let mut bytes = vec![0; usize::try_from(self.length()?).map_err(std::io::Error::other)?];
        self.0.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

impl AsFd for Sealed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_bytes_are_read_any_number_of_times() {
        let sealed = Sealed::of(b"native code").unwrap();
        assert_eq!(sealed.bytes().unwrap(), b"native code");
        assert_eq!(sealed.bytes().unwrap(), b"native code");
    }

    #[test]
    fn nobody_can_write_to_them() {
        let sealed = Sealed::of(b"code").unwrap();
        let mut file = sealed.0.try_clone().unwrap();
        assert!(file.write_all(b"x").is_err());
        assert!(file.set_len(0).is_err());
    }

    #[test]
    fn what_is_not_sealed_or_too_large_is_refused() {
        let open = memfd_create("open", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        assert!(matches!(Sealed::received(open, 100), Err(IpcError::NotSealed(_))));
        let file = OwnedFd::from(tempfile::tempfile().unwrap());
        assert!(matches!(Sealed::received(file, 100), Err(IpcError::NotSealed(_))));
        let large = OwnedFd::from(Sealed::of(&[0; 101]).unwrap().0);
        assert!(matches!(Sealed::received(large, 100), Err(IpcError::NotSealed(_))));
        let fine = OwnedFd::from(Sealed::of(&[0; 100]).unwrap().0);
        assert_eq!(Sealed::received(fine, 100).unwrap().bytes().unwrap().len(), 100);
    }
}
