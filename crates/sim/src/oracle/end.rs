//! How a run ended: everything that is there, printed so that two ends can be compared, and what must hold of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use krafla_api::batch::{JOB_NAME, JOB_TRACKING, JobStatus};
use krafla_api::volcano::JobFlowStatus;
use krafla_api::{Kind, Uid, labels};
use krafla_apiserver::store::Store;
use krafla_guard::{Property, Violation};
use krafla_plan::object::PodPhase;
use krafla_plan::{Object, Objects, controlling_keys};

use crate::case::Case;
use crate::server::resource;

/// What belongs to a job, is one, or makes jobs.
const KINDS: [Kind; 16] = [
    Kind::VcJob,
    Kind::PodGroup,
    Kind::Pod,
    Kind::Service,
    Kind::ConfigMap,
    Kind::Secret,
    Kind::NetworkPolicy,
    Kind::JobFlow,
    Kind::VcCronJob,
    Kind::PersistentVolumeClaim,
    Kind::Job,
    Kind::CronJob,
    Kind::JobTemplate,
    Kind::Queue,
    Kind::ReplicaSet,
    Kind::StatefulSet,
];

/// The queues that every world begins with.
const FIRST_QUEUES: [&str; 2] = ["root", "default"];

/// What must hold at the end of every run, one function per property.
const CHECKS: [fn(&Case, &Objects) -> Option<Violation>; 4] =
    [counters_equal_a_recount, errors_were_no_verdicts, nothing_is_left, nothing_is_held];

/// What does not hold at the end of a run.
pub(crate) fn check(case: &Case, store: &Store) -> Vec<Violation> {
    let objects = everything(store);
    CHECKS.iter().filter_map(|check| check(case, &objects)).collect()
}

/// Everything that is there, printed.
pub(crate) fn print(store: &Store) -> String {
    describe(&everything(store))
}

fn everything(store: &Store) -> Objects {
    let mut objects = Objects::default();
    for kind in KINDS {
        for (_, entry) in &store.snapshot(&resource(kind)).entries {
            objects.insert(Object::decode(kind, &entry.bytes).into());
        }
    }
    objects
}

/// P5: at rest, the counters of every job equal a recount of its pods, and of those on record as removed after they succeeded.
fn counters_equal_a_recount(_: &Case, objects: &Objects) -> Option<Violation> {
    objects.all(Kind::VcJob).find_map(|object| {
        let status = &object.as_vcjob()?.status;
        let counted = [
            status.pending,
            status.running,
            status.succeeded,
            status.failed,
            status.unknown,
            status.terminating,
        ];
        let mut recounted = recount(objects, &object.meta.uid);
        recounted[2] += n_completed(status);
        if status.state.phase.is_finished() {
            // What ended with the job may be collected, and stays counted.
            recounted[2] = recounted[2].max(status.succeeded);
            recounted[3] = recounted[3].max(status.failed);
        }
        (counted != recounted).then(|| {
            let message =
                format!("{}: status counts {counted:?}, its pods are {recounted:?}", object.meta.key);
            Violation::new(Property::P5, message)
        })
    })
}

/// How many indexes a job has on record as done without a pod: `0-2,5` are four.
fn n_completed(status: &krafla_api::volcano::JobStatus) -> i32 {
    let recorded = status.controlled_resources.iter().filter(|(key, _)| key.starts_with("completed-"));
    let ranges = recorded.flat_map(|(_, indexes)| indexes.split(','));
    let length = |range: &str| -> Option<i32> {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(last.parse::<i32>().ok()? - first.parse::<i32>().ok()? + 1)
    };
    ranges.filter_map(length).sum()
}

fn recount(objects: &Objects, job: &Uid) -> [i32; 6] {
    let mut counts = [0; 6];
    for object in objects.children(job, Kind::Pod) {
        let Some(pod) = object.as_pod() else { continue };
        let [pending, running, succeeded, failed, unknown, terminating] = &mut counts;
        *match pod.status.phase {
            _ if object.meta.is_deleting() => terminating,
            PodPhase::Pending => pending,
            PodPhase::Running => running,
            PodPhase::Succeeded => succeeded,
            PodPhase::Failed => failed,
            PodPhase::Unknown => unknown,
        } += 1;
    }
    counts
}

