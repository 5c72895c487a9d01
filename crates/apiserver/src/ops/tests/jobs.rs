//! Kubernetes' own Jobs and CronJobs, as they are stored.

use super::*;

/// The spec of a Job that forgives disruptions.
fn forgiving() -> Value {
    json!({
        "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}},
    })
}

#[test]
fn a_condition_that_a_rule_names_without_a_status_is_meant_to_hold() {
    let cluster = Cluster::new();
    let status = |spec: &Value| spec["podFailurePolicy"]["rules"][0]["onPodConditions"][0]["status"].clone();
    let job = json!({"metadata": {"name": "j"}, "spec": forgiving()});
    assert_eq!(status(&cluster.create(Kind::Job, job).unwrap()["spec"]), "True");
    let cron_job = json!({
        "metadata": {"name": "c"}, "spec": {"schedule": "@daily", "jobTemplate": {"spec": forgiving()}},
    });
    let template = cluster.create(Kind::CronJob, cron_job).unwrap()["spec"]["jobTemplate"]["spec"].clone();
    assert_eq!(status(&template), "True");
    assert_eq!(template["template"]["spec"]["dnsPolicy"], "ClusterFirst", "its pods have their defaults");
    assert_eq!(template["backoffLimit"], Value::Null, "those of a Job come with each Job");
}

/// The fields of a Job that have defaults, as it is stored.
fn defaults(spec: &Value) -> String {
    let mut job = json!({"metadata": {"name": "j"}, "spec": spec});
    job["spec"]["template"] = forgiving()["template"].clone();
    let stored = Cluster::new().create(Kind::Job, job).unwrap();
    let fields = [
        "completions",
        "parallelism",
        "backoffLimit",
        "completionMode",
        "suspend",
        "manualSelector",
        "podReplacementPolicy",
    ];
    fields.map(|field| stored["spec"][field].to_string()).join(" ")
}

#[test]
fn what_a_job_does_not_say_follows_from_what_it_says() {
    let policy = forgiving()["podFailurePolicy"].clone();
    for (spec, stored) in [
        (json!({}), r#"1 1 6 "NonIndexed" false false "TerminatingOrFailed""#),
        (json!({"completions": 3}), r#"3 1 6 "NonIndexed" false false "TerminatingOrFailed""#),
        (json!({"parallelism": 3}), r#"null 3 6 "NonIndexed" false false "TerminatingOrFailed""#),
        (
            json!({"completions": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1}),
            r#"3 1 2147483647 "Indexed" false false "TerminatingOrFailed""#,
        ),
        (json!({"podFailurePolicy": policy}), r#"1 1 6 "NonIndexed" false false "Failed""#),
        (
            json!({"backoffLimit": 0, "suspend": true, "podReplacementPolicy": "Failed"}),
            r#"1 1 0 "NonIndexed" true false "Failed""#,
        ),
    ] {
        assert_eq!(defaults(&spec), stored, "{spec}");
    }
}

#[test]
fn a_job_has_the_labels_of_its_pods_unless_it_has_its_own_and_no_status_but_its_controllers() {
    let create = |metadata: Value| {
        let spec = json!({"template": forgiving()["template"]});
        let job = json!({"metadata": metadata, "spec": spec, "status": {"failed": 3}});
        Cluster::new().create(Kind::Job, job).unwrap()
    };
    let job = create(json!({"name": "j"}));
    let uid = &job["metadata"]["uid"];
    let generated = json!({
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": "j",
        "controller-uid": uid, "job-name": "j",
    });
    assert_eq!(job["metadata"]["labels"], generated);
    assert_eq!(job["spec"]["template"]["metadata"]["labels"], generated);
    assert_eq!(job["spec"]["selector"], json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}));
    assert_eq!(job["metadata"]["generation"], 1);
    assert_eq!(job["status"].as_object().map_or(0, serde_json::Map::len), 0, "{}", job["status"]);
    let labelled = create(json!({"name": "j", "labels": {"team": "blue"}}));
    assert_eq!(labelled["metadata"]["labels"], json!({"team": "blue"}));
}

#[test]
fn what_a_cron_job_does_not_say_is_filled_in() {
    let spec = json!({"schedule": "@daily", "jobTemplate": {"spec": {"template": forgiving()["template"]}}});
    let cron_job = json!({"metadata": {"name": "c"}, "spec": spec});
    let stored = Cluster::new().create(Kind::CronJob, cron_job).unwrap();
    let fields = ["concurrencyPolicy", "suspend", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"];
    let told = fields.map(|field| stored["spec"][field].to_string()).join(" ");
    assert_eq!(told, r#""Allow" false 3 1"#);
    for absent in ["timeZone", "startingDeadlineSeconds"] {
        assert_eq!(stored["spec"][absent], Value::Null);
    }
}

#[test]
fn what_the_author_of_a_cron_job_should_know_is_said_whenever_its_spec_is_new() {
    let cluster = Cluster::new();
    let (resource, key) = (cluster.resource(Kind::CronJob), key(Kind::CronJob, "a.b"));
    let options = || WriteOptions { manager: Some("m".into()), ..WriteOptions::default() };
    let limits = json!({"memory": "1500m"});
    let container = json!({"name": "c", "image": "busybox", "resources": {"limits": limits}});
    let job = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}});
    let object = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a.b"},
        "spec": {"schedule": "@daily", "jobTemplate": {"spec": job}},
    });
    let of_name = "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS \
                   label is recommended: [must not contain dots]";
    let of_template = [
        "spec.jobTemplate.spec.template.spec.containers[0].resources.limits[memory]: fractional byte value \"1500m\" is invalid, must \
         be an integer",
    ];
    let (applied, created) = (Applied { object, is_forced: false }, options());
    cluster.0.apply(&resource, &key, Part::Main, &applied, &created).now_or_never().unwrap().unwrap();
    assert_eq!(created.warnings.list(), [&[of_name][..], &of_template].concat());
    for (patch, expected) in [
        (json!({"spec": {"suspend": true}}), &of_template[..]),
        (json!({"metadata": {"labels": {"l": "x"}}}), &[]),
    ] {
        let (patch, patched) = (Patch::Merge(patch), options());
        cluster.0.patch(&resource, &key, Part::Main, &patch, &patched).now_or_never().unwrap().unwrap();
        assert_eq!(patched.warnings.list(), expected);
    }
}

