//! What objects of the server are called: ids that the server draws, and names that people give.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

/// 128 random bits, in hex. Only ids become names of folders.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Id(String);

impl Id {
    /// Characters of an id.
    const LEN: usize = 32;

    /// A new one.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0; Self::LEN / 2];
        fill_random(&mut bytes)?;
        Ok(Self(hex(&bytes)))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Id {
    type Error = NotAnId;

    fn try_from(text: String) -> Result<Self, NotAnId> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() == Self::LEN && is_hex { Ok(Self(text)) } else { Err(NotAnId) }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no id.
#[derive(Debug, thiserror::Error)]
#[error("an id is 32 hexadecimal digits in lower case")]
pub struct NotAnId;

/// A name that a person gave: `[a-z0-9][a-z0-9-]{0,62}`. It never becomes a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, utoipa::ToSchema)]
#[schema(value_type = String, pattern = "^[a-z0-9][a-z0-9-]{0,62}$")]
pub struct Name(String);

impl Name {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for Name {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9');
        let begins = text.bytes().next().is_some_and(plain);
        let continues = text.bytes().all(|byte| plain(byte) || byte == b'-');
        if begins && continues && text.len() <= 63 { Ok(Self(text.to_owned())) } else { Err(NotAName) }
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no name.
#[derive(Debug, thiserror::Error)]
#[error("a name is 1 to 63 of a-z, 0-9 and -, and does not begin with -")]
pub struct NotAName;

/// Fills a buffer with random bytes that nobody can guess.
pub(super) fn fill_random(bytes: &mut [u8]) -> std::io::Result<()> {
    getrandom::fill(bytes).map_err(std::io::Error::other)
}

/// Bytes as hexadecimal digits in lower case.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes that hexadecimal digits stand for.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let plain = digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
    if plain { digits.chunks(2).map(byte).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        let longest = "a".repeat(63);
        for good in ["a", "0", "a-b", "a-", longest.as_str()] {
            assert!(good.parse::<Name>().is_ok(), "{good}");
        }
        let too_long = "a".repeat(64);
        for bad in ["", "-a", "A", "a_b", "a/b", "..", "a.b", "a b", "ä", "a\0", too_long.as_str()] {
            assert!(bad.parse::<Name>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_id_is_drawn_anew_each_time_and_read_back_from_its_text() {
        let (a, b) = (Id::random().unwrap(), Id::random().unwrap());

        assert_ne!(a, b);
        assert_eq!(Id::try_from(a.to_string()).unwrap(), a);
        assert!(Id::try_from("../../../../../../etc/passwd-aaaa".to_owned()).is_err());
    }

    #[test]
    fn bytes_and_their_digits_stand_for_each_other() {
        assert_eq!(unhex(&hex(&[0, 15, 255])), Some(vec![0, 15, 255]));
        assert_eq!(unhex("0"), None);
        assert_eq!(unhex("+1"), None);
        assert_eq!(unhex("ä"), None);
    }
}
