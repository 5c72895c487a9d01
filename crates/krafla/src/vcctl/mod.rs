//! Volcano's command-line tools: `vcctl`, `vsub`, `vjobs`, `vcancel`, `vsuspend`, `vresume` and `vqueues`.
//!
//! ```text
//!   commands.rs   the table of all commands and their flags
//!   flags.rs      a command line -> values          help.rs   the table -> help texts
//!   cluster.rs    which cluster, and its objects as JSON
//!   job.rs, view.rs, queue.rs, flow.rs, pod.rs      what each command asks and prints
//! ```
//!
//! Same flags, columns and effects as Volcano's own tools. Errors go to standard error with a code other than 0, even where
//! Volcano's tools print them to standard output or end with 0 (DEVIATIONS.md).

// Reading a field of JSON by its name yields null where there is none.
#![allow(clippy::indexing_slicing, reason = "only values of JSON and slices of known length are indexed")]

mod cluster;
mod commands;
mod flags;
mod flow;
mod help;
mod job;
mod pod;
mod queue;
mod table;
mod view;

use std::ffi::{OsStr, OsString};
use std::fmt::Arguments;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use krafla_api::Time;
use krafla_schema::spelling;

use self::cluster::Cluster;
use self::commands::{Action, Body, Command, TOOLS, VCCTL};
use self::flags::Values;
use crate::screen;

/// The command line cannot be used.
const EXIT_USAGE: u8 = 1;
/// What the command was to do failed.
const EXIT_FAILED: u8 = 255;

/// The name under which kubectl finds this program for `kubectl krafla`.
const KUBECTL_PLUGIN: &str = "kubectl-krafla";

/// One of Volcano's tools.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool(&'static Command);

impl Tool {
    /// `vcctl`.
    pub(crate) fn vcctl() -> Tool {
        Tool(&VCCTL)
    }

    /// The tool that a program of this name is.
    pub(crate) fn named(program: &OsStr) -> Option<Tool> {
        let name = Path::new(program).file_name()?;
        TOOLS.iter().find(|tool| name == tool.name).map(|tool| Tool(tool))
    }
}

/// What a tool prints.
#[derive(Debug, Default)]
struct Printed {
    out: String,
    errors: String,
    has_failed: bool,
}

impl Printed {
    fn line(&mut self, line: Arguments<'_>) {
        self.out += &format!("{line}\n");
    }

    /// A part of what was asked for failed; the rest goes on.
    fn failure(&mut self, line: Arguments<'_>) {
        self.errors += &format!("{line}\n");
        self.has_failed = true;
    }
}

/// Runs a tool.
pub(crate) async fn run(tool: Tool, words: Vec<OsString>) -> Result<ExitCode> {
    let words: Vec<String> = words.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (code, printed) = outcome(tool.0, &words).await;
    screen::print(&printed.out)?;
    screen::tell(&printed.errors);
    Ok(ExitCode::from(code))
}

async fn outcome(tool: &'static Command, words: &[String]) -> (u8, Printed) {
    let mut printed = Printed::default();
    let (chain, words) = match find(tool, words) {
        Ok(found) => found,
        Err(error) => {
            printed.errors = format!("Error: {error}\n");
            return (EXIT_USAGE, printed);
        }
    };
    let command = chain.last().copied().unwrap_or(tool);
    // `vcctl help job run`.
    if chain.len() == 1 && words.first().is_some_and(|word| word == "help") && !command.commands().is_empty()
    {
        return help_of(tool, &words[1..]);
    }
    let parsed = match flags::parse(&words, &command.all_flags(), |name| std::env::var(name).ok()) {
        Ok(parsed) => parsed,
        Err(error) => {
            // The commands of vcctl only say what is wrong.
            let usage = if chain.len() == 1 { help::usage(&chain) + "\n" } else { String::new() };
            printed.errors = format!("{usage}Error: {error}\n");
            return (EXIT_USAGE, printed);
        }
    };
    let Body::Leaf { action, .. } = command.body else {
        printed.out = help::help(&chain);
        return (0, printed);
    };
    if parsed.wants_help {
        printed.out = help::help(&chain);
        return (0, printed);
    }
    if let Err(error) = perform(action, &parsed.values, &mut printed).await {
        let names: String = chain.iter().skip(1).rev().map(|command| format!(" {}", command.name)).collect();
        printed.failure(format_args!("Failed to{names}: {error}"));
    }
    (if printed.has_failed { EXIT_FAILED } else { 0 }, printed)
}

