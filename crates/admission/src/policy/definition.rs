//! What policies and their bindings may say.

use krafla_cel::{Builds, Type};
use serde_json::{Map, Value, json};

use super::Environment;
use crate::json::At;
use crate::pod::check::label_selector;
use crate::webhook::rules;
use crate::{Finding, Path, Verdict, names};

const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
/// What a mutating policy can be about: there is nothing to change in what goes.
const MUTABLE: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
const PATCH_TYPES: [&str; 2] = ["ApplyConfiguration", "JSONPatch"];
/// How many audit annotations a policy may have, and how long the expression of one may be.
const ANNOTATIONS_MAX: usize = 20;
const ANNOTATION_BYTES_MAX: usize = 5 * 1024;

/// Fills in what a policy may leave out.
pub fn default_policy(policy: &mut Value) {
    let Some(spec) = spec_of(policy) else { return };
    set(spec, "failurePolicy", json!("Fail"));
    default_match(spec.get_mut("matchConstraints"));
}

/// Fills in what a binding may leave out.
pub fn default_binding(binding: &mut Value) {
    let Some(spec) = spec_of(binding) else { return };
    default_match(spec.get_mut("matchResources"));
}

fn spec_of(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.as_object_mut()?.entry("spec").or_insert_with(|| json!({})).as_object_mut()
}

fn set(fields: &mut Map<String, Value>, name: &str, value: Value) {
    let slot = fields.entry(name).or_insert(Value::Null);
    if slot.is_null() {
        *slot = value;
    }
}

fn default_match(matched: Option<&mut Value>) {
    let Some(matched) = matched.and_then(Value::as_object_mut) else { return };
    set(matched, "matchPolicy", json!("Equivalent"));
    set(matched, "namespaceSelector", json!({}));
    set(matched, "objectSelector", json!({}));
    for list in ["resourceRules", "excludeResourceRules"] {
        let rules = matched.get_mut(list).and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten().filter_map(Value::as_object_mut) {
            set(rule, "scope", json!("*"));
        }
    }
}

