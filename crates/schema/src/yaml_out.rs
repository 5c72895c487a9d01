//! Answers in YAML, written as kube-apiserver's library writes them: keys in its natural order, text plain where it reads
//! as text, and long lines folded at spaces.

use std::cmp::Ordering;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// A line that is longer than this is folded at the next space.
const WIDTH: usize = 80;

/// A value as a document.
pub fn write(value: &Value) -> String {
    let mut writer = Writer::default();
    match value {
        Value::Object(fields) if !fields.is_empty() => writer.mapping(value, 0),
        Value::Array(items) if !items.is_empty() => writer.sequence(items, 0),
        plain => writer.plain_value(plain, 0),
    }
    writer.line_end();
    writer.text
}

#[derive(Default)]
struct Writer {
    text: String,
    /// How many characters the current line has.
    column: usize,
}

impl Writer {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.chars().count();
    }

    fn put_char(&mut self, character: char) {
        self.text.push(character);
        self.column += 1;
    }

    fn line_end(&mut self) {
        if self.column > 0 {
            self.text.push('\n');
            self.column = 0;
        }
    }

    /// Goes to the beginning of a line.
    fn indent(&mut self, indent: usize) {
        self.line_end();
        self.put(&" ".repeat(indent));
    }

    fn mapping(&mut self, value: &Value, indent: usize) {
        let mut fields: Vec<(&String, &Value)> = value.as_object().into_iter().flatten().collect();
        fields.sort_by(|(a, _), (b, _)| natural_order(a, b));
        for (at, (key, value)) in fields.into_iter().enumerate() {
            // The first key of a mapping in a list stands behind the dash.
            if at > 0 || self.column != indent {
                self.indent(indent);
            }
            self.scalar(key, indent, true);
            self.put(":");
            match value {
                Value::Object(inner) if !inner.is_empty() => {
                    self.indent(indent + 2);
                    self.mapping(value, indent + 2);
                }
                Value::Array(items) if !items.is_empty() => self.sequence(items, indent),
                plain => {
                    self.put(" ");
                    self.plain_value(plain, indent);
                }
            }
        }
    }

    fn sequence(&mut self, items: &[Value], indent: usize) {
        for item in items {
            if self.column != indent || self.column == 0 {
                self.indent(indent);
            }
            self.put("- ");
            match item {
                Value::Object(fields) if !fields.is_empty() => self.mapping(item, indent + 2),
                Value::Array(inner) if !inner.is_empty() => self.sequence(inner, indent + 2),
                plain => self.plain_value(plain, indent),
            }
        }
    }

    fn plain_value(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(_) => self.put("{}"),
            Value::Array(_) => self.put("[]"),
            Value::String(text) => self.scalar(text, indent, false),
            Value::Number(number) if number.is_f64() => {
                let text = number.as_f64().map(go_float).unwrap_or_default();
                self.put(&text);
            }
            other => self.put(&other.to_string()),
        }
    }

    /// A text. What continues it on a further line is indented below `indent`.
    fn scalar(&mut self, text: &str, indent: usize, is_key: bool) {
        let form = Form::of(text);
        let wanted = if text.contains('\n') {
            Style::Literal
        } else if reads_as_text(text) {
            Style::Plain
        } else {
            Style::Double
        };
        let style = match wanted {
            Style::Literal if form.allows_block && !is_key => Style::Literal,
            Style::Plain if form.allows_plain && !(text.is_empty() && is_key) => Style::Plain,
            Style::Plain if form.allows_single => Style::Single,
            _ => Style::Double,
        };
        match style {
            Style::Plain => self.folded(text, indent, is_key, |writer, character| writer.put_char(character)),
            Style::Single => {
                self.put("'");
                self.folded(text, indent, is_key, |writer, character| {
                    writer.put(if character == '\'' { "''" } else { "" });
                    if character != '\'' {
                        writer.put_char(character);
                    }
                });
                self.put("'");
            }
            Style::Double => self.double(text, indent, is_key),
            Style::Literal => self.literal(text, indent),
        }
    }

    fn folded(&mut self, text: &str, indent: usize, is_key: bool, put: impl Fn(&mut Writer, char)) {
        let mut was_space = false;
        let mut rest = text.chars().peekable();
        while let Some(character) = rest.next() {
            let is_last = rest.peek().is_none();
            let is_before_space = rest.peek() == Some(&' ');
            let folds = !is_key && !was_space && self.column > WIDTH && !is_last && !is_before_space;
            if character == ' ' && folds {
                self.indent(indent + 2);
            } else {
                put(self, character);
            }
            was_space = character == ' ';
        }
    }

    fn double(&mut self, text: &str, indent: usize, is_key: bool) {
        self.put("\"");
        let mut was_space = false;
        let mut rest = text.chars().enumerate().peekable();
        while let Some((at, character)) = rest.next() {
            let next = rest.peek().map(|(_, next)| *next);
            if let Some(escaped) = escape(character) {
                self.put(&escaped);
                was_space = false;
            } else if character == ' ' {
                if !is_key && !was_space && self.column > WIDTH && at > 0 && next.is_some() {
                    self.indent(indent + 2);
                    if next == Some(' ') {
                        self.put("\\");
                    }
                } else {
                    self.put(" ");
                }
                was_space = true;
            } else {
                self.put_char(character);
                was_space = false;
            }
        }
        self.put("\"");
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.put("|");
        if text.starts_with([' ', '\n']) {
            self.put("2");
        }
        if !text.ends_with('\n') {
            self.put("-");
        } else if text == "\n" || text.ends_with("\n\n") {
            self.put("+");
        }
        self.line_end();
        for line in text.split_inclusive('\n') {
            let content = line.trim_end_matches('\n');
            if content.is_empty() {
                self.text.push('\n');
                self.column = 0;
            } else {
                self.indent(indent + 2);
                self.put(content);
                if line.ends_with('\n') {
                    self.line_end();
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// How a text can be written.
struct Form {
    allows_plain: bool,
    allows_single: bool,
    allows_block: bool,
}

impl Form {
    fn of(text: &str) -> Form {
        let is_break =
            |character: char| matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
        let mut is_indicator = text.starts_with("---") || text.starts_with("...");
        let (mut is_special, mut has_break, mut break_space, mut space_break) = (false, false, false, false);
        let mut before: Option<char> = None;
        let mut rest = text.chars().peekable();
        while let Some(character) = rest.next() {
            let is_followed_by_blank = rest.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
            let is_after_blank = before.is_none_or(|before| matches!(before, ' ' | '\t') || is_break(before));
            is_indicator |= match (character, before.is_none()) {
                (
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                    | '`',
                    true,
                ) => true,
                ('?' | ':' | '-', true) | (':', false) => is_followed_by_blank,
                ('#', false) => is_after_blank,
                _ => false,
            };
            is_special |= !is_printable(character);
            has_break |= is_break(character);
            break_space |= character == ' ' && before.is_some_and(is_break);
            space_break |= is_break(character) && before == Some(' ');
            before = Some(character);
        }
        let is_edge = |character: char| character == ' ' || is_break(character);
        let has_edge = text.starts_with(is_edge) || text.ends_with(is_edge);
        let is_odd = space_break || is_special;
        Form {
            allows_plain: !(is_indicator || has_edge || break_space || has_break || is_odd),
            allows_single: !(break_space || is_odd),
            allows_block: !(text.ends_with(' ') || is_odd || text.is_empty()),
        }
    }
}

fn is_printable(character: char) -> bool {
    matches!(
        character,
        '\n' | '\u{20}'..='\u{7e}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}'
    )
}

fn escape(character: char) -> Option<String> {
    let short = match character {
        '\0' => "\\0",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\t' => "\\t",
        '\n' => "\\n",
        '\u{b}' => "\\v",
        '\u{c}' => "\\f",
        '\r' => "\\r",
        '\u{1b}' => "\\e",
        '"' => "\\\"",
        '\\' => "\\\\",
        '\u{85}' => "\\N",
        '\u{a0}' => return None,
        '\u{2028}' => "\\L",
        '\u{2029}' => "\\P",
        other if is_printable(other) => return None,
        other => {
            let number = u32::from(other);
            return Some(match number {
                0..=0xff => format!("\\x{number:02X}"),
                0x100..=0xffff => format!("\\u{number:04X}"),
                _ => format!("\\U{number:08X}"),
            });
        }
    };
    Some(short.to_owned())
}

#[expect(clippy::expect_used, reason = "the patterns are constants")]
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    let integer = r"[-+]?(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|[0-9]+)";
    let float = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?";
    let base60 = r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?";
    let date = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}";
    let time = r"([Tt]| )[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})?";
    Regex::new(&format!("^({integer}|{float}|{base60}|{date}({time})?)$")).expect("a pattern")
});

/// Whether a text without quotes is read as that text, and not as a number, a time or one of the words of YAML.
fn reads_as_text(text: &str) -> bool {
    const WORDS: [&str; 38] = [
        "", "~", "null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE", "y", "Y", "yes",
        "Yes", "YES", "n", "N", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF", ".nan", ".NaN",
        ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf",
    ];
    if WORDS.contains(&text) || text == "-.INF" {
        return false;
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.')) {
        return true;
    }
    !NUMBER.is_match(text) && !NUMBER.is_match(&text.replace('_', ""))
}

/// A number as Go writes it: the shortest digits, with an exponent where it is large or small.
fn go_float(number: f64) -> String {
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..21).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// The order of keys: letters after everything else, and numbers by their value.
fn natural_order(a: &str, b: &str) -> Ordering {
    let (left, right): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let differs = left.iter().zip(&right).position(|(a, b)| a != b);
    let Some(at) = differs else { return left.len().cmp(&right.len()) };
    let (Some(&x), Some(&y)) = (left.get(at), right.get(at)) else { return Ordering::Equal };
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => return x.cmp(&y),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // A zero within a number counts as a digit of it.
    let is_within = (x == '0' || y == '0')
        && left
            .get(..at)
            .unwrap_or_default()
            .iter()
            .rev()
            .take_while(|c| c.is_ascii_digit())
            .any(|c| *c != '0');
    let number = |characters: &[char]| {
        let digits = characters.get(at..).unwrap_or_default().iter().take_while(|c| c.is_ascii_digit());
        digits.fold((u128::from(is_within), 0_usize), |(number, n), digit| {
            (number.saturating_mul(10).saturating_add(u128::from(digit.to_digit(10).unwrap_or(0))), n + 1)
        })
    };
    number(&left).cmp(&number(&right)).then(x.cmp(&y))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_plain_where_it_reads_as_text() {
        let value = json!({
            "f:data": {".": {}, "f:k": {}}, "empty": "", "yes": "yes", "n": "12", "time": "2020-01-01T00:00:00Z",
            "colon": "a: b", "hash": "a #b", "dash": "-", "quote": "'x'", "tab": "a\tb", "emoji": "\u{1f600}",
            "list": ["a", {"b": 1, "a": [true, null]}, [], ["x"]], "float": 1.5, "version": "1.2.3", "base60": "1:20",
            "a10": 1, "a9": 1, "lines": "a\nb\n", "open": "a\nb", "lead": " a",
        });
        expect![[r#"
            a9: 1
            a10: 1
            base60: "1:20"
            colon: 'a: b'
            dash: '-'
            emoji: "\U0001F600"
            empty: ""
            f:data:
              .: {}
              f:k: {}
            float: 1.5
            hash: 'a #b'
            lead: ' a'
            lines: |
              a
              b
            list:
            - a
            - a:
              - true
              - null
              b: 1
            - []
            - - x
            "n": "12"
            open: |-
              a
              b
            quote: '''x'''
            tab: "a\tb"
            time: "2020-01-01T00:00:00Z"
            version: 1.2.3
            "yes": "yes"
        "#]]
        .assert_eq(&write(&value));
    }

    #[test]
    fn long_lines_are_folded_at_spaces() {
        let message =
            "only the following media types are accepted: application/json;stream=watch, application/x";
        expect![[r#"
            items:
            - message: 'only the following media types are accepted: application/json;stream=watch,
                application/x'
            message: 'only the following media types are accepted: application/json;stream=watch,
              application/x'
        "#]]
        .assert_eq(&write(&json!({"message": message, "items": [{"message": message}]})));
    }

    #[test]
    fn plain_documents_are_written_too() {
        for (value, text) in
            [(json!({}), "{}\n"), (json!([]), "[]\n"), (json!("a"), "a\n"), (json!([1]), "- 1\n")]
        {
            assert_eq!(write(&value), text);
        }
    }
}
