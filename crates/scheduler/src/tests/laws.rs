//! What holds for every cluster: clusters are drawn at random, and a failing one is printed as a table's text.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_api::Kind;
use krafla_cluster::Step;
use krafla_plan::{Objects, Plan};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::fixture::{decode, manifests, plan, plan_later, plan_preempting, plan_reclaiming};

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn decisions_settle(cluster in cluster()) {
        let mut world = World::new(&cluster);
        // One gang that ends can let the next one in, and so on; six gangs are drawn at most.
        for _ in 0..10 {
            let plan = plan(&world.objects());
            world.apply(&plan);
        }
        let plan = plan(&world.objects());
        prop_assert!(plan.is_quiet(), "still writes:\n{plan}");
    }

    #[test]
    fn taking_back_settles_and_breaks_no_gang(cluster in cluster()) {
        let mut world = World::new(&cluster);
        for _ in 0..20 {
            let plan = plan_reclaiming(&world.objects());
            let is_whole = |world: &World, group: &String| world.n_placed(group) >= world.n_needed(group);
            let groups: Vec<String> = world.all("PodGroup").map(name_of).collect();
            let whole: Vec<String> = groups.into_iter().filter(|group| is_whole(&world, group)).collect();
            world.apply(&plan);
            for group in whole.iter().filter(|group| world.n_needed(group) > 1) {
                prop_assert!(is_whole(&world, group), "{group} was broken:\n{plan}");
            }
        }
        let plan = plan_reclaiming(&world.objects());
        prop_assert!(plan.is_quiet(), "still writes:\n{plan}");
        if !world.all("Pod").any(is_leaving) {
            let waits = |group: &&Value| group.to_string().contains("waits for pods that are leaving");
            prop_assert_eq!(world.all("PodGroup").find(waits), None, "nobody leaves");
        }
    }

    #[test]
    fn a_gang_gets_enough_nodes_or_none(cluster in cluster()) {
        let mut world = World::new(&cluster);
        let plan = plan(&world.objects());
        world.apply(&plan);
        let groups = plan.steps.iter().filter_map(|step| world.group_of(step));
        for group in groups {
            let (n_placed, n_needed) = (world.n_placed(&group), world.n_needed(&group));
            prop_assert!(n_placed >= n_needed, "{group} has {n_placed} of {n_needed} pods placed");
        }
    }

    #[test]
    fn making_room_for_priorities_settles(cluster in cluster()) {
        let mut world = World::new(&cluster);
        for _ in 0..20 {
            let plan = plan_preempting(&world.objects());
            world.apply(&plan);
        }
        let plan = plan_preempting(&world.objects());
        prop_assert!(plan.is_quiet(), "still writes:\n{plan}");
    }

    #[test]
    fn only_pods_that_this_scheduler_manages_must_go(cluster in cluster()) {
        let world = World::new(&cluster);
        let plans = [plan_reclaiming(&world.objects()), plan_preempting(&world.objects())];
        for step in plans.iter().flat_map(Plan::writes) {
            let Step::Delete { kind, key, .. } = step else { continue };
            prop_assert_eq!(*kind, Kind::Pod);
            let pod = world.find("Pod", &key.name);
            prop_assert_eq!(&pod["spec"]["schedulerName"], "volcano");
            prop_assert!(!pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"].is_null());
        }
    }

    #[test]
    fn queues_that_come_together_share_from_the_start(burst in burst()) {
        burst.check()?;
    }

    #[test]
    fn every_pod_that_waits_says_so_once(cluster in cluster()) {
        let mut world = World::new(&cluster);
        let mut reports: BTreeMap<(String, String), usize> = BTreeMap::new();
        for _ in 0..10 {
            let plan = plan(&world.objects());
            for (pod, message) in plan.writes().filter_map(reported) {
                *reports.entry((pod, message)).or_default() += 1;
            }
            world.apply(&plan);
        }
        for ((pod, message), n_times) in reports {
            prop_assert_eq!(n_times, 1, "{} says {}", pod, message);
        }
    }

    #[test]
    fn no_node_gets_more_than_it_has(cluster in cluster()) {
        let mut world = World::new(&cluster);
        let before = world.used_cpu();
        world.apply(&plan(&world.objects()));
        for (node, used) in world.used_cpu() {
            let had = before.get(&node).copied().unwrap_or(0);
            prop_assert!(used <= had.max(world.cpu_of(&node)), "{node} is overdrawn: {used}");
        }
    }

    #[test]
    fn every_pod_is_bound_once_and_only_if_it_had_no_node(cluster in cluster()) {
        let world = World::new(&cluster);
        let plan = plan(&world.objects());
        let mut bound = std::collections::BTreeSet::new();
        for step in &plan.steps {
            let Step::Bind { pod, .. } = step else { continue };
            prop_assert!(bound.insert(pod.clone()), "{pod} is bound twice");
            prop_assert_eq!(&world.find("Pod", &pod.name)["spec"]["nodeName"], "");
        }
    }

    #[test]
    fn room_for_a_lone_pod_is_not_left_idle(cluster in lone_pods()) {
        let mut world = World::new(&cluster);
        world.apply(&plan(&world.objects()));
        world.check_that_nobody_waits_beside_room()?;
    }

    #[test]
    fn room_is_not_left_idle_for_the_sake_of_shares(cluster in lone_pods_of_queues()) {
        let mut world = World::new(&cluster);
        world.apply(&plan(&world.objects()));
        world.check_that_nobody_waits_beside_room()?;
    }
}