/// P8: the end is the one that the scenario leads to when nothing goes wrong.
fn errors_were_no_verdicts(case: &Case, objects: &Objects) -> Option<Violation> {
    let (expected, found) = (lines(case.end()), describe(objects));
    let found = lines(&found);
    if expected == found {
        return None;
    }
    let missing = without(&expected, &found).map(|line| format!("\n      missing: {line}"));
    let surplus = without(&found, &expected).map(|line| format!("\n      instead: {line}"));
    let message =
        format!("the end is not the one without faults{}", missing.chain(surplus).collect::<String>());
    Some(Violation::new(Property::P8, message))
}

/// P12: nothing of a job or flow that is gone remains, and a job has one PodGroup at most.
fn nothing_is_left(_: &Case, objects: &Objects) -> Option<Violation> {
    let owners = [
        Kind::VcJob,
        Kind::JobFlow,
        Kind::VcCronJob,
        Kind::Job,
        Kind::CronJob,
        Kind::Pod,
        Kind::ReplicaSet,
        Kind::StatefulSet,
    ];
    let owners = owners.into_iter().flat_map(|kind| objects.all(kind));
    let owners: BTreeSet<&Uid> = owners.map(|owner| &owner.meta.uid).collect();
    let mut groups: BTreeMap<&Uid, usize> = BTreeMap::new();
    for object in KINDS.into_iter().flat_map(|kind| objects.all(kind)) {
        let Some(owner) = object.meta.controller_uid() else { continue };
        if !owners.contains(owner) {
            let message = format!("{} {} outlived its owner", object.kind.info().singular, object.meta.key);
            return Some(Violation::new(Property::P12, message));
        }
        if object.kind == Kind::PodGroup {
            *groups.entry(owner).or_default() += 1;
        }
    }
    let crowded = groups.into_iter().find(|(_, n_groups)| *n_groups > 1);
    crowded
        .map(|(job, n_groups)| Violation::new(Property::P12, format!("job {job} has {n_groups} PodGroups")))
}

/// P12: no pod is held for a count that nobody makes any more.
fn nothing_is_held(_: &Case, objects: &Objects) -> Option<Violation> {
    objects.all(Kind::Pod).find_map(|pod| {
        let is_tracked = pod.meta.finalizers.iter().any(|name| name == JOB_TRACKING);
        let mut jobs = objects.all(Kind::Job);
        let job = jobs.find(|job| Some(&job.meta.uid) == pod.meta.controller_uid());
        let is_counting = job.and_then(|job| job.as_job()).is_some_and(|job| job.status.finished().is_none());
        (is_tracked && !is_counting).then(|| {
            let message = format!("{} keeps the finalizer of a Job that counts no more", pod.meta.key);
            Violation::new(Property::P12, message)
        })
    })
}

/// The lines of a text, and how often each is there.
fn lines(text: &str) -> BTreeMap<&str, usize> {
    let mut lines = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        *lines.entry(line).or_default() += 1;
    }
    lines
}

/// The lines that are more often in one text than in the other.
fn without<'a>(
    one: &'a BTreeMap<&'a str, usize>,
    other: &'a BTreeMap<&'a str, usize>,
) -> impl Iterator<Item = &'a str> {
    one.iter().filter(|(line, n)| other.get(*line).is_none_or(|of_other| of_other < n)).map(|(line, _)| *line)
}

/// One line per object. Identities and moments are left out: they differ from run to run.
fn describe(objects: &Objects) -> String {
    let mut text = String::new();
    let is_new =
        |object: &&Arc<Object>| object.kind != Kind::Queue || !FIRST_QUEUES.contains(&&*object.meta.key.name);
    for object in KINDS.into_iter().flat_map(|kind| objects.all(kind)).filter(is_new) {
        let written = describe_one(&mut text, object);
        debug_assert!(written.is_ok(), "a string takes any text");
    }
    text
}

/// A Job of Kubernetes: its conditions in the order in which they came, and its counters.
fn describe_batch_job(text: &mut String, status: &JobStatus) -> std::fmt::Result {
    for condition in &status.conditions {
        let not = if condition.status == "True" { "" } else { "not " };
        write!(text, " {not}{} {},", condition.condition_type, condition.reason)?;
    }
    let n_on_record =
        status.uncounted_terminated_pods.as_ref().map_or(0, |it| it.succeeded.len() + it.failed.len());
    let counts = [
        (status.active, "active"),
        (status.terminating.unwrap_or(0), "terminating"),
        (status.succeeded, "succeeded"),
        (status.failed, "failed"),
        (i32::try_from(n_on_record).unwrap_or(i32::MAX), "on record"),
    ];
    for (n, what) in counts.iter().filter(|(n, _)| *n != 0) {
        write!(text, " {n} {what}")?;
    }
    for (indexes, what) in [
        (status.completed_indexes.as_str(), "completed"),
        (status.failed_indexes.as_deref().unwrap_or_default(), "failed"),
    ] {
        if !indexes.is_empty() {
            write!(text, " [{indexes} {what}]")?;
        }
    }
    Ok(())
}

