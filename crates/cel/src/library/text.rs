//! Texts and regular expressions. Places in a text are counted in characters.

use std::cell::RefCell;
use std::collections::HashMap;

use regex::{Regex, RegexBuilder};

use super::standard::shown;
use super::{Function, T, failed, global, member, misfit};
use crate::cost::Cost;
use crate::eval::{Budget, EvalError};
use crate::value::{List, Value};

/// A regular expression that compiles to more than this is refused; it would be a way to fill memory.
const REGEX_BYTES_MAX: usize = 1 << 20;
/// What compiles to no more than this takes a text as fast as its cost says.
const SMALL_REGEX_BYTES_MAX: usize = 64 << 10;
/// What each byte of a text costs with a regular expression that compiles to more.
const LARGE_REGEX_COST: u64 = 16;
/// How many bytes of the rest of a text are looked through for a unit of cost, for each further match in it.
const REST_BYTES_PER_UNIT: usize = 100;
/// How many compiled regular expressions a thread keeps.
const REGEXES_MAX: usize = 32;

pub(super) static FUNCTIONS: &[Function] = &[
    global("jsonpatch.escapeKey", &[T::Str], T::Str, Cost::First, |arguments, _| match arguments {
        [Value::String(key)] => Ok(Value::text(key.replace('~', "~0").replace('/', "~1"))),
        _ => misfit(),
    }),
    member("contains", &[T::Str, T::Str], T::Bool, Cost::Search, |arguments, _| match arguments {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(text.contains(&**part))),
        _ => misfit(),
    }),
    member("startsWith", &[T::Str, T::Str], T::Bool, Cost::Second, |arguments, _| match arguments {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(text.starts_with(&**part))),
        _ => misfit(),
    }),
    member("endsWith", &[T::Str, T::Str], T::Bool, Cost::Second, |arguments, _| match arguments {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(text.ends_with(&**part))),
        _ => misfit(),
    }),
    member("matches", &[T::Str, T::Str], T::Bool, Cost::Regex, matches),
    global("matches", &[T::Str, T::Str], T::Bool, Cost::Regex, matches),
    member("find", &[T::Str, T::Str], T::Str, Cost::Regex, |arguments, budget| match arguments {
        [Value::String(text), Value::String(pattern)] => {
            let found =
                regex(pattern, text, budget)?.find(text).map_or("", |found| found.as_str()).to_owned();
            Ok(Value::text(found))
        }
        _ => misfit(),
    }),
    member("findAll", &[T::Str, T::Str], T::List(&T::Str), Cost::Regex, |arguments, budget| {
        find_all(arguments, budget)
    }),
    member("findAll", &[T::Str, T::Str, T::Int], T::List(&T::Str), Cost::Regex, |arguments, budget| {
        find_all(arguments, budget)
    }),
    member("charAt", &[T::Str, T::Int], T::Str, Cost::First, |arguments, _| match arguments {
        [Value::String(text), Value::Int(at)] => {
            let at = position(text, *at)?;
            Ok(Value::text(text.chars().nth(at).map(String::from).unwrap_or_default()))
        }
        _ => misfit(),
    }),
    member("indexOf", &[T::Str, T::Str], T::Int, Cost::Search, |arguments, _| index_of(arguments)),
    member("indexOf", &[T::Str, T::Str, T::Int], T::Int, Cost::Search, |arguments, _| index_of(arguments)),
    member("lastIndexOf", &[T::Str, T::Str], T::Int, Cost::Search, |arguments, _| last_index_of(arguments)),
    member("lastIndexOf", &[T::Str, T::Str, T::Int], T::Int, Cost::Search, |arguments, _| {
        last_index_of(arguments)
    }),
    member("lowerAscii", &[T::Str], T::Str, Cost::First, |arguments, _| {
        on_text(arguments, str::to_ascii_lowercase)
    }),
    member("upperAscii", &[T::Str], T::Str, Cost::First, |arguments, _| {
        on_text(arguments, str::to_ascii_uppercase)
    }),
    member("trim", &[T::Str], T::Str, Cost::First, |arguments, _| {
        on_text(arguments, |text| text.trim().to_owned())
    }),
    member("replace", &[T::Str, T::Str, T::Str], T::Str, Cost::Replace, |arguments, _| match arguments {
        [Value::String(text), Value::String(old), Value::String(new)] => {
            Ok(Value::text(text.replace(&**old, new)))
        }
        _ => misfit(),
    }),
    member(
        "replace",
        &[T::Str, T::Str, T::Str, T::Int],
        T::Str,
        Cost::Replace,
        |arguments, _| match arguments {
            [Value::String(text), Value::String(old), Value::String(new), Value::Int(most)] => {
                let most = usize::try_from(*most).unwrap_or(usize::MAX);
                Ok(Value::text(text.replacen(&**old, new, most)))
            }
            _ => misfit(),
        },
    ),
    member("split", &[T::Str, T::Str], T::List(&T::Str), Cost::First, |arguments, _| split(arguments)),
    member("split", &[T::Str, T::Str, T::Int], T::List(&T::Str), Cost::First, |arguments, _| {
        split(arguments)
    }),
    member("substring", &[T::Str, T::Int], T::Str, Cost::First, |arguments, _| substring(arguments)),
    member("substring", &[T::Str, T::Int, T::Int], T::Str, Cost::First, |arguments, _| substring(arguments)),
    member("join", &[T::List(&T::Str)], T::Str, Cost::Join, |arguments, _| match arguments {
        [Value::List(list)] => join(list, ""),
        _ => misfit(),
    }),
    member("join", &[T::List(&T::Str), T::Str], T::Str, Cost::Join, |arguments, _| match arguments {
        [Value::List(list), Value::String(between)] => join(list, between),
        _ => misfit(),
    }),
    member("format", &[T::Str, T::List(&T::Dyn)], T::Str, Cost::Flat, |arguments, budget| match arguments {
        [Value::String(pattern), Value::List(list)] => format(pattern, list, budget),
        _ => misfit(),
    }),
    global("strings.quote", &[T::Str], T::Str, Cost::First, |arguments, _| {
        on_text(arguments, |text| format!("{text:?}"))
    }),
];