/// A cluster with everything that decisions look at, in small numbers so that they meet.
fn cluster() -> impl Strategy<Value = String> {
    let nodes = prop::collection::vec(node(), 0..4);
    let queues = prop::collection::vec(queue(), 3);
    let gangs = prop::collection::vec(gang(), 0..6);
    let lone = prop::collection::vec(0..5_u32, 0..4);
    (nodes, queues, gangs, lone).prop_map(|(nodes, queues, gangs, lone)| {
        let mut lines = vec!["class urgent value=10".to_owned()];
        lines.extend(nodes.iter().enumerate().map(|(index, node)| format!("node n{index} {node}")));
        lines.extend(queues.iter().enumerate().map(|(index, queue)| format!("queue q{index} {queue}")));
        for (index, (gang, pods)) in gangs.iter().enumerate() {
            lines.push(format!("podgroup g{index} {gang}"));
            lines.extend(
                pods.iter().enumerate().map(|(pod, words)| format!("pod g{index}-{pod} of=g{index} {words}")),
            );
        }
        lines.extend(lone.iter().enumerate().map(|(index, cpu)| format!("pod lone-{index} cpu={cpu}")));
        lines.join("\n")
    })
}

fn node() -> impl Strategy<Value = String> {
    let marks = prop::sample::select(vec!["", "", "", "cordoned", "down", "taint=gpu"]);
    (1..8_u32, 1..6_u32, 0..2_u32, marks)
        .prop_map(|(cpu, pods, zone, mark)| format!("cpu={cpu} pods={pods} label:zone=z{zone} {mark}"))
}

fn queue() -> impl Strategy<Value = String> {
    let parents = prop::sample::select(vec!["root", "q0", "q1", "missing"]);
    let extras = prop::sample::select(vec![
        "",
        "",
        "cap:cpu=3",
        "guarantee:cpu=2",
        "deserved:cpu=2",
        "fifo",
        "priority=3",
        "state=Closed",
    ]);
    (1..4_u32, parents, extras)
        .prop_map(|(weight, parent, extra)| format!("weight={weight} parent={parent} {extra}"))
}

