//! JSON patch (RFC 6902), as kube-apiserver understands it: to replace what is not there sets it, to test what is not
//! there against null succeeds, and what cannot be done is refused in one and the same sentence.

use krafla_schema::decode;
use krafla_schema::json::{DEPTH_MAX, Node, go_quote};
use serde_json::Value;

use super::{Decoded, Patch, undecodable, wrong_type};
use crate::status::Status;

/// How many operations one patch may have.
const OPERATIONS_MAX: usize = 10_000;
/// How much all copies of one patch may add, in bytes of JSON: as much as the body of a request may have.
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;
/// How many values one patch may step over in looking at what it moves and in moving the rest of a list.
const STEPS_MAX: usize = 50_000_000;
/// Moving an element of a list costs less than looking at it.
const MOVES_PER_STEP: usize = 16;

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
    let document = Node::parse(body).map_err(|why| undecodable(&why))?;
    let repeated = decode::duplicates(&document);
    let operations = match document {
        Node::Array(operations) => operations,
        Node::Null => Vec::new(),
        other => return Err(undecodable(&wrong_type(&other, "[]handlers.jsonPatchOp"))),
    };
    if operations.len() > OPERATIONS_MAX {
        return Err(Status::too_large(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
            operations.len()
        )));
    }
    let mut findings: Vec<String> = repeated.iter().map(|finding| format!("json patch {finding}")).collect();
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
        for name in ["op", "path", "from"] {
            match node.field(name) {
                None | Some(Node::String(_) | Node::Null) => {}
                Some(other) => {
                    let into = format!("Go struct field jsonPatchOp.{name} of type string");
                    let why = format!("json: cannot unmarshal {} into {into}", other.go_kind());
                    return Err(undecodable(&why));
                }
            }
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
    let mut budget = Budget::default();
    for operation in operations {
        apply_one(&mut object, operation, &mut budget).ok_or_else(Status::patch_refused)?;
    }
    // Only an object or a list is taken for a document.
    if object.is_object() || object.is_array() { Ok(object) } else { Err(Status::patch_refused()) }
}

