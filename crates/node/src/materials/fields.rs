//! Fields of a pod, and requests and limits of its containers, as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use krafla_api::Quantity;

use super::sources::Missing;
use crate::pod::{Container, Pod, ResourceFieldRef};

/// What a pod can be told of itself and its node.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The node's name.
    pub node_name: String,
    /// The machine's address.
    pub host_ip: String,
    /// The pod's address.
    pub pod_ip: String,
    /// The variables by which programs find the API server.
    pub way_to_server: BTreeMap<String, String>,
    /// What the node has: the limit of a container that has none.
    pub allocatable: BTreeMap<String, Quantity>,
}

/// A field by its path, as in `fieldRef`.
pub fn field(pod: &Pod, facts: &Facts, path: &str) -> Result<String, Missing> {
    let metadata = &pod.metadata;
    if let Some((map, key)) = subscript(path) {
        let entries = match map {
            "metadata.labels" => &metadata.labels,
            "metadata.annotations" => &metadata.annotations,
            _ => return Err(unknown(path)),
        };
        return Ok(entries.get(key).cloned().unwrap_or_default());
    }
    Ok(match path {
        "metadata.name" => metadata.name.clone(),
        "metadata.namespace" => metadata.namespace.clone(),
        "metadata.uid" => metadata.uid.to_string(),
        "metadata.labels" => lines(&metadata.labels),
        "metadata.annotations" => lines(&metadata.annotations),
        "spec.nodeName" => facts.node_name.clone(),
        "spec.serviceAccountName" => pod.spec.service_account_name.clone(),
        "status.hostIP" | "status.hostIPs" => facts.host_ip.clone(),
        "status.podIP" | "status.podIPs" => facts.pod_ip.clone(),
        _ => return Err(unknown(path)),
    })
}

fn unknown(path: &str) -> Missing {
    Missing::Field(format!("fieldPath {path:?} is not a field that a pod can be told"))
}

/// `metadata.labels['key']`.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (map, rest) = path.split_once('[')?;
    let key = rest.strip_suffix(']')?;
    let key = key.strip_prefix('\'').and_then(|key| key.strip_suffix('\'')).unwrap_or(key);
    Some((map, key))
}

/// One `key="value"` per line, as Go would quote it.
fn lines(entries: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (index, (key, value)) in entries.iter().enumerate() {
        let separator = if index == 0 { "" } else { "\n" };
        // Writing to a string can not fail.
        let _ = write!(text, "{separator}{key}={}", quote(value));
    }
    text
}

