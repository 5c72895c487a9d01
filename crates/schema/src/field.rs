//! What is wrong with one field of an object, in kube-apiserver's words.

use serde_json::Value;

use crate::json::go_quote;

/// A finding about one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// Where: `spec.tasks[0].name`.
    pub field: String,
    /// What is wrong.
    pub problem: Problem,
    /// Why, or what would be right; may be empty.
    pub detail: String,
}

/// What can be wrong with a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// It is not there.
    Required,
    /// Its value breaks a rule.
    Invalid(Value),
    /// Its value, which upstream quotes in a form of its own, breaks a rule.
    InvalidAsShown(String),
    /// Its value, which is too large to be quoted, breaks a rule.
    InvalidUnquoted,
    /// Its value is of another JSON type than the field.
    TypeInvalid(Value),
    /// Its value is none of those allowed.
    NotSupported(Value),
    /// It appears twice.
    Duplicate(Value),
    /// It, which upstream quotes in a form of its own, appears twice.
    DuplicateAsShown(String),
    /// It refers to something that is not there.
    NotFound(Value),
    /// It may not be set, or not be changed.
    Forbidden,
    /// It is too long.
    TooLong,
    /// It has too many items.
    TooMany(usize),
    /// Something else went wrong.
    Internal,
    /// Found by the rules of [`krafla_admission`]; the detail is the whole message.
    Worded(krafla_admission::Reason),
}

impl From<krafla_admission::Finding> for FieldError {
    fn from(finding: krafla_admission::Finding) -> FieldError {
        FieldError::new(finding.field, Problem::Worded(finding.reason), finding.message)
    }
}

/// Findings of [`krafla_admission`] as findings of this server.
pub fn found(findings: Vec<krafla_admission::Finding>) -> Vec<FieldError> {
    findings.into_iter().map(FieldError::from).collect()
}

impl FieldError {
    fn new(field: impl Into<String>, problem: Problem, detail: impl Into<String>) -> FieldError {
        FieldError { field: field.into(), problem, detail: detail.into() }
    }

    /// The field must be set.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError::new(field, Problem::Required, detail)
    }

    /// The value breaks a rule.
    pub fn invalid(
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> FieldError {
        FieldError::new(field, Problem::Invalid(value.into()), detail)
    }

    /// The value, quoted as `shown`, breaks a rule.
    pub fn invalid_as_shown(
        field: impl Into<String>,
        shown: impl Into<String>,
        detail: impl Into<String>,
    ) -> FieldError {
        FieldError::new(field, Problem::InvalidAsShown(shown.into()), detail)
    }

    /// The value is none of those allowed.
    pub fn not_supported(
        field: impl Into<String>,
        value: impl Into<Value>,
        supported: &[&str],
    ) -> FieldError {
        let list: Vec<String> = supported.iter().map(|word| format!("{word:?}")).collect();
        FieldError::new(
            field,
            Problem::NotSupported(value.into()),
            format!("supported values: {}", list.join(", ")),
        )
    }

    /// The value appears twice.
    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> FieldError {
        FieldError::new(field, Problem::Duplicate(value.into()), "")
    }

    /// The value, quoted as `shown`, appears twice.
    pub fn duplicate_as_shown(
        field: impl Into<String>,
        shown: impl Into<String>,
        detail: impl Into<String>,
    ) -> FieldError {
        FieldError::new(field, Problem::DuplicateAsShown(shown.into()), detail)
    }

    /// The field may not be set, or not be changed.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError::new(field, Problem::Forbidden, detail)
    }

    /// The value is longer than `bytes`.
    pub fn too_long(field: impl Into<String>, bytes: usize) -> FieldError {
        FieldError::new(field, Problem::TooLong, format!("may not be more than {bytes} bytes"))
    }

    /// The word for programs.
    pub fn reason(&self) -> &'static str {
        match self.problem {
            Problem::Required => "FieldValueRequired",
            Problem::Invalid(_) | Problem::InvalidAsShown(_) | Problem::InvalidUnquoted => {
                "FieldValueInvalid"
            }
            Problem::TypeInvalid(_) => "FieldValueTypeInvalid",
            Problem::NotSupported(_) => "FieldValueNotSupported",
            Problem::Duplicate(_) | Problem::DuplicateAsShown(_) => "FieldValueDuplicate",
            Problem::NotFound(_) => "FieldValueNotFound",
            Problem::Forbidden => "FieldValueForbidden",
            Problem::TooLong => "FieldValueTooLong",
            Problem::TooMany(_) => "FieldValueTooMany",
            Problem::Internal => "InternalError",
            Problem::Worded(reason) => reason.as_str(),
        }
    }

    /// The finding without the field's name.
    pub fn message(&self) -> String {
        let (title, value) = match &self.problem {
            Problem::Required => ("Required value", None),
            Problem::Invalid(value) | Problem::TypeInvalid(value) => ("Invalid value", Some(shown(value))),
            Problem::InvalidAsShown(shown) => ("Invalid value", Some(shown.clone())),
            Problem::InvalidUnquoted => ("Invalid value", None),
            Problem::NotSupported(value) => ("Unsupported value", Some(shown(value))),
            Problem::Duplicate(value) => ("Duplicate value", Some(shown(value))),
            Problem::DuplicateAsShown(shown) => ("Duplicate value", Some(shown.clone())),
            Problem::NotFound(value) => ("Not found", Some(shown(value))),
            Problem::Forbidden => ("Forbidden", None),
            Problem::TooLong => ("Too long", None),
            Problem::TooMany(count) => ("Too many", Some(count.to_string())),
            Problem::Internal => ("Internal error", None),
            Problem::Worded(_) => return self.detail.clone(),
        };
        let mut message = String::from(title);
        for part in value.iter().chain((!self.detail.is_empty()).then_some(&self.detail)) {
            message.push_str(": ");
            message.push_str(part);
        }
        message
    }
}

/// A value as Go quotes it.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), go_quote)
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message())
    }
}
