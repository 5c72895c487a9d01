//! Questions about rights and identity, once [`review_rules`](super::review_rules) has checked them.

use krafla_admission::rbac::{Attributes, ResourceTarget, Rule, Target, User};
use krafla_schema::object;
use serde_json::{Map, Value, json};

use super::Context;
use super::path::ResourcePath;
use crate::registry::Resource;
use crate::status::Status;
use crate::users;

/// Answers a review.
pub(super) fn answer(
    context: &Context,
    resource: &Resource,
    path: &ResourcePath,
    mut review: Value,
    user: &User,
) -> Result<Value, Status> {
    if resource.is_namespaced() && object::namespace(&review).is_empty() {
        object::set_meta(&mut review, "namespace", path.namespace.as_str());
    }
    let status = match &*resource.names.plural {
        "selfsubjectreviews" => json!({"userInfo": users::to_json(Some(user))}),
        "selfsubjectaccessreviews" => access(context, &review, user),
        "subjectaccessreviews" | "localsubjectaccessreviews" => access(context, &review, &subject(&review)),
        "selfsubjectrulesreviews" => rules(context, &review, user),
        "tokenreviews" => token_status(context, &review),
        _ => return Err(Status::unknown_resource()),
    };
    object::set(&mut review, "apiVersion", resource.names.api_version());
    object::set(&mut review, "kind", &*resource.names.kind);
    object::metadata(&mut review);
    object::set(&mut review, "status", status);
    Ok(review)
}

/// Whether what a review asks about is allowed.
fn access(context: &Context, review: &Value, user: &User) -> Value {
    let resource = object::at(review, "/spec/resourceAttributes");
    let text = |of: &'static str| resource[of].as_str().unwrap_or_default();
    let path = object::at(review, "/spec/nonResourceAttributes");
    let (verb, target) = if resource.is_object() {
        let target = ResourceTarget {
            group: text("group"),
            version: text("version"),
            resource: text("resource"),
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
        };
        (text("verb"), Target::Resource(target))
    } else {
        let text = |of: &'static str| path[of].as_str().unwrap_or_default();
        (text("verb"), Target::Path(text("path")))
    };
    let decision = context.api.authorize(&Attributes { user, verb, target });
    let mut status = json!({"allowed": decision.allowed});
    if !decision.reason.is_empty() {
        object::set(&mut status, "reason", decision.reason);
    }
    status
}

/// The user that a review is about.
fn subject(review: &Value) -> User {
    let strings = |value: Option<&Value>| -> Vec<String> {
        object::strings(value).into_iter().map(str::to_owned).collect()
    };
    let extra = object::at(review, "/spec/extra").as_object().into_iter().flatten();
    User {
        name: object::text_at(review, "spec.user"),
        uid: object::text_at(review, "spec.uid"),
        groups: strings(review.pointer("/spec/groups")),
        extra: extra.map(|(key, values)| (key.clone(), strings(Some(values)))).collect(),
    }
}

/// Everything that a user may do in a namespace.
fn rules(context: &Context, review: &Value, user: &User) -> Value {
    let namespace = object::text_at(review, "spec.namespace");
    let (rules, unresolved) = context.api.authorizer().rules_for(&context.api, user, &namespace);
    let shown = |rule: &Rule, fields: [&str; 4]| {
        let rule = serde_json::to_value(rule).unwrap_or_default();
        let kept = fields.iter().filter_map(|field| Some(((*field).to_owned(), rule.get(*field)?.clone())));
        Value::Object(Map::from_iter(kept))
    };
    let resources = rules.iter().filter(|rule| !rule.resources.is_empty());
    let resources: Vec<Value> =
        resources.map(|rule| shown(rule, ["verbs", "apiGroups", "resources", "resourceNames"])).collect();
    let paths = rules.iter().filter(|rule| !rule.non_resource_urls.is_empty());
    let paths: Vec<Value> = paths.map(|rule| shown(rule, ["verbs", "nonResourceURLs", "", ""])).collect();
    let mut status = json!({"incomplete": false, "resourceRules": resources, "nonResourceRules": paths});
    if let Some(unresolved) = unresolved {
        object::set(&mut status, "evaluationError", unresolved);
    }
    status
}

/// Whose the token of a review is.
fn token_status(context: &Context, review: &Value) -> Value {
    let token = object::text_at(review, "spec.token");
    let audiences = object::strings(review.pointer("/spec/audiences"));
    let audiences: Vec<String> = audiences.into_iter().map(str::to_owned).collect();
    match context.credentials.user_of(&context.api, &token, &audiences) {
        Some((user, meant)) => {
            json!({"authenticated": true, "user": users::to_json(Some(&user)), "audiences": meant})
        }
        None => json!({"user": {}, "error": "invalid bearer token"}),
    }
}
