//! Every rule for Volcano Jobs, one row each: which field is named, and in which words.

use std::fmt::Write;

use expect_test::expect;
use krafla_admission::{Operation, Request, Settings, validate};
use krafla_api::Kind;
use serde_json::{Value, json};

use crate::records::{Environment, recorded};

/// What breaks a rule, and how.
type Row = (&'static str, fn(&mut Value));

/// A job that breaks no rule: two tasks, of which the second has a policy and the job a volume.
fn sound() -> Value {
    let template = json!({ "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    let task = |name: &str| json!({ "name": name, "replicas": 2, "minAvailable": 2, "template": template });
    json!({
        "metadata": { "name": "j", "namespace": "default" },
        "spec": {
            "queue": "default",
            "minAvailable": 4,
            "tasks": [task("lead"), task("work")],
            "policies": [{ "event": "PodFailed", "action": "RestartJob" }],
            "volumes": [{ "mountPath": "/data", "volumeClaimName": "data" }],
        },
    })
}

/// What is said of a job. Without an old one it is new.
fn said(job: &Value, old: Option<&Value>) -> String {
    let file = recorded("jobs-validate.json");
    let environment = Environment::of(&file, &json!({ "environment": "base" }));
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let request =
        Request { kind: Kind::VcJob, operation, name: "j", object: job, old: old.unwrap_or(&Value::Null) };
    let verdict = validate(request, &Settings::default(), &environment);
    let said: Vec<String> = verdict.refusals.iter().map(ToString::to_string).collect();
    said.join(" & ")
}

/// Each row with what is said of a job that it is done to.
fn table(rows: &[Row], judge: impl Fn(&Value) -> String) -> String {
    rows.iter().fold(String::new(), |mut table, (rule, break_it)| {
        let mut job = sound();
        break_it(&mut job);
        writeln!(table, "{rule}: {}", judge(&job)).expect("text");
        table
    })
}

fn new_jobs(rows: &[Row]) -> String {
    table(rows, |job| said(job, None))
}

fn changed_jobs(rows: &[Row]) -> String {
    table(rows, |job| said(job, Some(&sound())))
}

#[test]
fn a_sound_job_is_taken() {
    assert_eq!(said(&sound(), None), "");
    assert_eq!(said(&sound(), Some(&sound())), "");
}

#[test]
fn rules_for_tasks() {
    let rows: &[Row] = &[
        ("no tasks", |job| job["spec"]["tasks"] = json!([])),
        ("a minimum above the replicas", |job| job["spec"]["tasks"][0]["minAvailable"] = 3.into()),
        ("two tasks of one name", |job| job["spec"]["tasks"][1]["name"] = "lead".into()),
        ("a name that pods can not have", |job| job["spec"]["tasks"][1]["name"] = "Work!".into()),
        ("a template without containers", |job| {
            job["spec"]["tasks"][1]["template"]["spec"]["containers"] = json!([]);
        }),
        ("privileged containers, which are allowed", |job| {
            let spec = &mut job["spec"]["tasks"][1]["template"]["spec"];
            spec["containers"][0]["securityContext"] = json!({ "privileged": true });
            spec["initContainers"] =
                json!([{ "name": "first", "image": "i", "securityContext": { "privileged": true } }]);
        }),
        ("part of a CPU in a NUMA cell", |job| {
            job["spec"]["tasks"][1]["topologyPolicy"] = "restricted".into();
            job["spec"]["tasks"][1]["template"]["spec"]["containers"][0]["resources"] =
                json!({ "requests": { "cpu": "1500m" } });
        }),
        ("no whole CPU in the limits either", |job| {
            job["spec"]["tasks"][0]["topologyPolicy"] = "best-effort".into();
            job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"] =
                json!({ "limits": { "cpu": "500m" } });
        }),
        ("a ring of tasks", |job| {
            job["spec"]["tasks"][0]["dependsOn"] = json!({ "name": ["work"] });
            job["spec"]["tasks"][1]["dependsOn"] = json!({ "name": ["lead"] });
        }),
        ("a task that waits for nobody", |job| {
            job["spec"]["tasks"][1]["dependsOn"] = json!({ "name": ["nobody"] });
        }),
        ("a task that waits for one twice", |job| {
            job["spec"]["tasks"][1]["dependsOn"] = json!({ "name": ["lead", "lead"] });
        }),
    ];
    expect![[r#"
        no tasks: spec.tasks: No task specified in job spec
        a minimum above the replicas: spec.tasks[0].minAvailable: 'minAvailable' is greater than 'replicas' in task: lead, job: j
        two tasks of one name: spec.tasks[1].name: duplicated task name lead
        a name that pods can not have: spec.tasks[1].metadata.name: Invalid value: "Work!": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*') & spec.tasks[1].name: create pod with name j-Work!-1 validate failed [name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')]
        a template without containers: spec.tasks[1].template.spec.containers: Required value
        privileged containers, which are allowed: 
        part of a CPU in a NUMA cell: spec.tasks[1].topologyPolicy: the cpu request isn't an integer in spec.task[1] container[0]
        no whole CPU in the limits either: spec.tasks[0].topologyPolicy: the cpu request isn't an integer in spec.task[0] container[0]
        a ring of tasks: spec.tasks: job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG): tasks wait for each other in a ring: lead -> work -> lead
        a task that waits for nobody: spec.tasks[1].dependsOn.name: job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG): task work waits for nobody, which is no task of the job
        a task that waits for one twice: spec.tasks[1].dependsOn.name: job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG): task work waits for lead twice
    "#]].assert_eq(&new_jobs(rows));
}