/// A PodGroup's words, and those of its pods.
fn gang() -> impl Strategy<Value = (String, Vec<String>)> {
    let phases =
        prop::sample::select(vec!["", "Pending", "Inqueue", "Inqueue", "Running", "Unknown", "Completed"]);
    let extras = prop::sample::select(vec![
        "",
        "",
        "priority=urgent",
        "task:a=1",
        "young",
        "unschedulable=why",
        "scheduled",
    ]);
    let queues = prop::sample::select(vec!["default", "q0", "q1", "q2", "missing"]);
    let pods = prop::collection::vec(pod(), 0..5);
    (0..4_u32, phases, queues, 0..5_u32, extras, pods).prop_map(|(min, phase, queue, needs, extra, pods)| {
        (format!("min={min} phase={phase} queue={queue} needs:cpu={needs} {extra}"), pods)
    })
}

fn pod() -> impl Strategy<Value = String> {
    let states = prop::sample::select(vec![
        "",
        "",
        "",
        "",
        "",
        "gated",
        "deleting",
        "on=n0",
        "on=n0 phase=Running",
        "on=n1 phase=Succeeded",
        "on=n1 phase=Failed",
        "on=n0 phase=Running deleting",
    ]);
    let extras = prop::sample::select(vec![
        "",
        "",
        "",
        "task=a",
        "tolerates=gpu",
        "node:zone=z1",
        "label:app=x away=app:x@zone",
        "label:app=x near=app:x@zone",
        "priority=urgent",
        "scheduler=other",
        "scheduler=default-scheduler",
    ]);
    (0..5_u32, states, extras).prop_map(|(cpu, state, extra)| format!("cpu={cpu} {state} {extra}"))
}

fn lone_pods() -> impl Strategy<Value = String> {
    let nodes = prop::collection::vec(1..8_u32, 1..4);
    let pods = prop::collection::vec(1..5_u32, 0..12);
    (nodes, pods).prop_map(|(nodes, pods)| {
        let nodes = nodes.iter().enumerate().map(|(index, cpu)| format!("node n{index} cpu={cpu} pods=100"));
        let pods = pods.iter().enumerate().map(|(index, cpu)| format!("pod lone-{index} cpu={cpu}"));
        nodes.chain(pods).collect::<Vec<_>>().join("\n")
    })
}

/// Pods of one processor each, in queues of different weights; some want nodes of one zone.
fn lone_pods_of_queues() -> impl Strategy<Value = String> {
    let nodes = prop::collection::vec((1..4_u32, 0..2_u32), 1..4);
    let queues = prop::collection::vec(1..4_u32, 3);
    let zones = prop::sample::select(vec!["", "", "node:zone=z0", "node:zone=z1"]);
    let places = prop::sample::select(vec!["", "", "on=n0 phase=Running", "on=n1 phase=Running"]);
    let pods = prop::collection::vec((0..3_u32, zones, places), 0..12);
    (nodes, queues, pods).prop_map(|(nodes, queues, pods)| {
        let nodes = nodes.iter().enumerate();
        let nodes =
            nodes.map(|(index, (cpu, zone))| format!("node n{index} cpu={cpu} pods=100 label:zone=z{zone}"));
        let queues =
            queues.iter().enumerate().map(|(index, weight)| format!("queue q{index} weight={weight}"));
        let pods = pods.iter().enumerate();
        let pods = pods.map(|(index, (queue, zone, place))| {
            format!("pod lone-{index} cpu=1 queue=q{queue} {zone} {place}")
        });
        nodes.chain(queues).chain(pods).collect::<Vec<_>>().join("\n")
    })
}

/// The pod of a report, and what it says without the numbers, which are no news.
fn reported(step: &Step) -> Option<(String, String)> {
    let Step::Patch { kind: Kind::Pod, key, patch, .. } = step else { return None };
    let conditions = patch["status"]["conditions"].as_array()?;
    let condition = conditions.iter().find(|it| it["type"] == "PodScheduled")?;
    let message = condition["message"].as_str()?.replace(|letter: char| letter.is_ascii_digit(), "");
    Some((key.name.to_string(), message))
}

