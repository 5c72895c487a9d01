//! Sets of field paths, as `metadata.managedFields` keeps them.
//!
//! ```text
//!   {"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:image": {}}}}}
//! ```
//!
//! A step of a path is kept as it is written there: `f:` a field, `k:` an element of a list by its keys, `v:` an element
//! of a set by its value. A node with nothing below it is a member; one with something below it is a member if it has `.`.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::plain::n_plain;

/// A set of field paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FieldSet {
    /// By their steps, in order. A list, since sets are mostly built from one end to the other, and small.
    nodes: Vec<(String, Node)>,
}

/// What a set says of one place and its inside.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Node {
    pub(super) is_member: bool,
    pub(super) below: FieldSet,
}

impl Node {
    /// A member with room for so many steps below it.
    pub(super) fn member(n_below: usize) -> Node {
        Node { is_member: true, below: FieldSet { nodes: Vec::with_capacity(n_below) } }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.is_member && self.below.is_empty()
    }

    fn add(&mut self, other: Node) {
        self.is_member |= other.is_member;
        self.below.add(other.below);
    }
}

/// Whether a text is a step: a field, an element by its keys, its value or its place. All of them come after `.`.
fn is_step(text: &str) -> bool {
    matches!(text.as_bytes(), [b'f' | b'k' | b'v' | b'i', b':', ..])
}

/// The step to a field.
pub(super) fn field_step(name: &str) -> String {
    let mut step = String::with_capacity(2 + name.len());
    step.push_str("f:");
    step.push_str(name);
    step
}

/// The step to an element of a set.
pub(super) fn value_step(value: &Value) -> String {
    let mut step = "v:".to_owned();
    push_json(&mut step, value);
    step
}

/// Room for most steps by keys, so that they need not be moved while they grow.
const USUAL_STEP_BYTES: usize = 48;

/// The step to an element of a list with keys, which come in their order.
pub(super) fn key_step<'v>(keys: impl Iterator<Item = (&'v str, &'v Value)>) -> String {
    // Written by hand: an element of every list of an object passes here, and a map for each takes several times as long.
    let mut step = String::with_capacity(USUAL_STEP_BYTES);
    step.push_str("k:{");
    for (key, value) in keys {
        if !step.ends_with('{') {
            step.push(',');
        }
        push_text(&mut step, key);
        step.push(':');
        push_json(&mut step, value);
    }
    step.push('}');
    step
}

fn push_json(step: &mut String, value: &Value) {
    match value {
        Value::String(text) => push_text(step, text),
        other => step.push_str(&other.to_string()),
    }
}

/// Appends a text as JSON. Names and ports have nothing to escape, which is seen sooner than written; steps by keys have
/// quotes in them.
pub(super) fn push_text(json: &mut String, text: &str) {
    let start = json.len();
    json.push('"');
    let mut rest = text;
    while let Some((plain, special)) = rest.split_at_checked(n_plain(rest.as_bytes())) {
        json.push_str(plain);
        let (escaped, after) = match special.as_bytes().first() {
            None => break,
            Some(b'"') => (r#"\""#, special.strip_prefix('"')),
            Some(b'\\') => (r"\\", special.strip_prefix('\\')),
            Some(_) => {
                json.truncate(start);
                return json.push_str(&Value::from(text).to_string());
            }
        };
        json.push_str(escaped);
        rest = after.unwrap_or_default();
    }
    json.push('"');
}

/// A step as messages show it: `.image`, `[name="c"]`, `[="a"]`.
pub(super) fn shown(step: &str) -> String {
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    match step.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("k", text)) => {
            let keys = json(text);
            let keys = keys.as_object().into_iter().flatten().map(|(key, value)| format!("{key}={value}"));
            format!("[{}]", keys.collect::<Vec<_>>().join(","))
        }
        Some(("v", text)) => format!("[={}]", json(text)),
        Some((_, index)) => format!("[{index}]"),
        None => step.to_owned(),
    }
}

/// To put so many steps into a set one by one takes longer than to sort all of them.
const MANY: usize = 32;