/// The lists of a flow's jobs, each as a set: jobs that wait for nothing may be made in any order.
fn describe_lists(text: &mut String, status: &JobFlowStatus) -> std::fmt::Result {
    let lists = [
        (&status.pending_jobs, "pending"),
        (&status.running_jobs, "running"),
        (&status.failed_jobs, "failed"),
        (&status.completed_jobs, "completed"),
        (&status.terminated_jobs, "terminated"),
        (&status.unknown_jobs, "unknown"),
    ];
    for (list, what) in lists.iter().filter(|(list, _)| !list.is_empty()) {
        let jobs: BTreeSet<&str> = list.iter().map(String::as_str).collect();
        write!(text, "; {what}: {}", jobs.into_iter().collect::<Vec<_>>().join(" "))?;
    }
    Ok(())
}

/// An object's name without the parts that differ from run to run: identities, moments, and what is drawn.
fn name_to_compare(object: &Object) -> String {
    let name = &*object.meta.key.name;
    let owner = object.meta.controller_uid().map_or("", |owner| &owner.0);
    let is_of = |kind| !controlling_keys(kind, object).is_empty();
    // A label outlives the owner.
    let is_of_a_job = object.meta.labels.get(JOB_NAME).is_some();
    let without_last =
        |name: &str| name.rsplit_once('-').map_or_else(|| name.to_owned(), |(start, _)| start.to_owned());
    match (object.kind, name.strip_suffix(owner)) {
        (_, Some(before)) if !owner.is_empty() => format!("{before}<uid>"),
        (Kind::Job, _) if is_of(Kind::CronJob) => format!("{}-<run>", without_last(name)),
        (Kind::Pod, _) if is_of_a_job => {
            let run =
                name.split('-').find(|part| part.len() >= 8 && part.bytes().all(|it| it.is_ascii_digit()));
            let made_by = without_last(name);
            let made_by = run.map_or(made_by.clone(), |run| made_by.replace(run, "<run>"));
            format!("{made_by}-<drawn>")
        }
        _ => match name.split_once("-pvc-") {
            Some((job, _)) => format!("{job}-pvc-<drawn>"),
            None => name.to_owned(),
        },
    }
}

