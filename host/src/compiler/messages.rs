//! What the server and a compiler say to each other: one order, one reply. The component comes with the order and native code
//! with the reply, both as sealed memory.

use serde::{Deserialize, Serialize};

use crate::engine::operator::{OutputMode, TimeMode};
use crate::runtime::Bounds;

/// What a child is started for.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Order {
    /// To say what it compiles for.
    Introduce,
    /// To compile the component that comes with it.
    Compile(Box<Upload>),
}

/// How a component is to be compiled.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Upload {
    /// What it is called in errors.
    pub(super) name: String,
    pub(super) bounds: Bounds,
    pub(super) init_fuel: u64,
    pub(super) init_memory_bytes: u64,
    pub(super) query: Option<InitQuery>,
}

/// The answer of a child.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Reply {
    /// To [`Order::Introduce`].
    Introduced {
        /// What it compiles for.
        target: String,
    },
    /// Native code comes with it.
    Compiled(Box<Description>),
    /// The component is none that runs here.
    Refused { code: String, message: String },
    /// There was no memory, and the child lived to tell.
    OutOfMemory,
}

/// The query that `init` is told of when it is rehearsed. Schemas are DDL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InitQuery {
    /// Columns of the grouping key.
    pub key: String,
    /// Columns of the input.
    pub input: String,
    /// Columns of the initial state, if there is one.
    pub initial_state: Option<String>,
    /// When timers and TTL move.
    pub time_mode: TimeMode,
    /// What emitted rows mean.
    pub output_mode: OutputMode,
    /// The user's settings.
    pub parameters: Vec<(String, String)>,
}

impl Default for InitQuery {
    /// For a component of which no query is known yet: one column, and the time mode that allows everything.
    fn default() -> Self {
        Self {
            key: "key STRING".to_owned(),
            input: "key STRING".to_owned(),
            initial_state: None,
            time_mode: TimeMode::ProcessingTime,
            output_mode: OutputMode::Append,
            parameters: Vec::new(),
        }
    }
}

/// What was found out about a component. Its texts are a stranger's, bounded in length only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// SHA-256 of its bytes, in hex.
    pub digest: String,
    /// Its size.
    pub bytes: u64,
    /// Version of the world that it implements.
    pub world_version: String,
    /// Interfaces that it imports, sorted.
    pub imports: Vec<String>,
    /// Interfaces that it exports, sorted.
    pub exports: Vec<String>,
    /// What it was compiled for: a digest of wasmtime's version, the CPU and the configuration.
    pub target: String,
    /// Size of the native code.
    pub native_bytes: u64,
    /// How long that took, in milliseconds.
    pub compile_ms: u64,
    /// What `init` did.
    pub init: Init,
}

/// What `init` did when it was rehearsed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Init {
    /// It answered.
    Answered(InitAnswer),
    /// It failed by itself, for want of a parameter for instance: worth a warning, as the query to come may have it.
    Failed {
        /// The code that the author gave it.
        code: String,
        /// Why.
        message: String,
    },
}

/// What `init` answered. Schemas are DDL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitAnswer {
    /// Columns of emitted rows.
    pub output: String,
    /// Input columns that it wants; none: all.
    pub columns: Option<String>,
    /// Columns of the initial state that it wants; none: all.
    pub initial_state: Option<String>,
    /// The grouping key as it wants it; none: as it is.
    pub key: Option<String>,
    /// State variables in order of declaration.
    pub variables: Vec<Variable>,
    /// State variables of earlier versions that it drops.
    pub dropped_variables: Vec<String>,
    /// Fuel burnt by instantiation and `init`.
    pub fuel: u64,
    /// Linear memory and tables, in bytes.
    pub memory_bytes: u64,
}

/// A state variable. Schemas are DDL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// `value`, `list` or `map`.
    pub kind: String,
    /// Schema of the keys of a map.
    pub key: Option<String>,
    /// Schema of values, elements or entries.
    pub value: String,
    /// How long after its last write it expires, in milliseconds.
    pub ttl_ms: Option<u64>,
}
