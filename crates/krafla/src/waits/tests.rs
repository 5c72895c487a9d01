//! What is told of jobs that wait.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;

fn owned(name: &str, status: Value) -> Vec<u8> {
    let owner = json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "a", "uid": "1", "controller": true});
    let metadata = json!({"name": name, "namespace": "default", "uid": name, "ownerReferences": [owner]});
    json!({"metadata": metadata, "spec": {}, "status": status}).to_string().into_bytes()
}

/// The job whose things [`owned`] makes.
fn a() -> JobKey {
    (Kind::VcJob, Key::new("default", "a"))
}

fn check(waits: &mut Waits, now: Instant, expected: Expect) {
    let job = a();
    let news = waits.news([&job].into_iter(), now);
    let news = news.into_iter().map(|((_, key), reason)| format!("{}: {reason}\n", key.name));
    expected.assert_eq(&news.collect::<String>());
}

/// The Job of Kubernetes that [`job`] makes.
fn k8s_a() -> JobKey {
    (Kind::Job, Key::new("default", "a"))
}

fn n_news(waits: &mut Waits, now: Instant) -> usize {
    waits.news([&a()].into_iter(), now).len()
}

fn gives_up(waits: &Waits, job: &JobKey, now: Instant) -> bool {
    waits.are_hopeless([job].into_iter(), now) && !waits.anything_moves()
}

