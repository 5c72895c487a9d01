//! Changing objects: a whole new state, or a patch of what is stored.

use std::sync::Arc;

use krafla_api::{Key, Time};
use krafla_schema::field::FieldError;
use krafla_schema::json::go_quote;
use krafla_schema::object;
use serde_json::Value;

use super::create::settle_namespace;
use super::ownership::Ownership;
use super::{Answer, Api, Held, NotPut, WriteOptions, commit_failed, meta};
use crate::codec;
use crate::kinds::keep_all_but;
use crate::registry::Resource;
use crate::status::Status;
use crate::store::{Change, CommitError, Entry, Expect, Newest, Write};

/// Which part of an object a request may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything but status, where that has its own path.
    Main,
    /// Status.
    Status,
    /// `spec.finalizers` of a namespace.
    Finalize,
    /// How many replicas are wanted.
    Scale,
    /// The node of a pod, and what says so.
    Bind,
    /// What a subresource of the kind's own is about, such as a pod's `resize`.
    Own(&'static str),
}

impl Api {
    /// Replaces an object, or a part of it.
    pub async fn update(
        &self,
        resource: &Resource,
        key: &Key,
        part: Part,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Answer, Status> {
        check_name(&object, key)?;
        settle_namespace(resource, &mut object, &key.namespace)?;
        let newest = self.store().newest(&resource.storage, key);
        let Some(entry) = &newest.entry else {
            if resource.create_on_update && part == Part::Main {
                let uid = object::uid(&object);
                if !uid.is_empty() {
                    let refused = Err(wrong_uid(resource, key, "", uid, options.dry_run));
                    return self.once_durable(newest.revision, refused).await;
                }
                self.authorize_creation(resource, key, options)?;
                object::metadata(&mut object).remove("resourceVersion");
                return self.create(resource, &key.namespace, object, options).await;
            }
            let missing = Status::not_found(&resource.qualified(), &key.name);
            return self.once_durable(newest.revision, Err(missing)).await;
        };
        let uid = object::uid(&object);
        if !uid.is_empty() && *uid != *entry.uid.0 {
            let refused = Err(wrong_uid(resource, key, &entry.uid.0, uid, options.dry_run));
            return self.once_durable(newest.revision, refused).await;
        }
        check_versioned(resource, &object, key)?;
        self.change(resource, key, part, Ownership::Tracked, options, |_| Ok(object.clone())).await
    }

    /// Computes a new state from the newest one until no other writer comes in between. There is no limit to the attempts:
    /// each one that fails means that another write succeeded.
    pub(super) async fn change(
        &self,
        resource: &Resource,
        key: &Key,
        part: Part,
        ownership: Ownership,
        options: &WriteOptions,
        compute: impl Fn(&Value) -> Result<Value, Status>,
    ) -> Result<Answer, Status> {
        loop {
            let newest = self.store().newest(&resource.storage, key);
            let attempt = self.try_change(resource, key, &newest, part, ownership, options, &compute).await;
            if let Some(outcome) = attempt.transpose() {
                return self.once_durable(newest.revision, outcome).await;
            }
        }
    }

    /// One attempt at a change; none if another writer came in between.
    #[expect(clippy::too_many_arguments, reason = "it is one attempt of `change`, and has what that has")]
    async fn try_change(
        &self,
        resource: &Resource,
        key: &Key,
        newest: &Newest,
        part: Part,
        ownership: Ownership,
        options: &WriteOptions,
        compute: impl Fn(&Value) -> Result<Value, Status>,
    ) -> Result<Option<Answer>, Status> {
        let missing = || Status::not_found(&resource.qualified(), &key.name);
        let entry = newest.entry.as_ref().ok_or_else(missing)?;
        let old = self.read(resource, entry).await?;
        let mut new = compute(&old)?;
        check_identity(resource, entry, &new, options)?;
        let _held = self.prepare_changed(resource, part, ownership, options, (&mut new, &old)).await?;
        let warnings = match part {
            Part::Main => resource.rules.warnings_of_change(&new, &old),
            _ => Vec::new(),
        };
        match self.put_changed(resource, entry, new, options).await {
            // What is missing now was there a moment ago: the next attempt says so, or finds a new one.
            Err(NotPut::Commit(CommitError::Stale { .. } | CommitError::Missing)) => Ok(None),
            Err(NotPut::Commit(error)) => Err(commit_failed(resource, key, &error)),
            Err(NotPut::Refused(status)) => Err(status),
            Ok(answer) => {
                options.warnings.extend(warnings);
                self.shown_answer(resource, answer).await.map(Some)
            }
        }
    }

    /// Holds an answer back until what it was computed from cannot be lost any more.
    pub(super) async fn once_durable<T>(
        &self,
        revision: u64,
        outcome: Result<T, Status>,
    ) -> Result<T, Status> {
        match self.store().durable(revision).await {
            Ok(()) => outcome,
            Err(error) => Err(Status::internal(&error.to_string())),
        }
    }

    /// Everything that makes a wanted state one that can be stored.
    async fn prepare_changed(
        &self,
        resource: &Resource,
        part: Part,
        ownership: Ownership,
        options: &WriteOptions,
        (new, old): (&mut Value, &Value),
    ) -> Result<Held<'_>, Status> {
        self.stamp_type(resource, new);
        let mut immutable = meta::keep_servers_own(new, old);
        resource.rules.default(new);
        codec::complete(resource, new);
        let managers = self.managers(resource, part, ownership, (Some(old), new), options);
        keep_unchangeable(resource, part, new, old, self.env().now());
        if matches!(part, Part::Main | Part::Scale) {
            self.settle_definition(resource, new)?;
            self.admission().mutate(&self.request(resource, part, options, Some(old)), new)?;
        }
        if part.is_asked_about() && self.mutate_by_others(resource, part, options, new, Some(old)).await? {
            immutable = meta::keep_servers_own(new, old);
            keep_unchangeable(resource, part, new, old, self.env().now());
        }
        self.confirm_grant(resource, (new, Some(old)), options)?;
        let mut errors = Vec::new();
        let claim = match part {
            Part::Main => self.claim_addresses(resource, (new, Some(old)), &mut errors),
            _ => None,
        };
        errors.splice(..0, find_faults_of_meta(resource, part, (new, old), immutable));
        if !options.is_servers_own {
            errors.extend(find_faults(resource, part, new, old));
        }
        codec::complete(resource, new);
        meta::set_managers(new, managers);
        match part {
            Part::Main | Part::Scale | Part::Status | Part::Own(_) => {
                self.count_generation(resource, new, old)
            }
            Part::Finalize | Part::Bind => object::copy_meta(new, old, &["generation"]),
        }
        self.refuse_invalid(resource, new, &errors)?;
        if matches!(part, Part::Main | Part::Scale | Part::Own(_)) {
            self.admission().validate(&self.request(resource, part, options, Some(old)), new)?;
        }
        if part.is_asked_about() {
            self.validate_by_webhooks(resource, part, options, new, Some(old)).await?;
        }
        let charge = match self.charge_for_change(resource, part, (new, old), options) {
            Some(charge) => charge.await?,
            None => None,
        };
        Ok(Held { _charge: charge, _claim: claim })
    }

