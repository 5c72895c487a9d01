//! What can go wrong, and when: every fault is tied to a write, counted from the start of the run.
//!
//! ```text
//!   process ---- write number n ---->|  here a fault strikes  |----> server
//!      ^                                                              |
//!      +--------- answer <--------------- or here <-------------------+
//!      +--------- watch, kind by kind <-- or here <-------------------+
//! ```
//!
//! One row of [`FAULTS`] per fault: its name on the command line and what it is. F numbers are those of the fault model.
//!
//! A process never begins with a list that is older than the store (F3): clients ask for consistent lists, because a
//! process without a memory could not tell. A list that is older than what a process has already seen is refused by its
//! cache, which is tested there.

use std::time::Duration;

use krafla_api::Kind;

/// What can go wrong at one write. "The process" is the one that makes the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// F1: the process dies before it sends the write.
    CrashBefore,
    /// F1: the process dies after the write took effect, before it hears so.
    CrashAfter,
    /// F6: no answer, and no effect.
    TimeoutBefore,
    /// F6: no answer, but the write took effect.
    TimeoutAfter,
    /// F6: the server has too much to do.
    Busy,
    /// F6: a quota or a webhook says no.
    Refused,
    /// F6: for [`OUTAGE`], no request of anybody is answered.
    Outage,
    /// F5: the server says that the object has changed.
    Conflict,
    /// F5: somebody else changes the object just before.
    Touched,
    /// F6: the answer is lost and the client library sends the write again; its second answer counts.
    Retried,
    /// F2: from now on news of a kind reach the process [`LATE`].
    Late(Kind),
    /// F2: for [`HANG`], longer than the engine's patience, no news of a kind reach the process.
    Hang(Kind),
    /// F4: the watch of a kind breaks and its place in history is forgotten: the process lists again.
    Relist(Kind),
    /// F4: the watch of a kind breaks and resumes a little earlier: some news come twice.
    Repeat(Kind),
    /// F7: the process is stopped for [`PAUSE`] just before it sends the write, and then goes on as if nothing had been.
    Paused,
    /// F7: from now on the clock of the process is [`AHEAD`] of the server's.
    ClockAhead,
    /// F7: from now on the clock of the process is [`BEHIND`] the server's.
    ClockBehind,
    /// F7: for [`GLITCH`] the clock of the process is [`GLITCH_BACK`] behind the server's; then it is right again.
    ClockGlitch,
    /// F8: the process is stopped for [`PAUSE`] just before it sends the write, and another takes its place. The plan that it was
    /// about it finishes when it wakes; then it learns that it was replaced, and ends.
    Deposed,
    /// F8: another takes the place of the process, which learns that only after [`TOGETHER`]: until then both decide and write.
    TwoLeaders,
}

/// How long a process is stopped: longer than a lease lasts.
pub(crate) const PAUSE: Duration = Duration::from_secs(60);
/// How long two processes both take the place for theirs: longer than most jobs of the scenarios live.
pub(crate) const TOGETHER: Duration = Duration::from_secs(30);
/// How far a clock can be ahead of the server's.
pub(crate) const AHEAD: Duration = Duration::from_secs(300);
/// How far a clock can be behind the server's. A step from one to the other is shorter than what counts as rest.
pub(crate) const BEHIND: Duration = Duration::from_secs(200);

/// How long a clock glitch lasts.
pub(crate) const GLITCH: Duration = Duration::from_secs(28);
/// How far a clock is behind in a glitch.
pub(crate) const GLITCH_BACK: Duration = Duration::from_secs(3600);

/// How late news are.
pub(crate) const LATE: Duration = Duration::from_secs(2);
/// How long a watch hangs.
pub(crate) const HANG: Duration = Duration::from_secs(45);
/// How long an outage lasts.
pub(crate) const OUTAGE: Duration = Duration::from_secs(300);
/// How many revisions early a resumed watch starts.
pub(crate) const REVISIONS_BACK: u64 = 6;

/// Every fault and its name.
pub const FAULTS: &[(&str, Fault)] = &[
    ("crash-before", Fault::CrashBefore),
    ("crash-after", Fault::CrashAfter),
    ("timeout-before", Fault::TimeoutBefore),
    ("timeout-after", Fault::TimeoutAfter),
    ("busy", Fault::Busy),
    ("refused", Fault::Refused),
    ("outage", Fault::Outage),
    ("conflict", Fault::Conflict),
    ("touched", Fault::Touched),
    ("retried", Fault::Retried),
    ("late-jobs", Fault::Late(Kind::VcJob)),
    ("late-pods", Fault::Late(Kind::Pod)),
    ("late-batch-jobs", Fault::Late(Kind::Job)),
    ("late-batch-cronjobs", Fault::Late(Kind::CronJob)),
    ("late-cronjobs", Fault::Late(Kind::VcCronJob)),
    ("late-podgroups", Fault::Late(Kind::PodGroup)),
    ("hang-jobs", Fault::Hang(Kind::VcJob)),
    ("hang-pods", Fault::Hang(Kind::Pod)),
    ("hang-batch-jobs", Fault::Hang(Kind::Job)),
    ("hang-batch-cronjobs", Fault::Hang(Kind::CronJob)),
    ("hang-cronjobs", Fault::Hang(Kind::VcCronJob)),
    ("hang-podgroups", Fault::Hang(Kind::PodGroup)),
    ("relist-jobs", Fault::Relist(Kind::VcJob)),
    ("relist-pods", Fault::Relist(Kind::Pod)),
    ("relist-batch-jobs", Fault::Relist(Kind::Job)),
    ("relist-batch-cronjobs", Fault::Relist(Kind::CronJob)),
    ("relist-cronjobs", Fault::Relist(Kind::VcCronJob)),
    ("relist-podgroups", Fault::Relist(Kind::PodGroup)),
    ("repeat-jobs", Fault::Repeat(Kind::VcJob)),
    ("repeat-pods", Fault::Repeat(Kind::Pod)),
    ("repeat-batch-jobs", Fault::Repeat(Kind::Job)),
    ("repeat-batch-cronjobs", Fault::Repeat(Kind::CronJob)),
    ("repeat-cronjobs", Fault::Repeat(Kind::VcCronJob)),
    ("repeat-podgroups", Fault::Repeat(Kind::PodGroup)),
    ("paused", Fault::Paused),
    ("clock-ahead", Fault::ClockAhead),
    ("clock-behind", Fault::ClockBehind),
    ("deposed", Fault::Deposed),
    ("two-leaders", Fault::TwoLeaders),
    ("clock-glitch", Fault::ClockGlitch),
];

impl Fault {
    /// The fault of a name.
    pub fn named(name: &str) -> Option<Fault> {
        FAULTS.iter().find(|(known, _)| *known == name).map(|(_, fault)| *fault)
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = FAULTS.iter().find(|(_, fault)| fault == self).map_or("unnamed", |(name, _)| name);
        f.write_str(name)
    }
}

/// One fault at one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Injection {
    /// The write's number: the first write of any process in the run is 1.
    pub write: u32,
    /// What goes wrong there.
    pub fault: Fault,
}

impl std::fmt::Display for Injection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.write, self.fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_found_by_its_name() {
        for (name, fault) in FAULTS {
            assert_eq!(Fault::named(name), Some(*fault));
            assert_eq!(fault.to_string(), *name);
        }
    }
}
