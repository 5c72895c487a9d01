//! Since when something holds of which no object tells the beginning: of a container's restarts only the last is kept,
//! Volcano's scheduler renews what it says of a PodGroup at every round, and a pod that was evicted while nobody looked may have
//! left no trace but that it is missed. While a policy gives such a thing time, the job itself keeps the moment in which it was
//! first seen, so that the time runs out, whoever looks and however often.
//!
//! ```text
//!   krafla.dev/holds-since: {"TaskFailed/work":"2027-01-15T08:00:00.000000Z","PodEvicted/work/0-2,5":"2027-01-15T08:00:00.000000Z"}
//! ```

use std::collections::BTreeMap;

use krafla_api::volcano::Event;
use krafla_api::{Time, labels};
use serde_json::json;

use super::Job;
use crate::Plan;
use crate::indexes::Indexes;

/// So many places of a task are kept as vacant since one moment, whatever an annotation says.
const VACANCIES_MAX: usize = 10_000;

/// Moments by what began in them.
pub(super) type Moments = BTreeMap<String, Time>;

/// What a moment is kept under.
pub(super) fn name(event: &Event, task: Option<&str>) -> String {
    task.map_or_else(|| event.to_string(), |task| format!("{event}/{task}"))
}

/// What the moment is kept under since when a place is vacant.
pub(super) fn vacancy_name(task: &str, index: impl std::fmt::Display) -> String {
    format!("{}/{index}", name(&Event::PodEvicted, Some(task)))
}

/// The task and the indexes that a name of vacancies is about.
fn vacancy(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(self::name(&Event::PodEvicted, Some("")).as_str())?.rsplit_once('/')
}

/// The places of tasks that are kept as vacant.
pub(super) fn vacancies<'a>(job: &'a Job<'_>, kept: &Moments) -> Vec<(&'a str, i32)> {
    let place = |(task, index): (&str, &str)| Some((job.task(task)?.name.as_str(), index.parse().ok()?));
    kept.keys().filter_map(|name| vacancy(name)).filter_map(place).collect()
}

/// The moments that the job keeps. Those of vacancies have a name for each place.
pub(super) fn kept(job: &Job<'_>) -> Moments {
    let text = job.meta.annotations.get(labels::HOLDS_SINCE);
    let written: Moments = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut kept = Moments::new();
    for (name, moment) in written {
        match vacancy(&name) {
            Some((task, indexes)) => {
                let indexes = Indexes::parse(indexes, u32::MAX);
                let names = indexes.iter().take(VACANCIES_MAX).map(|index| vacancy_name(task, index));
                kept.extend(names.map(|name| (name, moment)));
            }
            None => drop(kept.insert(name, moment)),
        }
    }
    kept
}

/// Keeps these moments, and forgets those of what is over. It is done first: what follows may be refused for long.
pub(super) fn keep(job: &Job<'_>, moments: &Moments, plan: &mut Plan) {
    if kept(job) == *moments {
        return;
    }
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut vacant: BTreeMap<(&str, Time), Vec<u32>> = BTreeMap::new();
    for (name, moment) in moments {
        match vacancy(name).and_then(|(task, index)| Some((task, index.parse().ok()?))) {
            Some((task, index)) => vacant.entry((task, *moment)).or_default().push(index),
            None => drop(texts.insert(name.clone(), moment.to_micro_string())),
        }
    }
    // Thousands may be evicted together, and an annotation has little room.
    for ((task, moment), indexes) in vacant {
        let indexes = Indexes::default().with(indexes);
        texts.insert(vacancy_name(task, indexes), moment.to_micro_string());
    }
    let text = (!texts.is_empty()).then(|| json!(texts).to_string());
    plan.steps.insert(0, job.annotate(labels::HOLDS_SINCE, text.as_deref()));
}
