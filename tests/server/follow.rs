//! A consumer that follows the results of a query as they come.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Longer than anything takes here, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Position of the row.
    pub id: String,
    /// `row`, `rollback` or `end`.
    pub kind: String,
    pub data: Value,
}

/// An open stream; it ends when the server ends it.
pub struct Follower(BufReader<TcpStream>);

impl Follower {
    /// Follows what is at this path behind the last event that is known.
    pub fn new(api: &str, token: &str, path: &str, last: Option<&str>) -> Self {
        let address = api.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        // With HTTP 1.0 the body is what comes until the end.
        write!(
            stream,
            "GET {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream\r\n\
             {last}\r\n"
        )
        .unwrap();
        let mut follower = Self(BufReader::new(stream));
        let status = follower.line().unwrap();
        assert!(status.contains(" 200 "), "{status}");
        while follower.line().is_some_and(|line| !line.is_empty()) {}
        follower
    }

    /// A line; None: the stream has ended, or broke off.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).unwrap_or(0);
        (read > 0).then(|| line.trim_end().to_owned())
    }
}

impl Iterator for Follower {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let mut event = Event { id: String::new(), kind: String::new(), data: Value::Null };
        loop {
            let line = self.line()?;
            match line.split_once(": ") {
                Some(("id", id)) => id.clone_into(&mut event.id),
                Some(("event", kind)) => kind.clone_into(&mut event.kind),
                Some(("data", data)) => event.data = serde_json::from_str(data).unwrap(),
                // An empty line ends an event; a comment keeps the connection alive.
                _ if line.is_empty() && !event.kind.is_empty() => return Some(event),
                _ => {}
            }
        }
    }
}
