//! The first words on the socket: the server says which walls, the child answers how they stand. No byte of a tenant is in
//! the child before that, so both may trust each other here.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::report::{Layer, Report};
use super::walls::Walls;

/// Longest word in bytes: some paths and some reasons.
const WORD_MAX: u32 = 64 * 1024;
/// How long a child may take from its start to its report.
const PATIENCE: Duration = Duration::from_secs(30);

/// The child's answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// It has entered.
    Entered(Report),
    /// A step failed that always works.
    Failed { step: String, cause: String },
    /// A required layer is missing.
    Unavailable { layer: Layer, reason: String },
}

/// The server's part: gives the walls, takes the answer.
pub(super) fn offer(socket: &UnixStream, walls: &Walls) -> io::Result<Answer> {
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    say(socket, walls)?;
    let answer = hear(socket)?;
    socket.set_read_timeout(None)?;
    socket.set_write_timeout(None)?;
    Ok(answer)
}

/// Writes a word: its length as `u32` little-endian, then JSON.
pub(super) fn say(mut socket: &UnixStream, word: &impl Serialize) -> io::Result<()> {
    let json = serde_json::to_vec(word)?;
    let length = u32::try_from(json.len()).ok().filter(|length| *length <= WORD_MAX);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a word is too long"))?;
    socket.write_all(&[length.to_le_bytes().as_slice(), &json].concat())
}

/// Reads a word.
pub(super) fn hear<T: DeserializeOwned>(mut socket: &UnixStream) -> io::Result<T> {
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > WORD_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a word of {length} bytes")));
    }
    let mut json = Vec::new();
    socket.take(u64::from(length)).read_to_end(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}
