//! The job's PodGroup: the gang that the scheduler admits before any pod is created.

use std::collections::BTreeMap;

use krafla_api::volcano::{JobPhase, NetworkTopologySpec, PodGroupCondition, PodGroupPhase, TaskSpec};
use krafla_api::{Kind, Pairs, Time, labels};
use krafla_cluster::Step;
use serde_json::{Map, Value, json};

use super::hold::Hold;
use super::{Job, resources};
use crate::merge_patch::difference;
use crate::{Note, Object, Plan, Snapshot};

/// The PodGroup as it is observed.
pub(super) struct Group<'a>(Option<&'a Object>);

/// Looks for the job's PodGroup: `<job>-<uid>`, or `<job>` as Volcano before 1.5 named it.
pub(super) fn observe<'a>(job: &Job<'_>, snapshot: &Snapshot<'a>) -> Group<'a> {
    let name = job.podgroup_name();
    let mut groups = snapshot.children(Kind::PodGroup).map(|group| group.as_ref());
    let mut fallback = None;
    let found = groups.find(|group| {
        fallback = fallback.or((*group.meta.key.name == *job.name()).then_some(*group));
        *group.meta.key.name == *name
    });
    Group(found.or(fallback))
}

impl Group<'_> {
    /// Whether the scheduler lets the job have pods. One that is being removed admits nothing.
    pub(super) fn is_admitted(&self) -> bool {
        let is_staying = self.0.is_some_and(|group| !group.meta.is_deleting());
        is_staying && !matches!(self.phase(), None | Some(PodGroupPhase::Unset | PodGroupPhase::Pending))
    }

    /// Whether it was made for an earlier version of the job, and nobody removes it yet. One that says nothing is as old as
    /// the job.
    pub(super) fn is_outdated(&self, version: i32) -> bool {
        let staying = self.0.filter(|group| !group.meta.is_deleting());
        staying.is_some_and(|group| {
            let of = group.meta.annotations.get(labels::JOB_VERSION).and_then(|text| text.parse().ok());
            of.unwrap_or(0) < version
        })
    }

    /// Whether it is being removed.
    pub(super) fn is_going(&self) -> bool {
        self.0.is_some_and(|group| group.meta.is_deleting())
    }

    /// What the scheduler says of it.
    pub(super) fn phase(&self) -> Option<&PodGroupPhase> {
        Some(&self.0?.as_podgroup()?.status.phase)
    }

    /// The latest condition that holds, unless it is that everything is scheduled.
    fn complaint(&self) -> Option<&PodGroupCondition> {
        let conditions = &self.0.filter(|group| !group.meta.is_deleting())?.as_podgroup()?.status.conditions;
        let holding = conditions.iter().rev().filter(|condition| condition.status == "True");
        holding
            .max_by_key(|condition| condition.last_transition_time)
            .filter(|condition| condition.condition_type != "Scheduled")
    }

    /// Why a job that waits does not start, as far as the scheduler says so. It stands in the job's status until it has.
    pub(super) fn remark(&self, phase: &JobPhase) -> Option<(String, String)> {
        let complaint = self.complaint().filter(|_| *phase == JobPhase::Pending)?;
        Some((Hold::PODGROUP_PENDING.to_owned(), complaint.message.clone()))
    }

    /// When the scheduler last said that members of it find no place.
    pub(super) fn unschedulable_at(&self) -> Option<Time> {
        let conditions = &self.0?.as_podgroup()?.status.conditions;
        let holding = conditions
            .iter()
            .filter(|condition| condition.condition_type == "Unschedulable" && condition.status == "True");
        holding.filter_map(|condition| condition.last_transition_time).max()
    }
}

/// Creates the PodGroup, or brings its minimums up to date.
pub(super) fn ensure(
    job: &Job<'_>,
    version: i32,
    group: &Group<'_>,
    snapshot: &Snapshot<'_>,
    plan: &mut Plan,
) {
    let desired = desired_spec(job, snapshot);
    let Some(observed) = group.0 else {
        plan.steps.push(Step::Create { kind: Kind::PodGroup, object: build(job, version, desired) });
        return;
    };
    if observed.meta.is_deleting() {
        return;
    }
    let Some(body) = observed.as_podgroup() else { return };
    if let Some(changes) = changes(&json!(body.spec), &desired) {
        plan.steps.push(Step::Patch {
            kind: Kind::PodGroup,
            key: observed.meta.key.clone(),
            uid: observed.meta.uid.clone(),
            revision: None,
            of_status: false,
            patch: json!({ "spec": changes }),
        });
    }
}

