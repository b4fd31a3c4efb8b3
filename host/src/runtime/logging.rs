//! What guests log and print: joined to lines, bounded, free of control characters, and passed on with the query and
//! batch they belong to. The last lines are kept for the report of a trap.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::limits::Limits;

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

/// Where a piece of printed text was printed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stdio {
    Stdout,
    Stderr,
}

/// Where lines come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) query_id: String,
    pub(super) step: u8,
    pub(super) batch_id: u64,
    pub(super) key_group: u16,
}

/// Longest line that is passed on. Longer ones are cut; a reader of logs wants the start.
const LINE_BYTES_MAX: usize = 1_024;
/// Lines kept for the report of a trap: a panic with its location, or a traceback.
const TAIL_LINES: usize = 20;

/// The log of one instance; clones write to the same one (the streams of WASI hold some).
#[derive(Debug, Clone)]
pub(super) struct Log(Arc<Mutex<Lines>>);

impl Log {
    pub(super) fn new(origin: Origin, limits: &Limits) -> Self {
        Self(Arc::new(Mutex::new(Lines {
            origin,
            lines_left: limits.log_lines,
            bytes_left: limits.log_bytes,
            dropped: 0,
            tail: VecDeque::with_capacity(TAIL_LINES),
            stdout: Vec::new(),
            stderr: Vec::new(),
        })))
    }

    /// One message, possibly of several lines.
    pub(super) fn message(&self, level: Level, message: &str) {
        let mut lines = self.lines();
        for line in message.lines() {
            lines.add(level, line);
        }
    }

    /// A piece of what a runtime prints.
    pub(super) fn print(&self, to: Stdio, bytes: &[u8]) {
        self.lines().print(to, bytes);
    }

    /// Passes on what has been printed without an end of line, and says how much was dropped.
    pub(super) fn finish(&self) {
        self.lines().finish();
    }

    /// The last lines, oldest first.
    pub(super) fn tail(&self) -> Vec<String> {
        let mut lines = self.lines();
        lines.flush_partial();
        lines.tail.iter().cloned().collect()
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        // Nothing that could panic runs under the lock and leaves it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Lines {
    origin: Origin,
    lines_left: usize,
    bytes_left: usize,
    dropped: u64,
    tail: VecDeque<String>,
    /// Printed, but not yet ended by a line feed; never longer than a line.
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Lines {
    fn add(&mut self, level: Level, line: &str) {
        let line = printable(line);
        if self.tail.len() == TAIL_LINES {
            self.tail.pop_front();
        }
        if !is_wanted(level) {
            // Costs nothing, and is not missed; a trap still shows it.
        } else if self.lines_left == 0 || self.bytes_left < line.len() {
            self.dropped += 1;
        } else {
            self.lines_left -= 1;
            self.bytes_left -= line.len();
            emit(&self.origin, level, &line);
        }
        self.tail.push_back(line);
    }

    fn print(&mut self, to: Stdio, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(end);
            self.extend_partial(to, line);
            self.end_line(to);
            rest = after.get(1..).unwrap_or_default();
        }
        self.extend_partial(to, rest);
    }

    fn partial(&mut self, to: Stdio) -> &mut Vec<u8> {
        match to {
            Stdio::Stdout => &mut self.stdout,
            Stdio::Stderr => &mut self.stderr,
        }
    }

    fn extend_partial(&mut self, to: Stdio, bytes: &[u8]) {
        let partial = self.partial(to);
        let room = (LINE_BYTES_MAX + 1).saturating_sub(partial.len());
        partial.extend(bytes.iter().take(room));
    }

    fn end_line(&mut self, to: Stdio) {
        let line = std::mem::take(self.partial(to));
        let level = match to {
            Stdio::Stdout => Level::Info,
            Stdio::Stderr => Level::Warn,
        };
        self.add(level, &String::from_utf8_lossy(&line));
    }

    fn flush_partial(&mut self) {
        for to in [Stdio::Stdout, Stdio::Stderr] {
            if !self.partial(to).is_empty() {
                self.end_line(to);
            }
        }
    }

    fn finish(&mut self) {
        self.flush_partial();
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            let text = format!(
                "{dropped} lines of the processor were dropped: the batch has used up limits.sandbox.log_lines or limits.sandbox.log_bytes"
            );
            emit(&self.origin, Level::Warn, &text);
        }
    }
}

