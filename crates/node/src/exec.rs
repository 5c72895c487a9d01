//! Runs a command beside a container's own: for `kubectl exec`, probes and hooks.
//!
//! The command sees what the container sees: its environment, its working directory, its volumes and its peers'
//! names. It is a child of this process, not of the supervisor: somebody waits for its answer, and when nobody
//! does any more it is killed, with everything that it has started. If this process is killed itself, the supervisor does that: it knows
//! the command by its mark.

mod beside;
mod terminal;

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use krafla_api::Key;
use krafla_cluster::ExecOptions;
use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::process::Command;

use beside::Running;
pub(crate) use beside::{Beside, Marking};

use crate::agent::{Context, Node, ended};
use crate::container::{CONTAINER_VARIABLE, ContainerId, Record};
use crate::supervisor::protocol::Surroundings;
use crate::supervisor::spawn::find_program;
use crate::supervisor::stage::{LIMITED, Sandbox, UNLIMITED};

/// How much output is passed on at once.
const CHUNK_BYTES: usize = 32 << 10;

/// A command that runs. Dropping `end` kills it.
pub struct Session {
    /// Where its standard input is written to, if it was asked for. Dropping it closes it.
    pub stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// What it writes, until it and all that it started have closed their ends.
    pub output: BoxStream<'static, Output>,
    /// Changes the size of its terminal, if it has one: columns and rows.
    pub resize: Option<Box<dyn Fn(u16, u16) + Send + Sync>>,
    /// Its exit code, or what went wrong.
    pub end: BoxFuture<'static, Result<i32, String>>,
}

/// Something that a command wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// To its standard output.
    Stdout(Bytes),
    /// To its standard error.
    Stderr(Bytes),
}

/// Why a command was not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// No such pod runs here.
    #[error("pods {0:?} not found")]
    NoPod(String),
    /// It has not started yet, or has ended.
    #[error("container {container:?} of pod {pod:?} does not run: it has not started yet, or has ended")]
    NotRunning {
        /// The pod's name.
        pod: String,
        /// The container's name.
        container: String,
    },
    /// It could not be started.
    #[error("{0}")]
    NotStarted(String),
}

impl Node {
    /// Runs a command where a container runs. It ends with the container at the latest.
    pub async fn exec(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        options: ExecOptions,
    ) -> Result<Session, ExecError> {
        let view = self.find(&Key::new(namespace, pod)).ok_or_else(|| ExecError::NoPod(pod.to_owned()))?;
        let running = view.attempts.latest(container).filter(|record| record.is_running());
        let id = running
            .map(|record| record.id.clone())
            .ok_or_else(|| ExecError::NotRunning { pod: pod.to_owned(), container: container.to_owned() })?;
        let context = Context::of(self.shared.clone(), &view);
        let prepared = prepare(&context, &id, &options.command).await.map_err(ExecError::NotStarted)?;
        let started = if options.tty { prepared.start_on_terminal() } else { prepared.start(options.stdin) };
        let mut session = started.map_err(ExecError::NotStarted)?;
        let (end, shared) = (session.end, self.shared.clone());
        session.end = Box::pin(async move {
            tokio::select! {
                end = end => end,
                () = ended(&shared, &id) => Err(format!("container {:?} has ended", id.name)),
            }
        });
        Ok(session)
    }
}

/// A command with all that it needs.
pub(crate) struct Prepared {
    /// As it was written.
    name: String,
    program: PathBuf,
    arguments: Vec<OsString>,
    env: Vec<(String, OsString)>,
    /// Where it is started, which is where it runs unless a way leads there.
    start_dir: PathBuf,
    beside: Arc<Beside>,
}

