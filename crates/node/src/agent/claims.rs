//! Claims: each is bound as soon as it exists, and is a directory of this machine.
//!
//! A directory is named after its claim's UID: another claim of the same name does not find the files of the first.
//!
//! A directory may hold the only copy of its files. So the node deletes it only after it has seen the deletion of its claim, and only if the
//! reclaim policy allows it. A directory whose claim is merely missing is set aside: the store may be an older copy. It comes back
//! with its claim.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use krafla_api::{Key, Kind, Uid};
use krafla_cluster::{Client, ClientError, Event, EventType, Step};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::feed::{self, Observer};
use super::reports::backoff;
use crate::access::ServerAccess;
use crate::container::is_file_name;
use crate::set_aside::SetAside;
use crate::tree::remove_tree;

/// The directories of claims.
#[derive(Debug)]
pub(crate) struct Claims {
    root: PathBuf,
    /// Directories of deleted claims, until they are empty. A crash in the middle leaves none of it among those that are in use.
    doomed: PathBuf,
    set_aside: SetAside,
    known: Mutex<BTreeMap<Key, Uid>>,
}

impl Claims {
    /// The claims' directories of a node with this directory.
    pub(super) fn new(node: &Path) -> Claims {
        Claims {
            root: node.join("claims"),
            doomed: node.join("deleted-claims"),
            set_aside: SetAside::of(node),
            known: Mutex::default(),
        }
    }

    /// Where a claim's files are, if it is known that there is such a claim.
    pub(super) fn directory(&self, claim: &Key) -> Option<PathBuf> {
        self.known.lock().get(claim).map(|uid| self.place(claim, uid))
    }

    /// The same, after a look whether there is such a claim by now.
    pub(super) async fn find(
        &self,
        client: &dyn Client,
        claim: &Key,
    ) -> Result<Option<PathBuf>, ClientError> {
        let found = match client.get(Kind::PersistentVolumeClaim, claim).await {
            Ok(json) => {
                let unreadable = || ClientError::Unknown(format!("cannot read claim {claim}"));
                Some(Identity::read(&json).ok_or_else(unreadable)?)
            }
            Err(ClientError::NotFound(_)) => None,
            Err(error) => return Err(error),
        };
        let mut known = self.known.lock();
        match found {
            Some(found) => known.insert(claim.clone(), found.uid),
            None => known.remove(claim),
        };
        drop(known);
        let directory = self.directory(claim);
        if let Some(directory) = directory.as_deref().filter(|directory| !directory.exists()) {
            self.bring_back(directory).map_err(|error| {
                let why = format!("the files of claim {claim} cannot be brought back: {error}");
                ClientError::Unknown(why)
            })?;
        }
        Ok(directory)
    }

    /// Brings back the files of a claim that were set aside while the store did not know the claim.
    fn bring_back(&self, directory: &Path) -> io::Result<()> {
        let Ok(name) = directory.strip_prefix(&self.root) else { return Ok(()) };
        let Some(found) = self.set_aside.find(&Path::new(CLAIMS).join(name)) else { return Ok(()) };
        directory.parent().map_or(Ok(()), fs::create_dir_all)?;
        tracing::warn!(from = %found.display(), to = %directory.display(), "files of a claim are back");
        fs::rename(found, directory)
    }

    fn place(&self, claim: &Key, uid: &Uid) -> PathBuf {
        self.root.join(&*claim.namespace).join(format!("{}-{uid}", claim.name))
    }

    /// A claim is gone. Returns what it has left.
    fn forget(&self, claim: &Claim) -> PathBuf {
        self.known.lock().retain(|_, uid| *uid != claim.metadata.uid);
        self.place(&claim.key(), &claim.metadata.uid)
    }

    /// The directories that look like those of claims.
    fn directories(&self) -> Vec<PathBuf> {
        let all = entries(&self.root).flat_map(|namespace| entries(&namespace).collect::<Vec<_>>());
        all.filter(|path| is_place(path)).collect()
    }

