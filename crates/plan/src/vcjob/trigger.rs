//! Triggers of policies: facts about the job's pods, tasks and PodGroup in this snapshot.
//!
//! Volcano takes these from events. Here each is a condition that can be seen for as long as it is true, so none is lost
//! while nobody looks, and none happens twice: the action that answers it makes it untrue, by a new version, by removing
//! the pod, or by settling the evidence of a pod that is gone.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::volcano::{Event, JobPhase, PodGroupPhase, TaskSpec};
use krafla_api::{Time, Uid};

use super::Job;
use super::podgroup::Group;
use super::pods::{Observed, Pods};
use super::since::{self, Moments};
use crate::Departed;

/// Something that holds and that a policy may answer.
#[derive(Debug)]
pub(super) struct Trigger<'a> {
    pub(super) event: Event,
    /// The task it is about; none if it is about the whole job.
    pub(super) task: Option<&'a str>,
    /// The partition of the pod it is about.
    pub(super) partition: Option<String>,
    /// The pod it is about, if it is still there.
    pub(super) pod: Option<&'a Uid>,
    /// The index of the pod it is about, if that is gone.
    pub(super) vacant: Option<i32>,
    /// The pod's retry count: which try it belongs to.
    pub(super) retry_count: i32,
    pub(super) exit_codes: Vec<i32>,
    /// Since when it holds; time-outs count from here.
    pub(super) since: Time,
    /// What that moment is to be kept under, if no object tells it.
    pub(super) kept_as: Option<String>,
    /// What a person should read.
    pub(super) cause: String,
    /// The departed pod that is the evidence for it.
    pub(super) evidence: Option<&'a Uid>,
    /// Whether it has mended itself since: a policy that gives it time need not act any more.
    pub(super) is_mended: bool,
}

/// All triggers, most particular first: single pods, then tasks, then the job.
pub(super) fn observe<'a>(
    job: &'a Job<'_>,
    pods: &'a Pods<'_>,
    group: &Group<'_>,
    departed: &'a [Departed],
) -> Vec<Trigger<'a>> {
    // Volcano: a pod that does not say of which task it is was made by hand, and what becomes of it is nobody's business.
    let of_tasks = pods.current().filter(|pod| !pod.task.is_empty());
    let mut triggers: Vec<Trigger<'a>> = of_tasks.filter_map(|pod| of_pod(job, pod)).collect();
    triggers.extend(evictions(job, pods, departed));
    let kept = since::kept(job);
    triggers.extend(unseen_evictions(job, pods, &kept));
    triggers.extend(pods.current().filter_map(unmended_eviction));
    for task in &job.spec.tasks {
        triggers.extend(task_failed(job, task, pods, &kept));
        triggers.extend(task_completed(job, task, pods));
    }
    triggers.extend(job_unknown(job, group, &kept));
    triggers
}

fn of_pod<'a>(job: &Job<'_>, pod: &'a Observed<'_>) -> Option<Trigger<'a>> {
    let (event, since, cause) = if pod.has_failed() {
        let codes: Vec<String> = pod.exit_codes().map(|code| code.to_string()).collect();
        let how =
            if codes.is_empty() { String::new() } else { format!(" with exit code {}", codes.join(", ")) };
        (Event::PodFailed, pod.ended_at(), format!("pod {} failed{how}", pod.name()))
    } else if pod.is_pending() {
        (Event::PodPending, pod.created_at(), format!("pod {} is pending", pod.name()))
    } else {
        return None;
    };
    Some(Trigger {
        event,
        task: Some(pod.task),
        partition: pod.partition.map(str::to_owned),
        pod: Some(pod.uid()),
        vacant: None,
        retry_count: pod.retry_count,
        exit_codes: if pod.has_failed() { pod.exit_codes().collect() } else { Vec::new() },
        since: since.unwrap_or_else(|| job.began_at()),
        kept_as: None,
        cause,
        evidence: None,
        is_mended: false,
    })
}

