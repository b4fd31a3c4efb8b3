//! What every request passes before it finds its route: is it meant for this server, is there room for it?

use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use tokio::sync::OwnedSemaphorePermit;
use tokio_stream::StreamExt;

use super::Problem;
use crate::server::App;

/// The names that this server answers to: against pages of other sites that have their name resolve to this machine (DNS
/// rebinding).
#[derive(Debug, Clone)]
pub struct Names(Vec<String>);

impl Names {
    /// Loopback, the address that is listened on, and the given names.
    pub fn new(listen: IpAddr, public: &[String]) -> Self {
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        if !listen.is_unspecified() {
            names.push(listen.to_string());
        }
        names.extend(public.iter().map(|name| name.to_ascii_lowercase()));
        Self(names)
    }

    /// Whether a `Host` (`name`, `name:port`, `[v6]:port`) is one of them.
    fn has_host(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or_default(),
            None => host.rsplit_once(':').map_or(host, |(name, _port)| name),
        };
        self.0.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Whether an `Origin` (`scheme://host`) is one of them.
    fn has_origin(&self, origin: &str) -> bool {
        let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        host.is_some_and(|host| self.has_host(host))
    }

    /// Lets a request pass that is meant for this server.
    ///
    /// # Errors
    /// It is not.
    pub fn check(&self, request: &Request) -> Result<(), Problem> {
        let headers = request.headers();
        let text = |value: &HeaderValue| value.to_str().map(str::to_owned).unwrap_or_default();
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => Some(text(host)),
            _ => None,
        };
        let authority = request.uri().authority().map(ToString::to_string);
        let meant = host.is_some_and(|host| self.has_host(&host)) && authority.is_none_or(|host| self.has_host(&host));
        if !meant {
            let detail =
                "this server does not answer to the name in Host; start it with --public-name NAME if it should";
            return Err(Problem::new("HOST_NOT_ALLOWED", detail));
        }
        if headers.get_all(header::ORIGIN).iter().any(|origin| !self.has_origin(&text(origin))) {
            return Err(Problem::new("ORIGIN_NOT_ALLOWED", "a page of another site may not call this server"));
        }
        Ok(())
    }
}

/// Bytes of a path with its query string.
const TARGET_MAX: usize = 4096;

fn length(uri: &Uri) -> usize {
    uri.path_and_query().map_or(0, |target| target.as_str().len())
}

/// Passes a request on if it is meant for this server and there is room; dresses the answer.
pub async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let has_body = !request.body().is_end_stream();
    let mut answer = match pass(&app, &request) {
        Ok(room) => hold(next.run(request).await, room),
        Err(problem) => problem.into_response(),
    };
    // Whether all of the body was read is not known, so nobody should send another request behind it.
    if has_body && (answer.status().is_client_error() || answer.status().is_server_error()) {
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    dress(answer)
}

/// A stream that goes on and on takes its room as long as it does; what is whole gives it back at once.
fn hold(answer: Response, room: OwnedSemaphorePermit) -> Response {
    if answer.body().size_hint().exact().is_some() {
        return answer;
    }
    answer.map(|body| {
        Body::from_stream(body.into_data_stream().map(move |piece| {
            let _held = &room;
            piece
        }))
    })
}

fn pass(app: &App, request: &Request) -> Result<OwnedSemaphorePermit, Problem> {
    app.names.check(request)?;
    if length(request.uri()) > TARGET_MAX {
        return Err(Problem::new("QUERY_STRING_INVALID", format!("a path is at most {TARGET_MAX} bytes long")));
    }
    let room = Arc::clone(&app.room).try_acquire_owned();
    room.map_err(|_none| Problem::new("SERVER_BUSY", "too many requests are in hand; try again").retry_after(1))
}

fn dress(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// What a client is told of a panic of ours; the panic's own text goes to the log.
pub fn internal_error(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Problem::new("SERVER_DEFECT", format!("a handler panicked: {text}")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(host: &str, origin: Option<&str>) -> Request {
        let mut request = axum::http::Request::builder().uri("/v1/status").header("host", host);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        request.body(axum::body::Body::empty()).unwrap()
    }

    #[test]
    fn a_request_for_another_name_or_from_another_site_is_refused() {
        let names = Names::new(IpAddr::from([127, 0, 0, 1]), &["tide.example".to_owned()]);
        let code = |host, origin| names.check(&request(host, origin)).map_err(|problem| problem.code().to_owned());

        for host in ["localhost", "localhost:8080", "127.0.0.1:1", "[::1]:8080", "Tide.Example:443"] {
            assert_eq!(code(host, None), Ok(()), "{host}");
        }
        for host in ["evil.example", "evil.example:8080", "localhost.evil.example", "", "127.0.0.1.evil:80", "[::2]"] {
            assert_eq!(code(host, None), Err("HOST_NOT_ALLOWED".to_owned()), "{host}");
        }
        assert_eq!(code("localhost", Some("http://localhost:8080")), Ok(()));
        for origin in ["https://evil.example", "null", "http://localhost.evil.example", "file://localhost"] {
            assert_eq!(code("localhost", Some(origin)), Err("ORIGIN_NOT_ALLOWED".to_owned()), "{origin}");
        }
    }
}
