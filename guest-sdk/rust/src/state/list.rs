//! A list per grouping key.

use std::marker::PhantomData;
use std::rc::Rc;

use super::pages::Pages;
use crate::contract::Variable;
use crate::error::{Error, Result, code};
use crate::ops::{APPLY_AT_BYTES, Code};
use crate::row::{Row, from_packed, to_packed};
use crate::session::{PendingWrites, Session};

/// A list of elements of type `T` per grouping key, in order of insertion.
pub struct ListState<T> {
    session: Rc<Session>,
    variable: Variable,
    pending: PendingWrites,
    row: PhantomData<fn(T) -> T>,
}

impl<T: Row> ListState<T> {
    pub(crate) fn new(session: Rc<Session>, variable: Variable) -> Self {
        Self { session, variable, pending: PendingWrites::default(), row: PhantomData }
    }

    /// The elements, as they are now; what is written while the iterator is read does not show in it.
    pub fn get(&self) -> Result<ListIter<'_, T>> {
        let group = self.session.group("listState.get")?;
        self.pending.apply(&self.session, group)?;
        let first = self.session.host.get_list(self.variable, group)?;
        Ok(ListIter { pages: Pages::new(Rc::clone(&self.session), first), list: PhantomData })
    }

    /// Whether there is an element.
    pub fn exists(&self) -> Result<bool> {
        let group = self.session.group("listState.exists")?;
        self.pending.apply(&self.session, group)?;
        self.session.host.exists(self.variable, group)
    }

    /// Replaces the list. An empty one is refused: that is [`ListState::clear`].
    pub fn put(&self, elements: &[T]) -> Result<()> {
        self.write("listState.put", Code::ListPut, elements)
    }

    /// Adds an element at the end.
    #[inline]
    pub fn append(&self, element: &T) -> Result<()> {
        self.write("listState.appendValue", Code::ListAppend, std::slice::from_ref(element))
    }

    /// Adds elements at the end. An empty list is refused.
    pub fn append_list(&self, elements: &[T]) -> Result<()> {
        self.write("listState.appendList", Code::ListAppend, elements)
    }

    /// Removes all elements.
    pub fn clear(&self) -> Result<()> {
        let group = self.session.group("listState.clear")?;
        self.session.write("listState.clear", Code::Clear, self.variable, |_| Ok(()))?;
        self.pending.note(&self.session, group);
        Ok(())
    }

    fn write(&self, operation: &'static str, first: Code, elements: &[T]) -> Result<()> {
        let group = self.session.group(operation)?;
        if elements.is_empty() {
            return Err(Error::new(
                code::EMPTY_LIST_VALUE,
                format!("`{operation}` with no elements; `clear` removes a list"),
            ));
        }
        let mut code = first;
        let mut left = elements.iter().peekable();
        while left.peek().is_some() {
            // What does not fit one op is appended by the next.
            self.session.write(operation, code, self.variable, |bytes| {
                let start = bytes.len();
                while bytes.len() - start < APPLY_AT_BYTES
                    && let Some(element) = left.next()
                {
                    push_row(element, bytes)?;
                }
                Ok(())
            })?;
            self.pending.note(&self.session, group);
            code = Code::ListAppend;
        }
        Ok(())
    }
}

/// A row with its length before it.
fn push_row<T: Row>(row: &T, bytes: &mut Vec<u8>) -> Result<()> {
    let head = bytes.len();
    bytes.extend_from_slice(&[0; 8]);
    let start = bytes.len();
    to_packed(row, bytes)?;
    let length = (bytes.len() - start) as u64;
    if let Some(slot) = bytes.get_mut(head..).and_then(|rest| rest.first_chunk_mut::<8>()) {
        *slot = length.to_le_bytes();
    }
    Ok(())
}

/// Elements of a list; ends after an error.
pub struct ListIter<'a, T> {
    pages: Pages,
    list: PhantomData<&'a ListState<T>>,
}

impl<T: Row> Iterator for ListIter<'_, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        self.pages.next_row(from_packed)
    }
}
