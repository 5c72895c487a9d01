//! The command line.

pub(crate) mod access;
pub(crate) mod admission;
pub(crate) mod everyday;
pub(crate) mod target;
pub(crate) mod volcano;
pub(crate) mod webhook_manager;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use krafla_api::quantity::NotAQuantity;
use krafla_api::{GoDuration, Quantity};
use krafla_node::simulated::ClusterSize;

/// Default directory of the state of `krafla up`.
pub(crate) const DATA_DIR: &str = ".krafla";

const RUN_EXAMPLES: &str = "\
Examples:
  krafla run job.yaml                        run a job on this machine
  krafla run --logs --timeout 10m jobs/      run all files of a directory and print the logs
  krafla run -o json job.yaml > result.json  print the result as JSON";

const UP_EXAMPLES: &str = "\
Examples:
  krafla up                                  start a cluster in .krafla
  krafla up --detach                         start it in the background
  KUBECONFIG=.krafla/kubeconfig kubectl apply -f job.yaml
  krafla up --in-memory --simulate nodes=100,cpu=32,memory=128Gi";

const CONTROLLER_MANAGER_EXAMPLES: &str = "\
Examples:
  krafla crds | kubectl apply --server-side -f -
  krafla controller-manager --kubeconfig ~/.kube/config
  krafla controller-manager --jobs-managed-by krafla.dev/job-controller";

const WEBHOOK_MANAGER_EXAMPLES: &str = "\
Examples:
  krafla webhook-manager --webhook-namespace volcano-system --webhook-service-name volcano-admission-service
  krafla webhook-manager --webhook-url https://10.0.0.5:8443 --kubeconfig ~/.kube/config";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  krafla doctor                              check this machine, and `krafla up` in .krafla
  krafla doctor --kubeconfig ~/.kube/config  explain waiting jobs of a cluster";

const CRDS_EXAMPLES: &str = "\
Examples:
  krafla crds | kubectl apply --server-side -f -";

const MANIFESTS_EXAMPLES: &str = "\
Examples:
  krafla manifests --image registry.example/krafla:1.0 | kubectl apply --server-side -f -
  krafla manifests --only webhooks --webhook-url https://10.0.0.5:8443";

