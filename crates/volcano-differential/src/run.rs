//! Many sequences at once, and those that differ once more with more patience.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use krafla_sim::golden::{Comparison, Record, compare};
use parking_lot::Mutex;
use serde_json::Value;

use crate::generate::Generator;
use crate::report::Report;
use crate::sequence::{Patience, Steps, record};
use crate::shrink::shrink;
use crate::volcano::{Volcano, namespace_name};

/// As patient as whoever made the records of `tests/golden`.
const AT_FIRST: Patience = Patience { quiet: Duration::from_millis(500), step_max: Duration::from_secs(60) };

/// A sequence that differs is played again: a busy machine must not look like a difference.
const AGAIN: Patience = Patience { quiet: Duration::from_millis(2000), step_max: Duration::from_secs(90) };
const AT_ONCE_AGAIN: usize = 100;
const ATTEMPTS_AGAIN: u64 = 2;

/// What is left of sequences is not cleaned up: after so many there is a new server and a new manager.
const BATCH: u64 = 3500;

/// Where things are.
pub(crate) struct Setup {
    pub(crate) manager: PathBuf,
    pub(crate) out: PathBuf,
}

/// Which sequences.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of sequences
    #[arg(long, default_value_t = 1000)]
    sequences: u64,
    /// First seed
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Write the record of every sequence to this directory
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
    /// Sequences played at the same time
    #[arg(long, default_value_t = 200)]
    at_once: usize,
}

impl Setup {
    fn start(&self) -> Result<Volcano> {
        Volcano::start(&self.manager, &self.out.join("manager.log"))
    }
}

/// A sequence and what came of it.
struct Played {
    seed: u64,
    record: Record,
    comparison: Comparison,
}

/// Plays one sequence per seed. Fails if any differs in a way that nobody meant.
pub(crate) fn run(setup: &Setup, options: &Options) -> Result<ExitCode> {
    let started = Instant::now();
    let mut report = Report::default();
    let end = options.from + options.sequences;
    let mut from = options.from;
    while from < end {
        let to = end.min(from + BATCH);
        run_batch(setup, options, from..to, &mut report)?;
        println!("seeds {} to {}: {}", options.from, to - 1, report.line(started.elapsed()));
        from = to;
    }
    print!("{report}");
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_batch(
    setup: &Setup,
    options: &Options,
    seeds: std::ops::Range<u64>,
    report: &mut Report,
) -> Result<()> {
    let volcano = setup.start()?;
    let mut all: Vec<u64> = seeds.collect();
    // Those that wait for minutes to pass begin first.
    all.sort_by_key(|seed| !Generator::new(*seed).is_slow());
    let played = in_parallel(options.at_once, &all, |_, seed| {
        let generator = Generator::new(*seed);
        let objects = generator.objects().to_vec();
        record(&volcano, &namespace_name(*seed), AT_FIRST, &objects, Steps::Generated(generator))
            .map(|record| record.map(|record| (*seed, record)))
    })?;
    report.n_refused += played.iter().filter(|record| record.is_none()).count();
    let played: Vec<(u64, Record)> = played.into_iter().flatten().collect();
    let compared = in_parallel(2, &played, |_, (_, record)| Ok(compare(record)))?;
    if let Some(dir) = &options.keep {
        std::fs::create_dir_all(dir)?;
        played.iter().try_for_each(|(seed, record)| write(&dir.join(format!("{seed}.json")), record))?;
    }
    let mut doubtful = Vec::new();
    for ((seed, record), comparison) in played.into_iter().zip(compared) {
        if comparison.differences.is_empty() {
            report.add(&comparison);
        } else {
            doubtful.push((seed, record));
        }
    }
    report.n_again += doubtful.len();
    let again = in_parallel(AT_ONCE_AGAIN, &doubtful, |position, (seed, first)| {
        play_until_same(&volcano, u64::try_from(position)?, *seed, first)
    })?;
    for played in again.into_iter().flatten() {
        report.add(&played.comparison);
        if !played.comparison.differences.is_empty() {
            report.found(played.seed, &played.comparison.differences);
            write(&setup.out.join(format!("{}.json", played.seed)), &played.record)?;
        }
    }
    Ok(())
}

/// Plays the steps of a record again, and compares: once more if it differs, for Volcano has races that go either way.
fn play_until_same(volcano: &Volcano, number: u64, seed: u64, first: &Record) -> Result<Option<Played>> {
    let mut played = None;
    for attempt in 0..ATTEMPTS_AGAIN {
        let name = namespace_name(50_000_000 + 10 * number + attempt);
        played = play_again(volcano, &name, seed, first)?;
        if played.as_ref().is_none_or(|played| played.comparison.differences.is_empty()) {
            break;
        }
    }
    Ok(played)
}

/// Plays the steps of a record again, and compares.
fn play_again(volcano: &Volcano, namespace: &str, seed: u64, first: &Record) -> Result<Option<Played>> {
    let steps: Vec<Value> = first.entries.iter().skip(1).map(|entry| entry.deed.clone()).collect();
    let record = record(volcano, namespace, AGAIN, &first.objects, Steps::Given(steps.iter()))?;
    Ok(record.map(|record| {
        let comparison = compare(&record);
        Played { seed, record, comparison }
    }))
}

/// Does the same with all items, several at a time.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    at_once: usize,
    items: &[T],
    each: impl Fn(usize, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicU64::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once.min(items.len()) {
            scope.spawn(|| {
                while let Ok(position) = usize::try_from(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some(item) = items.get(position) else { return };
                    let result = each(position, item);
                    results.lock().push((position, result));
                }
            });
        }
    });
    let mut results = results.into_inner();
    results.sort_by_key(|(position, _)| *position);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Plays sequences again, and prints how they differ.
