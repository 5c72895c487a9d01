//! Recorded answers of Volcano's own webhooks (`tests/golden/admission`), replayed.
//!
//! For each case the verdict must be the same, and everything that Volcano found must be found here, in its words. Where
//! this program differs it does so on purpose, and the difference is written down in the tables below:
//!
//! ```text
//!   allowed: ...      Volcano refuses it
//!   refused: ...      Volcano allows it
//!   also: ...         Volcano stops at the first finding; or does not look
//!   unsaid: ...       Volcano says something else
//! ```

use std::fmt::Write;

use expect_test::{Expect, expect};
use krafla_admission::{Finding, Operation, Request, Verdict, validate};
use krafla_api::Kind;
use serde_json::Value;

use crate::records::{Environment, recorded, settings};

/// Replays a file and compares the differences with the ones that are meant.
fn replay(kind: Kind, name: &str, differences: &Expect) {
    let file = recorded(name);
    let mut report = String::new();
    for case in file["cases"].as_array().expect("cases") {
        let Some(request) = asked(kind, case) else { continue };
        let verdict = validate(request, &settings(case), &Environment::of(&file, case));
        compare(case, &verdict, &mut report);
    }
    let shortened = report.lines().map(|line| line.chars().take(150).collect::<String>() + "\n");
    differences.assert_eq(&shortened.collect::<String>());
}

/// What a case asks, if it comes to these rules at all.
pub(crate) fn asked(kind: Kind, case: &Value) -> Option<Request<'_>> {
    let operation = operation(case)?;
    let request_name = case["request"]["name"].as_str();
    let named = ["object", "oldObject"].map(|object| case[object]["metadata"]["name"].as_str());
    let name = request_name.or(named[0]).or(named[1]).unwrap_or_default();
    Some(Request { kind, operation, name, object: &case["object"], old: &case["oldObject"] })
}

/// The operation, unless the request would never come to these rules: the wrong resource or operation.
fn operation(case: &Value) -> Option<Operation> {
    let message = case["response"]["message"].as_str().unwrap_or_default();
    let is_protocol = ["expect resource", "expect operation", "invalid operation", "unsupported operation"];
    if is_protocol.iter().any(|start| message.starts_with(start)) {
        return None;
    }
    match case["operation"].as_str() {
        Some("CREATE") => Some(Operation::Create),
        Some("UPDATE") => Some(Operation::Update),
        Some("DELETE") => Some(Operation::Delete),
        _ => None,
    }
}

