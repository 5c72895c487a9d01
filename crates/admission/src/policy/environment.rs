//! What expressions of policies and of webhooks' conditions can look at.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use krafla_cel::{Builds, CompileError, FieldType, ObjectType, Program, Size, Type};
use serde_json::Value;

/// The names that expressions can use, with their types.
#[derive(Clone, Debug)]
pub struct Environment {
    has_params: bool,
    /// The variables of the policy that come before an expression; `None` if it cannot use any.
    variables: Option<BTreeMap<String, FieldType>>,
}

impl Environment {
    /// Conditions of webhooks.
    pub fn of_webhooks() -> Environment {
        Environment { has_params: false, variables: None }
    }

    /// Conditions of a policy, which are checked before its variables are there.
    pub fn of_conditions(policy: &Value) -> Environment {
        Environment { has_params: has_params(policy), variables: None }
    }

    /// Everything else in a policy.
    pub fn of_policy(policy: &Value) -> Environment {
        Environment { has_params: has_params(policy), variables: Some(BTreeMap::new()) }
    }

    /// One more variable.
    pub fn declare(&mut self, name: &str, of: Type) {
        let field = FieldType { json_name: name.to_owned(), of };
        self.variables.get_or_insert_default().insert(name.to_owned(), field);
    }

    /// Reads an expression.
    pub fn compile(&self, source: &str, builds: Builds) -> Result<Program, CompileError> {
        let names = ["object", "oldObject", "namespaceObject", "request"];
        let mut names: Vec<_> = names.map(|name| (name.to_owned(), type_of(name).clone())).into();
        if self.has_params {
            names.push(("params".to_owned(), Type::Dyn));
        }
        if let Some(fields) = &self.variables {
            let variables = ObjectType { name: "kubernetes.variables".to_owned(), fields: fields.clone() };
            names.push(("variables".to_owned(), Type::Object(Arc::new(variables))));
        }
        Program::compile_building(source, &names, builds)
    }

    /// Says why an expression cannot be read, or does not come to one of some types.
    pub fn check(&self, source: &str, builds: Builds, expected: &[Type]) -> Result<Type, String> {
        let program = self.compile(source, builds).map_err(|error| format!("compilation failed: {error}"))?;
        let of = program.result_type();
        if expected.is_empty() || expected.contains(of) {
            return Ok(of.clone());
        }
        let names: Vec<String> = expected.iter().map(shown).collect();
        match names.as_slice() {
            [only] => Err(format!("must evaluate to {only} but got {}", shown(of))),
            _ => Err(format!("must evaluate to one of [{}] but got {}", names.join(" "), shown(of))),
        }
    }
}

/// A type as these messages name it.
fn shown(of: &Type) -> String {
    match of {
        Type::Null => "null_type".to_owned(),
        other => other.to_string(),
    }
}

fn has_params(policy: &Value) -> bool {
    policy.pointer("/spec/paramKind").is_some_and(Value::is_object)
}

/// An object with these fields, which are called in JSON as they are in expressions.
fn object(name: &str, fields: &[(&str, Type)]) -> Type {
    let field = |(name, of): &(&str, Type)| {
        let json_name = if *name == "UID" { "uid" } else { name };
        ((*name).to_owned(), FieldType { json_name: json_name.to_owned(), of: of.clone() })
    };
    let fields = fields.iter().map(field).collect();
    Type::Object(Arc::new(ObjectType { name: format!("kubernetes.{name}"), fields }))
}

fn texts() -> Type {
    Type::list(Type::TEXT, Size::UNKNOWN)
}

/// The request, without what it carries.
static REQUEST: LazyLock<Type> = LazyLock::new(|| {
    let text = Type::TEXT;
    let part = |last: &str, name: &str| {
        object(name, &[("group", text.clone()), ("version", text.clone()), (last, text.clone())])
    };
    let (kind, resource) = (part("kind", "GroupVersionKind"), part("resource", "GroupVersionResource"));
    let user = object(
        "UserInfo",
        &[
            ("username", text.clone()),
            ("uid", text.clone()),
            ("groups", texts()),
            ("extra", Type::map(text.clone(), texts(), Size::UNKNOWN)),
        ],
    );
    object(
        "AdmissionRequest",
        &[
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", text.clone()),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", text.clone()),
            ("name", text.clone()),
            ("namespace", text.clone()),
            ("operation", text),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    )
});

/// The parts of a namespace that expressions see.
static NAMESPACE: LazyLock<Type> = LazyLock::new(|| {
    let (text, pairs) = (Type::TEXT, Type::map(Type::TEXT, Type::TEXT, Size::UNKNOWN));
    let metadata = object(
        "NamespaceMetadata",
        &[
            ("name", text.clone()),
            ("generateName", text.clone()),
            ("namespace", text.clone()),
            ("labels", pairs.clone()),
            ("annotations", pairs),
            ("UID", text.clone()),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("resourceVersion", text.clone()),
            ("finalizers", texts()),
        ],
    );
    let spec = object("NamespaceSpec", &[("finalizers", texts())]);
    let status = object("NamespaceStatus", &[("phase", text)]);
    object("Namespace", &[("metadata", metadata), ("spec", spec), ("status", status)])
});

/// The type of one of the names that all expressions can use.
pub fn type_of(name: &str) -> &'static Type {
    match name {
        "request" => &REQUEST,
        "namespaceObject" => &NAMESPACE,
        _ => &Type::Dyn,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_expression_comes_to_exactly_what_is_expected_of_it() {
        let mut environment = Environment::of_policy(&json!({"spec": {}}));
        environment.declare("ok", Type::Bool);
        let check = |source: &str, expected: &[Type]| {
            let checked = environment.check(source, Builds::Patches, expected);
            checked.map(|of| of.to_string()).map_err(|why| why.lines().next().unwrap_or_default().to_owned())
        };
        assert_eq!(check("variables.ok && request.dryRun", &[Type::Bool]), Ok("bool".to_owned()));
        assert_eq!(
            check("object.spec.ok", &[Type::Bool]),
            Err("must evaluate to bool but got dyn".to_owned())
        );
        assert_eq!(
            check("1", &[Type::TEXT, Type::Null]),
            Err("must evaluate to one of [string null_type] but got int".to_owned())
        );
        let undeclared =
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')";
        assert_eq!(check("params.x", &[]), Err(undeclared.to_owned()));
        let undefined = "compilation failed: ERROR: <input>:1:10: undefined field 'no'";
        assert_eq!(check("variables.no", &[]), Err(undefined.to_owned()));
        assert_eq!(check("Object{a: 1}", &[Type::Built("Object".into())]), Ok("Object".to_owned()));
    }
}
