//! What the roles in `deploy` permit is what the controllers do on a cluster: all of it, and nothing else.

use std::collections::BTreeSet;

use expect_test::expect;
use krafla_api::Kind;
use krafla_plan::Controller;
use krafla_sim::{Case, Program, play, scenario};
use serde_json::Value;

/// Verbs and what they are for: `patch jobs.batch.volcano.sh/status`.
type Permissions = BTreeSet<String>;

fn permission(verb: &str, kind: Kind, part: &str) -> String {
    let part = if part.is_empty() { String::new() } else { format!("/{part}") };
    format!("{verb} {}{part}", kind.info().qualified_plural())
}

/// What the cluster roles of a manifest permit.
fn permitted(file: &str) -> Permissions {
    let path = format!("{}/../../deploy/{file}", env!("CARGO_MANIFEST_DIR"));
    let manifest = std::fs::read_to_string(path).unwrap();
    let documents =
        manifest.split("\n---\n").map(|document| serde_saphyr::from_str::<Value>(document).unwrap());
    let roles: Vec<Value> = documents.filter(|document| document["kind"] == "ClusterRole").collect();
    assert_eq!(roles.len(), 1, "{file}");
    let texts = |rule: &Value, field: &str| -> Vec<String> {
        rule[field].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut permissions = Permissions::new();
    for rule in roles[0]["rules"].as_array().unwrap() {
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                let (plural, part) = resource.split_once('/').unwrap_or((&resource, ""));
                let dot = if group.is_empty() { "" } else { "." };
                let slash = if part.is_empty() { "" } else { "/" };
                let named = |verb: String| format!("{verb} {plural}{dot}{group}{slash}{part}");
                permissions.extend(texts(rule, "verbs").into_iter().map(named));
            }
        }
    }
    permissions
}

fn with_verbs(permissions: &Permissions, verbs: &[&str]) -> Permissions {
    let has_verb =
        |permission: &&String| verbs.iter().any(|verb| permission.starts_with(&format!("{verb} ")));
    permissions.iter().filter(has_verb).cloned().collect()
}

/// What these controllers read: everything that they watch, and each root once more before something is made for it.
fn read_by(is_meant: impl Fn(&dyn Controller) -> bool) -> Permissions {
    let mut permissions = Permissions::new();
    for controller in krafla_plan::controllers().iter().filter(|controller| is_meant(controller.as_ref())) {
        permissions.insert(permission("get", controller.root(), ""));
        for kind in controller.watches().iter().copied().chain([controller.root()]) {
            permissions.extend(["list", "watch"].map(|verb| permission(verb, kind, "")));
        }
    }
    permissions
}

/// Whether every Kubernetes cluster has a controller of its own for this.
fn is_of_kubernetes(controller: &dyn Controller) -> bool {
    [Kind::Job, Kind::CronJob, Kind::Pod].contains(&controller.root())
}

#[test]
fn what_the_controllers_read_is_permitted_and_nothing_else() {
    let reads = |file: &str| with_verbs(&permitted(file), &["get", "list", "watch"]);
    assert_eq!(reads("controllers.yaml"), read_by(|controller| !is_of_kubernetes(controller)));
    assert_eq!(reads("kubernetes-jobs.yaml"), read_by(is_of_kubernetes));
}

#[test]
fn what_the_controllers_write_in_any_scenario_is_permitted() {
    let mut written = Permissions::new();
    for scenario in scenario::ALL {
        let outcome = play(&Case::calm(scenario), &Program::as_shipped(), false);
        let by_controllers = outcome.writes.iter().filter(|attempt| attempt.process == "controllers");
        written.extend(by_controllers.map(|attempt| {
            let (verb, kind, part) = attempt.permission;
            permission(verb, kind, part)
        }));
    }
    let all: Permissions =
        ["controllers.yaml", "kubernetes-jobs.yaml"].into_iter().flat_map(permitted).collect();
    let writes = with_verbs(&all, &["create", "patch", "delete"]);
    let missing: Vec<&String> = written.difference(&writes).collect();
    assert!(missing.is_empty(), "deploy permits no {missing:?}");
    // Events are written beside the plans. What a plugin has made is changed when the job is scaled or somebody tampered with it,
    // which is played from the records of Volcano.
    let rest: Vec<&str> = writes.difference(&written).map(String::as_str).collect();
    expect![[r#"
        create events
        patch configmaps
        patch events
        patch networkpolicies.networking.k8s.io
        patch secrets
        patch services"#]]
    .assert_eq(&rest.join("\n"));
}

#[test]
fn volcano_49_owners_that_are_kept_until_their_children_are_gone_may_be_named() {
    // A server that enforces it asks whether whoever names such an owner may keep it from going.
    let of_volcano = [Kind::VcJob, Kind::VcCronJob, Kind::JobFlow];
    let of_others = [Kind::Pod, Kind::ReplicaSet, Kind::StatefulSet, Kind::DaemonSet, Kind::Job];
    let permissions = permitted("controllers.yaml");
    for owner in of_volcano.into_iter().chain(of_others) {
        let wanted = permission("update", owner, "finalizers");
        assert!(permissions.contains(&wanted), "deploy permits no {wanted}");
    }
}
