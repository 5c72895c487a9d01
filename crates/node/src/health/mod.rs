//! Whether a running container is well: its hook after the start, then its startup, readiness and liveness
//! probes.
//!
//! One task per attempt asks; what it learns goes into [`Health`], by which is decided.

mod complaints;
mod grpc;
mod handler;
mod redirect;
mod tally;
mod tls;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use krafla_api::Time;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::agent::Context;
use crate::container::{ContainerId, Record};
use crate::pod::{Container, Handler, Probe};
use crate::status::PodStatus;
pub use complaints::{Check, Complaints};
use handler::carry_out;
use tally::{Tally, Verdict, period, timeout};

/// Whether a running container is well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Its hook after the start is done, and its startup probe has succeeded.
    pub is_started: bool,
    /// Its readiness probe says that it is ready.
    pub is_ready: bool,
    /// What was found wrong with it, for people.
    pub complaints: Complaints,
    /// Why it must be stopped.
    pub failure: Option<Failure>,
}

/// Why a running container must be stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What has failed.
    pub of: Check,
    /// How long it has to end by itself, if that differs from the pod's grace period.
    pub grace_seconds: Option<u32>,
}

impl Health {
    /// A container that has just started.
    pub fn at_start(container: &Container) -> Health {
        Health {
            is_started: container.startup_probe.is_none() && container.lifecycle.post_start.is_none(),
            is_ready: container.readiness_probe.is_none(),
            complaints: Complaints::default(),
            failure: None,
        }
    }

    /// A container that is found running: as it was last reported, if that was of the same attempt. Its hook and its startup probe
    /// have had their turn then, and must not have another.
    fn at_sight(container: &Container, record: &Record, before: &PodStatus) -> Health {
        let reported = before.container(&container.name);
        match reported.filter(|status| status.container_id == record.id.reported()) {
            Some(status) if status.started == Some(true) => {
                Health { is_started: true, is_ready: status.ready, ..Health::at_start(container) }
            }
            _ => Health::at_start(container),
        }
    }
}

/// A hook before the end of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreStop {
    /// When it began: the grace period counts from then.
    pub begun_at: Time,
    /// Whether it is done, well or not.
    pub is_done: bool,
    /// Why it failed, for people.
    pub failure: Option<String>,
}

/// What is known of the health of a pod's containers, and the tasks that find it out.
pub(crate) struct Watch {
    found: Arc<Mutex<Found>>,
    tasks: BTreeMap<ContainerId, JoinHandle<()>>,
    /// The hooks before the end.
    pre_stops: BTreeMap<ContainerId, JoinHandle<()>>,
    wake: Arc<Notify>,
}

#[derive(Default)]
struct Found {
    health: BTreeMap<ContainerId, Health>,
    pre_stops: BTreeMap<ContainerId, PreStop>,
}

impl Watch {
    pub(crate) fn new(wake: Arc<Notify>) -> Watch {
        Watch { found: Arc::default(), tasks: BTreeMap::new(), pre_stops: BTreeMap::new(), wake }
    }

    /// Begins to watch those that run, and forgets those that do not. `before` is the status that was last written.
    pub(crate) fn update(
        &mut self,
        context: &Context,
        running: &BTreeMap<&str, &Record>,
        before: &PodStatus,
    ) {
        let is_running =
            |id: &ContainerId| running.get(id.name.as_str()).is_some_and(|record| record.id == *id);
        // Neither its probes nor its hooks outlive a container.
        for tasks in [&mut self.tasks, &mut self.pre_stops] {
            tasks.extract_if(.., |id, _| !is_running(id)).for_each(|(_, task)| task.abort());
        }
        {
            let mut found = self.found.lock();
            found.health.retain(|id, _| is_running(id));
            found.pre_stops.retain(|id, _| is_running(id));
        }
        for container in context.pod.all_containers().filter(|container| is_watched(container)) {
            let Some(record) = running.get(container.name.as_str()) else { continue };
            self.tasks.entry(record.id.clone()).or_insert_with(|| {
                let report =
                    Report { id: record.id.clone(), found: self.found.clone(), wake: self.wake.clone() };
                let health = Health::at_sight(container, record, before);
                let is_started = health.is_started;
                report.found.lock().health.insert(record.id.clone(), health);
                let started_at = record.started_at.unwrap_or(Timestamp::UNIX_EPOCH);
                tokio::spawn(watch(context.clone(), container.clone(), started_at, is_started, report))
            });
        }
    }

    /// Runs the hook before the end of a container, once.
    pub(crate) fn begin_pre_stop(&mut self, context: &Context, id: &ContainerId, grace: Duration, now: Time) {
        let container = context.pod.all_containers().find(|container| container.name == id.name).cloned();
        let Some((container, handler)) = container.and_then(|c| Some((c.clone(), c.lifecycle.pre_stop?)))
        else {
            return;
        };
        if self.found.lock().pre_stops.contains_key(id) {
            return;
        }
        self.found
            .lock()
            .pre_stops
            .insert(id.clone(), PreStop { begun_at: now, is_done: false, failure: None });
        let (found, wake, context, of) = (self.found.clone(), self.wake.clone(), context.clone(), id.clone());
        let hook = tokio::spawn(async move {
            let failure = carry_out(&context, &of, &container, &handler, grace).await.err();
            if let Some(hook) = found.lock().pre_stops.get_mut(&of) {
                (hook.is_done, hook.failure) = (true, failure);
            }
            wake.notify_one();
        });
        self.pre_stops.insert(id.clone(), hook);
    }

