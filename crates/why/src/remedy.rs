//! What to do about a reason, and who decides.

use crate::lack::{Lack, Lacks};
use crate::reason::{Lease, Reason};

/// What those who read a remedy can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Means {
    /// Change the cluster, with kubectl or otherwise.
    #[default]
    Cluster,
    /// Change the files and run them again: a cluster that ends with its run cannot be reached.
    Files,
}

impl Means {
    /// How something comes to exist.
    pub fn make(self, what: &str) -> String {
        match self {
            Means::Cluster => format!("create {what}"),
            Means::Files => format!("add {what} to the files"),
        }
    }

    /// What can be done in both cases, and what else in a cluster that others can reach.
    fn or_there(self, here: &str, there: &str) -> String {
        match self {
            Means::Cluster => format!("{here}, or {there}"),
            Means::Files => here.to_owned(),
        }
    }
}

/// Who decides whether an object goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decider {
    /// The scheduler.
    Scheduler,
    /// The controller of the object's kind.
    Controller,
    /// The kubelet, or Krafla's node.
    Node,
    /// The API server, with its admission.
    ApiServer,
    /// The person who wrote the object.
    Author,
}

impl Decider {
    /// The decider in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Decider::Scheduler => "scheduler",
            Decider::Controller => "controller",
            Decider::Node => "node",
            Decider::ApiServer => "API server",
            Decider::Author => "author of the object",
        }
    }
}

const LESS: &str = "lower resources.requests";
const LESS_AT_ONCE: &str = "lower resources.requests or spec.minAvailable";
const PATIENCE: &str = "wait until other jobs have ended";

impl Reason {
    /// Who decides.
    pub fn decider(&self) -> Decider {
        match self.root() {
            Reason::NoNode { .. }
            | Reason::QueueLimit { .. }
            | Reason::QueueShare { .. }
            | Reason::TooEarly
            | Reason::Behind { .. }
            | Reason::PodsLeaving
            | Reason::NoQueue { .. }
            | Reason::QueueIsClosed { .. }
            | Reason::NeverFitsQueue { .. }
            | Reason::NeverFitsNodes { .. }
            | Reason::QueueFull { .. }
            | Reason::ClusterFull { .. }
            | Reason::PodsMissing { .. }
            | Reason::PodsOfTaskMissing { .. }
            | Reason::GangNotReady { .. }
            | Reason::NotHandled { .. }
            | Reason::SchedulingGated
            | Reason::Gated { .. }
            | Reason::LargerThanNodes { .. }
            | Reason::NodesFull { .. }
            | Reason::ResourceUnknown { .. }
            | Reason::NodesCrowded { .. }
            | Reason::Tainted { .. }
            | Reason::SelectorUnmatched { .. }
            | Reason::AffinityUnmatched
            | Reason::PodsUnmatched { .. }
            | Reason::NodesCordoned { .. }
            | Reason::NodesNotReady { .. }
            | Reason::PortTaken { .. }
            | Reason::NoNodes
            | Reason::QueueQuota { .. }
            | Reason::ClusterOverused
            | Reason::ClaimWaits { .. }
            | Reason::ClaimPending { .. } => Decider::Scheduler,
            Reason::QuotaExceeded { .. }
            | Reason::QuotaUsedUp { .. }
            | Reason::QuotaUnspecified { .. }
            | Reason::AboveLimit { .. }
            | Reason::AboveLimitUnset { .. }
            | Reason::BelowLimit { .. }
            | Reason::BelowLimitUnset { .. }
            | Reason::AccountMissing { .. }
            | Reason::PriorityClassMissing { .. }
            | Reason::RuntimeClassMissing { .. }
            | Reason::WebhookDenied { .. }
            | Reason::WebhookDown { .. }
            | Reason::PolicyDenied { .. }
            | Reason::PodSecurity { .. }
            | Reason::NamespaceTerminating { .. }
            | Reason::NoRight { .. } => Decider::ApiServer,
            Reason::CrashLoop { .. }
            | Reason::Restarts { .. }
            | Reason::CommandNotFound { .. }
            | Reason::CommandMissing { .. }
            | Reason::NotExecutable { .. }
            | Reason::CommandNotInImage { .. }
            | Reason::NoWorkingDir { .. }
            | Reason::ImagePull { .. }
            | Reason::ImagePullFailed { .. }
            | Reason::OutOfMemory { .. }
            | Reason::Exited { .. }
            | Reason::Evicted { .. }
            | Reason::PodDeadline
            | Reason::ProbeFails { .. }
            | Reason::NodeSilent { .. }
            | Reason::NodeMissing { .. }
            | Reason::KeyMissing { .. }
            | Reason::NotFound { .. }
            | Reason::VolumesLate { .. } => Decider::Node,
            Reason::Suspended
            | Reason::CronSuspended
            | Reason::Aborted
            | Reason::NoParallelism
            | Reason::NoReplicas
            | Reason::Unreadable { .. }
            | Reason::ScheduleInvalid { .. }
            | Reason::ZoneUnknown { .. }
            | Reason::NeverDue { .. } => Decider::Author,
            _ => Decider::Controller,
        }
    }

