//! Pods that a Job no longer counts: their tracking finalizer goes, so that they can be removed.
//!
//! A Job lets go of its own pods while it lives. Here are the others: those of a Job that is gone or has ended, and those
//! that were taken away from theirs. A Job ends when all its pods have: one that is still to run was made afterwards, by a
//! controller that had been replaced, and is removed.

use std::sync::Arc;

use krafla_api::batch::JOB_TRACKING;
use krafla_api::{Key, Kind};

use super::managed::Managed;
use super::pods::untrack;
use crate::{Controller, Object, Objects, Plan, Snapshot};

/// The controller that lets go of pods without a Job.
#[derive(Debug, Default)]
pub struct ReleaseController {
    /// Whose Jobs it takes care of.
    pub managed: Managed,
}

impl Controller for ReleaseController {
    fn name(&self) -> &'static str {
        "job-pod-release-controller"
    }

    fn queue(&self) -> &'static str {
        "job_orphan_pod"
    }

    fn root(&self) -> Kind {
        Kind::Pod
    }

    fn watches(&self) -> &'static [Kind] {
        &[Kind::Job]
    }

    fn keys(&self, changed: &Object, objects: &Objects) -> Vec<Key> {
        if changed.kind == Kind::Pod {
            return self.is_held(changed, objects).then(|| changed.meta.key.clone()).into_iter().collect();
        }
        // While the Job counts, it lets go of its pods itself.
        let job = objects.get(Kind::Job, &changed.meta.key).filter(|job| job.meta.uid == changed.meta.uid);
        if job.and_then(|job| job.as_job()).is_some_and(|job| job.status.finished().is_none()) {
            return Vec::new();
        }
        let pods = objects.children(&changed.meta.uid, Kind::Pod).filter(|pod| is_tracked(pod));
        pods.map(|pod| pod.meta.key.clone()).collect()
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        match snapshot.root() {
            Some(pod) if self.is_held(pod, snapshot.objects) => {
                // It is let go once it goes: before that, nobody would know that it must not run.
                let step = if is_late(pod, snapshot.objects) { pod.deletion() } else { untrack(pod) };
                Plan { steps: vec![step], ..Plan::nothing() }
            }
            _ => Plan::nothing(),
        }
    }
}

/// Whether a pod that is held has yet to end, or even to begin, although its Job has ended.
fn is_late(pod: &Object, objects: &Objects) -> bool {
    let has_ended = pod.as_pod().is_none_or(|body| body.status.phase.is_finished());
    !has_ended && !pod.meta.is_deleting() && job_of(pod, objects).is_some()
}

/// The Job that controls a pod, if it is there.
fn job_of<'a>(pod: &Object, objects: &'a Objects) -> Option<&'a Arc<Object>> {
    let owner = pod.meta.owners.iter().find(|owner| owner.controller == Some(true))?;
    let key = Key::new(&pod.meta.key.namespace, &owner.name);
    objects.get(Kind::Job, &key).filter(|job| job.meta.uid == owner.uid)
}

fn is_tracked(pod: &Object) -> bool {
    pod.meta.finalizers.iter().any(|name| name == JOB_TRACKING)
}

impl ReleaseController {
    /// Whether the pod is held for a count that nobody will make. What another controller manages is that one's own affair, and so
    /// are pods without a Job where another controller is Kubernetes' own.
    fn is_held(&self, pod: &Object, objects: &Objects) -> bool {
        if !is_tracked(pod) {
            return false;
        }
        let info = Kind::Job.info();
        let Some(owner) = pod.meta.owners.iter().find(|owner| owner.controller == Some(true)) else {
            return self.managed.includes(None);
        };
        if owner.kind != info.kind || owner.api_version != info.api_version() {
            return false;
        }
        let job = job_of(pod, objects);
        match job.and_then(|job| job.as_job()) {
            Some(job) => {
                job.status.finished().is_some() && self.managed.includes(job.spec.managed_by.as_deref())
            }
            // One that can not be read is there all the same.
            None => job.is_none() && self.managed.includes(None),
        }
    }
}
