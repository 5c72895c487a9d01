//! All reasons, each with its sentence.

use std::fmt;

use crate::foreign;
use crate::lack::Lacks;
use crate::sentence::{Gap, Name, Tally, sentences};

/// Longer texts, and texts with more reasons within each other, are kept as they are.
const LENGTH_MAX: usize = 8_192;
const DEPTH_MAX: usize = 24;

sentences! {
    /// Why an object waits, restarts, fails or ends.
    pub enum Reason {
        // What surrounds another reason.
        /// The scheduler does not admit a PodGroup to its queue.
        NotAdmitted { because: Box<Reason> } = "not admitted: {because}",
        /// A gang does not start.
        Gang { waiting: u32, members: u32, summary: Tally, min: u32, pending: Pending, because: Box<Reason> } = "{waiting}/{members} tasks in gang unschedulable: pod group is not ready, {summary}, {min} minAvailable; {pending}{because}",
        /// The API server refuses an object.
        Forbidden { resource: Name, name: Name, because: Box<Reason> } = "{resource} \"{name}\" is forbidden: {because}",
        /// Krafla's node cannot create a volume.
        Volume { because: Box<Reason> } = "cannot create a volume: {because}",
        /// A volume of a pod cannot be set up.
        Mount { volume: Name, because: Box<Reason> } = "MountVolume.SetUp failed for volume \"{volume}\" : {because}",

        // The scheduler.
        /// No node takes a pod.
        NoNode { nodes: u32, lacks: Lacks } = "0/{nodes} nodes are available{lacks}",
        /// The queue's capability is used up.
        QueueLimit { queue: Name, resource: Name } = "queue {queue} may not use more {resource}",
        /// The queue's share is used up, and other queues want the rest.
        QueueShare { queue: Name, resource: Name } = "queue {queue} has its share of {resource}, and others wait for it",
        /// The scheduler waits for a moment before it shares.
        TooEarly = "waits for jobs of other queues to arrive",
        /// Another gang is first in a queue that is first in, first out.
        Behind { first: Name } = "waits behind {first} in its first in, first out queue",
        /// Pods that make room have not ended yet.
        PodsLeaving = "waits for pods that are leaving",
        /// The queue of a gang does not exist.
        NoQueue { queue: Name } = "there is no queue {queue}",
        /// The queue takes no new gangs.
        QueueIsClosed { queue: Name } = "queue {queue} is closed",
        /// The gang needs more than its queue may ever use.
        NeverFitsQueue { need: Name, resource: Name, queue: Name, limit: Name } = "it needs {need} {resource} and can never fit, because queue {queue} may use {limit}: ask for less, or let it use more",
        /// The gang needs more than all nodes have.
        NeverFitsNodes { need: Name, resource: Name, limit: Name } = "it needs {need} {resource} and can never fit, because all nodes that take pods have {limit}: ask for less, or add nodes",
        /// The queue has too little left for the gang now.
        QueueFull { need: Name, resource: Name, queue: Name, limit: Name } = "it needs {need} {resource}, and not enough is left of queue {queue}'s {limit}",
        /// The cluster has too little left for the gang now.
        ClusterFull { need: Name, resource: Name, limit: Name } = "it needs {need} {resource}, and not enough is left of the cluster's {limit}",
        /// The gang lacks pods.
        PodsMissing { summary: Tally, missing: u32 } = "pod group is not ready, {summary}; {missing} more needed",
        /// The gang lacks pods of one task.
        PodsOfTaskMissing { summary: Tally, missing: u32, task: Name } = "pod group is not ready, {summary}; {missing} more of task {task} needed",
        /// The gang waits for the rest of its pods; no more is said.
        GangNotReady { summary: Tally, min: u32 } = "pod group is not ready, {summary}, {min} minAvailable",
        /// No scheduler has reported anything about a pod.
        NotHandled { scheduler: Name } = "scheduler {scheduler} has not handled it",
        /// A pod must not be scheduled yet.
        Gated { pod: Name, gates: Vec<Name> } = "pod {pod} is held back by its gates {gates}",
        /// A pod must not be scheduled yet, in the words of a scheduler.
        SchedulingGated = "Scheduling is blocked due to non-empty scheduling gates",

        // The same, with the nodes at hand.
        /// A pod is larger than every node.
        LargerThanNodes { need: Name, resource: Name, node: Name, largest: Name } = "it needs {need} {resource}, and the largest node {node} has {largest}",
        /// A pod would fit an emptier node.
        NodesFull { need: Name, resource: Name, free: Name } = "it needs {need} {resource}, and the freest node has {free} left",
        /// No node has a resource at all.
        ResourceUnknown { resource: Name } = "no node has the resource {resource}",
        /// Every node runs as many pods as it may.
        NodesCrowded { most: Name } = "every node runs as many pods as it may (at most {most})",
        /// A taint keeps a pod away.
        Tainted { nodes: Vec<Name>, taint: String } = "node {nodes} has the taint {taint}, which the pod does not tolerate",
        /// No node has the labels that a pod selects.
        SelectorUnmatched { wanted: String } = "no node matches nodeSelector {wanted}",
        /// No node satisfies a pod's required affinity.
        AffinityUnmatched = "no node matches the required nodeAffinity",
        /// Other pods keep a pod away, or are missing beside it.
        PodsUnmatched { rule: String } = "no node satisfies the pod's {rule}",
        /// Nodes are cordoned.
        NodesCordoned { nodes: Vec<Name> } = "node {nodes} is cordoned",
        /// Nodes are not ready.
        NodesNotReady { nodes: Vec<Name> } = "node {nodes} is not ready",
        /// A hostPort is taken.
        PortTaken { port: u32 } = "hostPort {port} is taken on every node",
        /// The cluster has no nodes.
        NoNodes = "the cluster has no nodes",
        /// A pod names a node that does not exist.
        NodeMissing { node: Name } = "node {node} does not exist",

        // Queues.
        /// The queue does not exist.
        QueueMissing { queue: Name } = "queue {queue} does not exist",
        /// The same, as a Job's state says it.
        QueueMissingForJob { queue: Name } = "queue {queue} does not exist; create it, or name another in spec.queue",
        /// The queue is closed or closing.
        QueueClosed { queue: Name, state: Name } = "queue {queue} is {state}, and takes no new jobs",
        /// The parent of a queue is closed, missing or full.
        ParentQueue { queue: Name, parent: Name, because: Box<Reason> } = "queue {queue} is below {parent}: {because}",
        /// Volcano: the queue has too little left.
        QueueQuota { queue: Name, resource: Name } = "queue {queue} has too little {resource} left",
        /// Volcano: the cluster has too little left for another gang.
        ClusterOverused = "resource in cluster is overused",

        // What the API server refuses.
        /// A ResourceQuota is used up.
        QuotaExceeded { quota: Name, requested: String, used: String, limited: String } = "exceeded quota: {quota}, requested: {requested}, used: {used}, limited: {limited}",
        /// The same, without amounts.
        QuotaUsedUp { quota: Name } = "exceeded quota: {quota}",
        /// A ResourceQuota wants to know what a pod uses.
        QuotaUnspecified { quota: Name, missing: String } = "failed quota: {quota}: must specify {missing}",
        /// A LimitRange sets a maximum.
        AboveLimit { resource: Name, of: Name, limit: Name, but: String } = "maximum {resource} usage per {of} is {limit}, but {but}",
        /// A LimitRange sets a maximum, and nothing is asked for.
        AboveLimitUnset { resource: Name, of: Name, limit: Name, but: String } = "maximum {resource} usage per {of} is {limit}.  {but}",
        /// A LimitRange sets a minimum.
        BelowLimit { resource: Name, of: Name, limit: Name, but: String } = "minimum {resource} usage per {of} is {limit}, but {but}",
        /// A LimitRange sets a minimum, and nothing is asked for.
        BelowLimitUnset { resource: Name, of: Name, limit: Name, but: String } = "minimum {resource} usage per {of} is {limit}.  {but}",
        /// The service account does not exist.
        AccountMissing { account: Name, name: Name } = "error looking up service account {account}: serviceaccount \"{name}\" not found",
        /// The priority class does not exist.
        PriorityClassMissing { class: Name } = "no PriorityClass with name {class} was found",
        /// The runtime class does not exist.
        RuntimeClassMissing { class: Name } = "pod rejected: RuntimeClass \"{class}\" not found",
        /// A webhook refuses an object.
        WebhookDenied { webhook: Name, why: String } = "admission webhook \"{webhook}\" denied the request: {why}",
        /// A webhook does not answer.
        WebhookDown { webhook: Name, why: String } = "failed calling webhook \"{webhook}\": {why}",
        /// A policy refuses an object.
        PolicyDenied { policy: Name, binding: Name, why: String } = "ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {why}",
        /// The namespace does not allow such a pod.
        PodSecurity { why: String } = "violates PodSecurity {why}",
        /// The namespace is being deleted.
        NamespaceTerminating { namespace: Name } = "unable to create new content in namespace {namespace} because it is being terminated",
        /// A user may not do that.
        NoRight { user: String, rest: String } = "User \"{user}\" cannot {rest}",

        // What is missing.
        /// An object that another one names does not exist.
        NotFound { kind: Name, name: Name } = "{kind} \"{name}\" not found",
        /// A pod's claim does not exist.
        ClaimMissing { pod: Name, claim: Name } = "pod {pod} uses the PersistentVolumeClaim {claim}, which does not exist",
        /// A claim of a Job's volume does not exist.
        VolumeClaimMissing { claim: Name, path: String } = "the claim {claim} of volume {path} does not exist; create it",
        /// A claim has no volume, and why.
        ClaimWaits { claim: Name, why: String } = "the PersistentVolumeClaim {claim} has no volume: {why}",
        /// A claim has no volume.
        ClaimPending { claim: Name } = "the PersistentVolumeClaim {claim} has no volume yet",
        /// A key is missing.
        KeyMissing { key: Name, kind: Name, object: Name } = "couldn't find key {key} in {kind} {object}",
        /// A JobTemplate is missing.
        TemplateMissing { step: Name, template: Name } = "step {step} has no JobTemplate {template}",
        /// Volumes are not there in time.
        VolumesLate { rest: String } = "Unable to attach or mount volumes: {rest}",

        // The node.
        /// A container restarts again and again.
        CrashLoop { delay: Name, container: Name, pod: String } = "back-off {delay} restarting failed container={container} pod={pod}",
        /// A container has ended and is started again later.
        Restarts { container: Name, count: u32, end: String } = "container {container} restarted {count} times; it last ended with {end}",
        /// A command is not in the PATH.
        CommandNotFound { command: Name, path: String } = "command \"{command}\" was not found in PATH ({path}): containers run on this machine itself, so install it here, or name it by its full path",
        /// A command does not exist.
        CommandMissing { command: Name } = "command \"{command}\" does not exist: containers run on this machine itself, so install it here",
        /// A command cannot be executed.
        NotExecutable { command: Name } = "command \"{command}\" is not an executable file",
        /// An image does not have the command.
        CommandNotInImage { command: Name } = "the image has no command \"{command}\"",
        /// A working directory is missing.
        NoWorkingDir { dir: Name } = "workingDir \"{dir}\" is not a directory of this machine: create it, or name another one",
        /// An image cannot be pulled.
        ImagePull { image: String } = "Back-off pulling image \"{image}\"",
        /// An image cannot be pulled, and why.
        ImagePullFailed { image: String, why: String } = "Failed to pull image \"{image}\": {why}",
        /// A container used more memory than its limit.
        OutOfMemory { container: Name } = "container {container} used more memory than its limit (OOMKilled)",
        /// A container ended with an exit code.
        Exited { container: Name, code: u32 } = "container {container} ended with exit code {code}",
        /// A container cannot be started.
        StartFailed { container: Name, because: Box<Reason> } = "container {container} cannot start: {because}",
        /// The pod was evicted.
        Evicted { why: String } = "the pod was evicted: {why}",
        /// A pod ran for as long as it may.
        PodDeadline = "the pod was active longer than its activeDeadlineSeconds",
        /// A readiness or liveness probe fails.
        ProbeFails { probe: Name, why: String } = "{probe} probe failed: {why}",
        /// The node has not reported anything about the pod.
        NodeSilent { node: Name } = "node {node} has not reported anything about it",

        // Jobs.
        /// No controller has written a status.
        NoController { lease: Lease } = "no controller has handled it{lease}",
        /// The object cannot be read.
        Unreadable { why: String } = "it cannot be read: {why}",
        /// The same, as a Job's state says it.
        JobUnreadable { why: String } = "cannot read the job: {why}; correct it, or create the job again",
        /// The controllers' own check found what admission refuses.
        Odd { wrong: String } = "{wrong}; admission would have refused it",
        /// Tasks contradict each other.
        Contradictory { wrong: String } = "{wrong}; create the job anew without that",
        /// A Job without tasks.
        NoTasks = "spec.tasks is empty, so there is nothing to run; create the job anew with a task",
        /// A Job of which no task wants pods.
        NoReplicas = "spec.tasks[].replicas is 0: nothing runs until a task has more",
        /// A gang that can never be complete.
        MinAvailable { min: u32, replicas: u32 } = "minAvailable is {min}, and all tasks together have {replicas} replicas",
        /// It is deleted, and finalizers keep it.
        Deleted { finalizers: Vec<Name> } = "it was deleted, and waits for its finalizers {finalizers}",
        /// A person or a policy stopped it.
        Aborted = "it was aborted",
        /// A policy acted.
        PolicyActed { action: Name, event: Name, object: String } = "the policy {action} of {event} acted because of {object}",
        /// spec.suspend is true.
        Suspended = "it is suspended",
        /// A Job wants no pods.
        NoParallelism = "spec.parallelism is 0: nothing runs until it is more",
        /// Another controller is named.
        ManagedBy { manager: Name } = "its spec.managedBy names the controller {manager}, which has not handled it",
        /// Pods of an earlier try have not ended yet.
        PodEnding { pod: Name } = "pod {pod} has not terminated yet",
        /// The same, with others.
        PodsEnding { pod: Name, others: u32 } = "pod {pod} and {others} more have not terminated yet",
        /// No pod runs any more.
        PodFailed { pod: Name, why: String } = "no pod runs since pod {pod} failed: {why}",
        /// A task waits for others.
        TaskDependsOn { task: Name, on: Vec<Name> } = "task {task} waits for task {on}",
        /// A task waits for one that does not exist.
        TaskUnknown { task: Name, on: Name } = "task {task} waits for task {on}, which does not exist",
        /// The next try has a pause before it.
        BackOff { failed: u32 } = "{failed} pods failed; the next try follows after a pause that doubles with each failure",
        /// All tries are used up.
        RetriesExhausted { retries: u32, last: String } = "all {retries} retries are used up; the last: {last}",
        /// Tasks depend on tasks that failed.
        DependencyFailed { tasks: Vec<Name> } = "what these tasks depend on has failed for good: {tasks}",
        /// Too few pods succeeded.
        TooFewSucceeded { succeeded: u32, replicas: u32, needed: u32 } = "{succeeded} of {replicas} pods succeeded, the job needs {needed}",
        /// A person acted.
        Commanded { why: String } = "a command changed it: {why}",
        /// The back-off limit is reached.
        BackoffLimit { limit: u32 } = "more pods failed than backoffLimit {limit} allows",
        /// The Job ran for as long as it may.
        DeadlineExceeded { seconds: u32 } = "it was active longer than activeDeadlineSeconds {seconds}",
        /// A policy of the Job matched a failed pod.
        FailurePolicy { why: String } = "podFailurePolicy ended the job: {why}",
        /// Indexes failed.
        IndexesFailed { indexes: String } = "indexes {indexes} failed",
        /// Another pod has the name.
        PodNameTaken { why: String } = "a pod's name is taken: {why}",

        // Flows.
        /// A step waits for others.
        StepDependsOn { step: Name, on: Vec<String> } = "step {step} waits for {on}",
        /// A step waits for signs of its targets.
        StepWaitsForProbe { step: Name, job: Name, why: String } = "flow {step} waits until job {job} answers: {why}",
        /// A step's probe can never succeed.
        ProbeMistaken { step: Name, mistake: String } = "flow {step} waits for its targets to complete, because {mistake}; correct dependsOn.probe",
        /// A step waits for one that does not exist.
        StepUnknown { step: Name, target: Name } = "flow {step} waits for {target}, which is no flow; correct dependsOn.targets",
        /// Steps wait for each other.
        StepsInRing { ring: String } = "flows wait for each other in a ring: {ring}; take one of these dependencies out",
        /// Another job has the name.
        ForeignJob { job: Name, step: Name } = "job {job} exists and does not belong to this flow; delete it, or rename it or the flow {step}",
        /// A step's job was aborted.
        StepAborted { step: Name } = "step {step} was aborted",
        /// A step's job failed.
        StepFailed { step: Name } = "step {step} failed",

        // CronJobs.
        /// The CronJob starts no runs.
        CronSuspended = "spec.suspend is true: no run is started until it is false",
        /// A run is due, and the last one still runs.
        RunActive { job: Name } = "a run is due, but {job} has not ended and concurrencyPolicy is Forbid",
        /// A run was not started in time.
        RunMissed { at: String, seconds: u32 } = "the run of {at} was missed: it could not start within startingDeadlineSeconds {seconds}",
        /// The schedule cannot be read.
        ScheduleInvalid { why: String } = "spec.schedule: {why}",
        /// The time zone does not exist.
        ZoneUnknown { zone: String } = "spec.timeZone: there is no time zone \"{zone}\"",
        /// Too many runs were missed.
        TooManyMissed { why: String } = "too many missed start times{why}",
        /// The schedule has no next time.
        NeverDue { schedule: String } = "the schedule \"{schedule}\" is never due",
        /// The next run is later.
        NextRun { at: String } = "the next run is at {at}",

        // Objects that make progress or have ended.
        /// Nothing is wrong.
        Progress { what: String } = "nothing is wrong: {what}",
        /// A scheduler or a controller gives no more detail.
        Unstated = "no more is reported",
        // Other sentences begin in the same way: these come last.
        /// A pod has the reason.
        OfPod { pod: Name, because: Box<Reason> } = "pod {pod}: {because}",
        /// A container has the reason.
        OfContainer { pod: Name, container: Name, because: Box<Reason> } = "pod {pod}, container {container}: {because}",
        /// Anything else, as it was reported.
        Other { text: String } = "{text}",
    }
}

