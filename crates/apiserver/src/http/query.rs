//! Query parameters.

use std::num::{IntErrorKind, ParseIntError};

use krafla_schema::json::go_quote;

use super::duration;
use crate::status::Status;

/// The parameters of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what follows the question mark. A pair that is not well escaped, or that has a semicolon, is left out.
    pub(super) fn parse(text: &str) -> Query {
        let decode = |part: &str| percent_decode(&part.replace('+', " "));
        let pairs = text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        let pairs = pairs.filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name)?, decode(value)?))
        });
        Query(pairs.collect())
    }

    /// The first value of a parameter.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(candidate, _)| candidate == name).map(|(_, value)| value.as_str())
    }

    /// The first value of a parameter; empty if there is none.
    pub(super) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// All values of a parameter.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(candidate, _)| candidate == name).map(|(_, value)| value.as_str())
    }

    /// Whether a parameter is there and does not say no.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.choice(name).unwrap_or(false)
    }

    /// What a parameter says, if it is there. Everything but two words means yes.
    pub(super) fn choice(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// A whole number.
    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let bad = |error: ParseIntError| Status::bad_request(not_a_number("ParseInt", value, error.kind()));
        value.parse().map(Some).map_err(bad)
    }

    /// Refuses a `timeout` that is not a duration. How long it is makes no difference: every answer comes at once.
    pub(super) fn check_timeout(&self) -> Result<(), Status> {
        match self.text("timeout") {
            "" => Ok(()),
            text => duration::check(text).map_err(|why| {
                Status::bad_request(format!("invalid timeout specified in the request URL - {why}"))
            }),
        }
    }
}

/// Why a text is not a whole number, in Go's words.
pub(super) fn not_a_number(function: &str, text: &str, error: &IntErrorKind) -> String {
    let why = match error {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    format!("strconv.{function}: parsing {}: {why}", go_quote(text))
}

/// Replaces `%41` by `A`; `None` if something else follows a percent sign, or if the result is not text.
pub(super) fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_unescaped_and_may_repeat() {
        let query =
            Query::parse("a=1&b=x%3Dy+z&a=2&watch&c=%zz&d=1;2&e=&no=FALSE&large=99999999999999999999");
        assert_eq!(query.get("a"), Some("1"));
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(query.get("b"), Some("x=y z"));
        assert_eq!((query.get("c"), query.get("d"), query.get("e")), (None, None, Some("")));
        assert!(query.flag("watch"));
        assert!(!query.flag("none"));
        assert_eq!(
            (query.choice("none"), query.choice("no"), query.choice("e")),
            (None, Some(false), Some(true))
        );
        assert_eq!(
            query.number("large").unwrap_err().message,
            "strconv.ParseInt: parsing \"99999999999999999999\": value out of range"
        );
        assert_eq!(query.number("a"), Ok(Some(1)));
        assert_eq!(
            query.number("watch").unwrap_err().message,
            "strconv.ParseInt: parsing \"\": invalid syntax"
        );
    }
}
