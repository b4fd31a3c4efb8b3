//! What can go wrong with state. Every variant has a stable code.

use std::path::PathBuf;

use crate::record::{Difference, FieldChange, Obstacle};

/// A fault of the state layer.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// RocksDB or the file system below it failed.
    #[error("{operation} of the state in {} failed: {message}; check free space, permissions and the disk", path.display())]
    Storage {
        /// Folder of the store.
        path: PathBuf,
        /// What was tried.
        operation: &'static str,
        /// As RocksDB says it.
        message: String,
    },
    /// Another process has the store open.
    #[error("the state in {} is in use by another process: {message}; stop that query first", path.display())]
    Locked {
        /// Folder of the store.
        path: PathBuf,
        /// As RocksDB says it.
        message: String,
    },
    /// Stored bytes that this layer cannot have written, or whose checksum is wrong.
    #[error("the state in {place} is damaged: {message}; recover from an older snapshot")]
    Corrupt {
        /// Folder of the store, or what was read.
        place: String,
        /// What does not fit.
        message: String,
    },
    /// The store was written by another version of this program.
    #[error(
        "the state has format {found}, this program reads format {supported}; use the version of the program that wrote it"
    )]
    Format {
        /// Format found.
        found: String,
        /// Format of this program.
        supported: u32,
    },
    /// A batch or a key outgrew a limit.
    #[error(
        "{what} of {} exceed the limit of {limit}; write less in one batch, or raise limits.state.{name}",
        subject(variable)
    )]
    Limit {
        /// Name of the setting.
        name: &'static str,
        /// What there is too much of, as a plural.
        what: &'static str,
        /// The limit's value.
        limit: u64,
        /// The state variable, where one is concerned.
        variable: Option<String>,
        /// Packed row of the grouping key, where one is concerned.
        key: Option<Vec<u8>>,
    },
    /// A variable is used as what it is not. The layer above checks this; it is not a fault of the author.
    #[error("state variable {variable} cannot be used in this way: {message}")]
    Misuse {
        /// Name or index of the variable.
        variable: String,
        /// What does not fit.
        message: &'static str,
    },
    /// An empty, blank-edged, too long or reserved name.
    #[error("{name:?} cannot name a state variable: {reason}")]
    InvalidName {
        /// The name.
        name: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// A name that begins with `$`.
    #[error("{name:?} cannot name a state variable: names that begin with $ are reserved")]
    ReservedName {
        /// The name.
        name: String,
    },
    /// One name for two variables, or a name both declared and dropped.
    #[error("state variable {name:?} is {conflict}; give each variable a name of its own")]
    DuplicateVariable {
        /// The name.
        name: String,
        /// How it is there twice.
        conflict: &'static str,
    },
    /// The kind is not that of the checkpoint.
    #[error(
        "state variable {name:?} is a {stored} state in the checkpoint and a {declared} state in the processor; \
         use a new name, or drop the old variable with delete-if-exists first"
    )]
    KindChanged {
        /// The variable.
        name: String,
        /// Kind in the checkpoint.
        stored: &'static str,
        /// Kind now declared.
        declared: &'static str,
    },
    /// The key schema of a map is not that of the checkpoint.
    #[error(
        "the key of map state {name:?} is <{stored}> in the checkpoint and <{declared}> in the processor; keys are fixed, \
         in names, types and order: use a new name"
    )]
    KeySchemaChanged {
        /// The variable.
        name: String,
        /// Schema in the checkpoint.
        stored: String,
        /// Schema now declared.
        declared: String,
    },
    /// A value schema that cannot read the rows of an earlier one.
    #[error(
        "the value of state variable {name:?} is <{stored}> in {} and <{declared}> in the processor; {}",
        version(*in_force), listed(differences)
    )]
    ValueSchemaChanged {
        /// The variable.
        name: String,
        /// Whether that schema is the last one, or an earlier one of which rows may still be stored.
        in_force: bool,
        /// Schema in the checkpoint.
        stored: String,
        /// Schema now declared.
        declared: String,
        /// What cannot be, with what to do about it.
        differences: Vec<Difference>,
    },
    /// A value schema more than a variable may have.
    #[error(
        "state variable {name:?} has had {schemas_max} value schemas, which is the most that it may have; go back to one \
         of them, raise limits.state.value_schemas_max, or drop the variable with delete-if-exists"
    )]
    TooManySchemas {
        /// The variable.
        name: String,
        /// The limit.
        schemas_max: u16,
    },
    /// A row that grows out of bounds when it is read by today's schema.
    #[error(
        "a row of schema {schema_id} has more than {bytes_max} bytes in the schema of today; add fewer fields to \
         what its arrays and maps hold, or write it anew under a new name"
    )]
    ConvertedTooLarge {
        /// Schema that the row was written with.
        schema_id: u16,
        /// The limit.
        bytes_max: usize,
    },
    /// A TTL duration that is negative.
    #[error("the TTL of state variable {name:?} must be positive, it is {ttl_ms} ms")]
    TtlNotPositive {
        /// The variable.
        name: String,
        /// The duration.
        ttl_ms: i64,
    },
    /// More variables than a processor may have.
    #[error("the processor declares {variables} state variables, at most {variables_max} are possible")]
    TooManyVariables {
        /// Variables declared or ids used up.
        variables: usize,
        /// The limit.
        variables_max: usize,
    },
}

