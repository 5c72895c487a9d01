//! Admission policies: rules of the cluster, written as expressions.
//!
//! ```text
//!   policy: what it is about, variables, validations or mutations
//!   binding: where it holds, with which parameters, and what follows
//!
//!   this file       which requests a policy is about, and what its expressions can look at
//!   validating.rs   policies that refuse                 mutating.rs   policies that change
//! ```
//!
//! Objects are seen as they are: their fields have no types before there is a value. A policy that fails to come to an answer
//! refuses the request, unless it says that it may be ignored.

mod mutating;
mod validating;

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_admission::policy::{Environment, type_of};
use krafla_admission::webhook::{Hook, Target, Verb, hooks};
use krafla_api::Key;
use krafla_cel::{Budget, Builds, EvalError, Key as CelKey, Map, Program, Value as CelValue};
use krafla_schema::object;
use serde_json::{Value, json};

use super::{Operation, Request};
use crate::ops::Api;
use crate::selector::LabelSelector;

pub(crate) use mutating::{Again, Mutating};
pub(super) use validating::Validating;

const GROUP: &str = "admissionregistration.k8s.io";
/// What all expressions of one policy may cost for one request.
const COST_MAX: u64 = 10_000_000;
/// What all conditions of one policy may cost for one request.
const CONDITIONS_COST_MAX: u64 = 2_500_000;

/// Whether there are any that are asked about what is to be stored.
pub(super) fn are_asked(api: &Api) -> bool {
    !api.store().snapshot(&validating::BINDINGS.into()).entries.is_empty()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    object::at(value, pointer).as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    object::at(value, pointer).as_array().map_or(&[], Vec::as_slice)
}

fn may_be_ignored(policy: &Value) -> bool {
    text(policy, "/spec/failurePolicy") == "Ignore"
}

/// The conditions and variables of a policy, and what its other expressions can look at.
struct Common {
    /// Each with its source.
    conditions: Vec<(String, Program)>,
    /// Each with its name.
    variables: Vec<(String, Program)>,
    environment: Environment,
}

impl Common {
    fn compile(policy: &Value) -> Result<Common, String> {
        let of_conditions = Environment::of_conditions(policy);
        let mut environment = Environment::of_policy(policy);
        let (mut conditions, mut variables) = (Vec::new(), Vec::new());
        for condition in list(policy, "/spec/matchConditions") {
            let source = text(condition, "/expression");
            conditions.push((source.to_owned(), read(&of_conditions, source, Builds::Nothing)?));
        }
        for variable in list(policy, "/spec/variables") {
            let (name, source) = (text(variable, "/name"), text(variable, "/expression"));
            let program = read(&environment, source, Builds::Nothing)?;
            environment.declare(name, program.result_type().clone());
            variables.push((name.to_owned(), program));
        }
        Ok(Common { conditions, variables, environment })
    }

    /// Whether all conditions hold. One that does not settles it, whatever the others come to.
    fn holds(&self, facts: &Value) -> Result<bool, String> {
        let (scope, mut budget) = (scope(facts), Budget::new(CONDITIONS_COST_MAX));
        let mut failures = Vec::new();
        for (source, condition) in &self.conditions {
            match condition.evaluate(&scope, &mut budget) {
                Ok(CelValue::Bool(true)) => {}
                Ok(_) => return Ok(false),
                Err(error) => failures.push(in_words(source, &error)),
            }
        }
        match failures.as_slice() {
            [] => Ok(true),
            [only] => Err(only.clone()),
            all => Err(format!("[{}]", all.join(", "))),
        }
    }

    /// Everything that expressions can look at. Later variables may use earlier ones; one that fails is missing to those
    /// who ask for it.
    fn scope<'a>(&'a self, facts: &'a Value, budget: &mut Budget) -> Scope<'a> {
        let mut scope = Scope { names: scope(facts), failed: BTreeMap::new() };
        let mut made = BTreeMap::new();
        scope.names.push(("variables", CelValue::Map(Map::Made(Arc::new(made.clone())))));
        for (name, program) in &self.variables {
            match program.evaluate(&scope.names, budget) {
                Ok(value) => {
                    made.insert(CelKey::String(name.as_str().into()), value);
                }
                Err(error) => {
                    let why = scope.explain(program, &error);
                    let why = format!("composited variable {name:?} fails to evaluate: {why}");
                    scope.failed.insert(name.clone(), why);
                }
            }
            scope.names.retain(|(name, _)| *name != "variables");
            scope.names.push(("variables", CelValue::Map(Map::Made(Arc::new(made.clone())))));
        }
        scope
    }
}

