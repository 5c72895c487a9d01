//! ValidatingAdmissionPolicies: rules of the cluster, written as expressions.
//!
//! ```text
//!   policy: what it is about, variables, validations     binding: where it holds, with which parameters, and what follows
//! ```
//!
//! Objects are seen as they are: their fields have no types before there is a value. A policy that fails to come to an answer
//! refuses the request, unless it says that it may be ignored.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_admission::webhook::{Hook, Target, Verb, hooks};
use krafla_api::Key;
use krafla_cel::{Budget, EvalError, Key as CelKey, Map, Program, Type, Value as CelValue};
use serde_json::{Value, json};

use super::kept::Kept;
use super::{Operation, Policy, Request};
use crate::object;
use crate::ops::Api;
use crate::status::{Cause, Details, Status};

const GROUP: &str = "admissionregistration.k8s.io";
const POLICIES: &str = "validatingadmissionpolicies.admissionregistration.k8s.io";
const BINDINGS: &str = "validatingadmissionpolicybindings.admissionregistration.k8s.io";
/// What all expressions of one policy may cost for one request.
const COST_MAX: u64 = 10_000_000;
/// The longest message that an expression may make.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// The names that expressions of policies can use.
pub(crate) const VARIABLES: [&str; 6] =
    ["object", "oldObject", "request", "params", "namespaceObject", "variables"];

/// Reads an expression of a policy.
pub(crate) fn compile(source: &str) -> Result<Program, krafla_cel::CompileError> {
    Program::compile(source, &VARIABLES.map(|name| (name.to_owned(), Type::Dyn)))
}

/// The policies that are stored. Their expressions are compiled once.
#[derive(Default)]
pub(super) struct Policies {
    policies: Kept<Compiled>,
    bindings: Kept<Value>,
}

/// Whether there are any that are asked.
pub(super) fn are_asked(api: &Api) -> bool {
    !api.store().snapshot(&BINDINGS.into()).entries.is_empty()
}

/// A policy, and its expressions or why they cannot be used.
struct Compiled {
    policy: Value,
    programs: Result<Programs, String>,
}

impl Compiled {
    fn new(policy: Value) -> Compiled {
        Compiled { programs: Programs::of(&policy), policy }
    }
}

impl Policy for Policies {
    fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Status> {
        // A wrong policy must be one that can be taken away.
        if *request.resource.names.group == *GROUP {
            return Ok(());
        }
        let bindings = request.api.store().snapshot(&BINDINGS.into());
        if bindings.entries.is_empty() {
            return Ok(());
        }
        let policies = request.api.store().snapshot(&POLICIES.into());
        for binding in self.bindings.all(&bindings, |binding| binding) {
            let name = text(&binding, "/spec/policyName");
            let is_denying = object::strings(binding.pointer("/spec/validationActions")).contains(&"Deny");
            let Some(entry) = policies.get(&Key::new("", name)).filter(|_| is_denying) else { continue };
            let Some(compiled) = self.policies.one(&policies, entry, Compiled::new) else { continue };
            let Compiled { policy, programs } = &*compiled;
            Asked { request, object, policy, programs, binding: &binding }.validate()?;
        }
        Ok(())
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    object::at(value, pointer).as_str().unwrap_or_default()
}

/// One policy, asked about one request by way of one binding.
struct Asked<'a> {
    request: &'a Request<'a>,
    object: &'a Value,
    policy: &'a Value,
    programs: &'a Result<Programs, String>,
    binding: &'a Value,
}

