//! Situations that people ask about: for each the cause and the remedy that must be named.
//!
//! A situation is the objects of a cluster, written as YAML. Whatever is not listed does not exist, except ConfigMaps and
//! Secrets, of which only `absent` is known not to exist.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use krafla_api::Time;
use krafla_diagnosis::{Diagnosis, Facts, Resource, Subject, diagnose, json, screen};
use krafla_why::Lease;
use serde_json::Value;

const NOW: &str = "2026-11-15T08:00:00Z";

/// One situation.
struct Case {
    name: &'static str,
    /// The object that is asked about.
    about: &'static str,
    objects: String,
    /// The word of the cause at the end of the chain.
    cause: &'static str,
    /// What the causes must say.
    says: &'static str,
    /// What a remedy must say, or its command.
    remedy: &'static str,
}

fn now() -> Time {
    serde_json::from_value(Value::String(NOW.to_owned())).unwrap()
}

/// The resources of which all objects are listed.
const COMPLETE: [Resource; 15] = [
    Resource::VcJob,
    Resource::VcCronJob,
    Resource::JobFlow,
    Resource::JobTemplate,
    Resource::PodGroup,
    Resource::Queue,
    Resource::Job,
    Resource::CronJob,
    Resource::Pod,
    Resource::Node,
    Resource::Event,
    Resource::PersistentVolumeClaim,
    Resource::ResourceQuota,
    Resource::LimitRange,
    Resource::PriorityClass,
];

fn facts(objects: &str) -> Facts {
    let mut facts = Facts::new(now());
    for resource in COMPLETE {
        facts.add_all(resource, Vec::new());
    }
    for yaml in objects.split("\n---\n").map(str::trim).filter(|it| !it.is_empty()) {
        if let Some(absent) = yaml.strip_prefix("absent: ") {
            let (kind, name) = absent.split_once('/').unwrap();
            facts.add_absent(Resource::from_word(kind).unwrap(), "ns", name);
            continue;
        }
        if let Some(holder) = yaml.strip_prefix("lease: ") {
            facts.lease = Lease::Held(holder.to_owned());
            continue;
        }
        let object: Value = serde_saphyr::from_str(yaml).unwrap_or_else(|error| panic!("{error}:\n{yaml}"));
        let (version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        facts.add(Resource::from_manifest(version, kind).unwrap_or_else(|| panic!("{yaml}")), object);
    }
    facts
}

fn subject(about: &str) -> Subject {
    let (kind, name) = about.split_once('/').unwrap();
    let resource = Resource::from_word(kind).unwrap();
    let namespace = if resource.is_namespaced() { "ns".to_owned() } else { String::new() };
    Subject { resource, namespace, name: name.to_owned() }
}

fn diagnosis(about: &str, objects: &str) -> Diagnosis {
    diagnose(&facts(objects), &subject(about)).unwrap_or_else(|| panic!("{about} is not there"))
}

// Objects. Each is one line of flow-style YAML, so that a case fits on a few lines.

/// Joins objects.
fn all(objects: &[&str]) -> String {
    objects.join("\n---\n")
}

const QUEUE: &str = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: default}, spec: {weight: 1}, status: {state: Open}}";
const NODE: &str = "{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {disk: hdd}}, status: {allocatable: {cpu: '4', memory: 8Gi, pods: '110'}, conditions: [{type: Ready, status: 'True'}]}}";

fn queue(name: &str, spec: &str, state: &str) -> String {
    format!(
        "{{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {{name: {name}}}, spec: {{{spec}}}, status: {{state: {state}}}}}"
    )
}

/// The Volcano Job `a`, an hour old.
fn vcjob(spec: &str, status: &str) -> String {
    format!(
        "{{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {{name: a, namespace: ns, uid: j, creationTimestamp: '2026-11-15T07:00:00Z'}}, spec: {{minAvailable: 1, {spec}}}, status: {{{status}}}}}"
    )
}

const TASK: &str = "tasks: [{name: w, replicas: 1, template: {spec: {containers: [{name: main}]}}}]";
const PENDING: &str = "state: {phase: Pending, lastTransitionTime: '2026-11-15T07:01:00Z'}";

fn pending() -> String {
    vcjob(TASK, PENDING)
}

/// The PodGroup of `a`.
fn group(phase: &str, message: &str) -> String {
    let conditions = match message {
        "" => String::new(),
        message => format!(
            "conditions: [{{type: Unschedulable, status: 'True', lastTransitionTime: '2026-11-15T07:02:00Z', message: {message:?}}}], "
        ),
    };
    format!(
        "{{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {{name: a-j, namespace: ns, uid: g, creationTimestamp: '2026-11-15T07:00:30Z', ownerReferences: [{{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: a, uid: j}}]}}, spec: {{queue: default, minMember: 1, minResources: {{cpu: '8'}}}}, status: {{{conditions}phase: {phase}}}}}"
    )
}

/// A pod of `a`.
fn pod(spec: &str, status: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: a-w-0, namespace: ns, uid: p, creationTimestamp: '2026-11-15T07:02:00Z', annotations: {{scheduling.k8s.io/group-name: a-j, volcano.sh/task-spec: w}}, ownerReferences: [{{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: a, uid: j}}]}}, spec: {{schedulerName: volcano, {spec}}}, status: {{{status}}}}}"
    )
}

/// The status of a pod that no node takes.
fn unscheduled(message: &str) -> String {
    format!(
        "phase: Pending, conditions: [{{type: PodScheduled, status: 'False', reason: Unschedulable, lastTransitionTime: '2026-11-15T07:03:00Z', message: {message:?}}}]"
    )
}

fn asks(requests: &str) -> String {
    format!("containers: [{{name: main, image: any, resources: {{requests: {{{requests}}}}}}}]")
}

/// A pod in no gang.
fn lone(spec: &str, status: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: p, namespace: ns, uid: p, creationTimestamp: '2026-11-15T07:02:00Z'}}, spec: {{{spec}}}, status: {{{status}}}}}"
    )
}

/// A Kubernetes Job `b`.
fn job(spec: &str, status: &str) -> String {
    format!(
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: b, namespace: ns, uid: b, creationTimestamp: '2026-11-15T07:00:00Z'}}, spec: {{parallelism: 1, {spec}}}, status: {{{status}}}}}"
    )
}

fn pod_of_job(status: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: b-x, namespace: ns, uid: bx, creationTimestamp: '2026-11-15T07:02:00Z', ownerReferences: [{{apiVersion: batch/v1, kind: Job, name: b, uid: b}}]}}, spec: {{nodeName: n1}}, status: {{{status}}}}}"
    )
}

