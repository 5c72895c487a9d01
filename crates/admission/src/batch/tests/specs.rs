//! The rules of new Jobs and CronJobs, one by one: what is just allowed, and what is not.

use super::*;

/// What is said about a Job with these values, a row for each case.
fn table(rows: &[(&str, &[(&str, Value)])]) -> String {
    rows.iter().map(|(name, changes)| told(name, &validate_job(&with(job(), changes)))).collect()
}

/// A case and what is said about it.
pub(super) fn told(name: &str, findings: &[Finding]) -> String {
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    format!("{name}: {}\n", if findings.is_empty() { "fine".to_owned() } else { findings.join("; ") })
}

fn indexed(more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
    let mode = [("spec.completionMode", json!("Indexed")), ("spec.completions", json!(3))];
    [&mode, more].concat()
}

#[test]
fn counts_have_limits() {
    let large = |more: &[(&'static str, Value)]| {
        let all = [
            ("spec.completions", json!(100_001)),
            ("spec.backoffLimitPerIndex", json!(1)),
            ("spec.parallelism", json!(10_000)),
            ("spec.maxFailedIndexes", json!(10_000)),
        ];
        indexed(&[&all, more].concat())
    };
    let one = |field: &'static str, value: i64| vec![(field, json!(value))];
    expect![[r#"
        no time at all: fine
        less than no time: spec.activeDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0
        less than no tries per index: spec.backoffLimitPerIndex: Invalid value: -1: must be greater than or equal to 0
        less than no failed indexes: spec.maxFailedIndexes: Invalid value: -1: must be greater than or equal to 0
        failed indexes without tries per index: spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified
        failed indexes without indexes: spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified; spec.maxFailedIndexes: Invalid value: 1: requires indexed completion mode
        all indexes may fail: fine
        more failed indexes than there are: spec.maxFailedIndexes: Invalid value: 4: must be less than or equal to completions
        100000 at once: fine
        100001 at once: spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed
        the largest of the large: fine
        a large one at too many at once: spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index
        a large one with too many failures: spec.maxFailedIndexes: Invalid value: 10001: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index
        a large one with far too many failures: spec.maxFailedIndexes: Invalid value: 100001: must be less than or equal to 100000; spec.maxFailedIndexes: Invalid value: 100001: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index
        a large one without a limit of failures: spec.maxFailedIndexes: Required value: must be specified when completions is above 100000
        a large one that does not count by index: fine
    "#]]
    .assert_eq(&table(&[
        ("no time at all", &one("spec.activeDeadlineSeconds", 0)),
        ("less than no time", &one("spec.activeDeadlineSeconds", -1)),
        ("less than no tries per index", &indexed(&one("spec.backoffLimitPerIndex", -1))),
        ("less than no failed indexes", &indexed(&[("spec.backoffLimitPerIndex", json!(1)), ("spec.maxFailedIndexes", json!(-1))])),
        ("failed indexes without tries per index", &indexed(&one("spec.maxFailedIndexes", 1))),
        ("failed indexes without indexes", &one("spec.maxFailedIndexes", 1)),
        ("all indexes may fail", &indexed(&[("spec.backoffLimitPerIndex", json!(0)), ("spec.maxFailedIndexes", json!(3))])),
        ("more failed indexes than there are", &indexed(&[("spec.backoffLimitPerIndex", json!(0)), ("spec.maxFailedIndexes", json!(4))])),
        ("100000 at once", &indexed(&one("spec.parallelism", 100_000))),
        ("100001 at once", &indexed(&one("spec.parallelism", 100_001))),
        ("the largest of the large", &large(&[])),
        ("a large one at too many at once", &large(&one("spec.parallelism", 10_001))),
        ("a large one with too many failures", &large(&one("spec.maxFailedIndexes", 10_001))),
        ("a large one with far too many failures", &large(&one("spec.maxFailedIndexes", 100_001))),
        ("a large one without a limit of failures", &large(&[("spec.maxFailedIndexes", Value::Null)])),
        ("a large one that does not count by index", &large(&[("spec.maxFailedIndexes", Value::Null), ("spec.backoffLimitPerIndex", Value::Null)])),
    ]));
}

#[test]
fn policies_have_known_words() {
    let policy = |value: &str| vec![("spec.template.spec.restartPolicy", json!(value))];
    expect![[r#"
        pods that are not started again: fine
        containers that are started again: fine
        pods that are started again for ever: spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"
        pods that do not say: spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"
        pods that say something else: spec.template.spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"; spec.template.spec.restartPolicy: Unsupported value: "Sometimes": supported values: "OnFailure", "Never"
        replaced when they have failed: fine
        replaced when they go: fine
        replaced some time: spec.podReplacementPolicy: Unsupported value: "Sometimes": supported values: "Failed", "TerminatingOrFailed"
    "#]]
    .assert_eq(&table(&[
        ("pods that are not started again", &policy("Never")),
        ("containers that are started again", &policy("OnFailure")),
        ("pods that are started again for ever", &policy("Always")),
        ("pods that do not say", &policy("")),
        ("pods that say something else", &policy("Sometimes")),
        ("replaced when they have failed", &[("spec.podReplacementPolicy", json!("Failed"))]),
        ("replaced when they go", &[("spec.podReplacementPolicy", json!("TerminatingOrFailed"))]),
        ("replaced some time", &[("spec.podReplacementPolicy", json!("Sometimes"))]),
    ]));
}

#[test]
fn names_of_pods_and_managers_fit() {
    let (at_limit, too_long) = ("a.io/".to_owned() + &"m".repeat(58), "a.io/".to_owned() + &"m".repeat(59));
    let named = |name: String, completions: i64| {
        let uid = "u";
        let labels = json!({
            "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
            "controller-uid": uid, "job-name": name,
        });
        indexed(&[
            ("metadata.name", json!(name)),
            ("spec.template.metadata.labels", labels),
            ("spec.completions", json!(completions)),
        ])
    };
    expect![[r#"
        a manager of 63 letters: fine
        a manager of 64 letters: spec.managedBy: Too long: may not be more than 63 bytes
        the last pod of ten: fine
        the last pod of eleven: metadata.name: Invalid value: "jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj": will not able to create pod with invalid DNS label: jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj-10
        a dot in the name: metadata.name: Invalid value: "a.b": will not able to create pod with invalid DNS label: a.b-0
        no pods, no names: fine
    "#]]
    .assert_eq(&table(&[
        ("a manager of 63 letters", &[("spec.managedBy", json!(at_limit))]),
        ("a manager of 64 letters", &[("spec.managedBy", json!(too_long))]),
        ("the last pod of ten", &named("j".repeat(61), 10)),
        ("the last pod of eleven", &named("j".repeat(61), 11)),
        ("a dot in the name", &named("a.b".to_owned(), 1)),
        ("no pods, no names", &named("a.b".to_owned(), 0)),
    ]));
}

#[test]
fn rules_of_policies_have_limits() {
    let failure = |rules: Vec<Value>| {
        vec![
            ("spec.podFailurePolicy", json!({ "rules": rules })),
            ("spec.podReplacementPolicy", json!("Failed")),
        ]
    };
    let codes = |operator: &str, values: Vec<i32>| json!({ "action": "Count", "onExitCodes": { "operator": operator, "values": values } });
    let conditions = |n: usize| {
        let pattern = json!({ "type": "DisruptionTarget", "status": "True" });
        json!({ "action": "Ignore", "onPodConditions": vec![pattern; n] })
    };
    let condition = |pattern: Value| json!({ "action": "Ignore", "onPodConditions": [pattern] });
    let named = |name: &str| with(codes("In", vec![1]), &[("onExitCodes.containerName", json!(name))]);
    let preparing = [(
        "spec.template.spec.initContainers",
        json!([{ "name": "p", "image": "i", "imagePullPolicy": "Always", "terminationMessagePolicy": "File" }]),
    )];
    let success = |rules: Vec<Value>| indexed(&[("spec.successPolicy", json!({ "rules": rules }))]);
    let count = json!({ "succeededCount": 1 });
    expect![[r#"
        20 rules of failure: fine
        21 rules of failure: spec.podFailurePolicy.rules: Too many: 21: must have at most 20 items
        255 exit codes: fine
        256 exit codes: spec.podFailurePolicy.rules[0].onExitCodes.values: Too many: 256: must have at most 255 items
        exit codes below nought: fine
        nought is not among them: fine
        exit codes between: spec.podFailurePolicy.rules[0].onExitCodes.operator: Unsupported value: "Between": supported values: "In", "NotIn"
        a container of the Job: fine
        a container that prepares: fine
        a container of nobody: spec.podFailurePolicy.rules[0].onExitCodes.containerName: Invalid value: "x": must be one of the container or initContainer names in the pod template
        a condition that does not say: spec.podFailurePolicy.rules[0].onPodConditions[0].status: Required value: valid values: ["False" "True" "Unknown"]
        a condition without a name: spec.podFailurePolicy.rules[0].onPodConditions[0].type: Invalid value: "": name part must be non-empty; spec.podFailurePolicy.rules[0].onPodConditions[0].type: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        a condition with a prefix: fine
        20 conditions: fine
        21 conditions: spec.podFailurePolicy.rules[0].onPodConditions: Too many: 21: must have at most 20 items
        20 rules of success: fine
        21 rules of success: spec.successPolicy.rules: Too many: 21: must have at most 20 items
        no rule of success: spec.successPolicy.rules: Required value: at least one rules must be specified when the successPolicy is specified
        success of none: fine
        the last index and all of them: fine
    "#]]
    .assert_eq(&table(&[
        ("20 rules of failure", &failure(vec![codes("In", vec![1]); 20])),
        ("21 rules of failure", &failure(vec![codes("In", vec![1]); 21])),
        ("255 exit codes", &failure(vec![codes("In", (1..=255).collect())])),
        ("256 exit codes", &failure(vec![codes("In", (1..=256).collect())])),
        ("exit codes below nought", &failure(vec![codes("In", vec![-1_073_741_510, -1, 5])])),
        ("nought is not among them", &failure(vec![codes("NotIn", vec![0, 5])])),
        ("exit codes between", &failure(vec![codes("Between", vec![1, 5])])),
        ("a container of the Job", &failure(vec![named("c")])),
        ("a container that prepares", &[&failure(vec![named("p")])[..], &preparing].concat()),
        ("a container of nobody", &failure(vec![named("x")])),
        ("a condition that does not say", &failure(vec![condition(json!({ "type": "DisruptionTarget" }))])),
        ("a condition without a name", &failure(vec![condition(json!({ "type": "", "status": "True" }))])),
        ("a condition with a prefix", &failure(vec![condition(json!({ "type": "a.io/Gone", "status": "Unknown" }))])),
        ("20 conditions", &failure(vec![conditions(20)])),
        ("21 conditions", &failure(vec![conditions(21)])),
        ("20 rules of success", &success(vec![count.clone(); 20])),
        ("21 rules of success", &success(vec![count; 21])),
        ("no rule of success", &success(vec![])),
        ("success of none", &success(vec![json!({ "succeededCount": 0 })])),
        ("the last index and all of them", &success(vec![json!({ "succeededIndexes": "2" }), json!({ "succeededIndexes": "0-2", "succeededCount": 3 })])),
    ]));
    let long = "0,".repeat(40_000) + "1";
    let findings = validate_job(&with(job(), &success(vec![json!({ "succeededIndexes": long })])));
    assert_eq!(
        findings[0].to_string(),
        "spec.successPolicy.rules[0].succeededIndexes: Too long: may not be more than 65536 bytes"
    );
}

#[test]
fn what_the_server_makes_is_not_for_users_to_make_up() {
    let label = |name: &str, value: Value| {
        let mut labels = job()["spec"]["template"]["metadata"]["labels"].clone();
        labels[name] = value;
        labels.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        vec![("spec.template.metadata.labels", labels)]
    };
    for name in
        ["controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"]
    {
        let wanted = if name.ends_with("uid") { "u" } else { "j" };
        let findings = validate_job(&with(job(), &label(name, json!("mine"))));
        let said = findings[0].to_string();
        assert!(
            said.starts_with(&format!("spec.template.metadata.labels[{name}]: Invalid value: ")),
            "{said}"
        );
        assert!(said.ends_with(&format!(": must be '{wanted}'")), "{said}");
        let findings = validate_job(&with(job(), &label(name, Value::Null)));
        assert_eq!(
            findings[0].to_string(),
            format!("spec.template.metadata.labels[{name}]: Required value: must be '{wanted}'")
        );
    }
    let manual = [("spec.manualSelector", json!(true)), ("spec.selector", Value::Null)];
    assert_eq!(validate_job(&with(job(), &manual))[0].to_string(), "spec.selector: Required value");
}

#[test]
fn the_author_of_a_job_is_warned() {
    let warned = |changes: &[(&str, Value)]| shown(&warnings_of_job(&with(job(), changes)));
    assert_eq!(warned(&[]), "");
    assert!(
        warned(&[("metadata.name", json!("a.b"))])
            .starts_with("metadata.name: this is used in Pod names and hostnames")
    );
    let large = |parallelism: i64| {
        indexed(&[("spec.completions", json!(100_001)), ("spec.parallelism", json!(parallelism))])
    };
    assert_eq!(warned(&large(10_000)), "");
    assert_eq!(
        warned(&large(10_001)),
        "spec: In Indexed Jobs with a number of completions higher than 100000, the parallelism is recommended to be lower than 10000\n"
    );
}

#[test]
fn a_cron_job_is_checked_field_by_field() {
    let row = |name: &str, changes: &[(&str, Value)]| {
        let template = with(job(), &[("spec.selector", json!(null))]);
        let sound = json!({
            "metadata": {"name": "c"},
            "spec": {"schedule": "@daily", "concurrencyPolicy": "Allow", "jobTemplate": {"spec": template["spec"]}},
        });
        let known = |zone: &str| zone == "Europe/Berlin";
        told(name, &validate_cron_job(&with(sound, changes), &known))
    };
    let one = |field: &'static str, value: Value| [(field, value)];
    expect![[r#"
        no schedule: spec.schedule: Required value
        Sunday is 0: spec.schedule: Invalid value: "0 0 * * 7": end of range (7) above maximum (6): 7
        a zone that is nought: spec.schedule: Invalid value: "TZ=0": no schedule after the time zone; spec.schedule: Invalid value: "TZ=0": cannot use TZ or CRON_TZ in schedule, use timeZone field instead
        a zone in the schedule: spec.schedule: Invalid value: "CRON_TZ=UTC @daily": cannot use TZ or CRON_TZ in schedule, use timeZone field instead
        a zone: fine
        an empty zone: spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string
        here: spec.timeZone: Invalid value: "LOCAL": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones; spec.timeZone: Invalid value: "LOCAL": unknown time zone LOCAL
        a way out: spec.timeZone: Invalid value: "../Berlin": unknown time zone ../Berlin
        no policy: spec.concurrencyPolicy: Required value
        a name of 52: fine
        too few kept: spec.successfulJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0
        none kept: fine
        no deadline to speak of: fine
        a Job that is wrong: spec.jobTemplate.spec.parallelism: Invalid value: -1: must be greater than or equal to 0
    "#]]
    .assert_eq(
        &[
            row("no schedule", &one("spec.schedule", json!(""))),
            row("Sunday is 0", &one("spec.schedule", json!("0 0 * * 7"))),
            row("a zone that is nought", &one("spec.schedule", json!("TZ=0"))),
            row("a zone in the schedule", &one("spec.schedule", json!("CRON_TZ=UTC @daily"))),
            row("a zone", &one("spec.timeZone", json!("Europe/Berlin"))),
            row("an empty zone", &one("spec.timeZone", json!(""))),
            row("here", &one("spec.timeZone", json!("LOCAL"))),
            row("a way out", &one("spec.timeZone", json!("../Berlin"))),
            row("no policy", &one("spec.concurrencyPolicy", json!(""))),
            row("a name of 52", &one("metadata.name", json!("c".repeat(52)))),
            row("too few kept", &one("spec.successfulJobsHistoryLimit", json!(-1))),
            row("none kept", &[("spec.successfulJobsHistoryLimit", json!(0)), ("spec.failedJobsHistoryLimit", json!(0))]),
            row("no deadline to speak of", &one("spec.startingDeadlineSeconds", json!(0))),
            row("a Job that is wrong", &one("spec.jobTemplate.spec.parallelism", json!(-1))),
        ]
        .concat(),
    );
}

#[test]
fn a_cron_job_that_changes_is_not_asked_again_what_stays() {
    let template = with(job(), &[("spec.selector", json!(null))]);
    let stored = json!({
        "metadata": { "name": "c".repeat(53) },
        "spec": {
            "schedule": "@daily", "timeZone": "Mars/Olympus", "concurrencyPolicy": "Allow",
            "jobTemplate": { "spec": template["spec"] },
        },
    });
    let rows: [(&str, &str, Value); 9] = [
        ("its name is long and its zone gone", "metadata.labels", json!({})),
        ("schedule", "spec.schedule", json!("@hourly")),
        ("concurrencyPolicy", "spec.concurrencyPolicy", json!("Replace")),
        ("suspend", "spec.suspend", json!(true)),
        ("startingDeadlineSeconds", "spec.startingDeadlineSeconds", json!(9)),
        ("successfulJobsHistoryLimit", "spec.successfulJobsHistoryLimit", json!(9)),
        ("jobTemplate", "spec.jobTemplate.spec.backoffLimit", json!(9)),
        ("another zone that is unknown", "spec.timeZone", json!("Mars/Elysium")),
        ("a zone in the schedule", "spec.schedule", json!("TZ=UTC @daily")),
    ];
    let row = |(name, path, value): &(&str, &str, Value)| {
        let changed = with(stored.clone(), &[(*path, value.clone())]);
        told(name, &validate_cron_job_update(&changed, &stored, &|_| false))
    };
    expect![[r#"
        its name is long and its zone gone: fine
        schedule: fine
        concurrencyPolicy: fine
        suspend: fine
        startingDeadlineSeconds: fine
        successfulJobsHistoryLimit: fine
        jobTemplate: fine
        another zone that is unknown: spec.timeZone: Invalid value: "Mars/Elysium": unknown time zone Mars/Elysium
        a zone in the schedule: spec.schedule: Invalid value: "TZ=UTC @daily": cannot use TZ or CRON_TZ in schedule, use timeZone field instead
    "#]]
    .assert_eq(&rows.iter().map(row).collect::<String>());
}
