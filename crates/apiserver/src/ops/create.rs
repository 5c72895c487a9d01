//! Creating objects.

use krafla_api::Key;
use krafla_schema::field::FieldError;
use krafla_schema::object;
use serde_json::Value;

use super::ownership::Ownership;
use super::{Answer, Api, Held, Part, WriteOptions, commit_failed, meta};
use crate::codec;
use crate::kinds::certificate::CertificateSigningRequest;
use crate::registry::{Generation, Resource};
use crate::status::Status;
use crate::store::{Change, CommitError, Expect, Write};

/// How often a generated name that is taken is made anew.
const NAME_ATTEMPTS: usize = 8;
/// The longest prefix of a generated name: with its five random characters it still fits a DNS label.
const PREFIX_LENGTH_MAX: usize = 58;

/// What a client cannot say about a new object.
const SERVERS_OWN: [&str; 5] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];

impl Api {
    /// Stores a new object.
    pub async fn create(
        &self,
        resource: &Resource,
        namespace: &str,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Answer, Status> {
        settle_namespace(resource, &mut object, namespace)?;
        let prefix = object::meta(&object, "generateName").to_owned();
        if !object::name(&object).is_empty() || prefix.is_empty() {
            return self.create_named(resource, object, Ownership::Tracked, options).await;
        }
        let mut attempt = 1;
        loop {
            let mut named = object.clone();
            object::set_meta(&mut named, "name", self.generated_name(&prefix));
            match self.create_named(resource, named, Ownership::Tracked, options).await {
                Err(status) if status.reason == "AlreadyExists" && attempt < NAME_ATTEMPTS => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    fn generated_name(&self, prefix: &str) -> String {
        let mut end = prefix.len().min(PREFIX_LENGTH_MAX);
        while !prefix.is_char_boundary(end) {
            end -= 1;
        }
        format!("{}{}", prefix.get(..end).unwrap_or_default(), self.env().suffix())
    }

    pub(super) async fn create_named(
        &self,
        resource: &Resource,
        mut object: Value,
        ownership: Ownership,
        options: &WriteOptions,
    ) -> Result<Answer, Status> {
        // The store refuses it, if it is a version at all, and a dry run does not get there.
        let given = object::meta(&object, "resourceVersion").to_owned();
        let is_versioned = !options.dry_run && given.parse::<u64>().is_ok_and(|version| version != 0);
        object::metadata(&mut object).remove("resourceVersion");
        self.check_namespace_open(resource, &object)?;
        self.check_definition_open(resource, &object)?;
        let Prepared { held: _held, managers } =
            self.prepare_new(resource, &mut object, ownership, options).await?;
        let mut warnings = Vec::new();
        if !options.is_servers_own {
            warnings.extend(resource.rules.warnings(&object));
            let request = self.request(resource, Part::Main, options, None);
            warnings.extend(self.admission().warnings(&request, &object));
        }
        if is_versioned {
            return Err(Status::plain("resourceVersion should not be set on objects to be created"));
        }
        let created = if options.dry_run {
            let key = Key::new(object::namespace(&object), object::name(&object));
            match self.store().newest(&resource.storage, &key).entry {
                Some(_) => Err(Status::already_exists(&resource.qualified(), &key.name)),
                None => {
                    if !given.is_empty() {
                        object::set_meta(&mut object, "resourceVersion", given);
                    }
                    Ok(Answer { is_new: true, ..Answer::shown(&object, 0) })
                }
            }
        } else {
            self.put_new(resource, object, managers).await
        };
        if created.is_ok() {
            options.warnings.extend(warnings);
        }
        created
    }

    /// Everything that makes what a client sent an object that can be stored.
    async fn prepare_new(
        &self,
        resource: &Resource,
        object: &mut Value,
        ownership: Ownership,
        options: &WriteOptions,
    ) -> Result<Prepared<'_>, Status> {
        let now = self.env().now();
        self.stamp_type(resource, object);
        for given in SERVERS_OWN {
            object::metadata(object).remove(given);
        }
        let has_own_labels = !resource.rules.has_labels_of_its_pods() || has_labels(object);
        resource.rules.default(object);
        codec::complete(resource, object);
        // What admission adds is nobody's, so managers are found before it.
        let mut managers = self.managers_of_new(resource, ownership, object, options);
        self.admission().mutate(&self.request(resource, Part::Main, options, None), object)?;
        self.mutate_by_others(resource, Part::Main, options, object, None).await?;
        self.confirm_grant(resource, (object, None), options)?;
        let metadata = object::metadata(object);
        for given in SERVERS_OWN {
            metadata.remove(given);
        }
        metadata.insert("uid".into(), self.env().uid().0.as_ref().into());
        metadata.insert("creationTimestamp".into(), now.to_string().into());
        match resource.generation {
            Generation::Untouched | Generation::CountsChanges => {}
            Generation::Fixed | Generation::Counts => {
                metadata.insert("generation".into(), 1.into());
            }
        }
        if !has_own_labels {
            // It gets them again once its pods have all of theirs.
            object::metadata(object).remove("labels");
        }
        resource.rules.on_create(object, now);
        if resource.storage.as_str() == "certificatesigningrequests.certificates.k8s.io" {
            CertificateSigningRequest::note_user(object, options.user.as_deref());
        }
        self.settle_definition(resource, object)?;
        let mut errors = Vec::new();
        let claim = self.claim_addresses(resource, (object, None), &mut errors);
        meta::tidy(object);
        // Nothing in this program looks at managers from here on; a tree of them is made only for those who might.
        object::metadata(object).remove("managedFields");
        if options.dry_run || self.admission().asks_others(self) {
            meta::set_managers(object, listed(managers.take()));
        }
        codec::complete(resource, object);
        errors.splice(..0, meta::check_new(resource, object));
        if !options.is_servers_own {
            errors.extend(resource.rules.validate(object));
        }
        self.refuse_invalid(resource, object, &errors)?;
        // What the server said about the object has defaults of its own: a Job's labels are those of its pods.
        resource.rules.default(object);
        self.admission().validate(&self.request(resource, Part::Main, options, None), object)?;
        self.validate_by_webhooks(resource, Part::Main, options, object, None).await?;
        // Last of all, since it is charged for good.
        let charge = self.charge(resource, object, None, options).await?;
        Ok(Prepared { held: Held { _charge: charge, _claim: claim }, managers })
    }

    async fn put_new(
        &self,
        resource: &Resource,
        object: Value,
        managers: Option<String>,
    ) -> Result<Answer, Status> {
        let key = Key::new(object::namespace(&object), object::name(&object));
        let definition = self.definition_of(resource, &object);
        let change = Change::Put(self.draft(resource, object, managers).await?);
        let write =
            Write { resource: resource.storage.clone(), key: key.clone(), expect: Expect::Absent, change };
        let entry = self
            .store()
            .commit(write)
            .await
            .map_err(|error: CommitError| commit_failed(resource, &key, &error))?;
        if let Some(definition) = definition {
            self.serve_definition(&definition);
        }
        self.shown_answer(resource, Answer { is_new: true, ..Answer::stored(&entry) }).await
    }

    /// Refuses an object with findings.
    pub(super) fn refuse_invalid(
        &self,
        resource: &Resource,
        object: &Value,
        errors: &[FieldError],
    ) -> Result<(), Status> {
        if errors.is_empty() {
            return Ok(());
        }
        Err(Status::invalid(&resource.qualified_kind(), object::name(object), errors))
    }
}

fn has_labels(object: &Value) -> bool {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    labels.is_some_and(|labels| !labels.is_empty())
}

/// What is known of an object that can be stored.
struct Prepared<'a> {
    held: Held<'a>,
    /// Who manages its fields, as text, where nobody but the store wants to know.
    managers: Option<String>,
}

/// Managers as a tree.
fn listed(managers: Option<String>) -> Vec<Value> {
    managers.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// The namespace of the path counts; a body that names another one is a mistake.
pub(super) fn settle_namespace(
    resource: &Resource,
    object: &mut Value,
    namespace: &str,
) -> Result<(), Status> {
    let named = object::namespace(object);
    if !resource.is_namespaced() {
        object::metadata(object).remove("namespace");
        return Ok(());
    }
    if !named.is_empty() && named != namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(message));
    }
    object::set_meta(object, "namespace", namespace);
    Ok(())
}
