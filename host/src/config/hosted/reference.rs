//! How a query names a processor.

use serde::{Deserialize, Deserializer};

/// Longest name that a person gives.
const NAME_BYTES_MAX: usize = 63;
pub(super) const NAME_RULE: &str = "take 1 to 63 lower-case letters, digits and -, not - first";

/// Whether a text may be the name of a query, processor, alias or tenant: `[a-z0-9][a-z0-9-]{0,62}`. No path, URI or
/// variable is one.
pub fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= NAME_BYTES_MAX && text.starts_with(plain) && text.chars().all(|c| plain(c) || c == '-')
}

/// Which processor: `name@alias`, `name@3`, or `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessorReference {
    /// A revision of a named one.
    Named {
        /// The processor.
        name: String,
        /// Which of its versions.
        revision: Revision,
    },
    /// The component with this SHA-256, in lower-case hex.
    Digest(String),
}

/// Which version of a processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revision {
    /// The one of this number, from 1.
    Version(u64),
    /// The one that an alias points to. An alias has a letter, so that it is no number.
    Alias(String),
}

impl std::str::FromStr for ProcessorReference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            let shown: String = text.chars().take(100).collect();
            format!("{shown:?} is no reference to a processor; write name@alias, name@VERSION or sha256:DIGEST")
        };
        if let Some(digest) = text.strip_prefix("sha256:") {
            let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
            let fits = digest.len() == 64 && digest.chars().all(is_hex);
            return if fits { Ok(Self::Digest(digest.to_owned())) } else { Err(refused()) };
        }
        let (name, revision) = text.split_once('@').filter(|(name, _)| is_name(name)).ok_or_else(refused)?;
        let revision = match revision.parse() {
            Ok(version) if version > 0 && revision.bytes().all(|byte| byte.is_ascii_digit()) => {
                Revision::Version(version)
            }
            _ if is_name(revision) && !revision.bytes().all(|byte| byte.is_ascii_digit()) => {
                Revision::Alias(revision.to_owned())
            }
            _ => return Err(refused()),
        };
        Ok(Self::Named { name: name.to_owned(), revision })
    }
}

impl std::fmt::Display for ProcessorReference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Named { name, revision: Revision::Version(version) } => write!(f, "{name}@{version}"),
            Self::Named { name, revision: Revision::Alias(alias) } => write!(f, "{name}@{alias}"),
            Self::Digest(digest) => write!(f, "sha256:{digest}"),
        }
    }
}

impl<'de> Deserialize<'de> for ProcessorReference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
