//! The command line.

pub(crate) mod access;
pub(crate) mod admission;
pub(crate) mod volcano;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use krafla_api::quantity::NotAQuantity;
use krafla_api::{GoDuration, Quantity};
use krafla_node::simulated::ClusterSize;

/// Where `krafla up` keeps its state unless it is told otherwise.
pub(crate) const DATA_DIR: &str = ".krafla";

/// Volcano batch jobs on any cluster, or on this machine with no cluster at all.
#[derive(Debug, Parser)]
#[command(name = "krafla", version, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run jobs as ordinary processes of this machine and exit with their result
    ///
    /// Applies the objects in the files and waits until every Job and JobFlow among them has ended, the first run of every
    /// CronJob, and every Pod whose restartPolicy is Never or OnFailure. This takes place in
    /// the cluster that --kubeconfig names; or else in the `krafla up` that the variable KUBECONFIG names, or that of
    /// .krafla in this directory, if it is running; or else in a cluster inside this process, of which nothing stays.
    /// Which one it is, is said on standard error, unless it is that one. Another cluster than a `krafla up` is only used if --kubeconfig names it.
    ///
    /// Exit code 0: all jobs completed; 1: a job failed, took longer than --timeout, or waits in a cluster of its own for
    /// something that will not come; 2: the input is wrong; 130: interrupted. Ctrl-C deletes the jobs that have not ended and
    /// waits until their pods have ended in order; a second one does not wait. In a cluster that stays, jobs that have ended
    /// stay too.
    Run(Run),
    /// Keep a cluster on this machine: API server, controllers, scheduler and node
    ///
    /// Prints where its kubeconfig is; use it with kubectl. Stops on Ctrl-C; running jobs go on after the next start
    /// with the same data directory.
    Up(Box<Up>),
    /// Run the controllers for a cluster: Volcano's, in place of its vc-controller-manager
    ///
    /// Which cluster: --kubeconfig, or else the variable KUBECONFIG, or else the one in whose pod this runs. Of several
    /// that run for one cluster, one acts and the others wait for its lease. Exit code 0: stopped by SIGTERM or Ctrl-C,
    /// the lease given back; 1: the lease was lost; 2: the cluster can not be used.
    ///
    /// Command lines of Volcano's manifests work unchanged, also under the name vc-controller-manager; flags that have no
    /// effect here are named on standard error.
    #[command(name = "controller-manager", version)]
    ControllerManager(Box<ControllerManager>),
    /// Say what this machine offers to pods, why jobs wait, and what to do about it
    ///
    /// Jobs are looked at in the cluster that --kubeconfig names; or else in the `krafla up` that the variable KUBECONFIG
    /// names; or else in that of --data-dir, if it is running. Nothing is changed there.
    ///
    /// Exit code 0: pods can run here, perhaps with limitations; 1: they can not; 2: the cluster that was named can not
    /// be used.
    Doctor(Doctor),
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
    Crds,
    /// The parent process of all containers; started by krafla itself.
    #[command(hide = true)]
    Supervise(Supervise),
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
    /// YAML or JSON files with one or more objects each, or directories of them; `-` reads from standard input
    #[arg(required_unless_present = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The same, in the way of `kubectl apply`
    #[arg(short = 'f', long, value_name = "FILE")]
    filename: Vec<PathBuf>,
    /// Of directories, read also what is in the directories below them, except those whose names begin with a dot
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// Print what all pods write, each line with its pod's name
    #[arg(long)]
    pub(crate) logs: bool,
    /// Print the final status of all jobs to standard output, and progress to standard error
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Output>,
    /// End what has not ended after this time, with exit code 1: 90s, 10m, 1h30m
    #[arg(long, value_name = "DURATION", value_parser = limit)]
    pub(crate) timeout: Option<Limit>,
    /// Where containers without a workingDir start, on this machine
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) workdir: PathBuf,
    /// What the node has, beside or in place of what this machine has: nvidia.com/gpu=1; may be given several times
    ///
    /// The run then takes place in a cluster of its own.
    #[arg(long, value_name = "NAME=N", value_parser = amount, conflicts_with = "kubeconfig")]
    pub(crate) capacity: Vec<(String, Quantity)>,
    /// The cluster to run in, by the current context of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Run in a cluster inside this process, whatever else is running
    #[arg(long, conflicts_with = "kubeconfig")]
    pub(crate) own_cluster: bool,
    /// Delete jobs, flows, CronJobs and pods that have the name of one in the files, whether they have ended or not, and run these
    /// in their place
    ///
    /// Each is deleted when its pods have ended in order, and then the one of the files is made.
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
    /// Where the cluster's state is kept
    #[arg(long, value_name = "DIR", default_value = DATA_DIR)]
    pub(crate) data_dir: PathBuf,
    /// Where to write the kubeconfig [default: DATA_DIR/kubeconfig]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Where the API server listens; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Keep all objects in memory only: faster, and gone when krafla stops
    #[arg(long)]
    pub(crate) in_memory: bool,
    /// Pretend to have other nodes than this machine, on which pods only seem to run: nodes=1000,cpu=32,memory=128Gi
    ///
    /// Any resource can be named. A pod runs for duration=1s and ends with exit-code=0, unless its annotations
    /// krafla.dev/simulated-duration and krafla.dev/simulated-exit-code say otherwise.
    #[arg(long, value_name = "SIZE")]
    pub(crate) simulate: Option<ClusterSize>,
    /// Let queues take back their share: pods of reclaimable queues that have more than theirs are deleted
    ///
    /// Without it, a job of a queue that has less than its share waits until others have ended. No gang loses pods that it
    /// needs, and no queue with `reclaimable: false` loses any. It is what the action reclaim is in the configuration of
    /// Volcano's scheduler, which is off there too unless it is named.
    #[arg(long)]
    pub(crate) reclaim: bool,
    /// Let jobs preempt jobs of a lower priority in the same queue
    ///
    /// Deletes pods of jobs with a lower priorityClassName when a job finds no room to start. No gang loses pods that it
    /// needs, and no pod outside a PodGroup is deleted. This is the action preempt of Volcano's scheduler.
    #[arg(long)]
    pub(crate) preempt: bool,
    /// How long Events are kept after they were last written
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration)]
    pub(crate) event_ttl: Duration,
    /// Leave the controllers to `krafla controller-manager` in another process
    #[arg(long)]
    pub(crate) without_controllers: bool,
    /// Where containers without a workingDir start
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) workdir: PathBuf,
    /// What the node has, beside or in place of what this machine has: nvidia.com/gpu=1; may be given several times
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
    /// The cluster, by the current context of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The address of the cluster's API server, in place of the one that the kubeconfig names
    #[arg(long, value_name = "URL")]
    pub(crate) master: Option<String>,
    /// Which controllers run: names, `*` for all of Volcano's, `-name` for all but this one
    ///
    /// Those of Kubernetes itself (kubernetes-job-controller, job-pod-release-controller, kubernetes-cronjob-controller,
    /// ttl-after-finished-controller) only run if they are named: every Kubernetes cluster has its own.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "*", allow_hyphen_values = true)]
    pub(crate) controllers: Vec<String>,
    /// Of Kubernetes' own Jobs, take care of those alone whose spec.managedBy is this
    ///
    /// With it, kubernetes-job-controller and job-pod-release-controller run beside the cluster's own; krafla.dev/job-controller is a good name. Without it,
    /// it takes care of all Jobs that name no other controller.
    #[arg(long, value_name = "NAME")]
    pub(crate) jobs_managed_by: Option<String>,
    /// How many decisions are carried out at once
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) worker_threads: u16,
    /// Create PodGroups for pods that ask for these schedulers; may be given several times
    #[arg(long, value_name = "NAME", default_value = "volcano")]
    pub(crate) scheduler_name: Vec<String>,
    /// Whether PodGroups have those annotations of their pods' owners that are meant for them
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
    /// How many requests a second are sent at most; without it, as many as the server takes
    #[arg(long, value_name = "N")]
    pub(crate) kube_api_qps: Option<f64>,
    /// How many requests are sent at once at most, if --kube-api-qps is given
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) kube_api_burst: u32,
    /// How much is logged, unless KRAFLA_LOG says so: from 4 on what helps to find faults, from 8 on everything
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
    /// Whether to say at --healthz-address whether the manager lives (/healthz) and could act (/readyz)
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
    /// Where health is told; without a host, at all addresses of this machine; port 0 takes a free one
    #[arg(long, value_name = "[HOST]:PORT", default_value = ":11251", value_parser = listen_address)]
    pub(crate) healthz_address: SocketAddr,
    /// Whether to show at --listen-address what the controllers have counted (/metrics)
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
    /// Where /metrics is; without a host, at all addresses of this machine; port 0 takes a free one
    #[arg(long, value_name = "[HOST]:PORT", default_value = ":8081", value_parser = listen_address)]
    pub(crate) listen_address: SocketAddr,
    #[command(flatten)]
    pub(crate) tls: TlsFiles,
}

