//! How bodies become objects: JSON, YAML, protobuf.
//!
//! What comes out is *sparse*: unknown fields are gone, every value has its one form, and nothing is there that says
//! nothing. [`complete`] adds the rest when all defaults are filled in.

use krafla_schema::decode::{self, Decoded, Finding};
use krafla_schema::field::FieldError;
use krafla_schema::json::Node;
use krafla_schema::table::TypeId;
use krafla_schema::{encode, protobuf, yaml};
use serde_json::Value;

use crate::registry::Resource;
use crate::status::{Qualified, Status};

/// What can be read, as messages list it.
const ACCEPTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
/// Where upstream's table of types stands in its source, which its messages say.
const SCHEME: &str = "in scheme \"k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30\"";

/// The media type of a body, without parameters and in small letters.
pub(crate) fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// An object of a resource, and what strict field validation would say about it.
pub(crate) fn decode(resource: &Resource, content_type: &str, body: &[u8]) -> Result<Decoded, Status> {
    match media_type(content_type).as_str() {
        "application/json" | "" => {
            let node = Node::parse(body).map_err(|why| unrecognized(resource, &why, body))?;
            decode_node(resource, &node, body)
        }
        "application/yaml" => {
            let node = yaml::parse(body)
                .map_err(|why| unrecognized_plain(resource, &format!("{why} ({})", excerpt(body))))?;
            let mut decoded = decode_node(resource, &node, body)?;
            // Keys that come twice are found by the reader of YAML, which names their lines.
            decoded.findings.retain(|finding| !matches!(finding, Finding::Duplicate(_)));
            let repeated = yaml::duplicates(body).into_iter().map(Finding::Line);
            decoded.findings.splice(..0, repeated);
            Ok(decoded)
        }
        "application/vnd.kubernetes.protobuf" => decode_protobuf(resource, body),
        _ => Err(Status::unsupported_media_type(ACCEPTED)),
    }
}

/// A body that is not an object of the path's own resource: options, bindings, reviews.
pub(crate) fn decode_any(gvk: [&str; 3], content_type: &str, body: &[u8]) -> Result<Value, Status> {
    match media_type(content_type).as_str() {
        "application/json" | "" => Node::parse(body).map(Node::into_value).map_err(Status::bad_request),
        "application/yaml" => yaml::parse(body).map(Node::into_value).map_err(Status::bad_request),
        "application/vnd.kubernetes.protobuf" => {
            let envelope = protobuf::open(body).map_err(Status::bad_request)?;
            let [group, version, kind] = gvk;
            let of = krafla_schema::builtin().kind(group, version, kind);
            let of =
                of.ok_or_else(|| Status::unsupported_media_type("application/json, application/yaml"))?;
            protobuf::decode(envelope.message, of).map_err(Status::bad_request)
        }
        _ => Err(Status::unsupported_media_type(ACCEPTED)),
    }
}

/// The body of a server-side apply. Nothing at all is an object without fields.
pub(crate) fn decode_applied(body: &[u8]) -> Result<Value, Status> {
    let refuse = |why: &str| Status::bad_request(format!("error decoding YAML: {why}"));
    let node = yaml::parse(body).map_err(|why| refuse(&format!("error converting YAML to JSON: {why}")))?;
    match &node {
        Node::Object(_) => Ok(node.into_value()),
        Node::Null => Ok(Value::Object(serde_json::Map::new())),
        other => {
            let why = format!(
                "cannot unmarshal {} into Go value of type map[string]interface {{}}",
                other.go_kind()
            );
            Err(refuse(&format!("error unmarshaling JSON: while decoding JSON: json: {why}")))
        }
    }
}

/// The keys that come twice in the body of an apply.
pub(crate) fn repeated_keys(body: &[u8]) -> Vec<String> {
    yaml::duplicates(body)
}

