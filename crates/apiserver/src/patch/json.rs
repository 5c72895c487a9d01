//! JSON patch (RFC 6902), as kube-apiserver understands it: to replace what is not there sets it, to test what is not
//! there against null succeeds, and what cannot be done is refused in one and the same sentence.

use serde_json::Value;

use super::{Decoded, Patch, undecodable, wrong_type};
use crate::schema::json::{Node, go_quote};
use crate::status::Status;

/// How many operations one patch may have.
const OPERATIONS_MAX: usize = 10_000;

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    what: What,
    path: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Add(Value),
    Replace(Value),
    Remove,
    Move(Vec<String>),
    Copy(Vec<String>),
    Test(Value),
    /// Refused when it is applied, as upstream does.
    Unknown,
}

/// Reads a list of operations.
pub(super) fn decode(body: &[u8]) -> Result<Decoded, Status> {
    let operations = match Node::parse(body).map_err(|why| undecodable(&why))? {
        Node::Array(operations) => operations,
        Node::Null => Vec::new(),
        other => return Err(undecodable(&wrong_type(&other, "[]handlers.jsonPatchOp"))),
    };
    if operations.len() > OPERATIONS_MAX {
        let allowed = format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
            operations.len()
        );
        return Err(Status {
            code: 413,
            reason: "RequestEntityTooLarge".into(),
            ..Status::bad_request(allowed)
        });
    }
    let mut findings = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        findings.extend(
            unknown_fields(operation)
                .map(|name| format!("json patch unknown field {}", go_quote(&format!("[{index}].{name}")))),
        );
    }
    let operations: Result<_, Status> = operations.into_iter().map(Operation::decode).collect();
    Ok((Patch::Json(operations?), findings))
}

/// What an operation has beyond what operations have.
fn unknown_fields<'a>(operation: &'a Node<'_>) -> impl Iterator<Item = &'a str> {
    let fields = match operation {
        Node::Object(fields) => fields.as_slice(),
        _ => &[],
    };
    let names = fields.iter().map(|(name, _)| name.as_ref());
    names.filter(|name| !matches!(*name, "op" | "path" | "from" | "value"))
}

impl Operation {
    fn decode(node: Node<'_>) -> Result<Operation, Status> {
        if !matches!(node, Node::Object(_) | Node::Null) {
            return Err(undecodable(&wrong_type(&node, "handlers.jsonPatchOp")));
        }
        let value = node.into_value();
        let text = |field: &str| value.get(field).and_then(Value::as_str);
        let argument = || value.get("value").cloned().unwrap_or_default();
        let from = || text("from").map(places);
        let what = match (text("op"), text("path")) {
            (_, None) => None,
            (Some("add"), _) => Some(What::Add(argument())),
            (Some("replace"), _) => Some(What::Replace(argument())),
            (Some("remove"), _) => Some(What::Remove),
            (Some("move"), _) => from().map(What::Move),
            (Some("copy"), _) => from().map(What::Copy),
            (Some("test"), _) => Some(What::Test(argument())),
            _ => None,
        };
        let path = places(text("path").unwrap_or_default());
        Ok(Operation { what: what.unwrap_or(What::Unknown), path })
    }
}

/// The steps of a pointer. Whatever precedes the first slash is not looked at.
fn places(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

/// Applies all operations, or none.
pub(super) fn apply(mut object: Value, operations: &[Operation]) -> Result<Value, Status> {
    for operation in operations {
        apply_one(&mut object, operation).ok_or_else(Status::patch_refused)?;
    }
    Ok(object)
}

/// The same, or `None` if a test among the operations fails.
pub(super) fn apply_if_tested(mut object: Value, operations: &[Operation]) -> Result<Option<Value>, String> {
    for operation in operations {
        match (apply_one(&mut object, operation), &operation.what) {
            (Some(()), _) => {}
            (None, What::Test(_)) => return Ok(None),
            (None, _) => return Err(inapplicable(&mut object, operation)),
        }
    }
    Ok(Some(object))
}

/// Why an operation cannot be applied, in the words of upstream's library.
fn inapplicable(object: &mut Value, Operation { what, path }: &Operation) -> String {
    let steps = path.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1")));
    let shown: String = steps.collect();
    let missing_path = |name: &str| {
        format!("{name} operation does not apply: doc is missing path: {shown:?}: missing value")
    };
    match (what, parent(object, path)) {
        (What::Remove, Some((_, last))) => {
            format!(
                "error in remove for path: '{shown}': Unable to remove nonexistent key: {last}: missing value"
            )
        }
        (What::Remove, None) => missing_path("remove"),
        (What::Add(_), _) => missing_path("add"),
        (What::Replace(_), _) => missing_path("replace"),
        (What::Move(_), _) => missing_path("move"),
        (What::Copy(_), _) => missing_path("copy"),
        (What::Test(_), _) => missing_path("test"),
        (What::Unknown, _) => "Unexpected kind".to_owned(),
    }
}

fn apply_one(object: &mut Value, operation: &Operation) -> Option<()> {
    let path = &operation.path;
    match &operation.what {
        What::Add(value) => add(object, path, value.clone()),
        What::Replace(value) => replace(object, path, value.clone()),
        What::Remove => remove(object, path).map(drop),
        What::Move(from) => {
            let moved = remove(object, from)?;
            add(object, path, moved)
        }
        What::Copy(from) => {
            let (parent, last) = parent(object, from)?;
            let copied = member(parent, last)?;
            add(object, path, copied)
        }
        What::Test(expected) => {
            if path.is_empty() {
                return (object == expected).then_some(());
            }
            let (parent, last) = parent(object, path)?;
            (member(parent, last)? == *expected).then_some(())
        }
        What::Unknown => None,
    }
}

/// The container of the last step of a path.
fn parent<'a, 'p>(object: &'a mut Value, path: &'p [String]) -> Option<(&'a mut Value, &'p str)> {
    let (last, steps) = path.split_last()?;
    let mut at = object;
    for step in steps {
        at = match at {
            Value::Object(fields) => fields.get_mut(step)?,
            Value::Array(items) => {
                let index = index(step, items.len())?;
                items.get_mut(index)?
            }
            _ => return None,
        };
    }
    Some((at, last))
}

/// A member of a container; a field that is not there reads as null.
fn member(container: &Value, step: &str) -> Option<Value> {
    match container {
        Value::Object(fields) => Some(fields.get(step).cloned().unwrap_or_default()),
        Value::Array(items) => items.get(index(step, items.len())?).cloned(),
        _ => None,
    }
}

/// A place in a list; a negative one counts from the end.
fn index(step: &str, length: usize) -> Option<usize> {
    let number: i64 = step.parse().ok()?;
    if number >= 0 {
        usize::try_from(number).ok()
    } else {
        length.checked_add_signed(isize::try_from(number).ok()?)
    }
}

fn add(object: &mut Value, path: &[String], value: Value) -> Option<()> {
    if path.is_empty() {
        *object = value;
        return Some(());
    }
    let (parent, last) = parent(object, path)?;
    match parent {
        Value::Object(fields) => {
            fields.insert(last.to_owned(), value);
        }
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let at = index(last, items.len())?;
            if at > items.len() {
                return None;
            }
            items.insert(at, value);
        }
        _ => return None,
    }
    Some(())
}

