//! Where a record is played: the server, the garbage collector and the controllers that ship, in virtual time, and nobody
//! else. No scheduler, no node: what those do is what the record says.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt;
use krafla_api::{Kind, Time};
use krafla_apiserver::gc::Collector;
use krafla_apiserver::store::{EventType, Watcher};
use krafla_plan::podgroup::PodGroupController;
use krafla_plan::{Controller, Object, Step};
use krafla_runtime::apply::apply;
use krafla_runtime::metrics::Metrics;
use krafla_runtime::{Engine, Outcome, Recorder};
use serde_json::{Map, Value, json};

use crate::clock::Clock;
use crate::feed::Feed;
use crate::server::{Server, collect};

/// When nothing has changed for so long, a step is over; as it was when the records were made.
const QUIET: Duration = Duration::from_millis(700);
/// A step is over by then, whatever still goes on.
const STEP_MAX: Duration = Duration::from_secs(6);

/// So many things never happen within one moment.
const MOVES_MAX: usize = 2_000;

/// The namespace of everything that is played; `{ns}` in records.
pub(super) const NAMESPACE: &str = "golden-ns";

/// Where a record is played.
pub(super) struct Stage {
    pub(super) server: Server,
    clock: Clock,
    collector: Collector,
    /// None while the controllers are stopped.
    controllers: Option<Controllers>,
    /// Whose phases are recorded.
    phased: Vec<(&'static str, Kind, Watcher)>,
    profile: String,
}

/// One life of the controllers.
struct Controllers {
    engine: Engine,
    feeds: Vec<Feed>,
    recorder: Recorder,
    /// As long as they live, they count.
    metrics: Arc<Metrics>,
}

impl Stage {
    /// The numbers that the controllers show; none while they are stopped.
    pub(super) fn metrics(&self) -> String {
        let controllers = self.controllers.as_ref();
        controllers.map(|controllers| controllers.metrics.page(self.clock.now())).unwrap_or_default()
    }

    /// With the admission that ships, or with none, and with the settings that the profile names.
    pub(super) fn new(is_admitting: bool, profile: &str) -> Stage {
        let clock = Clock::default();
        // Records of CronJobs were made in the course of a day.
        clock.advance_to(clock.now().after(Duration::from_secs(10 * 3600)));
        let server = if is_admitting { Server::new(&clock) } else { Server::without_admission(&clock) };
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
        server.create(Kind::Namespace, namespace).unwrap();
        let phased = [("jobs", Kind::VcJob), ("jobflows", Kind::JobFlow), ("queues", Kind::Queue)];
        let phased = phased.map(|(section, kind)| (section, kind, server.watch(kind).unwrap())).into();
        let (profile, controllers) = (profile.to_owned(), Some(Controllers::new(profile)));
        Stage { collector: server.collector(), controllers, server, clock, phased, profile }
    }

    pub(super) fn stop_controllers(&mut self) {
        self.controllers = None;
    }

    pub(super) fn start_controllers(&mut self) {
        self.controllers = Some(Controllers::new(&self.profile));
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Lets time pass until just after the next full minute.
    pub(super) fn pass_to_next_minute(&mut self) {
        let into_minute = self.clock.now().0.as_second().rem_euclid(60);
        self.pass(Duration::from_secs(u64::try_from(61 - into_minute).unwrap()));
    }

    /// Lets time pass, and everybody act when it is their turn.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.clock.now().after(time);
        self.run();
        while let Some(at) = self.next_wake().filter(|at| *at <= end) {
            self.clock.advance_to(at);
            self.run();
        }
        self.clock.advance_to(end);
        self.run();
    }

    /// Lets everybody act until nothing has changed for a while.
    pub(super) fn settle(&mut self) {
        let end = self.clock.now().after(STEP_MAX);
        let mut revision = self.server.store.revision();
        self.run();
        let mut quiet_at = self.clock.now().after(QUIET);
        loop {
            let next = self.next_wake().filter(|at| *at <= quiet_at).unwrap_or(quiet_at).min(end);
            self.clock.advance_to(next);
            self.run();
            let now = self.clock.now();
            if self.server.store.revision() != revision {
                revision = self.server.store.revision();
                quiet_at = now.after(QUIET);
            }
            if now >= quiet_at || now >= end {
                return;
            }
        }
    }