/// What expressions can look at.
struct Scope<'a> {
    names: Vec<(&'a str, CelValue<'a>)>,
    /// Why variables have no value.
    failed: BTreeMap<String, String>,
}

impl Scope<'_> {
    /// Why an expression fails. If it asks for a variable without a value, that is the reason.
    fn explain(&self, program: &Program, error: &EvalError) -> String {
        let error = error.to_string();
        let asked = error.strip_prefix("no such key: ").filter(|_| program.mentions("variables"));
        asked.and_then(|name| self.failed.get(name)).cloned().unwrap_or(error)
    }

    /// The same with the expression.
    fn in_words(&self, source: &str, program: &Program, error: &EvalError) -> String {
        format!("expression '{source}' resulted in error: {}", self.explain(program, error))
    }
}

fn read(environment: &Environment, source: &str, builds: Builds) -> Result<Program, String> {
    environment
        .compile(source, builds)
        .map_err(|error| format!("compilation error: compilation failed: {error}"))
}

fn scope(facts: &Value) -> Vec<(&'static str, CelValue<'_>)> {
    let names = [
        ("object", "/object"),
        ("oldObject", "/oldObject"),
        ("request", "/request"),
        ("params", "/params"),
        ("namespaceObject", "/namespaceObject"),
    ];
    names
        .into_iter()
        .map(|(name, pointer)| (name, CelValue::from_json(object::at(facts, pointer), type_of(name))))
        .collect()
}

fn in_words(source: &str, error: &EvalError) -> String {
    format!("expression '{source}' resulted in error: {error}")
}

/// Which requests a policy or a binding is about.
struct Matched {
    rules: Vec<NamedRule>,
    excluded: Vec<NamedRule>,
    /// A binding without rules leaves it to the policy.
    has_rules: bool,
    selectors: Option<Hook>,
}

struct NamedRule {
    hook: Hook,
    /// The objects that the rule is about; all of them if it names none.
    names: Vec<String>,
}

impl Matched {
    /// Reads `matchConstraints` or `matchResources`.
    fn parse(matched: &Value) -> Matched {
        let hook = |rules: Value| {
            let mut hook = matched.clone();
            object::set(&mut hook, "rules", rules);
            hooks(&json!({"webhooks": [hook]})).into_iter().next()
        };
        let rules = |name: &str| -> Vec<NamedRule> {
            let rule = |rule: &Value| {
                let names = object::strings(rule.get("resourceNames")).into_iter().map(str::to_owned);
                Some(NamedRule { hook: hook(json!([rule]))?, names: names.collect() })
            };
            list(matched, &format!("/{name}")).iter().filter_map(rule).collect()
        };
        Matched {
            rules: rules("resourceRules"),
            excluded: rules("excludeResourceRules"),
            has_rules: !list(matched, "/resourceRules").is_empty(),
            selectors: hook(json!([])),
        }
    }

    fn covers(&self, asked: &Asked<'_>) -> bool {
        let table = asked.request.api.registry().table();
        let names = &asked.request.resource.names;
        let served =
            table.versions(&names.group).iter().filter(|it| it.resources.contains_key(&names.plural));
        let others = served.map(|version| &*version.name).filter(|version| *version != &*names.version);
        let targets: Vec<Target<'_>> = std::iter::once(&*names.version)
            .chain(others)
            .map(|version| Target { version, ..asked.target() })
            .collect();
        let name = object::name(asked.object);
        let covers = |rules: &[NamedRule]| {
            rules.iter().any(|rule| {
                let is_named = rule.names.is_empty() || rule.names.iter().any(|own| own == name);
                is_named && rule.hook.concerned(&targets).is_some()
            })
        };
        let is_selected = self.selectors.as_ref().is_none_or(|hook| {
            hook.selects(asked.namespace.as_ref(), [Some(asked.object), asked.request.old])
        });
        (covers(&self.rules) || !self.has_rules) && is_selected && !covers(&self.excluded)
    }
}

/// Why a policy cannot be asked.
enum Unusable {
    /// The policy is wrong.
    Policy(String),
    /// Its binding is.
    Binding(String),
}

