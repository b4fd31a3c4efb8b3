//! One server, and requests to it.

use std::fs;
use std::io::Read;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use ureq::http::{self, Uri, header};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::error::{ClientError, Problem};
use super::events::Events;

pub use ureq::http::Method;

/// Most bytes of an answer that is read whole.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it may take to begin its answer; it is asked to wait for long work for less than that.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// What goes with a request.
#[derive(Debug, Clone, Copy)]
pub enum Body<'a> {
    /// Nothing.
    Empty,
    /// A JSON document.
    Json(&'a Value),
    /// Bytes of this media type.
    Bytes(&'static str, &'a [u8]),
}

/// What a server answered, if it did not refuse.
#[derive(Debug)]
pub struct Answer {
    /// Its status, 200 to 299.
    pub status: u16,
    /// `ETag`, to be given back as `If-Match`.
    pub etag: Option<String>,
    /// The document; null where there is none.
    pub body: Value,
}

/// A server, and who asks.
#[derive(Debug)]
pub struct Connection {
    agent: ureq::Agent,
    server: String,
    token: String,
}

impl Connection {
    /// A connection; nothing is sent yet. `ca` is a file of certificates to trust instead of the usual ones.
    ///
    /// # Errors
    /// [`ClientError::Address`], [`ClientError::Insecure`], [`ClientError::Certificate`].
    pub fn new(server: &str, token: &str, ca: Option<&Path>) -> Result<Self, ClientError> {
        let server = server.trim_end_matches('/').to_owned();
        check_address(&server)?;
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ClientError::Profile(
                "the token is none: it has characters that no token has; give the whole of it, as it was shown".into(),
            ));
        }
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(ANSWER_TIMEOUT))
            .user_agent(concat!("tidemill/", env!("CARGO_PKG_VERSION")));
        if let Some(ca) = ca {
            config = config.tls_config(TlsConfig::builder().root_certs(roots(ca)?).build());
        }
        Ok(Self { agent: config.build().into(), server, token: token.to_owned() })
    }

    /// Where the server is.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Asks, and waits for the whole answer. `path` begins with `/v1/`; what stands in it for names is escaped already.
    ///
    /// # Errors
    /// [`ClientError::Refused`], or that the server cannot be reached or understood.
    pub fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Body<'_>,
    ) -> Result<Answer, ClientError> {
        let response = self.send(method, path, headers, body)?;
        let status = response.status().as_u16();
        let etag = response.headers().get(header::ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        let text = self.whole(response)?;
        let body = match text.trim_ascii() {
            [] => Value::Null,
            text => serde_json::from_slice(text).map_err(|error| self.not_understood(error))?,
        };
        Ok(Answer { status, etag, body })
    }

    /// Asks for a stream of events, which goes on until one side ends it.
    ///
    /// # Errors
    /// As [`Connection::ask`].
    pub fn follow(&self, path: &str, after: Option<&str>) -> Result<Events, ClientError> {
        let mut headers = vec![("accept", "text/event-stream")];
        headers.extend(after.map(|id| ("last-event-id", id)));
        let response = self.send(Method::GET, path, &headers, Body::Empty)?;
        Ok(Events::new(self.server.clone(), response.into_body().into_reader()))
    }

    fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Body<'_>,
    ) -> Result<http::Response<ureq::Body>, ClientError> {
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.server))
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = match body {
            Body::Empty => request.body(()).map(|request| self.agent.run(request)),
            Body::Json(document) => request
                .header(header::CONTENT_TYPE, "application/json")
                .body(document.to_string())
                .map(|request| self.agent.run(request)),
            Body::Bytes(media_type, bytes) => {
                request.header(header::CONTENT_TYPE, media_type).body(bytes).map(|request| self.agent.run(request))
            }
        };
        let response =
            sent.map_err(|_| ClientError::Profile("a name or value cannot stand in a request".to_owned()))?;
        let response = response.map_err(|error| self.unreachable(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refused(response))
    }

    fn refused(&self, response: http::Response<ureq::Body>) -> ClientError {
        let status = response.status().as_u16();
        let retry_after =
            response.headers().get(header::RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
        let problem = self.whole(response).ok().and_then(|text| serde_json::from_slice::<Problem>(&text).ok());
        ClientError::Refused(Box::new(Problem { status, retry_after, ..problem.unwrap_or_default() }))
    }

    fn whole(&self, response: http::Response<ureq::Body>) -> Result<Vec<u8>, ClientError> {
        let mut text = Vec::new();
        let mut body = response.into_body().into_reader().take(ANSWER_BYTES_MAX + 1);
        body.read_to_end(&mut text).map_err(|error| self.not_understood(error))?;
        if text.len() as u64 > ANSWER_BYTES_MAX {
            return Err(self.not_understood(format!("it is longer than {ANSWER_BYTES_MAX} bytes")));
        }
        Ok(text)
    }

    fn unreachable(&self, error: &ureq::Error) -> ClientError {
        ClientError::Unreachable { server: self.server.clone(), reason: error.to_string() }
    }

    fn not_understood(&self, reason: impl ToString) -> ClientError {
        ClientError::Answer { server: self.server.clone(), reason: reason.to_string() }
    }
}

