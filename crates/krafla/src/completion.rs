//! Completion for shells. `krafla completion SHELL` prints a short script that asks the hidden command `krafla __complete` for every word, so
//! that flags, kinds and names of objects in the cluster are always current.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Arg, Command, CommandFactory};
use krafla_api::Served;
use krafla_client::{Request, collection_path};
use serde::Deserialize;

use crate::cli::Cli;
use crate::cli::everyday::Shell;
use crate::cli::target::ClusterFlags;
use crate::connection::Connection;
use crate::resources;
use crate::screen::print;

/// A person waits no longer than this for names.
const NAMES_WITHIN: Duration = Duration::from_secs(2);

/// Commands whose words name objects.
const NAMING: [&str; 9] = ["get", "logs", "wait", "delete", "suspend", "resume", "restart", "graph", "why"];
/// The kinds that most people type.
const COMMON: [&str; 12] = [
    "jobs",
    "vcjobs",
    "jobs.batch",
    "cronjobs",
    "flows",
    "jobtemplates",
    "queues",
    "podgroups",
    "pods",
    "nodes",
    "events",
    "namespaces",
];

/// Prints the script of a shell.
pub(crate) fn script(shell: Shell) -> Result<ExitCode> {
    print(match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
    })?;
    Ok(ExitCode::SUCCESS)
}

const BASH: &str = r#"_krafla() {
  local IFS=$'\n'
  COMPREPLY=($(krafla __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ ${COMPREPLY[0]-} == */ ]] && compopt -o nospace
}
complete -o default -F _krafla krafla
"#;
const ZSH: &str = r#"#compdef krafla
_krafla() {
  local -a found
  found=("${(@f)$(krafla __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n ${found[1]-} ]]; then compadd -Q -- $found; else _files; fi
}
compdef _krafla krafla
"#;
const FISH: &str = r#"complete -c krafla -f -a '(krafla __complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
"#;

/// What may stand at the end of a command line.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    /// One of these words.
    Words(Vec<String>),
    /// The name of an object of the kind that a word means, with this before it.
    Names { kind: String, before: String },
}

