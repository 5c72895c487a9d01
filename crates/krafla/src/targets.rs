//! Objects that a command line names, as the cluster has them.

use std::sync::Arc;

use krafla_api::{Key, Served};
use krafla_client::{collection_path, encoded, object_path};
use serde_json::Value;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::get::{missing_object, not_served};
use crate::resources::{self, Word};

/// An object that a command acts on.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// `job/train`, as it is named in messages.
    pub(crate) title: String,
    pub(crate) of: Arc<Served>,
    pub(crate) key: Key,
    /// As it was read; null if it does not exist.
    pub(crate) object: Value,
}

impl Target {
    /// The path of the object.
    pub(crate) fn path(&self) -> String {
        object_path(&*self.of, &self.key)
    }
}

/// The objects that words name. Each must exist, and only once.
pub(crate) async fn find(connection: &Connection, words: &[String]) -> Result<Vec<Target>, Failure> {
    let mut targets = Vec::new();
    for (word, kinds) in resolved(connection, words).await? {
        let target = one(connection, &word, &kinds).await?;
        let name = word.name.as_deref().unwrap_or_default();
        let missing = || missing_object(&word.kind, &kinds, name, &connection.namespace);
        targets.push(target.ok_or_else(|| Failure::NotFound(missing()))?);
    }
    Ok(targets)
}

/// The same; an object that does not exist is of the first kind that its word means.
pub(crate) async fn find_or_expect(
    connection: &Connection,
    words: &[String],
) -> Result<Vec<Target>, Failure> {
    let mut targets = Vec::new();
    for (word, kinds) in resolved(connection, words).await? {
        let found = one(connection, &word, &kinds).await?;
        let expected = kinds.first().map(|of| target(connection, of, &word, Value::Null));
        targets.extend(found.or(expected));
    }
    Ok(targets)
}

async fn resolved(
    connection: &Connection,
    words: &[String],
) -> Result<Vec<(Word, Vec<Arc<Served>>)>, Failure> {
    let words = resources::parse(words)?;
    if words.is_empty() {
        return Err(Failure::usage("name an object: KIND/NAME, such as job/train"));
    }
    let mut resolved = Vec::new();
    for word in words {
        if word.name.is_none() {
            let kind = &word.kind;
            return Err(Failure::usage(format!(
                "name an object: {kind}/NAME; `krafla get {kind}` lists the names"
            )));
        }
        let kinds = resources::resolve(connection, &word.kind).await?.into_iter().map(Arc::new).collect();
        resolved.push((word, kinds));
    }
    Ok(resolved)
}

fn target(connection: &Connection, of: &Arc<Served>, word: &Word, object: Value) -> Target {
    let name = word.name.clone().unwrap_or_default();
    let title = format!("{}/{name}", word.kind);
    Target { title, of: of.clone(), key: Key::new(&connection.namespace, &name), object }
}

async fn one(connection: &Connection, word: &Word, kinds: &[Arc<Served>]) -> Result<Option<Target>, Failure> {
    let mut found: Vec<Target> = Vec::new();
    for of in kinds {
        let expected = target(connection, of, word, Value::Null);
        match connection.read_json(expected.path()).await {
            Ok(object) => found.push(Target { object, ..expected }),
            Err(Failure::NotFound(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    if let [first, second] = found.as_slice() {
        let names = [first, second].map(|target| {
            let of = &target.of;
            format!("{}.{}/{}", of.plural, of.group, target.key.name)
        });
        let [first, second] = names;
        return Err(Failure::usage(format!(
            "{} means two objects; fix: name {first} or {second}",
            found_title(&found)
        )));
    }
    Ok(found.into_iter().next())
}

fn found_title(found: &[Target]) -> &str {
    found.first().map_or("", |target| &target.title)
}

/// All objects of the kinds that a word means, in the namespace of the connection, with these labels.
pub(crate) async fn all(
    connection: &Connection,
    word: &str,
    labels: Option<&str>,
) -> Result<Vec<Target>, Failure> {
    let kinds: Vec<Arc<Served>> =
        resources::resolve(connection, word).await?.into_iter().map(Arc::new).collect();
    let mut targets = Vec::new();
    let mut is_served = false;
    for of in &kinds {
        let labels = labels.map(|labels| format!("?labelSelector={}", encoded(labels))).unwrap_or_default();
        let path = format!("{}{labels}", collection_path(&**of, &connection.namespace));
        let listed = match connection.read_json(path).await {
            Err(Failure::NotFound(_)) => continue,
            listed => listed?,
        };
        is_served = true;
        let items = listed.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        targets.extend(items.into_iter().map(|object| {
            let at = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let (name, namespace) = (at("/metadata/name"), at("/metadata/namespace"));
            let title = format!("{}/{name}", resources::word_of(of));
            Target { title, of: of.clone(), key: Key::new(namespace, name), object }
        }));
    }
    match kinds.first() {
        Some(of) if !is_served => Err(not_served(of)),
        _ => Ok(targets),
    }
}
