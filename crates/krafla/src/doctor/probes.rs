//! Checks of the machine. They leave nothing behind.

use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use krafla_node::supervisor::cgroup;
use rustix::fs::statvfs;
use rustix::process::{Resource, getrlimit};

use super::Finding;
use crate::data_dir;

/// How many directories are named before the others are only counted.
const NAMED_MAX: usize = 5;

/// What each container needs: two pipes and a log file.
const FILES_PER_POD: u64 = 3;
/// As many pods as a node takes by default.
const PODS_WANTED: u64 = 1000;
/// Below this a write that must be durable holds up everything.
const SYNC_MAX: Duration = Duration::from_millis(20);
/// Below this logs may soon have no room.
const SPACE_WANTED: u64 = 1 << 30;
/// Below this the cluster's own state may have no room.
const SPACE_NEEDED: u64 = 32 << 20;

/// Everything that is looked at, in the order in which it is told.
pub(super) fn all(data_dir: &Path) -> Vec<Finding> {
    // What is not there yet will be made where its nearest ancestor is.
    let place = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned());
    let place = place.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/")).to_owned();
    let mut found = vec![
        data_directory(data_dir, &place),
        room(&place),
        own_view(),
        limits(),
        addresses(),
        open_files(),
        processes(),
        free_space(&place),
        sync_time(&place),
    ];
    found.extend(no_space(data_dir));
    found.extend(set_aside(data_dir));
    found
}

/// Whether a store has given its reserve free, which it does when its disk is full.
fn no_space(data_dir: &Path) -> Option<Finding> {
    let is_there = |name: &str| data_dir.join(name).exists();
    let is_full = is_there("store.head") && !is_there("reserve");
    is_full.then(|| {
        let meaning =
            "NOSPACE: the disk was full, and the store accepts only deletes until there is space again";
        Finding::missing("store", meaning, "free some space, or delete objects with kubectl")
    })
}

/// Files that no object owns any more, and that krafla does not delete.
fn set_aside(data_dir: &Path) -> Option<Finding> {
    let found = data_dir::set_aside(data_dir);
    let named: Vec<_> = found.iter().take(NAMED_MAX).map(|path| path.display().to_string()).collect();
    if named.is_empty() {
        return None;
    }
    let more = found.len().saturating_sub(named.len());
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let meaning = format!("no PersistentVolumeClaim owns {}{more}", named.join(", "));
    let remedy = "copy what you need, then delete the directories".to_owned();
    Some(Finding { remedy, ..Finding::ok("files set aside", meaning) })
}

/// What a gang waits for if it asks for more.
fn room(place: &Path) -> Finding {
    let capacity = krafla_node::capacity(0, place);
    let of = |resource: &str| capacity.get(resource).map(ToString::to_string).unwrap_or_default();
    let meaning = format!(
        "all pods together may request {} cpu and {} of memory; a job that requests more waits and reports it",
        of("cpu"),
        of("memory")
    );
    Finding::ok("processors and memory", meaning)
}

fn data_directory(data_dir: &Path, place: &Path) -> Finding {
    let what = "data directory";
    let shown = data_dir.display();
    if let Some(why) = data_dir::distrust(data_dir) {
        return Finding::missing(what, why, "use another --data-dir, or use chown and chmod");
    }
    if let Err(error) = trial_directory(place) {
        let meaning = format!("cannot write to {shown}: {error}");
        return Finding::missing(what, meaning, "use another --data-dir, or change its permissions");
    }
    if !data_dir.is_dir() {
        return Finding::ok(what, format!("{shown} does not exist yet; krafla up creates it"));
    }
    Finding::ok(what, format!("{shown} can be written to"))
}

/// A directory to try things in, which goes when it is dropped.
fn trial_directory(place: &Path) -> std::io::Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix(".krafla-doctor-").tempdir_in(place)
}

