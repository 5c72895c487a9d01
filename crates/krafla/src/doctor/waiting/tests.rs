//! What is said of what was listed: one row for each cause.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;

/// The time of all judgements.
const NOW: &str = "2026-11-15T08:00:00Z";

const QUEUE: &str = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: default}, status: {state: Open}}";

/// A Volcano Job `a` with these further fields.
fn job(fields: &str) -> String {
    format!(
        "{{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {{name: a, namespace: ns, uid: '1'}}, {fields}}}"
    )
}

/// A pod of it, with these further fields of its spec and status.
fn pod(spec: &str, status: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: a-w-0, namespace: ns, uid: '2', {}}}, spec: {{{spec}}}, status: {{{status}}}}}",
        owned("Job", "1")
    )
}

fn owned(kind: &str, uid: &str) -> String {
    format!("ownerReferences: [{{apiVersion: v1, kind: {kind}, name: a, uid: '{uid}', controller: true}}]")
}

fn gang(conditions: &str) -> String {
    format!(
        "{{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {{name: a-1, namespace: ns, uid: '3', {}}}, \
         status: {{phase: Inqueue, conditions: [{conditions}]}}}}",
        owned("Job", "1")
    )
}

fn flow(fields: &str) -> String {
    format!(
        "{{apiVersion: flow.volcano.sh/v1alpha1, kind: JobFlow, metadata: {{name: f, namespace: ns, uid: '4'}}, {fields}}}"
    )
}

fn template(name: &str) -> String {
    format!(
        "{{apiVersion: flow.volcano.sh/v1alpha1, kind: JobTemplate, metadata: {{name: {name}, namespace: ns}}, spec: {{}}}}"
    )
}

