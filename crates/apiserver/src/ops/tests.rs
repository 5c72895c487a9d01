//! What requests mean, told as stories. No runtime is needed: every future of a store in memory is ready at once.

mod applied;
mod autoscalers;
mod contended;
mod control;
mod definitions;
mod events;
mod hostile;
mod jobs;
mod limits;
mod policies;
mod services;
mod versions;
mod volcano;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use expect_test::{Expect, expect};
use futures_util::FutureExt;
use krafla_api::{Key, Kind, Time, Uid};
use krafla_cluster::Propagation;
use serde_json::{Value, json};

use super::*;
use crate::admit::Volcano;
use crate::env::{suffix_of, uid_of};
use crate::patch::Patch;
use crate::selector::{FieldSelector, Filter, LabelSelector};

/// Surroundings in which nothing is left to chance.
#[derive(Default)]
struct Still(AtomicU64, AtomicU64);

impl Env for Still {
    fn now(&self) -> Time {
        let later = i64::try_from(self.1.load(Ordering::Relaxed)).unwrap_or(0);
        Time::from_seconds(1_800_000_000 + later)
    }

    fn uid(&self) -> Uid {
        let mut bytes = [0; 16];
        bytes[8..].copy_from_slice(&self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        uid_of(bytes)
    }

    fn suffix(&self) -> String {
        suffix_of([u8::try_from(self.0.fetch_add(1, Ordering::Relaxed)).unwrap_or(0); 5])
    }
}

struct Cluster(Api);

impl Cluster {
    fn new() -> Cluster {
        let admission = Admission::default().with(Volcano::default());
        let api = Api::new(Store::in_memory(), Arc::new(Still::default()), admission);
        api.bootstrap().now_or_never().expect("ready at once").expect("a new cluster");
        Cluster(api)
    }

    fn resource(&self, kind: Kind) -> Arc<Resource> {
        self.0.registry().of_kind(kind).expect("served")
    }

    fn create(&self, kind: Kind, object: Value) -> Result<Value, Status> {
        let resource = self.resource(kind);
        let namespace = if resource.is_namespaced() { "default" } else { "" };
        let object = crate::codec::normalise(&resource, &object).map_err(Status::bad_request)?;
        let options = WriteOptions::default();
        let created =
            self.0.create(&resource, namespace, object, &options).now_or_never().expect("ready at once");
        created.map(|answer| serde_json::from_slice(&answer.bytes).expect("JSON"))
    }

    fn patch(&self, kind: Kind, name: &str, part: Part, patch: Value) -> Result<Value, Status> {
        let patch = Patch::Merge(patch);
        let (resource, key, options) = (self.resource(kind), key(kind, name), WriteOptions::default());
        let patched =
            self.0.patch(&resource, &key, part, &patch, &options).now_or_never().expect("ready at once");
        patched.map(|answer| serde_json::from_slice(&answer.bytes).expect("JSON"))
    }

    fn delete(&self, kind: Kind, name: &str, options: &DeleteOptions) -> Result<Deleted, Status> {
        self.0.delete(&self.resource(kind), &key(kind, name), options).now_or_never().expect("ready at once")
    }

    fn get(&self, kind: Kind, name: &str) -> Option<Value> {
        let entry = self.0.get(&self.resource(kind), &key(kind, name)).ok()?;
        Some(serde_json::from_slice(&entry.bytes).expect("JSON"))
    }

    fn bind(&self, pod: &str, node: &str) -> Result<Answer, Status> {
        let binding = json!({"target": {"kind": "Node", "name": node}});
        let (pods, options) = (self.resource(Kind::Pod), WriteOptions::default());
        self.0.bind(&pods, &key(Kind::Pod, pod), &binding, &options).now_or_never().expect("ready at once")
    }
}

fn key(kind: Kind, name: &str) -> Key {
    Key::new(if kind.info().scope == krafla_api::Scope::Namespaced { "default" } else { "" }, name)
}

fn config_map(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": name}}, "data": {"k": "v"}})
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "busybox"}]}})
}

fn says(status: &Status, expected: Expect) {
    expected.assert_eq(&format!("{} {}: {}", status.code, status.reason, status.message));
}

