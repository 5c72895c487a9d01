//! What is wrong with a definition, apart from its schemas: name, group, scope, versions, names, subresources, columns.
//!
//! What all versions share stands in messages as if it were said once for the whole definition
//! (`spec.validation`, not `spec.versions[0].schema`), because that is how upstream keeps it.

use krafla_admission::webhook;
use krafla_schema::field::{self, FieldError, Problem};
use krafla_schema::{names, object};
use serde_json::{Map, Value};

use super::schema;

/// Where a group of Kubernetes' own says that it was agreed on.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// How many fields objects of a version can be selected by.
const SELECTABLE_MAX: usize = 8;

/// All findings about a new definition.
pub(super) fn check(definition: &Value) -> Vec<FieldError> {
    let mut errors = check_name(definition);
    errors.extend(check_but_name(definition));
    errors
}

fn check_but_name(definition: &Value) -> Vec<FieldError> {
    let mut errors = check_spec(definition);
    errors.extend(check_stored_versions(definition));
    errors.extend(check_approval(definition));
    if object::at(definition, "/spec/preserveUnknownFields") == true {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                   spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, why));
    }
    errors
}

/// All findings about a changed definition. What it is called, and where its objects live, is for good.
pub(super) fn check_update(definition: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = check_but_name(definition);
    for (pointer, field) in [
        ("/spec/group", "spec.group"),
        ("/spec/scope", "spec.scope"),
        ("/spec/names/kind", "spec.names.kind"),
        ("/spec/names/plural", "spec.names.plural"),
    ] {
        let new = object::at(definition, pointer);
        if new != object::at(old, pointer) {
            errors.push(FieldError::invalid(field, new.clone(), "field is immutable"));
        }
    }
    errors
}

/// The versions in which objects are stored; a valid definition has one.
pub(super) fn storage_versions(definition: &Value) -> impl Iterator<Item = &str> {
    let stored = versions(definition).iter().filter(|version| version["storage"] == true);
    stored.filter_map(|version| version["name"].as_str())
}