    /// Directories without a claim: of those that existed before the claims were listed, those that belong to no listed claim. If one
    /// claim cannot be read, any directory may be its own, and the result is empty.
    fn left_beside(&self, directories: Vec<PathBuf>, listed: &[Bytes]) -> Vec<PathBuf> {
        let place = |claim: Identity| self.place(&claim.key(), &claim.uid);
        let kept: Option<BTreeSet<PathBuf>> =
            listed.iter().map(|json| Identity::read(json).map(place)).collect();
        let Some(kept) = kept else {
            tracing::warn!("a claim cannot be read, so no directory without a claim is set aside");
            return Vec::new();
        };
        directories.into_iter().filter(|directory| !kept.contains(directory)).collect()
    }
}

/// Whether something is named as a claim's directory is: after its name and its UID.
fn is_place(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_named_so = is_file_name(name) && name.split_once('-').is_some_and(|(_, uid)| !uid.is_empty());
    is_named_so && fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// What happens to the files of a claim that was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Delete,
    SetAside,
}

impl Claims {
    /// Disposes of the directory of a claim whose deletion was seen.
    fn dispose(&self, directory: &Path, fate: Fate) -> io::Result<()> {
        if !directory.exists() {
            return Ok(());
        }
        if fate == Fate::SetAside {
            return self.put_aside(directory);
        }
        fs::create_dir_all(&self.doomed)?;
        if let Some(name) = directory.file_name() {
            fs::rename(directory, self.doomed.join(name))?;
        }
        self.empty_doomed();
        Ok(())
    }

    /// Sets the directory of a claim aside.
    fn put_aside(&self, directory: &Path) -> io::Result<()> {
        let Ok(name) = directory.strip_prefix(&self.root) else { return Ok(()) };
        let place = self.set_aside.take(directory, &Path::new(CLAIMS).join(name))?;
        tracing::warn!(
            "no claim owns the files in {}: they are now in {}; delete them if they are not needed",
            directory.display(),
            place.display()
        );
        Ok(())
    }

    /// Finishes deletions, also those that a crash has interrupted.
    fn empty_doomed(&self) {
        // What cannot be removed is tried again at the next deletion.
        entries(&self.doomed).for_each(|directory| drop(remove_tree(&directory)));
    }
}

/// Does something with claims' directories that may take long.
async fn on_disk(claims: &Arc<Claims>, work: impl FnOnce(&Claims) -> io::Result<()> + Send + 'static) {
    let claims = Arc::clone(claims);
    match tokio::task::spawn_blocking(move || work(&claims)).await {
        Ok(Ok(())) | Err(_) => {}
        Ok(Err(error)) => tracing::error!(%error, "the files of a claim cannot be moved"),
    }
}

/// How the directory of claims is called.
const CLAIMS: &str = "claims";

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// What of a claim says which one it is, whatever else is in it.
#[derive(Debug, Deserialize)]
struct Identity {
    name: String,
    namespace: String,
    uid: Uid,
}

impl Identity {
    fn read(json: &[u8]) -> Option<Identity> {
        #[derive(Deserialize)]
        struct Object {
            metadata: Identity,
        }
        serde_json::from_slice::<Object>(json).ok().map(|object| object.metadata)
    }

    fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }
}

/// What is read of a claim.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Claim {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    namespace: String,
    uid: Uid,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    access_modes: Vec<String>,
    resources: Resources,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Resources {
    requests: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
}

impl Claim {
    fn read(json: &[u8]) -> Option<Claim> {
        serde_json::from_slice(json).ok()
    }

    fn key(&self) -> Key {
        Key::new(&self.metadata.namespace, &self.metadata.name)
    }

    /// The write that says that it has what it asks for. A directory has as much room as its disk.
    fn binding(&self) -> Option<Step> {
        let Claim { metadata, spec, status } = self;
        if !["", "Pending"].contains(&&*status.phase) {
            return None;
        }
        let status = json!({ "phase": "Bound", "accessModes": spec.access_modes, "capacity": spec.resources.requests });
        Some(Step::Patch {
            kind: Kind::PersistentVolumeClaim,
            key: self.key(),
            uid: metadata.uid.clone(),
            revision: None,
            of_status: true,
            patch: json!({ "status": status }),
        })
    }
}