    async fn put_changed(
        &self,
        resource: &Resource,
        entry: &Arc<Entry>,
        new: Value,
        options: &WriteOptions,
    ) -> Result<Answer, NotPut> {
        let is_over = is_ready_to_go(&new);
        let definition = self.definition_of(resource, &new);
        // What goes because nothing holds it any more is shown as it was asked for.
        let last_shown = (is_over || options.dry_run).then(|| {
            let mut shown = new.clone();
            object::set_meta(&mut shown, "resourceVersion", entry.revision.to_string());
            Answer::shown(&shown, entry.revision)
        });
        // Watchers see it go as it was last stored, still with what held it.
        let draft = match is_over {
            true => self.last_draft(resource, entry)?,
            false => self.draft(resource, new, None).await?,
        };
        if !is_over && draft.is_stored_as(entry) {
            return Ok(Answer::stored(entry));
        }
        if let (true, Some(shown)) = (options.dry_run, &last_shown) {
            return Ok(shown.clone());
        }
        let change = if is_over { Change::Delete(draft) } else { Change::Put(draft) };
        let write = Write {
            resource: resource.storage.clone(),
            key: entry.key.clone(),
            expect: Expect::Revision(entry.revision),
            change,
        };
        let stored = self.store().commit(write).await?;
        if let Some(definition) = definition {
            if is_over {
                self.withdraw_definition(&definition).await;
            } else {
                self.serve_definition(&definition);
            }
        }
        if is_over && resource.is_custom {
            self.release_or_report(resource).await;
        }
        Ok(last_shown.unwrap_or_else(|| Answer::stored(&stored)))
    }
}

impl Part {
    /// Whether webhooks are asked about a write to it.
    fn is_asked_about(self) -> bool {
        match self {
            Part::Main | Part::Scale | Part::Status | Part::Finalize | Part::Own(_) => true,
            // The server itself writes here; the request was for a Binding.
            Part::Bind => false,
        }
    }
}

