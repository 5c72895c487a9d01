//! Why something waits: one sentence that names the cause, and one that says what to do about it.

use std::fmt;

pub(crate) use krafla_why::Lease;

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
            Cause::NoController(Lease::Held(_)) => {
                "see the logs of the lease holder, and whether its --controllers exclude this kind".to_owned()
            }
            Cause::NoController(_) => "start `krafla controller-manager --kubeconfig FILE`, or \
                                       `krafla up` without --without-controllers"
                .to_owned(),
            Cause::Unreadable(_) => "correct the field, or create it again".to_owned(),
            Cause::Deleted { .. } => {
                "start the controller of these finalizers; it removes them when it is done".to_owned()
            }
            Cause::Aborted => "resume it, as `vcctl job resume` does, or delete it".to_owned(),
            Cause::Suspended => "set spec.suspend to false".to_owned(),
            Cause::ManagedBy(name) => {
                format!("run the controller {name}, or create it again without spec.managedBy")
            }
            Cause::QueueMissing(queue) => {
                format!("create the queue {queue}, or use another one in spec.queue")
            }
            Cause::QueueClosed { queue, .. } => format!(
                "open it, as `vcctl queue operate --action open --name {queue}` does, \
                 or use another one in spec.queue"
            ),
            Cause::Unschedulable(message) => remedy_of_scheduling(message, Means::Cluster),
            Cause::NotScheduled { scheduler, .. } => remedy_of_scheduler(scheduler, Means::Cluster),
            Cause::Gated { .. } => {
                "wait for the controller of these gates, or remove them from spec.schedulingGates".to_owned()
            }
            Cause::ClaimMissing { claim, .. } => {
                format!("create the PersistentVolumeClaim {claim}, or correct spec.volumes")
            }
            Cause::Container { pod, container, reason, .. } => {
                remedy_of_container(pod, container, reason, Means::Cluster)
            }
            Cause::PodFailed { pod, .. } => {
                format!("see `kubectl logs {pod}`; set a policy (RestartJob, AbortJob) for the job")
            }
            Cause::PodsEnding { pod, .. } => format!(
                "wait for their terminationGracePeriodSeconds; if their node is gone, \
                 `kubectl delete pod {pod} --force`"
            ),
            Cause::TaskDependsOn { .. } => {
                "see why those tasks have fewer ready pods than their minAvailable".to_owned()
            }
            Cause::StepDependsOn { .. } => "see why those jobs have not completed".to_owned(),
            Cause::TemplateMissing { step } => {
                format!("create the JobTemplate {step} in the same namespace")
            }
            Cause::Warned(message) => {
                remedy_of_warning(message).unwrap_or("see `kubectl get events`").to_owned()
            }
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::NoController(lease) => write!(f, "no controller has handled it{lease}"),
            Cause::Unreadable(why) => write!(f, "it cannot be read: {why}"),
            Cause::Deleted { finalizers } => {
                write!(f, "it was deleted, and waits for its finalizers {}", finalizers.join(", "))
            }
            Cause::Aborted => f.write_str("it was aborted"),
            Cause::Suspended => f.write_str("it is suspended"),
            Cause::ManagedBy(name) => {
                write!(f, "its spec.managedBy names the controller {name}, which has not handled it")
            }
            Cause::QueueMissing(queue) => write!(f, "queue {queue} does not exist"),
            Cause::QueueClosed { queue, state } => {
                write!(f, "queue {queue} is {state}, and takes no new jobs")
            }
            Cause::Unschedulable(message) | Cause::Warned(message) => f.write_str(message),
            Cause::NotScheduled { pod, scheduler } => f.write_str(&not_scheduled(pod, scheduler)),
            Cause::Gated { pod, gates } => {
                write!(f, "pod {pod} is held back by its gates {}", gates.join(", "))
            }
            Cause::ClaimMissing { pod, claim } => {
                write!(f, "pod {pod} uses the PersistentVolumeClaim {claim}, which does not exist")
            }
            Cause::Container { pod, container, reason, message } if message.is_empty() => {
                write!(f, "pod {pod}, container {container}: {reason}")
            }
            Cause::Container { pod, container, message, .. } => {
                write!(f, "pod {pod}, container {container}: {message}")
            }
            Cause::PodFailed { pod, why } => write!(f, "no pod runs since pod {pod} failed: {why}"),
            Cause::PodsEnding { pod, n_others: 0 } => write!(f, "pod {pod} has not terminated yet"),
            Cause::PodsEnding { pod, n_others } => {
                write!(f, "pod {pod} and {n_others} more have not terminated yet")
            }
            Cause::TaskDependsOn { task, on } => write!(f, "task {task} waits for task {}", on.join(", ")),
            Cause::StepDependsOn { step, on } => write!(f, "step {step} waits for {}", on.join(", ")),
            Cause::TemplateMissing { step } => write!(f, "step {step} has no JobTemplate {step}"),
        }
    }
}

