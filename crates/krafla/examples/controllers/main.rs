//! What the controllers cost: many jobs on nodes that only pretend, with everything in one process.
//!
//! ```text
//!   bench/controller [JOBSxPODS...]     Volcano Jobs
//!   bench/batch [JOBSxPODS...]          Jobs of Kubernetes itself
//!   bench/flows [FLOWSxSTEPS JOBS]      JobFlows, and finished jobs whose time to live is over
//! ```
//!
//! Each row is a process of its own, so that its processor time and memory are its own. Requests are counted by who makes
//! them.

mod cluster;
mod figures;
mod flows;
mod jobs;

use std::path::Path;
use std::process::{Command, ExitCode};

use krafla_api::Kind;

use crate::jobs::RESIDENT;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const SIZES: [&str; 3] = ["1000x1", "1000x10", "100x100"];
const BATCH_SIZES: [&str; 4] = ["1000x10", "10x1000", "1x1000", "1x10000"];
const FLOWS: &str = "200x10";
const EXPIRED: &str = "10000";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--one", size] => on_threads(jobs::complete(Kind::VcJob, size)),
        ["--one-batch", size] => on_threads(jobs::complete(Kind::Job, size)),
        ["--fill", dir] => on_threads(jobs::fill(Path::new(dir))),
        ["--rest", dir, who] => on_threads(jobs::rest(Path::new(dir), *who == "controllers")),
        ["--one-flows", size] => on_threads(flows::complete(size)),
        ["--one-expired", jobs] => on_threads(flows::collect(jobs)),
        ["--batch"] => rows("--one-batch", &BATCH_SIZES),
        ["--batch", sizes @ ..] => rows("--one-batch", sizes),
        ["--flows"] => all_flows(FLOWS, EXPIRED),
        ["--flows", size, jobs] => all_flows(size, jobs),
        [] => all(&SIZES),
        sizes => all(sizes),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("controllers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn on_threads(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(work)
}

/// A table with a row for each size.
fn rows(mode: &str, sizes: &[&str]) -> Result<(), Failure> {
    println!("{}", jobs::HEADER);
    sizes.iter().try_for_each(|size| again(&[mode, size]))
}

/// Volcano Jobs to their end. Then the same jobs, still running, are read from disk once without and once with the
/// controllers: the difference is what the controllers hold in memory.
fn all(sizes: &[&str]) -> Result<(), Failure> {
    rows("--one", sizes)?;
    let dir = tempfile::tempdir()?;
    let dir = dir.path().to_str().ok_or("the temporary directory has no usable name")?;
    again(&["--fill", dir])?;
    let without = resident(dir, "nobody")?;
    let with = resident(dir, "controllers")?;
    println!(
        "{RESIDENT} running: {without:.1} MB resident without the controllers, {with:.1} MB with them: they hold {:.1} MB",
        with - without
    );
    Ok(())
}

fn all_flows(size: &str, jobs: &str) -> Result<(), Failure> {
    println!("{}", flows::HEADER);
    again(&["--one-flows", size])?;
    again(&["--one-expired", jobs])
}

fn again(words: &[&str]) -> Result<(), Failure> {
    let status = Command::new(std::env::current_exe()?).args(words).status()?;
    if status.success() { Ok(()) } else { Err(format!("{words:?} failed").into()) }
}

fn resident(dir: &str, who: &str) -> Result<f64, Failure> {
    let output = Command::new(std::env::current_exe()?).args(["--rest", dir, who]).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// `1000x10`.
fn parse(size: &str) -> Result<(u64, u64), Failure> {
    let (many, each) = size.split_once('x').ok_or("a size is two numbers, such as 1000x10")?;
    Ok((many.parse()?, each.parse()?))
}
