//! What can be done with each kind, path by path.

use serde_json::{Map, Value, json};

use super::{Served, builtin_name, component_name, gvk_value, meta_reference, path_of, reference};

/// What can be asked at each of a kind's paths.
pub(super) fn of(kind: &Served<'_>) -> Vec<(String, Value)> {
    let [group, version, _] = kind.gvk;
    let root = format!("/{}", path_of(group, version));
    let collection = if kind.is_namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", kind.plural)
    } else {
        format!("{root}/{}", kind.plural)
    };
    let schema = component_name(kind);
    let list = reference(&format!("{schema}List"));
    let object = Operations {
        gvk: kind.gvk,
        verbs: kind.verbs,
        is_custom: kind.custom_schema.is_some(),
        body: reference(&schema),
        list,
    };
    let mut paths = Vec::new();
    if kind.is_namespaced {
        paths.push((format!("{root}/{}", kind.plural), object.at(&["list"], &[])));
    }
    let namespace: &[&str] = if kind.is_namespaced { &["namespace"] } else { &[] };
    paths.push((collection.clone(), object.at(&["list", "create", "deletecollection"], namespace)));
    let named: Vec<&str> = ["name"].iter().chain(namespace).copied().collect();
    paths.push((format!("{collection}/{{name}}"), object.at(&["get", "update", "patch", "delete"], &named)));
    for below in &kind.subresources {
        let is_own = below.gvk == kind.gvk;
        let body = if is_own { reference(&schema) } else { reference(&builtin_name(below.gvk)) };
        let operations =
            Operations { gvk: below.gvk, verbs: below.verbs, body, list: Value::Null, ..object.clone() };
        let item = operations.at(&["get", "create", "update", "patch", "delete"], &named);
        paths.push((format!("{collection}/{{name}}/{}", below.name), item));
    }
    paths.retain(|(_, item)| item.as_object().is_some_and(|item| item.len() > 1));
    paths
}

/// What can be done with one body.
#[derive(Clone)]
struct Operations<'a> {
    gvk: [&'a str; 3],
    verbs: &'a [&'a str],
    is_custom: bool,
    body: Value,
    list: Value,
}

impl Operations<'_> {
    /// A path's item: the operations among `verbs` that the kind has, and the parameters in the path.
    fn at(&self, verbs: &[&str], in_path: &[&str]) -> Value {
        let mut item = Map::new();
        for verb in verbs.iter().filter(|verb| self.verbs.contains(verb)) {
            let method = match *verb {
                "create" => "post",
                "update" => "put",
                "patch" => "patch",
                "delete" | "deletecollection" => "delete",
                _ => "get",
            };
            item.insert(method.to_owned(), self.operation(verb));
        }
        let mut parameters: Vec<Value> = in_path
            .iter()
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}}))
            .collect();
        parameters.push(query("pretty"));
        item.insert("parameters".to_owned(), Value::Array(parameters));
        Value::Object(item)
    }

    fn operation(&self, verb: &str) -> Value {
        let action = match verb {
            "create" => "post",
            "update" => "put",
            other => other,
        };
        let answer = match verb {
            "list" => self.list.clone(),
            "delete" | "deletecollection" => meta_reference("Status"),
            _ => self.body.clone(),
        };
        let mut operation = json!({
            "parameters": parameters_of(verb),
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": answer}}}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk_value(self.gvk),
        });
        if let (Some(body), Value::Object(fields)) = (self.request_body(verb), &mut operation) {
            fields.insert("requestBody".to_owned(), body);
        }
        operation
    }

    fn request_body(&self, verb: &str) -> Option<Value> {
        let content = match verb {
            "create" | "update" => json!({"*/*": {"schema": self.body}}),
            "delete" | "deletecollection" => json!({"*/*": {"schema": meta_reference("DeleteOptions")}}),
            "patch" => {
                let patch = json!({"schema": meta_reference("Patch")});
                let mut types = vec![
                    "application/apply-patch+yaml",
                    "application/json-patch+json",
                    "application/merge-patch+json",
                ];
                if !self.is_custom {
                    types.push("application/strategic-merge-patch+json");
                }
                types.into_iter().map(|media| (media.to_owned(), patch.clone())).collect::<Map<_, _>>().into()
            }
            _ => return None,
        };
        Some(json!({"required": verb != "delete" && verb != "deletecollection", "content": content}))
    }
}

/// The query parameters of a verb. `kubectl` looks for `fieldValidation` and `dryRun` before it sends them.
fn parameters_of(verb: &str) -> Vec<Value> {
    let names: &[&str] = match verb {
        "create" | "update" => &["dryRun", "fieldManager", "fieldValidation"],
        "patch" => &["dryRun", "fieldManager", "fieldValidation", "force"],
        "delete" => &["dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"],
        "deletecollection" => &["dryRun", "fieldSelector", "labelSelector", "propagationPolicy"],
        "list" => &[
            "allowWatchBookmarks",
            "continue",
            "fieldSelector",
            "labelSelector",
            "limit",
            "resourceVersion",
            "resourceVersionMatch",
            "sendInitialEvents",
            "timeoutSeconds",
            "watch",
        ],
        _ => &[],
    };
    names.iter().map(|name| query(name)).collect()
}

/// One query parameter, with a word on what it does.
fn query(name: &str) -> Value {
    let (kind, description) = match name {
        "allowWatchBookmarks" => ("boolean", "Asks for bookmark events in a watch."),
        "continue" => ("string", "The token of the page to go on from."),
        "dryRun" => ("string", "\"All\" goes through every stage but storing."),
        "fieldManager" => ("string", "Who makes the change, for managedFields."),
        "fieldSelector" => ("string", "Only objects with these field values."),
        "fieldValidation" => ("string", "Unknown and duplicate fields: Ignore, Warn or Strict."),
        "force" => ("boolean", "An apply takes over fields that others own."),
        "gracePeriodSeconds" => ("integer", "How long the object has to end."),
        "labelSelector" => ("string", "Only objects with these labels."),
        "limit" => ("integer", "At most so many objects in one answer."),
        "orphanDependents" => ("boolean", "Deprecated in favour of propagationPolicy."),
        "pretty" => ("string", "\"true\" indents the answer."),
        "propagationPolicy" => ("string", "What becomes of dependents: Orphan, Background or Foreground."),
        "resourceVersion" => ("string", "How fresh the answer must be."),
        "resourceVersionMatch" => ("string", "How resourceVersion is meant: Exact or NotOlderThan."),
        "sendInitialEvents" => ("boolean", "Begins a watch with what is there already."),
        "timeoutSeconds" => ("integer", "How long a list or watch may take."),
        "watch" => ("boolean", "Follows changes instead of listing."),
        _ => ("string", ""),
    };
    json!({"name": name, "in": "query", "description": description, "schema": {"type": kind, "uniqueItems": true}})
}
