//! The place where a sequence of steps is played: one namespace of a server, and controllers that act there.

use std::sync::Arc;
use std::time::Duration;

use krafla_api::{Kind, Time};
use krafla_apiserver::Api;
use krafla_apiserver::admit::{Admission, Volcano};
use krafla_apiserver::env::Env;
use krafla_apiserver::store::{EventType, StoredEvent};
use krafla_plan::Object;
use serde_json::{Map, Value};

use crate::server::Server;

/// One namespace of a server.
pub struct Site {
    pub(super) server: Server,
    pub(super) namespace: String,
    env: Arc<dyn Env>,
}

/// A site with controllers. No scheduler and no node act there: the steps say what those do.
pub trait Stage {
    /// The namespace that the steps are about.
    fn site(&self) -> &Site;
    /// Waits until nothing has changed for a while.
    fn settle(&mut self);
    /// Lets time pass.
    fn pass(&mut self, time: Duration);
    /// Lets time pass until just after the next full minute.
    fn pass_to_next_minute(&mut self);
    /// Ends the controllers without a warning.
    fn stop_controllers(&mut self);
    /// Starts controllers, after ending those that run.
    fn start_controllers(&mut self);
}

impl Site {
    /// A namespace of the server that answers through `api`. It must exist.
    pub fn new(api: Api, env: Arc<dyn Env>, namespace: &str) -> Site {
        Site::on(Server::of(api), env, namespace)
    }

    pub(super) fn on(server: Server, env: Arc<dyn Env>, namespace: &str) -> Site {
        Site { server, namespace: namespace.to_owned(), env }
    }

    pub(super) fn now(&self) -> Time {
        self.env.now()
    }
}

/// A new cluster with one node, as the one on which records are played.
pub fn new_cluster(env: Arc<dyn Env>) -> Api {
    crate::server::new_cluster(env, Admission::default().with(Volcano::default()))
}

/// The kinds whose phases are recorded, with the name of their section.
pub const PHASED: [(&str, Kind); 3] =
    [("jobs", Kind::VcJob), ("jobflows", Kind::JobFlow), ("queues", Kind::Queue)];

/// The phases that each object of a namespace went through.
#[derive(Debug, Default)]
pub struct Phases {
    last: Map<String, Value>,
}

impl Phases {
    /// The phases of each object in these events, from the phase before on.
    pub fn follow<'a>(
        &mut self,
        namespace: &str,
        events: impl IntoIterator<Item = (&'static str, Kind, &'a StoredEvent)>,
    ) -> Value {
        let mut sequences: Map<String, Value> = Map::new();
        for (section, kind, event) in events {
            let object = Object::decode(kind, &event.entry.bytes);
            let Some(phase) = phase_of(&object) else { continue };
            let name = format!("{section}/{}", object.meta.key.name);
            // The queues of the cluster itself are in no record.
            if kind == Kind::Queue && !name.contains(namespace) {
                continue;
            }
            let name = name.replace(namespace, "{ns}");
            let phase = match (event.event_type, phase) {
                (EventType::Deleted, _) => "(gone)",
                (_, "") => "(none)",
                (_, phase) => phase,
            };
            let before = self.last.insert(name.clone(), phase.into());
            if before.as_ref().and_then(Value::as_str) == Some(phase) {
                continue;
            }
            let before = before.as_ref().and_then(Value::as_str);
            let so_far = sequences.get(&name).and_then(Value::as_str).or(before);
            let sequence = so_far.map_or(phase.to_owned(), |so_far| format!("{so_far} > {phase}"));
            sequences.insert(name, sequence.into());
        }
        // A job that nobody has looked at yet went through no phases.
        sequences.retain(|_, sequence| sequence != "(none)");
        Value::Object(sequences)
    }
}

/// The phase of a job or flow, the state of a queue.
fn phase_of(object: &Object) -> Option<&str> {
    let of_job = object.as_vcjob().map(|job| job.status.state.phase.as_str());
    let of_flow = || object.as_jobflow().map(|flow| flow.status.state.phase.as_str());
    of_job.or_else(of_flow).or_else(|| object.as_queue().map(|queue| queue.status.state.as_str()))
}
