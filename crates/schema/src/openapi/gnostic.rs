//! An OpenAPI document of version 2 as protobuf, in the messages of gnostic: the only form that kubectl reads it in.

use serde_json::{Map, Value};

use crate::wire::Message;

/// The document as a message.
pub fn encode(document: &Value) -> Vec<u8> {
    let mut message = Message::default();
    message.text(1, text(document, "swagger"));
    let info = &document["info"];
    let mut about = Message::default();
    about.text(1, text(info, "title"));
    about.text(2, text(info, "version"));
    message.message(2, &about);
    let mut paths = Message::default();
    for (name, item) in fields(&document["paths"]) {
        paths.message(2, &named(name, &path_item(item)));
    }
    message.message(8, &paths);
    message.message(9, &schemas(&document["definitions"]));
    message.into_bytes()
}

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn fields(of: &Value) -> impl Iterator<Item = (&String, &Value)> {
    of.as_object().into_iter().flatten()
}

fn named(name: &str, value: &Message) -> Message {
    let mut message = Message::default();
    message.text(1, name);
    message.message(2, value);
    message
}

/// Any value: as YAML, of which JSON is a part.
fn any(value: &Value) -> Message {
    let mut message = Message::default();
    message.text(2, &format!("{value}\n"));
    message
}

fn extensions(message: &mut Message, number: u32, of: &Value) {
    for (name, value) in fields(of).filter(|(name, _)| name.starts_with("x-")) {
        message.message(number, &named(name, &any(value)));
    }
}

fn schemas(of: &Value) -> Message {
    let mut message = Message::default();
    for (name, of) in fields(of) {
        message.message(1, &named(name, &schema(of)));
    }
    message
}

fn schema(of: &Value) -> Message {
    let empty = Map::new();
    let mut message = Message::default();
    for (name, value) in of.as_object().unwrap_or(&empty) {
        schema_field(&mut message, name, value);
    }
    extensions(&mut message, 31, of);
    message
}

fn schema_field(message: &mut Message, name: &str, value: &Value) {
    let number_of_text = match name {
        "$ref" => 1,
        "format" => 2,
        "title" => 3,
        "description" => 4,
        "pattern" => 13,
        _ => 0,
    };
    let number_of_bound = match name {
        "multipleOf" => 6,
        "maximum" => 7,
        "minimum" => 9,
        _ => 0,
    };
    let number_of_count = match name {
        "exclusiveMaximum" => 8,
        "exclusiveMinimum" => 10,
        "maxLength" => 11,
        "minLength" => 12,
        "maxItems" => 14,
        "minItems" => 15,
        "uniqueItems" => 16,
        "maxProperties" => 17,
        "minProperties" => 18,
        _ => 0,
    };
    match (name, value) {
        (_, Value::String(text)) if number_of_text > 0 => message.text(number_of_text, text),
        (_, Value::Number(bound)) if number_of_bound > 0 => {
            message.double(number_of_bound, bound.as_f64().unwrap_or_default());
        }
        (_, Value::Number(count)) if number_of_count > 0 => {
            message.number(number_of_count, count.as_i64().unwrap_or_default());
        }
        (_, Value::Bool(flag)) if number_of_count > 0 => message.number(number_of_count, i64::from(*flag)),
        ("default", value) => message.message(5, &any(value)),
        ("required", Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).for_each(|name| message.text(19, name));
        }
        ("enum", Value::Array(values)) => values.iter().for_each(|value| message.message(20, &any(value))),
        ("additionalProperties", of) => {
            let mut item = Message::default();
            match of {
                Value::Bool(allows) => item.number(2, i64::from(*allows)),
                of => item.message(1, &schema(of)),
            }
            message.message(21, &item);
        }
        ("type", Value::String(text)) => {
            let mut item = Message::default();
            item.text(1, text);
            message.message(22, &item);
        }
        ("items", of) => {
            let mut item = Message::default();
            item.message(1, &schema(of));
            message.message(23, &item);
        }
        ("properties", of) => message.message(25, &schemas(of)),
        _ => {}
    }
}

fn path_item(of: &Value) -> Message {
    let mut message = Message::default();
    for (name, number) in [("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("patch", 8)] {
        if let Some(of) = of.get(name) {
            message.message(number, &operation(of));
        }
    }
    parameters(&mut message, 9, of);
    message
}

fn operation(of: &Value) -> Message {
    let mut message = Message::default();
    for (name, number) in [("produces", 6), ("consumes", 7), ("schemes", 10)] {
        let texts = of.get(name).and_then(Value::as_array).into_iter().flatten();
        texts.filter_map(Value::as_str).for_each(|text| message.text(number, text));
    }
    parameters(&mut message, 8, of);
    let mut responses = Message::default();
    for (code, of) in fields(&of["responses"]) {
        let mut response = Message::default();
        response.text(1, text(of, "description"));
        if let Some(shown) = of.get("schema") {
            let mut item = Message::default();
            item.message(1, &schema(shown));
            response.message(2, &item);
        }
        let mut value = Message::default();
        value.message(1, &response);
        responses.message(1, &named(code, &value));
    }
    message.message(9, &responses);
    extensions(&mut message, 13, of);
    message
}

fn parameters(message: &mut Message, number: u32, of: &Value) {
    for of in of.get("parameters").and_then(Value::as_array).into_iter().flatten() {
        let mut item = Message::default();
        item.message(1, &parameter(of));
        message.message(number, &item);
    }
}

fn parameter(of: &Value) -> Message {
    let mut message = Message::default();
    let is_required = of.get("required") == Some(&Value::Bool(true));
    if text(of, "in") == "body" {
        let mut body = Message::default();
        body.text(2, text(of, "name"));
        body.text(3, "body");
        body.number(4, i64::from(is_required));
        body.message(5, &schema(&of["schema"]));
        message.message(1, &body);
        return message;
    }
    let is_query = text(of, "in") == "query";
    // The two messages differ only in where the type stands.
    let (kind, at_type, at_unique) = if is_query { (3, 6, 20) } else { (4, 5, 19) };
    let mut plain = Message::default();
    plain.number(1, i64::from(is_required));
    plain.text(2, text(of, "in"));
    plain.text(3, text(of, "description"));
    plain.text(4, text(of, "name"));
    plain.text(at_type, text(of, "type"));
    plain.number(at_unique, i64::from(of.get("uniqueItems") == Some(&Value::Bool(true))));
    let mut other = Message::default();
    other.message(kind, &plain);
    message.message(2, &other);
    message
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_written_by_the_numbers_of_its_fields() {
        let of = json!({"type": "string", "x-a": 1, "$ref": "#/definitions/b"});
        let expected = [
            &b"\x0a\x0f#/definitions/b"[..],
            b"\xb2\x01\x08\x0a\x06string",
            b"\xfa\x01\x0b\x0a\x03x-a\x12\x04\x12\x021\n",
        ];
        assert_eq!(schema(&of).into_bytes(), expected.concat());
    }
}