/// A pattern, compiled. A rule asks the same few again for every element of a list, so each thread keeps the last ones.
///
/// What it takes to look through a text grows with the size of the compiled pattern, of which the length of the pattern says
/// little: texts cost more where that is large.
fn regex(pattern: &str, text: &str, budget: &mut Budget) -> Result<Regex, EvalError> {
    thread_local! {
        static COMPILED: RefCell<HashMap<String, (Regex, bool)>> = RefCell::default();
    }
    let (regex, is_large) = COMPILED.with_borrow_mut(|compiled| {
        if let Some(known) = compiled.get(pattern) {
            return Ok(known.clone());
        }
        let build = |bytes_max| RegexBuilder::new(pattern).size_limit(bytes_max).build();
        let (built, is_large) = match build(SMALL_REGEX_BYTES_MAX) {
            Ok(small) => (Ok(small), false),
            Err(_) => (build(REGEX_BYTES_MAX), true),
        };
        let regex = built.map_err(|_| failed(format!("error parsing regexp: `{pattern}`")))?;
        if compiled.len() >= REGEXES_MAX {
            compiled.clear();
        }
        compiled.insert(pattern.to_owned(), (regex.clone(), is_large));
        Ok((regex, is_large))
    })?;
    if is_large {
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        budget.spend(length.saturating_mul(LARGE_REGEX_COST))?;
    }
    Ok(regex)
}

/// Whether a text is a regular expression of an allowed size.
pub(super) fn is_pattern(text: &str) -> bool {
    RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).build().is_ok()
}

