//! `krafla-volcano-differential`: the same generated steps with Volcano's controllers and with ours, and where they differ.
//!
//! ```text
//!   generate   objects and steps from a seed, chosen from what is possible in the present state
//!   volcano    an embedded API server and Volcano's manager as a process; hundreds of sequences at once, one namespace each
//!   sequence   plays steps there and records the state after each
//!   golden     plays the record with our controllers in virtual time, and compares (`krafla_sim::golden`)
//!   report     differences by sort
//!   shrink     from a sequence that differs to the smallest that does
//! ```

mod generate;
mod report;
mod run;
mod sequence;
mod shrink;
mod volcano;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Compare krafla's controllers with Volcano's
#[derive(Debug, Parser)]
#[command(name = "krafla-volcano-differential", version)]
struct Arguments {
    /// Volcano's controller manager, as scripts/install-tools volcano builds it
    #[arg(long, value_name = "FILE", default_value = "target/tools/bin/vc-controller-manager")]
    manager: PathBuf,
    /// Directory for the manager's log and for sequences that differ
    #[arg(long, value_name = "DIRECTORY", default_value = "target/volcano-differential")]
    out: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Play one sequence for each seed and report all differences
    Run(run::Options),
    /// Play sequences again, given by seed or by file
    Replay {
        /// Seeds, or files that `run` wrote
        #[arg(required = true, value_name = "SEED|FILE")]
        sequences: Vec<String>,
        /// Look for the smallest sequence that differs in the same way
        #[arg(long)]
        shrink: bool,
        /// Write the record of each sequence to this directory
        #[arg(long, value_name = "DIRECTORY")]
        keep: Option<PathBuf>,
    },
    /// Compare recorded sequences anew, without Volcano
    Compare {
        /// Files that `run` wrote
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    std::fs::create_dir_all(&arguments.out)?;
    let setup = run::Setup { manager: arguments.manager, out: arguments.out };
    match arguments.command {
        Command::Run(options) => run::run(&setup, &options),
        Command::Replay { sequences, shrink, keep } => {
            run::replay(&setup, &sequences, shrink, keep.as_deref())
        }
        Command::Compare { files } => run::compare_again(&files),
    }
}
