//! What a client asks of a connection, as the object that webhooks are shown: PodExecOptions and its like.

use serde_json::{Map, Value, json};

use super::path::ResourcePath;
use super::query::Query;

/// The options of a connection. `rest` is the path behind `proxy`.
pub(super) fn options(
    [group, version, kind]: [&str; 3],
    path: &ResourcePath,
    query: &Query,
    rest: &str,
) -> Value {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut options =
        Map::from_iter([("apiVersion".to_owned(), json!(api_version)), ("kind".to_owned(), json!(kind))]);
    match path.subresource.as_str() {
        subresource @ ("exec" | "attach") => {
            for flag in ["stdin", "stdout", "stderr", "tty"] {
                if query.flag(flag) {
                    options.insert(flag.to_owned(), true.into());
                }
            }
            if !query.text("container").is_empty() {
                options.insert("container".to_owned(), query.text("container").into());
            }
            if subresource == "exec" {
                let command: Vec<&str> = query.all("command").collect();
                options.insert("command".to_owned(), json!(command));
            }
        }
        "portforward" => {
            let ports = query.all("ports").flat_map(|ports| ports.split(','));
            let ports: Vec<i64> = ports.filter_map(|port| port.parse().ok()).collect();
            if !ports.is_empty() {
                options.insert("ports".to_owned(), json!(ports));
            }
        }
        _ => {
            if !rest.is_empty() {
                options.insert("path".to_owned(), rest.into());
            }
        }
    }
    Value::Object(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_say_what_the_query_says() {
        let shown = |kind, subresource: &str, query: &str, rest: &str| {
            let path = ResourcePath { subresource: subresource.into(), ..ResourcePath::default() };
            options(["", "v1", kind], &path, &Query::parse(query), rest)
        };
        assert_eq!(
            shown("PodExecOptions", "exec", "command=ls&command=-l&stdout=true&stdin=false&container=c", ""),
            json!({
                "apiVersion": "v1", "kind": "PodExecOptions", "stdout": true, "container": "c", "command": ["ls", "-l"],
            })
        );
        assert_eq!(
            shown("PodPortForwardOptions", "portforward", "ports=80,443", ""),
            json!({"apiVersion": "v1", "kind": "PodPortForwardOptions", "ports": [80, 443]})
        );
        assert_eq!(
            shown("ServiceProxyOptions", "proxy", "a=b", "/x"),
            json!({"apiVersion": "v1", "kind": "ServiceProxyOptions", "path": "/x"})
        );
    }
}