/// Binds claims, and disposes of the directories of deleted ones, until the future is dropped.
pub(crate) async fn look_after(
    client: &dyn Client,
    claims: Option<&Arc<Claims>>,
    access: Option<&dyn ServerAccess>,
) {
    let (found, unbound, failed) = (Mutex::default(), Mutex::default(), Notify::new());
    let binder = Binder { client, claims, access, found, unbound, failed };
    tokio::select! {
        () = feed::follow(client, Kind::PersistentVolumeClaim, &binder) => {}
        () = binder.try_again() => {}
    }
}

/// Who is told of claims.
struct Binder<'a> {
    client: &'a dyn Client,
    /// Their directories, where they have any.
    claims: Option<&'a Arc<Claims>>,
    /// Knows the reclaim policy.
    access: Option<&'a dyn ServerAccess>,
    /// The directories that were there before the claims were listed.
    found: Mutex<Vec<PathBuf>>,
    /// Claims that could not be bound so far.
    unbound: Mutex<BTreeMap<Key, Claim>>,
    /// Told when there is another.
    failed: Notify,
}

impl Binder<'_> {
    async fn bind(&self, claim: Claim) {
        let key = claim.key();
        let written = match claim.binding() {
            Some(step) => self.client.write(&step).await.map(drop),
            None => Ok(()),
        };
        let mut unbound = self.unbound.lock();
        match written {
            // It is bound, or is no more.
            Ok(()) | Err(ClientError::NotFound(_) | ClientError::Conflict(_)) => {
                if unbound.get(&key).is_some_and(|known| known.metadata.uid == claim.metadata.uid) {
                    unbound.remove(&key);
                }
            }
            Err(error) => {
                tracing::warn!(claim = %key, %error, "cannot bind a claim");
                unbound.insert(key, claim);
                self.failed.notify_one();
            }
        }
    }

    /// Tries again what failed, ever more slowly, until the future is dropped.
    async fn try_again(&self) {
        let mut n_failed = 0;
        loop {
            self.failed.notified().await;
            tokio::time::sleep(backoff(n_failed)).await;
            let unbound = std::mem::take(&mut *self.unbound.lock());
            for claim in unbound.into_values() {
                self.bind(claim).await;
            }
            n_failed = if self.unbound.lock().is_empty() { 0 } else { n_failed.saturating_add(1) };
        }
    }
}

