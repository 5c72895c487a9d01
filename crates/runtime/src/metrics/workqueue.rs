//! How work queues fare, under the names that every Kubernetes controller's queues have: dashboards and alerts ask for them.
//!
//! What happens to a queue is noted in plain numbers, since it happens for every change; families are made of them only when
//! somebody asks for the page.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_api::Time;
use parking_lot::Mutex;

use crate::engine::Root;
use crate::queue::Meter;
use krafla_metrics::{Family, Sample};

/// From ten nanoseconds to a thousand seconds.
const SECONDS: &[f64] = &[1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0];

/// One work queue.
#[derive(Debug, Default)]
pub(crate) struct WorkQueue(Mutex<Numbers>);

#[derive(Clone, Debug, Default)]
struct Numbers {
    n_added: u64,
    n_retried: u64,
    n_waiting: u64,
    waited: Sample,
    worked: Sample,
    /// When what is now worked on was handed out, and how many were at each of these moments.
    taken_at: BTreeMap<Time, u64>,
}

/// The work queues of an engine's controllers, in their order. There are none if nobody counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkQueues(Vec<Arc<WorkQueue>>);

impl FromIterator<Arc<WorkQueue>> for WorkQueues {
    fn from_iter<I: IntoIterator<Item = Arc<WorkQueue>>>(queues: I) -> WorkQueues {
        WorkQueues(queues.into_iter().collect())
    }
}

impl WorkQueues {
    fn note(&self, root: &Root, change: impl FnOnce(&mut Numbers)) {
        if let Some(WorkQueue(numbers)) = self.0.get(root.controller).map(Arc::as_ref) {
            change(&mut numbers.lock());
        }
    }
}

impl Meter<Root> for WorkQueues {
    fn added(&self, root: &Root) {
        self.note(root, |numbers| {
            numbers.n_added += 1;
            numbers.n_waiting += 1;
        });
    }

    fn taken(&self, root: &Root, added_at: Time, now: Time) {
        self.note(root, |numbers| {
            numbers.n_waiting = numbers.n_waiting.saturating_sub(1);
            numbers.waited.observe(SECONDS, now.since(added_at).as_secs_f64());
            *numbers.taken_at.entry(now).or_default() += 1;
        });
    }

    fn done(&self, root: &Root, taken_at: Time, now: Time) {
        self.note(root, |numbers| {
            numbers.worked.observe(SECONDS, now.since(taken_at).as_secs_f64());
            if let Some(n_taken) = numbers.taken_at.get_mut(&taken_at) {
                *n_taken = n_taken.saturating_sub(1);
            }
            numbers.taken_at.retain(|_, n_taken| *n_taken > 0);
        });
    }

    fn retried(&self, root: &Root) {
        self.note(root, |numbers| numbers.n_retried += 1);
    }
}

