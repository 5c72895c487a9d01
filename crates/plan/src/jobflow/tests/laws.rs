//! What holds for every flow, whatever its shape and whatever happens to its jobs.

use std::sync::Arc;

use krafla_api::volcano::JobPhase;
use krafla_api::{Key, Kind};
use krafla_cluster::Step;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::fixture::{self, now};
use crate::jobflow::jobs::LOOKS;
use crate::jobflow::plan;
use crate::{Body, Departed, Object, Objects, Plan, Snapshot};

/// For each step, earlier steps that it waits for.
fn graphs() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let steps = proptest::collection::vec(proptest::collection::vec(any::<usize>(), 0..3), 1..9);
    steps.prop_map(|steps| {
        let earlier = |(at, targets): (usize, Vec<usize>)| {
            targets.into_iter().filter_map(|target| target.checked_rem(at)).collect()
        };
        steps.into_iter().enumerate().map(earlier).collect()
    })
}

fn describe(graph: &[Vec<usize>]) -> String {
    let step = |(at, targets): (usize, &Vec<usize>)| match targets.as_slice() {
        [] => format!("step s{at}"),
        targets => {
            let names: Vec<String> = targets.iter().map(|target| format!("s{target}")).collect();
            format!("step s{at} after={}", names.join(","))
        }
    };
    let steps: Vec<String> = graph.iter().enumerate().map(step).collect();
    format!("flow\n{}", steps.join("\n"))
}

/// A world in which plans are carried out at once.
struct World {
    objects: Objects,
    departed: Vec<Departed>,
    created: Vec<String>,
}

impl World {
    fn new(graph: &[Vec<usize>]) -> World {
        let (objects, departed) = fixture::parse(&describe(graph));
        World { objects, departed, created: Vec::new() }
    }

    fn plan(&self) -> Plan {
        let key = Key::new("ns", "f");
        let snapshot = Snapshot::new(Kind::JobFlow, &key, now(), &self.objects);
        plan(&Snapshot { departed: &self.departed, ..snapshot })
    }

    fn settle(&mut self) {
        for _ in 0..2 {
            let plan = self.plan();
            self.apply(&plan);
        }
    }

    fn apply(&mut self, plan: &Plan) {
        if let Some(Step::Patch { patch, .. }) = &plan.status {
            self.change_flow(&patch["status"]);
        }
        for step in &plan.steps {
            let Step::Create { object, .. } = step else { panic!("{step}") };
            let mut object = object.clone();
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            object["metadata"]["uid"] = json!(format!("{name}-{}", self.created.len()));
            object["spec"] = json!({});
            self.created.push(name);
            self.objects.insert(Arc::new(Object::decode(Kind::VcJob, object.to_string().as_bytes())));
        }
        self.departed.retain(|departed| !plan.settled.contains(&departed.object.meta.uid));
    }

    fn change_flow(&mut self, patch: &Value) {
        let flow = self.objects.get(Kind::JobFlow, &Key::new("ns", "f")).unwrap();
        let mut flow = Object::clone(flow);
        let Body::JobFlow(body) = &mut flow.body else { panic!("no flow") };
        let mut status = json!(body.status);
        merge(&mut status, patch);
        body.status = serde_json::from_value(status).unwrap();
        self.objects.insert(Arc::new(flow));
    }

    /// Moves one unfinished job on, or removes a finished one.
    fn happen(&mut self, choice: usize) {
        let jobs: Vec<Arc<Object>> = self.objects.all(Kind::VcJob).cloned().collect();
        let Some(job) = choice.checked_rem(jobs.len()).and_then(|index| jobs.get(index)) else { return };
        let mut changed = Object::clone(job);
        let Body::VcJob(body) = &mut changed.body else { panic!("no job") };
        let phase = &mut body.status.state.phase;
        match phase {
            JobPhase::Unset => *phase = JobPhase::Running,
            JobPhase::Running => *phase = JobPhase::Completed,
            _ => {
                let object = self.objects.remove(Kind::VcJob, &job.meta.key).unwrap();
                return self.departed.push(Departed { object, at: now() });
            }
        }
        self.objects.insert(Arc::new(changed));
    }

    fn phase(&self) -> &str {
        let flow = self.objects.get(Kind::JobFlow, &Key::new("ns", "f")).unwrap();
        flow.as_jobflow().unwrap().status.state.phase.as_str()
    }
}

fn merge(target: &mut Value, patch: &Value) {
    for (name, value) in patch.as_object().unwrap() {
        match value {
            Value::Object(_) if target[name].is_object() => merge(&mut target[name], value),
            Value::Null => drop(target.as_object_mut().unwrap().remove(name)),
            value => target[name] = value.clone(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// However its jobs go on and are collected, every job is made once, after all that it waits for, and in the end the
    /// flow has succeeded and has nothing more to do.
    #[test]
    fn every_step_runs_once_and_in_order(
        graph in graphs(),
        choices in proptest::collection::vec(any::<usize>(), 30),
    ) {
        let mut world = World::new(&graph);
        for choice in choices.into_iter().chain(std::iter::repeat_n(0, 30)) {
            world.settle();
            prop_assert!(world.plan().is_quiet(), "what is done leaves nothing to do: {}", world.plan());
            world.happen(choice);
        }
        world.settle();
        prop_assert_eq!(world.phase(), "Succeed");
        prop_assert_eq!(world.created.len(), graph.len(), "{:?}", world.created);
        let place = |step: usize| world.created.iter().position(|name| *name == format!("f-s{step}"));
        for (step, targets) in graph.iter().enumerate() {
            prop_assert!(targets.iter().all(|target| place(*target) < place(step)));
        }
    }
}

/// How many looks at jobs one decision about a graph takes, and how many jobs it makes.
fn looks(graph: &[Vec<usize>]) -> (usize, usize) {
    let world = World::new(graph);
    LOOKS.set(0);
    let plan = world.plan();
    (LOOKS.get(), plan.steps.len())
}

/// A decision looks at every step a few times and at every dependency once, whatever the shape of the graph.
#[test]
fn a_graph_of_a_thousand_steps_takes_looks_in_proportion_to_its_size() {
    let graph = |n_steps: usize, n_targets: usize| -> Vec<Vec<usize>> {
        (0..n_steps).map(|at| (at.saturating_sub(n_targets)..at).collect()).collect()
    };
    for (n_targets, n_ready) in [(0, 1000), (1, 1), (10, 1)] {
        let graph = graph(1000, n_targets);
        let n_edges: usize = graph.iter().map(Vec::len).sum();
        let (n_looks, n_made) = looks(&graph);
        assert_eq!(n_made, n_ready, "only what waits for nothing is made");
        assert!(n_looks <= 5 * graph.len() + n_edges, "{n_looks} looks at 1,000 steps with {n_edges} edges");
    }
}

/// A thousand steps, each of which waits for the ten before it, are planned at once: the jobs that are ready, and no others.
#[test]
fn a_graph_of_a_thousand_steps_is_planned_in_one_go() {
    let graph: Vec<Vec<usize>> = (0..1000usize).map(|at| (at.saturating_sub(10)..at).collect()).collect();
    let mut world = World::new(&graph);
    for n_made in 1..=8 {
        world.settle();
        assert_eq!(world.created.len(), n_made);
        let last = world.objects.all(Kind::VcJob).count() - 1;
        let names: Vec<String> =
            world.objects.all(Kind::VcJob).map(|job| job.meta.key.name.to_string()).collect();
        let place = names.iter().position(|name| *name == format!("f-s{last}")).unwrap();
        (0..2).for_each(|_| world.happen(place));
    }
}