/// Options in a body, of a kind that belongs to every group. Their decoder knows few kinds, and words its faults briefly.
pub(crate) fn decode_options(kind: &str, content_type: &str, body: &[u8]) -> Result<Value, Status> {
    let refuse =
        |why: &str| Status::bad_request(format!("couldn't get version/kind; json parse error: {why}"));
    let node = match media_type(content_type).as_str() {
        "application/json" | "" => Node::parse(body).map_err(|why| refuse(&why))?,
        "application/yaml" => yaml::parse(body).map_err(|why| refuse(&why))?,
        _ => return decode_any(["", "v1", kind], content_type, body),
    };
    if !matches!(node, Node::Object(_) | Node::Null) {
        return Err(refuse(&not_an_object(&node)));
    }
    let text = |name: &str| match node.field(name) {
        None | Some(Node::Null) => Ok(String::new()),
        Some(Node::String(text)) => Ok(text.to_string()),
        Some(other) => {
            let found = other.go_kind();
            let into = format!("Go struct field .{name} of type string");
            Err(refuse(&format!("json: cannot unmarshal {found} into {into}")))
        }
    };
    let (api_version, named) = (text("apiVersion")?, text("kind")?);
    if !named.is_empty() && named != kind {
        return Err(Status::bad_request(other_options(kind, &api_version, &named)));
    }
    let of = encode::of_meta(kind).ok_or_else(|| Status::unsupported_media_type(ACCEPTED))?;
    decode::decode(&node, of).map(|decoded| decoded.object).map_err(Status::bad_request)
}

/// Why options of another kind are not taken: some kinds are known in every group, some in one, others not at all.
fn other_options(kind: &str, api_version: &str, named: &str) -> String {
    let is_known = match named {
        "Status" | "APIVersions" | "APIGroup" | "APIGroupList" | "APIResourceList" => true,
        "CreateOptions" | "UpdateOptions" | "PatchOptions" | "GetOptions" => api_version == "meta.k8s.io/v1",
        _ => false,
    };
    if is_known {
        let version = api_version.rsplit('/').next().unwrap_or_default();
        return format!("converting ({version}.{named}) to (v1.{kind}): unknown conversion");
    }
    not_registered(named, api_version)
}

/// Go's words for a document that has no fields.
fn not_an_object(node: &Node<'_>) -> String {
    let target = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    format!("json: cannot unmarshal {} into Go value of type {target}", node.go_kind())
}

/// What a patch has made of an object. The decoder behind strategic merge patches words its faults differently.
pub(crate) fn decode_patched(
    resource: &Resource,
    object: &Value,
    is_strategic: bool,
) -> Result<Decoded, String> {
    match resource.schema {
        Some(of) if is_strategic => {
            let mut decoded = decode::decode_patched(object, of)?;
            keep_empty_managers(&Node::from(object), &mut decoded.object);
            Ok(decoded)
        }
        _ => decode_typed(resource, &Node::from(object)),
    }
}

/// A patch may not make something else of a built-in object.
pub(crate) fn check_still_of_kind(resource: &Resource, new: &Value, old: &Value) -> Result<(), String> {
    let text = |object: &Value, name: &str| object[name].as_str().unwrap_or_default().to_owned();
    let is_same = |name: &str| text(new, name) == text(old, name);
    if resource.is_custom {
        return Ok(());
    }
    for name in ["apiVersion", "kind"] {
        if let Some(found) = new.get(name).filter(|value| !value.is_null() && !value.is_string()) {
            let found = Node::from(found).go_kind();
            let why = format!("json: cannot unmarshal {found} into Go struct field .{name} of type string");
            return Err(format!("couldn't get version/kind; json parse error: {why}"));
        }
    }
    if is_same("apiVersion") && is_same("kind") {
        return Ok(());
    }
    let read = |of| decode::decode(&Node::from(new), of).err();
    mismatch(resource, &text(new, "apiVersion"), &text(new, "kind"), read).map_or(Ok(()), Err)
}

/// A value that was made in this process in the form of decoded ones.
pub(crate) fn normalise(resource: &Resource, object: &Value) -> Result<Value, String> {
    let node = Node::from(object);
    decode_typed(resource, &node).map(|decoded| decoded.object)
}

