//! The data directory: whose it is, and which cluster its node's files belong to.
//!
//! ```text
//!   DIR/store.redb, store.head   the cluster's objects, and what was acknowledged last
//!   DIR/lock                     held by the one krafla that uses the directory
//!   DIR/node/cluster             the cluster whose pods and claims have their files in DIR/node
//! ```

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use krafla_apiserver::http::write_private;
use krafla_apiserver::store::Store;

use crate::cluster::absolute;
use crate::run::BadInput;

/// What of a directory decides over a cluster.
const PARTS: [&str; 7] =
    ["kubeconfig", "store.redb", "store.head", "lock", "ca.key", "node", "node/supervisor.sock"];

/// Makes a directory that other users cannot look into: Secrets will be in it.
pub(crate) fn make_private(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Makes the data directory, or takes one that exists, if it is this user's alone.
pub(crate) fn prepare(dir: &Path) -> Result<()> {
    // In a directory that is gone nothing can be made; that has a message of its own.
    absolute(dir)?;
    if let Some(why) = distrust(dir) {
        let remedy = "use another --data-dir, or change the owner and the permissions with chown and chmod";
        return Err(BadInput(anyhow!("the data directory {why}; {remedy}")).into());
    }
    make_private(dir).with_context(|| format!("cannot create the data directory {}", dir.display()))?;
    // Earlier versions left the permissions of an existing directory as they were. One that holds other things stays as it is.
    if dir.join("store.redb").exists() || fs::read_dir(dir).is_ok_and(|mut found| found.next().is_none()) {
        let closed = fs::set_permissions(dir, Permissions::from_mode(0o700));
        closed.with_context(|| format!("cannot set the permissions of {}", dir.display()))?;
    }
    Ok(())
}

/// Why the cluster of a directory is not to be trusted: another user could read or change what happens there. None if the directory
/// does not exist.
pub(crate) fn distrust(dir: &Path) -> Option<String> {
    let user = rustix::process::geteuid().as_raw();
    let parts = PARTS.iter().map(|part| dir.join(part));
    // What is in a directory that others cannot enter, they cannot write to.
    let is_entered = dir.metadata().is_ok_and(|found| found.mode() & 0o011 != 0);
    std::iter::once(dir.to_owned()).chain(parts).find_map(|path| {
        // A link is as good as the user who made it, and as what it leads to.
        let found = [path.symlink_metadata(), path.metadata()].into_iter().flatten();
        let why = found.filter_map(|found| suspicion(&found, user, is_entered || path == dir)).next()?;
        Some(format!("{}: {} {why}", dir.display(), path.display()))
    })
}

/// What is suspicious about a file for a user, if others can get at it.
fn suspicion(found: &Metadata, user: u32, is_within_reach: bool) -> Option<String> {
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    if found.uid() != user {
        return Some(format!("belongs to user {}, and you are user {user}", found.uid()));
    }
    // The socket is in a directory that others cannot enter.
    let has_mode = !found.is_symlink() && !found.file_type().is_socket();
    let is_open = is_within_reach && has_mode && found.mode() & WRITABLE_BY_OTHERS != 0;
    is_open.then(|| format!("can be written by other users (mode {:o})", found.mode() & 0o7777))
}

/// The file that names the cluster of a node's directory.
const MARK: &str = "cluster";

/// Takes a node's directory for the cluster of a store. One that belongs to another cluster is refused: its pods would be ended as unknown,
/// and the files of its claims belong to no claim of this cluster.
pub(crate) fn claim_node_dir(node_dir: &Path, store: &Store) -> Result<()> {
    let Some(cluster) = store.cluster() else { return Ok(()) };
    let mark = node_dir.join(MARK);
    let owner = match fs::read_to_string(&mark) {
        Ok(owner) => Some(owner.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", mark.display())),
    };
    let is_empty = || fs::read_dir(node_dir).map_or(true, |mut found| found.next().is_none());
    match owner {
        Some(owner) if owner == *cluster.0 => return Ok(()),
        Some(owner) => return Err(foreign(node_dir, &format!("cluster {owner}"), cluster)),
        // Directories of earlier versions have no name. A store that was never written to has no pods or claims.
        None if store.is_new() && !is_empty() => {
            return Err(foreign(node_dir, "another cluster without an id", cluster));
        }
        None => {}
    }
    make_private(node_dir).with_context(|| format!("cannot create {}", node_dir.display()))?;
    write_private(&mark, &format!("{cluster}\n")).with_context(|| format!("cannot write {}", mark.display()))
}

fn foreign(node_dir: &Path, owner: &str, cluster: &krafla_api::Uid) -> anyhow::Error {
    let dir = node_dir.display();
    let remedy = format!(
        "restore the store of that cluster, or move {dir} away to start without its pods and volumes, or use another --data-dir"
    );
    BadInput(anyhow!(
        "{dir} holds pods and volumes of {owner}, but the store belongs to cluster {cluster}; nothing was changed; {remedy}"
    ))
    .into()
}

/// Directories of claims that no object owns any more, below a data directory.
pub(crate) fn set_aside(data_dir: &Path) -> Vec<PathBuf> {
    krafla_node::set_aside::all(&data_dir.join("node"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store_in(dir: &Path) -> Store {
        Store::open(dir).unwrap()
    }

    fn message(outcome: Result<()>, dir: &Path) -> String {
        let text = format!("{:#}", outcome.unwrap_err());
        text.replace(&dir.display().to_string(), "DIR")
    }

    #[test]
    fn the_files_of_a_node_belong_to_one_cluster() {
        let dir = tempfile::tempdir().unwrap();
        let node = dir.path().join("node");
        let first = store_in(&dir.path().join("first"));
        claim_node_dir(&node, &first).unwrap();
        claim_node_dir(&node, &first).unwrap();
        let mark = fs::read_to_string(node.join(MARK)).unwrap();

        let second = store_in(&dir.path().join("second"));
        assert_ne!(first.cluster(), second.cluster());
        let said = message(claim_node_dir(&node, &second), dir.path());
        let named = |store: &Store| store.cluster().unwrap().to_string();
        assert_eq!(
            said,
            format!(
                "DIR/node holds pods and volumes of cluster {}, but the store belongs to cluster {}; nothing was changed; restore \
                 the store of that cluster, or move DIR/node away to start without its pods and volumes, or use another --data-dir",
                named(&first),
                named(&second)
            )
        );
        assert_eq!(fs::read_to_string(node.join(MARK)).unwrap(), mark);

        let id = named(&first);
        drop(first);
        assert_eq!(named(&store_in(&dir.path().join("first"))), id, "it keeps its name");
    }

    #[test]
    fn files_of_an_earlier_version_are_kept_from_a_new_store() {
        let dir = tempfile::tempdir().unwrap();
        let node = dir.path().join("node");
        fs::create_dir_all(node.join("claims/default/data-u")).unwrap();
        let store = store_in(dir.path());
        let said = message(claim_node_dir(&node, &store), dir.path());
        assert!(said.contains("DIR/node holds pods and volumes of another cluster"), "{said}");
        assert!(!node.join(MARK).exists());
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        assert_eq!(distrust(&data), None);
        prepare(&data).unwrap();
        assert_eq!(distrust(&data), None);
        fs::write(data.join("kubeconfig"), "").unwrap();
        fs::set_permissions(data.join("kubeconfig"), Permissions::from_mode(0o662)).unwrap();
        assert_eq!(distrust(&data), None, "others cannot enter the directory");
        fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
        let why = distrust(&data).unwrap().replace(&dir.path().display().to_string(), "DIR");
        assert_eq!(why, "DIR/data: DIR/data/kubeconfig can be written by other users (mode 662)");
        fs::set_permissions(data.join("kubeconfig"), Permissions::from_mode(0o600)).unwrap();
        assert_eq!(distrust(&data), None);
        fs::set_permissions(&data, Permissions::from_mode(0o777)).unwrap();
        assert!(message(prepare(&data), dir.path()).contains("can be written by other users (mode 777)"));
    }

    #[test]
    fn a_directory_of_another_user_is_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let found = dir.path().metadata().unwrap();
        let user = found.uid();
        assert_eq!(suspicion(&found, user, true), None);
        let other = user.wrapping_add(1);
        let why = format!("belongs to user {user}, and you are user {other}");
        assert_eq!(suspicion(&found, other, false), Some(why));
    }
}
