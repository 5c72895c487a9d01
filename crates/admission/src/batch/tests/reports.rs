//! What a Job's controller may report, rule by rule: once where the rule is broken, once where it is not, and once where it was
//! broken before and the report is about something else.

use super::specs::told;
use super::*;

const START: &str = "2026-01-01T00:00:00Z";
const END: &str = "2026-01-01T00:00:09Z";

/// A case: the spec, the status before, and the status after.
type Row<'a> = (&'a str, &'a [(&'a str, Value)], Value, Value);

/// What is said about reports, a row for each.
fn table(rows: &[Row<'_>]) -> String {
    let row = |(name, spec, before, after): &Row<'_>| {
        let old = with(with(job(), spec), &[("status", before.clone())]);
        told(name, &validate_job_status(&with(old.clone(), &[("status", after.clone())]), &old))
    };
    rows.iter().map(row).collect()
}

/// A status with these conditions and fields.
fn status(held: &[&str], fields: Value) -> Value {
    with(fields, &[("conditions", conditions(held))])
}

fn complete(fields: Value) -> Value {
    with(
        status(&["SuccessCriteriaMet", "Complete"], json!({ "startTime": START, "completionTime": END })),
        &pairs(&fields),
    )
}

fn pairs(fields: &Value) -> Vec<(&str, Value)> {
    fields.as_object().unwrap().iter().map(|(name, value)| (name.as_str(), value.clone())).collect()
}

