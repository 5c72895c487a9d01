//! Removes directories that others have filled.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use krafla_api::Uid;

use crate::container::is_file_name;

/// What the owner of a directory needs to empty it.
const OWNER_ALL: u32 = 0o700;

/// Removes a directory with all that is in it. Nobody but root can empty one that may not be written to, and programs make such directories
/// (Go's module cache is full of them): these are made writable first.
pub fn remove_tree(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(directory);
            fs::remove_dir_all(directory)
        }
        removed => removed,
    }
}

/// What can not be made writable is somebody else's. Whoever removes it is told.
fn make_writable(directory: &Path) {
    // What a link leads to is not in here.
    let Some(found) = fs::symlink_metadata(directory).ok().filter(fs::Metadata::is_dir) else { return };
    let mode = found.permissions().mode() | OWNER_ALL;
    let _ = fs::set_permissions(directory, fs::Permissions::from_mode(mode));
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.for_each(|entry| make_writable(&entry.path()));
}

/// The directory of a pod's volumes in memory; none if this machine has no such place.
pub(crate) fn memory_of(pod: &Uid) -> Option<PathBuf> {
    const SHARED_MEMORY: &str = "/dev/shm";
    let shared = Path::new(SHARED_MEMORY);
    (is_file_name(&pod.0) && shared.is_dir()).then(|| shared.join(format!("krafla-{pod}")))
}

/// Removes a pod's volumes in memory.
pub(crate) fn remove_memory_of(pod: &Uid) {
    // Most pods have none.
    let _ = memory_of(pod).map(|directory| remove_tree(&directory));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_that_may_not_be_written_to_are_removed_and_what_links_lead_to_is_not_touched() {
        let root = tempfile::tempdir().unwrap();
        let (tree, outside) = (root.path().join("tree"), root.path().join("outside"));
        let deep = tree.join("deep/deeper");
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(deep.join("file"), "").unwrap();
        std::os::unix::fs::symlink(&outside, deep.join("link")).unwrap();
        for directory in [&deep, &tree.join("deep"), &outside] {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o555)).unwrap();
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        // Root needs none of this to remove them.
        make_writable(&tree);
        assert_eq!([mode(&deep), mode(&tree.join("deep")), mode(&outside)], [0o755, 0o755, 0o555]);

        fs::set_permissions(&deep, fs::Permissions::from_mode(0o555)).unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists() && outside.exists());
        assert_eq!(remove_tree(&tree).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
