//! A node's agent: it starts the pods that are bound, lets them live as the scenario says, and confirms their end.
//!
//! ```text
//!   bound --1 s--> Running --life--> Succeeded | Failed
//!   bound --1 s--> Failed, if the node rejects it
//!   deletion asked for --> if it runs: ended as the case says --> confirmed: gone
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use krafla_api::{Key, Kind, Time, Uid};
use krafla_apiserver::store::{EventType, Watcher};
use krafla_cluster::{Propagation, Step};
use krafla_plan::object::PodPhase;
use krafla_plan::{Object, Probe};
use serde_json::{Value, json};

use crate::scenario::{Life, PodFacts, Scenario};
use crate::server::{Server, resource};
use crate::termination::Termination;
use crate::wire::brief;

/// How long a pod takes to start, and to go when there is nothing to end.
const PACE: Duration = Duration::from_secs(1);

/// Where all pods are. It is of a range that is for examples: nothing in the world is ever dialled.
const ADDRESS: &str = "192.0.2.1";

/// A node's agent.
#[derive(Debug)]
pub(crate) struct Kubelet {
    scenario: &'static Scenario,
    termination: &'static Termination,
    pods: Option<Watcher>,
    looked_at: u64,
    /// What is to be done, in order of time and then of making.
    agenda: BTreeMap<(Time, u64), Duty>,
    n_duties: u64,
    /// What has been put on the agenda, so that it is put there once.
    planned: BTreeSet<(Uid, Stage)>,
    /// How many pods of each owner have ended.
    n_ended: BTreeMap<Uid, u32>,
    /// From when on which pods listen.
    listening: BTreeMap<Uid, Time>,
}

#[derive(Clone, Debug, Hash)]
struct Duty {
    pod: Key,
    uid: Uid,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Stage {
    Start,
    Reject,
    End { exit_code: i32 },
    Terminate { exit_code: i32 },
    Confirm,
}

impl Kubelet {
    pub(crate) fn new(
        scenario: &'static Scenario,
        termination: &'static Termination,
        pods: Option<Watcher>,
    ) -> Kubelet {
        Kubelet {
            scenario,
            termination,
            pods,
            looked_at: 0,
            agenda: BTreeMap::new(),
            n_duties: 0,
            planned: BTreeSet::new(),
            n_ended: BTreeMap::new(),
            listening: BTreeMap::new(),
        }
    }

    /// The same agent beside a fork of its server.
    pub(crate) fn fork(&self, server: &Server) -> Kubelet {
        Kubelet {
            pods: self.pods.as_ref().map(|pods| pods.in_fork(&server.store)),
            agenda: self.agenda.clone(),
            planned: self.planned.clone(),
            n_ended: self.n_ended.clone(),
            listening: self.listening.clone(),
            ..*self
        }
    }

    /// Takes everything that decides about what the agent will do into a number.
    pub(crate) fn digest(&self, into: &mut impl Hasher) {
        self.agenda.len().hash(into);
        self.agenda.iter().for_each(|((at, _), duty)| (at, duty).hash(into));
        (&self.planned, &self.n_ended, &self.listening).hash(into);
    }

    /// Looks at what happened to pods, and plans what is to be done about it.
    pub(crate) fn look(&mut self, server: &Server, now: Time) {
        let revision = server.store.revision();
        if self.looked_at == revision {
            return;
        }
        self.looked_at = revision;
        while let Some(Ok(event)) = self.pods.as_mut().and_then(Watcher::try_next) {
            let object = Object::decode(Kind::Pod, &event.entry.bytes);
            if event.event_type != EventType::Deleted {
                self.see(&object, now);
            } else if object.as_pod().is_some_and(|pod| pod.status.phase == PodPhase::Running) {
                // It was removed by force.
                self.count_end(&object);
            }
        }
    }

    fn see(&mut self, object: &Object, now: Time) {
        let Some(pod) = object.as_pod() else { return };
        let life = || (self.scenario.pod)(&PodFacts::of(object, self.n_ended(object)));
        let (delay, stage) = match pod.status.phase {
            PodPhase::Running if object.meta.is_deleting() => {
                let Termination { ends_after, exit_code, .. } = *self.termination;
                (ends_after, Stage::Terminate { exit_code })
            }
            PodPhase::Succeeded | PodPhase::Failed if object.meta.is_deleting() => {
                (self.termination.confirmed_after.unwrap_or(PACE), Stage::Confirm)
            }
            _ if object.meta.is_deleting() => (PACE, Stage::Confirm),
            PodPhase::Pending if !pod.spec.node_name.is_empty() => match life() {
                Life::NeverStarts => return,
                Life::Rejected => (PACE, Stage::Reject),
                Life::Ends { .. } | Life::Listens { .. } | Life::RunsOn => (PACE, Stage::Start),
            },
            PodPhase::Running => match life() {
                Life::Ends { after, exit_code } => (after, Stage::End { exit_code }),
                Life::Listens { from } => {
                    self.listening.entry(object.meta.uid.clone()).or_insert(now.after(from));
                    return;
                }
                Life::RunsOn | Life::NeverStarts | Life::Rejected => return,
            },
            PodPhase::Pending | PodPhase::Succeeded | PodPhase::Failed | PodPhase::Unknown => {
                self.listening.remove(&object.meta.uid);
                return;
            }
        };
        if self.planned.insert((object.meta.uid.clone(), stage)) {
            let duty = Duty { pod: object.meta.key.clone(), uid: object.meta.uid.clone(), stage };
            self.n_duties += 1;
            self.agenda.insert((now.after(delay), self.n_duties), duty);
        }
    }