    /// What is known of the containers that run, by name.
    pub(crate) fn found(&self) -> (BTreeMap<String, Health>, BTreeMap<String, PreStop>) {
        let found = self.found.lock();
        let health = found.health.iter().map(|(id, health)| (id.name.clone(), health.clone()));
        let pre_stops = found.pre_stops.iter().map(|(id, hook)| (id.name.clone(), hook.clone()));
        (health.collect(), pre_stops.collect())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.tasks.values().chain(self.pre_stops.values()).for_each(JoinHandle::abort);
    }
}

fn is_watched(container: &Container) -> bool {
    let probes = [&container.startup_probe, &container.readiness_probe, &container.liveness_probe];
    container.lifecycle.post_start.is_some() || probes.into_iter().any(Option::is_some)
}

/// Where a task writes down what it has found out.
#[derive(Clone)]
struct Report {
    id: ContainerId,
    found: Arc<Mutex<Found>>,
    wake: Arc<Notify>,
}

impl Report {
    fn set(&self, change: impl FnOnce(&mut Health), container: &Container) {
        let mut found = self.found.lock();
        let health = found.health.entry(self.id.clone()).or_insert_with(|| Health::at_start(container));
        let before = health.clone();
        change(health);
        if *health != before {
            self.wake.notify_one();
        }
    }
}

async fn watch(
    context: Context,
    container: Container,
    started_at: Timestamp,
    is_started: bool,
    report: Report,
) {
    let asker = Asker { context: &context, container: &container, report: &report, started_at };
    let fail = |failure| report.set(|health| health.failure = Some(failure), &container);
    if !is_started {
        if let Err(failure) = asker.see_start().await {
            return fail(failure);
        }
        report.set(|health| health.is_started = true, &container);
    }

    let readiness = async {
        let Some(probe) = &container.readiness_probe else { return };
        let tell = |verdict| -> Option<std::convert::Infallible> {
            report.set(|health| health.is_ready = verdict == Verdict::Good, &container);
            None
        };
        asker.ask(Check::Readiness, probe, tell).await;
    };
    let liveness = async {
        let Some(probe) = &container.liveness_probe else { return };
        let is_bad = |verdict| (verdict == Verdict::Bad).then_some(());
        asker.ask(Check::Liveness, probe, is_bad).await;
        fail(Failure { of: Check::Liveness, grace_seconds: probe.termination_grace_period_seconds });
    };
    tokio::join!(readiness, liveness);
}

struct Asker<'a> {
    context: &'a Context,
    container: &'a Container,
    report: &'a Report,
    started_at: Timestamp,
}

impl Asker<'_> {
    /// The hook after the start, then the startup probe.
    async fn see_start(&self) -> Result<(), Failure> {
        if let Some(hook) = &self.container.lifecycle.post_start {
            // It has no time-out of its own: the pod's deletion ends it.
            if !self.carry_out(Check::PostStart, hook, Duration::MAX).await {
                return Err(Failure { of: Check::PostStart, grace_seconds: None });
            }
        }
        let Some(probe) = &self.container.startup_probe else { return Ok(()) };
        match self.ask(Check::Startup, probe, Some).await {
            Verdict::Good => Ok(()),
            Verdict::Bad => {
                let grace_seconds = probe.termination_grace_period_seconds;
                Err(Failure { of: Check::Startup, grace_seconds })
            }
        }
    }

    /// Asks again and again, and tells each verdict to `end`, until that returns something.
    async fn ask<T>(&self, check: Check, probe: &Probe, end: impl Fn(Verdict) -> Option<T>) -> T {
        let first_at = Time(self.started_at).after(Duration::from_secs(probe.initial_delay_seconds.into()));
        tokio::time::sleep(first_at.since(Time(Timestamp::now()))).await;
        let mut tally = Tally::default();
        let mut rhythm = tokio::time::interval(period(probe));
        rhythm.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            rhythm.tick().await;
            let is_good = self.carry_out(check, &probe.handler, timeout(probe)).await;
            if let Some(end) = tally.count(is_good, probe).and_then(&end) {
                return end;
            }
        }
    }

    /// Returns whether all was well. What was not is written down, however often it must fail to count.
    async fn carry_out(&self, check: Check, handler: &Handler, within: Duration) -> bool {
        let answer = carry_out(self.context, &self.report.id, self.container, handler, within).await;
        match &answer {
            Ok(None) => {}
            Ok(Some(what)) => self.report.set(|health| health.complaints.warn(check, what), self.container),
            Err(why) => self.report.set(|health| health.complaints.add(check, why), self.container),
        }
        answer.is_ok()
    }
}
