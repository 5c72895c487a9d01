//! Tasks that wait for other tasks.

use std::collections::BTreeSet;

use krafla_api::volcano::{Iteration, TaskSpec};

use super::Job;
use super::pods::Pods;

/// Volcano: a task waits until the tasks it depends on have their minimum of ready pods; one of them is enough if it says
/// `any`. A dependency without a minimum is not waited for.
pub(super) fn is_met(job: &Job<'_>, task: &TaskSpec, pods: &Pods<'_>) -> bool {
    ask(task, |name| {
        job.task(name).is_some_and(|dependency| match dependency.min_available {
            Some(minimum) => pods.n_ready(name) >= minimum,
            None => true,
        })
    })
}

/// The tasks that can never start: so many pods failed of what they depend on, directly or through other tasks, that its
/// minimum is out of reach.
pub(super) fn hopeless<'a>(job: &'a Job<'_>, pods: &Pods<'_>) -> BTreeSet<&'a str> {
    let is_broken = |task: &TaskSpec| {
        let spare = task.replicas.saturating_sub(task.min_available.unwrap_or(0));
        pods.counts_of(&task.name).is_some_and(|counts| counts.failed > spare)
    };
    let mut lost: BTreeSet<&str> =
        job.spec.tasks.iter().filter(|task| is_broken(task)).map(|task| task.name.as_str()).collect();
    let mut hopeless = BTreeSet::new();
    // Each round finds tasks that wait for those found before; there are at most as many rounds as tasks.
    loop {
        let waiting = job.spec.tasks.iter().filter(|task| pods.counts_of(&task.name).is_none());
        let found: Vec<&str> = waiting
            .filter(|task| !hopeless.contains(task.name.as_str()) && !ask(task, |name| !lost.contains(name)))
            .map(|task| task.name.as_str())
            .collect();
        if found.is_empty() {
            return hopeless;
        }
        lost.extend(found.iter().copied());
        hopeless.extend(found);
    }
}

fn ask(task: &TaskSpec, holds: impl Fn(&str) -> bool) -> bool {
    let Some(depends_on) = &task.depends_on else { return true };
    let any_is_enough = depends_on.iteration == Iteration::Any && depends_on.name.len() > 1;
    let mut names = depends_on.name.iter().map(String::as_str);
    if any_is_enough { names.any(holds) } else { names.all(holds) }
}