    /// What to do about it in one line, where that is known.
    pub fn remedy(&self, means: Means) -> Option<String> {
        let is_of_gang = self.all().any(|it| matches!(it, Reason::Gang { .. } | Reason::NotAdmitted { .. }));
        let container = self.all().find_map(|it| match it {
            Reason::OfContainer { pod, container, .. } => Some((pod.as_str(), container.as_str())),
            _ => None,
        });
        let remedy = match self.root() {
            Reason::NoNode { lacks, .. } => return Some(of_lacks(lacks, is_of_gang, means)),
            Reason::NotFound { kind, .. } if kind.as_str() == "podgroup" => {
                let made = means.make("the PodGroup");
                format!("{made}, or correct the annotation scheduling.k8s.io/group-name of the pod")
            }
            Reason::NotFound { kind, .. } if kind.as_str() == "persistentvolumeclaim" => {
                format!("{}, or correct spec.volumes", means.make("the PersistentVolumeClaim"))
            }
            Reason::NotFound { .. } | Reason::KeyMissing { .. } => {
                format!("{}, or mark the reference as optional", means.make("what is missing"))
            }
            Reason::NoQueue { .. } => format!("{}, or use another one in spec.queue", means.make("the queue")),
            Reason::QueueMissing { queue } | Reason::QueueMissingForJob { queue } => {
                format!("create the queue {queue}, or use another one in spec.queue")
            }
            Reason::QueueIsClosed { .. } => means.or_there("use another queue in spec.queue", "open it"),
            Reason::QueueClosed { queue, .. } => format!(
                "open it, as `vcctl queue operate --action open --name {queue}` does, \
                 or use another one in spec.queue"
            ),
            Reason::NeverFitsQueue { .. } => format!("{LESS_AT_ONCE}, or raise spec.capability of the queue"),
            Reason::NeverFitsNodes { .. } if means == Means::Cluster => format!("{LESS_AT_ONCE}, or add nodes"),
            Reason::NeverFitsNodes { .. } => format!("{LESS_AT_ONCE}, or add resources with --capacity"),
            Reason::QueueLimit { .. } | Reason::QueueQuota { .. } => {
                format!("raise spec.capability of the queue, {LESS}, or {PATIENCE}")
            }
            Reason::QueueShare { .. } | Reason::Behind { .. } | Reason::PodsLeaving | Reason::TooEarly => {
                PATIENCE.to_owned()
            }
            Reason::QueueFull { .. } | Reason::ClusterFull { .. } | Reason::ClusterOverused => {
                format!("{LESS_AT_ONCE}, or {PATIENCE}")
            }
            Reason::SchedulingGated => {
                means.or_there("remove spec.schedulingGates from the pod's template", "from the pod")
            }
            Reason::NotHandled { scheduler } => match means {
                Means::Cluster => {
                    format!("start the scheduler {scheduler}, or use another one in spec.schedulerName")
                }
                Means::Files => "remove spec.schedulerName, or set it to volcano".to_owned(),
            },
            Reason::NodeMissing { .. } => "remove spec.nodeName, or use an existing node".to_owned(),
            Reason::Gated { .. } => {
                "wait for the controller of these gates, or remove them from spec.schedulingGates".to_owned()
            }
            Reason::ClaimMissing { claim, .. } => {
                format!("create the PersistentVolumeClaim {claim}, or correct spec.volumes")
            }
            Reason::QuotaExceeded { .. } | Reason::QuotaUsedUp { .. } => {
                "wait until other pods have ended, lower the requests, or raise the ResourceQuota of the namespace"
                    .to_owned()
            }
            Reason::WebhookDenied { .. } | Reason::PolicyDenied { .. } => {
                "change the job, or the rule that refuses it".to_owned()
            }
            _ if self.all().any(|it| matches!(it, Reason::Forbidden { .. })) => {
                "change the job, or the rule that refuses it".to_owned()
            }
            Reason::CrashLoop { .. } => {
                let (pod, container) = container?;
                format!("see why it ended: `kubectl logs {pod} -c {container} --previous`")
            }
            Reason::ImagePull { .. } | Reason::ImagePullFailed { .. } => {
                "correct its image, or give the pod imagePullSecrets that may read it".to_owned()
            }
            Reason::NoController { lease: Lease::Held(_) } => {
                "see the logs of the lease holder, and whether its --controllers exclude this kind".to_owned()
            }
            Reason::NoController { .. } => "start `krafla controller-manager --kubeconfig FILE`, or \
                                       `krafla up` without --without-controllers"
                .to_owned(),
            Reason::Unreadable { .. } => "correct the field, or create it again".to_owned(),
            Reason::Deleted { .. } => {
                "start the controller of these finalizers; it removes them when it is done".to_owned()
            }
            Reason::Aborted => "resume it, as `vcctl job resume` does, or delete it".to_owned(),
            Reason::Suspended | Reason::CronSuspended => "set spec.suspend to false".to_owned(),
            Reason::ManagedBy { manager } => {
                format!("run the controller {manager}, or create it again without spec.managedBy")
            }
            Reason::PodFailed { pod, .. } => {
                format!("see `kubectl logs {pod}`; set a policy (RestartJob, AbortJob) for the job")
            }
            Reason::PodEnding { pod } | Reason::PodsEnding { pod, .. } => format!(
                "wait for their terminationGracePeriodSeconds; if their node is gone, \
                 `kubectl delete pod {pod} --force`"
            ),
            Reason::TaskDependsOn { .. } => {
                "see why those tasks have fewer ready pods than their minAvailable".to_owned()
            }
            Reason::StepDependsOn { .. } => "see why those jobs have not completed".to_owned(),
            Reason::TemplateMissing { template, .. } => {
                format!("create the JobTemplate {template} in the same namespace")
            }
            _ => return None,
        };
        Some(remedy)
    }
}

