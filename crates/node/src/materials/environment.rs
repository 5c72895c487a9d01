//! A container's environment, and `$(NAME)` in its command and arguments.

use std::collections::BTreeMap;

use krafla_api::Kind;

use super::fields::{Facts, field, resource};
use super::sources::{Missing, Sources};
use crate::pod::{Container, EnvVar, Pod};

/// A text of more bytes cannot be given to a process, so no more of it is expanded: variables that name each other can double with
/// each.
const TEXT_BYTES_MAX: usize = 128 << 10;
/// How many bytes the expansion of variables or arguments may add. No Linux starts a process with as many.
const ALL_BYTES_MAX: usize = 8 << 20;

/// The variables that Kubernetes gives and the manifest defines: the way to the server, all of `envFrom`, then `env` in order,
/// later ones winning.
pub fn variables(
    pod: &Pod,
    container: &Container,
    facts: &Facts,
    sources: &Sources,
) -> Result<BTreeMap<String, String>, Missing> {
    let mut variables = facts.way_to_server.clone();
    for from in &container.env_from {
        let config_map = from.config_map_ref.as_ref().map(|reference| (Kind::ConfigMap, reference));
        let secret = from.secret_ref.as_ref().map(|reference| (Kind::Secret, reference));
        for (kind, reference) in config_map.into_iter().chain(secret) {
            let data = sources.all(kind, &reference.name, reference.optional)?;
            for (key, value) in data.into_iter().flatten() {
                let name = format!("{}{key}", from.prefix);
                // A kubelet leaves out what can not be a variable, too.
                if is_variable_name(&name) {
                    variables.insert(name, text(value));
                }
            }
        }
    }
    let mut n_bytes = 0;
    for variable in &container.env {
        if let Some(value) = value(variable, &variables, pod, container, facts, sources)? {
            n_bytes += value.len().saturating_sub(variable.value.len());
            if n_bytes > ALL_BYTES_MAX {
                let name = &container.name;
                let message =
                    format!("the variables of container {name:?} expand to more than {ALL_BYTES_MAX} bytes");
                return Err(Missing::Field(message));
            }
            variables.insert(variable.name.clone(), value);
        }
    }
    Ok(variables)
}

fn value(
    variable: &EnvVar,
    before: &BTreeMap<String, String>,
    pod: &Pod,
    container: &Container,
    facts: &Facts,
    sources: &Sources,
) -> Result<Option<String>, Missing> {
    let Some(from) = &variable.value_from else { return Ok(Some(expand(&variable.value, before))) };
    if let Some(reference) = &from.field_ref {
        return field(pod, facts, &reference.field_path).map(Some);
    }
    if let Some(reference) = &from.resource_field_ref {
        return resource(pod, facts, reference, Some(container)).map(Some);
    }
    let config_map = from.config_map_key_ref.as_ref().map(|key| (Kind::ConfigMap, key));
    let secret = from.secret_key_ref.as_ref().map(|key| (Kind::Secret, key));
    let Some((kind, key)) = config_map.or(secret) else {
        let message =
            format!("env {:?} has a valueFrom of a kind that this node does not know", variable.name);
        return Err(Missing::Field(message));
    };
    Ok(sources.key(kind, &key.name, &key.key, key.optional)?.map(text))
}

/// The command line: `command` and `args`, with `$(NAME)` replaced. Empty if the manifest names no command,
/// because then the image would say what to run, and there is no image.
///
/// Arguments alone are run as a command: they are what follows the entrypoint, and most images have none.
pub fn command_line(container: &Container, variables: &BTreeMap<String, String>) -> Vec<String> {
    let mut n_bytes = 0;
    let parts = container.command.iter().chain(&container.args).map(|part| {
        let expanded = if n_bytes > ALL_BYTES_MAX { part.clone() } else { expand(part, variables) };
        n_bytes += expanded.len();
        expanded
    });
    parts.collect()
}

/// Replaces `$(NAME)`. What is not defined stays as it is, and `$$` is a plain `$`.
pub fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    expand_by(text, |name| variables.get(name))
}

/// The same where everything must be defined. An error is the name of what is not.
pub fn expand_all(text: &str, variables: &BTreeMap<String, String>) -> Result<String, String> {
    let mut undefined = None;
    let expanded = expand_by(text, |name| {
        let value = variables.get(name);
        if value.is_none() {
            undefined.get_or_insert_with(|| name.to_owned());
        }
        value
    });
    undefined.map_or(Ok(expanded), Err)
}

fn expand_by<'v>(text: &str, mut value_of: impl FnMut(&str) -> Option<&'v String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        if expanded.len() > TEXT_BYTES_MAX {
            return expanded;
        }
        rest = if let Some(after) = after.strip_prefix('$') {
            expanded.push('$');
            after
        } else if let Some((name, after)) = after.strip_prefix('(').and_then(|after| after.split_once(')')) {
            match value_of(name) {
                Some(value) => expanded.push_str(value),
                None => expanded.extend(["$(", name, ")"]),
            }
            after
        } else {
            expanded.push('$');
            after
        };
    }
    expanded.push_str(rest);
    expanded
}

