//! Arguments of plugins, in the syntax of Go's `flag` package.
//!
//! ```text
//!   -x  --x            a switch that is turned on
//!   -x=v  --x=v        a value; a switch takes true or false this way only
//!   -x v  --x v        a value
//!   --                 the end
//! ```
//!
//! Reading stops at the first argument that can not be understood. What was read before it holds, the rest keeps its
//! default: a mistake in an argument never fails the job, but somebody should hear of it.

/// Where the value of a flag goes.
#[derive(Debug)]
pub(super) enum Flag<'a> {
    /// On or off.
    Switch(&'a mut bool),
    /// Any text.
    Text(&'a mut String),
    /// A whole number.
    Number(&'a mut i64),
    /// A port. One out of range is as good as none.
    Port(&'a mut u16),
}

/// The flags of one plugin by name.
pub(super) type Flags<'a> = Vec<(&'static str, Flag<'a>)>;

/// Reads the arguments into the flags, and says what was wrong with them. Values are not repeated unless they can not be
/// secret: a private key may be among them.
pub(super) fn parse(arguments: &[String], mut flags: Flags<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut unread = arguments;
    while let Some((argument, after)) = unread.split_first() {
        let position = arguments.len().saturating_sub(after.len());
        match read(argument, after, &mut flags) {
            Ok(Read { n_values, remark }) => {
                remarks.extend(remark);
                unread = after.get(n_values..).unwrap_or_default();
            }
            Err(problem) => {
                remarks.push(format!("argument {position} {problem}; it and all after it are ignored"));
                break;
            }
        }
    }
    remarks
}

/// What came of one flag.
struct Read {
    /// How many arguments after it were its value.
    n_values: usize,
    /// What somebody should hear.
    remark: Option<String>,
}

fn read(argument: &str, after: &[String], flags: &mut Flags<'_>) -> Result<Read, String> {
    let (name, value) = split(argument)?;
    let Some((_, flag)) = flags.iter_mut().find(|(known, _)| *known == name) else {
        return Err(format!("names the unknown flag --{}", shortened(name)));
    };
    let (text, n_values) = match (value, &flag, after.first()) {
        (Some(value), _, _) => (value, 0),
        (None, Flag::Switch(_), _) => ("true", 0),
        (None, _, Some(next)) => (next.as_str(), 1),
        (None, _, None) => return Err(format!("needs a value: --{name}=<value>")),
    };
    match flag.set(text) {
        Ok(remark) => Ok(Read { n_values, remark: remark.map(|remark| format!("--{name}: {remark}")) }),
        Err(wanted) => Err(format!("gives --{name} the value {:?}, which is not {wanted}", shortened(text))),
    }
}

/// The name of a flag, and its value if one stands behind an equals sign.
fn split(argument: &str) -> Result<(&str, Option<&str>), String> {
    let dashless = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
    let Some(flag) = dashless.filter(|_| argument != "-") else {
        return Err("is no flag (flags start with a dash)".to_owned());
    };
    if flag.is_empty() {
        return Err("ends the flags".to_owned());
    }
    if flag.starts_with(['-', '=']) {
        return Err("is no flag (a name is missing after the dashes)".to_owned());
    }
    Ok(match flag.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (flag, None),
    })
}

impl Flag<'_> {
    /// Sets the flag, or says what the text should have been.
    fn set(&mut self, text: &str) -> Result<Option<String>, &'static str> {
        match self {
            Flag::Switch(switch) => **switch = go_bool(text).ok_or("true or false")?,
            Flag::Text(value) => text.clone_into(value),
            Flag::Number(value) => **value = go_integer(text).ok_or("a whole number")?,
            Flag::Port(port) => {
                let number = go_integer(text).ok_or("a whole number")?;
                match u16::try_from(number) {
                    Ok(number) if number > 0 => **port = number,
                    _ => {
                        return Ok(Some(format!("{number} is no port (1 to 65535); {port} is used instead")));
                    }
                }
            }
        }
        Ok(None)
    }
}

/// Go's `strconv.ParseBool`.
fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Go's `strconv.ParseInt` with base 0: the prefix says the base.
fn go_integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let prefixes = [("0x", 16), ("0X", 16), ("0o", 8), ("0O", 8), ("0b", 2), ("0B", 2), ("0", 8)];
    let with_prefix =
        prefixes.into_iter().find_map(|(prefix, base)| Some((digits.strip_prefix(prefix)?, base)));
    let (digits, base) = with_prefix.filter(|(digits, _)| !digits.is_empty()).unwrap_or((digits, 10));
    if !digits.starts_with(|first: char| first.is_digit(base)) {
        return None;
    }
    i64::from_str_radix(&format!("{sign}{digits}"), base).ok()
}

