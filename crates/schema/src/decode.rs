//! From a JSON document to an object of a built-in type, as Go's decoder does it: unknown and doubled fields are noted,
//! values of the wrong type refused, and every value put into the form in which Go prints it.
//!
//! Objects are *sparse*: a field is there only if it says something. What Go prints although it is empty (`status: {}`,
//! `resources: {}`, `lastProbeTime: null`) is added by [`complete`], last of all, so that defaults are filled in between
//! without having to tell an absent value from an empty one.
//!
//! ```text
//!   text -> Node -> decode -> sparse object -> defaults, rules -> complete -> stored and shown
//! ```

use std::collections::HashSet;
use std::fmt;

use serde_json::{Map, Value};

pub use super::complete::complete;
use super::json::{Node, go_quote, number};
use super::scalar::{self, Precision};
use super::table::{META_V1, Shape, Type, TypeId, TypeRef, builtin};

/// A decoded document.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object, sparse.
    pub object: Value,
    /// What strict field validation complains about, in the order of the document.
    pub findings: Vec<Finding>,
}

/// A field that strict field validation complains about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Finding {
    /// The type has no such field; it was dropped.
    Unknown(String),
    /// The field came before; the last one counts.
    Duplicate(String),
    /// The same, as the reader of YAML says it.
    Line(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Unknown(path) => write!(f, "unknown field {}", go_quote(path)),
            Finding::Duplicate(path) => write!(f, "duplicate field {}", go_quote(path)),
            Finding::Line(text) => f.write_str(text),
        }
    }
}

/// kube-apiserver stops counting here.
const FINDINGS_MAX: usize = 100;

/// Decodes an object of a built-in type. The error is Go's text for the first value that does not fit.
pub fn decode(document: &Node<'_>, of: TypeId) -> Result<Decoded, String> {
    let mut decoder = Decoder::default();
    let context = TypeRef::of(of);
    let object = decoder.value(document, &context)?;
    decoder.finish(if object.is_null() { Value::Object(Map::new()) } else { object })
}

/// Decodes what a strategic merge patch has made of an object. kube-apiserver has another decoder there, with other
/// words for the same faults.
pub fn decode_patched(object: &Value, of: TypeId) -> Result<Decoded, String> {
    let (document, context) = (Node::from(object), TypeRef::of(of));
    let mut decoder = Decoder { is_patched: true, ..Decoder::default() };
    let object = decoder.value(&document, &context)?;
    decoder.finish(object)
}

/// Decodes an object of a kind that a CRD defines, as far as Go does it: its metadata is typed, the rest is not.
pub fn decode_custom(document: &Node<'_>) -> Result<Decoded, String> {
    let mut decoder = Decoder::default();
    let mut object = decoder.untyped(document)?;
    let mut decoded = decoder.finish(Value::Null)?;
    let typed = builtin().type_named(&format!("{META_V1}.ObjectMeta"));
    if let (Some(metadata), Some(typed)) =
        (object.get_mut("metadata").filter(|value| !value.is_null()), typed)
    {
        let checked = decode(&Node::from(&*metadata), typed)?;
        *metadata = checked.object;
        decoded.findings.extend(checked.findings.into_iter().map(|finding| finding.below("metadata")));
    }
    Ok(Decoded { object, ..decoded })
}

/// Fields that come twice in a document of no type.
pub fn duplicates(document: &Node<'_>) -> Vec<Finding> {
    let mut decoder = Decoder::default();
    // A number that is too large for Go is found again when the document is used.
    let _ = decoder.untyped(document);
    decoder.findings
}

impl Finding {
    /// The finding as seen from one field further up.
    fn below(self, field: &str) -> Finding {
        match self {
            Finding::Unknown(path) => Finding::Unknown(format!("{field}.{path}")),
            Finding::Duplicate(path) => Finding::Duplicate(format!("{field}.{path}")),
            Finding::Line(text) => Finding::Line(text),
        }
    }
}

