//! The krafla program: command line and wiring.

mod actions;
mod background;
mod backup;
mod bars;
mod bus_command;
mod catalogue;
mod changes;
mod cli;
mod cluster;
mod completion;
mod connection;
mod controller_manager;
mod data_dir;
mod doctor;
mod failure;
mod get;
mod graph;
mod home;
mod layout;
mod logs;
mod manifest;
mod manifests;
mod object_watch;
mod outcome;
mod picture;
mod pod_access;
mod pod_logs;
mod printable;
mod progress;
mod queues;
mod resource_groups;
mod resources;
mod room;
mod run;
mod run_dir;
mod screen;
mod server_access;
mod serving;
mod steps;
mod submit;
mod targets;
mod top;
mod up;
mod vcctl;
mod version;
mod wait;
mod waits;
mod warnings;
mod webhook_manager;
mod why;

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::actions::Verb;
use crate::cli::{Cli, Command};
use crate::failure::Failure;
use crate::run::BadInput;

/// Lists and watches come and go in bursts of small objects, which the C library's allocator neither makes quickly nor
/// gives back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    if let Some(tool) = words.next().and_then(|program| vcctl::Tool::named(&program)) {
        return finish(block_on("error", vcctl::run(tool, words.collect())));
    }
    let (words, remarks) = cli::volcano::settle(std::env::args_os());
    let command = Cli::parse_from(words).command;
    remarks.iter().for_each(|remark| screen::tell(&format!("krafla: {remark}\n")));
    let outcome = match command {
        // The supervisor is the parent of all containers: it stays small and single-threaded.
        Command::Supervise(args) => return krafla_node::supervisor::main(args.args),
        Command::Crds => print_yaml(krafla_api::crd::crds()),
        Command::Manifests(args) => {
            manifests::objects(&args).map_err(|error| BadInput(error).into()).and_then(print_yaml)
        }
        Command::Backup(args) => block_on("warn", backup::backup(args)),
        Command::Restore(args) => backup::restore(&args),
        Command::Vcctl(args) => block_on("error", vcctl::run(vcctl::Tool::vcctl(), args.words)),
        Command::InstallLinks(args) => vcctl::install_links(&args.dir),
        Command::Down(args) => block_on("error", background::down(args)),
        Command::Status(args) => block_on("error", background::status(args)),
        Command::Get(args) => block_on("error", get::get(*args)),
        Command::Logs(args) => block_on("error", logs::logs(*args)),
        Command::Wait(args) => block_on("error", wait::wait(*args)),
        Command::Delete(args) => block_on("error", actions::delete(*args)),
        Command::Suspend(args) => block_on("error", actions::act(*args, Verb::Suspend)),
        Command::Resume(args) => block_on("error", actions::act(*args, Verb::Resume)),
        Command::Restart(args) => block_on("error", actions::act(*args, Verb::Restart)),
        Command::Queue(args) => block_on("error", queues::queue(*args)),
        Command::Top(args) => block_on("error", top::top(*args)),
        Command::Graph(args) => block_on("error", graph::graph(*args)),
        Command::Completion(args) => completion::script(args.shell),
        Command::Complete(args) => block_on("off", completion::complete(args.words)),
        Command::Man(args) => completion::man(&args.dir),
        Command::Version(args) => block_on("error", version::version(*args)),
        Command::Why(args) => block_on("error", why::why(*args)),
        Command::Doctor(args) => block_on("error", doctor::doctor(args)),
        // It says itself what people have to know; more would tear its picture apart.
        Command::Run(args) => block_on("error", run::run(args)),
        Command::ControllerManager(args) => {
            block_on(args.log_filter(), controller_manager::run(*args)).map_err(Failure::at_start)
        }
        Command::WebhookManager(args) => {
            block_on(args.log_filter(), webhook_manager::run(*args)).map_err(Failure::at_start)
        }
        Command::Up(args) => block_on("warn", up::up(*args)).map_err(Failure::at_start),
    };
    finish(outcome)
}

/// What the shell is told, and the user where something went wrong.
fn finish(outcome: Result<ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        screen::tell(&format!("krafla: {error:#}\n"));
        outcome::code_of(&error)
    })
}

/// Runs the program. `level` is what is logged unless `KRAFLA_LOG` says otherwise.
fn block_on(level: &str, work: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    let filter = tracing_subscriber::EnvFilter::try_from_env("KRAFLA_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    let is_coloured = std::io::stderr().is_terminal() && screen::wants_colour();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    log.with_ansi(is_coloured).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(work);
    // What is done is done: nobody waits for the memory of tasks to be given back piece by piece.
    runtime.shutdown_background();
    outcome
}

/// Prints objects as one YAML document each.
fn print_yaml(objects: Vec<serde_json::Value>) -> Result<ExitCode> {
    for object in objects {
        screen::print(&format!("---\n{}\n", serde_saphyr::to_string(&object)?.trim_end()))?;
    }
    Ok(ExitCode::SUCCESS)
}
