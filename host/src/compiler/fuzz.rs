//! What a compiler may answer that was taken over by what it compiled, and what it may be ordered.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::messages::{Order, Reply};
use crate::ipc;

/// An order or a reply. What can be read is what can be written.
pub(crate) fn compiler_messages(bytes: &[u8]) {
    let Some((which, message)) = bytes.split_first() else { return };
    if which & 1 == 0 {
        check::<Reply>(message);
    } else {
        check::<Order>(message);
    }
}

#[expect(clippy::unwrap_used, reason = "a fuzzer is told by a panic")]
fn check<M: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let Ok(message) = ipc::decode::<M>(bytes) else { return };
    let again = ipc::encode(&message).unwrap();
    assert_eq!(ipc::decode::<M>(&again).unwrap(), message);
}