fn replace(object: &mut Value, path: &[String], value: Value) -> Option<()> {
    if path.is_empty() {
        *object = value;
        return Some(());
    }
    let (parent, last) = parent(object, path)?;
    match parent {
        Value::Object(fields) => {
            fields.insert(last.to_owned(), value);
        }
        Value::Array(items) => {
            let at = index(last, items.len())?;
            *items.get_mut(at)? = value;
        }
        _ => return None,
    }
    Some(())
}

fn remove(object: &mut Value, path: &[String]) -> Option<Value> {
    let (parent, last) = parent(object, path)?;
    match parent {
        Value::Object(fields) => fields.remove(last),
        Value::Array(items) => {
            let at = index(last, items.len())?;
            (at < items.len()).then(|| items.remove(at))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(operations: Value) -> Result<Value, u16> {
        let object = json!({"data": {"x": "1"}, "list": ["a", "b"]});
        let (patch, _) = decode(operations.to_string().as_bytes()).map_err(|status| status.code)?;
        patch.apply(&object, None).map_err(|status| status.code)
    }

    #[test]
    fn operations_change_the_places_they_name() {
        let cases = [
            (json!([{"op": "add", "path": "/data/y", "value": "2"}]), json!({"x": "1", "y": "2"})),
            (json!([{"op": "replace", "path": "/data/none", "value": "2"}]), json!({"x": "1", "none": "2"})),
            (json!([{"op": "remove", "path": "/data/x"}]), json!({})),
            (json!([{"op": "move", "from": "/data/x", "path": "/data/z"}]), json!({"z": "1"})),
            (json!([{"op": "copy", "from": "/data/x", "path": "/data/z"}]), json!({"x": "1", "z": "1"})),
            (json!([{"op": "test", "path": "/data/none", "value": null}]), json!({"x": "1"})),
            (json!([{"op": "add", "path": "/data/a~1b~0c", "value": 1}]), json!({"x": "1", "a/b~c": 1})),
        ];
        for (operations, data) in cases {
            assert_eq!(patched(operations.clone()).unwrap()["data"], data, "{operations}");
        }
        let lists = [
            (json!([{"op": "add", "path": "/list/-", "value": "c"}]), json!(["a", "b", "c"])),
            (json!([{"op": "add", "path": "/list/0", "value": "c"}]), json!(["c", "a", "b"])),
            (json!([{"op": "remove", "path": "/list/1"}]), json!(["a"])),
            (json!([{"op": "replace", "path": "/list/1", "value": "c"}]), json!(["a", "c"])),
        ];
        for (operations, list) in lists {
            assert_eq!(patched(operations.clone()).unwrap()["list"], list, "{operations}");
        }
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for operations in [
            json!([{"op": "test", "path": "/data/x", "value": "7"}]),
            json!([{"op": "add", "path": "/none/x", "value": 1}]),
            json!([{"op": "add", "path": "/list/9", "value": 1}]),
            json!([{"op": "replace", "path": "/list/x", "value": 1}]),
            json!([{"op": "remove", "path": "/data/none"}]),
            json!([{"op": "shuffle", "path": "/data/x"}]),
            json!([{"op": "add", "value": 1}]),
            json!([null]),
        ] {
            assert_eq!(patched(operations.clone()), Err(422), "{operations}");
        }
        assert_eq!(patched(json!({})), Err(400));
        assert_eq!(patched(json!([1])), Err(400));
    }
}
