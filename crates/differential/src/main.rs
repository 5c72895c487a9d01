//! Compares the embedded API server with a real kube-apiserver: the same generated requests to both.
//!
//! ```text
//!   bases/*.yaml + the table of types -> fields, values -> plan -> trial -> both servers
//!                                                                              |
//!                       accepted.txt -> report <- compare <- answers, made comparable (krafla-recorded)
//! ```
#![allow(
    clippy::indexing_slicing,
    reason = "a key that a JSON value lacks reads as null, and this is a tool of the tests"
)]

mod accepted;
mod bases;
mod cases;
mod compare;
mod corpus;
mod fields;
mod plan;
mod queries;
mod report;
mod rng;
mod run;
mod sequences;
mod servers;
mod trial;
mod values;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;

use crate::accepted::Accepted;
use crate::plan::Plan;
use crate::report::{Group, Report, line};
use crate::run::{Limits, Pair};
use crate::servers::Kubernetes;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Compare the embedded API server with a real kube-apiserver
#[derive(Parser)]
#[command(name = "scripts/differential")]
struct Arguments {
    /// Minutes to run
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// Only these kinds: `pods`, or `jobs.batch` (several times)
    #[arg(long)]
    kind: Vec<String>,
    /// Only changes of fields whose JSON pointer contains this: `/metadata/labels` (several times)
    #[arg(long)]
    field: Vec<String>,
    /// The seed that decides the order of the trials
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// At most this many trials
    #[arg(long, default_value_t = usize::MAX)]
    trials: usize,
    /// Requests in flight on each server
    #[arg(long, default_value_t = 24)]
    workers: usize,
    /// Ask again what a report has found, by the id in square brackets
    #[arg(long)]
    replay: Option<String>,
    /// The directory of the report
    #[arg(long, default_value = "target/differential")]
    out: PathBuf,
    /// Add the found trials with the real server's answers to tests/golden/differential
    #[arg(long)]
    record: bool,
    /// Fail only if more sorts of difference than this are found and not listed
    #[arg(long, default_value_t = 0)]
    unlisted_max: usize,
    /// Play the cases of this file, in the form of tests/golden/apiserver, and no generated ones (several times)
    #[arg(long)]
    cases: Vec<PathBuf>,
    /// Compare the embedded server with itself, to find what differs from run to run
    #[arg(long)]
    own: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(compare(arguments))
}

async fn compare(arguments: Arguments) -> Result<()> {
    let subjects = Arc::new(bases::subjects()?);
    let accepted = Arc::new(Accepted::read()?);
    let embedded = servers::embedded().await?;
    let (kubernetes, second) = if arguments.own {
        (None, Some(servers::embedded().await?))
    } else {
        (Some(Kubernetes::start()?), None)
    };
    let real = match (&kubernetes, &second) {
        (Some(kubernetes), _) => kubernetes.target()?,
        (None, Some(second)) => servers::target(second),
        (None, None) => anyhow::bail!("there is no server to compare with"),
    };
    if !arguments.cases.is_empty() {
        return cases::compare(&arguments.cases, &real, &servers::target(&embedded), &arguments.out).await;
    }
    let pair = Pair::prepare(real, servers::target(&embedded)).await?;
    let stored = pair.store(&subjects).await?;
    if let Some(id) = &arguments.replay {
        return replay(&pair, &subjects, &arguments.out, id).await;
    }
    let plan = Arc::new(Plan::new(&subjects, &arguments.kind, &arguments.field, stored, arguments.seed));
    eprintln!("{} changes of single fields, seed {}", plan.n_changes(), arguments.seed);
    let limits = Limits {
        within: Duration::from_secs_f64(arguments.minutes * 60.0),
        n_trials: arguments.trials,
        n_workers: arguments.workers,
    };
    let report = run::run(&pair, subjects, plan, accepted, &limits, &arguments.out).await?;
    if arguments.record {
        eprintln!("{} trials added to {}", corpus::add(&report)?, corpus::dir().display());
    }
    finish(&report, &arguments)
}

fn finish(report: &Report, arguments: &Arguments) -> Result<()> {
    report.write(&arguments.out)?;
    for group in report.groups().iter().filter(|group| group.accepted.is_none()) {
        println!("{}", line(group));
    }
    println!("{}", report.summary());
    println!("report: {}", arguments.out.join("report.txt").display());
    let (n, max) = (report.n_unlisted(), arguments.unlisted_max);
    anyhow::ensure!(
        n <= max,
        "{n} sorts of difference are not listed in tests/differential/accepted.txt, {max} are allowed"
    );
    Ok(())
}

/// Asks one trial of a report again and prints both answers.
async fn replay(pair: &Pair, subjects: &[bases::Subject], out: &Path, id: &str) -> Result<()> {
    let text = std::fs::read(out.join("report.json")).context("there is no report to replay from")?;
    let document: serde_json::Value = serde_json::from_slice(&text)?;
    let groups: Vec<Group> = serde_json::from_value(document["groups"].clone())?;
    let group = groups
        .iter()
        .find(|group| group.example.id == id)
        .with_context(|| format!("{id} is not in the report"))?;
    let trial = &group.example.trial;
    let subject =
        subjects.iter().find(|subject| subject.name() == trial.kind).context("the kind is not served")?;
    let answers = pair.clients().ask(subject, trial).await;
    println!("{}\nsent      {}", trial.about(), trial.case(subject).text());
    println!("real      {}", serde_json::to_string(&answers.real)?);
    println!("embedded  {}", serde_json::to_string(&answers.embedded)?);
    for difference in compare::differences(&answers.real, &answers.embedded) {
        println!("{} {}\n      {}", difference.class, difference.field, difference.text);
    }
    Ok(())
}
