//! What is made for a job: its pods and its PodGroup, field by field.

use expect_test::expect;
use krafla_api::Kind;
use krafla_cluster::Step;
use serde_json::Value;

use super::{check, check_without_podgroup, fixture};

/// What the plan for a world makes of a kind, in the order in which it is made.
fn made(kind: Kind, world: &str) -> Vec<Value> {
    let plan = fixture::plan(world);
    let created = plan.steps.into_iter().filter_map(|step| match step {
        Step::Create { kind: made, object } if made == kind => Some(object),
        _ => None,
    });
    created.collect()
}

/// The pods of a job with these words, and a task `work` with these.
fn pods(job: &str, task: &str, rest: &str) -> Vec<Value> {
    made(Kind::Pod, &format!("job phase=Pending min=1 {job}\n task work {task}\n group Inqueue\n {rest}"))
}

#[test]
fn a_pod_is_named_labelled_and_owned() {
    let pod = pods("version=2 retry=1", "", "").remove(0);
    expect![[r#"
        {
          "apiVersion": "v1",
          "kind": "Pod",
          "metadata": {
            "annotations": {
              "scheduling.k8s.io/group-name": "a-u1",
              "volcano.sh/job-name": "a",
              "volcano.sh/job-retry-count": "1",
              "volcano.sh/job-version": "2",
              "volcano.sh/queue-name": "default",
              "volcano.sh/task-index": "0",
              "volcano.sh/task-spec": "work",
              "volcano.sh/template-uid": "a-work"
            },
            "labels": {
              "volcano.sh/job-name": "a",
              "volcano.sh/job-namespace": "ns",
              "volcano.sh/queue-name": "default",
              "volcano.sh/task-index": "0",
              "volcano.sh/task-spec": "work"
            },
            "name": "a-work-0",
            "namespace": "ns",
            "ownerReferences": [
              {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "blockOwnerDeletion": true,
                "controller": true,
                "kind": "Job",
                "name": "a",
                "uid": "u1"
              }
            ]
          },
          "spec": {
            "containers": [
              {
                "image": "img",
                "name": "main"
              }
            ],
            "schedulerName": "volcano"
          }
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&pod).unwrap());
}

#[test]
fn what_the_template_says_goes_before_what_the_job_says() {
    let rows = [
        ("", "", "/spec/schedulerName", Some("volcano")),
        ("", "scheduler=mine", "/spec/schedulerName", Some("mine")),
        ("", "", "/spec/priorityClassName", None),
        ("class=high", "", "/spec/priorityClassName", Some("high")),
        ("class=high", "class=low", "/spec/priorityClassName", Some("low")),
        ("", "", "/metadata/annotations/volcano.sh~1numa-topology-policy", None),
        (
            "",
            "numa=best-effort",
            "/metadata/annotations/volcano.sh~1numa-topology-policy",
            Some("best-effort"),
        ),
    ];
    for (job, task, field, expected) in rows {
        let pod = pods(job, task, "").remove(0);
        assert_eq!(pod.pointer(field).and_then(Value::as_str), expected, "{job} {task} {field}");
    }
}

#[test]
fn marks_of_the_job_for_the_scheduler_are_passed_on() {
    const PLACES: [&str; 2] = ["labels", "annotations"];
    let of = |place: &str, key: &str, job: &str| {
        let pod = pods(job, "", "").remove(0);
        pod["metadata"][place].get(key).and_then(Value::as_str).map(str::to_owned)
    };
    for (key, in_labels) in [
        ("volcano.sh/preemptable", true),
        ("volcano.sh/cooldown-time", true),
        ("volcano.sh/revocable-zone", false),
        ("volcano.sh/jdb-min-available", false),
        ("volcano.sh/jdb-max-unavailable", false),
    ] {
        // A label becomes a label, and an annotation an annotation.
        let labelled = PLACES.map(|place| of(place, key, &format!("label={key}:yes")));
        assert_eq!(labelled, [in_labels.then(|| "yes".to_owned()), None], "{key}");
        let annotated = PLACES.map(|place| of(place, key, &format!("annotation={key}:yes")));
        assert_eq!(annotated, [None, Some("yes".to_owned())], "{key}");
    }
    let both = "annotation=volcano.sh/jdb-min-available:1 annotation=volcano.sh/jdb-max-unavailable:2";
    assert_eq!(of("annotations", "volcano.sh/jdb-min-available", both).as_deref(), Some("1"));
    assert_eq!(of("annotations", "volcano.sh/jdb-max-unavailable", both), None, "the other goes first");
}

#[test]
fn a_queue_that_spans_clusters_marks_the_job_and_its_pods() {
    let world = "job phase=Pending min=1
                 task work
                 group Inqueue
                 queue-spans-clusters";
    check_without_podgroup(
        world,
        expect![[r#"
        patch job a {"metadata":{"annotations":{"volcano.sh/job-forwarding":"true"}}}
        create pod a-work-0
    "#]],
    );
    let pod = made(Kind::Pod, world).remove(0);
    for place in ["labels", "annotations"] {
        assert_eq!(pod["metadata"][place]["volcano.sh/job-forwarding"], "true", "{place}");
    }
}

#[test]
fn the_pods_of_a_partition_carry_its_number() {
    let numbers = |words: &str| -> Vec<Option<String>> {
        let number = |pod: &Value| {
            let label = pod["metadata"]["labels"].get("volcano.sh/partition-id")?;
            label.as_str().map(str::to_owned)
        };
        pods("", &format!("replicas=11 {words}"), "").iter().map(number).collect()
    };
    for (partitions, size) in [("11x1", 1), ("6x2", 2), ("3x5", 5)] {
        let expected: Vec<Option<String>> = (0..11).map(|index| Some((index / size).to_string())).collect();
        assert_eq!(numbers(&format!("partitions={partitions}")), expected, "{partitions}");
    }
    assert_eq!(numbers(""), vec![None; 11]);
    // Admission refuses this; a job that was stored all the same has one partition.
    assert_eq!(numbers("partitions=1x0"), vec![Some("0".to_owned()); 11]);
}

#[test]
fn missing_pods_are_made_and_no_others() {
    let names = |rest: &str| -> Vec<String> {
        let named = |pod: &Value| pod["metadata"]["name"].as_str().unwrap().to_owned();
        pods("", "replicas=6", rest).iter().map(named).collect()
    };
    assert_eq!(
        names("pod work-0 Running\n pod work-3 Pending"),
        ["a-work-1", "a-work-2", "a-work-4", "a-work-5"]
    );
    // A pod on its way out still has its name.
    assert_eq!(names("pod work-1 Running going").len(), 5);
}

/// The spec of the PodGroup that is made for a job with these words, and two tasks, of which `work` has these.
fn podgroup_spec(job: &str, task: &str) -> String {
    let world = format!("job min=2 {job}\n task lead replicas=1\n task work {task}");
    made(Kind::PodGroup, &world).remove(0)["spec"].to_string()
}

#[test]
fn a_podgroup_says_what_the_gang_needs_at_least() {
    expect![[r#"{"minMember":2,"minResources":{"count/pods":"2","pods":"2"},"minTaskMember":{"lead":1,"work":1},"priorityClassName":"high","queue":"q"}"#]].assert_eq(&podgroup_spec("class=high queue=q", "replicas=2 min=1"));
    expect![[r#"{"minMember":2,"minResources":{"count/pods":"2","pods":"2"},"minTaskMember":{"lead":1,"work":1},"networkTopology":{"highestTierAllowed":2},"queue":"default"}"#]].assert_eq(&podgroup_spec("tier=2", "replicas=1"));
    expect![[r#"{"minMember":2,"minResources":{"count/pods":"2","pods":"2"},"minTaskMember":{"lead":1,"work":1},"networkTopology":{"highestTierName":"rack"},"queue":"default"}"#]].assert_eq(&podgroup_spec("tier-name=rack", "replicas=1"));
    // Admission refuses both at once; the number counts.
    expect![[r#"{"minMember":2,"minResources":{"count/pods":"2","pods":"2"},"minTaskMember":{"lead":1,"work":1},"networkTopology":{"highestTierAllowed":0},"queue":"default"}"#]].assert_eq(&podgroup_spec("tier=0 tier-name=rack", "replicas=1"));
}

#[test]
fn partitions_are_sub_groups_of_the_gang() {
    for (minimum, expected) in [
        (
            "",
            expect![[
                r#"{"minMember":2,"minResources":{"count/pods":"2","pods":"2"},"minTaskMember":{"lead":1,"work":4},"queue":"default","subGroupPolicy":[{"labelSelector":{"matchLabels":{"volcano.sh/task-spec":"work"}},"matchLabelKeys":["volcano.sh/partition-id"],"minSubGroups":0,"name":"work","subGroupSize":2}]}"#
            ]],
        ),
        (
            "min=2 min-partitions=1",
            expect![[
                r#"{"minMember":2,"minResources":{"count/pods":"2","pods":"2"},"minTaskMember":{"lead":1,"work":2},"queue":"default","subGroupPolicy":[{"labelSelector":{"matchLabels":{"volcano.sh/task-spec":"work"}},"matchLabelKeys":["volcano.sh/partition-id"],"minSubGroups":1,"name":"work","subGroupSize":2}]}"#
            ]],
        ),
        (
            "min=4 min-partitions=2",
            expect![[
                r#"{"minMember":2,"minResources":{"count/pods":"2","pods":"2"},"minTaskMember":{"lead":1,"work":4},"queue":"default","subGroupPolicy":[{"labelSelector":{"matchLabels":{"volcano.sh/task-spec":"work"}},"matchLabelKeys":["volcano.sh/partition-id"],"minSubGroups":2,"name":"work","subGroupSize":2}]}"#
            ]],
        ),
    ] {
        expected.assert_eq(&podgroup_spec("", &format!("replicas=4 partitions=2x2 {minimum}")));
    }
}

#[test]
fn a_podgroup_belongs_to_the_job_and_has_its_labels_and_annotations() {
    let group = made(Kind::PodGroup, "job min=1 label=team:red annotation=cost:low\n task work").remove(0);
    expect![[r#"{"annotations":{"cost":"low"},"labels":{"team":"red"},"name":"a-u1","namespace":"ns","ownerReferences":[{"apiVersion":"batch.volcano.sh/v1alpha1","blockOwnerDeletion":true,"controller":true,"kind":"Job","name":"a","uid":"u1"}]}"#]].assert_eq(&group["metadata"].to_string());
}

#[test]
fn a_podgroup_of_the_name_that_volcano_gave_before_1_5_is_kept_and_followed() {
    let world = |phase: &str| {
        format!(
            "job phase={phase} min=1
             task work
             group Running name=a
             pod work-0 Running"
        )
    };
    check(
        &world("Running"),
        expect![[r#"
        patch job status a {"status":{"running":1,"taskStatusCount":{"work":{"phase":{"Running":1}}}}}
        patch podgroup a {"spec":{"minMember":1,"minResources":{"count/pods":"1","pods":"1"},"minTaskMember":{"work":1}}}
    "#]],
    );
    check(
        &world("Aborting"),
        expect![[r#"
            patch job status a {"status":{"terminating":1}}
            delete podgroup a
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
        "#]],
    );
}

#[test]
fn a_podgroup_follows_its_job_in_all_but_its_place() {
    let changes = |job: &str, task: &str| {
        let world =
            format!("job phase=Running min=2 {job}\n task work replicas=4 min=2 {task}\n group Running");
        let plan = fixture::plan(&world);
        let patch = plan.steps.iter().find_map(|step| match step {
            Step::Patch { kind: Kind::PodGroup, patch, .. } => Some(patch["spec"].to_string()),
            _ => None,
        });
        patch.expect("the PodGroup is changed")
    };
    expect![[r#"{"minMember":2,"minResources":{"count/pods":"2","pods":"2"},"minTaskMember":{"work":2}}"#]]
        .assert_eq(&changes("", ""));
    expect![[r#"{"minMember":2,"minResources":{"count/pods":"2","pods":"2"},"minTaskMember":{"work":2},"priorityClassName":"high","subGroupPolicy":[{"labelSelector":{"matchLabels":{"volcano.sh/task-spec":"work"}},"matchLabelKeys":["volcano.sh/partition-id"],"minSubGroups":0,"name":"work","subGroupSize":2}]}"#]].assert_eq(&changes("class=high", "partitions=2x2"));
    // Which queue and which tier it was made for is for the scheduler to keep.
    assert_eq!(changes("queue=other tier-name=rack", ""), changes("", ""));
    assert_eq!(changes("tier=2", ""), changes("", ""));
}

#[test]
fn only_the_scheduler_s_last_word_is_a_complaint() {
    let complaints = |words: &str| {
        let world = format!("job phase=Pending min=2\n task work replicas=2\n group Pending {words}");
        let notes = fixture::plan(&world).notes;
        notes.iter().map(|note| format!("{}: {}", note.reason, note.message)).collect::<Vec<String>>()
    };
    let said = ["PodGroupPending: PodGroup ns:a unschedulable, reason: no room".to_owned()];
    assert_eq!(complaints(""), [""; 0]);
    assert_eq!(complaints("says=no+room"), said);
    // It was said after 60 seconds.
    assert_eq!(complaints("says=no+room scheduled=50"), said);
    assert_eq!(complaints("says=no+room scheduled=70"), [""; 0]);
}

#[test]
fn a_phase_has_one_condition_and_the_newest_is_last() {
    let conditions = |job: &str| {
        let world = format!("job min=1 {job}\n task work\n group Running\n pod work-0 Running");
        let Some(Step::Patch { patch, .. }) = fixture::plan(&world).status else { panic!("no status") };
        let conditions = patch["status"]["conditions"].as_array().unwrap().clone();
        let told = |condition: &Value| format!("{} {}", condition["status"], condition["lastTransitionTime"]);
        conditions.iter().map(told).collect::<Vec<String>>().join(", ").replace('"', "")
    };
    assert_eq!(conditions("phase=Pending"), "Running 2027-01-15T08:01:40Z");
    assert_eq!(
        conditions("phase=Pending been=Pending"),
        "Pending 2027-01-15T08:00:01Z, Running 2027-01-15T08:01:40Z"
    );
    assert_eq!(
        conditions("phase=Pending been=Running been=Pending"),
        "Pending 2027-01-15T08:00:01Z, Running 2027-01-15T08:01:40Z"
    );
}
