//! How a run ended: everything that is there, printed so that two ends can be compared, and what must hold of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use krafla_api::{Kind, Uid};
use krafla_apiserver::store::Store;
use krafla_guard::{Property, Violation};
use krafla_plan::object::PodPhase;
use krafla_plan::{Object, Objects};

use crate::scenario::Scenario;
use crate::server::resource;

/// What belongs to a job, or is one.
const KINDS: [Kind; 7] = [
    Kind::VcJob,
    Kind::PodGroup,
    Kind::Pod,
    Kind::Service,
    Kind::ConfigMap,
    Kind::Secret,
    Kind::NetworkPolicy,
];

/// What must hold at the end of every run, one function per property.
const CHECKS: [fn(&Scenario, &Objects) -> Option<Violation>; 3] =
    [counters_equal_a_recount, errors_were_no_verdicts, nothing_is_left];

/// What does not hold at the end of a run.
pub(crate) fn check(scenario: &Scenario, store: &Store) -> Vec<Violation> {
    let objects = everything(store);
    CHECKS.iter().filter_map(|check| check(scenario, &objects)).collect()
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

/// P5: at rest, the counters of every job equal a recount of its pods.
fn counters_equal_a_recount(_: &Scenario, objects: &Objects) -> Option<Violation> {
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
        let recounted = recount(objects, &object.meta.uid);
        (counted != recounted).then(|| {
            let message =
                format!("{}: status counts {counted:?}, its pods are {recounted:?}", object.meta.key);
            Violation::new(Property::P5, message)
        })
    })
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
fn errors_were_no_verdicts(scenario: &Scenario, objects: &Objects) -> Option<Violation> {
    let (expected, found) = (lines(scenario.end), describe(objects));
    let found = lines(&found);
    if expected == found {
        return None;
    }
    let missing = expected.difference(&found).map(|line| format!("\n      missing: {line}"));
    let surplus = found.difference(&expected).map(|line| format!("\n      instead: {line}"));
    let message =
        format!("the end is not the one without faults{}", missing.chain(surplus).collect::<String>());
    Some(Violation::new(Property::P8, message))
}

/// P12: nothing of a job that is gone remains, and a job has one PodGroup at most.
fn nothing_is_left(_: &Scenario, objects: &Objects) -> Option<Violation> {
    let jobs: BTreeSet<&Uid> = objects.all(Kind::VcJob).map(|job| &job.meta.uid).collect();
    let mut groups: BTreeMap<&Uid, usize> = BTreeMap::new();
    for object in KINDS.into_iter().flat_map(|kind| objects.all(kind)) {
        let Some(owner) = object.meta.controller_uid() else { continue };
        if !jobs.contains(owner) {
            let message = format!("{} {} outlived its job", object.kind.info().singular, object.meta.key);
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

fn lines(text: &str) -> BTreeSet<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// One line per object. Identities and moments are left out: they differ from run to run.
fn describe(objects: &Objects) -> String {
    let mut text = String::new();
    for object in KINDS.into_iter().flat_map(|kind| objects.all(kind)) {
        let written = describe_one(&mut text, object);
        debug_assert!(written.is_ok(), "a string takes any text");
    }
    text
}

fn describe_one(text: &mut String, object: &Object) -> std::fmt::Result {
    let owner = object.meta.controller_uid().map_or("", |owner| &owner.0);
    let name = match object.meta.key.name.strip_suffix(owner) {
        Some(before) if !owner.is_empty() => format!("{before}<uid>"),
        _ => object.meta.key.name.to_string(),
    };
    write!(text, "{} {name}", object.kind.info().singular)?;
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
    } else if let Some(group) = object.as_podgroup() {
        write!(text, " {}", group.status.phase)?;
    }
    if object.meta.is_deleting() {
        write!(text, ", deleting")?;
    }
    writeln!(text)
}
