//! What a gang needs at least, by the cases with which Volcano tests it: two masters of 50m and two workers of 100m.

use std::fmt::Write;

use expect_test::expect;
use krafla_api::Kind;
use krafla_cluster::Step;
use serde_json::{Value, json};

use super::fixture;
use crate::vcjob::pod_usage;

/// The sum of what the pods of the minimum ask for, and how many they are.
fn minimum(job_min: u32, [master, worker]: [&str; 2], classes: &str) -> String {
    let plan = fixture::plan(&format!(
        "job phase=Pending min={job_min}
         task master replicas=2 limit=cpu*50m class=of-master {master}
         task worker replicas=2 limit=cpu*100m class=of-worker {worker}
         {classes}"
    ));
    let needs = plan.steps.iter().find_map(|step| match step {
        Step::Create { kind: Kind::PodGroup, object } => object.pointer("/spec/minResources"),
        _ => None,
    });
    let needs = needs.expect("the PodGroup is made");
    assert_eq!((&needs["cpu"], &needs["pods"]), (&needs["requests.cpu"], &needs["count/pods"]));
    format!("{} for {} pods", needs["cpu"], needs["pods"]).replace('"', "")
}

#[test]
fn the_minimum_of_the_job_is_filled_from_the_most_important_task() {
    let mut table = String::new();
    for job_min in [2, 3, 4] {
        let minima = [
            ["min=1", "min=1"],
            ["min=0", "min=0"],
            ["min=0", "min=1"],
            ["min=2", "min=2"],
            ["no-min", "no-min"],
        ];
        for minima in minima {
            for (order, classes) in [
                ("masters first", "class of-master value=10\nclass of-worker value=5"),
                ("workers first", "class of-master value=5\nclass of-worker value=10"),
            ] {
                let minimum = minimum(job_min, minima, classes);
                writeln!(table, "{job_min} of {minima:?}, {order}: {minimum}").unwrap();
            }
        }
    }
    expect![[r#"
        2 of ["min=1", "min=1"], masters first: 150m for 2 pods
        2 of ["min=1", "min=1"], workers first: 150m for 2 pods
        2 of ["min=0", "min=0"], masters first: 100m for 2 pods
        2 of ["min=0", "min=0"], workers first: 200m for 2 pods
        2 of ["min=0", "min=1"], masters first: 150m for 2 pods
        2 of ["min=0", "min=1"], workers first: 200m for 2 pods
        2 of ["min=2", "min=2"], masters first: 100m for 2 pods
        2 of ["min=2", "min=2"], workers first: 200m for 2 pods
        2 of ["no-min", "no-min"], masters first: 100m for 2 pods
        2 of ["no-min", "no-min"], workers first: 200m for 2 pods
        3 of ["min=1", "min=1"], masters first: 200m for 3 pods
        3 of ["min=1", "min=1"], workers first: 250m for 3 pods
        3 of ["min=0", "min=0"], masters first: 200m for 3 pods
        3 of ["min=0", "min=0"], workers first: 250m for 3 pods
        3 of ["min=0", "min=1"], masters first: 200m for 3 pods
        3 of ["min=0", "min=1"], workers first: 250m for 3 pods
        3 of ["min=2", "min=2"], masters first: 200m for 3 pods
        3 of ["min=2", "min=2"], workers first: 250m for 3 pods
        3 of ["no-min", "no-min"], masters first: 200m for 3 pods
        3 of ["no-min", "no-min"], workers first: 250m for 3 pods
        4 of ["min=1", "min=1"], masters first: 300m for 4 pods
        4 of ["min=1", "min=1"], workers first: 300m for 4 pods
        4 of ["min=0", "min=0"], masters first: 300m for 4 pods
        4 of ["min=0", "min=0"], workers first: 300m for 4 pods
        4 of ["min=0", "min=1"], masters first: 300m for 4 pods
        4 of ["min=0", "min=1"], workers first: 300m for 4 pods
        4 of ["min=2", "min=2"], masters first: 300m for 4 pods
        4 of ["min=2", "min=2"], workers first: 300m for 4 pods
        4 of ["no-min", "no-min"], masters first: 300m for 4 pods
        4 of ["no-min", "no-min"], workers first: 300m for 4 pods
    "#]]
    .assert_eq(&table);
}

/// What one pod counts for, as JSON.
fn usage(spec: &Value) -> String {
    json!(pod_usage(&serde_json::from_value(spec.clone()).unwrap())).to_string()
}

#[test]
fn a_pod_counts_for_what_its_containers_ask_for_together() {
    let container = json!({ "resources": {
        "requests": { "cpu": "1", "memory": "1000Mi", "nvidia.com/gpu": "1", "hugepages-test": "2000" },
        "limits": { "cpu": "1", "memory": "1000Mi", "nvidia.com/gpu": "1", "hugepages-test": "2000" },
    } });
    expect![[r#"{"count/pods":"1","cpu":"2","hugepages-test":"4k","limits.cpu":"2","limits.memory":"2000Mi","memory":"2000Mi","nvidia.com/gpu":"2","pods":"1","requests.cpu":"2","requests.hugepages-test":"4k","requests.memory":"2000Mi","requests.nvidia.com/gpu":"2"}"#]].assert_eq(&usage(&json!({ "containers": [container, container] })));
}

#[test]
fn what_a_pod_says_for_itself_and_what_it_costs_beside_its_containers_counts() {
    let containers = json!([{ "resources": { "requests": { "cpu": "1", "example.com/a": "1" }, "limits": { "memory": "1Gi" } } }]);
    let overhead = json!({ "cpu": "250m", "memory": "10Mi" });
    expect![[r#"{"count/pods":"1","cpu":"1250m","example.com/a":"1","limits.memory":"1034Mi","memory":"1034Mi","pods":"1","requests.cpu":"1250m","requests.example.com/a":"1","requests.memory":"1034Mi"}"#]].assert_eq(&usage(&json!({ "containers": containers, "overhead": overhead })));
    let whole = json!({ "requests": { "cpu": "4", "example.com/a": "7" }, "limits": { "memory": "3Gi" } });
    expect![[r#"{"count/pods":"1","cpu":"4","example.com/a":"1","limits.memory":"3Gi","memory":"3Gi","pods":"1","requests.cpu":"4","requests.example.com/a":"1","requests.memory":"3Gi"}"#]].assert_eq(&usage(&json!({ "containers": containers, "resources": whole })));
}