impl FieldSet {
    /// The set of these paths of plain fields.
    pub(super) fn of_fields(paths: &[&[&str]]) -> FieldSet {
        let mut set = FieldSet::default();
        for path in paths {
            set.insert(&path.iter().map(|name| field_step(name)).collect::<Vec<_>>());
        }
        set
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.iter().all(|(_, node)| node.is_empty())
    }

    fn place(&self, step: &str) -> Result<usize, usize> {
        // Most steps come in their order.
        match self.nodes.last() {
            Some((last, _)) if last.as_str() < step => Err(self.nodes.len()),
            _ => self.nodes.binary_search_by(|(own, _)| own.as_str().cmp(step)),
        }
    }

    fn node(&self, step: &str) -> Option<&Node> {
        self.place(step).ok().and_then(|place| self.nodes.get(place)).map(|(_, node)| node)
    }

    fn insert(&mut self, path: &[String]) {
        let Some((first, rest)) = path.split_first() else { return };
        let mut node = Node { is_member: rest.is_empty(), ..Node::default() };
        node.below.insert(rest);
        self.attach(first.clone(), node);
    }

    /// Adds what a set says of a step and its inside.
    pub(super) fn attach(&mut self, step: String, node: Node) {
        match self.place(&step) {
            Err(place) => self.nodes.insert(place, (step, node)),
            Ok(place) => {
                if let Some((_, own)) = self.nodes.get_mut(place) {
                    own.add(node);
                }
            }
        }
    }

    /// Adds an element of a list. Elements that come twice are owned as one, whatever is in them.
    pub(super) fn attach_element(&mut self, step: String, node: Node) {
        match self.place(&step) {
            Err(place) => self.nodes.insert(place, (step, node)),
            Ok(place) => {
                if let Some((_, own)) = self.nodes.get_mut(place) {
                    *own = Node { is_member: true, ..Node::default() };
                }
            }
        }
    }

    /// Adds the elements of a list, whose steps come in any order.
    pub(super) fn attach_elements(&mut self, elements: impl Iterator<Item = (String, Node)>) {
        if elements.size_hint().1.is_some_and(|n_most| n_most < MANY) {
            return elements.for_each(|(step, node)| self.attach_element(step, node));
        }
        let mut elements: Vec<(String, Node)> = elements.collect();
        // In order, each goes to the end: into the middle of many, each would move half of them.
        elements.sort_by(|(left, _), (right, _)| left.cmp(right));
        for (step, node) in elements {
            self.attach_element(step, node);
        }
    }

    pub(super) fn has(&self, step: &str) -> bool {
        self.node(step).is_some_and(|node| node.is_member)
    }

    /// What the set says of the inside of a step.
    pub(super) fn below(&self, step: &str) -> Option<&FieldSet> {
        self.node(step).map(|node| &node.below).filter(|below| !below.is_empty())
    }

    /// Adds all members of another set.
    pub(super) fn add(&mut self, other: FieldSet) {
        if self.nodes.is_empty() {
            self.nodes = other.nodes;
            return;
        }
        if other.nodes.len() < MANY {
            for (step, node) in other.nodes {
                self.attach(step, node);
            }
            return;
        }
        let mut all = std::mem::take(&mut self.nodes);
        all.extend(other.nodes);
        all.sort_by(|(left, _), (right, _)| left.cmp(right));
        for (step, node) in all {
            self.attach(step, node);
        }
    }

    /// Takes the members of another set away.
    pub(super) fn subtract(&mut self, other: &FieldSet) {
        if other.nodes.is_empty() {
            return;
        }
        self.nodes.retain_mut(|(step, node)| {
            if let Some(others) = other.node(step) {
                node.is_member &= !others.is_member;
                node.below.subtract(&others.below);
            }
            !node.is_empty()
        });
    }

    /// Takes the members of another set away, and all that is below them.
    pub(super) fn subtract_all_below(&mut self, other: &FieldSet) {
        if other.nodes.is_empty() {
            return;
        }
        self.nodes.retain_mut(|(step, node)| match other.node(step) {
            Some(others) if others.is_member => false,
            Some(others) => {
                node.below.subtract_all_below(&others.below);
                !node.is_empty()
            }
            None => !node.is_empty(),
        });
    }

    pub(super) fn difference(&self, other: &FieldSet) -> FieldSet {
        let mut left = self.clone();
        left.subtract(other);
        left
    }