fn describe_one(text: &mut String, object: &Object) -> std::fmt::Result {
    let kind = object.kind.info();
    let kind = if object.kind == Kind::Job { kind.qualified_plural() } else { kind.singular.to_owned() };
    write!(text, "{kind} {}", name_to_compare(object))?;
    if let Some(job) = object.as_vcjob() {
        let status = &job.status;
        let (phase, retries, version) = (&status.state.phase, status.retry_count, status.version);
        write!(text, " {phase}, retried {retries}, version {version}:")?;
        let counts = [
            (status.pending, "pending"),
            (status.running, "running"),
            (status.succeeded, "succeeded"),
            (status.failed, "failed"),
            (status.unknown, "unknown"),
            (status.terminating, "terminating"),
        ];
        let counts: Vec<String> =
            counts.iter().filter(|(n, _)| *n != 0).map(|(n, what)| format!("{n} {what}")).collect();
        write!(text, " {}", if counts.is_empty() { "no pods".to_owned() } else { counts.join(", ") })?;
    } else if let Some(pod) = object.as_pod() {
        write!(text, " {}", pod.status.phase.as_str())?;
    } else if let Some(flow) = object.as_jobflow() {
        // The list is in the order in which the jobs were made, and steps that wait for nothing may be made in any.
        let jobs = flow.status.job_status_list.iter().map(|job| format!("{} {}", job.name, job.state));
        let mut jobs: Vec<String> = jobs.collect();
        jobs.sort_unstable();
        write!(text, " {}: {}", flow.status.state.phase, jobs.join(", "))?;
        describe_lists(text, &flow.status)?;
    } else if let Some(group) = object.as_podgroup() {
        write!(text, " {}", group.status.phase)?;
        if let Some(version) = object.meta.annotations.get(labels::JOB_VERSION) {
            write!(text, ", of version {version}")?;
        } else if group.spec.min_member > 1 && controlling_keys(Kind::VcJob, object).is_empty() {
            write!(text, ", of {}", group.spec.min_member)?;
        }
    } else if let Some(job) = object.as_job() {
        describe_batch_job(text, &job.status)?;
    } else if let Some(cron_job) = object.as_cron_job() {
        write!(text, " {} active", cron_job.status.active.len())?;
    } else if let Some(queue) = object.as_queue() {
        write!(text, " {}", queue.status.state)?;
    } else if let Some(template) = object.as_jobtemplate() {
        write!(text, ": {}", template.status.job_depends_on_list.join(", "))?;
    } else if let Some(cron_job) = object.as_vccronjob() {
        let last = cron_job.status.last_schedule_time.map_or("never".to_owned(), |at| at.0.to_string());
        write!(text, " {} active, last {last}", cron_job.status.active.len())?;
        if cron_job.status.last_successful_time.is_some() {
            write!(text, ", has succeeded")?;
        }
    }
    if object.meta.is_deleting() {
        write!(text, ", deleting")?;
    }
    writeln!(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use krafla_api::labels;
    use serde_json::{Value, json};

    fn objects(all: &[(Kind, Value)]) -> Objects {
        let mut objects = Objects::default();
        for (kind, json) in all {
            objects.insert(Object::decode(*kind, json.to_string().as_bytes()).into());
        }
        objects
    }

    fn job(status: &Value) -> (Kind, Value) {
        (Kind::VcJob, json!({ "metadata": { "namespace": "n", "name": "a", "uid": "u1" }, "status": status }))
    }

    fn owned(kind: Kind, name: &str, owner: &str, status: &Value) -> (Kind, Value) {
        let owners = json!([{ "uid": owner, "kind": "Job", "name": "a", "controller": true }]);
        let annotations = json!({ labels::TASK_SPEC: "main", labels::TASK_INDEX: "0" });
        let metadata = json!({
            "namespace": "n", "name": name, "uid": name, "ownerReferences": owners, "annotations": annotations,
        });
        (kind, json!({ "metadata": metadata, "status": status }))
    }

    fn case() -> Case {
        Case::calm(crate::scenario::named("straight").unwrap())
    }

    #[test]
    fn counters_that_differ_from_the_pods_are_found() {
        let pod = owned(Kind::Pod, "a-main-0", "u1", &json!({ "phase": "Running" }));
        let right = objects(&[job(&json!({ "running": 1 })), pod.clone()]);
        assert_eq!(counters_equal_a_recount(&case(), &right), None);
        let wrong = objects(&[job(&json!({ "pending": 1 })), pod]);
        let found = counters_equal_a_recount(&case(), &wrong).unwrap();
        assert_eq!(
            found.to_string(),
            "P5: n/a: status counts [1, 0, 0, 0, 0, 0], its pods are [0, 1, 0, 0, 0, 0]"
        );
    }

    #[test]
    fn what_outlives_its_job_is_found() {
        let group = owned(Kind::PodGroup, "a-u1", "u1", &json!({}));
        assert_eq!(nothing_is_left(&case(), &objects(&[job(&json!({})), group.clone()])), None);
        let found = nothing_is_left(&case(), &objects(&[group])).unwrap();
        assert_eq!(found.to_string(), "P12: podgroup n/a-u1 outlived its owner");
    }

    #[test]
    fn a_second_podgroup_is_found() {
        let groups = ["a-u1", "a"].map(|name| owned(Kind::PodGroup, name, "u1", &json!({})));
        let [one, other] = groups;
        let found = nothing_is_left(&case(), &objects(&[job(&json!({})), one, other])).unwrap();
        assert_eq!(found.to_string(), "P12: job u1 has 2 PodGroups");
    }

    #[test]
    fn an_end_is_printed_without_identities() {
        let status = json!({ "state": { "phase": "Running" }, "retryCount": 1, "version": 2, "running": 3, "failed": 1 });
        let group = owned(Kind::PodGroup, "a-u1", "u1", &json!({ "phase": "Inqueue" }));
        let pod = owned(Kind::Pod, "a-main-0", "u1", &json!({ "phase": "Failed" }));
        let printed = describe(&objects(&[job(&status), group, pod]));
        expect_test::expect![[r#"
            job a Running, retried 1, version 2: 3 running, 1 failed
            podgroup a-<uid> Inqueue
            pod a-main-0 Failed
        "#]]
        .assert_eq(&printed);
    }
}
