//! Method, path and body of every request. Pure.

use http::Method;
use krafla_api::{Key, Kind, Scope, Served, Uid};
use krafla_cluster::{LogOptions, Propagation, Step, Stream};
use serde_json::{Value, json};

/// Of the types of patches, the one that every kind takes, CRDs included.
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const JSON: &str = "application/json";
const STRICT: &str = "fieldValidation=Strict";

/// A request, without the server's address.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: String,
    /// What the body is, if there is one.
    pub(crate) content_type: &'static str,
    pub(crate) body: Value,
    /// What the answer should be.
    pub(crate) accept: &'static str,
}

impl Request {
    /// Reads what is at a path.
    pub fn get(path: String) -> Request {
        Request { method: Method::GET, path, content_type: JSON, body: Value::Null, accept: JSON }
    }

    /// Reads a container's log.
    pub fn log(pod: &Key, container: &str, options: &LogOptions) -> Request {
        let LogOptions {
            follow,
            previous,
            attempt,
            timestamps,
            tail_lines,
            limit_bytes,
            since_seconds,
            since_time,
            stream,
        } = options;
        let mut path =
            format!("{}/log?container={}&follow={follow}", object_path(Kind::Pod, pod), encoded(container));
        let number = |name: &str, value: Option<u64>| value.map(|value| (name.to_owned(), value.to_string()));
        let wanted = [
            previous.then(|| ("previous".to_owned(), "true".to_owned())),
            number("attempt", attempt.map(u64::from)),
            timestamps.then(|| ("timestamps".to_owned(), "true".to_owned())),
            number("tailLines", *tail_lines),
            number("limitBytes", *limit_bytes),
            number("sinceSeconds", *since_seconds),
            since_time.map(|time| ("sinceTime".to_owned(), time.0.to_string())),
            // Kubernetes' names of the streams begin with a capital.
            stream.map(|stream| {
                let name = match stream {
                    Stream::Stdout => "Stdout",
                    Stream::Stderr => "Stderr",
                };
                ("stream".to_owned(), name.to_owned())
            }),
        ];
        for (name, value) in wanted.into_iter().flatten() {
            path.push_str(&format!("&{name}={}", encoded(&value)));
        }
        Request::get(path)
    }

    /// Makes an object in the collection at a path.
    pub fn post(path: String, body: Value) -> Request {
        Request { method: Method::POST, body, ..Request::get(path) }
    }

    /// Deletes the object at a path, as its kind is deleted by default.
    pub fn delete(path: String) -> Request {
        Request { method: Method::DELETE, ..Request::get(path) }
    }

    /// Deletes the object at a path with these DeleteOptions.
    pub fn delete_with(path: String, options: Value) -> Request {
        Request { body: options, ..Request::delete(path) }
    }

    /// Changes fields of the object at a path.
    pub fn merge_patch(path: String, body: Value) -> Request {
        Request { method: Method::PATCH, content_type: MERGE_PATCH, body, ..Request::get(path) }
    }

    /// The same request for an answer in this media type.
    pub fn accepting(self, accept: &'static str) -> Request {
        Request { accept, ..self }
    }

    /// Makes an object that a user wrote. What the kind does not have is refused rather than dropped.
    pub(crate) fn make(of: &Served, object: &Value) -> Request {
        let path = collection_path(of, namespace(object));
        Request::post(format!("{path}?{STRICT}"), object.clone())
    }

    /// Asks whether an object that a user wrote could be made.
    pub(crate) fn check(of: &Served, object: &Value) -> Request {
        let made = Request::make(of, object);
        Request { path: format!("{}&dryRun=All", made.path), ..made }
    }

    /// Gives an object the fields that a user wrote.
    pub(crate) fn amend(of: &Served, key: &Key, uid: &Uid, patch: &Value) -> Request {
        let path = format!("{}?{STRICT}", object_path(of, key));
        let body = with_preconditions(patch.clone(), &uid.0, None);
        let content_type = if of.has_strategic_patches() { STRATEGIC_PATCH } else { MERGE_PATCH };
        Request { method: Method::PATCH, content_type, body, ..Request::get(path) }
    }

    /// The request of a write by whoever has this name in `managedFields`. What is drawn at random must have been drawn.
    pub(crate) fn of_step(step: &Step, manager: &str) -> Request {
        let request = Request::without_manager(step);
        let sets_fields = matches!(request.method, Method::POST | Method::PATCH);
        let query = if sets_fields { format!("?fieldManager={}", encoded(manager)) } else { String::new() };
        Request { path: format!("{}{query}", request.path), ..request }
    }