#[test]
fn a_job_has_at_most_a_hundred_thousand_pods() {
    let sized = |first: i64, second: i64| {
        let mut job = sound();
        job["spec"]["tasks"][0]["replicas"] = first.into();
        job["spec"]["tasks"][1]["replicas"] = second.into();
        job
    };
    let refusal = |task: usize, n_pods: i64| {
        format!(
            "spec.tasks[{task}].replicas: the replicas of all tasks of a job must be at most 100000 together, \
             and are {n_pods}: divide it into several jobs"
        )
    };
    assert_eq!(said(&sized(99_998, 2), None), "");
    assert_eq!(said(&sized(99_999, 2), None), refusal(1, 100_001));
    assert_eq!(said(&sized(2_000_000_000, 2_000_000_000), None), refusal(0, 4_000_000_000));
    assert_eq!(said(&sized(2, 100_000), Some(&sound())), refusal(1, 100_002));
    // One that somebody else has stored can still be changed.
    assert_eq!(said(&sized(2, 200_000), Some(&sized(2, 300_000))), "");
}

#[test]
fn rules_for_partitions_and_tiers() {
    const BOTH: fn() -> Value = || json!({ "highestTierAllowed": 1, "highestTierName": "rack" });
    let partitions: &[Row] = &[
        ("no partitions", |job| {
            job["spec"]["tasks"][1]["partitionPolicy"] = json!({ "totalPartitions": 0, "partitionSize": 2 });
        }),
        ("partitions of no pods", |job| {
            job["spec"]["tasks"][1]["partitionPolicy"] = json!({ "totalPartitions": 1, "partitionSize": 0 });
        }),
        ("more partitions than pods", |job| {
            job["spec"]["tasks"][1]["partitionPolicy"] = json!({ "totalPartitions": 2, "partitionSize": 2 });
        }),
        ("a minimum of part of a partition", |job| {
            job["spec"]["tasks"][1]["partitionPolicy"] =
                json!({ "totalPartitions": 2, "partitionSize": 1, "minPartitions": 1 });
        }),
        ("two tiers for partitions", |job| {
            job["spec"]["tasks"][1]["partitionPolicy"] =
                json!({ "totalPartitions": 2, "partitionSize": 1, "networkTopology": BOTH() });
        }),
        ("two tiers for the job", |job| job["spec"]["networkTopology"] = BOTH()),
    ];
    expect![[r#"
        no partitions: spec.tasks[1].partitionPolicy.totalPartitions: 'TotalPartitions' must be greater than 0 in task: work, job: j
        partitions of no pods: spec.tasks[1].partitionPolicy.partitionSize: 'PartitionSize' must be greater than 0 in task: work, job: j
        more partitions than pods: spec.tasks[1].partitionPolicy.totalPartitions: 'Replicas' are not equal to TotalPartitions*PartitionSize in task: work, job: j
        a minimum of part of a partition: spec.tasks[1].partitionPolicy.minPartitions: 'MinAvailable' is not equal to MinPartitions*PartitionSize in task: work, job: j
        two tiers for partitions: spec.tasks[1].partitionPolicy.networkTopology: must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously
        two tiers for the job: spec.networkTopology: must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously
    "#]].assert_eq(&new_jobs(partitions));
}

#[test]
fn rules_for_the_job_as_a_whole() {
    let rows: &[Row] = &[
        ("a name that labels do not take", |job| job["metadata"]["name"] = "j!".into()),
        ("a minimum above all pods", |job| job["spec"]["minAvailable"] = 5.into()),
        ("an unknown plugin", |job| job["spec"]["plugins"] = json!({ "sparkle": [] })),
        ("mpi without its master", |job| job["spec"]["plugins"] = json!({ "mpi": ["--master=chief"] })),
        ("an unknown queue", |job| job["spec"]["queue"] = "nowhere".into()),
        ("a closed queue", |job| job["spec"]["queue"] = "q-closed".into()),
        ("the root queue", |job| job["spec"]["queue"] = "root".into()),
        ("a queue with queues below it", |job| job["spec"]["queue"] = "q-parent".into()),
    ];
    expect![[r#"
        a name that labels do not take: spec.tasks[0].name: create pod with name j!-lead-1 validate failed [name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')] & spec.tasks[1].name: create pod with name j!-work-1 validate failed [name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')] & metadata.name: create job with name j! validate failed [name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')]
        a minimum above all pods: spec.minAvailable: job 'minAvailable' should not be greater than total replicas in tasks
        an unknown plugin: spec.plugins.sparkle: unable to find job plugin: sparkle
        mpi without its master: spec.plugins.mpi: The specified mpi master task was not found
        an unknown queue: spec.queue: unable to find job queue: queue.scheduling.volcano.sh "nowhere" not found
        a closed queue: spec.queue: can only submit job to queue with state `Open`, queue `q-closed` status is `Closed`
        the root queue: spec.queue: can not submit job to root queue
        a queue with queues below it: spec.queue: can only submit job to leaf queue, queue `q-parent` has 2 child queues
    "#]].assert_eq(&new_jobs(rows));
}

#[test]
fn rules_for_policies() {
    let rows: &[Row] = &[
        ("an event and an exit code", |job| job["spec"]["policies"][0]["exitCode"] = 3.into()),
        ("neither", |job| job["spec"]["policies"] = json!([{ "action": "AbortJob" }])),
        ("an event of the controller's own", |job| job["spec"]["policies"][0]["event"] = "PodRunning".into()),
        ("a list with such an event", |job| {
            job["spec"]["policies"] = json!([{ "events": ["PodFailed", "OutOfSync"], "action": "AbortJob" }]);
        }),
        ("an action of the controller's own", |job| job["spec"]["policies"][0]["action"] = "SyncJob".into()),
        ("one event twice", |job| {
            job["spec"]["policies"] = json!([
                { "event": "PodFailed", "action": "AbortJob" },
                { "events": ["PodFailed"], "action": "RestartJob" },
            ]);
        }),
        ("exit code 0", |job| job["spec"]["policies"] = json!([{ "exitCode": 0, "action": "AbortJob" }])),
        ("one exit code twice", |job| {
            let policy = json!({ "exitCode": 3, "action": "AbortJob" });
            job["spec"]["policies"] = json!([policy, policy]);
        }),
        ("any event, and another", |job| {
            job["spec"]["policies"] = json!([{ "events": ["*", "PodFailed"], "action": "AbortJob" }]);
        }),
        ("a task's policy is no exception", |job| {
            job["spec"]["tasks"][1]["policies"] = json!([{ "event": "Bogus", "action": "AbortJob" }]);
        }),
        ("nor is any event of a task, and another", |job| {
            job["spec"]["tasks"][1]["policies"] = json!([
                { "event": "*", "action": "AbortJob" },
                { "event": "PodEvicted", "action": "RestartTask" },
            ]);
        }),
        ("each list is for itself", |job| {
            job["spec"]["tasks"][1]["policies"] = json!([{ "event": "PodFailed", "action": "RestartTask" }]);
        }),
    ];
    expect![[r#"
        an event and an exit code: spec.policies[0]: must not specify event and exitCode simultaneously
        neither: spec.policies[0]: either event and exitCode should be specified
        an event of the controller's own: spec.policies[0].event: Invalid value: "PodRunning": invalid policy event; use one of *, PodPending, PodFailed, PodEvicted, Unknown, TaskCompleted, TaskFailed, JobUpdated
        a list with such an event: spec.policies[0].event: Invalid value: "OutOfSync": invalid policy event; use one of *, PodPending, PodFailed, PodEvicted, Unknown, TaskCompleted, TaskFailed, JobUpdated
        an action of the controller's own: spec.policies[0].action: Invalid value: "SyncJob": invalid policy action; use one of AbortJob, RestartJob, RestartTask, RestartPod, RestartPartition, TerminateJob, CompleteJob, ResumeJob
        one event twice: spec.policies[1].event: duplicate event PodFailed  across different policy
        exit code 0: spec.policies[0].exitCode: 0 is not a valid error code
        one exit code twice: spec.policies[1].exitCode: duplicate exitCode 3
        any event, and another: spec.policies: if there's * here, no other policy should be here
        a task's policy is no exception: spec.tasks[1].policies[0].event: Invalid value: "Bogus": invalid policy event; use one of *, PodPending, PodFailed, PodEvicted, Unknown, TaskCompleted, TaskFailed, JobUpdated
        nor is any event of a task, and another: spec.tasks[1].policies: if there's * here, no other policy should be here
        each list is for itself: 
    "#]].assert_eq(&new_jobs(rows));
}

#[test]
fn rules_for_volumes() {
    let rows: &[Row] = &[
        ("no path", |job| job["spec"]["volumes"][0]["mountPath"] = "".into()),
        ("one path twice", |job| {
            let volume = job["spec"]["volumes"][0].clone();
            job["spec"]["volumes"] = json!([volume, volume]);
        }),
        ("no claim", |job| job["spec"]["volumes"] = json!([{ "mountPath": "/data" }])),
        ("two claims", |job| job["spec"]["volumes"][0]["volumeClaim"] = json!({})),
        ("a claim of a wrong name", |job| job["spec"]["volumes"][0]["volumeClaimName"] = "Data!".into()),
    ];
    expect![[r#"
        no path: spec.volumes[0].mountPath: mountPath is required
        one path twice: spec.volumes[1].mountPath: duplicated mountPath: /data
        no claim: spec.volumes[0]: either VolumeClaim or VolumeClaimName must be specified
        two claims: spec.volumes[0]: conflict: If you want to use an existing PVC, just specify VolumeClaimName.If you want to create a new PVC, you do not need to specify VolumeClaimName
        a claim of a wrong name: spec.volumes[0].volumeClaimName: invalid VolumeClaimName Data! : [a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')]
    "#]].assert_eq(&new_jobs(rows));
}

#[test]
fn rules_for_changes() {
    let rows: &[Row] = &[
        ("more pods", |job| job["spec"]["tasks"][0]["replicas"] = 5.into()),
        ("fewer pods and a lower minimum", |job| {
            job["spec"]["minAvailable"] = 3.into();
            job["spec"]["tasks"][0]["replicas"] = 1.into();
            job["spec"]["tasks"][0]["minAvailable"] = 1.into();
        }),
        ("another priority, and other metadata", |job| {
            job["spec"]["priorityClassName"] = "high".into();
            job["metadata"]["labels"] = json!({ "a": "b" });
        }),
        ("fewer pods than the minimum", |job| job["spec"]["tasks"][0]["replicas"] = 1.into()),
        ("fewer than no pods", |job| {
            job["spec"]["minAvailable"] = 0.into();
            job["spec"]["tasks"][0]["replicas"] = (-1).into();
            job["spec"]["tasks"][0]["minAvailable"] = Value::Null;
        }),
        ("a minimum below 0", |job| job["spec"]["tasks"][0]["minAvailable"] = (-1).into()),
        ("a minimum above all pods", |job| job["spec"]["minAvailable"] = 5.into()),
        ("a minimum of the job below 0", |job| job["spec"]["minAvailable"] = (-1).into()),
        ("one task more", |job| {
            let mut task = job["spec"]["tasks"][0].clone();
            task["name"] = "more".into();
            job["spec"]["tasks"].as_array_mut().expect("tasks").push(task);
        }),
        ("one task fewer", |job| {
            drop(job["spec"]["tasks"].as_array_mut().expect("tasks").pop());
            job["spec"]["minAvailable"] = 2.into();
        }),
        ("another image", |job| {
            job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["image"] = "other".into();
        }),
        ("a gate", |job| {
            job["spec"]["tasks"][0]["template"]["spec"]["schedulingGates"] = json!([{ "name": "g" }]);
        }),
        ("another queue", |job| job["spec"]["queue"] = "other".into()),
        ("another claim", |job| job["spec"]["volumes"][0]["volumeClaimName"] = "other".into()),
        ("two tiers", |job| {
            job["spec"]["networkTopology"] = json!({ "highestTierAllowed": 1, "highestTierName": "rack" });
        }),
        ("partitions that do not add up", |job| {
            job["spec"]["tasks"][1]["partitionPolicy"] = json!({ "totalPartitions": 3, "partitionSize": 1 });
        }),
    ];
    expect![[r#"
        more pods: 
        fewer pods and a lower minimum: 
        another priority, and other metadata: 
        fewer pods than the minimum: spec.tasks[0].minAvailable: 'minAvailable' must be <= 'replicas' in task: lead & spec.minAvailable: job 'minAvailable' must not be greater than total replicas
        fewer than no pods: spec.tasks[0].replicas: 'replicas' must be >= 0 in task: lead
        a minimum below 0: spec.tasks[0].minAvailable: 'minAvailable' must be >= 0 in task: lead
        a minimum above all pods: spec.minAvailable: job 'minAvailable' must not be greater than total replicas
        a minimum of the job below 0: spec.minAvailable: job 'minAvailable' must be >= 0
        one task more: spec.tasks: job updates may not add or remove tasks
        one task fewer: spec.tasks: job updates may not add or remove tasks
        another image: spec: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`
        a gate: spec: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`
        another queue: spec: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`
        another claim: spec: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`
        two tiers: spec.networkTopology: must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously & spec: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`
        partitions that do not add up: spec.tasks[1].partitionPolicy.totalPartitions: 'Replicas' are not equal to TotalPartitions*PartitionSize in task: work, job: j & spec: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`
    "#]].assert_eq(&changed_jobs(rows));
}

/// Volcano's optional policies in CEL let these pass, or refuse what its webhooks take. Here one set of rules answers.
#[test]
fn volcano_b43_what_the_weaker_set_of_rules_let_pass_is_refused() {
    let missed: &[Row] = &[
        ("a task's policy", |job| {
            job["spec"]["tasks"][0]["policies"] = json!([{ "event": "OutOfSync", "action": "AbortJob" }]);
        }),
        ("a list of events", |job| {
            job["spec"]["policies"] = json!([{ "events": ["Bogus"], "action": "AbortJob" }]);
        }),
        ("a template", |job| {
            job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["image"] = "".into();
        }),
        ("a queue", |job| job["spec"]["queue"] = "nowhere".into()),
        ("a plugin", |job| job["spec"]["plugins"] = json!({ "sparkle": [] })),
        ("a ring", |job| job["spec"]["tasks"][0]["dependsOn"] = json!({ "name": ["lead"] })),
        ("partitions", |job| {
            job["spec"]["tasks"][1]["partitionPolicy"] = json!({ "totalPartitions": 3, "partitionSize": 1 });
        }),
    ];
    for (rule, break_it) in missed {
        let mut job = sound();
        break_it(&mut job);
        assert_ne!(said(&job, None), "", "{rule}");
    }
    let mut changed = sound();
    changed["spec"]["plugins"] = json!({ "env": [] });
    assert_ne!(said(&changed, Some(&sound())), "", "a change beside tasks, queue and minimum");
    let mut partitioned = sound();
    partitioned["spec"]["policies"][0]["action"] = "RestartPartition".into();
    assert_eq!(said(&partitioned, None), "", "RestartPartition is an action");
    let mut bare = json!({
        "metadata": { "name": "j", "namespace": "default" },
        "spec": { "tasks": [{ "replicas": 1, "template": sound()["spec"]["tasks"][0]["template"] }] },
    });
    let nobody = Environment::of(&Value::Null, &Value::Null);
    krafla_admission::default(Kind::VcJob, &mut bare, &Settings::default(), &nobody);
    assert_eq!(said(&bare, None), "", "a task without a name gets one");
}