/// Whether containers can have a view of the file system of their own: tried by this program itself.
fn own_view() -> Finding {
    let what = "mounts and host names";
    let tried = (|| {
        let scratch = tempfile::tempdir()?;
        let program = std::env::current_exe()?;
        let mut check = Command::new(program);
        check.args(["supervise", "check"]).arg(scratch.path()).stdin(Stdio::null()).output()
    })();
    let why = match tried {
        Ok(output) if output.status.success() => {
            return Finding::ok(
                what,
                "volumes are mounted at their mountPath, and pods resolve their peers by name",
            );
        }
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Finding::limited(
        what,
        format!(
            "volumes are only at $KRAFLA_VOLUME_NAME, and pods do not resolve their peers by name: {why}"
        ),
        "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), or run krafla as root",
    )
}

/// Whether containers can be held to limits: tried as the supervisor does it.
fn limits() -> Finding {
    let what = "limits of cpu and memory";
    let tried = tempfile::tempdir().map_err(anyhow::Error::from);
    let tried = tried.and_then(|scratch| cgroup::try_out(scratch.path(), &["supervise".into()]));
    match tried {
        Ok(()) => Finding::ok(what, "enforced"),
        Err(why) => {
            let remedy = if cgroup::is_offered() { WANT_DELEGATION } else { WANT_VERSION_2 };
            Finding::limited(what, format!("not enforced: {why:#}"), remedy)
        }
    }
}

/// What to do where the whole tree is of the older kind, or both kinds share it: then the older one has the limits.
const WANT_VERSION_2: &str = "boot with cgroup v2 only: systemd.unified_cgroup_hierarchy=1";
const WANT_DELEGATION: &str = "start krafla with `systemd-run --user --scope -p Delegate=yes`, or as root";

fn addresses() -> Finding {
    let what = "pod addresses";
    match TcpListener::bind("127.64.0.1:0") {
        Ok(_) => Finding::ok(what, "each pod has its own, in 127.64.0.0/10"),
        Err(error) => Finding::limited(
            what,
            format!("pods cannot have their own addresses: 127.64.0.1: {error}"),
            "ip address add 127.0.0.1/8 dev lo",
        ),
    }
}

fn open_files() -> Finding {
    let what = "open files";
    let n_pods = getrlimit(Resource::Nofile).maximum.map_or(u64::MAX, |max| max / FILES_PER_POD);
    if n_pods >= PODS_WANTED {
        return Finding::ok(what, "enough for all pods that a node takes");
    }
    Finding::limited(
        what,
        format!("enough for about {n_pods} pods at once"),
        format!("raise the hard limit: ulimit -Hn {}", PODS_WANTED.saturating_mul(FILES_PER_POD + 1)),
    )
}

fn processes() -> Finding {
    let what = "processes";
    let max = getrlimit(Resource::Nproc).maximum.unwrap_or(u64::MAX);
    if max >= PODS_WANTED.saturating_mul(2) {
        return Finding::ok(what, "enough for all pods that a node takes");
    }
    Finding::limited(
        what,
        format!("this user may have {max} at once, and each pod needs at least one"),
        format!("raise the limit: ulimit -u {}", PODS_WANTED.saturating_mul(4)),
    )
}

fn free_space(place: &Path) -> Finding {
    let what = "free space";
    let free = match statvfs(place) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Err(error) => return Finding::limited(what, format!("unknown: {error}"), "check with df"),
    };
    let meaning = format!("{} MiB for state, logs and volumes", free >> 20);
    match free {
        SPACE_WANTED.. => Finding::ok(what, meaning),
        SPACE_NEEDED.. => Finding::limited(what, meaning, "free some space, or use another --data-dir"),
        _ => Finding::missing(what, meaning, "free some space, or use another --data-dir"),
    }
}

/// How long it takes until a write is on disk: every change of an object waits for that.
fn sync_time(place: &Path) -> Finding {
    let what = "disk";
    let tried = (|| {
        let dir = trial_directory(place)?;
        let mut file = File::create(dir.path().join("trial"))?;
        let mut times = Vec::new();
        for _ in 0..9 {
            let begin = Instant::now();
            file.write_all(&[0; 4096])?;
            file.sync_data()?;
            times.push(begin.elapsed());
        }
        times.sort_unstable();
        Ok::<_, std::io::Error>(times.get(times.len() / 2).copied().unwrap_or_default())
    })();
    match tried {
        Ok(time) => {
            let meaning = format!("a write is on disk after {:.1} ms", time.as_secs_f64() * 1e3);
            if time <= SYNC_MAX {
                return Finding::ok(what, meaning);
            }
            let remedy = "put --data-dir on a faster disk, or use krafla up --in-memory";
            Finding::limited(what, format!("{meaning}, so jobs start slowly"), remedy)
        }
        Err(error) => Finding::limited(what, format!("cannot measure: {error}"), "use another --data-dir"),
    }
}
