//! Questions to pods on which decisions hang: which are to be asked, which are under way, and what was answered.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use krafla_api::Time;
use krafla_plan::{Answer, Answers, Probe};

use crate::engine::Root;

/// One question for one root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inquiry {
    pub(crate) root: Root,
    /// What to ask.
    pub probe: Probe,
}

/// All questions of all roots.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Inquiries {
    answers: BTreeMap<Root, Answers>,
    to_ask: VecDeque<Inquiry>,
    /// Those that wait for their turn or for their answer: nothing is asked twice at once.
    open: BTreeSet<Inquiry>,
}

impl Inquiries {
    /// What is known for a root.
    pub(crate) fn answers(&self, root: &Root) -> Option<&Answers> {
        self.answers.get(root)
    }

    /// A decision for a root hangs on these questions, and on no others: what has no good answer is asked, unless it was
    /// asked a moment ago, and what it no longer hangs on is forgotten.
    pub(crate) fn rely_on(&mut self, root: &Root, probes: &BTreeSet<Probe>, now: Time) {
        if probes.is_empty() {
            return self.forget(root);
        }
        let answers = self.answers.entry(root.clone()).or_default();
        answers.retain(|probe, _| probes.contains(probe));
        for probe in probes {
            let is_due =
                answers.get(probe).is_none_or(|answer| answer.ask_again_at().is_some_and(|at| at <= now));
            let inquiry = Inquiry { root: root.clone(), probe: probe.clone() };
            if is_due && self.open.insert(inquiry.clone()) {
                self.to_ask.push_back(inquiry);
            }
        }
    }

    /// Nothing hangs on the questions of this root any more.
    pub(crate) fn forget(&mut self, root: &Root) {
        self.answers.remove(root);
        self.to_ask.retain(|inquiry| {
            let stays = inquiry.root != *root;
            if !stays {
                self.open.remove(inquiry);
            }
            stays
        });
    }

    /// The next question to ask.
    pub(crate) fn next(&mut self) -> Option<Inquiry> {
        self.to_ask.pop_front()
    }

    /// Whether there is a question to ask.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.to_ask.is_empty()
    }

    /// Takes in an answer. Whether a decision still hangs on it.
    pub(crate) fn answered(&mut self, inquiry: Inquiry, answer: Answer) -> bool {
        self.open.remove(&inquiry);
        let Some(answers) = self.answers.get_mut(&inquiry.root) else { return false };
        answers.insert(inquiry.probe, answer);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use krafla_api::{Key, Kind};

    use super::*;

    fn probe(pod: &str) -> Probe {
        Probe { pod: pod.into(), address: IpAddr::V4(Ipv4Addr::LOCALHOST), port: 80, http_get: None }
    }

    fn root() -> Root {
        Root { controller: 0, kind: Kind::JobFlow, key: Key::new("ns", "f") }
    }

    fn at(second: i64) -> Time {
        Time::from_seconds(second)
    }

    #[test]
    fn a_question_is_asked_once_at_a_time_and_again_only_after_a_bad_answer() {
        let root = root();
        let both = BTreeSet::from([probe("a"), probe("b")]);
        let mut inquiries = Inquiries::default();
        inquiries.rely_on(&root, &both, at(0));
        let [a, b] = [(); 2].map(|()| inquiries.next().unwrap());
        inquiries.rely_on(&root, &both, at(0));
        assert!(!inquiries.is_waiting(), "both are under way");
        assert!(inquiries.answered(a, Answer { failure: None, at: at(1) }));
        assert!(inquiries.answered(b, Answer { failure: Some("refused".to_owned()), at: at(1) }));
        inquiries.rely_on(&root, &both, at(2));
        assert!(!inquiries.is_waiting(), "it was asked a moment ago");
        inquiries.rely_on(&root, &both, at(3));
        assert_eq!(inquiries.next().unwrap().probe, probe("b"));
        assert!(!inquiries.is_waiting(), "a good answer stands");
    }

    #[test]
    fn what_nothing_hangs_on_any_more_is_forgotten() {
        let root = root();
        let mut inquiries = Inquiries::default();
        inquiries.rely_on(&root, &BTreeSet::from([probe("a"), probe("b")]), at(0));
        let under_way = inquiries.next().unwrap();
        inquiries.forget(&root);
        assert!(!inquiries.is_waiting());
        assert!(!inquiries.answered(under_way, Answer { failure: None, at: at(1) }), "no task waits for it");
        assert_eq!(inquiries.answers(&root), None);
        assert!(inquiries.open.is_empty());
    }
}
