use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::json::Node;
use crate::{builtin, decode, golden, structural};

const NOW: &str = "2026-01-02T03:04:05Z";

/// A server that knows nothing but how to merge: no defaults, no rules.
#[derive(Default)]
struct World {
    objects: HashMap<String, Value>,
    saved: HashMap<String, Value>,
    widget: Option<Arc<Structural>>,
    volcano: HashMap<String, Arc<Structural>>,
}

/// How a recorded step is to be played.
struct Target {
    key: String,
    merges: Kind,
    api_version: String,
    manager: String,
    is_forced: bool,
}

enum Kind {
    Builtin(TypeId),
    Custom(Arc<Structural>),
}

impl Target {
    fn merges(&self) -> Merges<'_> {
        match &self.merges {
            Kind::Builtin(id) => Merges::Builtin(*id),
            Kind::Custom(schema) => Merges::Custom(schema),
        }
    }

    fn writer(&self) -> Writer<'_> {
        let has_status = !self.key.starts_with("configmaps");
        let ignored: &[&[&str]] =
            if has_status && !self.key.starts_with("podgroups") { &[&["status"]] } else { &[] };
        Writer {
            manager: &self.manager,
            subresource: "",
            api_version: &self.api_version,
            now: NOW,
            ignored,
            renamed: &[],
        }
    }

    /// The object with the managers that an update leaves.
    fn updated(&self, mut object: Value, live: Option<&Value>) -> Value {
        let managers = self.merges().update(live, &object, &self.writer());
        object["metadata"]["managedFields"] = managers.into();
        object
    }

    /// The object as the server would store it.
    fn stored(&self, object: Value, live: Option<&Value>) -> Value {
        let mut object = match &self.merges {
            Kind::Builtin(id) => {
                let mut object = decode::decode(&Node::from(&object), *id).unwrap().object;
                crate::complete(&mut object, *id);
                object
            }
            Kind::Custom(schema) => {
                let mut object = decode::decode_custom(&Node::from(&object)).unwrap().object;
                schema.prune(&mut object);
                schema.fill_defaults(&mut object);
                object
            }
        };
        let uid = live.map_or("00000000-0000", live_uid).to_owned();
        object["metadata"]["uid"] = uid.into();
        object
    }
}

impl World {
    fn target(&self, step: &Value) -> Option<Target> {
        let path = step["path"].as_str()?;
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let rest = rest.strip_prefix(&["namespaces", "{{ns}}"]).unwrap_or(rest);
        let (plural, name) = match rest {
            [plural] => (*plural, step.pointer("/body/metadata/name")?.as_str()?),
            [plural, name] => (*plural, *name),
            _ => return None,
        };
        let kind = match plural {
            "configmaps" => "ConfigMap",
            "deployments" => "Deployment",
            "jobs" => "Job",
            "cronjobs" => "CronJob",
            "services" => "Service",
            "pods" => "Pod",
            _ => "",
        };
        let merges = match (plural, self.volcano.get(&format!("{plural}.{group}"))) {
            ("widgets", _) => Kind::Custom(self.widget.clone()?),
            (_, Some(schema)) => Kind::Custom(schema.clone()),
            _ => Kind::Builtin(builtin().kind(group, version, kind)?),
        };
        let query: HashMap<&str, &str> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
        if query.contains_key("dryRun") {
            return None;
        }
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let manager = query.get("fieldManager").unwrap_or(&"golden").replace("%20", " ");
        let is_forced = query.get("force") == Some(&"true");
        Some(Target { key: format!("{plural}/{name}"), merges, api_version, manager, is_forced })
    }

    /// The body of a request that changes an object saved earlier.
    fn body(&self, step: &Value) -> Option<Value> {
        let Some(base) = step.get("base") else { return step.get("body").cloned() };
        let mut body = self.saved.get(base.as_str()?)?.clone();
        for (pointer, value) in step.get("set").and_then(Value::as_object).into_iter().flatten() {
            let (parent, key) = pointer.rsplit_once('/')?;
            body.pointer_mut(parent)?.as_object_mut()?.insert(key.to_owned(), value.clone());
        }
        for pointer in step.get("unset").and_then(Value::as_array).into_iter().flatten() {
            let (parent, key) = pointer.as_str()?.rsplit_once('/')?;
            body.pointer_mut(parent)?.as_object_mut()?.remove(key);
        }
        Some(body)
    }

