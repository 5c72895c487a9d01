//! What Volcano is known to get wrong, by the number under which it is known (DEVIATIONS.md).

use expect_test::expect;
use krafla_api::{Key, Kind};
use krafla_cluster::Step;

use super::{check, fixture};
use crate::{Object, Snapshot};

#[test]
fn volcano_1_a_completed_job_that_is_gone_is_not_run_again() {
    // It was on record.
    check(
        "flow phase=Running\n step x\n step y after=x\n record f-x Completed",
        expect![[r#"
        patch jobflow status f {"status":{"completedJobs":["f-x"]}}
        create job f-y
        note Normal Created: job f-y is made from JobTemplate y
    "#]],
    );
    // It was not, but it was last seen completed.
    check(
        "flow phase=Running\n step x\n step y after=x\n record f-x Running\n gone f-x Completed",
        expect![[r#"
            patch jobflow status f {"status":{"completedJobs":["f-x"],"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Completed"}},"jobStatusList":[{"name":"f-x","runningHistories":[{"endTimestamp":"2027-01-15T08:01:40Z","startTimestamp":"2027-01-15T08:00:01Z","state":"Running"},{"startTimestamp":"2027-01-15T08:01:40Z","state":"Completed"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Completed"}]}}
            create job f-y
            note Normal Created: job f-y is made from JobTemplate y
        "#]],
    );
    // Neither is anything made anew after the success.
    check(
        "flow phase=Succeed\n step x\n step y\n record f-x Completed",
        expect![[r#"
        patch jobflow status f {"status":{"completedJobs":["f-x"]}}
    "#]],
    );
}

#[test]
fn a_job_that_was_deleted_before_it_finished_is_made_again_at_once() {
    check(
        "flow phase=Running\n step x\n record f-x Running\n gone f-x Running",
        expect![[r#"
            create job f-x
            note Normal Created: job f-x is made from JobTemplate x
        "#]],
    );
}

#[test]
fn volcano_2_a_flow_whose_jobs_have_all_completed_succeeds_from_pending_too() {
    check(
        "flow phase=Pending\n step x\n job f-x Completed",
        expect![[r#"
        patch jobflow status f {"status":{"completedJobs":["f-x"],"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Completed"}},"jobStatusList":[{"name":"f-x","runningHistories":[{"startTimestamp":"2027-01-15T08:01:40Z","state":"Completed"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Completed"}],"state":{"phase":"Succeed"}}}
    "#]],
    );
}

#[test]
fn volcano_3_and_8_a_missing_template_is_named_and_keeps_no_other_job_from_being_made() {
    check(
        "flow\n step x\n step y\n no-template x",
        expect![[r#"
            patch jobflow status f {"status":{"conditions":{"f-x":{"phase":"TemplateMissing"}},"state":{"phase":"Pending"}}}
            create job f-y
            note Warning SyncJobFlow: JobTemplate x does not exist in namespace ns; job f-x is made as soon as it does
            note Normal Created: job f-y is made from JobTemplate y
        "#]],
    );
}

#[test]
fn a_template_that_can_not_be_read_is_named_with_the_reason() {
    let (mut objects, _) = fixture::parse("flow phase=Pending\n step x");
    let template = r#"{ "metadata": { "namespace": "ns", "name": "x", "uid": "x" }, "status": 1 }"#;
    objects.insert(Object::decode(Kind::JobTemplate, template.as_bytes()).into());
    let key = Key::new("ns", "f");
    let plan = crate::jobflow::plan(&Snapshot::new(Kind::JobFlow, &key, fixture::now(), &objects));
    expect![[r#"
        patch jobflow status f {"status":{"conditions":{"f-x":{"phase":"TemplateUnreadable"}}}}
        note Warning SyncJobFlow: cannot read JobTemplate x: status: invalid type: integer `1`, expected struct JobTemplateStatus; fix the template, and job f-x is created
    "#]].assert_eq(&plan.to_string());
}

#[test]
fn volcano_4_a_flow_that_is_named_twice_counts_once() {
    check(
        "flow phase=Running\n step x\n step x\n record f-x Running\n job f-x Completed",
        expect![[r#"
        patch jobflow status f {"status":{"completedJobs":["f-x"],"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Completed"}},"jobStatusList":[{"name":"f-x","runningHistories":[{"endTimestamp":"2027-01-15T08:01:40Z","startTimestamp":"2027-01-15T08:00:01Z","state":"Running"},{"startTimestamp":"2027-01-15T08:01:40Z","state":"Completed"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Completed"}],"state":{"phase":"Succeed"}}}
    "#]],
    );
    check(
        "flow phase=Pending\n step x\n step x",
        expect![[r#"
            patch jobflow status f {"status":{"conditions":{"spec.flows[1]":{"phase":"NamedTwice"}}}}
            create job f-x
            note Normal Created: job f-x is made from JobTemplate x
            note Warning SyncJobFlow: flow x is named twice in spec.flows; only the first counts
        "#]],
    );
}

#[test]
fn volcano_5_only_the_flows_of_the_present_spec_decide() {
    let flow = "flow phase=Running\n step x\n record f-x Running\n record f-y Running";
    check(
        &format!("{flow}\n job f-x Completed\n job f-y Failed"),
        expect![[r#"
        patch jobflow status f {"status":{"completedJobs":["f-x"],"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Completed"},"f-y":{"createTime":"2027-01-15T08:00:00Z","phase":"Failed"}},"failedJobs":["f-y"],"jobStatusList":[{"name":"f-x","runningHistories":[{"endTimestamp":"2027-01-15T08:01:40Z","startTimestamp":"2027-01-15T08:00:01Z","state":"Running"},{"startTimestamp":"2027-01-15T08:01:40Z","state":"Completed"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Completed"},{"name":"f-y","runningHistories":[{"endTimestamp":"2027-01-15T08:01:40Z","startTimestamp":"2027-01-15T08:00:01Z","state":"Running"},{"startTimestamp":"2027-01-15T08:01:40Z","state":"Failed"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Failed"}],"state":{"phase":"Succeed"}}}
    "#]],
    );
}

#[test]
fn volcano_9_a_job_of_somebody_else_is_not_taken_for_the_flows_own() {
    check(
        "flow phase=Pending\n step x\n foreign f-x Completed",
        expect![[r#"
            patch jobflow status f {"status":{"conditions":{"f-x":{"phase":"ForeignJob"}}}}
            note Warning SyncJobFlow: job f-x exists and does not belong to this flow; delete it, or rename it or the flow x
        "#]],
    );
}

#[test]
fn volcano_10_a_name_too_long_for_a_label_stands_in_the_annotation_alone() {
    let long = "x".repeat(61);
    let plan = fixture::plan(&format!("flow phase=Pending\n step {long}"));
    let Some(Step::Create { object, .. }) = plan.steps.first() else { panic!("no job") };
    assert_eq!(object["metadata"]["labels"].as_object().unwrap().len(), 1);
    assert_eq!(object["metadata"]["annotations"]["volcano.sh/createdByJobTemplate"], format!("ns.{long}"));
}

#[test]
fn volcano_11_a_job_that_is_neither_there_nor_wanted_is_forgotten() {
    check(
        "flow phase=Running\n step x\n record f-x Running\n record f-old Completed\n job f-x Running",
        expect![[r#"
            patch jobflow status f {"status":{"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Running"}},"jobStatusList":[{"name":"f-x","runningHistories":[{"startTimestamp":"2027-01-15T08:00:01Z","state":"Running"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Running"}],"runningJobs":["f-x"]}}
        "#]],
    );
}

#[test]
fn volcano_12_a_flow_that_is_going_makes_nothing() {
    check("flow phase=Running going\n step x", expect![[""]]);
    check("flow phase=Terminating going\n step x\n step y\n job f-x Running", expect![[""]]);
}

#[test]
fn a_flow_that_is_deleted_before_its_end_is_terminating_while_its_jobs_go() {
    check(
        "flow phase=Running going\n step x\n step y\n job f-x Running",
        expect![[r#"
            patch jobflow status f {"status":{"state":{"phase":"Terminating"}}}
        "#]],
    );
    check("flow phase=Succeed going\n step x\n job f-x Completed", expect![[""]]);
    check("flow phase=Failed going\n step x\n job f-x Failed", expect![[""]]);
}

#[test]
fn volcano_13_a_flow_without_jobs_has_succeeded() {
    check(
        "flow",
        expect![[r#"
        patch jobflow status f {"status":{"state":{"phase":"Succeed"}}}
    "#]],
    );
}

#[test]
fn volcano_15_a_failed_flow_still_shows_its_jobs() {
    check(
        "flow phase=Failed\n step x\n step y\n record f-x Failed\n job f-x Failed\n job f-y Running",
        expect![[r#"
            patch jobflow status f {"status":{"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Failed"},"f-y":{"createTime":"2027-01-15T08:00:00Z","phase":"Running"}},"failedJobs":["f-x"],"jobStatusList":[{"name":"f-x","runningHistories":[{"startTimestamp":"2027-01-15T08:00:01Z","state":"Failed"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Failed"},{"name":"f-y","runningHistories":[{"startTimestamp":"2027-01-15T08:01:40Z","state":"Running"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Running"}],"runningJobs":["f-y"]}}
        "#]],
    );
}

#[test]
fn rings_and_unknown_targets_are_named() {
    check(
        "flow phase=Pending\n step a after=b\n step b after=a\n step c after=b\n step d after=nobody",
        expect![[r#"
            patch jobflow status f {"status":{"conditions":{"f-a":{"phase":"DependencyRing"},"f-b":{"phase":"DependencyRing"},"f-d":{"phase":"DependencyUnknown"}}}}
            note Warning SyncJobFlow: flow d waits for nobody, which is no flow; correct dependsOn.targets
            note Warning SyncJobFlow: flows wait for each other in a ring: a -> b -> a; take one of these dependencies out
        "#]],
    );
}

#[test]
fn what_keeps_a_job_from_being_made_is_in_the_status_until_it_is_mended() {
    let flow = "flow phase=Pending\n step x\n step y after=z\n step z after=y\n step u after=nobody\n step x";
    check(
        &format!("{flow}\n no-template x"),
        expect![[r#"
        patch jobflow status f {"status":{"conditions":{"f-u":{"phase":"DependencyUnknown"},"f-x":{"phase":"TemplateMissing"},"f-y":{"phase":"DependencyRing"},"f-z":{"phase":"DependencyRing"},"spec.flows[4]":{"phase":"NamedTwice"}}}}
        note Warning SyncJobFlow: JobTemplate x does not exist in namespace ns; job f-x is made as soon as it does
        note Warning SyncJobFlow: flow x is named twice in spec.flows; only the first counts
        note Warning SyncJobFlow: flow u waits for nobody, which is no flow; correct dependsOn.targets
        note Warning SyncJobFlow: flows wait for each other in a ring: y -> z -> y; take one of these dependencies out
    "#]],
    );
    // Whoever is there shows its own phase, and a word that no longer holds goes.
    let (mut objects, _) = fixture::parse("flow phase=Running\n step x\n job f-x Running");
    let key = Key::new("ns", "f");
    let plan = crate::jobflow::plan(&Snapshot::new(Kind::JobFlow, &key, fixture::now(), &objects));
    let Some(Step::Patch { patch, .. }) = plan.status else { panic!("{plan}") };
    assert_eq!(patch["status"]["conditions"]["f-x"]["phase"], "Running");
    let hindered = serde_json::json!({
        "metadata": { "namespace": "ns", "name": "f", "uid": "f1", "resourceVersion": "7" },
        "spec": { "flows": [{ "name": "x" }] },
        "status": { "state": { "phase": "Pending" }, "conditions": { "f-x": { "phase": "TemplateMissing" } } },
    });
    objects.remove(Kind::VcJob, &Key::new("ns", "f-x"));
    objects.insert(Object::decode(Kind::JobFlow, hindered.to_string().as_bytes()).into());
    let plan = crate::jobflow::plan(&Snapshot::new(Kind::JobFlow, &key, fixture::now(), &objects));
    expect![[r#"
        patch jobflow status f {"status":{"conditions":null}}
        create job f-x
        note Normal Created: job f-x is made from JobTemplate x
    "#]]
    .assert_eq(&plan.to_string());
    assert!(!plan.status_may_wait, "people look here");
}
