//! Lists, sets and optionals.

use std::cmp::Ordering;

use super::{Function, T, failed, global, member, misfit};
use crate::compare::{compare, contains, equal};
use crate::cost::Cost;
use crate::eval::{Budget, EvalError};
use crate::value::{List, Value};

const LIST: T = T::List(&T::A);
const OPTIONAL: T = T::Optional(&T::A);

pub(super) static FUNCTIONS: &[Function] = &[
    member("isSorted", &[LIST], T::Bool, Cost::Elements, |arguments, _| match arguments {
        [Value::List(list)] => {
            let items: Vec<Value<'_>> = list.iter().collect();
            let is_ordered = |pair: &[Value<'_>]| match pair {
                [left, right] => compare(left, right).is_some_and(Ordering::is_le),
                _ => true,
            };
            Ok(Value::Bool(items.windows(2).all(is_ordered)))
        }
        _ => misfit(),
    }),
    member("sum", &[T::List(&T::A)], T::A, Cost::Elements, |arguments, budget| match arguments {
        [Value::List(list)] => sum(list, budget),
        _ => misfit(),
    }),
    member("min", &[LIST], T::A, Cost::Elements, |arguments, _| extreme(arguments, "min", Ordering::is_lt)),
    member("max", &[LIST], T::A, Cost::Elements, |arguments, _| extreme(arguments, "max", Ordering::is_gt)),
    member("indexOf", &[LIST, T::A], T::Int, Cost::Elements, |arguments, budget| match arguments {
        [Value::List(list), value] => place(list.iter().enumerate(), value, budget),
        _ => misfit(),
    }),
    member("lastIndexOf", &[LIST, T::A], T::Int, Cost::Elements, |arguments, budget| match arguments {
        [Value::List(list), value] => {
            let backwards = (0..list.len()).rev().filter_map(|at| Some((at, list.get(at)?)));
            place(backwards, value, budget)
        }
        _ => misfit(),
    }),
    member("distinct", &[LIST], LIST, Cost::Elements, |arguments, budget| match arguments {
        [Value::List(list)] => distinct(list, budget),
        _ => misfit(),
    }),
    member("reverse", &[LIST], LIST, Cost::Elements, |arguments, _| match arguments {
        [Value::List(list)] => {
            let mut items: Vec<Value<'_>> = list.iter().collect();
            items.reverse();
            Ok(Value::list(items))
        }
        _ => misfit(),
    }),
    member("slice", &[LIST, T::Int, T::Int], LIST, Cost::Elements, |arguments, _| match arguments {
        [Value::List(list), Value::Int(from), Value::Int(to)] => slice(list, *from, *to),
        _ => misfit(),
    }),
    global("sets.contains", &[LIST, LIST], T::Bool, Cost::Pairs, |arguments, budget| match arguments {
        [Value::List(all), Value::List(some)] => has_all(all, some, budget).map(Value::Bool),
        _ => misfit(),
    }),
    global("sets.equivalent", &[LIST, LIST], T::Bool, Cost::Pairs, |arguments, budget| match arguments {
        [Value::List(left), Value::List(right)] => {
            Ok(Value::Bool(has_all(left, right, budget)? && has_all(right, left, budget)?))
        }
        _ => misfit(),
    }),
    global("sets.intersects", &[LIST, LIST], T::Bool, Cost::Pairs, |arguments, budget| match arguments {
        [Value::List(left), Value::List(right)] => {
            for item in left.iter() {
                if contains(right, &item, budget)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        _ => misfit(),
    }),
    global("optional.none", &[], T::Optional(&T::Dyn), Cost::Flat, |_, _| Ok(Value::Optional(None))),
    global("optional.of", &[T::A], OPTIONAL, Cost::Flat, |arguments, _| match arguments {
        [value] => Ok(Value::some(value.clone())),
        _ => misfit(),
    }),
    global("optional.ofNonZeroValue", &[T::A], OPTIONAL, Cost::Flat, |arguments, _| match arguments {
        [value] if is_zero(value) => Ok(Value::Optional(None)),
        [value] => Ok(Value::some(value.clone())),
        _ => misfit(),
    }),
    member("hasValue", &[OPTIONAL], T::Bool, Cost::Flat, |arguments, _| match arguments {
        [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
        _ => misfit(),
    }),
    member("value", &[OPTIONAL], T::A, Cost::Flat, |arguments, _| match arguments {
        [Value::Optional(Some(value))] => Ok((**value).clone()),
        [Value::Optional(None)] => Err(failed("optional.none() dereference")),
        _ => misfit(),
    }),
    member("orValue", &[OPTIONAL, T::A], T::A, Cost::Flat, |arguments, _| match arguments {
        [Value::Optional(Some(value)), _] => Ok((**value).clone()),
        [Value::Optional(None), other] => Ok(other.clone()),
        _ => misfit(),
    }),
    member("or", &[OPTIONAL, OPTIONAL], OPTIONAL, Cost::Flat, |arguments, _| match arguments {
        [Value::Optional(None), other] => Ok(other.clone()),
        [value, _] => Ok(value.clone()),
        _ => misfit(),
    }),
];

fn sum<'a>(list: &List<'a>, budget: &mut Budget) -> Result<Value<'a>, EvalError> {
    let mut sum: Option<Value<'a>> = None;
    for item in list.iter() {
        sum = Some(match sum {
            None => item,
            Some(sum) => super::call("_+_", false, &[sum, item], budget)?,
        });
    }
    // Of what nothing is the sum, nobody knows; whole numbers are the likeliest.
    Ok(sum.unwrap_or(Value::Int(0)))
}

fn extreme<'a>(
    arguments: &[Value<'a>],
    name: &str,
    wins: fn(Ordering) -> bool,
) -> Result<Value<'a>, EvalError> {
    let [Value::List(list)] = arguments else { return misfit() };
    let mut best: Option<Value<'a>> = None;
    for item in list.iter() {
        let is_better = match &best {
            None => true,
            Some(best) => compare(&item, best).is_some_and(wins),
        };
        if is_better {
            best = Some(item);
        }
    }
    best.ok_or_else(|| failed(format!("{name} called on empty list")))
}

