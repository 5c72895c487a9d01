//! Jobs that can never run, or ask for far too much: each says what is wrong, and none costs more than another. A missing
//! queue, a missing claim and an unknown plugin stand in `life`.

use expect_test::expect;
use krafla_admission::names;
use krafla_api::{Key, Kind, labels};
use krafla_cluster::Step;
use serde_json::{Value, json};

use super::{check, fixture};
use crate::{Object, Objects, Snapshot};

#[test]
fn a_job_without_tasks_says_so_and_never_runs() {
    check(
        "job min=0",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Pending"}],"state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"spec.tasks is empty, so there is nothing to run; create the job anew with a task","phase":"Pending","reason":"NoTasks"}}}
            note Warning NoTasks: spec.tasks is empty, so there is nothing to run; create the job anew with a task
        "#]],
    );
    let said = fixture::plan_after_status("job min=0");
    assert!(said.is_quiet(), "{said}");
}

#[test]
fn a_job_of_ten_thousand_pods_gets_them_in_many_small_plans() {
    let plan = fixture::plan(
        "job phase=Pending min=10000
         task work replicas=10000
         group Inqueue",
    );
    let n_pods = plan.steps.iter().filter(|step| matches!(step, Step::Create { .. })).count();
    assert_eq!(n_pods, 500);
}

#[test]
fn the_most_replicas_that_a_number_can_say_overflow_nothing() {
    let plan = fixture::plan(
        "job phase=Running min=2147483647
         task one replicas=2147483647
         task two replicas=2147483647
         group Running
         pod one-0 Running",
    );
    let n_pods = plan.steps.iter().filter(|step| matches!(step, Step::Create { .. })).count();
    assert_eq!(n_pods, 500);
}

#[test]
fn plugin_arguments_that_do_not_parse_are_said_and_the_job_runs_without_them() {
    let world = "job min=1 plugin=svc:--no-such-flag
                 task work replicas=1";
    check(
        world,
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Pending"}],"controlledResources":{"plugin-svc":"svc"},"state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"plugin svc: argument 1 names the unknown flag --no-such-flag; it and all after it are ignored","phase":"Pending","reason":"PluginError"}}}
            create configmap a-svc
            create service a
            create networkpolicy a
            create podgroup a-u1
            note Warning PluginError: plugin svc: argument 1 names the unknown flag --no-such-flag; it and all after it are ignored
        "#]],
    );
    let said = fixture::plan_after_status(world);
    assert!(said.notes.is_empty(), "an Event says it once: {said}");
    assert_eq!(said.status, None, "and the status for as long as the job runs");
}

#[test]
fn what_is_wrong_with_plugin_arguments_stays_in_the_status_while_the_job_runs() {
    let state = |job: &str, pod: &str| {
        let plan = fixture::plan(&format!(
            "job {job} min=1 plugin=svc:--no-such-flag
             task work
             group Running
             pod work-0 {pod}"
        ));
        let Some(Step::Patch { patch, .. }) = plan.status else { panic!("no status") };
        patch["status"]["state"]["reason"].as_str().map(str::to_owned)
    };
    assert_eq!(state("phase=Pending", "Running").as_deref(), Some("PluginError"));
    // Why a job was restarted is more important, and how it ended is all that counts then.
    assert_eq!(state("phase=Pending retry=1 reason=RestartJob", "Pending"), None);
    assert_eq!(state("phase=Running", "Failed").as_deref(), Some("TooFewSucceeded"));
}

#[test]
fn a_name_that_no_label_takes_is_said_and_no_pod_is_made() {
    let check_field = |world: &str, field: &str| {
        let plan = fixture::plan(world);
        let said: Vec<String> =
            plan.notes.iter().map(|note| format!("{}: {}", note.reason, note.message)).collect();
        let expected = format!(
            "InvalidName: {field} must be no more than 63 bytes: the job's pods carry it as a label; create the job anew under another name"
        );
        assert_eq!(said, [expected]);
        assert!(plan.steps.is_empty(), "{plan}");
    };
    let long = "n".repeat(64);
    check_field(&format!("job phase=Pending min=1 name={long}\n task work\n group Inqueue"), "metadata.name");
    check_field(
        &format!("job phase=Pending min=1\n task work\n task {long}\n group Inqueue"),
        "spec.tasks[1].name",
    );
}

#[test]
fn names_at_the_limit_make_pods_that_the_server_takes() {
    for name in ["n".repeat(56), "dotted.name".to_owned()] {
        let queue = "q".repeat(100);
        let plan = fixture::plan(&format!(
            "job phase=Pending min=1 name={name} queue={queue} plugin=svc plugin=ssh
             task work
             volume /data made
             group Inqueue name={name}-u1"
        ));
        let is_pod = |step: &&Step| matches!(step, Step::Create { kind: Kind::Pod, .. });
        let Some(Step::Create { object: pod, .. }) = plan.steps.iter().find(is_pod) else { panic!("{plan}") };
        let texts = |value: &Value| value.as_object().unwrap().values().cloned().collect::<Vec<Value>>();
        for label in texts(&pod["metadata"]["labels"]) {
            assert!(names::label_value(label.as_str().unwrap()).is_empty(), "{label}");
        }
        for volume in pod["spec"]["volumes"].as_array().unwrap() {
            assert!(names::dns_label(volume["name"].as_str().unwrap()).is_empty(), "{volume}");
        }
        assert!(pod["metadata"]["labels"].get(labels::QUEUE_NAME).is_none(), "no label takes {queue}");
        assert_eq!(pod["metadata"]["annotations"][labels::QUEUE_NAME], *queue);
    }
}

