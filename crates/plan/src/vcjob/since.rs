//! Since when something holds of which no object tells the beginning: of a container's restarts only the last is kept,
//! Volcano's scheduler renews what it says of a PodGroup at every round, and a pod that was evicted while nobody looked may have
//! left no trace but that it is missed. While a policy gives such a thing time, the job itself keeps the moment in which it was
//! first seen, so that the time runs out, whoever looks and however often.
//!
//! ```text
//!   krafla.dev/holds-since: {"TaskFailed/work":"2027-01-15T08:00:00.000000Z","PodEvicted/work/3":"2027-01-15T08:00:00.000000Z"}
//! ```

use std::collections::BTreeMap;

use krafla_api::volcano::Event;
use krafla_api::{Time, labels};
use serde_json::json;

use super::Job;
use crate::Plan;

/// Moments by what began in them.
pub(super) type Moments = BTreeMap<String, Time>;

/// What a moment is kept under.
pub(super) fn name(event: &Event, task: Option<&str>) -> String {
    task.map_or_else(|| event.to_string(), |task| format!("{event}/{task}"))
}

/// What the moment is kept under since when a place is vacant.
pub(super) fn vacancy_name(task: &str, index: i32) -> String {
    format!("{}/{index}", name(&Event::PodEvicted, Some(task)))
}

/// The places of tasks that are kept as vacant.
pub(super) fn vacancies<'a>(job: &'a Job<'_>) -> Vec<(&'a str, i32)> {
    let prefix = name(&Event::PodEvicted, Some(""));
    let place = |name: String| {
        let (task, index) = name.strip_prefix(&prefix)?.rsplit_once('/')?;
        Some((job.task(task)?.name.as_str(), index.parse().ok()?))
    };
    kept(job).into_keys().filter_map(place).collect()
}

/// The moment that is kept under a name.
pub(super) fn recall(job: &Job<'_>, name: &str) -> Option<Time> {
    kept(job).remove(name)
}

/// Keeps these moments, and forgets those of what is over. It is done first: what follows may be refused for long.
pub(super) fn keep(job: &Job<'_>, moments: &Moments, plan: &mut Plan) {
    if kept(job) == *moments {
        return;
    }
    let texts: BTreeMap<&String, String> =
        moments.iter().map(|(name, moment)| (name, moment.to_micro_string())).collect();
    let text = (!texts.is_empty()).then(|| json!(texts).to_string());
    plan.steps.insert(0, job.annotate(labels::HOLDS_SINCE, text.as_deref()));
}

fn kept(job: &Job<'_>) -> Moments {
    let text = job.meta.annotations.get(labels::HOLDS_SINCE);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}