fn compare(case: &Value, verdict: &Verdict, report: &mut String) {
    let (name, response) = (case["name"].as_str().unwrap_or_default(), &case["response"]);
    let Some(is_allowed) = response["allowed"].as_bool() else { return };
    match (verdict.is_allowed(), is_allowed) {
        (true, false) => writeln!(report, "allowed: {name}").expect("text"),
        (false, true) => writeln!(report, "refused: {name}: {}", verdict.message()).expect("text"),
        (true, true) => {}
        // What Go's decoder says of a wrong type is its own matter.
        (false, false) if name.starts_with("decode: ") => {}
        (false, false) => {
            let mut rest = masked(response["message"].as_str().unwrap_or_default());
            let others = response["otherMessages"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let others: Vec<String> = others.map(masked).collect();
            for finding in &verdict.refusals {
                let words = words(finding);
                let is_said =
                    take(&mut rest, &words) || others.iter().any(|other| take(&mut other.clone(), &words));
                if !is_said {
                    writeln!(report, "also: {name}: {words}").expect("text");
                }
            }
            let rest = without_frame(&rest);
            if !rest.is_empty() {
                writeln!(report, "unsaid: {name}: {rest}").expect("text");
            }
        }
    }
}

/// A finding in Volcano's words: it names the field of a template in front, as Kubernetes does, and no other field.
fn words(finding: &Finding) -> String {
    let field = finding.field.strip_prefix("spec.tasks[").and_then(|field| field.split_once("]."));
    let text = match field {
        Some((_, field)) if field.starts_with("template.") || field.starts_with("metadata.") => {
            format!("{field}: {}", finding.message)
        }
        _ => finding.message.clone(),
    };
    masked(&text)
}

/// Removes from `message` the words, or as many of them as it has up to some punctuation mark: this program explains
/// more. Says whether anything was found.
fn take(message: &mut String, words: &str) -> bool {
    let ends = words.match_indices([';', ':']).map(|(end, _)| end).rev();
    for end in [words.len()].into_iter().chain(ends) {
        let start = &words[..end];
        // A bare path or a bare "Invalid value" is nobody's words.
        let is_distinctive = start.len() > 12 && !start.ends_with("Invalid value") && start.contains(' ');
        if is_distinctive && message.contains(start) {
            *message = message.replacen(start, "", 1);
            return true;
        }
    }
    false
}

/// Objects in messages are Go's print of them; amounts in sums are in units of its own.
fn masked(message: &str) -> String {
    let mut masked = message.to_owned();
    for (open, close, what) in
        [("Invalid value: {", "}", "{}"), ("Invalid value: [", "]", "[]"), (" (cpu ", ")", "()")]
    {
        while let Some(start) = masked.find(open) {
            let after = start + open.len();
            let Some(end) = masked[after..].find(close) else { break };
            let kept = if what == "()" { " ()".to_owned() } else { format!("Invalid value: {what}") };
            masked.replace_range(
                start..after + end + close.len(),
                &kept.replace("{}", "<>").replace("[]", "<>"),
            );
        }
    }
    masked.replace("limit ()", "limit ").replace(" () ", " ")
}

/// What stands around the findings in Volcano's messages.
fn without_frame(rest: &str) -> String {
    let mut rest = rest.to_owned();
    if let Some(start) = rest.find("strconv.") {
        rest.truncate(start);
    }
    for frame in [
        "valid events are [* JobUpdated PodEvicted PodFailed PodPending TaskCompleted TaskFailed Unknown]",
        "valid actions are [AbortJob CompleteJob RestartJob RestartPartition RestartPod RestartTask ResumeJob TerminateJob]",
        "1 error occurred:",
        "2 errors occurred:",
        "spec.policies:",
        "spec.tasks.policies:",
    ] {
        rest = rest.replace(frame, "");
    }
    let tokens = rest.split_whitespace().filter(|token| {
        let token = token.trim_start_matches([';', '[']);
        let is_place = ["spec.task[", "requestBody.", "].spec."].iter().any(|start| token.starts_with(start));
        !is_place && token.contains(|c: char| c.is_alphanumeric())
    });
    tokens.collect::<Vec<_>>().join(" ")
}

#[test]
fn jobs() {
    replay(
        Kind::VcJob,
        "jobs-validate.json",
        &expect![[r#"
            also: two unnamed tasks: metadata.name: Required value: name or generateName is required
            allowed: pod name with two-digit task position
            also: volumes: only the first problem is reported: mountPath is required
            also: volumes: only the first problem is reported: invalid VolumeClaimName B! : [a lowercase RFC 1123 subdomain must consist of lower case alphanumeri
            also: policy empty object: Invalid value: "": invalid policy action; use one of AbortJob, RestartJob, RestartTask, RestartPod, RestartPartition, Termi
            also: policy any event, another, and a later problem: Invalid value: "": invalid policy action; use one of AbortJob, RestartJob, RestartTask, RestartP
            refused: policy exitCode with inner action is accepted: spec.policies[0].action: Invalid value: "SyncJob": invalid policy action; use one of AbortJob,
            refused: policy exitCode without action is accepted: spec.policies[0].action: Invalid value: "": invalid policy action; use one of AbortJob, RestartJo
            also: policy event is checked before action: Invalid value: "Bogus": invalid policy action; use one of AbortJob, RestartJob, RestartTask, RestartPod, 
            also: policies wrong on job level and two tasks: Invalid value: "": invalid policy action; use one of AbortJob, RestartJob, RestartTask, RestartPod, R
            also: policies wrong on job level and two tasks: Invalid value: "": invalid policy action; use one of AbortJob, RestartJob, RestartTask, RestartPod, R
            also: many findings keep their order: Invalid value: "": invalid policy action; use one of AbortJob, RestartJob, RestartTask, RestartPod, RestartParti
            also: many findings keep their order: create pod with name Bad Name-b-0 validate failed [name part must consist of alphanumeric characters, '-', '_' o
            also: many findings keep their order: Invalid value: "": invalid policy action; use one of AbortJob, RestartJob, RestartTask, RestartPod, RestartParti
            unsaid: many findings keep their order: create pod with name Bad Name-b-1 validate failed [name part must consist of alphanumeric characters, or and m
            also: unknown queue, unknown plugin, bad volume: either VolumeClaim or VolumeClaimName must be specified
            also: update replicas below task minAvailable: job 'minAvailable' must not be greater than total replicas
            also: update replicas negative: 'minAvailable' must be <= 'replicas' in task: a
            also: update replicas negative: job 'minAvailable' must not be greater than total replicas
            also: update networkTopology both tiers: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClas
            allowed: update partition job more partitions is refused
            also: update partition both tiers: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`
            also: update: old object was already invalid: job 'minAvailable' must not be greater than total replicas
            also: update: replicas rule comes before task count: job 'minAvailable' must not be greater than total replicas
            also: update: replicas rule comes before task count: job updates may not add or remove tasks
        "#]],
    );
}

#[test]
fn queues() {
    replay(
        Kind::Queue,
        "queues-validate.json",
        &expect![[r#"
            also: guarantee is reported before deserved: parent queue org validation failed: sum of children's deserved exceeds parent's deserved limit 
            also: guarantee under a parent without guarantee: parent queue bare validation failed: sum of children's deserved exceeds parent's deserved limit 
            refused: update parent to own child: spec.parent: queue bare exceeds the maximum allowed depth of 5: it cannot go below queue bare-child, which is bel
            refused: update parent to own grandchild: spec.parent: queue d1 exceeds the maximum allowed depth of 5: it cannot go below queue d3, which is below it
            also: update parent to own grandchild with too much in the children: queue org exceeds the maximum allowed depth of 5: it cannot go below queue org-b-
            refused: update parent so that the child becomes too deep: spec.parent: queue bare exceeds the maximum allowed depth of 5, with the queues below it
            refused: update root parent: spec.parent: root queue cannot have a parent
            also: delete queue with allocated pods and a child, check on: queue busy-parent can not be deleted because it has 1 child queues: busy-child
        "#]],
    );
}

#[test]
fn podgroups() {
    replay(
        Kind::PodGroup,
        "podgroups-validate.json",
        &expect![[r#"
            also: both tiers in two sub groups: first is named: in subGroupPolicy 's2': must not specify 'highestTierAllowed' and 'highestTierName' in networkTopo
        "#]],
    );
}

#[test]
fn jobflows() {
    replay(
        Kind::JobFlow,
        "jobflows-validate.json",
        &expect![[r#"
            also: two undefined targets in one flow: first is named: jobflow Flow is not DAG: vertex is not defined: zzz
            also: undefined target and a cycle: jobflow Flow is not DAG: flows wait for each other in a ring: a -> b -> a; take one of these dependencies out
            refused: duplicate flow name: spec.flows[1].name: Duplicate value: "a"
            refused: duplicate flow name, later one replaces a self dependency: spec.flows[1].name: Duplicate value: "a"
            refused: duplicate flow name, earlier one has an undefined target: spec.flows[1].name: Duplicate value: "a"; spec.flows[0].dependsOn.targets: jobflow 
        "#]],
    );
}

#[test]
fn hypernodes() {
    replay(Kind::HyperNode, "hypernodes-validate.json", &expect![""]);
}

#[test]
fn cronjobs() {
    replay(
        Kind::VcCronJob,
        "cronjobs-validate.json",
        &expect![[r#"
        also: timeZone './UTC': invalid timeZone: "./UTC"; use a name such as Europe/Berlin
        also: timeZone 'Asia//Tokyo': invalid timeZone: "Asia//Tokyo"; use a name such as Europe/Berlin
    "#]],
    );
}

#[test]
fn pods() {
    replay(
        Kind::Pod,
        "pods-validate.json",
        &expect![[r#"
            also: both annotations, first wrong: not allow configure multiple annotations <[volcano.sh/jdb-min-available volcano.sh/jdb-max-unavailable]> at same 
        "#]],
    );
}
