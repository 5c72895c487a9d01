//! What is wrong with a review before it is answered.

use krafla_api::Time;
use krafla_schema::field::FieldError;
use krafla_schema::object;
use serde_json::{Value, json};

use crate::registry::Resource;
use crate::status::{Qualified, Status};

/// Checks a review, and puts it where it was sent to.
pub(super) fn check(resource: &Resource, namespace: &str, review: &mut Value) -> Result<(), Status> {
    let named = object::namespace(review).to_owned();
    if !named.is_empty() && resource.is_namespaced() && named != namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(message));
    }
    if !named.is_empty() && !resource.is_namespaced() {
        object::metadata(review).remove("namespace");
    }
    let mut errors = Vec::new();
    match &*resource.names.plural {
        "tokenreviews" if object::text_at(review, "spec.token").is_empty() => {
            return Err(Status::bad_request("token is required for TokenReview in authentication"));
        }
        "selfsubjectrulesreviews" if object::text_at(review, "spec.namespace").is_empty() => {
            return Err(Status::bad_request("no namespace on request"));
        }
        "selfsubjectaccessreviews" => {
            errors.extend(check_attributes(review));
            errors.extend(check_selectors(review));
            errors.extend(check_metadata(review, false));
        }
        "subjectaccessreviews" | "localsubjectaccessreviews" => {
            let is_local = resource.is_namespaced();
            errors.extend(check_attributes(review));
            let groups = object::strings(review.pointer("/spec/groups"));
            if object::text_at(review, "spec.user").is_empty() && groups.is_empty() {
                let why = "at least one of user or group must be specified";
                errors.push(FieldError::invalid("spec.user", "", why));
            }
            errors.extend(check_selectors(review));
            errors.extend(check_metadata(review, is_local));
            if is_local {
                errors.extend(check_place(review, namespace));
            }
        }
        _ => {}
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(&Qualified { group: "authorization.k8s.io", what: "" }, "", &errors))
}

/// Adds what only the answer has.
pub(super) fn complete(answer: &mut Value, now: Time) {
    match answer["kind"].as_str() {
        Some("SelfSubjectReview") => object::set_meta(answer, "creationTimestamp", now.to_string()),
        // Upstream does not repeat whom the rules are for.
        Some("SelfSubjectRulesReview") => object::set(answer, "spec", json!({})),
        _ => {}
    }
}

fn attributes<'a>(review: &'a Value, name: &str) -> Option<&'a Value> {
    review.get("spec")?.get(name).filter(|attributes| attributes.is_object())
}

/// A path and a verb as upstream prints them.
fn shown(attributes: &Value) -> String {
    let text = |name: &str| Value::from(attributes[name].as_str().unwrap_or_default());
    format!(r#"{{"Path":{},"Verb":{}}}"#, text("path"), text("verb"))
}

fn check_attributes(review: &Value) -> Option<FieldError> {
    match (attributes(review, "resourceAttributes"), attributes(review, "nonResourceAttributes")) {
        (Some(_), Some(other)) => {
            let why = "cannot be specified in combination with resourceAttributes";
            Some(FieldError::invalid_as_shown("spec.nonResourceAttributes", shown(other), why))
        }
        (None, None) => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            Some(FieldError::invalid("spec.resourceAttributes", Value::Null, why))
        }
        _ => None,
    }
}

fn check_selectors(review: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(attributes) = attributes(review, "resourceAttributes") else { return errors };
    for name in ["fieldSelector", "labelSelector"] {
        let Some(selector) = attributes.get(name).filter(|selector| selector.is_object()) else { continue };
        let field = format!("spec.resourceAttributes.{name}");
        let raw = selector["rawSelector"].as_str().unwrap_or_default();
        let requirements = selector["requirements"].as_array().map_or(&[][..], Vec::as_slice);
        if !raw.is_empty() && !requirements.is_empty() {
            let why = "may not specified at the same time as requirements";
            errors.push(FieldError::invalid(format!("{field}.rawSelector"), raw, why));
        }
        if raw.is_empty() && requirements.is_empty() {
            let why = format!("when {field} is specified, requirements or rawSelector is required");
            errors.push(FieldError::required(format!("{field}.requirements"), why));
        }
        for (at, requirement) in requirements.iter().enumerate() {
            errors.extend(check_requirement(requirement, &format!("{field}.requirements[{at}]"), name));
        }
    }
    errors
}

fn check_requirement(requirement: &Value, field: &str, selector: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let key = requirement["key"].as_str().unwrap_or_default();
    let has_values = requirement["values"].as_array().is_some_and(|values| !values.is_empty());
    if selector == "fieldSelector" && key.is_empty() {
        errors.push(FieldError::required(format!("{field}.key"), "must be specified"));
    }
    let values = format!("{field}.values");
    match requirement["operator"].as_str().unwrap_or_default() {
        "In" | "NotIn" if !has_values => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(values, why));
        }
        "Exists" | "DoesNotExist" if has_values => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(values, why));
        }
        _ => {}
    }
    errors
}

/// A review has no name.
fn check_metadata(review: &Value, is_local: bool) -> Option<FieldError> {
    let metadata = review.get("metadata").filter(|metadata| metadata.is_object())?;
    let is_own = |name: &str| name != "managedFields" && !(is_local && name == "namespace");
    if metadata.as_object().is_none_or(|fields| !fields.keys().any(|name| is_own(name))) {
        return None;
    }
    let why = if is_local { "must be empty except for namespace" } else { "must be empty" };
    Some(FieldError::invalid("metadata", metadata.clone(), why))
}

fn check_place(review: &Value, namespace: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(attributes) = attributes(review, "resourceAttributes") {
        let asked = attributes["namespace"].as_str().unwrap_or_default();
        if asked != namespace {
            let field = "spec.resourceAttributes.namespace";
            errors.push(FieldError::invalid(field, asked, "must match metadata.namespace"));
        }
    }
    if let Some(other) = attributes(review, "nonResourceAttributes") {
        let why = "disallowed on this kind of request";
        errors.push(FieldError::invalid_as_shown("spec.nonResourceAttributes", shown(other), why));
    }
    errors
}
