//! Whether values are equal, and which is less.

use std::cmp::Ordering;

use crate::eval::{Budget, EvalError};
use crate::types::Order;
use crate::value::{List, Map, Value};

/// Whether two values are equal. Numbers are compared as numbers, whatever their type.
pub(crate) fn equal<'a>(left: &Value<'a>, right: &Value<'a>, budget: &mut Budget) -> Result<bool, EvalError> {
    budget.spend(1)?;
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::String(left), Value::String(right)) => {
            budget.spend(left.len().min(right.len()) as u64 / 10)?;
            **left == **right
        }
        (Value::Bytes(left), Value::Bytes(right)) => {
            budget.spend(left.len().min(right.len()) as u64 / 10)?;
            left == right
        }
        (Value::List(left), Value::List(right)) => equal_lists(left, right, budget)?,
        (Value::Map(left), Value::Map(right)) => equal_maps(left, right, budget)?,
        (Value::Optional(left), Value::Optional(right)) => match (left, right) {
            (Some(left), Some(right)) => equal(left, right, budget)?,
            (left, right) => left.is_none() && right.is_none(),
        },
        (Value::Built(left), Value::Built(right)) => {
            let is_alike = left.name == right.name && left.fields.keys().eq(right.fields.keys());
            let mut pairs = left.fields.values().zip(right.fields.values());
            is_alike
                && pairs.try_fold(true, |so_far, (left, right)| Ok(so_far && equal(left, right, budget)?))?
        }
        (Value::Type(left), Value::Type(right)) => left == right,
        (Value::Url(left), Value::Url(right)) => left == right,
        (Value::Cidr(left), Value::Cidr(right)) => left == right,
        (Value::Format(left), Value::Format(right)) => left == right,
        _ => compare(left, right) == Some(Ordering::Equal),
    })
}

fn equal_lists<'a>(left: &List<'a>, right: &List<'a>, budget: &mut Budget) -> Result<bool, EvalError> {
    if left.len() != right.len() {
        return Ok(false);
    }
    let order = match left.order() {
        Order::Sequence => right.order(),
        order => order,
    };
    match order {
        Order::Sequence => {
            for (left, right) in left.iter().zip(right.iter()) {
                if !equal(&left, &right, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Order::Set | Order::Keyed(_) => {
            for item in left.iter() {
                if !contains(right, &item, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

fn equal_maps<'a>(left: &Map<'a>, right: &Map<'a>, budget: &mut Budget) -> Result<bool, EvalError> {
    let entries = left.entries();
    if entries.len() != right.entries().len() {
        return Ok(false);
    }
    for (key, value) in entries {
        match right.get(&key) {
            Some(other) if equal(&value, &other, budget)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Whether a list has an element that equals a value.
pub(crate) fn contains<'a>(
    list: &List<'a>,
    value: &Value<'a>,
    budget: &mut Budget,
) -> Result<bool, EvalError> {
    for item in list.iter() {
        if equal(&item, value, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The sum of two lists, as the first one's order has it.
pub(crate) fn concatenate<'a>(
    left: &List<'a>,
    right: &List<'a>,
    budget: &mut Budget,
) -> Result<Value<'a>, EvalError> {
    budget.spend((left.len() + right.len()) as u64)?;
    let mut items: Vec<Value<'a>> = left.iter().collect();
    match left.order() {
        Order::Sequence => items.extend(right.iter()),
        Order::Set => {
            for item in right.iter() {
                if !contains(left, &item, budget)? {
                    items.push(item);
                }
            }
        }
        Order::Keyed(keys) => {
            for item in right.iter() {
                let mut replaced = None;
                for (at, old) in items.iter().enumerate().take(left.len()) {
                    if has_same_keys(old, &item, keys, budget)? {
                        replaced = Some(at);
                    }
                }
                match replaced.and_then(|at| items.get_mut(at)) {
                    Some(slot) => *slot = item,
                    None => items.push(item),
                }
            }
        }
    }
    Ok(Value::list(items))
}

fn has_same_keys<'a>(
    left: &Value<'a>,
    right: &Value<'a>,
    keys: &[String],
    budget: &mut Budget,
) -> Result<bool, EvalError> {
    let (Value::Map(left), Value::Map(right)) = (left, right) else { return Ok(false) };
    for key in keys {
        let is_same = match (left.field(key), right.field(key)) {
            (Some(left), Some(right)) => equal(&left, &right, budget)?,
            (left, right) => left.is_none() && right.is_none(),
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Which of two values is less, if that can be said.
pub(crate) fn compare(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::String(left), Value::String(right)) => Some((**left).cmp(&**right)),
        (Value::Bytes(left), Value::Bytes(right)) => Some(left.cmp(right)),
        (Value::Timestamp(left), Value::Timestamp(right)) => Some(left.cmp(right)),
        (Value::Duration(left), Value::Duration(right)) => Some(left.cmp(right)),
        (Value::Quantity(left), Value::Quantity(right)) => Some(left.cmp(right)),
        (Value::Ip(left), Value::Ip(right)) => Some(left.cmp(right)),
        (Value::Semver(left), Value::Semver(right)) => Some(left.cmp(right)),
        (left, right) => compare_numbers(left, right),
    }
}

fn compare_numbers(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    let whole = |value: &Value<'_>| match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::Uint(number) => Some(i128::from(*number)),
        _ => None,
    };
    let floating = |value: &Value<'_>| match value {
        Value::Double(number) => Some(*number),
        value => whole(value).map(|number| number as f64),
    };
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => floating(left)?.partial_cmp(&floating(right)?),
    }
}
