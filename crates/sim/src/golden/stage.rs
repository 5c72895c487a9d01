//! Where a record is played: the server, the garbage collector and the controllers that ship, in virtual time, and nobody
//! else. No scheduler, no node: what those do is what the record says.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt;
use krafla_api::{Kind, Time};
use krafla_apiserver::gc::Collector;
use krafla_apiserver::store::Watcher;
use krafla_cluster::Step;
use krafla_plan::Controller;
use krafla_plan::podgroup::PodGroupController;
use krafla_runtime::apply::apply;
use krafla_runtime::metrics::Metrics;
use krafla_runtime::{Engine, Outcome, Recorder};
use serde_json::{Value, json};

use super::site::{PHASED, Phases, Site, Stage};
use crate::clock::{Clock, Surroundings};
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
pub(super) struct SimulatedStage {
    site: Site,
    clock: Clock,
    collector: Collector,
    /// None while the controllers are stopped.
    controllers: Option<Controllers>,
    /// Whose phases are recorded.
    phased: Vec<(&'static str, Kind, Watcher)>,
    phases: Phases,
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

impl SimulatedStage {
    /// The numbers that the controllers show; none while they are stopped.
    pub(super) fn metrics(&self) -> String {
        let controllers = self.controllers.as_ref();
        controllers.map(|controllers| controllers.metrics.page(self.clock.now())).unwrap_or_default()
    }

    /// With the admission that ships, or with none, and with the settings that the profile names.
    pub(super) fn new(is_admitting: bool, profile: &str) -> SimulatedStage {
        let clock = Clock::default();
        // Records of CronJobs were made in the course of a day.
        clock.advance_to(clock.now().after(Duration::from_secs(10 * 3600)));
        let server = if is_admitting { Server::new(&clock) } else { Server::without_admission(&clock) };
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
        server.create(Kind::Namespace, namespace).unwrap();
        let phased = PHASED.map(|(section, kind)| (section, kind, server.watch(kind).unwrap())).into();
        let (profile, controllers) = (profile.to_owned(), Some(Controllers::new(profile)));
        let (collector, phases) = (server.collector(), Phases::default());
        let site = Site::on(server, Arc::new(Surroundings::new(clock.clone(), 0)), NAMESPACE);
        SimulatedStage { site, clock, collector, controllers, phased, phases, profile }
    }

    fn next_wake(&self) -> Option<Time> {
        let wake = self.controllers.as_ref()?.engine.next_wake()?;
        // What is overdue waits for news, not for the clock.
        (wake > self.clock.now()).then_some(wake)
    }

    /// Lets everybody do what can be done at this moment.
    fn run(&mut self) {
        for _ in 0..MOVES_MAX {
            let revision = self.site.server.store.revision();
            collect(&mut self.collector);
            let has_acted = self
                .controllers
                .as_mut()
                .is_some_and(|controllers| controllers.act(&self.site.server, self.clock.now()));
            if !has_acted && self.site.server.store.revision() == revision {
                return;
            }
        }
        panic!("still not at rest after {MOVES_MAX} moves within one moment");
    }

    /// The phases that each job went through since this was last asked, from the one before on.
    pub(super) fn phases(&mut self) -> Value {
        let mut events = Vec::new();
        for (section, kind, watcher) in &mut self.phased {
            while let Some(Ok(event)) = watcher.try_next() {
                events.push((*section, *kind, event));
            }
        }
        let events = events.iter().map(|(section, kind, event)| (*section, *kind, &**event));
        self.phases.follow(NAMESPACE, events)
    }
}

impl Stage for SimulatedStage {
    fn site(&self) -> &Site {
        &self.site
    }

    fn stop_controllers(&mut self) {
        self.controllers = None;
    }

    fn start_controllers(&mut self) {
        self.controllers = Some(Controllers::new(&self.profile));
    }

    fn pass_to_next_minute(&mut self) {
        let into_minute = self.clock.now().0.as_second().rem_euclid(60);
        self.pass(Duration::from_secs(u64::try_from(61 - into_minute).unwrap()));
    }

    fn pass(&mut self, time: Duration) {
        let end = self.clock.now().after(time);
        self.run();
        while let Some(at) = self.next_wake().filter(|at| *at <= end) {
            self.clock.advance_to(at);
            self.run();
        }
        self.clock.advance_to(end);
        self.run();
    }

    fn settle(&mut self) {
        let end = self.clock.now().after(STEP_MAX);
        let mut revision = self.site.server.store.revision();
        self.run();
        let mut quiet_at = self.clock.now().after(QUIET);
        loop {
            let next = self.next_wake().filter(|at| *at <= quiet_at).unwrap_or(quiet_at).min(end);
            self.clock.advance_to(next);
            self.run();
            let now = self.clock.now();
            if self.site.server.store.revision() != revision {
                revision = self.site.server.store.revision();
                quiet_at = now.after(QUIET);
            }
            if now >= quiet_at || now >= end {
                return;
            }
        }
    }
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
