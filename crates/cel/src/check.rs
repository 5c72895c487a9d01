//! What type an expression has and what it costs at most, found out before there are any values.

use std::sync::Arc;

use crate::ast::{Expr, ExprKind, Fold, FoldKind, Literal, ObjectField};
use crate::types::{Size, Type};
use crate::{Builds, Fault, library};

/// What is known of an expression.
pub(crate) struct Checked {
    pub of: Type,
    pub cost: u64,
}

/// The functions of an authorizer: known by name, though there is none to call them on.
const AUTHORIZER: [&str; 11] = [
    "allowed",
    "check",
    "error",
    "errored",
    "fieldSelector",
    "group",
    "labelSelector",
    "path",
    "reason",
    "serviceAccount",
    "subresource",
];

/// Finds out what an expression is; `faults` is what it cannot be.
pub(crate) fn check(expr: &Expr, variables: &[(String, Type)], builds: Builds) -> (Checked, Vec<Fault>) {
    let mut checker = Checker { scope: variables.to_vec(), builds, faults: Vec::new() };
    let checked = checker.check(expr);
    // In the order of their places, as cel-go reports them.
    checker.faults.sort_by_key(|fault| fault.at);
    (checked, checker.faults)
}

struct Checker {
    scope: Vec<(String, Type)>,
    builds: Builds,
    faults: Vec<Fault>,
}

impl Checker {
    fn check(&mut self, expr: &Expr) -> Checked {
        match &expr.kind {
            ExprKind::Literal(literal) => Checked { of: type_of(literal), cost: 0 },
            ExprKind::Name(name) => self.name(expr.at, name),
            ExprKind::Select { operand, field, is_optional } => {
                self.select(expr.at, operand, field, *is_optional)
            }
            ExprKind::Has { operand, field } => {
                let checked = self.select(expr.at, operand, field, false);
                Checked { of: Type::Bool, ..checked }
            }
            ExprKind::Call { name, is_member, arguments } => self.call(expr.at, name, *is_member, arguments),
            ExprKind::Logic { operands, .. } => self.logic(operands),
            ExprKind::Choice(parts) => self.choice(expr.at, parts),
            ExprKind::List(items) => {
                let (of, cost) = self.elements(items.iter());
                let size = Size(u64::try_from(items.len()).unwrap_or(u64::MAX));
                Checked { of: Type::list(of, size), cost: cost.saturating_add(10) }
            }
            ExprKind::Map(entries) => {
                let (key, key_cost) = self.elements(entries.iter().map(|(key, _)| key));
                let (value, value_cost) = self.elements(entries.iter().map(|(_, value)| value));
                let size = Size(u64::try_from(entries.len()).unwrap_or(u64::MAX));
                let cost = key_cost.saturating_add(value_cost).saturating_add(30);
                Checked { of: Type::map(key, value, size), cost }
            }
            ExprKind::Object { name, fields } => self.object(expr.at, name, fields),
            ExprKind::Maybe(value) => self.maybe(expr.at, value),
            ExprKind::Fold(fold) => self.fold(fold),
            ExprKind::OptMap { variable, is_flat, parts } => self.opt_map(expr.at, variable, *is_flat, parts),
        }
    }

    /// Notes a fault. What it is about may then be anything, so that one mistake is told once.
    fn fault(&mut self, at: usize, why: impl Into<String>) -> Checked {
        self.faults.push(Fault::new(at, why));
        Checked { of: Type::Dyn, cost: 0 }
    }

    fn name(&mut self, at: usize, name: &str) -> Checked {
        let found = self.scope.iter().rev().find(|(own, _)| own == name).map(|(_, of)| of.clone());
        let found = found.or_else(|| library::type_named(name).map(|_| Type::Type));
        match found {
            Some(of) => Checked { of, cost: 1 },
            None => self.fault(at, format!("undeclared reference to '{name}' (in container '')")),
        }
    }

