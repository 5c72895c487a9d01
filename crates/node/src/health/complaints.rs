//! What probes and hooks have found wrong with a container, as a person is told of it.

use std::collections::BTreeMap;

use krafla_plan::Note;

/// So many complaints about one attempt are told. A probe that prints the time fails with other words at each try, and each
/// is a write; a kubelet stops at this number, too.
const TOLD_MAX: u32 = 25;

/// What asks after a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// Its hook after the start.
    PostStart,
    /// Its startup probe.
    Startup,
    /// Its readiness probe.
    Readiness,
    /// Its liveness probe.
    Liveness,
}

impl Check {
    /// As it stands in the middle of a kubelet's sentence.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Check::PostStart => "postStart hook",
            Check::Startup => "startup probe",
            Check::Readiness => "readiness probe",
            Check::Liveness => "liveness probe",
        }
    }

    /// As it stands at the beginning of one.
    const fn name(self) -> &'static str {
        match self {
            Check::PostStart => "PostStartHook",
            Check::Startup => "Startup probe",
            Check::Readiness => "Readiness probe",
            Check::Liveness => "Liveness probe",
        }
    }

    fn complaint(self, why: &str) -> Note {
        let reason = match self {
            Check::PostStart => "FailedPostStartHook",
            Check::Startup | Check::Readiness | Check::Liveness => "Unhealthy",
        };
        Note::warning(reason, format!("{} failed: {why}", self.name()))
    }

    fn warning(self, what: &str) -> Note {
        Note::warning("ProbeWarning", format!("{} warning: {what}", self.name()))
    }
}

/// The last complaint of each check about one attempt. It stays when all is well again: the same words are no news.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Complaints {
    last: BTreeMap<Check, Note>,
    n_told: u32,
}

impl Complaints {
    /// Takes in why a check has failed.
    pub fn add(&mut self, check: Check, why: &str) {
        self.tell(check, check.complaint(why));
    }

    /// Takes in what was strange about a check that has not failed.
    pub(super) fn warn(&mut self, check: Check, what: &str) {
        self.tell(check, check.warning(what));
    }

    fn tell(&mut self, check: Check, complaint: Note) {
        if self.last.get(&check) != Some(&complaint) && self.n_told < TOLD_MAX {
            self.last.insert(check, complaint);
            self.n_told = self.n_told.saturating_add(1);
        }
    }

    /// What a person should know.
    pub(crate) fn notes(&self) -> impl Iterator<Item = &Note> {
        self.last.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_words_are_news_but_not_without_end() {
        let mut complaints = Complaints::default();
        let mut news = Vec::new();
        for why in
            ["no", "no", "still no"].into_iter().map(str::to_owned).chain((0..99).map(|n| n.to_string()))
        {
            let before = complaints.clone();
            complaints.add(Check::Readiness, &why);
            news.extend((complaints != before).then_some(why));
        }
        assert_eq!(news.len(), TOLD_MAX as usize);
        assert_eq!(news[..3], ["no", "still no", "0"]);
    }

    #[test]
    fn each_check_complains_for_itself() {
        let mut complaints = Complaints::default();
        complaints.add(Check::Liveness, "no answer");
        complaints.add(Check::PostStart, "exit code 3");
        complaints.warn(Check::Startup, "Probe terminated redirects");
        let notes: Vec<_> =
            complaints.notes().map(|note| format!("{}: {}", note.reason, note.message)).collect();
        let expected = [
            "FailedPostStartHook: PostStartHook failed: exit code 3",
            "ProbeWarning: Startup probe warning: Probe terminated redirects",
            "Unhealthy: Liveness probe failed: no answer",
        ];
        assert_eq!(notes, expected);
    }
}