impl Observer for Binder<'_> {
    async fn will_be_listed(&self) {
        *self.found.lock() = self.claims.map(|claims| claims.directories()).unwrap_or_default();
    }

    async fn listed(&self, items: &[Bytes]) {
        let found = std::mem::take(&mut *self.found.lock());
        if let Some(claims) = self.claims {
            let left = claims.left_beside(found, items);
            on_disk(claims, move |claims| {
                claims.empty_doomed();
                left.iter().try_for_each(|directory| claims.put_aside(directory))
            })
            .await;
        }
        for claim in items.iter().filter_map(|json| Claim::read(json)) {
            self.bind(claim).await;
        }
    }

    async fn observed(&self, event: &Event) {
        let Some(claim) = Claim::read(&event.object) else { return };
        match event.event_type {
            EventType::Added | EventType::Modified => self.bind(claim).await,
            EventType::Deleted => {
                let Some(claims) = self.claims else { return };
                let directory = claims.forget(&claim);
                let is_kept = self.access.is_some_and(|access| access.retains_files(&event.object));
                let fate = if is_kept { Fate::SetAside } else { Fate::Delete };
                on_disk(claims, move |claims| claims.dispose(&directory, fate)).await;
            }
            EventType::Bookmark => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::BoxFuture;
    use futures_util::stream::{self, BoxStream, StreamExt};
    use krafla_cluster::{Listed, Written};

    use super::*;

    fn object(name: &str, uid: &str, phase: &str) -> Value {
        json!({
            "metadata": { "name": name, "namespace": "ns", "uid": uid },
            "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
            "status": { "phase": phase },
        })
    }

    fn bytes(object: &Value) -> Bytes {
        Bytes::from(object.to_string())
    }

    fn claim(name: &str, uid: &str, phase: &str) -> Claim {
        Claim::read(&bytes(&object(name, uid, phase))).unwrap()
    }

    #[test]
    fn a_claim_is_bound_once_to_what_it_asks_for() {
        let step = claim("data", "u1", "Pending").binding().unwrap();
        expect_test::expect![[r#"patch persistentvolumeclaim status data {"status":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},"phase":"Bound"}}"#]]
            .assert_eq(&step.to_string());
        for phase in ["Bound", "Lost"] {
            assert_eq!(claim("data", "u1", phase).binding(), None, "{phase}");
        }
    }

    #[test]
    fn a_directory_goes_with_its_claim_and_with_no_other() {
        let root = tempfile::tempdir().unwrap();
        let claims = Claims::new(root.path());
        let (first, second) = (claim("data", "u1", "Bound"), claim("data", "u2", "Bound"));
        let place = |claim: &Claim| claims.place(&claim.key(), &claim.metadata.uid);
        for claim in [&first, &second] {
            fs::create_dir_all(place(claim)).unwrap();
        }
        claims.known.lock().insert(second.key(), "u2".into());
        assert_eq!(claims.forget(&first), place(&first));
        assert_eq!(claims.directory(&second.key()), Some(place(&second)));
        let (listed, found) = (bytes(&object("data", "u2", "Bound")), claims.directories());
        assert_eq!(claims.left_beside(found, &[listed]), [root.path().join("claims/ns/data-u1")]);
    }

    /// Everything below a directory that is no directory.
    fn files(root: &Path) -> Vec<String> {
        let mut found: Vec<String> = entries(root)
            .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path.display().to_string()] })
            .collect();
        found.sort();
        found
    }

    /// A node's directory with a file of one claim.
    fn node_with_a_file() -> (tempfile::TempDir, Arc<Claims>, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let claims = Arc::new(Claims::new(root.path()));
        let place = claims.place(&Key::new("ns", "data"), &"u1".into());
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("file"), "precious").unwrap();
        (root, claims, place)
    }

    fn binder<'a>(
        client: &'a Busy,
        claims: &'a Arc<Claims>,
        access: Option<&'a dyn ServerAccess>,
    ) -> Binder<'a> {
        let (found, unbound, failed) = (Mutex::default(), Mutex::default(), Notify::new());
        Binder { client, claims: Some(claims), access, found, unbound, failed }
    }

    /// A store that does not know a claim says nothing about its files.
    #[tokio::test]
    async fn files_of_a_claim_that_is_not_listed_are_set_aside_and_come_back_with_it() {
        let (root, claims, place) = node_with_a_file();
        let server = Busy::default();
        let binder = binder(&server, &claims, None);
        binder.will_be_listed().await;
        binder.listed(&[]).await;
        assert!(!place.exists());
        let kept = files(root.path());
        assert!(kept.len() == 1 && kept[0].ends_with("/claims/ns/data-u1/file"), "{kept:?}");
        assert_eq!(crate::set_aside::all(root.path()).len(), 1);

        claims.known.lock().insert(Key::new("ns", "data"), "u1".into());
        claims.bring_back(&place).unwrap();
        assert_eq!(fs::read_to_string(place.join("file")).unwrap(), "precious");
    }

    fn deletion() -> Event {
        Event::new(EventType::Deleted, 2, bytes(&object("data", "u1", "Bound")))
    }

    #[tokio::test]
    async fn files_of_a_claim_go_with_its_deletion() {
        let (root, claims, _place) = node_with_a_file();
        let other = claims.place(&Key::new("ns", "data"), &"u2".into());
        fs::create_dir_all(&other).unwrap();
        let server = Busy::default();
        binder(&server, &claims, None).observed(&deletion()).await;
        assert_eq!(files(root.path()), [""; 0]);
        assert!(other.exists(), "another claim of that name is another one");
    }

    struct Retains;

    impl ServerAccess for Retains {
        fn token(&self, _: &crate::pod::Pod, _: &crate::pod::AccountToken) -> Result<String, String> {
            Err("none".to_owned())
        }

        fn address(&self) -> BoxFuture<'_, std::net::SocketAddr> {
            Box::pin(std::future::pending())
        }

        fn address_by_name(&self) -> Option<std::net::IpAddr> {
            None
        }

        fn retains_files(&self, _: &[u8]) -> bool {
            true
        }
    }

    #[tokio::test]
    async fn files_of_a_claim_that_are_retained_are_set_aside() {
        let (root, claims, place) = node_with_a_file();
        let server = Busy::default();
        binder(&server, &claims, Some(&Retains)).observed(&deletion()).await;
        assert!(!place.exists());
        assert_eq!(files(root.path()).len(), 1);
    }

    #[tokio::test]
    async fn a_deletion_that_a_crash_interrupted_is_finished() {
        let (root, claims, place) = node_with_a_file();
        fs::create_dir_all(&claims.doomed).unwrap();
        fs::rename(&place, claims.doomed.join("data-u1")).unwrap();
        let server = Busy::default();
        let binder = binder(&server, &claims, None);
        binder.will_be_listed().await;
        binder.listed(&[]).await;
        assert_eq!(files(root.path()), [""; 0]);
    }

    #[test]
    fn no_directory_goes_that_may_belong_to_a_claim() {
        let root = tempfile::tempdir().unwrap();
        let claims = Claims::new(root.path());
        let make = |name: &str| fs::create_dir_all(root.path().join("claims/ns").join(name)).unwrap();
        make("data-u1");
        make("lost+found");
        fs::write(root.path().join("claims/ns/notes-1"), "").unwrap();
        // What can not be read of a claim does not make it somebody else's.
        let mut odd = object("data", "u1", "Bound");
        odd["spec"]["accessModes"] = json!("ReadWriteOnce");
        assert_eq!(claims.left_beside(claims.directories(), &[bytes(&odd)]), [""; 0].map(PathBuf::from));
        let unreadable = Bytes::from("{\"metadata\":{\"name\":1}}");
        assert_eq!(claims.left_beside(claims.directories(), &[unreadable]), [""; 0].map(PathBuf::from));
        // One that was made after the list belongs to a claim that was made then.
        let found = claims.directories();
        make("new-u2");
        assert_eq!(claims.left_beside(found, &[]), [root.path().join("claims/ns/data-u1")]);
    }

    /// A server with one claim, which takes no more than the third write.
    #[derive(Default)]
    struct Busy {
        n_writes: Mutex<u32>,
        is_bound: Notify,
    }

    impl Client for Busy {
        fn list(&self, _: Kind) -> BoxFuture<'_, Result<Listed, ClientError>> {
            let items = vec![bytes(&object("data", "u1", "Pending"))];
            Box::pin(async { Ok(Listed { revision: 1, items }) })
        }

        fn watch(&self, _: Kind, _: u64) -> BoxStream<'static, Result<Event, ClientError>> {
            stream::pending().boxed()
        }

        fn get(&self, _: Kind, key: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>> {
            let answer = Err(ClientError::not_found(key.to_string()));
            Box::pin(async { answer })
        }

        fn write<'a>(&'a self, _: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
            let mut n_writes = self.n_writes.lock();
            *n_writes += 1;
            let answer = if *n_writes < 3 {
                Err(ClientError::Unknown("not now".to_owned()))
            } else {
                self.is_bound.notify_one();
                Ok(Written { key: Key::new("ns", "data"), uid: "u1".into(), revision: 2 })
            };
            Box::pin(async { answer })
        }
    }

    #[tokio::test]
    async fn a_claim_that_could_not_be_bound_is_bound_later() {
        let server = Busy::default();
        let bound = async {
            tokio::select! {
                () = look_after(&server, None, None) => {}
                () = server.is_bound.notified() => {}
            }
        };
        tokio::time::timeout(Duration::from_secs(60), bound).await.expect("it is not bound");
        assert_eq!(*server.n_writes.lock(), 3);
    }
}
