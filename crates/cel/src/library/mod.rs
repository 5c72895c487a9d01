//! All functions and operators: one row each, with its types, its cost and what it does.
//!
//! ```text
//!   operators.rs  operators                             time.rs     moments and durations
//!   standard.rs   sizes, conversions                    net.rs      URLs and IP addresses
//!   text.rs       texts and regular expressions         amounts.rs  quantities and versions
//!   lists.rs      lists, sets, optionals                formats.rs  formats with a name
//! ```

mod amounts;
mod formats;
mod lists;
mod net;
mod operators;
mod standard;
mod text;
mod time;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::cost::Cost;
use crate::eval::{Budget, EvalError};
use crate::types::{MapType, Opaque, Size, Type};
use crate::value::Value;

pub use amounts::Semver;
pub use net::{Cidr, Url};
pub(crate) use standard::shown;
pub(crate) use time::parse_timestamp;

/// One way to call a function.
pub(crate) struct Function {
    name: &'static str,
    is_member: bool,
    takes: &'static [T],
    gives: T,
    cost: Cost,
    run: Run,
}

type Run = for<'a, 'b, 'c> fn(&'b [Value<'a>], &'c mut Budget) -> Result<Value<'a>, EvalError>;

/// A type as rows write it. `A` and `B` are whatever the arguments say, but the same wherever they stand.
#[derive(Clone, Copy, Debug)]
enum T {
    A,
    B,
    Dyn,
    Bool,
    Int,
    Uint,
    Double,
    /// Any of the three.
    Number,
    Str,
    Bytes,
    Time,
    Duration,
    List(&'static T),
    Map(&'static T, &'static T),
    Optional(&'static T),
    Type,
    Opaque(Opaque),
}

const fn global(name: &'static str, takes: &'static [T], gives: T, cost: Cost, run: Run) -> Function {
    Function { name, is_member: false, takes, gives, cost, run }
}

const fn member(name: &'static str, takes: &'static [T], gives: T, cost: Cost, run: Run) -> Function {
    Function { name, is_member: true, takes, gives, cost, run }
}

/// All ways to call the function of a name.
fn named(name: &str) -> &'static [&'static Function] {
    static BY_NAME: OnceLock<HashMap<&str, Vec<&Function>>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        let tables = [
            operators::OPERATORS,
            operators::LESS,
            operators::LESS_OR_EQUAL,
            operators::GREATER,
            operators::GREATER_OR_EQUAL,
            standard::FUNCTIONS,
            text::FUNCTIONS,
            lists::FUNCTIONS,
            time::FUNCTIONS,
            net::FUNCTIONS,
            amounts::FUNCTIONS,
            formats::FUNCTIONS,
        ];
        let mut by_name: HashMap<&str, Vec<&Function>> = HashMap::new();
        for function in tables.into_iter().flatten() {
            by_name.entry(function.name).or_default().push(function);
        }
        by_name
    });
    by_name.get(name).map_or(&[], Vec::as_slice)
}

/// Whether a text is a regular expression that can be asked of others.
pub(crate) fn is_pattern(text: &str) -> bool {
    text::is_pattern(text)
}

/// Whether there is a function of this name.
pub(crate) fn is_known(name: &str) -> bool {
    !named(name).is_empty()
}

/// What a call gives for arguments of these types, and what it costs at most; `None` if it does not take them.
pub(crate) fn check(name: &str, is_member: bool, arguments: &[Type]) -> Option<(Type, u64)> {
    let mut found: Option<(Type, u64)> = None;
    for function in named(name).iter().filter(|function| function.is_member == is_member) {
        let mut bound = Bound::default();
        let fits = function.takes.len() == arguments.len()
            && function.takes.iter().zip(arguments).all(|(takes, argument)| bound.unify(takes, argument));
        if !fits {
            continue;
        }
        let (cost, size) = function.cost.estimate(arguments);
        let gives = bound.resolve(&function.gives, Size(size));
        // Arguments of unknown type fit several ways; what comes out is then known only if all agree.
        found = Some(match found {
            None => (gives, cost),
            Some((other, dearer)) => (other.join(&gives).unwrap_or(Type::Dyn), dearer.max(cost)),
        });
    }
    found
}

/// Calls a function.
pub(crate) fn call<'a>(
    name: &str,
    is_member: bool,
    arguments: &[Value<'a>],
    budget: &mut Budget,
) -> Result<Value<'a>, EvalError> {
    let mut rows = named(name).iter().filter(|function| function.is_member == is_member);
    let row = rows.find(|function| {
        function.takes.len() == arguments.len()
            && function.takes.iter().zip(arguments).all(|(takes, argument)| takes.accepts(argument))
    });
    let row = row.ok_or(EvalError::NoSuchOverload)?;
    budget.spend(row.cost.actual(arguments))?;
    (row.run)(arguments, budget)
}

