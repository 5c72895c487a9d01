//! Sentences with named gaps. One text both writes a reason and reads it back.

use std::fmt;

/// How many ways to fill the gaps of one sentence are tried. A long message of another program must not cost much.
const TRIES_MAX: usize = 2_000;

/// What stands in a gap.
pub(crate) trait Gap: Sized {
    /// The text in the sentence.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// The value of a text, if it is one.
    fn read(text: &str) -> Option<Self>;
}

/// Shows a gap within `write!`.
pub(crate) struct Shown<'a, T>(pub(crate) &'a T);

impl<T: Gap> fmt::Display for Shown<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f)
    }
}

/// The name of an object, a resource or an amount: one word.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is_name(text: &str) -> bool {
        let is_part = |letter: char| !letter.is_whitespace() && !"\",:;()[]{}'".contains(letter);
        !text.is_empty() && text.chars().all(is_part)
    }
}

impl<T: Into<String>> From<T> for Name {
    fn from(text: T) -> Name {
        Name(text.into())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Gap for Name {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }

    fn read(text: &str) -> Option<Name> {
        Name::is_name(text).then(|| Name(text.to_owned()))
    }
}

impl Gap for String {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }

    fn read(text: &str) -> Option<String> {
        (!text.is_empty()).then(|| text.to_owned())
    }
}

impl Gap for u32 {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }

    fn read(text: &str) -> Option<u32> {
        text.bytes().all(|letter| letter.is_ascii_digit()).then(|| text.parse().ok())?
    }
}

/// Names with commas between them.
impl Gap for Vec<Name> {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(self.iter().map(Shown), f)
    }

    fn read(text: &str) -> Option<Vec<Name>> {
        text.split(", ").map(Name::read).collect()
    }
}

/// Counts with what is counted: `3 Pending, 1 Running`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(pub Vec<(u32, String)>);

impl Gap for Tally {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no pods");
        }
        list(self.0.iter().map(|(n, what)| format!("{n} {what}")), f)
    }

    fn read(text: &str) -> Option<Tally> {
        if text == "no pods" {
            return Some(Tally::default());
        }
        let is_plain = |(_, what): &(u32, String)| !what.contains(';');
        text.split(", ").map(|item| counted(item).filter(is_plain)).collect::<Option<_>>().map(Tally)
    }
}

/// `3 Pending`.
pub(crate) fn counted(text: &str) -> Option<(u32, String)> {
    let (n, what) = text.split_once(' ')?;
    Some((u32::read(n)?, String::read(what)?))
}

/// Writes items with commas between them.
pub(crate) fn list(
    items: impl Iterator<Item = impl fmt::Display>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    for (index, item) in items.enumerate() {
        write!(f, "{}{item}", if index == 0 { "" } else { ", " })?;
    }
    Ok(())
}

enum Piece<'t> {
    Words(String),
    Gap(&'t str),
}

fn pieces(template: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut words, mut rest) = (Vec::new(), String::new(), template);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, found) = rest.split_at(at);
        words += before;
        if let Some(after) = found.strip_prefix("{{") {
            words.push('{');
            rest = after;
        } else if let Some(after) = found.strip_prefix("}}") {
            words.push('}');
            rest = after;
        } else {
            let gap = found.trim_start_matches('{');
            let (name, after) = gap.split_once('}').unwrap_or((gap, ""));
            if !words.is_empty() {
                pieces.push(Piece::Words(std::mem::take(&mut words)));
            }
            pieces.push(Piece::Gap(name));
            rest = after;
        }
    }
    words += rest;
    if !words.is_empty() {
        pieces.push(Piece::Words(words));
    }
    pieces
}

/// What stands in the gaps of a sentence, by their names.
pub(crate) type Filled<'s> = Vec<(&'s str, &'s str)>;

/// The text of one gap.
pub(crate) fn gap<'s>(filled: &Filled<'s>, name: &str) -> Option<&'s str> {
    filled.iter().find(|(of, _)| *of == name).map(|(_, text)| *text)
}

