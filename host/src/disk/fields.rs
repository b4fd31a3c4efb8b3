//! Fields of fixed length in the headers of our files, and their checksums. All integers are little-endian.

/// CRC-32 of these bytes, begun with a seed: what it covers beside them.
pub(crate) fn crc(seed: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(seed);
    hasher.update(bytes);
    hasher.finalize()
}

/// Reads fields one behind the other. Behind the end they are zero, which no checksum fits.
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn take<const N: usize>(&mut self) -> [u8; N] {
        let field = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N]);
        self.at += N;
        field
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    /// Whether the next field is the checksum of all before it.
    pub(crate) fn crc_is_right(&mut self, seed: u32) -> bool {
        let expected = crc(seed, self.bytes.get(..self.at).unwrap_or_default());
        self.u32() == expected
    }
}