/// Takes back what a request for this part may not change.
fn keep_unchangeable(resource: &Resource, part: Part, new: &mut Value, old: &Value, now: Time) {
    match part {
        Part::Main | Part::Scale => {
            if resource.has_status() {
                keep_field(new, old, "status");
            }
            resource.rules.on_update(new, old);
        }
        Part::Status => {
            resource.rules.on_status_update(new, old);
            resource.rules.stamp_status(new, old, now);
        }
        Part::Finalize => keep_all_but(new, old, &["spec"]),
        Part::Own(subresource) => resource.rules.keep_but_part(new, old, subresource),
        Part::Bind => {}
    }
}

/// Tidies the metadata of a changed object, and says what is wrong with it.
fn find_faults_of_meta(
    resource: &Resource,
    part: Part,
    (new, old): (&mut Value, &Value),
    immutable: Vec<FieldError>,
) -> Vec<FieldError> {
    match part {
        Part::Main | Part::Scale | Part::Status | Part::Own(_) => {
            meta::tidy(new);
            meta::check_update(resource, part, (new, old), &immutable)
        }
        Part::Finalize | Part::Bind => immutable,
    }
}

/// What is wrong with a changed object, beside its metadata.
fn find_faults(resource: &Resource, part: Part, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match part {
        Part::Main | Part::Scale => errors.extend(resource.rules.validate_update(new, old)),
        Part::Status => errors.extend(resource.rules.validate_status(new, old)),
        Part::Own(subresource) => errors.extend(resource.rules.validate_part(new, old, subresource)),
        Part::Finalize => errors.extend(resource.rules.validate_part(new, old, "finalize")),
        Part::Bind => {}
    }
    errors
}

/// Whether an object whose deletion was asked for has nothing left to wait for.
pub(super) fn is_ready_to_go(object: &Value) -> bool {
    let has_no_grace =
        object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) == 0;
    let is_held_namespace = object["kind"] == "Namespace"
        && object["apiVersion"] == "v1"
        && !object::strings(object.pointer("/spec/finalizers")).is_empty();
    object::is_deleting(object) && object::finalizers(object).is_empty() && has_no_grace && !is_held_namespace
}

fn keep_field(new: &mut Value, old: &Value, name: &str) {
    match old.get(name) {
        Some(value) => object::set(new, name, value.clone()),
        None => {
            object::remove(new, name);
        }
    }
}

/// The body must be about the object of the path.
pub(crate) fn check_name(object: &Value, key: &Key) -> Result<(), Status> {
    let (named, name) = (object::name(object), &key.name);
    if named.is_empty() {
        let message = "was undeterminable: name must be provided";
        return Err(Status::bad_request(format!("the name of the object ({name} based on URL) {message}")));
    }
    if *named != **name {
        let message = "does not match the name on the URL";
        return Err(Status::bad_request(format!("the name of the object ({named}) {message} ({name})")));
    }
    Ok(())
}

/// The client may say which object it means, and in which state.
fn check_identity(
    resource: &Resource,
    entry: &Entry,
    new: &Value,
    options: &WriteOptions,
) -> Result<(), Status> {
    if let Some(uid) = options.uid.as_ref().filter(|uid| **uid != entry.uid) {
        return Err(wrong_uid(resource, &entry.key, &entry.uid.0, &uid.0, options.dry_run));
    }
    let revision = parse_version(object::meta(new, "resourceVersion"))?;
    let is_other_than_said = revision != 0 && revision != entry.revision;
    if is_other_than_said || options.revision.is_some_and(|revision| revision != entry.revision) {
        return Err(Status::stale(&resource.qualified(), &entry.key.name));
    }
    Ok(())
}

/// The version that an object says it has; none is 0.
fn parse_version(text: &str) -> Result<u64, Status> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(version) if is_number => Ok(version),
        _ if text.is_empty() => Ok(0),
        _ => {
            let why = if is_number { "value out of range" } else { "invalid syntax" };
            Err(Status::plain(format!("strconv.ParseUint: parsing {}: {why}", go_quote(text))))
        }
    }
}

/// Most kinds can be changed without a version. The others refuse a change that names none.
pub(super) fn check_versioned(resource: &Resource, object: &Value, key: &Key) -> Result<(), Status> {
    if resource.unconditional_update || !matches!(object::meta(object, "resourceVersion"), "" | "0") {
        return Ok(());
    }
    let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
    Err(Status::invalid(&resource.qualified(), &key.name, &[error]))
}

/// The object of that name is another one.
pub(super) fn wrong_uid(resource: &Resource, key: &Key, uid: &str, asked: &str, is_dry: bool) -> Status {
    let path = resource.storage_path(&key.namespace, &key.name);
    // A dry run compares before the store adds its prefix.
    let path = if is_dry { path.strip_prefix("/registry").unwrap_or(&path) } else { &path };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
         UID in precondition: {asked}, UID in object meta: {uid}"
    );
    Status::conflict(&resource.qualified(), &key.name, &why)
}
