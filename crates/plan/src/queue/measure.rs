//! How many PodGroups of each phase a queue has, at /metrics. Volcano: `pkg/controllers/metrics/queue.go`.

use krafla_api::volcano::PodGroupPhase;
use krafla_api::{Key, Kind};
use krafla_metrics::{Metric, MetricKind};

use crate::measure::{Effect, Measure, Stored};
use crate::{Object, Objects};

const OF_QUEUE: &[&str] = &["queue_name"];

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric { name, help, labels: OF_QUEUE, kind: MetricKind::Gauge }
}

static INQUEUE: Metric =
    gauge("volcano_queue_pod_group_inqueue_count", "How many PodGroups of the queue have room.");
static PENDING: Metric =
    gauge("volcano_queue_pod_group_pending_count", "How many PodGroups of the queue wait for room.");
static RUNNING: Metric =
    gauge("volcano_queue_pod_group_running_count", "How many PodGroups of the queue run.");
static UNKNOWN: Metric =
    gauge("volcano_queue_pod_group_unknown_count", "How many PodGroups of the queue have lost members.");
static COMPLETED: Metric =
    gauge("volcano_queue_pod_group_completed_count", "How many PodGroups of the queue have ended.");

static ALL: [&Metric; 5] = [&INQUEUE, &PENDING, &RUNNING, &UNKNOWN, &COMPLETED];

/// What a stored change of a queue or a PodGroup does to the numbers.
///
/// A PodGroup moves from one gauge to another, so that no change costs more than another, however many PodGroups there
/// are. All are counted only when a queue comes.
pub(super) fn measure(stored: &Stored<'_>) -> Vec<Measure> {
    match (stored.before, stored.after) {
        (None, Some(queue)) if queue.kind == Kind::Queue => recount(&queue.meta.key.name, stored.objects),
        (Some(queue), None) if queue.kind == Kind::Queue => {
            ALL.iter().map(|metric| Measure::new(metric, [&queue.meta.key.name], Effect::Forget)).collect()
        }
        (before, after) => {
            let was = before.and_then(counted).map(|place| (place, -1.0));
            let is = after.and_then(counted).map(|place| (place, 1.0));
            let moves = was.into_iter().chain(is);
            // What waits for a queue that does not exist is counted when it comes.
            let of_known = moves
                .filter(|((_, queue), _)| stored.objects.get(Kind::Queue, &Key::new("", queue)).is_some());
            of_known.map(|((metric, queue), by)| Measure::new(metric, [queue], Effect::Add(by))).collect()
        }
    }
}

/// Where a PodGroup is counted.
fn counted(group: &Object) -> Option<(&'static Metric, &str)> {
    let group = group.as_podgroup()?;
    let metric = match group.status.phase {
        PodGroupPhase::Unset | PodGroupPhase::Pending => &PENDING,
        PodGroupPhase::Inqueue => &INQUEUE,
        PodGroupPhase::Running => &RUNNING,
        PodGroupPhase::Unknown => &UNKNOWN,
        PodGroupPhase::Completed => &COMPLETED,
        PodGroupPhase::Other(_) => return None,
    };
    Some((metric, &group.spec.queue))
}

fn recount(queue: &str, objects: &Objects) -> Vec<Measure> {
    let of_queue = |metric: &Metric| {
        let groups = objects.all(Kind::PodGroup).filter_map(|group| counted(group));
        groups.filter(|(counted, of)| *of == queue && std::ptr::eq(*counted, metric)).count()
    };
    let set = |metric| Measure::new(metric, [queue], Effect::Set(of_queue(metric) as f64));
    ALL.into_iter().map(set).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn object(kind: Kind, name: &str, phase: &str) -> Object {
        let json = json!({
            "metadata": { "name": name, "uid": name },
            "spec": { "queue": "q" },
            "status": { "phase": phase },
        });
        Object::decode(kind, json.to_string().as_bytes())
    }

    fn group(phase: &str) -> Object {
        object(Kind::PodGroup, "g", phase)
    }

    fn check(known: Vec<Object>, before: Option<Object>, after: Option<Object>, expected: Expect) {
        let mut objects = Objects::default();
        for object in known {
            objects.insert(object.into());
        }
        let stored =
            Stored { before: before.as_ref(), after: after.as_ref(), objects: &objects, is_news: true };
        let measures: Vec<String> = measure(&stored).iter().map(ToString::to_string).collect();
        expected.assert_eq(&measures.join("\n"));
    }

    #[test]
    fn a_podgroup_moves_from_one_gauge_to_the_next() {
        let queue = || vec![object(Kind::Queue, "q", "")];
        let came = expect![[r#"volcano_queue_pod_group_pending_count["q"] Add(1.0)"#]];
        check(queue(), None, Some(group("")), came);
        let moved = expect![[r#"
            volcano_queue_pod_group_inqueue_count["q"] Add(-1.0)
            volcano_queue_pod_group_running_count["q"] Add(1.0)"#]];
        check(queue(), Some(group("Inqueue")), Some(group("Running")), moved);
        let went = expect![[r#"volcano_queue_pod_group_completed_count["q"] Add(-1.0)"#]];
        check(queue(), Some(group("Completed")), None, went);
    }

    #[test]
    fn a_queue_that_comes_counts_what_has_waited_for_it_and_one_that_goes_is_forgotten() {
        check(vec![], None, Some(group("Pending")), expect![""]);
        let counted = expect![[r#"
            volcano_queue_pod_group_inqueue_count["q"] Set(0.0)
            volcano_queue_pod_group_pending_count["q"] Set(1.0)
            volcano_queue_pod_group_running_count["q"] Set(0.0)
            volcano_queue_pod_group_unknown_count["q"] Set(0.0)
            volcano_queue_pod_group_completed_count["q"] Set(0.0)"#]];
        check(vec![group("Pending")], None, Some(object(Kind::Queue, "q", "")), counted);
        let forgotten = expect![[r#"
            volcano_queue_pod_group_inqueue_count["q"] Forget
            volcano_queue_pod_group_pending_count["q"] Forget
            volcano_queue_pod_group_running_count["q"] Forget
            volcano_queue_pod_group_unknown_count["q"] Forget
            volcano_queue_pod_group_completed_count["q"] Forget"#]];
        check(vec![], Some(object(Kind::Queue, "q", "")), None, forgotten);
    }
}