/// Run batch jobs of Volcano and Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "krafla", version, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run jobs and exit with their result
    ///
    /// Creates the objects in the files and waits until all Jobs, JobFlows, first runs of CronJobs, and Pods with restartPolicy
    /// Never or OnFailure have finished. By default jobs run as processes of this machine, in a cluster inside krafla that is
    /// removed at the end.
    ///
    /// Uses another cluster if --kubeconfig names one, if KUBECONFIG names a running `krafla up`, or if a `krafla up` runs in this
    /// directory. Prints the chosen cluster to stderr, unless it is the embedded one. Finished jobs stay there.
    ///
    /// Exit codes: 0 all jobs succeeded; 1 a job failed, exceeded --timeout or cannot make progress; 2 the input is wrong;
    /// 130 interrupted. Ctrl-C deletes unfinished jobs and waits for their pods; a second Ctrl-C does not wait.
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(Run),
    /// Start a cluster on this machine
    ///
    /// Starts API server, controllers, scheduler and node, and prints the path of the kubeconfig for kubectl. Stops on Ctrl-C;
    /// running jobs continue, and the next start with the same --data-dir takes them over.
    #[command(after_long_help = UP_EXAMPLES)]
    Up(Box<Up>),
    /// Stop the cluster of `krafla up`
    ///
    /// Stops the cluster of a data directory as Ctrl-C does: running jobs continue, and the next `krafla up` takes them over. Jobs of a cluster
    /// in memory end.
    ///
    /// Example: krafla down --data-dir .krafla
    Down(Down),
    /// Show whether the cluster of `krafla up` runs
    ///
    /// Exit codes: 0 it runs; 3 it does not run.
    ///
    /// Example: krafla status -o json
    Status(Status),
    /// List jobs, queues, pods and other objects
    ///
    /// `jobs` lists Volcano's and Kubernetes' jobs together; vcjobs and jobs.batch list one kind. `cronjobs` does the same. All kinds of
    /// the cluster and their short names work.
    ///
    /// Uses the cluster of --kubeconfig, or else of KUBECONFIG, or else the `krafla up` of this directory, or else of ~/.kube/config, or else
    /// the one in whose pod it runs.
    ///
    /// Exit codes: 0 done; 2 wrong use; 3 the cluster cannot be reached; 4 an object or a kind does not exist; 6 the server refused.
    #[command(after_long_help = everyday::GET_EXAMPLES)]
    Get(Box<everyday::Get>),
    /// Print the logs of all pods of a job
    ///
    /// Prints the logs of all containers of all pods, each line with the name of its pod. With --follow, prints what pods write, those that
    /// start later too, until the job finishes.
    #[command(after_long_help = everyday::LOGS_EXAMPLES)]
    Logs(Box<everyday::Logs>),
    /// Wait until jobs finish or a condition holds
    ///
    /// Waits until jobs, flows and pods finish, or for what --for says. A job that fails, or that can no longer reach the goal, ends the wait.
    ///
    /// Exit codes: 0 reached; 1 an object failed; 2 wrong use; 4 an object does not exist; 5 --timeout exceeded.
    #[command(after_long_help = everyday::WAIT_EXAMPLES)]
    Wait(Box<everyday::Wait>),
    /// Delete objects and wait until they are gone
    ///
    /// Deletes the pods of jobs with them. An object that the server refuses to delete does not keep the others from being deleted.
    #[command(after_long_help = everyday::DELETE_EXAMPLES)]
    Delete(Box<everyday::Delete>),
    /// Suspend jobs and CronJobs
    ///
    /// Ends the pods of a job until it is resumed. Volcano Jobs get the command AbortJob, Kubernetes Jobs and CronJobs spec.suspend.
    ///
    /// Example: krafla suspend job/train
    Suspend(Box<everyday::Act>),
    /// Resume suspended jobs and CronJobs
    ///
    /// Example: krafla resume job/train
    Resume(Box<everyday::Act>),
    /// Restart Volcano Jobs
    ///
    /// Ends all pods of a job and starts them anew (the command RestartJob). The job's retries count.
    ///
    /// Example: krafla restart job/train
    Restart(Box<everyday::Act>),
    /// Create, open and close queues, and show their tree
    #[command(after_long_help = everyday::QUEUE_EXAMPLES)]
    Queue(Box<everyday::Queue>),
    /// Show nodes, queues with their shares, and jobs
    ///
    /// Redraws a terminal every two seconds until Ctrl-C. Elsewhere, prints once. Amounts are the requests of pods on nodes.
    /// Shows all namespaces, or that of --namespace.
    ///
    /// Example: krafla top --once
    Top(Box<everyday::Top>),
    /// Draw the steps of a JobFlow with states and durations
    ///
    /// Example: krafla graph jobflow/etl -o svg > etl.svg
    Graph(Box<everyday::Graph>),
    /// Print the versions of krafla and of the API server
    ///
    /// Example: krafla version --client -o json
    Version(Box<everyday::Version>),
    /// Run Volcano's controllers for a Kubernetes cluster
    ///
    /// Replaces vc-controller-manager. Command lines of Volcano's manifests work unchanged, even under the name
    /// vc-controller-manager. Flags without effect are reported on stderr.
    ///
    /// Uses the cluster of --kubeconfig, or else of KUBECONFIG, or else the one in whose pod it runs. Only the process that holds
    /// the lease acts; the others wait.
    ///
    /// Exit codes: 0 stopped by SIGTERM or Ctrl-C, and the lease is released; 1 the lease was lost; 2 the cluster cannot be used.
    #[command(name = "controller-manager", version, after_long_help = CONTROLLER_MANAGER_EXAMPLES)]
    ControllerManager(Box<ControllerManager>),
    /// Run Volcano's admission webhooks for a Kubernetes cluster
    ///
    /// Replaces vc-webhook-manager. Command lines of Volcano's manifests work unchanged, even under the name vc-webhook-manager.
    /// Completes and checks jobs, queues, PodGroups, pods, JobFlows, CronJobs and HyperNodes, as `krafla up` does.
    ///
    /// Writes its certificate authority into the webhook configurations volcano-admission-service-*, which `krafla manifests` prints.
    ///
    /// Exit codes: 0 stopped by SIGTERM or Ctrl-C; 2 a flag is wrong or the cluster cannot be used.
    #[command(name = "webhook-manager", version, after_long_help = WEBHOOK_MANAGER_EXAMPLES)]
    WebhookManager(Box<webhook_manager::WebhookManager>),
    /// Check this machine and explain waiting jobs
    ///
    /// Checks what this machine offers to pods. Then reports every waiting job, flow, gang and pod with the reason and a fix. Reads
    /// the cluster of --kubeconfig, or else the `krafla up` of KUBECONFIG, or else that of --data-dir, if it is running. Changes
    /// nothing.
    ///
    /// Exit codes: 0 pods can run here, perhaps with limitations; 1 they cannot; 2 the given cluster cannot be used.
    #[command(after_long_help = DOCTOR_EXAMPLES)]
    Doctor(Doctor),
    /// Explain why an object waits, failed or ended
    ///
    /// Prints the state, the causes down to the pod, node or queue that decides, commands that help, what happens next, the place
    /// in the queue and a timeline. Reads objects and Events only, of Krafla or of any Kubernetes cluster with or without Volcano.
    /// Changes nothing.
    ///
    /// Uses the cluster of --kubeconfig, or else of KUBECONFIG, or else the `krafla up` of this directory, or else of ~/.kube/config.
    ///
    /// Exit codes: 0 the diagnosis is printed; 2 the command line is wrong; 3 the cluster cannot be reached; 4 the object does not
    /// exist.
    #[command(after_long_help = crate::why::EXAMPLES)]
    Why(Box<crate::why::Why>),
    /// Copy the data directory of `krafla up` into one file
    ///
    /// The file holds all objects at one revision, keys and certificates, and the files of PersistentVolumeClaims. It does
    /// not hold logs, emptyDir volumes and running processes. Krafla may run meanwhile. Files of claims that a pod writes
    /// to meanwhile are copied as they are found.
    ///
    /// Whoever can read the file can read all Secrets and administer the cluster.
    ///
    /// Example: krafla backup cluster.backup --data-dir .krafla
    Backup(Backup),
    /// Make a data directory for `krafla up` from a backup
    ///
    /// Checks the hash of the file first. Refuses a data directory that is not empty.
    ///
    /// Example: krafla restore cluster.backup --data-dir .krafla && krafla up
    Restore(Restore),
    /// Print Volcano's CustomResourceDefinitions as YAML
    #[command(after_long_help = CRDS_EXAMPLES)]
    Crds,
    /// Print all manifests to install Krafla in a cluster
    ///
    /// Prints Volcano's CustomResourceDefinitions, the controllers, the webhooks and their rights as YAML.
    #[command(after_long_help = MANIFESTS_EXAMPLES)]
    Manifests(Manifests),
    /// Use Volcano's command line: `krafla vcctl job list`
    ///
    /// Takes the commands and flags of Volcano's vcctl; `krafla vcctl --help` lists them. Under the names vcctl, vsub, vjobs, vcancel,
    /// vsuspend, vresume and vqueues this program is that tool; `krafla install-links` creates the links.
    #[command(disable_help_flag = true)]
    Vcctl(Words),
    /// Create links for Volcano's tools: vcctl, vsub, vjobs, ...
    ///
    /// Links this program as vcctl, vsub, vjobs, vcancel, vsuspend, vresume and vqueues, and as kubectl-krafla for `kubectl krafla`.
    ///
    /// Example: krafla install-links ~/.local/bin
    InstallLinks(InstallLinks),
    /// Print the completion script of a shell
    ///
    /// Completes commands, flags, kinds, and names of objects in the cluster.
    #[command(after_long_help = everyday::COMPLETION_EXAMPLES)]
    Completion(everyday::Completion),
    /// Write man pages into a directory
    ///
    /// Example: krafla man ~/.local/share/man/man1 && man krafla-get
    Man(everyday::Man),
    /// Print candidates for the last word of a command line
    #[command(name = "__complete", hide = true)]
    Complete(everyday::Complete),
    /// Start the parent process of all containers; krafla calls this itself
    #[command(hide = true)]
    Supervise(Supervise),
}