/// The same, or `None` if a test among the operations fails.
pub(super) fn apply_if_tested(mut object: Value, operations: &[Operation]) -> Result<Option<Value>, String> {
    let mut budget = Budget::default();
    for operation in operations {
        let applied = apply_one(&mut object, operation, &mut budget);
        if let Some(why) = budget.exceeded {
            return Err(why);
        }
        match (applied, &operation.what) {
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

fn apply_one(object: &mut Value, operation: &Operation, budget: &mut Budget) -> Option<()> {
    let path = &operation.path;
    match &operation.what {
        What::Add(value) => {
            budget.place(value, path)?;
            add(object, path, value.clone(), budget)
        }
        What::Replace(value) => {
            budget.place(value, path)?;
            replace(object, path, value.clone())
        }
        What::Remove => remove(object, path, budget).map(drop),
        What::Move(from) => {
            let moved = remove(object, from, budget)?;
            budget.place(&moved, path)?;
            add(object, path, moved, budget)
        }
        What::Copy(from) => {
            let (parent, last) = parent(object, from)?;
            let copied = member(parent, last)?;
            budget.copy(copied)?;
            budget.place(copied, path)?;
            let copied = copied.clone();
            add(object, path, copied, budget)
        }
        What::Test(expected) => {
            if path.is_empty() {
                return (object == expected).then_some(());
            }
            let (parent, last) = parent(object, path)?;
            (member(parent, last)? == expected).then_some(())
        }
        What::Unknown => None,
    }
}

/// What one patch has cost so far. Its result is never larger than the object, its body and what it may copy together,
/// and never deeper than a document may be.
#[derive(Default)]
struct Budget {
    copied_bytes: usize,
    n_steps: usize,
    /// Which limit the patch has exceeded.
    exceeded: Option<String>,
}

impl Budget {
    /// A value will stand at a place.
    fn place(&mut self, value: &Value, path: &[String]) -> Option<()> {
        if path.len() + self.depth(value, DEPTH_MAX) > DEPTH_MAX {
            self.exceeded =
                Some(format!("Unable to complete the patch, the result has more than {DEPTH_MAX} levels"));
        }
        self.check()
    }

    /// The levels of a value; one more than `levels_max` if there are more.
    fn depth(&mut self, value: &Value, levels_max: usize) -> usize {
        self.n_steps += 1;
        let mut deepest = |children: &mut dyn Iterator<Item = &Value>| match levels_max.checked_sub(1) {
            Some(levels_max) => 1 + children.map(|child| self.depth(child, levels_max)).max().unwrap_or(0),
            None => 1,
        };
        match value {
            Value::Array(items) => deepest(&mut items.iter()),
            Value::Object(fields) => deepest(&mut fields.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        }
    }

    /// A value is copied.
    fn copy(&mut self, value: &Value) -> Option<()> {
        let left = COPIED_BYTES_MAX - self.copied_bytes;
        self.copied_bytes += text_bytes(value, left);
        if self.copied_bytes > COPIED_BYTES_MAX {
            let copied = self.copied_bytes;
            self.exceeded = Some(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit \
                 {COPIED_BYTES_MAX}"
            ));
        }
        self.check()
    }

    /// The elements of a list make room, or close up.
    fn shift(&mut self, n_elements: usize) -> Option<()> {
        self.n_steps += n_elements / MOVES_PER_STEP;
        self.check()
    }

    fn check(&mut self) -> Option<()> {
        if self.n_steps > STEPS_MAX {
            self.exceeded = Some("Unable to complete the patch, it takes too long".to_owned());
        }
        self.exceeded.is_none().then_some(())
    }
}

/// How long the text of a value is, or anything beyond `bytes_max` if it is longer. Escapes are not counted.
fn text_bytes(value: &Value, bytes_max: usize) -> usize {
    let sum = |children: &mut dyn Iterator<Item = usize>| {
        let mut bytes = 2;
        while bytes <= bytes_max
            && let Some(child) = children.next()
        {
            bytes += child + 1;
        }
        bytes
    };
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => sum(&mut items.iter().map(|item| text_bytes(item, bytes_max))),
        Value::Object(fields) => {
            sum(&mut fields.iter().map(|(name, value)| name.len() + 3 + text_bytes(value, bytes_max)))
        }
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
fn member<'a>(container: &'a Value, step: &str) -> Option<&'a Value> {
    match container {
        Value::Object(fields) => Some(fields.get(step).unwrap_or(&Value::Null)),
        Value::Array(items) => items.get(index(step, items.len())?),
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

fn add(object: &mut Value, path: &[String], value: Value, budget: &mut Budget) -> Option<()> {
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
            // The place after the last item counts, too: -1 appends.
            let at = index(last, items.len().checked_add(1)?)?;
            budget.shift(items.len().checked_sub(at)?)?;
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

fn remove(object: &mut Value, path: &[String], budget: &mut Budget) -> Option<Value> {
    let (parent, last) = parent(object, path)?;
    match parent {
        Value::Object(fields) => fields.remove(last),
        Value::Array(items) => {
            let at = index(last, items.len())?;
            budget.shift(items.len().checked_sub(at + 1)?)?;
            Some(items.remove(at))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::apply_operations;
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

    #[test]
    fn copies_that_double_are_refused() {
        let doubling = |n: usize| -> Value {
            let copy = |at: usize| json!({"op": "copy", "from": "/data", "path": format!("/data/{at}")});
            (0..n).map(copy).collect()
        };
        assert!(patched(doubling(10)).is_ok());
        assert_eq!(patched(doubling(26)), Err(422));
        assert_eq!(patched(doubling(9_000)), Err(422));
        let (why, object) = (apply_operations(json!({"data": {"x": "1"}}), &doubling(40)), json!(null));
        assert!(why.unwrap_err().starts_with("Unable to complete the copy"));
        assert_eq!(apply_operations(object, &json!([])), Ok(Some(Value::Null)));
    }

    #[test]
    fn a_patch_cannot_make_an_object_deeper_than_documents_are() {
        let at = |depth: usize| format!("/data{}", "/a".repeat(depth));
        let copies = |n: usize| -> Value {
            let copy = |depth: usize| json!({"op": "copy", "from": "/x", "path": at(depth)});
            let empty = ["/x", "/data"].map(|path| json!({"op": "add", "path": path, "value": {}}));
            empty.into_iter().chain((1..=n).map(copy)).collect()
        };
        let moves = |n: usize| -> Value {
            let (from, to) = (|at: usize| format!("/{}", at % 2), |at: usize| format!("/{}/x", (at + 1) % 2));
            let step = |at: usize| {
                [
                    json!({"op": "add", "path": format!("/{}", (at + 1) % 2), "value": {}}),
                    json!({"op": "move", "from": from(at), "path": to(at)}),
                ]
            };
            let first = json!({"op": "add", "path": "/0", "value": {}});
            std::iter::once(first).chain((0..n).flat_map(step)).collect()
        };
        let adds = |n: usize| -> Value {
            let deep = (0..100).fold(json!({}), |inner, _| json!({"a": inner}));
            (0..n).map(|at| json!({"op": "add", "path": at_depth(at * 100), "value": deep})).collect()
        };
        assert!(patched(copies(5)).is_ok());
        assert_eq!(patched(copies(9_000)), Err(422));
        assert!(patched(moves(50)).is_ok());
        assert_eq!(patched(moves(4_000)), Err(422));
        assert!(patched(adds(1)).is_ok());
        assert_eq!(patched(adds(5)), Err(422));
        fn at_depth(depth: usize) -> String {
            format!("/data{}", "/a".repeat(depth))
        }
    }

    #[test]
    fn tests_and_shifts_of_large_values_cost_little() {
        let large: Vec<Value> = (0..300_000).map(Value::from).collect();
        let object = json!({"list": large});
        let all = |operation: Value| Value::Array(vec![operation; OPERATIONS_MAX]);
        let tests = all(json!({"op": "test", "path": "", "value": {}}));
        assert_eq!(apply_operations(object.clone(), &tests), Ok(None));
        let shifts = all(json!({"op": "add", "path": "/list/0", "value": 1}));
        let why = apply_operations(object.clone(), &shifts).unwrap_err();
        assert!(why.ends_with("takes too long"), "{why}");
        let moves = all(json!({"op": "move", "from": "/list", "path": "/list"}));
        assert!(apply_operations(object, &moves).unwrap_err().ends_with("takes too long"));
    }
}
