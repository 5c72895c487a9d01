//! Flags of the everyday commands: get, logs, wait, delete, and so on.

use clap::{Args, Subcommand, ValueEnum};
use krafla_api::Quantity;

use super::target::{ClusterFlags, Format};
use super::{Limit, Output, amount, go_bool, limit};
use crate::wait::Goal;

/// Help of the arguments that name objects.
pub(crate) const GET_EXAMPLES: &str = "\
Examples:
  krafla get                              list jobs of Volcano and of Kubernetes
  krafla get vcjobs -A --phase Running    list running Volcano jobs of all namespaces
  krafla get pods -l volcano.sh/job-name=train -o wide
  krafla get queue/default -o yaml";

#[derive(Debug, Args)]
pub(crate) struct Get {
    /// KIND, KIND NAME..., or KIND/NAME... [default: jobs]
    #[arg(value_name = "KIND[/NAME]")]
    pub(crate) words: Vec<String>,
    /// Print more columns, whole objects, or names
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
    /// Print changes until interrupted
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// List objects of all namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    /// List only objects with these labels: app=web,tier!=test
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(crate) selector: Option<String>,
    /// List only objects with these fields: status.phase=Running
    #[arg(long, value_name = "FIELDS")]
    pub(crate) field_selector: Option<String>,
    /// Sort by a column (age) or a path (.status.running)
    #[arg(long, value_name = "COLUMN")]
    pub(crate) sort_by: Option<String>,
    /// List only objects of this queue
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,
    /// List only objects in this phase: Running, Failed, ...; repeatable
    #[arg(long, value_name = "PHASE")]
    pub(crate) phase: Vec<String>,
    /// Leave out the line with the names of the columns
    #[arg(long)]
    pub(crate) no_headers: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
}

pub(crate) const WAIT_EXAMPLES: &str = "\
Examples:
  krafla wait job/train                   wait until the job finishes
  krafla wait vcjob/train --for=phase=Running --timeout 5m
  krafla wait pod/web --for=condition=Ready && curl localhost";

#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// KIND NAME..., or KIND/NAME...
    #[arg(value_name = "KIND/NAME", required = true)]
    pub(crate) words: Vec<String>,
    /// Wait for finished, create, delete, phase=P, condition=C or jsonpath=P=V
    ///
    /// finished (the default): jobs, flows and pods. phase=NAME: any kind. condition=NAME[=STATUS] and jsonpath={PATH}[=VALUE] as in kubectl.
    #[arg(long = "for", value_name = "GOAL", value_parser = Goal::parse)]
    pub(crate) goal: Option<Goal>,
    /// Give up after this time and exit with 5: 90s, 10m [default: never]
    #[arg(long, value_name = "DURATION", value_parser = limit)]
    pub(crate) timeout: Option<Limit>,
    /// Print the result in a machine-readable format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Output>,
    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
}

pub(crate) const DELETE_EXAMPLES: &str = "\
Examples:
  krafla delete job/train pod/web
  krafla delete jobs --all
  krafla delete vcjobs -l team=ml --no-wait";

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// KIND NAME..., KIND/NAME..., or KIND with --all or --selector
    #[arg(value_name = "KIND/NAME", required = true)]
    pub(crate) words: Vec<String>,
    /// Delete all objects of the kind in the namespace
    #[arg(long)]
    pub(crate) all: bool,
    /// Delete objects with these labels: app=web
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(crate) selector: Option<String>,
    /// Do not wait until the objects are gone
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Seconds for pods to end by themselves; 0 kills them
    #[arg(long, value_name = "SECONDS")]
    pub(crate) grace_period: Option<u32>,
    /// Stop waiting after this time and exit with 5: 90s, 10m
    #[arg(long, value_name = "DURATION", value_parser = limit)]
    pub(crate) timeout: Option<Limit>,
    /// Print the result in another format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
}

#[derive(Debug, Args)]
pub(crate) struct Act {
    /// KIND NAME..., or KIND/NAME...
    #[arg(value_name = "KIND/NAME", required = true)]
    pub(crate) words: Vec<String>,
    /// Print the result in another format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
}

#[derive(Debug, Args)]
pub(crate) struct Version {
    /// Print only the version of this program
    #[arg(long)]
    pub(crate) client: bool,
    /// Print the versions in a machine-readable format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Output>,
    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
}