#[test]
fn the_rest_of_an_old_list_can_be_had_as_it_is_now() {
    let env = Arc::new(Still::default());
    let cluster = Cluster(Api::new(Store::in_memory(), env.clone(), Admission::default()));
    cluster.0.bootstrap().now_or_never().unwrap().unwrap();
    for name in ["a", "b", "c"] {
        cluster.create(Kind::ConfigMap, config_map(name)).unwrap();
    }
    let resource = cluster.resource(Kind::ConfigMap);
    let filter = Filter { namespace: Some("default".to_owned()), ..Filter::default() };
    let page = |continue_token: Option<String>| {
        let options =
            ListOptions { filter: filter.clone(), limit: 1, continue_token, ..ListOptions::default() };
        cluster.0.list(&resource, &options)
    };
    let names =
        |listing: &Listing| listing.items.iter().map(|entry| entry.key.name.to_string()).collect::<Vec<_>>();
    let first = page(None).unwrap();
    cluster.create(Kind::ConfigMap, config_map("ab")).unwrap();
    assert_eq!(names(&page(first.continue_token.clone()).unwrap()), ["b"], "as it was at first");
    env.1.store(301, Ordering::Relaxed);
    let expired = page(first.continue_token).unwrap_err();
    assert_eq!((expired.code, &*expired.reason), (410, "Expired"));
    let token = expired.to_json()["metadata"]["continue"].as_str().unwrap().to_owned();
    let second = page(Some(token)).unwrap();
    assert_eq!(names(&second), ["ab"], "as it is now");
    env.1.store(400, Ordering::Relaxed);
    assert_eq!(names(&page(second.continue_token).unwrap()), ["b"], "and so it goes on");
}

#[test]
fn a_pod_can_be_replaced_by_the_manifest_that_made_it() {
    let cluster = Cluster::new();
    let made = cluster.create(Kind::Pod, pod("a")).unwrap();
    let resource = cluster.resource(Kind::Pod);
    let manifest = crate::codec::normalise(&resource, &pod("a")).unwrap();
    let options = WriteOptions::default();
    let (key, part) = (key(Kind::Pod, "a"), Part::Main);
    let replaced = cluster.0.update(&resource, &key, part, manifest, &options).now_or_never().unwrap();
    let replaced: Value = serde_json::from_slice(&replaced.unwrap().bytes).unwrap();
    assert_eq!(replaced, made, "and nothing is written");
}