fn event(kind: &str, name: &str, reason: &str, message: &str) -> String {
    let kind_of_event = if reason == "Scheduled" { "Normal" } else { "Warning" };
    format!(
        "{{apiVersion: v1, kind: Event, metadata: {{name: e, namespace: ns}}, involvedObject: {{kind: {kind}, name: {name}}}, type: {kind_of_event}, reason: {reason}, lastTimestamp: '2026-11-15T07:50:00Z', message: {message:?}}}"
    )
}

fn flow(spec: &str, status: &str) -> String {
    format!(
        "{{apiVersion: flow.volcano.sh/v1alpha1, kind: JobFlow, metadata: {{name: f, namespace: ns, uid: f, creationTimestamp: '2026-11-15T07:00:00Z'}}, spec: {{{spec}}}, status: {{{status}}}}}"
    )
}

fn template(name: &str) -> String {
    format!(
        "{{apiVersion: flow.volcano.sh/v1alpha1, kind: JobTemplate, metadata: {{name: {name}, namespace: ns}}, spec: {{}}}}"
    )
}

fn cron(api_version: &str, spec: &str, status: &str) -> String {
    format!(
        "{{apiVersion: {api_version}, kind: CronJob, metadata: {{name: c, namespace: ns, uid: c, creationTimestamp: '2026-11-15T07:00:30Z'}}, spec: {{{spec}}}, status: {{{status}}}}}"
    )
}

fn waiting(reason: &str, message: &str) -> String {
    format!(
        "phase: Pending, startTime: '2026-11-15T07:03:00Z', containerStatuses: [{{name: main, image: 'nginx:nope', state: {{waiting: {{reason: {reason}, message: {message:?}}}}}}}]"
    )
}

fn ended(reason: &str, code: u8, message: &str) -> String {
    format!(
        "phase: Failed, containerStatuses: [{{name: main, state: {{terminated: {{reason: {reason}, exitCode: {code}, message: {message:?}, finishedAt: '2026-11-15T07:59:55Z'}}}}}}]"
    )
}