fn findings(object: &Value, check: impl FnOnce(&At<'_>, &mut Verdict)) -> Vec<Finding> {
    let mut verdict = Verdict::default();
    check(&At::new(object, Path::default()), &mut verdict);
    verdict.refusals
}

/// Says what is wrong with a ValidatingAdmissionPolicy.
pub fn validate_validating(policy: &Value) -> Vec<Finding> {
    findings(policy, |at, verdict| {
        let spec = at.get("spec");
        validate_common(policy, &spec, false, verdict);
        let environment = validate_variables(policy, &spec, verdict);
        let (validations, annotations) = (spec.get("validations"), spec.get("auditAnnotations"));
        if validations.is_empty() && annotations.is_empty() {
            let why = "validations or auditAnnotations must contain at least one item";
            verdict.required(validations.path(), why);
            return verdict.required(annotations.path(), why);
        }
        for validation in validations.list() {
            validate_validation(&validation, &environment, verdict);
        }
        validate_annotations(at.get("metadata").str("name"), &annotations, &environment, verdict);
    })
}

/// Says what is wrong with a MutatingAdmissionPolicy.
pub fn validate_mutating(policy: &Value) -> Vec<Finding> {
    findings(policy, |at, verdict| {
        let spec = at.get("spec");
        validate_common(policy, &spec, true, verdict);
        let environment = validate_variables(policy, &spec, verdict);
        let mutations = spec.get("mutations");
        if mutations.is_empty() {
            verdict.required(mutations.path(), "mutations must contain at least one item");
        }
        for mutation in mutations.list() {
            validate_mutation(&mutation, &environment, verdict);
        }
        let again = spec.get("reinvocationPolicy");
        match again.text() {
            "" => verdict.required(again.path(), ""),
            _ => rules::validate_word(&again, &["IfNeeded", "Never"], verdict),
        }
    })
}

/// Says what is wrong with a ValidatingAdmissionPolicyBinding.
pub fn validate_validating_binding(binding: &Value) -> Vec<Finding> {
    findings(binding, |at, verdict| {
        let spec = at.get("spec");
        validate_binding(&spec, verdict);
        validate_actions(&spec.get("validationActions"), verdict);
    })
}

/// Says what is wrong with a MutatingAdmissionPolicyBinding.
pub fn validate_mutating_binding(binding: &Value) -> Vec<Finding> {
    findings(binding, |at, verdict| {
        let spec = at.get("spec");
        validate_binding(&spec, verdict);
        validate_operations(&spec.get("matchResources"), verdict);
    })
}

/// What both kinds of policy have.
fn validate_common(policy: &Value, spec: &At<'_>, is_mutating: bool, verdict: &mut Verdict) {
    rules::validate_word(&spec.get("failurePolicy"), &FAILURE_POLICIES, verdict);
    let params = spec.get("paramKind");
    if params.is_set() {
        validate_param_kind(&params, verdict);
    }
    let matched = spec.get("matchConstraints");
    if matched.is_set() {
        validate_match(&matched, verdict);
        let rules = matched.get("resourceRules");
        if rules.is_empty() {
            verdict.required(rules.path(), "");
        }
        if is_mutating {
            validate_operations(&matched, verdict);
        }
    } else {
        verdict.required(matched.path(), "");
    }
    rules::validate_conditions(&spec.get("matchConditions"), &Environment::of_conditions(policy), verdict);
}

fn validate_param_kind(params: &At<'_>, verdict: &mut Verdict) {
    let (version, kind) = (params.get("apiVersion"), params.get("kind"));
    match version.text().split('/').collect::<Vec<_>>().as_slice() {
        [""] => verdict.required(version.path(), ""),
        [number] => validate_version(&version, "", number, verdict),
        [group, number] => validate_version(&version, group, number, verdict),
        _ => {
            let why = format!("unexpected GroupVersion string: {}", version.text());
            verdict.invalid(version.path(), version.text(), why);
        }
    }
    let wrong = names::dns_1035_label(&kind.text().to_lowercase());
    if kind.text().is_empty() {
        verdict.required(kind.path(), "");
    } else if !wrong.is_empty() {
        let why = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
        verdict.invalid(kind.path(), kind.text(), why);
    }
}

fn validate_version(at: &At<'_>, group: &str, version: &str, verdict: &mut Verdict) {
    let wrong = names::dns_subdomain(group);
    if !group.is_empty() && !wrong.is_empty() {
        verdict.invalid(at.path(), group, wrong.join(","));
    }
    let wrong = names::dns_1035_label(version);
    if version.is_empty() {
        verdict.invalid(at.path(), at.text(), "version must be specified");
    } else if !wrong.is_empty() {
        verdict.invalid(at.path(), version, wrong.join(","));
    }
}

fn validate_match(matched: &At<'_>, verdict: &mut Verdict) {
    rules::validate_word(&matched.get("matchPolicy"), &["Equivalent", "Exact"], verdict);
    for selector in ["namespaceSelector", "objectSelector"] {
        label_selector(&matched.get(selector), verdict);
    }
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in matched.items(list) {
            validate_resource_names(&rule.get("resourceNames"), verdict);
            rules::validate(&rule, verdict);
        }
    }
}

fn validate_resource_names(resource_names: &At<'_>, verdict: &mut Verdict) {
    let mut seen = Vec::new();
    for name in resource_names.list() {
        verdict.invalid_each(name.path(), name.text(), names::path_segment(name.text()));
        if seen.contains(&name.text()) {
            verdict.duplicate(name.path(), name.text());
        }
        seen.push(name.text());
    }
}

fn validate_operations(matched: &At<'_>, verdict: &mut Verdict) {
    let rules = matched.get("resourceRules");
    let operations = rules.get("operations");
    for rule in rules.list() {
        for operation in rule.items("operations") {
            if !MUTABLE.contains(&operation.text()) {
                verdict.unsupported(operations.path(), operation.text(), &MUTABLE);
            }
        }
    }
}

