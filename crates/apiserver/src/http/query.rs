//! Query parameters.

use crate::status::Status;

/// The parameters of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what follows the question mark. What is not well escaped stands for itself.
    pub(super) fn parse(text: &str) -> Query {
        let decode = |part: &str| {
            let spaced = part.replace('+', " ");
            percent_decode(&spaced).unwrap_or(spaced)
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
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
        self.get(name).is_some_and(|value| !matches!(value, "false" | "0"))
    }

    /// A whole number.
    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let bad = |_| Status::bad_request(format!("strconv.ParseInt: parsing \"{value}\": invalid syntax"));
        value.parse().map(Some).map_err(bad)
    }
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
        let query = Query::parse("a=1&b=x%3Dy+z&a=2&watch&c=%zz");
        assert_eq!(query.get("a"), Some("1"));
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(query.get("b"), Some("x=y z"));
        assert_eq!(query.get("c"), Some("%zz"));
        assert!(query.flag("watch"));
        assert!(!query.flag("none"));
        assert_eq!(query.number("a"), Ok(Some(1)));
        assert_eq!(
            query.number("watch").unwrap_err().message,
            "strconv.ParseInt: parsing \"\": invalid syntax"
        );
    }
}