impl Reason {
    /// Reads what Krafla, Volcano or Kubernetes wrote into a condition, an Event or a status. Every text is a reason.
    pub fn parse(text: &str) -> Reason {
        let text = text.trim();
        let is_short = text.len() <= LENGTH_MAX && text.matches(": ").count() <= DEPTH_MAX;
        let read = || Reason::parse_own(text).or_else(|| foreign::read(text));
        is_short.then(read).flatten().unwrap_or_else(|| Reason::Other { text: text.to_owned() })
    }

    /// Reads a sentence of this page; what is no such sentence is none.
    fn parse_own(text: &str) -> Option<Reason> {
        Reason::parse_sentence(text).filter(|reason| match reason {
            Reason::Other { .. } => false,
            // Volcano goes on in another way.
            Reason::Gang { because, .. } => {
                !matches!(&**because, Reason::Other { text } if text.starts_with("Pending:"))
            }
            _ => true,
        })
    }

    /// The reason within, where one surrounds another.
    pub fn because(&self) -> Option<&Reason> {
        match self {
            Reason::OfPod { because, .. }
            | Reason::OfContainer { because, .. }
            | Reason::NotAdmitted { because }
            | Reason::Gang { because, .. }
            | Reason::Forbidden { because, .. }
            | Reason::Mount { because, .. }
            | Reason::Volume { because }
            | Reason::ParentQueue { because, .. }
            | Reason::StartFailed { because, .. } => Some(because),
            _ => None,
        }
    }

