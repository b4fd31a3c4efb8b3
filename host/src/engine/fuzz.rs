//! What stands in the records of a log.

#![allow(clippy::unwrap_used, reason = "a fuzzer is told by a panic")]

use super::commit::Fact;
use crate::state::Changes;

/// A kind and a header, which is written as it was read; and state changes.
pub(crate) fn commit_records(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    match Fact::from_header(*kind, rest) {
        Ok(Fact::Commit(header)) => {
            let _ = header.staged_files().count();
            let written = serde_json::to_vec(&header).unwrap();
            assert_eq!(Fact::from_header(*kind, &written).unwrap(), Fact::Commit(header));
        }
        Ok(Fact::Watermark(left_out)) => {
            let written = serde_json::to_vec(&left_out).unwrap();
            assert_eq!(Fact::from_header(*kind, &written).unwrap(), Fact::Watermark(left_out));
        }
        Ok(Fact::Rollback(rollback)) => {
            let written = serde_json::to_vec(&rollback).unwrap();
            assert_eq!(Fact::from_header(*kind, &written).unwrap(), Fact::Rollback(rollback));
        }
        Err(error) => assert!(!error.code().is_empty()),
    }
    // Damage is told once, and then there is nothing more.
    let changes = Changes::from_bytes(rest.to_vec());
    assert!(changes.iter().take(rest.len() + 1).filter(Result::is_err).count() <= 1);
    assert!(changes.iter().count() <= rest.len());
}