/// Refuses what is no address, and a machine elsewhere without encryption.
fn check_address(server: &str) -> Result<(), ClientError> {
    let wrong = |reason| ClientError::Address { server: server.to_owned(), reason };
    let uri: Uri = server.parse().map_err(|_| wrong("it cannot be read"))?;
    let host = uri.host().ok_or_else(|| wrong("it names no machine"))?;
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(wrong("names and passwords do not belong in it"));
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(wrong("it ends behind the port"));
    }
    match uri.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if is_this_machine(host) => Ok(()),
        Some("http") => Err(ClientError::Insecure { server: server.to_owned() }),
        _ => Err(wrong("it begins with neither http:// nor https://")),
    }
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn roots(file: &Path) -> Result<RootCerts, ClientError> {
    let unusable = |reason: String| ClientError::Certificate { file: file.display().to_string(), reason };
    let pem = fs::read(file).map_err(|error| unusable(error.to_string()))?;
    let mut certificates: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| unusable(error.to_string()))? {
            certificates.push(certificate);
        }
    }
    match certificates.is_empty() {
        true => Err(unusable("there is none in it".to_owned())),
        false => Ok(RootCerts::from(certificates)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(server: &str) -> String {
        Connection::new(server, "tdm_1_x", None).map_or_else(|error| error.code(), |_| "fine".to_owned())
    }

    #[test]
    fn a_token_goes_over_plain_http_to_this_machine_only() {
        for fine in ["http://127.0.0.1:8080", "http://localhost", "http://[::1]:8080/", "https://streams.example.org"] {
            assert_eq!(code(fine), "fine", "{fine}");
        }
        for server in ["http://streams.example.org", "http://10.0.0.1:8080", "http://127.0.0.1.example.org"] {
            assert_eq!(code(server), "SERVER_NEEDS_HTTPS", "{server}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_one_looks_like() {
        for server in ["", "here", "ftp://127.0.0.1", "http://user:word@127.0.0.1", "http://127.0.0.1/v1", "http://"] {
            assert_eq!(code(server), "SERVER_ADDRESS_INVALID", "{server}");
        }
    }

    #[test]
    fn a_token_with_a_line_end_is_refused_before_it_is_sent() {
        let refused = Connection::new("http://127.0.0.1", "tdm_1_x\r\nx: y", None).unwrap_err();
        assert_eq!(refused.code(), "PROFILE_INVALID");
    }

    #[test]
    fn a_server_that_is_not_there_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let connection = Connection::new(&server, "tdm_1_x", None).unwrap();

        let error = connection.ask(Method::GET, "/v1/status", &[], Body::Empty).unwrap_err();

        assert_eq!(error.code(), "SERVER_UNREACHABLE");
        assert!(error.to_string().contains(&server));
    }
}
