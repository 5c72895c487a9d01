//! MutatingAdmissionPolicies: they change what is written, by an apply configuration or by a JSON patch.

use std::sync::Arc;

use krafla_cel::{Budget, Builds, Program, Value as CelValue};
use krafla_cluster::{Cause, Details};
use krafla_schema::object;
use serde_json::Value;

use super::super::kept::Kept;
use super::{Asked, COST_MAX, Common, GROUP, Matched, Unusable, list, may_be_ignored, read, text};
use crate::admit::Request;
use crate::codec;
use crate::patch::apply_operations;
use crate::status::Status;

const POLICIES: &str = "mutatingadmissionpolicies.admissionregistration.k8s.io";
const BINDINGS: &str = "mutatingadmissionpolicybindings.admissionregistration.k8s.io";

/// The policies that are stored. Their expressions are compiled once.
#[derive(Default)]
pub(crate) struct Mutating {
    policies: Kept<Compiled>,
    bindings: Kept<Bound>,
}

struct Compiled {
    policy: Value,
    matched: Matched,
    /// The expressions, or why they cannot be used.
    programs: Result<Programs, String>,
}

struct Programs {
    common: Common,
    mutations: Vec<Mutation>,
}

struct Mutation {
    source: String,
    program: Program,
    is_json_patch: bool,
}

struct Bound {
    binding: Value,
    /// `None` if the binding leaves it to the policy.
    matched: Option<Matched>,
}

impl Compiled {
    fn new(policy: Value) -> Compiled {
        let matched = Matched::parse(object::at(&policy, "/spec/matchConstraints"));
        Compiled { programs: Programs::compile(&policy), matched, policy }
    }

    fn wants_another_look(&self) -> bool {
        text(&self.policy, "/spec/reinvocationPolicy") == "IfNeeded"
    }
}

impl Bound {
    fn new(binding: Value) -> Bound {
        let matched = binding.pointer("/spec/matchResources").map(Matched::parse);
        Bound { binding, matched }
    }
}

impl Programs {
    fn compile(policy: &Value) -> Result<Programs, String> {
        let common = Common::compile(policy)?;
        let mut mutations = Vec::new();
        for mutation in list(policy, "/spec/mutations") {
            let is_json_patch = text(mutation, "/patchType") == "JSONPatch";
            let pointer =
                if is_json_patch { "/jsonPatch/expression" } else { "/applyConfiguration/expression" };
            let source = text(mutation, pointer);
            let program = read(&common.environment, source, Builds::Patches)?;
            mutations.push(Mutation { source: source.to_owned(), program, is_json_patch });
        }
        Ok(Programs { common, mutations })
    }
}

/// A policy by way of a binding.
struct Invocation {
    compiled: Arc<Compiled>,
    bound: Arc<Bound>,
}

/// Which policies are asked again when the object has changed after them.
#[derive(Default)]
pub(crate) struct Again(Vec<Invocation>);

impl Mutating {
    /// Has the policies change an object, one after the other. Says whether one did, and who wants another look if
    /// webhooks change it afterwards.
    pub(in crate::admit) fn mutate(
        &self,
        request: &Request<'_>,
        object: &mut Value,
    ) -> Result<(bool, Again), Status> {
        // A wrong policy must be one that can be taken away.
        let bindings = request.api.store().snapshot(&BINDINGS.into());
        if *request.resource.names.group == *GROUP || bindings.entries.is_empty() {
            return Ok((false, Again::default()));
        }
        let policies = request.api.store().snapshot(&POLICIES.into());
        let bindings = self.bindings.all(&bindings, Bound::new);
        let mut invocations = Vec::new();
        for compiled in self.policies.all(&policies, Compiled::new) {
            let name = object::name(&compiled.policy);
            let own = bindings.iter().filter(|bound| text(&bound.binding, "/spec/policyName") == name);
            let invocation =
                |bound: &Arc<Bound>| Invocation { compiled: compiled.clone(), bound: bound.clone() };
            invocations.extend(own.map(invocation));
        }
        let (mut last_change, mut denied) = (None, Vec::new());
        for (turn, invocation) in invocations.iter().enumerate() {
            match invocation.mutate(request, object)? {
                Outcome::Changed => last_change = Some(turn),
                Outcome::Unchanged => {}
                Outcome::Denied { message, reason } => denied.push((message, reason)),
            }
        }
        refuse(request, object, denied)?;
        // Those who ask for it see what was changed after them, once: two policies that undo each other must not go on.
        let wants = |invocation: &&Invocation| invocation.compiled.wants_another_look();
        let again = invocations.iter().take(last_change.unwrap_or(0)).filter(wants);
        look_again(again, request, object)?;
        invocations.retain(|invocation| invocation.compiled.wants_another_look());
        Ok((last_change.is_some(), Again(invocations)))
    }
}