impl Asked<'_> {
    fn validate(&self) -> Result<(), Status> {
        let namespace = self.namespace();
        let concerned = self.is_concerned("/spec/matchConstraints", self.policy, namespace.as_ref())
            && (self.binding.pointer("/spec/matchResources").is_none()
                || self.is_concerned("/spec/matchResources", self.binding, namespace.as_ref()));
        if !concerned {
            return Ok(());
        }
        let facts = self.facts(namespace);
        match self.judge(&facts) {
            Ok(None) => Ok(()),
            Ok(Some(refusal)) => Err(refusal),
            Err(_) if text(self.policy, "/spec/failurePolicy") == "Ignore" => Ok(()),
            Err(why) => Err(self.refused(&why, "Invalid")),
        }
    }

    /// The refusal of the first validation that does not hold, or why none of it can be said.
    fn judge(&self, facts: &Value) -> Result<Option<Status>, String> {
        let mut budget = Budget::new(COST_MAX);
        let programs = self.programs.as_ref().map_err(String::clone)?;
        let mut scope: Vec<(&str, CelValue<'_>)> = Vec::new();
        for name in VARIABLES {
            scope.push((name, CelValue::from_json(object::at(facts, &format!("/{name}")), &Type::Dyn)));
        }
        for (source, condition) in &programs.conditions {
            match condition.evaluate(&scope, &mut budget) {
                Ok(CelValue::Bool(true)) => {}
                Ok(_) => return Ok(None),
                Err(error) => return Err(in_words(source, &error)),
            }
        }
        // Later variables may use earlier ones; one that fails is missing to those who ask for it.
        let mut made = BTreeMap::new();
        for (name, program) in &programs.variables {
            if let Ok(value) = program.evaluate(&scope, &mut budget) {
                made.insert(CelKey::String(name.as_str().into()), value);
            }
            scope.retain(|(name, _)| *name != "variables");
            scope.push(("variables", CelValue::Map(Map::Made(Arc::new(made.clone())))));
        }
        for validation in &programs.validations {
            match validation.holds.evaluate(&scope, &mut budget) {
                Ok(CelValue::Bool(true)) => {}
                Ok(_) => {
                    let message = validation.says(&scope, &mut budget);
                    return Ok(Some(self.refused(&message, &validation.reason)));
                }
                Err(error) => return Err(in_words(&validation.source, &error)),
            }
        }
        Ok(None)
    }

    /// Whether a request is what a policy or a binding is about.
    fn is_concerned(&self, pointer: &str, of: &Value, namespace: Option<&Value>) -> bool {
        let matched = object::at(of, pointer);
        let rules = |word: &str| matched.get(word).cloned().unwrap_or_else(|| json!([]));
        let hook = |rules: Value| {
            let mut hook = matched.clone();
            object::set(&mut hook, "rules", rules);
            hooks(&json!({"webhooks": [hook]})).into_iter().next()
        };
        let target = self.target();
        let covers = |hook: Option<Hook>| hook.is_some_and(|hook| hook.concerned(&[target]).is_some());
        // A binding that names no resources leaves it to the policy.
        let is_covered = covers(hook(rules("resourceRules"))) || matched.get("resourceRules").is_none();
        let is_selected = hook(rules("resourceRules"))
            .is_some_and(|hook| hook.selects(namespace, [Some(self.object), self.request.old]));
        is_covered && is_selected && !covers(hook(rules("excludeResourceRules")))
    }

    fn target(&self) -> Target<'_> {
        let names = &self.request.resource.names;
        Target {
            group: &names.group,
            version: &names.version,
            resource: &names.plural,
            subresource: "",
            is_namespaced: self.request.resource.is_namespaced(),
            verb: match self.request.operation {
                Operation::Create => Verb::Create,
                Operation::Update => Verb::Update,
                Operation::Delete => Verb::Delete,
            },
        }
    }

    /// The namespace of the object, or the object itself if it is one.
    fn namespace(&self) -> Option<Value> {
        if self.request.resource.storage.as_str() == "namespaces" {
            return Some(self.object.clone());
        }
        let key = Key::new("", object::namespace(self.object));
        let entry = self.request.api.store().get(&"namespaces".into(), &key)?;
        serde_json::from_slice(&entry.bytes).ok()
    }

    /// What expressions can look at.
    fn facts(&self, namespace: Option<Value>) -> Value {
        let target = self.target();
        let names = &self.request.resource.names;
        let is_deleted = self.request.operation == Operation::Delete;
        json!({
            "object": if is_deleted { Value::Null } else { self.object.clone() },
            "oldObject": self.request.old,
            "params": self.params(),
            "namespaceObject": namespace,
            "variables": {},
            "request": {
                "operation": target.verb.as_str(),
                "name": object::name(self.object),
                "namespace": object::namespace(self.object),
                "kind": {"group": target.group, "version": target.version, "kind": *names.kind},
                "resource": {"group": target.group, "version": target.version, "resource": target.resource},
                "subResource": "",
                "userInfo": {"username": crate::ADMINISTRATOR, "groups": crate::ADMINISTRATOR_GROUPS},
            },
        })
    }

    /// The object that the binding names as the policy's parameters.
    fn params(&self) -> Value {
        let find = || {
            let (group, version) =
                text(self.policy, "/spec/paramKind/apiVersion").split_once('/').unwrap_or(("", "v1"));
            let kind = text(self.policy, "/spec/paramKind/kind");
            let table = self.request.api.registry().table();
            let resource = table.resources().find(|resource| {
                let names = &resource.names;
                *names.group == *group && *names.version == *version && *names.kind == *kind
            })?;
            let namespace = match text(self.binding, "/spec/paramRef/namespace") {
                _ if !resource.is_namespaced() => "",
                "" => object::namespace(self.object),
                named => named,
            };
            let key = Key::new(namespace, text(self.binding, "/spec/paramRef/name"));
            let entry = self.request.api.store().get(&resource.storage, &key)?;
            serde_json::from_slice(&entry.bytes).ok()
        };
        find().unwrap_or_default()
    }

    fn refused(&self, why: &str, reason: &str) -> Status {
        let (policy, binding) = (object::name(self.policy), object::name(self.binding));
        let message =
            format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {why}");
        let (resource, name) = (self.request.resource.qualified(), object::name(self.object));
        let code = match reason {
            "Unauthorized" => 401,
            "Forbidden" => 403,
            "RequestEntityTooLarge" => 413,
            _ => 422,
        };
        let cause = Cause { message: message.clone(), ..Cause::default() };
        Status {
            code,
            reason: reason.to_owned().into(),
            message: format!("{resource} \"{name}\" is forbidden: {message}"),
            details: Some(Box::new(Details {
                group: resource.group.to_owned(),
                kind: resource.what.to_owned(),
                name: name.to_owned(),
                causes: vec![cause],
                ..Details::default()
            })),
        }
    }
}