/// A variable's bytes; what is not text can not be sent to a process as text.
fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte != b'=' && byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn references_are_expanded_by_kubernetes_rules() {
        let variables: BTreeMap<_, _> =
            [("A".to_owned(), "a".to_owned()), ("B".to_owned(), "$(A)".to_owned())].into();
        for (text, expected) in [
            ("$(A)", "a"),
            ("x$(A)y$(A)", "xaya"),
            ("$(NONE)", "$(NONE)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$a"),
            ("$(B)", "$(A)"),
            ("$A", "$A"),
            ("$(A", "$(A"),
            ("$", "$"),
            ("$()", "$()"),
            ("costs $5", "costs $5"),
        ] {
            assert_eq!(expand(text, &variables), expected, "{text}");
        }
        assert_eq!(expand_all("$(A)$$(NONE)", &variables), Ok("a$(NONE)".to_owned()));
        assert_eq!(expand_all("$(A)/$(NONE)/$(NO)", &variables), Err("NONE".to_owned()));
    }

    #[test]
    fn variables_that_double_with_each_other_end_soon() {
        let double = |n: usize| {
            let twenty = |n| serde_json::json!({"name": format!("V{n}"), "value": format!("$(V{})", n - 1).repeat(20)});
            let first = serde_json::json!({"name": "V0", "value": "x".repeat(100)});
            let env: Vec<_> = std::iter::once(first).chain((1..n).map(twenty)).collect();
            variables_of(serde_json::json!({"name": "main", "env": env}))
        };
        let longest = |text: &str| text.lines().map(str::len).max().unwrap();
        assert!(
            (TEXT_BYTES_MAX..4 * TEXT_BYTES_MAX).contains(&longest(&double(12))),
            "too long for a process"
        );
        assert_eq!(double(500), "the variables of container \"main\" expand to more than 8388608 bytes");

        let variables = BTreeMap::from([("BIG".to_owned(), "x".repeat(TEXT_BYTES_MAX))]);
        let container = serde_json::json!({"name": "main", "args": vec!["$(BIG)"; 10_000]});
        let parts = command_line(&serde_json::from_value(container).unwrap(), &variables);
        let n_bytes: usize = parts.iter().map(String::len).sum();
        assert!((ALL_BYTES_MAX..2 * ALL_BYTES_MAX).contains(&n_bytes), "{n_bytes}");
        assert_eq!(parts.len(), 10_000);
    }

    fn variables_of(container: serde_json::Value) -> String {
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "p", "namespace": "ns"}, "spec": {"containers": [container]}
        }))
        .unwrap();
        let mut sources = Sources::default();
        let data = [("user".to_owned(), b"kim".to_vec()), ("not a name".to_owned(), b"x".to_vec())].into();
        sources.insert((Kind::ConfigMap, "cm".to_owned()), Some(data));
        sources.insert((Kind::Secret, "s".to_owned()), Some([("key".to_owned(), b"hush".to_vec())].into()));
        sources.insert((Kind::ConfigMap, "none".to_owned()), None);
        let way_to_server = [("SERVER", "127.0.0.1"), ("PORT", "1")];
        let way_to_server = way_to_server.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let facts = Facts { way_to_server, ..Facts::default() };
        match variables(&pod, &pod.spec.containers[0], &facts, &sources) {
            Ok(variables) => variables.iter().map(|(name, value)| format!("{name}={value}\n")).collect(),
            Err(missing) => missing.to_string(),
        }
    }

    #[test]
    fn later_variables_win_and_see_earlier_ones() {
        let container = serde_json::json!({
            "name": "main",
            "envFrom": [{"prefix": "CM_", "configMapRef": {"name": "cm"}}, {"configMapRef": {"name": "none", "optional": true}}],
            "env": [
                {"name": "GREETING", "value": "hello $(CM_user), not $(LATER)"},
                {"name": "LATER", "value": "x"},
                {"name": "URL", "value": "https://$(SERVER):$(PORT)"},
                {"name": "PORT", "value": "2"},
                {"name": "CM_user", "value": "robin"},
                {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "key"}}},
                {"name": "ABSENT", "valueFrom": {"secretKeyRef": {"name": "s", "key": "no", "optional": true}}}
            ]
        });
        expect![[r#"
            CM_user=robin
            GREETING=hello kim, not $(LATER)
            KEY=hush
            LATER=x
            POD=p
            PORT=2
            SERVER=127.0.0.1
            URL=https://127.0.0.1:1
        "#]]
        .assert_eq(&variables_of(container));
    }

    #[test]
    fn what_is_missing_is_named() {
        let of = |from: serde_json::Value| {
            variables_of(serde_json::json!({"name": "main", "env": [{"name": "X", "valueFrom": from}]}))
        };
        let key = serde_json::json!({"configMapKeyRef": {"name": "none", "key": "k"}});
        assert_eq!(of(key), "configmap \"none\" not found");
        let key = serde_json::json!({"secretKeyRef": {"name": "s", "key": "k"}});
        assert_eq!(of(key), "couldn't find key k in Secret s");
    }

    #[test]
    fn arguments_alone_are_a_command_and_nothing_at_all_is_a_pause() {
        let line = |json| {
            command_line(&serde_json::from_value(json).unwrap(), &[("N".to_owned(), "1".to_owned())].into())
        };
        assert_eq!(line(serde_json::json!({"command": ["echo"], "args": ["$(N)"]})), ["echo", "1"]);
        assert_eq!(line(serde_json::json!({"args": ["sh", "-c", "true"]})), ["sh", "-c", "true"]);
        assert!(line(serde_json::json!({})).is_empty());
    }
}
