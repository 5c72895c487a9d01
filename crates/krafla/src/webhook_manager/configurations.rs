//! The webhook configurations of the cluster: each learns by which authority the API server can trust this program.
//!
//! A configuration that does not exist yet is waited for, and one that was changed or created again is mended: the check
//! is repeated for as long as this program runs. Several replicas write the same.

use std::time::Duration;

use base64::Engine as _;
use krafla_admission::webhook::{Endpoint, Role};
use krafla_client::{HttpsClient, Request};
use krafla_cluster::ClientError;
use serde_json::{Value, json};
use tokio::sync::watch;

/// How often configurations are looked at, while some are missing and afterwards.
const WAIT_FOR_MISSING: Duration = Duration::from_secs(1);
const WAIT: Duration = Duration::from_secs(30);

/// Keeps the configurations up to date with the authority.
pub(super) async fn keep(
    client: &HttpsClient,
    endpoints: &[&Endpoint],
    mut authority: watch::Receiver<Vec<u8>>,
) {
    let mut reported = Vec::new();
    loop {
        let bundle = base64::engine::general_purpose::STANDARD.encode(&*authority.borrow_and_update());
        let mut problems = Vec::new();
        for endpoint in endpoints {
            if let Err(error) = trust(client, endpoint, &bundle).await {
                problems.push(format!("{}: {error}", endpoint.configuration()));
            }
        }
        if problems != reported {
            problems.iter().for_each(|problem| tracing::warn!(problem, "cannot set a certificate authority"));
        }
        let wait = if problems.is_empty() { WAIT } else { WAIT_FOR_MISSING };
        reported = problems;
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = authority.changed() => {}
        }
    }
}

/// Writes the authority into one configuration, if it is not there yet.
async fn trust(client: &HttpsClient, endpoint: &Endpoint, bundle: &str) -> Result<(), ClientError> {
    let plural = match endpoint.role {
        Role::Mutating => "mutatingwebhookconfigurations",
        Role::Validating => "validatingwebhookconfigurations",
    };
    let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}/{}", endpoint.configuration());
    let found = client.ask(&Request::get(path.clone())).await?;
    let found: Value =
        serde_json::from_slice(&found).map_err(|error| ClientError::Unknown(error.to_string()))?;
    let Some(patch) = change(&found, bundle) else { return Ok(()) };
    match client.ask(&Request::merge_patch(format!("{path}?fieldManager=krafla-webhooks"), patch)).await {
        Ok(_) => {
            tracing::info!(configuration = endpoint.configuration(), "certificate authority is set");
            Ok(())
        }
        // Another replica was quicker; what it wrote is looked at next time.
        Err(ClientError::Conflict(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The patch that makes all webhooks of a configuration trust the authority; none if they do. Pure.
fn change(configuration: &Value, bundle: &str) -> Option<Value> {
    let mut webhooks = configuration.get("webhooks")?.clone();
    let mut has_changed = false;
    for webhook in webhooks.as_array_mut()? {
        let client = webhook.get_mut("clientConfig").and_then(Value::as_object_mut);
        if let Some(client) = client
            && client.get("caBundle").is_none_or(|known| known != bundle)
        {
            client.insert("caBundle".into(), bundle.into());
            has_changed = true;
        }
    }
    let version = configuration.pointer("/metadata/resourceVersion");
    has_changed.then(|| json!({ "metadata": { "resourceVersion": version }, "webhooks": webhooks }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_webhook_of_a_configuration_learns_the_authority_once() {
        let service = json!({ "name": "s", "namespace": "n" });
        let webhook =
            |bundle: &str| json!({ "name": "a", "clientConfig": { "service": service, "caBundle": bundle } });
        let found = |bundles: [&str; 2]| json!({ "metadata": { "resourceVersion": "7" }, "webhooks": bundles.map(webhook) });
        let expected = found(["new", "new"]);
        assert_eq!(change(&found(["old", "new"]), "new"), Some(expected.clone()));
        assert_eq!(change(&expected, "new"), None);
        let without = json!({ "metadata": {}, "webhooks": [{ "clientConfig": { "url": "https://x" } }] });
        let patch = change(&without, "new").unwrap();
        assert_eq!(patch["webhooks"][0]["clientConfig"], json!({ "url": "https://x", "caBundle": "new" }));
        assert_eq!(change(&json!({}), "new"), None);
    }
}
