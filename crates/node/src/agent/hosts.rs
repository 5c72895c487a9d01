//! The names by which pods find each other: one hosts file for all pods of a subdomain.
//!
//! On a cluster a pod with a host name and a subdomain is found as `<hostname>.<subdomain>` by every pod of
//! its namespace. Here the same names stand in a file that is mounted over `/etc/hosts` in the pods of that
//! subdomain. It is rewritten in its place when pods come and go, so that all of them see it at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::pods::Pods;
use crate::container::is_file_name;
use crate::pod::Pod;

/// Pods that know each other: namespace and subdomain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    namespace: String,
    subdomain: String,
}

impl Group {
    /// The group of a pod; none if it does not ask to be found.
    pub(crate) fn of(pod: &Pod) -> Option<Group> {
        let (namespace, subdomain) = (pod.metadata.namespace.clone(), pod.spec.subdomain.clone());
        let is_named = is_file_name(&namespace) && is_file_name(&subdomain);
        is_named.then_some(Group { namespace, subdomain })
    }

    /// The name of its file. Neither part may contain a slash, and a namespace contains no dot.
    fn file(&self) -> String {
        format!("{}.{}", self.namespace, self.subdomain)
    }

    fn of_file(name: &str) -> Option<Group> {
        let (namespace, subdomain) = name.split_once('.')?;
        Some(Group { namespace: namespace.to_owned(), subdomain: subdomain.to_owned() })
    }
}

/// The hosts files.
pub(crate) struct Hosts {
    directory: PathBuf,
    /// The names that stand in each file. Locked while a file is written, so that the newest content is the
    /// last written.
    written: Mutex<BTreeMap<Group, BTreeSet<String>>>,
    changed: Mutex<BTreeSet<Group>>,
    news: Notify,
}

impl Hosts {
    pub(crate) fn new(directory: PathBuf) -> Hosts {
        Hosts { directory, written: Mutex::default(), changed: Mutex::default(), news: Notify::new() }
    }

    /// A pod has come or gone.
    pub(crate) fn changed(&self, pod: &Pod) {
        if let Some(group) = Group::of(pod) {
            self.changed.lock().insert(group);
            self.news.notify_one();
        }
    }

    /// Keeps the files up to date, until the future is dropped. Pods that come together are written together.
    pub(crate) async fn run(&self, pods: &Pods) {
        loop {
            self.news.notified().await;
            let changed = std::mem::take(&mut *self.changed.lock());
            for group in changed {
                if let Err(error) = self.write(&group, pods) {
                    tracing::warn!(?group, %error, "the hosts file can not be written");
                }
            }
        }
    }

    /// Removes the files of groups of which there are no pods: the last one went while no node was running.
    pub(crate) fn remove_orphans(&self, pods: &Pods) {
        let files = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let names = files.filter_map(|file| file.file_name().into_string().ok());
        for group in names.filter_map(|name| Group::of_file(&name)) {
            if pods.peers(&group).is_empty()
                && let Err(error) = self.write(&group, pods)
            {
                tracing::warn!(?group, %error, "the hosts file of pods that are no more can not be removed");
            }
        }
    }

    /// The file of a pod that is about to start, in which it stands itself.
    pub(crate) fn file_of(&self, pod: &Pod, pods: &Pods) -> io::Result<Option<PathBuf>> {
        let Some(group) = Group::of(pod) else { return Ok(None) };
        let is_in = self.written.lock().get(&group).is_some_and(|names| names.contains(pod.hostname()));
        if !is_in {
            self.write(&group, pods)?;
        }
        Ok(Some(self.path(&group)))
    }

    fn path(&self, group: &Group) -> PathBuf {
        self.directory.join(group.file())
    }

    fn write(&self, group: &Group, pods: &Pods) -> io::Result<()> {
        let mut written = self.written.lock();
        let peers = pods.peers(group);
        if peers.is_empty() {
            written.remove(group);
            return fs::remove_file(self.path(group)).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            });
        }
        fs::create_dir_all(&self.directory)?;
        let machine = fs::read_to_string("/etc/hosts").unwrap_or_default();
        write_in_place(&self.path(group), content(&machine, group, &peers).as_bytes())?;
        written.insert(group.clone(), peers.into_iter().map(|(name, _)| name).collect());
        Ok(())
    }
}

/// Not by renaming: who has mounted the file would go on seeing the old one.
fn write_in_place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().create(true).write(true).truncate(false).open(path)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)
}

/// What the machine knows already, then each pod by all its names, then all of them by the name of their
/// service.
fn content(machine: &str, group: &Group, peers: &[(String, Ipv4Addr)]) -> String {
    let Group { namespace, subdomain } = group;
    let mut text = format!("{}\n\n# Pods of {namespace}/{subdomain}\n", machine.trim_end());
    // Writing to a string can not fail.
    for (hostname, address) in peers {
        let _ =
            writeln!(text, "{address}\t{}\t{hostname}", names(&format!("{hostname}.{subdomain}"), namespace));
    }
    for (_, address) in peers {
        let _ = writeln!(text, "{address}\t{}", names(subdomain, namespace));
    }
    text
}

/// The names under which cluster DNS and its search path know something. The first is the canonical one.
fn names(short: &str, namespace: &str) -> String {
    format!("{short}.{namespace}.svc.cluster.local {short}.{namespace}.svc {short}.{namespace} {short}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use expect_test::expect;

    use super::super::addresses::Addresses;
    use super::*;

    #[test]
    fn pods_of_a_subdomain_know_each_other_by_their_names_on_a_cluster() {
        let group = Group { namespace: "default".to_owned(), subdomain: "mpi".to_owned() };
        let peers = [("mpi-worker-0".to_owned(), Ipv4Addr::new(127, 64, 0, 1))];
        expect![[r#"
            127.0.0.1	localhost

            # Pods of default/mpi
            127.64.0.1	mpi-worker-0.mpi.default.svc.cluster.local mpi-worker-0.mpi.default.svc mpi-worker-0.mpi.default mpi-worker-0.mpi	mpi-worker-0
            127.64.0.1	mpi.default.svc.cluster.local mpi.default.svc mpi.default mpi
        "#]]
        .assert_eq(&content("127.0.0.1\tlocalhost\n", &group, &peers));
    }

    #[test]
    fn the_file_of_pods_that_went_unseen_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let hosts = Hosts::new(directory.path().to_owned());
        let pods = Pods::new(Addresses::default());
        let mut pod = Pod::default();
        (pod.metadata.namespace, pod.spec.subdomain) = ("default".to_owned(), "here".to_owned());
        pods.insert(Arc::new(pod.clone()));
        let stays = hosts.file_of(&pod, &pods).unwrap().unwrap();
        let gone = directory.path().join("default.gone");
        fs::write(&gone, "").unwrap();
        hosts.remove_orphans(&pods);
        assert!(stays.exists() && !gone.exists());
    }

    #[test]
    fn a_file_keeps_its_identity_when_it_changes() {
        use std::os::unix::fs::MetadataExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("hosts");
        write_in_place(&path, b"a long first version").unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        write_in_place(&path, b"short").unwrap();
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), fs::metadata(&path).unwrap().ino()),
            ("short", inode)
        );
    }

    #[test]
    fn only_a_pod_with_a_subdomain_asks_to_be_found() {
        let mut pod = Pod::default();
        pod.metadata.namespace = "default".to_owned();
        assert_eq!(Group::of(&pod), None);
        pod.spec.subdomain = "../etc".to_owned();
        assert_eq!(Group::of(&pod), None);
        pod.spec.subdomain = "mpi".to_owned();
        assert!(Group::of(&pod).is_some());
    }
}