/// Jobs of several queues that are submitted together and arrive one after the other. Their pods ask for one processor
/// each and need not start together.
#[derive(Debug)]
struct Burst {
    n_processors: u32,
    /// Weight, and how many pods, in the order in which they arrive.
    queues: Vec<(u32, u32)>,
}

fn burst() -> impl Strategy<Value = Burst> {
    let queues = prop::collection::vec((1..4_u32, 1..12_u32), 2..6);
    (4..30_u32, queues).prop_map(|(n_processors, queues)| Burst { n_processors, queues })
}

impl Burst {
    /// No queue has a whole pod more than its share while another one, whose pods wait, has a whole pod less than its own.
    fn check(&self) -> Result<(), TestCaseError> {
        let mut text = format!("node one cpu={} pods=1000\n", self.n_processors);
        for (index, (weight, _)) in self.queues.iter().enumerate() {
            text += &format!("queue q{index} weight={weight}\n");
        }
        let mut world = World::new(&text);
        for (index, (_, n_pods)) in self.queues.iter().enumerate() {
            let mut job = format!("podgroup g{index} min=1 queue=q{index} phase=Inqueue new\n");
            for pod in 0..*n_pods {
                job += &format!("pod g{index}-{pod} of=g{index} new\n");
            }
            // The first two are the queues that always exist.
            world.manifests.extend(manifests(&job).into_iter().skip(2));
            world.apply(&plan(&world.objects()));
        }
        world.apply(&plan_later(&world.objects(), 2));
        let had: Vec<i64> = (0..self.queues.len()).map(|it| world.n_placed(&format!("g{it}"))).collect();
        let due = self.shares();
        for (queue, other) in (0..had.len()).flat_map(|queue| (0..had.len()).map(move |it| (queue, it))) {
            let waits = had[other] < i64::from(self.queues[other].1);
            let has_too_much = had[queue] as f64 >= due[queue] + 1.0;
            let has_too_little = had[other] as f64 <= due[other] - 1.0;
            prop_assert!(!(waits && has_too_much && has_too_little), "{had:?} of {due:?}");
        }
        Ok(())
    }

    /// What is due to each queue: what one does not want goes to the others by their weights.
    fn shares(&self) -> Vec<f64> {
        let mut due = vec![0.0; self.queues.len()];
        let mut left = f64::from(self.n_processors);
        loop {
            let wants = |queue: usize, due: &[f64]| f64::from(self.queues[queue].1) - due[queue];
            let open: Vec<usize> = (0..due.len()).filter(|queue| wants(*queue, &due) > 1e-9).collect();
            let weights: f64 = open.iter().map(|queue| f64::from(self.queues[*queue].0)).sum();
            if open.is_empty() || left < 1e-9 {
                return due;
            }
            let level = open.iter().map(|it| wants(*it, &due) / f64::from(self.queues[*it].0));
            let level = level.fold(left / weights, f64::min);
            for queue in open {
                let more = level * f64::from(self.queues[queue].0);
                due[queue] += more;
                left -= more;
            }
        }
    }
}

/// Objects as a server would keep them.
pub(crate) struct World {
    manifests: Vec<Value>,
}

impl World {
    pub(crate) fn new(cluster: &str) -> World {
        World { manifests: manifests(cluster) }
    }

    pub(crate) fn objects(&self) -> Objects {
        let mut objects = Objects::default();
        for manifest in &self.manifests {
            objects.insert(Arc::new(decode(manifest)));
        }
        objects
    }

