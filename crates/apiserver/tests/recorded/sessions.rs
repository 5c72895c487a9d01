//! Sessions of kubectl that were recorded against a kube-apiserver, held again with the kubectl that is installed here:
//! each command must end and print as it did then.
//!
//! Only what a client can tell is compared, and only where kubectl says today what the recorded one said; sessions that
//! differ are listed in DEVIATIONS.md like all recorded answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use futures_util::StreamExt;
use krafla_apiserver::RunningServer;
use regex::Regex;
use serde::Deserialize;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::deviations::Deviations;
use crate::server::{self, RUNTIME};
use krafla_recorded::case::root;

const FILE: &str = "tests/golden/apiserver/13-clients.json";
/// How many sessions are held at once.
const AT_ONCE: usize = 4;
/// No command takes nearly as long, whatever else the machine has to do.
const PATIENCE: Duration = Duration::from_secs(300);
/// What commands that succeed are given instead of their own time, which was meant for an idle machine.
const AMPLE_TIME: &str = "120s";

#[derive(Deserialize)]
struct Area {
    cases: Vec<Session>,
}

/// Commands that belong together.
#[derive(Deserialize)]
pub(crate) struct Session {
    pub(crate) id: String,
    discovery: String,
    steps: Vec<Step>,
}

/// One command, and how it ended.
#[derive(Deserialize)]
struct Step {
    command: Vec<String>,
    #[serde(default)]
    stdin: String,
    #[serde(default)]
    env: BTreeMap<String, String>,
    exit: i32,
    stdout: String,
}

/// All sessions.
pub(crate) fn load() -> Vec<Session> {
    let text = std::fs::read_to_string(root().join(FILE)).expect(FILE);
    serde_json::from_str::<Area>(&text).expect(FILE).cases
}

#[test]
fn clients() {
    let Some(kubectl) = kubectl_path() else {
        println!("kubectl is missing; scripts/install-tools kubectl makes it");
        return;
    };
    let home = Home::new(kubectl);
    let sessions = load();
    let held = RUNTIME.block_on(async {
        let held = sessions.iter().enumerate().map(|(at, session)| home.hold(session, at));
        futures_util::stream::iter(held).buffered(AT_ONCE).collect::<Vec<_>>().await
    });
    let (deviations, mut complaints) = (Deviations::read(), Vec::new());
    for (session, differences) in sessions.iter().zip(held) {
        match (deviations.has(&session.id), differences.is_empty()) {
            (false, false) => complaints.push(format!("{}\n{}", session.id, differences.join("\n"))),
            (true, true) => complaints.push(format!("{} passes: remove it from DEVIATIONS.md", session.id)),
            (false, true) | (true, false) => {}
        }
    }
    assert!(complaints.is_empty(), "{} surprises\n{}", complaints.len(), complaints.join("\n"));
}

/// kubectl: `KRAFLA_KUBECTL`, or what `scripts/install-tools` built.
fn kubectl_path() -> Option<PathBuf> {
    let named = std::env::var_os("KRAFLA_KUBECTL").map(PathBuf::from);
    let path = named.unwrap_or_else(|| root().join("target/tools/bin/kubectl"));
    path.exists().then_some(path)
}

/// kubectl, and the directory where it finds the server and leaves what it remembers.
struct Home {
    kubectl: PathBuf,
    dir: TempDir,
    /// Not shared with other areas: sessions look at all that is served.
    _server: RunningServer,
}

impl Home {
    fn new(kubectl: PathBuf) -> Home {
        let (dir, server) = (TempDir::new().expect("a directory"), server::fresh());
        let config = server.kubeconfig().replace(server.token(), server::ADMIN_TOKEN);
        std::fs::write(dir.path().join("config"), config).expect("a kubeconfig");
        Home { kubectl, dir, _server: server }
    }