impl Again {
    /// Has the policies look once more at what webhooks have changed.
    pub(crate) fn mutate(&self, request: &Request<'_>, object: &mut Value) -> Result<(), Status> {
        look_again(self.0.iter(), request, object)
    }
}

/// Has policies change what was changed after them.
fn look_again<'a>(
    invocations: impl Iterator<Item = &'a Invocation>,
    request: &Request<'_>,
    object: &mut Value,
) -> Result<(), Status> {
    let mut denied = Vec::new();
    for invocation in invocations {
        if let Outcome::Denied { message, reason } = invocation.mutate(request, object)? {
            denied.push((message, reason));
        }
    }
    refuse(request, object, denied)
}

/// What a policy did about an object.
enum Outcome {
    Changed,
    Unchanged,
    /// It cannot come to an answer, which is a reason to refuse.
    Denied {
        message: String,
        reason: &'static str,
    },
}

/// Refuses a request, with what all policies say about it.
fn refuse(request: &Request<'_>, object: &Value, denied: Vec<(String, &'static str)>) -> Result<(), Status> {
    let Some((message, reason)) = denied.first().cloned() else { return Ok(()) };
    let resource = request.resource.qualified();
    let causes = denied.into_iter().map(|(message, _)| Cause { message, ..Cause::default() });
    Err(Status {
        code: 403,
        reason: reason.into(),
        message,
        details: Some(Box::new(Details {
            group: resource.group.to_owned(),
            kind: resource.what.to_owned(),
            name: object::name(object).to_owned(),
            causes: causes.collect(),
            ..Details::default()
        })),
    })
}

impl Invocation {
    fn mutate(&self, request: &Request<'_>, object: &mut Value) -> Result<Outcome, Status> {
        let before = object.clone();
        let asked = Asked::new(request, &before);
        let is_covered = self.compiled.matched.covers(&asked)
            && self.bound.matched.as_ref().is_none_or(|matched| matched.covers(&asked));
        if !is_covered {
            return Ok(Outcome::Unchanged);
        }
        let params = asked.params(&self.compiled.policy, &self.bound.binding).map_err(Refused::Unusable);
        let outcome = params.and_then(|params| {
            params.into_iter().try_for_each(|params| self.mutate_with(request, params, object))
        });
        match outcome {
            Ok(()) if *object != before => Ok(Outcome::Changed),
            Ok(()) => Ok(Outcome::Unchanged),
            Err(Refused::Undecodable(why)) => Err(Status::internal(&why)),
            Err(_) if may_be_ignored(&self.compiled.policy) => {
                *object = before;
                Ok(Outcome::Unchanged)
            }
            Err(refused) => Ok(self.denied(refused)),
        }
    }

    fn denied(&self, refused: Refused) -> Outcome {
        let (policy, binding) = (object::name(&self.compiled.policy), object::name(&self.bound.binding));
        let with_binding =
            |why: String| format!("policy '{policy}' with binding '{binding}' denied request: {why}");
        match refused {
            Refused::Evaluation(why) | Refused::Undecodable(why) => {
                Outcome::Denied { message: with_binding(why), reason: "Invalid" }
            }
            Refused::Unusable(Unusable::Binding(why)) => {
                let message = with_binding(format!("failed to configure binding: {why}"));
                Outcome::Denied { message, reason: "Forbidden" }
            }
            Refused::Unusable(Unusable::Policy(why)) => {
                let message = format!("policy {policy:?} denied request: failed to configure policy: {why}");
                Outcome::Denied { message, reason: "Forbidden" }
            }
        }
    }