/// Finds out how to run a command where a container runs. An error says what is wrong, for people.
pub(crate) async fn prepare(
    context: &Context,
    id: &ContainerId,
    command: &[String],
) -> Result<Prepared, String> {
    let seen = context.surroundings(id).await.map_err(|problem| problem.message)?;
    let (name, arguments) = command.split_first().ok_or("it names no command")?;
    let path = seen.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
    // A container that sees what this process sees finds the same program.
    let program = match &seen.sandbox {
        Some(_) => PathBuf::from(name),
        None => find_program(name, path, &seen.working_dir).map_err(|error| error.to_string())?,
    };
    let (program, arguments, start_dir) = match way_to(context, id, &seen)? {
        None => (program, arguments.iter().map(OsString::from).collect(), seen.working_dir.clone()),
        Some((program, mut way)) => {
            way.extend(command.iter().map(OsString::from));
            // The way leads to the working directory: it may be in a volume, and the machine itself need not have it.
            (program, way, PathBuf::from("/"))
        }
    };
    // By its own name, as the supervisor knows it.
    let pods = context.shared.config.pods();
    let place = id.place(&pods.canonicalize().unwrap_or(pods));
    let own = (CONTAINER_VARIABLE.to_owned(), place.into_os_string());
    let env = seen.env.iter().map(|(name, value)| (name.clone(), value.into())).chain([own]);
    let beside = context.shared.beside.clone();
    Ok(Prepared { name: name.clone(), program, arguments, env: env.collect(), start_dir, beside })
}

/// The program and arguments that run a command where a container is held to limits, or sees what the rest of the machine does not; none if
/// it does neither. This process may have more files open than a container may, so its children are held to that limit, too.
fn way_to(
    context: &Context,
    id: &ContainerId,
    seen: &Surroundings,
) -> Result<Option<(PathBuf, Vec<OsString>)>, String> {
    let view = context.shared.pods.view(&id.pod);
    let record = view.as_ref().and_then(|view| view.attempts.get(&id.name, id.attempt));
    let is_raised =
        |of_containers: &u64| getrlimit(Resource::Nofile).current.is_none_or(|own| own > *of_containers);
    let open_files = context.shared.config.open_files.filter(is_raised);
    let Some(way) = way(record, seen, open_files)? else { return Ok(None) };
    let (program, own) = context.shared.config.supervisor.split_first().ok_or("there is no supervisor")?;
    Ok(Some((program.into(), [own.to_vec(), way].concat())))
}

/// A container without a process has no place that could be entered: its command gets the same view made anew.
fn way(
    record: Option<&Record>,
    seen: &Surroundings,
    open_files: Option<u64>,
) -> Result<Option<Vec<OsString>>, String> {
    // Only where its limits can be kept is there something that keeps them.
    let is_limited = seen.is_limited && record.is_some_and(|record| !record.is_unlimited);
    let limits = if is_limited { LIMITED } else { UNLIMITED };
    Ok(match (record.and_then(|record| record.pid), &seen.sandbox) {
        (Some(pid), sandbox) if sandbox.is_some() || is_limited || open_files.is_some() => {
            let working_dir = seen.working_dir.clone().into();
            Some(vec!["enter".into(), pid.to_string().into(), limits.into(), working_dir])
        }
        (None, sandbox) if sandbox.is_some() || open_files.is_some() => {
            let plain = || Sandbox { working_dir: seen.working_dir.clone(), ..Sandbox::default() };
            let sandbox = Sandbox { open_files, ..sandbox.clone().unwrap_or_else(plain) };
            let sandbox = serde_json::to_string(&sandbox).map_err(|error| error.to_string())?;
            Some(vec!["view".into(), sandbox.into()])
        }
        (Some(_) | None, _) => None,
    })
}

impl Prepared {
    /// The command, in a process group of its own, with its streams still to be chosen.
    pub(crate) fn command(&self) -> Marking {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.start_dir)
            .process_group(0);
        Marking { command, beside: self.beside.clone() }
    }

    pub(crate) fn not_started(&self, error: &std::io::Error) -> String {
        format!("command {:?} could not be started: {error}", self.name)
    }

    /// Starts the command with pipes.
    fn start(&self, has_stdin: bool) -> Result<Session, String> {
        let stdin = if has_stdin { Stdio::piped() } else { Stdio::null() };
        let mut command = self.command();
        let spawned = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| self.not_started(&error))?;
        let stdin = child.stdin.take().map(|stdin| -> Box<dyn AsyncWrite + Send + Unpin> { Box::new(stdin) });
        let stdout = chunks(child.stdout.take()).map(Output::Stdout);
        let stderr = chunks(child.stderr.take()).map(Output::Stderr);
        let output = stream::select(stdout, stderr).boxed();
        Ok(Session { stdin, output, resize: None, end: end_of(child) })
    }
}