    pub(super) fn intersection(&self, other: &FieldSet) -> FieldSet {
        let nodes = self.nodes.iter().filter_map(|(step, node)| {
            let others = other.node(step)?;
            let is_member = node.is_member && others.is_member;
            let shared = Node { is_member, below: node.below.intersection(&others.below) };
            (!shared.is_empty()).then(|| (step.clone(), shared))
        });
        FieldSet { nodes: nodes.collect() }
    }

    /// Makes members of the steps on the way that `is_declared` says are declared fields, at every depth.
    pub(super) fn with_declared<A: Copy>(&self, at: A, descend: &dyn Fn(A, &str) -> (bool, A)) -> FieldSet {
        let nodes = self.nodes.iter().map(|(step, node)| {
            let (is_declared, below_at) = descend(at, step);
            let is_member = node.is_member || (is_declared && !node.below.is_empty());
            (step.clone(), Node { is_member, below: node.below.with_declared(below_at, descend) })
        });
        FieldSet { nodes: nodes.collect() }
    }

    /// The set with other names: pairs of dotted paths of plain fields, as they are called here and there.
    pub(super) fn renamed(&self, names: &[(&str, &str)]) -> Cow<'_, FieldSet> {
        if names.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut set = self.clone();
        let moved: Vec<_> = names.iter().filter_map(|(here, there)| Some((there, set.take(here)?))).collect();
        for (there, node) in moved {
            set.put(there, node);
        }
        Cow::Owned(set)
    }

    /// Takes what the set says of a field and its inside out of it.
    fn take(&mut self, path: &str) -> Option<Node> {
        let Some((first, rest)) = path.split_once('.') else {
            let place = self.place(&field_step(path)).ok()?;
            return Some(self.nodes.remove(place).1);
        };
        let place = self.place(&field_step(first)).ok()?;
        self.nodes.get_mut(place)?.1.below.take(rest)
    }

    fn put(&mut self, path: &str, node: Node) {
        let Some((first, rest)) = path.split_once('.') else { return self.attach(field_step(path), node) };
        let mut way = Node::default();
        way.below.put(rest, node);
        self.attach(field_step(first), way);
    }

    /// All paths, as messages show them.
    pub(super) fn shown_paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for (step, node) in &self.nodes {
            let shown = shown(step);
            paths.extend(node.is_member.then(|| shown.clone()));
            paths.extend(node.below.shown_paths().into_iter().map(|path| format!("{shown}{path}")));
        }
        paths
    }

    /// As it stands in `fieldsV1`.
    pub(super) fn into_value(self) -> Value {
        let fields = self.nodes.into_iter().filter(|(_, node)| !node.is_empty()).map(|(step, node)| {
            let is_named = node.is_member && !node.below.is_empty();
            let mut value = node.below.into_value();
            if let (true, Value::Object(fields)) = (is_named, &mut value) {
                fields.insert(".".to_owned(), Value::Object(Map::new()));
            }
            (step, value)
        });
        Value::Object(fields.collect())
    }

    /// Writes it as it stands in `fieldsV1`: the text of [`FieldSet::into_value`], without making a tree of it first.
    pub(super) fn write(&self, json: &mut String) {
        self.write_as(false, json);
    }

    fn write_as(&self, is_member: bool, json: &mut String) {
        json.push('{');
        let mut nodes = self.nodes.iter().filter(|(_, node)| !node.is_empty()).peekable();
        if is_member && nodes.peek().is_some() {
            json.push_str(r#"".":{},"#);
        }
        while let Some((step, node)) = nodes.next() {
            push_text(json, step);
            json.push(':');
            node.below.write_as(node.is_member, json);
            if nodes.peek().is_some() {
                json.push(',');
            }
        }
        json.push('}');
    }

    /// Reads `fieldsV1`; none if it is not shaped like a set.
    pub(super) fn from_value(value: &Value) -> Option<FieldSet> {
        let mut set = FieldSet::default();
        for (step, below) in value.as_object()? {
            if step == "." {
                continue;
            }
            if !is_step(step) {
                return None;
            }
            let has_own = below.get(".").is_some() || below.as_object()?.is_empty();
            set.attach(step.clone(), Node { is_member: has_own, below: FieldSet::from_value(below)? });
        }
        Some(set)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn set(value: Value) -> FieldSet {
        FieldSet::from_value(&value).unwrap()
    }

    #[test]
    fn a_set_reads_and_writes_as_in_managed_fields() {
        let written =
            json!({"f:spec": {"f:ports": {"k:{\"port\":80}": {".": {}, "f:name": {}}}, "f:type": {}}});
        assert_eq!(set(written.clone()).into_value(), written);
        assert_eq!(FieldSet::from_value(&json!({"f:a": 1})), None);
        assert_eq!(FieldSet::from_value(&json!({"f:a": {" ": {}}})), None);
        let paths = [".spec.ports[port=80]", ".spec.ports[port=80].name", ".spec.type"];
        assert_eq!(set(written).shown_paths(), paths);
    }

    /// Sets of steps that are easy and hard to write.
    fn sets() -> impl Strategy<Value = FieldSet> {
        let step = prop_oneof![
            "[fkvi]:[a-z]{0,3}",
            r#"k:\{"name":"[a-c\\"]{0,3}"\}"#,
            any::<String>().prop_map(|text| format!("f:{text}")),
        ];
        let leaf = any::<bool>().prop_map(|is_member| Node { is_member, ..Node::default() });
        let node = leaf.prop_recursive(3, 24, 4, move |inner| {
            (any::<bool>(), vec((step.clone(), inner), 0..4)).prop_map(|(is_member, nodes)| {
                let mut below = FieldSet::default();
                nodes.into_iter().for_each(|(step, node)| below.attach(step, node));
                Node { is_member, below }
            })
        });
        node.prop_map(|node| node.below)
    }

    proptest! {
        #[test]
        fn a_written_set_is_the_text_of_its_value(set in sets()) {
            let mut text = String::new();
            set.write(&mut text);
            prop_assert_eq!(text, set.into_value().to_string());
        }
    }

    #[test]
    fn a_set_can_be_told_with_other_names() {
        let names = [("note", "message"), ("spec.a", "spec.b"), ("missing", "x")];
        let told = set(json!({"f:note": {}, "f:kept": {}, "f:spec": {".": {}, "f:a": {"f:deep": {}}}}));
        assert_eq!(
            told.renamed(&names).into_owned().into_value(),
            json!({"f:message": {}, "f:kept": {}, "f:spec": {".": {}, "f:b": {"f:deep": {}}}}),
        );
        // A name may be another's old one.
        let swap = [("a", "b"), ("b", "a")];
        let told = set(json!({"f:a": {"f:was-a": {}}, "f:b": {"f:was-b": {}}}));
        let swapped = json!({"f:b": {"f:was-a": {}}, "f:a": {"f:was-b": {}}});
        assert_eq!(told.renamed(&swap).into_owned().into_value(), swapped);
    }

    #[test]
    fn sets_are_added_and_subtracted_path_by_path() {
        let left = set(json!({"f:a": {".": {}, "f:x": {}, "f:y": {}}}));
        let right = set(json!({"f:a": {"f:x": {}}, "f:b": {}}));
        assert_eq!(left.difference(&right).into_value(), json!({"f:a": {".": {}, "f:y": {}}}));
        assert_eq!(left.intersection(&right).into_value(), json!({"f:a": {"f:x": {}}}));
        let mut both = left.clone();
        both.add(right);
        assert_eq!(both.clone().into_value(), json!({"f:a": {".": {}, "f:x": {}, "f:y": {}}, "f:b": {}}));
        both.subtract_all_below(&FieldSet::of_fields(&[&["a"]]));
        assert_eq!(both.into_value(), json!({"f:b": {}}));
    }

    #[test]
    fn many_elements_in_any_order_are_added_in_no_time() {
        let steps = |from: usize| {
            (0..100_000).rev().map(move |at| (format!("v:{:07}", at * 2 + from), Node::member(0)))
        };
        let (mut even, mut odd) = (FieldSet::default(), FieldSet::default());
        even.attach_elements(steps(0));
        odd.attach_elements(steps(1));
        even.add(odd);
        assert_eq!(even.nodes.len(), 200_000);
        assert!(even.nodes.is_sorted_by_key(|(step, _)| step.clone()));
    }
}
