//! Stories of owners and dependents: what users do, and what the collector makes of it.
//!
//! ```text
//!   create child of owner! other     a ConfigMap; an owner with `!` waits for it in a foreground deletion
//!   create child of owner held       with a finalizer that is not the collector's
//!   delete owner foreground          or background, or orphan
//!   release child                    the finalizer goes
//! ```
//!
//! Names are of ConfigMaps in the namespace `default`; `other/x` is in another namespace, and `class:x` is a
//! PriorityClass, which is cluster-wide.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use expect_test::{Expect, expect};
use futures_util::FutureExt;
use krafla_api::{Key, Kind, Time, Uid};
use krafla_cluster::Propagation;
use serde_json::{Value, json};

use super::*;
use crate::admit::{Admission, Operation, Policy, Request};
use crate::env::{Env, suffix_of, uid_of};
use crate::ops::{DeleteOptions, Part, WriteOptions};
use crate::patch::Patch;
use crate::registry::Resource;
use crate::store::{self, Change, Draft, Entry, EventType, Store};

const HOLD: &str = "example.com/hold";

/// Surroundings in which nothing is left to chance.
#[derive(Default)]
struct Still(AtomicU64);

impl Env for Still {
    fn now(&self) -> Time {
        Time::from_seconds(1_800_000_000)
    }

    fn uid(&self) -> Uid {
        let mut bytes = [0; 16];
        bytes[8..].copy_from_slice(&self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        uid_of(bytes)
    }

    fn suffix(&self) -> String {
        suffix_of([0; 5])
    }
}

struct World {
    api: Api,
    collector: Collector,
}

impl World {
    fn new() -> World {
        World::with(Admission::default())
    }

    fn with(admission: Admission) -> World {
        let api = Api::new(Store::in_memory(), Arc::new(Still::default()), admission);
        now(api.bootstrap()).unwrap();
        let world = World { collector: Collector::new(api.clone()), api };
        world.create(Kind::Namespace, json!({"metadata": {"name": "other"}}));
        world
    }

    fn resource(&self, kind: Kind) -> Arc<Resource> {
        self.api.registry().of_kind(kind).unwrap()
    }

    fn create(&self, kind: Kind, object: Value) {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let options = WriteOptions::default();
        now(self.api.create(&self.resource(kind), &namespace, object, &options)).unwrap();
    }

    fn get(&self, name: &str) -> Option<Arc<Entry>> {
        let (kind, key) = place(name);
        self.api.store().get(&self.resource(kind).storage, &key)
    }

    /// One line of a story.
    fn play(&self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["create", name, rest @ ..] => self.create_object(name, rest),
            ["delete", name, how] => self.delete(name, how),
            ["release", name] => self.patch(name, json!({"metadata": {"finalizers": null}})),
            ["own", name, owners @ ..] => {
                let owners: Vec<Value> = owners.iter().map(|owner| self.reference(owner)).collect();
                self.patch(name, json!({"metadata": {"ownerReferences": owners}}));
            }
            _ => panic!("not a line of a story: {line}"),
        }
    }

    fn create_object(&self, name: &str, rest: &[&str]) {
        let (kind, key) = place(name);
        let owners = rest.iter().skip_while(|word| **word != "of").skip(1).filter(|word| **word != "held");
        let owners: Vec<Value> = owners.map(|owner| self.reference(owner)).collect();
        let finalizers = if rest.contains(&"held") { vec![HOLD] } else { Vec::new() };
        let mut object = json!({"metadata": {
            "name": &*key.name, "namespace": &*key.namespace, "ownerReferences": owners, "finalizers": finalizers,
        }});
        if kind == Kind::PriorityClass {
            object["value"] = 1.into();
        }
        self.create(kind, object);
    }

    /// A reference to an owner, whether or not there is one.
    fn reference(&self, owner: &str) -> Value {
        let (name, blocks) = owner.strip_suffix('!').map_or((owner, false), |name| (name, true));
        let (kind, key) = place(name);
        let uid = self.get(name).map_or_else(|| "00000000-dead".into(), |entry| entry.uid.to_string());
        let (api_version, kind) = match &*key.name {
            "martian" => ("mars.example.com/v1".to_owned(), "Martian"),
            _ => (kind.info().api_version(), kind.info().kind),
        };
        json!({"apiVersion": api_version, "kind": kind, "name": &*key.name, "uid": uid, "blockOwnerDeletion": blocks})
    }

    fn delete(&self, name: &str, how: &str) {
        let (kind, key) = place(name);
        let propagation = match how {
            "background" => Propagation::Background,
            "foreground" => Propagation::Foreground,
            _ => Propagation::Orphan,
        };
        let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
        now(self.api.delete(&self.resource(kind), &key, &options)).unwrap();
    }

    fn patch(&self, name: &str, patch: Value) {
        let (kind, key) = place(name);
        let (patch, options) = (Patch::Merge(patch), WriteOptions::default());
        now(self.api.patch(&self.resource(kind), &key, Part::Main, &patch, &options)).unwrap();
    }

