//! Event time: how far it has come, in each source and in all of them, and which rows are late.

use super::settings::{InputSettings, WatermarkPolicy, WatermarkSettings};

/// Where a query's event time stands.
///
/// Batch N fires timers by the watermark that the rows up to batch N-1 gave, and judges late rows by the watermark of
/// batch N-1, so that a row is never late because of rows of its own batch.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Watermark {
    /// Each source, as after the last batch.
    sources: Vec<SourceTime>,
    /// The watermark of the last batch, run or left out; rows at or before it are late.
    last_ms: i64,
}

/// Where the event time of one source stands.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SourceTime {
    /// The source's name.
    pub name: String,
    /// Latest event time seen, in microseconds.
    pub event_time_max_us: Option<i64>,
    /// Processing time of the last batch that had rows of it, or of the first batch, in milliseconds.
    pub active_ms: i64,
    /// Rows of it in the last batch that read.
    pub rows: u64,
    /// Whether it had been without rows for so long that it did not hold the watermark of the last batch back.
    pub idle: bool,
}

impl SourceTime {
    fn is_idle(&self, timeout_ms: Option<u64>, now_ms: i64) -> bool {
        let silent_ms = u64::try_from(now_ms.saturating_sub(self.active_ms)).unwrap_or(0);
        timeout_ms.is_some_and(|timeout_ms| silent_ms >= timeout_ms)
    }
}

/// What a batch saw of one source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) rows: u64,
    pub(super) event_time_max_us: Option<i64>,
}

impl Watermark {
    /// As it stands after a batch.
    pub(super) fn after(sources: Vec<SourceTime>, last_ms: i64) -> Self {
        Self { sources, last_ms }
    }

    /// The watermark of the next batch, at this processing time; never less than that of the last. Sources that have been
    /// without rows for longer than their idle timeout have no say; one that has had none yet stands at 0.
    pub fn next_ms(&self, sources: &[InputSettings], policy: WatermarkPolicy, now_ms: i64) -> i64 {
        let of_sources = sources.iter().filter_map(|input| {
            let delay_ms = i64::try_from(input.watermark.as_ref()?.delay_ms).unwrap_or(i64::MAX);
            match self.source(&input.name) {
                Some(time) if time.is_idle(input.idle_timeout_ms, now_ms) => None,
                time => {
                    let max_us = time.and_then(|time| time.event_time_max_us);
                    Some(max_us.map_or(0, |max_us| max_us.div_euclid(1000).saturating_sub(delay_ms)))
                }
            }
        });
        let next_ms = match policy {
            WatermarkPolicy::Min => of_sources.min(),
            WatermarkPolicy::Max => of_sources.max(),
        };
        next_ms.map_or(self.last_ms, |next_ms| next_ms.max(self.last_ms))
    }

    /// The sources after one more batch, at this processing time. `seen` tells what it saw of each, or None if it did not
    /// read.
    pub(super) fn sources_after(
        &self,
        sources: &[InputSettings],
        now_ms: i64,
        seen: impl Fn(&str) -> Option<Seen>,
    ) -> Vec<SourceTime> {
        let after = |input: &InputSettings| {
            let before = self.source(&input.name).cloned();
            let mut time = before.unwrap_or_else(|| SourceTime {
                name: input.name.clone(),
                event_time_max_us: None,
                active_ms: now_ms,
                rows: 0,
                idle: false,
            });
            time.idle = time.is_idle(input.idle_timeout_ms, now_ms);
            if let Some(Seen { rows, event_time_max_us }) = seen(&input.name) {
                time.rows = rows;
                time.event_time_max_us = time.event_time_max_us.max(event_time_max_us);
                time.active_ms = if rows > 0 { now_ms } else { time.active_ms };
            }
            time
        };
        sources.iter().map(after).collect()
    }

    /// The watermark of the last batch.
    pub fn last_ms(&self) -> i64 {
        self.last_ms
    }

    /// A source, as after the last batch; None: no batch knew it.
    pub fn source(&self, name: &str) -> Option<&SourceTime> {
        self.sources.iter().find(|time| time.name == name)
    }

    /// After a batch that was left out.
    pub(super) fn leave_out(&mut self, watermark_ms: i64) {
        self.last_ms = watermark_ms;
    }
}

/// The latest event time, in microseconds, that moves the watermark in a batch of this processing time. What is later is
/// most likely the mistake of one clock, which must not make the rows of all others late.
pub fn horizon_us(settings: Option<&WatermarkSettings>, processing_time_ms: i64) -> i64 {
    let max_future_ms = settings.and_then(|settings| settings.max_future_ms);
    max_future_ms.map_or(i64::MAX, |ms| processing_time_ms.saturating_add_unsigned(ms).saturating_mul(1000))
}