    fn mutate_with(&self, request: &Request<'_>, params: Value, object: &mut Value) -> Result<(), Refused> {
        let programs = self.compiled.programs.as_ref().map_err(|why| Refused::Evaluation(why.clone()))?;
        let facts = Asked::new(request, object).facts(params.clone());
        if !programs.common.holds(&facts).map_err(Refused::Evaluation)? {
            return Ok(());
        }
        for mutation in &programs.mutations {
            // Each mutation sees what the one before it has made.
            let facts = Asked::new(request, object).facts(params.clone());
            let mut budget = Budget::new(COST_MAX);
            let scope = programs.common.scope(&facts, &mut budget);
            let Mutation { program, source, .. } = mutation;
            let made = program.evaluate(&scope.names, &mut budget);
            let made = made.map_err(|error| Refused::Evaluation(scope.in_words(source, program, &error)))?;
            let patched = match mutation.is_json_patch {
                true => patched(object, &made),
                false => merged(request, object, &made),
            };
            let patched = patched.map_err(Refused::Evaluation)?;
            *object = settled(request, object, &patched).map_err(Refused::Undecodable)?;
        }
        Ok(())
    }
}

/// Why a policy does not come to an answer.
enum Refused {
    /// It cannot be asked.
    Unusable(Unusable),
    /// Its expressions fail for this object.
    Evaluation(String),
    /// What it made is no object of the kind.
    Undecodable(String),
}

/// The object with an apply configuration merged into it.
fn merged(request: &Request<'_>, object: &Value, made: &CelValue<'_>) -> Result<Value, String> {
    check_names(made)?;
    let mut applied = made
        .to_json()
        .map_err(|of| format!("unsupported return type from ApplyConfiguration expression: {of}"))?;
    for field in ["apiVersion", "kind"] {
        object::set(&mut applied, field, object[field].clone());
    }
    let merges = request.resource.merges().ok_or("type converter must not be nil")?;
    merges.overlay(object, &applied).map_err(|why| format!("error applying patch: {why}"))
}

/// The object with a JSON patch applied to it. A test that fails means that there is nothing to do.
fn patched(object: &Value, made: &CelValue<'_>) -> Result<Value, String> {
    let unmarshallable = "JSONPath valueExpression evaluated to a type that could not marshal to JSON";
    let CelValue::List(operations) = made else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    for operation in operations.iter() {
        if let CelValue::Built(operation) = &operation
            && let Some(value) = operation.fields.get("value")
        {
            check_names(value)?;
        }
    }
    let operations = made.to_json().map_err(|of| format!("{unmarshallable}: {of}"))?;
    let patched = apply_operations(object.clone(), &operations);
    let patched = patched.map_err(|why| format!("JSON Patch: {why}"))?;
    Ok(patched.unwrap_or_else(|| object.clone()))
}

/// A changed object with its defaults. What it is and where it is stays.
fn settled(request: &Request<'_>, object: &Value, patched: &Value) -> Result<Value, String> {
    let mut settled = codec::normalise(request.resource, patched)?;
    object::copy_meta(&mut settled, object, &["name", "namespace", "uid"]);
    request.resource.rules.default(&mut settled);
    codec::complete(request.resource, &mut settled);
    Ok(settled)
}

/// Objects in an expression say where they belong: the type of `spec` in `Object` is `Object.spec`.
fn check_names(value: &CelValue<'_>) -> Result<(), String> {
    let CelValue::Built(root) = value else { return Ok(()) };
    let mut wrong = Vec::new();
    find_misnamed(value, root.name, &mut wrong);
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("type mismatch: {}", wrong.join("\n"))),
    }
}

fn find_misnamed(value: &CelValue<'_>, expected: &str, wrong: &mut Vec<String>) {
    match value {
        CelValue::Built(built) => {
            if built.name != expected {
                let why = "which matches field name path from root Object type";
                wrong.push(format!("unexpected type name {:?}, expected {expected:?}, {why}", built.name));
            }
            for (name, field) in &built.fields {
                find_misnamed(field, &format!("{expected}.{name}"), wrong);
            }
        }
        CelValue::List(items) => items.iter().for_each(|item| find_misnamed(&item, expected, wrong)),
        CelValue::Map(map) => {
            map.entries().iter().for_each(|(_, value)| find_misnamed(value, expected, wrong));
        }
        _ => {}
    }
}
