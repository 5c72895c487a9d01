//! Flags that choose a cluster, and words that name objects: the same for all everyday commands.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// The cluster and the namespace.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterFlags {
    /// Use the cluster of this kubeconfig [default: see `krafla get --help`]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Use this context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Use this namespace [default: that of the context]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

/// Formats of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// More columns
    Wide,
    /// One JSON document
    Json,
    /// YAML
    Yaml,
    /// KIND/NAME, one per line
    Name,
}
