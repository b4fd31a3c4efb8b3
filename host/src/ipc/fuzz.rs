//! What a worker that was broken into may send to its server.

#![allow(clippy::unwrap_used, reason = "a fuzzer is told by a panic")]

use std::io::Write;

use super::worker::Report;
use super::{decode, encode, pair, split};

/// Fits into the buffer of a socket, so that nobody needs to read while it is written.
const BYTES_MAX: usize = 64 << 10;

/// Bytes on the socket: they are frames or an error, and frames are reports or an error.
pub(crate) fn worker_reports(bytes: &[u8]) {
    let (mut ours, theirs) = pair().unwrap();
    ours.write_all(bytes.get(..BYTES_MAX).unwrap_or(bytes)).unwrap();
    drop(ours);
    let (_, mut receiver) = split(theirs.into()).unwrap();
    while let Ok(Some(frame)) = receiver.receive() {
        assert!(frame.descriptors.is_empty());
        let Ok(report) = decode::<Report>(&frame.bytes) else { continue };
        if report.check().is_ok() {
            assert_eq!(decode::<Report>(&encode(&report).unwrap()).unwrap(), report);
        }
    }
}
