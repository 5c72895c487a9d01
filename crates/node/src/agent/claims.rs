//! Claims: each is bound as soon as it is there, and is a directory that goes with it.
//!
//! A directory is named after its claim's UID: another claim of the same name does not find what the first has left.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use krafla_api::{Key, Kind, Uid};
use krafla_plan::Step;
use krafla_runtime::{Client, ClientError, Event, EventType};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::feed::{self, Observer};

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
            Ok(json) => Claim::read(&json),
            Err(ClientError::NotFound(_)) => None,
            Err(error) => return Err(error),
        };
        let mut known = self.known.lock();
        match found {
            Some(found) => known.insert(claim.clone(), found.metadata.uid),
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

    /// What claims have left that went while nobody looked.
    fn left_beside(&self, claims: &[Claim]) -> Vec<PathBuf> {
        let kept: BTreeSet<PathBuf> =
            claims.iter().map(|claim| self.place(&claim.key(), &claim.metadata.uid)).collect();
        let all = entries(&self.root).flat_map(|namespace| entries(&namespace).collect::<Vec<_>>());
        all.filter(|directory| !kept.contains(directory)).collect()
    }
}

/// Removes directories, however much is in them. What can not be removed is found when claims are listed the next time.
async fn remove(directories: Vec<PathBuf>) {
    let remove = move || directories.iter().for_each(|directory| drop(fs::remove_dir_all(directory)));
    let _ = tokio::task::spawn_blocking(remove).await;
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
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
    feed::follow(client, Kind::PersistentVolumeClaim, &Binder { client, claims }).await;
}

/// Who is told of claims.
struct Binder<'a> {
    client: &'a dyn Client,
    /// Their directories, where they have any.
    claims: Option<&'a Claims>,
}

impl Observer for Binder<'_> {
    async fn listed(&self, items: &[Bytes]) {
        let all: Vec<Claim> = items.iter().filter_map(|json| Claim::read(json)).collect();
        if let Some(claims) = self.claims {
            remove(claims.left_beside(&all)).await;
        }
        for claim in &all {
            bind(self.client, claim).await;
        }
    }

    async fn observed(&self, event: &Event) {
        let Some(claim) = Claim::read(&event.object) else { return };
        match event.event_type {
            EventType::Added | EventType::Modified => bind(self.client, &claim).await,
            EventType::Deleted => {
                remove(self.claims.map(|claims| claims.forget(&claim)).into_iter().collect()).await;
            }
            EventType::Bookmark => {}
        }
    }
}

/// What fails is tried again when the claim changes, or when claims are listed.
async fn bind(client: &dyn Client, claim: &Claim) {
    if let Some(step) = claim.binding()
        && let Err(error) = client.write(&step).await
    {
        tracing::warn!(claim = %claim.key(), %error, "a claim can not be bound");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(name: &str, uid: &str, phase: &str) -> Claim {
        let claim = json!({
            "metadata": { "name": name, "namespace": "ns", "uid": uid },
            "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
            "status": { "phase": phase },
        });
        Claim::read(claim.to_string().as_bytes()).unwrap()
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
        assert_eq!(claims.left_beside(&[second]), [root.path().join("ns/data-u1")]);
    }
}
