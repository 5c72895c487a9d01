//! The Common Expression Language, as Kubernetes uses it for rules in definitions and policies.
//!
//! ```text
//!   source ──lexer──> words ──parser──> Expr ──check──> Program: its type, and what it costs at most
//!                                                          │
//!   JSON, seen through its Type ──> Value ──────────eval────┴──> Value, within a Budget
//! ```
//!
//! An expression is checked against the types of its variables before it ever runs, as Kubernetes does, and it runs within
//! a budget: a rule can neither hang the server nor fill its memory. What it can call is in [`library`], one row per
//! function.
//!
//! **Invariants:** nothing here panics on any source or value, nothing does I/O, and the same expression over the same values
//! always comes to the same.

mod ast;
mod check;
mod compare;
mod cost;
mod eval;
mod lexer;
mod library;
mod parser;
#[cfg(test)]
mod tests;
mod types;
mod value;

use std::fmt;

pub use eval::{Budget, EvalError};
pub use library::{Cidr, Semver, Url};
pub use parser::is_reserved;
pub use types::{FieldType, ListType, MapType, ObjectType, Opaque, Order, Size, Type};
pub use value::{Built, Key, List, Map, Text, Value};

use ast::Expr;
use eval::Evaluator;

/// The longest expression that is read, in characters.
const SOURCE_LENGTH_MAX: usize = 100_000;

/// An expression that can be evaluated.
#[derive(Clone, Debug)]
pub struct Program {
    expr: Expr,
    of: Type,
    cost: u64,
}

/// The types of objects that an expression can build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builds {
    /// None.
    Nothing,
    /// `Object`, `Object.field` and so on, and `JSONPatch`.
    Patches,
}

impl Program {
    /// Reads an expression and checks it against the types of its variables.
    pub fn compile(source: &str, variables: &[(String, Type)]) -> Result<Program, CompileError> {
        Program::compile_building(source, variables, Builds::Nothing)
    }

    /// The same for an expression that can build objects.
    pub fn compile_building(
        source: &str,
        variables: &[(String, Type)],
        builds: Builds,
    ) -> Result<Program, CompileError> {
        let length = source.chars().count();
        if length > SOURCE_LENGTH_MAX {
            let why = format!(
                "expression code point size exceeds limit: size: {length}, limit {SOURCE_LENGTH_MAX}"
            );
            return Err(CompileError { message: why });
        }
        let expr = parser::parse(source)?;
        let (checked, faults) = check::check(&expr, variables, builds);
        if !faults.is_empty() {
            return Err(CompileError::new(source, &faults));
        }
        Ok(Program { expr, of: checked.of, cost: checked.cost })
    }

    /// The type of what it comes to.
    pub fn result_type(&self) -> &Type {
        &self.of
    }

    /// What evaluating it costs at most, as far as the types of its variables tell.
    pub fn estimated_cost(&self) -> u64 {
        self.cost
    }

    /// Whether it says anything about a variable.
    pub fn mentions(&self, variable: &str) -> bool {
        self.expr.mentions(variable)
    }

    /// What it comes to.
    pub fn evaluate<'a>(
        &'a self,
        variables: &[(&'a str, Value<'a>)],
        budget: &mut Budget,
    ) -> Result<Value<'a>, EvalError> {
        Evaluator { scope: variables.to_vec(), budget }.eval(&self.expr)
    }
}

/// Why an expression cannot be read, or cannot mean anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CompileError {
    message: String,
}

impl CompileError {
    fn one(source: &str, fault: Fault) -> CompileError {
        CompileError::new(source, &[fault])
    }

    fn new(source: &str, faults: &[Fault]) -> CompileError {
        let shown: Vec<String> = faults.iter().map(|fault| Shown { source, fault }.to_string()).collect();
        CompileError { message: shown.join("\n") }
    }
}

/// One thing that is wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    at: usize,
    why: String,
}

impl Fault {
    pub(crate) fn new(at: usize, why: impl Into<String>) -> Fault {
        Fault { at, why: why.into() }
    }

    pub(crate) fn syntax(at: usize, why: impl fmt::Display) -> Fault {
        Fault::new(at, format!("Syntax error: {why}"))
    }
}

/// A fault with its line, and a mark under the place.
struct Shown<'a> {
    source: &'a str,
    fault: &'a Fault,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { at, why } = self.fault;
        let before = self.source.get(..*at).unwrap_or(self.source);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let column = before.get(line_start..).unwrap_or_default().chars().count();
        let line = self.source.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
        let number = before.matches('\n').count() + 1;
        write!(f, "ERROR: <input>:{number}:{}: {why}\n | {line}\n | {}^", column + 1, ".".repeat(column))
    }
}
