//! The directory in which a run keeps its pods' files, for as long as it lasts.
//!
//! It is locked while its run lives. One that is not locked was left by a run that was killed together with its
//! supervisor, which would have ended its containers and removed it: the next run does both.

use std::fs::{self, DirEntry, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use krafla_node::remove_tree;
use krafla_node::supervisor::end_lost;
use tempfile::TempDir;

/// How the names of all of them begin.
const PREFIX: &str = "krafla-";
/// What a run holds while it lives.
const LOCK: &str = "run.lock";
/// What the supervisor of a run holds, which may outlive the run until its containers have ended.
const SUPERVISOR_LOCK: &str = "supervisor.lock";

/// The directory of this run. It goes when this is dropped.
pub(crate) struct RunDir {
    dir: TempDir,
    _lock: File,
}

impl RunDir {
    /// Makes a directory among the temporary files of this machine, and removes those that nobody uses any more.
    pub(crate) fn make() -> Result<RunDir, String> {
        let place = std::env::temp_dir();
        let is_set = std::env::var_os("TMPDIR").is_some();
        RunDir::make_in(&place).map_err(|error| refusal(&place, is_set, &error))
    }

    /// The same in a directory.
    pub(crate) fn make_in(place: &Path) -> io::Result<RunDir> {
        remove_abandoned(place);
        // The Secrets of pods are in it.
        let nobody_else = Permissions::from_mode(0o700);
        let dir = tempfile::Builder::new().prefix(PREFIX).permissions(nobody_else).tempdir_in(place)?;
        // Under its name there is never a lock that nobody holds yet: another run could take it for abandoned.
        let in_making = dir.path().join("run.lock.new");
        let lock = File::create(&in_making)?;
        lock.lock()?;
        fs::rename(in_making, dir.path().join(LOCK))?;
        Ok(RunDir { dir, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for RunDir {
    /// A program may have left directories that only this removes. What is left then, the next run finds.
    fn drop(&mut self) {
        let _ = remove_tree(self.dir.path());
    }
}

/// That no directory can be made in a place, which was or was not named by a variable.
fn refusal(place: &Path, is_set: bool, error: &io::Error) -> String {
    let why = if place.is_dir() { error.to_string() } else { "it is not a directory".to_owned() };
    let place = place.display();
    if is_set {
        let remedy = "create it, or use another one that you may write to";
        format!("TMPDIR: cannot create files in {place} ({why}); fix: {remedy}")
    } else {
        format!(
            "cannot create files in {place} ({why}); fix: set TMPDIR to a directory that you may write to"
        )
    }
}

/// What can not be looked at or removed is left for another time: this run does not depend on it.
fn remove_abandoned(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if is_of_a_run(&entry)
            && let Some(_held) = abandoned(&entry.path())
        {
            // Without the directory nobody would find them any more.
            end_lost(&entry.path());
            let _ = remove_tree(&entry.path());
        }
    }
}

/// Whether this is a directory, no link to one, that this user's runs may have made.
fn is_of_a_run(entry: &DirEntry) -> bool {
    let is_ours =
        |metadata: fs::Metadata| metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
    entry.file_name().to_string_lossy().starts_with(PREFIX) && entry.metadata().is_ok_and(is_ours)
}

/// The locks of a directory, if nobody else holds one of them.
fn abandoned(dir: &Path) -> Option<(File, Option<File>)> {
    let run = File::open(dir.join(LOCK)).ok()?;
    run.try_lock().ok()?;
    match File::open(dir.join(SUPERVISOR_LOCK)) {
        Ok(supervisor) => supervisor.try_lock().ok().map(|()| (run, Some(supervisor))),
        // It was killed before there was a supervisor.
        Err(error) => (error.kind() == io::ErrorKind::NotFound).then_some((run, None)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn containers_that_a_run_left_are_ended() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("krafla-killed");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join(LOCK), "").unwrap();
        let container = dir.canonicalize().unwrap().join("pods/uid/main.0");
        let mut command = Command::new("sh");
        // It says so itself and becomes no other program: while one is started, its environment can not be read.
        command.args(["-c", "echo up; read answer"]).env("KRAFLA_CONTAINER", container);
        let mut left = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        left.stdout.as_mut().unwrap().read_exact(&mut [0; 3]).unwrap();

        RunDir::make_in(place.path()).unwrap();
        assert_eq!(left.wait().unwrap().signal(), Some(9));
        assert!(!dir.exists());
    }

    #[test]
    fn what_runs_left_is_removed_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let make = |name: &str, files: &[&str]| {
            fs::create_dir(path(name)).unwrap();
            files.iter().for_each(|file| fs::write(path(name).join(file), "").unwrap());
        };
        make("krafla-killed", &[LOCK, SUPERVISOR_LOCK, "records"]);
        make("krafla-killed-early", &[LOCK]);
        make("krafla-in-the-making", &["run.lock.new"]);
        make("krafla-ending", &[LOCK, SUPERVISOR_LOCK]);
        make("krafla-of-somebody-else", &["notes"]);
        make("other", &[LOCK]);
        std::os::unix::fs::symlink(path("other"), path("krafla-link")).unwrap();
        let supervisor = File::open(path("krafla-ending").join(SUPERVISOR_LOCK)).unwrap();
        supervisor.lock().unwrap();
        let alive = RunDir::make_in(place.path()).unwrap();

        let next = RunDir::make_in(place.path()).unwrap();
        let left = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut left: Vec<_> = left.filter(|dir| ![alive.path(), next.path()].contains(&&**dir)).collect();
        left.sort();
        let kept =
            ["krafla-ending", "krafla-in-the-making", "krafla-link", "krafla-of-somebody-else", "other"];
        assert_eq!(left, kept.map(path));
        assert!(alive.path().exists() && next.path().exists());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(next.path()), 0o700, "others cannot read what is in it");
    }
}