fn case(
    name: &'static str,
    about: &'static str,
    objects: String,
    cause: &'static str,
    says: &'static str,
    remedy: &'static str,
) -> Case {
    Case { name, about, objects, cause, says, remedy }
}

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    let gang_full = "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu";
    let gang_of = |lack: &str| group("Inqueue", &format!("1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 x; 0/1 nodes are available: 1 {lack}"));
    let gang_case = |spec: &str, lack: &str, node: &str| all(&[&pending(), QUEUE, node, &gang_of(lack), &pod(spec, &unscheduled(&format!("0/1 nodes are available: 1 {lack}")))]);
    vec![
        // Capacity.
        case("a pod that is larger than every node", "vcjob/a", all(&[&pending(), QUEUE, NODE, &group("Inqueue", gang_full), &pod(&asks("cpu: 8"), &unscheduled("0/1 nodes are available: 1 Insufficient cpu"))]),
            "LargerThanNodes", "it needs 8 cpu, and the largest node n1 has 4", "lower the request for cpu to at most 4"),
        case("a cluster that is full now", "vcjob/a", all(&[&pending(), QUEUE, NODE, &group("Inqueue", gang_full), &pod(&asks("cpu: 2"), &unscheduled("0/1 nodes are available: 1 Insufficient cpu")),
                &lone("nodeName: n1, containers: [{name: m, resources: {requests: {cpu: 3}}}]", "phase: Running")]),
            "NodesFull", "it needs 2 cpu, and the freest node has 1 left", "wait until other jobs have ended"),
        case("a resource that no node has", "pod/p", all(&[&lone(&asks("nvidia.com/gpu: 1"), &unscheduled("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")), NODE]),
            "ResourceUnknown", "no node has the resource nvidia.com/gpu", "--capacity nvidia.com/gpu=1"),
        case("too many pods on a node", "pod/p", all(&[&lone(&asks("cpu: 1"), &unscheduled("0/1 nodes are available: 1 Too many pods. preemption: not eligible")), NODE]),
            "NodesCrowded", "at most 110", "wait until pods have ended"),
        case("a gang that Krafla does not admit, because nothing is left", "vcjob/a", all(&[&pending(), QUEUE, NODE, &group("Pending", "not admitted: it needs 8 cpu, and not enough is left of the cluster's 16")]),
            "ClusterFull", "not enough is left of the cluster's 16", "wait until other jobs have ended"),
        case("a gang that can never fit", "podgroup/a-j", all(&[QUEUE, NODE, &group("Pending", "not admitted: it needs 8 cpu and can never fit, because all nodes that take pods have 4: ask for less, or add nodes")]),
            "NeverFitsNodes", "all nodes that take pods have 4", "add nodes with more cpu"),
        case("a gang that Volcano cannot place", "vcjob/a", all(&[&pending(), QUEUE, NODE, &group("Inqueue", "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Unschedulable"),
                &pod(&asks("cpu: 8"), &unscheduled("0/1 nodes are unavailable: 1 Insufficient cpu."))]),
            "LargerThanNodes", "it needs 8 cpu", "lower the request for cpu"),
        case("a gang that is not admitted, and whose pods are larger than every node", "vcjob/a", all(&[&pending().replace("{name: main}", "{name: main, resources: {requests: {cpu: 5}}}"), QUEUE, NODE, &NODE.replace("n1", "n2"), &group("Pending", "not admitted: it needs 5 cpu, and not enough is left of the cluster's 8")]),
            "LargerThanNodes", "it needs 5 cpu, and the largest node", "lower the request for cpu to at most 4"),
        // Limits of the namespace.
        case("a quota that is used up", "vcjob/a", all(&[&pending(), QUEUE, &group("Inqueue", ""), &event("Job", "a", "FailedCreate", "pods \"a-w-0\" is forbidden: exceeded quota: small, requested: cpu=2, used: cpu=3, limited: cpu=4")]),
            "QuotaExceeded", "exceeded quota: small", "kubectl patch resourcequota/small -n ns --type merge -p '{\"spec\":{\"hard\":{\"cpu\":\"5\"}}}'"),
        case("a quota, of a Kubernetes Job", "job/b", all(&[&job("", "startTime: '2026-11-15T07:00:01Z'"), &event("Job", "b", "FailedCreate", "Error creating: pods \"b-x\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2")]),
            "QuotaExceeded", "limited: pods=2", "\"pods\":\"3\""),
        case("a LimitRange", "job/b", all(&[&job("", "startTime: '2026-11-15T07:00:01Z'"), &event("Job", "b", "FailedCreate", "Error creating: pods \"b-x\" is forbidden: maximum cpu usage per Container is 1, but limit is 2"),
                "{apiVersion: v1, kind: LimitRange, metadata: {name: lr, namespace: ns}, spec: {limits: [{type: Container, max: {cpu: '1'}}]}}"]),
            "AboveLimit", "maximum cpu usage per Container is 1", "kubectl patch limitrange/lr -n ns --type json"),
        // Queues.
        case("a queue that is closed", "vcjob/a", all(&[&pending(), &queue("default", "", "Closed"), &group("Pending", "")]),
            "QueueClosed", "queue default is Closed", "krafla vcctl queue operate --action open --name default"),
        case("a queue that does not exist", "vcjob/a", all(&[&vcjob(&format!("queue: research, {TASK}"), PENDING), QUEUE]),
            "QueueMissing", "queue research does not exist", "krafla vcctl queue create --name research"),
        case("a queue whose share is used up", "vcjob/a", all(&[&pending(), QUEUE, NODE, &group("Inqueue", "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 over queue default's share; queue default has its share of cpu, and others wait for it"), &pod(&asks("cpu: 1"), "phase: Pending")]),
            "QueueShare", "queue default has its share of cpu", "wait until other jobs of the queue have ended"),
        case("a queue whose capability is used up", "vcjob/a", all(&[&pending(), &queue("default", "capability: {cpu: '4'}", "Open"), &group("Pending", "not admitted: it needs 8 cpu and can never fit, because queue default may use 4: ask for less, or let it use more")]),
            "NeverFitsQueue", "queue default may use 4", "kubectl patch queue/default --type merge -p '{\"spec\":{\"capability\":{\"cpu\":\"12\"}}}'"),
        case("a parent queue that is full", "vcjob/a", all(&[&pending(), &queue("default", "parent: dept", "Open"), &queue("dept", "capability: {cpu: '4'}", "Open"), &group("Pending", "not admitted: it needs 8 cpu, and not enough is left of queue dept's 4")]),
            "QueueLimit", "queue default is below dept", "kubectl patch queue/dept"),
        case("a parent queue that is closed", "vcjob/a", all(&[&pending(), &queue("default", "parent: dept", "Open"), &queue("dept", "", "Closed"), &group("Pending", "")]),
            "QueueClosed", "queue dept is Closed", "--action open --name dept"),
        case("a queue that Volcano says is used up", "vcjob/a", all(&[&pending(), &queue("default", "capability: {cpu: '4'}", "Open"), &group("Pending", ""), &event("PodGroup", "a-j", "Unschedulable", "queue resource quota insufficient: insufficient cpu")]),
            "QueueLimit", "queue default may not use more cpu", "kubectl patch queue/default"),
        case("a queue, asked about itself", "queue/default", all(&[&queue("default", "", "Closing")]), "QueueClosed", "Closing", "--action open"),
        case("a queue whose first gang waits", "queue/default", all(&[QUEUE, &group("Pending", "not admitted: it needs 8 cpu, and not enough is left of the cluster's 16")]), "ClusterFull", "not enough is left", "wait until"),
        // Missing objects.
        case("a claim that does not exist", "vcjob/a", all(&[&pending(), QUEUE, NODE, &gang_of("x"), &pod("volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]", &unscheduled("0/1 nodes are available: persistentvolumeclaim \"data\" not found"))]).replace("1 x; 0/1 nodes are available: 1 x", "1 persistentvolumeclaim; 0/1 nodes are available: persistentvolumeclaim \\\"data\\\" not found"),
            "ClaimMissing", "PersistentVolumeClaim data, which does not exist", "\"kind\":\"PersistentVolumeClaim\""),
        case("a ConfigMap that does not exist", "vcjob/a", all(&[&vcjob(TASK, "state: {phase: Pending}"), QUEUE, NODE, &group("Running", ""), &pod("nodeName: n1, containers: [{name: main, env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: a}}}]}]", &waiting("CreateContainerConfigError", "configmap \"settings\" not found"))]),
            "NotFound", "configmap \"settings\" not found", "kubectl create configmap settings -n ns"),
        case("a ConfigMap that a volume needs, in the words of Krafla's node", "pod/p", all(&[&lone("nodeName: n1", &waiting("ContainerCreating", "cannot create a volume: configmap \"nowhere\" not found")), NODE]),
            "NotFound", "configmap \"nowhere\" not found", "kubectl create configmap nowhere -n ns"),
        case("a Secret that a volume needs", "pod/p", all(&[&lone("nodeName: n1, volumes: [{name: s, secret: {secretName: key}}]", "phase: Pending, startTime: '2026-11-15T07:03:00Z', containerStatuses: [{name: main, state: {waiting: {reason: ContainerCreating}}}]"), NODE, &event("Pod", "p", "FailedMount", "MountVolume.SetUp failed for volume \"s\" : secret \"key\" not found")]),
            "NotFound", "secret \"key\" not found", "kubectl create secret generic key -n ns"),
        case("a Secret, before any Event", "pod/p", all(&[&lone("nodeName: n1, containers: [{name: main, envFrom: [{secretRef: {name: key}}]}]", "phase: Pending, startTime: '2026-11-15T07:59:59Z'"), NODE, "absent: secret/key"]),
            "NotFound", "secret \"key\" not found", "kubectl create secret generic key"),
        case("a PriorityClass that does not exist", "job/b", all(&[&job("", "startTime: '2026-11-15T07:00:01Z'"), &event("Job", "b", "FailedCreate", "Error creating: pods \"b-\" is forbidden: no PriorityClass with name urgent was found")]),
            "PriorityClassMissing", "urgent", "kubectl create priorityclass urgent --value=1000"),
        case("a ServiceAccount that does not exist", "vcjob/a", all(&[&pending(), QUEUE, &group("Inqueue", ""), &event("Job", "a", "FailedCreate", "pods \"a-w-0\" is forbidden: error looking up service account ns/runner: serviceaccount \"runner\" not found")]),
            "AccountMissing", "runner", "kubectl create serviceaccount runner -n ns"),
        case("a RuntimeClass that does not exist", "job/b", all(&[&job("", "startTime: '2026-11-15T07:00:01Z'"), &event("Job", "b", "FailedCreate", "Error creating: pods \"b-\" is forbidden: pod rejected: RuntimeClass \"gvisor\" not found")]),
            "RuntimeClassMissing", "gvisor", "\"kind\":\"RuntimeClass\""),
        case("a JobTemplate that does not exist", "jobflow/f", all(&[&flow("flows: [{name: x}]", "state: {phase: Pending}")]), "TemplateMissing", "step x has no JobTemplate x", "kubectl apply -n ns -f x.yaml"),
        case("a scheduler that does not run", "pod/p", all(&[&lone("schedulerName: fancy", "phase: Pending"), NODE]), "NotHandled", "scheduler fancy has not handled it", "start the scheduler fancy"),
        case("a PodGroup that no scheduler has seen", "vcjob/a", all(&[&pending(), QUEUE, NODE, &group("Pending", "")]), "NotHandled", "scheduler volcano", "start the scheduler volcano"),
        // Dependencies.
        case("a task that waits for another", "vcjob/a", all(&[&vcjob("tasks: [{name: w, replicas: 1}, {name: late, replicas: 1, dependsOn: {name: [w]}}]", "state: {phase: Running}"), QUEUE, NODE, &pod("nodeName: n1", "phase: Running")]),
            "TaskDependsOn", "task late waits for task w", "volcano.sh/task-spec=w"),
        case("a step that waits for another", "jobflow/f", all(&[&flow("flows: [{name: x}, {name: next, dependsOn: {targets: [x]}}]", "state: {phase: Running}"), &template("x"), &template("next"), &vcjob(TASK, "state: {phase: Running}").replace("name: a,", "name: f-x,"), QUEUE]),
            "StepDependsOn", "step next waits for x (Running)", "krafla why vcjob/f-x -n ns"),
        case("a step that waits for a probe", "jobflow/f", all(&[&flow("flows: [{name: x}, {name: next, dependsOn: {targets: [x], probe: {tcpSocketList: [{port: 80}]}}}]", "state: {phase: Running}"), &template("x"), &template("next"), &vcjob(TASK, "state: {phase: Running}").replace("name: a,", "name: f-x,"), QUEUE, &event("JobFlow", "f", "WaitingForProbe", "flow next waits until job f-x answers: connection refused")]),
            "StepWaitsForProbe", "connection refused", "krafla why vcjob/f-x"),
        case("a step whose job failed", "jobflow/f", all(&[&flow("flows: [{name: x}]", "state: {phase: Running}"), &template("x"), &vcjob(TASK, "state: {phase: Failed}").replace("name: a,", "name: f-x,"), QUEUE]),
            "StepFailed", "step x failed", "kubectl delete vcjob f-x -n ns"),
        // Containers.
        case("a pause after failures", "job/b", all(&[&job("backoffLimit: 6", "startTime: '2026-11-15T07:00:01Z', failed: 2"), NODE, &pod_of_job(&ended("Error", 3, ""))]),
            "Exited", "container main ended with exit code 3", "kubectl logs b-x -n ns -c main"),
        case("a crash loop", "vcjob/a", all(&[&vcjob(TASK, "state: {phase: Running}"), QUEUE, NODE, &pod("nodeName: n1", "phase: Running, containerStatuses: [{name: main, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff, message: 'back-off 40s restarting failed container=main pod=a-w-0_ns(p)'}}, lastState: {terminated: {exitCode: 1, reason: Error, finishedAt: '2026-11-15T07:59:40Z'}}}]")]),
            "Exited", "ended with exit code 1", "kubectl logs a-w-0 -n ns -c main --previous"),
        case("an image that does not exist", "vcjob/a", all(&[&vcjob(TASK, "state: {phase: Pending}"), QUEUE, NODE, &group("Running", ""), &pod("nodeName: n1", &waiting("ImagePullBackOff", "Back-off pulling image \"nginx:nope\""))]),
            "ImagePullFailed", "nginx:nope", "correct the image \"nginx:nope\""),
        case("a command that is not in the image", "pod/p", all(&[&lone("nodeName: n1", &ended("StartError", 128, "failed to create containerd task: exec: \"trian\": executable file not found in $PATH: unknown")), NODE]),
            "StartFailed", "the image has no command \"trian\"", "correct the command \"trian\""),
        case("a command that this machine does not have", "vcjob/a", all(&[&vcjob(TASK, "state: {phase: Failed, reason: TooFewSucceeded, message: '0 of 1 pods succeeded, the job needs 1'}"), QUEUE, NODE, &pod("nodeName: n1", &ended("StartError", 128, "command \"trian\" was not found in PATH (/bin): containers run on this machine itself, so install it here, or name it by its full path"))]),
            "StartFailed", "command \"trian\" was not found", "correct the command \"trian\""),
        case("too little memory", "pod/p", all(&[&lone("nodeName: n1, containers: [{name: main, resources: {limits: {memory: 64Mi}}}]", &ended("OOMKilled", 137, "")), NODE]),
            "OutOfMemory", "used more memory than its limit", "raise resources.limits.memory from 64Mi, for example to 128Mi"),
        case("an evicted pod", "pod/p", all(&[&lone("nodeName: n1", "phase: Failed, reason: Evicted, message: 'The node was low on resource: memory.'"), NODE]),
            "Evicted", "The node was low on resource: memory", "set a policy for PodEvicted"),
        // Nodes.
        case("a node selector that no node matches", "vcjob/a", gang_case("nodeSelector: {disk: ssd}", "node(s) didn't match Pod's node affinity/selector", NODE),
            "SelectorUnmatched", "no node matches nodeSelector disk=ssd", "kubectl label node n1 disk=ssd"),
        case("an affinity that no node matches", "vcjob/a", gang_case("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [b]}]}]}}}", "node(s) didn't match Pod's node affinity/selector", NODE),
            "AffinityUnmatched", "required nodeAffinity", "kubectl label node n1 zone=b"),
        case("a taint", "vcjob/a", gang_case("", "node(s) had untolerated taint(s)", &NODE.replace("status:", "spec: {taints: [{key: gpu, value: 'true', effect: NoSchedule}]}, status:")),
            "Tainted", "node n1 has the taint gpu=true:NoSchedule", "kubectl taint node n1 gpu:NoSchedule-"),
        case("a taint, in kube-scheduler's words", "pod/p", all(&[&lone("", &unscheduled("0/1 nodes are available: 1 node(s) had untolerated taint {gpu: true}. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.")), &NODE.replace("status:", "spec: {taints: [{key: gpu, value: 'true', effect: NoSchedule}]}, status:")]),
            "Tainted", "gpu=true:NoSchedule", "kubectl taint node n1 gpu:NoSchedule-"),
        case("a cordoned node", "vcjob/a", gang_case("", "node(s) were unschedulable", &NODE.replace("status:", "spec: {unschedulable: true}, status:")),
            "NodesCordoned", "node n1 is cordoned", "kubectl uncordon n1"),
        case("a scheduling gate", "vcjob/a", all(&[&pending(), QUEUE, NODE, &group("Inqueue", "pod group is not ready, 1 Gated; 1 more needed"), &pod("schedulingGates: [{name: example.com/wait}]", "phase: Pending")]),
            "Gated", "held back by its gates example.com/wait", "/spec/schedulingGates"),
        case("a gang that is not admitted, because the node is cordoned", "vcjob/a", all(&[&pending(), QUEUE, &NODE.replace("status:", "spec: {unschedulable: true}, status:"), &group("Pending", "not admitted: it needs 1 pods, and not enough is left of the cluster's 0")]),
            "NodesCordoned", "node n1 is cordoned", "kubectl uncordon n1"),
        // Stopped, ended.
        case("a suspended Kubernetes Job", "job/b", job("suspend: true", ""), "Suspended", "it is suspended", "kubectl patch job/b -n ns --type merge -p '{\"spec\":{\"suspend\":false}}'"),
        case("a deadline that passed", "job/b", all(&[&job("activeDeadlineSeconds: 60", "startTime: '2026-11-15T07:00:01Z', conditions: [{type: Failed, status: 'True', reason: DeadlineExceeded, message: Job was active longer than specified deadline, lastTransitionTime: '2026-11-15T07:01:01Z'}]")]),
            "DeadlineExceeded", "activeDeadlineSeconds 60", "raise activeDeadlineSeconds above 60"),
        case("a back-off limit that is reached", "job/b", all(&[&job("backoffLimit: 2", "startTime: '2026-11-15T07:00:01Z', failed: 3, conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: Job has reached the specified backoff limit}]")]),
            "BackoffLimit", "backoffLimit 2", "raise backoffLimit"),
        case("a Job without tries left", "vcjob/a", all(&[&vcjob(&format!("maxRetry: 3, {TASK}"), "retryCount: 3, state: {phase: Failed, reason: RetriesExhausted, message: 'all 3 retries are used up; the last: pod a-w-0 failed'}"), QUEUE]),
            "RetriesExhausted", "all 3 retries are used up; the last: pod a-w-0 failed", "raise maxRetry"),
        case("a policy that aborted the job", "vcjob/a", all(&[&vcjob(&format!("policies: [{{event: PodFailed, action: AbortJob}}], {TASK}"), "state: {phase: Aborted, reason: AbortJob, message: pod a-w-0 failed}"), QUEUE]),
            "PolicyActed", "the policy AbortJob of PodFailed acted because of pod a-w-0 failed", "krafla vcctl job resume --name a -n ns"),
        case("a job that a person suspended", "vcjob/a", all(&[&vcjob(TASK, "state: {phase: Aborted, reason: AbortJob, message: command a-abortjob-x7 was issued}"), QUEUE]),
            "Commanded", "command a-abortjob-x7 was issued", "krafla vcctl job resume"),
        case("a job that the controllers' own check objects to", "vcjob/a", all(&[&vcjob(TASK, "state: {phase: Pending, reason: InvalidSpec, message: 'job has duplicated task names; create the job anew without that'}"), QUEUE]),
            "Contradictory", "duplicated task names", "correct the field"),
        case("a finalizer", "vcjob/a", all(&[&pending().replace("uid: j,", "uid: j, deletionTimestamp: '2026-11-15T07:30:00Z', finalizers: [example.com/keep],"), QUEUE]),
            "Deleted", "finalizers example.com/keep", "'{\"metadata\":{\"finalizers\":null}}'"),
        // CronJobs.
        case("a suspended CronJob", "cronjob/c", cron("batch/v1", "schedule: '* * * * *', suspend: true", ""), "CronSuspended", "spec.suspend is true", "\"suspend\":false"),
        case("a CronJob whose last run has not ended", "cronjob/c", all(&[&cron("batch/v1", "schedule: '*/5 * * * *', concurrencyPolicy: Forbid", "lastScheduleTime: '2026-11-15T07:30:00Z', active: [{name: c-1}]")]),
            "RunActive", "c-1 has not ended", "krafla why job/c-1 -n ns"),
        case("a CronJob of Volcano whose last run has not ended", "vccronjob/c", all(&[&cron("batch.volcano.sh/v1alpha1", "schedule: '*/5 * * * *', concurrencyPolicy: Forbid", "lastScheduleTime: '2026-11-15T07:30:00Z', active: [{name: c-1}]")]),
            "RunActive", "c-1 has not ended", "krafla why vcjob/c-1 -n ns"),
        case("a CronJob that waits for its time", "cronjob/c", cron("batch/v1", "schedule: '0 12 * * *'", "lastScheduleTime: '2026-11-14T12:00:00Z'"), "NextRun", "2026-11-15T12:00:00Z", "kubectl create job c-now -n ns --from=cronjob/c"),
        case("a CronJob in a time zone", "cronjob/c", cron("batch/v1", "schedule: '0 12 * * *', timeZone: Europe/Berlin", "lastScheduleTime: '2026-11-14T12:00:00Z'"), "NextRun", "2026-11-15T12:00:00+01:00", "--from=cronjob/c"),
        case("a CronJob that missed its deadline", "cronjob/c", cron("batch/v1", "schedule: '30 7 * * *', startingDeadlineSeconds: 20", ""), "RunMissed", "startingDeadlineSeconds 20", "startingDeadlineSeconds"),
        case("a time zone that does not exist", "cronjob/c", cron("batch/v1", "schedule: '* * * * *', timeZone: Mars/Base", ""), "ZoneUnknown", "Mars/Base", "timeZone"),
        case("a schedule that is wrong", "cronjob/c", cron("batch/v1", "schedule: 'every day'", ""), "ScheduleInvalid", "spec.schedule", "schedule"),
        case("a schedule that is never due", "vccronjob/c", cron("batch.volcano.sh/v1alpha1", "schedule: '0 0 31 2 *'", ""), "NeverDue", "0 0 31 2 *", "schedule"),
        case("a run that was refused", "cronjob/c", all(&[&cron("batch/v1", "schedule: '*/20 * * * *'", "lastScheduleTime: '2026-11-15T07:00:00Z'"), &event("CronJob", "c", "FailedCreate", "jobs.batch \"c-1\" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=5, limited: count/jobs.batch=5").replace("07:50:00Z", "08:00:00Z")]),
            "QuotaExceeded", "exceeded quota: q", "\"count/jobs.batch\":\"6\""),
        case("a CronJob whose last run failed", "cronjob/c", all(&[&cron("batch/v1", "schedule: '0 12 * * *'", "lastScheduleTime: '2026-11-14T12:00:00Z'"), &job("backoffLimit: 0", "failed: 1, conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]").replace("uid: b,", "uid: b, ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: c, uid: c}],")]),
            "BackoffLimit", "backoffLimit 0", "raise backoffLimit"),
        case("a CronJob that no controller looks after", "cronjob/c", cron("batch/v1", "schedule: '58 7 * * *'", "lastScheduleTime: '2026-11-15T07:00:00Z'"), "NoController", "no controller", "krafla controller-manager"),
        // Controllers.
        case("no controller at work", "vcjob/a", vcjob(TASK, ""), "NoController", "no controller has ever acquired the lease", "krafla controller-manager"),
        case("a lease that is held elsewhere", "vcjob/a", all(&[&vcjob(TASK, ""), "lease: other_1"]), "NoController", "other_1 holds the lease", "see the logs of the lease holder other_1"),
        case("another controller is named", "job/b", job("managedBy: kueue.x-k8s.io/multikueue", ""), "ManagedBy", "kueue.x-k8s.io/multikueue", "run the controller kueue"),
        // More of the same kinds.
        case("a quota that wants requests", "job/b", all(&[&job("", "startTime: '2026-11-15T07:00:01Z'"), &event("Job", "b", "FailedCreate", "Error creating: pods \"b-x\" is forbidden: failed quota: q: must specify limits.memory for: main")]),
            "QuotaUnspecified", "must specify limits.memory", "set limits.memory for: main"),
        case("a request below the minimum", "vcjob/a", all(&[&vcjob(TASK, "state: {phase: Pending, reason: FailedCreate, message: 'pods \"a-w-0\" is forbidden: minimum memory usage per Container is 1Gi, but request is 64Mi'}"), QUEUE, "{apiVersion: v1, kind: LimitRange, metadata: {name: lr, namespace: ns}, spec: {limits: [{type: Container, min: {memory: 1Gi}}]}}"]),
            "BelowLimit", "minimum memory usage per Container is 1Gi", "/spec/limits/0/min/memory"),
        case("a webhook that refuses pods", "job/b", all(&[&job("", "startTime: '2026-11-15T07:00:01Z'"), &event("Job", "b", "FailedCreate", "Error creating: admission webhook \"check.example.com\" denied the request: no latest tag")]),
            "WebhookDenied", "no latest tag", "change what the webhook objects to"),
        case("a namespace that is being deleted", "job/b", all(&[&job("", "startTime: '2026-11-15T07:00:01Z'"), &event("Job", "b", "FailedCreate", "Error creating: pods \"b-x\" is forbidden: unable to create new content in namespace ns because it is being terminated")]),
            "NamespaceTerminating", "being terminated", "another namespace"),
        case("a claim without a volume", "pod/p", all(&[&lone("volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]", "phase: Pending"), NODE, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: ns, uid: c}, status: {phase: Pending}}", &event("PersistentVolumeClaim", "data", "ProvisioningFailed", "storageclass.storage.k8s.io \"fast\" not found")]),
            "ClaimWaits", "storageclass.storage.k8s.io \"fast\" not found", "kubectl describe pvc data -n ns"),
        case("a task that waits for one that does not exist", "vcjob/a", all(&[&vcjob("tasks: [{name: late, replicas: 1, dependsOn: {name: [w]}}]", "state: {phase: Pending}"), QUEUE, &group("Running", "")]), "TaskUnknown", "task late waits for task w, which does not exist", "correct dependsOn.name"),
        case("a task that waits for one whose image is missing", "vcjob/a", all(&[&vcjob("tasks: [{name: w, replicas: 1}, {name: late, replicas: 1, dependsOn: {name: [w]}}]", "state: {phase: Pending}"), QUEUE, NODE, &group("Running", ""), &pod("nodeName: n1", &waiting("ErrImagePull", "not found"))]),
            "ImagePullFailed", "nginx:nope", "correct the image"),
        case("a step whose job waits for a quota", "jobflow/f", all(&[&flow("flows: [{name: x}]", "state: {phase: Pending}"), &template("x"), QUEUE, &vcjob(TASK, "state: {phase: Pending, reason: FailedCreate, message: 'pods \"a-w-0\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'}").replace("name: a,", "name: f-x,")]),
            "QuotaExceeded", "exceeded quota: q", "\"pods\":\"2\""),
        case("a step that waits for an unknown one", "jobflow/f", all(&[&flow("flows: [{name: x, dependsOn: {targets: [gone]}}]", "state: {phase: Pending}"), &template("x")]), "StepUnknown", "waits for gone", "correct dependsOn.targets"),
        case("a node that does not exist", "pod/p", all(&[&lone("nodeName: gone", "phase: Pending"), NODE]), "NodeMissing", "node gone does not exist", "name an existing node"),
        case("a node that is not ready", "pod/p", all(&[&lone("nodeName: n1", "phase: Running, startTime: '2026-11-15T07:03:00Z'"), &NODE.replace("status: 'True'", "status: Unknown")]), "NodesNotReady", "node n1 is not ready", "kubectl describe node n1"),
        case("a hostPort that is taken", "pod/p", all(&[&lone("containers: [{name: m, ports: [{hostPort: 8080}]}]", &unscheduled("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.")), NODE]), "PortTaken", "hostPort 8080", "use another hostPort"),
        case("a spread that is too strict", "pod/p", all(&[&lone("", &unscheduled("0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints.")), NODE]), "PodsUnmatched", "topologySpreadConstraints", "correct topologySpreadConstraints"),
        case("an init container that fails", "pod/p", all(&[&lone("nodeName: n1", "phase: Pending, initContainerStatuses: [{name: setup, state: {waiting: {reason: CrashLoopBackOff, message: 'back-off 10s restarting failed container=setup pod=p_ns(p)'}}, lastState: {terminated: {exitCode: 2, reason: Error}}}]"), NODE]), "Exited", "container setup ended with exit code 2", "-c setup --previous"),
        case("a readiness probe that fails", "pod/p", all(&[&lone("nodeName: n1", "phase: Running, containerStatuses: [{name: main, ready: false, state: {running: {}}}]"), NODE, &event("Pod", "p", "Unhealthy", "Readiness probe failed: connection refused")]), "ProbeFails", "connection refused", "correct the probe"),
        case("a key that a ConfigMap does not have", "pod/p", all(&[&lone("nodeName: n1", &waiting("CreateContainerConfigError", "couldn't find key a in ConfigMap ns/settings")), NODE]), "KeyMissing", "key a", "kubectl patch configmap/settings -n ns --type merge -p '{\"data\":{\"a\":\"VALUE\"}}'"),
        case("a Job of which an index failed", "job/b", job("", "failedIndexes: '1,3', conditions: [{type: Failed, status: 'True', reason: FailedIndexes, message: Job has failed indexes}]"), "IndexesFailed", "indexes 1,3 failed", "see what the failed pods printed"),
        case("a policy that ended a Job", "job/b", job("", "conditions: [{type: Failed, status: 'True', reason: PodFailurePolicy, message: Container main for pod ns/b-x failed with exit code 42 matching FailJob rule at index 0}]"), "FailurePolicy", "exit code 42", "correct the cause"),
        case("a Job that Volcano aborted", "vcjob/a", all(&[&vcjob(&format!("policies: [{{event: PodEvicted, action: AbortJob}}], {TASK}"), "state: {phase: Aborted}"), QUEUE, &event("Job", "a", "ExecuteAction", "Start to execute action AbortJob")]), "PolicyActed", "AbortJob of PodEvicted", "krafla vcctl job resume"),
        case("a gang that is first to wait for others", "podgroup/a-j", all(&[QUEUE, &group("Inqueue", "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits behind ns/first in its first in, first out queue")]), "Behind", "waits behind ns/first", "krafla why podgroup/first -n ns"),
        case("a pod whose PodGroup does not exist", "pod/a-w-0", all(&[&pod("", "phase: Pending"), NODE]), "NotFound", "podgroup \"a-j\" not found", "\"kind\":\"PodGroup\""),
        case("a pod that its node does not let go", "pod/a-w-0", all(&[&pod("nodeName: n1", "phase: Running").replace("uid: p,", "uid: p, deletionTimestamp: '2026-11-15T07:59:30Z',"), NODE]), "PodEnding", "has not terminated yet", "--force"),
        // Gangs.
        case("minAvailable is larger than replicas", "vcjob/a", all(&[&pending().replace("minAvailable: 1", "minAvailable: 3"), QUEUE]), "MinAvailable", "minAvailable is 3, and all tasks together have 1", "'{\"spec\":{\"minAvailable\":1}}'"),
        case("a gang waits for the rest", "vcjob/a", all(&[&pending().replace("minAvailable: 1", "minAvailable: 4").replace("replicas: 1", "replicas: 4"), QUEUE, NODE, &group("Inqueue", "pod group is not ready, 2 Pending, 4 minAvailable"), &pod(&asks("cpu: 1"), "phase: Pending")]),
            "GangNotReady", "2 Pending, 4 minAvailable", "kubectl get pods,podgroup -n ns"),
        case("pods of the last try have not ended", "vcjob/a", all(&[&vcjob(TASK, "state: {phase: Restarting, reason: RestartJob, message: pod a-w-0 failed}"), QUEUE, NODE, &pod("nodeName: n1", "phase: Running").replace("uid: p,", "uid: p, deletionTimestamp: '2026-11-15T07:59:30Z',")]),
            "PodEnding", "pod a-w-0 has not terminated yet", "kubectl delete pod a-w-0 -n ns --force"),
    ]
}

