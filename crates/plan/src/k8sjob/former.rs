//! The pods that a Job has had and that no counter of its status tells of. The name of a new pod follows from how many there were
//! before it: a creation whose answer was lost is repeated under the same name, and no name is given twice.
//!
//! They stand in an annotation of the Job, which the write of the status that accounts for a pod brings up to date:
//!
//! ```text
//!   krafla.dev/former-pods: "3"          pods without an index that went uncounted: removed by the Job, or ignored by its policy
//!   krafla.dev/former-pods: "2:1,7:3"    of each index that is not done, the pods that were let go without success
//! ```

use std::collections::BTreeMap;

use krafla_api::batch::JobStatus;
use krafla_api::labels::FORMER_PODS;
use serde_json::{Value, json};

use super::Job;
use super::pods::{JobPod, State};
use super::tally::{Tally, Uncounted};

/// How many indexes are kept: an annotation of about 50 kB. Pods of indexes beyond them may get a name again.
const INDEXES_MAX: usize = 5_000;

/// How many pods a Job has had that are in no counter, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Former(BTreeMap<Option<u32>, u32>);

impl Former {
    /// What is on record. What cannot be read is nothing.
    pub(super) fn recorded(job: &Job<'_>) -> Former {
        let text = job.meta.annotations.get(FORMER_PODS).unwrap_or_default();
        let entry = |entry: &str| match entry.split_once(':') {
            Some((index, n)) => Some((Some(index.parse::<u32>().ok()?), n.parse::<u32>().ok()?)),
            None => Some((None, entry.parse::<u32>().ok()?)),
        };
        Former(text.split(',').filter_map(entry).take(INDEXES_MAX).collect())
    }

    /// How many there were of an index, or without one.
    pub(super) fn n(&self, index: Option<u32>) -> u32 {
        self.0.get(&index).copied().unwrap_or(0)
    }

    /// With pods that are let go now. `status` is what is written before that.
    pub(super) fn with<'a>(
        mut self,
        job: &Job<'_>,
        let_go: impl Iterator<Item = &'a JobPod<'a>>,
        tally: &Tally<'_>,
        status: &JobStatus,
    ) -> Former {
        let uncounted = Uncounted::of(job);
        let is_new = |pod: &JobPod<'_>| {
            let is_put_on_record = status.uncounted_terminated_pods.as_ref().is_some_and(|listed| {
                listed.succeeded.contains(&pod.meta().uid) || listed.failed.contains(&pod.meta().uid)
            });
            let is_counted = if job.is_indexed() { pod.state == State::Succeeded } else { is_put_on_record };
            pod.is_tracked && !is_counted && !uncounted.is_listed(pod)
        };
        for pod in let_go.filter(|pod| is_new(pod)) {
            let n = self.0.entry(pod.index).or_default();
            *n = n.saturating_add(1);
        }
        let completions = job.completions().unwrap_or(0);
        let is_open = |index: u32| {
            index < completions && !tally.completed.contains(index) && !tally.failed_indexes.contains(index)
        };
        self.0.retain(|index, _| match index {
            Some(index) => job.is_indexed() && is_open(*index),
            None => !job.is_indexed(),
        });
        while self.0.len() > INDEXES_MAX {
            self.0.pop_last();
        }
        self
    }

    /// The change of the Job's metadata that puts this on record, if that is not what stands there.
    pub(super) fn difference(&self, before: &Former) -> Option<Value> {
        if self == before {
            return None;
        }
        let entries = self.0.iter().map(|(index, n)| match index {
            Some(index) => format!("{index}:{n}"),
            None => n.to_string(),
        });
        let text = entries.collect::<Vec<_>>().join(",");
        let text = if text.is_empty() { Value::Null } else { text.into() };
        Some(json!({ "annotations": { FORMER_PODS: text } }))
    }
}
