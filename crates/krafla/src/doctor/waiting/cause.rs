//! Why something waits: one sentence that names the cause, and one that says what to do about it.

use std::fmt;

use krafla_why::Reason;
pub(crate) use krafla_why::{Lease, Means};

/// Where more is told.
const SEE_EVENTS: &str = "see `kubectl get events`";

/// Why something waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It was made some time ago, and nobody has written a word about it.
    NoController(Lease),
    /// It was stored with something that its kind does not have.
    Unreadable(String),
    /// It was deleted, and somebody has not let go of it.
    Deleted {
        finalizers: Vec<String>,
    },
    /// A person, or a policy, has stopped it for the time being.
    Aborted,
    Suspended,
    /// It says that somebody else takes care of it.
    ManagedBy(String),
    QueueMissing(String),
    QueueClosed {
        queue: String,
        state: String,
    },
    /// What the scheduler says of its gang, or of a pod.
    Unschedulable(String),
    /// No scheduler has looked at a pod.
    NotScheduled {
        pod: String,
        scheduler: String,
    },
    /// A pod says itself that it must not be scheduled yet.
    Gated {
        pod: String,
        gates: Vec<String>,
    },
    ClaimMissing {
        pod: String,
        claim: String,
    },
    /// A container can not start, or does not stay up.
    Container {
        pod: String,
        container: String,
        reason: String,
        message: String,
    },
    /// Nothing runs any more, and this is why.
    PodFailed {
        pod: String,
        why: String,
    },
    /// Pods of an earlier try have not ended yet.
    PodsEnding {
        pod: String,
        n_others: usize,
    },
    TaskDependsOn {
        task: String,
        on: Vec<String>,
    },
    StepDependsOn {
        step: String,
        on: Vec<String>,
    },
    TemplateMissing {
        step: String,
    },
    /// Something went wrong, in the words of whoever saw it last.
    Warned(String),
}

impl Cause {
    /// A word for programs.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Cause::NoController(_) => "NoController",
            Cause::Unreadable(_) => "Unreadable",
            Cause::Deleted { .. } => "Deleted",
            Cause::Aborted => "Aborted",
            Cause::Suspended => "Suspended",
            Cause::ManagedBy(_) => "ManagedBy",
            Cause::QueueMissing(_) => "QueueMissing",
            Cause::QueueClosed { .. } => "QueueClosed",
            Cause::Unschedulable(_) => "Unschedulable",
            Cause::NotScheduled { .. } => "NotScheduled",
            Cause::Gated { .. } => "Gated",
            Cause::ClaimMissing { .. } => "ClaimMissing",
            Cause::Container { .. } => "Container",
            Cause::PodFailed { .. } => "PodFailed",
            Cause::PodsEnding { .. } => "PodsEnding",
            Cause::TaskDependsOn { .. } => "TaskDependsOn",
            Cause::StepDependsOn { .. } => "StepDependsOn",
            Cause::TemplateMissing { .. } => "TemplateMissing",
            Cause::Warned(_) => "Warned",
        }
    }

    /// What to do about it.
    pub(crate) fn remedy(&self) -> String {
        match self {
            Cause::Unschedulable(message) => remedy_of_scheduling(message, Means::Cluster),
            Cause::Container { pod, container, reason, .. } => {
                remedy_of_container(pod, container, reason, Means::Cluster)
            }
            Cause::Warned(message) => remedy_of_warning(message).unwrap_or(SEE_EVENTS.to_owned()),
            other => other.as_reason().remedy(Means::Cluster).unwrap_or(SEE_EVENTS.to_owned()),
        }
    }

    /// The reason behind it.
    fn as_reason(&self) -> Reason {
        let names = |names: &[String]| names.iter().map(|name| name.as_str().into()).collect();
        match self {
            Cause::NoController(lease) => Reason::NoController { lease: lease.clone() },
            Cause::Unreadable(why) => Reason::Unreadable { why: why.clone() },
            Cause::Deleted { finalizers } => Reason::Deleted { finalizers: names(finalizers) },
            Cause::Aborted => Reason::Aborted,
            Cause::Suspended => Reason::Suspended,
            Cause::ManagedBy(manager) => Reason::ManagedBy { manager: manager.as_str().into() },
            Cause::QueueMissing(queue) => Reason::QueueMissing { queue: queue.as_str().into() },
            Cause::QueueClosed { queue, state } => {
                Reason::QueueClosed { queue: queue.as_str().into(), state: state.as_str().into() }
            }
            Cause::Unschedulable(message) | Cause::Warned(message) => Reason::parse(message),
            Cause::NotScheduled { pod, scheduler } => unhandled(pod, scheduler),
            Cause::Gated { pod, gates } => Reason::Gated { pod: pod.as_str().into(), gates: names(gates) },
            Cause::ClaimMissing { pod, claim } => {
                Reason::ClaimMissing { pod: pod.as_str().into(), claim: claim.as_str().into() }
            }
            Cause::Container { pod, container, reason, message } => Reason::OfContainer {
                pod: pod.as_str().into(),
                container: container.as_str().into(),
                because: Box::new(Reason::parse(if message.is_empty() { reason } else { message })),
            },
            Cause::PodFailed { pod, why } => Reason::PodFailed { pod: pod.as_str().into(), why: why.clone() },
            Cause::PodsEnding { pod, n_others: 0 } => Reason::PodEnding { pod: pod.as_str().into() },
            Cause::PodsEnding { pod, n_others } => {
                let others = u32::try_from(*n_others).unwrap_or(u32::MAX);
                Reason::PodsEnding { pod: pod.as_str().into(), others }
            }
            Cause::TaskDependsOn { task, on } => {
                Reason::TaskDependsOn { task: task.as_str().into(), on: names(on) }
            }
            Cause::StepDependsOn { step, on } => {
                Reason::StepDependsOn { step: step.as_str().into(), on: on.clone() }
            }
            Cause::TemplateMissing { step } => {
                Reason::TemplateMissing { step: step.as_str().into(), template: step.as_str().into() }
            }
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // As it was reported, word for word.
            Cause::Unschedulable(message) | Cause::Warned(message) => f.write_str(message),
            Cause::Container { pod, container, message, .. } if !message.is_empty() => {
                write!(f, "pod {pod}, container {container}: {message}")
            }
            other => write!(f, "{}", other.as_reason()),
        }
    }
}

