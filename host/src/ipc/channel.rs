//! Frames over a stream socket: `length:u32le, descriptors:u32le`, then that many bytes. Descriptors come with the header.

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

use super::error::IpcError;

/// Most bytes of a frame.
pub const FRAME_BYTES_MAX: u32 = 4 << 20;
/// Most descriptors that come with a frame.
pub const DESCRIPTORS_MAX: usize = 8;
/// How long a peer may leave its end unread: one that does not read would hold whoever writes for ever.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

const HEADER: usize = 8;

/// A message as it came, not yet believed.
#[derive(Debug)]
pub struct Frame {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What came with it, in order.
    pub descriptors: Vec<OwnedFd>,
}

/// The end that sends. Threads may share it: a frame is sent whole.
#[derive(Debug)]
pub struct Sender(Mutex<UnixStream>);

/// The end that receives.
#[derive(Debug)]
pub struct Receiver(UnixStream);

/// Two connected ends: one to keep, one to give to a child.
///
/// # Errors
/// What the system says.
pub fn pair() -> std::io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    Ok((ours, theirs.into()))
}

/// Both directions of a socket.
///
/// # Errors
/// What the system says.
pub fn split(stream: UnixStream) -> std::io::Result<(Sender, Receiver)> {
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    Ok((Sender(Mutex::new(stream.try_clone()?)), Receiver(stream)))
}

impl Sender {
    /// Sends a frame.
    ///
    /// # Errors
    /// [`IpcError::TooLong`], [`IpcError::Descriptors`] before anything is sent; [`IpcError::Io`], after which the
    /// stream may stand within a frame and is of no more use.
    pub fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), IpcError> {
        let length = u32::try_from(bytes.len())
            .ok()
            .filter(|length| *length <= FRAME_BYTES_MAX)
            .ok_or(IpcError::TooLong { bytes: bytes.len() as u64, max: u64::from(FRAME_BYTES_MAX) })?;
        let count = u32::try_from(descriptors.len()).unwrap_or(u32::MAX);
        if descriptors.len() > DESCRIPTORS_MAX {
            return Err(IpcError::Descriptors { announced: count, received: descriptors.len() });
        }
        let mut header = [0; HEADER];
        let (head, tail) = header.split_at_mut(4);
        head.copy_from_slice(&length.to_le_bytes());
        tail.copy_from_slice(&count.to_le_bytes());

        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = send_with(&stream, &header, descriptors)?;
        stream.write_all(header.get(sent..).unwrap_or_default())?;
        stream.write_all(bytes)?;
        Ok(())
    }

    /// Ends the conversation, in both directions: the receiver of the other side sees its end.
    pub fn close(&self) {
        // A stream that the other side has closed already needs no closing.
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).shutdown(std::net::Shutdown::Both);
    }
}

fn send_with(stream: &UnixStream, header: &[u8], descriptors: &[BorrowedFd<'_>]) -> std::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(std::io::Error::other("too many descriptors"));
    }
    loop {
        match sendmsg(stream.as_fd(), &[IoSlice::new(header)], &mut control, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            sent => return Ok(sent?),
        }
    }
}

impl Receiver {
    /// Waits for a frame. None: the other side ended, between frames.
    ///
    /// # Errors
    /// [`IpcError`], after which the peer is to be ended.
    pub fn receive(&mut self) -> Result<Option<Frame>, IpcError> {
        let mut header = [0; HEADER];
        let mut descriptors = Vec::new();
        let mut filled = 0;
        while filled < HEADER {
            let room = header.get_mut(filled..).unwrap_or_default();
            match receive_with(&self.0, room, &mut descriptors)? {
                0 if filled == 0 && descriptors.is_empty() => return Ok(None),
                0 => return Err(IpcError::Truncated),
                read => filled += read,
            }
        }
        let [a, b, c, d, e, f, g, h] = header;
        let (length, announced) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        if length > FRAME_BYTES_MAX {
            return Err(IpcError::TooLong { bytes: length.into(), max: FRAME_BYTES_MAX.into() });
        }
        if announced as usize != descriptors.len() {
            return Err(IpcError::Descriptors { announced, received: descriptors.len() });
        }
        let mut bytes = vec![0; length as usize];
        self.0.read_exact(&mut bytes).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => IpcError::Truncated,
            _ => error.into(),
        })?;
        Ok(Some(Frame { bytes, descriptors }))
    }

    /// Waits at most so long for a frame's bytes from now on; None: for ever.
    ///
    /// # Errors
    /// What the system says.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> std::io::Result<()> {
        self.0.set_read_timeout(timeout)
    }
}