fn matches<'a>(arguments: &[Value<'a>], budget: &mut Budget) -> Result<Value<'a>, EvalError> {
    match arguments {
        [Value::String(text), Value::String(pattern)] => {
            Ok(Value::Bool(regex(pattern, text, budget)?.is_match(text)))
        }
        _ => misfit(),
    }
}

fn find_all<'a>(arguments: &[Value<'a>], budget: &mut Budget) -> Result<Value<'a>, EvalError> {
    let [Value::String(text), Value::String(pattern), rest @ ..] = arguments else { return misfit() };
    let most = match rest {
        [Value::Int(most)] => usize::try_from(*most).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let regex = regex(pattern, text, budget)?;
    let mut all = Vec::new();
    for found in regex.find_iter(text).take(most) {
        // Some patterns look through all of the rest for each match.
        let rest = text.len().saturating_sub(found.start()) / REST_BYTES_PER_UNIT;
        budget.spend(u64::try_from(rest).unwrap_or(u64::MAX))?;
        all.push(Value::text(found.as_str()));
    }
    Ok(Value::list(all))
}

/// A place in a text, or just behind it.
fn position(text: &str, at: i64) -> Result<usize, EvalError> {
    let outside = || failed(format!("index out of range: {at}"));
    let place = usize::try_from(at).map_err(|_| outside())?;
    if place <= text.chars().count() { Ok(place) } else { Err(outside()) }
}

/// The byte at which the character of a place starts.
fn byte_of(text: &str, place: usize) -> usize {
    text.char_indices().nth(place).map_or(text.len(), |(byte, _)| byte)
}

fn place_of(text: &str, byte: Option<usize>) -> i64 {
    let place = byte.and_then(|byte| text.get(..byte)).map(|before| before.chars().count());
    place.and_then(|place| i64::try_from(place).ok()).unwrap_or(-1)
}

fn index_of<'a>(arguments: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::String(text), Value::String(part), rest @ ..] = arguments else { return misfit() };
    let from = match rest {
        [Value::Int(from)] => byte_of(text, position(text, *from)?),
        _ => 0,
    };
    let found = text.get(from..).and_then(|rest| rest.find(&**part)).map(|byte| byte + from);
    Ok(Value::Int(place_of(text, found)))
}

fn last_index_of<'a>(arguments: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::String(text), Value::String(part), rest @ ..] = arguments else { return misfit() };
    let end = match rest {
        [Value::Int(last)] => (byte_of(text, position(text, *last)?) + part.len()).min(text.len()),
        _ => text.len(),
    };
    Ok(Value::Int(place_of(text, text.get(..end).and_then(|before| before.rfind(&**part)))))
}

fn on_text<'a>(arguments: &[Value<'a>], change: fn(&str) -> String) -> Result<Value<'a>, EvalError> {
    match arguments {
        [Value::String(text)] => Ok(Value::text(change(text))),
        _ => misfit(),
    }
}

fn split<'a>(arguments: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::String(text), Value::String(at), rest @ ..] = arguments else { return misfit() };
    let most = match rest {
        [Value::Int(0)] => return Ok(Value::list(Vec::new())),
        [Value::Int(most)] => usize::try_from(*most).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    // Between characters there is nothing, before the first and after the last neither.
    let parts: Vec<String> = if at.is_empty() {
        text.chars().map(String::from).collect()
    } else {
        text.splitn(most, &**at).map(str::to_owned).collect()
    };
    Ok(Value::list(parts.into_iter().map(Value::text).collect()))
}

fn substring<'a>(arguments: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::String(text), Value::Int(from), rest @ ..] = arguments else { return misfit() };
    let start = position(text, *from)?;
    let end = match rest {
        [Value::Int(to)] => position(text, *to)?,
        _ => text.chars().count(),
    };
    if start > end {
        return Err(failed(format!("invalid substring range. start: {start}, end: {end}")));
    }
    Ok(Value::text(text.get(byte_of(text, start)..byte_of(text, end)).unwrap_or_default()))
}

