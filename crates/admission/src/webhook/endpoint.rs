//! The answering side: the paths of Volcano's webhook manager, and what is answered at each.
//!
//! ```text
//!   AdmissionReview ──> Endpoint::answer ──> AdmissionReview with `response`
//!                         │ mutate:   the defaults, as a JSON patch of what changed
//!                         └ validate: the verdict, in one message
//! ```

use base64::Engine as _;
use krafla_api::Kind;
use krafla_api::volcano::{Job, PodGroup, Queue};
use serde_json::{Value, json};

use super::hook::Verb;
use super::review::REVIEW_VERSION;
use crate::read::read;
use crate::{Cluster, Operation, Request, Settings, Verdict, default, patch, validate};

/// The prefix of the names of the configurations: `volcano-admission-service-jobs-mutate`.
const CONFIGURATION: &str = "volcano-admission-service";

/// What a webhook may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It completes objects.
    Mutating,
    /// It refuses objects.
    Validating,
}

/// One path of the webhook manager.
#[derive(Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The path in the URL.
    pub path: &'static str,
    /// The name of the webhook in its configuration; refusals show it to users.
    pub webhook: &'static str,
    /// The kind of objects that it is asked about.
    pub kind: Kind,
    /// Whether it completes or refuses them.
    pub role: Role,
    /// The operations that it is asked about.
    pub operations: &'static [Verb],
    /// The refusal of any other operation; `{}` stands for the operation. Clients of Volcano know these texts.
    wrong_operation: &'static str,
}

/// All paths that Volcano's webhook manager knows.
pub const ENDPOINTS: [Endpoint; 11] = [
    Endpoint {
        path: "/jobs/mutate",
        webhook: "mutatejob.volcano.sh",
        kind: Kind::VcJob,
        role: Role::Mutating,
        operations: &[Verb::Create],
        wrong_operation: "expect operation to be 'CREATE' ",
    },
    Endpoint {
        path: "/jobs/validate",
        webhook: "validatejob.volcano.sh",
        kind: Kind::VcJob,
        role: Role::Validating,
        operations: &[Verb::Create, Verb::Update],
        wrong_operation: "expect operation to be 'CREATE' or 'UPDATE'",
    },
    Endpoint {
        path: "/podgroups/mutate",
        webhook: "mutatepodgroup.volcano.sh",
        kind: Kind::PodGroup,
        role: Role::Mutating,
        operations: &[Verb::Create],
        wrong_operation: "invalid operation `{}`, expect operation to be `CREATE`",
    },
    Endpoint {
        path: "/podgroups/validate",
        webhook: "validatepodgroup.volcano.sh",
        kind: Kind::PodGroup,
        role: Role::Validating,
        operations: &[Verb::Create],
        wrong_operation: "unsupported operation {}",
    },
    Endpoint {
        path: "/queues/mutate",
        webhook: "mutatequeue.volcano.sh",
        kind: Kind::Queue,
        role: Role::Mutating,
        operations: &[Verb::Create],
        wrong_operation: "invalid operation `{}`, expect operation to be `CREATE`",
    },
    Endpoint {
        path: "/queues/validate",
        webhook: "validatequeue.volcano.sh",
        kind: Kind::Queue,
        role: Role::Validating,
        operations: &[Verb::Create, Verb::Update, Verb::Delete],
        wrong_operation: "invalid operation `{}`, expect operation to be `CREATE`, `UPDATE` or `DELETE`",
    },
    Endpoint {
        path: "/pods/mutate",
        webhook: "mutatepod.volcano.sh",
        kind: Kind::Pod,
        role: Role::Mutating,
        operations: &[Verb::Create],
        wrong_operation: "expect operation to be 'CREATE' ",
    },
    Endpoint {
        path: "/pods/validate",
        webhook: "validatepod.volcano.sh",
        kind: Kind::Pod,
        role: Role::Validating,
        operations: &[Verb::Create],
        wrong_operation: "expect operation to be 'CREATE'",
    },
    Endpoint {
        path: "/jobflows/validate",
        webhook: "validatejobflow.volcano.sh",
        kind: Kind::JobFlow,
        role: Role::Validating,
        operations: &[Verb::Create, Verb::Update],
        wrong_operation: "expect operation to be 'CREATE' or 'UPDATE'",
    },
    Endpoint {
        path: "/cronjobs/validate",
        webhook: "validatecronjob.volcano.sh",
        kind: Kind::VcCronJob,
        role: Role::Validating,
        operations: &[Verb::Create, Verb::Update],
        wrong_operation: "expect operation to be 'CREATE' or 'UPDATE'",
    },
    Endpoint {
        path: "/hypernodes/validate",
        webhook: "validatehypernodes.volcano.sh",
        kind: Kind::HyperNode,
        role: Role::Validating,
        operations: &[Verb::Create, Verb::Update],
        wrong_operation: "",
    },
];

