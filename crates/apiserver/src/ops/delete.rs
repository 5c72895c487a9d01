//! Deleting objects: at once, or marked until nothing holds them any more.

use std::sync::Arc;

use krafla_admission::rbac::User;
use krafla_api::{Key, Time};
use krafla_cluster::Propagation;
use krafla_schema::object;
use serde::Deserialize;
use serde_json::{Value, json};

use super::definitions::DEFINITIONS;
use super::prepare::bump_generation;
use super::update::is_ready_to_go;
use super::versions::tombstone;
use super::{Answer, Api, ListOptions, Listing, NotPut, commit_failed, parse};
use crate::admit::{Operation, Request, Warnings};
use crate::kinds::crd;
use crate::kinds::namespace::PROTECTED;
use crate::registry::{Generation, Resource};
use crate::status::Status;
use crate::store::{Change, CommitError, Entry, Expect, Newest, Write};

/// How an object is to be deleted.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// How long it may take to end its work.
    pub grace_seconds: Option<i64>,
    /// Who it must be.
    pub uid: Option<String>,
    /// In which state it must be.
    pub revision: Option<String>,
    /// What becomes of its dependents.
    pub propagation: Option<Propagation>,
    /// Whether the client asked, by the older parameter, that dependents go too: then an object that stays for now is told
    /// by another code.
    pub accepts_later: bool,
    /// Whether to do everything but store it.
    pub dry_run: bool,
    /// Where what the client should know is gathered.
    pub warnings: Warnings,
    /// The user who deletes. None for Krafla's own components.
    pub user: Option<Arc<User>>,
}

/// What a deletion led to.
#[derive(Clone, Debug)]
pub enum Deleted {
    /// It is gone; this is the last that was seen of it.
    Gone(Answer),
    /// It is marked, and goes when its time is over and nothing holds it.
    Marked(Answer),
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

impl Api {
    /// Deletes an object.
    pub async fn delete(
        &self,
        resource: &Resource,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        loop {
            let newest = self.store().newest(&resource.storage, key);
            let attempt = self.try_delete(resource, key, &newest, options).await;
            if let Some(outcome) = attempt.transpose() {
                return self.once_durable(newest.revision, outcome).await;
            }
        }
    }

    /// One attempt at a deletion; none if another writer came in between.
    async fn try_delete(
        &self,
        resource: &Resource,
        key: &Key,
        newest: &Newest,
        options: &DeleteOptions,
    ) -> Result<Option<Deleted>, Status> {
        let missing = || Status::not_found(&resource.qualified(), &key.name);
        let entry = newest.entry.as_ref().ok_or_else(missing)?;
        let old = match self.read(resource, entry).await {
            // What cannot be read any more can still be deleted.
            Err(_) if parse(entry).is_err() => tombstone(resource, entry),
            read => read?,
        };
        check_protected(resource, key)?;
        check_preconditions(resource, entry, options)?;
        if !object::is_deleting(&old) {
            let request = Request {
                api: self,
                resource,
                operation: Operation::Delete,
                old: Some(&old),
                subresource: "",
                is_dry_run: options.dry_run,
                warnings: &options.warnings,
                user: options.user.as_deref(),
            };
            self.admission().validate(&request, &old)?;
            self.ask_about_deletion(resource, &old, options).await?;
        }
        let new = self.mark(resource, &old, options);
        match self.put_deleted(resource, entry, &old, new, options).await {
            Err(NotPut::Commit(CommitError::Stale { .. } | CommitError::Missing)) => Ok(None),
            Err(NotPut::Commit(error)) => Err(commit_failed(resource, key, &error)),
            Err(NotPut::Refused(status)) => Err(status),
            Ok(Deleted::Gone(answer)) => Ok(Some(Deleted::Gone(self.shown_answer(resource, answer).await?))),
            Ok(Deleted::Marked(answer)) => {
                Ok(Some(Deleted::Marked(self.shown_answer(resource, answer).await?)))
            }
        }
    }