    fn count_end(&mut self, pod: &Object) {
        if let Some(owner) = pod.meta.controller_uid() {
            *self.n_ended.entry(owner.clone()).or_default() += 1;
        }
    }

    /// How many pods of the owner of this one have ended.
    fn n_ended(&self, pod: &Object) -> u32 {
        pod.meta.controller_uid().and_then(|owner| self.n_ended.get(owner)).copied().unwrap_or(0)
    }

    /// What a pod answers to a question at this moment.
    pub(crate) fn answer(&self, probe: &Probe, now: Time) -> Result<(), String> {
        match self.listening.get(&probe.pod) {
            Some(from) if *from <= now => Ok(()),
            _ => Err(format!("{}:{}: connection refused", probe.address, probe.port)),
        }
    }

    /// When the next duty is due.
    pub(crate) fn due_at(&self) -> Option<Time> {
        self.agenda.first_key_value().map(|((at, _), _)| *at)
    }

    /// Does the next duty, and says what it was.
    pub(crate) fn act(&mut self, server: &Server, now: Time) -> String {
        let Some((_, duty)) = self.agenda.pop_first() else { return String::new() };
        let Some(entry) = server.store.get(&resource(Kind::Pod), &duty.pod) else {
            return format!("{} is gone", duty.pod);
        };
        let object = Object::decode(Kind::Pod, &entry.bytes);
        let Some(step) = duty.step(&object, now) else { return format!("{} is otherwise now", duty.pod) };
        match server.write(&step) {
            Ok(_) => {
                let is_terminated = matches!(duty.stage, Stage::Terminate { .. });
                let has_ended = is_terminated || matches!(duty.stage, Stage::Reject | Stage::End { .. });
                if has_ended {
                    self.count_end(&object);
                }
                let is_gone_too = is_terminated && self.termination.confirmed_after.is_none();
                if is_gone_too && let Err(error) = server.write(&duty.confirm()) {
                    return format!("{}, {} -> {error}", brief(&step), brief(&duty.confirm()));
                }
                brief(&step)
            }
            Err(error) => format!("{} -> {error}", brief(&step)),
        }
    }
}

impl Duty {
    /// The write that the duty comes to, if it still makes sense for what the pod now is.
    fn step(&self, object: &Object, now: Time) -> Option<Step> {
        let pod = object.as_pod().filter(|_| object.meta.uid == self.uid)?;
        let is_deleting = object.meta.is_deleting();
        match (self.stage, pod.status.phase) {
            (Stage::Start, PodPhase::Pending) if !is_deleting => Some(self.report(started(now))),
            (Stage::Reject, PodPhase::Pending) if !is_deleting => {
                Some(self.report(json!({ "phase": "Failed", "reason": "OutOfcpu" })))
            }
            (Stage::End { exit_code }, PodPhase::Running) => Some(self.report(ended(exit_code, now))),
            (Stage::Terminate { exit_code }, PodPhase::Running) => Some(self.report(ended(exit_code, now))),
            (
                Stage::Confirm,
                PodPhase::Pending | PodPhase::Succeeded | PodPhase::Failed | PodPhase::Unknown,
            ) if is_deleting => Some(self.confirm()),
            _ => None,
        }
    }

    fn report(&self, status: Value) -> Step {
        Step::Patch {
            kind: Kind::Pod,
            key: self.pod.clone(),
            uid: self.uid.clone(),
            revision: None,
            of_status: true,
            patch: json!({ "status": status }),
        }
    }

    fn confirm(&self) -> Step {
        Step::Delete {
            kind: Kind::Pod,
            key: self.pod.clone(),
            uid: self.uid.clone(),
            revision: None,
            propagation: Propagation::Background,
            grace_seconds: Some(0),
        }
    }
}

fn started(now: Time) -> Value {
    let container = json!({
        "name": "main", "image": "busybox", "imageID": "", "ready": true, "restartCount": 0,
        "state": { "running": { "startedAt": now } },
    });
    json!({
        "phase": "Running", "podIP": ADDRESS, "startTime": now,
        "conditions": conditions("True", now), "containerStatuses": [container],
    })
}

fn ended(exit_code: i32, now: Time) -> Value {
    let container = json!({
        "name": "main", "image": "busybox", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "terminated": { "exitCode": exit_code, "finishedAt": now } },
    });
    let phase = if exit_code == 0 { "Succeeded" } else { "Failed" };
    json!({ "phase": phase, "conditions": conditions("False", now), "containerStatuses": [container] })
}

fn conditions(ready: &str, now: Time) -> Value {
    json!([
        { "type": "PodScheduled", "status": "True" },
        { "type": "Ready", "status": ready, "lastTransitionTime": now },
    ])
}