/// A step from a value to one inside it.
#[derive(Clone, Copy)]
enum Step<'d> {
    Field(&'d str),
    Item(usize),
}

/// Reads a document `'d` by the types of a table `'t`.
#[derive(Default)]
struct Decoder<'d, 't> {
    findings: Vec<Finding>,
    seen: HashSet<Finding>,
    /// Where we are. It becomes text only when there is something to say about the place.
    path: Vec<Step<'d>>,
    /// Where we are, as Go's type errors name it: the innermost struct, and the fields from the top.
    go_struct: &'t str,
    go_fields: Vec<&'t str>,
    /// The first value of the wrong type. Go goes on after it, as a worse fault may follow.
    wrong_type: Option<String>,
    /// Go reads the parts of some types on their own, and there says nothing about unknown fields.
    is_lenient: bool,
    /// The object comes from a strategic merge patch.
    is_patched: bool,
}

impl<'d, 't> Decoder<'d, 't> {
    fn finish(self, object: Value) -> Result<Decoded, String> {
        match self.wrong_type {
            Some(fault) => Err(fault),
            None => Ok(Decoded { object, findings: self.findings }),
        }
    }

    fn note(&mut self, finding: fn(String) -> Finding, name: &str) {
        if self.is_lenient || self.findings.len() >= FINDINGS_MAX {
            return;
        }
        let path = self.path_to(name);
        let finding = finding(path);
        if self.seen.insert(finding.clone()) {
            self.findings.push(finding);
        }
    }

    /// The path of a field here, as strict findings name it: `spec.containers[0].image`.
    fn path_to(&self, field: &str) -> String {
        let mut text = String::new();
        for step in self.path.iter().chain([&Step::Field(field)]) {
            match step {
                Step::Field(name) if text.is_empty() => text.push_str(name),
                Step::Field(name) => text.extend([".", name]),
                Step::Item(at) => text.push_str(&format!("[{at}]")),
            }
        }
        text
    }

    /// Runs `inner` one step deeper in the path.
    fn within<R>(&mut self, step: Step<'d>, inner: impl FnOnce(&mut Self) -> R) -> R {
        self.path.push(step);
        let result = inner(self);
        self.path.pop();
        result
    }

    /// Go's text for a value that does not fit a type.
    fn mismatch(&self, what: &str, go_type: &str) -> String {
        if self.go_struct.is_empty() || self.is_patched {
            return format!("json: cannot unmarshal {what} into Go value of type {go_type}");
        }
        let (name, fields) = (self.go_struct, self.go_fields.join("."));
        format!("json: cannot unmarshal {what} into Go struct field {name}.{fields} of type {go_type}")
    }

    /// Notes a value of the wrong type and goes on without it.
    fn wrong(&mut self, node: &Node<'_>, expected: &TypeRef) -> Value {
        if self.is_patched {
            self.wrong_type.get_or_insert_with(|| cannot_convert(node, expected));
            return Value::Null;
        }
        self.wrong_as(node.go_kind(), &expected.go_name())
    }

    fn wrong_as(&mut self, what: &str, go_type: &str) -> Value {
        let fault = self.mismatch(what, go_type);
        self.wrong_type.get_or_insert(fault);
        Value::Null
    }