#[derive(Debug, Args)]
pub(crate) struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub(crate) words: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct InstallLinks {
    /// Directory for the links, on your PATH
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Manifests {
    /// Namespace of the controllers and webhooks
    #[arg(short, long, value_name = "NAME", default_value = "volcano-system")]
    pub(crate) namespace: String,
    /// Image with the program as /usr/local/bin/krafla
    #[arg(long, value_name = "IMAGE", default_value = "krafla:latest", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) image: String,
    /// Replicas of the controllers and of the webhooks
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) replicas: u16,
    /// Print these parts only
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    pub(crate) only: Vec<Part>,
    /// Address of a `krafla webhook-manager` outside the cluster
    #[arg(long, value_name = "URL")]
    pub(crate) webhook_url: Option<String>,
}

/// A part of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// CustomResourceDefinitions.
    Crds,
    /// Controllers and their rights.
    Controllers,
    /// Webhooks, their rights and configurations.
    Webhooks,
}

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to write; it must not exist
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The data directory to copy
    #[arg(long, value_name = "DIR", default_value = DATA_DIR)]
    pub(crate) data_dir: PathBuf,
    /// The kubeconfig of the running krafla [default: DATA_DIR/kubeconfig]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The file that `krafla backup` wrote
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The data directory to make
    #[arg(long, value_name = "DIR", default_value = DATA_DIR)]
    pub(crate) data_dir: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// YAML or JSON files, or directories of them; `-` reads stdin
    #[arg(required_unless_present = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The same as FILE, as in `kubectl apply -f`
    #[arg(short = 'f', long, value_name = "FILE")]
    filename: Vec<PathBuf>,
    /// Read directories recursively, except those that begin with a dot
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// Print the logs of all pods, each line with the pod's name
    #[arg(long)]
    pub(crate) logs: bool,
    /// Print the final status to stdout, and progress to stderr
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Output>,
    /// End unfinished jobs after this time and exit with 1: 90s, 10m, 1h30m
    #[arg(long, value_name = "DURATION", value_parser = limit)]
    pub(crate) timeout: Option<Limit>,
    /// Working directory of containers without a workingDir
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) workdir: PathBuf,
    /// Add or replace a resource of the node: nvidia.com/gpu=1; repeatable
    ///
    /// Implies --own-cluster.
    #[arg(long, value_name = "NAME=N", value_parser = amount, conflicts_with = "kubeconfig")]
    pub(crate) capacity: Vec<(String, Quantity)>,
    /// Run in the cluster of this kubeconfig's current context
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Run in the cluster of this context of the kubeconfig
    #[arg(long, value_name = "NAME", conflicts_with_all = ["own_cluster", "capacity"])]
    pub(crate) context: Option<String>,
    /// Namespace of objects that name none [default: that of the context]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Run in a cluster inside krafla, even if a `krafla up` runs
    #[arg(long, conflicts_with = "kubeconfig")]
    pub(crate) own_cluster: bool,
    /// Delete objects of an earlier run with the same names first
    ///
    /// Deletes jobs, flows, CronJobs and pods, finished or not, waits until their pods have terminated, and creates the new ones.
    #[arg(long)]
    pub(crate) replace: bool,
}

