//! Objects of custom kinds in the version of a request, whatever version they are stored in.
//!
//! What conversion means is said in [`crate::registry::versions`]; here it is carried out, since it may take a call to a
//! webhook. Objects that are read together are converted by one call.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use krafla_admission::webhook::conversion::{self, Converter, Refused};
use krafla_schema::json::{DEPTH_MAX, stored};
use krafla_schema::object;
use serde_json::{Value, json};

use super::{Answer, Api, parse};
use crate::admit::webhooks::Destination;
use crate::registry::Resource;
use crate::registry::versions::{Strategy, Versions};
use crate::status::Status;
use crate::store::{Draft, Entry, EntryMeta};

/// The largest object that is stored, in bytes of JSON: what etcd takes.
const OBJECT_BYTES_MAX: usize = 3 * 512 * 1024;
/// The levels that managers of fields add to those of the fields: `metadata.managedFields[].fieldsV1`, and a set at the end.
const MANAGERS_LEVELS: usize = 5;
/// How long a conversion webhook may take.
const TIMEOUT_SECONDS: u32 = 30;

impl Api {
    /// The stored object in the form in which requests for the resource are worked on.
    pub(super) async fn read(&self, resource: &Resource, entry: &Entry) -> Result<Value, Status> {
        let mut object = parse(entry)?;
        let Some(versions) = resource.versions_to_convert() else {
            resource.from_stored(&mut object);
            return Ok(object);
        };
        self.refreshed(resource, versions, vec![object]).await?.pop().ok_or_else(nothing_converted)
    }

    /// An entry as clients of a version see it.
    pub async fn shown(&self, resource: &Resource, entry: Arc<Entry>) -> Result<Arc<Entry>, Status> {
        self.shown_all(resource, vec![entry]).await?.pop().ok_or_else(nothing_converted)
    }

    /// Entries as clients of a version see them, in the same order.
    pub async fn shown_all(
        &self,
        resource: &Resource,
        entries: Vec<Arc<Entry>>,
    ) -> Result<Vec<Arc<Entry>>, Status> {
        let Some(versions) = resource.versions_to_convert() else { return Ok(entries) };
        // A stored object that cannot be read does not hide all others.
        let read = entries.iter().map(|entry| parse(entry).unwrap_or_else(|_| tombstone(resource, entry)));
        let objects = read.collect();
        let objects = self.refreshed(resource, versions, objects).await?;
        let shown = entries.iter().zip(objects).map(|(entry, object)| {
            let Entry { key, uid, revision, .. } = &**entry;
            let meta = EntryMeta { fields: resource.selected_fields(&object), ..EntryMeta::of(&object) };
            let (key, uid, bytes) = (key.clone(), uid.clone(), Bytes::from(object.to_string()));
            Arc::new(Entry { key, uid, revision: *revision, bytes, meta })
        });
        Ok(shown.collect())
    }

    /// An answer in the version of the request.
    pub(super) async fn shown_answer(&self, resource: &Resource, answer: Answer) -> Result<Answer, Status> {
        let Some(versions) = resource.versions_to_convert() else { return Ok(answer) };
        let object = stored(&answer.bytes)
            .map_err(|error| Status::internal(&format!("stored object cannot be read: {error}")))?;
        let shown = self.refreshed(resource, versions, vec![object]).await?.pop();
        Ok(Answer { bytes: shown.ok_or_else(nothing_converted)?.to_string().into(), ..answer })
    }

    /// What is to be stored, if it is not too large for that. Managers may come apart from the object, as text.
    pub(super) async fn draft(
        &self,
        resource: &Resource,
        object: Value,
        managers: Option<String>,
    ) -> Result<Draft, Status> {
        // What is on its way out must not be kept by its size.
        let is_going = object::is_deleting(&object);
        // They are as deep as the fields that they name, below a few levels of their own.
        let of_managers = if managers.is_some() { MANAGERS_LEVELS } else { 0 };
        let draft = self.draft_of_any_size(resource, object, managers).await?;
        if draft.n_bytes() > OBJECT_BYTES_MAX && !is_going {
            return Err(Status::object_too_large());
        }
        if draft.depth() + of_managers > DEPTH_MAX && !is_going {
            let most = DEPTH_MAX - MANAGERS_LEVELS;
            let message =
                format!("the object has too many levels of objects and lists: at most {most} can be stored");
            return Err(Status::bad_request(message));
        }
        Ok(draft)
    }

    /// What is to be stored even if it is too large, since its deletion is all that is new.
    pub(super) async fn draft_of_any_size(
        &self,
        resource: &Resource,
        mut object: Value,
        managers: Option<String>,
    ) -> Result<Draft, Status> {
        resource.to_stored(&mut object);
        let versions = resource.custom.as_ref().map(|custom| &custom.versions);
        let mut fields = None;
        if let Some(versions) = versions.filter(|versions| *versions.strategy() != Strategy::Keep) {
            if object::text_at(&object, "apiVersion") != versions.stored() {
                let converted = self.converted(versions, vec![object], versions.stored()).await?.pop();
                object = converted.ok_or_else(nothing_converted)?;
            }
            fields = Some(versions.selected_fields(&object));
        }
        let fields = fields.unwrap_or_else(|| resource.selected_fields(&object));
        let meta = EntryMeta { fields, ..EntryMeta::of(&object) };
        Ok(Draft::managed(object, managers, meta))
    }

