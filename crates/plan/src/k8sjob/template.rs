//! The pod that a Job makes from its template.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::batch::{
    COMPLETION_INDEX, COMPLETION_INDEX_VARIABLE, INDEX_FAILURE_COUNT, INDEX_IGNORED_FAILURE_COUNT,
    JOB_TRACKING,
};
use krafla_api::{Key, Kind};
use krafla_cluster::Step;
use serde_json::{Map, Value, json};

use super::Job;
use super::failure_policy::Verdict;
use super::former::Former;
use super::pods::JobPod;
use super::tally::Uncounted;
use crate::Objects;

/// How long the part of a generated name before its last five characters may be.
const PREFIX_LENGTH_MAX: usize = 58;
/// How long a name may be.
const NAME_LENGTH_MAX: usize = 253;
/// What generated names end with: no vowels, so no words.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The pod of an index, or one without. `failed` is the pod whose place it takes, where failures are counted by index.
pub(super) fn create(job: &Job<'_>, index: Option<u32>, failed: Option<&JobPod<'_>>, name: &str) -> Step {
    let template = job.spec.template.as_object();
    let part = |name: &str| {
        let part = template.and_then(|template| template.get(name)).and_then(Value::as_object);
        part.cloned().unwrap_or_default()
    };
    let (mut metadata, mut spec) = (part("metadata"), part("spec"));
    for given in ["name", "namespace", "ownerReferences", "generateName"] {
        metadata.remove(given);
    }
    metadata.insert("name".into(), name.into());
    metadata.insert("generateName".into(), name_prefix(job, index).into());
    metadata.insert("namespace".into(), job.meta.key.namespace.as_ref().into());
    metadata.insert("ownerReferences".into(), json!([job.owner_reference()]));
    add_finalizer(&mut metadata);
    if let Some(index) = index {
        set(&mut metadata, "labels", COMPLETION_INDEX, &index.to_string());
        set(&mut metadata, "annotations", COMPLETION_INDEX, &index.to_string());
        spec.insert("hostname".into(), format!("{}-{index}", job.meta.key.name).into());
        add_index_variable(&mut spec);
    }
    if job.spec.backoff_limit_per_index.is_some() {
        let [failures, ignored] = failures_so_far(failed);
        set(&mut metadata, "annotations", INDEX_FAILURE_COUNT, &failures.to_string());
        if ignored > 0 {
            set(&mut metadata, "annotations", INDEX_IGNORED_FAILURE_COUNT, &ignored.to_string());
        }
    }
    let object = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec });
    Step::Create { kind: Kind::Pod, object }
}

fn failures_so_far(failed: Option<&JobPod<'_>>) -> [i32; 2] {
    let Some(pod) = failed else { return [0, 0] };
    let [failures, ignored] = pod.failures_before();
    if pod.verdict == Verdict::Ignore {
        [failures, ignored.saturating_add(1)]
    } else {
        [failures.saturating_add(1), ignored]
    }
}

fn add_finalizer(metadata: &mut Map<String, Value>) {
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = finalizers.as_array_mut().filter(|list| !list.contains(&JOB_TRACKING.into())) {
        list.push(JOB_TRACKING.into());
    }
}

fn set(metadata: &mut Map<String, Value>, part: &str, key: &str, value: &str) {
    let map = metadata.entry(part).or_insert_with(|| json!({}));
    if map.is_null() {
        *map = json!({});
    }
    if let Some(map) = map.as_object_mut() {
        map.insert(key.to_owned(), value.into());
    }
}

/// Every container learns its pod's index, unless the variable is taken.
fn add_index_variable(spec: &mut Map<String, Value>) {
    let field = format!("metadata.labels['{COMPLETION_INDEX}']");
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            let variables = container.entry("env").or_insert_with(|| json!([]));
            if variables.is_null() {
                *variables = json!([]);
            }
            let Some(variables) = variables.as_array_mut() else { continue };
            if !variables.iter().any(|it| it.get("name") == Some(&COMPLETION_INDEX_VARIABLE.into())) {
                variables.push(
                    json!({ "name": COMPLETION_INDEX_VARIABLE, "valueFrom": { "fieldRef": { "fieldPath": field } } }),
                );
            }
        }
    }
}