/// Says what the scheduler says, as long as it is not that all is well.
pub(super) fn warn(job: &Job<'_>, group: &Group<'_>, plan: &mut Plan) {
    let Some(condition) = group.complaint() else { return };
    let what = condition.condition_type.to_lowercase();
    // Scripts look for these words.
    let message =
        format!("PodGroup {}:{} {what}, reason: {}", job.namespace(), job.name(), condition.message);
    plan.notes.push(Note::warning(Hold::PODGROUP_PENDING, message));
}

/// Removes the PodGroup of an ended try.
pub(super) fn remove(group: &Group<'_>, plan: &mut Plan) {
    if let Some(group) = group.0.filter(|group| !group.meta.is_deleting()) {
        plan.steps.push(group.deletion());
    }
}

fn build(job: &Job<'_>, version: i32, spec: Map<String, Value>) -> Value {
    let mut metadata = Map::from_iter([
        ("name".to_owned(), json!(job.podgroup_name())),
        ("namespace".to_owned(), json!(job.namespace())),
        ("ownerReferences".to_owned(), json!([job.owner_reference()])),
    ]);
    let version = (version > 0).then(|| version.to_string());
    let version = version.as_deref().map(|version| (labels::JOB_VERSION, version));
    let forwarded = job.is_forwarded.then_some((labels::JOB_FORWARDING, "true"));
    let of_job = job.meta.annotations.iter().filter(|(key, _)| *key != labels::HOLDS_SINCE);
    let annotations: Pairs = of_job.chain(forwarded).chain(version).collect();
    for (field, entries) in [("labels", &job.meta.labels), ("annotations", &annotations)] {
        if !entries.is_empty() {
            metadata.insert(field.to_owned(), json!(entries));
        }
    }
    let info = Kind::PodGroup.info();
    json!({ "apiVersion": info.api_version(), "kind": info.kind, "metadata": metadata, "spec": spec })
}

/// What of the spec follows the job. Queue and network topology are the scheduler's business once it has seen them.
fn changes(observed: &Value, desired: &Map<String, Value>) -> Option<Value> {
    fn followed<'a>(value_of: impl Fn(&str) -> Option<&'a Value>) -> Value {
        const FOLLOWED: [&str; 5] =
            ["minMember", "minTaskMember", "minResources", "priorityClassName", "subGroupPolicy"];
        let fields =
            FOLLOWED.into_iter().filter_map(|field| Some((field.to_owned(), value_of(field)?.clone())));
        fields.collect()
    }
    difference(&followed(|field| observed.get(field)), &followed(|field| desired.get(field)))
}

fn desired_spec(job: &Job<'_>, snapshot: &Snapshot<'_>) -> Map<String, Value> {
    let minima: BTreeMap<&str, i32> =
        job.spec.tasks.iter().map(|task| (task.name.as_str(), min_task_member(task))).collect();
    let mut spec = Map::new();
    let mut set = |field: &str, value: Value| spec.insert(field.to_owned(), value);
    if job.spec.min_available != 0 {
        set("minMember", json!(job.spec.min_available));
    }
    if !minima.is_empty() {
        set("minTaskMember", json!(minima));
    }
    set("queue", json!(job.spec.queue));
    if !job.spec.priority_class_name.is_empty() {
        set("priorityClassName", json!(job.spec.priority_class_name));
    }
    set("minResources", json!(resources::minimum(job.spec, snapshot)));
    if let Some(topology) = &job.spec.network_topology {
        set("networkTopology", network_topology(topology));
    }
    let sub_groups: Vec<Value> = job.spec.tasks.iter().filter_map(sub_group).collect();
    if !sub_groups.is_empty() {
        set("subGroupPolicy", json!(sub_groups));
    }
    spec
}

fn min_task_member(task: &TaskSpec) -> i32 {
    let partitions = task.partition_policy.as_ref();
    let of_partitions = partitions
        .map(|policy| policy.min_partitions.saturating_mul(policy.partition_size))
        .filter(|n| *n != 0);
    task.min_available.or(of_partitions).unwrap_or(task.replicas)
}

/// The tier by number, or else by name.
fn network_topology(topology: &NetworkTopologySpec) -> Value {
    let mut topology = topology.clone();
    if topology.highest_tier_allowed.is_some() {
        topology.highest_tier_name.clear();
    }
    json!(topology)
}

fn sub_group(task: &TaskSpec) -> Option<Value> {
    let policy = task.partition_policy.as_ref()?;
    let topology = policy.network_topology.as_ref().map(|topology| ("networkTopology", json!(topology)));
    let entry = [
        ("name", json!(task.name)),
        ("subGroupSize", json!(policy.partition_size)),
        ("minSubGroups", json!(policy.min_partitions)),
        ("labelSelector", json!({ "matchLabels": { labels::TASK_SPEC: task.name } })),
        ("matchLabelKeys", json!([labels::PARTITION_ID])),
    ];
    Some(entry.into_iter().chain(topology).map(|(field, value)| (field.to_owned(), value)).collect())
}
