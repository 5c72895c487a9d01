//! Which fields are named when something is refused: whoever is refused must find the place in the manifest.
//!
//! The questions are the recorded ones (`recorded.rs` compares the words); Volcano names few fields, so the fields are this
//! program's own, and stand here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use expect_test::{Expect, expect};
use krafla_admission::validate;
use krafla_api::Kind;

use crate::recorded::asked;
use crate::records::{Environment, recorded, settings};

/// The fields that are named, and the cases in which they are.
fn check(kind: Kind, name: &str, expected: &Expect) {
    let file = recorded(name);
    let mut cases_by_fields: BTreeMap<Vec<String>, Vec<&str>> = BTreeMap::new();
    for case in file["cases"].as_array().expect("cases") {
        let Some(request) = asked(kind, case) else { continue };
        let verdict = validate(request, &settings(case), &Environment::of(&file, case));
        let case = case["name"].as_str().unwrap_or_default();
        // What Go's decoder says of a wrong type is said by the schema here, long before.
        if verdict.is_allowed() || case.starts_with("decode: ") {
            continue;
        }
        let fields: BTreeSet<String> = verdict.refusals.iter().map(|finding| finding.field.clone()).collect();
        cases_by_fields.entry(fields.into_iter().collect()).or_default().push(case);
    }
    let mut table = String::new();
    for (fields, cases) in cases_by_fields {
        writeln!(table, "{}: {}", fields.join(", "), cases.join("; ")).expect("text");
    }
    expected.assert_eq(&table);
}