    /// One value. Null stands for what Go leaves at its zero value. An error ends decoding.
    fn value(&mut self, node: &'d Node<'_>, of: &'t TypeRef) -> Result<Value, String> {
        if let Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrStrings = of.shape {
            return self.union(node, &of.shape);
        }
        if *node == Node::Null {
            return Ok(Value::Null);
        }
        Ok(match (&of.shape, node) {
            (Shape::String, Node::String(text)) => text.as_ref().into(),
            (Shape::Bool, Node::Bool(bool)) => (*bool).into(),
            (Shape::Int32, Node::Number(text)) => self.whole::<i32>(text, of),
            (Shape::Int64, Node::Number(text)) => self.whole::<i64>(text, of),
            (Shape::Float64, Node::Number(text)) => match number(text) {
                Some(number) => number.into(),
                None => self.wrong_as(&format!("number {text}"), "float64"),
            },
            (Shape::Bytes, Node::String(text)) => match scalar::canonical_base64(text) {
                Ok(text) => text.into(),
                Err(fault) => {
                    self.wrong_type.get_or_insert(fault);
                    Value::Null
                }
            },
            (Shape::Any, node) => self.untyped(node)?,
            (Shape::RawExtension | Shape::FieldsV1 | Shape::Json, node) => node.to_value(),
            (Shape::List(element), Node::Array(items)) => self.list(items, element)?,
            (Shape::Map(value), Node::Object(fields)) => self.map(fields, value)?,
            (Shape::Struct(id), Node::Object(fields)) => self.structure(fields, id.get())?,
            (
                Shape::Time
                | Shape::MicroTime
                | Shape::Duration
                | Shape::Quantity
                | Shape::IntOrString
                | Shape::SchemaOrArray
                | Shape::SchemaOrBool
                | Shape::SchemaOrStrings,
                node,
            ) => self.special(node, &of.shape)?,
            (_, node) => self.wrong(node, of),
        })
    }

    fn whole<N: std::str::FromStr + Into<Value>>(&mut self, text: &str, of: &TypeRef) -> Value {
        match text.parse::<N>() {
            Ok(whole) => whole.into(),
            Err(_) if self.is_patched => match scalar::go_converted(text, of.shape == Shape::Int32) {
                Some(whole) => whole.into(),
                None => {
                    let fault = format!("cannot convert float64 to {}", of.go_name());
                    self.wrong_type.get_or_insert(fault);
                    Value::Null
                }
            },
            Err(_) => self.wrong_as(&format!("number {text}"), &of.go_name()),
        }
    }

    /// Types that read themselves. What they cannot read ends decoding at once.
    fn special(&self, node: &Node<'_>, shape: &Shape) -> Result<Value, String> {
        match (shape, node) {
            (Shape::Quantity, Node::String(text) | Node::Number(text)) => {
                Ok(scalar::canonical_quantity(text).map(Value::from)?)
            }
            (Shape::Quantity, _) => scalar::canonical_quantity("").map(Value::from).map_err(str::to_owned),
            (Shape::IntOrString, Node::String(text)) => Ok(text.as_ref().into()),
            (Shape::IntOrString, Node::Number(text)) => match text.parse::<i32>() {
                Ok(whole) => Ok(whole.into()),
                Err(_) => Err(self.mismatch(&format!("number {text}"), "int32")),
            },
            (Shape::IntOrString, node) => Err(self.mismatch(node.go_kind(), "int32")),
            (Shape::Time, Node::String(text)) => time(text, Precision::Seconds),
            (Shape::MicroTime, Node::String(text)) => time(text, Precision::Micros),
            (Shape::Duration, Node::String(text)) => scalar::canonical_duration(text).map(Value::from),
            (_, node) => Err(self.mismatch(node.go_kind(), "string")),
        }
    }

    /// A schema, or something short in its place.
    fn union(&mut self, node: &'d Node<'_>, shape: &Shape) -> Result<Value, String> {
        let was_lenient = std::mem::replace(&mut self.is_lenient, true);
        let result = match (shape, node, schema_type()) {
            (_, Node::Object(fields), Some(schema)) => self.structure(fields, schema.get()),
            (Shape::SchemaOrArray, Node::Array(items), Some(schema)) => self.schemas(items, schema.get()),
            (Shape::SchemaOrStrings, Node::Array(items), _) => {
                Ok(items.iter().map(|item| item.to_value()).collect())
            }
            (Shape::SchemaOrBool, Node::Bool(bool), _) => Ok((*bool).into()),
            (Shape::SchemaOrBool, _, _) => Err("boolean or JSON schema expected".to_owned()),
            _ => Ok(Value::Null),
        };
        self.is_lenient = was_lenient;
        result
    }

