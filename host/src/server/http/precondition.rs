//! `ETag` and `If-Match`: a change may name the state that it changes, so that two people do not overwrite each other.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;

use super::Problem;
use crate::server::App;

/// The tag of a revision.
pub fn etag(revision: u64) -> String {
    format!("\"{revision}\"")
}

/// What a change says about the state that it wants to find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// `If-Match: "..."`: one of these.
    These(Vec<String>),
    /// `If-Match: *`: whichever there is.
    Any,
    /// `If-None-Match: *`: that there is nothing.
    Nothing,
    /// Nothing was said.
    Unsaid,
}

impl IfMatch {
    /// Whether the state is one that the change wants; None: there is nothing yet. A change that says nothing takes any.
    ///
    /// # Errors
    /// It is another one.
    pub fn check(&self, revision: Option<u64>) -> Result<(), Problem> {
        let failed = |detail: &str| {
            let problem = Problem::new("PRECONDITION_FAILED", detail);
            Err(match revision {
                Some(revision) => problem.with("etag", etag(revision)),
                None => problem,
            })
        };
        match (self, revision) {
            (Self::These(tags), Some(revision)) if tags.contains(&etag(revision)) => Ok(()),
            (Self::Any, Some(_)) | (Self::Nothing, None) | (Self::Unsaid, _) => Ok(()),
            (Self::Nothing, Some(_)) => failed("it exists already, and the request says If-None-Match: *"),
            (Self::These(_), Some(_)) => failed("it was changed since; look at it again and send its ETag in If-Match"),
            (Self::These(_) | Self::Any, None) => failed("there is nothing yet, and the request says If-Match"),
        }
    }
}

impl FromRequestParts<Arc<App>> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _app: &Arc<App>) -> Result<Self, Problem> {
        let bad = || Problem::new("HEADER_INVALID", "If-Match is a list of ETags or *, If-None-Match only *");
        let text = |name| {
            let given = parts.headers.get(name).map(|value| value.to_str().map_err(|_not_ascii| bad()));
            given.transpose()
        };
        match (text(header::IF_MATCH)?, text(header::IF_NONE_MATCH)?) {
            (None, None) => Ok(Self::Unsaid),
            (Some("*"), None) => Ok(Self::Any),
            (None, Some("*")) => Ok(Self::Nothing),
            (Some(tags), None) => Ok(Self::These(tags.split(',').map(|tag| tag.trim().to_owned()).collect())),
            _ => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_goes_through_only_where_it_finds_what_it_wants() {
        let code = |wanted: &IfMatch, revision| wanted.check(revision).map_err(|problem| problem.code().to_owned());
        let failed = Err("PRECONDITION_FAILED".to_owned());
        let these = IfMatch::These(vec![etag(1), etag(2)]);

        assert_eq!(code(&these, Some(2)), Ok(()));
        assert_eq!(code(&these, Some(3)), failed);
        assert_eq!(code(&these, None), failed);
        assert_eq!(code(&IfMatch::Any, Some(7)), Ok(()));
        assert_eq!(code(&IfMatch::Any, None), failed);
        assert_eq!(code(&IfMatch::Nothing, None), Ok(()));
        assert_eq!(code(&IfMatch::Nothing, Some(1)), failed);
        assert_eq!(code(&IfMatch::Unsaid, None), Ok(()));
        assert_eq!(code(&IfMatch::Unsaid, Some(1)), Ok(()));
    }
}
