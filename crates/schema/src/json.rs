//! JSON text as Go reads it: every field in its order, also one that comes twice, and Go's words for what is wrong.
//!
//! serde_json would keep the last of two equal fields, refuse half of a surrogate pair and name faults in its own words;
//! clients compare kube-apiserver's.

use std::borrow::Cow;

use serde_json::{Number, Value};

use crate::plain::n_plain;

/// A JSON document as it was written.
#[derive(Clone, Debug, PartialEq)]
pub enum Node<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as it was written.
    Number(Cow<'a, str>),
    /// A string, unescaped.
    String(Cow<'a, str>),
    /// A list.
    Array(Vec<Node<'a>>),
    /// An object: its fields in order, with those that come twice.
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// Deeper documents are refused, whatever language they are in: reading, comparing and dropping them recurse. Within a list,
/// an event or a review, what is this deep is still read by serde_json, whose limit is 128 levels, and so by most clients.
pub const DEPTH_MAX: usize = 110;
/// The deepest document that stores of earlier versions can hold.
const STORED_DEPTH_MAX: usize = 1000;

impl<'a> Node<'a> {
    /// Reads a document. The error is Go's text for it.
    pub fn parse(text: &'a [u8]) -> Result<Node<'a>, String> {
        Node::parse_within(text, DEPTH_MAX)
    }

    fn parse_within(text: &'a [u8], depth_max: usize) -> Result<Node<'a>, String> {
        let mut parser = Parser { text, valid: std::str::from_utf8(text).ok(), at: 0, depth: 0, depth_max };
        parser.skip_space();
        let node = parser.value()?;
        parser.skip_space();
        match parser.peek() {
            None => Ok(node),
            Some(_) => Err(parser.unexpected("after top-level value")),
        }
    }

    /// The document as a value; of fields that come twice the last counts.
    pub fn into_value(self) -> Value {
        match self {
            Node::Null => Value::Null,
            Node::Bool(bool) => Value::Bool(bool),
            Node::Number(text) => number(&text).map_or(Value::Null, Value::Number),
            Node::String(text) => Value::String(text.into_owned()),
            Node::Array(items) => Value::Array(items.into_iter().map(Node::into_value).collect()),
            Node::Object(fields) => Value::Object(
                fields.into_iter().map(|(name, node)| (name.into_owned(), node.into_value())).collect(),
            ),
        }
    }

    /// As [`Node::into_value`], of a document that is still needed.
    pub fn to_value(&self) -> Value {
        match self {
            Node::Array(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Node::Object(fields) => Value::Object(
                fields.iter().map(|(name, node)| (name.as_ref().to_owned(), node.to_value())).collect(),
            ),
            plain => plain.clone().into_value(),
        }
    }

    /// A field of an object; of one that comes twice, the last.
    pub fn field(&self, name: &str) -> Option<&Node<'a>> {
        let Node::Object(fields) = self else { return None };
        fields.iter().rev().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    /// What Go calls this kind of value in its messages.
    pub fn go_kind(&self) -> &'static str {
        match self {
            Node::Null => "null",
            Node::Bool(_) => "bool",
            Node::Number(_) => "number",
            Node::String(_) => "string",
            Node::Array(_) => "array",
            Node::Object(_) => "object",
        }
    }
}

impl<'a> From<&'a Value> for Node<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Node::Null,
            Value::Bool(bool) => Node::Bool(*bool),
            Value::Number(number) => Node::Number(number.to_string().into()),
            Value::String(text) => Node::String(text.into()),
            Value::Array(items) => Node::Array(items.iter().map(Node::from).collect()),
            Value::Object(fields) => {
                Node::Object(fields.iter().map(|(name, value)| (name.into(), value.into())).collect())
            }
        }
    }
}

/// Reads a stored object. Earlier versions stored objects that are deeper than serde_json reads; they must still be listed
/// and deleted.
pub fn stored(text: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(text).or_else(|error| {
        let deep = Node::parse_within(text, STORED_DEPTH_MAX).map(Node::into_value);
        deep.map_err(|_| error.to_string())
    })
}

/// A number as Kubernetes reads untyped ones: a whole number where it is one and fits 64 bits, else a double. None if
/// it is too large for that.
pub fn number(text: &str) -> Option<Number> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    let double: f64 = text.parse().ok()?;
    // Go prints whole doubles without a point; below 2^53 nothing is lost by keeping them as whole numbers.
    if double.fract() == 0.0 && double.abs() < 9_007_199_254_740_992.0 {
        return Some((double as i64).into());
    }
    Number::from_f64(double)
}

struct Parser<'a> {
    text: &'a [u8],
    /// The same, if all of it is UTF-8: then no part of it need be looked at again.
    valid: Option<&'a str>,
    at: usize,
    depth: usize,
    depth_max: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    /// The fault at the present place: the character that does not fit, or the early end.
    fn unexpected(&self, context: &str) -> String {
        match self.peek() {
            None => "unexpected end of JSON input".to_owned(),
            Some(byte) => format!("invalid character {} {context}", quoted(byte)),
        }
    }

    fn expect(&mut self, byte: u8, context: &str) -> Result<(), String> {
        if self.peek() != Some(byte) {
            return Err(self.unexpected(context));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self) -> Result<Node<'a>, String> {
        match self.peek() {
            Some(b'{') => self.nested(Parser::object),
            Some(b'[') => self.nested(Parser::array),
            Some(b'"') => self.string().map(Node::String),
            Some(b't') => self.literal("true", Node::Bool(true)),
            Some(b'f') => self.literal("false", Node::Bool(false)),
            Some(b'n') => self.literal("null", Node::Null),
            Some(b'-' | b'0'..=b'9') => self.number().map(Node::Number),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Node<'a>, String>) -> Result<Node<'a>, String> {
        self.depth += 1;
        if self.depth > self.depth_max {
            return Err(self.unexpected("exceeded max depth"));
        }
        self.at += 1;
        self.skip_space();
        let node = read(self)?;
        self.depth -= 1;
        Ok(node)
    }

    fn array(&mut self) -> Result<Node<'a>, String> {
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Node::Array(items));
        }
        loop {
            self.skip_space();
            items.push(self.value()?);
            self.skip_space();
            if self.peek() == Some(b',') {
                self.at += 1;
                continue;
            }
            self.expect(b']', "after array element")?;
            return Ok(Node::Array(items));
        }
    }

    fn object(&mut self) -> Result<Node<'a>, String> {
        let mut fields = Vec::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Node::Object(fields));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("looking for beginning of object key string"));
            }
            let name = self.string()?;
            self.skip_space();
            self.expect(b':', "after object key")?;
            self.skip_space();
            fields.push((name, self.value()?));
            self.skip_space();
            if self.peek() == Some(b',') {
                self.at += 1;
                continue;
            }
            self.expect(b'}', "after object key:value pair")?;
            return Ok(Node::Object(fields));
        }
    }

    fn literal(&mut self, word: &str, node: Node<'a>) -> Result<Node<'a>, String> {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                return Err(self.unexpected(&format!("in literal {word} (expecting {})", quoted(expected))));
            }
            self.at += 1;
        }
        Ok(node)
    }

    fn number(&mut self) -> Result<Cow<'a, str>, String> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(self.text_since(start))
    }

    fn digits(&mut self, context: &str) -> Result<(), String> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err(self.unexpected(context)) } else { Ok(()) }
    }

    fn text_since(&self, start: usize) -> Cow<'a, str> {
        match self.valid.and_then(|text| text.get(start..self.at)) {
            Some(text) => Cow::Borrowed(text),
            None => String::from_utf8_lossy(self.text.get(start..self.at).unwrap_or_default()),
        }
    }

    /// Goes on to the next character that means something in a string: its end, an escape, or a fault.
    fn skip_plain(&mut self) {
        self.at += n_plain(self.text.get(self.at..).unwrap_or_default());
    }

    fn string(&mut self) -> Result<Cow<'a, str>, String> {
        self.at += 1;
        let start = self.at;
        self.skip_plain();
        match self.peek() {
            Some(b'"') => {
                let text = self.text_since(start);
                self.at += 1;
                Ok(text)
            }
            Some(b'\\') => self.escaped_string(start).map(Cow::Owned),
            _ => Err(self.unexpected("in string literal")),
        }
    }

    /// The rest of a string from its first escape on.
    fn escaped_string(&mut self, start: usize) -> Result<String, String> {
        let mut text = self.text_since(start).into_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.at += 1;
                    text.push(self.escape()?);
                }
                Some(0..0x20) | None => return Err(self.unexpected("in string literal")),
                Some(_) => {
                    let start = self.at;
                    self.skip_plain();
                    text.push_str(&self.text_since(start));
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let plain = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode_escape();
            }
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.at += 1;
        Ok(plain)
    }

    /// A character by number; half of a surrogate pair without the other half becomes the replacement character.
    fn unicode_escape(&mut self) -> Result<char, String> {
        let first = self.four_hex_digits()?;
        if let 0xD800..0xDC00 = first
            && self.text.get(self.at..self.at + 2) == Some(b"\\u")
        {
            let before = self.at;
            self.at += 2;
            let second = self.four_hex_digits()?;
            if let 0xDC00..0xE000 = second {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            // The second escape is a character of its own.
            self.at = before;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn four_hex_digits(&mut self) -> Result<u32, String> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.unexpected("in \\u hexadecimal character escape"))?;
            self.at += 1;
        }
        Ok(code)
    }
}