    fn select(&mut self, at: usize, operand: &Expr, field: &str, is_optional: bool) -> Checked {
        let Checked { of, cost } = self.check(operand);
        let cost = cost.saturating_add(1);
        let (inner, was_optional) = match of {
            Type::Optional(inner) => ((*inner).clone(), true),
            of => (of, false),
        };
        let found = match &inner {
            Type::Dyn | Type::Built(_) => Ok(Type::Dyn),
            Type::Object(object) => match object.fields.get(field) {
                Some(found) => Ok(found.of.clone()),
                None => Err(format!("undefined field '{field}'")),
            },
            Type::Map(map) if matches!(map.key, Type::String(_) | Type::Dyn) => Ok(map.value.clone()),
            other => Err(format!("type '{other}' does not support field selection")),
        };
        match found {
            Ok(of) if is_optional || was_optional => Checked { of: Type::Optional(Arc::new(of)), cost },
            Ok(of) => Checked { of, cost },
            Err(why) => self.fault(at, why),
        }
    }

    fn call(&mut self, at: usize, name: &str, is_member: bool, arguments: &[Expr]) -> Checked {
        let mut cost = 0u64;
        let mut types = Vec::new();
        for argument in arguments {
            let checked = self.check(argument);
            cost = cost.saturating_add(checked.cost);
            types.push(checked.of);
        }
        match library::check(name, is_member, &types) {
            Some((of, own)) => {
                if let ("matches", Some(pattern)) = (name, arguments.last())
                    && let ExprKind::Literal(Literal::String(text)) = &pattern.kind
                    && !library::is_pattern(text)
                {
                    return self.fault(pattern.at, "invalid matches argument".to_owned());
                }
                Checked { of, cost: cost.saturating_add(own) }
            }
            // Without an authorizer there is nothing that these could be asked of.
            None if AUTHORIZER.contains(&name) && types.first() == Some(&Type::Dyn) => {
                Checked { of: Type::Dyn, cost }
            }
            None if !library::is_known(name) && !AUTHORIZER.contains(&name) => {
                self.fault(at, format!("undeclared reference to '{name}' (in container '')"))
            }
            None => {
                let shown: Vec<String> = types.iter().map(Type::to_string).collect();
                let applied = match shown.split_first() {
                    Some((receiver, rest)) if is_member => format!("{receiver}.({})", rest.join(", ")),
                    _ => format!("({})", shown.join(", ")),
                };
                self.fault(at, format!("found no matching overload for '{name}' applied to '{applied}'"))
            }
        }
    }

    fn logic(&mut self, operands: &[Expr]) -> Checked {
        let mut cost = 0u64;
        let mut types = Vec::new();
        for operand in operands {
            let checked = self.check(operand);
            cost = cost.saturating_add(checked.cost);
            types.push(checked.of);
        }
        for (operand, of) in operands.iter().zip(&types).filter(|(_, of)| !is_bool(of)) {
            self.fault(operand.at, format!("expected type 'bool' but found '{of}'"));
        }
        Checked { of: Type::Bool, cost }
    }

    fn choice(&mut self, at: usize, [condition, yes, no]: &[Expr; 3]) -> Checked {
        let (condition, yes, no) = (self.check(condition), self.check(yes), self.check(no));
        let cost = condition.cost.saturating_add(yes.cost.max(no.cost));
        match yes.of.join(&no.of) {
            Some(of) if is_bool(&condition.of) => Checked { of, cost },
            _ => {
                let applied = format!("({}, {}, {})", condition.of, yes.of, no.of);
                self.fault(at, format!("found no matching overload for '_?_:_' applied to '{applied}'"))
            }
        }
    }

    fn object(&mut self, at: usize, name: &str, fields: &[ObjectField]) -> Checked {
        let is_known = self.builds == Builds::Patches
            && (matches!(name, "Object" | "JSONPatch") || name.starts_with("Object."));
        if !is_known {
            return self.fault(at, format!("undeclared reference to '{name}' (in container '')"));
        }
        let mut cost = 40_u64;
        for ObjectField { at, name: field, value } in fields {
            let Checked { of, cost: own } = self.check(value);
            cost = cost.saturating_add(own);
            // A field that a patch does not have is of no type, and so is what messages say of it.
            let expected = match (name, field.as_str()) {
                ("JSONPatch", "op" | "path" | "from") if Type::TEXT.join(&of).is_none() => "string",
                ("JSONPatch", "op" | "path" | "from" | "value") => continue,
                ("JSONPatch", _) => "",
                _ => continue,
            };
            let why = format!("expected type of field '{field}' is '{expected}' but provided type is '{of}'");
            self.fault(*at, why);
        }
        Checked { of: Type::Built(name.into()), cost }
    }

