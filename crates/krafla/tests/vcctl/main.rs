//! Volcano's command lines, as they were recorded (`tests/golden/cli`), with this program in place of Volcano's tools and the
//! embedded API server in place of the cluster: same codes, columns, rows and effects, or a listed difference.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod cluster;
mod differences;
mod live;

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::differences::DIFFERENCES;

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default)]
    fixtures: BTreeMap<String, Fixture>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Fixture {
    objects: Vec<Value>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    #[serde(default)]
    fixture: String,
    argv: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    deny: Vec<String>,
    result: Recorded,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    exit_code: i32,
    stdout: String,
    #[serde(default)]
    other_stdout: Vec<String>,
    #[serde(default)]
    effects: serde_json::Map<String, Value>,
}

/// What a command did.
struct Done {
    code: i32,
    stdout: String,
    stderr: String,
    effects: Value,
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/cli").join(name)
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// This program under the name of a tool.
fn tool(name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_krafla"));
    command.arg0(name).env_clear().env("TZ", "UTC");
    command
}

#[test]
fn recorded_command_lines_do_the_same_here() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(golden(".")).unwrap().map(|it| it.unwrap().path()).collect();
    files.retain(|file| {
        let name = file.file_name().unwrap().to_str().unwrap();
        name.ends_with(".json") && name != "commands.json" && name != "live.json"
    });
    files.sort();
    let (mut n_cases, mut wrong, mut listed) = (0, Vec::new(), Vec::new());
    for path in &files {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let file: File = read(path);
        for case in &file.cases {
            n_cases += 1;
            let id = format!("{stem}: {}", case.name);
            let complaint = runtime.block_on(play(&file, case));
            let is_listed = DIFFERENCES.iter().any(|(other, _)| *other == id);
            match (complaint, is_listed) {
                (None, false) => {}
                (Some(_), true) => listed.push(id),
                (Some(complaint), false) => {
                    wrong.push(format!("{id}\n  {}\n{complaint}", case.argv.join(" ")))
                }
                (None, true) => wrong.push(format!("{id}: no longer differs; remove it from the list")),
            }
        }
    }
    println!(
        "{n_cases} cases, {} equal, {} listed differences",
        n_cases - wrong.len() - listed.len(),
        listed.len()
    );
    assert_eq!(
        listed.len() + wrong.iter().filter(|it| it.contains("no longer differs")).count(),
        DIFFERENCES.len()
    );
    assert!(wrong.is_empty(), "{} of {n_cases} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Plays a case, and says what differs. Ages count seconds: a call that did not end in the second of its fixture is made again.
async fn play(file: &File, case: &Case) -> Option<String> {
    const TRIES_MAX: usize = 20;
    let mut complaint = None;
    for _ in 0..TRIES_MAX {
        let objects = file.fixtures.get(&case.fixture).map_or(&[][..], |fixture| &fixture.objects);
        let cluster = Cluster::start(&file.namespaces, objects, &case.deny).await;
        let done = run(&cluster, case).await;
        let is_late = cluster.is_late();
        complaint = compare(case, &done);
        cluster.stop().await;
        if complaint.is_none() || !is_late {
            break;
        }
    }
    complaint
}

async fn run(cluster: &Cluster, case: &Case) -> Done {
    let dir = tempfile::tempdir().unwrap();
    let kubeconfig = dir.path().join("valid.kubeconfig");
    std::fs::write(&kubeconfig, cluster.kubeconfig()).unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    for (name, text) in &case.files {
        let path = work.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, cluster.file(text)).unwrap();
    }
    let filled = |text: &str| {
        let text = text.replace("{kubeconfig}", kubeconfig.to_str().unwrap());
        text.replace("{dir}", work.to_str().unwrap())
    };
    let mut command = tool(&case.argv[0]);
    command.args(case.argv[1..].iter().map(|word| filled(word))).current_dir(&work);
    command.env("KUBECONFIG", &kubeconfig).env("HOME", dir.path().join("none"));
    command.envs(case.env.iter().map(|(name, value)| (name, filled(value))));
    let before = cluster.objects();
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    Done {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        effects: cluster::effects(&before, &cluster.objects()),
    }
}

/// What differs from the record. Of failures only the class of the code is compared, and that standard error says something.
fn compare(case: &Case, done: &Done) -> Option<String> {
    let recorded = &case.result;
    let mut complaints = Vec::new();
    let class = |code: i32| if code == 0 { 0 } else { 1 };
    if class(recorded.exit_code) != class(done.code) {
        complaints.push(format!(
            "  exit code {}, recorded {}\n  stderr: {}",
            done.code, recorded.exit_code, done.stderr
        ));
    } else if done.code == 0 {
        let is_equal = |stdout: &String| same_output(stdout, &done.stdout);
        if !std::iter::once(&recorded.stdout).chain(&recorded.other_stdout).any(is_equal) {
            complaints.push(format!("  stdout:\n{}\n  recorded:\n{}", done.stdout, recorded.stdout));
        }
    } else if done.stderr.is_empty() {
        complaints.push("  fails without a message".to_owned());
    }
    let effects = cluster::normal(&recorded.effects.clone().into());
    if effects != done.effects {
        complaints.push(format!("  effects:  {}\n  recorded: {effects}", done.effects));
    }
    (!complaints.is_empty()).then(|| complaints.join("\n"))
}

fn same_output(recorded: &str, found: &str) -> bool {
    // The texts of help are this program's own; their facts are compared below.
    if recorded.starts_with("<help ") {
        return found.contains("Usage:");
    }
    // The version is this program's own.
    if recorded.starts_with("API Version: v1alpha1\n") {
        return found.starts_with("API Version: v1alpha1\nVersion: krafla ");
    }
    if recorded.starts_with('{') {
        let parse = |text: &str| -> Vec<Value> {
            let text = text.replace("<rv>", "1");
            let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
            values.map(|it| cluster::normal(&it.unwrap())).collect()
        };
        return parse(recorded) == parse(found);
    }
    // Volcano's tools add fields without a value.
    if recorded.starts_with("apiVersion: ") {
        let parse = |text: &str| cluster::normal(&serde_saphyr::from_str(text).unwrap_or_default());
        return parse(recorded) == parse(found) && !parse(found).is_null();
    }
    masked(recorded) == masked(found)
}

/// Without what differs from run to run.
fn masked(text: &str) -> String {
    let mask = |line: &str| {
        for head in ["  Resource Version:  \t", "  resourceVersion: "] {
            if line.starts_with(head) {
                return head.to_owned();
            }
        }
        line.strip_prefix("run job gen-").map_or(line.to_owned(), |_| "run job gen-".to_owned())
    };
    text.lines().map(|line| mask(line) + "\n").collect()
}

#[derive(Deserialize)]
struct Help {
    name: String,
    flags: Vec<Value>,
    #[serde(default)]
    commands: Vec<String>,
}

/// Flags that Volcano's tools do not have.
const ADDED: &[(&str, &[&str])] = &[
    ("vcctl job list", &["phase", "show-reason", "sort-by"]),
    ("vjobs", &["phase", "queue", "show-reason", "sort-by"]),
];

#[test]
fn help_shows_the_recorded_flags_and_commands() {
    #[derive(Deserialize)]
    struct File {
        cases: Vec<Help>,
    }
    let file: File = read(&golden("commands.json"));
    for case in &file.cases {
        let words: Vec<&str> = case.name.split(' ').collect();
        let output = tool(words[0]).args(&words[1..]).arg("--help").output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let added = ADDED.iter().filter(|(command, _)| *command == case.name).flat_map(|(_, flags)| *flags);
        let added: Vec<&str> = added.copied().collect();
        let (ours, recorded): (Vec<Value>, Vec<Value>) =
            flags(&help).into_iter().partition(|flag| added.iter().any(|name| flag["name"] == *name));
        assert_eq!(recorded, case.flags, "{}\n{help}", case.name);
        assert_eq!(ours.len(), added.len(), "{}\n{help}", case.name);
        let commands = commands(&help);
        assert!(case.commands.iter().all(|command| commands.contains(command)), "{}\n{help}", case.name);
    }
}

/// The facts about flags in a help text, in their order.
fn flags(help: &str) -> Vec<Value> {
    let mut is_global = false;
    let mut flags = Vec::new();
    for line in help.lines() {
        is_global |= line == "Global Flags:";
        let Some((head, about)) =
            line.trim_start().split_once("   ").filter(|(head, _)| head.starts_with('-'))
        else {
            continue;
        };
        let (short, long) = head.split_once(", ").map_or((None, head), |(short, long)| (Some(short), long));
        let (name, kind) = long.split_once(' ').unwrap_or((long, "bool"));
        let mut flag = json!({ "name": name.trim_start_matches('-'), "type": kind });
        if let Some(short) = short {
            flag["shorthand"] = short.trim_start_matches('-').into();
        }
        if let Some((_, default)) = about.split_once("(default ") {
            let default = default.split_once(" or $").map_or(default, |(default, _)| default);
            flag["default"] = default.trim_end_matches(')').trim_matches('"').into();
        }
        if is_global {
            flag["global"] = true.into();
        }
        flags.push(flag);
    }
    flags
}

fn commands(help: &str) -> Vec<String> {
    let rows = help.lines().skip_while(|line| *line != "Available Commands:").skip(1);
    let rows = rows.take_while(|line| !line.is_empty());
    rows.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn links_make_this_program_a_tool_and_take_no_other_files_place() {
    let dir = tempfile::tempdir().unwrap();
    let install = |dir: &Path| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_krafla")).arg("install-links").arg(dir).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let bin = dir.path().join("bin");
    assert_eq!(install(&bin), (true, String::new()));
    assert_eq!(install(&bin), (true, String::new()), "links of its own are no obstacle");
    let output = Command::new(bin.join("vsub")).arg("--help").output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("vsub [flags]"));
    std::fs::remove_file(bin.join("vjobs")).unwrap();
    std::fs::write(bin.join("vjobs"), "mine").unwrap();
    let (is_done, error) = install(&bin);
    assert!(!is_done && error.contains("vjobs already exists"), "{error}");
    assert_eq!(std::fs::read_to_string(bin.join("vjobs")).unwrap(), "mine");
}