fn unhandled(pod: &str, scheduler: &str) -> Reason {
    let because = Box::new(Reason::NotHandled { scheduler: scheduler.into() });
    Reason::OfPod { pod: pod.into(), because }
}

/// What to do about what the scheduler says.
pub(crate) fn remedy_of_scheduling(message: &str, means: Means) -> String {
    Reason::parse(message).remedy(means).unwrap_or_else(|| match means {
        Means::Files => "check whether the pod's template needs something that this machine lacks".to_owned(),
        Means::Cluster => "see `kubectl describe podgroup` and `kubectl get nodes`".to_owned(),
    })
}

/// That no scheduler has said a word about a pod.
pub(crate) fn not_scheduled(pod: &str, scheduler: &str) -> String {
    unhandled(pod, scheduler).to_string()
}

/// What to do about a pod at which no scheduler has looked.
pub(crate) fn remedy_of_scheduler(scheduler: &str, means: Means) -> String {
    Reason::NotHandled { scheduler: scheduler.into() }.remedy(means).unwrap_or_default()
}

/// What to do about a container that does not start, or does not stay up.
pub(crate) fn remedy_of_container(pod: &str, container: &str, reason: &str, means: Means) -> String {
    match (reason, means) {
        ("CreateContainerConfigError", _) => {
            format!("{}, or mark the reference as optional", means.make("what is missing"))
        }
        ("CrashLoopBackOff", _) => {
            format!("see why it ended: `kubectl logs {pod} -c {container} --previous`")
        }
        ("ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull", _) => {
            "correct its image, or give the pod imagePullSecrets that may read it".to_owned()
        }
        ("ContainerCreating", _) => {
            format!("{}, or correct spec.volumes", means.make("the source of the volume"))
        }
        (_, Means::Cluster) => format!("see `kubectl describe pod {pod}`"),
        (_, Means::Files) => "correct the container in the pod's template".to_owned(),
    }
}

/// What to do about a warning, if it is that the API server refuses something.
pub(crate) fn remedy_of_warning(message: &str) -> Option<String> {
    let reason = Reason::parse(message);
    let is_refusal = reason.all().any(|it| matches!(it, Reason::Forbidden { .. }))
        || reason.decider() == krafla_why::Decider::ApiServer;
    reason.remedy(Means::Cluster).filter(|_| is_refusal)
}
