//! Webhooks that answer from a script, and what becomes of the writes that they are asked about.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use expect_test::{Expect, expect};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use krafla_api::{Key, Kind};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Caller, Destination};
use crate::SystemEnv;
use crate::admit::{Admission, Connection};
use crate::ops::{Api, DeleteOptions, Part, WriteOptions};
use crate::patch::Patch;
use crate::status::Status;
use crate::store::Store;

/// What a webhook at a path does with a question.
type Script = fn(&str, &Value) -> Result<Value, String>;

/// Answers from a script, and remembers who was asked.
#[derive(Clone)]
struct Scripted {
    script: Script,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Caller for Scripted {
    fn call<'a>(
        &'a self,
        destination: &'a Destination,
        question: Bytes,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Bytes, String>> {
        let question: Value = serde_json::from_slice(&question).unwrap();
        let request = &question["request"];
        let path = destination.url.strip_prefix("https://hooks").unwrap();
        let seen = format!("{} {} {path} in {timeout:?}", request["operation"], request["name"]);
        self.asked.lock().push(seen);
        let answer = (self.script)(path.split('?').next().unwrap(), request).map(|mut response| {
            response["uid"] = request["uid"].clone();
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
        });
        let answer = answer.map(|answer| answer.to_string().into());
        async move { answer }.boxed()
    }
}

struct World {
    api: Api,
    asked: Arc<Mutex<Vec<String>>>,
    options: WriteOptions,
}

impl World {
    fn new(script: Script) -> World {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let admission = Admission::default().calling(Scripted { script, asked: asked.clone() });
        let api = Api::new(Store::in_memory(), Arc::new(SystemEnv), admission);
        api.bootstrap().now_or_never().unwrap().unwrap();
        World { api, asked, options: WriteOptions::default() }
    }

    /// Adds a webhook for ConfigMaps, changed by `more`.
    fn hook(&self, plural: &str, name: &str, more: Value) {
        let mut webhook = json!({
            "name": format!("{name}.example.com"),
            "clientConfig": {"url": format!("https://hooks/{name}")},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"],
            }],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        });
        webhook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let group = "admissionregistration.k8s.io";
        let resource = self.api.registry().find(group, "v1", plural).unwrap();
        let configuration = json!({"metadata": {"name": name}, "webhooks": [webhook]});
        self.api.create(&resource, "", configuration, &self.options).now_or_never().unwrap().unwrap();
    }

    fn create(&self, name: &str, options: &WriteOptions) -> Result<Value, Status> {
        let maps = self.api.registry().of_kind(Kind::ConfigMap).unwrap();
        let map = json!({"metadata": {"name": name}, "data": {"k": "v"}});
        let created = self.api.create(&maps, "default", map, options).now_or_never().unwrap();
        created.map(|answer| serde_json::from_slice(&answer.bytes).unwrap())
    }

    fn asked(&self, expected: Expect) {
        expected.assert_eq(&self.asked.lock().join("\n"));
    }
}

const MUTATING: &str = "mutatingwebhookconfigurations";
const VALIDATING: &str = "validatingwebhookconfigurations";

fn says(refused: Result<Value, Status>, expected: Expect) {
    let status = refused.unwrap_err();
    expected.assert_eq(&format!("{} {}: {}", status.code, status.reason, status.message));
}

fn add(key: &str) -> Result<Value, String> {
    patch(json!([{"op": "add", "path": format!("/data/{key}"), "value": "added"}]))
}

fn patch(operations: Value) -> Result<Value, String> {
    Ok(json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(operations.to_string())}))
}

fn allow() -> Result<Value, String> {
    Ok(json!({"allowed": true}))
}

