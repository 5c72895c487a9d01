//! Which names a definition gets: those that no other definition of its group has.

use krafla_api::Time;
use krafla_schema::object;
use serde_json::{Map, Value, json};

/// Whether a definition may be served: no other one has its names.
pub fn has_its_names(definition: &Value) -> bool {
    let conditions = object::at(definition, "/status/conditions").as_array().into_iter().flatten();
    !conditions.clone().any(|condition| condition["type"] == "Established" && condition["status"] == "False")
}

/// Says in a definition's status which of the names it asks for it gets. `others` are the other definitions of its group.
pub fn settle(definition: &mut Value, others: &[Value], now: Time) {
    let asked = object::at(definition, "/spec/names").clone();
    let taken = |fields: &[&str], name: &str| {
        let accepted = others.iter().map(|other| object::at(other, "/status/acceptedNames"));
        accepted.into_iter().any(|names| fields.iter().any(|field| has_name(names, field, name)))
    };
    const RESOURCES: [&str; 3] = ["plural", "singular", "shortNames"];
    const KINDS: [&str; 2] = ["kind", "listKind"];
    let mut accepted = asked.clone();
    let mut conflict = None;
    for (field, fields, reason) in [
        ("plural", &RESOURCES[..], "PluralConflict"),
        ("singular", &RESOURCES, "SingularConflict"),
        ("shortNames", &RESOURCES, "ShortNamesConflict"),
        ("kind", &KINDS, "KindConflict"),
        ("listKind", &KINDS, "ListKindConflict"),
    ] {
        for name in texts(&asked, field) {
            if taken(fields, name) {
                conflict = Some((reason, format!("\"{name}\" is already in use")));
                refuse(object::fields(&mut accepted), field);
            }
        }
    }
    object::part(definition, "status").insert("acceptedNames".into(), accepted);
    match conflict {
        Some((reason, message)) => {
            set_condition(definition, ["NamesAccepted", "False", reason, &message], now);
            // What is served stays served.
            if !is_established(definition) {
                let message = "not all names are accepted";
                set_condition(definition, ["Established", "False", "NotAccepted", message], now);
            }
        }
        None => {
            set_condition(definition, ["NamesAccepted", "True", "NoConflicts", "no conflicts found"], now);
            let message = "the initial names have been accepted";
            set_condition(definition, ["Established", "True", "InitialNamesAccepted", message], now);
        }
    }
}

/// Sets a condition: type, status, reason and message. Its time is that of the last change of its status.
pub(super) fn set_condition(definition: &mut Value, condition: [&str; 4], now: Time) {
    let [kind, status, reason, message] = condition;
    let conditions = object::part(definition, "status").entry("conditions").or_insert_with(|| json!([]));
    let Value::Array(conditions) = conditions else { return };
    let new = json!({
        "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now,
    });
    match conditions.iter_mut().find(|condition| condition["type"] == kind) {
        Some(old) if old["status"] == status => {
            object::set(old, "reason", reason);
            object::set(old, "message", message);
        }
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}

fn is_established(definition: &Value) -> bool {
    let conditions = object::at(definition, "/status/conditions").as_array().into_iter().flatten();
    conditions.clone().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

fn texts<'a>(names: &'a Value, field: &str) -> Vec<&'a str> {
    match names.get(field) {
        Some(Value::String(name)) if !name.is_empty() => vec![name],
        list => object::strings(list),
    }
}

fn has_name(names: &Value, field: &str, name: &str) -> bool {
    texts(names, field).contains(&name)
}

/// Takes a name away; upstream shows the kind and the plural even if they are empty.
fn refuse(accepted: &mut Map<String, Value>, field: &str) {
    if matches!(field, "kind" | "plural") {
        accepted.insert(field.to_owned(), "".into());
    } else {
        accepted.remove(field);
    }
}