fn versions(definition: &Value) -> &[Value] {
    object::at(definition, "/spec/versions").as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(definition: &'a Value, pointer: &str) -> &'a str {
    object::at(definition, pointer).as_str().unwrap_or_default()
}

fn check_name(definition: &Value) -> Vec<FieldError> {
    let name = object::name(definition);
    let required = format!("{}.{}", text(definition, "/spec/names/plural"), text(definition, "/spec/group"));
    if name == required {
        return Vec::new();
    }
    vec![FieldError::invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group")]
}

fn check_spec(definition: &Value) -> Vec<FieldError> {
    let mut errors = check_group(text(definition, "/spec/group"));
    let scope = text(definition, "/spec/scope");
    if scope.is_empty() {
        errors.push(FieldError::required("spec.scope", ""));
    } else if !["Cluster", "Namespaced"].contains(&scope) {
        errors.push(FieldError::not_supported("spec.scope", scope, &["Cluster", "Namespaced"]));
    }
    errors.extend(check_versions(definition));
    errors.extend(check_names(object::at(definition, "/spec/names")));
    errors.extend(check_shared_parts(definition));
    errors.extend(check_conversion(object::at(definition, "/spec/conversion")));
    errors
}

fn check_group(group: &str) -> Vec<FieldError> {
    let wrong = names::dns_subdomain(group);
    if group.is_empty() {
        vec![FieldError::required("spec.group", "")]
    } else if !wrong.is_empty() {
        vec![FieldError::invalid("spec.group", group, wrong.join(","))]
    } else if !group.contains('.') {
        vec![FieldError::invalid("spec.group", group, "should be a domain with at least one dot")]
    } else {
        Vec::new()
    }
}

fn check_versions(definition: &Value) -> Vec<FieldError> {
    let versions = versions(definition);
    let mut errors = Vec::new();
    for (at, version) in versions.iter().enumerate() {
        let field = format!("spec.versions[{at}]");
        let name = version["name"].as_str().unwrap_or_default();
        let wrong = names::dns_1035_label(name);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(format!("{field}.name"), name, wrong.join(",")));
        }
        errors.extend(check_warning(version, &format!("{field}.deprecationWarning")));
        if version.pointer("/schema/openAPIV3Schema").is_none_or(Value::is_null) {
            errors.push(FieldError::required(format!("{field}.schema.openAPIV3Schema"), ""));
        }
    }
    // Upstream still knows the first version by the name that it had when there was only one.
    if let Some(first) = versions.first() {
        let name = first["name"].as_str().unwrap_or_default();
        let wrong = names::dns_1035_label(name);
        if !name.is_empty() && !wrong.is_empty() {
            errors.push(FieldError::invalid("spec.version", name, wrong.join(",")));
        }
    }
    let is_repeated = |(at, version): (usize, &Value)| {
        versions.iter().take(at).any(|earlier| earlier["name"] == version["name"])
    };
    let mut about_all = |why: &str| {
        errors.push(FieldError::invalid_as_shown("spec.versions", shown(definition), why));
    };
    if versions.iter().enumerate().any(is_repeated) {
        about_all("must contain unique version names");
    }
    if storage_versions(definition).count() != 1 {
        about_all("must have exactly one version marked as storage version");
    }
    errors
}

/// What users of a deprecated version are told is one short line.
fn check_warning(version: &Value, field: &str) -> Option<FieldError> {
    const LENGTH_MAX: usize = 256;
    let warning = version["deprecationWarning"].as_str()?;
    let unprintable = warning.char_indices().find(|(_, character)| character.is_control());
    let why = if version["deprecated"] != true {
        "can only be set for deprecated versions".to_owned()
    } else if warning.is_empty() {
        "must not be an empty string".to_owned()
    } else if warning.len() > LENGTH_MAX {
        format!("must be <= {LENGTH_MAX} characters long")
    } else {
        let (at, _) = unprintable?;
        format!("must only contain printable UTF-8 characters; non-printable character found at index {at}")
    };
    Some(FieldError::invalid(field, warning, why))
}

/// Versions as upstream quotes them: Go's names, in the order of its struct. What all versions share is left out.
fn shown(definition: &Value) -> String {
    let part = |version: &Value, part: &str| match version.get(part) {
        Some(own) if !is_shared(definition, part) => own.to_string(),
        _ => "null".to_owned(),
    };
    if object::at(definition, "/spec/versions").is_null() {
        return "null".to_owned();
    }
    let versions = versions(definition).iter().map(|version| {
        let flag = |name: &str| version[name] == true;
        format!(
            r#"{{"Name":{},"Served":{},"Storage":{},"Deprecated":{},"DeprecationWarning":{},"Schema":{},"#,
            version["name"],
            flag("served"),
            flag("storage"),
            flag("deprecated"),
            version["deprecationWarning"],
            part(version, "schema"),
        ) + &format!(
            r#""Subresources":{},"AdditionalPrinterColumns":{},"SelectableFields":{}}}"#,
            part(version, "subresources"),
            part(version, "additionalPrinterColumns"),
            part(version, "selectableFields"),
        )
    });
    format!("[{}]", versions.collect::<Vec<_>>().join(","))
}

/// Whether all versions say the same about one thing.
fn is_shared(definition: &Value, part: &str) -> bool {
    let versions = versions(definition);
    let first = versions.first().and_then(|version| version.get(part));
    versions.iter().all(|version| version.get(part) == first)
}

fn check_names(names: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let own = |field: &str| names[field].as_str().unwrap_or_default();
    for field in ["plural", "singular", "kind", "listKind"] {
        if own(field).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{field}"), ""));
        }
    }
    let mut check = |field: String, name: &str, says: &str, label: &str| {
        let wrong = names::dns_1035_label(label);
        // Names in lists must be there; what else is missing is said elsewhere.
        if (!name.is_empty() || field.ends_with(']')) && !wrong.is_empty() {
            let why = format!("{says}{}", wrong.join(","));
            errors.push(FieldError::invalid(format!("spec.names.{field}"), name, why));
        }
    };
    for field in ["plural", "singular"] {
        check(field.to_owned(), own(field), "", own(field));
    }
    for (at, name) in object::strings(names.get("shortNames")).into_iter().enumerate() {
        check(format!("shortNames[{at}]"), name, "", name);
    }
    let mixed = "may have mixed case, but should otherwise match: ";
    for field in ["kind", "listKind"] {
        check(field.to_owned(), own(field), mixed, &own(field).to_lowercase());
    }
    for (at, name) in object::strings(names.get("categories")).into_iter().enumerate() {
        check(format!("categories[{at}]"), name, "", name);
    }
    if !own("kind").is_empty() && own("kind") == own("listKind") {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid("spec.names.listKind", own("listKind"), why));
    }
    errors
}