/// The expressions of a policy.
struct Programs {
    /// Each with its source.
    conditions: Vec<(String, Program)>,
    /// Each with its name.
    variables: Vec<(String, Program)>,
    validations: Vec<Validation>,
}

struct Validation {
    source: String,
    holds: Program,
    message: String,
    message_program: Option<Program>,
    reason: String,
}

impl Programs {
    fn of(policy: &Value) -> Result<Programs, String> {
        let list = |pointer: &str| object::at(policy, pointer).as_array().map_or(&[][..], Vec::as_slice);
        let read = |source: &str| compile(source).map_err(|error| format!("compilation error: {error}"));
        let mut programs =
            Programs { conditions: Vec::new(), variables: Vec::new(), validations: Vec::new() };
        for condition in list("/spec/matchConditions") {
            let source = text(condition, "/expression");
            programs.conditions.push((source.to_owned(), read(source)?));
        }
        for variable in list("/spec/variables") {
            let name = text(variable, "/name").to_owned();
            programs.variables.push((name, read(text(variable, "/expression"))?));
        }
        for validation in list("/spec/validations") {
            let source = text(validation, "/expression");
            programs.validations.push(Validation {
                source: source.to_owned(),
                holds: read(source)?,
                message: text(validation, "/message").to_owned(),
                message_program: match text(validation, "/messageExpression") {
                    "" => None,
                    source => Some(read(source)?),
                },
                reason: match text(validation, "/reason") {
                    "" => "Invalid".to_owned(),
                    reason => reason.to_owned(),
                },
            });
        }
        Ok(programs)
    }
}

impl Validation {
    fn says<'a>(&'a self, scope: &[(&'a str, CelValue<'a>)], budget: &mut Budget) -> String {
        let made = self.message_program.as_ref().and_then(|program| program.evaluate(scope, budget).ok());
        match (made, self.message.as_str()) {
            (Some(CelValue::String(made)), _)
                if !made.trim().is_empty() && made.len() <= MESSAGE_BYTES_MAX =>
            {
                made.trim().to_owned()
            }
            (_, "") => format!("failed expression: {}", self.source.trim()),
            (_, message) => message.trim().to_owned(),
        }
    }
}

fn in_words(source: &str, error: &EvalError) -> String {
    format!("expression '{source}' resulted in error: {error}")
}
