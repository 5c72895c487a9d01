//! Files that no object owns any more, and that may be data: they are moved aside with a date, not deleted.
//!
//! ```text
//!   NODE/set-aside/2026-11-18T04-46-00Z/claims/NAMESPACE/NAME-UID
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How the directory is called.
const NAME: &str = "set-aside";

/// The place for files without an owner.
#[derive(Debug)]
pub(crate) struct SetAside {
    root: PathBuf,
}

impl SetAside {
    /// That of a node's directory.
    pub(crate) fn of(node: &Path) -> SetAside {
        SetAside { root: node.join(NAME) }
    }

    /// Moves a directory aside under a relative name, and returns its new place.
    pub(crate) fn take(&self, directory: &Path, name: &Path) -> io::Result<PathBuf> {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H-%M-%SZ").to_string();
        // Two of one name within a second do not replace each other.
        let places = (0_u32..).map(|n| if n == 0 { now.clone() } else { format!("{now}-{n}") });
        let mut places = places.map(|date| self.root.join(date).join(name));
        let place = places.find(|place| place.symlink_metadata().is_err()).unwrap_or_default();
        place.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::rename(directory, &place)?;
        Ok(place)
    }

    /// The newest directory that was set aside under a name.
    pub(crate) fn find(&self, name: &Path) -> Option<PathBuf> {
        let mut dates = dates(&self.root);
        dates.reverse();
        dates.into_iter().map(|date| date.join(name)).find(|place| place.is_dir())
    }
}

/// All directories of claims that were set aside in a node's directory, oldest first.
pub fn all(node: &Path) -> Vec<PathBuf> {
    let below = |path: PathBuf| {
        let mut found: Vec<_> =
            fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        found.sort();
        found
    };
    let kinds = dates(&node.join(NAME)).into_iter().flat_map(below);
    kinds.flat_map(below).flat_map(below).collect()
}

fn dates(root: &Path) -> Vec<PathBuf> {
    let mut dates: Vec<_> =
        fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    dates.sort();
    dates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_set_aside_replaces_another() {
        let node = tempfile::tempdir().unwrap();
        let place = SetAside::of(node.path());
        let (directory, name) = (node.path().join("a"), Path::new("claims/ns/a-u"));
        for text in ["one", "two"] {
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("file"), text).unwrap();
            place.take(&directory, name).unwrap();
        }
        let found = all(node.path());
        let texts: Vec<_> = found.iter().map(|path| fs::read_to_string(path.join("file")).unwrap()).collect();
        assert_eq!(texts, ["one", "two"]);
        assert_eq!(place.find(name), found.last().cloned());
        assert_eq!(place.find(Path::new("claims/ns/b-u")), None);
    }
}