pub(crate) const LOGS_EXAMPLES: &str = "\
Examples:
  krafla logs job/train                   print the logs of all pods of a job
  krafla logs -f vcjob/train --task worker --tail 20
  krafla logs pod/train-worker-0 --previous
  krafla logs jobflow/etl";

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// KIND NAME..., or KIND/NAME... of jobs, flows, CronJobs and pods
    #[arg(value_name = "KIND/NAME", required = true)]
    pub(crate) words: Vec<String>,
    /// Continue until the objects finish
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print only pods of this task
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Option<String>,
    /// Print only this container of each pod
    #[arg(short, long, value_name = "NAME")]
    pub(crate) container: Option<String>,
    /// Print this attempt of each container, by its restartCount
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<u32>,
    /// Print the attempt before the last restart
    #[arg(short, long)]
    pub(crate) previous: bool,
    /// Print only the last lines of each container
    #[arg(long, value_name = "N")]
    pub(crate) tail: Option<u64>,
    /// Print only lines of this time: 30s, 10m, 2h
    #[arg(long, value_name = "DURATION", value_parser = limit)]
    pub(crate) since: Option<Limit>,
    /// Begin each line with its time
    #[arg(long)]
    pub(crate) timestamps: bool,
    /// Leave out the pod's name before each line
    #[arg(long)]
    pub(crate) no_prefix: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
}

pub(crate) const QUEUE_EXAMPLES: &str = "\
Examples:
  krafla queue tree                       show the queues below their parents
  krafla queue create nlp --parent research --weight 4 --capability cpu=64
  krafla queue close nlp";

#[derive(Debug, Args)]
pub(crate) struct Queue {
    #[command(subcommand)]
    pub(crate) command: QueueCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Create a queue
    ///
    /// Example: krafla queue create nlp --weight 4 --capability cpu=64,memory=256Gi
    Create(QueueCreate),
    /// Open queues for new jobs
    ///
    /// Example: krafla queue open nlp
    Open(QueueNames),
    /// Close queues to new jobs; running jobs continue
    ///
    /// Example: krafla queue close nlp
    Close(QueueNames),
    /// Show queues below their parents, with their use
    ///
    /// Example: krafla queue tree
    Tree(QueueTree),
}

#[derive(Debug, Args)]
pub(crate) struct QueueCreate {
    /// Name of the queue
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Share of the queue beside others below the same parent
    #[arg(long, value_name = "N")]
    pub(crate) weight: Option<u32>,
    /// The queue above it [default: root]
    #[arg(long, value_name = "NAME")]
    pub(crate) parent: Option<String>,
    /// The most that its jobs may use: cpu=64,memory=256Gi
    #[arg(long, value_name = "NAME=N", value_delimiter = ',', value_parser = amount)]
    pub(crate) capability: Vec<(String, Quantity)>,
    /// What its jobs get if others want more, too: cpu=32
    #[arg(long, value_name = "NAME=N", value_delimiter = ',', value_parser = amount)]
    pub(crate) deserved: Vec<(String, Quantity)>,
    /// What is kept free for its jobs: cpu=8
    #[arg(long, value_name = "NAME=N", value_delimiter = ',', value_parser = amount)]
    pub(crate) guarantee: Vec<(String, Quantity)>,
    /// Whether other queues may take back what exceeds its share
    #[arg(long, value_name = "BOOL", value_parser = go_bool)]
    pub(crate) reclaimable: Option<bool>,
    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
}

#[derive(Debug, Args)]
pub(crate) struct QueueNames {
    /// Names of queues
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
}

#[derive(Debug, Args)]
pub(crate) struct QueueTree {
    /// Print the tree in a machine-readable format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Output>,
    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
}

#[derive(Debug, Args)]
pub(crate) struct Graph {
    /// The flow: jobflow/NAME
    #[arg(value_name = "JOBFLOW/NAME")]
    pub(crate) word: String,
    /// Format of the drawing
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: GraphFormat,
    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
}

/// Formats of drawings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Lines for a terminal
    Text,
    /// A picture for a browser
    Svg,
    /// Source for Mermaid, as in Markdown
    Mermaid,
    /// Steps, states and durations
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Print once, even on a terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Print once in a machine-readable format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Output>,
    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
}

pub(crate) const COMPLETION_EXAMPLES: &str = "\
Examples:
  source <(krafla completion bash)        in ~/.bashrc
  source <(krafla completion zsh)         in ~/.zshrc
  krafla completion fish > ~/.config/fish/completions/krafla.fish";

#[derive(Debug, Args)]
pub(crate) struct Completion {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Shells with completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Directory for the pages
    #[arg(value_name = "DIR")]
    pub(crate) dir: std::path::PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Complete {
    /// The command line up to the word to complete.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}