    /// The sentence without the remedy at its end, if it has one for those who see nothing else.
    pub fn without_advice(&self) -> Option<String> {
        let has_advice = matches!(self.root(), Reason::NeverFitsQueue { .. } | Reason::NeverFitsNodes { .. });
        let text = has_advice.then(|| self.to_string())?;
        text.rsplit_once(": ask for less").map(|(told, _)| told.to_owned())
    }

    /// The innermost reason.
    pub fn root(&self) -> &Reason {
        self.because().map_or(self, Reason::root)
    }

    /// Itself and all reasons within.
    pub fn all(&self) -> impl Iterator<Item = &Reason> {
        std::iter::successors(Some(self), |reason| reason.because())
    }
}

impl Gap for Box<Reason> {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }

    fn read(text: &str) -> Option<Box<Reason>> {
        (!text.is_empty()).then(|| Box::new(Reason::parse(text)))
    }
}

impl Gap for Vec<String> {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::sentence::list(self.iter(), f)
    }

    fn read(text: &str) -> Option<Vec<String>> {
        text.split(", ").map(String::read).collect()
    }
}

/// What the waiting pods of a gang lack: `Pending: 2 Insufficient cpu; `, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pending(pub Vec<(u32, String)>);

impl Gap for Pending {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        f.write_str("Pending: ")?;
        Tally(self.0.clone()).write(f)?;
        f.write_str("; ")
    }

    fn read(text: &str) -> Option<Pending> {
        if text.is_empty() {
            return Some(Pending::default());
        }
        let list = text.strip_prefix("Pending: ")?.strip_suffix("; ")?;
        Tally::read(list).filter(|tally| !tally.0.is_empty()).map(|tally| Pending(tally.0))
    }
}

