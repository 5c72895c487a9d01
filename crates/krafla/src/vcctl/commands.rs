//! Every command of Volcano's tools: one row each, from which parsing, help and dispatch follow.

use super::flags::{Flag, Type};

/// A command, or a group of commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    pub(super) name: &'static str,
    /// What it does, in one line.
    pub(super) about: &'static str,
    pub(super) body: Body,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Body {
    Group(&'static [Command]),
    Leaf { flags: &'static [Flag], action: Action },
}

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    RunJob,
    SubmitJob,
    ListJobs,
    /// `vjobs`: lists, or shows the job that is named.
    ShowJobs,
    ViewJob,
    SuspendJob,
    ResumeJob,
    DeleteJob,
    CancelJob,
    CreateQueue,
    DeleteQueue,
    OperateQueue,
    GetQueue,
    ListQueues,
    /// `vqueues`: lists, or shows the queue that is named.
    ShowQueues,
    CreateFlow(Manifest),
    DeleteFlow(Manifest),
    GetFlow(Manifest),
    ListFlows(Manifest),
    DescribeFlow(Manifest),
    ListPods,
    Version,
}

/// The two kinds that are made from files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manifest {
    JobFlow,
    JobTemplate,
}

/// The names under which this program is one of Volcano's tools.
pub(super) const TOOLS: &[&Command] = &[&VCCTL, &VSUB, &VJOBS, &VCANCEL, &VSUSPEND, &VRESUME, &VQUEUES];

impl Command {
    /// The commands of a group.
    pub(super) fn commands(&self) -> &'static [Command] {
        match self.body {
            Body::Group(commands) => commands,
            Body::Leaf { .. } => &[],
        }
    }

    /// The flags of this command, in order of their names.
    pub(super) fn own_flags(&self) -> Vec<Flag> {
        let mut flags = vec![HELP];
        if let Body::Leaf { flags: own, action } = self.body {
            flags.extend_from_slice(own);
            if action != Action::Version {
                flags.extend([MASTER, KUBECONFIG]);
            }
        }
        flags.sort_by_key(|flag| flag.name);
        flags
    }

    /// All flags that may stand on its command line.
    pub(super) fn all_flags(&self) -> Vec<Flag> {
        let mut flags = self.own_flags();
        flags.extend(GLOBAL);
        flags
    }
}

const HELP: Flag = Flag::text("help", 'h', "Print this help").of(Type::Switch);
const MASTER: Flag = Flag::text("master", 's', "Address of the API server");
const KUBECONFIG: Flag = Flag::text("kubeconfig", 'k', "Path of the kubeconfig");

/// Flags of the logs of Volcano's tools. They are accepted and have no effect.
pub(super) const GLOBAL: [Flag; 3] = [
    Flag::text("log-flush-frequency", ' ', "No effect").of(Type::Duration).or("5s").long_only(),
    Flag::text("v", 'v', "No effect").of(Type::Level),
    Flag::text("vmodule", ' ', "No effect").of(Type::Modules).long_only(),
];

const NAME_OF_JOB: Flag = Flag::text("name", 'N', "Name of the job");
const NAMESPACE: Flag = Flag::text("namespace", 'n', "Namespace of the job").or("default");
// The tools of one purpose have the two short flags the other way round.
const TOOL_NAME: Flag = Flag::text("name", 'n', "Name of the job");
const TOOL_NAMESPACE: Flag = Flag::text("namespace", 'N', "Namespace of the job").or("default");
const NAME_OF_QUEUE: Flag = Flag::text("name", 'n', "Name of the queue");
const ALL_NAMESPACES: Flag =
    Flag::text("all-namespaces", ' ', "List all namespaces").of(Type::Switch).long_only();
const SCHEDULER_FILTER: Flag = Flag::text("scheduler", 'S', "List only jobs of this scheduler");
const SELECTOR: Flag = Flag::text("selector", ' ', "List only jobs with this text in their name").long_only();
// Volcano's tools have none of these three.
const PHASE: Flag = Flag::text("phase", ' ', "List only jobs in this phase").long_only();
const SORT_BY: Flag = Flag::text("sort-by", ' ', "Sort by a column: name, phase, running, ...").long_only();
const SHOW_REASON: Flag =
    Flag::text("show-reason", ' ', "Add a column with the reason of the phase").of(Type::Switch).long_only();
