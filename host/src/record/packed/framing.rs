//! Lists of packed rows: per row `length:u32, 0:u32`, then the row.

use super::super::error::FramingError;

/// Bytes before each row.
const HEAD_BYTES: usize = 8;

/// Appends the head of a row and the row.
///
/// A row is shorter than 4 GiB, as everything that makes rows ensures; its length is a multiple of 8.
pub fn push_row(out: &mut Vec<u8>, row: &[u8]) {
    debug_assert!(row.len().is_multiple_of(8), "a packed row is a multiple of 8 bytes");
    out.reserve(HEAD_BYTES + row.len());
    out.extend_from_slice(&(row.len() as u64 & u64::from(u32::MAX)).to_le_bytes());
    out.extend_from_slice(row);
}

/// The rows of a list, strictly read. After an error it ends.
///
/// The rows themselves are not validated.
#[derive(Debug, Clone)]
pub struct PackedRows<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> PackedRows<'a> {
    /// Over a whole list; an empty one has no rows.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn read(&mut self) -> Result<&'a [u8], FramingError> {
        let at = self.at;
        let error = |problem| FramingError { at, problem };
        let rest = self.bytes.get(at..).unwrap_or_default();
        let Some((head, rest)) = rest.split_first_chunk::<HEAD_BYTES>() else {
            return Err(error("less than the 8 bytes of a row's head are left"));
        };
        let head = u64::from_le_bytes(*head);
        let Ok(length) = u32::try_from(head) else {
            return Err(error("the four bytes after a row's length are not zero"));
        };
        let length = length as usize;
        if !length.is_multiple_of(8) {
            return Err(error("a row's length is not a multiple of 8"));
        }
        let row = rest.get(..length).ok_or_else(|| error("a row is longer than what is left"))?;
        self.at = at + HEAD_BYTES + length;
        Ok(row)
    }
}

impl<'a> Iterator for PackedRows<'a> {
    type Item = Result<&'a [u8], FramingError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let row = self.read();
        if row.is_err() {
            self.at = self.bytes.len();
        }
        Some(row)
    }
}

impl std::iter::FusedIterator for PackedRows<'_> {}