/// What is said of objects.
fn said(objects: &[&str], lease: Lease) -> String {
    let mut seen = Seen { lease, ..Seen::default() };
    for yaml in objects {
        let object: Value = serde_saphyr::from_str(yaml).unwrap();
        let (version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        seen.take_in(Kind::of_manifest(version, kind).unwrap(), object.to_string().as_bytes());
    }
    let now: Time = serde_json::from_value(json!(NOW)).unwrap();
    let line = |it: &Waiting| {
        let (what, reason) = (it.kind.info().singular, it.cause.reason());
        format!("{what} {}: {} [{reason}]\n  fix: {}\n", it.key, it.cause, it.cause.remedy())
    };
    waiting(&seen, now).iter().map(line).collect()
}

fn check(objects: &[&str], expected: Expect) {
    expected.assert_eq(&said(objects, Lease::Missing));
}

#[test]
fn what_goes_its_way_is_not_told() {
    let running = "{name: main, state: {running: {}}}";
    let starting = "{name: main, state: {waiting: {reason: ContainerCreating}}}";
    for objects in [
        vec![job("status: {state: {phase: Completed}}")],
        vec![
            job("status: {state: {phase: Running}, running: 1}"),
            QUEUE.to_owned(),
            pod("nodeName: x", &format!("phase: Running, containerStatuses: [{running}]")),
        ],
        vec![
            job("status: {state: {phase: Pending}}"),
            QUEUE.to_owned(),
            pod("nodeName: x", &format!("phase: Pending, containerStatuses: [{starting}]")),
        ],
        vec![job("").replace("uid: '1'", "creationTimestamp: '2026-11-15T07:59:58Z'")],
        vec![
            flow("spec: {flows: [{name: x}]}, status: {state: {phase: Running}}"),
            template("x"),
            job("status: {state: {phase: Running}, running: 1}").replace("name: a", "name: f-x"),
            QUEUE.to_owned(),
        ],
    ] {
        let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
        assert_eq!(said(&objects, Lease::Missing), "", "{objects:?}");
    }
}

#[test]
fn a_job_that_nobody_has_taken_up_says_who_should() {
    let of = |lease| said(&[&job("")], lease).lines().next().unwrap_or_default().to_owned();
    expect![[r#"
        job ns/a: no controller has handled it, and no controller has ever acquired the lease [NoController]
          fix: start `krafla controller-manager --kubeconfig FILE`, or `krafla up` without --without-controllers
    "#]].assert_eq(&said(&[&job("")], Lease::Missing));
    assert!(of(Lease::Free).contains("no controller holds the lease"));
    assert!(of(Lease::Held("x_1".to_owned())).contains("though x_1 holds the lease"));
    let dead = Lease::Expired { holder: "x_1".to_owned(), seconds: 90 };
    assert!(of(dead).contains("x_1 holds the lease and has not renewed it for 90 s"));
}

#[test]
fn what_can_not_be_read_is_told() {
    check(
        &[&job("spec: {minAvailable: many}")],
        expect![[r#"
        job ns/a: it cannot be read: spec.minAvailable: invalid type: string "many", expected i32 [Unreadable]
          fix: correct the field, or create it again
    "#]],
    );
}

#[test]
fn what_people_asked_for_comes_first() {
    check(
        &[&job("status: {state: {phase: Aborted}}")],
        expect![[r#"
        job ns/a: it was aborted [Aborted]
          fix: resume it, as `vcctl job resume` does, or delete it
    "#]],
    );
    check(
        &[
            "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: ns}, spec: {suspend: true, template: {}}}",
        ],
        expect![[r#"
            job ns/a: it is suspended [Suspended]
              fix: set spec.suspend to false
        "#]],
    );
    check(
        &[
            "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: ns}, spec: {managedBy: kueue.x-k8s.io/multikueue, template: {}}}",
        ],
        expect![[r#"
            job ns/a: its spec.managedBy names the controller kueue.x-k8s.io/multikueue, which has not handled it [ManagedBy]
              fix: run the controller kueue.x-k8s.io/multikueue, or create it again without spec.managedBy
        "#]],
    );
    let deleted = "name: a, deletionTimestamp: '2026-11-15T07:00:00Z', finalizers: [example.com/keep]";
    check(
        &[&job("status: {state: {phase: Running}}").replace("name: a", deleted)],
        expect![[r#"
        job ns/a: it was deleted, and waits for its finalizers example.com/keep [Deleted]
          fix: start the controller of these finalizers; it removes them when it is done
    "#]],
    );
}

#[test]
fn a_queue_that_is_closed_or_missing_is_named() {
    let pending =
        |queue: &str| job(&format!("spec: {{queue: {queue}}}, status: {{state: {{phase: Pending}}}}"));
    check(
        &[&pending("research"), QUEUE],
        expect![[r#"
            job ns/a: queue research does not exist [QueueMissing]
              fix: create the queue research, or use another one in spec.queue
        "#]],
    );
    check(
        &[&pending("default"), &QUEUE.replace("Open", "Closed")],
        expect![[r#"
        job ns/a: queue default is Closed, and takes no new jobs [QueueClosed]
          fix: open it, as `vcctl queue operate --action open --name default` does, or use another one in spec.queue
    "#]],
    );
}

#[test]
fn a_gang_that_finds_no_place_says_what_is_missing() {
    let pending = job("status: {state: {phase: Pending}}");
    let unschedulable = "{type: Unschedulable, status: 'True', lastTransitionTime: '2026-11-15T07:00:00Z', message: '3/4 tasks in gang unschedulable: 2 Insufficient cpu'}";
    check(
        &[&pending, QUEUE, &gang(unschedulable)],
        expect![[r#"
        job ns/a: 3/4 tasks in gang unschedulable: 2 Insufficient cpu [Unschedulable]
          fix: lower resources.requests or spec.minAvailable, or wait until other jobs have ended
    "#]],
    );
    let placed = format!(
        "{unschedulable}, {{type: Scheduled, status: 'True', lastTransitionTime: '2026-11-15T07:01:00Z'}}"
    );
    check(&[&pending, QUEUE, &gang(&placed)], expect![[""]]);
    // A gang of its own, and pods that are in none.
    check(
        &[&gang(unschedulable)],
        expect![[r#"
        podgroup ns/a-1: 3/4 tasks in gang unschedulable: 2 Insufficient cpu [Unschedulable]
          fix: lower resources.requests or spec.minAvailable, or wait until other jobs have ended
    "#]],
    );
    let refused = "conditions: [{type: PodScheduled, status: 'False', message: '0/1 nodes are available: 1 node(s) had untolerated taint'}]";
    check(
        &[&pod("", refused)],
        expect![[r#"
            pod ns/a-w-0: pod a-w-0: 0/1 nodes are available: 1 node(s) had untolerated taint [Unschedulable]
              fix: tolerate the taint in the pod's template, or remove it from the node
        "#]],
    );
    let orphan =
        "conditions: [{type: PodScheduled, status: 'False', message: 'podgroup \"mine\" not found'}]";
    check(
        &[&pod("", orphan)],
        expect![[r#"
            pod ns/a-w-0: pod a-w-0: podgroup "mine" not found [Unschedulable]
              fix: create the PodGroup, or correct the annotation scheduling.k8s.io/group-name of the pod
        "#]],
    );
    check(
        &[&pod("schedulerName: my-scheduler", "")],
        expect![[r#"
            pod ns/a-w-0: pod a-w-0: scheduler my-scheduler has not handled it [NotScheduled]
              fix: start the scheduler my-scheduler, or use another one in spec.schedulerName
        "#]],
    );
    check(
        &[&pod("schedulingGates: [{name: example.com/wait}]", "")],
        expect![[r#"
        pod ns/a-w-0: pod a-w-0 is held back by its gates example.com/wait [Gated]
          fix: wait for the controller of these gates, or remove them from spec.schedulingGates
    "#]],
    );
}

#[test]
fn what_a_pod_lacks_is_told_of_its_job() {
    let pending = job("status: {state: {phase: Pending}}");
    let waits = |reason: &str, message: &str| {
        let waiting = format!("{{reason: {reason}, message: '{message}'}}");
        pod("nodeName: x", &format!("containerStatuses: [{{name: main, state: {{waiting: {waiting}}}}}]"))
    };
    check(
        &[&pending, QUEUE, &waits("CreateContainerConfigError", "configmap \"settings\" not found")],
        expect![[r#"
            job ns/a: pod a-w-0, container main: configmap "settings" not found [Container]
              fix: create what is missing, or mark the reference as optional
        "#]],
    );
    check(
        &[&pending, QUEUE, &waits("CrashLoopBackOff", "back-off 40s restarting failed container")],
        expect![[r#"
            job ns/a: pod a-w-0, container main: back-off 40s restarting failed container [Container]
              fix: see why it ended: `kubectl logs a-w-0 -c main --previous`
        "#]],
    );
    check(
        &[&pending, QUEUE, &waits("ImagePullBackOff", "")],
        expect![[r#"
        job ns/a: pod a-w-0, container main: ImagePullBackOff [Container]
          fix: correct its image, or give the pod imagePullSecrets that may read it
    "#]],
    );
    check(
        &[&pending, QUEUE, &waits("ContainerCreating", "cannot create a volume: secret \"key\" not found")],
        expect![[r#"
            job ns/a: pod a-w-0, container main: cannot create a volume: secret "key" not found [Container]
              fix: create the source of the volume, or correct spec.volumes
        "#]],
    );
    let claims = "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]";
    check(
        &[&pending, QUEUE, &pod(claims, "phase: Pending")],
        expect![[r#"
        job ns/a: pod a-w-0 uses the PersistentVolumeClaim data, which does not exist [ClaimMissing]
          fix: create the PersistentVolumeClaim data, or correct spec.volumes
    "#]],
    );
    let end = "{exitCode: 128, reason: StartError, message: 'command \"trian\" was not found in PATH'}";
    check(
        &[
            &job("status: {state: {phase: Running}}"),
            QUEUE,
            &pod(
                "nodeName: x",
                &format!("phase: Failed, containerStatuses: [{{name: main, state: {{terminated: {end}}}}}]"),
            ),
        ],
        expect![[r#"
            job ns/a: no pod runs since pod a-w-0 failed: command "trian" was not found in PATH [PodFailed]
              fix: see `kubectl logs a-w-0`; set a policy (RestartJob, AbortJob) for the job
        "#]],
    );
}

#[test]
fn of_a_gang_that_runs_the_pod_that_knows_says_why_others_wait() {
    let running = job("status: {state: {phase: Running}, running: 1}");
    let scheduled = gang("{type: Scheduled, status: 'True'}");
    let member = |name: &str, status: &str| {
        let group = "annotations: {scheduling.k8s.io/group-name: a-1}";
        let spec = "schedulerName: volcano, containers: []";
        pod(spec, status).replace("name: a-w-0", &format!("name: {name}, {group}")).replace("'2'", name)
    };
    let silent = member("a-w-1", "phase: Pending");
    check(&[&running, QUEUE, &scheduled, &silent], expect![[""]]);
    let condition =
        "{type: PodScheduled, status: 'False', message: '0/1 nodes are available: 1 Insufficient cpu'}";
    let told = member("a-w-2", &format!("phase: Pending, conditions: [{condition}]"));
    check(
        &[&running, QUEUE, &scheduled, &silent, &told],
        expect![[r#"
        job ns/a: pod a-w-2: 0/1 nodes are available: 1 Insufficient cpu [Unschedulable]
          fix: lower resources.requests, or wait until other jobs have ended
    "#]],
    );
    check(
        &[&running, QUEUE, &silent],
        expect![[r#"
            job ns/a: pod a-w-1: podgroup "a-1" not found [Unschedulable]
              fix: create the PodGroup, or correct the annotation scheduling.k8s.io/group-name of the pod
        "#]],
    );
    let unseen = gang("");
    check(
        &[&running, QUEUE, &unseen, &silent],
        expect![[r#"
            job ns/a: pod a-w-1: scheduler volcano has not handled it [NotScheduled]
              fix: start the scheduler volcano, or use another one in spec.schedulerName
        "#]],
    );
}

#[test]
fn what_waits_for_others_says_for_whom() {
    let tasks = "[{name: b, replicas: 1, dependsOn: {name: [a]}}, {name: a, replicas: 1}]";
    check(
        &[
            &job(&format!(
                "spec: {{tasks: {tasks}}}, status: {{state: {{phase: Pending}}, taskStatusCount: {{a: {{}}}}}}"
            )),
            QUEUE,
        ],
        expect![[r#"
            job ns/a: task b waits for task a [TaskDependsOn]
              fix: see why those tasks have fewer ready pods than their minAvailable
        "#]],
    );
    let steps = "spec: {flows: [{name: first}, {name: then, dependsOn: {targets: [first]}}]}, status: {state: {phase: Running}}";
    let failed = job("status: {state: {phase: Failed}}").replace("name: a", "name: f-first");
    check(
        &[&flow(steps), &template("first"), &template("then"), &failed],
        expect![[r#"
        jobflow ns/f: step then waits for first (Failed) [StepDependsOn]
          fix: see why those jobs have not completed
    "#]],
    );
    check(
        &[&flow(steps), &template("first"), &failed],
        expect![[r#"
        jobflow ns/f: step then has no JobTemplate then [TemplateMissing]
          fix: create the JobTemplate then in the same namespace
    "#]],
    );
    let ending = pod("nodeName: x", "phase: Running")
        .replace("uid: '2'", "uid: '2', deletionTimestamp: '2026-11-15T07:00:00Z'");
    check(
        &[&job("status: {state: {phase: Restarting}}"), QUEUE, &ending],
        expect![[r#"
            job ns/a: pod a-w-0 has not terminated yet [PodsEnding]
              fix: wait for their terminationGracePeriodSeconds; if their node is gone, `kubectl delete pod a-w-0 --force`
        "#]],
    );
}

/// An Event about the job, with these further fields.
fn event(name: &str, message: &str, fields: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Event, metadata: {{name: {name}, namespace: ns, creationTimestamp: '2026-11-15T07:00:00Z'}}, \
         message: '{message}', involvedObject: {{uid: '1'}}, {fields}}}"
    )
}

#[test]
fn the_last_warning_is_told_where_nothing_else_explains_it() {
    let (first, last) = (
        event("a.1", "an older one", "type: Warning"),
        event("a.2", "pods \"a-w-0\" is forbidden: exceeded quota: small", "type: Warning"),
    );
    check(
        &[&job("status: {state: {phase: Pending}}"), QUEUE, &first, &last],
        expect![[r#"
        job ns/a: pods "a-w-0" is forbidden: exceeded quota: small [Warned]
          fix: wait until other pods have ended, lower the requests, or raise the ResourceQuota of the namespace
    "#]],
    );
}

#[test]
fn a_pod_whose_podgroup_is_refused_does_not_ask_for_a_scheduler() {
    let refused = event("p.1", "podgroups \"g\" is forbidden: exceeded quota: small", "type: Warning")
        .replace("uid: '1'", "uid: '2'");
    check(
        &[&pod("schedulerName: volcano", ""), &refused],
        expect![[r#"
            pod ns/a-w-0: podgroups "g" is forbidden: exceeded quota: small [Warned]
              fix: wait until other pods have ended, lower the requests, or raise the ResourceQuota of the namespace
        "#]],
    );
}

#[test]
fn the_last_warning_is_the_newest_whatever_its_name_and_whichever_field_says_when() {
    let at = |field: &str, minute: u8| format!("type: Warning, {field}: '2026-11-15T07:{minute:02}:00Z'");
    let series = "type: Warning, eventTime: '2026-11-15T07:01:00.000000Z', \
                  series: {count: 2, lastObservedTime: '2026-11-15T07:30:00.000000Z'}";
    for (what, newer) in [
        ("a later count", format!("{}, firstTimestamp: '2026-11-15T07:01:00Z'", at("lastTimestamp", 30))),
        ("the time of new recorders", at("eventTime", 30)),
        ("a series", series.to_owned()),
        ("a first time alone", at("firstTimestamp", 30)),
    ] {
        let (newer, older) = (event("a.1", "newer", &newer), event("a.2", "older", &at("lastTimestamp", 20)));
        let undated = event("a.3", "undated", "type: Warning");
        let normal = event("a.4", "normal", &at("lastTimestamp", 40).replace("Warning", "Normal"));
        let waiting = job("status: {state: {phase: Pending}}");
        for events in [[&newer, &older, &undated, &normal], [&normal, &undated, &older, &newer]] {
            let objects: Vec<&str> =
                [waiting.as_str(), QUEUE].into_iter().chain(events.map(String::as_str)).collect();
            let told = said(&objects, Lease::Missing);
            assert!(told.starts_with("job ns/a: newer [Warned]"), "{what}: {told}");
        }
    }
}