/// What is wrong with variables; later expressions can use them.
fn validate_variables(policy: &Value, spec: &At<'_>, verdict: &mut Verdict) -> Environment {
    let variables = spec.items("variables");
    let is_mutating = spec.get("mutations").is_set() || spec.get("reinvocationPolicy").is_set();
    let mut environment = match variables.is_empty() && !is_mutating {
        true => Environment::of_conditions(policy),
        false => Environment::of_policy(policy),
    };
    for variable in variables {
        let (name, expression) = (variable.get("name"), variable.get("expression"));
        if name.text().trim().is_empty() {
            verdict.required(name.path(), "name is not specified");
        } else if !is_identifier(name.text()) {
            verdict.invalid(name.path(), name.text(), "must be a valid CEL identifier");
        }
        if expression.text().trim().is_empty() {
            verdict.required(expression.path(), "expression is not specified");
            continue;
        }
        match environment.check(expression.text(), Builds::Nothing, &[]) {
            Ok(of) => environment.declare(name.text(), of),
            Err(why) => {
                environment.declare(name.text(), Type::Dyn);
                verdict.invalid(expression.path(), expression.text(), why);
            }
        }
    }
    environment
}

fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    let begins_well = characters.next().is_some_and(|first| first == '_' || first.is_ascii_alphabetic());
    begins_well
        && characters.all(|character| character == '_' || character.is_ascii_alphanumeric())
        && !krafla_cel::is_reserved(name)
}

fn validate_validation(validation: &At<'_>, environment: &Environment, verdict: &mut Verdict) {
    let check = |at: &At<'_>, expected: Type, verdict: &mut Verdict| {
        if let Err(why) = environment.check(at.text(), Builds::Nothing, &[expected]) {
            verdict.invalid(at.path(), at.text(), why);
        }
    };
    let expression = validation.get("expression");
    match expression.text().trim() {
        "" => verdict.required(expression.path(), "expression is not specified"),
        _ => check(&expression, Type::Bool, verdict),
    }
    let made = validation.get("messageExpression");
    match (made.text(), made.text().trim()) {
        ("", _) => {}
        (_, "") => verdict.invalid(made.path(), made.text(), "must be non-empty if specified"),
        _ => check(&made, Type::TEXT, verdict),
    }
    let message = validation.get("message");
    match (message.text(), message.text().trim()) {
        ("", _) => {}
        (text, "") => verdict.invalid(message.path(), text, "must be non-empty if specified"),
        (text, trimmed) if trimmed.contains('\n') => {
            verdict.invalid(message.path(), text, "must not contain line breaks");
        }
        _ => {}
    }
    rules::validate_word(&validation.get("reason"), &REASONS, verdict);
}

fn validate_annotations(
    policy: &str,
    annotations: &At<'_>,
    environment: &Environment,
    verdict: &mut Verdict,
) {
    let list = annotations.list();
    if list.len() > ANNOTATIONS_MAX {
        let why = format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations");
        verdict.invalid(annotations.path(), annotations.value(), why);
    }
    let mut seen = Vec::new();
    for annotation in list {
        let (key, expression) = (annotation.get("key"), annotation.get("valueExpression"));
        let full = format!("{policy}/{}", key.text());
        verdict.invalid_each(key.path(), &full, names::qualified_name(&full));
        let source = expression.text().trim();
        if source.is_empty() {
            verdict.required(expression.path(), "valueExpression is not specified");
        } else if source.len() > ANNOTATION_BYTES_MAX {
            let why = format!("must not exceed {ANNOTATION_BYTES_MAX} bytes in length");
            verdict.required(expression.path(), &why);
        } else if let Err(why) = environment.check(source, Builds::Nothing, &[Type::TEXT, Type::Null]) {
            verdict.invalid(expression.path(), expression.text(), why);
        }
        if seen.contains(&key.text()) {
            verdict.duplicate(key.path(), key.text());
        }
        seen.push(key.text());
    }
}

