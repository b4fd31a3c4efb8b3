//! The text of a token: `tdm_<id>_<secret>`. The server keeps the hash of the secret and nothing else of it.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::server::id::{Id, fill_random, hex, unhex};

const PREFIX: &str = "tdm_";

/// 256 random bits that only the owner of a token has.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// A new one.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0; 32];
        fill_random(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// What is kept of it. It has as many random bits as the hash, so nothing slow or salted is needed.
    pub fn sha256(&self) -> String {
        hex(&Sha256::digest(self.0))
    }

    /// Whether it is the one of this hash; takes as long whether it is or not.
    pub fn fits(&self, sha256: &str) -> bool {
        self.sha256().as_bytes().ct_eq(sha256.as_bytes()).into()
    }
}

/// A token as its owner sends it.
#[derive(Debug, Clone)]
pub struct TokenText {
    /// Which token it is.
    pub id: Id,
    /// The proof.
    pub secret: Secret,
}

impl TokenText {
    /// Reads it. None: it is no token at all.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let secret = unhex(secret)?.try_into().ok()?;
        Some(Self { id: Id::try_from(id.to_owned()).ok()?, secret: Secret(secret) })
    }

    /// Shows it. Called where its owner gets it, and nowhere else.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}_{}", self.id, hex(&self.secret.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_shown_and_fits_its_own_hash_only() {
        let token = TokenText { id: Id::random().unwrap(), secret: Secret::random().unwrap() };

        let read = TokenText::parse(&token.reveal()).unwrap();

        assert_eq!(read.id, token.id);
        assert!(read.secret.fits(&token.secret.sha256()));
        assert!(!read.secret.fits(&Secret::random().unwrap().sha256()));
    }

    #[test]
    fn other_texts_are_no_tokens() {
        let good = TokenText { id: Id::random().unwrap(), secret: Secret::random().unwrap() }.reveal();
        let longer = format!("{good}00");
        for bad in ["", "tdm_", "tdm__", &good[1..], &good[..good.len() - 1], longer.as_str()] {
            assert!(TokenText::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn no_log_line_shows_a_secret() {
        let token = TokenText { id: Id::random().unwrap(), secret: Secret::random().unwrap() };

        assert!(!format!("{token:?}").contains(&hex(&token.secret.0)));
    }
}