    /// What the collector does until nothing is left to do.
    fn collect(&mut self) -> String {
        let mut said = String::new();
        for round in 0.. {
            assert!(round < 100, "the collector comes to rest:\n{said}");
            let deeds = now(self.collector.step());
            if deeds.is_empty() && !self.collector.graph.has_due() {
                break;
            }
            said.extend(deeds.iter().map(|deed| format!("  {}\n", in_short(&deed.to_string()))));
        }
        said
    }

    /// The objects that are left, each with what is special about it.
    fn left(&self) -> String {
        let mut left = String::new();
        for kind in [Kind::ConfigMap, Kind::PriorityClass] {
            for entry in self.api.store().snapshot(&self.resource(kind).storage).entries.values() {
                let is_from_the_start =
                    entry.key.name.contains("kube-root") || entry.key.name.contains("system-");
                if is_from_the_start {
                    continue;
                }
                let deleting = if entry.meta.is_deleting { ", deleting" } else { "" };
                let owners = entry.meta.owners.len();
                left.push_str(&format!("left: {}, owners: {owners}{deleting}\n", entry.key.name));
            }
        }
        left
    }
}

/// Without the parts of names and UIDs that are always the same.
fn in_short(text: &str) -> String {
    text.replace("00000000-0000-4000-8000-0000000000", "uid-").replace("configmaps default/", "")
}

fn place(name: &str) -> (Kind, Key) {
    if let Some(name) = name.strip_prefix("class:") {
        return (Kind::PriorityClass, Key::new("", name));
    }
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    (Kind::ConfigMap, Key::new(namespace, name))
}

fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("over a store in memory nothing waits")
}

/// Plays a story, with the collector at work after each line, and compares what it did and what is left.
fn check(story: &str, expected: Expect) {
    let mut world = World::new();
    world.collect();
    let mut told = String::new();
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        world.play(line);
        told.push_str(&format!("{line}\n{}", world.collect()));
    }
    told.push_str(&world.left());
    expected.assert_eq(&told);
}