const FILE: Flag = Flag::text("file", 'f', "YAML file with one or more objects");
const FLOW_NAME: Flag = Flag::text("name", 'N', "Name of the object");
const FLOW_NAMESPACE: Flag = Flag::text("namespace", 'n', "Namespace of the object").or("default");
const FORMAT: Flag = Flag::text("format", 'o', "Output format: yaml or json").or("yaml");

const RESOURCES: &str = "cpu=1000m,memory=100Mi";
const IMAGE: Flag = Flag::text("image", 'i', "Image of the container").or("busybox");
const LIMITS: Flag = Flag::text("limits", 'L', "Resource limits of the container").or(RESOURCES);
const MIN: Flag = Flag::text("min", 'm', "Minimum number of pods (minAvailable)").of(Type::Int).or("1");
const REPLICAS: Flag = Flag::text("replicas", 'r', "Number of pods").of(Type::Int).or("1");
const REQUESTS: Flag = Flag::text("requests", 'R', "Resource requests of the container").or(RESOURCES);
const SCHEDULER: Flag = Flag::text("scheduler", 'S', "Scheduler of the job").or("volcano");

const fn leaf(name: &'static str, about: &'static str, flags: &'static [Flag], action: Action) -> Command {
    Command { name, about, body: Body::Leaf { flags, action } }
}

const fn group(name: &'static str, about: &'static str, commands: &'static [Command]) -> Command {
    Command { name, about, body: Body::Group(commands) }
}

const ONE_JOB: &[Flag] = &[NAME_OF_JOB, NAMESPACE];

const JOB: Command = group(
    "job",
    "Run, list, view, suspend, resume and delete jobs",
    &[
        leaf("delete", "Delete a job", ONE_JOB, Action::DeleteJob),
        leaf(
            "list",
            "List jobs",
            &[
                NAMESPACE,
                ALL_NAMESPACES,
                Flag::text("queue", 'q', "List only jobs of this queue"),
                SCHEDULER_FILTER,
                SELECTOR,
                PHASE,
                SORT_BY,
                SHOW_REASON,
            ],
            Action::ListJobs,
        ),
        leaf("resume", "Resume a suspended job", ONE_JOB, Action::ResumeJob),
        leaf(
            "run",
            "Create a job from flags or from a file",
            &[
                NAME_OF_JOB,
                NAMESPACE,
                IMAGE,
                LIMITS,
                MIN,
                REPLICAS,
                REQUESTS,
                SCHEDULER,
                Flag::text(
                    "filename",
                    'f',
                    "YAML file with the job; of the other flags only --namespace counts",
                ),
            ],
            Action::RunJob,
        ),
        leaf("suspend", "Suspend a job: abort it until it is resumed", ONE_JOB, Action::SuspendJob),
        leaf("view", "Show a job and its events", ONE_JOB, Action::ViewJob),
    ],
);

const QUEUE: Command = group(
    "queue",
    "Create, list, open, close, change and delete queues",
    &[
        leaf(
            "create",
            "Create a queue",
            &[
                NAME_OF_QUEUE.or("test"),
                Flag::text("state", 'S', "No effect: a new queue is open").or("Open"),
                Flag::text("weight", 'w', "Weight of the queue").of(Type::Int32).or("1"),
            ],
            Action::CreateQueue,
        ),
        leaf("delete", "Delete a queue", &[NAME_OF_QUEUE], Action::DeleteQueue),
        leaf("get", "Show a queue", &[NAME_OF_QUEUE], Action::GetQueue),
        leaf("list", "List queues", &[], Action::ListQueues),
        leaf(
            "operate",
            "Open, close or change a queue",
            &[
                NAME_OF_QUEUE,
                Flag::text("action", 'a', "One of open, close and update"),
                Flag::text("weight", 'w', "New weight, for update").of(Type::Int32),
            ],
            Action::OperateQueue,
        ),
    ],
);

