//! Where a query stands: all that the next batch builds on, read off the log.

use super::commit::{Bootstrap, CommitHeader, LeftOut, SinkRole, SourceRole};
use super::rollback::Rollback;
use super::source::SourceRange;
use super::watermark::Watermark;

/// Where a query stands after its last committed batch.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Head {
    /// The last batch ever committed, also if a rollback took it back; None: there was none.
    pub last_batch: Option<u64>,
    /// Grows with every rollback.
    pub generation: u32,
    /// Processing time of the last batch; no later batch is earlier.
    pub last_time_ms: i64,
    /// Event time.
    pub watermark: Watermark,
    /// Each step, by its number; none before the first batch.
    pub(super) steps: Vec<StepHead>,
    /// What was last read of each source.
    pub(super) last_read: Vec<(SourceRole, String, SourceRange)>,
    /// Rows published so far, by role, with the sink that has them.
    pub(super) rows_published: Vec<(SinkRole, String, u64)>,
}

/// Where a step stands after the last committed batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StepHead {
    /// How far its initial state has been read.
    pub bootstrap: Bootstrap,
    /// State rows over all variables.
    pub state_rows: u64,
}

impl Default for Head {
    fn default() -> Self {
        Self::new()
    }
}

impl Head {
    /// Before the first batch.
    pub fn new() -> Self {
        Self {
            last_batch: None,
            generation: 0,
            last_time_ms: i64::MIN,
            watermark: Watermark::default(),
            steps: Vec::new(),
            last_read: Vec::new(),
            rows_published: Vec::new(),
        }
    }

    /// The id of the next batch.
    pub fn next_batch(&self) -> u64 {
        self.last_batch.map_or(0, |batch| batch + 1)
    }

    /// After a batch that was left out.
    pub fn leave_out(&mut self, left_out: LeftOut) {
        self.watermark.leave_out(left_out.watermark_ms);
    }

    /// After one more batch.
    pub fn commit(&mut self, header: &CommitHeader) {
        self.last_batch = Some(header.batch_id);
        self.generation = header.generation;
        self.last_time_ms = header.time.processing_time_ms;
        self.watermark = Watermark::after(header.event_times.clone(), header.time.watermark_ms);
        let steps = header.steps.iter();
        self.steps = steps.map(|step| StepHead { bootstrap: step.bootstrap, state_rows: step.state_rows }).collect();
        self.read_up_to(header);
        for part in &header.sinks {
            self.rows_published.retain(|(role, ..)| *role != part.role);
            self.rows_published.push((part.role, part.sink.clone(), part.rows_total));
        }
    }

    /// After a rollback.
    pub fn roll_back(&mut self, rollback: &Rollback) {
        self.clone_from(&rollback.head);
    }

    /// Takes over where the sources of a batch stand.
    pub fn read_up_to(&mut self, header: &CommitHeader) {
        for source in &header.sources {
            self.last_read.retain(|(role, name, _)| (*role, name) != (source.role, &source.name));
            self.last_read.push((source.role, source.name.clone(), source.range.clone()));
        }
        // A source that was dropped begins anew if it comes back.
        let is_known = |name: &String| header.event_times.iter().any(|time| time.name == *name);
        self.last_read.retain(|(role, name, _)| *role != SourceRole::Input || is_known(name));
    }

    /// Where a step stands.
    pub fn step(&self, number: usize) -> StepHead {
        self.steps.get(number).copied().unwrap_or(StepHead { bootstrap: Bootstrap::None, state_rows: 0 })
    }

    /// State rows over all steps and variables.
    pub fn state_rows(&self) -> u64 {
        self.steps.iter().map(|step| step.state_rows).sum()
    }

    /// What was last read of a source, as far as retained batches tell.
    pub fn last_read(&self, role: SourceRole, name: &str) -> Option<&SourceRange> {
        self.last_read.iter().find(|(of, named, _)| *of == role && named == name).map(|(.., range)| range)
    }

    /// Rows given to this sink by all batches since it was taken; 0 for another one than that of the last batch.
    pub fn rows_published(&self, role: SinkRole, sink: &str) -> u64 {
        let published = self.rows_published.iter().find(|(of, given, _)| *of == role && given == sink);
        published.map_or(0, |(.., rows)| *rows)
    }
}