    fn schemas(&mut self, items: &'d [Node<'_>], schema: &'t Type) -> Result<Value, String> {
        let mut schemas = Vec::with_capacity(items.len());
        for item in items {
            schemas.push(match item {
                Node::Object(fields) => self.structure(fields, schema)?,
                _ => Value::Object(Map::new()),
            });
        }
        Ok(Value::Array(schemas))
    }

    fn list(&mut self, items: &'d [Node<'_>], element: &'t TypeRef) -> Result<Value, String> {
        let mut list = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let value = self.within(Step::Item(at), |inner| inner.value(item, element))?;
            list.push(element.or_zero(value));
        }
        Ok(Value::Array(list))
    }

    fn map(
        &mut self,
        fields: &'d [(std::borrow::Cow<'_, str>, Node<'_>)],
        of: &'t TypeRef,
    ) -> Result<Value, String> {
        let mut map = Map::new();
        for (name, node) in fields {
            if map.contains_key(name.as_ref()) {
                self.note(Finding::Duplicate, name);
            }
            let value = self.within(Step::Field(name), |inner| inner.value(node, of))?;
            let value = if of.shape == Shape::Quantity { scalar::rounded_amount(value) } else { value };
            map.insert(name.as_ref().to_owned(), of.or_zero(value));
        }
        Ok(Value::Object(map))
    }

    fn structure(
        &mut self,
        fields: &'d [(std::borrow::Cow<'_, str>, Node<'_>)],
        of: &'t Type,
    ) -> Result<Value, String> {
        let mut object = Map::new();
        // A struct has few fields: looking through them takes less than hashing.
        let mut seen = Vec::with_capacity(fields.len().min(of.fields.len()));
        let outer = self.go_struct;
        for (name, node) in fields {
            let Some(field) = of.field(name) else {
                self.note(Finding::Unknown, name);
                continue;
            };
            if seen.contains(&field.name) {
                self.note(Finding::Duplicate, name);
                object.remove(field.name);
            } else {
                seen.push(field.name);
            }
            self.go_struct = of.name;
            let n_outer = self.go_fields.len();
            self.go_fields.extend(of.embedded(field));
            self.go_fields.push(field.name);
            let value = self.within(Step::Field(name), |inner| inner.value(node, &field.value))?;
            self.go_fields.truncate(n_outer);
            self.go_struct = outer;
            if !field.says_nothing(&value) {
                object.insert(field.name.to_owned(), value);
            }
        }
        Ok(Value::Object(object))
    }

    /// A value of no type: doubled fields are noted, numbers that fit nothing refused.
    fn untyped(&mut self, node: &'d Node<'_>) -> Result<Value, String> {
        Ok(match node {
            Node::Null => Value::Null,
            Node::Bool(bool) => (*bool).into(),
            Node::String(text) => text.as_ref().into(),
            Node::Number(text) => match number(text) {
                Some(number) => number.into(),
                None => self.wrong_as(&format!("number {text}"), "float64"),
            },
            Node::Array(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (at, item) in items.iter().enumerate() {
                    list.push(self.within(Step::Item(at), |inner| inner.untyped(item))?);
                }
                Value::Array(list)
            }
            Node::Object(fields) => {
                let mut map = Map::new();
                for (name, node) in fields {
                    if map.contains_key(name.as_ref()) {
                        self.note(Finding::Duplicate, name);
                    }
                    let value = self.within(Step::Field(name), |inner| inner.untyped(node))?;
                    map.insert(name.as_ref().to_owned(), value);
                }
                Value::Object(map)
            }
        })
    }
}