#[test]
fn mutating_webhooks_change_objects_before_validating_ones_see_them() {
    let world = World::new(|path, request| match path {
        "/one" => add("one"),
        "/two" => add("two"),
        _ if request["object"]["data"] == json!({"k": "v", "one": "added", "two": "added"}) => allow(),
        _ => Err("the object is not what it should be".into()),
    });
    world.hook(VALIDATING, "check", json!({"timeoutSeconds": 3}));
    world.hook(MUTATING, "two", json!({}));
    world.hook(MUTATING, "one", json!({}));
    let created = world.create("a", &world.options).unwrap();
    assert_eq!(created["data"], json!({"k": "v", "one": "added", "two": "added"}));
    world.asked(expect![[r#"
        "CREATE" "a" /one?timeout=10s in 10s
        "CREATE" "a" /two?timeout=10s in 10s
        "CREATE" "a" /check?timeout=3s in 3s"#]]);
}

#[test]
fn who_wants_another_look_sees_what_came_after_it_once() {
    let world = World::new(|path, _| add(path.trim_start_matches('/')));
    world.hook(MUTATING, "one", json!({"reinvocationPolicy": "IfNeeded"}));
    world.hook(MUTATING, "two", json!({"reinvocationPolicy": "IfNeeded"}));
    world.create("a", &world.options).unwrap();
    world.asked(expect![[r#"
        "CREATE" "a" /one?timeout=10s in 10s
        "CREATE" "a" /two?timeout=10s in 10s
        "CREATE" "a" /one?timeout=10s in 10s"#]]);
}

#[test]
fn a_refusal_reaches_the_client_with_its_warnings() {
    let world = World::new(|_, _| {
        Ok(json!({"allowed": false, "status": {"code": 403, "message": "not here"}, "warnings": ["careful"]}))
    });
    world.hook(VALIDATING, "check", json!({}));
    says(
        world.create("a", &world.options),
        expect![[r#"403 : admission webhook "check.example.com" denied the request: not here"#]],
    );
    assert_eq!(world.options.warnings.list(), ["careful"]);
}

#[test]
fn silence_is_consent_only_where_the_configuration_says_so() {
    let world = World::new(|_, _| Err("dial tcp: nobody there".into()));
    world.hook(VALIDATING, "lenient", json!({"failurePolicy": "Ignore"}));
    world.create("a", &world.options).unwrap();
    world.hook(VALIDATING, "strict", json!({}));
    says(
        world.create("b", &world.options),
        expect![[
            r#"500 InternalError: Internal error occurred: failed calling webhook "strict.example.com": failed to call webhook: dial tcp: nobody there"#
        ]],
    );
}

#[test]
fn a_patch_cannot_rename_an_object_and_must_fit_its_kind() {
    let world = World::new(|_, request| match request["name"].as_str() {
        Some("a") => patch(json!([{"op": "replace", "path": "/metadata/name", "value": "b"}])),
        _ => patch(json!([{"op": "replace", "path": "/data", "value": [1]}])),
    });
    world.hook(MUTATING, "one", json!({}));
    assert_eq!(world.create("a", &world.options).unwrap()["metadata"]["name"], "a");
    let refused = world.create("c", &world.options).unwrap_err();
    assert_eq!(refused.code, 500, "{refused}");
}

#[test]
fn a_dry_run_is_asked_about_as_one() {
    let world = World::new(
        |_, request| {
            if request["dryRun"] == true { Ok(json!({"allowed": false})) } else { allow() }
        },
    );
    world.hook(VALIDATING, "check", json!({"sideEffects": "NoneOnDryRun"}));
    let dry_run = WriteOptions { dry_run: true, ..WriteOptions::default() };
    says(
        world.create("a", &dry_run),
        expect![[r#"400 : admission webhook "check.example.com" denied the request without explanation"#]],
    );
    world.create("a", &world.options).unwrap();
}

#[test]
fn deletions_and_changes_are_asked_about_with_what_is_stored() {
    let world = World::new(|_, request| match request["operation"].as_str() {
        Some("DELETE") if request["object"].is_null() && request["oldObject"]["data"]["k"] == "v" => {
            Ok(json!({"allowed": false, "status": {"message": "kept"}}))
        }
        Some("UPDATE") if request["oldObject"]["data"]["k"] == "v" => allow(),
        Some("CREATE") => allow(),
        _ => Err("not what it should be".into()),
    });
    world.hook(VALIDATING, "check", json!({}));
    world.create("a", &world.options).unwrap();
    let (maps, key) = (world.api.registry().of_kind(Kind::ConfigMap).unwrap(), Key::new("default", "a"));
    let patch = Patch::Merge(json!({"data": {"l": "w"}}));
    let patched = world.api.patch(&maps, &key, Part::Main, &patch, &world.options);
    patched.now_or_never().unwrap().unwrap();
    let options = DeleteOptions::default();
    let refused = world.api.delete(&maps, &key, &options).now_or_never().unwrap().unwrap_err();
    assert_eq!(refused.message, "admission webhook \"check.example.com\" denied the request: kept");
}

#[test]
fn only_requests_that_fulfil_the_conditions_are_asked_about() {
    let world = World::new(|_, _| Ok(json!({"allowed": false})));
    let condition = json!([{"name": "only-b", "expression": "object.metadata.name == 'b'"}]);
    world.hook(VALIDATING, "check", json!({"matchConditions": condition}));
    world.create("a", &world.options).unwrap();
    says(
        world.create("b", &world.options),
        expect![[r#"400 : admission webhook "check.example.com" denied the request without explanation"#]],
    );
}

#[test]
fn configurations_are_nobodys_business() {
    let world = World::new(|_, _| Err("nobody there".into()));
    let all = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]);
    world.hook(VALIDATING, "all", json!({"rules": all}));
    world.hook(VALIDATING, "another", json!({"rules": all}));
    world.asked(expect![""]);
}

#[test]
fn a_service_is_reached_through_a_ready_pod() {
    let world = World::new(|_, _| allow());
    let create = |kind: Kind, object: Value| {
        let resource = world.api.registry().of_kind(kind).unwrap();
        let object = crate::codec::normalise(&resource, &object).unwrap();
        world.api.create(&resource, "default", object, &world.options).now_or_never().unwrap().unwrap();
    };
    let destination = || {
        let service = json!({"namespace": "default", "name": "hooks", "path": "/x", "port": 443});
        let webhook = json!({"webhooks": [{"clientConfig": {"service": service}, "timeoutSeconds": 5}]});
        let hook = krafla_admission::webhook::hooks(&webhook).remove(0);
        Destination::find(&world.api, &hook.client_config, hook.timeout_seconds)
    };
    assert_eq!(destination().unwrap_err(), "service \"hooks\" not found");
    let port = json!({"port": 443, "targetPort": "https"});
    create(
        Kind::Service,
        json!({"metadata": {"name": "hooks"}, "spec": {"selector": {"app": "hooks"}, "ports": [port]}}),
    );
    assert_eq!(destination().unwrap_err(), "no endpoints available for service \"hooks\"");
    let container = json!({"name": "c", "image": "i", "ports": [{"name": "https", "containerPort": 8443}]});
    create(
        Kind::Pod,
        json!({"metadata": {"name": "p", "labels": {"app": "hooks"}}, "spec": {"containers": [container]}}),
    );
    let ready = json!({"podIP": "127.1.2.3", "conditions": [{"type": "Ready", "status": "True"}]});
    let (pods, key) = (world.api.registry().of_kind(Kind::Pod).unwrap(), Key::new("default", "p"));
    let patch = Patch::Merge(json!({"status": ready}));
    let patched = world.api.patch(&pods, &key, Part::Status, &patch, &world.options);
    patched.now_or_never().unwrap().unwrap();
    let destination = destination().unwrap();
    assert_eq!(destination.url, "https://hooks.default.svc:443/x?timeout=5s");
    assert_eq!((destination.host.as_str(), destination.port), ("127.1.2.3", 8443));
    assert_eq!(destination.server_name, "hooks.default.svc");
}

#[test]
fn a_webhook_can_refuse_connections() {
    let world = World::new(|_, request| {
        let is_whole = request["object"]
            == json!({"apiVersion": "v1", "kind": "PodAttachOptions", "stdin": true})
            && request["kind"]["kind"] == "PodAttachOptions"
            && [&request["resource"]["resource"], &request["subResource"]] == ["pods", "attach"]
            && request["options"].is_null();
        if is_whole { Ok(json!({"allowed": false, "status": {"message": "not this pod"}})) } else { allow() }
    });
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/attach"],
    });
    world.hook(VALIDATING, "check", json!({"rules": [rule]}));
    let connect = |subresource: &str, kind: &str| {
        let pods = world.api.registry().of_kind(Kind::Pod).unwrap();
        let options = json!({"apiVersion": "v1", "kind": kind, "stdin": true});
        let key = Key::new("default", "p");
        let connection = Connection { key: &key, kind };
        let asked = world.api.ask_about_connection(&pods, subresource, connection, &options, None);
        asked.now_or_never().unwrap().map(|()| Value::Null)
    };
    says(
        connect("attach", "PodAttachOptions"),
        expect![[r#"400 : admission webhook "check.example.com" denied the request: not this pod"#]],
    );
    assert!(connect("exec", "PodExecOptions").is_ok());
    world.asked(expect![[r#""CONNECT" "p" /check?timeout=10s in 10s"#]]);
}