/// As much of a text as a message should repeat.
fn shortened(text: &str) -> &str {
    const SHOWN_MAX: usize = 40;
    text.char_indices().nth(SHOWN_MAX).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// Arguments are separated by `|`.
    fn check(arguments: &str, expected: Expect) {
        let arguments: Vec<String> =
            arguments.split('|').filter(|text| !text.is_empty()).map(str::to_owned).collect();
        let (mut switch, mut text, mut number, mut port) = (false, "default".to_owned(), 5, 22);
        let flags = vec![
            ("switch", Flag::Switch(&mut switch)),
            ("text", Flag::Text(&mut text)),
            ("number", Flag::Number(&mut number)),
            ("port", Flag::Port(&mut port)),
        ];
        let remarks: String =
            parse(&arguments, flags).into_iter().map(|remark| format!("\n{remark}")).collect();
        expected.assert_eq(&format!("{switch} {text:?} {number} {port}{remarks}"));
    }

    #[test]
    fn go_s_notations_are_understood() {
        check("", expect![[r#"false "default" 5 22"#]]);
        check("--switch|-text=a|--number=7|-port=80", expect![[r#"true "a" 7 80"#]]);
        check("--text|a b|--switch=T|-number|-3", expect![[r#"true "a b" -3 22"#]]);
        check("--text=|--number=0x10|--port=010", expect![[r#"false "" 16 8"#]]);
        check("--text=a=b|--text=-c", expect![[r#"false "-c" 5 22"#]]);
        check("--switch|--switch=false|--number=+0", expect![[r#"false "default" 0 22"#]]);
    }

    #[test]
    fn reading_stops_at_what_is_not_understood_and_keeps_what_was_read() {
        check(
            "9090|--switch",
            expect![[r#"
            false "default" 5 22
            argument 1 is no flag (flags start with a dash); it and all after it are ignored"#]],
        );
        check(
            "--text=a|--nope=1|--switch",
            expect![[r#"
            false "a" 5 22
            argument 2 names the unknown flag --nope; it and all after it are ignored"#]],
        );
        check(
            "--switch|true|--text=a",
            expect![[r#"
            true "default" 5 22
            argument 2 is no flag (flags start with a dash); it and all after it are ignored"#]],
        );
        check(
            "--text=a|--|--switch",
            expect![[r#"
            false "a" 5 22
            argument 2 ends the flags; it and all after it are ignored"#]],
        );
        check(
            "---text=a",
            expect![[r#"
            false "default" 5 22
            argument 1 is no flag (a name is missing after the dashes); it and all after it are ignored"#]],
        );
        check(
            "-",
            expect![[r#"
            false "default" 5 22
            argument 1 is no flag (flags start with a dash); it and all after it are ignored"#]],
        );
        check(
            "--switch|--text",
            expect![[r#"
            true "default" 5 22
            argument 2 needs a value: --text=<value>; it and all after it are ignored"#]],
        );
    }

    #[test]
    fn a_wrong_value_leaves_the_default() {
        check(
            "--switch=yes|--text=a",
            expect![[r#"
            false "default" 5 22
            argument 1 gives --switch the value "yes", which is not true or false; it and all after it are ignored"#]],
        );
        check(
            "--number=1e3",
            expect![[r#"
            false "default" 5 22
            argument 1 gives --number the value "1e3", which is not a whole number; it and all after it are ignored"#]],
        );
        check(
            "--number=99999999999999999999",
            expect![[r#"
            false "default" 5 22
            argument 1 gives --number the value "99999999999999999999", which is not a whole number; it and all after it are ignored"#]],
        );
        check(
            "--number=-+3",
            expect![[r#"
            false "default" 5 22
            argument 1 gives --number the value "-+3", which is not a whole number; it and all after it are ignored"#]],
        );
    }

    #[test]
    fn a_port_out_of_range_is_named_and_the_rest_is_read() {
        check(
            "--port=70000|--text=a",
            expect![[r#"
            false "a" 5 22
            --port: 70000 is no port (1 to 65535); 22 is used instead"#]],
        );
        check(
            "--port=0",
            expect![[r#"
            false "default" 5 22
            --port: 0 is no port (1 to 65535); 22 is used instead"#]],
        );
    }

    #[test]
    fn a_message_never_repeats_a_long_argument() {
        let long = "x".repeat(1000);
        let remarks = parse(&[format!("--{long}")], Vec::new());
        assert_eq!(remarks.iter().map(String::len).max(), Some(109));
    }
}