/// What is said of a value that a strategic merge patch has put in the wrong place. Numbers are convertible in Go, to
/// each other and whole ones to text, but not meant; of other values only the wanted type is said.
fn cannot_convert(node: &Node<'_>, expected: &TypeRef) -> String {
    let (kind, go_type) = match node {
        Node::Array(_) => ("slice", "[]interface {}"),
        Node::Object(_) => ("map", "map[string]interface {}"),
        Node::Number(text) if text.parse::<i64>().is_ok() => ("int64", "int64"),
        Node::Number(_) => ("float64", "float64"),
        other => (other.go_kind(), other.go_kind()),
    };
    match &expected.shape {
        Shape::Map(_) => format!("cannot restore map from {kind}"),
        Shape::List(_) | Shape::Bytes => format!("cannot restore slice from {kind}"),
        Shape::Struct(_) => format!("cannot restore struct from: {kind}"),
        Shape::String if go_type == "int64" => format!("cannot convert int64 to {}", expected.go_name()),
        Shape::Int32 | Shape::Int64 if go_type == "float64" => {
            format!("cannot convert float64 to {}", expected.go_name())
        }
        Shape::String => "unrecognized type: string".to_owned(),
        Shape::Bool => "unrecognized type: bool".to_owned(),
        Shape::Int32 => "unrecognized type: int32".to_owned(),
        Shape::Int64 => "unrecognized type: int64".to_owned(),
        _ => format!("cannot convert {go_type} to {}", expected.go_name()),
    }
}

fn time(text: &str, precision: Precision) -> Result<Value, String> {
    let time = scalar::parse_time(text, precision)?;
    Ok(scalar::print_time(time, precision).map_or(Value::Null, Value::String))
}

