//! Field selectors: `spec.nodeName=n1,status.phase!=Failed`.

use crate::registry::Resource;
use crate::status::Status;
use crate::store::Entry;

/// A conjunction of conditions on fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<Condition>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    field: String,
    value: String,
    is_wanted: bool,
}

impl FieldSelector {
    /// Reads a selector, with the fields that `resource` can be selected by.
    pub fn parse(text: &str, resource: &Resource) -> Result<FieldSelector, Status> {
        let mut conditions = Vec::new();
        for condition in conditions_of(text) {
            let mut condition = condition?;
            match resource.conversion.as_ref().and_then(|of| of.stored_field(&condition.field)) {
                Some(stored) => condition.field = stored.to_owned(),
                None => check_field(&condition.field, resource)?,
            }
            conditions.push(condition);
        }
        Ok(FieldSelector(conditions))
    }

    /// Whether a text is a selector, whatever its fields are.
    pub fn check_form(text: &str) -> Result<(), Status> {
        conditions_of(text).try_for_each(|condition| condition.map(drop))
    }

    /// The one name that a selector asks for, whatever resource it is about; none if it cannot be read.
    pub fn exact_name(text: &str) -> Option<String> {
        let conditions: Result<Vec<Condition>, Status> = conditions_of(text).collect();
        FieldSelector(conditions.ok()?).name().map(str::to_owned)
    }

    /// Selects one object by its name.
    pub fn of_name(name: &str) -> FieldSelector {
        FieldSelector(vec![Condition { field: "metadata.name".into(), value: name.into(), is_wanted: true }])
    }

    /// Whether there is no condition.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one name that an object must have, if the selector says so.
    pub fn name(&self) -> Option<&str> {
        let named = self.0.iter().find(|condition| condition.is_wanted && condition.field == "metadata.name");
        named.map(|condition| condition.value.as_str())
    }

    /// Whether an object fulfils all conditions.
    pub fn matches(&self, entry: &Entry) -> bool {
        self.0.iter().all(|condition| {
            let value = match condition.field.as_str() {
                "metadata.name" => &entry.key.name,
                "metadata.namespace" => &entry.key.namespace,
                field => entry.meta.fields.get(field).unwrap_or_default(),
            };
            (value == condition.value) == condition.is_wanted
        })
    }
}

fn conditions_of(text: &str) -> impl Iterator<Item = Result<Condition, Status>> {
    let terms = split_unescaped(text).into_iter().filter(|term| !term.is_empty());
    terms.map(move |term| {
        let strange = || format!("invalid selector: '{text}'; can't understand '{term}'");
        parse_term(term).unwrap_or_else(|| Err(Status::bad_request(strange())))
    })
}

fn parse_term(term: &str) -> Option<Result<Condition, Status>> {
    let at = term.find(['=', '!'])?;
    let (field, rest) = term.split_at_checked(at)?;
    let (raw, is_wanted) = match rest.strip_prefix("!=") {
        Some(value) => (value, false),
        None => (rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?, true),
    };
    Some(unescape(raw).map(|value| Condition { field: field.to_owned(), value, is_wanted }))
}

/// Cuts at commas that no backslash precedes.
fn split_unescaped(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut is_escaped) = (0, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ',' => {
                terms.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.extend(text.get(start..));
    terms
}

fn unescape(text: &str) -> Result<String, Status> {
    let wrong = |what: &str| Status::bad_request(format!("invalid field selector: {what}"));
    let mut value = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, (character == '\\').then(|| characters.next())) {
            ('\\', Some(Some(escaped @ ('\\' | ',' | '=')))) => value.push(escaped),
            ('\\', Some(other)) => {
                let other = other.map(String::from).unwrap_or_default();
                return Err(wrong(&format!("invalid escape sequence: \\{other}")));
            }
            // Upstream prints the number of the character.
            (',' | '=', _) => {
                return Err(wrong(&format!("unescaped character in value: {}", u32::from(character))));
            }
            (other, _) => value.push(other),
        }
    }
    Ok(value)
}

/// Kinds differ in how they name a field that they cannot be selected by.
fn check_field(field: &str, resource: &Resource) -> Result<(), Status> {
    let names = &resource.names;
    let is_without_namespace = names.group.is_empty()
        && matches!(&*names.plural, "namespaces" | "nodes")
        && field == "metadata.namespace";
    let is_known = matches!(field, "metadata.name" | "metadata.namespace") && !is_without_namespace
        || resource.conversion.is_none() && resource.selectable.iter().any(|selectable| selectable == field);
    if is_known {
        return Ok(());
    }
    Err(Status::bad_request(match (&*resource.names.group, &*resource.names.plural) {
        ("batch", "jobs") => format!("field label \"{field}\" not supported for {}", resource.names.kind),
        _ if resource.is_custom || !resource.selectable.is_empty() => {
            format!("field label not supported: {field}")
        }
        _ => known_only(field),
    }))
}

fn known_only(field: &str) -> String {
    format!("\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
}
