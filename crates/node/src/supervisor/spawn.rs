//! Starts the main process of a container.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use pty_process::Pty;
use rustix::fs::{Access, access};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::protocol::Launch;
use super::stage::Sandbox;
use crate::container::CONTAINER_VARIABLE;

/// Where commands are looked for if the container's environment does not say.
const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The longest argument, or variable with its name, that a process can be started with: 32 pages, the last byte of which is not ours.
const STRING_BYTES_MAX: usize = (128 << 10) - 1;

/// A process that was just started.
pub(super) struct Spawned {
    pub(super) pid: i32,
    pub(super) streams: Streams,
}

/// Our side of what a process writes to.
pub(super) enum Streams {
    /// The reading ends of its standard output and its standard error.
    Pipes { stdout: OwnedFd, stderr: OwnedFd },
    /// The other side of its terminal.
    Terminal(Pty),
}

/// Why a container could not be started. The messages name the field of the manifest.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error(
        "command {0:?} was not found in PATH ({1}): containers run on this machine itself, so install it here, or name it by its full path"
    )]
    NotFound(String, String),
    #[error("command {0:?} does not exist: containers run on this machine itself, so install it here")]
    NoSuchFile(PathBuf),
    #[error("command {0:?} is not an executable file")]
    NotExecutable(PathBuf),
    #[error("workingDir {0:?} is not a directory of this machine: create it, or name another one")]
    NoWorkingDir(PathBuf),
    #[error("command {0:?} could not be started: {1}, and Linux takes {STRING_BYTES_MAX} at most")]
    TooLong(String, String),
    #[error("command {0:?} could not be started: {1}")]
    Failed(PathBuf, io::Error),
}

/// Starts a process in a process group of its own, with nothing inherited but what `launch` says and its
/// `place`. It reads from `stdin`, if it is not on a terminal.
///
/// The command is looked up here, not by the child: with an absolute path the standard library can use
/// `posix_spawn`, which does not copy this process, and the error can say what was looked for and where.
pub(super) fn spawn(
    launch: &Launch,
    sandbox: Option<&Sandbox>,
    place: &Path,
    stage: &[OsString],
    stdin: Option<OwnedFd>,
) -> Result<Spawned, SpawnError> {
    let mut command = match sandbox {
        None => plain(launch)?,
        Some(sandbox) => staged(launch, sandbox, stage)?,
    };
    command
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .env(CONTAINER_VARIABLE, place);
    // The program that is started may be another one, which nobody has asked for.
    let program = launch.argv.first().map(PathBuf::from).unwrap_or_default();
    let open_files = launch.open_files;
    let spawned =
        if launch.tty { on_terminal(command, open_files) } else { with_pipes(command, stdin, open_files) };
    spawned.map_err(|error| match (error.kind(), too_long(launch)) {
        (io::ErrorKind::ArgumentListTooLong, Some(what)) => {
            SpawnError::TooLong(program.display().to_string(), what)
        }
        _ => SpawnError::Failed(program, error),
    })
}

/// What of a container can not be given to any process.
fn too_long(launch: &Launch) -> Option<String> {
    let variables = launch.env.iter().map(|(name, value)| {
        // The sign between them counts too.
        (format!("variable {name:?}"), name.len().saturating_add(value.len()).saturating_add(1))
    });
    let arguments =
        launch.argv.iter().enumerate().map(|(index, argument)| (format!("argument {index}"), argument.len()));
    let mut long = variables.chain(arguments).filter(|(_, n_bytes)| *n_bytes > STRING_BYTES_MAX);
    long.next().map(|(what, n_bytes)| format!("{what} has {n_bytes} bytes"))
}

/// The child is reaped with all others, by its pid; dropping the handle does nothing to it.
fn pid_of(child: &Child) -> io::Result<i32> {
    i32::try_from(child.id()).map_err(io::Error::other)
}

fn with_pipes(mut command: Command, stdin: Option<OwnedFd>, open_files: Option<u64>) -> io::Result<Spawned> {
    // All files are opened here: with the limit of the container, this process may not be able to.
    let stdin =
        stdin.map_or_else(|| fs::File::open("/dev/null").map(Stdio::from), |stdin| Ok(stdin.into()))?;
    let ((stdout, to_stdout), (stderr, to_stderr)) = (io::pipe()?, io::pipe()?);
    command.process_group(0).stdin(stdin).stdout(to_stdout).stderr(to_stderr);
    let child = with_open_files(open_files, || command.spawn())?;
    let (stdout, stderr) = (stdout.into(), stderr.into());
    Ok(Spawned { pid: pid_of(&child)?, streams: Streams::Pipes { stdout, stderr } })
}

