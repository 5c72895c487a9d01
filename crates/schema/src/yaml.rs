//! YAML request bodies, read into the same documents as JSON, so that everything behind them is the same.
//!
//! As in kube-apiserver, whose YAML is version 1.1: `yes` and `on` are booleans, `0644` is octal, keys become strings, and
//! only the first document of several counts. A key that comes twice is named by its path, as in JSON; kube-apiserver
//! names a line.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use super::json::{DEPTH_MAX, Node, go_quote};

/// What the values of one document may have together, aliases counted each time.
const SCALAR_BYTES_MAX: usize = 16 << 20;

/// Reads a document that a client sent. Errors are in the words of kube-apiserver's reader.
pub fn parse(text: &[u8]) -> Result<Node<'_>, String> {
    if std::str::from_utf8(text).is_ok_and(|text| text.trim_start_matches(' ').starts_with('\t')) {
        return Err("yaml: found character that cannot start any token".to_owned());
    }
    read(text).map_err(|why| match why.strip_prefix("yaml: ") {
        Some(why) => fault(why, &String::from_utf8_lossy(text)),
        None => why,
    })
}

/// Reads a document; nothing at all is null. Errors name what is wrong and its place. The limits on aliases and on nesting (64
/// levels, since a level takes much of the stack) are the reader's own.
pub fn read(text: &[u8]) -> Result<Node<'_>, String> {
    // Most clients send JSON, which is YAML too: it is read faster, and to the depth of JSON.
    if text.trim_ascii_start().starts_with(b"{")
        && let Ok(node) = Node::parse(text)
    {
        return Ok(node);
    }
    let text = std::str::from_utf8(text).map_err(|_| "yaml: invalid UTF-8".to_owned())?;
    let options = options();
    let first: Option<Tree> = serde_saphyr::from_str_with_options(first_document(text), options)
        .map_err(|error| format!("yaml: {error}"))?;
    let node = first.map_or(Node::Null, |tree| tree.0);
    if depth(&node) > DEPTH_MAX { Err("yaml: exceeded max depth".to_owned()) } else { Ok(node) }
}

/// A fault in the words of kube-apiserver's reader, which names the line first, and the first line not at all.
fn fault(why: &str, text: &str) -> String {
    if why.starts_with("unclosed bracket") {
        return format!("yaml: line {}: did not find expected node content", text.lines().count());
    }
    let parts = why.rsplit_once(" at line ").and_then(|(what, place)| Some((what, place.split_once(',')?.0)));
    match parts {
        Some((what, "1")) => format!("yaml: {what}"),
        Some((what, line)) => format!("yaml: line {line}: {what}"),
        None => format!("yaml: {why}"),
    }
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        with_snippet: false,
        budget: serde_saphyr::budget! { max_total_scalar_bytes: SCALAR_BYTES_MAX },
    }
}

/// The keys that come twice, in the words of kube-apiserver's reader: `line 8: key "a" already set in map`. The line is that
/// of the value; what is within a value is found before the value itself.
pub fn duplicates(text: &[u8]) -> Vec<String> {
    let options = options();
    let text = std::str::from_utf8(text).unwrap_or_default();
    let read = serde_saphyr::from_str_with_options::<Option<Repeats>>(first_document(text), options);
    // What cannot be read at all is refused elsewhere.
    read.ok().flatten().map(|repeats| repeats.found).unwrap_or_default()
}

/// A value as far as it matters for keys that come twice.
#[derive(Default)]
struct Repeats {
    /// What was found in it.
    found: Vec<String>,
    /// How Go prints it as a key.
    shown: String,
}

impl Repeats {
    fn shown(shown: String) -> Repeats {
        Repeats { shown, found: Vec::new() }
    }
}

impl<'de> Deserialize<'de> for Repeats {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RepeatsVisitor)
    }
}

struct RepeatsVisitor;