fn join<'a>(list: &List<'a>, between: &str) -> Result<Value<'a>, EvalError> {
    let mut texts = Vec::new();
    for item in list.iter() {
        match item {
            Value::String(text) => texts.push(text),
            _ => return misfit(),
        }
    }
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    Ok(Value::text(texts.join(between)))
}

/// `"%s has %d".format([name, count])`.
fn format<'a>(pattern: &str, list: &List<'a>, budget: &mut Budget) -> Result<Value<'a>, EvalError> {
    let mut made = String::new();
    let mut characters = pattern.chars().peekable();
    let mut items = list.iter();
    while let Some(character) = characters.next() {
        budget.spend(1)?;
        if character != '%' {
            made.push(character);
            continue;
        }
        if characters.next_if_eq(&'%').is_some() {
            made.push('%');
            continue;
        }
        let mut precision = None;
        if characters.next_if_eq(&'.').is_some() {
            let mut digits = 0usize;
            while let Some(digit) = characters.peek().and_then(|digit| digit.to_digit(10)) {
                characters.next();
                digits = digits.saturating_mul(10).saturating_add(digit as usize).min(1000);
            }
            precision = Some(digits);
        }
        let verb = characters.next().ok_or_else(|| failed("unexpected end of format string"))?;
        let item = items.next().ok_or_else(|| failed("index out of range for the arguments of format"))?;
        let text = formatted(verb, precision.unwrap_or(6), &item, budget)?;
        budget.spend(text.len() as u64 / 10)?;
        made.push_str(&text);
    }
    Ok(Value::text(made))
}

fn formatted(
    verb: char,
    precision: usize,
    value: &Value<'_>,
    budget: &mut Budget,
) -> Result<String, EvalError> {
    Ok(match (verb, value) {
        ('s', value) => written(value, budget)?,
        ('d', Value::Int(number)) => number.to_string(),
        ('d', Value::Uint(number)) => number.to_string(),
        ('f', value) => format!("{:.precision$}", as_double(value)?),
        ('e', value) => format!("{:.precision$e}", as_double(value)?),
        ('b', Value::Int(number)) => format!("{number:b}"),
        ('b', Value::Uint(number)) => format!("{number:b}"),
        ('b', Value::Bool(value)) => u8::from(*value).to_string(),
        ('o', Value::Int(number)) => format!("{number:o}"),
        ('o', Value::Uint(number)) => format!("{number:o}"),
        ('x', Value::Int(number)) => format!("{number:x}"),
        ('x', Value::Uint(number)) => format!("{number:x}"),
        ('X', Value::Int(number)) => format!("{number:X}"),
        ('X', Value::Uint(number)) => format!("{number:X}"),
        ('x' | 'X', Value::String(text)) => text.bytes().map(|byte| format!("{byte:02x}")).collect(),
        _ => {
            return Err(failed(format!(
                "could not parse formatting clause: unrecognized formatting clause \"{verb}\""
            )));
        }
    })
}

fn as_double(value: &Value<'_>) -> Result<f64, EvalError> {
    match value {
        Value::Double(number) => Ok(*number),
        Value::Int(number) => Ok(*number as f64),
        Value::Uint(number) => Ok(*number as f64),
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// Any value as text: `[1, 2]`, `{a: b}`.
fn written(value: &Value<'_>, budget: &mut Budget) -> Result<String, EvalError> {
    budget.spend(value.size())?;
    match value {
        Value::List(list) => {
            let items = list.iter().map(|item| written(&item, budget)).collect::<Result<Vec<_>, _>>()?;
            Ok(format!("[{}]", items.join(", ")))
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for (key, value) in map.entries() {
                entries.push(format!("{key}: {}", written(&value, budget)?));
            }
            Ok(format!("{{{}}}", entries.join(", ")))
        }
        value => shown(value).ok_or(EvalError::NoSuchOverload),
    }
}