impl Run {
    /// All files that were named, in either way.
    pub(crate) fn all_files(&self) -> Vec<&PathBuf> {
        self.files.iter().chain(&self.filename).collect()
    }
}

#[derive(Debug, Args)]
pub(crate) struct Up {
    /// Directory of the cluster's state
    #[arg(long, value_name = "DIR", default_value = DATA_DIR)]
    pub(crate) data_dir: PathBuf,
    /// Write the kubeconfig to this file [default: DATA_DIR/kubeconfig]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Address of the API server; port 0 chooses a free port
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Keep all objects in memory; they are lost when krafla stops
    #[arg(long)]
    pub(crate) in_memory: bool,
    /// Simulate nodes and pods: nodes=1000,cpu=32,memory=128Gi
    ///
    /// Any resource can be given. A simulated pod runs for duration=1s and ends with exit-code=0. Its annotations
    /// krafla.dev/simulated-duration and krafla.dev/simulated-exit-code override this.
    #[arg(long, value_name = "SIZE")]
    pub(crate) simulate: Option<ClusterSize>,
    /// Start in the background; `krafla down` stops it
    #[arg(long)]
    pub(crate) detach: bool,
    /// This process is the one in the background.
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub(crate) detached: bool,
    /// Let queues reclaim their share from queues that exceed theirs
    ///
    /// Deletes pods of reclaimable queues that use more than their share. Without it, a job in a queue below its share waits until
    /// other jobs have finished. No gang loses pods that it needs, and no queue with `reclaimable: false` loses pods. This is the
    /// action reclaim of Volcano's scheduler.
    #[arg(long)]
    pub(crate) reclaim: bool,
    /// Let jobs preempt jobs of lower priority in the same queue
    ///
    /// Deletes pods of jobs with a lower priorityClassName when a job does not fit. No gang loses pods that it needs, and no pod
    /// outside a PodGroup is deleted. This is the action preempt of Volcano's scheduler.
    #[arg(long)]
    pub(crate) preempt: bool,
    /// Delete Events this long after their last update
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration)]
    pub(crate) event_ttl: Duration,
    /// Run no controllers; run `krafla controller-manager` yourself
    #[arg(long)]
    pub(crate) without_controllers: bool,
    /// Working directory of containers without a workingDir
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) workdir: PathBuf,
    /// Add or replace a resource of the node: nvidia.com/gpu=1; repeatable
    #[arg(long, value_name = "NAME=N", value_parser = amount, conflicts_with = "simulate")]
    pub(crate) capacity: Vec<(String, Quantity)>,
    #[command(flatten)]
    pub(crate) admission: admission::Admission,
    #[command(flatten)]
    pub(crate) access: access::Access,
}

