//! Every kind that Krafla knows by name: one row each, and nothing else decides what a kind is called.

/// A kind of resource that controllers read or write.
///
/// Volcano's Job and CronJob are `VcJob` and `VcCronJob`, as their users say; `Job` and `CronJob` are batch/v1's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the variants are Kubernetes' own names; the table below explains them")]
pub enum Kind {
    Namespace,
    Node,
    Pod,
    Service,
    ConfigMap,
    Secret,
    ServiceAccount,
    PersistentVolume,
    PersistentVolumeClaim,
    Event,
    PriorityClass,
    NetworkPolicy,
    Lease,
    CustomResourceDefinition,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    VcJob,
    VcCronJob,
    JobFlow,
    JobTemplate,
    Command,
    PodGroup,
    Queue,
    HyperNode,
    Numatopology,
    NodeShard,
    ColocationConfiguration,
    Job,
    CronJob,
}

/// Whether objects of a kind live in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One name space for the whole cluster.
    Cluster,
    /// One name space per namespace.
    Namespaced,
}

/// How a kind is named in URLs and manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindInfo {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version within the group.
    pub version: &'static str,
    /// The `kind` field of manifests.
    pub kind: &'static str,
    /// The resource name in URLs.
    pub plural: &'static str,
    /// The resource name for one object.
    pub singular: &'static str,
    /// What else `kubectl` accepts.
    pub short_names: &'static [&'static str],
    /// Cluster-wide or namespaced.
    pub scope: Scope,
    /// Whether status is written through `/status` only.
    pub has_status_subresource: bool,
}

impl KindInfo {
    /// `group/version`, or `version` alone in the core group: the `apiVersion` of manifests.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `plural.group`, the name of the kind in error messages and of its CRD.
    pub fn qualified_plural(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}

/// A kind that some cluster serves, whether or not this program has a name for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// API group; empty for the core group.
    pub group: String,
    /// API version within the group.
    pub version: String,
    /// The `kind` field of manifests.
    pub kind: String,
    /// The resource name in URLs.
    pub plural: String,
    /// The resource name for one object.
    pub singular: String,
    /// Cluster-wide or namespaced.
    pub scope: Scope,
}

impl Served {
    /// `group/version`, or `version` alone in the core group: the `apiVersion` of manifests.
    pub fn api_version(&self) -> String {
        let separator = if self.group.is_empty() { "" } else { "/" };
        format!("{}{separator}{}", self.group, self.version)
    }

    /// Whether a patch can merge the elements of its lists by their names: only servers know how, and only of kinds of Kubernetes.
    pub fn has_strategic_patches(&self) -> bool {
        self.known().is_some_and(|kind| !Kind::VOLCANO.contains(&kind))
    }

    /// The name that this program has for it.
    pub fn known(&self) -> Option<Kind> {
        Kind::of_manifest(&self.api_version(), &self.kind)
    }
}

impl From<Kind> for Served {
    fn from(kind: Kind) -> Served {
        let KindInfo { group, version, kind, plural, singular, scope, .. } = *kind.info();
        let [group, version, kind, plural, singular] =
            [group, version, kind, plural, singular].map(str::to_owned);
        Served { group, version, kind, plural, singular, scope }
    }
}

const fn row(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    [plural, singular]: [&'static str; 2],
    short_names: &'static [&'static str],
    scope: Scope,
    has_status_subresource: bool,
) -> KindInfo {
    KindInfo { group, version, kind, plural, singular, short_names, scope, has_status_subresource }
}

impl Kind {
    /// All kinds, in the order of the table.
    pub const ALL: [Kind; 30] = [
        Kind::Namespace,
        Kind::Node,
        Kind::Pod,
        Kind::Service,
        Kind::ConfigMap,
        Kind::Secret,
        Kind::ServiceAccount,
        Kind::PersistentVolume,
        Kind::PersistentVolumeClaim,
        Kind::Event,
        Kind::PriorityClass,
        Kind::NetworkPolicy,
        Kind::Lease,
        Kind::CustomResourceDefinition,
        Kind::ReplicaSet,
        Kind::StatefulSet,
        Kind::DaemonSet,
        Kind::VcJob,
        Kind::VcCronJob,
        Kind::JobFlow,
        Kind::JobTemplate,
        Kind::Command,
        Kind::PodGroup,
        Kind::Queue,
        Kind::HyperNode,
        Kind::Numatopology,
        Kind::NodeShard,
        Kind::ColocationConfiguration,
        Kind::Job,
        Kind::CronJob,
    ];