/// A byte in single quotes, as Go's JSON errors show it.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => format!("'{}'", go_escape(char::from(byte))),
    }
}

/// A character as Go's `%q` writes it inside quotes, quotes apart.
pub fn go_escape(character: char) -> Cow<'static, str> {
    match character {
        '\\' => r"\\".into(),
        '\u{7}' => r"\a".into(),
        '\u{8}' => r"\b".into(),
        '\u{c}' => r"\f".into(),
        '\n' => r"\n".into(),
        '\r' => r"\r".into(),
        '\t' => r"\t".into(),
        '\u{b}' => r"\v".into(),
        control @ ('\0'..' ' | '\u{7f}') => format!("\\x{:02x}", u32::from(control)).into(),
        control @ '\u{80}'..='\u{a0}' | control @ '\u{ad}' => format!("\\u{:04x}", u32::from(control)).into(),
        other => other.to_string().into(),
    }
}

/// A text in double quotes, as Go's `%q` writes it.
pub fn go_quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            other => quoted.push_str(&go_escape(other)),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fault(text: &str) -> String {
        Node::parse(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn faults_are_told_in_gos_words() {
        let table = [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("{\"a\":1,", "unexpected end of JSON input"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{,}", "invalid character ',' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 2}", "invalid character '2' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("\u{feff}{}", "invalid character 'ï' looking for beginning of value"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("01", "invalid character '1' after top-level value"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1ex", "invalid character 'x' in exponent of numeric literal"),
            ("trux", "invalid character 'x' in literal true (expecting 'e')"),
            ("\"a\nb\"", "invalid character '\\n' in string literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"),
            ("'a'", "invalid character '\\'' looking for beginning of value"),
        ];
        for (text, expected) in table {
            assert_eq!(fault(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_nests_too_deep_is_refused() {
        let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert!(Node::parse(nested(DEPTH_MAX).as_bytes()).is_ok());
        assert_eq!(fault(&nested(DEPTH_MAX + 1)), "invalid character '[' exceeded max depth");
    }

    #[test]
    fn strings_are_unescaped_and_half_characters_replaced() {
        let text = br#"["a\"\\\/\b\f\n\r\t", "\u00e9\ud83d\ude00", "\ud800", "\ud800\u0041", "\udc00x"]"#;
        let expected = json!(["a\"\\/\u{8}\u{c}\n\r\t", "é😀", "\u{fffd}", "\u{fffd}A", "\u{fffd}x"]);
        assert_eq!(Node::parse(text).unwrap().into_value(), expected);
        assert_eq!(Node::parse(b"\"\xff\"").unwrap().into_value(), json!("\u{fffd}"));
    }

    #[test]
    fn numbers_stay_whole_where_they_are() {
        let text = b"[0, -7, 1.5, 1e3, 2.0, 9223372036854775807, 9223372036854775808, 1e400]";
        let expected = json!([0, -7, 1.5, 1000, 2, i64::MAX, 9.223372036854776e18, null]);
        assert_eq!(Node::parse(text).unwrap().into_value(), expected);
    }

    #[test]
    fn of_two_equal_fields_the_last_counts() {
        let node = Node::parse(br#"{"a": 1, "b": 2, "a": 3}"#).unwrap();
        assert!(matches!(&node, Node::Object(fields) if fields.len() == 3));
        assert_eq!(node.into_value(), json!({"a": 3, "b": 2}));
    }
}