fn validate_mutation(mutation: &At<'_>, environment: &Environment, verdict: &mut Verdict) {
    let patch_type = mutation.get("patchType");
    let (own, other, expected) = match patch_type.text() {
        "" => return verdict.required(patch_type.path(), ""),
        "JSONPatch" => {
            let patch = Type::Built("JSONPatch".into());
            ("jsonPatch", "applyConfiguration", Type::list(patch, krafla_cel::Size::UNKNOWN))
        }
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Type::Built("Object".into())),
        _ => return rules::validate_word(&patch_type, &PATCH_TYPES, verdict),
    };
    let patch = mutation.get(own);
    let expression = patch.get("expression");
    let source = expression.text().trim();
    if !patch.is_set() {
        let why = format!("must be specified when patchType is {}", patch_type.text());
        verdict.required(patch.path(), &why);
    } else if source.is_empty() {
        verdict.required(expression.path(), "");
    } else if let Err(why) = environment.check(source, Builds::Patches, &[expected]) {
        verdict.invalid(expression.path(), source, why);
    }
    let other_patch = mutation.get(other);
    if other_patch.is_set() {
        let why = format!("must not be specified when patchType is {}", patch_type.text());
        verdict.invalid(other_patch.path(), format!("{{{other}}}").as_str(), why);
    }
}

fn validate_binding(spec: &At<'_>, verdict: &mut Verdict) {
    let policy = spec.get("policyName");
    if policy.text().is_empty() {
        verdict.required(policy.path(), "");
    } else {
        verdict.invalid_each(policy.path(), policy.text(), names::dns_subdomain(policy.text()));
    }
    let params = spec.get("paramRef");
    if params.is_set() {
        validate_params(&params, verdict);
    }
    let matched = spec.get("matchResources");
    if matched.is_set() {
        validate_match(&matched, verdict);
    }
}

fn validate_params(params: &At<'_>, verdict: &mut Verdict) {
    const BOTH: &str = "name and selector are mutually exclusive";
    let (name, selector) = (params.get("name"), params.get("selector"));
    let has_name = !name.text().is_empty();
    if has_name {
        verdict.invalid_each(name.path(), name.text(), names::path_segment(name.text()));
        if selector.is_set() {
            verdict.forbidden(name.path(), BOTH);
        }
    }
    if selector.is_set() {
        label_selector(&selector, verdict);
        if has_name {
            verdict.forbidden(selector.path(), BOTH);
        }
    }
    if !has_name && !selector.is_set() {
        verdict.required(params.path(), "one of name or selector must be specified");
    }
    let action = params.get("parameterNotFoundAction");
    match action.text() {
        "" => verdict.required(action.path(), ""),
        "Allow" | "Deny" => {}
        other => verdict.unsupported(action.path(), other, &["Deny", "Allow"]),
    }
}

