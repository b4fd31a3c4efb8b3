//! What the server counts, for Prometheus: base units, and labels that come from the table of routes, so they are bounded.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// All metrics.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    seconds: Family<Operation, Histogram, fn() -> Histogram>,
    failed_logins: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    operation: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    operation: &'static str,
}

/// 1 ms to 65 s.
fn buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 4.0, 9))
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("tidemill");
        let requests = Family::default();
        let seconds = Family::new_with_constructor(buckets as fn() -> Histogram);
        let failed_logins = Counter::default();
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "Which program this is", build);
        registry.register("http_requests", "Requests that were answered, by operation and status", requests.clone());
        registry.register(
            "http_request_duration_seconds",
            "Time until the head of the answer, by operation",
            seconds.clone(),
        );
        registry.register("failed_logins", "Requests without a right token", failed_logins.clone());
        Self { registry, requests, seconds, failed_logins }
    }
}

impl Metrics {
    /// Notes that a request was answered.
    pub fn answered(&self, operation: &'static str, status: u16, took: Duration) {
        self.requests.get_or_create(&Answered { operation, status }).inc();
        self.seconds.get_or_create(&Operation { operation }).observe(took.as_secs_f64());
    }

    /// Notes a request without a right token.
    pub fn failed_login(&self) {
        self.failed_logins.inc();
    }

    /// All of it, as OpenMetrics.
    ///
    /// # Errors
    /// A metric cannot be written, which is a defect.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_shown_by_operation() {
        let metrics = Metrics::default();
        metrics.answered("getStatus", 200, Duration::from_millis(2));
        metrics.failed_login();

        let text = metrics.text().unwrap();

        assert!(text.contains("tidemill_http_requests_total{operation=\"getStatus\",status=\"200\"} 1"), "{text}");
        assert!(text.contains("tidemill_failed_logins_total 1"), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
