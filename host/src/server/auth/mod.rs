//! Who may do what: roles, tokens, and what stands between a request and its route.
//!
//! A token has one role, for one tenant or for the platform. A route lists the roles that may use it; no role implies
//! another one, except that a platform admin may do everything.

mod attempts;
mod role;
mod token;

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

pub use attempts::Attempts;
pub use role::{Access, Role, Scope};
pub use token::{Secret, TokenText};

use super::id::Id;
use super::meta::tokens::{self, Token};
use super::meta::{MetaError, View};

/// The state that all requests share: failed attempts, and the news of revocations.
#[derive(Debug)]
pub struct Auth {
    attempts: Mutex<Attempts>,
    revocations: watch::Sender<()>,
}

/// Who sent a request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The token.
    pub token: Id,
    /// What it may do.
    pub scope: Scope,
    /// When it ends, in ms since the epoch.
    pub expires_ms: Option<i64>,
}

impl Auth {
    /// `failures_per_minute`: how many wrong tokens one address may send.
    pub fn new(failures_per_minute: u32) -> Self {
        Self { attempts: Mutex::new(Attempts::new(failures_per_minute)), revocations: watch::Sender::new(()) }
    }

    /// Notes a wrong token. Err: too many of them came from there; in how many seconds the next one may.
    ///
    /// A right token is taken from any address: 256 random bits are not guessed, and neighbours behind one address must
    /// not lock each other out. What is bounded is the work and the log of failures.
    ///
    /// # Errors
    /// Seconds to wait.
    pub fn failed(&self, from: IpAddr, now_ms: i64) -> Result<(), u32> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner).failed(from, now_ms)
    }

    /// Tells open streams to look whether their token still holds.
    pub fn revoked(&self) {
        self.revocations.send_replace(());
    }

    /// Changes whenever a token was revoked.
    pub fn revocations(&self) -> watch::Receiver<()> {
        self.revocations.subscribe()
    }
}

/// Whose token this is; None: nobody's, be it wrong, expired or revoked.
///
/// # Errors
/// The store fails.
pub fn authenticate(view: &impl View, text: &str, now_ms: i64) -> Result<Option<Caller>, MetaError> {
    let Some(text) = TokenText::parse(text) else { return Ok(None) };
    let Some(token) = tokens::get(view, &text.id)? else { return Ok(None) };
    if !text.secret.fits(&token.secret_sha256) || !holds(&token, now_ms) {
        return Ok(None);
    }
    Ok(Some(Caller { token: token.id, scope: token.scope, expires_ms: token.expires_ms }))
}

/// Whether a token is neither expired nor revoked.
pub fn holds(token: &Token, now_ms: i64) -> bool {
    token.revoked_ms.is_none() && token.expires_ms.is_none_or(|expires| now_ms < expires)
}
