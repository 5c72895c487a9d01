//! What an expression comes to, within a budget.
//!
//! **Invariant:** every step spends before it works, so an expression that would take too long ends with an error instead.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Expr, ExprKind, Fold, FoldKind, Literal, Logic, ObjectField};
use crate::library;
use crate::value::{Built, Key, Map, Text, Value};

/// How much an evaluation may still cost. One unit is about one look at a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// A budget of so many units.
    pub const fn new(units: u64) -> Budget {
        Budget { left: units }
    }

    /// What is left of it.
    pub const fn left(self) -> u64 {
        self.left
    }

    /// Takes from the budget; an error if there is not so much.
    pub(crate) fn spend(&mut self, units: u64) -> Result<(), EvalError> {
        self.left = match self.left.checked_sub(units) {
            Some(left) => left,
            None => {
                self.left = 0;
                return Err(EvalError::OverBudget);
            }
        };
        Ok(())
    }
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// It costs more than it may.
    #[error("operation cancelled: actual cost limit exceeded")]
    OverBudget,
    /// A function or an operator does not take these values. Only values of unknown type get here.
    #[error("no such overload")]
    NoSuchOverload,
    /// Something went wrong in the middle, such as a division by zero.
    #[error("{0}")]
    Failed(String),
}

impl EvalError {
    pub(crate) fn no_key(key: impl std::fmt::Display) -> EvalError {
        EvalError::Failed(format!("no such key: {key}"))
    }
}

/// The names in scope and what can be spent.
pub(crate) struct Evaluator<'a, 'b> {
    pub scope: Vec<(&'a str, Value<'a>)>,
    pub budget: &'b mut Budget,
}

type Evaluated<'a> = Result<Value<'a>, EvalError>;