/// Schemas, subresources, columns and selectable fields: once if all versions share them, else for each version.
fn check_shared_parts(definition: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for part in ["schema", "subresources", "additionalPrinterColumns", "selectableFields"] {
        let is_shared = is_shared(definition, part);
        let n_checked = if is_shared { 1 } else { usize::MAX };
        for (at, version) in versions(definition).iter().enumerate().take(n_checked) {
            let field = match (is_shared, part) {
                (true, "schema") => "spec.validation".to_owned(),
                (true, part) => format!("spec.{part}"),
                (false, part) => format!("spec.versions[{at}].{part}"),
            };
            errors.extend(check_part(part, version, &field));
        }
    }
    errors
}

fn check_part(part: &str, version: &Value, field: &str) -> Vec<FieldError> {
    let list = || version[part].as_array().into_iter().flatten().enumerate();
    match part {
        "schema" => match version.pointer("/schema/openAPIV3Schema") {
            Some(Value::Object(schema)) => schema::check(schema, &format!("{field}.openAPIV3Schema")),
            _ => Vec::new(),
        },
        "subresources" => match version.pointer("/subresources/scale") {
            Some(Value::Object(scale)) => check_scale(scale, &format!("{field}.scale")),
            _ => Vec::new(),
        },
        "additionalPrinterColumns" => {
            list().flat_map(|(at, column)| check_column(column, &format!("{field}[{at}]"))).collect()
        }
        _ if list().count() > SELECTABLE_MAX => {
            let problem = Problem::TooMany(list().count());
            let detail = format!("must have at most {SELECTABLE_MAX} items");
            vec![FieldError { field: field.to_owned(), problem, detail }]
        }
        _ => list()
            .filter_map(|(at, selectable)| {
                let field = format!("{field}[{at}]");
                let path = &selectable["jsonPath"];
                let mut before = list().take(at);
                check_selectable(version, selectable, &field).or_else(|| {
                    let is_repeated = before.any(|(_, earlier)| earlier["jsonPath"] == *path);
                    is_repeated.then(|| FieldError::duplicate(format!("{field}.jsonPath"), path.clone()))
                })
            })
            .collect(),
    }
}

fn check_scale(scale: &Map<String, Value>, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (name, is_required, roots) in [
        ("specReplicasPath", true, &[".spec"][..]),
        ("statusReplicasPath", true, &[".status"]),
        ("labelSelectorPath", false, &[".spec", ".status"]),
    ] {
        let field = format!("{field}.{name}");
        let path = scale.get(name).and_then(Value::as_str).unwrap_or_default();
        if path.is_empty() {
            if is_required {
                errors.push(FieldError::required(field, ""));
            }
        } else if !is_simple_path(path) {
            errors.push(FieldError::invalid(field, path, "must be a simple json path starting with ."));
        } else if !roots.iter().any(|root| path.starts_with(&format!("{root}."))) {
            let either = if roots.len() > 1 { "either " } else { "" };
            let why = format!("should be a json path under {either}{}", roots.join(" or "));
            errors.push(FieldError::invalid(field, path, why));
        }
    }
    errors
}

fn check_column(column: &Value, field: &str) -> Vec<FieldError> {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let text = |name: &str| column[name].as_str().unwrap_or_default();
    let mut errors = Vec::new();
    if text("name").is_empty() {
        errors.push(FieldError::required(format!("{field}.name"), ""));
    }
    let kind = text("type");
    if kind.is_empty() {
        let why = format!("must be one of {}", TYPES.join(","));
        errors.push(FieldError::required(format!("{field}.type"), why));
    } else if !TYPES.contains(&kind) {
        let why = format!("must be one of {}", TYPES.join(","));
        errors.push(FieldError::invalid(format!("{field}.type"), kind, why));
    }
    let format = text("format");
    if !format.is_empty() && !FORMATS.contains(&format) {
        let why = format!("must be one of {}", FORMATS.join(","));
        errors.push(FieldError::invalid(format!("{field}.format"), format, why));
    }
    let path = text("jsonPath");
    if path.is_empty() {
        errors.push(FieldError::required(format!("{field}.JSONPath"), ""));
    } else if !path.starts_with('.') {
        let why = "must be a simple json path starting with .";
        errors.push(FieldError::invalid(format!("{field}.JSONPath"), path, why));
    }
    errors
}