#[test]
fn each_situation_names_its_cause_and_a_remedy() {
    let mut wrong = Vec::new();
    let cases = cases();
    assert!(cases.len() >= 40);
    for Case { name, about, objects, cause, says, remedy } in &cases {
        let diagnosis = diagnosis(about, objects);
        let shown = screen(&diagnosis, now());
        let word = diagnosis.cause().map_or("nothing", |link| link.reason.root().word());
        let outer = diagnosis.cause().map_or("nothing", |link| link.reason.word());
        let told: Vec<String> = diagnosis.chain.iter().map(|link| link.reason.to_string()).collect();
        let remedies: Vec<String> = diagnosis
            .remedies
            .iter()
            .map(|it| format!("{} {}", it.what, it.command.as_deref().unwrap_or("")))
            .collect();
        let is_right = [word, outer].contains(cause)
            && told.iter().any(|it| it.contains(says))
            && remedies.iter().any(|it| it.contains(remedy));
        if !is_right {
            wrong.push(format!("== {name}: want {cause}, {says:?}, {remedy:?}; found {word}:\n{shown}"));
        }
        assert!(json(&diagnosis, now())["remedies"].is_array());
    }
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn objects_that_make_progress_have_no_cause() {
    let started = "phase: Running, containerStatuses: [{name: main, ready: true, state: {running: {}}}]";
    let fresh = |object: String| object.replace("07:00:00Z", "07:59:58Z").replace("07:02:00Z", "07:59:58Z");
    for (about, objects) in [
        ("vcjob/a", all(&[&vcjob(TASK, "state: {phase: Completed}"), QUEUE])),
        (
            "vcjob/a",
            all(&[&vcjob(TASK, "state: {phase: Running}"), QUEUE, NODE, &pod("nodeName: n1", started)]),
        ),
        ("vcjob/a", all(&[&fresh(vcjob(TASK, "")), QUEUE])),
        ("pod/p", all(&[&lone("nodeName: n1", started), NODE])),
        ("pod/p", all(&[&lone("nodeName: n1", "phase: Succeeded"), NODE])),
        ("pod/p", all(&[&fresh(lone("", "phase: Pending")), NODE])),
        ("job/b", job("", "startTime: '2026-11-15T07:00:01Z', active: 1")),
        (
            "job/b",
            job("", "startTime: '2026-11-15T07:00:01Z', conditions: [{type: Complete, status: 'True'}]"),
        ),
        ("jobflow/f", flow("flows: [{name: x}]", "state: {phase: Succeed}")),
        ("queue/default", QUEUE.to_owned()),
        ("podgroup/a-j", all(&[QUEUE, &group("Running", "")])),
    ] {
        let diagnosis = diagnosis(about, &objects);
        assert_eq!(diagnosis.chain, [], "{about}: {objects}");
        assert_eq!(diagnosis.remedies, [], "{about}");
    }
}

#[test]
fn what_was_not_read_is_not_missing() {
    let mut facts = Facts::new(now());
    for yaml in [
        pending(),
        group("Inqueue", ""),
        pod(
            "nodeName: n1, volumes: [{name: d, persistentVolumeClaim: {claimName: x}}]",
            "phase: Pending, startTime: '2026-11-15T07:59:59Z'",
        ),
    ] {
        let object: Value = serde_saphyr::from_str(&yaml).unwrap();
        let resource =
            Resource::from_manifest(object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        facts.add(resource.unwrap(), object);
    }
    let diagnosis = diagnose(&facts, &subject("vcjob/a")).unwrap();
    assert_eq!(diagnosis.chain, [], "neither queue nor node nor claim are known to be missing");
}

/// What comes next, with the distance in seconds where a time is known.
fn next(about: &str, objects: &str) -> Vec<(String, Option<i64>)> {
    let distance = |at: Time| at.0.as_second() - now().0.as_second();
    diagnosis(about, objects).next.into_iter().map(|it| (it.what, it.at.map(distance))).collect()
}

#[test]
fn what_comes_next_is_told_with_its_time() {
    let finished = "state: {phase: Completed, lastTransitionTime: '2026-11-15T07:59:00Z'}";
    let backing_off = job("backoffLimit: 6", "startTime: '2026-11-15T07:59:00Z', failed: 2");
    let crashing = "phase: Running, startTime: '2026-11-15T07:59:00Z', containerStatuses: [{name: main, state: {waiting: {reason: CrashLoopBackOff, message: 'back-off 1m20s restarting failed container=main pod=p_ns(p)'}}, lastState: {terminated: {exitCode: 1, finishedAt: '2026-11-15T07:59:50Z'}}}]";
    let patient =
        vcjob(&format!("policies: [{{event: PodPending, action: AbortJob, timeout: 1h}}], {TASK}"), PENDING);
    for (about, objects, what, seconds) in [
        (
            "vcjob/a",
            vcjob(&format!("ttlSecondsAfterFinished: 100, {TASK}"), finished),
            "the job is deleted",
            40,
        ),
        (
            "job/b",
            job(
                "ttlSecondsAfterFinished: 60",
                "completionTime: '2026-11-15T07:59:30Z', startTime: '2026-11-15T07:00:00Z', conditions: [{type: Complete, status: 'True'}]",
            ),
            "the job is deleted",
            30,
        ),
        ("job/b", all(&[&backing_off, NODE, &pod_of_job(&ended("Error", 1, ""))]), "the next try starts", 15),
        (
            "job/b",
            job("activeDeadlineSeconds: 90", "startTime: '2026-11-15T07:59:00Z', active: 1"),
            "the job fails",
            30,
        ),
        ("pod/p", all(&[&lone("nodeName: n1", crashing), NODE]), "container main starts again", 70),
        (
            "pod/p",
            all(&[&lone("nodeName: n1, activeDeadlineSeconds: 600", crashing), NODE]),
            "the pod fails",
            540,
        ),
        (
            "vcjob/a",
            all(&[&patient, QUEUE, &pod("", "phase: Pending")]),
            "the policy AbortJob of PodPending acts",
            120,
        ),
        (
            "cronjob/c",
            cron("batch/v1", "schedule: '*/10 * * * *'", "lastScheduleTime: '2026-11-15T08:00:00Z'"),
            "the next run is due",
            600,
        ),
    ] {
        let next = next(about, &objects);
        let found = next.iter().find(|(it, _)| it.starts_with(what));
        assert_eq!(found.and_then(|(_, at)| *at), Some(seconds), "{about}: {next:?}");
    }
    let suspended = next("cronjob/c", &cron("batch/v1", "schedule: '* * * * *', suspend: true", ""));
    assert_eq!(suspended, [("nothing, until it is resumed".to_owned(), None)]);
}

#[test]
fn a_gang_knows_its_place_in_the_queue() {
    let other = |name: &str, made: &str, more: &str| {
        let object = group("Pending", "").replace("a-j", name).replace("uid: g", &format!("uid: {name}"));
        object
            .replace("07:00:30Z", made)
            .replace("queue: default", &format!("queue: default, {more}"))
            .replace("name: a,", "name: other,")
    };
    let urgent =
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: urgent}, value: 1000}";
    let objects = all(&[
        &pending(),
        QUEUE,
        urgent,
        &group("Pending", "not admitted: it needs 8 cpu, and not enough is left of the cluster's 16"),
        &other("older", "06:00:00Z", "priorityClassName: ''"),
        &other("younger", "07:30:00Z", "priorityClassName: ''"),
        &other("first", "07:40:00Z", "priorityClassName: urgent"),
        &other("elsewhere", "05:00:00Z", "priorityClassName: ''").replace("queue: default", "queue: other"),
        &other("runs", "05:00:00Z", "priorityClassName: ''").replace("phase: Pending", "phase: Running"),
    ]);
    let line = diagnosis("vcjob/a", &objects).line.unwrap();
    assert_eq!((line.queue.as_str(), line.position, line.waiting), ("default", 3, 4));
    let ahead: Vec<(&str, &str)> =
        line.ahead.iter().map(|it| (it.name.as_str(), it.priority_class.as_str())).collect();
    assert_eq!(ahead, [("vcjob ns/other", "urgent"), ("vcjob ns/other", "")]);
    assert_eq!(line.ahead[0].needs, "8 cpu");
    assert_eq!(diagnosis("queue/default", &objects).line.unwrap().waiting, 4);
    assert_eq!(
        diagnosis("vcjob/a", &all(&[&vcjob(TASK, "state: {phase: Running}"), QUEUE, &group("Running", "")]))
            .line,
        None
    );
}