/// What to do about what nodes lack. What is short comes before all else: most of it passes.
fn of_lacks(lacks: &Lacks, is_of_gang: bool, means: Means) -> String {
    let has = |is_it: fn(&Lack) -> bool| lacks.iter().any(is_it);
    if has(|it| matches!(it, Lack::NotFound { kind, .. } if kind.as_str() == "persistentvolumeclaim")) {
        format!("{}, or correct spec.volumes", means.make("the PersistentVolumeClaim"))
    } else if has(|it| matches!(it, Lack::Insufficient { .. } | Lack::TooManyPods)) {
        format!("{}, or {PATIENCE}", if is_of_gang { LESS_AT_ONCE } else { LESS })
    } else if has(|it| matches!(it, Lack::Ports)) {
        format!("use another hostPort, or {PATIENCE}")
    } else if has(|it| matches!(it, Lack::Spread | Lack::SpreadLabel)) {
        let allowed = "allow more in topologySpreadConstraints of the pod's template";
        match means {
            Means::Cluster => format!("{allowed}, label nodes, or {PATIENCE}"),
            Means::Files => format!("{allowed}, or {PATIENCE}"),
        }
    } else if has(|it| matches!(it, Lack::Taints | Lack::Taint { .. })) {
        means.or_there("tolerate the taint in the pod's template", "remove it from the node")
    } else if has(|it| {
        matches!(it, Lack::Selector | Lack::PodAffinity | Lack::PodAntiAffinity | Lack::ExistingAntiAffinity)
    }) {
        means.or_there("correct nodeSelector and affinity in the pod's template", "label a node")
    } else if means == Means::Files {
        "check whether the pod's template needs something that this machine lacks".to_owned()
    } else if has(|it| matches!(it, Lack::Cordoned)) {
        "allow a node to take pods again: `kubectl uncordon NODE`".to_owned()
    } else {
        "see `kubectl describe podgroup` and `kubectl get nodes`".to_owned()
    }
}