/// What the names of such pods are generated from. Of a long name the Job's part is cut, so that the index stays.
fn name_prefix(job: &Job<'_>, index: Option<u32>) -> String {
    let name = &job.meta.key.name;
    match index {
        Some(index) => {
            let end = format!("-{index}-");
            first(name, PREFIX_LENGTH_MAX.saturating_sub(end.len())).to_owned() + &end
        }
        None if name.len() < NAME_LENGTH_MAX => format!("{name}-"),
        None => name.to_string(),
    }
}

/// The first characters of a name.
fn first(name: &str, length: usize) -> &str {
    name.get(..length).unwrap_or(name)
}

/// Names for new pods. A name follows from the Job and from how many pods it has had, so that a pod whose creation was not
/// confirmed is found to exist instead of being made twice, and no name is given a second time.
pub(super) struct Names<'a> {
    objects: &'a Objects,
    job: &'a Job<'a>,
    /// How many pods were made for each index, and without one, as far as anybody knows. To try all names again for each new
    /// pod would cost a queue of work the square of its length.
    n_made: BTreeMap<Option<u32>, u32>,
    former: Former,
    /// The next attempt for each index, and for pods without one.
    next: BTreeMap<Option<u32>, u32>,
    /// The names that were drawn. Of thousands, some come twice.
    drawn: BTreeSet<String>,
}

impl<'a> Names<'a> {
    pub(super) fn new(job: &'a Job<'a>, objects: &'a Objects, pods: &[JobPod<'_>]) -> Names<'a> {
        let former = Former::recorded(job);
        let n_made = n_made(job, pods);
        Names { objects, job, n_made, former, next: BTreeMap::new(), drawn: BTreeSet::new() }
    }

    pub(super) fn draw(&mut self, index: Option<u32>) -> String {
        let prefix = name_prefix(self.job, index);
        let prefix = first(&prefix, PREFIX_LENGTH_MAX);
        let n_made = self.n_made.get(&index).copied().unwrap_or(0);
        let attempt = self.next.entry(index).or_insert(n_made.saturating_add(self.former.n(index)));
        loop {
            let name = format!("{prefix}{}", suffix(&self.job.meta.uid.0, index, *attempt));
            *attempt = attempt.saturating_add(1);
            let key = Key::new(&self.job.meta.key.namespace, &name);
            if self.objects.get(Kind::Pod, &key).is_none() && self.drawn.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// The pods that are there and not on record yet and, of a Job without indexes, all that are counted or about to be. With the former
/// ones this does not fall when a pod goes.
fn n_made(job: &Job<'_>, pods: &[JobPod<'_>]) -> BTreeMap<Option<u32>, u32> {
    let uncounted = Uncounted::of(job);
    let mut n_made: BTreeMap<Option<u32>, u32> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| pod.is_tracked && !uncounted.is_listed(pod)) {
        let n = n_made.entry(pod.index).or_default();
        *n = n.saturating_add(1);
    }
    if !job.is_indexed() {
        let counted = [job.status.succeeded, job.status.failed].map(|n| u32::try_from(n).unwrap_or(0));
        let on_record =
            [uncounted.succeeded.len(), uncounted.failed.len()].map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        let n = n_made.entry(None).or_default();
        *n = counted.into_iter().chain(on_record).fold(*n, u32::saturating_add);
    }
    n_made
}

