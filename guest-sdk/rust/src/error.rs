//! The one error type of a processor.

use std::fmt;

/// `Result` with the SDK's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a handler gave up: a misuse that the SDK or the host found, or an error of the author's own.
///
/// Every `std::error::Error` converts into it by `?`, with the code `USER_CODE`; [`Error::new`] makes one with a code
/// that the users of the processor can match on.
pub struct Error(Box<Body>);

// Boxed, so that a `Result` of a small value stays small on the path of every row.
struct Body {
    code: String,
    message: String,
    group: Option<u32>,
}

/// Code of errors that carry none of their own.
pub(crate) const USER_CODE: &str = "USER_CODE";

impl Error {
    /// An error with a stable code in SCREAMING_SNAKE_CASE and a message for people.
    #[cold]
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self(Box::new(Body { code: code.into(), message: message.into(), group: None }))
    }

    /// An error of the author's own, without a code: `Error::msg("no price for this day")`.
    #[cold]
    pub fn msg(message: impl fmt::Display) -> Self {
        Self::new(USER_CODE, message.to_string())
    }

    /// Stable code, e.g. `ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE`.
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// What happened.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The group whose op failed, where that is not the group in hand.
    pub(crate) fn group(&self) -> Option<u32> {
        self.0.group
    }

    pub(crate) fn of_group(mut self, group: Option<u32>) -> Self {
        self.0.group = group;
        self
    }

    /// The same error, with the place in a row where it was found.
    #[doc(hidden)]
    #[cold]
    pub fn at(mut self, column: &str) -> Self {
        let inner = std::mem::take(&mut self.0.message);
        self.0.message = match inner.strip_prefix("column `") {
            Some(rest) => format!("column `{column}.{rest}"),
            None => format!("column `{column}`: {inner}"),
        };
        self
    }

    /// The same error once more, for a fault that is raised at the author's line and again at the end of the call.
    pub(crate) fn repeated(&self) -> Self {
        Self::new(self.code(), self.message()).of_group(self.group())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.message())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}

// `Error` is no `std::error::Error` itself, or this would overlap with the conversion of a type into itself.
impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::new(USER_CODE, message)
    }
}

/// Codes of the misuse that the SDK itself finds. Those of Spark keep Spark's names.
pub(crate) mod code {
    pub(crate) const INVALID_HANDLE_STATE: &str =
        "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_HANDLE_STATE";
    pub(crate) const INVALID_TIME_MODE: &str = "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_TIME_MODE";
    pub(crate) const EMPTY_LIST_VALUE: &str = "ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE";
    pub(crate) const NULL_VALUE: &str = "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE";
    pub(crate) const MALFORMED_ROW: &str = "MALFORMED_ROW";
    pub(crate) const SCHEMA_MISMATCH: &str = "SCHEMA_MISMATCH";
    pub(crate) const INITIAL_STATE_NOT_HANDLED: &str = "INITIAL_STATE_NOT_HANDLED";
}
