//! Numbers about what happens, in the text form that Prometheus reads.
//!
//! ```text
//!   Family     one name, and one series for every combination of its labels' values
//!   WorkQueue  how the roots of one controller wait and are worked on
//!   Metrics    what the engines of one process count: the controllers' own numbers, and how the engines fare
//! ```

mod workqueue;

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_api::Time;
use krafla_cluster::ClientError;
use krafla_metrics::{Family, Page};
use krafla_plan::measure::{Effect, Measure};
use krafla_plan::{Attempt, Controller, Objects, Stored};
use parking_lot::Mutex;

use crate::cache::Change;

use workqueue::WorkQueue;
pub(crate) use workqueue::WorkQueues;

/// What the engines of one process count, to be shown on one page.
pub struct Metrics {
    /// What controllers count, by name. A family comes with the first thing that it counts.
    of_controllers: Mutex<BTreeMap<&'static str, Arc<Family>>>,
    work_queues: Mutex<BTreeMap<&'static str, Arc<WorkQueue>>>,
    reconciles: Family,
    writes: Family,
    write_failures: Family,
    depth: Family,
}

/// How a decision went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reconciled {
    /// There was nothing to write.
    Quiet,
    /// Everything was written.
    Written,
    /// A write failed, and is tried again.
    Failed,
    /// The guard refused the plan.
    Refused,
    /// The decision panicked.
    Panicked,
}

impl Reconciled {
    fn label(self) -> &'static str {
        match self {
            Reconciled::Quiet => "quiet",
            Reconciled::Written => "written",
            Reconciled::Failed => "failed",
            Reconciled::Refused => "refused",
            Reconciled::Panicked => "panicked",
        }
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            of_controllers: Mutex::default(),
            work_queues: Mutex::default(),
            reconciles: Family::counter(
                "krafla_reconcile_total",
                "Decisions by controller and by how they went: quiet, written, failed, refused, panicked.",
                &["controller", "result"],
            ),
            writes: Family::counter(
                "krafla_writes_total",
                "Writes that controllers tried to make.",
                &["controller"],
            ),
            write_failures: Family::counter(
                "krafla_write_failures_total",
                "Writes that did not succeed, by the reason.",
                &["controller", "reason"],
            ),
            depth: Family::gauge(
                "krafla_queue_depth",
                "How many objects wait for a decision, by the engine that takes it.",
                &["engine"],
            ),
        }
    }
}

impl Metrics {
    /// Lets a controller count a change. A namesake that takes an object's place is two changes.
    pub(crate) fn stored(&self, controller: &dyn Controller, change: &Change, objects: &Objects) {
        let after = Some(&*change.object).filter(|_| !change.is_gone);
        let before = change.before.as_deref();
        let count = |before, after| {
            let stored = Stored { before, after, objects, is_news: change.is_news };
            controller.measure(&stored).iter().for_each(|measure| self.take(measure));
        };
        match (before, after) {
            (Some(one), Some(other)) if one.meta.uid != other.meta.uid => {
                count(before, None);
                count(None, after);
            }
            _ => count(before, after),
        }
    }

    /// Lets a controller count an attempt.
    pub(crate) fn attempted(&self, controller: &dyn Controller, attempt: &Attempt<'_>) {
        controller.measure_attempt(attempt).iter().for_each(|measure| self.take(measure));
    }

    /// Takes in what a controller counts.
    fn take(&self, measure: &Measure) {
        let metric = measure.metric;
        let family = {
            let mut families = self.of_controllers.lock();
            families.entry(metric.name).or_insert_with(|| Arc::new(Family::of(metric))).clone()
        };
        let values: Vec<&str> = measure.labels.iter().map(String::as_str).collect();
        match measure.effect {
            Effect::Add(amount) => family.add(&values, amount),
            Effect::Set(amount) => family.set(&values, amount),
            Effect::Observe(amount) => family.observe(&values, amount),
            Effect::Forget => family.forget(&values),
        }
    }

    /// A decision has been taken and carried out.
    pub(crate) fn reconciled(&self, controller: &str, how: Reconciled) {
        self.reconciles.add(&[controller, how.label()], 1.0);
    }

    /// So many writes were tried, and this is why the last did not succeed.
    pub(crate) fn wrote(&self, controller: &str, n_writes: usize, failure: Option<&ClientError>) {
        self.writes.add(&[controller], n_writes as f64);
        if let Some(error) = failure {
            self.write_failures.add(&[controller, error.label()], 1.0);
        }
    }

    /// So many roots wait for their turn.
    pub(crate) fn waiting(&self, engine: &str, n_roots: usize) {
        self.depth.set(&[engine], n_roots as f64);
    }

    /// The work queue of this name.
    pub(crate) fn work_queue(&self, name: &'static str) -> Arc<WorkQueue> {
        self.work_queues.lock().entry(name).or_default().clone()
    }

    /// All numbers at this moment, as text.
    pub fn page(&self, now: Time) -> String {
        let mut page = String::new();
        for family in [&self.depth, &self.reconciles, &self.write_failures, &self.writes] {
            family.render(&mut page);
        }
        for family in self.of_controllers.lock().values() {
            family.render(&mut page);
        }
        workqueue::render(&self.work_queues.lock(), now, &mut page);
        page
    }
}

impl Page for Metrics {
    fn page(&self, now: Time) -> String {
        Metrics::page(self, now)
    }
}