#[test]
fn tasks_that_contradict_each_other_are_said_and_nothing_is_made() {
    for (tasks, message) in [
        ("task a \n task a", "spec.tasks[1].name: duplicated task name a"),
        (
            "task a after=b \n task b after=a",
            "spec.tasks: job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG): \
             tasks wait for each other in a ring: a -> b -> a",
        ),
        (
            "task a after=nobody",
            "spec.tasks[0].dependsOn.name: job has dependencies between tasks, but doesn't form a directed acyclic \
             graph(DAG): task a waits for nobody, which is no task of the job",
        ),
    ] {
        let world = format!("job min=1 \n {tasks}");
        let plan = fixture::plan(&world);
        let Some(Step::Patch { patch, .. }) = &plan.status else { panic!("{plan}") };
        let state = &patch["status"]["state"];
        let message = format!("{message}; create the job anew without that");
        assert_eq!((&state["reason"], &state["message"]), (&"InvalidSpec".into(), &message.into()));
        assert!(plan.steps.is_empty(), "{plan}");
        let again = fixture::plan_after_status(&world);
        assert!(again.is_quiet(), "it is said once: {again}");
    }
}

#[test]
fn a_job_that_can_not_be_read_says_so_once_where_people_look() {
    let plan = |phase: &str, said: &str| {
        let job = json!({
            "metadata": { "namespace": "ns", "name": "a", "uid": "u1", "resourceVersion": "7" },
            "spec": { "policies": [{ "event": "PodFailed", "action": "AbortJob", "timeout": "5 minutes" }] },
            "status": { "state": { "phase": phase, "message": said } },
        });
        let mut objects = Objects::default();
        objects.insert(Object::decode(Kind::VcJob, job.to_string().as_bytes()).into());
        let key = Key::new("ns", "a");
        crate::vcjob::plan(&Snapshot::new(Kind::VcJob, &key, fixture::now(), &objects))
    };
    let first = plan("Pending", "");
    expect![[r#"
        patch job status a {"status":{"state":{"message":"cannot read the job: spec.policies[0].timeout: not a duration: \"5 minutes\"; write it like \"1h30m\", \"10s\" or \"500ms\"; correct it, or create the job again","reason":"JobUnreadable"}}}
        note Warning JobUnreadable: cannot read the job: spec.policies[0].timeout: not a duration: "5 minutes"; write it like "1h30m", "10s" or "500ms"; correct it, or create the job again
    "#]].assert_eq(&first.to_string());
    assert!(plan("Pending", &first.notes[0].message).is_quiet());
    // What is restarted stands there and nowhere else.
    let restarting = plan("Restarting", "task work: pod a-work-1 failed");
    assert!(restarting.is_quiet(), "{restarting}");
    assert_eq!(restarting.notes, first.notes);
}

/// What a world's job is told in its status, and how many objects are made for it.
fn told(world: &str) -> (String, usize) {
    let plan = fixture::plan(world);
    let status = plan.status.map(|status| status.to_string()).unwrap_or_default();
    (status, plan.steps.len())
}

#[test]
fn what_admission_would_have_refused_is_said_of_a_job_that_runs_as_far_as_it_goes() {
    for (world, said) in [
        ("job min=3 \n task work replicas=2", "'minAvailable' should not be greater than total replicas"),
        (
            "job min=1 \n task work replicas=2 min=3",
            "'minAvailable' is greater than 'replicas' in task: work",
        ),
        ("job min=1 \n task work replicas=3 partitions=2x1", "'Replicas' are not equal to TotalPartitions"),
        ("job min=1 policy=0:AbortJob \n task work", "spec.policies[0]"),
        (
            "job min=1 \n task work \n volume /in claim=in \n volume /in claim=other \n claim in \n claim other",
            "duplicated mountPath",
        ),
    ] {
        let (status, n_steps) = told(world);
        assert!(status.contains("InvalidSpec") && status.contains(said), "{world}: {status}");
        assert!(n_steps > 0, "{world}: it is given what it asks for");
        let again = fixture::plan_after_status(world);
        assert_eq!((again.status, again.notes), (None, Vec::new()), "{world}: it is said once");
    }
}

#[test]
fn a_job_that_is_right_again_is_not_told_otherwise_and_one_that_was_right_is_not_looked_over_again() {
    let (status, _) = told("job phase=Pending min=1 reason=InvalidSpec \n task work");
    assert!(status.contains(r#""reason":null"#), "{status}");
    let (status, _) = told("job phase=Running min=3 \n task work replicas=2 \n group Running");
    assert!(!status.contains("InvalidSpec"), "{status}");
}

#[test]
fn a_pod_that_does_not_say_which_it_is_stands_in_for_none_and_starts_nothing() {
    let planned = |pod: &str| {
        fixture::plan(&format!(
            "job phase=Running min=1 policy=PodFailed:RestartTask policy=TaskCompleted:CompleteJob
             task work replicas=1
             group Running
             pod work-0 Running
             {pod}"
        ))
        .to_string()
    };
    for pod in [
        "pod work-1 Failed unsaid",
        "pod work-1 Succeeded unsaid",
        "pod work-1 Running unsaid",
        "pod work-1 Running index=one",
        "pod work-1 Running index=-1",
        // Names of tasks are told apart by case.
        "pod Work-0 Succeeded",
    ] {
        assert_eq!(planned(pod), planned(""), "{pod}");
    }
}
