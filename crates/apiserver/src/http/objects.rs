//! Requests for one object over HTTP.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderValue, WARNING};
use krafla_admission::rbac::User;
use krafla_api::Key;
use krafla_cluster::Propagation;
use krafla_schema::field::FieldError;
use serde_json::{Value, json};

use super::accept::Accept;
use super::body::{self, Reply};
use super::path::ResourcePath;
use super::query::Query;
use super::write_options::{self, WriteKind};
use super::{Context, delete_options, list_options, show};
use crate::codec;
use crate::ops::{Answer, Applied, DeleteOptions, Deleted, Part, Strictness, WriteOptions};
use crate::patch::Patch;
use crate::registry::Resource;
use crate::status::{self, Qualified, Status};

/// The media type of a server-side apply.
const APPLY: &str = "application/apply-patch+yaml";

/// All media types of patches.
const PATCHES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    APPLY,
];

/// One request for one object.
pub(super) struct ObjectRequest<'a> {
    /// The server.
    pub context: &'a Context,
    /// Of what resource.
    pub resource: Arc<Resource>,
    /// Where.
    pub path: ResourcePath,
    /// In which form the answer is wanted.
    pub accept: Accept,
    /// Further wishes.
    pub query: Query,
    /// Which program asks.
    pub user_agent: String,
    /// Media type of the body.
    pub content_type: String,
    /// The body.
    pub body: Bytes,
    /// Who asks.
    pub user: Arc<User>,
}