#[test]
fn a_new_object_gets_an_identity_and_nothing_that_its_author_made_up() {
    let cluster = Cluster::new();
    let mut made_up = config_map("a");
    made_up["metadata"]["uid"] = "mine".into();
    made_up["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into();
    let created = cluster.create(Kind::ConfigMap, made_up).unwrap();
    assert_eq!(created["metadata"]["creationTimestamp"], "2027-01-15T08:00:00Z");
    assert_ne!(created["metadata"]["uid"], "mine");
    assert_eq!((created["kind"].as_str(), created["apiVersion"].as_str()), (Some("ConfigMap"), Some("v1")));
    says(
        &cluster.create(Kind::ConfigMap, config_map("a")).unwrap_err(),
        expect![[r#"409 AlreadyExists: configmaps "a" already exists"#]],
    );
}

#[test]
fn a_generated_name_ends_in_five_random_characters() {
    let cluster = Cluster::new();
    let created = cluster.create(Kind::ConfigMap, json!({"metadata": {"generateName": "gen-"}})).unwrap();
    let name = created["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("gen-") && name.len() == 9, "{name}");
}

#[test]
fn nothing_is_created_in_a_namespace_that_is_not_there_or_goes_away() {
    let cluster = Cluster::new();
    let maps = cluster.resource(Kind::ConfigMap);
    let create = |namespace: &str| {
        let options = WriteOptions::default();
        cluster.0.create(&maps, namespace, config_map("a"), &options).now_or_never().unwrap().unwrap_err()
    };
    says(&create("none"), expect![[r#"404 NotFound: namespaces "none" not found"#]]);
    cluster.create(Kind::Namespace, json!({"metadata": {"name": "going"}})).unwrap();
    cluster.delete(Kind::Namespace, "going", &DeleteOptions::default()).unwrap();
    says(
        &create("going"),
        expect![[
            r#"403 Forbidden: configmaps "a" is forbidden: unable to create new content in namespace going because it is being terminated"#
        ]],
    );
}

#[test]
fn a_write_that_changes_nothing_is_not_written() {
    let cluster = Cluster::new();
    let before = cluster.create(Kind::ConfigMap, config_map("a")).unwrap();
    let revision = cluster.0.store().revision();
    let after = cluster.patch(Kind::ConfigMap, "a", Part::Main, json!({"data": {"k": "v"}})).unwrap();
    assert_eq!(before, after);
    assert_eq!(cluster.0.store().revision(), revision);
}

#[test]
fn a_write_computed_from_an_old_state_is_refused() {
    let cluster = Cluster::new();
    let old = cluster.create(Kind::ConfigMap, config_map("a")).unwrap();
    cluster.patch(Kind::ConfigMap, "a", Part::Main, json!({"data": {"k": "w"}})).unwrap();
    let (maps, key, options) =
        (cluster.resource(Kind::ConfigMap), key(Kind::ConfigMap, "a"), WriteOptions::default());
    let replaced = cluster.0.update(&maps, &key, Part::Main, old, &options);
    says(
        &replaced.now_or_never().unwrap().unwrap_err(),
        expect![[
            r#"409 Conflict: Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again"#
        ]],
    );
}

#[test]
fn generation_counts_changes_of_the_spec_alone() {
    let cluster = Cluster::new();
    let generation = |object: Value| object["metadata"]["generation"].as_i64();
    assert_eq!(generation(cluster.create(Kind::Pod, pod("p")).unwrap()), Some(1));
    let labelled = cluster.patch(Kind::Pod, "p", Part::Main, json!({"metadata": {"labels": {"a": "b"}}}));
    assert_eq!(generation(labelled.unwrap()), Some(1));
    let changed = cluster.patch(Kind::Pod, "p", Part::Main, json!({"spec": {"activeDeadlineSeconds": 5}}));
    assert_eq!(generation(changed.unwrap()), Some(2));
    let running = cluster.patch(Kind::Pod, "p", Part::Status, json!({"status": {"phase": "Running"}}));
    assert_eq!(generation(running.unwrap()), Some(2));
}

#[test]
fn status_is_written_through_its_own_path_only() {
    let cluster = Cluster::new();
    cluster.create(Kind::Pod, pod("p")).unwrap();
    let both = json!({"status": {"phase": "Failed"}, "spec": {"activeDeadlineSeconds": 5}});
    let main = cluster.patch(Kind::Pod, "p", Part::Main, both.clone()).unwrap();
    assert_eq!(
        (&main["status"]["phase"], &main["spec"]["activeDeadlineSeconds"]),
        (&json!("Pending"), &json!(5))
    );
    let other = json!({"status": {"phase": "Failed"}, "spec": {"activeDeadlineSeconds": 9}});
    let status = cluster.patch(Kind::Pod, "p", Part::Status, other).unwrap();
    assert_eq!(
        (&status["status"]["phase"], &status["spec"]["activeDeadlineSeconds"]),
        (&json!("Failed"), &json!(5))
    );
}

#[test]
fn a_bound_pod_stays_until_its_node_confirms() {
    let cluster = Cluster::new();
    cluster.create(Kind::Pod, pod("p")).unwrap();
    cluster.bind("p", "n1").unwrap();
    says(
        &cluster.bind("p", "n2").unwrap_err(),
        expect![[
            r#"409 Conflict: Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1""#
        ]],
    );
    assert!(matches!(cluster.delete(Kind::Pod, "p", &DeleteOptions::default()), Ok(Deleted::Marked(_))));
    let going = cluster.get(Kind::Pod, "p").unwrap();
    assert_eq!(going["metadata"]["deletionTimestamp"], "2027-01-15T08:00:30Z");
    assert_eq!(going["metadata"]["deletionGracePeriodSeconds"], 30);
    let at_once = DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() };
    assert!(matches!(cluster.delete(Kind::Pod, "p", &at_once), Ok(Deleted::Gone(_))));
    assert_eq!(cluster.get(Kind::Pod, "p"), None);
}

#[test]
fn an_unscheduled_or_finished_pod_goes_at_once() {
    let cluster = Cluster::new();
    cluster.create(Kind::Pod, pod("waiting")).unwrap();
    assert!(matches!(cluster.delete(Kind::Pod, "waiting", &DeleteOptions::default()), Ok(Deleted::Gone(_))));
    cluster.create(Kind::Pod, pod("done")).unwrap();
    cluster.bind("done", "n1").unwrap();
    cluster.patch(Kind::Pod, "done", Part::Status, json!({"status": {"phase": "Succeeded"}})).unwrap();
    assert!(matches!(cluster.delete(Kind::Pod, "done", &DeleteOptions::default()), Ok(Deleted::Gone(_))));
}

#[test]
fn a_finalizer_holds_a_deleted_object_until_it_is_taken_away() {
    let cluster = Cluster::new();
    let mut held = config_map("a");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cluster.create(Kind::ConfigMap, held).unwrap();
    assert!(matches!(
        cluster.delete(Kind::ConfigMap, "a", &DeleteOptions::default()),
        Ok(Deleted::Marked(_))
    ));
    assert!(cluster.get(Kind::ConfigMap, "a").is_some());
    let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    says(
        &cluster.patch(Kind::ConfigMap, "a", Part::Main, more).unwrap_err(),
        expect![[
            r#"422 Invalid: ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/more"}"#
        ]],
    );
    cluster.patch(Kind::ConfigMap, "a", Part::Main, json!({"metadata": {"finalizers": null}})).unwrap();
    assert_eq!(cluster.get(Kind::ConfigMap, "a"), None);
}

#[test]
fn what_becomes_of_dependents_is_remembered_as_a_finalizer() {
    let cluster = Cluster::new();
    cluster.create(Kind::ConfigMap, config_map("a")).unwrap();
    let foreground = DeleteOptions { propagation: Some(Propagation::Foreground), ..DeleteOptions::default() };
    assert!(matches!(cluster.delete(Kind::ConfigMap, "a", &foreground), Ok(Deleted::Marked(_))));
    assert_eq!(
        cluster.get(Kind::ConfigMap, "a").unwrap()["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
}

#[test]
fn a_namesake_is_never_deleted() {
    let cluster = Cluster::new();
    cluster.create(Kind::ConfigMap, config_map("a")).unwrap();
    let another = DeleteOptions { uid: Some("another".into()), ..DeleteOptions::default() };
    assert_eq!(cluster.delete(Kind::ConfigMap, "a", &another).unwrap_err().reason, "Conflict");
    assert!(cluster.get(Kind::ConfigMap, "a").is_some());
}

#[test]
fn a_deleted_namespace_goes_when_its_content_is_gone() {
    let cluster = Cluster::new();
    cluster.create(Kind::Namespace, json!({"metadata": {"name": "ns"}})).unwrap();
    let maps = cluster.resource(Kind::ConfigMap);
    let mut held = config_map("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    for map in [config_map("a"), held] {
        let options = WriteOptions::default();
        cluster.0.create(&maps, "ns", map, &options).now_or_never().unwrap().unwrap();
    }
    cluster.delete(Kind::Namespace, "ns", &DeleteOptions::default()).unwrap();
    let left = cluster.0.empty_namespaces().now_or_never().unwrap().unwrap();
    assert_eq!(left.into_iter().map(|id| id.to_string()).collect::<Vec<_>>(), ["configmaps"]);
    assert!(cluster.get(Kind::Namespace, "ns").is_some());
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let (held, options) = (Key::new("ns", "held"), WriteOptions::default());
    cluster.0.patch(&maps, &held, Part::Main, &release, &options).now_or_never().unwrap().unwrap();
    assert!(cluster.0.empty_namespaces().now_or_never().unwrap().unwrap().is_empty());
    assert_eq!(cluster.get(Kind::Namespace, "ns"), None);
}

#[test]
fn pages_show_one_state_of_the_world() {
    let cluster = Cluster::new();
    for name in ["a", "b", "c"] {
        cluster.create(Kind::ConfigMap, config_map(name)).unwrap();
    }
    let maps = cluster.resource(Kind::ConfigMap);
    let first = cluster.0.list(&maps, &ListOptions { limit: 2, ..ListOptions::default() }).unwrap();
    assert_eq!((first.items.len(), first.remaining), (2, Some(1)));
    cluster.delete(Kind::ConfigMap, "c", &DeleteOptions::default()).unwrap();
    let rest = ListOptions { continue_token: first.continue_token, ..ListOptions::default() };
    let second = cluster.0.list(&maps, &rest).unwrap();
    let names: Vec<&str> = second.items.iter().map(|entry| &*entry.key.name).collect();
    assert_eq!((names, second.continue_token), (vec!["c"], None));
}

#[test]
fn selectors_choose_by_label_and_by_field() {
    let cluster = Cluster::new();
    for name in ["a", "b"] {
        cluster.create(Kind::Pod, pod(name)).unwrap();
    }
    cluster.bind("b", "n1").unwrap();
    let pods = cluster.resource(Kind::Pod);
    let fields = FieldSelector::parse("spec.nodeName=n1", &pods).unwrap();
    let filter = Filter { fields, ..Filter::default() };
    let listed = cluster.0.list(&pods, &ListOptions { filter, ..ListOptions::default() }).unwrap();
    assert_eq!(listed.items.iter().map(|entry| &*entry.key.name).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn a_change_that_leaves_the_filter_is_a_deletion_for_its_watcher() {
    let cluster = Cluster::new();
    cluster.create(Kind::ConfigMap, config_map("a")).unwrap();
    let filter = Filter { labels: LabelSelector::parse("app=a").unwrap(), ..Filter::default() };
    let options = WatchOptions { filter, ..WatchOptions::default() };
    let mut watch = cluster.0.watch(&cluster.resource(Kind::ConfigMap), options).unwrap();
    cluster.patch(Kind::ConfigMap, "a", Part::Main, json!({"metadata": {"labels": {"app": "b"}}})).unwrap();
    cluster.patch(Kind::ConfigMap, "a", Part::Main, json!({"metadata": {"labels": {"app": "a"}}})).unwrap();
    let mut seen = Vec::new();
    while let Some(event) = watch.try_next() {
        seen.push(match event.unwrap() {
            WatchEvent::Stored(event) => event.event_type.as_str().to_owned(),
            WatchEvent::Added(entry) => format!("added {}", entry.key.name),
            WatchEvent::Deleted(entry, _) => format!("deleted {}", entry.key.name),
            WatchEvent::InitialEnd(_) => "that was all".to_owned(),
        });
    }
    assert_eq!(seen, ["added a", "that was all", "deleted a", "added a"]);
}

#[test]
fn a_dry_run_answers_and_stores_nothing() {
    let cluster = Cluster::new();
    let revision = cluster.0.store().revision();
    let (maps, options) =
        (cluster.resource(Kind::ConfigMap), WriteOptions { dry_run: true, ..WriteOptions::default() });
    let answer =
        cluster.0.create(&maps, "default", config_map("a"), &options).now_or_never().unwrap().unwrap();
    assert!(answer.is_new && answer.revision == 0);
    assert_eq!(cluster.0.store().revision(), revision);
}

#[test]
fn a_job_is_completed_and_its_faults_are_all_named() {
    let cluster = Cluster::new();
    let task = |name: &str| {
        let template =
            json!({"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}});
        json!({"name": name, "replicas": 1, "template": template})
    };
    let job = |tasks: Value| json!({"metadata": {"name": "j"}, "spec": {"minAvailable": 1, "tasks": tasks}});
    let created = cluster.create(Kind::VcJob, job(json!([task("t")]))).unwrap();
    assert_eq!(created["spec"]["queue"], "default");
    assert_eq!(created["spec"]["schedulerName"], "volcano");
    let twice = cluster.create(Kind::VcJob, job(json!([task("t"), task("t")]))).unwrap_err();
    assert_eq!((twice.code, &*twice.reason), (422, "Invalid"));
}

#[test]
fn a_gang_gets_the_queue_of_its_namespace_when_it_is_created_and_not_later() {
    let cluster = Cluster::new();
    let group =
        |name: &str| json!({"metadata": {"name": name}, "spec": {"minMember": 1, "queue": "default"}});
    cluster.create(Kind::PodGroup, group("before")).unwrap();
    let open = json!({"metadata": {"name": "team"}, "spec": {"weight": 1}, "status": {"state": "Open"}});
    cluster.create(Kind::Queue, open).unwrap();
    cluster.patch(Kind::Queue, "team", Part::Status, json!({"status": {"state": "Open"}})).unwrap();
    let annotations = json!({"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "team"}}});
    cluster.patch(Kind::Namespace, "default", Part::Main, annotations).unwrap();
    assert_eq!(cluster.create(Kind::PodGroup, group("after")).unwrap()["spec"]["queue"], "team");
    let touched = json!({"metadata": {"labels": {"touched": "yes"}}});
    let patched = cluster.patch(Kind::PodGroup, "before", Part::Main, touched).unwrap();
    assert_eq!(patched["spec"]["queue"], "default");
}

#[test]
fn a_new_cluster_has_its_namespaces_queues_and_priorities() {
    let cluster = Cluster::new();
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease", "volcano-system"] {
        assert!(cluster.get(Kind::Namespace, namespace).is_some(), "{namespace}");
    }
    for queue in ["root", "default"] {
        assert_eq!(cluster.get(Kind::Queue, queue).unwrap()["status"]["state"], "Open", "{queue}");
    }
    assert_eq!(cluster.get(Kind::PriorityClass, "system-node-critical").unwrap()["value"], 2_000_001_000);
    let revision = cluster.0.store().revision();
    cluster.0.bootstrap().now_or_never().unwrap().unwrap();
    assert_eq!(cluster.0.store().revision(), revision);
}