/// The flags are Volcano's own, as far as they say something here; [`volcano`] is about the others.
#[derive(Debug, Args)]
pub(crate) struct ControllerManager {
    /// Use the cluster of this kubeconfig's current context
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Address of the API server, instead of the kubeconfig's
    #[arg(long, value_name = "URL")]
    pub(crate) master: Option<String>,
    /// Controllers to run: names, `*` for all of Volcano's, `-NAME` to exclude
    ///
    /// Kubernetes' controllers (kubernetes-job-controller, job-pod-release-controller, kubernetes-cronjob-controller,
    /// ttl-after-finished-controller) run only if they are listed: every Kubernetes cluster has its own.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "*", allow_hyphen_values = true)]
    pub(crate) controllers: Vec<String>,
    /// Run Kubernetes Jobs with this spec.managedBy, and no others
    ///
    /// Runs kubernetes-job-controller and job-pod-release-controller beside the cluster's own, for example with
    /// krafla.dev/job-controller. Without this flag, they run all Jobs that name no other controller.
    #[arg(long, value_name = "NAME")]
    pub(crate) jobs_managed_by: Option<String>,
    /// Number of workers
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) worker_threads: u16,
    /// Create PodGroups for pods with this schedulerName; repeatable
    #[arg(long, value_name = "NAME", default_value = "volcano")]
    pub(crate) scheduler_name: Vec<String>,
    /// Copy Volcano's annotations from owners of pods to PodGroups
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        value_parser = go_bool
    )]
    pub(crate) inherit_owner_annotations: bool,
    /// Limit requests per second [default: no limit]
    #[arg(long, value_name = "N")]
    pub(crate) kube_api_qps: Option<f64>,
    /// Limit requests in a burst, if --kube-api-qps is given
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) kube_api_burst: u32,
    /// Log level: 4 and more debugs, 8 and more traces; KRAFLA_LOG overrides it
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) verbosity: i32,
    /// Volcano's manifests have words here that its shell was meant to see.
    #[arg(hide = true)]
    _words: Vec<OsString>,
    #[command(flatten)]
    pub(crate) endpoints: Endpoints,
    #[command(flatten)]
    pub(crate) more_workers: MoreWorkers,
    #[command(flatten)]
    pub(crate) election: LeaderElection,
}

