//! Which objects a list or a watch is about.

mod field;
mod label;

pub use field::FieldSelector;
pub use label::LabelSelector;

use crate::store::Entry;

/// Which objects a list or a watch is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// By labels.
    pub labels: LabelSelector,
    /// By fields.
    pub fields: FieldSelector,
}

impl Filter {
    /// Whether an object is meant.
    pub fn matches(&self, entry: &Entry) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| *entry.key.namespace == *namespace)
            && self.labels.matches(&entry.meta.labels)
            && self.fields.matches(entry)
    }

    /// Whether all objects are meant, or all of the namespace.
    pub fn is_unselective(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}