#[test]
fn a_diagnosis_is_one_screen() {
    let gang_full = "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu";
    let objects = all(&[
        &pending(),
        QUEUE,
        NODE,
        &group("Inqueue", gang_full),
        &pod(&asks("cpu: 8"), &unscheduled("0/1 nodes are available: 1 Insufficient cpu")),
        &event("Pod", "a-w-0", "FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu"),
    ]);
    expect_test::expect![[r#"
        vcjob ns/a waits (Pending, 59m ago): it needs 8 cpu, and the largest node n1 has 4

        cause:
          podgroup ns/a-j: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu (58m ago)
            pod ns/a-w-0: it needs 8 cpu, and the largest node n1 has 4 (58m ago)

        fix:
          - lower the request for cpu to at most 4
            $ kubectl get vcjob/a -n ns -o yaml > a.yaml && ${EDITOR:-vi} a.yaml && kubectl replace --force -f a.yaml
          - add a node with more cpu

        next:
          - nothing, until the nodes, the queue or the request change

        queue:
          place 1 of 1 in queue default

        timeline:
           60m ago  vcjob ns/a  created
           59m ago  podgroup ns/a-j  created
           58m ago  pod ns/a-w-0  created
           58m ago  podgroup ns/a-j  Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu
           57m ago  pod ns/a-w-0  PodScheduled: 0/1 nodes are available: 1 Insufficient cpu
           10m ago  pod ns/a-w-0  FailedScheduling: 0/1 nodes are available: 1 Insufficient cpu
    "#]].assert_eq(&screen(&diagnosis("vcjob/a", &objects), now()));
}
