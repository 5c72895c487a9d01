//! One rule of `x-kubernetes-validations`.

use krafla_cel::{CompileError, Program, Type};
use serde_json::Value;

/// A rule that can be asked.
#[derive(Debug)]
pub struct Rule {
    /// As it is written.
    pub source: String,
    /// What must be true.
    pub program: Program,
    /// What is said if it is not; empty: the rule itself.
    pub message: String,
    /// An expression for what is said.
    pub message_program: Option<Program>,
    /// The kind of finding, by its name for programs.
    pub reason: String,
    /// Which field below the value is wrong.
    pub field_path: String,
    /// Whether `oldSelf` may be absent.
    pub is_old_optional: bool,
    /// Whether it is about a change.
    pub is_transition: bool,
}

/// Why a rule cannot be asked.
#[derive(Debug)]
pub enum RuleFault {
    /// The rule cannot be read.
    Rule(CompileError),
    /// It is neither true nor false.
    NotBool,
    /// The message cannot be read.
    Message(CompileError),
    /// The message is no text.
    NotText,
}

impl Rule {
    /// Reads a rule about values of a type.
    pub fn compile(rule: &Value, of: &Type) -> Result<Rule, RuleFault> {
        let text = |name: &str| rule[name].as_str().unwrap_or_default().trim();
        let is_old_optional = rule["optionalOldSelf"] == true;
        let old = if is_old_optional { Type::Optional(of.clone().into()) } else { of.clone() };
        let variables = [("self".to_owned(), of.clone()), ("oldSelf".to_owned(), old)];
        let program = Program::compile(text("rule"), &variables).map_err(RuleFault::Rule)?;
        if !matches!(program.result_type(), Type::Bool | Type::Dyn) {
            return Err(RuleFault::NotBool);
        }
        let message_program = match text("messageExpression") {
            "" => None,
            source => Some(Program::compile(source, &variables).map_err(RuleFault::Message)?),
        };
        if message_program.as_ref().is_some_and(|it| !matches!(it.result_type(), Type::String(_) | Type::Dyn))
        {
            return Err(RuleFault::NotText);
        }
        Ok(Rule {
            source: text("rule").to_owned(),
            is_transition: program.mentions("oldSelf"),
            program,
            message: text("message").to_owned(),
            message_program,
            reason: text("reason").to_owned(),
            field_path: text("fieldPath").to_owned(),
            is_old_optional,
        })
    }
}