    pub(crate) fn apply(&mut self, plan: &Plan) {
        for step in plan.writes() {
            match step {
                Step::Create { object, .. } => self.manifests.push(object.clone()),
                Step::Patch { kind, key, patch, .. } => {
                    merge(self.find_mut(kind.info().kind, &key.name), patch)
                }
                Step::Bind { pod, node, .. } => {
                    self.find_mut("Pod", &pod.name)["spec"]["nodeName"] = json!(node)
                }
                Step::CreateGenerated { .. } => panic!("the scheduler makes nothing of this sort: {step}"),
                Step::Delete { kind, key, .. } => {
                    let is_it =
                        |it: &Value| it["kind"] == kind.info().kind && it["metadata"]["name"] == *key.name;
                    self.manifests.retain(|manifest| !is_it(manifest));
                }
            }
        }
    }

    fn all(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.manifests.iter().filter(move |manifest| manifest["kind"] == kind)
    }

    fn find(&self, kind: &str, name: &str) -> &Value {
        self.all(kind).find(|manifest| manifest["metadata"]["name"] == name).unwrap()
    }

    pub(crate) fn find_mut(&mut self, kind: &str, name: &str) -> &mut Value {
        let mut all = self.manifests.iter_mut().filter(|manifest| manifest["kind"] == kind);
        all.find(|manifest| manifest["metadata"]["name"] == name).unwrap()
    }

    /// The PodGroup of a pod that a step binds.
    fn group_of(&self, step: &Step) -> Option<String> {
        let Step::Bind { pod, .. } = step else { return None };
        let pod = self.find(Kind::Pod.info().kind, &pod.name);
        Some(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"].as_str()?.to_owned())
    }

    fn n_needed(&self, group: &str) -> i64 {
        self.find("PodGroup", group)["spec"]["minMember"].as_i64().unwrap()
    }

    fn n_placed(&self, group: &str) -> i64 {
        let pods = self
            .all("Pod")
            .filter(|pod| pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == group);
        let counts = |pod: &&Value| {
            let phase = pod["status"]["phase"].as_str().unwrap();
            phase == "Succeeded" || (pod["spec"]["nodeName"] != "" && !is_leaving(pod))
        };
        i64::try_from(pods.filter(counts).count()).unwrap()
    }

    fn check_that_nobody_waits_beside_room(&self) -> Result<(), TestCaseError> {
        let used = self.used_cpu();
        for pod in self.all("Pod").filter(|pod| pod["spec"]["nodeName"] == "") {
            let will_do = |node: &&Value| {
                let wanted = pod["spec"]["nodeSelector"].as_object().unwrap();
                wanted.iter().all(|(key, value)| node["metadata"]["labels"][key] == *value)
            };
            for node in self.all("Node").filter(will_do).map(name_of) {
                let free = self.cpu_of(&node) - used.get(&node).copied().unwrap_or(0);
                prop_assert!(cpu(pod) > free, "{} waits, and {node} has {free}", name_of(pod));
            }
        }
        Ok(())
    }

    fn used_cpu(&self) -> BTreeMap<String, i64> {
        let mut used = BTreeMap::new();
        for pod in self
            .all("Pod")
            .filter(|pod| !["Succeeded", "Failed"].contains(&pod["status"]["phase"].as_str().unwrap()))
        {
            *used.entry(pod["spec"]["nodeName"].as_str().unwrap().to_owned()).or_default() += cpu(pod);
        }
        used.remove("");
        used
    }

    fn cpu_of(&self, node: &str) -> i64 {
        let node = self.all("Node").find(|it| it["metadata"]["name"] == node);
        node.map_or(i64::MAX, |node| node["status"]["allocatable"]["cpu"].as_str().unwrap().parse().unwrap())
    }
}

fn name_of(manifest: &Value) -> String {
    manifest["metadata"]["name"].as_str().unwrap().to_owned()
}

fn is_leaving(pod: &Value) -> bool {
    !pod["metadata"]["deletionTimestamp"].is_null()
}

fn cpu(pod: &Value) -> i64 {
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].as_str().unwrap().parse().unwrap()
}

/// JSON merge patch.
fn merge(target: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (field, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(field);
        } else {
            merge(&mut target[field], value);
        }
    }
}
