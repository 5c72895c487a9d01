//! The conditions of a Job.

use krafla_api::Time;
use krafla_api::batch::{JobCondition, JobStatus};

/// The Job will complete; its pods are on their way out.
pub(super) const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
/// The Job will fail; its pods are on their way out.
pub(super) const FAILURE_TARGET: &str = "FailureTarget";
/// The Job has completed.
pub(super) const COMPLETE: &str = "Complete";
/// The Job has failed.
pub(super) const FAILED: &str = "Failed";
/// Nothing of the Job runs, because somebody wants that.
pub(super) const SUSPENDED: &str = "Suspended";

/// Sets a condition, in place if it is there. One that never held is not said to hold no more. Returns whether anything
/// changed.
pub(super) fn set(
    status: &mut JobStatus,
    (condition_type, holds): (&str, bool),
    (reason, message): (&str, &str),
    now: Time,
) -> bool {
    let now = Some(now.whole_seconds());
    let new = JobCondition {
        condition_type: condition_type.to_owned(),
        status: if holds { "True" } else { "False" }.to_owned(),
        last_probe_time: now,
        last_transition_time: now,
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    match status.conditions.iter_mut().find(|condition| condition.condition_type == condition_type) {
        Some(old) if (&old.status, &old.reason, &old.message) == (&new.status, &new.reason, &new.message) => {
            false
        }
        Some(old) => {
            *old = new;
            true
        }
        None if holds => {
            status.conditions.push(new);
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_comes_once_and_changes_in_place() {
        let mut status = JobStatus::default();
        let mut say = |name: &str, holds: bool, reason: &str, second: i64| {
            let changed = set(&mut status, (name, holds), (reason, ""), Time::from_seconds(second));
            let said = |it: &JobCondition| {
                let since = it.last_transition_time.map_or(0, |at| at.0.as_second());
                assert_eq!(it.last_probe_time, it.last_transition_time);
                format!("{}={} {} since {since}", it.condition_type, it.status, it.reason)
            };
            (changed, status.conditions.iter().map(said).collect::<Vec<_>>().join(", "))
        };
        let held = "Suspended=True JobSuspended since 2".to_owned();
        assert_eq!(say(SUSPENDED, false, "JobResumed", 1), (false, String::new()), "it never held");
        assert_eq!(say(SUSPENDED, true, "JobSuspended", 2), (true, held.clone()));
        assert_eq!(say(SUSPENDED, true, "JobSuspended", 3), (false, held), "that is known");
        let ended = "Suspended=False JobResumed since 4".to_owned();
        assert_eq!(say(SUSPENDED, false, "JobResumed", 4), (true, ended.clone()));
        assert_eq!(
            say(FAILURE_TARGET, true, "A", 5),
            (true, format!("{ended}, FailureTarget=True A since 5"))
        );
        assert_eq!(
            say(FAILURE_TARGET, true, "B", 6),
            (true, format!("{ended}, FailureTarget=True B since 6"))
        );
    }
}