/// An object by its type, or by the schema that its CRD gives it.
fn decode_typed(resource: &Resource, node: &Node<'_>) -> Result<Decoded, String> {
    if let Some(of) = resource.schema {
        let mut decoded = decode::decode(node, of)?;
        keep_empty_managers(node, &mut decoded.object);
        return Ok(decoded);
    }
    let mut decoded = decode::decode_custom(node)?;
    if let Some(schema) = &resource.custom {
        let dropped = schema.compiled.prune(&mut decoded.object);
        decoded.findings.extend(dropped.into_iter().map(Finding::Unknown));
    }
    Ok(decoded)
}

/// The one empty list that says something: nobody is to manage any field.
fn keep_empty_managers(node: &Node<'_>, object: &mut Value) {
    let managers = node.field("metadata").and_then(|metadata| metadata.field("managedFields"));
    if matches!(managers, Some(Node::Array(items)) if items.is_empty()) {
        krafla_schema::object::set_meta(object, "managedFields", Vec::<Value>::new());
    }
}

/// Adds what is shown although it is empty.
pub(crate) fn complete(resource: &Resource, object: &mut Value) {
    if let Some(of) = resource.schema {
        decode::complete(object, of);
    }
}

fn decode_node(resource: &Resource, node: &Node<'_>, body: &[u8]) -> Result<Decoded, Status> {
    match node {
        Node::Object(_) | Node::Null => {}
        other => return Err(unrecognized(resource, &not_an_object(other), body)),
    }
    let fields = if let Node::Object(fields) = node { fields.as_slice() } else { &[] };
    for (name, value) in fields.iter().filter(|(name, _)| matches!(&**name, "apiVersion" | "kind")) {
        if !matches!(value, Node::String(_) | Node::Null) {
            let into = format!("Go struct field .{name} of type string");
            let why = format!("json: cannot unmarshal {} into {into}", value.go_kind());
            return Err(unrecognized(resource, &why, body));
        }
    }
    let text = |name: &str| match node.field(name) {
        Some(Node::String(text)) => Some(text.as_ref()),
        _ => None,
    };
    let (api_version, kind) = (text("apiVersion").unwrap_or_default(), text("kind").unwrap_or_default());
    if api_version.matches('/').count() > 1 {
        let why = format!("unexpected GroupVersion string: {api_version} ({})", excerpt(body));
        return Err(unrecognized_plain(resource, &why));
    }
    if resource.is_custom {
        check_custom_type(resource, node, [api_version, kind], body)?;
    } else {
        check_type(resource, api_version, kind, |of| decode::decode(node, of).err())?;
    }
    decode_typed(resource, node).map_err(|why| cannot_be_handled(resource, api_version, kind, &why))
}

fn decode_protobuf(resource: &Resource, body: &[u8]) -> Result<Decoded, Status> {
    let Some(of) = resource.schema else {
        return Err(Status::unsupported_media_type("application/json, application/yaml"));
    };
    let envelope = protobuf::open(body)
        .map_err(|why| unrecognized_plain(resource, &format!("{why} ({})", excerpt(body))))?;
    check_type(resource, &envelope.api_version, &envelope.kind, |_| None)?;
    let object = protobuf::decode(envelope.message, of)
        .map_err(|why| cannot_be_handled(resource, &envelope.api_version, &envelope.kind, &why))?;
    Ok(Decoded { object, findings: Vec::new() })
}

fn unrecognized(resource: &Resource, why: &str, body: &[u8]) -> Status {
    unrecognized_plain(
        resource,
        &format!("couldn't get version/kind; json parse error: {why} ({})", excerpt(body)),
    )
}

fn unrecognized_plain(resource: &Resource, why: &str) -> Status {
    let kind = &resource.names.kind;
    Status::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why}"))
}

/// A body may leave out what it is, but not be something else.
fn check_type(
    resource: &Resource,
    api_version: &str,
    kind: &str,
    read: impl FnOnce(TypeId) -> Option<String>,
) -> Result<(), Status> {
    match mismatch(resource, api_version, kind, read) {
        Some(why) => Err(cannot_be_handled(resource, api_version, kind, &why)),
        None => Ok(()),
    }
}

