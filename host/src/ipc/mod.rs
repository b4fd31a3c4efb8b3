//! Between the processes of one server: messages over a socket pair, and bytes handed over as sealed memory.
//!
//! The peer is taken for hostile: a worker runs the code of strangers and may have been broken into. So a frame's length,
//! the number of descriptors with it, and every message are checked before they are believed, and whatever is out of
//! bounds ends the conversation.
//!
//! Read in this order: [`channel`] (frames and descriptors), [`Sealed`] (large bytes), [`message`] (typed).

mod channel;
mod error;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod message;
mod sealed;
pub mod worker;

pub use channel::{Frame, Receiver, Sender, pair, split};
pub use error::IpcError;
pub use message::{decode, encode};
pub use sealed::Sealed;