/// Volcano: an eviction is mended when the pod that was made in its place runs. Thousands may be evicted together, so their
/// replacements are looked up, not searched. One that carries the eviction has taken over, and one of a later try was made by a
/// restart that has answered it: for a while there may be two controllers.
fn evictions<'a>(job: &Job<'_>, pods: &Pods<'_>, departed: &'a [Departed]) -> Vec<Trigger<'a>> {
    let mut evictions: Vec<Trigger<'a>> =
        departed.iter().filter_map(|departed| eviction(job, departed)).collect();
    if !evictions.is_empty() {
        let of = |pod: &Observed<'_>| (Some(pod.task.to_owned()), Some(pod.index));
        let running: BTreeSet<_> = pods.current().filter(|pod| pod.is_running()).map(of).collect();
        let carried: BTreeSet<_> = pods.current().filter(|pod| pod.evicted_at().is_some()).map(of).collect();
        let tries: BTreeMap<_, _> = pods.current().map(|pod| (of(pod), pod.retry_count)).collect();
        let place = |trigger: &Trigger<'_>| (trigger.task.map(str::to_owned), trigger.vacant);
        evictions.retain(|trigger| {
            let (place, of_trigger) = (place(trigger), trigger.retry_count);
            !carried.contains(&place)
                && tries.get(&place).is_none_or(|retry_count| *retry_count <= of_trigger)
        });
        for trigger in &mut evictions {
            trigger.is_mended = running.contains(&place(trigger));
        }
    }
    evictions
}

/// A pod of this version that went away although nobody here asked for it, before it had finished. One that ended while it was
/// being removed, however well, was evicted. One that had yet to mend an earlier eviction leaves that as it was.
fn eviction<'a>(job: &Job<'_>, departed: &'a Departed) -> Option<Trigger<'a>> {
    let pod = Observed::new(&departed.object)?;
    let is_ours = pod.version >= job.status.version && job.wants(pod.task, pod.index) && !pod.is_marked();
    let was_cut_short = !pod.is_finished() || pod.is_cut_short();
    (is_ours && was_cut_short).then(|| {
        let since = pod.evicted_at().filter(|_| pod.is_pending()).unwrap_or(departed.at);
        Trigger {
            partition: pod.partition.map(str::to_owned),
            vacant: Some(pod.index),
            retry_count: pod.retry_count,
            evidence: Some(&departed.object.meta.uid),
            ..of_job(Event::PodEvicted, Some(pod.task), since, evicted(&pod))
        }
    })
}

fn evicted(pod: &Observed<'_>) -> String {
    format!("pod {} was evicted", pod.name())
}

/// The pods that went away while no controller ran, for as long as nothing has their place: what is made in one carries its eviction.
fn unseen_evictions<'a>(job: &'a Job<'_>, pods: &'a Pods<'_>, kept: &Moments) -> Vec<Trigger<'a>> {
    // A restart answers them all.
    let is_steady = matches!(job.phase(), JobPhase::Pending | JobPhase::Running);
    let mut places: BTreeSet<(&str, i32)> = pods.lost_unseen().collect();
    if is_steady {
        places
            .extend(since::vacancies(job, kept).into_iter().filter(|(task, index)| job.wants(task, *index)));
    }
    if !places.is_empty() {
        for pod in pods.all() {
            places.remove(&(pod.task, pod.index));
        }
    }
    places.into_iter().map(|(task, index)| unseen_eviction(job, task, index, kept)).collect()
}

/// A pod that went away while no controller ran. When, nobody knows: it counts from when it is noticed.
fn unseen_eviction<'a>(job: &Job<'_>, task: &'a str, index: i32, kept: &Moments) -> Trigger<'a> {
    let cause = format!("a pod of task {task} was evicted while no controller ran");
    let partitions = job.task(task).and_then(|task| task.partition_policy.as_ref());
    let trigger = Trigger {
        partition: partitions.map(|policy| policy.partition_of(index).to_string()),
        vacant: Some(index),
        retry_count: job.status.retry_count,
        ..of_job(Event::PodEvicted, Some(task), job.now, cause)
    };
    first_seen(job, kept, since::vacancy_name(task, index), None, trigger)
}

