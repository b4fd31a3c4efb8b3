//! What is kept for a day goes after that day.

use std::sync::Arc;
use std::time::Duration;

use super::meta::idempotency;
use super::{App, operations};

/// How often it is looked for.
const EVERY: Duration = Duration::from_secs(60 * 60);

/// Sweeps now and every hour.
pub(super) async fn regularly(app: Arc<App>) {
    let mut hours = tokio::time::interval(EVERY);
    loop {
        hours.tick().await;
        let swept = app.blocking(|app| {
            app.meta.write(|writing| idempotency::sweep(writing, app.now_ms()))?;
            Ok(operations::sweep(app)?)
        });
        if let Err(problem) = swept.await {
            tracing::warn!(code = problem.code(), "what is outdated could not be removed: {problem:?}");
        }
    }
}
