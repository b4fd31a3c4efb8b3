//! The one place that configures wasmtime: what guests may use, how they are metered, and how deep they may recurse.
//!
//! Everything that could make the same input give other output is off or pinned: NaN bits are canonical, relaxed SIMD
//! is deterministic, there are no threads, no shared memory and no asynchronous calls. Every proposal that no supported
//! toolchain emits is off as well, since it would only be attack surface.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use wasmtime::{Config, Engine, OptLevel, WasmBacktraceDetails, WasmFeatures};

use super::cache::FunctionStore;
use super::error::ComponentError;

/// How a guest that does not come to an end is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metering {
    /// By wall time, in ticks of [`TICK`]. Nearly free; where exactly a loop stops depends on the machine.
    Epoch,
    /// By instructions. Slower, but the same guest stops at the same instruction everywhere, and what it used can be
    /// billed.
    Fuel,
}

/// Length of an epoch. Deadlines are a multiple of it; 10 ms is far below the shortest sensible deadline and costs one
/// wake-up of one thread.
pub const TICK: Duration = Duration::from_millis(10);

/// Stack of a guest. wasmtime's own default, stated because a deep recursion must end here, as a trap, well before the
/// thread's stack (2 MiB by Rust's default) does.
const WASM_STACK_BYTES: usize = 512 * 1024;

/// wasmtime with the configuration of this host. A process needs one for each [`Metering`] that it uses; compiled
/// components belong to the sandbox that compiled them.
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub(super) engine: Engine,
    /// Where compilations look for functions that were compiled before.
    pub(super) functions: Arc<FunctionStore>,
    metering: Metering,
}

impl Sandbox {
    /// Configures wasmtime, and starts the thread that counts epochs where they are needed.
    ///
    /// # Errors
    /// [`ComponentError::Sandbox`] when this machine cannot run it.
    pub fn new(metering: Metering) -> Result<Self, ComponentError> {
        let functions = Arc::new(FunctionStore::default());
        let mut config = config(metering);
        config.enable_incremental_compilation(Arc::clone(&functions) as _).map_err(unavailable)?;
        Self::start(&config, functions, metering)
    }

    /// For a process that is there to compile one component: it starts no threads for that, and keeps nothing for others.
    /// The code is the same.
    ///
    /// # Errors
    /// As [`Sandbox::new`].
    pub fn single_threaded(metering: Metering) -> Result<Self, ComponentError> {
        let mut config = config(metering);
        config.parallel_compilation(false);
        Self::start(&config, Arc::default(), metering)
    }

    fn start(config: &Config, functions: Arc<FunctionStore>, metering: Metering) -> Result<Self, ComponentError> {
        let engine = Engine::new(config).map_err(unavailable)?;
        if metering == Metering::Epoch {
            count_epochs(&engine)?;
        }
        Ok(Self { engine, functions, metering })
    }

    /// How guests are stopped.
    pub fn metering(&self) -> Metering {
        self.metering
    }
}

fn unavailable(error: wasmtime::Error) -> ComponentError {
    ComponentError::Sandbox(format!("{error:#}"))
}

fn config(metering: Metering) -> Config {
    let mut config = Config::new();

    config.wasm_component_model(true);
    let off = [
        WasmFeatures::EXCEPTIONS,
        WasmFeatures::THREADS,
        WasmFeatures::SHARED_EVERYTHING_THREADS,
        WasmFeatures::MEMORY64,
        WasmFeatures::CUSTOM_PAGE_SIZES,
        WasmFeatures::GC,
        WasmFeatures::FUNCTION_REFERENCES,
        WasmFeatures::STACK_SWITCHING,
        WasmFeatures::WIDE_ARITHMETIC,
        WasmFeatures::CM_ASYNC,
    ];
    for feature in off {
        config.wasm_features(feature, false);
    }
    config.shared_memory(false);
    config.concurrency_support(false);

    config.cranelift_nan_canonicalization(true);
    config.relaxed_simd_deterministic(true);
    config.cranelift_opt_level(OptLevel::Speed);
    config.max_wasm_stack(WASM_STACK_BYTES);
    // Memories keep wasmtime's default of 4 GiB of reserved addresses and a guard: no bounds checks in guest code, and
    // a memory never moves. Addresses are not memory; what is used is bounded by `limits`.

    // Names of functions in traces, not source lines: reading debug sections at a trap costs more than it tells.
    config.wasm_backtrace_details(WasmBacktraceDetails::Disable);

    match metering {
        Metering::Epoch => config.epoch_interruption(true),
        Metering::Fuel => config.consume_fuel(true),
    };
    config
}

/// Increments the epoch until the engine is gone.
fn count_epochs(engine: &Engine) -> Result<(), ComponentError> {
    let engine = engine.weak();
    thread::Builder::new()
        .name("wasm-epochs".to_owned())
        .spawn(move || {
            loop {
                thread::sleep(TICK);
                let Some(engine) = engine.upgrade() else { return };
                engine.increment_epoch();
            }
        })
        .map(drop)
        .map_err(|e| ComponentError::Sandbox(format!("the thread that counts epochs did not start: {e}")))
}

#[cfg(test)]
mod tests {
    use wasmtime::component::Component;

    use super::*;

    #[test]
    fn both_meterings_are_valid_configurations() {
        for metering in [Metering::Epoch, Metering::Fuel] {
            assert_eq!(Sandbox::new(metering).unwrap().metering(), metering);
        }
    }

    #[test]
    fn proposals_that_no_toolchain_needs_are_refused() {
        let sandbox = Sandbox::new(Metering::Epoch).unwrap();
        for module in [
            "(memory 1 1 shared)",
            "(memory i64 1)",
            "(type (struct (field i32)))",
            "(type (func)) (func (param (ref 0)))",
            "(memory 1 (pagesize 1))",
            "(tag)",
        ] {
            let component = wat::parse_str(format!("(component (core module {module}))")).unwrap();
            assert!(Component::new(&sandbox.engine, component).is_err(), "{module} compiled");
        }
    }

    #[test]
    fn meterings_do_not_share_compiled_code() {
        let epoch = Sandbox::new(Metering::Epoch).unwrap();
        let fuel = Sandbox::new(Metering::Fuel).unwrap();
        assert_ne!(super::super::cache::target(&epoch), super::super::cache::target(&fuel));
    }
}
