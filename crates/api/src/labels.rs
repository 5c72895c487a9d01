//! Label and annotation keys that Volcano's scheduler, scripts and dashboards look for.

/// Pod label and annotation: the task's name.
pub const TASK_SPEC: &str = "volcano.sh/task-spec";
/// Pod label and annotation: the replica index within the task.
pub const TASK_INDEX: &str = "volcano.sh/task-index";
/// Pod label and annotation: the job's name.
pub const JOB_NAME: &str = "volcano.sh/job-name";
/// Pod label: the job's namespace.
pub const JOB_NAMESPACE: &str = "volcano.sh/job-namespace";
/// Pod label and annotation: the queue.
pub const QUEUE_NAME: &str = "volcano.sh/queue-name";
/// Pod label: the partition number, where the task has a partition policy.
pub const PARTITION_ID: &str = "volcano.sh/partition-id";
/// Pod and PodGroup annotation: `status.version` when it was created; a PodGroup of the first version has none.
pub const JOB_VERSION: &str = "volcano.sh/job-version";
/// Pod annotation: `status.retryCount` when the pod was created.
pub const JOB_RETRY_COUNT: &str = "volcano.sh/job-retry-count";
/// Pod annotation: `<job>-<task>`, the scheduler's predicate-cache key.
pub const TEMPLATE_UID: &str = "volcano.sh/template-uid";
/// Pod annotation: the PodGroup's name.
pub const GROUP_NAME: &str = "scheduling.k8s.io/group-name";
/// Pod annotation: the task's NUMA topology policy.
pub const NUMA_TOPOLOGY_POLICY: &str = "volcano.sh/numa-topology-policy";
/// Job annotation and label, copied to pods.
pub const PREEMPTABLE: &str = "volcano.sh/preemptable";
/// Job annotation and label, copied to pods.
pub const COOLDOWN_TIME: &str = "volcano.sh/cooldown-time";
/// Job annotation, copied to pods.
pub const REVOCABLE_ZONE: &str = "volcano.sh/revocable-zone";
/// Job annotation, copied to pods; wins over [`JDB_MAX_UNAVAILABLE`].
pub const JDB_MIN_AVAILABLE: &str = "volcano.sh/jdb-min-available";
/// Job annotation, copied to pods.
pub const JDB_MAX_UNAVAILABLE: &str = "volcano.sh/jdb-max-unavailable";
/// Job annotation, pod label and annotation.
pub const JOB_FORWARDING: &str = "volcano.sh/job-forwarding";
/// Pod annotation: the controller itself removes this pod; its end is no trigger.
pub const OUT_OF_SYNC: &str = "volcano.sh/controller-out-of-sync";
/// Job annotation: since when that holds which a policy gives time and of which no object tells the beginning.
pub const HOLDS_SINCE: &str = "krafla.dev/holds-since";
/// Pod annotation: when the pod that this one stands in for was evicted, while a policy gives it time to run.
pub const EVICTED_AT: &str = "krafla.dev/evicted-at";
/// Annotation of a Kubernetes Job: how many pods it has had that no counter tells of, by index.
pub const FORMER_PODS: &str = "krafla.dev/former-pods";
/// Job label: what kind of job it is, for people.
pub const JOB_TYPE: &str = "volcano.sh/job-type";
/// Pod annotation: the rank that Ascend devices get.
pub const HCCL_RANK_INDEX: &str = "hccl/rankIndex";
/// Job label and annotation: `<namespace>.<name>` of the JobTemplate it was made from.
pub const CREATED_BY_JOB_TEMPLATE: &str = "volcano.sh/createdByJobTemplate";
/// Job label and annotation: `<namespace>.<name>` of the JobFlow that made it.
pub const CREATED_BY_JOB_FLOW: &str = "volcano.sh/createdByJobFlow";
/// Job annotation: when a CronJob's job was due.
pub const CRONJOB_SCHEDULED_AT: &str = "volcano.sh/cronjob-scheduled-timestamp";
/// Queue annotation: the queue was closed with the one above it, and opens with it.
pub const CLOSED_BY_PARENT: &str = "volcano.sh/closed-by-parent";
/// Queue annotation: the path of queues that leads to it.
pub const HIERARCHY: &str = "volcano.sh/hierarchy";
/// Queue annotation: a weight for each part of that path.
pub const HIERARCHY_WEIGHTS: &str = "volcano.sh/hierarchy-weights";
/// Pod annotation: the PodGroup's name, as users may write it.
pub const VOLCANO_GROUP_NAME: &str = "scheduling.volcano.sh/group-name";
/// Annotation of the owner of pods: how many of them must be placed at once.
pub const GROUP_MIN_MEMBER: &str = "scheduling.volcano.sh/group-min-member";
/// Annotation of pods and namespaces: the queue to use.
pub const WANTED_QUEUE: &str = "scheduling.volcano.sh/queue-name";
/// Pod annotation, and the scheduling gate that it asks for: wait until the queue has room.
pub const QUEUE_ALLOCATION_GATE: &str = "scheduling.volcano.sh/queue-allocation-gate";
/// Pod annotation: `hard` or `soft`.
pub const NETWORK_TOPOLOGY_MODE: &str = "volcano.sh/network-topology-mode";
/// Pod annotation: the highest tier whose bounds the pods may not cross.
pub const NETWORK_TOPOLOGY_HIGHEST_TIER: &str = "volcano.sh/network-topology-highest-tier";
/// Pod annotation: the administrator's resource group.
pub const RESOURCE_GROUP: &str = "volcano.sh/resource-group";