#[test]
fn what_the_author_of_a_job_should_know_is_said_whenever_its_spec_is_new() {
    let cluster = Cluster::new();
    let (resource, key) = (cluster.resource(Kind::Job), key(Kind::Job, "a.b"));
    let options = || WriteOptions { manager: Some("m".into()), ..WriteOptions::default() };
    let limits = json!({"memory": "1500m"});
    let container = json!({"name": "c", "image": "busybox", "resources": {"limits": limits}});
    let object = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a.b"},
        "spec": {"suspend": true, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    });
    let of_name = "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS \
                   label is recommended: [must not contain dots]";
    let of_template = [
        "spec.template.spec.containers[0].resources.limits[memory]: fractional byte value \"1500m\" is invalid, must be an integer",
    ];
    let (applied, created) = (Applied { object, is_forced: false }, options());
    cluster.0.apply(&resource, &key, Part::Main, &applied, &created).now_or_never().unwrap().unwrap();
    assert_eq!(created.warnings.list(), [&[of_name][..], &of_template].concat());
    for (patch, expected) in [
        (json!({"spec": {"parallelism": 2}}), &of_template[..]),
        (json!({"metadata": {"labels": {"l": "x"}}}), &[]),
    ] {
        let (patch, patched) = (Patch::Merge(patch), options());
        cluster.0.patch(&resource, &key, Part::Main, &patch, &patched).now_or_never().unwrap().unwrap();
        assert_eq!(patched.warnings.list(), expected);
    }
}

#[test]
fn jobs_are_chosen_by_how_many_of_their_pods_have_succeeded() {
    let cluster = Cluster::new();
    for name in ["a", "b"] {
        let spec = json!({"completions": 3, "template": forgiving()["template"]});
        cluster.create(Kind::Job, json!({"metadata": {"name": name}, "spec": spec})).unwrap();
    }
    let succeeded = json!({"status": {"succeeded": 2}});
    cluster.patch(Kind::Job, "b", Part::Status, succeeded).unwrap();
    let resource = cluster.resource(Kind::Job);
    let found = |selector: &str| {
        let filter = Filter { fields: FieldSelector::parse(selector, &resource)?, ..Filter::default() };
        let listing = cluster.0.list(&resource, &ListOptions { filter, ..ListOptions::default() })?;
        Ok::<usize, Status>(listing.items.len())
    };
    for (selector, n_found) in [
        ("status.successful=0", 1),
        ("status.successful=2", 1),
        ("status.successful!=2", 1),
        ("status.successful=3", 0),
        ("metadata.name=a,metadata.namespace=default", 1),
    ] {
        assert_eq!(found(selector), Ok(n_found), "{selector}");
    }
    says(
        &found("status.succeeded=2").unwrap_err(),
        expect![[r#"400 BadRequest: field label "status.succeeded" not supported for Job"#]],
    );
}