    /// The last state of an object that goes as it is stored.
    pub(super) fn last_draft(&self, resource: &Resource, entry: &Entry) -> Result<Draft, Status> {
        // What cannot be read any more can still go.
        let object = parse(entry).unwrap_or_else(|_| tombstone(resource, entry));
        let meta = EntryMeta { fields: resource.selected_fields(&object), ..EntryMeta::of(&object) };
        Ok(Draft::new(object, meta))
    }

    /// An object of a custom kind in another of its versions. Objects of other kinds stay as they are.
    pub(crate) async fn convert(
        &self,
        resource: &Resource,
        object: Value,
        to: &str,
    ) -> Result<Value, Status> {
        let versions = resource.custom.as_ref().map(|custom| &custom.versions);
        match versions.filter(|_| object::text_at(&object, "apiVersion") != to) {
            Some(versions) => {
                self.converted(versions, vec![object], to).await?.pop().ok_or_else(nothing_converted)
            }
            None => Ok(object),
        }
    }

    async fn refreshed(
        &self,
        resource: &Resource,
        versions: &Versions,
        mut objects: Vec<Value>,
    ) -> Result<Vec<Value>, Status> {
        objects.iter_mut().for_each(|object| versions.refresh(object));
        self.converted(versions, objects, &resource.names.api_version()).await
    }

    /// Objects in another version. Those that have it stay as they are.
    async fn converted(
        &self,
        versions: &Versions,
        mut objects: Vec<Value>,
        to: &str,
    ) -> Result<Vec<Value>, Status> {
        let mut others: Vec<&mut Value> =
            objects.iter_mut().filter(|object| object["apiVersion"] != to).collect();
        for object in &others {
            let from = object["apiVersion"].as_str().unwrap_or_default();
            versions.check(from, to).map_err(Status::plain)?;
        }
        match versions.strategy() {
            Strategy::Keep => {}
            Strategy::Rename => others.iter_mut().for_each(|object| object::set(object, "apiVersion", to)),
            Strategy::Webhook(converter) => self.convert_by_webhook(converter, &mut others, to).await?,
        }
        others.into_iter().for_each(|object| versions.prune(object));
        Ok(objects)
    }

    async fn convert_by_webhook(
        &self,
        converter: &Converter,
        objects: &mut [&mut Value],
        to: &str,
    ) -> Result<(), Status> {
        let Some(first) = objects.first() else { return Ok(()) };
        let text = |name: &str| first[name].as_str().unwrap_or_default();
        let about = format!("conversion webhook for {}, Kind={}", text("apiVersion"), text("kind"));
        let asked: Vec<&Value> = objects.iter().map(|object| &**object).collect();
        let answered = self.ask_converter(converter, &asked, to).await;
        let answered = answered.map_err(|why| Status::plain(format!("{about} failed: {why}")))?;
        if answered.len() != objects.len() {
            let (n_answered, n_asked) = (answered.len(), objects.len());
            let message = format!("{about} returned {n_answered} objects, expected {n_asked}");
            return Err(Status::plain(message));
        }
        let is_list = objects.len() > 1;
        for (at, (object, mut converted)) in objects.iter_mut().zip(answered).enumerate() {
            conversion::settle(object, &mut converted, to).map_err(|refused| {
                let place = if is_list { format!(" at index {at}") } else { String::new() };
                Status::plain(match refused {
                    Refused::Type(why) => format!("{about} returned invalid object at index {at}: {why}"),
                    Refused::Object(why) => format!("{about} returned invalid object{place}: {why}"),
                    Refused::Metadata(why) => format!("{about} returned invalid metadata{place}: {why}"),
                })
            })?;
            **object = converted;
        }
        Ok(())
    }

    /// The converted objects, or why there are none.
    async fn ask_converter(
        &self,
        converter: &Converter,
        objects: &[&Value],
        to: &str,
    ) -> Result<Vec<Value>, String> {
        let version = converter.review_version().ok_or("no supported conversion review versions")?;
        let destination = Destination::find(self, &converter.client, TIMEOUT_SECONDS)?;
        let uid = self.env().uid();
        let question = conversion::question(version, &uid.0, objects, to).to_string();
        let timeout = Duration::from_secs(u64::from(TIMEOUT_SECONDS));
        let body = self.admission().caller().call(&destination, question.into(), timeout).await?;
        let answer = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        conversion::converted(answer, version, &uid.0)
    }
}

/// All that is known of an object whose text cannot be read.
pub(super) fn tombstone(resource: &Resource, entry: &Entry) -> Value {
    let Entry { key, uid, .. } = entry;
    let mut metadata = json!({"name": &*key.name, "uid": &*uid.0});
    if !key.namespace.is_empty() {
        object::set(&mut metadata, "namespace", &*key.namespace);
    }
    json!({"apiVersion": resource.names.api_version(), "kind": &*resource.names.kind, "metadata": metadata})
}

/// Conversion gives as many objects as it takes, so nobody should meet this.
fn nothing_converted() -> Status {
    Status::internal("conversion returned no object")
}