/// Reads some bytes and what comes with them. More descriptors than fit are closed by the system, and then missed.
fn receive_with(stream: &UnixStream, room: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> Result<usize, IpcError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(stream.as_fd(), &mut [IoSliceMut::new(room)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            received => break received.map_err(std::io::Error::from)?,
        }
    };
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(handed) = message {
            descriptors.extend(handed);
        }
    }
    if descriptors.len() > DESCRIPTORS_MAX {
        return Err(IpcError::Descriptors { announced: DESCRIPTORS_MAX as u32, received: descriptors.len() });
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ipc::Sealed;

    fn ends() -> (Sender, Receiver, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (sender, _) = split(ours).unwrap();
        (sender, Receiver(theirs.try_clone().unwrap()), theirs)
    }

    /// A receiver that gets these bytes, and then the end.
    fn receiver_of(bytes: &[u8]) -> Receiver {
        let (mut hostile, ours) = UnixStream::pair().unwrap();
        hostile.write_all(bytes).unwrap();
        Receiver(ours)
    }

    #[test]
    fn frames_come_whole_in_order_and_with_their_descriptors() {
        let (sender, mut receiver, _theirs) = ends();
        let sealed = Sealed::of(b"code").unwrap();

        sender.send(b"one", &[]).unwrap();
        sender.send(b"", &[sealed.as_fd(), sealed.as_fd()]).unwrap();
        sender.close();

        assert_eq!(receiver.receive().unwrap().unwrap().bytes, b"one");
        let second = receiver.receive().unwrap().unwrap();
        assert!(second.bytes.is_empty());
        assert_eq!(second.descriptors.len(), 2);
        assert!(receiver.receive().unwrap().is_none());
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_before_its_bytes_are_read() {
        let header = [(FRAME_BYTES_MAX + 1).to_le_bytes(), 0_u32.to_le_bytes()].concat();
        assert!(matches!(receiver_of(&header).receive(), Err(IpcError::TooLong { .. })));
        let (sender, ..) = ends();
        assert!(matches!(sender.send(&vec![0; FRAME_BYTES_MAX as usize + 1], &[]), Err(IpcError::TooLong { .. })));
    }

    #[test]
    fn descriptors_that_were_not_announced_are_refused_as_are_those_that_do_not_come() {
        let header = [0_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat();
        assert!(matches!(receiver_of(&header).receive(), Err(IpcError::Descriptors { announced: 1, received: 0 })));

        let (hostile, ours) = UnixStream::pair().unwrap();
        let sealed = Sealed::of(b"").unwrap();
        send_with(&hostile, &[0; HEADER], &[sealed.as_fd()]).unwrap();
        assert!(matches!(Receiver(ours).receive(), Err(IpcError::Descriptors { announced: 0, received: 1 })));
    }

    #[test]
    fn a_stream_that_ends_within_a_frame_is_no_clean_end() {
        for cut in [&[1][..], &[1, 0, 0, 0, 0, 0, 0, 0]] {
            assert!(matches!(receiver_of(cut).receive(), Err(IpcError::Truncated)));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_frames_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut receiver = receiver_of(&bytes);
            let mut frames = 0;
            while let Ok(Some(_)) = receiver.receive() {
                frames += 1;
            }
            prop_assert!(frames <= bytes.len() / HEADER);
        }
    }
}
