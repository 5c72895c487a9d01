//! Objects as canonical JSON text: no spaces, and keys in the order in which a map has them.
//!
//! It is what serde_json writes. That looks at every character by itself, and every object that is stored passes here;
//! most strings have nothing to escape, which is seen at a glance.

use krafla_schema::plain::n_plain;
use serde_json::{Number, Value};

/// Room for most objects, so that their text need not be moved while it grows.
const USUAL_BYTES: usize = 8 << 10;

/// JSON in the making. Every field and every item is written with a comma after it; closing takes the last one away.
pub(super) struct Text {
    bytes: Vec<u8>,
    /// How many objects and lists are open.
    depth: usize,
    /// The most that have been open at once.
    deepest: usize,
}

impl Default for Text {
    fn default() -> Text {
        Text { bytes: Vec::with_capacity(USUAL_BYTES), depth: 0, deepest: 0 }
    }
}

impl Text {
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The levels of objects and lists in it.
    pub(super) fn n_levels(&self) -> usize {
        self.deepest
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(super) fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Opens an object or list.
    pub(super) fn open(&mut self, bracket: &str) {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        self.push(bracket);
    }

    /// Closes an object or list.
    pub(super) fn close(&mut self, bracket: &str) {
        self.depth -= 1;
        if self.bytes.last() == Some(&b',') {
            self.bytes.pop();
        }
        self.push(bracket);
    }

    pub(super) fn fields<'a>(&mut self, fields: impl Iterator<Item = (&'a String, &'a Value)>) {
        for (name, value) in fields {
            self.string(name);
            self.push(":");
            self.value(value);
            self.push(",");
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.push("null"),
            Value::Bool(true) => self.push("true"),
            Value::Bool(false) => self.push("false"),
            Value::Number(number) => self.number(number),
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                self.open("[");
                for item in items {
                    self.value(item);
                    self.push(",");
                }
                self.close("]");
            }
            Value::Object(fields) => {
                self.open("{");
                self.fields(fields.iter());
                self.close("}");
            }
        }
    }

    fn number(&mut self, number: &Number) {
        self.serialise(number);
    }

    fn string(&mut self, text: &str) {
        if n_plain(text.as_bytes()) == text.len() {
            self.bytes.reserve(text.len() + 2);
            self.push("\"");
            self.push(text);
            self.push("\"");
        } else {
            self.serialise(text);
        }
    }

    fn serialise<T: serde::Serialize + ?Sized>(&mut self, value: &T) {
        let written = serde_json::to_writer(&mut self.bytes, value);
        debug_assert!(written.is_ok(), "strings and numbers can always be written to memory");
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        let plain = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[ -~]{0,40}".prop_map(Value::from),
        ];
        plain.prop_recursive(4, 64, 6, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..6).prop_map(Value::from),
                btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_text_is_what_serde_would_write(value in values()) {
            let mut text = Text::default();
            text.value(&value);
            prop_assert_eq!(String::from_utf8(text.into_bytes()).unwrap(), value.to_string());
        }
    }
}
