//! Why two processes no longer understand each other.

/// What is wrong with a peer. After any of these the conversation is over and the peer is to be ended.
#[derive(Debug, thiserror::Error)]
pub enum IpcError {
    /// A frame is longer than agreed.
    #[error("the other process announces {bytes} bytes, and {max} are the most")]
    TooLong {
        /// As announced.
        bytes: u64,
        /// The bound.
        max: u64,
    },
    /// A frame has another number of descriptors than it says, or more than agreed.
    #[error("the other process announces {announced} descriptors and hands over {received}")]
    Descriptors {
        /// As announced.
        announced: u32,
        /// As counted.
        received: usize,
    },
    /// The stream ended within a frame.
    #[error("the other process ended in the middle of a message")]
    Truncated,
    /// Bytes that are no message.
    #[error("the other process sent bytes that are no message: {0}")]
    Malformed(String),
    /// Memory that was handed over can still be changed, or is too large.
    #[error("memory that was handed over is not sealed as it must be: {0}")]
    NotSealed(String),
    /// The system refused.
    #[error("talking to the other process failed: {0}")]
    Io(#[from] std::io::Error),
}

impl IpcError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLong { .. }
            | Self::Descriptors { .. }
            | Self::Truncated
            | Self::Malformed(_)
            | Self::NotSealed(_) => "IPC_PROTOCOL_VIOLATED",
            Self::Io(_) => "IPC_FAILED",
        }
    }
}
