//! Questions about rights and identity. Whoever is let in may do everything.

use serde_json::{Value, json};

use super::Context;
use super::auth::User;
use crate::field::FieldError;
use crate::object;
use crate::registry::Resource;
use crate::status::{Qualified, Status};

/// Answers a review.
pub(super) fn answer(
    context: &Context,
    resource: &Resource,
    mut review: Value,
    user: &User,
) -> Result<Value, Status> {
    let everything = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
    let status = match &*resource.names.plural {
        "selfsubjectreviews" => json!({"userInfo": user.to_json()}),
        "selfsubjectaccessreviews" => {
            check_attributes(&review)?;
            json!({"allowed": true})
        }
        "subjectaccessreviews" | "localsubjectaccessreviews" => {
            let asked = object::text_at(&review, "spec.user");
            json!({"allowed": asked == user.name})
        }
        "selfsubjectrulesreviews" => json!({
            "incomplete": false,
            "resourceRules": [everything],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        }),
        "tokenreviews" => token_status(context, &review),
        _ => return Err(Status::unknown_resource()),
    };
    object::set(&mut review, "apiVersion", resource.names.api_version());
    object::set(&mut review, "kind", &*resource.names.kind);
    object::metadata(&mut review);
    object::set(&mut review, "status", status);
    Ok(review)
}

/// Whose the token of a review is.
fn token_status(context: &Context, review: &Value) -> Value {
    let token = object::text_at(review, "spec.token");
    let audiences = object::strings(review.pointer("/spec/audiences"));
    let audiences: Vec<String> = audiences.into_iter().map(str::to_owned).collect();
    match context.credentials.user_of(&context.api, &token, &audiences) {
        Some((user, meant)) => json!({"authenticated": true, "user": user.to_json(), "audiences": meant}),
        None => json!({"user": {}, "error": "invalid bearer token"}),
    }
}

fn check_attributes(review: &Value) -> Result<(), Status> {
    let has = |field: &str| review.pointer(&format!("/spec/{field}")).is_some_and(Value::is_object);
    if has("resourceAttributes") != has("nonResourceAttributes") {
        return Ok(());
    }
    let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    let error = FieldError::invalid("spec.resourceAttributes", Value::Null, why);
    Err(Status::invalid(&Qualified { group: "authorization.k8s.io", what: "" }, "", &[error]))
}
