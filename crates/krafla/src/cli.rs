//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use krafla_node::simulated::ClusterSize;

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
    /// Starts a cluster inside this process, applies the objects in the files, waits until every Job has ended, and
    /// removes everything. Exit code 0: all jobs completed; 1: a job failed; 2: the input is wrong; 130: interrupted.
    /// Ctrl-C ends the jobs in order; a second one ends them at once.
    Run(Run),
    /// Keep a cluster on this machine: API server, controllers, scheduler and node
    ///
    /// Prints where its kubeconfig is; use it with kubectl. Stops on Ctrl-C; running jobs go on after the next start
    /// with the same data directory.
    Up(Up),
    /// Say what this machine offers to pods, and what to do about what it lacks
    ///
    /// Exit code 0: pods can run here, perhaps with limitations; 1: they can not.
    Doctor(Doctor),
    /// Print Volcano's CustomResourceDefinitions as YAML
    Crds,
    /// The parent process of all containers; started by krafla itself.
    #[command(hide = true)]
    Supervise(Supervise),
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// YAML or JSON files with one or more objects each, or directories of them; `-` reads from standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print what all pods write, each line with its pod's name
    #[arg(long)]
    pub(crate) logs: bool,
    /// Print the final status of all jobs to standard output, and progress to standard error
    #[arg(long, value_name = "FORMAT")]
    pub(crate) output: Option<Output>,
    /// Where containers without a workingDir start
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) workdir: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Up {
    /// Where the cluster's state is kept
    #[arg(long, value_name = "DIR", default_value = ".krafla")]
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
    /// Any resource can be named. A pod runs for duration=1s and ends with exit code 0, unless its annotations
    /// krafla.dev/simulated-duration and krafla.dev/simulated-exit-code say otherwise.
    #[arg(long, value_name = "SIZE")]
    pub(crate) simulate: Option<ClusterSize>,
    /// Where containers without a workingDir start
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) workdir: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Where `krafla up` would keep its state
    #[arg(long, value_name = "DIR", default_value = ".krafla")]
    pub(crate) data_dir: PathBuf,
    /// Print what was found for a program to read
    #[arg(long, value_name = "FORMAT")]
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