/// A pod that was made in place of an evicted one, and that does not run yet. It carries the moment of the eviction: whoever
/// looks next counts from there.
fn unmended_eviction<'a>(pod: &Observed<'a>) -> Option<Trigger<'a>> {
    let since = pod.evicted_at().filter(|_| pod.is_pending())?;
    Some(Trigger {
        partition: pod.partition.map(str::to_owned),
        pod: Some(pod.uid()),
        retry_count: pod.retry_count,
        ..of_job(Event::PodEvicted, Some(pod.task), since, evicted(pod))
    })
}

/// Volcano: the restarts of all waiting and running pods of the task together reach its maxRetry; -1 means never.
fn task_failed<'a>(
    job: &Job<'_>,
    task: &'a TaskSpec,
    pods: &'a Pods<'_>,
    kept: &Moments,
) -> Option<Trigger<'a>> {
    let limit = if task.max_retry == 0 { 3 } else { task.max_retry };
    let alive = || pods.current().filter(|pod| pod.task == task.name && pod.is_alive());
    let restarts = alive().map(Observed::restarts).fold(0, i32::saturating_add);
    if limit < 0 || task.replicas == 0 || restarts < limit {
        return None;
    }
    let worst = alive().max_by_key(|pod| pod.restarts())?;
    let restarted_at = alive().filter_map(Observed::restarted_at).max();
    let cause = format!("containers of task {} restarted {restarts} times, {limit} are allowed", task.name);
    let trigger = of_job(Event::TaskFailed, Some(&task.name), job.now, cause);
    let name = since::name(&trigger.event, trigger.task);
    let trigger = first_seen(job, kept, name, restarted_at, trigger);
    Some(Trigger { pod: Some(worst.uid()), ..trigger })
}

/// Volcano: as many pods of the task succeeded as it has replicas. Pods kept from an earlier version count, but at least one
/// must be of this version: what a suspended job had completed is not completed again when it is resumed.
fn task_completed<'a>(job: &Job<'_>, task: &'a TaskSpec, pods: &'a Pods<'_>) -> Option<Trigger<'a>> {
    let n_succeeded = pods.counts_of(&task.name).map_or(0, |counts| counts.succeeded);
    if task.replicas <= 0 || n_succeeded < task.replicas {
        return None;
    }
    let succeeded =
        pods.current().filter(|pod| pod.task == task.name && pod.is_finished() && !pod.has_failed());
    let last = succeeded.max_by_key(|pod| pod.ended_at())?;
    let since = last.ended_at().unwrap_or_else(|| job.began_at());
    let cause = format!("all pods of task {} succeeded", task.name);
    let trigger = of_job(Event::TaskCompleted, Some(&task.name), since, cause);
    Some(Trigger { pod: Some(last.uid()), partition: last.partition.map(str::to_owned), ..trigger })
}

fn job_unknown<'a>(job: &Job<'_>, group: &Group<'_>, kept: &Moments) -> Option<Trigger<'a>> {
    if group.is_going() || *group.phase()? != PodGroupPhase::Unknown {
        return None;
    }
    let cause = "the PodGroup lost members and is Unknown".to_owned();
    let trigger = of_job(Event::JobUnknown, None, job.now, cause);
    let name = since::name(&trigger.event, None);
    Some(first_seen(job, kept, name, group.unschedulable_at(), trigger))
}

/// With the moment in which it was first seen, or else with what the objects say at this first sight of it.
fn first_seen<'a>(
    job: &Job<'_>,
    kept: &Moments,
    name: String,
    told: Option<Time>,
    trigger: Trigger<'a>,
) -> Trigger<'a> {
    let since = kept.get(&name).copied().or(told).unwrap_or(job.now);
    Trigger { since, kept_as: Some(name), ..trigger }
}

fn of_job(event: Event, task: Option<&str>, since: Time, cause: String) -> Trigger<'_> {
    Trigger {
        event,
        task,
        partition: None,
        pod: None,
        vacant: None,
        retry_count: 0,
        exit_codes: Vec::new(),
        since,
        kept_as: None,
        cause,
        evidence: None,
        is_mended: false,
    }
}
