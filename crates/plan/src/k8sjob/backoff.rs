//! How long a Job waits before it replaces a failed pod: ten seconds, and twice as long after each further failure.
//!
//! Nothing is remembered: the pods that failed are still there and say when. So a restart of this program forgets nothing.

use std::time::Duration;

use krafla_api::Time;

use super::pods::{JobPod, State};

const DELAY: Duration = Duration::from_secs(10);
const DELAY_MAX: Duration = Duration::from_secs(600);

/// When the Job may create pods again, if it must wait: counted are the failures since the last success. A pod that is on its
/// way out counts only as long as it is tracked: after that it may as well be one that the Job itself sent away.
pub(super) fn ready_at<'a>(pods: impl Iterator<Item = &'a JobPod<'a>> + Clone) -> Option<Time> {
    let last_success_at =
        pods.clone().filter(|pod| pod.state == State::Succeeded).map(JobPod::ended_at).max();
    let failures = pods
        .filter(|pod| pod.has_failed && (pod.is_tracked || !pod.meta().is_deleting()))
        .map(JobPod::ended_at);
    let mut since_success =
        failures.filter(|at| last_success_at.is_none_or(|success| *at > success)).peekable();
    since_success.peek()?;
    let (n_failures, last_at) = since_success
        .fold((0u32, Time::from_seconds(0)), |(n, last), at| (n.saturating_add(1), last.max(at)));
    Some(last_at.after(delay(n_failures)))
}

/// The wait after so many failures.
pub(super) fn delay(n_failures: u32) -> Duration {
    let doublings = n_failures.saturating_sub(1).min(16);
    DELAY.saturating_mul(1 << doublings).min(DELAY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_ten_minutes() {
        let seconds: Vec<u64> = (1..=9).map(|n| delay(n).as_secs()).collect();
        assert_eq!(seconds, [10, 20, 40, 80, 160, 320, 600, 600, 600]);
        assert_eq!(delay(u32::MAX).as_secs(), 600);
    }
}