/// Five letters that look random and are not. Those of two attempts differ, until there are millions: a step that has no factor in
/// common with the number of all suffixes comes to each of them once.
fn suffix(uid: &str, index: Option<u32>, attempt: u32) -> String {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    const STEP: u64 = 8_868_113;
    let text = format!("{uid}/{index:?}");
    let mut hash = text.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    // The last bytes of a text reach only the lowest bits of its hash; fold them over all.
    hash ^= hash >> 32;
    let base = LETTERS.len() as u64;
    hash = (hash % base.pow(5)).saturating_add(STEP.saturating_mul(u64::from(attempt)));
    let mut letters = String::new();
    for _ in 0..5 {
        let position = usize::try_from(hash % base).unwrap_or(0);
        letters.push(LETTERS.get(position).map_or('x', |letter| char::from(*letter)));
        hash /= base;
    }
    letters
}

#[cfg(test)]
mod tests {
    use krafla_api::batch::{JobSpec, JobStatus, UncountedTerminatedPods};
    use krafla_api::{Time, Uid};

    use super::*;
    use crate::object::Meta;

    #[test]
    fn a_long_name_is_cut_so_that_the_index_stays() {
        let prefix = |name: &str, index: Option<u32>| {
            let meta = Meta { key: Key::new("ns", name), ..Meta::default() };
            let (spec, status) = (JobSpec::default(), JobStatus::default());
            name_prefix(&Job { meta: &meta, spec: &spec, status: &status, now: Time::from_seconds(0) }, index)
        };
        assert_eq!(prefix("a", None), "a-");
        assert_eq!(prefix("a", Some(12)), "a-12-");
        let long = "n".repeat(63);
        assert_eq!(prefix(&long, None), format!("{long}-"));
        assert_eq!(prefix(&long, Some(12)), format!("{}-12-", "n".repeat(54)));
        let longest = "n".repeat(253);
        assert_eq!(prefix(&longest, None), longest, "one more would be no name");
    }

    fn draw(name: &str, n: usize) -> Vec<String> {
        draw_for(name, JobStatus::default(), n)
    }

    /// The names of a Job of which no pod is there.
    fn draw_for(name: &str, status: JobStatus, n: usize) -> Vec<String> {
        let meta = Meta { key: Key::new("ns", name), ..Meta::default() };
        let spec = JobSpec::default();
        let job = Job { meta: &meta, spec: &spec, status: &status, now: Time::from_seconds(0) };
        let objects = Objects::default();
        let mut names = Names::new(&job, &objects, &[]);
        (0..n).map(|_| names.draw(None)).collect()
    }

    #[test]
    fn a_name_is_generated_as_a_server_does_it() {
        for (name, kept) in [
            ("a".to_owned(), "a-".to_owned()),
            ("n".repeat(63), "n".repeat(58)),
            (format!("{}.{}", "n".repeat(56), "m".repeat(6)), format!("{}.m", "n".repeat(56))),
            (format!("{}.{}", "n".repeat(57), "m".repeat(5)), format!("{}.", "n".repeat(57))),
        ] {
            let drawn = draw(&name, 1).remove(0);
            assert_eq!(drawn.get(..drawn.len() - 5), Some(kept.as_str()));
            assert_eq!(krafla_admission::names::dns_subdomain(&drawn), Vec::<String>::new(), "{drawn}");
        }
    }

    #[test]
    fn the_name_of_a_pod_that_has_gone_is_not_given_again() {
        let second = draw("a", 2).remove(1);
        let counted = JobStatus { failed: 1, ..JobStatus::default() };
        assert_eq!(draw_for("a", counted, 1), [second.as_str()]);
        let uncounted = UncountedTerminatedPods { succeeded: vec![Uid::from("p")], ..Default::default() };
        let about_to_be = JobStatus { uncounted_terminated_pods: Some(uncounted), ..JobStatus::default() };
        assert_eq!(draw_for("a", about_to_be, 1), [second]);
    }

    #[test]
    fn no_name_is_drawn_twice() {
        let names: BTreeSet<String> = draw("a", 20_000).into_iter().collect();
        assert_eq!(names.len(), 20_000);
    }
}
