//! All observed resources of the watched kinds, indexed by key and by owner UID.
//!
//! It is plain data: the shell puts watch events in, decisions read. There is one per process and no second cache.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use krafla_api::{Key, Kind, Uid};

use crate::object::Object;

/// All observed resources.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    kinds: BTreeMap<Kind, BTreeMap<Key, Arc<Object>>>,
    /// Children by the UID of the owner that controls them. A dependent of another object's namesake is not found here.
    by_controller: BTreeMap<Uid, BTreeMap<Kind, BTreeMap<Key, Arc<Object>>>>,
    /// Pods that nobody controls. They are few, and a Job may want them.
    uncontrolled_pods: BTreeSet<Key>,
}

impl Objects {
    /// Takes in a new or changed object and returns what it replaces.
    pub fn insert(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        let (kind, key) = (object.kind, object.meta.key.clone());
        let owner = object.meta.controller_uid().cloned();
        if kind == Kind::Pod {
            if owner.is_none() {
                self.uncontrolled_pods.insert(key.clone());
            } else {
                self.uncontrolled_pods.remove(&key);
            }
        }
        let previous = self.kinds.entry(kind).or_default().insert(key.clone(), object.clone());
        let owner_before = previous.as_ref().and_then(|object| object.meta.controller_uid());
        if owner_before != owner.as_ref() {
            self.unindex(kind, &key, owner_before);
        }
        if let Some(owner) = owner {
            let children = self.by_controller.entry(owner).or_default();
            children.entry(kind).or_default().insert(key, object);
        }
        previous
    }

    /// Forgets an object and returns it.
    pub fn remove(&mut self, kind: Kind, key: &Key) -> Option<Arc<Object>> {
        let object = self.kinds.get_mut(&kind)?.remove(key)?;
        self.unindex(kind, key, object.meta.controller_uid());
        if kind == Kind::Pod {
            self.uncontrolled_pods.remove(key);
        }
        Some(object)
    }

    fn unindex(&mut self, kind: Kind, key: &Key, owner: Option<&Uid>) {
        let Some(owner) = owner else { return };
        let Some(children) = self.by_controller.get_mut(owner) else { return };
        let Some(of_kind) = children.get_mut(&kind) else { return };
        of_kind.remove(key);
        if of_kind.is_empty() {
            children.remove(&kind);
        }
        if children.is_empty() {
            self.by_controller.remove(owner);
        }
    }

    /// One object by its key.
    pub fn get(&self, kind: Kind, key: &Key) -> Option<&Arc<Object>> {
        self.kinds.get(&kind)?.get(key)
    }

    /// All objects of a kind, in key order.
    pub fn all(&self, kind: Kind) -> impl Iterator<Item = &Arc<Object>> {
        self.kinds.get(&kind).into_iter().flat_map(BTreeMap::values)
    }

    /// The objects of a kind in one namespace, in the order of their names.
    pub fn in_namespace<'a>(
        &'a self,
        kind: Kind,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        let from = self.kinds.get(&kind).map(|objects| objects.range(Key::new(namespace, "")..));
        let objects = from.into_iter().flatten().map(|(_, object)| object);
        objects.take_while(move |object| *object.meta.key.namespace == *namespace)
    }

    /// The pods of a namespace that nobody controls, in key order.
    pub fn uncontrolled_pods<'a>(
        &'a self,
        namespace: &str,
    ) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        let first = Key::new(namespace, "");
        let namespace = first.namespace.clone();
        let keys = self.uncontrolled_pods.range(first..);
        keys.take_while(move |key| key.namespace == namespace).filter_map(|key| self.get(Kind::Pod, key))
    }

    /// The objects of `kind` that `owner` controls, in key order.
    pub fn children<'a>(
        &'a self,
        owner: &Uid,
        kind: Kind,
    ) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        let children = self.by_controller.get(owner).and_then(|children| children.get(&kind));
        children.into_iter().flat_map(BTreeMap::values)
    }

    /// How many objects of `kind` an owner controls.
    pub fn n_children(&self, owner: &Uid, kind: Kind) -> usize {
        let children = self.by_controller.get(owner).and_then(|children| children.get(&kind));
        children.map_or(0, BTreeMap::len)
    }

    /// How many objects of a kind there are.
    pub fn len(&self, kind: Kind) -> usize {
        self.kinds.get(&kind).map_or(0, BTreeMap::len)
    }

    /// The keys of all objects of a kind.
    pub fn keys(&self, kind: Kind) -> impl Iterator<Item = &Key> {
        self.kinds.get(&kind).into_iter().flat_map(BTreeMap::keys)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: Kind, name: &str, owner: Option<&str>) -> Arc<Object> {
        let mut metadata = json!({ "namespace": "n", "name": name, "uid": name });
        if let Some(owner) = owner {
            metadata["ownerReferences"] = json!([{
                "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": owner, "uid": owner, "controller": true,
            }]);
        }
        Arc::new(Object::decode(kind, json!({ "metadata": metadata }).to_string().as_bytes()))
    }

    /// Whether nothing at all is left of what was taken in.
    fn is_empty(objects: &Objects) -> bool {
        let is_indexed = !objects.by_controller.is_empty() || !objects.uncontrolled_pods.is_empty();
        objects.kinds.values().all(BTreeMap::is_empty) && !is_indexed
    }

    #[test]
    fn an_object_is_there_once_until_it_is_removed() {
        let pod = object(Kind::Pod, "a-work-0", Some("a"));
        let mut going = pod.as_ref().clone();
        going.meta.deleting_at = Some(krafla_api::Time::from_seconds(1));
        let mut objects = Objects::default();
        assert!(objects.insert(pod.clone()).is_none());
        assert!(objects.insert(pod.clone()).is_some());
        // What is on its way out is there until it is gone.
        objects.insert(going.into());
        let there = objects.get(Kind::Pod, &pod.meta.key).map(|pod| pod.meta.is_deleting());
        assert_eq!((objects.len(Kind::Pod), there), (1, Some(true)));
        let owner = pod.meta.controller_uid().expect("an owner");
        assert_eq!(objects.n_children(owner, Kind::Pod), 1);
        assert!(objects.remove(Kind::Pod, &pod.meta.key).is_some());
        assert!(objects.remove(Kind::Pod, &pod.meta.key).is_none());
        assert!(is_empty(&objects), "{objects:?}");
    }

    #[test]
    fn volcano_b20_pods_that_come_before_their_job_or_outlive_it_leave_nothing_behind() {
        let (job, pod) = (object(Kind::VcJob, "a", None), object(Kind::Pod, "a-work-0", Some("a")));
        let orders = [
            [(true, &pod), (true, &job), (false, &pod), (false, &job)],
            [(true, &pod), (true, &job), (false, &job), (false, &pod)],
            [(true, &job), (true, &pod), (false, &job), (false, &pod)],
        ];
        for order in orders {
            let mut objects = Objects::default();
            for (is_there, object) in order {
                if is_there {
                    objects.insert(object.clone());
                } else {
                    objects.remove(object.kind, &object.meta.key);
                }
            }
            assert!(is_empty(&objects), "{objects:?}");
        }
        // No job ever came, and the pod was let go by whoever controlled it.
        let mut objects = Objects::default();
        objects.insert(pod.clone());
        objects.insert(object(Kind::Pod, "a-work-0", None));
        assert_eq!(
            objects.children(&pod.meta.controller_uid().cloned().unwrap_or_default(), Kind::Pod).count(),
            0
        );
        objects.remove(Kind::Pod, &pod.meta.key);
        assert!(is_empty(&objects), "{objects:?}");
    }
}