/// With all three, health is told over TLS.
#[derive(Debug, Default, Args)]
pub(crate) struct TlsFiles {
    /// Who vouches for clients of --healthz-address that show a certificate, as PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_cert_file: Option<PathBuf>,
    /// The certificate of --healthz-address, as PEM; health is told over TLS if all three files are named
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// Its private key, as PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_private_key_file: Option<PathBuf>,
}

/// Volcano has workers for each of its controllers. Here all take whatever is next, so these are added to the others.
#[derive(Debug, Args)]
pub(crate) struct MoreWorkers {
    /// So many workers more, as Volcano has them for CronJobs
    #[arg(long, value_name = "N", default_value_t = 0)]
    worker_threads_for_cronjob: u16,
    /// So many workers more, as Volcano has them for PodGroups
    #[arg(long, value_name = "N", default_value_t = 0)]
    worker_threads_for_podgroup: u16,
    /// So many workers more, as Volcano has them for queues
    #[arg(long, value_name = "N", default_value_t = 0)]
    worker_threads_for_queue: u16,
    /// So many workers more, as Volcano has them for finished jobs
    #[arg(long, value_name = "N", default_value_t = 0)]
    worker_threads_for_gc: u16,
}

impl ControllerManager {
    /// What is logged unless the environment says otherwise. Volcano's levels: 4 is for finding faults, 8 for everything.
    pub(crate) fn log_filter(&self) -> &'static str {
        match self.verbosity {
            ..4 => "info",
            4..8 => "info,krafla=debug",
            8.. => "debug,krafla=trace",
        }
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
    /// Whether to act only while holding the lease
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
    /// How long others wait after the last renewal
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub(crate) leader_elect_lease_duration: Duration,
    /// How long to try to renew before stopping
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) leader_elect_renew_deadline: Duration,
    /// How often to try
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub(crate) leader_elect_retry_period: Duration,
    /// The lease's name
    #[arg(long, value_name = "NAME", default_value = "vc-controller-manager")]
    pub(crate) leader_elect_resource_name: String,
    /// The lease's namespace
    #[arg(long, value_name = "NAME", default_value = "volcano-system")]
    pub(crate) leader_elect_resource_namespace: String,
    /// The same, by its older name; it counts if both are given
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
    /// Where `krafla up` would keep its state
    #[arg(long, value_name = "DIR", default_value = DATA_DIR)]
    pub(crate) data_dir: PathBuf,
    /// The cluster whose jobs to look at, by the current context of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Print what was found for a program to read
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

/// A duration, in the words of whoever gave it.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub(crate) given: String,
    pub(crate) duration: Duration,
}

fn limit(text: &str) -> Result<Limit, String> {
    duration(text).map(|duration| Limit { given: text.to_owned(), duration })
}

/// A duration in Go's notation, longer than nothing.
fn duration(text: &str) -> Result<Duration, String> {
    let duration: GoDuration = text.parse().map_err(|_| "not a duration like 15s or 1m30s".to_owned())?;
    let duration = duration.to_std();
    if duration.is_zero() { Err("must be longer than nothing".to_owned()) } else { Ok(duration) }
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
