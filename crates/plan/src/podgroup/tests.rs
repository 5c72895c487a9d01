//! Decision tables: pods and their owners in a few words, and the plan for their PodGroup.

use expect_test::{Expect, expect};
use krafla_api::Time;

use super::*;

/// One object per line; `x=y` are annotations, `label:x=y` labels:
///
/// ```text
/// pod p owner=ReplicaSet/r phase=Succeeded cpu=500m gpus=1 priority=high scheduler=other volcano.sh/preemptable=true
/// replicaset r replicas=2 scheduling.volcano.sh/group-min-member=2
/// group podgroup-uid-r owner=ReplicaSet/r min=1 going
/// ```
fn parse(text: &str) -> Objects {
    let mut objects = Objects::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let value = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let entries = |prefix: &str| -> Value {
            let of_prefix = words.iter().filter_map(|word| word.strip_prefix(prefix));
            let entries = of_prefix.filter(|word| word.contains('/')).filter_map(|word| word.split_once('='));
            entries.filter(|(key, _)| key.contains('/')).map(|(k, v)| (k.to_owned(), json!(v))).collect()
        };
        let mut metadata = json!({ "namespace": "ns", "name": words[1], "uid": format!("uid-{}", words[1]),
            "annotations": entries(""), "labels": entries("label:") });
        if let Some((kind, name)) = value("owner").and_then(|owner| owner.split_once('/')) {
            let api_version = match kind {
                "Pod" => "v1",
                "Job" => "batch/v1",
                _ => "apps/v1",
            };
            metadata["ownerReferences"] = json!([{ "apiVersion": api_version, "kind": kind, "name": name,
                "uid": format!("uid-{name}"), "controller": !words.contains(&"loosely") }]);
        }
        if words.contains(&"going") {
            metadata["deletionTimestamp"] = json!("2027-01-15T08:01:00Z");
        }
        let (kind, object) = match words[0] {
            "pod" => {
                let mut requests = value("cpu").map_or(json!({}), |cpu| json!({ "cpu": cpu }));
                if let Some(gpus) = value("gpus") {
                    requests["nvidia.com/gpu"] = json!(gpus);
                }
                let spec = json!({ "schedulerName": value("scheduler").unwrap_or("volcano"),
                    "priorityClassName": value("priority").unwrap_or_default(),
                    "containers": [{ "name": "main", "resources": { "requests": requests } }] });
                let status = json!({ "phase": value("phase").unwrap_or("Pending") });
                (Kind::Pod, json!({ "metadata": metadata, "spec": spec, "status": status }))
            }
            "group" => {
                let min: i32 = value("min").unwrap_or("1").parse().unwrap();
                let mut spec = json!({ "minMember": min, "queue": "chosen" });
                if let Some(cpu) = value("cpu") {
                    spec["minResources"] = json!({ "cpu": cpu, "nvidia.com/gpu": "1" });
                }
                (Kind::PodGroup, json!({ "metadata": metadata, "spec": spec }))
            }
            "replicaset" | "statefulset" => {
                let replicas: i32 = value("replicas").unwrap_or("2").parse().unwrap();
                let kind = if words[0] == "replicaset" { Kind::ReplicaSet } else { Kind::StatefulSet };
                (kind, json!({ "metadata": metadata, "spec": { "replicas": replicas } }))
            }
            "daemonset" => (Kind::DaemonSet, json!({ "metadata": metadata })),
            "job" => (Kind::Job, json!({ "metadata": metadata, "spec": { "template": {} } })),
            other => panic!("unknown line {other:?}"),
        };
        let object = Object::decode(kind, object.to_string().as_bytes());
        assert!(!matches!(object.body, Body::Unreadable(_)), "{object:?}");
        objects.insert(Arc::new(object));
    }
    objects
}

fn plan_with(controller: &PodGroupController, owner: &str, text: &str) -> Plan {
    let objects = parse(text);
    let key = Key::new("ns", &format!("podgroup-uid-{owner}"));
    controller.plan(&Snapshot::new(Kind::PodGroup, &key, Time::from_seconds(1_800_000_000), &objects))
}

