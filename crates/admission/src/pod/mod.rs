//! Pods: what Volcano adds to them and checks on them, and the rules of Kubernetes for a pod template.
//!
//! ```text
//!   template ── spec ─┬─ container ── env, mount, handler, resources, security
//!                     ├─ volume ── projected, claim
//!                     ├─ scheduling
//!                     └─ security
//! ```
//!
//! The rules are those of Kubernetes 1.36 for a template that is checked on its own, all alpha features off, with its
//! words. They read raw JSON: fields that they do not know pass. Pods themselves are checked by `object` when they are
//! new, by `update` and `status` when they change.

pub(crate) mod check;
pub(crate) mod claim;
mod container;
mod env;
mod ephemeral;
mod group;
mod handler;
pub(crate) mod keep;
mod mount;
mod object;
mod projected;
mod resize;
mod resources;
pub(crate) mod scheduling;
mod security;
mod spec;
mod status;
pub(crate) mod template;
mod update;
pub(crate) mod volume;
mod warnings;

pub(crate) use claim::validate_spec as validate_claim_spec;
pub use claim::{validate_claim, validate_claim_status, validate_claim_update};
pub use ephemeral::validate_ephemeral;
pub use group::{GroupSelector, ResourceGroup};
pub use object::{validate_new, validate_template};
pub use resize::{keep_but_resources, validate_resize};
pub use resources::default_pod_level;
pub(crate) use resources::{container_resource, is_counted, is_huge_page, is_native, resource};
pub(crate) use spec::Dialect;
pub use status::validate_status;
pub use update::validate_update;
pub(crate) use warnings::{addresses, warnings_of_node_term};
pub use warnings::{warnings, warnings_of_claim};

use krafla_api::labels::{JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE, QUEUE_ALLOCATION_GATE};
use serde_json::{Value, json};

use crate::json::At;
use crate::{Operation, Path, Reason, Request, Settings, Verdict};

/// Adds what the administrator's settings say about a new pod.
pub fn default(pod: &mut Value, settings: &Settings) {
    if settings.gates_pods {
        add_gate(pod);
    }
    if let Some(group) = settings.resource_groups.iter().find(|group| group.is_for(pod)) {
        group.apply(pod);
    }
}

fn add_gate(pod: &mut Value) {
    let wanted = At::new(pod, Path::default()).get("metadata").get("annotations").str(QUEUE_ALLOCATION_GATE);
    if wanted != "true" {
        return;
    }
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let gates = spec.entry("schedulingGates").or_insert_with(|| json!([]));
    if let Some(gates) = gates.as_array_mut()
        && !gates.iter().any(|gate| gate.get("name") == Some(&QUEUE_ALLOCATION_GATE.into()))
    {
        gates.push(json!({ "name": QUEUE_ALLOCATION_GATE }));
    }
}

/// Checks the annotations by which a pod limits its disruption.
pub fn validate(request: Request<'_>, settings: &Settings) -> Verdict {
    let mut verdict = Verdict::default();
    let pod = At::new(request.object, Path::default());
    let scheduler = pod.get("spec").str("schedulerName");
    let is_ours = settings.scheduler_names.iter().any(|name| name == scheduler);
    if request.operation != Operation::Create || !is_ours {
        return verdict;
    }
    let annotations = pod.get("metadata").get("annotations");
    let given: Vec<(&str, At<'_>)> = annotations
        .entries()
        .into_iter()
        .filter(|(key, _)| [JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE].contains(key))
        .collect();
    for (key, value) in &given {
        if let Err(detail) = disruption(value.text()) {
            let message = detail.replace("{key}", key);
            verdict.refuse(value.path(), Reason::Invalid, message);
        }
    }
    if given.len() > 1 {
        let keys = format!("[{JDB_MIN_AVAILABLE} {JDB_MAX_UNAVAILABLE}]");
        let message = format!("not allow configure multiple annotations <{keys}> at same time");
        verdict.refuse(annotations.path(), Reason::Forbidden, message);
    }
    verdict
}

/// How many pods: a positive number, or a percentage from 1 to 99.
fn disruption(text: &str) -> Result<(), String> {
    if let Ok(number) = text.parse::<i32>() {
        let rule = format!("invalid value <{text:?}> for {{key}}, it must be a positive integer");
        return if number > 0 { Ok(()) } else { Err(rule) };
    }
    let digits = text.replace('%', "");
    match digits.parse::<i64>() {
        Ok(1..=99) => Ok(()),
        Ok(_) => Err(format!(
            "invalid value <{text:?}> for {{key}}, it must be a valid percentage which between 1% ~ 99%"
        )),
        Err(_) => Err(format!(
            "invalid value: {text:?} for {{key}}; write a number such as 2 or a percentage such as 50%"
        )),
    }
}
