//! Event time: how far it has come, and which rows are late.

use super::settings::WatermarkSettings;

/// Where a query's event time stands.
///
/// Batch N fires timers by the watermark that the rows up to batch N-1 gave, and judges late rows by the watermark of
/// batch N-1, so that a row is never late because of rows of its own batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Watermark {
    delay_ms: i64,
    /// Latest event time seen, in microseconds.
    event_time_max_us: Option<i64>,
    /// The watermark of the last batch, run or left out; rows at or before it are late.
    last_ms: i64,
}

impl Watermark {
    /// As it stands after the last committed batch.
    pub fn restored(settings: Option<&WatermarkSettings>, event_time_max_us: Option<i64>, last_ms: i64) -> Self {
        let delay_ms = settings.map_or(0, |settings| i64::try_from(settings.delay_ms).unwrap_or(i64::MAX));
        Self { delay_ms, event_time_max_us, last_ms }
    }

    /// The watermark of the next batch; never less than that of the last.
    pub fn next_ms(&self) -> i64 {
        let Some(max_us) = self.event_time_max_us else { return self.last_ms };
        max_us.div_euclid(1000).saturating_sub(self.delay_ms).max(self.last_ms)
    }

    /// The watermark of the last batch.
    pub fn last_ms(&self) -> i64 {
        self.last_ms
    }

    /// The latest event time seen, in microseconds.
    pub fn event_time_max_us(&self) -> Option<i64> {
        self.event_time_max_us
    }

    /// After a batch that saw rows up to `event_time_max_us`.
    pub fn after_batch(&self, event_time_max_us: Option<i64>) -> Self {
        Self {
            event_time_max_us: self.event_time_max_us.max(event_time_max_us),
            last_ms: self.next_ms(),
            delay_ms: self.delay_ms,
        }
    }

    /// After a batch that was left out.
    pub fn after_left_out(&self) -> Self {
        self.after_batch(None)
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

    fn with_delay(delay_ms: u64) -> Watermark {
        let settings = WatermarkSettings { column: "t".into(), delay_ms, max_future_ms: None };
        Watermark::restored(Some(&settings), None, 0)
    }

    #[test]
    fn it_is_the_latest_event_time_less_the_delay_one_batch_later() {
        let watermark = with_delay(10_000).after_batch(Some(25_000_999));

        assert_eq!(watermark.last_ms(), 0);
        assert_eq!(watermark.next_ms(), 15_000);
    }

    #[test]
    fn it_never_goes_back() {
        let watermark = with_delay(0).after_batch(Some(50_000_000)).after_batch(Some(20_000_000));

        assert_eq!(watermark.last_ms(), 50_000);
        assert_eq!(watermark.next_ms(), 50_000);
    }

    #[test]
    fn a_batch_without_event_times_leaves_it_where_it_is() {
        let watermark = with_delay(1_000).after_batch(Some(9_000_000)).after_batch(None);

        assert_eq!((watermark.last_ms(), watermark.next_ms()), (8_000, 8_000));
    }

    #[test]
    fn a_left_out_batch_counts_for_lateness() {
        let watermark = with_delay(0).after_batch(Some(7_000_000)).after_left_out();

        assert_eq!(watermark.last_ms(), 7_000);
    }

    #[test]
    fn extreme_times_neither_wrap_nor_fail() {
        let earliest = with_delay(u64::MAX).after_batch(Some(i64::MIN));
        let latest = with_delay(0).after_batch(Some(i64::MAX));

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
    fn a_row_at_the_watermark_is_late_and_one_microsecond_after_is_not() {
        assert!(is_late(5_000_000, 5_000));
        assert!(!is_late(5_000_001, 5_000));
    }
}
