//! What of a Job may change, field by field.

use super::specs::told;
use super::*;

/// Values at places of a Job.
type Fields<'a> = &'a [(&'a str, Value)];

/// What is said about changes of a Job, a row for each: how it was, and what of it changes.
fn table(rows: &[(&str, Fields<'_>, Fields<'_>)]) -> String {
    let row = |(name, old, changes): &(&str, Fields<'_>, Fields<'_>)| {
        let old = with(job(), old);
        let findings = validate_job_update(&with(old.clone(), changes), &old);
        // What is quoted is long, and shown elsewhere.
        let said = told(name, &findings);
        let (path, rest) = said.split_once(": Invalid value: ").unwrap_or((said.trim_end(), ""));
        match rest.rsplit_once(": ") {
            Some((_, rule)) => format!("{path}: {rule}"),
            None => format!("{path}\n"),
        }
    };
    rows.iter().map(row).collect()
}

#[test]
fn some_fields_change_and_others_stay() {
    let indexed = [
        ("spec.completionMode", json!("Indexed")),
        ("spec.completions", json!(3)),
        ("spec.backoffLimitPerIndex", json!(1)),
    ];
    let finished = [("status", json!({ "conditions": conditions(&["SuccessCriteriaMet", "Complete"]) }))];
    let managed = [("spec.managedBy", json!("acme.io/jobs"))];
    let manual = [
        ("spec.manualSelector", json!(true)),
        ("spec.selector.matchLabels", json!({ "mine": "yes" })),
        ("spec.template.metadata.labels", json!({ "mine": "yes" })),
    ];
    let old_fashioned = [
        ("spec.selector.matchLabels", json!({ "controller-uid": "u" })),
        ("spec.template.metadata.labels", json!({ "controller-uid": "u", "job-name": "j" })),
    ];
    let rules =
        json!({ "rules": [{ "action": "Ignore", "onExitCodes": { "operator": "In", "values": [7] } }] });
    let policed = [("spec.podFailurePolicy", rules.clone()), ("spec.podReplacementPolicy", json!("Failed"))];
    let lucky =
        [&indexed[..], &[("spec.successPolicy", json!({ "rules": [{ "succeededCount": 1 }] }))]].concat();
    expect![[r#"
        parallelism: fine
        activeDeadlineSeconds: fine
        backoffLimit: fine
        suspend: fine
        podReplacementPolicy: fine
        ttlSecondsAfterFinished of a Job that has ended: fine
        maxFailedIndexes: fine
        completions: spec.completions: field is immutable
        completions go: spec.completions: field is immutable
        completions come: spec.completions: field is immutable
        completionMode: spec.completionMode: field is immutable
        selector: spec.selector: field is immutable
        backoffLimitPerIndex: spec.backoffLimitPerIndex: field is immutable
        backoffLimitPerIndex comes: spec.backoffLimitPerIndex: field is immutable
        backoffLimitPerIndex goes: spec.backoffLimitPerIndex: field is immutable
        podFailurePolicy comes: spec.podFailurePolicy: field is immutable
        podFailurePolicy changes: spec.podFailurePolicy: field is immutable
        podFailurePolicy goes: spec.podFailurePolicy: field is immutable
        successPolicy comes: spec.successPolicy: field is immutable
        successPolicy changes: spec.successPolicy: field is immutable
        successPolicy goes: spec.successPolicy: field is immutable
        managedBy comes: spec.managedBy: field is immutable
        managedBy changes: spec.managedBy: field is immutable
        managedBy goes: spec.managedBy: field is immutable
        manualSelector: fine
        a selector of one's own is one's own no more: spec.template.metadata.labels[controller-uid]: Required value: must be 'u'; spec.template.metadata.labels[job-name]: Required value: must be 'j'; spec.selector: `selector` not auto-generated
        labels of before they had a prefix: fine
        a prefix goes: spec.template.metadata.labels[batch.kubernetes.io/controller-uid]: Required value: must be 'u'; spec.template.metadata.labels[batch.kubernetes.io/job-name]: Required value: must be 'j'; spec.template.metadata.labels: `selector` does not match template `labels`
    "#]]
    .assert_eq(&table(&[
        ("parallelism", &[], &[("spec.parallelism", json!(0))]),
        ("activeDeadlineSeconds", &[], &[("spec.activeDeadlineSeconds", json!(5))]),
        ("backoffLimit", &[], &[("spec.backoffLimit", json!(0))]),
        ("suspend", &[], &[("spec.suspend", json!(true))]),
        ("podReplacementPolicy", &[], &[("spec.podReplacementPolicy", json!("Failed"))]),
        (
            "ttlSecondsAfterFinished of a Job that has ended",
            &finished,
            &[("spec.ttlSecondsAfterFinished", json!(5))],
        ),
        ("maxFailedIndexes", &indexed, &[("spec.maxFailedIndexes", json!(2))]),
        ("completions", &[], &[("spec.completions", json!(2)), ("spec.parallelism", json!(2))]),
        ("completions go", &[], &[("spec.completions", Value::Null)]),
        ("completions come", &[("spec.completions", Value::Null)], &[("spec.completions", json!(1))]),
        ("completionMode", &indexed[..2], &[("spec.completionMode", json!("NonIndexed"))]),
        ("selector", &[], &[("spec.selector.matchLabels.job-name", json!("j"))]),
        ("backoffLimitPerIndex", &indexed, &[("spec.backoffLimitPerIndex", json!(2))]),
        ("backoffLimitPerIndex comes", &indexed[..2], &indexed[2..]),
        ("backoffLimitPerIndex goes", &indexed, &[("spec.backoffLimitPerIndex", Value::Null)]),
        ("podFailurePolicy comes", &policed[1..], &policed[..1]),
        (
            "podFailurePolicy changes",
            &policed,
            &[("spec.podFailurePolicy.rules", json!([{ "action": "Count", "onExitCodes": { "operator": "In", "values": [7] } }]))],
        ),
        ("podFailurePolicy goes", &policed, &[("spec.podFailurePolicy", Value::Null)]),
        ("successPolicy comes", &indexed, &lucky[3..]),
        (
            "successPolicy changes",
            &lucky,
            &[("spec.successPolicy", json!({ "rules": [{ "succeededCount": 2 }] }))],
        ),
        ("successPolicy goes", &lucky, &[("spec.successPolicy", Value::Null)]),
        ("managedBy comes", &[], &managed),
        ("managedBy changes", &managed, &[("spec.managedBy", json!("kubernetes.io/job-controller"))]),
        ("managedBy goes", &managed, &[("spec.managedBy", Value::Null)]),
        ("manualSelector", &[], &[("spec.manualSelector", json!(true))]),
        ("a selector of one's own is one's own no more", &manual, &[("spec.manualSelector", json!(false))]),
        ("labels of before they had a prefix", &old_fashioned, &[("spec.suspend", json!(true))]),
        ("a prefix goes", &[("spec.suspend", json!(true))], &old_fashioned[1..]),
    ]));
}

#[test]
fn an_elastic_job_grows_and_shrinks_as_a_whole() {
    let of = |completions: i64, parallelism: i64| {
        [
            ("spec.completionMode", json!("Indexed")),
            ("spec.completions", json!(completions)),
            ("spec.parallelism", json!(parallelism)),
        ]
    };
    expect![[r#"
        both grow: fine
        both shrink: fine
        to nothing: fine
        they were not alike before: fine
        parallelism alone: fine
        completions alone: spec.completions: can only be modified in tandem with spec.parallelism
        both, and not alike: spec.completions: can only be modified in tandem with spec.parallelism
    "#]]
    .assert_eq(&table(&[
        ("both grow", &of(2, 2), &of(4, 4)),
        ("both shrink", &of(4, 4), &of(2, 2)),
        ("to nothing", &of(4, 4), &of(0, 0)),
        ("they were not alike before", &of(4, 2), &of(3, 3)),
        ("parallelism alone", &of(4, 4), &of(4, 1)),
        ("completions alone", &of(4, 4), &of(5, 4)),
        ("both, and not alike", &of(4, 4), &of(5, 6)),
    ]));
}

#[test]
fn the_template_changes_only_where_pods_run_and_while_none_does() {
    let suspended = |status: Value| [("spec.suspend", json!(true)), ("status", status)];
    let told = conditions(&["Suspended"]);
    let (idle, new) = (suspended(json!({ "conditions": told })), suspended(json!({})));
    let elsewhere = [("spec.template.spec.nodeSelector", json!({ "disk": "ssd" }))];
    let resources = |name: &str| {
        let container = json!({
            "name": name, "image": "i", "imagePullPolicy": "Always", "terminationMessagePolicy": "File",
            "resources": { "requests": { "cpu": "2" } },
        });
        container
    };
    let containers = |list: Value| [("spec.template.spec.containers", list)];
    let two = [&idle[..], &containers(json!([resources("c"), resources("d")]))].concat();
    let bare = with(resources("p"), &[("resources", json!({}))]);
    let preparing = [&idle[..], &[("spec.template.spec.initContainers", json!([bare]))]].concat();
    let node_affinity = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{ "matchExpressions": [{ "key": "k", "operator": "Exists" }] }],
    } } });
    let pod_affinity = json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
        { "topologyKey": "k", "labelSelector": { "matchLabels": { "a": "b" } } },
    ] } });
    let labels = ("spec.template.metadata.labels.team", json!("blue"));
    let with_pod_affinity = [&idle[..], &[("spec.template.spec.affinity", pod_affinity)]].concat();
    let with_node_affinity = [&idle[..], &[("spec.template.spec.affinity", node_affinity.clone())]].concat();
    expect![[r#"
        nodeSelector: fine
        nodeSelector of one that never started: fine
        nodeSelector, and it goes on at once: fine
        tolerations: fine
        schedulingGates: fine
        node affinity: fine
        labels: fine
        annotations: fine
        resources: fine
        node affinity goes: fine
        pod affinity goes: spec.template.spec: field is immutable
        image: spec.template.spec: field is immutable
        a container of another name: spec.template.spec: field is immutable
        one container more: spec.template.spec: field is immutable
        resources of what prepares: fine
        the order of containers: spec.template.spec: field is immutable
        finalizers of pods: fine
        while it runs: spec.template: field is immutable
        while some of it still runs: spec.template: field is immutable
        while it is about to be told: spec.template: field is immutable
        resources of one that never started: fine
        resources, and it goes on at once: fine
        resources while it runs: spec.template: field is immutable
        resources while some of it still runs: spec.template: field is immutable
        resources while it is about to be told: spec.template: field is immutable
        resources while it goes on: spec.template: field is immutable
        one container fewer: spec.template.spec: field is immutable
        while it goes on: spec.template: field is immutable
    "#]]
    .assert_eq(&table(&[
        ("nodeSelector", &idle, &elsewhere),
        ("nodeSelector of one that never started", &new, &elsewhere),
        (
            "nodeSelector, and it goes on at once",
            &idle,
            &[elsewhere[0].clone(), ("spec.suspend", json!(false))],
        ),
        (
            "tolerations",
            &idle,
            &[("spec.template.spec.tolerations", json!([{ "key": "k", "operator": "Exists" }]))],
        ),
        (
            "schedulingGates",
            &idle,
            &[("spec.template.spec.schedulingGates", json!([{ "name": "a.io/gate" }]))],
        ),
        ("node affinity", &idle, &[("spec.template.spec.affinity", node_affinity)]),
        ("labels", &idle, std::slice::from_ref(&labels)),
        ("annotations", &idle, &[("spec.template.metadata.annotations", json!({ "a": "b" }))]),
        ("resources", &idle, &containers(json!([resources("c")]))),
        ("node affinity goes", &with_node_affinity, &[("spec.template.spec.affinity", Value::Null)]),
        ("pod affinity goes", &with_pod_affinity, &[("spec.template.spec.affinity", Value::Null)]),
        ("image", &idle, &containers(json!([with(resources("c"), &[("image", json!("other"))])]))),
        ("a container of another name", &idle, &containers(json!([resources("d")]))),
        ("one container more", &idle, &containers(json!([resources("c"), resources("d")]))),
        (
            "resources of what prepares",
            &preparing,
            &[("spec.template.spec.initContainers", json!([resources("p")]))],
        ),
        ("the order of containers", &two, &containers(json!([resources("d"), resources("c")]))),
        ("finalizers of pods", &idle, &[("spec.template.metadata.finalizers", json!(["acme.io/hold"]))]),
        ("while it runs", &[], &elsewhere),
        ("while some of it still runs", &suspended(json!({ "conditions": told, "active": 1 })), &elsewhere),
        (
            "while it is about to be told",
            &suspended(json!({ "startTime": "2026-01-01T00:00:00Z" })),
            &elsewhere,
        ),
        ("resources of one that never started", &new, &containers(json!([resources("c")]))),
        (
            "resources, and it goes on at once",
            &idle,
            &[containers(json!([resources("c")]))[0].clone(), ("spec.suspend", json!(false))],
        ),
        ("resources while it runs", &[], &containers(json!([resources("c")]))),
        (
            "resources while some of it still runs",
            &suspended(json!({ "conditions": told, "active": 1 })),
            &containers(json!([resources("c")])),
        ),
        (
            "resources while it is about to be told",
            &suspended(json!({ "startTime": "2026-01-01T00:00:00Z" })),
            &containers(json!([resources("c")])),
        ),
        (
            "resources while it goes on",
            &[("status", json!({ "conditions": told }))],
            &containers(json!([resources("c")])),
        ),
        ("one container fewer", &two, &containers(json!([resources("c")]))),
        ("while it goes on", &[("status", json!({ "conditions": told }))], &elsewhere),
    ]));
}