/// The lease of the controllers, and its holder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Lease {
    /// The lease does not exist: no controller manager has ever run here, or the controllers need none.
    #[default]
    Missing,
    /// No controller manager holds it.
    Free,
    /// A controller manager holds it.
    Held(String),
    /// Its holder has stopped.
    Expired {
        /// The last holder.
        holder: String,
        /// The time since the last renewal.
        seconds: u64,
    },
}

impl fmt::Display for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lease::Missing => f.write_str(", and no controller has ever acquired the lease"),
            Lease::Free => f.write_str(", and no controller holds the lease"),
            Lease::Held(holder) => write!(f, ", though {holder} holds the lease"),
            Lease::Expired { holder, seconds } => {
                write!(f, "; {holder} holds the lease and has not renewed it for {seconds} s")
            }
        }
    }
}

impl Gap for Lease {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }

    fn read(text: &str) -> Option<Lease> {
        let held = || text.strip_prefix(", though ")?.strip_suffix(" holds the lease");
        let expired = || {
            let (holder, rest) =
                text.strip_prefix("; ")?.split_once(" holds the lease and has not renewed it for ")?;
            let seconds = rest.strip_suffix(" s")?.parse().ok()?;
            Some(Lease::Expired { holder: holder.to_owned(), seconds })
        };
        match text {
            ", and no controller has ever acquired the lease" => Some(Lease::Missing),
            ", and no controller holds the lease" => Some(Lease::Free),
            _ => held().map(|holder| Lease::Held(holder.to_owned())).or_else(expired),
        }
    }
}
