//! The source as words.

use crate::{CompileError, Fault};

/// A word, and where it starts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub at: usize,
    pub word: Word,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Word {
    Name(String),
    /// A field name between backticks, which may be anything.
    Quoted(String),
    /// Digits, decimal or after `0x`; the parser knows the sign.
    Int(String),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
    /// Operators and brackets.
    Mark(&'static str),
    End,
}

/// Longer ones first: the first that fits is taken.
const MARKS: [&str; 27] = [
    "==", "!=", "<=", ">=", "&&", "||", ".?", "[?", "<", ">", "!", "?", ":", ",", ".", "(", ")", "[", "]",
    "{", "}", "+", "-", "*", "/", "%", "=",
];

/// Reads the words of a source; the last one is its end.
pub(crate) fn words(source: &str) -> Result<Vec<Token>, CompileError> {
    let mut lexer = Lexer { source, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks();
        let at = lexer.at;
        let word = lexer.word().map_err(|why| CompileError::one(source, Fault::syntax(at, why)))?;
        let is_end = word == Word::End;
        tokens.push(Token { at, word });
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn take(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|character| !fits(character)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        loop {
            self.take_while(|character| matches!(character, ' ' | '\t' | '\n' | '\r' | '\u{c}'));
            if !self.rest().starts_with("//") {
                return;
            }
            self.take_while(|character| character != '\n');
        }
    }

    fn word(&mut self) -> Result<Word, String> {
        let Some(first) = self.peek() else { return Ok(Word::End) };
        if let Some(text) = self.text()? {
            return Ok(text);
        }
        if first.is_ascii_digit()
            || (first == '.' && self.rest().chars().nth(1).is_some_and(|c| c.is_ascii_digit()))
        {
            return self.number();
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let name = self.take_while(|character| character.is_ascii_alphanumeric() || character == '_');
            return Ok(Word::Name(name.to_owned()));
        }
        if self.take("`") {
            let name = self.take_while(|character| character != '`' && character != '\n');
            return if self.take("`") { Ok(Word::Quoted(name.to_owned())) } else { Err(unknown('`')) };
        }
        MARKS.into_iter().find(|mark| self.take(mark)).map(Word::Mark).ok_or_else(|| unknown(first))
    }

    fn number(&mut self) -> Result<Word, String> {
        let start = self.at;
        if self.take("0x") || self.take("0X") {
            self.take_while(|character| character.is_ascii_hexdigit());
        } else {
            self.take_while(|character| character.is_ascii_digit());
            let is_fraction = self.peek() == Some('.')
                && self.rest().chars().nth(1).is_some_and(|character| character.is_ascii_digit());
            if is_fraction {
                self.next();
                self.take_while(|character| character.is_ascii_digit());
            }
            let is_power = matches!(self.peek(), Some('e' | 'E'));
            if is_power {
                self.next();
                if matches!(self.peek(), Some('+' | '-')) {
                    self.next();
                }
                self.take_while(|character| character.is_ascii_digit());
            }
            let text = self.source.get(start..self.at).unwrap_or_default();
            if is_fraction || is_power {
                let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
                return number.map(Word::Double).ok_or_else(|| "invalid double literal".to_owned());
            }
        }
        let text = self.source.get(start..self.at).unwrap_or_default();
        if self.take("u") || self.take("U") {
            let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => text.parse(),
            };
            return number.map(Word::Uint).map_err(|_| "invalid uint literal".to_owned());
        }
        Ok(Word::Int(text.to_owned()))
    }

    /// A text or bytes, if one starts here: quotes, or letters that change their meaning and then quotes.
    fn text(&mut self) -> Result<Option<Word>, String> {
        let n_letters = self.rest().bytes().take(2).take_while(|byte| b"rRbB".contains(byte)).count();
        let is_quoted = self.rest().get(n_letters..).is_some_and(|rest| rest.starts_with(['"', '\'']));
        let Some(prefix) = self.rest().get(..n_letters).filter(|_| is_quoted) else { return Ok(None) };
        let prefix = prefix.to_ascii_lowercase();
        let (is_raw, is_bytes) = (prefix.contains('r'), prefix.contains('b'));
        if !matches!(prefix.as_str(), "" | "r" | "b" | "rb" | "br") {
            return Ok(None);
        }
        self.at += prefix.len();
        let quote = match self.rest() {
            rest if rest.starts_with("\"\"\"") => "\"\"\"",
            rest if rest.starts_with("'''") => "'''",
            rest if rest.starts_with('"') => "\"",
            _ => "'",
        };
        self.at += quote.len();
        let mut bytes = Vec::new();
        while !self.take(quote) {
            let character = self.next().ok_or_else(|| unknown_text(quote))?;
            match character {
                '\n' | '\r' if quote.len() == 1 => return Err(unknown_text(quote)),
                '\\' if !is_raw => self.escape(is_bytes, &mut bytes)?,
                other => bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if is_bytes {
            return Ok(Some(Word::Bytes(bytes)));
        }
        String::from_utf8(bytes)
            .map(|text| Some(Word::String(text)))
            .map_err(|_| "invalid string literal".to_owned())
    }

    fn escape(&mut self, is_bytes: bool, into: &mut Vec<u8>) -> Result<(), String> {
        let invalid = || "invalid escape sequence in a string".to_owned();
        let letter = self.next().ok_or_else(invalid)?;
        let plain = match letter {
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' | '\'' | '"' | '`' | '?' => u8::try_from(letter).map_err(|_| invalid())?,
            'x' | 'X' => return self.code(2, 16, is_bytes, into),
            'u' if !is_bytes => return self.code(4, 16, is_bytes, into),
            'U' if !is_bytes => return self.code(8, 16, is_bytes, into),
            '0'..='3' => {
                self.at -= 1;
                return self.code(3, 8, is_bytes, into);
            }
            _ => return Err(invalid()),
        };
        into.push(plain);
        Ok(())
    }

    /// A character by its number; in bytes, one byte by its value.
    fn code(
        &mut self,
        n_digits: usize,
        radix: u32,
        is_bytes: bool,
        into: &mut Vec<u8>,
    ) -> Result<(), String> {
        let invalid = || "invalid escape sequence in a string".to_owned();
        let digits = self.rest().get(..n_digits).ok_or_else(invalid)?;
        let number = u32::from_str_radix(digits, radix).map_err(|_| invalid())?;
        self.at += n_digits;
        if is_bytes {
            into.push(u8::try_from(number).map_err(|_| invalid())?);
        } else {
            let character = char::from_u32(number).ok_or_else(invalid)?;
            into.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(())
    }
}

fn unknown(character: char) -> String {
    format!("token recognition error at: '{character}'")
}

fn unknown_text(quote: &str) -> String {
    format!("token recognition error at: '{quote}', the text has no end")
}