/// One request, as policies see it.
struct Asked<'a> {
    request: &'a Request<'a>,
    object: &'a Value,
    /// The namespace of the object, or the object itself if it is one.
    namespace: Option<Value>,
}

impl<'a> Asked<'a> {
    fn new(request: &'a Request<'a>, object: &'a Value) -> Asked<'a> {
        let find = || {
            if request.resource.storage.as_str() == "namespaces" {
                return Some(object.clone());
            }
            let key = Key::new("", object::namespace(object));
            let entry = request.api.store().get(&"namespaces".into(), &key)?;
            serde_json::from_slice(&entry.bytes).ok()
        };
        Asked { request, object, namespace: find() }
    }

    fn target(&self) -> Target<'_> {
        let names = &self.request.resource.names;
        Target {
            group: &names.group,
            version: &names.version,
            resource: &names.plural,
            subresource: self.request.subresource,
            is_namespaced: self.request.resource.is_namespaced(),
            verb: match self.request.operation {
                Operation::Create => Verb::Create,
                Operation::Update => Verb::Update,
                Operation::Delete => Verb::Delete,
            },
        }
    }

    /// What expressions can look at.
    fn facts(&self, params: Value) -> Value {
        let target = self.target();
        let names = &self.request.resource.names;
        let is_deleted = self.request.operation == Operation::Delete;
        let kind = json!({"group": target.group, "version": target.version, "kind": *names.kind});
        let resource = json!({"group": target.group, "version": target.version, "resource": target.resource});
        // A namespace is its own, and is not shown twice.
        let is_namespace = self.request.resource.storage.as_str() == "namespaces";
        json!({
            "object": if is_deleted { Value::Null } else { self.object.clone() },
            "oldObject": self.request.old,
            "params": params,
            "namespaceObject": if is_namespace { None } else { self.namespace.as_ref() },
            "request": {
                "operation": target.verb.as_str(),
                "name": object::name(self.object),
                "namespace": object::namespace(self.object),
                "kind": kind, "requestKind": kind, "resource": resource, "requestResource": resource,
                "subResource": target.subresource, "requestSubResource": target.subresource,
                "dryRun": self.request.is_dry_run,
                "options": {},
                "userInfo": crate::users::to_full_json(self.request.user),
            },
        })
    }

    /// The parameters with which a binding asks a policy: the policy is asked once for each of them, and once with null if
    /// it takes none.
    fn params(&self, policy: &Value, binding: &Value) -> Result<Vec<Value>, Unusable> {
        let (kind, wanted) = (object::at(policy, "/spec/paramKind"), object::at(binding, "/spec/paramRef"));
        if kind.is_null() || wanted.is_null() {
            return Ok(vec![Value::Null]);
        }
        let table = self.request.api.registry().table();
        let (version, name) = (text(kind, "/apiVersion"), text(kind, "/kind"));
        let resource = table.of_manifest(version, name).ok_or_else(|| {
            let slash = if version.contains('/') { "" } else { "/" };
            let shown = format!("{slash}{version}, Kind={name}");
            Unusable::Policy(format!("failed to find resource referenced by paramKind: '{shown}'"))
        })?;
        let own = object::namespace(self.object);
        let namespace = match (resource.is_namespaced(), text(wanted, "/namespace")) {
            (true, "") if own.is_empty() => {
                let why =
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
                return Err(Unusable::Binding(why.to_owned()));
            }
            (true, "") => own,
            (true, named) => named,
            (false, "") => "",
            (false, _) => {
                let why = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
                return Err(Unusable::Binding(why.to_owned()));
            }
        };
        let store = self.request.api.store();
        let found: Vec<_> = match text(wanted, "/name") {
            "" => {
                let selector = LabelSelector::from_json(object::at(wanted, "/selector"));
                let snapshot = store.snapshot(&resource.storage);
                let all = snapshot.range(Some(namespace).filter(|namespace| !namespace.is_empty()), None);
                all.filter(|entry| selector.matches(&entry.meta.labels)).cloned().collect()
            }
            name => store.get(&resource.storage, &Key::new(namespace, name)).into_iter().collect(),
        };
        if found.is_empty() && text(wanted, "/parameterNotFoundAction") == "Deny" {
            let why = "no params found for policy binding with `Deny` parameterNotFoundAction";
            return Err(Unusable::Binding(why.to_owned()));
        }
        Ok(found.iter().filter_map(|entry| serde_json::from_slice(&entry.bytes).ok()).collect())
    }
}
