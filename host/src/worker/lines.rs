//! Log lines, of processors and of the engine, on their way to the server.

use std::fmt::{Debug, Write};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use super::cut;
use crate::ipc::worker::{Line, Report};
use crate::ipc::{Sender, encode};

/// What lines of processors are marked with.
const PROCESSOR: &str = "processor";

/// The engine's own ids of the queries that are open, with those of the server.
static QUERIES: RwLock<Vec<(String, String)>> = RwLock::new(Vec::new());

/// Lines of this engine's id are of this query.
pub(super) fn name(engine_id: &str, query: &str) {
    let mut queries = QUERIES.write().unwrap_or_else(PoisonError::into_inner);
    queries.retain(|(id, known)| id != engine_id && known != query);
    queries.push((engine_id.to_owned(), query.to_owned()));
}

/// From now on, lines go to the server.
pub(super) fn send_to(sender: &Arc<Sender>) {
    let wanted = Targets::new().with_target(PROCESSOR, LevelFilter::INFO).with_default(LevelFilter::WARN);
    let lines = Lines { sender: Arc::clone(sender) }.with_filter(wanted);
    // It fails if there is a subscriber already, which then has the lines.
    drop(tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines)));
}

struct Lines {
    sender: Arc<Sender>,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let line = Line {
            query: fields.query(),
            level: match *event.metadata().level() {
                Level::ERROR => 0,
                Level::WARN => 1,
                Level::INFO => 2,
                Level::DEBUG => 3,
                Level::TRACE => 4,
            },
            of_processor: event.metadata().target() == PROCESSOR,
            batch: fields.batch,
            text: cut(without_control(&fields.text)),
        };
        // A server that is gone is noticed where orders are received.
        drop(encode(&Report::Line(line)).and_then(|bytes| self.sender.send(&bytes, &[])));
    }
}

#[derive(Default)]
struct Fields {
    engine_id: Option<String>,
    batch: Option<u64>,
    text: String,
}

impl Fields {
    /// Without an id that is known, a line is of the query whose thread writes it: that is named after it.
    fn query(&self) -> Option<String> {
        let queries = QUERIES.read().unwrap_or_else(PoisonError::into_inner);
        let named = queries.iter().find(|(engine_id, _)| Some(engine_id) == self.engine_id.as_ref());
        named.map(|(_, query)| query.clone()).or_else(|| super::query::of_thread(&thread::current()))
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => write!(self.text, "{value:?}").unwrap_or_default(),
            "query_id" => self.engine_id = Some(format!("{value:?}")),
            "batch_id" | "step" | "key_group" => {}
            name => write!(self.text, " {name}={value:?}").unwrap_or_default(),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "batch_id" => self.batch = Some(value),
            _ => self.record_debug(field, &value),
        }
    }
}

fn without_control(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => clean.push(character),
            '\n' => clean.push(' '),
            _ if character.is_control() => write!(clean, "\\u{{{:x}}}", character as u32).unwrap_or_default(),
            _ => clean.push(character),
        }
    }
    clean
}
