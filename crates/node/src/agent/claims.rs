//! Claims: each is bound as soon as it is there, and is a directory that goes with it.
//!
//! A directory is named after its claim's UID: another claim of the same name does not find what the first has left.
//!
//! What is in it is the only copy. So it goes only with a claim that was seen to go, or that is certain not to be there: the directory was
//! there before all claims were listed, and each that was listed could be told by its name.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use krafla_api::{Key, Kind, Uid};
use krafla_plan::Step;
use krafla_runtime::{Client, ClientError, Event, EventType};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::feed::{self, Observer};
use super::reports::backoff;
use crate::container::is_file_name;
use crate::tree::remove_tree;

/// The directories of claims.
#[derive(Debug)]
pub(crate) struct Claims {
    root: PathBuf,
    known: Mutex<BTreeMap<Key, Uid>>,
}

impl Claims {
    pub(super) fn new(root: PathBuf) -> Claims {
        Claims { root, known: Mutex::default() }
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
                let unreadable = || ClientError::Unknown(format!("claim {claim} can not be read"));
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
        Ok(self.directory(claim))
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

    /// What claims have left that went while nobody looked: of directories that were there before, those that belong to no claim
    /// that is. If anything on the list can not be told by its name, that may be the one whose directory it is, and none has been left.
    fn left_beside(&self, directories: Vec<PathBuf>, listed: &[Bytes]) -> Vec<PathBuf> {
        let place = |claim: Identity| self.place(&claim.key(), &claim.uid);
        let kept: Option<BTreeSet<PathBuf>> =
            listed.iter().map(|json| Identity::read(json).map(place)).collect();
        let Some(kept) = kept else {
            tracing::warn!(
                "a claim can not be read, so no directories of claims that are no more are removed"
            );
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

/// Removes directories, however much is in them. What can not be removed is found when claims are listed the next time.
async fn remove(directories: Vec<PathBuf>) {
    let remove = move || directories.iter().for_each(|directory| drop(remove_tree(directory)));
    let _ = tokio::task::spawn_blocking(remove).await;
}

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

/// Binds claims, and removes the directories of those that are gone, until the future is dropped.
pub(crate) async fn look_after(client: &dyn Client, claims: Option<&Claims>) {
    let (found, unbound, failed) = (Mutex::default(), Mutex::default(), Notify::new());
    let binder = Binder { client, claims, found, unbound, failed };
    tokio::select! {
        () = feed::follow(client, Kind::PersistentVolumeClaim, &binder) => {}
        () = binder.try_again() => {}
    }
}

/// Who is told of claims.
struct Binder<'a> {
    client: &'a dyn Client,
    /// Their directories, where they have any.
    claims: Option<&'a Claims>,
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
                tracing::warn!(claim = %key, %error, "a claim can not be bound");
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
        *self.found.lock() = self.claims.map(Claims::directories).unwrap_or_default();
    }

    async fn listed(&self, items: &[Bytes]) {
        let found = std::mem::take(&mut *self.found.lock());
        if let Some(claims) = self.claims {
            remove(claims.left_beside(found, items)).await;
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
                remove(self.claims.map(|claims| claims.forget(&claim)).into_iter().collect()).await;
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
    use krafla_runtime::{Listed, Written};

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
        let claims = Claims::new(root.path().to_owned());
        let (first, second) = (claim("data", "u1", "Bound"), claim("data", "u2", "Bound"));
        let place = |claim: &Claim| claims.place(&claim.key(), &claim.metadata.uid);
        for claim in [&first, &second] {
            fs::create_dir_all(place(claim)).unwrap();
        }
        claims.known.lock().insert(second.key(), "u2".into());
        assert_eq!(claims.forget(&first), place(&first));
        assert_eq!(claims.directory(&second.key()), Some(place(&second)));
        let (listed, found) = (bytes(&object("data", "u2", "Bound")), claims.directories());
        assert_eq!(claims.left_beside(found, &[listed]), [root.path().join("ns/data-u1")]);
    }

    #[test]
    fn no_directory_goes_that_may_belong_to_a_claim() {
        let root = tempfile::tempdir().unwrap();
        let claims = Claims::new(root.path().to_owned());
        let make = |name: &str| fs::create_dir_all(root.path().join("ns").join(name)).unwrap();
        make("data-u1");
        make("lost+found");
        fs::write(root.path().join("ns/notes-1"), "").unwrap();
        // What can not be read of a claim does not make it somebody else's.
        let mut odd = object("data", "u1", "Bound");
        odd["spec"]["accessModes"] = json!("ReadWriteOnce");
        assert_eq!(claims.left_beside(claims.directories(), &[bytes(&odd)]), [""; 0].map(PathBuf::from));
        let unreadable = Bytes::from("{\"metadata\":{\"name\":1}}");
        assert_eq!(claims.left_beside(claims.directories(), &[unreadable]), [""; 0].map(PathBuf::from));
        // One that was made after the list belongs to a claim that was made then.
        let found = claims.directories();
        make("new-u2");
        assert_eq!(claims.left_beside(found, &[]), [root.path().join("ns/data-u1")]);
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
            let answer = Err(ClientError::NotFound(key.to_string()));
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
                () = look_after(&server, None) => {}
                () = server.is_bound.notified() => {}
            }
        };
        tokio::time::timeout(Duration::from_secs(60), bound).await.expect("it is not bound");
        assert_eq!(*server.n_writes.lock(), 3);
    }
}