    /// The kinds that Volcano defines, served from CRDs.
    pub const VOLCANO: [Kind; 11] = [
        Kind::VcJob,
        Kind::VcCronJob,
        Kind::JobFlow,
        Kind::JobTemplate,
        Kind::Command,
        Kind::PodGroup,
        Kind::Queue,
        Kind::HyperNode,
        Kind::Numatopology,
        Kind::NodeShard,
        Kind::ColocationConfiguration,
    ];

    /// The row of this kind.
    #[rustfmt::skip]
    pub const fn info(self) -> &'static KindInfo {
        use Scope::{Cluster, Namespaced};
        const NS: KindInfo = row("", "v1", "Namespace", ["namespaces", "namespace"], &["ns"], Cluster, true);
        const NODE: KindInfo = row("", "v1", "Node", ["nodes", "node"], &["no"], Cluster, true);
        const POD: KindInfo = row("", "v1", "Pod", ["pods", "pod"], &["po"], Namespaced, true);
        const SVC: KindInfo = row("", "v1", "Service", ["services", "service"], &["svc"], Namespaced, true);
        const CM: KindInfo = row("", "v1", "ConfigMap", ["configmaps", "configmap"], &["cm"], Namespaced, false);
        const SECRET: KindInfo = row("", "v1", "Secret", ["secrets", "secret"], &[], Namespaced, false);
        const SA: KindInfo = row("", "v1", "ServiceAccount", ["serviceaccounts", "serviceaccount"], &["sa"], Namespaced, false);
        const PV: KindInfo = row("", "v1", "PersistentVolume", ["persistentvolumes", "persistentvolume"], &["pv"], Cluster, true);
        const PVC: KindInfo = row("", "v1", "PersistentVolumeClaim", ["persistentvolumeclaims", "persistentvolumeclaim"], &["pvc"], Namespaced, true);
        const EVENT: KindInfo = row("", "v1", "Event", ["events", "event"], &["ev"], Namespaced, false);
        const PC: KindInfo = row("scheduling.k8s.io", "v1", "PriorityClass", ["priorityclasses", "priorityclass"], &["pc"], Cluster, false);
        const NETPOL: KindInfo = row("networking.k8s.io", "v1", "NetworkPolicy", ["networkpolicies", "networkpolicy"], &["netpol"], Namespaced, false);
        const LEASE: KindInfo = row("coordination.k8s.io", "v1", "Lease", ["leases", "lease"], &[], Namespaced, false);
        const CRD: KindInfo = row("apiextensions.k8s.io", "v1", "CustomResourceDefinition", ["customresourcedefinitions", "customresourcedefinition"], &["crd", "crds"], Cluster, true);
        const RS: KindInfo = row("apps", "v1", "ReplicaSet", ["replicasets", "replicaset"], &["rs"], Namespaced, true);
        const STS: KindInfo = row("apps", "v1", "StatefulSet", ["statefulsets", "statefulset"], &["sts"], Namespaced, true);
        const DS: KindInfo = row("apps", "v1", "DaemonSet", ["daemonsets", "daemonset"], &["ds"], Namespaced, true);
        const JOB: KindInfo = row("batch", "v1", "Job", ["jobs", "job"], &[], Namespaced, true);
        const CRON: KindInfo = row("batch", "v1", "CronJob", ["cronjobs", "cronjob"], &["cj"], Namespaced, true);
        const VCJOB: KindInfo = row("batch.volcano.sh", "v1alpha1", "Job", ["jobs", "job"], &["vcjob", "vj"], Namespaced, true);
        const VCCRON: KindInfo = row("batch.volcano.sh", "v1alpha1", "CronJob", ["cronjobs", "cronjob"], &["cronvcjob", "cronvj"], Namespaced, true);
        const FLOW: KindInfo = row("flow.volcano.sh", "v1alpha1", "JobFlow", ["jobflows", "jobflow"], &["jf"], Namespaced, true);
        const TEMPLATE: KindInfo = row("flow.volcano.sh", "v1alpha1", "JobTemplate", ["jobtemplates", "jobtemplate"], &["jt"], Namespaced, true);
        const COMMAND: KindInfo = row("bus.volcano.sh", "v1alpha1", "Command", ["commands", "command"], &[], Namespaced, false);
        // Volcano's PodGroup has no status subresource: a plain write carries status.
        const PG: KindInfo = row("scheduling.volcano.sh", "v1beta1", "PodGroup", ["podgroups", "podgroup"], &["pg", "podgroup-v1beta1"], Namespaced, false);
        const QUEUE: KindInfo = row("scheduling.volcano.sh", "v1beta1", "Queue", ["queues", "queue"], &["q", "queue-v1beta1"], Cluster, true);
        const HYPER: KindInfo = row("topology.volcano.sh", "v1alpha1", "HyperNode", ["hypernodes", "hypernode"], &["hn"], Cluster, true);
        const NUMA: KindInfo = row("nodeinfo.volcano.sh", "v1alpha1", "Numatopology", ["numatopologies", "numatopology"], &["numatopo"], Cluster, false);
        const SHARD: KindInfo = row("shard.volcano.sh", "v1alpha1", "NodeShard", ["nodeshards", "nodeshard"], &["nsh"], Cluster, true);
        const COLOCATION: KindInfo = row("config.volcano.sh", "v1alpha1", "ColocationConfiguration", ["colocationconfigurations", "colocationconfiguration"], &[], Namespaced, true);
        match self {
            Kind::Namespace => &NS,
            Kind::Node => &NODE,
            Kind::Pod => &POD,
            Kind::Service => &SVC,
            Kind::ConfigMap => &CM,
            Kind::Secret => &SECRET,
            Kind::ServiceAccount => &SA,
            Kind::PersistentVolume => &PV,
            Kind::PersistentVolumeClaim => &PVC,
            Kind::Event => &EVENT,
            Kind::PriorityClass => &PC,
            Kind::NetworkPolicy => &NETPOL,
            Kind::Lease => &LEASE,
            Kind::CustomResourceDefinition => &CRD,
            Kind::ReplicaSet => &RS,
            Kind::StatefulSet => &STS,
            Kind::DaemonSet => &DS,
            Kind::Job => &JOB,
            Kind::CronJob => &CRON,
            Kind::VcJob => &VCJOB,
            Kind::VcCronJob => &VCCRON,
            Kind::JobFlow => &FLOW,
            Kind::JobTemplate => &TEMPLATE,
            Kind::Command => &COMMAND,
            Kind::PodGroup => &PG,
            Kind::Queue => &QUEUE,
            Kind::HyperNode => &HYPER,
            Kind::Numatopology => &NUMA,
            Kind::NodeShard => &SHARD,
            Kind::ColocationConfiguration => &COLOCATION,
        }
    }

    /// The kind of a manifest, by its `apiVersion` and `kind` fields.
    pub fn of_manifest(api_version: &str, kind: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|k| k.info().kind == kind && k.info().api_version() == api_version)
    }
}

impl std::fmt::Display for Kind {
    /// The qualified plural, as Kubernetes' messages name a resource.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.info().qualified_plural())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_kinds_share_a_url_or_a_manifest_name() {
        let mut urls: Vec<_> = Kind::ALL.iter().map(|k| (k.info().group, k.info().plural)).collect();
        urls.sort_unstable();
        urls.dedup();
        assert_eq!(urls.len(), Kind::ALL.len());
        for kind in Kind::ALL {
            assert_eq!(Kind::of_manifest(&kind.info().api_version(), kind.info().kind), Some(kind));
            assert_eq!(Served::from(kind).known(), Some(kind));
        }
    }
}
