//! `krafla manifests`: everything that a cluster needs to run Krafla, as YAML. Pure.
//!
//! The manifests are the files of `deploy`, with the user's namespace, image and replicas in them, together with Volcano's CRDs and the
//! webhook configurations.

use anyhow::{Context, Result, ensure};
use krafla_admission::names;
use krafla_admission::webhook::ENDPOINTS;
use serde_json::{Value, json};

use crate::cli::{Manifests, Part};

/// The namespace, image and Service in the files of `deploy`.
const NAMESPACE: &str = "volcano-system";
const IMAGE: &str = "krafla:latest";
const SERVICE: &str = "volcano-admission-service";

const CONTROLLERS: &str = include_str!("../../../deploy/controllers.yaml");
const WEBHOOKS: &str = include_str!("../../../deploy/webhooks.yaml");

/// The objects to apply, in order.
pub(crate) fn objects(args: &Manifests) -> Result<Vec<Value>> {
    let problems = names::dns_label(&args.namespace);
    ensure!(problems.is_empty(), "--namespace {:?}: {}", args.namespace, problems.join("; "));
    let wants = |part: Part| args.only.is_empty() || args.only.contains(&part);
    let mut objects = Vec::new();
    if wants(Part::Crds) {
        objects.extend(krafla_api::crd::crds());
    }
    if wants(Part::Controllers) {
        objects.extend(documents(CONTROLLERS).context("deploy/controllers.yaml")?);
    }
    if wants(Part::Webhooks) {
        let client = match &args.webhook_url {
            Some(url) => json!({ "url": url }),
            None => {
                objects.extend(documents(WEBHOOKS).context("deploy/webhooks.yaml")?);
                json!({ "service": { "name": SERVICE, "namespace": NAMESPACE } })
            }
        };
        objects.extend(ENDPOINTS.iter().map(|endpoint| endpoint.manifest(&client, NAMESPACE)));
    }
    Ok(objects.into_iter().map(|object| customised(object, args)).collect())
}

/// The documents of a YAML file.
fn documents(text: &str) -> Result<Vec<Value>> {
    Ok(serde_saphyr::from_multiple(text)?)
}

/// An object with the user's namespace, image and replicas.
fn customised(value: Value, args: &Manifests) -> Value {
    match value {
        Value::String(text) if text == NAMESPACE => args.namespace.clone().into(),
        Value::String(text) if text == IMAGE => args.image.clone().into(),
        Value::String(text) => match text.strip_suffix(&format!("={NAMESPACE}")) {
            Some(flag) => format!("{flag}={}", args.namespace).into(),
            None => text.into(),
        },
        Value::Array(items) => items.into_iter().map(|item| customised(item, args)).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| match name.as_str() {
                "replicas" if value.is_number() => (name, args.replicas.into()),
                _ => (name, customised(value, args)),
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn printed(flags: &[&str]) -> Vec<Value> {
        let words = ["krafla", "manifests"].iter().chain(flags);
        match Cli::try_parse_from(words).unwrap().command {
            Command::Manifests(args) => objects(&args).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn named<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
        let found =
            objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {kind} {name}"))
    }

    #[test]
    fn the_users_namespace_image_and_replicas_are_everywhere() {
        let all = printed(&["--namespace=batch", "--image=registry.example/krafla:1", "--replicas=3"]);
        let text = Value::from(all.clone()).to_string();
        // The CRDs describe fields; nothing else may name the default namespace or image.
        let rest = all.iter().filter(|object| object["kind"] != "CustomResourceDefinition");
        let rest = Value::from(rest.cloned().collect::<Vec<_>>()).to_string();
        assert!(!rest.contains(NAMESPACE) && !text.contains(IMAGE), "{rest}");
        for name in ["krafla-controllers", "krafla-webhooks"] {
            let deployment = named(&all, "Deployment", name);
            assert_eq!(deployment["spec"]["replicas"], 3);
            let container = &deployment["spec"]["template"]["spec"]["containers"][0];
            assert_eq!(container["image"], "registry.example/krafla:1");
            assert!(container["args"].to_string().contains("=batch"), "{container}");
        }
    }

    #[test]
    fn parts_can_be_printed_alone() {
        let crds = printed(&["--only=crds"]);
        assert!(crds.iter().all(|object| object["kind"] == "CustomResourceDefinition"));
        let webhooks = printed(&["--only=webhooks", "--webhook-url=https://10.0.0.5:8443/"]);
        assert_eq!(webhooks.len(), ENDPOINTS.len(), "a program outside the cluster needs no Deployment");
        let jobs = named(&webhooks, "MutatingWebhookConfiguration", "volcano-admission-service-jobs-mutate");
        assert_eq!(
            jobs["webhooks"][0]["clientConfig"],
            json!({ "url": "https://10.0.0.5:8443/jobs/mutate" })
        );
    }

    #[test]
    fn a_webhook_that_is_down_does_not_stop_other_peoples_pods() {
        for object in printed(&["--only=webhooks"]) {
            for webhook in object["webhooks"].as_array().into_iter().flatten() {
                let is_of_pods = webhook["rules"][0]["resources"][0] == "pods";
                assert_eq!(webhook["failurePolicy"], if is_of_pods { "Ignore" } else { "Fail" }, "{webhook}");
            }
        }
    }

    #[test]
    fn the_role_of_the_webhooks_names_every_configuration() {
        let all = printed(&["--only=webhooks"]);
        let role = named(&all, "ClusterRole", "krafla-webhooks").to_string();
        for endpoint in &ENDPOINTS {
            assert!(role.contains(&format!("\"{}\"", endpoint.configuration())), "{}", endpoint.path);
        }
    }
}
