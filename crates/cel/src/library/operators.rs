//! Operators. Those that do not look at all their operands (`&&`, `||`, `?:`) are not functions.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Function, Run, T, failed, global, misfit};
use crate::compare::{compare, concatenate, contains, equal};
use crate::cost::Cost;
use crate::eval::{Budget, EvalError};
use crate::value::{Key, Value};

const OVERFLOW: &str = "integer overflow";
const LIST: T = T::List(&T::A);
const MAP: T = T::Map(&T::A, &T::B);

pub(super) static LESS: &[Function] = &comparisons("_<_", |arguments, _| ordered(arguments, Ordering::is_lt));
pub(super) static LESS_OR_EQUAL: &[Function] =
    &comparisons("_<=_", |arguments, _| ordered(arguments, Ordering::is_le));
pub(super) static GREATER: &[Function] =
    &comparisons("_>_", |arguments, _| ordered(arguments, Ordering::is_gt));
pub(super) static GREATER_OR_EQUAL: &[Function] =
    &comparisons("_>=_", |arguments, _| ordered(arguments, Ordering::is_ge));

/// What can be put in order.
const fn comparisons(name: &'static str, run: Run) -> [Function; 6] {
    [
        global(name, &[T::Number, T::Number], T::Bool, Cost::Flat, run),
        global(name, &[T::Bool, T::Bool], T::Bool, Cost::Flat, run),
        global(name, &[T::Str, T::Str], T::Bool, Cost::Shorter, run),
        global(name, &[T::Bytes, T::Bytes], T::Bool, Cost::Shorter, run),
        global(name, &[T::Time, T::Time], T::Bool, Cost::Flat, run),
        global(name, &[T::Duration, T::Duration], T::Bool, Cost::Flat, run),
    ]
}

/// All other operators, by their names in messages.
pub(super) static OPERATORS: &[Function] = &[
    global("_==_", &[T::A, T::A], T::Bool, Cost::Shorter, |arguments, budget| same(arguments, budget, true)),
    global("_!=_", &[T::A, T::A], T::Bool, Cost::Shorter, |arguments, budget| same(arguments, budget, false)),
    global("_+_", &[T::Int, T::Int], T::Int, Cost::Flat, |arguments, _| whole(arguments, i64::checked_add)),
    global("_+_", &[T::Uint, T::Uint], T::Uint, Cost::Flat, |arguments, _| {
        natural(arguments, u64::checked_add)
    }),
    global("_+_", &[T::Double, T::Double], T::Double, Cost::Flat, |arguments, _| {
        floating(arguments, |left, right| left + right)
    }),
    global("_+_", &[T::Str, T::Str], T::Str, Cost::Both, |arguments, _| match arguments {
        [Value::String(left), Value::String(right)] => Ok(Value::text(format!("{}{}", &**left, &**right))),
        _ => misfit(),
    }),
    global("_+_", &[T::Bytes, T::Bytes], T::Bytes, Cost::Both, |arguments, _| match arguments {
        [Value::Bytes(left), Value::Bytes(right)] => Ok(Value::Bytes([&**left, &**right].concat().into())),
        _ => misfit(),
    }),
    global("_+_", &[LIST, LIST], LIST, Cost::Both, |arguments, budget| match arguments {
        [Value::List(left), Value::List(right)] => concatenate(left, right, budget),
        _ => misfit(),
    }),
    global("_-_", &[T::Int, T::Int], T::Int, Cost::Flat, |arguments, _| whole(arguments, i64::checked_sub)),
    global("_-_", &[T::Uint, T::Uint], T::Uint, Cost::Flat, |arguments, _| {
        natural(arguments, u64::checked_sub)
    }),
    global("_-_", &[T::Double, T::Double], T::Double, Cost::Flat, |arguments, _| {
        floating(arguments, |left, right| left - right)
    }),
    global("_*_", &[T::Int, T::Int], T::Int, Cost::Flat, |arguments, _| whole(arguments, i64::checked_mul)),
    global("_*_", &[T::Uint, T::Uint], T::Uint, Cost::Flat, |arguments, _| {
        natural(arguments, u64::checked_mul)
    }),
    global("_*_", &[T::Double, T::Double], T::Double, Cost::Flat, |arguments, _| {
        floating(arguments, |left, right| left * right)
    }),
    global("_/_", &[T::Int, T::Int], T::Int, Cost::Flat, |arguments, _| match arguments {
        [_, Value::Int(0)] => Err(failed("division by zero")),
        _ => whole(arguments, i64::checked_div),
    }),
    global("_/_", &[T::Uint, T::Uint], T::Uint, Cost::Flat, |arguments, _| match arguments {
        [_, Value::Uint(0)] => Err(failed("division by zero")),
        _ => natural(arguments, u64::checked_div),
    }),
    global("_/_", &[T::Double, T::Double], T::Double, Cost::Flat, |arguments, _| {
        floating(arguments, |left, right| left / right)
    }),
    global("_%_", &[T::Int, T::Int], T::Int, Cost::Flat, |arguments, _| match arguments {
        [_, Value::Int(0)] => Err(failed("modulus by zero")),
        _ => whole(arguments, i64::checked_rem),
    }),
    global("_%_", &[T::Uint, T::Uint], T::Uint, Cost::Flat, |arguments, _| match arguments {
        [_, Value::Uint(0)] => Err(failed("modulus by zero")),
        _ => natural(arguments, u64::checked_rem),
    }),
    global("-_", &[T::Int], T::Int, Cost::Flat, |arguments, _| match arguments {
        [Value::Int(number)] => number.checked_neg().map(Value::Int).ok_or_else(|| failed(OVERFLOW)),
        _ => misfit(),
    }),
    global("-_", &[T::Double], T::Double, Cost::Flat, |arguments, _| match arguments {
        [Value::Double(number)] => Ok(Value::Double(-number)),
        _ => misfit(),
    }),
    global("!_", &[T::Bool], T::Bool, Cost::Flat, |arguments, _| match arguments {
        [Value::Bool(value)] => Ok(Value::Bool(!value)),
        _ => misfit(),
    }),
    global("@in", &[T::A, LIST], T::Bool, Cost::ElementsOfSecond, |arguments, budget| match arguments {
        [value, Value::List(list)] => contains(list, value, budget).map(Value::Bool),
        _ => misfit(),
    }),
    global("@in", &[T::A, MAP], T::Bool, Cost::Flat, |arguments, _| match arguments {
        [key, Value::Map(map)] => Ok(Value::Bool(Key::of(key).is_some_and(|key| map.get(&key).is_some()))),
        _ => misfit(),
    }),
    global("_[_]", &[LIST, T::Int], T::A, Cost::Flat, |arguments, _| match arguments {
        [list, Value::Int(index)] => {
            element(list, &Value::Int(*index))?.ok_or_else(|| failed(format!("index out of bounds: {index}")))
        }
        _ => misfit(),
    }),
    global("_[_]", &[MAP, T::A], T::B, Cost::Flat, |arguments, _| match arguments {
        [map, key] => element(map, key)?.ok_or_else(|| match Key::of(key) {
            Some(key) => EvalError::no_key(key),
            None => EvalError::NoSuchOverload,
        }),
        _ => misfit(),
    }),
    global("_[?_]", &[LIST, T::Int], T::Optional(&T::A), Cost::Flat, optional_element),
    global("_[?_]", &[MAP, T::A], T::Optional(&T::B), Cost::Flat, optional_element),
];