    fn without_manager(step: &Step) -> Request {
        match step {
            Step::Create { kind, object } | Step::CreateGenerated { kind, object, .. } => {
                create(*kind, object)
            }
            Step::Patch { kind, key, uid, revision, of_status, patch } => {
                let part = if *of_status { "/status" } else { "" };
                let body = with_preconditions(patch.clone(), &uid.0, *revision);
                let path = format!("{}{part}", object_path(*kind, key));
                Request::merge_patch(path, body)
            }
            Step::Delete { kind, key, uid, revision, propagation, grace_seconds } => {
                let mut preconditions = json!({ "uid": uid });
                set(
                    &mut preconditions,
                    "resourceVersion",
                    revision.map(|revision| revision.to_string().into()),
                );
                let mut body = json!({
                    "apiVersion": "v1",
                    "kind": "DeleteOptions",
                    "preconditions": preconditions,
                    "propagationPolicy": name(*propagation),
                });
                set(&mut body, "gracePeriodSeconds", grace_seconds.map(Value::from));
                Request { body, ..Request::delete(object_path(*kind, key)) }
            }
            Step::Bind { pod, uid, node } => {
                let metadata = json!({ "name": &*pod.name, "namespace": &*pod.namespace, "uid": uid });
                let target = json!({ "apiVersion": "v1", "kind": "Node", "name": node });
                let body =
                    json!({ "apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target });
                Request::post(format!("{}/binding", object_path(Kind::Pod, pod)), body)
            }
        }
    }
}

fn create(kind: Kind, object: &Value) -> Request {
    let info = kind.info();
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.entry("apiVersion").or_insert_with(|| info.api_version().into());
        fields.entry("kind").or_insert_with(|| info.kind.into());
    }
    Request::post(collection_path(kind, namespace(&object)), object)
}

fn namespace(object: &Value) -> &str {
    object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default()
}

/// A patch that only applies to this very object, in the state that it was computed from.
fn with_preconditions(mut patch: Value, uid: &str, revision: Option<u64>) -> Value {
    if let Some(fields) = patch.as_object_mut() {
        let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
        set(metadata, "uid", Some(uid.into()));
        set(metadata, "resourceVersion", revision.map(|revision| revision.to_string().into()));
    }
    patch
}

fn set(object: &mut Value, field: &str, value: Option<Value>) {
    if let (Some(fields), Some(value)) = (object.as_object_mut(), value) {
        fields.insert(field.to_owned(), value);
    }
}

fn name(propagation: Propagation) -> &'static str {
    match propagation {
        Propagation::Background => "Background",
        Propagation::Foreground => "Foreground",
        Propagation::Orphan => "Orphan",
    }
}

/// What a path says of a kind.
pub struct Names<'a> {
    group: &'a str,
    version: &'a str,
    plural: &'a str,
    scope: Scope,
}

impl From<Kind> for Names<'static> {
    fn from(kind: Kind) -> Names<'static> {
        let info = kind.info();
        Names { group: info.group, version: info.version, plural: info.plural, scope: info.scope }
    }
}

impl<'a> From<&'a Served> for Names<'a> {
    fn from(of: &'a Served) -> Names<'a> {
        Names { group: &of.group, version: &of.version, plural: &of.plural, scope: of.scope }
    }
}

/// Where everything under an `apiVersion` is.
pub(crate) fn version_path(api_version: &str) -> String {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", encoded(group)) };
    format!("{root}/{}", encoded(version))
}

/// Where the objects of a kind are: of one namespace, or of all if it is empty.
pub fn collection_path<'a>(of: impl Into<Names<'a>>, namespace: &str) -> String {
    let Names { group, version, plural, scope } = of.into();
    let group = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
    let namespace = match scope {
        Scope::Namespaced if !namespace.is_empty() => format!("/namespaces/{}", encoded(namespace)),
        Scope::Namespaced | Scope::Cluster => String::new(),
    };
    format!("{group}/{version}{namespace}/{plural}")
}

/// Where one object is.
pub fn object_path<'a>(of: impl Into<Names<'a>>, key: &Key) -> String {
    format!("{}/{}", collection_path(of, &key.namespace), encoded(&key.name))
}

