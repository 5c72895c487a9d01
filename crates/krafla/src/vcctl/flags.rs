//! Flags as Volcano's tools take them. Pure.
//!
//! Scripts rely on details that the parser of krafla's own flags reads otherwise: `-n` has another meaning in each family of
//! tools, the last of two equal flags counts, `_` may stand for `-`, surplus words are ignored, and a switch takes a value
//! only after `=`.

use std::collections::BTreeMap;

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Switch,
    Int,
    Int32,
    Level,
    Duration,
    Modules,
}

impl Type {
    /// The word for the value in help texts.
    pub(super) fn name(self) -> &'static str {
        match self {
            Type::Text => "string",
            Type::Switch => "",
            Type::Int => "int",
            Type::Int32 => "int32",
            Type::Level => "Level",
            Type::Duration => "duration",
            Type::Modules => "moduleSpec",
        }
    }

    /// Whether a value can be used, and why not.
    fn check(self, value: &str) -> Result<(), &'static str> {
        match self {
            Type::Text | Type::Modules => Ok(()),
            Type::Switch => switch(value).map(drop).ok_or("must be true or false"),
            Type::Int => integer(value).map(drop),
            Type::Int32 | Type::Level => {
                integer(value).and_then(|number| i32::try_from(number).map(drop).map_err(|_| OUT_OF_RANGE))
            }
            Type::Duration => {
                value.parse::<krafla_api::GoDuration>().map(drop).map_err(|_| "must be a duration such as 5s")
            }
        }
    }
}

const OUT_OF_RANGE: &str = "value out of range";

/// A flag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flag {
    pub(super) name: &'static str,
    pub(super) short: Option<char>,
    pub(super) takes: Type,
    /// The value where none is given.
    pub(super) default: &'static str,
    /// The variable that gives the default, unless it is empty.
    pub(super) variable: &'static str,
    pub(super) about: &'static str,
}

impl Flag {
    pub(super) const fn text(name: &'static str, short: char, about: &'static str) -> Flag {
        Flag { name, short: Some(short), takes: Type::Text, default: "", variable: "", about }
    }

    pub(super) const fn of(self, takes: Type) -> Flag {
        Flag { takes, ..self }
    }

    pub(super) const fn or(self, default: &'static str) -> Flag {
        Flag { default, ..self }
    }

    pub(super) const fn or_variable(self, variable: &'static str) -> Flag {
        Flag { variable, ..self }
    }

    pub(super) const fn long_only(self) -> Flag {
        Flag { short: None, ..self }
    }

    /// The flag as messages name it: `-n, --name`.
    fn shown(&self) -> String {
        match self.short {
            Some(short) => format!("-{short}, --{}", self.name),
            None => format!("--{}", self.name),
        }
    }
}

/// The values of all flags of a command.
#[derive(Debug, Default)]
pub(super) struct Values {
    given: BTreeMap<&'static str, String>,
    defaults: BTreeMap<&'static str, String>,
}

impl Values {
    /// The value of a flag; empty for flags that the command does not have.
    pub(super) fn text(&self, name: &str) -> &str {
        self.given.get(name).or_else(|| self.defaults.get(name)).map_or("", String::as_str)
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        switch(self.text(name)) == Some(true)
    }

    /// The value of a flag for a whole number.
    pub(super) fn number(&self, name: &str) -> i64 {
        integer(self.text(name)).unwrap_or(0)
    }
}

/// What a command line comes to.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) values: Values,
    pub(super) wants_help: bool,
}

/// Reads the flags of a command. `variable` looks up the environment.
pub(super) fn parse(
    words: &[String],
    flags: &[Flag],
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Parsed, String> {
    let mut parsed = Parsed::default();
    for flag in flags {
        let set = variable(flag.variable).filter(|value| !flag.variable.is_empty() && !value.is_empty());
        parsed.values.defaults.insert(flag.name, set.unwrap_or_else(|| flag.default.to_owned()));
    }
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        }
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let flag = find_long(flags, name).ok_or_else(|| format!("unknown flag: --{name}"))?;
            let missing = || format!("flag needs an argument: --{name}");
            let value = match value {
                Some(value) => value,
                None if flag.takes == Type::Switch => "true",
                None => words.next().ok_or_else(missing)?,
            };
            parsed.take(flag, value)?;
        } else if word.len() > 1 && word.starts_with('-') {
            parsed.take_shorts(word, flags, &mut words)?;
        }
    }
    Ok(parsed)
}

/// Whether the value of a flag is the next word.
pub(super) fn takes_next_word(word: &str, flags: &[Flag]) -> bool {
    let takes_value = |flag: &Flag| flag.takes != Type::Switch;
    match word.strip_prefix("--") {
        Some(long) => find_long(flags, long).is_some_and(takes_value),
        None => {
            let mut letters = word.chars().skip(1);
            let flag = letters.next().and_then(|short| find_short(flags, short));
            letters.next().is_none() && flag.is_some_and(takes_value)
        }
    }
}

fn find_long<'a>(flags: &'a [Flag], name: &str) -> Option<&'a Flag> {
    let name = name.replace('_', "-");
    flags.iter().find(|flag| flag.name == name)
}

fn find_short(flags: &[Flag], short: char) -> Option<&Flag> {
    flags.iter().find(|flag| flag.short == Some(short))
}

