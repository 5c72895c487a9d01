//! ServiceAccounts.

use krafla_api::Time;
use serde_json::{Map, Value};

use super::Rules;

/// Asks for something that is deprecated.
const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";

/// ServiceAccounts.
pub struct ServiceAccount;

impl Rules for ServiceAccount {
    fn on_create(&self, account: &mut Value, _now: Time) {
        keep_names(account);
    }

    fn on_update(&self, account: &mut Value, _old: &Value) {
        keep_names(account);
    }

    fn warnings(&self, account: &Value) -> Vec<String> {
        let text = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
        let is_asked = has_annotation(account);
        is_asked.then(|| format!("metadata.annotations[{MOUNTABLE}]: {text}")).into_iter().collect()
    }

    fn warnings_of_change(&self, account: &Value, old: &Value) -> Vec<String> {
        if has_annotation(old) { Vec::new() } else { self.warnings(account) }
    }
}

fn has_annotation(account: &Value) -> bool {
    account.pointer("/metadata/annotations").is_some_and(|annotations| annotations.get(MOUNTABLE).is_some())
}

/// Of the Secrets of an account only the names count: they are in its namespace.
fn keep_names(account: &mut Value) {
    let secrets = account.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten();
    for secret in secrets.filter_map(Value::as_object_mut) {
        let name = secret.remove("name");
        *secret = name.into_iter().map(|name| ("name".to_owned(), name)).collect::<Map<_, _>>();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        let mut account = json!({"secrets": [{"kind": "Secret", "name": "a"}, {}]});
        ServiceAccount.on_update(&mut account, &Value::Null);
        assert_eq!(account, json!({"secrets": [{"name": "a"}, {}]}));
    }
}
