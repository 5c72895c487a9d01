//! The Helm chart, rendered by Helm itself, which `scripts/install-tools helm` builds; without it there is nothing to run.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::support::{krafla, repository_file, text};

/// Objects by kind and name.
type Objects = BTreeMap<(String, String), Value>;

fn objects(yaml: &[u8]) -> Objects {
    let all: Vec<Value> = serde_saphyr::from_multiple(&text(yaml)).unwrap();
    let named = all.into_iter().filter(Value::is_object).map(|object| {
        let name = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
        ((name("/kind"), name("/metadata/name")), object)
    });
    named.collect()
}

/// What the chart installs; none if Helm is not there.
fn rendered(flags: &[&str]) -> Option<Result<Objects, String>> {
    let helm = repository_file("target/tools/bin/helm");
    if !helm.exists() {
        println!("{} is missing; scripts/install-tools helm builds it", helm.display());
        return None;
    }
    let output = Command::new(helm)
        .args(["template", "krafla"])
        .arg(repository_file("deploy/chart"))
        .args(["--kube-version", "1.36.0"])
        .args(flags)
        .output()
        .unwrap();
    Some(if output.status.success() { Ok(objects(&output.stdout)) } else { Err(text(&output.stderr)) })
}

#[test]
fn the_chart_installs_what_krafla_manifests_prints() {
    let flags = ["--namespace=batch", "--set=basic.image_registry=registry.example"];
    let flags = [&flags[..], &["--set=custom.controller_replicas=3,custom.admission_replicas=3"]].concat();
    let Some(chart) = rendered(&flags) else { return };
    let args = ["--namespace=batch", "--image=registry.example/krafla:latest", "--replicas=3"];
    let parts = ["--only=controllers,webhooks"];
    let printed = krafla().arg("manifests").args(args).args(parts).output().unwrap();
    let mut printed = objects(&printed.stdout);
    // Helm makes the namespace: `--create-namespace`.
    printed.remove(&("Namespace".to_owned(), "batch".to_owned()));
    assert_eq!(chart.unwrap(), printed);
}

#[test]
fn values_of_the_chart_change_what_they_name() {
    let Some(alone) = rendered(&["--set=custom.admission_enable=false,custom.controller_args={--v=4}"])
    else {
        return;
    };
    let alone = alone.unwrap();
    assert!(alone.keys().all(|(_, name)| name == "krafla-controllers"), "{:?}", alone.keys());
    let deployment = &alone[&("Deployment".to_owned(), "krafla-controllers".to_owned())];
    assert!(deployment.to_string().contains("\"--v=4\""), "{deployment}");
    let policies = rendered(&["--set=custom.network_policy_enable=true"]).unwrap().unwrap();
    assert!(policies.contains_key(&("NetworkPolicy".to_owned(), "krafla-webhooks".to_owned())));
    let wrong = rendered(&["--set=custom.enabled_admissions=/nothing/validate"]).unwrap().unwrap_err();
    assert!(wrong.contains("custom.enabled_admissions: unknown path /nothing/validate"), "{wrong}");
}
