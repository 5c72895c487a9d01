//! How an API server bears load: this one, and any other beside it.
//!
//! ```text
//!   bench/apiserver [--server URL --ca FILE --token-file FILE] [--data-dir DIR] [--quick]
//! ```
//!
//! Without `--server` only the embedded server is measured: `serve`, the example beside this one, started on an empty
//! directory. With it, the other server is measured in the same run, and the ratios are what counts: the machine is the
//! same, and so is the moment. Everything it makes is in one namespace, which it removes in the end.

mod client;
mod measure;
mod pod;
mod table;
mod target;

use std::path::PathBuf;
use std::process::ExitCode;

use measure::Effort;
use table::Table;
use target::{Embedded, Target};

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What was asked for.
#[derive(Default)]
struct Arguments {
    server: Option<String>,
    ca: Option<PathBuf>,
    token_file: Option<PathBuf>,
    data_dir: Option<PathBuf>,
    is_quick: bool,
}

impl Arguments {
    fn parse() -> Result<Self, Failure> {
        let mut parsed = Self::default();
        let mut words = std::env::args().skip(1);
        while let Some(flag) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "--server" => parsed.server = Some(value()?),
                "--ca" => parsed.ca = Some(value()?.into()),
                "--token-file" => parsed.token_file = Some(value()?.into()),
                "--data-dir" => parsed.data_dir = Some(value()?.into()),
                "--quick" => parsed.is_quick = true,
                other => {
                    return Err(format!("unknown flag {other}; see the top of examples/load/main.rs").into());
                }
            }
        }
        Ok(parsed)
    }

    /// The server to compare with.
    fn other(&self) -> Result<Option<Target>, Failure> {
        let Some(server) = &self.server else { return Ok(None) };
        let ca = self.ca.as_ref().ok_or("--server needs --ca, the certificate of its authority")?;
        let token_file = self.token_file.as_ref().ok_or("--server needs --token-file")?;
        let token = std::fs::read_to_string(token_file)?.trim().to_owned();
        Ok(Some(Target::new(server, &std::fs::read(ca)?, token)?))
    }
}

fn main() -> ExitCode {
    let outcome = Arguments::parse().and_then(|arguments| {
        tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run(&arguments))
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let effort = if arguments.is_quick { Effort::quick() } else { Effort::whole() };
    let mut table = Table::new(arguments.server.as_deref());
    if let Some(other) = arguments.other()? {
        measure::requests(&other, &effort, &mut table).await?;
        table.next_server();
    }
    let parent = arguments.data_dir.clone().unwrap_or_else(std::env::temp_dir);
    measure::starts(&parent, &effort, &mut table).await?;
    let embedded = Embedded::start(&parent).await?;
    table.add("resident, empty", "MB", megabytes(embedded.resident_bytes()?));
    measure::requests(embedded.target(), &effort, &mut table).await?;
    measure::memory(&embedded, &effort, &mut table).await?;
    table.print();
    Ok(())
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