/// Cuts a line and spells out control characters, so that no guest can move the cursor of a terminal or forge a line.
fn printable(line: &str) -> String {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let mut text = String::with_capacity(line.len().min(LINE_BYTES_MAX));
    for character in line.chars() {
        if text.len() + character.len_utf8() > LINE_BYTES_MAX {
            text.push('…');
            break;
        }
        match character {
            '\t' => text.push(character),
            _ if character.is_control() => write!(text, "\\u{{{:x}}}", character as u32).unwrap_or_default(),
            _ => text.push(character),
        }
    }
    text
}

/// Whether anybody asked for lines of this level. Those that people write for everyday use are always wanted, so that what is
/// dropped of them is counted.
fn is_wanted(level: Level) -> bool {
    match level {
        Level::Trace => tracing::enabled!(target: "processor", tracing::Level::TRACE),
        Level::Debug => tracing::enabled!(target: "processor", tracing::Level::DEBUG),
        Level::Info | Level::Warn | Level::Error => true,
    }
}

fn emit(origin: &Origin, level: Level, text: &str) {
    let Origin { query_id, step, batch_id, key_group } = origin;
    match level {
        Level::Trace => tracing::trace!(target: "processor", %query_id, step, batch_id, key_group, "{text}"),
        Level::Debug => tracing::debug!(target: "processor", %query_id, step, batch_id, key_group, "{text}"),
        Level::Info => tracing::info!(target: "processor", %query_id, step, batch_id, key_group, "{text}"),
        Level::Warn => tracing::warn!(target: "processor", %query_id, step, batch_id, key_group, "{text}"),
        Level::Error => tracing::error!(target: "processor", %query_id, step, batch_id, key_group, "{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(limits: &Limits) -> Log {
        let origin = Origin { query_id: "q".into(), step: 0, batch_id: 7, key_group: 0 };
        Log::new(origin, limits)
    }

    #[test]
    fn pieces_that_are_printed_are_joined_to_lines() {
        let log = log(&Limits::default());
        log.print(Stdio::Stderr, b"panicked ");
        log.print(Stdio::Stderr, b"at x\nsecond");
        assert_eq!(log.tail(), ["panicked at x", "second"]);
    }

    #[test]
    fn the_two_streams_do_not_mix() {
        let log = log(&Limits::default());
        log.print(Stdio::Stdout, b"out ");
        log.print(Stdio::Stderr, b"err\n");
        log.print(Stdio::Stdout, b"more\n");
        assert_eq!(log.tail(), ["err", "out more"]);
    }

    #[test]
    fn control_characters_are_spelt_out() {
        let log = log(&Limits::default());
        log.message(Level::Info, "a\u{1b}[2Jb\tc");
        assert_eq!(log.tail(), ["a\\u{1b}[2Jb\tc"]);
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced() {
        let log = log(&Limits::default());
        log.print(Stdio::Stdout, b"\xff\n");
        assert_eq!(log.tail(), ["\u{fffd}"]);
    }

    #[test]
    fn long_lines_are_cut_at_a_character() {
        let log = log(&Limits::default());
        log.message(Level::Info, &"é".repeat(LINE_BYTES_MAX));
        let line = log.tail().remove(0);
        assert_eq!(line, "é".repeat(LINE_BYTES_MAX / 2) + "…");
    }

    #[test]
    fn a_flood_without_line_feeds_takes_no_more_than_a_line() {
        let log = log(&Limits::default());
        for _ in 0..1_000 {
            log.print(Stdio::Stdout, &[b'x'; 1_000]);
        }
        assert!(log.lines().stdout.len() <= LINE_BYTES_MAX + 1);
    }

    #[test]
    fn the_tail_goes_on_when_the_budget_is_used_up() {
        let log = log(&Limits { log_lines: 1, ..Limits::default() });
        for line in 0..100 {
            log.message(Level::Info, &format!("line {line}"));
        }
        let tail = log.tail();
        assert_eq!(tail.len(), TAIL_LINES);
        assert_eq!(tail.last().unwrap(), "line 99");
        assert_eq!(log.lines().dropped, 99);
    }

    #[test]
    fn lines_of_a_level_that_nobody_asked_for_use_up_no_budget() {
        let log = log(&Limits { log_lines: 1, ..Limits::default() });
        for line in 0..100 {
            log.message(Level::Debug, &format!("line {line}"));
        }
        log.message(Level::Info, "seen");
        assert_eq!(log.lines().dropped, 0);
        assert_eq!(log.tail().last().unwrap(), "seen");
    }
}
