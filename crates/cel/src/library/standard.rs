//! Sizes, and one type made another.

use super::{Function, T, failed, global, member, misfit};
use crate::cost::Cost;
use crate::eval::{Budget, EvalError};
use crate::value::Value;

const LIST: T = T::List(&T::A);
const MAP: T = T::Map(&T::A, &T::B);

/// Sizes and conversions.
pub(super) static FUNCTIONS: &[Function] = &[
    global("size", &[T::Str], T::Int, Cost::Flat, size),
    global("size", &[T::Bytes], T::Int, Cost::Flat, size),
    global("size", &[LIST], T::Int, Cost::Flat, size),
    global("size", &[MAP], T::Int, Cost::Flat, size),
    member("size", &[T::Str], T::Int, Cost::Flat, size),
    member("size", &[T::Bytes], T::Int, Cost::Flat, size),
    member("size", &[LIST], T::Int, Cost::Flat, size),
    member("size", &[MAP], T::Int, Cost::Flat, size),
    global("type", &[T::A], T::Type, Cost::Flat, |arguments, _| match arguments {
        [value] => Ok(Value::Type(value.type_name())),
        _ => misfit(),
    }),
    global("dyn", &[T::A], T::Dyn, Cost::Flat, |arguments, _| match arguments {
        [value] => Ok(value.clone()),
        _ => misfit(),
    }),
    global("bool", &[T::Bool], T::Bool, Cost::Flat, to_bool),
    global("bool", &[T::Str], T::Bool, Cost::Flat, to_bool),
    global("int", &[T::Number], T::Int, Cost::Flat, to_int),
    global("int", &[T::Str], T::Int, Cost::First, to_int),
    global("int", &[T::Time], T::Int, Cost::Flat, to_int),
    global("int", &[T::Duration], T::Int, Cost::Flat, to_int),
    global("uint", &[T::Number], T::Uint, Cost::Flat, to_uint),
    global("uint", &[T::Str], T::Uint, Cost::First, to_uint),
    global("double", &[T::Number], T::Double, Cost::Flat, to_double),
    global("double", &[T::Str], T::Double, Cost::First, to_double),
    global("string", &[T::Str], T::Str, Cost::First, to_string),
    global("string", &[T::Bytes], T::Str, Cost::First, to_string),
    global("string", &[T::Bool], T::Str, Cost::Flat, to_string),
    global("string", &[T::Number], T::Str, Cost::Flat, to_string),
    global("string", &[T::Time], T::Str, Cost::Flat, to_string),
    global("string", &[T::Duration], T::Str, Cost::Flat, to_string),
    global("bytes", &[T::Bytes], T::Bytes, Cost::First, to_bytes),
    global("bytes", &[T::Str], T::Bytes, Cost::First, to_bytes),
];

fn size<'a>(arguments: &[Value<'a>], _budget: &mut Budget) -> Result<Value<'a>, EvalError> {
    let count = match arguments {
        [Value::String(text)] => text.chars().count(),
        [Value::Bytes(bytes)] => bytes.len(),
        [Value::List(list)] => list.len(),
        [Value::Map(map)] => map.len(),
        _ => return misfit(),
    };
    i64::try_from(count).map(Value::Int).or_else(|_| misfit())
}

fn to_bool<'a>(arguments: &[Value<'a>], _budget: &mut Budget) -> Result<Value<'a>, EvalError> {
    match arguments {
        [Value::Bool(value)] => Ok(Value::Bool(*value)),
        [Value::String(text)] => match &**text {
            "1" | "t" | "T" | "true" | "True" | "TRUE" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "False" | "FALSE" => Ok(Value::Bool(false)),
            other => Err(failed(format!("type conversion error from 'string' to 'bool': {other:?}"))),
        },
        _ => misfit(),
    }
}

fn to_int<'a>(arguments: &[Value<'a>], _budget: &mut Budget) -> Result<Value<'a>, EvalError> {
    let overflow = || failed("integer overflow");
    match arguments {
        [Value::Int(number)] => Ok(Value::Int(*number)),
        [Value::Uint(number)] => i64::try_from(*number).map(Value::Int).map_err(|_| overflow()),
        [Value::Double(number)] if number.is_finite() && number.abs() < 9_223_372_036_854_775_807.0 => {
            Ok(Value::Int(*number as i64))
        }
        [Value::Double(_)] => Err(overflow()),
        [Value::String(text)] => text.parse().map(Value::Int).map_err(|_| unreadable(text, "int")),
        [Value::Timestamp(at)] => Ok(Value::Int(at.as_second())),
        [Value::Duration(duration)] => Ok(Value::Int(duration.as_nanos())),
        _ => misfit(),
    }
}

fn to_uint<'a>(arguments: &[Value<'a>], _budget: &mut Budget) -> Result<Value<'a>, EvalError> {
    let overflow = || failed("unsigned integer overflow");
    match arguments {
        [Value::Uint(number)] => Ok(Value::Uint(*number)),
        [Value::Int(number)] => u64::try_from(*number).map(Value::Uint).map_err(|_| overflow()),
        [Value::Double(number)] if (0.0..18_446_744_073_709_551_615.0).contains(number) => {
            Ok(Value::Uint(*number as u64))
        }
        [Value::Double(_)] => Err(overflow()),
        [Value::String(text)] => text.parse().map(Value::Uint).map_err(|_| unreadable(text, "uint")),
        _ => misfit(),
    }
}

fn to_double<'a>(arguments: &[Value<'a>], _budget: &mut Budget) -> Result<Value<'a>, EvalError> {
    match arguments {
        [Value::Double(number)] => Ok(Value::Double(*number)),
        [Value::Int(number)] => Ok(Value::Double(*number as f64)),
        [Value::Uint(number)] => Ok(Value::Double(*number as f64)),
        [Value::String(text)] => text.parse().map(Value::Double).map_err(|_| unreadable(text, "double")),
        _ => misfit(),
    }
}

fn to_string<'a>(arguments: &[Value<'a>], _budget: &mut Budget) -> Result<Value<'a>, EvalError> {
    match arguments {
        [Value::String(text)] => Ok(Value::String(text.clone())),
        [Value::Bytes(bytes)] => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::text(text)),
            Err(_) => Err(failed("invalid UTF-8 in bytes, cannot convert to string")),
        },
        [value] => shown(value).map_or_else(misfit, |text| Ok(Value::text(text))),
        _ => misfit(),
    }
}

/// A single value as text; lists, maps and what only functions look into have none.
pub(crate) fn shown(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::String(text) => (**text).to_owned(),
        Value::Timestamp(at) => at.to_string(),
        Value::Duration(duration) => super::time::in_seconds(*duration),
        Value::Type(name) => (*name).to_owned(),
        _ => return None,
    })
}

fn to_bytes<'a>(arguments: &[Value<'a>], _budget: &mut Budget) -> Result<Value<'a>, EvalError> {
    match arguments {
        [Value::Bytes(bytes)] => Ok(Value::Bytes(bytes.clone())),
        [Value::String(text)] => Ok(Value::Bytes(text.as_bytes().into())),
        _ => misfit(),
    }
}

fn unreadable(text: &str, of: &str) -> EvalError {
    failed(format!("type conversion error from 'string' to '{of}': {text:?}"))
}