/// A selectable field must be one that the schema knows.
fn check_selectable(version: &Value, selectable: &Value, field: &str) -> Option<FieldError> {
    let path = selectable["jsonPath"].as_str().unwrap_or_default();
    let field = format!("{field}.jsonPath");
    if path.is_empty() {
        return Some(FieldError::required(field, ""));
    }
    if !path.starts_with('.') {
        let word: String = path.chars().take_while(|character| character.is_alphanumeric()).collect();
        let why = format!("is an invalid path: expected [ or . but got: {word}");
        return Some(FieldError::invalid(field, path, why));
    }
    if path.contains('[') {
        return Some(FieldError::invalid(field, path, "is an invalid path: array notation is not allowed"));
    }
    let mut schema = version.pointer("/schema/openAPIV3Schema");
    for name in path.trim_start_matches('.').split('.') {
        schema = schema.and_then(|schema| schema.get("properties")?.get(name));
    }
    match schema.map(|schema| schema["type"].as_str().unwrap_or_default()) {
        Some("string" | "boolean" | "integer") => None,
        Some(_) => Some(FieldError::invalid(
            field,
            path,
            "must point to a field of type string, boolean or integer. Enum string fields and strings with \
             formats are allowed.",
        )),
        None => Some(FieldError::invalid(field, path, "is an invalid path: does not refer to a valid field")),
    }
}

/// A path that begins with a dot. What comes after it is looked at when an object is scaled.
fn is_simple_path(path: &str) -> bool {
    path.starts_with('.')
}

fn check_conversion(conversion: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let webhook = object::at(conversion, "/webhook");
    let (client, versions) = (&webhook["clientConfig"], &webhook["conversionReviewVersions"]);
    match conversion["strategy"].as_str().unwrap_or_default() {
        "" => errors.push(FieldError::required("spec.conversion.strategy", "")),
        "None" => {
            let why = "should not be set when strategy is not set to Webhook";
            if !client.is_null() {
                errors.push(FieldError::forbidden("spec.conversion.webhookClientConfig", why));
            }
            if versions.as_array().is_some_and(|versions| !versions.is_empty()) {
                errors.push(FieldError::forbidden("spec.conversion.conversionReviewVersions", why));
            }
        }
        "Webhook" => {
            if client.is_null() {
                let why = "required when strategy is set to Webhook";
                errors.push(FieldError::required("spec.conversion.webhookClientConfig", why));
            }
            errors.extend(field::found(webhook::validate_conversion(client, versions)));
        }
        other => {
            errors.push(FieldError::not_supported("spec.conversion.strategy", other, &["None", "Webhook"]));
        }
    }
    errors
}

/// What is stored must be in versions that are still known, the one for new objects among them.
fn check_stored_versions(definition: &Value) -> Vec<FieldError> {
    const FIELD: &str = "status.storedVersions";
    let stored = object::strings(definition.pointer("/status/storedVersions"));
    if stored.is_empty() {
        return vec![FieldError::invalid(FIELD, Value::Null, "must have at least one stored version")];
    }
    let mut errors = Vec::new();
    for (at, name) in stored.iter().enumerate() {
        if !versions(definition).iter().any(|version| version["name"] == **name) {
            let why = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {name} and removes \
                 {name} from status.storedVersions"
            );
            errors.push(FieldError::invalid(format!("{FIELD}[{at}]"), *name, why));
        }
    }
    if let Some(missing) = storage_versions(definition).last().filter(|name| !stored.contains(name)) {
        let why = format!("must have the storage version {missing}");
        errors.push(FieldError::invalid(FIELD, stored, why));
    }
    errors
}

/// Groups of Kubernetes' own are agreed on in public.
fn check_approval(definition: &Value) -> Vec<FieldError> {
    let group = text(definition, "/spec/group");
    let is_protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    let approval = object::at(definition, "/metadata/annotations")[APPROVAL].as_str().unwrap_or_default();
    if !is_protected || approval.starts_with("unapproved") || approval.contains("://") {
        return Vec::new();
    }
    let field = format!("metadata.annotations[{APPROVAL}]");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    if approval.is_empty() {
        let why = format!("protected groups must have approval annotation \"{APPROVAL}\", {see}");
        return vec![FieldError::required(field, why)];
    }
    let why = format!(
        "protected groups must have approval annotation \"{APPROVAL}\" with either a URL or a reason starting with \
         \"unapproved\", {see}"
    );
    vec![FieldError::invalid(field, approval, why)]
}
