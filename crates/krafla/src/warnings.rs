//! What a node warns of although the pods of a job run: volumes that are not where their manifest says.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::Key;

use crate::progress::JobKey;

/// So many different warnings of one job are told.
const TOLD_OF_JOB_MAX: usize = 5;
/// So many warnings are kept about pods of which nothing else is known yet.
const UNTOLD_MAX: usize = 100;

/// What nodes warn of, and what of it has been told.
#[derive(Default)]
pub(crate) struct Warnings {
    /// Whose each pod is.
    jobs: BTreeMap<Key, JobKey>,
    /// By pod. A warning may be seen before its pod is.
    untold: Vec<(Key, String)>,
    /// By job: all its pods may lack the same.
    told: BTreeMap<JobKey, BTreeSet<String>>,
}

impl Warnings {
    /// Takes in whose a pod is.
    pub(crate) fn observe_pod(&mut self, pod: &Key, job: &JobKey) {
        if !self.jobs.contains_key(pod) {
            self.jobs.insert(pod.clone(), job.clone());
        }
    }

    /// Takes in that a pod is gone. What was said of it and not told yet is still told.
    pub(crate) fn forget_pod(&mut self, pod: &Key) {
        if !self.untold.iter().any(|(of, _)| of == pod) {
            self.jobs.remove(pod);
        }
    }

    /// Takes in what was said of a pod.
    pub(crate) fn observe(&mut self, pod: Key, message: String) {
        if self.untold.len() == UNTOLD_MAX {
            self.untold.remove(0);
        }
        self.untold.push((pod, message));
    }

    /// Whether there is something to tell of pods that have not been seen.
    pub(crate) fn lacks_pods(&self) -> bool {
        self.untold.iter().any(|(pod, _)| !self.jobs.contains_key(pod))
    }

    /// What has not been told yet: jobs, and what is said of one of their pods.
    pub(crate) fn news(&mut self) -> Vec<(JobKey, String)> {
        let mut news = Vec::new();
        for (pod, message) in std::mem::take(&mut self.untold) {
            let Some(job) = self.jobs.get(&pod) else {
                self.untold.push((pod, message));
                continue;
            };
            let told = self.told.entry(job.clone()).or_default();
            if told.len() < TOLD_OF_JOB_MAX && told.insert(message.clone()) {
                news.push((job.clone(), format!("pod {}, {message}", pod.name)));
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use krafla_api::Kind;

    use super::*;

    #[test]
    fn what_all_pods_of_a_job_lack_is_told_once() {
        let mut warnings = Warnings::default();
        let (job, pod) =
            ((Kind::VcJob, Key::new("ns", "a")), |index: usize| Key::new("ns", &format!("a-{index}")));
        warnings.observe(pod(0), "no volume".to_owned());
        assert_eq!(warnings.news(), [], "nobody knows whose that pod is");
        assert!(warnings.lacks_pods());
        for index in 0..9 {
            warnings.observe_pod(&pod(index), &job);
            warnings.observe(pod(index), "no volume".to_owned());
        }
        assert_eq!(warnings.news(), [(job.clone(), "pod a-0, no volume".to_owned())]);
        assert_eq!(warnings.news(), []);
        (0..9).for_each(|index| warnings.observe(pod(index), format!("no volume {index}")));
        assert_eq!(warnings.news().len(), TOLD_OF_JOB_MAX - 1);
    }
}
