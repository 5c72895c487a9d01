//! `krafla up --detach`, `krafla down` and `krafla status`: a cluster in the background.
//!
//! While a cluster runs, it holds the lock of its data directory, and `DIR/process` says which process it is. `--detach` writes its output to
//! `DIR/up.log`.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use krafla_api::{Kind, Time};
use krafla_apiserver::http::write_private;
use krafla_apiserver::store::DirectoryLock;
use krafla_apiserver::table::age;
use krafla_client::{Access, HttpsClient, Limits, Request, collection_path};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cli::{self, Output};
use crate::data_dir;
use crate::failure::Failure;
use crate::screen::{print, tell};

/// How often it is checked whether a cluster has started or stopped.
const CHECKED_EVERY: Duration = Duration::from_millis(50);
/// How long a cluster that is asked for its status may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// The process of a running cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Process {
    pid: i32,
    started_at: Time,
    kubeconfig: PathBuf,
}

/// A note of the running process in the data directory, removed when the cluster stops.
pub(crate) struct Note {
    path: PathBuf,
    process: Process,
}

impl Note {
    /// Notes this process. The directory's lock must be held.
    pub(crate) fn write(data_dir: &Path, kubeconfig: &Path) -> Result<Note> {
        let path = data_dir.join("process");
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let started_at = Time(jiff::Timestamp::now());
        let process = Process { pid, started_at, kubeconfig: kubeconfig.to_owned() };
        write_private(&path, &json!(process).to_string())
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Note { path, process })
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        // The next cluster may have taken the directory already.
        let noted = fs::read(&self.path).ok().and_then(|json| serde_json::from_slice::<Process>(&json).ok());
        if noted.as_ref() == Some(&self.process) {
            // The lock says that the cluster has stopped, with or without the file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Starts this command line again in the background, and returns when its cluster is ready.
pub(crate) async fn detach(args: &cli::Up) -> Result<ExitCode> {
    data_dir::prepare(&args.data_dir)?;
    let log = args.data_dir.join("up.log");
    let program = std::env::current_exe().context("cannot find krafla's own program file")?;
    let words =
        std::env::args_os().skip(1).map(|word| if word == "--detach" { "--detached".into() } else { word });
    write_private(&log, "").with_context(|| format!("cannot write {}", log.display()))?;
    let out =
        File::options().append(true).open(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let errors = out.try_clone()?;
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(out).stderr(errors);
    let child = command.spawn().context("cannot start krafla in the background")?;
    until_ready(child, &log).await
}

async fn until_ready(mut child: Child, log: &Path) -> Result<ExitCode> {
    loop {
        let said = fs::read_to_string(log).unwrap_or_default();
        if said.contains("\nuse it with: ") || said.starts_with("use it with: ") {
            print(&said)?;
            print(&format!("output: {}\nstop it with: krafla down\n", log.display()))?;
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(status) = child.try_wait()? {
            tell(&said);
            let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
            return Ok(ExitCode::from(code.max(1)));
        }
        tokio::time::sleep(CHECKED_EVERY).await;
    }
}

/// Whether a krafla uses a directory.
fn is_running(data_dir: &Path) -> bool {
    data_dir.join("lock").exists() && DirectoryLock::take(data_dir).is_err()
}

fn process(data_dir: &Path) -> Option<Process> {
    let json = fs::read(data_dir.join("process")).ok()?;
    serde_json::from_slice(&json).ok()
}

/// Refuses a directory of another user: its files would decide which process is stopped.
fn trusted(data_dir: &Path) -> Result<(), Failure> {
    match data_dir::distrust(data_dir) {
        None => Ok(()),
        Some(why) => Err(Failure::usage(format!("the data directory {why}; fix: use your own --data-dir"))),
    }
}

fn not_running(data_dir: &Path) -> String {
    format!("no cluster is running in {}", data_dir.display())
}

/// Stops a cluster.
pub(crate) async fn down(args: cli::Down) -> Result<ExitCode> {
    let dir = &args.data_dir;
    trusted(dir)?;
    if !is_running(dir) {
        print(&format!("{}\n", not_running(dir)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let unknown = || {
        let fix = "stop it where it runs: with Ctrl-C, or with kill";
        Failure::Failed(format!("cannot tell which process uses {}; fix: {fix}", dir.display()))
    };
    let process = process(dir).ok_or_else(unknown)?;
    let pid = Pid::from_raw(process.pid).filter(|pid| !pid.is_init()).ok_or_else(unknown)?;
    kill_process(pid, Signal::TERM).with_context(|| format!("cannot stop process {}", process.pid))?;
    let started = Instant::now();
    while is_running(dir) {
        if started.elapsed() > args.timeout.duration {
            let fix = format!("wait longer with --timeout, or end it with `kill -9 {}`", process.pid);
            let message =
                format!("process {} has not stopped within {}; fix: {fix}", process.pid, args.timeout.given);
            return Err(Failure::TimedOut(message).into());
        }
        tokio::time::sleep(CHECKED_EVERY).await;
    }
    print(&format!("stopped the cluster in {}\n", dir.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints whether a cluster runs, and what it has.
pub(crate) async fn status(args: cli::Status) -> Result<ExitCode> {
    let dir = &args.data_dir;
    trusted(dir)?;
    let process = if is_running(dir) { process(dir) } else { None };
    let state = match &process {
        None => State { is_running: is_running(dir), ..State::default() },
        Some(process) => State { is_running: true, process: Some(process.clone()), ..answers(process).await },
    };
    match args.output {
        Some(Output::Json) => print(&format!("{:#}\n", state.to_json(dir)))?,
        None => print(&state.text(dir, Time(jiff::Timestamp::now())))?,
    }
    // A script asks by the exit code.
    let code = if state.is_running { 0 } else { Failure::Unreachable(String::new()).code() };
    std::io::stdout().flush()?;
    Ok(ExitCode::from(code))
}

/// What is known about a cluster.
#[derive(Default)]
struct State {
    is_running: bool,
    process: Option<Process>,
    server: String,
    version: Option<String>,
    /// Objects by kind.
    counts: Vec<(&'static str, usize)>,
}

/// Asks a cluster for its version and for how much it has.
async fn answers(process: &Process) -> State {
    let Ok(access) = Access::of_file(&process.kubeconfig) else { return State::default() };
    let server = access.server.to_string().trim_end_matches('/').to_owned();
    let Ok(client) = HttpsClient::new(access, Limits::default()) else { return State::default() };
    let version = tokio::time::timeout(ANSWERS_WITHIN, client.version()).await.ok().and_then(Result::ok);
    let mut counts = Vec::new();
    if version.is_some() {
        let kinds =
            [("nodes", Kind::Node), ("vcjobs", Kind::VcJob), ("jobs", Kind::Job), ("pods", Kind::Pod)];
        for (name, kind) in kinds {
            counts.extend(count(&client, kind).await.map(|n| (name, n)));
        }
    }
    State { server, version, counts, ..State::default() }
}

/// How many objects of a kind there are, without reading them all.
async fn count(client: &HttpsClient, kind: Kind) -> Option<usize> {
    let request = Request::get(format!("{}?limit=1", collection_path(kind, "")));
    let page: Value = serde_json::from_slice(&client.read(&request).await.ok()?).ok()?;
    let n_here = page.get("items").and_then(Value::as_array).map_or(0, Vec::len);
    let n_rest = page.pointer("/metadata/remainingItemCount").and_then(Value::as_u64).unwrap_or(0);
    Some(n_here.saturating_add(usize::try_from(n_rest).unwrap_or(usize::MAX)))
}

impl State {
    fn text(&self, dir: &Path, now: Time) -> String {
        let Some(process) = &self.process else {
            let fix = if self.is_running { "" } else { "; fix: start one with `krafla up --detach`" };
            let what = if self.is_running {
                format!("a cluster is starting in {}", dir.display())
            } else {
                not_running(dir)
            };
            return format!("{what}{fix}\n");
        };
        let health = match &self.version {
            Some(version) => format!("running, {version}"),
            None => "running, but the API server does not answer".to_owned(),
        };
        let counts: Vec<String> = self.counts.iter().map(|(what, n)| format!("{n} {what}")).collect();
        let lines = [
            ("cluster", health),
            ("server", self.server.clone()),
            ("process", format!("{}, since {}", process.pid, age(Some(process.started_at), now))),
            ("data", dir.display().to_string()),
            ("kubeconfig", process.kubeconfig.display().to_string()),
            ("objects", counts.join(", ")),
        ];
        lines
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("{name:12}{value}\n"))
            .collect()
    }

    fn to_json(&self, dir: &Path) -> Value {
        let counts: serde_json::Map<String, Value> =
            self.counts.iter().map(|(what, n)| ((*what).to_owned(), Value::from(*n))).collect();
        json!({
            "running": self.is_running,
            "ready": self.version.is_some(),
            "version": self.version,
            "server": Some(&self.server).filter(|server| !server.is_empty()),
            "dataDir": dir,
            "pid": self.process.as_ref().map(|process| process.pid),
            "startedAt": self.process.as_ref().map(|process| process.started_at),
            "kubeconfig": self.process.as_ref().map(|process| &process.kubeconfig),
            "objects": counts,
        })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_state_of_a_cluster_is_told_in_lines() {
        let at = |text: &str| serde_json::from_value::<Time>(json!(text)).unwrap();
        let dir = Path::new(".krafla");
        let none = State::default();
        assert_eq!(
            none.text(dir, at("2026-11-18T12:00:00Z")),
            "no cluster is running in .krafla; fix: start one with `krafla up --detach`\n"
        );
        let process = Process {
            pid: 42,
            started_at: at("2026-11-18T11:00:00Z"),
            kubeconfig: "/home/me/.krafla/kubeconfig".into(),
        };
        let state = State {
            is_running: true,
            process: Some(process),
            server: "https://127.0.0.1:6443".to_owned(),
            version: Some("v1.35.0+krafla".to_owned()),
            counts: vec![("nodes", 1), ("pods", 12)],
        };
        expect![[r#"
            cluster     running, v1.35.0+krafla
            server      https://127.0.0.1:6443
            process     42, since 60m
            data        .krafla
            kubeconfig  /home/me/.krafla/kubeconfig
            objects     1 nodes, 12 pods
        "#]]
        .assert_eq(&state.text(dir, at("2026-11-18T12:00:00Z")));
        assert_eq!(state.to_json(dir)["objects"]["pods"], 12);
    }
}