/// What can be read, piece by piece. A terminal whose other side is gone can not be read: that is its end.
fn chunks(source: Option<impl AsyncRead + Send + Unpin + 'static>) -> BoxStream<'static, Bytes> {
    let next = async |mut source| {
        let mut chunk = BytesMut::with_capacity(CHUNK_BYTES);
        match AsyncReadExt::read_buf(&mut source, &mut chunk).await {
            Ok(0) | Err(_) => None,
            Ok(_) => Some((chunk.freeze(), source)),
        }
    };
    stream::iter(source).flat_map(move |source| stream::unfold(source, next).boxed()).boxed()
}

/// Waits for the end of a command, and ends what it leaves behind.
fn end_of(mut child: Running) -> BoxFuture<'static, Result<i32, String>> {
    let group = GroupGuard::of(&child);
    Box::pin(async move {
        let status = child.wait().await.map_err(|error| error.to_string())?;
        drop(group);
        Ok(status.code().or_else(|| Some(status.signal()?.saturating_add(128))).unwrap_or(1))
    })
}

/// Kills a command when no task waits for it any more, with all that it has started.
pub(crate) struct GroupGuard(Option<Pid>);

impl GroupGuard {
    pub(crate) fn of(child: &Running) -> GroupGuard {
        GroupGuard(child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)))
    }
}

impl Drop for GroupGuard {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It is gone already, unless it took too long or left something behind.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_container_whose_limits_are_kept_or_that_has_a_view_of_its_own_is_entered() {
        let sandbox =
            json!({"mounts": [], "hostname": "", "working_dir": "/w", "workdir": "/", "scratch": "/s"});
        let way_to =
            |record: serde_json::Value, is_limited: bool, has_view: bool, open_files: Option<u64>| {
                let record: Record = serde_json::from_value(record).unwrap();
                let sandbox = has_view.then(|| serde_json::from_value(sandbox.clone()).unwrap());
                let seen = Surroundings { env: Vec::new(), working_dir: "/w".into(), sandbox, is_limited };
                let way = way(Some(&record), &seen, open_files).unwrap().unwrap_or_default();
                way.iter().take(4).map(|part| part.to_string_lossy()).collect::<Vec<_>>().join(" ")
            };
        let runs = json!({"pod": "p", "name": "main", "attempt": 0, "pid": 7});
        let runs_unlimited =
            json!({"pod": "p", "name": "main", "attempt": 0, "pid": 7, "is_unlimited": true});
        let pause = json!({"pod": "p", "name": "main", "attempt": 0});
        assert_eq!(way_to(runs.clone(), false, false, None), "");
        assert_eq!(way_to(runs.clone(), true, false, None), "enter 7 limited /w");
        assert_eq!(way_to(runs.clone(), true, true, None), "enter 7 limited /w");
        assert_eq!(way_to(runs.clone(), false, true, None), "enter 7 unlimited /w");
        assert_eq!(
            way_to(runs, false, false, Some(9)),
            "enter 7 unlimited /w",
            "this process may open more files"
        );
        assert_eq!(way_to(runs_unlimited.clone(), true, true, None), "enter 7 unlimited /w");
        assert_eq!(way_to(runs_unlimited, true, false, None), "");
        assert_eq!(way_to(pause.clone(), false, false, None), "");
        assert!(way_to(pause.clone(), false, true, None).starts_with("view {"));
        assert!(way_to(pause, false, false, Some(9)).contains(r#""open_files":9"#));
    }
}
