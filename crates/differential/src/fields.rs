//! Every field of an object, and what it can be changed to.

use krafla_schema::{Shape, TypeRef};
use serde_json::{Value, json};

use crate::values::{full_sample, sample, values};

/// A change of one place in an object.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Edit {
    /// Where, as a JSON pointer.
    pub(crate) at: String,
    /// The new value; none: what is there is removed.
    pub(crate) value: Option<Value>,
}

/// Edits that belong together: those that make the place, and the one that changes it.
pub(crate) type Change = Vec<Edit>;

/// How many structs that the object lacks are filled in on the way to a field.
const ADDED_MAX: usize = 2;
/// How many items of a list are walked.
const ITEMS_MAX: usize = 6;
/// How deep a path goes: definitions of schemas have no end.
const DEPTH_MAX: usize = 14;

/// All changes of single fields of an object.
pub(crate) struct Walk {
    pub(crate) changes: Vec<Change>,
    /// Fields of the object itself that are left alone.
    skipped: &'static [&'static str],
}

impl Walk {
    /// Changes below one field of the object, or of all but the status.
    pub(crate) fn object(of: &TypeRef, object: &Value) -> Walk {
        let mut walk = Walk { changes: Vec::new(), skipped: &["status", "apiVersion", "kind"] };
        walk.children(of, object, "", &[], 0);
        walk
    }

    /// Changes of the status.
    pub(crate) fn status(of: &TypeRef, object: &Value) -> Walk {
        let mut walk = Walk { changes: Vec::new(), skipped: &[] };
        if let Shape::Struct(id) = &of.shape
            && let Some(field) = id.get().field("status")
        {
            walk.place("status", &field.value, object.get("status"), "/status", &[], 0);
        }
        walk
    }

    /// Everything about one place: the field of a struct, an item of a list, a value of a map.
    fn place(
        &mut self,
        name: &str,
        of: &TypeRef,
        current: Option<&Value>,
        at: &str,
        before: &[Edit],
        added: usize,
    ) {
        if at.matches('/').count() > DEPTH_MAX {
            return;
        }
        if current.is_some() {
            self.push(before, at, None);
        }
        for value in values(name, of, current) {
            self.push(before, at, Some(value));
        }
        match current {
            Some(current) => self.children(of, current, at, before, added),
            None => self.missing(name, of, at, before, added),
        }
    }

    /// What could be there and is not.
    fn missing(&mut self, name: &str, of: &TypeRef, at: &str, before: &[Edit], added: usize) {
        let is_deep = matches!(of.shape, Shape::Struct(_) | Shape::List(_));
        if !is_deep || added >= ADDED_MAX {
            return;
        }
        let made = sample(name, of, 0);
        self.push(before, at, Some(made.clone()));
        self.push(before, at, Some(full_sample(name, of, 0)));
        let before: Vec<Edit> =
            before.iter().cloned().chain([Edit { at: at.to_owned(), value: Some(made.clone()) }]).collect();
        self.children(of, &made, at, &before, added + 1);
    }

    fn children(&mut self, of: &TypeRef, current: &Value, at: &str, before: &[Edit], added: usize) {
        match (&of.shape, current) {
            (Shape::Struct(id), Value::Object(map)) => {
                self.push(before, &format!("{at}/unknownField"), Some(json!("a")));
                for field in &id.get().fields {
                    if at.is_empty() && self.skipped.contains(&field.name) || field.name == "managedFields" {
                        continue;
                    }
                    let at = format!("{at}/{}", field.name);
                    self.place(field.name, &field.value, map.get(field.name), &at, before, added);
                }
            }
            (Shape::List(item), Value::Array(items)) => {
                let name = at.rsplit('/').next().unwrap_or_default().to_owned();
                for (index, value) in items.iter().enumerate().take(ITEMS_MAX) {
                    self.place(&name, item, Some(value), &format!("{at}/{index}"), before, added);
                }
            }
            (Shape::Map(item), Value::Object(map)) => {
                let name = at.rsplit('/').next().unwrap_or_default().to_owned();
                for (key, value) in map.iter().take(3) {
                    let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                    self.place(&name, item, Some(value), &at, before, added);
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, before: &[Edit], at: &str, value: Option<Value>) {
        let edit = Edit { at: at.to_owned(), value };
        self.changes.push(before.iter().cloned().chain([edit]).collect());
    }
}

/// The object with its changes. Edits whose place another edit took away have no effect.
pub(crate) fn edited(object: &Value, edits: &[Edit]) -> Value {
    let mut object = object.clone();
    for edit in edits {
        let Some((parent, last)) = edit.at.rsplit_once('/') else { continue };
        let last = last.replace("~1", "/").replace("~0", "~");
        match (object.pointer_mut(parent), &edit.value) {
            (Some(Value::Object(map)), Some(value)) => {
                map.insert(last, value.clone());
            }
            (Some(Value::Object(map)), None) => {
                map.remove(&last);
            }
            (Some(Value::Array(items)), change) => {
                let Some(index) = last.parse::<usize>().ok().filter(|index| *index < items.len()) else {
                    continue;
                };
                items.remove(index);
                if let Some(value) = change {
                    items.insert(index, value.clone());
                }
            }
            _ => {}
        }
    }
    object
}