    /// Holds a session in a namespace of its own, and says what differs.
    async fn hold(&self, session: &Session, at: usize) -> Vec<String> {
        let namespace = format!("g-session-{at:02}");
        let mut differences = Vec::new();
        self.run("default", &["create".into(), "namespace".into(), namespace.clone()], None, None).await;
        for step in &session.steps {
            let fresh = (session.discovery == "cold").then(|| TempDir::new().expect("a directory"));
            let words: Vec<String> = step.command.iter().map(|word| step.patient(word, &namespace)).collect();
            let output = self.run(&namespace, &words, Some(step), fresh.as_ref().map(TempDir::path)).await;
            differences.extend(step.difference(&output, &namespace));
        }
        differences
    }

    async fn run(
        &self,
        namespace: &str,
        words: &[String],
        step: Option<&Step>,
        cache: Option<&Path>,
    ) -> Output {
        let (home, own_cache) = (self.dir.path(), self.dir.path().join("cache"));
        let mut kubectl = Command::new(&self.kubectl)
            .arg("--kubeconfig")
            .arg(home.join("config"))
            .arg("--cache-dir")
            .arg(cache.unwrap_or(&own_cache))
            .args(["-n", namespace])
            .args(words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .env("TERM", "dumb")
            .envs(step.map(|step| step.env.clone()).unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("kubectl starts");
        let input = step.map(|step| step.stdin.replace("{ns}", namespace)).unwrap_or_default();
        let mut stdin = kubectl.stdin.take().expect("it has an input");
        // A command that does not read its input may have ended by now.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let ended = tokio::time::timeout(PATIENCE, kubectl.wait_with_output()).await;
        ended.unwrap_or_else(|_| panic!("{words:?} does not end")).expect("kubectl is waited for")
    }
}

impl Step {
    /// A word of the command. What is expected to happen may take its time.
    fn patient(&self, word: &str, namespace: &str) -> String {
        let is_limit = word.starts_with("--timeout=") || word.starts_with("--request-timeout=");
        match word.split_once('=') {
            Some((flag, _)) if is_limit && self.exit == 0 => format!("{flag}={AMPLE_TIME}"),
            _ => word.replace("{ns}", namespace),
        }
    }

    fn difference(&self, output: &Output, namespace: &str) -> Option<String> {
        let title = self.command.join(" ");
        let (code, complaint) = (output.status.code(), String::from_utf8_lossy(&output.stderr));
        if code != Some(self.exit) {
            return Some(format!("  {title}: ended with {code:?} instead of {}: {complaint}", self.exit));
        }
        let printed = comparable(&String::from_utf8_lossy(&output.stdout), namespace);
        let is_same = printed == self.stdout || self.stdout.ends_with('…');
        (!is_same).then(|| format!("  {title} printed\n{printed}\n  instead of\n{}", self.stdout))
    }
}

/// What differs from run to run, and how the records write it.
static PLACEHOLDERS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let written = [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}", "<time>"),
        (r"(Resource Version:\s+)\d+", "${1}<rv>"),
        (r"(resourceVersion\W{1,4})\d+", "${1}<rv>"),
        (r"127\.0\.0\.1:\d+", "<server>"),
        (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "<token>"),
        (r"hash=[0-9A-F]{20,}", "hash=<hash>"),
        (r"/tmp/\S+", "<file>"),
        (r"\.[0-9a-f]{16}\b", ".<hash>"),
        (r"debugger-[a-z0-9]{5}", "debugger-<rand>"),
        (r"(?m)(\s)(?:\d+[smhd])+\s*$", "${1}<age>"),
        (r"(\s)\d+(?:s|m\d+s|ms)( )", "${1}<age>${2}"),
        (r"[ \t]+", " "),
    ];
    written.into_iter().map(|(pattern, shown)| (Regex::new(pattern).expect(pattern), shown)).collect()
});

fn comparable(printed: &str, namespace: &str) -> String {
    let named = printed.replace(namespace, "{ns}");
    let shown = PLACEHOLDERS
        .iter()
        .fold(named, |text, (pattern, shown)| pattern.replace_all(&text, *shown).into_owned());
    shown.trim().to_owned()
}