/// Appends the queues of these names to a page. Work that is under way is as old as it is now.
pub(super) fn render(queues: &BTreeMap<&'static str, Arc<WorkQueue>>, now: Time, page: &mut String) {
    const NAME: &[&str] = &["name"];
    let depth = Family::gauge("workqueue_depth", "How many objects wait in the queue.", NAME);
    let adds = Family::counter("workqueue_adds_total", "How often an object came to wait.", NAME);
    let waited = Family::histogram(
        "workqueue_queue_duration_seconds",
        "How long objects waited before they were looked at.",
        NAME,
        SECONDS,
    );
    let worked = Family::histogram(
        "workqueue_work_duration_seconds",
        "How long it took to carry out what was decided about an object.",
        NAME,
        SECONDS,
    );
    let unfinished = Family::gauge(
        "workqueue_unfinished_work_seconds",
        "How long all work that is under way has been so, in sum. A large number means that something hangs.",
        NAME,
    );
    let longest = Family::gauge(
        "workqueue_longest_running_processor_seconds",
        "How long the oldest work that is under way has been so.",
        NAME,
    );
    let retries =
        Family::counter("workqueue_retries_total", "How often work failed and was to be tried again.", NAME);
    for (name, WorkQueue(numbers)) in queues.iter().map(|(name, queue)| ([*name], &**queue)) {
        let numbers = numbers.lock().clone();
        let ages = || numbers.taken_at.iter().map(|(at, n_taken)| (now.since(*at).as_secs_f64(), *n_taken));
        depth.set(&name, numbers.n_waiting as f64);
        adds.add(&name, numbers.n_added as f64);
        retries.add(&name, numbers.n_retried as f64);
        unfinished.set(&name, ages().fold(0.0, |sum, (age, n_taken)| sum + age * n_taken as f64));
        longest.set(&name, ages().map(|(age, _)| age).fold(0.0, f64::max));
        waited.put(&name, numbers.waited);
        worked.put(&name, numbers.worked);
    }
    for family in [&adds, &depth, &longest, &waited, &retries, &unfinished, &worked] {
        family.render(page);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use krafla_api::{Key, Kind};

    use super::*;

    #[test]
    fn queues_are_shown_with_what_waits_what_is_worked_on_and_what_failed() {
        let at = Time::from_seconds;
        let queue = Arc::<WorkQueue>::default();
        let queues: WorkQueues = [queue.clone()].into_iter().collect();
        let root = Root { controller: 0, kind: Kind::Job, key: Key::new("n", "a") };
        for _ in 0..4 {
            queues.added(&root);
        }
        queues.taken(&root, at(0), at(1));
        queues.taken(&root, at(0), at(1));
        queues.taken(&root, at(0), at(3));
        queues.done(&root, at(1), at(2));
        queues.retried(&root);
        queues.added(&Root { controller: 7, ..root });
        let mut page = String::new();
        render(&[("job", queue)].into(), at(5), &mut page);
        let shown: Vec<&str> = page.lines().filter(|line| line.starts_with("workqueue_")).collect();
        expect![[r#"
            workqueue_adds_total{name="job"} 4
            workqueue_depth{name="job"} 1
            workqueue_longest_running_processor_seconds{name="job"} 4
            workqueue_queue_duration_seconds_bucket{name="job",le="0.00000001"} 0
            workqueue_queue_duration_seconds_bucket{name="job",le="0.0000001"} 0
            workqueue_queue_duration_seconds_bucket{name="job",le="0.000001"} 0
            workqueue_queue_duration_seconds_bucket{name="job",le="0.00001"} 0
            workqueue_queue_duration_seconds_bucket{name="job",le="0.0001"} 0
            workqueue_queue_duration_seconds_bucket{name="job",le="0.001"} 0
            workqueue_queue_duration_seconds_bucket{name="job",le="0.01"} 0
            workqueue_queue_duration_seconds_bucket{name="job",le="0.1"} 0
            workqueue_queue_duration_seconds_bucket{name="job",le="1"} 2
            workqueue_queue_duration_seconds_bucket{name="job",le="10"} 3
            workqueue_queue_duration_seconds_bucket{name="job",le="100"} 3
            workqueue_queue_duration_seconds_bucket{name="job",le="1000"} 3
            workqueue_queue_duration_seconds_bucket{name="job",le="+Inf"} 3
            workqueue_queue_duration_seconds_sum{name="job"} 5
            workqueue_queue_duration_seconds_count{name="job"} 3
            workqueue_retries_total{name="job"} 1
            workqueue_unfinished_work_seconds{name="job"} 6
            workqueue_work_duration_seconds_bucket{name="job",le="0.00000001"} 0
            workqueue_work_duration_seconds_bucket{name="job",le="0.0000001"} 0
            workqueue_work_duration_seconds_bucket{name="job",le="0.000001"} 0
            workqueue_work_duration_seconds_bucket{name="job",le="0.00001"} 0
            workqueue_work_duration_seconds_bucket{name="job",le="0.0001"} 0
            workqueue_work_duration_seconds_bucket{name="job",le="0.001"} 0
            workqueue_work_duration_seconds_bucket{name="job",le="0.01"} 0
            workqueue_work_duration_seconds_bucket{name="job",le="0.1"} 0
            workqueue_work_duration_seconds_bucket{name="job",le="1"} 1
            workqueue_work_duration_seconds_bucket{name="job",le="10"} 1
            workqueue_work_duration_seconds_bucket{name="job",le="100"} 1
            workqueue_work_duration_seconds_bucket{name="job",le="1000"} 1
            workqueue_work_duration_seconds_bucket{name="job",le="+Inf"} 1
            workqueue_work_duration_seconds_sum{name="job"} 1
            workqueue_work_duration_seconds_count{name="job"} 1"#]]
        .assert_eq(&shown.join("\n"));
    }
}