/// As Go's `%q` has it.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            _ if is_printable(c) => quoted.push(c),
            // Writing to a string can not fail.
            '\0'..='\u{7f}' => drop(write!(quoted, "\\x{:02x}", u32::from(c))),
            '\u{80}'..='\u{ffff}' => drop(write!(quoted, "\\u{:04x}", u32::from(c))),
            _ => drop(write!(quoted, "\\U{:08x}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether there is something to see of a character. Rust knows the same of each, but for accents that stand alone: so it is
/// asked of one that follows a letter.
fn is_printable(c: char) -> bool {
    let after_letter: String = ['a', c].iter().collect();
    c == '\'' || after_letter.escape_debug().nth(1) == Some(c)
}

/// A request or limit, as in `resourceFieldRef`; `default_container` where it names none.
pub fn resource(
    pod: &Pod,
    facts: &Facts,
    reference: &ResourceFieldRef,
    default_container: Option<&Container>,
) -> Result<String, Missing> {
    let named = pod.all_containers().find(|container| container.name == reference.container_name);
    let container = named.or(default_container).ok_or_else(|| {
        Missing::Field(format!(
            "resourceFieldRef names container {:?}, which the pod does not have",
            reference.container_name
        ))
    })?;
    let amount = match reference.resource.split_once('.') {
        Some(("limits", name)) => limit(container, facts, name),
        // A request that is not set equals the limit, but what is not asked for is not promised.
        Some(("requests", name)) => {
            container.resources.requests.get(name).or(container.resources.limits.get(name)).copied()
        }
        _ => {
            let message = format!("resource {:?} is neither limits.* nor requests.*", reference.resource);
            return Err(Missing::Field(message));
        }
    };
    let divisor = reference.divisor.filter(|divisor| !divisor.is_zero()).unwrap_or(Quantity::from_units(1));
    Ok(divide_up(amount.unwrap_or_default(), divisor).to_string())
}

fn limit(container: &Container, facts: &Facts, name: &str) -> Option<Quantity> {
    container.resources.limits.get(name).or_else(|| facts.allocatable.get(name)).copied()
}

/// How many times the divisor fits, a part counting as one. In thousandths where they matter, else in whole
/// units, because bytes in thousandths can be more than fits.
fn divide_up(amount: Quantity, divisor: Quantity) -> i64 {
    let (amount, divisor) = if divisor < Quantity::from_units(1) || amount < Quantity::from_units(1_000_000) {
        (amount.milli_value(), divisor.milli_value())
    } else {
        (amount.value(), divisor.value())
    };
    let (whole, rest) = (amount.checked_div(divisor).unwrap_or(0), amount.checked_rem(divisor).unwrap_or(0));
    whole.saturating_add(i64::from(rest > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Pod {
        let json = serde_json::json!({
            "metadata": {"name": "p", "namespace": "ns", "labels": {"app": "x", "quote": "a\"b"}},
            "spec": {"containers": [
                {"name": "main", "resources": {"requests": {"cpu": "250m"}, "limits": {"memory": "1Gi"}}}
            ]}
        });
        serde_json::from_value(json).unwrap()
    }

    fn facts() -> Facts {
        let allocatable = [("cpu".to_owned(), Quantity::from_units(8))].into();
        Facts {
            node_name: "here".into(),
            host_ip: "127.0.0.1".into(),
            pod_ip: "127.64.0.1".into(),
            allocatable,
            ..Facts::default()
        }
    }

    #[test]
    fn fields_are_found_by_their_path() {
        let of = |path| field(&pod(), &facts(), path).unwrap();
        assert_eq!(of("metadata.name"), "p");
        assert_eq!(of("metadata.labels['app']"), "x");
        assert_eq!(of("metadata.annotations['none']"), "");
        assert_eq!(of("metadata.labels"), "app=\"x\"\nquote=\"a\\\"b\"");
        assert_eq!(of("spec.nodeName"), "here");
        assert_eq!(of("status.podIP"), "127.64.0.1");
        assert!(field(&pod(), &facts(), "spec.hostname").is_err());
    }

    #[test]
    fn values_are_quoted_as_go_quotes_them() {
        for (value, quoted) in [
            ("plain, with a space", r#""plain, with a space""#),
            ("a\"b\\c'", r#""a\"b\\c'""#),
            ("\u{7}\u{8}\u{c}\n\r\t\u{b}", r#""\a\b\f\n\r\t\v""#),
            ("\0\u{1}\u{7f}", r#""\x00\x01\x7f""#),
            ("gr\u{fc}n e\u{301} \u{1f600}", "\"gr\u{fc}n e\u{301} \u{1f600}\""),
            ("\u{a0}\u{200b}\u{feff}", r#""\u00a0\u200b\ufeff""#),
            ("\u{e0001}\u{10ffff}", r#""\U000e0001\U0010ffff""#),
        ] {
            assert_eq!(quote(value), quoted);
        }
    }

    #[test]
    fn amounts_are_divided_and_rounded_up() {
        let of = |resource: &str, divisor: &str| {
            let divisor = (!divisor.is_empty()).then(|| divisor.parse().unwrap());
            let reference =
                ResourceFieldRef { resource: resource.into(), divisor, ..ResourceFieldRef::default() };
            let pod = pod();
            super::resource(&pod, &facts(), &reference, pod.spec.containers.first()).unwrap()
        };
        assert_eq!(of("requests.cpu", ""), "1");
        assert_eq!(of("requests.cpu", "1m"), "250");
        assert_eq!(of("limits.cpu", ""), "8");
        assert_eq!(of("limits.memory", ""), "1073741824");
        assert_eq!(of("limits.memory", "1Mi"), "1024");
        assert_eq!(of("requests.memory", "1M"), "1074");
    }
}