/// What a manager tells about itself.
#[derive(Debug, Args)]
pub(crate) struct Endpoints {
    /// Serve /healthz and /readyz at --healthz-address
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        value_parser = go_bool
    )]
    pub(crate) enable_healthz: bool,
    /// Address for health; no host means all addresses, port 0 a free port
    #[arg(long, value_name = "[HOST]:PORT", default_value = ":11251", value_parser = listen_address)]
    pub(crate) healthz_address: SocketAddr,
    /// Serve /metrics at --listen-address
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        value_parser = go_bool
    )]
    pub(crate) enable_metrics: bool,
    /// Address for metrics; no host means all addresses, port 0 a free port
    #[arg(long, value_name = "[HOST]:PORT", default_value = ":8081", value_parser = listen_address)]
    pub(crate) listen_address: SocketAddr,
    #[command(flatten)]
    pub(crate) tls: TlsFiles,
}

/// With all three, health is told over TLS.
#[derive(Debug, Default, Args)]
pub(crate) struct TlsFiles {
    /// CA for client certificates at --healthz-address (PEM)
    ///
    /// With --ca-cert-file, --tls-cert-file and --tls-private-key-file, health is served over TLS.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_cert_file: Option<PathBuf>,
    /// Certificate of --healthz-address (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// Private key of --healthz-address (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_private_key_file: Option<PathBuf>,
}

/// Volcano has workers for each of its controllers. Here all take whatever is next, so these are added to the others.
#[derive(Debug, Args)]
pub(crate) struct MoreWorkers {
    /// Additional workers (in Volcano for CronJobs)
    #[arg(long, value_name = "N", default_value_t = 0)]
    worker_threads_for_cronjob: u16,
    /// Additional workers (in Volcano for PodGroups)
    #[arg(long, value_name = "N", default_value_t = 0)]
    worker_threads_for_podgroup: u16,
    /// Additional workers (in Volcano for queues)
    #[arg(long, value_name = "N", default_value_t = 0)]
    worker_threads_for_queue: u16,
    /// Additional workers (in Volcano for finished jobs)
    #[arg(long, value_name = "N", default_value_t = 0)]
    worker_threads_for_gc: u16,
}

impl ControllerManager {
    /// What is logged unless the environment says otherwise.
    pub(crate) fn log_filter(&self) -> &'static str {
        log_filter(self.verbosity)
    }

    /// How many decisions are carried out at once.
    pub(crate) fn n_workers(&self) -> u16 {
        let more = &self.more_workers;
        let more = [
            more.worker_threads_for_cronjob,
            more.worker_threads_for_podgroup,
            more.worker_threads_for_queue,
            more.worker_threads_for_gc,
        ];
        more.into_iter().fold(self.worker_threads, u16::saturating_add)
    }
}

/// Of several managers, one acts.
#[derive(Debug, Args)]
pub(crate) struct LeaderElection {
    /// Act only while holding the lease
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        value_parser = go_bool
    )]
    pub(crate) leader_elect: bool,
    /// Time after the last renewal until others may take the lease
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub(crate) leader_elect_lease_duration: Duration,
    /// Time to retry a renewal before giving up the lease
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) leader_elect_renew_deadline: Duration,
    /// Time between tries to acquire or renew the lease
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub(crate) leader_elect_retry_period: Duration,
    /// Name of the lease
    #[arg(long, value_name = "NAME", default_value = "vc-controller-manager")]
    pub(crate) leader_elect_resource_name: String,
    /// Namespace of the lease
    #[arg(long, value_name = "NAME", default_value = "volcano-system")]
    pub(crate) leader_elect_resource_namespace: String,
    /// Older name of --leader-elect-resource-namespace; overrides it
    #[arg(long, value_name = "NAME", hide = true)]
    lock_object_namespace: Option<String>,
}