/// Prints the candidates for the last word.
pub(crate) async fn complete(words: Vec<String>) -> Result<ExitCode> {
    let last = words.last().cloned().unwrap_or_default();
    let candidates = match wanted(&Cli::command(), &words) {
        Wanted::Words(words) => words,
        Wanted::Names { kind, before } => {
            let found = tokio::time::timeout(NAMES_WITHIN, names(&words, &kind)).await;
            found
                .ok()
                .flatten()
                .unwrap_or_default()
                .into_iter()
                .map(|name| format!("{before}{name}"))
                .collect()
        }
    };
    let lines = candidates.iter().filter(|candidate| candidate.starts_with(&last));
    print(&lines.map(|candidate| format!("{candidate}\n")).collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

/// What may stand in place of the last word.
fn wanted(root: &Command, words: &[String]) -> Wanted {
    let (last, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let mut command = root;
    let mut positional: Vec<&str> = Vec::new();
    let mut value_of: Option<&Arg> = None;
    for word in before {
        if value_of.take().is_some() {
            continue;
        }
        if word.starts_with('-') && word.len() > 1 {
            value_of = flag(command, word).filter(|arg| takes_value(arg) && !word.contains('='));
        } else if let Some(next) = command.find_subcommand(word) {
            command = next;
        } else {
            positional.push(word);
        }
    }
    if let Some(arg) = value_of {
        return value(arg);
    }
    if last.starts_with('-') {
        let flags = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_long);
        let flags = flags.chain(["help"]).map(|flag| format!("--{flag}"));
        return Wanted::Words(flags.collect());
    }
    if command.has_subcommands() {
        let names = command.get_subcommands().filter(|command| !command.is_hide_set());
        return Wanted::Words(names.map(|command| command.get_name().to_owned()).collect());
    }
    match command.get_name() {
        name if NAMING.contains(&name) => objects(name, last, &positional),
        "open" | "close" => Wanted::Names { kind: "queues".to_owned(), before: String::new() },
        _ => match command.get_positionals().nth(positional.len()) {
            Some(arg) => value(arg),
            None => Wanted::Words(Vec::new()),
        },
    }
}

/// The words that name objects: `KIND`, `KIND/NAME`, or names after a kind.
fn objects(command: &str, last: &str, positional: &[&str]) -> Wanted {
    if let Some((kind, _)) = last.split_once('/') {
        return Wanted::Names { kind: kind.to_owned(), before: format!("{kind}/") };
    }
    match positional.first() {
        Some(first) if !first.contains('/') => {
            Wanted::Names { kind: (*first).to_owned(), before: String::new() }
        }
        _ if command == "get" => Wanted::Words(COMMON.iter().map(|kind| (*kind).to_owned()).collect()),
        _ => {
            let kinds = ["job", "vcjob", "jobs.batch", "cronjob", "jobflow", "queue", "podgroup", "pod"];
            Wanted::Words(kinds.iter().map(|kind| format!("{kind}/")).collect())
        }
    }
}

fn value(arg: &Arg) -> Wanted {
    let named = |kind: &str| Wanted::Names { kind: kind.to_owned(), before: String::new() };
    match arg.get_long().unwrap_or_default() {
        "namespace" => named("namespaces"),
        "queue" | "parent" => named("queues"),
        _ => {
            let possible = arg.get_possible_values();
            let shown = possible.iter().filter(|value| !value.is_hide_set());
            Wanted::Words(shown.map(|value| value.get_name().to_owned()).collect())
        }
    }
}

fn flag<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let word = word.split('=').next().unwrap_or(word);
    let is_meant = |arg: &&Arg| match word.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short() == word.chars().nth(1),
    };
    command.get_arguments().find(is_meant)
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

/// The names of the objects that a word means, in the cluster that the command line chooses.
async fn names(words: &[String], kind: &str) -> Option<Vec<String>> {
    let value = |flags: &[&str]| {
        let at = words.iter().position(|word| flags.contains(&word.as_str()))?;
        words.get(at.saturating_add(1)).cloned()
    };
    let flags = ClusterFlags {
        kubeconfig: value(&["--kubeconfig"]).map(Into::into),
        context: value(&["--context"]),
        namespace: value(&["--namespace", "-n"]),
    };
    let connection = Connection::open(&flags).ok()?;
    let mut names = Vec::new();
    for of in resources::resolve(&connection, kind).await.ok()? {
        names.extend(names_of(&connection, &of).await.unwrap_or_default());
    }
    names.sort();
    names.dedup();
    Some(names)
}

async fn names_of(connection: &Connection, of: &Served) -> Option<Vec<String>> {
    const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    #[derive(Deserialize)]
    struct List {
        items: Vec<Item>,
    }
    #[derive(Deserialize)]
    struct Item {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        name: String,
    }
    let path = format!("{}?limit=1000", collection_path(of, &connection.namespace));
    let body = connection.client.read(&Request::get(path).accepting(METADATA)).await.ok()?;
    let list: List = serde_json::from_slice(&body).ok()?;
    Some(list.items.into_iter().map(|item| item.metadata.name).collect())
}

/// Writes a man page for every command into a directory.
pub(crate) fn man(dir: &std::path::Path) -> Result<ExitCode> {
    use anyhow::Context;
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create directory {}", dir.display()))?;
    clap_mangen::generate_to(Cli::command().disable_help_subcommand(true), dir)
        .with_context(|| format!("cannot write man pages to {}", dir.display()))?;
    print(&format!(
        "wrote man pages to {}; read one with `man -l {}`\n",
        dir.display(),
        dir.join("krafla.1").display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use krafla_api::Kind;

    use super::*;

    fn shown(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match wanted(&Cli::command(), &words) {
            Wanted::Words(words) => words.join(" "),
            Wanted::Names { kind, before } => format!("names of {kind} after {before:?}"),
        }
    }

    #[test]
    fn commands_flags_kinds_and_names_are_completed() {
        assert!(shown("g").split(' ').any(|word| word == "get"));
        assert!(!shown("").contains("supervise") && !shown("").contains("__complete"));
        assert!(shown("get ").starts_with("jobs vcjobs jobs.batch"));
        assert!(shown("logs ").starts_with("job/ vcjob/"));
        assert_eq!(shown("logs job/"), "names of job after \"job/\"");
        assert_eq!(shown("get pods -n ml "), "names of pods after \"\"");
        assert_eq!(shown("get pods -n "), "names of namespaces after \"\"");
        assert_eq!(shown("get jobs --queue "), "names of queues after \"\"");
        assert_eq!(shown("get -o "), "wide json yaml name");
        assert!(shown("get --wa").contains("--watch"));
        assert_eq!(shown("queue "), "create open close tree");
        assert_eq!(shown("queue close "), "names of queues after \"\"");
        assert_eq!(shown("completion "), "bash zsh fish");
        assert_eq!(shown("run "), "", "files are left to the shell");
    }

    #[test]
    fn every_common_kind_is_known() {
        for kind in COMMON {
            assert!(resources::known(kind).is_some_and(|kinds: Vec<Kind>| !kinds.is_empty()), "{kind}");
        }
        let commands: Vec<String> =
            Cli::command().get_subcommands().map(|it| it.get_name().to_owned()).collect();
        let unknown: Vec<&str> =
            NAMING.into_iter().filter(|it| *it != "why" && !commands.contains(&(*it).to_owned())).collect();
        assert_eq!(unknown, Vec::<&str>::new());
    }

    #[test]
    fn every_command_has_a_man_page() {
        let dir = tempfile::tempdir().unwrap();
        man(dir.path()).unwrap();
        let page = std::fs::read_to_string(dir.path().join("krafla-get.1")).unwrap();
        assert!(page.contains("List jobs, queues, pods and other objects"), "{page}");
        assert!(page.contains("Examples"), "{page}");
        assert!(!dir.path().join("krafla-supervise.1").exists());
    }
}