/// The command that a command line names, as a chain from the tool on, and the words that are left.
fn find(tool: &'static Command, words: &[String]) -> Result<(Vec<&'static Command>, Vec<String>), String> {
    let (mut chain, mut rest) = (vec![tool], words.to_vec());
    while let Some(command) = chain.last().copied().filter(|command| !command.commands().is_empty()) {
        let Some(at) = first_word(&rest, command) else { break };
        let word = rest[at].clone();
        if let Some(next) = command.commands().iter().find(|next| next.name == word) {
            rest.remove(at);
            chain.push(next);
        } else if chain.len() == 1 && word != "help" {
            let names = command.commands().iter().map(|command| command.name);
            let meant = spelling::closest(&word, names);
            let meant = meant.map_or(String::new(), |name| format!("\n\nDid you mean this?\n\t{name}\n"));
            return Err(format!("unknown command {word:?} for {:?}{meant}", command.name));
        } else {
            break;
        }
    }
    Ok((chain, rest))
}

/// Where the first word is that is neither a flag nor the value of one.
fn first_word(words: &[String], command: &Command) -> Option<usize> {
    let flags = command.all_flags();
    let mut index = 0;
    while let Some(word) = words.get(index) {
        match word.as_str() {
            "--" => return None,
            word if word.starts_with('-') && word.len() > 1 => {
                index += if flags::takes_next_word(word, &flags) { 2 } else { 1 };
            }
            _ => return Some(index),
        }
    }
    None
}

/// `help`, of a tool or of one of its commands.
fn help_of(tool: &'static Command, words: &[String]) -> (u8, Printed) {
    let mut chain = vec![tool];
    for word in words.iter().filter(|word| !word.starts_with('-')) {
        let commands = chain.last().map_or(&[][..], |command| command.commands());
        match commands.iter().find(|command| command.name == *word) {
            Some(command) => chain.push(command),
            None => {
                let errors = format!("Unknown help topic {word:?}\n{}", help::usage(&[tool]));
                return (EXIT_USAGE, Printed { errors, ..Printed::default() });
            }
        }
    }
    (0, Printed { out: help::help(&chain), ..Printed::default() })
}

async fn perform(action: Action, values: &Values, printed: &mut Printed) -> Result<(), String> {
    if action == Action::Version {
        printed.line(format_args!("API Version: v1alpha1\nVersion: krafla {}", env!("CARGO_PKG_VERSION")));
        return Ok(());
    }
    let cluster = &Cluster::connect(values)?;
    let now = Time(jiff::Timestamp::now());
    let mut remark = None;
    printed.out += &match action {
        Action::RunJob => job::run(cluster, values).await?,
        Action::SubmitJob => job::submit(cluster, values).await?,
        Action::ListJobs => job::list(cluster, values, false).await?,
        Action::ShowJobs if values.text("name").is_empty() => job::list(cluster, values, true).await?,
        Action::ShowJobs | Action::ViewJob => {
            let (text, complaint) = view::view(cluster, values, action == Action::ViewJob, now).await?;
            remark = complaint;
            text
        }
        Action::SuspendJob => job::act(cluster, values, "suspend").await?,
        Action::ResumeJob => job::act(cluster, values, "resume").await?,
        Action::DeleteJob => job::act(cluster, values, "delete").await?,
        Action::CancelJob => job::act(cluster, values, "cancel").await?,
        Action::CreateQueue => {
            let (text, complaint) = queue::create(cluster, values).await?;
            remark = complaint;
            text
        }
        Action::DeleteQueue => queue::delete(cluster, values).await?,
        Action::OperateQueue => queue::operate(cluster, values).await?,
        Action::GetQueue => queue::get(cluster, values).await?,
        Action::ListQueues => queue::list(cluster).await?,
        Action::ShowQueues => queue::show(cluster, values).await?,
        Action::CreateFlow(of) => return flow::create(cluster, values, of, printed).await,
        Action::DeleteFlow(of) => return flow::delete(cluster, values, of, printed).await,
        Action::GetFlow(of) => flow::get(cluster, values, of, now).await?,
        Action::ListFlows(of) => flow::list(cluster, values, of, now).await?,
        Action::DescribeFlow(of) => flow::describe(cluster, values, of).await?,
        Action::ListPods => pod::list(cluster, values).await?,
        Action::Version => String::new(),
    };
    printed.errors += &remark.unwrap_or_default();
    Ok(())
}

/// Makes links to this program under the names of Volcano's tools, and as a plugin of kubectl. What is there already under one of these names is left
/// alone, unless it is such a link.
pub(crate) fn install_links(dir: &Path) -> Result<ExitCode> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create directory {}", dir.display()))?;
    let is_ours = |link: &Path| std::fs::read_link(link).is_ok_and(|target| target == program);
    let names = || TOOLS.iter().map(|tool| tool.name).chain([KUBECTL_PLUGIN]);
    let taken =
        names().map(|name| dir.join(name)).find(|link| link.symlink_metadata().is_ok() && !is_ours(link));
    if let Some(taken) = taken {
        bail!(
            "{} already exists and is not a link to {}; fix: remove it, or choose another directory",
            taken.display(),
            program.display()
        );
    }
    for name in names() {
        let link = dir.join(name);
        if !is_ours(&link) {
            std::os::unix::fs::symlink(&program, &link)
                .with_context(|| format!("cannot create link {}", link.display()))?;
        }
        screen::print(&format!("{}\n", link.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