#[test]
fn of_flows() {
    check(
        Kind::JobFlow,
        "jobflows-validate.json",
        &expect![[r#"
        spec.flows: self dependency; cycle of two; cycle of three; cycle behind a good root; update to a cycle
        spec.flows, spec.flows[1].dependsOn.targets: undefined target and a cycle
        spec.flows[0].dependsOn.targets: two undefined targets in one flow: first is named; empty target name; update to an undefined target
        spec.flows[0].dependsOn.targets, spec.flows[1].dependsOn.targets: undefined targets in two flows
        spec.flows[0].dependsOn.targets, spec.flows[1].name: duplicate flow name, earlier one has an undefined target
        spec.flows[1].dependsOn.targets: undefined target; undefined target beside a defined one; target differs by case
        spec.flows[1].name: duplicate flow name; duplicate flow name, later one replaces a self dependency
    "#]],
    );
}

#[test]
fn of_queues() {
    check(
        Kind::Queue,
        "queues-validate.json",
        &expect![[r#"
        metadata.annotations: hierarchy lengths differ; hierarchy only of two parts; hierarchy weights only of two parts; hierarchy weight not a number; hierarchy weight empty; hierarchy weight zero; hierarchy weight negative; hierarchy above another queue; hierarchy root above all; hierarchy moved above another queue
        metadata.annotations, spec.capability.cpu, status.state: quantity, state and hierarchy wrong at once
        metadata.name: ring: delete a member; delete default; delete root; delete missing queue; delete queue with one child; delete queue with allocated pods, check on; delete queue with allocated pods and a child, check on
        spec: update root capability; update root deserved; update root guarantee
        spec.capability.cpu: capability negative; child capability above parent cpu; child capability compared with nearest ancestor; update capability below largest child; update capability below grandchild; update capability: a child with value zero does not hide; update middle queue capability below its child
        spec.capability.cpu, spec.deserved.cpu, spec.guarantee.resource.cpu: negative everywhere
        spec.capability.memory: child capability above parent memory; update capability memory below grandchild
        spec.capability.nvidia.com/gpu: capability fraction of an extended resource
        spec.capability.pods: capability fraction of pods
        spec.deserved: sibling deserved sum above parent; sibling deserved of a resource the parent lacks; sibling deserved zero of a resource the parent lacks; ephemeral storage below a parent without it; update deserved below sum of children; update child deserved above parent; update parent to org with too much deserved
        spec.deserved, spec.guarantee: guarantee is reported before deserved; guarantee under a parent without guarantee; update deserved removed
        spec.deserved, spec.guarantee, spec.parent: update parent to own grandchild with too much in the children
        spec.deserved.cpu: deserved negative; guarantee without deserved; guarantee zero without deserved; guarantee above deserved; deserved above capability; guarantee above capability without deserved
        spec.deserved.cpu, spec.deserved.memory: two resources wrong at once
        spec.deserved.nvidia.com/gpu: deserved fraction of an extended resource
        spec.guarantee: sibling guarantee sum above parent; update guarantee below sum of children
        spec.guarantee.resource.nvidia.com/gpu: guarantee fraction of an extended resource
        spec.parent: parent itself; parent missing; parent is an orphan; parent with allocated pods and no children; update orphan capability; update parent to missing queue; update parent to itself; update parent to own child; update parent to own grandchild; update parent to own descendant four levels down; update parent to busy queue; update parent too deep; update parent so that the child becomes too deep; update root parent; ring: new queue below it with capability
        status.state: state Closing refused; state Bogus refused; state open refused
    "#]],
    );
}

#[test]
fn of_podgroups() {
    check(
        Kind::PodGroup,
        "podgroups-validate.json",
        &expect![[r#"
        spec.networkTopology: both tiers
        spec.networkTopology, spec.queue, spec.subGroupPolicy[0].networkTopology: queue missing and both tiers everywhere
        spec.networkTopology, spec.subGroupPolicy[0].networkTopology: both tiers at the top and in a sub group
        spec.queue: queue missing; queue closed; queue closing; queue unknown
        spec.subGroupPolicy[0].networkTopology: both tiers in a sub group; both tiers in an unnamed sub group
        spec.subGroupPolicy[0].networkTopology, spec.subGroupPolicy[1].networkTopology: both tiers in two sub groups: first is named
        spec.subGroupPolicy[1].networkTopology: both tiers in the second sub group
    "#]],
    );
}

#[test]
fn of_pods() {
    check(
        Kind::Pod,
        "pods-validate.json",
        &expect![[r#"
        metadata.annotations: both annotations
        metadata.annotations, metadata.annotations[volcano.sh/jdb-min-available]: both annotations, first wrong
        metadata.annotations[volcano.sh/jdb-max-unavailable]: max-unavailable '0'; max-unavailable '100%'; max-unavailable 'abc'
        metadata.annotations[volcano.sh/jdb-min-available]: min-available '-1'; min-available '0%'; min-available '100%'; min-available '-5%'; min-available 'abc'; min-available ''; min-available '%'; min-available '1.5'; min-available '50.5%'; min-available ' 5'; min-available '1e2'; min-available '2147483648'; min-available '99999999999999999999'; scheduler volcano with two names
    "#]],
    );
}

#[test]
fn of_cronjobs() {
    check(
        Kind::VcCronJob,
        "cronjobs-validate.json",
        &expect![[r#"
        metadata.name: name of 53 characters; name with blank; name ends with hyphen; name empty with generateName
        metadata.name, spec.schedule: object empty
        metadata.name, spec.schedule, spec.timeZone: schedule, timeZone and name wrong; update many wrong
        spec.schedule: schedule '0 0 L * *'; schedule '60 * * * *'; schedule '* 24 * * *'; schedule '* * 0 * *'; schedule '* * * 0 *'; schedule '* * * * 8'; schedule '-1 * * * *'; schedule '5-1 * * * *'; schedule '1-5-7 * * * *'; schedule 'a * * * *'; schedule '* * * FOO *'; schedule '* * * *'; schedule '* * * * * *'; schedule '@reboot'; schedule '@Daily'; schedule '@every'; schedule '@every x'; schedule '@every 1d'; schedule 'every 5m'; schedule '5/ * * * *'; schedule '*/5-7 * * * *'; schedule '0 0 15W * *'; schedule '0 0 * * 5#2'; schedule absent; schedule blanks only; schedule with TZ; schedule with CRON_TZ; schedule with lower case tz; schedule containing the letters TZ; update bad schedule; update schedule removed
        spec.schedule, spec.timeZone: schedule and timeZone wrong
        spec.timeZone: timeZone 'Local'; timeZone 'local'; timeZone 'LOCAL'; timeZone 'Bogus'; timeZone 'Asia/Nowhere'; timeZone 'asia/shanghai'; timeZone 'utc'; timeZone 'Asia/../UTC'; timeZone './UTC'; timeZone '../UTC'; timeZone '-Asia/Tokyo'; timeZone 'Asia/-Tokyo'; timeZone '/UTC'; timeZone 'UTC/'; timeZone 'Asia//Tokyo'; timeZone 'Asia/Shang hai'; timeZone 'UTC+8'; timeZone '+08:00'; timeZone 'Asia/ThisNameIsTooLong'; timeZone 'Etc/GMT+15'; timeZone ' UTC'; timeZone empty; update bad timeZone
    "#]],
    );
}