#[test]
fn counters() {
    let elastic = [
        ("spec.completionMode", json!("Indexed")),
        ("spec.completions", json!(2)),
        ("spec.parallelism", json!(2)),
    ];
    expect![[r#"
        1 nothing below nought: status.active: Invalid value: -1: must be greater than or equal to 0; status.succeeded: Invalid value: -1: must be greater than or equal to 0; status.failed: Invalid value: -1: must be greater than or equal to 0; status.ready: Invalid value: -1: must be greater than or equal to 0; status.terminating: Invalid value: -1: must be greater than or equal to 0; status.failed: Invalid value: -1: cannot decrease the failed counter; status.succeeded: Invalid value: -1: cannot decrease the succeeded counter
        2 a pod in both lists: status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"
        2 a pod without an identity: status.uncountedTerminatedPods.succeeded[0]: Invalid value: "": must not be empty
        2 pods of both sorts: fine
        12 more ready than active: status.ready: Invalid value: 2: cannot set more ready pods than active
        12 as many ready as active: fine
        12 that was wrong before: fine
        19 fewer failed: status.failed: Invalid value: 1: cannot decrease the failed counter
        20 fewer succeeded: status.succeeded: Invalid value: 1: cannot decrease the succeeded counter
        20 fewer succeeded of an elastic Job: fine
    "#]]
    .assert_eq(&table(&[
        ("1 nothing below nought", &[], json!({}), json!({ "active": -1, "succeeded": -1, "failed": -1, "ready": -1, "terminating": -1 })),
        ("2 a pod in both lists", &[], json!({}), json!({ "uncountedTerminatedPods": { "succeeded": ["a"], "failed": ["a"] } })),
        ("2 a pod without an identity", &[], json!({}), json!({ "uncountedTerminatedPods": { "succeeded": [""] } })),
        ("2 pods of both sorts", &[], json!({}), json!({ "uncountedTerminatedPods": { "succeeded": ["a"], "failed": ["b"] } })),
        ("12 more ready than active", &[], json!({}), json!({ "active": 1, "ready": 2 })),
        ("12 as many ready as active", &[], json!({}), json!({ "active": 2, "ready": 2 })),
        ("12 that was wrong before", &[], json!({ "active": 1, "ready": 2 }), json!({ "active": 1, "ready": 2, "failed": 1 })),
        ("19 fewer failed", &[], json!({ "failed": 2 }), json!({ "failed": 1 })),
        ("20 fewer succeeded", &[], json!({ "succeeded": 2 }), json!({ "succeeded": 1 })),
        ("20 fewer succeeded of an elastic Job", &elastic, json!({ "succeeded": 2 }), json!({ "succeeded": 1 })),
    ]));
}

#[test]
fn decisions_and_ends() {
    let running = json!({ "startTime": START });
    let with_policy = [
        ("spec.completionMode", json!("Indexed")),
        ("spec.successPolicy", json!({ "rules": [{ "succeededCount": 1 }] })),
    ];
    let failed = |held: &[&str]| status(held, running.clone());
    let unannounced = with(complete(json!({})), &[("conditions", conditions(&["Complete"]))]);
    let both = complete(json!({ "conditions": conditions(&["Complete", "FailureTarget", "Failed"]) }));
    expect![[r#"
        3, 4, 5 complete and failed: status.conditions: Invalid value: cannot set Complete=True and Failed=true conditions; status.conditions: Invalid value: cannot set Complete=True and FailureTarget=true conditions; status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and Failed=true conditions; status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and FailureTarget=true conditions
        3, 4 that was wrong before: fine
        5 decided both ways: status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and FailureTarget=true conditions
        6 failed out of the blue: status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition
        6 failed as was said: fine
        6 failed, both at once: fine
        6 that was wrong before: fine
        7 complete out of the blue: status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition
        7 complete as was said: fine
        7 that was wrong before: fine
        7 that was wrong before, by a policy: status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition
        8 complete and active: status.active: Invalid value: 1: active>0 is invalid for finished job
        8 that was wrong before: fine
        9 complete without a start: status.startTime: Required value: startTime is required for finished job
        9 suspended, with nothing to do: fine
        9 that was wrong before: fine
        10 complete and not counted: status.uncountedTerminatedPods: Invalid value: {"Succeeded":null,"Failed":["a"]}: must be empty for finished job
        10 complete and counted: fine
        10 that was wrong before: fine
        11 complete and going: status.terminating: Invalid value: 1: terminating>0 is invalid for finished job
        11 complete and gone: fine
        11 that was wrong before: fine
        17 to fail no more: status.conditions: Invalid value: cannot disable the terminal FailureTarget=True condition
        17 to succeed no more: status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition
        17 complete no more: status.conditions: Invalid value: cannot disable the terminal Complete=True condition; status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition
        17 failed no more: status.conditions: Invalid value: cannot disable the terminal Failed=True condition; status.conditions: Invalid value: cannot disable the terminal FailureTarget=True condition
        18 decided after the end: status.conditions: Invalid value: cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions
        a condition of one's own: fine
    "#]]
    .assert_eq(&table(&[
        ("3, 4, 5 complete and failed", &[], running.clone(), complete(json!({ "conditions": conditions(&["SuccessCriteriaMet", "Complete", "FailureTarget", "Failed"]) }))),
        ("3, 4 that was wrong before", &[], both.clone(), with(both, &[("failed", json!(1))])),
        ("5 decided both ways", &[], running.clone(), status(&["SuccessCriteriaMet", "FailureTarget"], running.clone())),
        ("6 failed out of the blue", &[], running.clone(), failed(&["Failed"])),
        ("6 failed as was said", &[], failed(&["FailureTarget"]), failed(&["FailureTarget", "Failed"])),
        ("6 failed, both at once", &[], running.clone(), failed(&["FailureTarget", "Failed"])),
        ("6 that was wrong before", &[], failed(&["Failed"]), with(failed(&["Failed"]), &[("failed", json!(1))])),
        ("7 complete out of the blue", &[], running.clone(), unannounced.clone()),
        ("7 complete as was said", &[], status(&["SuccessCriteriaMet"], running.clone()), complete(json!({}))),
        ("7 that was wrong before", &[], unannounced.clone(), with(unannounced.clone(), &[("succeeded", json!(1))])),
        ("7 that was wrong before, by a policy", &with_policy, unannounced.clone(), with(unannounced, &[("succeeded", json!(1))])),
        ("8 complete and active", &[], running.clone(), complete(json!({ "active": 1 }))),
        ("8 that was wrong before", &[], complete(json!({ "active": 1 })), complete(json!({ "active": 1, "failed": 1 }))),
        ("9 complete without a start", &[], json!({}), complete(json!({ "startTime": null }))),
        ("9 suspended, with nothing to do", &[("spec.suspend", json!(true)), ("spec.completions", json!(0))], json!({}), complete(json!({ "startTime": null }))),
        ("9 that was wrong before", &[], complete(json!({ "startTime": null })), complete(json!({ "startTime": null, "failed": 1 }))),
        ("10 complete and not counted", &[], running.clone(), complete(json!({ "uncountedTerminatedPods": { "failed": ["a"] } }))),
        ("10 complete and counted", &[], running.clone(), complete(json!({ "uncountedTerminatedPods": {} }))),
        (
            "10 that was wrong before",
            &[],
            complete(json!({ "uncountedTerminatedPods": { "failed": ["a"] } })),
            complete(json!({ "uncountedTerminatedPods": { "failed": ["a"] }, "failed": 1 })),
        ),
        ("11 complete and going", &[], running.clone(), complete(json!({ "terminating": 1 }))),
        ("11 complete and gone", &[], running.clone(), complete(json!({ "terminating": 0 }))),
        ("11 that was wrong before", &[], complete(json!({ "terminating": 1 })), complete(json!({ "terminating": 1, "failed": 1 }))),
        ("17 to fail no more", &[], failed(&["FailureTarget"]), running.clone()),
        ("17 to succeed no more", &[], status(&["SuccessCriteriaMet"], running.clone()), running.clone()),
        ("17 complete no more", &[], complete(json!({})), running.clone()),
        ("17 failed no more", &[], failed(&["FailureTarget", "Failed"]), running.clone()),
        ("18 decided after the end", &[], status(&["Complete"], json!({ "startTime": START, "completionTime": END })), complete(json!({}))),
        ("a condition of one's own", &[], running.clone(), status(&["Mine"], running.clone())),
    ]));
}

#[test]
fn times() {
    let suspended = [("spec.suspend", json!(true))];
    let (begun, again) = (json!({ "startTime": START }), json!({ "startTime": END }));
    expect![[r#"
        13 an end of what is not complete: status.completionTime: Invalid value: "2026-01-01T00:00:09Z": cannot set completionTime when there is no Complete=True condition
        13 complete without an end: status.completionTime: Required value: completionTime is required for Complete jobs
        13 that was wrong before: fine
        14 an end before the start: status.completionTime: Invalid value: "2026-01-01T00:00:00Z": must be equal to or after `startTime`
        14 that was wrong before: fine
        14 an end with the start: fine
        15 another end: status.completionTime: Invalid value: "2026-01-01T00:00:10Z": field is immutable
        16 another start: status.startTime: Invalid value: "2026-01-01T00:00:09Z": field is immutable for unsuspended job once set
        16 no start any more: status.startTime: Invalid value: null: field is immutable for unsuspended job once set
        16 the first start: fine
        16 no start while suspended: fine
        16 another start when it goes on: fine
    "#]]
    .assert_eq(&table(&[
        (
            "13 an end of what is not complete",
            &[],
            begun.clone(),
            json!({ "startTime": START, "completionTime": END }),
        ),
        ("13 complete without an end", &[], begun.clone(), complete(json!({ "completionTime": null }))),
        (
            "13 that was wrong before",
            &[],
            complete(json!({ "completionTime": null })),
            complete(json!({ "completionTime": null, "failed": 1 })),
        ),
        (
            "14 an end before the start",
            &[],
            json!({}),
            complete(json!({ "startTime": END, "completionTime": START })),
        ),
        (
            "14 that was wrong before",
            &[],
            complete(json!({ "startTime": END, "completionTime": START })),
            complete(json!({ "startTime": END, "completionTime": START, "failed": 1 })),
        ),
        ("14 an end with the start", &[], json!({}), complete(json!({ "completionTime": START }))),
        (
            "15 another end",
            &[],
            complete(json!({})),
            complete(json!({ "completionTime": "2026-01-01T00:00:10Z" })),
        ),
        ("16 another start", &[], begun.clone(), again.clone()),
        ("16 no start any more", &[], begun.clone(), json!({})),
        ("16 the first start", &[], json!({}), begun.clone()),
        ("16 no start while suspended", &suspended, begun.clone(), json!({})),
        ("16 another start when it goes on", &[], status(&["Suspended"], begun.clone()), again),
    ]));
}

#[test]
fn indexes() {
    let indexed = [("spec.completionMode", json!("Indexed")), ("spec.completions", json!(5))];
    let per_index = [&indexed[..], &[("spec.backoffLimitPerIndex", json!(1))]].concat();
    expect![[r#"
        21 indexes of the Job: fine
        21 an index beyond it: status.completedIndexes: Invalid value: "0-2,5": error parsing completedIndexes: too large index: "5"
        21 no indexes at all: status.completedIndexes: Invalid value: "0, 1": error parsing completedIndexes: cannot convert string to integer for index: " 1"
        21 that was wrong before: fine
        22 indexes of a Job without: status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode
        22 no indexes of a Job without: fine
        23 failed indexes: fine
        23 failed indexes out of order: status.failedIndexes: Invalid value: "1,0": error parsing failedIndexes: non-increasing order, previous: 1, current: 0
        23 failed indexes where they are not counted: status.failedIndexes: Invalid value: "0": cannot set non-null failedIndexes when backoffLimitPerIndex is null
        24 an index in both: status.failedIndexes: Invalid value: "2": failedIndexes and completedIndexes overlap at index: 2
        24 an index in both, beside what can not be read: status.failedIndexes: Invalid value: "1-y,2": error parsing failedIndexes: cannot convert string to integer for index: "y"; status.failedIndexes: Invalid value: "1-y,2": failedIndexes and completedIndexes overlap at index: 2
        24 that was wrong before: fine
    "#]]
    .assert_eq(&table(&[
        ("21 indexes of the Job", &indexed, json!({}), json!({ "completedIndexes": "0-2,4" })),
        ("21 an index beyond it", &indexed, json!({}), json!({ "completedIndexes": "0-2,5" })),
        ("21 no indexes at all", &indexed, json!({}), json!({ "completedIndexes": "0, 1" })),
        (
            "21 that was wrong before",
            &indexed,
            json!({ "completedIndexes": "7" }),
            json!({ "completedIndexes": "7", "failed": 1 }),
        ),
        ("22 indexes of a Job without", &[], json!({}), json!({ "completedIndexes": "0" })),
        ("22 no indexes of a Job without", &[], json!({}), json!({ "completedIndexes": "" })),
        ("23 failed indexes", &per_index, json!({}), json!({ "failedIndexes": "0" })),
        ("23 failed indexes out of order", &per_index, json!({}), json!({ "failedIndexes": "1,0" })),
        (
            "23 failed indexes where they are not counted",
            &indexed,
            json!({}),
            json!({ "failedIndexes": "0" }),
        ),
        (
            "24 an index in both",
            &per_index,
            json!({ "completedIndexes": "0-2" }),
            json!({ "completedIndexes": "0-2", "failedIndexes": "2" }),
        ),
        (
            "24 an index in both, beside what can not be read",
            &per_index,
            json!({ "completedIndexes": "0,x,2" }),
            json!({ "completedIndexes": "0,x,2", "failedIndexes": "1-y,2" }),
        ),
        (
            "24 that was wrong before",
            &per_index,
            json!({ "completedIndexes": "2", "failedIndexes": "2" }),
            json!({ "completedIndexes": "2", "failedIndexes": "2", "failed": 1 }),
        ),
    ]));
}

#[test]
fn a_job_of_very_many_indexes_reports_those_that_are_done() {
    let every_other: Vec<String> = (0..50_000).map(|n| (2 * n).to_string()).collect();
    let large = [("spec.completionMode", json!("Indexed")), ("spec.completions", json!(100_000))];
    let report = json!({ "completedIndexes": every_other.join(",") });
    assert_eq!(table(&[("half of them", &large, json!({}), report)]), "half of them: fine\n");
}