const JOB_FLOW: Command = group(
    "jobflow",
    "Create, list, describe and delete job flows",
    &[
        leaf("create", "Create job flows from a file", &[FILE], Action::CreateFlow(Manifest::JobFlow)),
        leaf(
            "delete",
            "Delete job flows",
            &[FILE, FLOW_NAME, FLOW_NAMESPACE],
            Action::DeleteFlow(Manifest::JobFlow),
        ),
        leaf(
            "describe",
            "Print job flows",
            &[FLOW_NAME, FLOW_NAMESPACE, FORMAT],
            Action::DescribeFlow(Manifest::JobFlow),
        ),
        leaf("get", "Show a job flow", &[FLOW_NAME, FLOW_NAMESPACE], Action::GetFlow(Manifest::JobFlow)),
        leaf(
            "list",
            "List job flows",
            &[FLOW_NAMESPACE, ALL_NAMESPACES],
            Action::ListFlows(Manifest::JobFlow),
        ),
    ],
);

const JOB_TEMPLATE: Command = group(
    "jobtemplate",
    "Create, list, describe and delete job templates",
    &[
        leaf(
            "create",
            "Create job templates from a file",
            &[FILE],
            Action::CreateFlow(Manifest::JobTemplate),
        ),
        leaf(
            "delete",
            "Delete job templates",
            &[FILE, FLOW_NAME, FLOW_NAMESPACE],
            Action::DeleteFlow(Manifest::JobTemplate),
        ),
        leaf(
            "describe",
            "Print job templates",
            &[FLOW_NAME, FLOW_NAMESPACE, FORMAT],
            Action::DescribeFlow(Manifest::JobTemplate),
        ),
        leaf(
            "get",
            "Show a job template",
            &[FLOW_NAME, FLOW_NAMESPACE],
            Action::GetFlow(Manifest::JobTemplate),
        ),
        leaf("list", "List job templates", &[FLOW_NAMESPACE], Action::ListFlows(Manifest::JobTemplate)),
    ],
);

const POD: Command = group(
    "pod",
    "List the pods of jobs",
    &[leaf(
        "list",
        "List the pods of jobs",
        &[
            Flag::text("namespace", 'n', "Namespace of the pods").or("default"),
            ALL_NAMESPACES,
            Flag::text("job", 'j', "List only pods of this job"),
            Flag::text("queue", 'q', "List only pods of this queue"),
        ],
        Action::ListPods,
    )],
);

pub(super) static VCCTL: Command = group(
    "vcctl",
    "Volcano's command line: jobs, queues, job flows, job templates and pods",
    &[JOB, JOB_FLOW, JOB_TEMPLATE, POD, QUEUE, leaf("version", "Print the version", &[], Action::Version)],
);

static VSUB: Command = leaf(
    "vsub",
    "Submit a job",
    &[
        TOOL_NAME,
        TOOL_NAMESPACE.or_variable("VOLCANO_DEFAULT_JOB_NAMESPACE"),
        IMAGE.or_variable("VOLCANO_DEFAULT_IMAGE"),
        SCHEDULER.or_variable("VOLCANO_SCHEDULER_NAME"),
        Flag::text("command", 'c', "Command of the container, with quotes as in a shell"),
        LIMITS,
        MIN,
        REPLICAS,
        REQUESTS,
    ],
    Action::SubmitJob,
);
static VJOBS: Command = leaf(
    "vjobs",
    "List jobs, or show one",
    &[
        TOOL_NAME,
        TOOL_NAMESPACE,
        ALL_NAMESPACES,
        SCHEDULER_FILTER,
        SELECTOR,
        PHASE,
        SORT_BY,
        SHOW_REASON,
        Flag::text("queue", ' ', "List only jobs of this queue").long_only(),
    ],
    Action::ShowJobs,
);
static VCANCEL: Command = leaf("vcancel", "Delete a job", &[TOOL_NAME, TOOL_NAMESPACE], Action::CancelJob);
static VSUSPEND: Command = leaf(
    "vsuspend",
    "Suspend a job: abort it until it is resumed",
    &[TOOL_NAME, TOOL_NAMESPACE],
    Action::SuspendJob,
);
static VRESUME: Command =
    leaf("vresume", "Resume a suspended job", &[TOOL_NAME, TOOL_NAMESPACE], Action::ResumeJob);
static VQUEUES: Command = leaf("vqueues", "List queues, or show one", &[NAME_OF_QUEUE], Action::ShowQueues);