/// Why an object that says it is of this kind is not of the resource. What is of another known kind is read as that
/// first, which may go wrong too.
fn mismatch(
    resource: &Resource,
    api_version: &str,
    kind: &str,
    read: impl FnOnce(TypeId) -> Option<String>,
) -> Option<String> {
    let names = &resource.names;
    let is_kind = kind.is_empty() || *kind == *names.kind;
    let is_version = api_version.is_empty() || api_version == names.api_version();
    if is_kind && is_version {
        return None;
    }
    let shown = if kind.is_empty() { &names.kind } else { kind };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let version = if api_version.is_empty() { &names.version } else { version };
    // Not served for years, but upstream still knows it.
    let known_as = if [group, version, shown] == ["batch", "v1beta1", "CronJob"] { "v1" } else { version };
    let known = krafla_schema::builtin().kind(group, known_as, shown).filter(|_| group != "meta.k8s.io");
    if let Some(why) = known.and_then(read) {
        return Some(why);
    }
    if known.is_some() || is_version && is_registered(group, version, shown) {
        let own = resource.go_type();
        return Some(format!("converting ({version}.{shown}) to ({own}): unknown conversion"));
    }
    Some(not_registered(shown, api_version))
}

/// Whether upstream knows a kind that is not served: lists, options, and a few that belong to every group.
fn is_registered(group: &str, version: &str, kind: &str) -> bool {
    const EVERYWHERE: [&str; 7] = [
        "ListOptions",
        "GetOptions",
        "DeleteOptions",
        "CreateOptions",
        "UpdateOptions",
        "PatchOptions",
        "WatchEvent",
    ];
    const CORE: [&str; 8] = [
        "List",
        "Status",
        "APIVersions",
        "APIGroup",
        "APIGroupList",
        "APIResourceList",
        "RangeAllocation",
        "SerializedReference",
    ];
    let is_list = kind
        .strip_suffix("List")
        .is_some_and(|of| krafla_schema::builtin().kind(group, version, of).is_some());
    is_list || EVERYWHERE.contains(&kind) || group.is_empty() && CORE.contains(&kind)
}

/// An object of a custom kind must say what it is.
fn check_custom_type(
    resource: &Resource,
    node: &Node<'_>,
    [api_version, kind]: [&str; 2],
    body: &[u8],
) -> Result<(), Status> {
    let names = &resource.names;
    for (text, name) in [(kind, "Kind"), (api_version, "apiVersion")] {
        if text.is_empty() {
            let whole = String::from_utf8_lossy(body);
            let why = format!("Object '{name}' is missing in '{whole}' ({})", excerpt(body));
            return Err(unrecognized_plain(resource, &why));
        }
    }
    let expected = names.api_version();
    if api_version != expected {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    if *kind != *names.kind {
        let error = FieldError::invalid("kind", kind, format!("must be {}", names.kind));
        let object = node.to_value();
        let about = Qualified { group: &names.group, what: kind };
        return Err(Status::invalid(&about, krafla_schema::object::name(&object), &[error]));
    }
    Ok(())
}

/// Nobody knows such a kind.
pub(crate) fn not_registered(kind: &str, api_version: &str) -> String {
    format!("no kind \"{kind}\" is registered for version \"{api_version}\" {SCHEME}")
}

fn cannot_be_handled(resource: &Resource, api_version: &str, kind: &str, why: &str) -> Status {
    let names = &resource.names;
    let kind = if kind.is_empty() { &names.kind } else { kind };
    let version =
        api_version.rsplit('/').next().filter(|version| !version.is_empty()).unwrap_or(&names.version);
    Status::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {}: {why}",
        names.kind
    ))
}

/// The beginning of a body, as messages quote it.
fn excerpt(body: &[u8]) -> String {
    const LENGTH: usize = 30;
    let start = body.get(..LENGTH).unwrap_or(body);
    let rest = if body.len() > LENGTH { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        // What looks like JSON is quoted as text.
        Some(b'{') => format!("{}{rest}", String::from_utf8_lossy(start)),
        Some(_) => format!("{}{rest}", in_hex(start)),
    }
}

fn in_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