impl StateError {
    /// The stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Storage { .. } => "STATE_STORAGE_FAILED",
            Self::Locked { .. } => "STATE_LOCKED",
            Self::Corrupt { .. } => "STATE_CORRUPT",
            Self::Format { .. } => "STATE_FORMAT_UNSUPPORTED",
            Self::Limit { .. } => "STATE_LIMIT_EXCEEDED",
            Self::Misuse { .. } => "STATE_MISUSE",
            Self::InvalidName { .. } => "STATE_STORE_CANNOT_USE_COLUMN_FAMILY_WITH_INVALID_NAME",
            Self::ReservedName { .. } => "STATE_STORE_CANNOT_CREATE_COLUMN_FAMILY_WITH_RESERVED_CHARS",
            Self::DuplicateVariable { .. } => "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED",
            Self::KindChanged { .. } => "STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE",
            Self::KeySchemaChanged { .. } => "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
            Self::ValueSchemaChanged { differences, .. } if differences.iter().all(asks_not_null) => {
                "TRANSFORM_WITH_STATE_SCHEMA_MUST_BE_NULLABLE"
            }
            Self::ValueSchemaChanged { .. } => "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION",
            Self::TooManySchemas { .. } => "STATE_STORE_VALUE_SCHEMA_EVOLUTION_THRESHOLD_EXCEEDED",
            Self::ConvertedTooLarge { .. } => "STATE_ROW_TOO_LARGE",
            Self::TtlNotPositive { .. } => "STATEFUL_PROCESSOR_TTL_DURATION_MUST_BE_POSITIVE",
            Self::TooManyVariables { .. } => "STATE_VARIABLES_EXCEEDED",
        }
    }

    /// Damage found in stored bytes; the store that they came from adds its path.
    pub(crate) fn corrupt(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Corrupt { place: place.into(), message: message.into() }
    }
}

fn subject(variable: &Option<String>) -> String {
    variable.as_ref().map_or_else(|| "this batch".to_owned(), |name| format!("state variable {name:?}"))
}

fn version(in_force: bool) -> &'static str {
    if in_force { "the checkpoint" } else { "an earlier version, of which rows may still be stored," }
}

/// The first differences, for a person.
fn listed(differences: &[Difference]) -> String {
    const SHOWN_MAX: usize = 5;
    let shown: Vec<_> = differences.iter().take(SHOWN_MAX).map(ToString::to_string).collect();
    let more = match differences.len().saturating_sub(SHOWN_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("{}{more}", shown.join("; "))
}

fn asks_not_null(difference: &Difference) -> bool {
    use Obstacle::{AddedNotNull, MadeNotNull};
    matches!(difference.change, FieldChange::Refused { obstacle: AddedNotNull | MadeNotNull, .. })
}