/// A type by the name that expressions use for it.
pub(crate) fn type_named(name: &str) -> Option<&'static str> {
    const NAMES: [&str; 10] =
        ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"];
    NAMES.into_iter().find(|own| *own == name)
}

/// What the parameters of a signature stand for.
#[derive(Default)]
struct Bound {
    a: Option<Type>,
    b: Option<Type>,
}

impl Bound {
    fn unify(&mut self, takes: &T, argument: &Type) -> bool {
        let slot = match takes {
            T::A => &mut self.a,
            T::B => &mut self.b,
            _ => return self.unify_shape(takes, argument),
        };
        let joined = match slot {
            None => Some(argument.clone()),
            Some(bound) => bound.join(argument),
        };
        let fits = joined.is_some();
        if fits {
            *slot = joined;
        }
        fits
    }

    fn unify_shape(&mut self, takes: &T, argument: &Type) -> bool {
        match (takes, argument) {
            (_, Type::Dyn) | (T::Dyn, _) => true,
            (T::Bool, Type::Bool)
            | (T::Int, Type::Int)
            | (T::Uint, Type::Uint)
            | (T::Double, Type::Double)
            | (T::Number, Type::Int | Type::Uint | Type::Double)
            | (T::Str, Type::String(_))
            | (T::Bytes, Type::Bytes(_))
            | (T::Time, Type::Timestamp)
            | (T::Duration, Type::Duration)
            | (T::Type, Type::Type) => true,
            (T::List(takes), Type::List(list)) => self.unify(takes, &list.of),
            (T::Map(key, value), Type::Map(map)) => {
                self.unify(key, &map.key) && self.unify(value, &map.value)
            }
            (T::Optional(takes), Type::Optional(of)) => self.unify(takes, of),
            (T::Opaque(takes), Type::Opaque(of)) => takes == of,
            _ => false,
        }
    }

    fn resolve(&self, gives: &T, size: Size) -> Type {
        match gives {
            T::A => self.a.clone().unwrap_or(Type::Dyn),
            T::B => self.b.clone().unwrap_or(Type::Dyn),
            T::Dyn => Type::Dyn,
            T::Bool => Type::Bool,
            T::Int => Type::Int,
            T::Uint => Type::Uint,
            T::Double | T::Number => Type::Double,
            T::Str => Type::String(size),
            T::Bytes => Type::Bytes(size),
            T::Time => Type::Timestamp,
            T::Duration => Type::Duration,
            T::List(of) => Type::list(self.resolve(of, size), size),
            T::Map(key, value) => {
                let (key, value) = (self.resolve(key, size), self.resolve(value, size));
                Type::Map(Arc::new(MapType { key, value, size }))
            }
            T::Optional(of) => Type::Optional(Arc::new(self.resolve(of, size))),
            T::Type => Type::Type,
            T::Opaque(opaque) => Type::Opaque(*opaque),
        }
    }
}

impl T {
    /// Whether a value may stand where this type is asked for. What is inside a list shows when it is used.
    fn accepts(&self, value: &Value<'_>) -> bool {
        match self {
            T::A | T::B | T::Dyn => true,
            T::Bool => matches!(value, Value::Bool(_)),
            T::Int => matches!(value, Value::Int(_)),
            T::Uint => matches!(value, Value::Uint(_)),
            T::Double => matches!(value, Value::Double(_)),
            T::Number => matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_)),
            T::Str => matches!(value, Value::String(_)),
            T::Bytes => matches!(value, Value::Bytes(_)),
            T::Time => matches!(value, Value::Timestamp(_)),
            T::Duration => matches!(value, Value::Duration(_)),
            T::List(_) => matches!(value, Value::List(_)),
            T::Map(..) => matches!(value, Value::Map(_)),
            T::Optional(_) => matches!(value, Value::Optional(_)),
            T::Type => matches!(value, Value::Type(_)),
            T::Opaque(opaque) => value.type_name() == opaque.name(),
        }
    }
}

/// A failure in the middle of a function.
fn failed(why: impl Into<String>) -> EvalError {
    EvalError::Failed(why.into())
}

/// The arguments are not what the row says; it is found by them, so this does not happen.
fn misfit<'a>() -> Result<Value<'a>, EvalError> {
    Err(EvalError::NoSuchOverload)
}