impl Parsed {
    /// Short flags, several in one word perhaps: `-n x`, `-nx`, `-n=x`.
    fn take_shorts<'a>(
        &mut self,
        word: &str,
        flags: &[Flag],
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), String> {
        let mut letters = word.trim_start_matches('-').chars();
        while let Some(short) = letters.next() {
            let flag = find_short(flags, short)
                .ok_or_else(|| format!("unknown shorthand flag: '{short}' in {word}"))?;
            let tail = letters.as_str();
            match tail.strip_prefix('=') {
                Some(value) => return self.take(flag, value),
                None if flag.takes == Type::Switch => self.take(flag, "true")?,
                None if !tail.is_empty() => return self.take(flag, tail),
                None => {
                    let value =
                        rest.next().ok_or_else(|| format!("flag needs an argument: '{short}' in {word}"))?;
                    return self.take(flag, value);
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, flag: &Flag, value: &str) -> Result<(), String> {
        flag.takes
            .check(value)
            .map_err(|why| format!("invalid argument {value:?} for {:?} flag: {why}", flag.shown()))?;
        self.wants_help |= flag.name == "help" && switch(value) == Some(true);
        self.values.given.insert(flag.name, value.to_owned());
        Ok(())
    }
}

/// A truth value in any of the spellings that Go knows.
fn switch(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// A whole number as Go writes it: decimal, or with 0x, 0o, 0b or 0 before it, and `_` between digits.
fn integer(value: &str) -> Result<i64, &'static str> {
    const NO_NUMBER: &str = "must be a whole number";
    let (sign, digits) = match value.split_at_checked(1) {
        Some(("-", digits)) => ("-", digits),
        Some(("+", digits)) => ("", digits),
        _ => ("", value),
    };
    let lower = digits.to_ascii_lowercase();
    let prefixed = [("0x", 16), ("0b", 2), ("0o", 8), ("0", 8)].into_iter().find_map(|(prefix, radix)| {
        Some((lower.strip_prefix(prefix).filter(|rest| !rest.is_empty())?, radix))
    });
    let (digits, radix) = prefixed.unwrap_or((lower.as_str(), 10));
    let digits = if radix == 10 { digits.to_owned() } else { digits.replace('_', "") };
    if digits.is_empty() || digits.starts_with(['+', '-']) {
        return Err(NO_NUMBER);
    }
    i64::from_str_radix(&format!("{sign}{digits}"), radix).map_err(|error| match error.kind() {
        std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => OUT_OF_RANGE,
        _ => NO_NUMBER,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: [Flag; 5] = [
        Flag::text("name", 'N', ""),
        Flag::text("image", 'i', "").or("busybox").or_variable("IMAGE"),
        Flag::text("replicas", 'r', "").of(Type::Int).or("1"),
        Flag::text("weight", 'w', "").of(Type::Int32),
        Flag::text("all-namespaces", ' ', "").of(Type::Switch).long_only(),
    ];

    fn check(line: &str, expected: &str) {
        let words: Vec<String> = line.split(' ').map(|word| word.replace("''", "")).collect();
        let found = match parse(&words, &FLAGS, |name| (name == "IMAGE").then(|| "alpine".to_owned())) {
            Ok(parsed) => format!("{:?}", parsed.values.given),
            Err(error) => error,
        };
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn values_follow_or_are_joined_and_the_last_counts() {
        check("--name a -Nb", r#"{"name": "b"}"#);
        check("-N=c extra", r#"{"name": "c"}"#);
        check("--name ''", r#"{"name": ""}"#);
        check("--all_namespaces false", r#"{"all-namespaces": "true"}"#);
        check("--all-namespaces=false", r#"{"all-namespaces": "false"}"#);
        check("--name a -- --bogus", r#"{"name": "a"}"#);
        check("-w -1", r#"{"weight": "-1"}"#);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        check("--nam a", "unknown flag: --nam");
        check("-x", "unknown shorthand flag: 'x' in -x");
        check("--name", "flag needs an argument: --name");
        check("-N", "flag needs an argument: 'N' in -N");
        check("-r x", r#"invalid argument "x" for "-r, --replicas" flag: must be a whole number"#);
        check(
            "-w 2147483648",
            r#"invalid argument "2147483648" for "-w, --weight" flag: value out of range"#,
        );
        check(
            "--all-namespaces=maybe",
            r#"invalid argument "maybe" for "--all-namespaces" flag: must be true or false"#,
        );
    }

    #[test]
    fn defaults_are_of_the_variable_or_of_the_flag() {
        let parsed = parse(&[], &FLAGS, |name| (name == "IMAGE").then(|| "alpine".to_owned())).unwrap();
        assert_eq!((parsed.values.text("image"), parsed.values.number("replicas")), ("alpine", 1));
        let parsed = parse(&[], &FLAGS, |_| Some(String::new())).unwrap();
        assert_eq!(parsed.values.text("image"), "busybox");
    }

    #[test]
    fn whole_numbers_are_read_as_go_reads_them() {
        for (text, number) in
            [("0x10", 16), ("010", 8), ("0b11", 3), ("-3", -3), ("+4", 4), ("0", 0), ("0x1_0", 16)]
        {
            assert_eq!(integer(text), Ok(number), "{text}");
        }
        for text in ["", "1.5", "x", "--1", "0x", "1_0"] {
            assert!(integer(text).is_err(), "{text}");
        }
    }
}