/// A text as one part of a path or query.
pub fn encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use krafla_api::Uid;

    use super::*;

    fn check(step: &Step, expected: Expect) {
        let Request { method, path, content_type, body, .. } = Request::of_step(step, "krafla-controllers");
        expected.assert_eq(&format!("{method} {path}\n{content_type}\n{body}"));
    }

    #[test]
    fn a_log_request_carries_every_option_that_is_set() {
        let path = |options: &LogOptions| Request::log(&Key::new("ns", "p"), "main", options).path;
        expect!["/api/v1/namespaces/ns/pods/p/log?container=main&follow=false"]
            .assert_eq(&path(&LogOptions::default()));
        let every = LogOptions {
            follow: true,
            previous: true,
            attempt: Some(3),
            timestamps: true,
            tail_lines: Some(10),
            limit_bytes: Some(100),
            since_seconds: Some(60),
            since_time: Some(krafla_api::Time::from_seconds(0)),
            stream: Some(Stream::Stderr),
        };
        expect![[r#"
            /api/v1/namespaces/ns/pods/p/log?container=main
            follow=true
            previous=true
            attempt=3
            timestamps=true
            tailLines=10
            limitBytes=100
            sinceSeconds=60
            sinceTime=1970-01-01T00%3A00%3A00Z
            stream=Stderr"#]]
        .assert_eq(&path(&every).replace('&', "\n"));
    }

    #[test]
    fn a_write_names_whom_it_means_and_who_makes_it() {
        let (key, uid) = (Key::new("ns", "a"), Uid("u1".into()));
        let patch = Step::Patch {
            kind: Kind::VcJob,
            key: key.clone(),
            uid: uid.clone(),
            revision: Some(7),
            of_status: true,
            patch: json!({ "status": { "running": 1 } }),
        };
        check(
            &patch,
            expect![[r#"
            PATCH /apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs/a/status?fieldManager=krafla-controllers
            application/merge-patch+json
            {"metadata":{"resourceVersion":"7","uid":"u1"},"status":{"running":1}}"#]],
        );
        let state = Step::Patch {
            kind: Kind::Queue,
            key: Key::new("", "q"),
            uid: uid.clone(),
            revision: None,
            of_status: true,
            patch: json!({ "status": { "state": "Open" } }),
        };
        check(
            &state,
            expect![[r#"
            PATCH /apis/scheduling.volcano.sh/v1beta1/queues/q/status?fieldManager=krafla-controllers
            application/merge-patch+json
            {"metadata":{"uid":"u1"},"status":{"state":"Open"}}"#]],
        );
        let delete = Step::Delete {
            kind: Kind::Pod,
            key: key.clone(),
            uid: uid.clone(),
            revision: None,
            propagation: Propagation::Foreground,
            grace_seconds: Some(0),
        };
        check(
            &delete,
            expect![[r#"
            DELETE /api/v1/namespaces/ns/pods/a
            application/json
            {"apiVersion":"v1","gracePeriodSeconds":0,"kind":"DeleteOptions","preconditions":{"uid":"u1"},"propagationPolicy":"Foreground"}"#]],
        );
        check(
            &Step::Bind { pod: key, uid, node: "n".to_owned() },
            expect![[r#"
            POST /api/v1/namespaces/ns/pods/a/binding?fieldManager=krafla-controllers
            application/json
            {"apiVersion":"v1","kind":"Binding","metadata":{"name":"a","namespace":"ns","uid":"u1"},"target":{"apiVersion":"v1","kind":"Node","name":"n"}}"#]],
        );
    }

    #[test]
    fn what_is_made_says_what_it_is() {
        let object = json!({ "metadata": { "name": "q" } });
        check(
            &Step::Create { kind: Kind::Queue, object },
            expect![[r#"
            POST /apis/scheduling.volcano.sh/v1beta1/queues?fieldManager=krafla-controllers
            application/json
            {"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":"q"}}"#]],
        );
        let object = json!({ "metadata": { "namespace": "ns", "generateName": "a-" } });
        check(
            &Step::Create { kind: Kind::ConfigMap, object },
            expect![[r#"
            POST /api/v1/namespaces/ns/configmaps?fieldManager=krafla-controllers
            application/json
            {"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a-","namespace":"ns"}}"#]],
        );
    }

    #[test]
    fn what_a_user_wrote_goes_to_any_kind_and_must_be_spelt_right() {
        let of = Served {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            kind: "Widget".to_owned(),
            plural: "widgets".to_owned(),
            singular: "widget".to_owned(),
            scope: Scope::Namespaced,
        };
        let object = json!({ "kind": "Widget", "metadata": { "name": "a", "namespace": "ns" } });
        let made = Request::make(&of, &object);
        assert_eq!(
            (made.method, &*made.path),
            (Method::POST, "/apis/example.com/v1/namespaces/ns/widgets?fieldValidation=Strict")
        );
        let changed = Request::amend(&of, &Key::new("ns", "a"), &Uid("u1".into()), &object);
        assert_eq!(
            (changed.method, &*changed.path),
            (Method::PATCH, "/apis/example.com/v1/namespaces/ns/widgets/a?fieldValidation=Strict")
        );
        assert_eq!(changed.body["metadata"], json!({ "name": "a", "namespace": "ns", "uid": "u1" }));
        assert_eq!(version_path("v1"), "/api/v1");
        assert_eq!(version_path("a/../b"), "/apis/a/..%2Fb");
    }

    #[test]
    fn a_name_can_not_leave_its_place() {
        assert_eq!(
            object_path(Kind::Pod, &Key::new("a/b", "../c?d")),
            "/api/v1/namespaces/a%2Fb/pods/..%2Fc%3Fd"
        );
    }
}
