//! Help texts of Volcano's tools, from the table of commands. Pure.

use std::fmt::Write;

use super::commands::{Body, Command, GLOBAL};
use super::flags::{Flag, Type};

/// The whole help of a command; `chain` begins with the tool.
pub(super) fn help(chain: &[&Command]) -> String {
    let about = chain.last().map_or("", |command| command.about);
    format!("{about}\n\n{}", usage(chain))
}

/// How a command is used.
pub(super) fn usage(chain: &[&Command]) -> String {
    let Some(command) = chain.last() else { return String::new() };
    let line: Vec<&str> = chain.iter().map(|command| command.name).collect();
    let line = line.join(" ");
    let mut text = String::from("Usage:\n");
    match command.body {
        Body::Leaf { .. } => put(&mut text, format_args!("  {line} [flags]\n")),
        Body::Group(commands) => {
            put(&mut text, format_args!("  {line} [command]\n\nAvailable Commands:\n"));
            let is_tool = chain.len() == 1;
            let rows = commands.iter().map(|command| (command.name, command.about));
            let mut rows: Vec<_> =
                rows.chain(is_tool.then_some(("help", "Print help of a command"))).collect();
            rows.sort_unstable();
            let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(11);
            for (name, about) in rows {
                put(&mut text, format_args!("  {name:width$} {about}\n"));
            }
        }
    }
    // The flags of logs belong to the tool; its commands inherit them.
    let is_tool = chain.len() == 1;
    let mut own = command.own_flags();
    if is_tool {
        own.extend(GLOBAL);
        own.sort_by_key(|flag| flag.name);
    }
    put(&mut text, format_args!("\nFlags:\n{}", rows(&own)));
    if !is_tool {
        put(&mut text, format_args!("\nGlobal Flags:\n{}", rows(&GLOBAL)));
    }
    if let Body::Group(_) = command.body {
        put(
            &mut text,
            format_args!("\nUse \"{line} [command] --help\" for more information about a command.\n"),
        );
    }
    text
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(more);
}

fn rows(flags: &[Flag]) -> String {
    let heads: Vec<String> = flags.iter().map(head).collect();
    let width = heads.iter().map(String::len).max().unwrap_or(0);
    let rows = flags
        .iter()
        .zip(&heads)
        .map(|(flag, head)| format!("{head:width$}   {}{}\n", flag.about, default(flag)));
    rows.collect()
}

fn head(flag: &Flag) -> String {
    let short = flag.short.map_or("    ".to_owned(), |short| format!("-{short}, "));
    format!("  {short}--{} {}", flag.name, flag.takes.name()).trim_end().to_owned()
}

fn default(flag: &Flag) -> String {
    let variable = if flag.variable.is_empty() { String::new() } else { format!(" or ${}", flag.variable) };
    match (flag.default, flag.takes) {
        ("", _) => String::new(),
        (default, Type::Text) => format!(" (default {default:?}{variable})"),
        (default, _) => format!(" (default {default}{variable})"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::commands::VCCTL;
    use super::*;

    #[test]
    fn a_tool_lists_its_commands() {
        expect![[r#"
            Volcano's command line: jobs, queues, job flows, job templates and pods

            Usage:
              vcctl [command]

            Available Commands:
              help        Print help of a command
              job         Run, list, view, suspend, resume and delete jobs
              jobflow     Create, list, describe and delete job flows
              jobtemplate Create, list, describe and delete job templates
              pod         List the pods of jobs
              queue       Create, list, open, close, change and delete queues
              version     Print the version

            Flags:
              -h, --help                           Print this help
                  --log-flush-frequency duration   No effect (default 5s)
              -v, --v Level                        No effect
                  --vmodule moduleSpec             No effect

            Use "vcctl [command] --help" for more information about a command.
        "#]]
        .assert_eq(&help(&[&VCCTL]));
    }

    #[test]
    fn a_command_shows_its_flags_with_their_defaults() {
        let job = VCCTL.commands().iter().find(|command| command.name == "job").unwrap();
        let view = job.commands().iter().find(|command| command.name == "view").unwrap();
        expect![[r#"
            Show a job and its events

            Usage:
              vcctl job view [flags]

            Flags:
              -h, --help                Print this help
              -k, --kubeconfig string   Path of the kubeconfig
              -s, --master string       Address of the API server
              -N, --name string         Name of the job
              -n, --namespace string    Namespace of the job (default "default")

            Global Flags:
                  --log-flush-frequency duration   No effect (default 5s)
              -v, --v Level                        No effect
                  --vmodule moduleSpec             No effect
        "#]]
        .assert_eq(&help(&[&VCCTL, job, view]));
    }
}