fn place<'a>(
    items: impl Iterator<Item = (usize, Value<'a>)>,
    value: &Value<'a>,
    budget: &mut Budget,
) -> Result<Value<'a>, EvalError> {
    for (at, item) in items {
        if equal(&item, value, budget)? {
            return Ok(Value::Int(i64::try_from(at).unwrap_or(i64::MAX)));
        }
    }
    Ok(Value::Int(-1))
}

fn distinct<'a>(list: &List<'a>, budget: &mut Budget) -> Result<Value<'a>, EvalError> {
    let mut kept: Vec<Value<'a>> = Vec::new();
    for item in list.iter() {
        let mut is_new = true;
        for old in &kept {
            is_new = is_new && !equal(old, &item, budget)?;
        }
        if is_new {
            kept.push(item);
        }
    }
    Ok(Value::list(kept))
}

fn slice<'a>(list: &List<'a>, from: i64, to: i64) -> Result<Value<'a>, EvalError> {
    let outside = || failed(format!("cannot slice({from}, {to}), list is length {}", list.len()));
    let (Ok(start), Ok(end)) = (usize::try_from(from), usize::try_from(to)) else { return Err(outside()) };
    if start > end || end > list.len() {
        return Err(outside());
    }
    Ok(Value::list((start..end).filter_map(|at| list.get(at)).collect()))
}

fn has_all<'a>(all: &List<'a>, some: &List<'a>, budget: &mut Budget) -> Result<bool, EvalError> {
    for item in some.iter() {
        if !contains(all, &item, budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) | Value::Uint(0) | Value::Optional(None) => true,
        Value::Double(number) => *number == 0.0,
        Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_) => value.size() == 0,
        Value::Duration(duration) => duration.as_nanos() == 0,
        _ => false,
    }
}
