//! Ctrl-C and a polite kill: the first ends a query after the batch in hand, and a build with its tools; the second ends
//! the program at once.
//!
//! Ending at once is safe: a batch that is not committed has not happened.

use tokio::signal::unix::{SignalKind, signal};

use super::output::{Coded, note};
use crate::engine::trigger::Stop;

/// Exit code after an interrupt, as shells report it.
pub(super) const INTERRUPTED: u8 = 130;

/// Watches for signals as long as it lives.
pub(super) struct Interrupts(Option<tokio::runtime::Runtime>);

impl Drop for Interrupts {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Starts watching. `told`: what the first interrupt answers.
#[expect(clippy::exit, reason = "the second interrupt abandons the batch in hand, which is as good as never begun")]
pub(super) fn watch(stop: Stop, told: &'static str) -> anyhow::Result<Interrupts> {
    let failed = |error| Coded::wrap("SIGNALS_UNAVAILABLE", error);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(failed)?;
    let (mut interrupt, mut terminate) = {
        let _entered = runtime.enter();
        (signal(SignalKind::interrupt()).map_err(failed)?, signal(SignalKind::terminate()).map_err(failed)?)
    };
    runtime.spawn(async move {
        for _ in 0..2 {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if stop.requested() {
                std::process::exit(INTERRUPTED.into());
            }
            stop.request();
            note(told);
        }
    });
    Ok(Interrupts(Some(runtime)))
}
