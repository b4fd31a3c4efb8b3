//! What one upload may use up while it is looked at.

use std::time::Duration;

use crate::runtime::Bounds;

/// What one upload may use up while it is compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileLimits {
    /// From the order to the answer.
    pub wall: Duration,
    /// CPU time of the child in seconds.
    pub cpu_seconds: u64,
    /// Memory of the child in bytes: heap, the compiled code, and the memory that `init` uses.
    pub memory_bytes: u64,
    /// How much there may be of everything in the component.
    pub bounds: Bounds,
    /// Fuel for instantiation and `init`.
    pub init_fuel: u64,
    /// Linear memory for instantiation and `init`, in bytes.
    pub init_memory_bytes: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(180),
            cpu_seconds: 120,
            memory_bytes: 1 << 30,
            bounds: Bounds::default(),
            init_fuel: 10_000_000_000,
            init_memory_bytes: 128 << 20,
        }
    }
}
