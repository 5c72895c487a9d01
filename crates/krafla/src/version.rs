//! `krafla version`: of this program and of the API server.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use crate::cli::Output;
use crate::cli::everyday::Version;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::screen::print;

const CLIENT: &str = env!("CARGO_PKG_VERSION");

/// Prints the versions. A cluster that cannot be reached does not keep that of the program from being printed.
pub(crate) async fn version(args: Version) -> Result<ExitCode> {
    let server = if args.client { None } else { Some(server(&args).await) };
    match args.output {
        Some(Output::Json) => {
            let (found, error) = match &server {
                Some(Ok(server)) => (Some(server.as_str()), None),
                Some(Err(failure)) => (None, Some(failure.to_string())),
                None => (None, None),
            };
            print(&format!("{:#}\n", json!({ "client": CLIENT, "server": found, "error": error })))?;
        }
        None => {
            let server = server.as_ref().and_then(|server| server.as_ref().ok());
            let server = server.map(|server| format!("server {server}\n")).unwrap_or_default();
            print(&format!("krafla {CLIENT}\n{server}"))?;
        }
    }
    match server {
        Some(Err(failure)) => Err(failure.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

async fn server(args: &Version) -> Result<String, Failure> {
    let connection = Connection::open(&args.cluster)?;
    connection.client.version().await.map_err(|error| connection.failure(error))
}
