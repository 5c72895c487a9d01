//! Faults of Volcano's that its states show by themselves, found by rule. The tags are those of DEVIATIONS.md.

use std::collections::BTreeMap;

use krafla_api::volcano::JobPhase;
use serde_json::{Value, json};

use super::record::Entry;
use super::rules::{COUNTERS, state_of_pod};

/// The step from which on each fault shows.
pub(super) fn shown_since(entries: &[Entry]) -> BTreeMap<String, usize> {
    let mut since = BTreeMap::new();
    let nothing = json!({});
    let mut before = &nothing;
    for (step, entry) in entries.iter().enumerate() {
        for fault in shown(before, &entry.state) {
            since.entry(fault.to_owned()).or_insert(step);
        }
        before = &entry.state;
    }
    since
}

/// The faults that show in a state, which followed another.
fn shown<'a>(before: &'a Value, state: &'a Value) -> impl Iterator<Item = &'static str> + use<'a> {
    let jobs = state["jobs"].as_object().into_iter().flatten();
    jobs.flat_map(move |(name, job)| {
        let counted: Vec<(u64, u64)> = counters(state, job).collect();
        let phase = JobPhase::from(job["status"]["state"]["phase"].as_str().unwrap_or_default());
        let earlier = &before["jobs"][name];
        let made_by_plugins = |state: &Value, job: &Value| {
            job["status"]["controlledResources"].get("plugin-svc").is_some() && !state.is_null()
        };
        let is_svc_lost =
            phase == JobPhase::Running && made_by_plugins(before, earlier) && !made_by_plugins(state, job);
        let is_left = ["services", "configmaps", "networkpolicies", "secrets"].iter().any(|section| {
            let objects = state[section].as_object().into_iter().flatten();
            let mut owners = objects.map(|(_, object)| &object["ownerReferences"][0]["uid"]);
            owners.any(|owner| *owner == job["uid"])
        });
        let [is, was] = [job, earlier].map(|job| job["status"]["version"].as_i64().unwrap_or(0));
        let is_ending = matches!(phase, JobPhase::Aborting | JobPhase::Completing | JobPhase::Terminating);
        let is_over = phase.is_finished() || phase == JobPhase::Aborted;
        let moves = is > was + 1 || (is != was && (is_over || is_ending));
        let found = [
            ("B5", counted.iter().any(|(counter, pods)| counter < pods)),
            ("B8", counted.iter().any(|(counter, pods)| counter > pods)),
            ("B7", is_svc_lost),
            ("B24", (is_over || is_ending) && is_left),
            ("B46", moves),
        ];
        found.into_iter().filter(|(_, shows)| *shows).map(|(fault, _)| fault)
    })
}

/// What each counter of a job says, and how many pods there are of its sort.
fn counters<'a>(state: &'a Value, job: &'a Value) -> impl Iterator<Item = (u64, u64)> + use<'a> {
    let pods = state["pods"].as_object().into_iter().flatten().map(|(_, pod)| pod);
    let own = pods.filter(|pod| pod["ownerReferences"][0]["uid"] == job["uid"]);
    let states: Vec<String> = own.map(state_of_pod).collect();
    COUNTERS.iter().map(move |counter| {
        let n_pods = states.iter().filter(|state| state == counter).count();
        (job["status"][counter].as_u64().unwrap_or(0), u64::try_from(n_pods).unwrap_or(0))
    })
}