    /// Deletes all objects of a list, and says which they were.
    pub async fn delete_collection(
        &self,
        resource: &Resource,
        list: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Listing, Status> {
        let listing = self.list_shown(resource, list).await?;
        for entry in &listing.items {
            match self.delete(resource, &entry.key, options).await {
                Err(status) if status.code == 404 => {}
                outcome => {
                    outcome?;
                }
            }
        }
        Ok(listing)
    }

    /// The object with everything that says it is to go.
    fn mark(&self, resource: &Resource, old: &Value, options: &DeleteOptions) -> Value {
        let mut new = old.clone();
        set_propagation(&mut new, options.propagation.or_else(|| resource.rules.default_propagation()));
        let grace = resource.rules.grace_seconds(old, options.grace_seconds).unwrap_or(0);
        let left = old.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
        let was_deleting = object::is_deleting(old);
        // A second deletion may shorten the time, which is counted from the first one, but not give more.
        if !was_deleting || grace < left {
            let due_before =
                old.pointer("/metadata/deletionTimestamp").and_then(|due| Time::deserialize(due).ok());
            let due = match due_before {
                Some(due) => Time::from_seconds(due.0.as_second().saturating_sub(left).saturating_add(grace)),
                None => self.env().now().after(std::time::Duration::from_secs(grace.unsigned_abs())),
            };
            object::set_meta(&mut new, "deletionTimestamp", due.to_string());
            object::set_meta(&mut new, "deletionGracePeriodSeconds", grace);
        }
        let counts = match resource.generation {
            Generation::Untouched => false,
            Generation::CountsChanges => new.pointer("/metadata/generation").is_some(),
            Generation::Fixed | Generation::Counts => true,
        };
        if !was_deleting && counts {
            bump_generation(&mut new);
        }
        if resource.storage.as_str() == DEFINITIONS && !was_deleting {
            crd::mark_deleted(&mut new, self.env().now());
        }
        if resource.storage.as_str() == "namespaces" {
            object::metadata(&mut new).remove("deletionGracePeriodSeconds");
            object::part(&mut new, "status").insert("phase".into(), "Terminating".into());
        }
        new
    }

    async fn put_deleted(
        &self,
        resource: &Resource,
        entry: &Entry,
        old: &Value,
        new: Value,
        options: &DeleteOptions,
    ) -> Result<Deleted, NotPut> {
        let is_over = is_ready_to_go(&new);
        // What goes at once goes as it was stored, unless its kind takes time to end.
        let is_graceful = resource.rules.grace_seconds(old, Some(0)).is_some();
        let is_unmarked = is_over && !is_graceful;
        let last = if is_unmarked { old.clone() } else { new };
        let mut shown = last.clone();
        object::set_meta(&mut shown, "resourceVersion", entry.revision.to_string());
        let shown = Answer::shown(&shown, entry.revision);
        let draft = match is_unmarked {
            true => self.last_draft(resource, entry)?,
            false => self.draft_of_any_size(resource, last, None).await?,
        };
        if options.dry_run {
            return Ok(if is_over { Deleted::Gone(shown) } else { Deleted::Marked(shown) });
        }
        if !is_over && draft.is_stored_as(entry) {
            return Ok(Deleted::Marked(Answer::stored(entry)));
        }
        let change = if is_over { Change::Delete(draft) } else { Change::Put(draft) };
        let expect = Expect::Revision(entry.revision);
        let write = Write { resource: resource.storage.clone(), key: entry.key.clone(), expect, change };
        let stored = self.store().commit(write).await?;
        let definition = self.definition_of(resource, old);
        if !is_over {
            if let Some(definition) = &definition {
                self.purge_or_report(definition).await;
            }
            return Ok(Deleted::Marked(Answer::stored(&stored)));
        }
        if let Some(definition) = &definition {
            self.withdraw_definition(definition).await;
        }
        if resource.is_custom {
            self.release_or_report(resource).await;
        }
        if is_graceful {
            return Ok(Deleted::Gone(Answer { revision: stored.revision, ..shown }));
        }
        // What goes at once is shown as of its deletion.
        Ok(Deleted::Gone(Answer::stored(&stored)))
    }
}

fn check_protected(resource: &Resource, key: &Key) -> Result<(), Status> {
    if resource.storage.as_str() == "namespaces" && PROTECTED.contains(&&*key.name) {
        return Err(Status::forbidden(&resource.qualified(), &key.name, "this namespace may not be deleted"));
    }
    Ok(())
}

fn check_preconditions(resource: &Resource, entry: &Entry, options: &DeleteOptions) -> Result<(), Status> {
    let (name, uid, revision) = (&entry.key.name, &entry.uid, entry.revision);
    let is_namespace = resource.storage.as_str() == "namespaces";
    // Namespaces check in another place than all other kinds, and word it differently.
    let refuse = |why: String| {
        let about = if is_namespace { resource.qualified() } else { resource.qualified_kind() };
        Err(Status::conflict(&about, name, &why))
    };
    match (&options.uid, &options.revision) {
        (Some(asked), _) if *asked != *uid.0 => refuse(if is_namespace {
            format!("Precondition failed: UID in precondition: {asked}, UID in object meta: {uid}")
        } else {
            format!(
                "the UID in the precondition ({asked}) does not match the UID in record ({uid}). The object might have \
                 been deleted and then recreated"
            )
        }),
        (_, Some(asked)) if *asked != revision.to_string() => refuse(if is_namespace {
            format!(
                "Precondition failed: ResourceVersion in precondition: {asked}, ResourceVersion in object meta: {revision}"
            )
        } else {
            format!(
                "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record \
                 ({revision}). The object might have been modified"
            )
        }),
        _ => Ok(()),
    }
}

/// What becomes of dependents is remembered as a finalizer, which the garbage collector takes away when it is done.
fn set_propagation(object: &mut Value, propagation: Option<Propagation>) {
    let Some(propagation) = propagation else { return };
    let mut finalizers: Vec<String> = object::finalizers(object).into_iter().map(str::to_owned).collect();
    let wanted = match propagation {
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
    };
    let others_before = finalizers.len();
    finalizers.retain(|name| !matches!(name.as_str(), ORPHAN | FOREGROUND) || Some(name.as_str()) == wanted);
    if let Some(wanted) = wanted.filter(|wanted| !finalizers.iter().any(|name| name == wanted)) {
        finalizers.push(wanted.to_owned());
    }
    match finalizers.is_empty() {
        true if others_before == 0 => {}
        true => {
            object::metadata(object).remove("finalizers");
        }
        false => object::set_meta(object, "finalizers", json!(finalizers)),
    }
}