pub(crate) fn replay(
    setup: &Setup,
    sequences: &[String],
    shrinks: bool,
    keep: Option<&Path>,
) -> Result<ExitCode> {
    let volcano = setup.start()?;
    let records = in_parallel(AT_ONCE_AGAIN, sequences, |position, sequence| {
        let namespace = namespace_name(u64::try_from(position)?);
        if let Ok(seed) = sequence.parse::<u64>() {
            let generator = Generator::new(seed);
            let objects = generator.objects().to_vec();
            return record(&volcano, &namespace, AGAIN, &objects, Steps::Generated(generator));
        }
        let first = read(Path::new(sequence))?;
        Ok(play_again(&volcano, &namespace, 0, &first)?.map(|played| played.record))
    })?;
    let mut is_clean = true;
    for (number, (sequence, record)) in sequences.iter().zip(records).enumerate() {
        let Some(mut record) = record else {
            println!("{sequence}: the server refuses its objects");
            continue;
        };
        if shrinks {
            let first_namespace = 1_000_000 * u64::try_from(number + 1)?;
            record = shrink(&volcano, record, AGAIN, first_namespace)?;
        }
        let comparison = compare(&record);
        is_clean &= comparison.differences.is_empty();
        print_sequence(sequence, &record, &comparison);
        if let Some(dir) = keep {
            let stem = Path::new(sequence).file_stem().and_then(|stem| stem.to_str()).unwrap_or(sequence);
            write(&dir.join(format!("{stem}.json")), &record)?;
        }
    }
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Compares recorded sequences, and prints how they differ.
pub(crate) fn compare_again(files: &[PathBuf]) -> Result<ExitCode> {
    let records = files.iter().map(|file| read(file)).collect::<Result<Vec<Record>>>()?;
    let compared = in_parallel(2, &records, |_, record| Ok(compare(record)))?;
    let mut report = Report::default();
    for ((file, record), comparison) in files.iter().zip(&records).zip(&compared) {
        report.add(comparison);
        if !comparison.differences.is_empty() {
            let seed = file.file_stem().and_then(|stem| stem.to_str()?.parse().ok()).unwrap_or(0);
            report.found(seed, &comparison.differences);
        }
        if files.len() < 10 {
            print_sequence(&file.display().to_string(), record, comparison);
        }
    }
    print!("{report}");
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_sequence(name: &str, record: &Record, comparison: &Comparison) {
    println!("{name}:");
    for object in &record.objects {
        println!("  {object}");
    }
    for (step, entry) in record.entries.iter().enumerate() {
        println!("  {step} {} {}", entry.deed, entry.state.get("phases").unwrap_or(&Value::Null));
        let here = comparison.differences.iter().filter(|difference| difference.step == step);
        here.for_each(|difference| println!("      {difference}"));
    }
    if let Some(entry) = comparison.parting {
        println!("  the histories part after {} states: {entry}", comparison.n_states);
    }
}

fn read(path: &Path) -> Result<Record> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let record =
        serde_json::from_slice(&text).with_context(|| format!("{} is not a record", path.display()))?;
    Ok(Record::from_json(&record))
}

fn write(path: &Path, record: &Record) -> Result<()> {
    let text = format!("{}\n", record.to_json());
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