impl<'de> Visitor<'de> for RepeatsVisitor {
    type Value = Repeats;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E: Error>(self, bool: bool) -> Result<Self::Value, E> {
        Ok(Repeats::shown(bool.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Repeats::shown(number.to_string()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Repeats::shown(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Repeats::shown(number.to_string()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Repeats::shown(go_quote(text)))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Repeats::shown("interface {}(nil)".to_owned()))
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(RepeatsVisitor)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut all = Repeats::default();
        while let Some(item) = access.next_element::<Repeats>()? {
            all.found.extend(item.found);
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut all = Repeats::default();
        let mut keys = HashSet::new();
        while let Some(Repeats { shown: key, .. }) = access.next_key()? {
            let value: Spanned<Repeats> = access.next_value()?;
            all.found.extend(value.value.found);
            if !keys.insert(key.clone()) {
                let line = value.referenced.line();
                all.found.push(format!("line {line}: key {key} already set in map"));
            }
        }
        Ok(all)
    }
}

/// The text up to the line that begins a second document.
fn first_document(text: &str) -> &str {
    let mut has_content = false;
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let is_marker = line.trim_end() == "---" || line.starts_with("--- ");
        if is_marker && has_content {
            return text.get(..offset).unwrap_or(text);
        }
        let content = line.trim();
        has_content |= !content.is_empty() && !content.starts_with(['#', '%']) && line.trim_end() != "---";
        offset += line.len();
    }
    text
}

fn depth(node: &Node<'_>) -> usize {
    match node {
        Node::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Node::Object(fields) => 1 + fields.iter().map(|(_, value)| depth(value)).max().unwrap_or(0),
        Node::Null | Node::Bool(_) | Node::Number(_) | Node::String(_) => 0,
    }
}

struct Tree(Node<'static>);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Tree)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Node<'static>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E: Error>(self, bool: bool) -> Result<Self::Value, E> {
        Ok(Node::Bool(bool))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Node::Number(number.to_string().into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Node::Number(number.to_string().into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        // A whole number in a field for whole numbers is one, however it was written.
        let text = if number.fract() == 0.0 && number.abs() < 1e15 {
            format!("{number:.0}")
        } else {
            number.to_string()
        };
        Ok(Node::Number(text.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Node::String(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Node::String(Cow::Owned(text)))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Node::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Tree(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(Node::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(Tree(key)) = access.next_key()? {
            let key = match key {
                Node::String(text) | Node::Number(text) => text,
                Node::Bool(bool) => bool.to_string().into(),
                Node::Null => Cow::Borrowed("null"),
                Node::Array(_) | Node::Object(_) => {
                    return Err(A::Error::custom("a key is not a plain value"));
                }
            };
            let Tree(value) = access.next_value()?;
            fields.push((key, value));
        }
        // Upstream turns YAML into JSON, which sorts the keys: findings come in this order.
        fields.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Node::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_reads_as_kubernetes_reads_it() {
        let text =
            "a: yes\nb: off\nc: 0644\nd: 'yes'\n1: x\ne: 1.5\nf: ~\ng: [1, two]\nh: {i: null}\nj: 2.0\n";
        let expected = json!({
            "a": true, "b": false, "c": 420, "d": "yes", "1": "x", "e": 1.5, "f": null, "g": [1, "two"],
            "h": {"i": null}, "j": 2,
        });
        assert_eq!(parse(text.as_bytes()).unwrap().into_value(), expected);
    }

    #[test]
    fn only_the_first_document_counts_and_nothing_is_null() {
        assert_eq!(parse(b"").unwrap(), Node::Null);
        assert_eq!(parse(b"# nothing\n").unwrap(), Node::Null);
        assert_eq!(parse(b"---\na: 1\n---\na: 2\n").unwrap().into_value(), json!({"a": 1}));
    }

    #[test]
    fn a_key_that_comes_twice_is_kept_for_the_decoder() {
        let node = parse(b"a: 1\nb: 2\na: 3\n").unwrap();
        assert!(matches!(&node, Node::Object(fields) if fields.len() == 3), "{node:?}");
        assert_eq!(node.into_value(), json!({"a": 3, "b": 2}));
    }

    #[test]
    fn keys_that_come_twice_are_named_with_the_line_of_their_value() {
        let text = "metadata:\n  labels: {x: '1', x: '2'}\ndata:\n  a: '1'\ndata:\n  a: '2'\n  a: '3'\n";
        let expected = [
            "line 2: key \"x\" already set in map",
            "line 7: key \"a\" already set in map",
            "line 6: key \"data\" already set in map",
        ];
        assert_eq!(duplicates(text.as_bytes()), expected);
        assert_eq!(duplicates(br#"{"a": {"b": 1, "b": 2}}"#), ["line 1: key \"b\" already set in map"]);
        assert_eq!(duplicates(b"a: 1\n"), [""; 0]);
    }

    #[test]
    fn what_is_no_yaml_or_nests_too_deep_is_refused() {
        assert!(parse(b"a: [").unwrap_err().starts_with("yaml: "));
        assert!(parse(b"\xff").is_err());
        let deep = "[".repeat(DEPTH_MAX + 1) + &"]".repeat(DEPTH_MAX + 1);
        assert!(parse(deep.as_bytes()).is_err());
    }
}