/// A body that is no AdmissionReview with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAReview;

impl Endpoint {
    /// The name of its Mutating- or ValidatingWebhookConfiguration.
    pub fn configuration(&self) -> String {
        format!("{CONFIGURATION}{}", self.path.replace('/', "-"))
    }

    /// Its configuration for an API server that reaches it by `client`, a `service` or a `url`, without the path.
    ///
    /// Krafla's own namespace and kube-system are left out: pods there must start even if no webhook answers. Other people's pods
    /// start without an answer, too. Volcano's own kinds wait for one.
    pub fn manifest(&self, client: &Value, namespace: &str) -> Value {
        let info = self.kind.info();
        let mut client = client.clone();
        if let Some(url) = client.get("url").and_then(Value::as_str) {
            client = json!({ "url": format!("{}{}", url.trim_end_matches('/'), self.path) });
        } else if let Some(service) = client.get_mut("service").and_then(Value::as_object_mut) {
            service.insert("path".into(), self.path.into());
        }
        let operations: Vec<&str> = self.operations.iter().map(|verb| verb.as_str()).collect();
        let mut webhook = json!({
            "name": self.webhook,
            "clientConfig": client,
            "rules": [{
                "apiGroups": [info.group], "apiVersions": [info.version], "resources": [info.plural],
                "operations": operations, "scope": "*",
            }],
            "namespaceSelector": { "matchExpressions": [{
                "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", namespace],
            }] },
            "admissionReviewVersions": ["v1"],
            "failurePolicy": if self.kind == Kind::Pod { "Ignore" } else { "Fail" },
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": 10,
        });
        let kind = match self.role {
            Role::Mutating => "MutatingWebhookConfiguration",
            Role::Validating => "ValidatingWebhookConfiguration",
        };
        if let (Role::Mutating, Some(fields)) = (self.role, webhook.as_object_mut()) {
            fields.insert("reinvocationPolicy".into(), "Never".into());
        }
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": { "name": self.configuration() }, "webhooks": [webhook],
        })
    }

    /// The queues that the answer depends on: those that the object names.
    pub fn queues_named<'a>(&self, review: &'a Value) -> Vec<&'a str> {
        let object = |name: &str| review.pointer(&format!("/request/object/{name}")).and_then(Value::as_str);
        let named = match self.kind {
            Kind::VcJob | Kind::PodGroup => [object("spec/queue"), None],
            Kind::Queue => [object("spec/parent"), review.pointer("/request/name").and_then(Value::as_str)],
            _ => [None, None],
        };
        named.into_iter().flatten().filter(|name| !name.is_empty()).collect()
    }

    /// The answer to an AdmissionReview.
    pub fn answer(
        &self,
        review: &Value,
        settings: &Settings,
        cluster: &dyn Cluster,
    ) -> Result<Value, NotAReview> {
        let is_other = |name: &str, expected: &str| {
            review.get(name).is_some_and(|value| value != expected && !value.is_null() && value != "")
        };
        let request = review.get("request").filter(|request| request.is_object()).ok_or(NotAReview)?;
        if is_other("apiVersion", REVIEW_VERSION) || is_other("kind", "AdmissionReview") {
            return Err(NotAReview);
        }
        let mut response = match self.role {
            Role::Mutating => self.mutate(request, settings, cluster),
            Role::Validating => self.review(request, settings, cluster),
        };
        if let Some(fields) = response.as_object_mut() {
            fields.insert("uid".into(), text(request, "uid").into());
        }
        Ok(json!({ "kind": "AdmissionReview", "apiVersion": REVIEW_VERSION, "response": response }))
    }

    fn mutate(&self, request: &Value, settings: &Settings, cluster: &dyn Cluster) -> Value {
        if let Err(refusal) = self.operation(request) {
            return refused(&refusal);
        }
        let before = in_its_namespace(request);
        let mut verdict = Verdict::default();
        // The defaults pass over what they cannot read. Volcano refuses it here, before the schema does.
        match self.kind {
            Kind::VcJob => drop(read::<Job>(&before, &mut verdict)),
            Kind::Queue => drop(read::<Queue>(&before, &mut verdict)),
            Kind::PodGroup => drop(read::<PodGroup>(&before, &mut verdict)),
            _ => {}
        }
        if !verdict.is_allowed() {
            return refused(&verdict.message());
        }
        let mut after = before.clone();
        default(self.kind, &mut after, settings, cluster);
        let operations = patch::diff(&before, &after);
        if operations.is_empty() {
            return json!({ "allowed": true });
        }
        let patch = base64::engine::general_purpose::STANDARD.encode(Value::from(operations).to_string());
        json!({ "allowed": true, "patch": patch, "patchType": "JSONPatch" })
    }

    fn review(&self, request: &Value, settings: &Settings, cluster: &dyn Cluster) -> Value {
        let operation = match self.operation(request) {
            Ok(Some(operation)) => operation,
            Ok(None) => return json!({ "allowed": true }),
            Err(refusal) => return refused(&refusal),
        };
        let object = match operation {
            Operation::Delete => Value::Null,
            Operation::Create | Operation::Update => in_its_namespace(request),
        };
        let old = request.get("oldObject").unwrap_or(&Value::Null);
        let name = match text(request, "name") {
            "" => object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default(),
            name => name,
        };
        let asked = Request { kind: self.kind, operation, name, object: &object, old };
        let verdict = validate(asked, settings, cluster);
        if !verdict.is_allowed() {
            return refused(&verdict.message());
        }
        match verdict.warnings.as_slice() {
            [] => json!({ "allowed": true }),
            warnings => {
                let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
                json!({ "allowed": true, "warnings": warnings })
            }
        }
    }

    /// What a request does, none if its webhook has no rule about that; or why the request is refused.
    fn operation(&self, request: &Value) -> Result<Option<Operation>, String> {
        let info = self.kind.info();
        let resource = request.get("resource").unwrap_or(&Value::Null);
        let [group, version, plural] = ["group", "version", "resource"].map(|name| text(resource, name));
        if (group, version, plural) != (info.group, info.version, info.plural) {
            let expected = format!("{} {} {}", info.group, info.version, info.plural);
            return Err(format!("expect resource to be {{{expected}}}"));
        }
        let name = text(request, "operation");
        match self.operations.iter().find(|verb| verb.as_str() == name) {
            Some(Verb::Create) => Ok(Some(Operation::Create)),
            Some(Verb::Update) => Ok(Some(Operation::Update)),
            Some(Verb::Delete) => Ok(Some(Operation::Delete)),
            Some(Verb::Connect) | None if self.wrong_operation.is_empty() => Ok(None),
            Some(Verb::Connect) | None => Err(self.wrong_operation.replace("{}", name)),
        }
    }
}

/// The object of a request. A new object may leave out its namespace; the request names it.
fn in_its_namespace(request: &Value) -> Value {
    let mut object = request.get("object").cloned().unwrap_or_default();
    let (namespace, metadata) = (text(request, "namespace"), object.get_mut("metadata"));
    if let Some(metadata) = metadata.and_then(Value::as_object_mut)
        && !namespace.is_empty()
        && metadata.get("namespace").is_none_or(|named| named == "")
    {
        metadata.insert("namespace".into(), namespace.into());
    }
    object
}

fn refused(message: &str) -> Value {
    json!({ "allowed": false, "status": { "metadata": {}, "message": message } })
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
