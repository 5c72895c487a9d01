//! Quantities and versions.

use std::cmp::Ordering;
use std::sync::Arc;

use krafla_api::Quantity;

use super::{Function, T, failed, global, member, misfit};
use crate::compare::compare;
use crate::cost::Cost;
use crate::eval::EvalError;
use crate::types::Opaque;
use crate::value::Value;

const QUANTITY: T = T::Opaque(Opaque::Quantity);
const SEMVER: T = T::Opaque(Opaque::Semver);

pub(super) static FUNCTIONS: &[Function] = &[
    global("quantity", &[T::Str], QUANTITY, Cost::First, |arguments, _| match arguments {
        [Value::String(text)] => match text.parse() {
            Ok(quantity) => Ok(Value::Quantity(quantity)),
            Err(_) => Err(failed(
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            )),
        },
        _ => misfit(),
    }),
    global("isQuantity", &[T::Str], T::Bool, Cost::First, |arguments, _| match arguments {
        [Value::String(text)] => Ok(Value::Bool(text.parse::<Quantity>().is_ok())),
        _ => misfit(),
    }),
    member("sign", &[QUANTITY], T::Int, Cost::Flat, |arguments, _| match arguments {
        [Value::Quantity(quantity)] => Ok(Value::Int(match quantity.cmp(&Quantity::ZERO) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        })),
        _ => misfit(),
    }),
    member("isInteger", &[QUANTITY], T::Bool, Cost::Flat, |arguments, _| match arguments {
        [Value::Quantity(quantity)] => Ok(Value::Bool(whole(*quantity).is_some())),
        _ => misfit(),
    }),
    member("asInteger", &[QUANTITY], T::Int, Cost::Flat, |arguments, _| match arguments {
        [Value::Quantity(quantity)] => {
            whole(*quantity).map(Value::Int).ok_or_else(|| failed("cannot convert value to integer"))
        }
        _ => misfit(),
    }),
    member("asApproximateFloat", &[QUANTITY], T::Double, Cost::Flat, |arguments, _| match arguments {
        [Value::Quantity(quantity)] => Ok(Value::Double(quantity.milli_value() as f64 / 1000.0)),
        _ => misfit(),
    }),
    member("add", &[QUANTITY, QUANTITY], QUANTITY, Cost::Flat, |arguments, _| match arguments {
        [Value::Quantity(left), Value::Quantity(right)] => Ok(Value::Quantity(*left + *right)),
        _ => misfit(),
    }),
    member("add", &[QUANTITY, T::Int], QUANTITY, Cost::Flat, |arguments, _| match arguments {
        [Value::Quantity(left), Value::Int(right)] => {
            Ok(Value::Quantity(*left + Quantity::from_units(*right)))
        }
        _ => misfit(),
    }),
    member("sub", &[QUANTITY, QUANTITY], QUANTITY, Cost::Flat, |arguments, _| match arguments {
        [Value::Quantity(left), Value::Quantity(right)] => Ok(Value::Quantity(*left - *right)),
        _ => misfit(),
    }),
    member("sub", &[QUANTITY, T::Int], QUANTITY, Cost::Flat, |arguments, _| match arguments {
        [Value::Quantity(left), Value::Int(right)] => {
            Ok(Value::Quantity(*left - Quantity::from_units(*right)))
        }
        _ => misfit(),
    }),
    member("isLessThan", &[QUANTITY, QUANTITY], T::Bool, Cost::Flat, |arguments, _| {
        is(arguments, Ordering::is_lt)
    }),
    member("isGreaterThan", &[QUANTITY, QUANTITY], T::Bool, Cost::Flat, |arguments, _| {
        is(arguments, Ordering::is_gt)
    }),
    member("compareTo", &[QUANTITY, QUANTITY], T::Int, Cost::Flat, |arguments, _| compare_to(arguments)),
    global("semver", &[T::Str], SEMVER, Cost::First, |arguments, _| match arguments {
        [Value::String(text)] => match Semver::parse(text) {
            Some(version) => Ok(Value::Semver(Arc::new(version))),
            None => Err(failed("No Major.Minor.Patch elements found")),
        },
        _ => misfit(),
    }),
    global("isSemver", &[T::Str], T::Bool, Cost::First, |arguments, _| match arguments {
        [Value::String(text)] => Ok(Value::Bool(Semver::parse(text).is_some())),
        _ => misfit(),
    }),
    member("major", &[SEMVER], T::Int, Cost::Flat, |arguments, _| {
        number(arguments, |version| version.numbers.0)
    }),
    member("minor", &[SEMVER], T::Int, Cost::Flat, |arguments, _| {
        number(arguments, |version| version.numbers.1)
    }),
    member("patch", &[SEMVER], T::Int, Cost::Flat, |arguments, _| {
        number(arguments, |version| version.numbers.2)
    }),
    member("isLessThan", &[SEMVER, SEMVER], T::Bool, Cost::Flat, |arguments, _| {
        is(arguments, Ordering::is_lt)
    }),
    member("isGreaterThan", &[SEMVER, SEMVER], T::Bool, Cost::Flat, |arguments, _| {
        is(arguments, Ordering::is_gt)
    }),
    member("compareTo", &[SEMVER, SEMVER], T::Int, Cost::Flat, |arguments, _| compare_to(arguments)),
];

/// A quantity of whole units that 64 bits hold.
fn whole(quantity: Quantity) -> Option<i64> {
    let units = quantity.value();
    (Quantity::from_units(units) == quantity).then_some(units)
}

fn is<'a>(arguments: &[Value<'a>], fits: fn(Ordering) -> bool) -> Result<Value<'a>, EvalError> {
    match arguments {
        [left, right] => Ok(Value::Bool(compare(left, right).is_some_and(fits))),
        _ => misfit(),
    }
}

fn compare_to<'a>(arguments: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    match arguments {
        [left, right] => compare(left, right).map_or_else(misfit, |order| Ok(Value::Int(order as i64))),
        _ => misfit(),
    }
}

fn number<'a>(arguments: &[Value<'a>], part: fn(&Semver) -> u64) -> Result<Value<'a>, EvalError> {
    match arguments {
        [Value::Semver(version)] => i64::try_from(part(version)).map(Value::Int).or_else(|_| misfit()),
        _ => misfit(),
    }
}

/// A version as semver.org has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Semver {
    numbers: (u64, u64, u64),
    /// A version without it comes after all that have one.
    stage: Stage,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Before(Vec<Identifier>),
    Released,
}

/// Numbers come before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

impl Semver {
    fn parse(text: &str) -> Option<Semver> {
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
        if build.is_some_and(|build| !build.split('.').all(is_word)) {
            return None;
        }
        let (core, before) = text.split_once('-').map_or((text, None), |(core, before)| (core, Some(before)));
        let mut parts = core.split('.').map(whole_number);
        let numbers = (parts.next()??, parts.next()??, parts.next()??);
        if parts.next().is_some() {
            return None;
        }
        let stage = match before {
            None => Stage::Released,
            Some(before) => {
                let identifier = |word: &str| match word.bytes().all(|byte| byte.is_ascii_digit()) {
                    true => whole_number(word).map(Identifier::Number),
                    false => is_word(word).then(|| Identifier::Word(word.to_owned())),
                };
                Stage::Before(before.split('.').map(identifier).collect::<Option<_>>()?)
            }
        };
        Some(Semver { numbers, stage })
    }
}

/// Digits without zeros before them.
fn whole_number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}