fn same<'a>(arguments: &[Value<'a>], budget: &mut Budget, expected: bool) -> Result<Value<'a>, EvalError> {
    match arguments {
        [left, right] => Ok(Value::Bool(equal(left, right, budget)? == expected)),
        _ => misfit(),
    }
}

fn ordered<'a>(arguments: &[Value<'a>], fits: fn(Ordering) -> bool) -> Result<Value<'a>, EvalError> {
    match arguments {
        // What has no order, such as a number and what is none, is in no relation.
        [left, right] => Ok(Value::Bool(compare(left, right).is_some_and(fits))),
        _ => misfit(),
    }
}

fn whole<'a>(arguments: &[Value<'a>], compute: fn(i64, i64) -> Option<i64>) -> Result<Value<'a>, EvalError> {
    match arguments {
        [Value::Int(left), Value::Int(right)] => {
            compute(*left, *right).map(Value::Int).ok_or_else(|| failed(OVERFLOW))
        }
        _ => misfit(),
    }
}

fn natural<'a>(
    arguments: &[Value<'a>],
    compute: fn(u64, u64) -> Option<u64>,
) -> Result<Value<'a>, EvalError> {
    match arguments {
        [Value::Uint(left), Value::Uint(right)] => {
            compute(*left, *right).map(Value::Uint).ok_or_else(|| failed("unsigned integer overflow"))
        }
        _ => misfit(),
    }
}

fn floating<'a>(arguments: &[Value<'a>], compute: fn(f64, f64) -> f64) -> Result<Value<'a>, EvalError> {
    match arguments {
        [Value::Double(left), Value::Double(right)] => Ok(Value::Double(compute(*left, *right))),
        _ => misfit(),
    }
}

/// An element of a list by its place, or of a map by its key.
fn element<'a>(of: &Value<'a>, key: &Value<'a>) -> Result<Option<Value<'a>>, EvalError> {
    match (of, Key::of(key)) {
        (Value::List(list), Some(Key::Int(index))) => {
            Ok(usize::try_from(index).ok().and_then(|index| list.get(index)))
        }
        (Value::Map(map), Some(key)) => Ok(map.get(&key)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn optional_element<'a>(arguments: &[Value<'a>], _budget: &mut Budget) -> Result<Value<'a>, EvalError> {
    match arguments {
        [of, key] => Ok(Value::Optional(element(of, key)?.map(Arc::new))),
        _ => misfit(),
    }
}
