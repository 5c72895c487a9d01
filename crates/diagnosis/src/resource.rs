//! The resources that a diagnosis reads.

/// A resource that a diagnosis reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the variants are Kubernetes' and Volcano's kinds")]
pub enum Resource {
    VcJob,
    VcCronJob,
    JobFlow,
    JobTemplate,
    PodGroup,
    Queue,
    Job,
    CronJob,
    Pod,
    Node,
    Event,
    PersistentVolumeClaim,
    ResourceQuota,
    LimitRange,
    ConfigMap,
    Secret,
    ServiceAccount,
    PriorityClass,
    RuntimeClass,
}

struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    /// How kubectl commands name it.
    word: &'static str,
    is_namespaced: bool,
    /// Other names that users type.
    names: &'static [&'static str],
}

const fn row(
    [group, version, kind, plural, word]: [&'static str; 5],
    is_namespaced: bool,
    names: &'static [&'static str],
) -> Row {
    Row { group, version, kind, plural, word, is_namespaced, names }
}

impl Resource {
    /// All of them.
    pub const ALL: [Resource; 19] = [
        Resource::VcJob,
        Resource::VcCronJob,
        Resource::JobFlow,
        Resource::JobTemplate,
        Resource::PodGroup,
        Resource::Queue,
        Resource::Job,
        Resource::CronJob,
        Resource::Pod,
        Resource::Node,
        Resource::Event,
        Resource::PersistentVolumeClaim,
        Resource::ResourceQuota,
        Resource::LimitRange,
        Resource::ConfigMap,
        Resource::Secret,
        Resource::ServiceAccount,
        Resource::PriorityClass,
        Resource::RuntimeClass,
    ];

    /// The resources that can be asked about.
    pub const SUBJECTS: [Resource; 8] = [
        Resource::VcJob,
        Resource::Job,
        Resource::Pod,
        Resource::PodGroup,
        Resource::Queue,
        Resource::JobFlow,
        Resource::CronJob,
        Resource::VcCronJob,
    ];

    #[rustfmt::skip]
    const fn row(self) -> Row {
        const BATCH: &str = "batch.volcano.sh";
        const FLOW: &str = "flow.volcano.sh";
        const SCHEDULING: &str = "scheduling.volcano.sh";
        match self {
            Resource::VcJob => row([BATCH, "v1alpha1", "Job", "jobs", "vcjob"], true, &["vj", "vcjobs", "job.batch.volcano.sh", "jobs.batch.volcano.sh"]),
            Resource::VcCronJob => row([BATCH, "v1alpha1", "CronJob", "cronjobs", "cronjob.batch.volcano.sh"], true, &["cronvcjob", "vccronjob", "vccj", "cronjobs.batch.volcano.sh"]),
            Resource::JobFlow => row([FLOW, "v1alpha1", "JobFlow", "jobflows", "jobflow"], true, &["jf", "jobflows", "jobflow.flow.volcano.sh", "jobflows.flow.volcano.sh"]),
            Resource::JobTemplate => row([FLOW, "v1alpha1", "JobTemplate", "jobtemplates", "jobtemplate"], true, &["jt", "jobtemplates"]),
            Resource::PodGroup => row([SCHEDULING, "v1beta1", "PodGroup", "podgroups", "podgroup"], true, &["pg", "podgroups", "podgroup.scheduling.volcano.sh", "podgroup-v1beta1"]),
            Resource::Queue => row([SCHEDULING, "v1beta1", "Queue", "queues", "queue"], false, &["q", "queues", "queue.scheduling.volcano.sh", "queue-v1beta1"]),
            Resource::Job => row(["batch", "v1", "Job", "jobs", "job"], true, &["jobs", "job.batch", "jobs.batch"]),
            Resource::CronJob => row(["batch", "v1", "CronJob", "cronjobs", "cronjob"], true, &["cj", "cronjobs", "cronjob.batch", "cronjobs.batch"]),
            Resource::Pod => row(["", "v1", "Pod", "pods", "pod"], true, &["po", "pods"]),
            Resource::Node => row(["", "v1", "Node", "nodes", "node"], false, &["no", "nodes"]),
            Resource::Event => row(["", "v1", "Event", "events", "event"], true, &[]),
            Resource::PersistentVolumeClaim => row(["", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim"], true, &["pvc"]),
            Resource::ResourceQuota => row(["", "v1", "ResourceQuota", "resourcequotas", "resourcequota"], true, &["quota"]),
            Resource::LimitRange => row(["", "v1", "LimitRange", "limitranges", "limitrange"], true, &["limits"]),
            Resource::ConfigMap => row(["", "v1", "ConfigMap", "configmaps", "configmap"], true, &["cm"]),
            Resource::Secret => row(["", "v1", "Secret", "secrets", "secret"], true, &[]),
            Resource::ServiceAccount => row(["", "v1", "ServiceAccount", "serviceaccounts", "serviceaccount"], true, &["sa"]),
            Resource::PriorityClass => row(["scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "priorityclass"], false, &["pc"]),
            Resource::RuntimeClass => row(["node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", "runtimeclass"], false, &[]),
        }
    }

    /// The kind of a manifest.
    pub fn from_manifest(api_version: &str, kind: &str) -> Option<Resource> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Resource::ALL.into_iter().find(|it| it.row().group == group && it.row().kind == kind)
    }

    /// The resource that a user names, as kubectl would take it.
    pub fn from_word(word: &str) -> Option<Resource> {
        let word = word.to_lowercase();
        let is_it = |it: &Resource| it.row().word == word || it.row().names.contains(&word.as_str());
        Resource::ALL.into_iter().find(is_it)
    }

    /// How kubectl commands name it.
    pub fn word(self) -> &'static str {
        self.row().word
    }

    /// The kind in manifests.
    pub fn kind(self) -> &'static str {
        self.row().kind
    }

    /// The `apiVersion` in manifests.
    pub fn api_version(self) -> String {
        let Row { group, version, .. } = self.row();
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
    }

    /// Whether its objects are in namespaces.
    pub fn is_namespaced(self) -> bool {
        self.row().is_namespaced
    }

    /// The path of its objects: of one namespace, or of all if it is empty. Names are percent-encoded by the caller.
    pub fn path(self, namespace: &str) -> String {
        let Row { group, version, plural, is_namespaced, .. } = self.row();
        let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        let namespace = if is_namespaced && !namespace.is_empty() {
            format!("/namespaces/{namespace}")
        } else {
            String::new()
        };
        format!("{root}/{version}{namespace}/{plural}")
    }
}