    /// The type of the value that an optional may have.
    fn maybe(&mut self, at: usize, value: &Expr) -> Checked {
        let Checked { of, cost } = self.check(value);
        match of {
            Type::Optional(of) => Checked { of: (*of).clone(), cost },
            Type::Dyn => Checked { of: Type::Dyn, cost },
            other => self.fault(at, format!("expected type 'optional_type(dyn)' but found '{other}'")),
        }
    }

    /// The type that all elements have in common, and what they cost together.
    fn elements<'e>(&mut self, items: impl Iterator<Item = &'e Expr>) -> (Type, u64) {
        let (mut common, mut cost): (Option<Type>, u64) = (None, 0);
        for item in items {
            let checked = self.check(item);
            cost = cost.saturating_add(checked.cost);
            common = Some(match common {
                None => checked.of,
                Some(common) => common.join(&checked.of).unwrap_or(Type::Dyn),
            });
        }
        (common.unwrap_or(Type::Dyn), cost)
    }

    /// Checks something with more names in scope.
    fn check_with(&mut self, names: Vec<(String, Type)>, expr: &Expr) -> Checked {
        let before = self.scope.len();
        self.scope.extend(names);
        let checked = self.check(expr);
        self.scope.truncate(before);
        checked
    }

    fn fold(&mut self, fold: &Fold) -> Checked {
        let range = self.check(&fold.range);
        let (key, value) = match &range.of {
            Type::Dyn => (Type::Dyn, Type::Dyn),
            Type::List(list) => (Type::Int, list.of.clone()),
            Type::Map(map) => (map.key.clone(), map.value.clone()),
            other => {
                let why = "cannot be range of a comprehension (must be list, map, or dynamic)";
                return self.fault(fold.range.at, format!("expression of type '{other}' {why}"));
            }
        };
        let single = if matches!(range.of, Type::Map(_)) { key.clone() } else { value.clone() };
        let names = match &fold.second {
            Some(second) => vec![(fold.variable.clone(), key.clone()), (second.clone(), value)],
            None => vec![(fold.variable.clone(), single.clone())],
        };
        let filter_cost = match &fold.filter {
            Some(filter) => self.condition(names.clone(), filter),
            None => 0,
        };
        let makes = matches!(fold.kind, FoldKind::Map | FoldKind::MapValues);
        let body = match makes {
            true => self.check_with(names, &fold.body),
            false => Checked { of: Type::Bool, cost: self.condition(names, &fold.body) },
        };
        let size = range.of.size();
        // Every step looks at what is known so far, decides whether to go on, and puts both together.
        let step = body.cost.saturating_add(filter_cost).saturating_add(3);
        let cost = range.cost.saturating_add(size.saturating_mul(step)).saturating_add(1);
        let of = match fold.kind {
            FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne => Type::Bool,
            FoldKind::Filter => Type::list(single, Size(size)),
            FoldKind::Map => Type::list(body.of, Size(size)),
            FoldKind::MapValues => Type::map(key, body.of, Size(size)),
        };
        Checked { of, cost }
    }

    /// The cost of something that must be true or false.
    fn condition(&mut self, names: Vec<(String, Type)>, expr: &Expr) -> u64 {
        let checked = self.check_with(names, expr);
        if !is_bool(&checked.of) {
            let why = format!("expected type 'bool' but found '{}'", checked.of);
            self.fault(expr.at, why);
        }
        checked.cost
    }

    fn opt_map(&mut self, at: usize, variable: &str, is_flat: bool, [optional, body]: &[Expr; 2]) -> Checked {
        let optional = self.check(optional);
        let inner = match &optional.of {
            Type::Optional(inner) => (**inner).clone(),
            Type::Dyn => Type::Dyn,
            other => {
                return self
                    .fault(at, format!("found no matching overload for 'hasValue' applied to '{other}.()'"));
            }
        };
        let body = self.check_with(vec![(variable.to_owned(), inner)], body);
        let cost = optional.cost.saturating_add(body.cost).saturating_add(1);
        let of = if is_flat { body.of } else { Type::Optional(Arc::new(body.of)) };
        Checked { of, cost }
    }
}

fn is_bool(of: &Type) -> bool {
    matches!(of, Type::Bool | Type::Dyn)
}

fn type_of(literal: &Literal) -> Type {
    let size = |length: usize| Size(u64::try_from(length).unwrap_or(u64::MAX));
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(text) => Type::String(size(text.len())),
        Literal::Bytes(bytes) => Type::Bytes(size(bytes.len())),
    }
}
