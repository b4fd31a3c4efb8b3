//! Messages to the log of the host. They show with the batch's log lines, and are bounded per batch.

pub use crate::contract::Level;

/// Logs a message at a level. [`crate::info!`] and the like format one.
pub fn log(level: Level, message: &str) {
    #[cfg(target_arch = "wasm32")]
    crate::component::log(level, message);
    #[cfg(not(target_arch = "wasm32"))]
    crate::memory::log(level, message);
}

/// Logs for debugging: `debug!("{n} rows")`.
#[macro_export]
macro_rules! debug {
    ($($message:tt)*) => { $crate::log::log($crate::log::Level::Debug, &::std::format!($($message)*)) };
}

/// Logs what is worth knowing: `info!("{n} rows")`.
#[macro_export]
macro_rules! info {
    ($($message:tt)*) => { $crate::log::log($crate::log::Level::Info, &::std::format!($($message)*)) };
}

/// Logs what is odd: `warn!("{n} rows")`.
#[macro_export]
macro_rules! warn {
    ($($message:tt)*) => { $crate::log::log($crate::log::Level::Warn, &::std::format!($($message)*)) };
}

/// Logs what went wrong: `error!("{n} rows")`.
#[macro_export]
macro_rules! error {
    ($($message:tt)*) => { $crate::log::log($crate::log::Level::Error, &::std::format!($($message)*)) };
}
