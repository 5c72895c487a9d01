//! What is wrong with an object, in the words that Kubernetes' users know.

use std::fmt;

use crate::internal;
use crate::path::Path;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The field.
    pub field: String,
    /// In one word, for programs.
    pub reason: Reason,
    /// For people.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.field, self.message)
        }
    }
}

/// The reasons that a Kubernetes Status knows for a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A field is missing.
    Required,
    /// A value is wrong.
    Invalid,
    /// A value is none of those that can be.
    NotSupported,
    /// A value must be unique and is not.
    Duplicate,
    /// A field must not be given here.
    Forbidden,
    /// Something that is referred to does not exist.
    NotFound,
    /// A text is too long.
    TooLong,
    /// A list is too long.
    TooMany,
    /// The check itself failed.
    Internal,
}

impl Reason {
    /// As it stands in a Status.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Required => "FieldValueRequired",
            Reason::Invalid => "FieldValueInvalid",
            Reason::NotSupported => "FieldValueNotSupported",
            Reason::Duplicate => "FieldValueDuplicate",
            Reason::Forbidden => "FieldValueForbidden",
            Reason::NotFound => "FieldValueNotFound",
            Reason::TooLong => "FieldValueTooLong",
            Reason::TooMany => "FieldValueTooMany",
            Reason::Internal => "InternalError",
        }
    }
}

/// What a check came to: everything that is wrong, and what is allowed but will not do what its author hopes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Why the object is refused; all reasons at once. Empty if it is not.
    pub refusals: Vec<Finding>,
    /// What its author should know.
    pub warnings: Vec<Finding>,
}

impl Verdict {
    /// Whether the object may be stored.
    pub fn is_allowed(&self) -> bool {
        self.refusals.is_empty()
    }

    /// All refusals in one line.
    pub fn message(&self) -> String {
        self.refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    /// Adds a refusal whose message is already whole.
    pub fn refuse(&mut self, field: &Path, reason: Reason, message: impl Into<String>) {
        self.refusals.push(Finding { field: field.as_str().to_owned(), reason, message: message.into() });
    }

    /// Adds a warning.
    pub fn warn(&mut self, field: &Path, message: impl Into<String>) {
        let (field, message) = (field.as_str().to_owned(), message.into());
        self.warnings.push(Finding { field, reason: Reason::Invalid, message });
    }

    /// A field is missing.
    pub fn required(&mut self, field: &Path, detail: &str) {
        let colon = if detail.is_empty() { "" } else { ": " };
        self.refuse(field, Reason::Required, format!("Required value{colon}{detail}"));
    }

    /// A value is wrong.
    pub fn invalid(&mut self, field: &Path, value: impl Shown, detail: impl fmt::Display) {
        self.refuse(field, Reason::Invalid, format!("Invalid value: {}: {detail}", value.shown()));
    }

    /// A value of one of Kubernetes' internal types is wrong.
    pub fn invalid_object(&mut self, field: &Path, type_name: &str, value: &serde_json::Value, detail: &str) {
        let message = format!("Invalid value: {}: {detail}", internal::quoted(type_name, value));
        self.refuse(field, Reason::Invalid, message);
    }

    /// A value is wrong for each of these reasons.
    pub fn invalid_each(&mut self, field: &Path, value: &str, details: Vec<String>) {
        for detail in details {
            self.invalid(field, value, detail);
        }
    }

    /// A word is none of those that can be.
    pub fn unsupported(&mut self, field: &Path, value: &str, supported: &[&str]) {
        self.unsupported_value(field, value, supported);
    }

    /// A value that need not be a word is none of those that can be.
    pub fn unsupported_value(&mut self, field: &Path, value: impl Shown, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|word| format!("{word:?}")).collect();
        let message =
            format!("Unsupported value: {}: supported values: {}", value.shown(), supported.join(", "));
        self.refuse(field, Reason::NotSupported, message);
    }

    /// A value must be unique and is not.
    pub fn duplicate(&mut self, field: &Path, value: impl Shown) {
        self.refuse(field, Reason::Duplicate, format!("Duplicate value: {}", value.shown()));
    }

    /// A value of one of Kubernetes' internal types must be unique and is not.
    pub fn duplicate_object(
        &mut self,
        field: &Path,
        type_name: &str,
        value: &serde_json::Value,
        detail: &str,
    ) {
        let colon = if detail.is_empty() { "" } else { ": " };
        let message = format!("Duplicate value: {}{colon}{detail}", internal::quoted(type_name, value));
        self.refuse(field, Reason::Duplicate, message);
    }

    /// A field must not be given here.
    pub fn forbidden(&mut self, field: &Path, detail: &str) {
        self.refuse(field, Reason::Forbidden, format!("Forbidden: {detail}"));
    }

    /// Something that is referred to does not exist.
    pub fn not_found(&mut self, field: &Path, value: &str) {
        self.refuse(field, Reason::NotFound, format!("Not found: {value:?}"));
    }

    /// A list is too long.
    pub fn too_many(&mut self, field: &Path, n_items: usize, n_items_max: usize) {
        let message = format!("Too many: {n_items}: must have at most {n_items_max} items");
        self.refuse(field, Reason::TooMany, message);
    }

    /// A text is too long.
    pub fn too_long(&mut self, field: &Path, n_bytes_max: usize) {
        self.refuse(field, Reason::TooLong, format!("Too long: may not be more than {n_bytes_max} bytes"));
    }
}

/// A value as messages show it: texts in quotes, numbers plain.
pub trait Shown {
    /// The value as text.
    fn shown(&self) -> String;
}

impl Shown for &str {
    fn shown(&self) -> String {
        format!("{self:?}")
    }
}

impl Shown for String {
    fn shown(&self) -> String {
        format!("{self:?}")
    }
}

impl Shown for i64 {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for bool {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for &serde_json::Value {
    fn shown(&self) -> String {
        self.to_string()
    }
}