/// Reads a text by a template: the first way to fill its gaps of which `build` makes a value.
pub(crate) fn read<'s, T>(
    template: &'s str,
    text: &'s str,
    build: &dyn Fn(&Filled<'s>) -> Option<T>,
) -> Option<T> {
    let pieces = pieces(template);
    fill(&pieces, text, &mut Vec::new(), build, &mut TRIES_MAX.clone())
}

fn fill<'s, T>(
    pieces: &[Piece<'s>],
    text: &'s str,
    filled: &mut Filled<'s>,
    build: &dyn Fn(&Filled<'s>) -> Option<T>,
    tries: &mut usize,
) -> Option<T> {
    match pieces {
        [] => text.is_empty().then(|| build(filled))?,
        [Piece::Words(words), rest @ ..] => {
            fill(rest, text.strip_prefix(words.as_str())?, filled, build, tries)
        }
        [Piece::Gap(name)] => {
            filled.push((name, text));
            let built = build(filled);
            filled.pop();
            built
        }
        [Piece::Gap(name), rest @ ..] => {
            let ends: Vec<usize> = match rest.first() {
                Some(Piece::Words(words)) => text.match_indices(words.as_str()).map(|(at, _)| at).collect(),
                // The first of two gaps takes as much as it can.
                _ => (0..=text.len()).rev().filter(|at| text.is_char_boundary(*at)).collect(),
            };
            for end in ends {
                *tries = tries.checked_sub(1)?;
                let (value, after) = text.split_at_checked(end)?;
                filled.push((name, value));
                let built = fill(rest, after, filled, build, tries);
                filled.pop();
                if built.is_some() {
                    return built;
                }
            }
            None
        }
    }
}

/// An enum of which each variant is a sentence. A gap `{name}` of the sentence is the field of that name. Generates the
/// enum, `Display`, `parse_sentence`, `word` (the variant's name), and in tests a strategy for every variant.
macro_rules! sentences {
    (
        $(#[$about:meta])*
        pub enum $enum:ident {
            $( $(#[$doc:meta])* $variant:ident $({ $($field:ident : $type:ty),* $(,)? })? = $template:literal ),* $(,)?
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the sentence of a variant says what its fields are")]
        pub enum $enum {
            $( $(#[$doc])* #[doc = concat!("\n\n`", $template, "`")] $variant $({ $($field: $type),* })? ),*
        }

        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $( $enum::$variant $({ $($field),* })? =>
                        write!(f, $template $(, $($field = $crate::sentence::Shown($field)),* )?) ),*
                }
            }
        }

        impl $enum {
            /// The name of the variant: a word for programs.
            pub fn word(&self) -> &'static str {
                match self { $( $enum::$variant $({ $($field: _),* })? => stringify!($variant) ),* }
            }

            /// Reads one of the sentences.
            fn parse_sentence(text: &str) -> Option<$enum> {
                const READERS: &[fn(&str) -> Option<$enum>] = &[ $(
                    |text| {
                        #[allow(unused_variables, reason = "a sentence without gaps has no fields")]
                        $crate::sentence::read($template, text, &|filled| {
                            Some($enum::$variant $({ $(
                                $field: <$type as $crate::sentence::Gap>::read(
                                    $crate::sentence::gap(filled, stringify!($field))?,
                                )?
                            ),* })?)
                        })
                    }
                ),* ];
                READERS.iter().find_map(|read| read(text))
            }

            /// One strategy for each variant.
            #[cfg(test)]
            pub(crate) fn strategies() -> Vec<(&'static str, proptest::strategy::BoxedStrategy<$enum>)> {
                use proptest::strategy::Strategy;
                vec![ $( (
                    stringify!($variant),
                    ($($(<$type as $crate::tests::Sample>::sample(),)*)? proptest::strategy::Just(()),)
                        .prop_map(|($($($field,)*)? _,)| $enum::$variant $({ $($field),* })?)
                        .boxed(),
                ) ),* ]
            }
        }
    };
}

pub(crate) use sentences;
