//! Rows of a list or map, page by page.

use std::rc::Rc;

use crate::codec::{malformed, read_u32};
use crate::contract::Page;
use crate::error::Result;
use crate::session::Session;

/// Per row: its length, and a word of zeros.
const LENGTH_BYTES: usize = 8;

pub(super) struct Pages {
    session: Rc<Session>,
    page: Page,
    at: usize,
    failed: bool,
}

impl Pages {
    pub(super) fn new(session: Rc<Session>, first: Page) -> Self {
        Self { session, page: first, at: 0, failed: false }
    }

    /// Reads the next row. After an error there is none.
    pub(super) fn next_row<T>(&mut self, read: impl FnOnce(&[u8]) -> Result<T>) -> Option<Result<T>> {
        let row = self.take_row(read);
        self.failed |= row.is_err();
        row.transpose()
    }

    fn take_row<T>(&mut self, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<Option<T>> {
        if self.failed {
            return Ok(None);
        }
        while self.at >= self.page.rows.len() {
            let Some(rest) = self.page.rest else { return Ok(None) };
            self.page = self.session.host.next_page(rest)?;
            self.at = 0;
        }
        let length = read_u32(&self.page.rows, self.at)? as usize;
        let start = self.at + LENGTH_BYTES;
        self.at = start + length;
        read(self.page.rows.get(start..self.at).ok_or_else(malformed)?).map(Some)
    }
}