/// Whether a row comes too late: at or before the watermark of the batch before. Compared in microseconds.
pub fn is_late(event_time_us: i64, late_watermark_ms: i64) -> bool {
    event_time_us <= late_watermark_ms.saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(name: &str, delay_ms: u64) -> InputSettings {
        let watermark = Some(WatermarkSettings { column: "t".into(), delay_ms, max_future_ms: None });
        InputSettings { name: name.to_owned(), watermark, idle_timeout_ms: None }
    }

    /// Batches of a query, each at the processing time of its number.
    struct Batches {
        inputs: Vec<InputSettings>,
        policy: WatermarkPolicy,
        watermark: Watermark,
        now_ms: i64,
    }

    impl Batches {
        fn of(inputs: Vec<InputSettings>) -> Self {
            Self { inputs, policy: WatermarkPolicy::Min, watermark: Watermark::default(), now_ms: 0 }
        }

        fn with_delay(delay_ms: u64) -> Self {
            Self::of(vec![input("a", delay_ms)])
        }

        fn next_ms(&self) -> i64 {
            self.watermark.next_ms(&self.inputs, self.policy, self.now_ms)
        }

        /// A batch that saw these event times, in microseconds, of the sources in order.
        fn batch(mut self, times_us: &[Option<i64>]) -> Self {
            let last_ms = self.next_ms();
            let place = |name: &str| self.inputs.iter().position(|input| input.name == name);
            let seen = |name: &str| {
                let event_time_max_us = place(name).and_then(|place| times_us.get(place).copied().flatten());
                Some(Seen { rows: event_time_max_us.is_some().into(), event_time_max_us })
            };
            let sources = self.watermark.sources_after(&self.inputs, self.now_ms, seen);
            self.watermark = Watermark::after(sources, last_ms);
            self.now_ms += 1;
            self
        }
    }

    #[test]
    fn it_is_the_latest_event_time_less_the_delay_one_batch_later() {
        let batches = Batches::with_delay(10_000).batch(&[Some(25_000_999)]);

        assert_eq!(batches.watermark.last_ms(), 0);
        assert_eq!(batches.next_ms(), 15_000);
    }

    #[test]
    fn it_never_goes_back() {
        let batches = Batches::with_delay(0).batch(&[Some(50_000_000)]).batch(&[Some(20_000_000)]);

        assert_eq!(batches.watermark.last_ms(), 50_000);
        assert_eq!(batches.next_ms(), 50_000);
    }

    #[test]
    fn a_batch_without_event_times_leaves_it_where_it_is() {
        let batches = Batches::with_delay(1_000).batch(&[Some(9_000_000)]).batch(&[None]);

        assert_eq!((batches.watermark.last_ms(), batches.next_ms()), (8_000, 8_000));
    }

    #[test]
    fn extreme_times_neither_wrap_nor_fail() {
        let earliest = Batches::with_delay(u64::MAX).batch(&[Some(i64::MIN)]);
        let latest = Batches::with_delay(0).batch(&[Some(i64::MAX)]);

        assert_eq!(earliest.next_ms(), 0);
        assert_eq!(latest.next_ms(), i64::MAX / 1000);
        assert!(is_late(i64::MAX, i64::MAX));
    }

    #[test]
    fn the_horizon_is_so_far_ahead_of_the_batch_or_nowhere() {
        let with = |max_future_ms| WatermarkSettings { column: "t".into(), delay_ms: 0, max_future_ms };

        assert_eq!(horizon_us(Some(&with(Some(5))), 1_000), 1_005_000);
        assert_eq!(horizon_us(Some(&with(Some(u64::MAX))), i64::MIN), i64::MAX);
        assert_eq!(horizon_us(Some(&with(Some(0))), i64::MIN), i64::MIN);
        assert_eq!(horizon_us(Some(&with(None)), 1_000), i64::MAX);
        assert_eq!(horizon_us(None, 1_000), i64::MAX);
    }

    #[test]
    fn of_several_sources_it_is_the_least_and_by_the_other_policy_the_greatest() {
        let batches = Batches::of(vec![input("a", 0), input("b", 2_000)]).batch(&[Some(9_000_000), Some(7_000_000)]);

        assert_eq!(batches.next_ms(), 5_000);
        assert_eq!(Batches { policy: WatermarkPolicy::Max, ..batches }.next_ms(), 9_000);
    }

    #[test]
    fn a_source_without_rows_holds_it_at_0_until_it_is_idle() {
        let patient = input("b", 0);
        let idle = InputSettings { idle_timeout_ms: Some(3), ..patient.clone() };
        for (second, expected) in [(patient, [0, 0, 0]), (idle, [0, 0, 9_000])] {
            let mut batches = Batches::of(vec![input("a", 0), second]).batch(&[Some(9_000_000), None]);
            for expected in expected {
                assert_eq!(batches.next_ms(), expected, "at {}", batches.now_ms);
                batches = batches.batch(&[None, None]);
            }
        }
    }

    #[test]
    fn a_source_that_was_idle_has_its_say_again_with_its_next_row() {
        let second = InputSettings { idle_timeout_ms: Some(2), ..input("b", 0) };
        let batches = Batches::of(vec![input("a", 0), second]).batch(&[Some(9_000_000), None]).batch(&[None, None]);
        assert_eq!(batches.next_ms(), 9_000);
        let batches = batches.batch(&[Some(9_000_000), Some(1_000_000)]).batch(&[Some(20_000_000), Some(12_000_000)]);

        assert_eq!(batches.next_ms(), 12_000);
    }

    #[test]
    fn a_row_at_the_watermark_is_late_and_one_microsecond_after_is_not() {
        assert!(is_late(5_000_000, 5_000));
        assert!(!is_late(5_000_001, 5_000));
    }
}
