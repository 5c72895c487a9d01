//! Kinds that are served in two groups or versions with different fields, and stored in one form.
//!
//! ```text
//!   request -> decoded, patched, checked, completed in its own form -> to_stored   -> store
//!   answer  <- shown in the form that was asked for                 <- from_stored <- store
//! ```
//!
//! Requests are worked on in the form in which they come, so that patches and rules speak of the fields that their author
//! knows; only the store, and what selectors look at, know the stored form.

use krafla_schema::object;
use krafla_schema::{TypeId, complete};
use serde_json::{Map, Value};

use super::Resource;

/// How objects are told in another form than the stored one. Both functions leave alone what is in their form already.
pub struct Conversion {
    /// From the form of this version.
    pub to_stored: fn(&mut Map<String, Value>),
    /// Into the form of this version.
    pub from_stored: fn(&mut Map<String, Value>),
    /// The type of the stored form.
    pub stored_type: Option<TypeId>,
    /// What selectors of this version call a field, and what it is called where it is stored.
    pub fields: &'static [(&'static str, &'static str)],
}

impl Conversion {
    /// What a selector's field is called where it is stored; none if it cannot be selected by.
    pub fn stored_field(&self, field: &str) -> Option<&'static str> {
        self.fields.iter().find(|(shown, _)| *shown == field).map(|(_, stored)| *stored)
    }
}

impl Resource {
    /// The group that messages name: kinds with two forms are known by the stored one.
    pub(super) fn spoken_group(&self) -> &str {
        match &self.conversion {
            Some(_) => self.stored_as.0.split_once('/').map_or("", |(group, _)| group),
            None => &self.names.group,
        }
    }

    /// The `apiVersion` that objects carry while a request is worked on.
    pub fn working_version(&self) -> String {
        match &self.conversion {
            None if !self.is_custom => self.stored_as.0.to_string(),
            Some(_) | None => self.names.api_version(),
        }
    }

    /// Puts an object into the form in which it is stored.
    pub fn to_stored(&self, object: &mut Value) {
        let Some(conversion) = &self.conversion else { return };
        object::set(object, "apiVersion", &*self.stored_as.0);
        (conversion.to_stored)(object::fields(object));
        if let Some(of) = conversion.stored_type {
            complete(object, of);
        }
    }

    /// Puts a stored object into the form in which requests of this version are worked on.
    pub fn from_stored(&self, object: &mut Value) {
        let Some(conversion) = &self.conversion else { return };
        object::set(object, "apiVersion", self.names.api_version());
        (conversion.from_stored)(object::fields(object));
        if let Some(of) = self.schema {
            complete(object, of);
        }
    }
}

/// Calls fields by other names: pairs of the present name and the new one.
pub fn rename<'a>(fields: &mut Map<String, Value>, names: impl IntoIterator<Item = (&'a str, &'a str)>) {
    for (present, new) in names {
        if let Some(value) = fields.remove(present) {
            fields.insert(new.to_owned(), value);
        }
    }
}
