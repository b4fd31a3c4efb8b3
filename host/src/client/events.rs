//! Server-sent events, as they come.

use std::io::{BufRead, BufReader, Read};

use super::error::ClientError;

/// Longest line of a stream.
const LINE_BYTES_MAX: u64 = 32 << 20;

/// Something that a server tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Where it stands in the stream: what to go on behind.
    pub id: Option<String>,
    /// What kind of thing it is; empty for the stream's own kind.
    pub kind: String,
    /// What it says.
    pub data: String,
}

/// A stream of events. Ends where the server ends it.
pub struct Events {
    server: String,
    lines: BufReader<Box<dyn Read + Send>>,
}

impl Events {
    pub(super) fn new(server: String, stream: impl Read + Send + 'static) -> Self {
        Self { server, lines: BufReader::new(Box::new(stream)) }
    }

    /// Reads to the end of an event. None: the stream ended before one.
    fn read(&mut self) -> Result<Option<Event>, String> {
        let mut event = Event::default();
        let mut data: Option<String> = None;
        loop {
            let mut line = Vec::new();
            let read =
                (&mut self.lines).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(|e| e.to_string())?;
            if read == 0 {
                return Ok(None);
            }
            if line.pop() != Some(b'\n') {
                return Err("a line has no end".to_owned());
            }
            let line = String::from_utf8(line).map_err(|_| "a line is not UTF-8".to_owned())?;
            let line = line.strip_suffix('\r').unwrap_or(&line);
            if line.is_empty() {
                match data.take() {
                    Some(data) => return Ok(Some(Event { data, ..event })),
                    // Only a sign of life.
                    None => event = Event::default(),
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" => event.id = Some(value.to_owned()),
                "event" => value.clone_into(&mut event.kind),
                "data" => match &mut data {
                    None => data = Some(value.to_owned()),
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                },
                _ => {}
            }
        }
    }
}

impl Iterator for Events {
    type Item = Result<Event, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read();
        read.map_err(|reason| ClientError::Interrupted { server: self.server.clone(), reason }).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &'static str) -> Vec<Result<Event, String>> {
        let events = Events::new("http://127.0.0.1".to_owned(), text.as_bytes());
        events.map(|event| event.map_err(|error| error.code())).collect()
    }

    fn event(id: Option<&str>, kind: &str, data: &str) -> Result<Event, String> {
        Ok(Event { id: id.map(str::to_owned), kind: kind.to_owned(), data: data.to_owned() })
    }

    #[test]
    fn an_event_has_an_id_a_kind_and_lines_of_data() {
        let text = "id: 0-1-0\nevent: row\ndata: {\"a\":1}\n\ndata:x\r\ndata: y\r\n\r\n";
        assert_eq!(events(text), [event(Some("0-1-0"), "row", "{\"a\":1}"), event(None, "", "x\ny")]);
    }

    #[test]
    fn signs_of_life_are_no_events() {
        assert_eq!(events(": here\n\n\nevent: nothing\n\ndata: x\n\n"), [event(None, "", "x")]);
    }

    #[test]
    fn an_event_without_its_end_is_none() {
        assert_eq!(events("data: x\n\ndata: y\n"), [event(None, "", "x")]);
        assert_eq!(events("data: x"), [Err("SERVER_STREAM_INTERRUPTED".to_owned())]);
    }
}
