//! Formats that have a name: `format.dns1123Label().validate(text)`.

use super::{Function, T, failed, global, member, misfit};
use crate::cost::Cost;
use crate::types::Opaque;
use crate::value::Value;

const FORMAT: T = T::Opaque(Opaque::Format);

pub(super) static FUNCTIONS: &[Function] = &[
    global("format.named", &[T::Str], T::Optional(&FORMAT), Cost::Flat, |arguments, _| match arguments {
        [Value::String(name)] => match NAMES.into_iter().find(|own| *own == &**name) {
            Some(name) => Ok(Value::some(Value::Format(name))),
            None => Ok(Value::Optional(None)),
        },
        _ => misfit(),
    }),
    global("format.dns1123Label", &[], FORMAT, Cost::Flat, |_, _| Ok(Value::Format("dns1123Label"))),
    global("format.dns1123Subdomain", &[], FORMAT, Cost::Flat, |_, _| Ok(Value::Format("dns1123Subdomain"))),
    global("format.dns1035Label", &[], FORMAT, Cost::Flat, |_, _| Ok(Value::Format("dns1035Label"))),
    global("format.dns1123LabelPrefix", &[], FORMAT, Cost::Flat, |_, _| {
        Ok(Value::Format("dns1123LabelPrefix"))
    }),
    global("format.dns1123SubdomainPrefix", &[], FORMAT, Cost::Flat, |_, _| {
        Ok(Value::Format("dns1123SubdomainPrefix"))
    }),
    global("format.dns1035LabelPrefix", &[], FORMAT, Cost::Flat, |_, _| {
        Ok(Value::Format("dns1035LabelPrefix"))
    }),
    global("format.qualifiedName", &[], FORMAT, Cost::Flat, |_, _| Ok(Value::Format("qualifiedName"))),
    global("format.labelValue", &[], FORMAT, Cost::Flat, |_, _| Ok(Value::Format("labelValue"))),
    global("format.uri", &[], FORMAT, Cost::Flat, |_, _| Ok(Value::Format("uri"))),
    global("format.uuid", &[], FORMAT, Cost::Flat, |_, _| Ok(Value::Format("uuid"))),
    global("format.byte", &[], FORMAT, Cost::Flat, |_, _| Ok(Value::Format("byte"))),
    global("format.date", &[], FORMAT, Cost::Flat, |_, _| Ok(Value::Format("date"))),
    global("format.datetime", &[], FORMAT, Cost::Flat, |_, _| Ok(Value::Format("datetime"))),
    // What is wrong with a text, or nothing.
    member(
        "validate",
        &[FORMAT, T::Str],
        T::Optional(&T::List(&T::Str)),
        Cost::Second,
        |arguments, budget| {
            let [Value::Format(name), Value::String(text)] = arguments else { return misfit() };
            let pattern = pattern(name).ok_or_else(|| failed(format!("unknown format {name}")))?;
            let texts = [Value::String(text.clone()), Value::text(pattern)];
            match super::call("matches", false, &texts, budget)? {
                Value::Bool(true) => Ok(Value::Optional(None)),
                _ => Ok(Value::some(Value::list(vec![Value::text(format!("must be a valid {name}"))]))),
            }
        },
    ),
];

const NAMES: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "qualifiedName",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

fn pattern(name: &str) -> Option<&'static str> {
    Some(match name {
        "dns1123Label" => "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
        "dns1035Label" => "^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$",
        "dns1123Subdomain" => r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        "dns1123LabelPrefix" => "^[a-z0-9]([-a-z0-9]{0,61}[-a-z0-9])?$",
        "dns1035LabelPrefix" => "^[a-z]([-a-z0-9]{0,61}[-a-z0-9])?$",
        "dns1123SubdomainPrefix" => r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*-?$",
        "qualifiedName" => {
            r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$"
        }
        "labelValue" => "^(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?$",
        "uri" => r"^([A-Za-z][A-Za-z0-9+.-]*://[^\s]*|/[^\s]*)$",
        "uuid" => "^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$",
        "byte" => "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
        "date" => "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$",
        "datetime" => {
            r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$"
        }
        _ => return None,
    })
}