impl ObjectRequest<'_> {
    pub(super) fn key(&self) -> Key {
        let namespace = if self.resource.is_namespaced() { self.path.namespace.as_str() } else { "" };
        Key::new(namespace, &self.path.name)
    }

    pub(super) fn write_options(&self, kind: WriteKind) -> Result<WriteOptions, Status> {
        let options = write_options::decode(kind, &self.query, &self.user_agent)?;
        Ok(WriteOptions { user: Some(self.user.clone()), ..options })
    }

    /// Which part of the object the path is about.
    fn part(&self) -> Part {
        match self.path.subresource.as_str() {
            "status" => Part::Status,
            "finalize" => Part::Finalize,
            "approval" => Part::Own("approval"),
            "ephemeralcontainers" => Part::Own("ephemeralcontainers"),
            "resize" => Part::Own("resize"),
            _ => Part::Main,
        }
    }

    fn show(&self, code: u16, bytes: Bytes) -> Result<Reply, Status> {
        show::one(code, &self.resource, bytes, &self.accept, &self.query, self.context.env.now())
    }

    fn show_written(&self, answer: Answer) -> Result<Reply, Status> {
        self.show(if answer.is_new { 201 } else { 200 }, answer.bytes)
    }

    /// The object in the body, and what its author should know about it.
    fn object(&self) -> Result<(Value, Vec<String>), Status> {
        decode(&self.resource, &self.content_type, &self.body, &self.query)
    }

    /// GET.
    pub(super) async fn get(&self) -> Result<Reply, Status> {
        if self.query.flag("export") {
            let why = "the export parameter, deprecated since v1.14, is no longer supported";
            return Err(Status::bad_request(why));
        }
        self.context.api.check_reached(list_options::revision(&self.query)?)?;
        let entry = self.context.api.get_shown(&self.resource, &self.key()).await?;
        self.show(200, entry.bytes.clone())
    }

    /// POST to a collection.
    pub(super) async fn create(&self) -> Result<Reply, Status> {
        let options = self.write_options(WriteKind::Create)?;
        let (object, warnings) = self.object()?;
        options.warnings.extend(warnings);
        let of_metadata = crate::ops::metadata_warnings(&object);
        let created = self.context.api.create(&self.resource, &self.path.namespace, object, &options).await;
        if created.is_ok() {
            options.warnings.extend(of_metadata);
        }
        let created = created.map(|created| match self.resource.storage.as_str() {
            "customresourcedefinitions.apiextensions.k8s.io" => before_acceptance(created),
            _ => created,
        });
        warn(created.and_then(|created| self.show_written(created)), &options.warnings.list())
    }

    /// PUT.
    pub(super) async fn update(&self) -> Result<Reply, Status> {
        let options = self.write_options(WriteKind::Update)?;
        let (object, warnings) = self.object()?;
        options.warnings.extend(warnings);
        let updated =
            self.context.api.update(&self.resource, &self.key(), self.part(), object, &options).await;
        warn(updated.and_then(|updated| self.show_written(updated)), &options.warnings.list())
    }

    /// PATCH.
    pub(super) async fn patch(&self) -> Result<Reply, Status> {
        // Upstream's routes know patches by the exact word.
        let media_type = self.content_type.split(';').next().unwrap_or_default().trim().to_owned();
        if media_type.split(',').count() > 1
            && media_type.split(',').all(|part| PATCHES.contains(&part.trim()))
        {
            return Err(Status::unsupported_media_type(&PATCHES.join(", ")));
        }
        if media_type == APPLY {
            return self.apply().await;
        }
        let mut options = self.write_options(WriteKind::Patch)?;
        let (patch, findings) =
            Patch::decode(&media_type, &self.body).ok_or_else(Status::unsupported_patch_type)??;
        options.field_validation.found = findings;
        let patched =
            self.context.api.patch(&self.resource, &self.key(), self.part(), &patch, &options).await;
        warn(patched.and_then(|patched| self.show_written(patched)), &options.warnings.list())
    }

    async fn apply(&self) -> Result<Reply, Status> {
        let options = self.write_options(WriteKind::Apply)?;
        let object = codec::decode_applied(&self.body)?;
        let mut options = options;
        if options.field_validation.strictness != Strictness::Ignore {
            options.field_validation.found = codec::repeated_keys(&self.body);
        }
        let applied = Applied { object, is_forced: self.query.flag("force") };
        let written =
            self.context.api.apply(&self.resource, &self.key(), self.part(), &applied, &options).await;
        warn(written.and_then(|written| self.show_written(written)), &options.warnings.list())
    }

    /// DELETE.
    pub(super) async fn delete(&self) -> Result<Reply, Status> {
        let mut options = delete_options::decode(&self.content_type, &self.body, &self.query)?;
        options.user = Some(self.user.clone());
        warn_of_dependents(&self.resource, &options);
        let deleted = self.context.api.delete(&self.resource, &self.key(), &options).await;
        let shown = deleted.and_then(|deleted| match deleted {
            Deleted::Gone(answer) if !self.resource.returns_deleted => {
                let success = status::deleted(&self.resource.qualified(), &answer.key.name, &answer.uid.0);
                Ok(body::value(200, &success, self.accept.encoding))
            }
            Deleted::Gone(answer) => self.show(200, answer.bytes),
            Deleted::Marked(answer) => self.show(if options.accepts_later { 202 } else { 200 }, answer.bytes),
        });
        warn(shown, &options.warnings.list())
    }

    /// POST of a Binding.
    pub(super) async fn bind(&self) -> Result<Reply, Status> {
        let binding = codec::decode_any(["", "v1", "Binding"], &self.content_type, &self.body)?;
        check_namespace(&binding, &self.path.namespace)?;
        let mut pod = self.key();
        if !pod.name.is_empty() && *pod.name != *krafla_schema::object::name(&binding) {
            return Err(Status::bad_request("name in URL does not match name in Binding object"));
        }
        if pod.name.is_empty() {
            pod = Key::new(&self.path.namespace, krafla_schema::object::name(&binding));
        }
        let pods = self.context.pods()?;
        let options = self.write_options(WriteKind::Create)?;
        self.context.api.bind(&pods, &pod, &binding, &options).await?;
        Ok(body::value(201, &done(), self.accept.encoding))
    }

    /// POST of an Eviction.
    pub(super) async fn evict(&self) -> Result<Reply, Status> {
        let eviction = codec::decode_any(["policy", "v1", "Eviction"], &self.content_type, &self.body)?;
        check_namespace(&eviction, &self.path.namespace)?;
        let is_dry = self.write_options(WriteKind::Create)?.dry_run;
        if *self.path.name != *krafla_schema::object::name(&eviction) {
            return Err(Status::bad_request("name in URL does not match name in Eviction object"));
        }
        let how = eviction.get("deleteOptions").unwrap_or(&Value::Null);
        let mut options = delete_options::from_body(how)?;
        options.dry_run |= is_dry;
        options.user = Some(self.user.clone());
        self.context.api.evict(&self.resource, &self.key(), &eviction, &options).await?;
        Ok(body::value(201, &done(), self.accept.encoding))
    }

    /// POST of a TokenRequest.
    pub(super) fn token(&self) -> Result<Reply, Status> {
        let request = codec::decode_any(
            ["authentication.k8s.io", "v1", "TokenRequest"],
            &self.content_type,
            &self.body,
        )?;
        check_namespace(&request, &self.path.namespace)?;
        let named = krafla_schema::object::name(&request);
        if !named.is_empty() && *named != *self.path.name {
            let why = "must match the service account name if specified";
            let error = FieldError::invalid("metadata.name", named, why);
            let of = Qualified { group: "authentication.k8s.io", what: "TokenRequest" };
            return Err(Status::invalid(&of, &self.path.name, &[error]));
        }
        let issued = self.context.credentials.tokens.issue(&self.context.api, &self.key(), &request)?;
        Ok(body::value(201, &issued, self.accept.encoding))
    }
}