impl LeaderElection {
    /// Where the lease is.
    pub(crate) fn namespace(&self) -> &str {
        let older = self.lock_object_namespace.as_deref().filter(|namespace| !namespace.is_empty());
        older.unwrap_or(&self.leader_elect_resource_namespace)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Directory of the state of `krafla up`
    #[arg(long, value_name = "DIR", default_value = DATA_DIR)]
    pub(crate) data_dir: PathBuf,
    /// Check jobs in the cluster of this kubeconfig's current context
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Check jobs in the cluster of this context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Print the findings in a machine-readable format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Output>,
}

#[derive(Debug, Args)]
pub(crate) struct Down {
    /// Directory of the cluster's state
    #[arg(long, value_name = "DIR", default_value = DATA_DIR)]
    pub(crate) data_dir: PathBuf,
    /// Stop waiting after this time and exit with 5
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = limit)]
    pub(crate) timeout: Limit,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Directory of the cluster's state
    #[arg(long, value_name = "DIR", default_value = DATA_DIR)]
    pub(crate) data_dir: PathBuf,
    /// Print the status in a machine-readable format
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Output>,
}

#[derive(Debug, Args)]
pub(crate) struct Supervise {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<std::ffi::OsString>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// One JSON document.
    Json,
}

/// What is logged at one of Volcano's levels: 4 is for finding faults, 8 for everything.
fn log_filter(verbosity: i32) -> &'static str {
    match verbosity {
        ..4 => "info",
        4..8 => "info,krafla=debug",
        8.. => "debug,krafla=trace",
    }
}

/// An address to listen on in Go's notation: without a host, all of this machine's are meant.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let with_host = if text.starts_with(':') { format!("[::]{text}") } else { text.to_owned() };
    let with_host = with_host.replacen("localhost:", "127.0.0.1:", 1);
    with_host.parse().map_err(|_| "not an address like :8081 or 127.0.0.1:8081".to_owned())
}

/// A switch in Go's notation.
fn go_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("want true or false".to_owned()),
    }
}

/// An amount of a resource: `nvidia.com/gpu=2`.
fn amount(text: &str) -> Result<(String, Quantity), String> {
    let (name, amount) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("want NAME=N")?;
    let amount: Quantity = amount.parse().map_err(|error: NotAQuantity| error.to_string())?;
    if amount.is_negative() { Err("must not be negative".to_owned()) } else { Ok((name.to_owned(), amount)) }
}

/// A duration, with the text that the user gave.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub(crate) given: String,
    pub(crate) duration: Duration,
}

fn limit(text: &str) -> Result<Limit, String> {
    duration(text).map(|duration| Limit { given: text.to_owned(), duration })
}

