//! Waiting for a condition, with a deadline and what was seen last.

use std::time::{Duration, Instant};

/// How long anything may take that takes a second on a quiet machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(45);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Looks until it finds something, and ends the test at the deadline with what the last look saw.
pub(crate) async fn until<T, S: std::fmt::Debug>(
    what: &str,
    patience: Duration,
    mut look: impl AsyncFnMut() -> Result<T, S>,
) -> T {
    let begun = Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) if begun.elapsed() > patience => {
                panic!("gave up waiting for {what} after {} s; seen last: {seen:#?}", patience.as_secs())
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