/// Has a process started with a limit of open files. This process raises its own, for the output of all containers. It has one
/// thread, so nothing else notices.
fn with_open_files<T>(open_files: Option<u64>, start: impl FnOnce() -> T) -> T {
    let own = getrlimit(Resource::Nofile);
    let is_set =
        open_files.is_some_and(|open_files| setrlimit(Resource::Nofile, lowered(own, open_files)).is_ok());
    let started = start();
    if is_set {
        // It was this process' own a moment ago.
        let _ = setrlimit(Resource::Nofile, own);
    }
    started
}

/// A limit whose soft part is at most so much.
pub(super) fn lowered(limit: Rlimit, soft: u64) -> Rlimit {
    let current = [limit.current, limit.maximum, Some(soft)].into_iter().flatten().min();
    Rlimit { current, ..limit }
}

/// The process is a stage, which makes the terminal its own.
fn on_terminal(mut command: Command, open_files: Option<u64>) -> io::Result<Spawned> {
    // Whether it is worth another try is told by the system's own error.
    let no_terminal = |error: pty_process::Error| match error {
        pty_process::Error::Io(error) => error,
        pty_process::Error::Rustix(error) => error.into(),
        other => io::Error::other(format!("no terminal: {other}")),
    };
    let (terminal, other_side) = pty_process::open().map_err(no_terminal)?;
    let end = || other_side.as_fd().try_clone_to_owned().map(Stdio::from);
    if !command.get_envs().any(|(name, _)| name == "TERM") {
        // What kubectl's side is, nobody says; every terminal of today understands this.
        command.env("TERM", "xterm");
    }
    command.stdin(end()?).stdout(end()?).stderr(end()?);
    let child = with_open_files(open_files, || command.spawn())?;
    Ok(Spawned { pid: pid_of(&child)?, streams: Streams::Terminal(terminal) })
}

/// A process like any other of this machine.
fn plain(launch: &Launch) -> Result<Command, SpawnError> {
    if !launch.working_dir.is_dir() {
        return Err(SpawnError::NoWorkingDir(launch.working_dir.clone()));
    }
    let (name, arguments) =
        launch.argv.split_first().map_or(("", &[][..]), |(name, rest)| (name.as_str(), rest));
    let path = launch.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
    let program = find_program(name, path, &launch.working_dir)?;
    let mut command = Command::new(program);
    command.arg0(name).args(arguments).current_dir(&launch.working_dir);
    Ok(command)
}

/// A process that first changes what it sees.
fn staged(launch: &Launch, sandbox: &Sandbox, stage: &[OsString]) -> Result<Command, SpawnError> {
    let unwritable = |error| SpawnError::Failed("stage".into(), error);
    let sandbox = serde_json::to_string(sandbox).map_err(|error| unwritable(error.into()))?;
    // Not by its path: that may be a newer version by now.
    let mut command = Command::new("/proc/self/exe");
    command.args(stage).arg("stage").arg(sandbox).args(&launch.argv);
    Ok(command)
}

/// The absolute path of a command, by the rules of a shell.
pub(crate) fn find_program(
    name: &str,
    path: Option<&str>,
    working_dir: &Path,
) -> Result<PathBuf, SpawnError> {
    if name.contains('/') {
        let path = working_dir.join(name);
        return match fs::metadata(&path) {
            Ok(_) if is_executable(&path) => Ok(path),
            Ok(_) => Err(SpawnError::NotExecutable(path)),
            Err(_) => Err(SpawnError::NoSuchFile(path)),
        };
    }
    let path = path.unwrap_or(PATH_DEFAULT);
    let candidates = path.split(':').map(|directory| working_dir.join(directory).join(name));
    let mut executables = candidates.filter(|candidate| is_executable(candidate));
    match executables.next() {
        Some(program) if !name.is_empty() => Ok(program),
        _ => Err(SpawnError::NotFound(name.to_owned(), path.to_owned())),
    }
}

fn is_executable(path: &Path) -> bool {
    access(path, Access::EXEC_OK).is_ok() && path.is_file()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failure(argv: &[&str], env: serde_json::Value, sandbox: Option<&Sandbox>) -> String {
        let launch = json!({
            "id": {"pod": "p", "name": "main", "attempt": 0}, "argv": argv, "env": env, "working_dir": "/",
            "sandbox": null, "limits": {}, "explains_by_log": false, "backoff_seconds": 0, "grace_seconds": 0,
        });
        let launch = serde_json::from_value(launch).unwrap();
        spawn(&launch, sandbox, Path::new("/place"), &[], None).err().unwrap().to_string()
    }

    #[test]
    fn what_is_too_long_for_linux_is_named() {
        let long = "x".repeat(200 << 10);
        for sandbox in [None, Some(&Sandbox::default())] {
            assert_eq!(
                failure(&["true"], json!([["SHORT", ""], ["LONG", long]]), sandbox),
                "command \"true\" could not be started: variable \"LONG\" has 204805 bytes, and Linux takes 131071 at most"
            );
            assert_eq!(
                failure(&["true", &long], json!([]), sandbox),
                "command \"true\" could not be started: argument 1 has 204800 bytes, and Linux takes 131071 at most"
            );
        }
    }
}
