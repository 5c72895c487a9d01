//! `krafla-sim`: plays the controllers in a deterministic world, and says what breaks.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use krafla_sim::Program;
use krafla_sim::driver::{Pairing, Summary, exhaustive, pairs, replay, smallest_scenarios, swarm};
use krafla_sim::scenario::{self, Scenario};
use parking_lot::Mutex;

/// Every run makes and drops a whole cluster of small objects; the C library's allocator spends a sixth of the time on it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Plays the controllers in a deterministic world with faults, and says which promises break.
#[derive(Debug, Parser)]
#[command(name = "krafla-sim", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Every scenario, with every fault at every write
    Exhaustive {
        /// Only these scenarios
        #[arg(value_name = "SCENARIO", value_parser = scenario_named)]
        only: Vec<&'static Scenario>,
    },
    /// Every pair of faults at every two writes of small scenarios
    Pairs {
        /// Only these scenarios
        #[arg(value_name = "SCENARIO", value_parser = scenario_named)]
        only: Vec<&'static Scenario>,
        /// Pair all faults, not only crashes, conflicts and failed requests
        #[arg(long)]
        every_fault: bool,
    },
    /// Random orders of events and random faults, one run per seed, each twice
    Swarm {
        /// How many seeds
        #[arg(long, value_name = "N")]
        seeds: u64,
        /// The first seed
        #[arg(long, value_name = "S")]
        from: u64,
    },
    /// One run again, with a timeline
    Replay {
        /// A seed of `swarm`, or a case such as `restart:12:crash-before`
        seed: String,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let program = Program::as_shipped();
    let started = Instant::now();
    let progress = Progress::default();
    let told = |done, of| progress.tell(done, of);
    let summary = match arguments.command {
        Command::Exhaustive { only } => {
            let scenarios = if only.is_empty() { scenario::ALL } else { &only };
            exhaustive(scenarios, &program, &told)
        }
        Command::Pairs { only, every_fault } => {
            let scenarios = if only.is_empty() { smallest_scenarios() } else { only };
            let pairing = if every_fault { Pairing::OfAll } else { Pairing::OfWrites };
            pairs(&scenarios, pairing, &program, &told)
        }
        Command::Swarm { seeds, from } => {
            swarm(scenario::ALL, &program, from..from.saturating_add(seeds), &told)
        }
        Command::Replay { seed } => match replay_one(&seed, &program) {
            Ok(summary) => summary,
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::from(2);
            }
        },
    };
    progress.clear();
    tell(&summary, started.elapsed());
    if summary.n_violations == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn scenario_named(name: &str) -> Result<&'static Scenario, String> {
    scenario::named(name).ok_or_else(|| "there is no such scenario".to_owned())
}

fn replay_one(word: &str, program: &Program) -> Result<Summary, krafla_sim::NoCase> {
    let (case, outcome) = replay(word, program)?;
    println!("{case}: {}", case.scenario.shows);
    for line in &outcome.timeline {
        println!("{line}");
    }
    println!("at the end:");
    for line in outcome.end.lines() {
        println!("  {line}");
    }
    for finding in &outcome.findings {
        println!("{finding}");
    }
    let n_violations = u64::from(!outcome.findings.is_empty());
    Ok(Summary { n_runs: 1, n_violations, simulated: outcome.simulated, ..Summary::default() })
}

fn tell(summary: &Summary, took: Duration) {
    for failure in &summary.failures {
        println!("{failure}");
    }
    let (simulated, real) = (summary.simulated.as_secs_f64(), took.as_secs_f64().max(f64::EPSILON));
    let hours = simulated / 3600.0;
    let ratio = simulated / real;
    println!("{hours:.1} simulated hours in {real:.1} s: {ratio:.0} times as fast as real time");
    if summary.n_joined > 0 {
        println!("{} runs ended where another had been", summary.n_joined);
    }
    println!("{} runs, {} violations", summary.n_runs, summary.n_violations);
}

/// A line on a terminal that says how far it is, every few seconds.
#[derive(Default)]
struct Progress {
    last_told: Mutex<Option<Instant>>,
}

impl Progress {
    const PAUSE: Duration = Duration::from_secs(2);

    fn tell(&self, done: usize, of: usize) {
        let Some(mut last_told) = self.last_told.try_lock() else { return };
        if last_told.get_or_insert_with(Instant::now).elapsed() < Self::PAUSE
            || !std::io::stderr().is_terminal()
        {
            return;
        }
        *last_told = Some(Instant::now());
        eprint!("\r{done} of {of}");
        let _ = std::io::stderr().flush();
    }

    /// Takes the line away again.
    fn clear(&self) {
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
    }
}
