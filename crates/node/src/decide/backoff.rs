//! How long a container that fails again and again has to wait: not at all, 10 s, 20 s, ... 5 min.

use std::time::Duration;

use krafla_api::Time;

use crate::container::{End, Record};

const FIRST_SECONDS: u32 = 10;
const LONGEST_SECONDS: u32 = 300;
/// A container that ran for so long has earned a fresh start.
const FORGIVEN_AFTER: Duration = Duration::from_secs(2 * LONGEST_SECONDS as u64);

/// When a container that has ended may be started again.
pub(super) fn restart_at(record: &Record, end: &End) -> Time {
    let wait = if ran_for(record, end) > FORGIVEN_AFTER { 0 } else { record.backoff_seconds };
    Time(end.at).after(Duration::from_secs(wait.into()))
}

/// The back-off that the attempt after this one carries.
pub(super) fn after(record: &Record) -> u32 {
    let is_forgiven = record.end.as_ref().is_some_and(|end| ran_for(record, end) > FORGIVEN_AFTER);
    if is_forgiven || record.backoff_seconds == 0 {
        FIRST_SECONDS
    } else {
        record.backoff_seconds.saturating_mul(2).min(LONGEST_SECONDS)
    }
}

fn ran_for(record: &Record, end: &End) -> Duration {
    record.started_at.map_or(Duration::ZERO, |started_at| Time(end.at).since(Time(started_at)))
}