#[tokio::test]
async fn a_reason_is_told_once_and_only_if_it_lasts() {
    let (mut waits, start) = (Waits::default(), Instant::now());
    let condition = json!({"type": "Unschedulable", "status": "True", "message": "not enough cpu"});
    let podgroup = owned("a-1", json!({"conditions": [condition]}));
    waits.observe(Kind::PodGroup, &podgroup, false, start);
    check(&mut waits, start, expect![[""]]);
    check(
        &mut waits,
        start + TOLD_AFTER,
        expect![[r#"
            a: not enough cpu; fix: lower resources.requests or spec.minAvailable, or wait until other jobs have ended
        "#]],
    );
    waits.observe(Kind::PodGroup, &podgroup, false, start + TOLD_AFTER);
    check(&mut waits, start + 2 * TOLD_AFTER, expect![[""]]);
    waits.observe(Kind::PodGroup, &owned("a-1", json!({})), false, start);
    assert_eq!(waits.reason(&a(), start + 3 * TOLD_AFTER), None);
}

#[tokio::test]
async fn a_pod_in_no_gang_says_why_it_has_no_node_and_what_to_do() {
    let (mut waits, start) = (Waits::default(), Instant::now());
    let why = "0/1 nodes are available: persistentvolumeclaim \"data\" not found";
    let condition = json!({"type": "PodScheduled", "status": "False", "message": why});
    waits.observe(Kind::Pod, &owned("a-x7f2k", json!({"conditions": [condition]})), false, start);
    check(
        &mut waits,
        start + TOLD_AFTER,
        expect![[r#"
        a: pod a-x7f2k: 0/1 nodes are available: persistentvolumeclaim "data" not found; fix: create the PersistentVolumeClaim, or correct spec.volumes
    "#]],
    );
    let bound = owned("a-x7f2k", json!({"conditions": [{"type": "PodScheduled", "status": "True"}]}));
    waits.observe(Kind::Pod, &bound, false, start);
    assert_eq!(waits.reason(&a(), start + TOLD_AFTER), None);
}

#[tokio::test]
async fn a_container_that_can_not_start_says_why() {
    let (mut waits, start) = (Waits::default(), Instant::now());
    let container =
        |waiting: Value| json!({"containerStatuses": [{"name": "main", "state": {"waiting": waiting}}]});
    let usual = container(json!({"reason": "ContainerCreating"}));
    waits.observe(Kind::Pod, &owned("a-work-0", usual), false, start);
    check(&mut waits, start + TOLD_AFTER, expect![[""]]);
    let stuck = container(json!({"reason": "ContainerCreating", "message": "cannot create volume \"data\""}));
    let stuck = owned("a-work-0", stuck);
    waits.observe(Kind::Pod, &stuck, false, start);
    check(
        &mut waits,
        start + TOLD_AFTER,
        expect![[r#"
        a: pod a-work-0, container main: cannot create volume "data"
    "#]],
    );
    waits.observe(Kind::Pod, &stuck, true, start);
    assert_eq!(waits.reason(&a(), start + TOLD_AFTER), None);
    let missing =
        container(json!({"reason": "CreateContainerConfigError", "message": "secret \"s\" not found"}));
    waits.observe(Kind::Pod, &owned("a-work-0", missing), false, start);
    check(
        &mut waits,
        start + TOLD_AFTER,
        expect![[r#"
        a: pod a-work-0, container main: secret "s" not found; fix: create what is missing, or mark the reference as optional
    "#]],
    );
}

#[tokio::test]
async fn a_pod_whose_podgroup_is_refused_says_so_until_it_has_a_node() {
    let about = json!({"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "a-x7f2k"});
    let event = json!({"metadata": {"name": "e", "namespace": "default"}, "involvedObject": about, "type": "Warning",
        "reason": "FailedCreate", "message": "podgroups \"a\" is forbidden: exceeded quota: small"});
    let event = event.to_string().into_bytes();
    let (pod, start) = (owned("a-x7f2k", json!({})), Instant::now());
    // The news may come in any order.
    for event_first in [true, false] {
        let mut waits = Waits::default();
        let news = [(Kind::Event, &event), (Kind::Pod, &pod)];
        let order = if event_first { [0, 1] } else { [1, 0] };
        for (kind, json) in order.map(|index| news[index]) {
            waits.observe(kind, json, false, start);
        }
        check(
            &mut waits,
            start + TOLD_AFTER,
            expect![[r#"
            a: pod a-x7f2k: podgroups "a" is forbidden: exceeded quota: small; fix: wait until other pods have ended, lower the requests, or raise the ResourceQuota of the namespace
        "#]],
        );
        let mut bound: Value = serde_json::from_slice(&pod).unwrap();
        bound["spec"] = json!({"nodeName": "n"});
        waits.observe(Kind::Pod, bound.to_string().as_bytes(), false, start);
        waits.observe(Kind::Event, &event, false, start);
        assert_eq!(waits.reason(&a(), start + TOLD_AFTER), None);
    }
}

#[tokio::test]
async fn a_container_that_is_started_again_and_again_says_how_it_ended_and_why() {
    let told = |spec: Value, back_off: &str, end: Value| {
        let waiting = json!({"waiting": {"reason": "CrashLoopBackOff", "message": back_off}});
        let container = json!({"name": "main", "state": waiting, "lastState": {"terminated": end}});
        let statuses =
            if spec["initContainers"].is_null() { "containerStatuses" } else { "initContainerStatuses" };
        let seen = json!({"metadata": {"name": "p"}, "spec": spec, "status": {statuses: [container]}});
        Waits::default().of_pod(&serde_json::from_value(seen).unwrap()).unwrap().text + "\n"
    };
    let on_failure = json!({"restartPolicy": "OnFailure"});
    let end = json!({"exitCode": 128, "reason": "StartError", "message": "exec \"pythn\": not found"});
    let missing = told(on_failure.clone(), "back-off 10s", end.clone());
    expect![[r#"
        pod p, container main cannot start (exec "pythn": not found) and restarts because restartPolicy is OnFailure; fix: correct its command, or set restartPolicy to Never to stop after the first failure
    "#]]
    .assert_eq(&missing);
    assert_eq!(told(on_failure.clone(), "back-off 20s", end), missing, "it is told once");
    expect![[r#"
        pod p, container main ended with exit code 137 (OOMKilled) and restarts because restartPolicy is OnFailure; fix: read its log with --logs, or set restartPolicy to Never to stop after the first failure
    "#]]
    .assert_eq(&told(on_failure, "", json!({"exitCode": 137, "reason": "OOMKilled"})));
    let sidecar =
        json!({"restartPolicy": "Never", "initContainers": [{"name": "main", "restartPolicy": "Always"}]});
    for spec in [json!({"restartPolicy": "Always"}), sidecar] {
        expect![[r#"
            pod p, container main ended with exit code 0 and restarts because restartPolicy is Always; fix: set restartPolicy to OnFailure or Never
        "#]]
        .assert_eq(&told(spec, "", json!({"exitCode": 0, "reason": "Completed"})));
    }
}

fn job(spec: Value, status: Value) -> Object {
    let metadata = json!({"name": "a", "namespace": "default", "uid": "1"});
    let job = json!({"metadata": metadata, "spec": spec, "status": status});
    Object::decode(Kind::Job, job.to_string().as_bytes())
}

#[tokio::test]
async fn a_job_that_can_run_nothing_says_why() {
    for (spec, reason) in [
        (json!({"suspend": true}), "spec.suspend is true: nothing runs until it is false"),
        (json!({"parallelism": 0}), "spec.parallelism is 0: nothing runs until it is more"),
        (json!({"managedBy": "acme.io/jobs"}), "spec.managedBy names the controller acme.io/jobs"),
    ] {
        let (mut waits, start) = (Waits::default(), Instant::now());
        waits.observe_job(&job(spec.clone(), json!({})), start);
        let later = start + TOLD_AFTER;
        assert_eq!(waits.reason(&k8s_a(), later), Some(reason), "{spec}");
        waits.observe_job(&job(json!({}), json!({"startTime": "2027-01-15T08:00:00Z"})), later);
        assert_eq!(waits.reason(&k8s_a(), later), None, "{spec}");
    }
}

#[tokio::test]
async fn a_job_of_volcano_says_in_its_state_why_it_waits() {
    let told = |state: Value| {
        let spec = json!({"tasks": [{"name": "work", "replicas": 1}]});
        let job = json!({"metadata": {"name": "a", "namespace": "default"}, "spec": spec, "status": {"state": state}});
        let (mut waits, start) = (Waits::default(), Instant::now());
        waits.observe_job(&Object::decode(Kind::VcJob, job.to_string().as_bytes()), start);
        waits.reason(&a(), start + TOLD_AFTER).unwrap_or_default().to_owned()
    };
    let refused = "podgroups \"a\" is forbidden: exceeded quota: small";
    for phase in ["Pending", "Running"] {
        assert_eq!(
            told(json!({"phase": phase, "reason": "FailedCreate", "message": refused})),
            format!(
                "{refused}; fix: wait until other pods have ended, lower the requests, or raise the ResourceQuota of the namespace"
            )
        );
    }
    let missing = json!({"phase": "Pending", "reason": "QueueNotFound", "message": "queue q does not exist"});
    assert_eq!(told(missing), "queue q does not exist");
    for state in [
        json!({"phase": "Running", "reason": "InvalidSpec", "message": "odd"}),
        json!({"phase": "Pending", "reason": "PodGroupPending", "message": "the gang says it"}),
        json!({"phase": "Pending", "reason": "PodFailed", "message": "pod a-0 failed"}),
    ] {
        assert_eq!(told(state.clone()), "", "{state}");
    }
}

#[tokio::test]
async fn what_the_server_refused_is_told_for_as_long_as_pods_are_missing() {
    let event = |api_version: &str, reason: &str| {
        let about = json!({"apiVersion": api_version, "kind": "Job", "namespace": "default", "name": "a"});
        let metadata = json!({"name": "a.1", "namespace": "default"});
        let event = json!({"metadata": metadata, "involvedObject": about, "type": "Warning", "reason": reason, "message": "no room"});
        event.to_string().into_bytes()
    };
    let wanting =
        |n_active: i32| job(json!({"parallelism": 2, "completions": 2}), json!({"active": n_active}));
    for (event, told) in [
        (event("batch/v1", "FailedCreate"), Some("no room")),
        (event("batch/v1", "DeadlineExceeded"), None),
        (event("batch.volcano.sh/v1alpha1", "FailedCreate"), None),
    ] {
        let (mut waits, start) = (Waits::default(), Instant::now());
        let told_at = |waits: &Waits| waits.reason(&k8s_a(), start + TOLD_AFTER).map(str::to_owned);
        // The news may come in any order.
        waits.observe(Kind::Event, &event, false, start);
        assert_eq!(told_at(&waits), None);
        waits.observe_job(&wanting(2), start);
        assert_eq!(told_at(&waits), None);
        waits.observe_job(&wanting(1), start);
        assert_eq!(told_at(&waits).as_deref(), told);
    }
}

/// A pod of job `a` with this spec and status.
fn pod(name: &str, spec: Value, status: Value) -> Vec<u8> {
    let mut pod: Value = serde_json::from_slice(&owned(name, status)).unwrap();
    pod["spec"] = spec;
    pod.to_string().into_bytes()
}

#[tokio::test]
async fn a_pod_of_a_node_that_is_not_there_says_so() {
    let (mut waits, start) = (Waits::default(), Instant::now());
    for name in ["a-0", "a-1"] {
        waits.observe(
            Kind::Pod,
            &pod(name, json!({"nodeName": "elsewhere"}), json!({"phase": "Pending"})),
            false,
            start,
        );
    }
    assert_eq!(waits.node_in_doubt(start), None, "every node takes a moment");
    assert_eq!(waits.node_in_doubt(start + TOLD_AFTER), Some("elsewhere"));
    waits.observe_node("elsewhere", false, start);
    assert_eq!(waits.node_in_doubt(start + TOLD_AFTER), None);
    check(
        &mut waits,
        start + TOLD_AFTER,
        expect![[r#"
            a: pod a-0: node elsewhere does not exist; fix: remove spec.nodeName, or use an existing node
        "#]],
    );
    // What is known of a node holds for pods that come later.
    waits.observe(Kind::Pod, &pod("a-2", json!({"nodeName": "elsewhere"}), json!({})), false, start);
    assert_eq!(waits.node_in_doubt(start + TOLD_AFTER), None);
    assert!(gives_up(&waits, &a(), start + HOPELESS_AFTER));
}

#[tokio::test]
async fn a_node_that_is_there_may_take_its_time() {
    let (mut waits, start) = (Waits::default(), Instant::now());
    let sent = pod("a-0", json!({"nodeName": "busy"}), json!({"phase": "Pending"}));
    waits.observe(Kind::Pod, &sent, false, start);
    waits.observe(Kind::Pod, &sent, false, start + TOLD_AFTER);
    assert_eq!(waits.node_in_doubt(start + TOLD_AFTER), Some("busy"), "it has waited since it was sent");
    waits.observe_node("busy", true, start);
    assert_eq!(waits.node_in_doubt(start + TOLD_AFTER), None);
    assert_eq!(waits.reason(&a(), start + HOPELESS_AFTER), None);
}

#[tokio::test]
async fn a_scheduler_that_is_not_there_is_named() {
    let job = a();
    let told = |means: Means, scheduler: &str, after: Duration| {
        let (mut waits, start) = (Waits::new(means), Instant::now());
        let unseen = pod("a-0", json!({"schedulerName": scheduler}), json!({"phase": "Pending"}));
        waits.observe(Kind::Pod, &unseen, false, start);
        waits.reason(&job, start + after).unwrap_or_default().to_owned()
    };
    assert_eq!(
        told(Means::Files, "mine", TOLD_AFTER),
        "pod a-0: scheduler mine has not handled it; fix: remove spec.schedulerName, or set it to volcano"
    );
    for known in ["volcano", "default-scheduler", ""] {
        assert_eq!(told(Means::Files, known, SCHEDULED_WITHIN), "", "{known:?} has its own words");
    }
    assert_eq!(told(Means::Cluster, "mine", TOLD_AFTER), "", "others may be slow");
    assert_eq!(
        told(Means::Cluster, "mine", SCHEDULED_WITHIN),
        "pod a-0: scheduler mine has not handled it; fix: start the scheduler mine, or use another one in spec.schedulerName"
    );
}

#[tokio::test]
async fn remedies_are_such_as_can_be_followed() {
    let reason = |means: Means, seen: &[u8]| {
        let (mut waits, start) = (Waits::new(means), Instant::now());
        waits.observe(Kind::Pod, seen, false, start);
        let reason = waits.reason(&a(), start + TOLD_AFTER).unwrap().to_owned();
        reason.split_once("fix: ").unwrap().1.to_owned() + "\n"
    };
    let unscheduled = |why: &str| {
        let condition = json!({"type": "PodScheduled", "status": "False", "message": why});
        pod("a-0", json!({}), json!({"conditions": [condition]}))
    };
    let waiting = json!({"reason": "CreateContainerConfigError", "message": "secret \"s\" not found"});
    let no_secret = json!({"containerStatuses": [{"name": "main", "state": {"waiting": waiting}}]});
    let cases = [
        unscheduled("persistentvolumeclaim \"data\" not found"),
        unscheduled(
            "not admitted: it needs 1 nvidia.com/gpu and can never fit, because all nodes that take pods have 0: ask for less, or add nodes",
        ),
        unscheduled("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector"),
        unscheduled("Scheduling is blocked due to non-empty scheduling gates"),
        unscheduled("0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints"),
        unscheduled("queue small is closed"),
        unscheduled("something else"),
        pod("a-0", json!({}), no_secret),
    ];
    let all = |means: Means| cases.iter().map(|seen| reason(means, seen)).collect::<String>();
    expect![[r#"
        add the PersistentVolumeClaim to the files, or correct spec.volumes
        lower resources.requests or spec.minAvailable, or add resources with --capacity
        correct nodeSelector and affinity in the pod's template
        remove spec.schedulingGates from the pod's template
        allow more in topologySpreadConstraints of the pod's template, or wait until other jobs have ended
        use another queue in spec.queue
        check whether the pod's template needs something that this machine lacks
        add what is missing to the files, or mark the reference as optional
    "#]]
    .assert_eq(&all(Means::Files));
    expect![[r#"
        create the PersistentVolumeClaim, or correct spec.volumes
        lower resources.requests or spec.minAvailable, or add nodes
        correct nodeSelector and affinity in the pod's template, or label a node
        remove spec.schedulingGates from the pod's template, or from the pod
        allow more in topologySpreadConstraints of the pod's template, label nodes, or wait until other jobs have ended
        use another queue in spec.queue, or open it
        see `kubectl describe podgroup` and `kubectl get nodes`
        create what is missing, or mark the reference as optional
    "#]]
    .assert_eq(&all(Means::Cluster));
}

#[tokio::test]
async fn a_job_is_hopeless_when_nothing_of_it_moves_and_nothing_will() {
    let job = a();
    let start = Instant::now();
    let later = start + HOPELESS_AFTER;
    let waiting = |reason: &str, message: &str, last: Value| {
        let state = json!({"waiting": {"reason": reason, "message": message}});
        json!({"phase": "Pending", "startTime": "2027-01-15T08:00:00Z",
            "containerStatuses": [{"name": "main", "state": state, "lastState": last}]})
    };
    let missing = waiting("CreateContainerConfigError", "secret \"s\" not found", json!({}));
    let on_host =
        waiting("ContainerCreating", "hostPath type check failed: /a is not a directory", json!({}));
    let ended = json!({"terminated": {"exitCode": 1}});
    let restarted = waiting("CrashLoopBackOff", "back-off 10s", ended);
    let runs = json!({"phase": "Running", "startTime": "2027-01-15T08:00:00Z"});
    let here = || json!({"nodeName": "here"});
    for (pods, is_hopeless) in [
        (vec![], false),
        (vec![&missing], true),
        (vec![&missing, &missing], true),
        (vec![&missing, &runs], false),
        (vec![&missing, &restarted], false),
        (vec![&on_host], false),
        (vec![&restarted], false),
        (vec![&runs], false),
    ] {
        let mut waits = Waits::default();
        for (index, status) in pods.iter().enumerate() {
            waits.observe(Kind::Pod, &pod(&format!("a-{index}"), here(), (*status).clone()), false, start);
        }
        assert_eq!(gives_up(&waits, &job, later), is_hopeless, "{pods:?}");
        assert!(!gives_up(&waits, &job, start), "it may come at once: {pods:?}");
    }
    let mut waits = Waits::default();
    let timed = json!({"nodeName": "here", "activeDeadlineSeconds": 60});
    waits.observe(Kind::Pod, &pod("a-0", timed, missing), false, start);
    assert!(!gives_up(&waits, &job, later), "its deadline will end it");
}

#[tokio::test]
async fn what_holds_for_many_pods_is_told_once() {
    let (mut waits, start) = (Waits::default(), Instant::now());
    let condition =
        |why: &str| json!({"conditions": [{"type": "PodScheduled", "status": "False", "message": why}]});
    for index in 0..3 {
        waits.observe(Kind::Pod, &pod(&format!("a-{index}"), json!({}), condition("no room")), false, start);
    }
    assert_eq!(n_news(&mut waits, start + TOLD_AFTER), 1);
    // The first of them finds a place.
    let bound = pod("a-0", json!({"nodeName": "n"}), json!({"phase": "Running"}));
    waits.observe(Kind::Pod, &bound, false, start + TOLD_AFTER);
    check(&mut waits, start + 2 * TOLD_AFTER, expect![[""]]);
    waits.observe(Kind::Pod, &pod("a-1", json!({}), condition("no more room")), false, start);
    assert_eq!(n_news(&mut waits, start + 3 * TOLD_AFTER), 1);
}

#[tokio::test]
async fn what_pods_repeat_after_their_gang_is_told_of_the_gang() {
    let (mut waits, start) = (Waits::default(), Instant::now());
    let says = |of_type: &str, status: &str, why: &str| json!({"conditions": [{"type": of_type, "status": status, "message": why}]});
    for index in 0..3 {
        let waiting =
            pod(&format!("a-{index}"), json!({}), says("PodScheduled", "False", "3/3 tasks find no room"));
        waits.observe(Kind::Pod, &waiting, false, start);
    }
    let gang = owned("a-1", says("Unschedulable", "True", "2/3 tasks find no room"));
    waits.observe(Kind::PodGroup, &gang, false, start + TOLD_AFTER);
    check(
        &mut waits,
        start + 2 * TOLD_AFTER,
        expect![[r#"
            a: 2/3 tasks find no room; fix: see `kubectl describe podgroup` and `kubectl get nodes`
        "#]],
    );
    check(&mut waits, start + 3 * TOLD_AFTER, expect![[""]]);
}

#[tokio::test]
async fn a_job_between_two_tries_says_so() {
    let told = |spec: Value, status: Value| {
        let (mut waits, start) = (Waits::default(), Instant::now());
        waits.observe_job(&job(spec, status), start);
        waits.reason(&k8s_a(), start + TOLD_AFTER).unwrap_or_default().to_owned()
    };
    let pause = "the next try follows after a back-off of 10 s to 10 min, which doubles with each failure";
    let failed = |n: i32| json!({"startTime": "2027-01-15T08:00:00Z", "failed": n});
    assert_eq!(
        told(json!({"backoffLimit": 4}), failed(1)),
        format!("a pod has failed; {pause}; spec.backoffLimit is 4")
    );
    assert_eq!(told(json!({}), failed(2)), format!("2 pods have failed; {pause}; it is retried"));
    let again = json!({"startTime": "2027-01-15T08:00:00Z", "failed": 1, "active": 1});
    assert_eq!(told(json!({}), again), "");
}

#[tokio::test]
async fn a_flow_without_a_template_says_which_one() {
    let (mut waits, start) = (Waits::new(Means::Files), Instant::now());
    waits.observe_job(&flow("TemplateMissing"), start);
    let reason = waits.reason(&f(), start + TOLD_AFTER);
    assert_eq!(reason, Some("step a has no JobTemplate a; fix: add the JobTemplate a to the files"));
}

/// A flow `f` whose step `a` is in this phase, or kept by this hindrance.
fn flow(phase: &str) -> Object {
    let flow = json!({
        "metadata": { "namespace": "default", "name": "f" }, "spec": { "flows": [{ "name": "a" }] },
        "status": { "state": { "phase": "Pending" }, "conditions": { "f-a": { "phase": phase } } },
    });
    Object::decode(Kind::JobFlow, flow.to_string().as_bytes())
}

fn f() -> JobKey {
    (Kind::JobFlow, Key::new("default", "f"))
}

#[tokio::test]
async fn a_flow_that_can_not_make_a_job_says_why_and_is_given_up() {
    let told = |means: Means| {
        let words = ["TemplateUnreadable", "ForeignJob", "DependencyUnknown", "DependencyRing", "Aborted"];
        let of = |word: &str| {
            let (mut waits, start) = (Waits::new(means), Instant::now());
            waits.observe_job(&flow(word), start);
            assert!(gives_up(&waits, &f(), start + HOPELESS_AFTER), "{word}");
            waits.reason(&f(), start + TOLD_AFTER).unwrap_or_default().to_owned() + "\n"
        };
        words.map(of).concat()
    };
    expect![[r#"
        cannot read the JobTemplate a; fix: correct it, or create it again
        job f-a, which is not of this flow, has the name of its step a; fix: give it or the flow another name
        step a waits for an unknown step; fix: correct its dependsOn.targets
        step a and others wait for each other; fix: remove one of their dependsOn.targets
        step a was aborted; fix: use another action than AbortJob in the policies of its JobTemplate
    "#]]
    .assert_eq(&told(Means::Files));
    let there = told(Means::Cluster);
    for remedy in ["fix: delete it, or give it", "fix: resume its job with a Command ResumeJob"] {
        assert!(there.contains(remedy), "{there}");
    }
}

/// That the server refused what somebody wanted to make.
fn refused(api_version: &str, kind: &str, name: &str, message: &str) -> Vec<u8> {
    let about = json!({"apiVersion": api_version, "kind": kind, "namespace": "default", "name": name});
    let event = json!({"metadata": {"name": "e", "namespace": "default"}, "involvedObject": about, "type": "Warning",
        "reason": "FailedCreate", "message": message});
    event.to_string().into_bytes()
}

#[tokio::test]
async fn a_flow_whose_job_is_refused_says_so_until_it_is_made_and_is_given_up() {
    let (mut waits, start) = (Waits::default(), Instant::now());
    let event = refused("flow.volcano.sh/v1alpha1", "JobFlow", "f", "job f-a: duplicated task name");
    waits.observe(Kind::Event, &event, false, start);
    waits.observe_job(&flow("Refused"), start);
    assert_eq!(waits.reason(&f(), start + TOLD_AFTER), Some("job f-a: duplicated task name"));
    assert!(!gives_up(&waits, &f(), start + 2 * HOPELESS_AFTER), "it is retried");
    assert!(gives_up(&waits, &f(), start + RETRIED_WITHIN));
    waits.observe_job(&flow("Running"), start);
    assert_eq!(waits.reason(&f(), start + TOLD_AFTER), None);
    assert!(!gives_up(&waits, &f(), start + RETRIED_WITHIN));
}

#[tokio::test]
async fn a_cron_job_whose_job_is_refused_says_so_once_until_it_has_run_and_is_given_up() {
    for kind in [Kind::CronJob, Kind::VcCronJob] {
        let (mut waits, start) = (Waits::default(), Instant::now());
        let cron_job = |status: Value| {
            let cron_job = json!({"metadata": {"name": "c", "namespace": "default"},
                "spec": {"schedule": "@every 1s"}, "status": status});
            Object::decode(kind, cron_job.to_string().as_bytes())
        };
        let c = (kind, Key::new("default", "c"));
        waits.observe_job(&cron_job(json!({})), start);
        let api_version = kind.info().api_version();
        for second in [7, 8] {
            let message = format!("job c-{second} is not allowed");
            waits.observe(Kind::Event, &refused(&api_version, "CronJob", "c", &message), false, start);
            let news = waits.news([&c].into_iter(), start + TOLD_AFTER);
            let news: Vec<&str> = news.iter().map(|(_, reason)| reason.as_str()).collect();
            assert_eq!(news, if second == 7 { vec!["job c-7 is not allowed"] } else { vec![] });
        }
        assert!(!gives_up(&waits, &c, start + 2 * HOPELESS_AFTER), "it is retried");
        assert!(gives_up(&waits, &c, start + RETRIED_WITHIN));
        waits.observe_job(&cron_job(json!({"lastScheduleTime": "2027-01-15T08:00:00Z"})), start);
        assert_eq!(waits.reason(&c, start + TOLD_AFTER), None);
    }
}

#[tokio::test]
async fn a_job_that_others_held_up_gets_its_time_when_they_have_ended() {
    let (mut waits, start) = (Waits::default(), Instant::now());
    let unschedulable =
        json!({"conditions": [{"type": "Unschedulable", "status": "True", "message": "not enough cpu"}]});
    waits.observe(Kind::PodGroup, &owned("a-1", unschedulable), false, start);
    let other = |phase: &str| pod("other-0", json!({"nodeName": "here"}), json!({"phase": phase}));
    waits.observe(Kind::Pod, &other("Running"), false, start);
    let ended_at = start + 2 * HOPELESS_AFTER;
    waits.observe(Kind::Pod, &other("Succeeded"), false, ended_at);
    assert!(!gives_up(&waits, &a(), ended_at), "its reason is old, but what it waited for has come");
    assert!(gives_up(&waits, &a(), ended_at + HOPELESS_AFTER));
}

#[tokio::test]
async fn a_job_with_a_time_out_of_its_own_is_left_to_it() {
    let start = Instant::now();
    let later = start + 2 * HOPELESS_AFTER;
    let missing = json!({"containerStatuses": [{"name": "main", "state": {"waiting":
        {"reason": "CreateContainerConfigError", "message": "secret \"s\" not found"}}}]});
    let vcjob = |mut spec: Value| {
        spec["tasks"] = json!([{"name": "work", "replicas": 1, "policies": spec["ofTask"]}]);
        let status = json!({"taskStatusCount": {"work": {"phase": {"Pending": 1}}}});
        let job = json!({"metadata": {"name": "a", "namespace": "default"}, "spec": spec, "status": status});
        Object::decode(Kind::VcJob, job.to_string().as_bytes())
    };
    let policy = json!([{"event": "PodPending", "action": "CompleteJob", "timeout": "1m"}]);
    for (object, is_hopeless) in [
        (vcjob(json!({})), true),
        (vcjob(json!({"policies": policy})), false),
        (vcjob(json!({"ofTask": policy})), false),
        (job(json!({}), json!({})), true),
        (job(json!({"activeDeadlineSeconds": 60}), json!({})), false),
    ] {
        let mut waits = Waits::default();
        waits.observe_job(&object, start);
        let mut pod: Value =
            serde_json::from_slice(&pod("a-0", json!({"nodeName": "here"}), missing.clone())).unwrap();
        pod["metadata"]["ownerReferences"][0]["apiVersion"] = json!(object.kind.info().api_version());
        waits.observe(Kind::Pod, pod.to_string().as_bytes(), false, start);
        assert_eq!(
            gives_up(&waits, &(object.kind, Key::new("default", "a")), later),
            is_hopeless,
            "{object:?}"
        );
    }
}

#[tokio::test]
async fn what_was_refused_is_asked_for_again_before_a_run_gives_up() {
    let (mut waits, start) = (Waits::default(), Instant::now());
    let state = json!({"phase": "Pending", "reason": "FailedCreate", "message": "exceeded quota: small"});
    let spec = json!({"tasks": [{"name": "work", "replicas": 1}]});
    let refused =
        json!({"metadata": {"name": "a", "namespace": "default"}, "spec": spec, "status": {"state": state}});
    waits.observe_job(&Object::decode(Kind::VcJob, refused.to_string().as_bytes()), start);
    assert!(!gives_up(&waits, &a(), start + 2 * HOPELESS_AFTER));
    assert!(gives_up(&waits, &a(), start + RETRIED_WITHIN));
}

#[tokio::test]
async fn what_pods_of_others_hold_may_come_free() {
    let start = Instant::now();
    let later = start + HOPELESS_AFTER;
    let condition =
        json!({"conditions": [{"type": "PodScheduled", "status": "False", "message": "no room"}]});
    let runs = json!({"nodeName": "here"});
    let of_another = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "other", "uid": "2"});
    for (owners, is_up) in [(json!([of_another]), false), (json!([]), true)] {
        let mut waits = Waits::default();
        waits.observe(Kind::Pod, &pod("a-0", json!({}), condition.clone()), false, start);
        let mut other: Value =
            serde_json::from_slice(&pod("other-0", runs.clone(), json!({"phase": "Running"}))).unwrap();
        other["metadata"]["ownerReferences"] = owners.clone();
        waits.observe(Kind::Pod, other.to_string().as_bytes(), false, start);
        assert_eq!(gives_up(&waits, &a(), later), is_up, "a pod that nobody made may be a server: {owners}");
    }
}

#[tokio::test]
async fn a_flow_is_given_up_only_with_all_its_steps() {
    let start = Instant::now();
    let later = start + HOPELESS_AFTER;
    let step = |name: &str| (Kind::VcJob, Key::new("default", name));
    let of_step = |name: &str, why: &str| {
        let waiting = json!({"state": {"waiting": {"reason": "ContainerCreating", "message": why}}});
        let mut pod: Value = serde_json::from_slice(&pod(
            &format!("{name}-0"),
            json!({"nodeName": "here"}),
            json!({"containerStatuses": [waiting]}),
        ))
        .unwrap();
        pod["metadata"]["ownerReferences"][0]["name"] = json!(name);
        pod.to_string().into_bytes()
    };
    let steps = [step("f-a"), step("f-b"), step("f-c")];
    let mut waits = Waits::default();
    waits.observe(Kind::Pod, &of_step("f-a", "configmap \"c\" not found"), false, start);
    assert!(waits.are_hopeless(steps.iter(), later), "f-c has nothing to say, and waits for the others");
    waits.observe(Kind::Pod, &of_step("f-b", "No space left on device"), false, start);
    assert!(!waits.are_hopeless(steps.iter(), later), "somebody may make room");
}

#[tokio::test]
async fn jobs_of_two_kinds_may_have_one_name() {
    let (mut waits, start) = (Waits::default(), Instant::now());
    let condition = json!({"type": "Unschedulable", "status": "True", "message": "not enough cpu"});
    waits.observe(Kind::PodGroup, &owned("a-1", json!({"conditions": [condition]})), false, start);
    waits.observe_job(&job(json!({}), json!({})), start);
    let reason = |kind: Kind| waits.reason(&(kind, Key::new("default", "a")), start + TOLD_AFTER);
    assert!(reason(Kind::VcJob).is_some_and(|reason| reason.starts_with("not enough cpu")));
    assert_eq!(reason(Kind::Job), None);
}

#[tokio::test]
async fn a_gang_that_was_placed_later_does_not_wait() {
    let at = |of_type: &str, minute: u32| {
        json!({"type": of_type, "status": "True", "message": "not enough cpu",
            "lastTransitionTime": format!("2027-01-15T08:{minute:02}:00Z")})
    };
    for (conditions, waits_on) in [
        (json!([at("Unschedulable", 1)]), true),
        (json!([at("Unschedulable", 1), at("Scheduled", 2)]), false),
        (json!([at("Scheduled", 1), at("Unschedulable", 2)]), true),
    ] {
        let (mut waits, start) = (Waits::default(), Instant::now());
        waits.observe(Kind::PodGroup, &owned("a-1", json!({"conditions": conditions})), false, start);
        assert_eq!(waits.reason(&a(), start + TOLD_AFTER).is_some(), waits_on, "{conditions}");
    }
}

#[tokio::test]
async fn what_a_pod_waited_for_that_has_ended_is_past() {
    let (mut waits, start) = (Waits::default(), Instant::now());
    let waiting = json!({"reason": "CreateContainerConfigError", "message": "secret \"s\" not found"});
    let status = |phase: &str| json!({"phase": phase, "containerStatuses": [{"name": "main", "state": {"waiting": waiting}}]});
    waits.observe(Kind::Pod, &pod("a-0", json!({"nodeName": "here"}), status("Pending")), false, start);
    assert!(waits.reason(&a(), start + TOLD_AFTER).is_some());
    waits.observe(Kind::Pod, &pod("a-0", json!({"nodeName": "here"}), status("Failed")), false, start);
    assert_eq!(waits.reason(&a(), start + TOLD_AFTER), None);
    assert!(waits.reasons.is_empty() && waits.pods.is_empty(), "nothing is kept of what has ended");
}

#[tokio::test]
async fn a_flow_with_an_aborted_step_says_so() {
    let flow = json!({
        "metadata": { "namespace": "default", "name": "f" }, "spec": { "flows": [{ "name": "a" }] },
        "status": { "state": { "phase": "Running" }, "jobStatusList": [{ "name": "f-a", "state": "Aborted" }] },
    });
    let (mut waits, start) = (Waits::default(), Instant::now());
    waits.observe_job(&Object::decode(Kind::JobFlow, flow.to_string().as_bytes()), start);
    let reason = waits.reason(&(Kind::JobFlow, Key::new("default", "f")), start + TOLD_AFTER);
    assert!(reason.is_some_and(|reason| reason.starts_with("step a was aborted")), "{reason:?}");
}

#[tokio::test]
async fn a_job_without_replicas_says_so() {
    let job = json!({"metadata": {"name": "a", "namespace": "default"}, "spec": {"tasks": [{"name": "work", "replicas": 0}]},
        "status": {"state": {"phase": "Running"}}});
    let (mut waits, start) = (Waits::default(), Instant::now());
    waits.observe_job(&Object::decode(Kind::VcJob, job.to_string().as_bytes()), start);
    let reason = waits.reason(&a(), start + TOLD_AFTER);
    assert_eq!(reason, Some("spec.tasks[].replicas is 0: nothing runs until a task has more"));
}