/// The type that CRDs' schemas are written in.
pub(super) fn schema_type() -> Option<TypeId> {
    builtin().type_named("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
}

impl TypeRef {
    /// Go's name for the type, as its error messages show it.
    pub fn go_name(&self) -> String {
        if let Some(named) = self.named() {
            return format!("{}.{}", named.package, named.name);
        }
        match &self.shape {
            Shape::String => "string".to_owned(),
            Shape::Bool => "bool".to_owned(),
            Shape::Int32 => "int32".to_owned(),
            Shape::Int64 => "int64".to_owned(),
            Shape::Float64 => "float64".to_owned(),
            Shape::Bytes => "[]uint8".to_owned(),
            Shape::Any => "interface {}".to_owned(),
            Shape::Time => "v1.Time".to_owned(),
            Shape::MicroTime => "v1.MicroTime".to_owned(),
            Shape::Duration => "v1.Duration".to_owned(),
            Shape::Quantity => "resource.Quantity".to_owned(),
            Shape::IntOrString => "intstr.IntOrString".to_owned(),
            Shape::RawExtension => "runtime.RawExtension".to_owned(),
            Shape::FieldsV1 => "v1.FieldsV1".to_owned(),
            Shape::Json => "v1.JSON".to_owned(),
            Shape::SchemaOrArray => "v1.JSONSchemaPropsOrArray".to_owned(),
            Shape::SchemaOrBool => "v1.JSONSchemaPropsOrBool".to_owned(),
            Shape::SchemaOrStrings => "v1.JSONSchemaPropsOrStringArray".to_owned(),
            Shape::Struct(id) => id.go_name(),
            Shape::List(element) => format!("[]{}", element.go_element_name()),
            Shape::Map(value) => format!("map[string]{}", value.go_element_name()),
        }
    }

    fn go_element_name(&self) -> String {
        if self.is_pointer { format!("*{}", self.go_name()) } else { self.go_name() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::golden;
    use super::*;

    fn kind_of(object: &Value) -> Option<TypeId> {
        let api_version = object["apiVersion"].as_str()?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        builtin().kind(group, version, object["kind"].as_str()?)
    }

    /// The outcome of a request body, as the recorded answer tells it.
    fn outcome(text: &str, group: &str, kind: &str) -> String {
        let document = match Node::parse(text.as_bytes()) {
            Ok(document) => document,
            Err(fault) => return fault,
        };
        match decode(&document, builtin().kind(group, "v1", kind).unwrap()) {
            Ok(decoded) => decoded.findings.iter().map(|finding| format!("{finding}\n")).collect(),
            Err(fault) => fault,
        }
    }

    #[test]
    fn bodies_that_do_not_fit_are_refused_in_recorded_words() {
        let mut n_compared = 0;
        for file in ["06-patch.json", "12-negotiation.json"] {
            for case in golden::cases(file) {
                for step in golden::steps(&case) {
                    let message =
                        step.pointer("/expect/body/message").and_then(Value::as_str).unwrap_or_default();
                    let Some((_, fault)) = message.split_once("cannot be handled as a ConfigMap: ") else {
                        continue;
                    };
                    let body = match (&step["body"], &step["text"]) {
                        (Value::Null, Value::String(text)) => text.clone(),
                        (body, _) => body.to_string(),
                    };
                    if fault.starts_with("json: ") {
                        assert_eq!(outcome(&body, "", "ConfigMap"), fault, "{}", case["id"]);
                        n_compared += 1;
                    }
                }
            }
        }
        assert!(n_compared >= 3, "{n_compared} compared");
    }

    #[test]
    fn wrong_values_are_named_as_go_names_them() {
        let pod = |spec: &str| outcome(&format!("{{\"spec\":{spec}}}"), "", "Pod");
        let job = |spec: &str| outcome(&format!("{{\"spec\":{spec}}}"), "batch", "Job");
        let lease = |spec: &str| outcome(&format!("{{\"spec\":{spec}}}"), "coordination.k8s.io", "Lease");
        let table = [
            (
                pod(r#"{"containers":{}}"#),
                "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
            ),
            (
                pod(r#"{"containers":[{"command":[1]}]}"#),
                "json: cannot unmarshal number into Go struct field Container.spec.containers.command of type string",
            ),
            (
                pod(r#"{"containers":[{"env":[{"value":1}]}]}"#),
                "json: cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of type string",
            ),
            (
                pod(r#"{"terminationGracePeriodSeconds":1.5}"#),
                "json: cannot unmarshal number 1.5 into Go struct field \
                 PodSpec.spec.terminationGracePeriodSeconds of type int64",
            ),
            (
                pod(r#"{"restartPolicy":5}"#),
                "json: cannot unmarshal number into Go struct field PodSpec.spec.restartPolicy \
                 of type v1.RestartPolicy",
            ),
            (
                pod(r#"{"containers":[{"resources":{"limits":{"cpu":"much"}}}]}"#),
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
            (
                job(r#"{"backoffLimit":3000000000}"#),
                "json: cannot unmarshal number 3000000000 into Go struct field JobSpec.spec.backoffLimit of type int32",
            ),
            (
                lease(r#"{"renewTime":"yesterday"}"#),
                "parsing time \"yesterday\" as \"2006-01-02T15:04:05.000000Z07:00\": \
                 cannot parse \"yesterday\" as \"2006\"",
            ),
            (
                lease(r#"{"renewTime":7}"#),
                "json: cannot unmarshal number into Go struct field LeaseSpec.spec.renewTime of type string",
            ),
        ];
        for (outcome, expected) in table {
            assert_eq!(outcome, expected);
        }
    }

    #[test]
    fn unknown_and_doubled_fields_are_found_in_order() {
        let cases = golden::cases("12-negotiation.json");
        for (id, group, kind) in [
            ("negotiation/field-validation-default", "", "Pod"),
            ("negotiation/field-validation-case", "", "Pod"),
            ("negotiation/field-validation-job", "batch", "Job"),
            ("negotiation/body-case", "", "ConfigMap"),
        ] {
            for step in golden::steps_of(&cases, id) {
                let body = match &step["text"] {
                    Value::String(text) => text.clone(),
                    // The recorder sent fields in their order; the order of a parsed body is lost.
                    _ => continue,
                };
                let warnings: String = match &step["expect"]["headers"]["Warning"] {
                    Value::Array(lines) => {
                        lines.iter().map(|line| format!("{}\n", line.as_str().unwrap())).collect()
                    }
                    _ => panic!("{id} has no warnings"),
                };
                let found: String = outcome(&body, group, kind)
                    .lines()
                    .map(|line| format!("299 - \"{}\"\n", line.replace('"', "\\\"")))
                    .collect();
                assert_eq!(found, warnings, "{id}");
            }
        }
        let body = r#"{"spec":{"template":{"spec":{"containers":[{"comand":["x"]}]}},"paralelism":2}}"#;
        let expected =
            "unknown field \"spec.template.spec.containers[0].comand\"\nunknown field \"spec.paralelism\"\n";
        assert_eq!(outcome(body, "batch", "Job"), expected);
    }

    #[test]
    fn what_says_nothing_is_dropped_and_what_go_prints_comes_back() {
        let body = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "labels": {}, "creationTimestamp": null, "generateName": ""},
            "spec": {
                "containers": [{"name": "c", "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}}, "tty": false}],
                "volumes": [], "priority": 0, "nodeSelector": null, "hostNetwork": false,
            },
            "status": {},
        });
        let id = kind_of(&body).unwrap();
        let mut decoded = decode(&Node::from(&body), id).unwrap();
        let sparse = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {
                "containers": [{"name": "c", "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}}],
                "priority": 0,
            },
        });
        assert_eq!(decoded.object, sparse);
        complete(&mut decoded.object, id);
        assert_eq!(decoded.object["status"], json!({}));
        assert_eq!(decoded.object["spec"]["containers"][0]["resources"]["limits"]["cpu"], "500m");
    }

    #[test]
    fn recorded_answers_are_complete() {
        let mut n_compared = 0;
        for file in ["06-patch.json", "07-apply.json", "12-negotiation.json", "15-protobuf.json"] {
            for case in golden::cases(file) {
                for step in golden::steps(&case) {
                    let body = golden::with_times(&step["expect"]["body"]);
                    let Some(id) = kind_of(&body).filter(|id| id.package.group.is_some()) else { continue };
                    let mut decoded = decode(&Node::from(&body), id).unwrap();
                    assert_eq!(decoded.findings, [], "{}", case["id"]);
                    complete(&mut decoded.object, id);
                    assert_eq!(decoded.object, body, "{}", case["id"]);
                    n_compared += 1;
                }
            }
        }
        assert!(n_compared > 100, "{n_compared} compared");
    }

    #[test]
    fn wrong_values_in_a_strategic_merge_patch_have_their_own_words() {
        let fault = |object: Value| {
            decode_patched(&object, builtin().kind("", "v1", "ConfigMap").unwrap()).unwrap_err()
        };
        assert_eq!(fault(json!({"data": {"n": 1}})), "cannot convert int64 to string");
        assert_eq!(fault(json!({"metadata": {"labels": ["x"]}})), "cannot restore map from slice");
        assert_eq!(fault(json!({"metadata": "x"})), "cannot restore struct from: string");
        assert_eq!(fault(json!({"metadata": {"finalizers": "x"}})), "cannot restore slice from string");
    }

    #[test]
    fn a_custom_object_has_typed_metadata() {
        let fault = |text: &[u8]| decode_custom(&Node::parse(text).unwrap()).unwrap_err();
        assert_eq!(
            fault(br#"{"metadata":{"name":5}}"#),
            "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"
        );
        assert_eq!(
            fault(br#"{"metadata":"x"}"#),
            "json: cannot unmarshal string into Go value of type v1.ObjectMeta"
        );
        assert_eq!(
            fault(br#"{"x":1e400}"#),
            "json: cannot unmarshal number 1e400 into Go value of type float64"
        );
        let twice = decode_custom(&Node::parse(br#"{"spec":{"n":1,"n":2}}"#).unwrap()).unwrap();
        assert_eq!(twice.object, json!({"spec": {"n": 2}}));
        assert_eq!(twice.findings, [Finding::Duplicate("spec.n".to_owned())]);
    }
}