/// What those who read a remedy can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Means {
    /// Change the cluster, with kubectl or otherwise.
    #[default]
    Cluster,
    /// Change the files and run them again: nobody can reach a cluster that ends with its run.
    Files,
}

impl Means {
    /// How something comes to be there.
    pub(crate) fn make(self, what: &str) -> String {
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

/// What to do about what the scheduler says.
pub(crate) fn remedy_of_scheduling(message: &str, means: Means) -> String {
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let less = "lower resources.requests";
    let less_at_once = "lower resources.requests or spec.minAvailable";
    let patience = "wait until other jobs have ended";
    if says(&["persistentvolumeclaim"]) {
        format!("{}, or correct spec.volumes", means.make("the PersistentVolumeClaim"))
    } else if message.contains("podgroup ") && message.ends_with(" not found") {
        let made = means.make("the PodGroup");
        format!("{made}, or correct the annotation scheduling.k8s.io/group-name of the pod")
    } else if says(&["there is no queue"]) {
        format!("{}, or use another one in spec.queue", means.make("the queue"))
    } else if says(&[" is closed"]) {
        means.or_there("use another queue in spec.queue", "open it")
    } else if says(&["can never fit, because queue"]) {
        format!("{less_at_once}, or raise spec.capability of the queue")
    } else if says(&["can never fit"]) && means == Means::Cluster {
        format!("{less_at_once}, or add nodes")
    } else if says(&["can never fit"]) {
        format!("{less_at_once}, or add resources with --capacity")
    } else if says(&["may not use more"]) {
        format!("raise spec.capability of the queue, {less}, or {patience}")
    } else if says(&["and others wait for it", "waits behind", "waits for pods that are leaving"]) {
        patience.to_owned()
    } else if says(&["Insufficient", "not enough", "Too many pods"]) {
        let is_of_pod = message.starts_with("0/") || message.starts_with("pod ");
        format!("{}, or {patience}", if is_of_pod { less } else { less_at_once })
    } else if says(&["free ports"]) {
        format!("use another hostPort, or {patience}")
    } else if says(&["topology spread"]) {
        let allowed = "allow more in topologySpreadConstraints of the pod's template";
        match means {
            Means::Cluster => format!("{allowed}, label nodes, or {patience}"),
            Means::Files => format!("{allowed}, or {patience}"),
        }
    } else if says(&["taint"]) {
        means.or_there("tolerate the taint in the pod's template", "remove it from the node")
    } else if says(&["affinity", "selector"]) {
        means.or_there("correct nodeSelector and affinity in the pod's template", "label a node")
    } else if says(&["scheduling gates"]) {
        means.or_there("remove spec.schedulingGates from the pod's template", "from the pod")
    } else if means == Means::Files {
        "check whether the pod's template needs something that this machine lacks".to_owned()
    } else if says(&["unschedulable"]) {
        "allow a node to take pods again: `kubectl uncordon NODE`".to_owned()
    } else {
        "see `kubectl describe podgroup` and `kubectl get nodes`".to_owned()
    }
}

/// That no scheduler has said a word about a pod.
pub(crate) fn not_scheduled(pod: &str, scheduler: &str) -> String {
    format!("pod {pod}: scheduler {scheduler} has not handled it")
}

/// What to do about a pod at which no scheduler has looked.
pub(crate) fn remedy_of_scheduler(scheduler: &str, means: Means) -> String {
    match means {
        Means::Cluster => {
            format!("start the scheduler {scheduler}, or use another one in spec.schedulerName")
        }
        Means::Files => "remove spec.schedulerName, or set it to volcano".to_owned(),
    }
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

/// What to do about what somebody warned of, where that is known.
pub(crate) fn remedy_of_warning(message: &str) -> Option<&'static str> {
    if message.contains("exceeded quota") {
        Some(
            "wait until other pods have ended, lower the requests, or raise the ResourceQuota of the namespace",
        )
    } else if message.contains("forbidden") || message.contains("denied") {
        Some("change the job, or the rule that refuses it")
    } else {
        None
    }
}
