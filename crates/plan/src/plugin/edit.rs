//! Additions to the manifest of a pod.
//!
//! The manifest is the user's template as raw JSON, so that fields newer than this program survive. What is not shaped
//! like a pod is left as it is: the server will say what is wrong with it.

use serde_json::{Map, Value, json};

/// The longest `NAME=value` that Linux hands to a program, in bytes: a page more and `exec` fails (`MAX_ARG_STRLEN`,
/// less the byte that ends the text).
const ENV_BYTES_MAX: usize = 128 * 1024 - 1;

/// Whether a program can be started with this variable.
pub(super) fn fits_env(name: &str, value_bytes: usize) -> bool {
    env_bytes(name, value_bytes) <= ENV_BYTES_MAX
}

/// Why a variable does not fit.
pub(super) fn does_not_fit(name: &str, value_bytes: usize) -> String {
    let bytes = env_bytes(name, value_bytes);
    format!(
        "{name} would take {bytes} bytes, and Linux starts no program with more than {ENV_BYTES_MAX} in one variable"
    )
}

fn env_bytes(name: &str, value_bytes: usize) -> usize {
    let equals_sign = 1;
    name.len().saturating_add(equals_sign).saturating_add(value_bytes)
}

/// The pod's spec.
pub(super) fn spec(pod: &mut Value) -> Option<&mut Map<String, Value>> {
    pod.get_mut("spec").and_then(Value::as_object_mut)
}

/// The regular containers.
pub(super) fn containers(pod: &mut Value) -> impl Iterator<Item = &mut Map<String, Value>> {
    containers_in(pod, &["containers"])
}

/// The regular containers and the init containers.
pub(super) fn all_containers(pod: &mut Value) -> impl Iterator<Item = &mut Map<String, Value>> {
    containers_in(pod, &["containers", "initContainers"])
}

fn containers_in<'a>(
    pod: &'a mut Value,
    lists: &'static [&'static str],
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    let fields = spec(pod).into_iter().flat_map(Map::iter_mut);
    let lists = fields.filter(|(field, _)| lists.contains(&field.as_str()));
    lists.filter_map(|(_, list)| list.as_array_mut()).flatten().filter_map(Value::as_object_mut)
}

/// The name of a container.
pub(super) fn name(container: &Map<String, Value>) -> &str {
    container.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Sets a text field that is missing or empty.
pub(super) fn fill(object: &mut Map<String, Value>, field: &str, text: &str) {
    if object.get(field).and_then(Value::as_str).unwrap_or_default().is_empty() {
        object.insert(field.to_owned(), text.into());
    }
}

/// Puts an item at the end of a list.
pub(super) fn append(object: &mut Map<String, Value>, field: &str, item: Value) {
    let list = object.entry(field).or_insert(Value::Null);
    match list {
        Value::Array(items) => items.push(item),
        Value::Null => *list = json!([item]),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {}
    }
}

/// Adds a variable. One of the same name that the user has set comes before it; the last one counts.
pub(super) fn add_env(container: &mut Map<String, Value>, name: &str, value: &str) {
    append(container, "env", json!({ "name": name, "value": value }));
}

/// Opens a port, unless it is open under whatever name.
pub(super) fn open_port(container: &mut Map<String, Value>, name: &str, port: u16) {
    if !has_port(container, port) {
        append(container, "ports", json!({ "name": name, "containerPort": port }));
    }
}

/// Whether the container opens the port.
pub(super) fn has_port(container: &Map<String, Value>, port: u16) -> bool {
    let ports = container.get("ports").and_then(Value::as_array).into_iter().flatten();
    ports.into_iter().any(|entry| entry.get("containerPort").and_then(Value::as_u64) == Some(port.into()))
}

/// The name of a volume for the object `<job>-<suffix>`: the same, unless it can not be a volume's name. Objects may have
/// long names with dots; volumes may not.
pub(crate) fn volume_name(job: &str, suffix: &str) -> String {
    const LABEL_MAX: usize = 63;
    const KEPT_MAX: usize = 40;
    let name = format!("{job}-{suffix}");
    if name.len() <= LABEL_MAX && !job.contains('.') {
        return name;
    }
    let kept: String = job.chars().map(|c| if c == '.' { '-' } else { c }).take(KEPT_MAX).collect();
    format!("{}-{:08x}-{suffix}", kept.trim_end_matches('-'), fnv1a(job))
}

/// A short number that differs for different texts. It must never change: running pods carry it.
fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn volcano_b29_a_volume_has_a_name_that_servers_take() {
        let names = ["a", "my.job", &"long-".repeat(12), &format!("{}.x", "y".repeat(39))];
        let names: Vec<String> = names.iter().map(|job| volume_name(job, "svc")).collect();
        expect![[r#"
            a-svc
            my-job-5215ab3e-svc
            long-long-long-long-long-long-long-long-ff8381a9-svc
            yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy-fb5333b0-svc
        "#]]
        .assert_eq(&format!("{}\n", names.join("\n")));
        assert!(names.iter().all(|name| name.len() <= 63 && !name.contains('.')));
    }

    #[test]
    fn what_is_not_shaped_like_a_pod_is_left_as_it_is() {
        for text in [
            "null",
            "{}",
            r#"{"spec":null}"#,
            r#"{"spec":{"containers":3}}"#,
            r#"{"spec":{"containers":[3,{"env":"x"}],"initContainers":null}}"#,
        ] {
            let mut pod: Value = serde_json::from_str(text).unwrap();
            all_containers(&mut pod).for_each(|container| add_env(container, "A", "1"));
            assert_eq!(pod.to_string(), text);
        }
    }

    #[test]
    fn a_variable_fits_to_the_last_byte() {
        let name = "N";
        assert!(fits_env(name, 128 * 1024 - 1 - "N=".len()));
        assert!(!fits_env(name, 128 * 1024 - "N=".len()));
        assert!(!fits_env(name, usize::MAX));
    }
}