#[test]
fn in_the_background_dependents_go_after_their_owner() {
    check(
        "create owner
         create child of owner
         create grandchild of child
         delete owner background",
        expect![[r#"
            create owner
            create child of owner
            create grandchild of child
            delete owner background
              delete child
              delete grandchild
        "#]],
    );
}

#[test]
fn in_the_foreground_the_owner_waits_for_those_that_block_it() {
    check(
        "create owner
         create child of owner! held
         create other-child of owner held
         delete owner foreground
         release child
         release other-child",
        expect![[r#"
            create owner
            create child of owner! held
            create other-child of owner held
            delete owner foreground
              delete child
              delete other-child
            release child
              let go of owner: its dependents are gone
            release other-child
        "#]],
    );
}

#[test]
fn in_the_foreground_leaves_go_first() {
    check(
        "create owner
         create child of owner!
         create grandchild of child! held
         delete owner foreground
         release grandchild",
        expect![[r#"
            create owner
            create child of owner!
            create grandchild of child! held
            delete owner foreground
              delete child in the foreground
              delete grandchild
            release grandchild
              let go of child: its dependents are gone
              let go of owner: its dependents are gone
        "#]],
    );
}

#[test]
fn in_the_foreground_without_dependents_the_owner_goes() {
    check(
        "create owner
         delete owner foreground",
        expect![[r#"
            create owner
            delete owner foreground
              let go of owner: its dependents are gone
        "#]],
    );
}

#[test]
fn orphans_stay_and_keep_their_other_owners() {
    check(
        "create owner
         create other
         create child of owner
         create shared of owner other
         delete owner orphan",
        expect![[r#"
            create owner
            create other
            create child of owner
            create shared of owner other
            delete owner orphan
              let go of owner: its dependents are orphaned
            left: child, owners: 0
            left: other, owners: 0
            left: shared, owners: 1
        "#]],
    );
}

#[test]
fn an_object_with_two_owners_goes_with_the_last() {
    check(
        "create owner
         create other
         create child of owner other
         delete owner background
         delete other background",
        expect![[r#"
            create owner
            create other
            create child of owner other
            delete owner background
              disown child of uid-15
            delete other background
              delete child
        "#]],
    );
}

#[test]
fn an_owner_is_who_has_the_uid_in_the_right_place() {
    check(
        "create never-born-child of nobody
         create owner
         create child of owner
         delete owner background
         create owner
         create other/owner
         create foreign of other/owner
         create martians-child of martian",
        expect![[r#"
            create never-born-child of nobody
              delete never-born-child
            create owner
            create child of owner
            delete owner background
              delete child
            create owner
            create other/owner
            create foreign of other/owner
              delete foreign
            create martians-child of martian
            left: martians-child, owners: 1
            left: owner, owners: 0
            left: owner, owners: 0
        "#]],
    );
}

#[test]
fn a_cluster_wide_object_owns_and_is_owned_cluster_wide() {
    check(
        "create class:owner
         create child of class:owner
         create class:child of class:owner
         create owner
         create class:strange of owner
         delete owner background
         delete class:owner background",
        expect![[r#"
            create class:owner
            create child of class:owner
            create class:child of class:owner
            create owner
            create class:strange of owner
            delete owner background
            delete class:owner background
              delete child
              delete priorityclasses.scheduling.k8s.io child
            left: strange, owners: 1
        "#]],
    );
}

#[test]
fn a_circle_goes_in_the_foreground() {
    check(
        "create a
         create b of a!
         own a b!
         delete a foreground",
        expect![[r#"
            create a
            create b of a!
            own a b!
            delete a foreground
              unblock the owners of b
              let go of a: its dependents are gone
              delete b
        "#]],
    );
}

#[test]
fn what_was_lost_before_the_collector_began_is_found() {
    let world = World::new();
    for line in [
        "create owner",
        "create child of owner",
        "create kept",
        "create keeper of kept",
        "delete owner background",
    ] {
        world.play(line);
    }
    let mut later = World { collector: Collector::new(world.api.clone()), api: world.api };
    expect![[r#"
          delete child
        left: keeper, owners: 1
        left: kept, owners: 0
    "#]]
    .assert_eq(&format!("{}{}", later.collect(), later.left()));
}

#[test]
fn a_collector_that_falls_behind_begins_again() {
    let mut world = World::new();
    world.play("create owner");
    world.play("create child of owner");
    world.play("delete owner background");
    world.play("create busy");
    let entry = world.get("busy").unwrap();
    let (resource, mut revision) = (world.resource(Kind::ConfigMap).storage.clone(), entry.revision);
    for _ in 0..9_000 {
        let object: Value = serde_json::from_slice(&entry.bytes).unwrap();
        let change = Change::Put(Draft::new(object, entry.meta.clone()));
        let expect = store::Expect::Revision(revision);
        let write = store::Write { resource: resource.clone(), key: entry.key.clone(), expect, change };
        revision = now(world.api.store().commit(write)).unwrap().revision;
    }
    expect![[r#"
          delete child
        left: busy, owners: 0
    "#]]
    .assert_eq(&format!("{}{}", world.collect(), world.left()));
}

#[test]
fn a_new_kind_makes_owners_known_and_is_collected_itself() {
    let mut world = World::new();
    world.play("create martians-child of martian");
    assert_eq!(world.collect(), "", "there may be Martians");
    let definition = json!({
        "metadata": {"name": "martians.mars.example.com"},
        "spec": {
            "group": "mars.example.com", "scope": "Namespaced",
            "names": {"plural": "martians", "singular": "martian", "kind": "Martian", "listKind": "MartianList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    world.create(Kind::CustomResourceDefinition, definition);
    expect!["delete martians-child"].assert_eq(world.collect().trim());

    let martians = world.api.registry().find("mars.example.com", "v1", "martians").unwrap();
    let owners = json!([world.reference("nobody")]);
    let martian = json!({"metadata": {"name": "green", "ownerReferences": owners}});
    now(world.api.create(&martians, "default", martian, &WriteOptions::default())).unwrap();
    expect!["delete martians.mars.example.com default/green"].assert_eq(world.collect().trim());
}

/// A rule that nothing may be deleted, while it holds.
struct NoDeletion(Arc<AtomicBool>);

impl Policy for NoDeletion {
    fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Status> {
        if request.operation == Operation::Delete
            && object["metadata"]["name"] == "child"
            && self.0.load(Ordering::Relaxed)
        {
            return Err(Status::forbidden(&request.resource.qualified(), "child", "not now"));
        }
        Ok(())
    }
}

#[test]
fn what_is_refused_is_tried_again() {
    let holds = Arc::new(AtomicBool::new(true));
    let mut world = World::with(Admission::default().with(NoDeletion(Arc::clone(&holds))));
    for line in ["create owner", "create child of owner", "delete owner background"] {
        world.play(line);
    }
    expect![[r#"delete child -> 403: configmaps "child" is forbidden: not now"#]]
        .assert_eq(world.collect().trim());
    assert_eq!(world.collect(), "", "not at once");
    holds.store(false, Ordering::Relaxed);
    world.collector.retry();
    expect!["delete child"].assert_eq(world.collect().trim());
}

#[test]
fn a_running_collector_is_woken_by_what_happens() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = World::new();
    let maps = world.resource(Kind::ConfigMap).storage.clone();
    let gone = runtime.block_on(async {
        let running = tokio::spawn(Collector::new(world.api.clone()).run());
        // The collector has nothing to do, and sleeps.
        tokio::task::yield_now().await;
        let mut events = world.api.store().watch(&maps, world.api.store().revision()).unwrap();
        for line in
            ["create owner", "create child of owner", "create grandchild of child", "delete owner background"]
        {
            world.play(line);
        }
        let mut gone = Vec::new();
        while gone.len() < 3 {
            let event = events.next().await.unwrap();
            if event.event_type == EventType::Deleted {
                gone.push(event.entry.key.name.to_string());
            }
        }
        running.abort();
        gone
    });
    assert_eq!(gone, ["owner", "child", "grandchild"]);
}
