//! ValidatingAdmissionPolicies: they refuse, or warn.

use krafla_cel::{Budget, Builds, Program, Value as CelValue};
use krafla_cluster::{Cause, Details};
use krafla_schema::object;
use serde_json::Value;

use super::super::kept::Kept;
use super::{Asked, COST_MAX, Common, GROUP, Matched, Unusable, list, may_be_ignored, read, text};
use crate::admit::{Policy, Request};
use crate::status::Status;

const POLICIES: &str = "validatingadmissionpolicies.admissionregistration.k8s.io";
pub(super) const BINDINGS: &str = "validatingadmissionpolicybindings.admissionregistration.k8s.io";
/// The longest message that an expression may make.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// The policies that are stored. Their expressions are compiled once.
#[derive(Default)]
pub(in crate::admit) struct Validating {
    policies: Kept<Compiled>,
    bindings: Kept<Bound>,
}

struct Compiled {
    policy: Value,
    matched: Matched,
    /// The expressions, or why they cannot be used.
    programs: Result<Programs, String>,
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
}

impl Bound {
    fn new(binding: Value) -> Bound {
        let matched = binding.pointer("/spec/matchResources").map(Matched::parse);
        Bound { binding, matched }
    }
}

impl Policy for Validating {
    fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Status> {
        // A wrong policy must be one that can be taken away.
        if *request.resource.names.group == *GROUP {
            return Ok(());
        }
        let bindings = request.api.store().snapshot(&BINDINGS.into());
        if bindings.entries.is_empty() {
            return Ok(());
        }
        let asked = Asked::new(request, object);
        let policies = request.api.store().snapshot(&POLICIES.into());
        let bindings = self.bindings.all(&bindings, Bound::new);
        let mut refusal = None;
        for compiled in self.policies.all(&policies, Compiled::new) {
            if !compiled.matched.covers(&asked) {
                continue;
            }
            let name = object::name(&compiled.policy);
            for bound in bindings.iter().filter(|bound| text(&bound.binding, "/spec/policyName") == name) {
                if bound.matched.as_ref().is_none_or(|matched| matched.covers(&asked)) {
                    let denied = compiled.judge(&asked, &bound.binding);
                    refusal = refusal.or(denied);
                }
            }
        }
        refusal.map_or(Ok(()), Err)
    }
}

/// Why a request is not as a policy wants it.
struct Denied {
    message: String,
    reason: String,
}

impl Denied {
    fn new(message: String) -> Denied {
        Denied { message, reason: "Invalid".to_owned() }
    }
}

impl Compiled {
    /// Does what a binding says should follow, and returns the refusal if there is one.
    fn judge(&self, asked: &Asked<'_>, binding: &Value) -> Option<Status> {
        let params = match asked.params(&self.policy, binding) {
            Ok(params) => params,
            Err(_) if may_be_ignored(&self.policy) => return None,
            Err(Unusable::Binding(why)) => {
                let denied = Denied::new(format!("failed to configure binding: {why}"));
                return Some(self.refusal(asked, Some(binding), &denied));
            }
            Err(Unusable::Policy(why)) => {
                let denied = Denied::new(format!("failed to configure policy: {why}"));
                return Some(self.refusal(asked, None, &denied));
            }
        };
        let denied: Vec<Denied> = params.into_iter().flat_map(|params| self.denials(asked, params)).collect();
        let actions = object::strings(binding.pointer("/spec/validationActions"));
        if actions.contains(&"Warn") {
            let (policy, binding) = (object::name(&self.policy), object::name(binding));
            asked.request.warnings.extend(denied.iter().map(|denied| {
                let about = format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}'");
                format!("Validation failed for {about}: {}", denied.message)
            }));
        }
        let first = denied.first().filter(|_| actions.contains(&"Deny"))?;
        Some(self.refusal(asked, Some(binding), first))
    }

    fn denials(&self, asked: &Asked<'_>, params: Value) -> Vec<Denied> {
        let unanswered = |why: String| match may_be_ignored(&self.policy) {
            true => Vec::new(),
            false => vec![Denied::new(why)],
        };
        let programs = match &self.programs {
            Ok(programs) => programs,
            Err(why) => return unanswered(why.clone()),
        };
        let facts = asked.facts(params);
        match programs.common.holds(&facts) {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(why) => return unanswered(why),
        }
        let mut budget = Budget::new(COST_MAX);
        let scope = programs.common.scope(&facts, &mut budget);
        let mut denied = Vec::new();
        for validation in &programs.validations {
            let Validation { holds, source, reason, .. } = validation;
            match holds.evaluate(&scope.names, &mut budget) {
                Ok(CelValue::Bool(true)) => {}
                Ok(_) => {
                    let message = validation.says(&scope.names, &mut budget);
                    denied.push(Denied { message, reason: reason.clone() });
                }
                Err(error) => denied.extend(unanswered(scope.in_words(source, holds, &error))),
            }
        }
        denied
    }

    fn refusal(&self, asked: &Asked<'_>, binding: Option<&Value>, denied: &Denied) -> Status {
        let binding = binding.map(|binding| format!(" with binding '{}'", object::name(binding)));
        let (policy, binding) = (object::name(&self.policy), binding.unwrap_or_default());
        let Denied { message, reason } = denied;
        let message = format!("ValidatingAdmissionPolicy '{policy}'{binding} denied request: {message}");
        let (resource, name) = (asked.request.resource.qualified(), object::name(asked.object));
        let code = match reason.as_str() {
            "Unauthorized" => 401,
            "Forbidden" => 403,
            "RequestEntityTooLarge" => 413,
            _ => 422,
        };
        Status {
            code,
            reason: reason.clone().into(),
            message: format!("{resource} \"{name}\" is forbidden: {message}"),
            details: Some(Box::new(Details {
                group: resource.group.to_owned(),
                kind: resource.what.to_owned(),
                name: name.to_owned(),
                causes: vec![Cause { message, ..Cause::default() }],
                ..Details::default()
            })),
        }
    }
}

/// The expressions of a policy.
struct Programs {
    common: Common,
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
    fn compile(policy: &Value) -> Result<Programs, String> {
        let common = Common::compile(policy)?;
        let read = |source: &str| read(&common.environment, source, Builds::Nothing);
        let mut validations = Vec::new();
        for validation in list(policy, "/spec/validations") {
            let source = text(validation, "/expression");
            validations.push(Validation {
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
        Ok(Programs { validations, common })
    }
}

impl Validation {
    fn says<'a>(&'a self, scope: &[(&'a str, CelValue<'a>)], budget: &mut Budget) -> String {
        let made = self.message_program.as_ref().and_then(|program| program.evaluate(scope, budget).ok());
        let made = match &made {
            Some(CelValue::String(made)) => made.trim(),
            _ => "",
        };
        let is_usable = !made.is_empty() && made.len() <= MESSAGE_BYTES_MAX && !made.contains('\n');
        match (is_usable, self.message.as_str()) {
            (true, _) => made.to_owned(),
            (false, "") => format!("failed expression: {}", self.source.trim()),
            (false, message) => message.trim().to_owned(),
        }
    }
}