/// A positive duration in Go's notation.
fn duration(text: &str) -> Result<Duration, String> {
    let duration: GoDuration = text.parse().map_err(|_| "not a duration like 15s or 1m30s".to_owned())?;
    let duration = duration.to_std();
    if duration.is_zero() { Err("must be positive".to_owned()) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_are_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn help_is_short_and_plain() {
        use clap::CommandFactory;
        let mut wrong = Vec::new();
        let cli = Cli::command();
        let nested = cli.get_subcommands().flat_map(clap::Command::get_subcommands);
        let all = std::iter::once(&cli).chain(cli.get_subcommands()).chain(nested);
        for command in all.filter(|it| !it.is_hide_set()) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            if about.is_empty() || about.chars().count() > 60 {
                wrong.push(format!("{}: {about}", command.get_name()));
            }
            for flag in command.get_arguments().filter(|flag| !flag.is_hide_set()) {
                let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
                if help.is_empty() || help.chars().count() > 80 {
                    wrong.push(format!("{} {}: {help}", command.get_name(), flag.get_id()));
                }
            }
            let text = command.clone().render_long_help().to_string();
            let vague = ["can not", "nobody", "somebody", "whoever", "also if"];
            wrong.extend(
                vague.iter().filter(|word| text.contains(*word)).map(|word| format!("{word}: {text}")),
            );
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn an_address_without_a_host_means_all_of_this_machine() {
        let parsed = |text: &str| listen_address(text).map(|address| address.to_string());
        assert_eq!(parsed(":8081").as_deref(), Ok("[::]:8081"));
        assert_eq!(parsed("127.0.0.1:0").as_deref(), Ok("127.0.0.1:0"));
        assert_eq!(parsed("localhost:80").as_deref(), Ok("127.0.0.1:80"));
        for wrong in ["", "8081", "krafla.dev:8081", ":http", ":70000"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_a_node_has_is_a_name_and_an_amount() {
        let parsed = |text: &str| amount(text).map(|(name, amount)| format!("{name} {amount}"));
        assert_eq!(parsed("nvidia.com/gpu=2").as_deref(), Ok("nvidia.com/gpu 2"));
        assert_eq!(parsed("memory=1Gi").as_deref(), Ok("memory 1Gi"));
        for wrong in ["", "cpu", "=1", "cpu=", "cpu=many", "cpu=-1"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    fn manager(flags: &[&str]) -> Box<ControllerManager> {
        let words = ["krafla", "controller-manager"].iter().chain(flags);
        match Cli::try_parse_from(words).unwrap().command {
            Command::ControllerManager(manager) => manager,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_volcanos_manifests_say_is_understood() {
        let line = "-v=4 --enable-healthz=True --leader-elect=0 --lock-object-namespace=here --kube-api-qps=50.5 \
                    --scheduler-name=volcano --scheduler-name=other --inherit-owner-annotations=false 2>&1";
        let said = manager(&line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(said.log_filter(), "info,krafla=debug");
        assert!(
            said.endpoints.enable_healthz && !said.election.leader_elect && !said.inherit_owner_annotations
        );
        assert_eq!((said.election.namespace(), said.kube_api_qps), ("here", Some(50.5)));
        assert_eq!(said.scheduler_name, ["volcano", "other"]);
        let nothing = manager(&[]);
        assert_eq!((nothing.election.namespace(), nothing.log_filter()), ("volcano-system", "info"));
        assert_eq!((nothing.kube_api_qps, nothing.scheduler_name), (None, vec!["volcano".to_owned()]));
    }

    #[test]
    fn who_says_nothing_gets_what_volcano_means_by_that() {
        let nothing = manager(&[]);
        assert_eq!(nothing.controllers, ["*"], "the one that Volcano leaves out does not exist here");
        assert_eq!((nothing.kubeconfig, nothing.master), (None, None), "it runs in the cluster");
        assert!(nothing.inherit_owner_annotations);
        assert_eq!(nothing.kube_api_burst, 100);
        let told = &nothing.endpoints;
        assert!(!told.enable_healthz && !told.enable_metrics);
        assert_eq!((told.healthz_address.port(), told.listen_address.port()), (11251, 8081));
        let files = [&told.tls.ca_cert_file, &told.tls.tls_cert_file, &told.tls.tls_private_key_file];
        assert_eq!(files, [&None, &None, &None]);
        let lease = &nothing.election;
        assert!(lease.leader_elect);
        let seconds = [
            lease.leader_elect_lease_duration,
            lease.leader_elect_renew_deadline,
            lease.leader_elect_retry_period,
        ];
        assert_eq!(seconds.map(|it| it.as_secs()), [15, 10, 2]);
        assert_eq!(lease.leader_elect_resource_name, "vc-controller-manager");
    }

    #[test]
    fn volcanos_flags_for_workers_add_up() {
        let workers = |flags: &[&str]| manager(flags).n_workers();
        assert_eq!(workers(&[]), 16);
        assert_eq!(workers(&["--worker-threads=3", "--worker-threads-for-gc=1"]), 4);
        assert_eq!(
            workers(&[
                "--worker-threads-for-cronjob=3",
                "--worker-threads-for-podgroup=5",
                "--worker-threads-for-queue=5"
            ]),
            29
        );
    }
}
