//! The versions of a CustomResourceDefinition, and how objects move between them.
//!
//! ```text
//!   stored object -> pruned and defaulted by its own version's schema -> converted -> pruned by the request's version
//!   new object    -> converted to the storage version                 -> pruned by the storage version -> store
//! ```
//!
//! An object is stored in the version that was the storage version when it was written, so each object says itself which
//! schema describes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_admission::webhook::conversion::Converter;
use krafla_api::Pairs;
use krafla_schema::object;
use krafla_schema::structural::Structural;
use serde_json::Value;

use super::custom;

/// All versions of one definition.
pub struct Versions {
    /// Schemas by `apiVersion`.
    schemas: BTreeMap<String, Arc<Structural>>,
    /// The fields by which objects of the storage version can be selected.
    selectable: Vec<String>,
    /// The `apiVersion` in which objects are stored.
    stored: String,
    conversion: Strategy,
    /// Whether objects may have been written under another state of the definition.
    has_changed: bool,
}

/// How objects get from one version to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Only `apiVersion` changes.
    Rename,
    /// A webhook is asked.
    Webhook(Converter),
    /// Objects stay in the version that they have.
    Keep,
}

impl Versions {
    /// Reads the versions of a definition.
    pub fn parse(definition: &Value) -> Versions {
        let api_version = |version: &Value| custom::names(definition, version).api_version();
        let schema = |version: &Value| {
            let document = version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null);
            (api_version(version), Arc::new(Structural::compile(document)))
        };
        let conversion = Converter::parse(object::at(definition, "/spec/conversion"));
        Versions {
            schemas: custom::versions(definition).iter().map(schema).collect(),
            selectable: custom::storage_version(definition).map(custom::selectable).unwrap_or_default(),
            stored: custom::storage_version(definition).map(api_version).unwrap_or_default(),
            conversion: conversion.map_or(Strategy::Rename, Strategy::Webhook),
            // The first generation of a definition is the one that all its objects were written with.
            has_changed: object::at(definition, "/metadata/generation").as_i64().unwrap_or(0) > 1,
        }
    }

    /// The same without conversion.
    pub fn unconverted(definition: &Value) -> Versions {
        Versions { conversion: Strategy::Keep, ..Versions::parse(definition) }
    }

    /// The schema of a version; one that allows nothing if there is no such version.
    pub fn schema(&self, api_version: &str) -> Arc<Structural> {
        self.schemas.get(api_version).cloned().unwrap_or_default()
    }

    /// The `apiVersion` in which objects are stored.
    pub fn stored(&self) -> &str {
        &self.stored
    }

    /// How objects get from one version to another.
    pub fn strategy(&self) -> &Strategy {
        &self.conversion
    }

    /// Whether all stored objects are as a client of this version gets them.
    pub fn are_all_stored_as(&self, api_version: &str) -> bool {
        self.conversion == Strategy::Keep || !self.has_changed && self.stored == api_version
    }

    /// Brings a stored object up to date with the schema of its own version: what the schema knows no longer goes, and
    /// what it has defaults for is filled in.
    pub fn refresh(&self, object: &mut Value) {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        if let Some(schema) = self.schemas.get(api_version) {
            schema.prune(object);
            schema.fill_defaults(object);
        }
    }

    /// Drops what the version of a converted object does not know.
    pub fn prune(&self, object: &mut Value) {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        if let Some(schema) = self.schemas.get(api_version) {
            schema.prune(object);
        }
    }

    /// The fields by which an object of the storage version can be selected.
    pub fn selected_fields(&self, object: &Value) -> Pairs {
        self.selectable.iter().map(|field| (field.as_str(), object::text_at(object, field))).collect()
    }

    /// Why an object of this version cannot be converted to another one, if it cannot.
    pub fn check(&self, from: &str, to: &str) -> Result<(), String> {
        for (version, word) in [(to, "to"), (from, "from")] {
            if !self.schemas.contains_key(version) {
                return Err(format!("request to convert CR {word} an invalid group/version: {version}"));
            }
        }
        Ok(())
    }
}