    /// Plays one step. None: it is beyond this world, and so is the rest of the case.
    fn play(&mut self, step: &Value) -> Option<Result<Value, Refused>> {
        let target = self.target(step)?;
        let live = self.objects.get(&target.key).cloned();
        let content_type = step["headers"]["Content-Type"].as_str().unwrap_or_default();
        let body = self.body(step)?;
        let object = match (step["method"].as_str()?, content_type) {
            ("PATCH", "application/apply-patch+yaml") => {
                match target.merges().apply(live.as_ref(), &body, &target.writer(), target.is_forced) {
                    Ok(object) => target.stored(object, live.as_ref()),
                    Err(refused) => return Some(Err(refused)),
                }
            }
            ("PATCH", "application/merge-patch+json") => {
                let mut object = live.clone()?;
                merge_patch(&mut object, &body);
                target.updated(target.stored(object, live.as_ref()), live.as_ref())
            }
            // What defaults add to pods and the like is beyond this world.
            ("POST" | "PUT", _)
                if matches!(target.merges, Kind::Builtin(_)) && !target.key.starts_with("configmaps") =>
            {
                return None;
            }
            ("POST" | "PUT", _) => {
                let mut given = body;
                // Managers are read before Go's decoder, which drops an empty list.
                let managed = given.pointer("/metadata/managedFields").cloned();
                let mut object = target.stored(std::mem::take(&mut given), live.as_ref());
                if let Some(managed) = managed {
                    object["metadata"]["managedFields"] = managed;
                }
                target.updated(object, live.as_ref())
            }
            _ => return None,
        };
        self.objects.insert(target.key, object.clone());
        for (name, pointer) in step.get("save").and_then(Value::as_object).into_iter().flatten() {
            if pointer == "" {
                self.saved.insert(name.clone(), object.clone());
            }
        }
        Some(Ok(object))
    }
}

fn merge_patch(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    for (key, patch) in patch {
        if patch.is_null() {
            value.as_object_mut().unwrap().remove(key);
        } else {
            merge_patch(&mut value[key], patch);
        }
    }
}

/// The managers as recorded: sorted, with times hidden.
fn recorded(object: &Value) -> Vec<Value> {
    let managed = object.pointer("/metadata/managedFields").or_else(|| object.get("/metadata/managedFields"));
    let mut entries: Vec<Value> = managed.and_then(Value::as_array).cloned().unwrap_or_default();
    for entry in &mut entries {
        if let Some(time) = entry.get_mut("time") {
            *time = "<time>".into();
        }
    }
    entries.sort_by_key(|entry| {
        ["operation", "manager", "subresource", "apiVersion"].map(|key| entry[key].to_string())
    });
    entries
}

#[test]
fn recorded_applies_give_recorded_managers() {
    let crds = krafla_api::crd::crds_with(&structural::of_type_named);
    let volcano: HashMap<String, Arc<Structural>> = crds
        .iter()
        .map(|crd| {
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            (crd["metadata"]["name"].as_str().unwrap().to_owned(), Arc::new(Structural::compile(schema)))
        })
        .collect();
    let mut n_compared = 0;
    for case in golden::cases("07-apply.json") {
        let id = case["id"].as_str().unwrap();
        let mut world = World { volcano: volcano.clone(), ..World::default() };
        for step in golden::steps(&case) {
            if let Some(schema) = step.pointer("/body/spec/versions/0/schema/openAPIV3Schema") {
                world.widget = Some(Arc::new(Structural::compile(schema)));
                continue;
            }
            if step["method"] == "GET" {
                continue;
            }
            let answer = &step["expect"]["body"];
            let message =
                answer.get("message").or(answer.get("/message")).and_then(Value::as_str).unwrap_or_default();
            let is_ours =
                message.is_empty() || message.starts_with("Apply failed") || message.starts_with("failed to");
            if !is_ours {
                continue;
            }
            match world.play(step) {
                None => break,
                Some(Ok(object)) => {
                    assert_eq!(message, "", "{id} {}", step["path"]);
                    let shows_managers =
                        answer.get("kind").is_some() || answer.get("/metadata/managedFields").is_some();
                    if shows_managers {
                        assert_eq!(
                            json!(recorded(&object)),
                            json!(recorded(answer)),
                            "{id} {}",
                            step["path"]
                        );
                        n_compared += 1;
                    }
                    for shown in ["data", "spec"] {
                        let expected = answer.get(format!("/{shown}")).or(answer.get(shown));
                        if let (Some(expected), Kind::Custom(_)) =
                            (expected, world.target(step).unwrap().merges)
                        {
                            assert_eq!(
                                object.get(shown).unwrap_or(&Value::Null),
                                expected,
                                "{id} {}",
                                step["path"]
                            );
                        }
                    }
                }
                Some(Err(Refused::Conflicts(conflicts))) => {
                    assert_eq!(Conflict::message(&conflicts), message, "{id}");
                    n_compared += 1;
                }
                Some(Err(Refused::NotTyped(fault))) => {
                    assert!(message.ends_with(&format!("): {fault}")), "{id} {fault} | {message}");
                    n_compared += 1;
                }
            }
        }
    }
    assert!(n_compared > 60, "{n_compared} compared");
}