    fn next_wake(&self) -> Option<Time> {
        let wake = self.controllers.as_ref()?.engine.next_wake()?;
        // What is overdue waits for news, not for the clock.
        (wake > self.clock.now()).then_some(wake)
    }

    /// Lets everybody do what can be done at this moment.
    fn run(&mut self) {
        for _ in 0..MOVES_MAX {
            let revision = self.server.store.revision();
            collect(&mut self.collector);
            let has_acted = self
                .controllers
                .as_mut()
                .is_some_and(|controllers| controllers.act(&self.server, self.clock.now()));
            if !has_acted && self.server.store.revision() == revision {
                return;
            }
        }
        panic!("still not at rest after {MOVES_MAX} moves within one moment");
    }

    /// The phases that each job went through since this was last asked, from the one before on.
    pub(super) fn phases(&mut self, last: &mut Map<String, Value>) -> Value {
        let mut sequences: Map<String, Value> = Map::new();
        let mut events = Vec::new();
        for (section, kind, watcher) in &mut self.phased {
            while let Some(Ok(event)) = watcher.try_next() {
                events.push((*section, *kind, event));
            }
        }
        for (section, kind, event) in events {
            let object = Object::decode(kind, &event.entry.bytes);
            let Some(phase) = phase_of(&object) else { continue };
            let name = format!("{section}/{}", object.meta.key.name);
            // The queues of the cluster itself are in no record.
            if kind == Kind::Queue && !name.contains(NAMESPACE) {
                continue;
            }
            let name = name.replace(NAMESPACE, "{ns}");
            let phase = match (event.event_type, phase) {
                (EventType::Deleted, _) => "(gone)",
                (_, "") => "(none)",
                (_, phase) => phase,
            };
            let before = last.insert(name.clone(), phase.into());
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

/// The controllers that ship, set as the records' profiles say. Nobody looked after Kubernetes' own Jobs when the records
/// were made.
fn controllers(profile: &str) -> Vec<Box<dyn Controller>> {
    let mut controllers = krafla_plan::controllers();
    controllers.retain(|controller| ![Kind::Job, Kind::CronJob].contains(&controller.root()));
    let mut groups = PodGroupController::default();
    match profile {
        "noinherit" => groups.inherits_annotations = false,
        "schedulers" => groups.scheduler_names.push("other".to_owned()),
        _ => {}
    }
    controllers.retain(|controller| controller.name() != groups.name());
    controllers.push(Box::new(groups));
    controllers
}

impl Controllers {
    fn new(profile: &str) -> Controllers {
        let metrics = Arc::<Metrics>::default();
        let engine = Engine::new(controllers(profile)).counting_in(metrics.clone(), "controllers");
        let feeds = engine.kinds().map(Feed::new).collect();
        Controllers { engine, feeds, recorder: Recorder::default(), metrics }
    }

    /// Looks at all news, then takes and carries out one decision. Whether there was anything to do.
    fn act(&mut self, server: &Server, now: Time) -> bool {
        let mut has_acted = false;
        for feed in &mut self.feeds {
            while feed.is_ready(server, now) {
                feed.show_next(server, &mut self.engine, now);
                has_acted = true;
            }
        }
        if let Some(work) = self.engine.next(now) {
            let client = server.client();
            let applied = apply(client.as_ref(), work.premise.as_ref(), &work.plan).now_or_never().unwrap();
            self.engine.finished(work, Outcome::Applied(applied), now);
            has_acted = true;
        }
        self.say(server);
        let counts = self.engine.counts();
        assert_eq!((counts.panics, counts.refusals), (0, 0), "a decision panicked or was refused");
        has_acted
    }

    fn say(&mut self, server: &Server) {
        for remark in self.engine.take_remarks() {
            let step = self.recorder.record(&remark);
            if let (Step::Create { .. }, Ok(written)) = (&step, server.write(&step)) {
                self.recorder.stored(&written.key, Some(written.uid));
            }
        }
    }
}