impl<'a> Evaluator<'a, '_> {
    pub(crate) fn eval(&mut self, expr: &'a Expr) -> Evaluated<'a> {
        match &expr.kind {
            ExprKind::Literal(literal) => Ok(value_of(literal)),
            ExprKind::Name(name) => self.name(name),
            ExprKind::Select { operand, field, is_optional } => self.select(operand, field, *is_optional),
            ExprKind::Has { operand, field } => {
                self.budget.spend(1)?;
                let operand = self.eval(operand)?;
                field_of(&operand, field).map(|found| Value::Bool(found.is_some()))
            }
            ExprKind::Call { name, is_member, arguments } => {
                let values =
                    arguments.iter().map(|argument| self.eval(argument)).collect::<Result<Vec<_>, _>>()?;
                library::call(name, *is_member, &values, self.budget)
            }
            ExprKind::Logic { operator, operands } => self.logic(*operator, operands),
            ExprKind::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                match self.eval(condition)? {
                    Value::Bool(true) => self.eval(yes),
                    Value::Bool(false) => self.eval(no),
                    _ => Err(EvalError::NoSuchOverload),
                }
            }
            ExprKind::List(items) => {
                self.budget.spend(10)?;
                let mut made = Vec::with_capacity(items.len());
                for item in items {
                    made.extend(self.element(item)?);
                }
                Ok(Value::list(made))
            }
            ExprKind::Object { name, fields } => self.object(name, fields),
            // Nothing but what holds elements has such an expression.
            ExprKind::Maybe(value) => self.eval(value),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Fold(fold) => self.fold(fold),
            ExprKind::OptMap { variable, is_flat, parts } => self.opt_map(variable, *is_flat, parts),
        }
    }

    fn name(&mut self, name: &str) -> Evaluated<'a> {
        self.budget.spend(1)?;
        let found = self.scope.iter().rev().find(|(own, _)| *own == name).map(|(_, value)| value.clone());
        let found = found.or_else(|| library::type_named(name).map(Value::Type));
        found.ok_or_else(|| EvalError::Failed(format!("no such attribute: {name}")))
    }

    fn select(&mut self, operand: &'a Expr, field: &str, is_optional: bool) -> Evaluated<'a> {
        self.budget.spend(1)?;
        match self.eval(operand)? {
            Value::Optional(None) => Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => Ok(Value::Optional(field_of(&inner, field)?.map(Arc::new))),
            operand if is_optional => Ok(Value::Optional(field_of(&operand, field)?.map(Arc::new))),
            operand => field_of(&operand, field)?.ok_or_else(|| EvalError::no_key(field)),
        }
    }

    /// An operand that settles the matter does so even if another one fails.
    fn logic(&mut self, operator: Logic, operands: &'a [Expr]) -> Evaluated<'a> {
        let settles = operator == Logic::Or;
        let mut failed = None;
        for operand in operands {
            match self.eval(operand) {
                Ok(Value::Bool(value)) if value == settles => return Ok(Value::Bool(settles)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failed = failed.or(Some(EvalError::NoSuchOverload)),
                Err(EvalError::OverBudget) => return Err(EvalError::OverBudget),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(Value::Bool(!settles)), Err)
    }

    fn map(&mut self, entries: &'a [(Expr, Expr)]) -> Evaluated<'a> {
        self.budget.spend(30)?;
        let mut made = BTreeMap::new();
        for (key, value) in entries {
            let key = Key::of(&self.eval(key)?).ok_or(EvalError::NoSuchOverload)?;
            let Some(value) = self.element(value)? else { continue };
            if made.contains_key(&key) {
                return Err(EvalError::Failed(format!("Failed with repeated key: {key}")));
            }
            made.insert(key, value);
        }
        Ok(Value::Map(Map::Made(Arc::new(made))))
    }

    /// One value of a list, a map or an object, unless it is an optional that has none.
    fn element(&mut self, expr: &'a Expr) -> Result<Option<Value<'a>>, EvalError> {
        let ExprKind::Maybe(optional) = &expr.kind else { return self.eval(expr).map(Some) };
        match self.eval(optional)? {
            Value::Optional(value) => Ok(value.map(|value| (*value).clone())),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    fn object(&mut self, name: &'a str, fields: &'a [ObjectField]) -> Evaluated<'a> {
        self.budget.spend(40)?;
        let mut made = BTreeMap::new();
        for field in fields {
            if let Some(value) = self.element(&field.value)? {
                made.insert(field.name.as_str().into(), value);
            }
        }
        Ok(Value::Built(Arc::new(Built { name, fields: made })))
    }

    fn opt_map(
        &mut self,
        variable: &'a str,
        is_flat: bool,
        [optional, body]: &'a [Expr; 2],
    ) -> Evaluated<'a> {
        match self.eval(optional)? {
            Value::Optional(None) => Ok(Value::Optional(None)),
            Value::Optional(Some(value)) => {
                let mapped = self.with(&[(variable, (*value).clone())], |own| own.eval(body))?;
                Ok(if is_flat { mapped } else { Value::some(mapped) })
            }
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    /// Does something with more names in scope.
    fn with<T>(&mut self, names: &[(&'a str, Value<'a>)], act: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.scope.len();
        self.scope.extend_from_slice(names);
        let outcome = act(self);
        self.scope.truncate(before);
        outcome
    }

    fn fold(&mut self, fold: &'a Fold) -> Evaluated<'a> {
        let range = self.eval(&fold.range)?;
        let mut folding = Folding::new(fold.kind);
        let n_elements = usize::try_from(range.size()).unwrap_or(usize::MAX);
        let entries = match &range {
            Value::Map(map) => {
                self.budget.spend(range.size())?;
                Some(map.entries())
            }
            _ => None,
        };
        for index in 0..entries.as_ref().map_or(n_elements, Vec::len) {
            self.budget.spend(1)?;
            let (key, value) = match (&range, entries.as_ref().and_then(|entries| entries.get(index))) {
                (_, Some((key, value))) => (key.to_value(), value.clone()),
                (Value::List(list), None) => {
                    (Value::Int(index as i64), list.get(index).ok_or(EvalError::NoSuchOverload)?)
                }
                _ => return Err(EvalError::NoSuchOverload),
            };
            let names = match (&fold.second, &range) {
                (Some(second), _) => {
                    vec![(fold.variable.as_str(), key.clone()), (second.as_str(), value.clone())]
                }
                (None, Value::Map(_)) => vec![(fold.variable.as_str(), key.clone())],
                (None, _) => vec![(fold.variable.as_str(), value.clone())],
            };
            let element = if fold.second.is_none() && entries.is_some() { key.clone() } else { value };
            let is_over = self.with(&names, |own| folding.step(own, fold, (key, element)))?;
            if is_over {
                break;
            }
        }
        folding.finish()
    }
}

/// What a macro over elements knows so far.
struct Folding<'a> {
    kind: FoldKind,
    failed: Option<EvalError>,
    is_settled: bool,
    n_found: usize,
    items: Vec<Value<'a>>,
    entries: BTreeMap<Key, Value<'a>>,
}

impl<'a> Folding<'a> {
    fn new(kind: FoldKind) -> Folding<'a> {
        let (items, entries) = (Vec::new(), BTreeMap::new());
        Folding { kind, failed: None, is_settled: false, n_found: 0, items, entries }
    }

    /// Takes one element into account; true if the others do not matter any more.
    fn step(
        &mut self,
        evaluator: &mut Evaluator<'a, '_>,
        fold: &'a Fold,
        (key, element): (Value<'a>, Value<'a>),
    ) -> Result<bool, EvalError> {
        if let Some(filter) = &fold.filter {
            match evaluator.eval(filter)? {
                Value::Bool(true) => {}
                Value::Bool(false) => return Ok(false),
                _ => return Err(EvalError::NoSuchOverload),
            }
        }
        let outcome = evaluator.eval(&fold.body);
        match (self.kind, outcome) {
            (_, Err(EvalError::OverBudget)) => return Err(EvalError::OverBudget),
            (FoldKind::All, Ok(Value::Bool(false))) | (FoldKind::Exists, Ok(Value::Bool(true))) => {
                self.is_settled = true;
            }
            (FoldKind::All | FoldKind::Exists, Ok(Value::Bool(_))) => {}
            // An element that settles the matter may still come.
            (FoldKind::All | FoldKind::Exists, Ok(_)) => self.fail(EvalError::NoSuchOverload),
            (FoldKind::All | FoldKind::Exists, Err(error)) => self.fail(error),
            (FoldKind::ExistsOne, Ok(Value::Bool(value))) => self.n_found += usize::from(value),
            (FoldKind::Filter, Ok(Value::Bool(true))) => self.items.push(element),
            (FoldKind::Filter, Ok(Value::Bool(false))) => {}
            (FoldKind::ExistsOne | FoldKind::Filter, Ok(_)) => return Err(EvalError::NoSuchOverload),
            (FoldKind::Map, Ok(value)) => self.items.push(value),
            (FoldKind::MapValues, Ok(value)) => {
                let key = Key::of(&key).ok_or(EvalError::NoSuchOverload)?;
                self.entries.insert(key, value);
            }
            (_, Err(error)) => return Err(error),
        }
        Ok(self.is_settled)
    }

    fn fail(&mut self, error: EvalError) {
        self.failed.get_or_insert(error);
    }

    fn finish(self) -> Evaluated<'a> {
        match (self.kind, self.failed) {
            (FoldKind::All, _) if self.is_settled => Ok(Value::Bool(false)),
            (FoldKind::Exists, _) if self.is_settled => Ok(Value::Bool(true)),
            (_, Some(error)) => Err(error),
            (FoldKind::All, None) => Ok(Value::Bool(true)),
            (FoldKind::Exists, None) => Ok(Value::Bool(false)),
            (FoldKind::ExistsOne, None) => Ok(Value::Bool(self.n_found == 1)),
            (FoldKind::Filter | FoldKind::Map, None) => Ok(Value::list(self.items)),
            (FoldKind::MapValues, None) => Ok(Value::Map(Map::Made(Arc::new(self.entries)))),
        }
    }
}

fn value_of(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(number) => Value::Int(*number),
        Literal::Uint(number) => Value::Uint(*number),
        Literal::Double(number) => Value::Double(*number),
        Literal::String(text) => Value::String(Text::Borrowed(text)),
        Literal::Bytes(bytes) => Value::Bytes(bytes.as_slice().into()),
    }
}

fn field_of<'a>(operand: &Value<'a>, field: &str) -> Result<Option<Value<'a>>, EvalError> {
    match operand {
        Value::Map(map) => Ok(map.field(field)),
        Value::Built(built) => Ok(built.fields.get(field).cloned()),
        Value::Optional(Some(inner)) => field_of(inner, field),
        Value::Optional(None) => Ok(None),
        _ => Err(EvalError::NoSuchOverload),
    }
}
