//! When a probe's answers count: only so many of the same kind in a row change the verdict.

use std::time::Duration;

use crate::pod::Probe;

/// What a probe says of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Good,
    Bad,
}

/// The answers in a row.
#[derive(Debug, Default)]
pub(super) struct Tally {
    n_good: u32,
    n_bad: u32,
}

impl Tally {
    /// Takes in an answer. Returns the verdict if there are enough of the same kind.
    pub(super) fn count(&mut self, is_good: bool, probe: &Probe) -> Option<Verdict> {
        if is_good {
            (self.n_good, self.n_bad) = (self.n_good.saturating_add(1), 0);
            (self.n_good >= probe.success_threshold.max(1)).then_some(Verdict::Good)
        } else {
            (self.n_good, self.n_bad) = (0, self.n_bad.saturating_add(1));
            // Kubernetes' default is 3; the server writes it down.
            let enough = if probe.failure_threshold == 0 { 3 } else { probe.failure_threshold };
            (self.n_bad >= enough).then_some(Verdict::Bad)
        }
    }
}

/// How long to wait between two answers.
pub(super) fn period(probe: &Probe) -> Duration {
    let seconds = if probe.period_seconds == 0 { 10 } else { probe.period_seconds };
    Duration::from_secs(seconds.into())
}

/// How long an answer may take.
pub(super) fn timeout(probe: &Probe) -> Duration {
    Duration::from_secs(probe.timeout_seconds.max(1).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(answers: &str, success_threshold: u32, failure_threshold: u32) -> String {
        let probe = Probe { success_threshold, failure_threshold, ..Probe::default() };
        let mut tally = Tally::default();
        let verdict = |answer| match tally.count(answer == '+', &probe) {
            Some(Verdict::Good) => 'G',
            Some(Verdict::Bad) => 'B',
            None => '.',
        };
        answers.chars().map(verdict).collect()
    }

    #[test]
    fn only_answers_in_a_row_count() {
        assert_eq!(verdicts("+-+--+---+", 1, 3), "G.G..G..BG");
        assert_eq!(verdicts("++-+++-", 2, 1), ".GB.GGB");
        assert_eq!(verdicts("---", 0, 0), "..B");
    }
}