fn validate_actions(actions: &At<'_>, verdict: &mut Verdict) {
    let mut seen = Vec::new();
    for action in actions.list() {
        if !ACTIONS.contains(&action.text()) {
            verdict.unsupported(action.path(), action.text(), &ACTIONS);
        }
        if seen.contains(&action.text()) {
            verdict.duplicate(action.path(), action.text());
        }
        seen.push(action.text());
    }
    if seen.contains(&"Deny") && seen.contains(&"Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                   response and headers serves no purpose)";
        verdict.invalid(actions.path(), actions.value(), why);
    }
    if seen.is_empty() {
        verdict.required(actions.path(), "at least one validation action is required");
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn rule() -> Value {
        json!({"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]})
    }

    fn check(validate: fn(&Value) -> Vec<Finding>, spec: Value, expected: Expect) {
        let mut object = json!({"metadata": {"name": "p"}, "spec": spec});
        default_policy(&mut object);
        default_binding(&mut object);
        let findings: Vec<String> = validate(&object).iter().map(ToString::to_string).collect();
        expected.assert_eq(&findings.join("\n"));
    }

    #[test]
    fn mutations_are_one_patch_each_of_the_type_that_they_say() {
        let mutating = |mutations: Value| {
            json!({
                "matchConstraints": {"resourceRules": [rule()]}, "mutations": mutations, "reinvocationPolicy": "Never",
            })
        };
        let object = json!({"expression": "Object{spec: Object.spec{replicas: 1}}"});
        let patches = json!({"expression": "[JSONPatch{op: 'remove', path: '/x'}]"});
        let right = json!([
            {"patchType": "ApplyConfiguration", "applyConfiguration": object},
            {"patchType": "JSONPatch", "jsonPatch": patches},
        ]);
        check(validate_mutating, mutating(right), expect![""]);
        let wrong = json!([
            {}, {"patchType": "Other"}, {"patchType": "JSONPatch", "applyConfiguration": object},
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "{'a': 1}"}},
        ]);
        check(
            validate_mutating,
            mutating(wrong),
            expect![[r#"
                spec.mutations[0].patchType: Required value
                spec.mutations[1].patchType: Unsupported value: "Other": supported values: "ApplyConfiguration", "JSONPatch"
                spec.mutations[2].jsonPatch: Required value: must be specified when patchType is JSONPatch
                spec.mutations[2].applyConfiguration: Invalid value: "{applyConfiguration}": must not be specified when patchType is JSONPatch
                spec.mutations[3].applyConfiguration.expression: Invalid value: "{'a': 1}": must evaluate to Object but got map(string, int)"#]],
        );
        let mut deletes = rule();
        deletes["operations"] = json!(["DELETE"]);
        check(
            validate_mutating,
            json!({"matchConstraints": {"resourceRules": [deletes]}}),
            expect![[r#"
                spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"
                spec.mutations: Required value: mutations must contain at least one item
                spec.reinvocationPolicy: Required value"#]],
        );
    }

    #[test]
    fn validations_see_the_variables_before_them() {
        let spec = json!({
            "matchConstraints": {"resourceRules": [rule()]},
            "variables": [{"name": "a", "expression": "1"}, {"name": "b", "expression": "variables.a + 1"}, {"name": "c d", "expression": ""}],
            "validations": [{"expression": "variables.b == 2", "messageExpression": "1", "message": "a\nb", "reason": "Odd"}],
            "auditAnnotations": [{"key": "k", "valueExpression": "1"}, {"key": "k", "valueExpression": "'x'"}],
        });
        check(
            validate_validating,
            spec,
            expect![[r#"
                spec.variables[2].name: Invalid value: "c d": must be a valid CEL identifier
                spec.variables[2].expression: Required value: expression is not specified
                spec.validations[0].messageExpression: Invalid value: "1": must evaluate to string but got int
                spec.validations[0].message: Invalid value: "a\nb": must not contain line breaks
                spec.validations[0].reason: Unsupported value: "Odd": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"
                spec.auditAnnotations[0].valueExpression: Invalid value: "1": must evaluate to one of [string null_type] but got int
                spec.auditAnnotations[1].key: Duplicate value: "k""#]],
        );
        check(
            validate_validating,
            json!({}),
            expect![[r#"
                spec.matchConstraints: Required value
                spec.validations: Required value: validations or auditAnnotations must contain at least one item
                spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item"#]],
        );
    }

    #[test]
    fn a_binding_says_what_follows_and_where_its_parameters_are() {
        check(
            validate_validating_binding,
            json!({"paramRef": {}, "validationActions": ["Deny", "Warn", "Deny", "Odd"]}),
            expect![[r#"
                spec.policyName: Required value
                spec.paramRef: Required value: one of name or selector must be specified
                spec.paramRef.parameterNotFoundAction: Required value
                spec.validationActions[2]: Duplicate value: "Deny"
                spec.validationActions[3]: Unsupported value: "Odd": supported values: "Audit", "Deny", "Warn"
                spec.validationActions: Invalid value: ["Deny","Warn","Deny","Odd"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"#]],
        );
        check(
            validate_mutating_binding,
            json!({"policyName": "p", "paramRef": {"name": "a", "selector": {}, "parameterNotFoundAction": "No"}}),
            expect![[r#"
                spec.paramRef.name: Forbidden: name and selector are mutually exclusive
                spec.paramRef.selector: Forbidden: name and selector are mutually exclusive
                spec.paramRef.parameterNotFoundAction: Unsupported value: "No": supported values: "Deny", "Allow""#]],
        );
    }
}