/// The object in a body, and what its author should know about it.
pub(super) fn decode(
    resource: &Resource,
    content_type: &str,
    body: &[u8],
    query: &Query,
) -> Result<(Value, Vec<String>), Status> {
    let decoded = codec::decode(resource, content_type, body)?;
    let findings = decoded.findings.iter().map(ToString::to_string).collect();
    match write_options::strictness(query).judge(findings) {
        Ok(warnings) => Ok((decoded.object, warnings)),
        Err(why) => {
            let (kind, version) = (&resource.names.kind, &resource.names.version);
            Err(Status::bad_request(format!(
                "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"
            )))
        }
    }
}

/// A body that says where it belongs must belong there.
fn check_namespace(body: &Value, namespace: &str) -> Result<(), Status> {
    let named = krafla_schema::object::namespace(body);
    if named.is_empty() || named == namespace {
        return Ok(());
    }
    let message = "the namespace of the provided object does not match the namespace sent on the request";
    Err(Status::bad_request(message))
}

const DEPENDENTS_KEPT: &str = "child pods are preserved by default when jobs are deleted; set \
    propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

/// A new definition as it is before its names are accepted. Clients that wait for that look again.
fn before_acceptance(mut created: Answer) -> Answer {
    let Ok(mut definition) = serde_json::from_slice::<Value>(&created.bytes) else { return created };
    if let Some(status) = definition.get_mut("status") {
        krafla_schema::object::set(status, "conditions", Value::Null);
        krafla_schema::object::set(status, "acceptedNames", json!({"plural": "", "kind": ""}));
    }
    if let Some(Value::Array(managers)) = definition.pointer_mut("/metadata/managedFields") {
        managers.retain(|manager| manager["subresource"] != "status");
    }
    created.bytes = definition.to_string().into();
    created
}

fn done() -> Value {
    json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success", "code": 201})
}

/// Adds warnings to an answer, whether it is a success or a refusal.
/// Who deletes without saying what becomes of dependents should know that they stay.
pub(super) fn warn_of_dependents(resource: &Resource, options: &DeleteOptions) {
    let is_job = resource.storage.as_str() == "jobs.batch";
    let keeps_dependents = resource.rules.default_propagation() == Some(Propagation::Orphan);
    if options.propagation.is_none() && is_job && keeps_dependents {
        options.warnings.extend([DEPENDENTS_KEPT.to_owned()]);
    }
}

/// Warnings that come before those of the answer.
pub(super) fn warn_first(outcome: Result<Reply, Status>, warnings: &[String]) -> Result<Reply, Status> {
    if warnings.is_empty() {
        return outcome;
    }
    let mut reply = outcome.unwrap_or_else(|status| body::refusal(&status));
    let later: Vec<HeaderValue> = reply.headers().get_all(WARNING).iter().cloned().collect();
    reply.headers_mut().remove(WARNING);
    let mut reply = warn(Ok(reply), warnings)?;
    for value in later {
        reply.headers_mut().append(WARNING, value);
    }
    Ok(reply)
}

pub(super) fn warn(outcome: Result<Reply, Status>, warnings: &[String]) -> Result<Reply, Status> {
    if warnings.is_empty() {
        return outcome;
    }
    let mut reply = outcome.unwrap_or_else(|status| body::refusal(&status));
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            reply.headers_mut().append(WARNING, value);
        }
    }
    Ok(reply)
}
