//! Messages as bytes. Both processes are the same binary, so the encoding needs no versions.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::IpcError;

/// A message as bytes.
///
/// # Errors
/// [`IpcError::Malformed`] for what cannot be written down.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, IpcError> {
    postcard::to_stdvec(message).map_err(|error| IpcError::Malformed(error.to_string()))
}

/// The message that these bytes are, all of them. It can be no larger than they are: lengths within are checked against
/// what follows.
///
/// # Errors
/// [`IpcError::Malformed`].
pub fn decode<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, IpcError> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(IpcError::Malformed(format!("{} bytes are left over", rest.len()))),
        Err(error) => Err(IpcError::Malformed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded_and_nothing_may_follow() {
        let message = (7_u64, "name".to_owned(), vec![Some(1_i32), None]);
        let mut bytes = encode(&message).unwrap();
        assert_eq!(decode::<(u64, String, Vec<Option<i32>>)>(&bytes).unwrap(), message);
        bytes.push(0);
        assert!(decode::<(u64, String, Vec<Option<i32>>)>(&bytes).is_err());
    }

    #[test]
    fn a_length_that_is_not_there_allocates_nothing() {
        let huge = encode(&u64::MAX).unwrap();
        assert!(decode::<Vec<u64>>(&huge).is_err());
        assert!(decode::<String>(&huge).is_err());
    }
}
