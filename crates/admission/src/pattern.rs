//! Regular expressions, judged as Go's `regexp` does: the patterns in manifests are written for it.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{Ast, Error, ErrorKind, RepetitionKind, RepetitionRange, Span, Visitor, visit};

/// The most repetitions that Go allows: `a{1000}`.
const REPEAT_MAX: u32 = 1000;

/// What is wrong with a pattern, in Go's words.
pub fn error(pattern: &str) -> Option<String> {
    let (what, part) = match Parser::new().parse(pattern) {
        Ok(ast) => visit(&ast, Repetitions { pattern, around: Vec::new() }).err()?,
        Err(error) => wording(pattern, &error)?,
    };
    Some(format!("error parsing regexp: {what}: `{part}`"))
}

/// Go's name for an error and the part of the pattern that it quotes; None for what Go takes literally.
fn wording<'p>(pattern: &'p str, error: &Error) -> Option<(&'static str, &'p str)> {
    let span = error.span();
    let part = text(pattern, span);
    let rest = pattern.get(span.start.offset..).unwrap_or_default();
    let through_end = |start: usize| pattern.get(start..span.end.offset).unwrap_or_default();
    // Flags and names are reported from their parenthesis on.
    let opened = pattern.get(..span.end.offset).and_then(|before| before.rfind("(?")).unwrap_or(0);
    Some(match error.kind() {
        ErrorKind::GroupUnclosed if pattern.ends_with("(?") => ("invalid or unsupported Perl syntax", rest),
        ErrorKind::GroupUnclosed => ("missing closing )", pattern),
        ErrorKind::GroupUnopened => ("unexpected )", pattern),
        ErrorKind::ClassUnclosed => ("missing closing ]", rest),
        ErrorKind::ClassRangeInvalid => ("invalid character class range", part),
        ErrorKind::RepetitionMissing if rest.starts_with('{') => return None,
        ErrorKind::RepetitionMissing => {
            ("missing argument to repetition operator", rest.get(..1).unwrap_or_default())
        }
        ErrorKind::RepetitionCountInvalid => ("invalid repeat count", part),
        ErrorKind::EscapeUnexpectedEof => ("trailing backslash at end of expression", ""),
        ErrorKind::UnsupportedLookAround if part.starts_with("(?<") => {
            ("invalid named capture", pattern.get(span.start.offset..).unwrap_or_default())
        }
        ErrorKind::UnsupportedLookAround
        | ErrorKind::FlagUnrecognized
        | ErrorKind::FlagUnexpectedEof
        | ErrorKind::FlagDanglingNegation
        | ErrorKind::FlagDuplicate { .. }
        | ErrorKind::FlagRepeatedNegation { .. } => {
            ("invalid or unsupported Perl syntax", through_end(opened))
        }
        ErrorKind::GroupNameEmpty => {
            ("invalid named capture", pattern.get(opened..=span.end.offset).unwrap_or_default())
        }
        ErrorKind::GroupNameUnexpectedEof => {
            ("invalid named capture", pattern.get(opened..).unwrap_or_default())
        }
        ErrorKind::EscapeUnrecognized
        | ErrorKind::EscapeHexEmpty
        | ErrorKind::EscapeHexInvalid
        | ErrorKind::EscapeHexInvalidDigit
        | ErrorKind::UnsupportedBackreference
        | ErrorKind::UnicodeClassInvalid
        | ErrorKind::ClassEscapeInvalid
        | ErrorKind::ClassRangeLiteral => ("invalid escape sequence", part),
        // Go reads a brace that repeats nothing as itself, and takes names that are used twice or start with a digit.
        ErrorKind::RepetitionCountUnclosed
        | ErrorKind::RepetitionCountDecimalEmpty
        | ErrorKind::DecimalEmpty
        | ErrorKind::GroupNameDuplicate { .. }
        | ErrorKind::GroupNameInvalid => return None,
        _ => ("invalid regular expression", pattern),
    })
}

fn text<'p>(pattern: &'p str, span: &Span) -> &'p str {
    pattern.get(span.start.offset..span.end.offset).unwrap_or_default()
}

/// Finds the repetitions that Go refuses and `regex_syntax` does not: of a repetition, and of more than [`REPEAT_MAX`].
struct Repetitions<'p> {
    pattern: &'p str,
    /// The operators of the repetitions around the present place, if they are directly around it.
    around: Vec<Option<Span>>,
}

impl<'p> Visitor for Repetitions<'p> {
    type Output = ();
    type Err = (&'static str, &'p str);

    fn finish(self) -> Result<(), Self::Err> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Self::Err> {
        let Ast::Repetition(repetition) = ast else {
            self.around.push(None);
            return Ok(());
        };
        let operator = &repetition.op.span;
        if let Some(Some(outer)) = self.around.last() {
            let both = Span::new(operator.start, outer.end);
            return Err(("invalid nested repetition operator", text(self.pattern, &both)));
        }
        if let RepetitionKind::Range(
            RepetitionRange::Exactly(count)
            | RepetitionRange::AtLeast(count)
            | RepetitionRange::Bounded(_, count),
        ) = repetition.op.kind
            && count > REPEAT_MAX
        {
            return Err(("invalid repeat count", text(self.pattern, operator)));
        }
        self.around.push(Some(*operator));
        Ok(())
    }

    fn visit_post(&mut self, _: &Ast) -> Result<(), Self::Err> {
        self.around.pop();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of Go 1.26's `regexp.Compile`, without the words in front.
    #[test]
    fn patterns_are_judged_as_go_does() {
        let mut differences = Vec::new();
        for (pattern, expected) in [
            ("(", "missing closing ): `(`"),
            ("a(b", "missing closing ): `a(b`"),
            ("[", "missing closing ]: `[`"),
            ("a[b", "missing closing ]: `[b`"),
            ("a[z-a]", "invalid character class range: `z-a`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("a|*", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a*?", ""),
            ("a*?*", "invalid nested repetition operator: `*?*`"),
            ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("(?=a)b", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
            ("a(?<=b)c", "invalid named capture: `(?<=b)c`"),
            (")", "unexpected ): `)`"),
            ("a)b", "unexpected ): `a)b`"),
            ("\\", "trailing backslash at end of expression: ``"),
            ("\\q", "invalid escape sequence: `\\q`"),
            ("\\1", "invalid escape sequence: `\\1`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{3,2}", "invalid repeat count: `{3,2}`"),
            ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
            ("(?z)", "invalid or unsupported Perl syntax: `(?z`"),
            ("(?P<n", "invalid named capture: `(?P<n`"),
            ("(?P<n>a)(?P<n>b)", ""),
            ("(?P<1>a)", ""),
            ("+a", "missing argument to repetition operator: `+`"),
            ("(?", "invalid or unsupported Perl syntax: `(?`"),
            ("x{2", ""),
            ("a{,2}", ""),
            ("^node-[0-9]+$", ""),
            ("\\pN", ""),
            ("(a*)*", ""),
            ("(?P<>a)", "invalid named capture: `(?P<>`"),
            ("[\\q]", "invalid escape sequence: `\\q`"),
        ] {
            let expected = (!expected.is_empty()).then(|| format!("error parsing regexp: {expected}"));
            let found = error(pattern);
            if found != expected {
                differences.push((pattern, found, expected));
            }
        }
        assert_eq!(differences, Vec::new());
    }
}