/// The plan for the PodGroup of `owner`, and the PodGroup if one is made.
fn check(owner: &str, text: &str, expected: Expect) {
    let plan = plan_with(&PodGroupController::default(), owner, text);
    let made = plan.steps.iter().find_map(|step| match step {
        Step::Create { object, .. } => Some(format!(
            "{} {} {}\n",
            object["spec"],
            object["metadata"].get("annotations").unwrap_or(&Value::Null),
            object["metadata"].get("labels").unwrap_or(&Value::Null)
        )),
        _ => None,
    });
    expected.assert_eq(&format!("{plan}{}", made.unwrap_or_default()));
}

#[test]
fn a_pod_of_its_own_gets_a_podgroup_of_its_own() {
    check(
        "p",
        "pod p cpu=500m",
        expect![[r#"
        create podgroup podgroup-uid-p
        patch pod p {"metadata":{"annotations":{"scheduling.k8s.io/group-name":"podgroup-uid-p"}}}
        {"minMember":1,"minResources":{"count/pods":"1","cpu":"500m","pods":"1","requests.cpu":"500m"}} null null
    "#]],
    );
    check(
        "p",
        "pod p cpu=500m phase=Succeeded",
        expect![[r#"
        create podgroup podgroup-uid-p
        patch pod p {"metadata":{"annotations":{"scheduling.k8s.io/group-name":"podgroup-uid-p"}}}
        {"minMember":1,"minResources":{"count/pods":"1"}} null null
    "#]],
    );
    let plan = plan_with(&PodGroupController::default(), "p", "pod p");
    let Some(Step::Create { object, .. }) = plan.steps.first() else { panic!("no PodGroup") };
    assert_eq!(
        object["metadata"]["ownerReferences"],
        json!([{ "apiVersion": "v1", "kind": "Pod", "name": "p",
        "uid": "uid-p", "controller": true, "blockOwnerDeletion": true }])
    );
    assert_eq!(object["status"]["phase"], "Pending");
}

#[test]
fn pods_of_one_owner_share_a_podgroup() {
    check(
        "r",
        "pod r-1 owner=ReplicaSet/r\n pod r-2 owner=ReplicaSet/r\n replicaset r",
        expect![[r#"
        create podgroup podgroup-uid-r
        patch pod r-1 {"metadata":{"annotations":{"scheduling.k8s.io/group-name":"podgroup-uid-r"}}}
        patch pod r-2 {"metadata":{"annotations":{"scheduling.k8s.io/group-name":"podgroup-uid-r"}}}
        {"minMember":1,"minResources":{"count/pods":"1","pods":"1"}} null null
    "#]],
    );
    check(
        "s",
        "pod s-0 owner=StatefulSet/s\n statefulset s scheduling.volcano.sh/group-min-member=3",
        expect![[r#"
            create podgroup podgroup-uid-s
            patch pod s-0 {"metadata":{"annotations":{"scheduling.k8s.io/group-name":"podgroup-uid-s"}}}
            {"minMember":3,"minResources":{"count/pods":"3","pods":"3"}} null null
        "#]],
    );
    check(
        "d",
        "pod d-1 owner=DaemonSet/d\n daemonset d volcano.sh/a=1",
        expect![[r#"
        create podgroup podgroup-uid-d
        patch pod d-1 {"metadata":{"annotations":{"scheduling.k8s.io/group-name":"podgroup-uid-d"}}}
        {"minMember":1,"minResources":{"count/pods":"1","pods":"1"}} {"volcano.sh/a":"1"} null
    "#]],
    );
    check(
        "j",
        "pod j-1 owner=Job/j\n job j scheduling.volcano.sh/group-min-member=2 volcano.sh/a=1",
        expect![[r#"
            create podgroup podgroup-uid-j
            patch pod j-1 {"metadata":{"annotations":{"scheduling.k8s.io/group-name":"podgroup-uid-j"}}}
            {"minMember":2,"minResources":{"count/pods":"2","pods":"2"}} {"volcano.sh/a":"1"} null
        "#]],
    );
    check(
        "w",
        "pod w-1 owner=Widget/w",
        expect![[r#"
        create podgroup podgroup-uid-w
        patch pod w-1 {"metadata":{"annotations":{"scheduling.k8s.io/group-name":"podgroup-uid-w"}}}
        {"minMember":1,"minResources":{"count/pods":"1","pods":"1"}} null null
    "#]],
    );
}

#[test]
fn a_replication_controller_gets_a_podgroup_if_its_pods_ask_for_volcano() {
    let text = |scheduler: &str| format!("pod c-1 owner=ReplicationController/c scheduler={scheduler}");
    check(
        "c",
        &text("volcano"),
        expect![[r#"
        create podgroup podgroup-uid-c
        patch pod c-1 {"metadata":{"annotations":{"scheduling.k8s.io/group-name":"podgroup-uid-c"}}}
        {"minMember":1,"minResources":{"count/pods":"1","pods":"1"}} null null
    "#]],
    );
    check("c", &text("default-scheduler"), expect![[""]]);
}

#[test]
fn pods_of_other_schedulers_and_pods_with_a_podgroup_are_left_alone() {
    check("p", "pod p scheduler=default-scheduler", expect![[""]]);
    check("p", "pod p scheduling.k8s.io/group-name=mine", expect![[""]]);
    check("p", "pod p going", expect![[""]]);
    let two =
        PodGroupController { scheduler_names: vec!["volcano".into(), "other".into()], ..Default::default() };
    assert!(!plan_with(&two, "p", "pod p scheduler=other").is_quiet());
}

#[test]
fn what_the_pod_says_about_scheduling_reaches_the_podgroup_and_wins_over_its_owner() {
    check(
        "r",
        "replicaset r volcano.sh/preemptable=true volcano.sh/anything=yes other/thing=no
         pod r-1 owner=ReplicaSet/r volcano.sh/preemptable=false volcano.sh/jdb-min-available=2 volcano.sh/jdb-max-unavailable=1 scheduling.volcano.sh/queue-name=fast volcano.sh/network-topology-mode=Soft volcano.sh/network-topology-highest-tier=x label:volcano.sh/cooldown-time=30s",
        expect![[r#"
            create podgroup podgroup-uid-r
            patch pod r-1 {"metadata":{"annotations":{"scheduling.k8s.io/group-name":"podgroup-uid-r"}}}
            {"minMember":1,"minResources":{"count/pods":"1","pods":"1"},"networkTopology":{"mode":"soft"},"queue":"fast"} {"volcano.sh/anything":"yes","volcano.sh/jdb-min-available":"2","volcano.sh/preemptable":"false"} {"volcano.sh/cooldown-time":"30s"}
        "#]],
    );
}

#[test]
fn an_inherited_budget_stays_beside_the_pods_own_of_the_other_kind() {
    let made = |pod: &str| {
        let text =
            format!("replicaset r volcano.sh/jdb-max-unavailable=1\n pod r-1 owner=ReplicaSet/r {pod}");
        let Some(Step::Create { object, .. }) =
            plan_with(&PodGroupController::default(), "r", &text).steps.into_iter().next()
        else {
            panic!("no PodGroup")
        };
        object["metadata"]["annotations"].clone()
    };
    let (min, max) = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable");
    assert_eq!(made(""), json!({ max: "1" }));
    assert_eq!(made("volcano.sh/jdb-min-available=2"), json!({ min: "2", max: "1" }));
    assert_eq!(made("volcano.sh/jdb-max-unavailable=3"), json!({ max: "3" }));
}

#[test]
fn the_priority_of_the_pod_and_the_devices_of_the_whole_gang_reach_the_podgroup() {
    check(
        "r",
        "replicaset r scheduling.volcano.sh/group-min-member=2\n pod r-1 owner=ReplicaSet/r gpus=1 priority=high",
        expect![[r#"
            create podgroup podgroup-uid-r
            patch pod r-1 {"metadata":{"annotations":{"scheduling.k8s.io/group-name":"podgroup-uid-r"}}}
            {"minMember":2,"minResources":{"count/pods":"2","nvidia.com/gpu":"2","pods":"2","requests.nvidia.com/gpu":"2"},"priorityClassName":"high"} null null
        "#]],
    );
}

#[test]
fn how_close_the_pods_must_be_is_read_off_two_annotations() {
    for (annotations, expected) in [
        (
            "volcano.sh/network-topology-mode=hard volcano.sh/network-topology-highest-tier=2",
            json!({ "mode": "hard", "highestTierAllowed": 2 }),
        ),
        ("volcano.sh/network-topology-mode=soft", json!({ "mode": "soft" })),
        ("volcano.sh/network-topology-highest-tier=3", json!({ "mode": "hard", "highestTierAllowed": 3 })),
        ("", Value::Null),
        ("volcano.sh/network-topology-mode=tight", json!({ "mode": "hard" })),
        ("volcano.sh/network-topology-highest-tier=x", json!({ "mode": "hard" })),
    ] {
        let plan = plan_with(&PodGroupController::default(), "p", &format!("pod p {annotations}"));
        let Some(Step::Create { object, .. }) = plan.steps.first() else { panic!("no PodGroup") };
        assert_eq!(object["spec"]["networkTopology"], expected, "{annotations}");
    }
}

#[test]
fn a_workload_without_pods_or_with_pods_of_another_scheduler_gets_no_podgroup() {
    for workload in ["replicaset", "statefulset"] {
        let owner = if workload == "replicaset" { "ReplicaSet" } else { "StatefulSet" };
        for pod in [
            String::new(),
            format!("pod w-0 owner={owner}/w scheduler=default-scheduler"),
            format!("pod w-0 owner={owner}/w scheduling.k8s.io/group-name=mine"),
        ] {
            check("w", &format!("{workload} w\n {pod}"), expect![[""]]);
        }
    }
}

#[test]
fn an_owner_that_does_not_control_the_pod_lends_its_annotations_only() {
    check(
        "r-1",
        "replicaset r scheduling.volcano.sh/group-min-member=2\n pod r-1 owner=ReplicaSet/r loosely",
        expect![[r#"
            create podgroup podgroup-uid-r-1
            patch pod r-1 {"metadata":{"annotations":{"scheduling.k8s.io/group-name":"podgroup-uid-r-1"}}}
            {"minMember":2,"minResources":{"count/pods":"2","pods":"2"}} null null
        "#]],
    );
}

#[test]
fn annotations_of_owners_can_be_left_out() {
    let alone = PodGroupController { inherits_annotations: false, ..Default::default() };
    let text = "replicaset r scheduling.volcano.sh/group-min-member=2\n pod r-1 owner=ReplicaSet/r";
    let Some(Step::Create { object, .. }) = plan_with(&alone, "r", text).steps.into_iter().next() else {
        panic!("no PodGroup")
    };
    assert_eq!(object["spec"]["minMember"], 1);
}

#[test]
fn a_second_pod_joins_and_changes_nothing() {
    check(
        "r",
        "group podgroup-uid-r owner=ReplicaSet/r\n replicaset r
         pod r-1 owner=ReplicaSet/r scheduling.k8s.io/group-name=podgroup-uid-r
         pod r-2 owner=ReplicaSet/r scheduling.volcano.sh/queue-name=fast",
        expect![[r#"
            patch pod r-2 {"metadata":{"annotations":{"scheduling.k8s.io/group-name":"podgroup-uid-r"}}}
        "#]],
    );
}

#[test]
fn a_workload_scaled_to_nothing_gives_its_podgroup_back() {
    check(
        "r",
        "group podgroup-uid-r owner=ReplicaSet/r\n replicaset r replicas=0",
        expect![[r#"
        delete podgroup podgroup-uid-r
    "#]],
    );
    check("r", "group podgroup-uid-r owner=ReplicaSet/r going\n replicaset r replicas=0", expect![[""]]);
}

#[test]
fn a_deployment_that_changes_has_one_podgroup_again_in_the_end() {
    let during = "group podgroup-uid-old owner=ReplicaSet/old
         replicaset old replicas=1
         pod old-1 owner=ReplicaSet/old scheduling.k8s.io/group-name=podgroup-uid-old
         replicaset new replicas=1
         pod new-1 owner=ReplicaSet/new";
    check("old", during, expect![[""]]);
    check(
        "new",
        during,
        expect![[r#"
        create podgroup podgroup-uid-new
        patch pod new-1 {"metadata":{"annotations":{"scheduling.k8s.io/group-name":"podgroup-uid-new"}}}
        {"minMember":1,"minResources":{"count/pods":"1","pods":"1"}} null null
    "#]],
    );
    let after = "group podgroup-uid-old owner=ReplicaSet/old
         replicaset old replicas=0
         group podgroup-uid-new owner=ReplicaSet/new
         replicaset new replicas=2
         pod new-1 owner=ReplicaSet/new scheduling.k8s.io/group-name=podgroup-uid-new
         pod new-2 owner=ReplicaSet/new scheduling.k8s.io/group-name=podgroup-uid-new";
    check(
        "old",
        after,
        expect![[r#"
        delete podgroup podgroup-uid-old
    "#]],
    );
    check("new", after, expect![[""]]);
}

#[test]
fn volcano_27_and_28_only_pods_that_the_owner_controls_count() {
    check(
        "r",
        "replicaset r\n pod stranger label:app/x=1\n pod r-2 owner=ReplicaSet/r",
        expect![[r#"
        create podgroup podgroup-uid-r
        patch pod r-2 {"metadata":{"annotations":{"scheduling.k8s.io/group-name":"podgroup-uid-r"}}}
        {"minMember":1,"minResources":{"count/pods":"1","pods":"1"}} null null
    "#]],
    );
}

#[test]
fn volcano_29_a_change_of_the_owner_reaches_the_podgroup_and_its_queue_stays() {
    check(
        "r",
        "group podgroup-uid-r owner=ReplicaSet/r volcano.sh/mine=1
         replicaset r scheduling.volcano.sh/group-min-member=2 volcano.sh/new=1
         pod r-1 owner=ReplicaSet/r cpu=1 scheduling.k8s.io/group-name=podgroup-uid-r",
        expect![[r#"
            patch podgroup podgroup-uid-r {"metadata":{"annotations":{"volcano.sh/new":"1"}},"spec":{"minMember":2,"minResources":{"count/pods":"2","cpu":"2","pods":"2","requests.cpu":"2"}}}
        "#]],
    );
}

#[test]
fn what_the_gang_needs_is_known_by_a_pod_that_stays_and_nothing_else_of_it_is_left() {
    let text = |last: &str| {
        format!(
            "group podgroup-uid-r owner=ReplicaSet/r cpu=9
             replicaset r scheduling.volcano.sh/group-min-member=2
             pod r-1 owner=ReplicaSet/r cpu=7 phase=Succeeded scheduling.k8s.io/group-name=podgroup-uid-r
             pod r-2 owner=ReplicaSet/r cpu=8 going scheduling.k8s.io/group-name=podgroup-uid-r
             {last}"
        )
    };
    check(
        "r",
        &text("pod r-3 owner=ReplicaSet/r cpu=1 scheduling.k8s.io/group-name=podgroup-uid-r"),
        expect![[r#"
            patch podgroup podgroup-uid-r {"spec":{"minMember":2,"minResources":{"count/pods":"2","cpu":"2","nvidia.com/gpu":null,"pods":"2","requests.cpu":"2"}}}
        "#]],
    );
    check("r", &text(""), expect![[""]]);
}

#[test]
fn volcano_31_a_minimum_that_makes_no_sense_is_one() {
    for said in ["0", "-3", "many"] {
        let text = format!(
            "replicaset r scheduling.volcano.sh/group-min-member={said}\n pod r-1 owner=ReplicaSet/r"
        );
        let plan = plan_with(&PodGroupController::default(), "r", &text);
        let Some(Step::Create { object, .. }) = plan.steps.first() else { panic!("no PodGroup") };
        assert_eq!(object["spec"]["minMember"], 1, "{said}");
    }
}

#[test]
fn a_pod_is_looked_at_until_it_has_its_podgroup() {
    let objects = parse("pod a owner=ReplicaSet/r\n pod b\n pod c scheduling.k8s.io/group-name=x");
    let keys = |name: &str| {
        let pod = objects.get(Kind::Pod, &Key::new("ns", name)).unwrap();
        PodGroupController::default().keys(pod, &objects)
    };
    assert_eq!(keys("a"), [Key::new("ns", "podgroup-uid-r")]);
    assert_eq!(keys("b"), [Key::new("ns", "podgroup-uid-b")]);
    assert_eq!(keys("c"), []);
}

#[test]
fn a_job_concerns_its_podgroup_once_there_is_one() {
    let keys = |text: &str| {
        let objects = parse(text);
        let job = objects.get(Kind::Job, &Key::new("ns", "j")).unwrap();
        PodGroupController::default().keys(job, &objects)
    };
    assert_eq!(keys("job j"), []);
    assert_eq!(keys("job j\n group podgroup-uid-j owner=Job/j"), [Key::new("ns", "podgroup-uid-j")]);
}
