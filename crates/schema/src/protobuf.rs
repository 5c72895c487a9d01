//! Protobuf request bodies: `kubectl create` and every typed Go client send them, and do not fall back to JSON.
//!
//! ```text
//!   "k8s\0" + Unknown { typeMeta { apiVersion, kind }, raw, contentEncoding, contentType }
//!                                                       |
//!                                                       v   by the table's field numbers
//!                                                     sparse object, as `decode` makes it from JSON
//! ```
//!
//! Only reading: [`super::encode`] writes. A message's fields are its JSON names; a few types
//! have a form of their own on either side and are told apart by [`Shape`]. Errors are Go's texts.

use std::collections::VecDeque;

use jiff::Timestamp;
use krafla_api::GoDuration;
use serde_json::{Map, Value};

use super::decode::schema_type;
use super::json::{DEPTH_MAX, Node};
use super::scalar::{self, Precision};
use super::table::{Field, Shape, Type, TypeId, TypeRef};

/// What every body begins with.
pub(super) const MAGIC: &[u8] = b"k8s\0";
const END: &str = "unexpected EOF";

/// What the envelope says about the object in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The object's `apiVersion`; may be empty, then the request's path says it.
    pub api_version: String,
    /// The object's `kind`; may be empty too.
    pub kind: String,
    /// The object.
    pub message: &'a [u8],
}

/// Opens the envelope.
pub fn open(body: &[u8]) -> Result<Envelope<'_>, String> {
    if body.is_empty() {
        return Err("empty data".to_owned());
    }
    let Some(unknown) = body.strip_prefix(MAGIC) else {
        let prefix = "expected prefix [107 56 115 0]";
        return Err(format!("provided data does not appear to be a protobuf message, {prefix}"));
    };
    if unknown.is_empty() {
        return Err("empty body".to_owned());
    }
    let mut envelope = Envelope { api_version: String::new(), kind: String::new(), message: &[] };
    let mut parts = Wire { rest: unknown };
    while let Some((number, payload)) = parts.next()? {
        match (number, payload) {
            (1, Payload::Bytes(type_meta)) => {
                let mut fields = Wire { rest: type_meta };
                while let Some((number, payload)) = fields.next()? {
                    match (number, payload) {
                        (1, Payload::Bytes(text)) => envelope.api_version = lossy(text),
                        (2, Payload::Bytes(text)) => envelope.kind = lossy(text),
                        _ => {}
                    }
                }
            }
            (2, Payload::Bytes(message)) => envelope.message = message,
            _ => {}
        }
    }
    Ok(envelope)
}

/// Decodes a message of a built-in type into a sparse object without `apiVersion` and `kind`.
pub fn decode(message: &[u8], of: TypeId) -> Result<Value, String> {
    let mut object = Map::new();
    read_struct(message, of.get(), &mut object, 0)?;
    Ok(Value::Object(object))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A message's fields, one by one.
struct Wire<'a> {
    rest: &'a [u8],
}

/// A field's value before its type is known.
#[derive(Clone, Copy)]
enum Payload<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    /// 32 bits; no type of the table is stored so.
    Fixed32,
}

impl<'a> Wire<'a> {
    fn next(&mut self) -> Result<Option<(u32, Payload<'a>)>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0);
        let number =
            number.ok_or_else(|| format!("proto: illegal tag {} (wire type {})", tag >> 3, tag & 7))?;
        let payload = match tag & 7 {
            0 => Payload::Varint(self.varint()?),
            1 => Payload::Fixed64(self.take(8)?.try_into().map_err(|_| END)?),
            2 => {
                let length = self.varint()?;
                let length =
                    i64::try_from(length).map_err(|_| "proto: negative length found during unmarshaling")?;
                Payload::Bytes(self.take(usize::try_from(length).map_err(|_| END)?)?)
            }
            5 => {
                self.take(4)?;
                Payload::Fixed32
            }
            other => return Err(format!("proto: illegal wireType {other}")),
        };
        Ok(Some((number, payload)))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(END)?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(END)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("proto: integer overflow".to_owned())
    }
}

/// Reads a struct's message. Structs that JSON inlines are messages of their own here: their fields are found by the
/// path of numbers.
fn read_struct(
    message: &[u8],
    of: &Type,
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), String> {
    let mut pending = VecDeque::from([(Vec::new(), message)]);
    while let Some((path, message)) = pending.pop_front() {
        let mut fields = Wire { rest: message };
        while let Some((number, payload)) = fields.next()? {
            let path: Vec<u32> = path.iter().copied().chain([number]).collect();
            if let Some(field) = of.fields.iter().find(|field| field.numbers == path) {
                read_field(payload, field, object, depth)?;
            } else if let Payload::Bytes(inlined) = payload
                && of.fields.iter().any(|field| field.numbers.starts_with(&path))
            {
                pending.push_back((path, inlined));
            }
        }
    }
    Ok(())
}

fn read_field(
    payload: Payload<'_>,
    field: &Field,
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), String> {
    let is_wrapped = field.value.named().is_some_and(|named| named.is_wrapped);
    let wrong = |_| format!("proto: wrong wireType for field {}", field.name);
    match (&field.value.shape, payload) {
        (Shape::List(element), payload) if !is_wrapped => {
            let Value::Array(list) = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()))
            else {
                return Ok(());
            };
            return read_element(payload, element, list, depth)
                .map_err(|fault| fault.unwrap_or_else(|| wrong(())));
        }
        (Shape::Map(value), Payload::Bytes(entry)) => {
            let Value::Object(map) = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()))
            else {
                return Ok(());
            };
            return read_entry(entry, value, map, depth).map_err(|fault| fault.unwrap_or_else(|| wrong(())));
        }
        _ => {}
    }
    let value =
        read_value(payload, &field.value, depth).map_err(|fault| fault.unwrap_or_else(|| wrong(())))?;
    if field.says_nothing(&value) {
        object.remove(field.name);
    } else {
        object.insert(field.name.to_owned(), value);
    }
    Ok(())
}

/// Why a value cannot be read; none: it is of another wire type than its field.
type Fault = Option<String>;

/// One element of a repeated field; numbers may also come packed, many in one.
fn read_element(
    payload: Payload<'_>,
    of: &TypeRef,
    list: &mut Vec<Value>,
    depth: usize,
) -> Result<(), Fault> {
    if let (Shape::Int32 | Shape::Int64, Payload::Bytes(packed)) = (&of.shape, payload) {
        let mut numbers = Wire { rest: packed };
        while !numbers.rest.is_empty() {
            let number = Payload::Varint(numbers.varint()?);
            list.push(read_value(number, of, depth)?);
        }
        return Ok(());
    }
    let value = read_value(payload, of, depth)?;
    list.push(of.or_zero(value));
    Ok(())
}

/// One entry of a map: a message of key and value.
fn read_entry(entry: &[u8], of: &TypeRef, map: &mut Map<String, Value>, depth: usize) -> Result<(), Fault> {
    let (mut key, mut value) = (String::new(), Value::Null);
    let mut parts = Wire { rest: entry };
    while let Some((number, payload)) = parts.next()? {
        match (number, payload) {
            (1, Payload::Bytes(text)) => key = lossy(text),
            (2, payload) => value = read_value(payload, of, depth)?,
            _ => {}
        }
    }
    map.insert(key, of.or_zero(value));
    Ok(())
}

fn read_value(payload: Payload<'_>, of: &TypeRef, depth: usize) -> Result<Value, Fault> {
    if depth > DEPTH_MAX {
        return Err(Some("proto: exceeded max depth".to_owned()));
    }
    Ok(match (&of.shape, payload) {
        (Shape::String, Payload::Bytes(text)) => lossy(text).into(),
        (Shape::Bytes, Payload::Bytes(bytes)) => scalar::encode_base64(bytes).into(),
        (Shape::Bool, Payload::Varint(number)) => (number != 0).into(),
        // Negative numbers are stored as 64 bits and cut to size, as Go does.
        (Shape::Int32, Payload::Varint(number)) => (number as i32).into(),
        (Shape::Int64, Payload::Varint(number)) => (number as i64).into(),
        (Shape::Float64, Payload::Fixed64(bytes)) => f64::from_le_bytes(bytes).into(),
        (Shape::Struct(id), Payload::Bytes(message)) => {
            let mut object = Map::new();
            read_struct(message, id.get(), &mut object, depth + 1)?;
            Value::Object(object)
        }
        (Shape::List(element), Payload::Bytes(message)) => {
            let mut list = Vec::new();
            each_field(message, |number, payload| match number {
                1 => read_element(payload, element, &mut list, depth + 1),
                _ => Ok(()),
            })?;
            Value::Array(list)
        }
        (_, Payload::Bytes(message)) => read_special(message, &of.shape, depth + 1)?,
        (_, Payload::Varint(_) | Payload::Fixed64(_) | Payload::Fixed32) => return Err(None),
    })
}

fn each_field<'a>(
    message: &'a [u8],
    mut read: impl FnMut(u32, Payload<'a>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut fields = Wire { rest: message };
    while let Some((number, payload)) = fields.next()? {
        read(number, payload)?;
    }
    Ok(())
}

/// The parts of the small messages that special types are.
#[derive(Default)]
struct Parts<'a> {
    numbers: [u64; 3],
    texts: [Vec<&'a [u8]>; 3],
}

impl<'a> Parts<'a> {
    fn read(message: &'a [u8]) -> Result<Parts<'a>, Fault> {
        let mut parts = Parts::default();
        each_field(message, |number, payload| {
            let at = usize::try_from(number).unwrap_or(usize::MAX).wrapping_sub(1);
            match payload {
                Payload::Varint(value) => {
                    if let Some(part) = parts.numbers.get_mut(at) {
                        *part = value;
                    }
                }
                Payload::Bytes(value) => {
                    if let Some(part) = parts.texts.get_mut(at) {
                        part.push(value);
                    }
                }
                Payload::Fixed64(_) | Payload::Fixed32 => {}
            }
            Ok(())
        })?;
        Ok(parts)
    }
}

fn read_special(message: &[u8], shape: &Shape, depth: usize) -> Result<Value, Fault> {
    let Parts { numbers: [first, second, _], texts } = Parts::read(message)?;
    let [raw, _, text] = texts.each_ref().map(|texts| texts.last().copied());
    match shape {
        // An empty message is Go's zero time, not 1970.
        Shape::Time | Shape::MicroTime if message.is_empty() => Ok(Value::Null),
        Shape::Time => Ok(time(first, second, Precision::Seconds)),
        Shape::MicroTime => Ok(time(first, second, Precision::Micros)),
        Shape::Duration => Ok(GoDuration::from_nanos(first as i64).to_string().into()),
        Shape::Quantity => {
            let text = raw.map(lossy).unwrap_or_else(|| "0".to_owned());
            scalar::canonical_quantity(&text).map(Value::from).map_err(|fault| Some(fault.to_owned()))
        }
        Shape::IntOrString if first == 0 => Ok((second as i32).into()),
        Shape::IntOrString => Ok(text.map(lossy).unwrap_or_default().into()),
        Shape::RawExtension | Shape::FieldsV1 | Shape::Json => match raw.filter(|raw| !raw.is_empty()) {
            Some(raw) => Ok(Node::parse(raw)?.into_value()),
            None => Ok(Value::Null),
        },
        Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrStrings => {
            read_union(shape, first != 0, &texts, depth)
        }
        _ => Err(None),
    }
}

/// A schema, or something short in its place.
fn read_union(shape: &Shape, allows: bool, texts: &[Vec<&[u8]>; 3], depth: usize) -> Result<Value, Fault> {
    let Some(schema) = schema_type().map(TypeRef::of) else { return Ok(Value::Null) };
    let read = |message: &&[u8]| read_value(Payload::Bytes(message), &schema, depth);
    let [first, second, _] = texts;
    let (schemas, others) = if *shape == Shape::SchemaOrBool { (second, first) } else { (first, second) };
    if let Some(message) = schemas.last() {
        return read(message);
    }
    match shape {
        Shape::SchemaOrBool => Ok(allows.into()),
        Shape::SchemaOrArray => Ok(Value::Array(others.iter().map(read).collect::<Result<_, _>>()?)),
        _ => Ok(others.iter().map(|text| lossy(text)).collect()),
    }
}

fn time(seconds: u64, nanos: u64, precision: Precision) -> Value {
    let time = Timestamp::new(seconds as i64, nanos as i32).ok();
    time.and_then(|time| scalar::print_time(time, precision)).map_or(Value::Null, Value::String)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::super::builtin;
    use super::super::golden;
    use super::*;

    fn body(step: &Value) -> Option<Vec<u8>> {
        STANDARD.decode(step["base64"].as_str()?).ok()
    }

    fn decode_body(body: &[u8]) -> (String, Value) {
        let envelope = open(body).unwrap();
        let (group, version) =
            envelope.api_version.split_once('/').unwrap_or(("", envelope.api_version.as_str()));
        let of = builtin().kind(group, version, &envelope.kind).unwrap_or_else(|| panic!("{envelope:?}"));
        (envelope.kind.clone(), decode(envelope.message, of).unwrap())
    }

    /// Whether everything that was sent is in what was answered. Quantities may have been rounded, names generated,
    /// and secrets encoded; the exceptions are few and named.
    fn missing(sent: &Value, answered: &Value, path: &str, found: &mut Vec<String>) {
        match (sent, answered) {
            (Value::Object(sent), Value::Object(answered)) => {
                for (name, value) in sent {
                    missing(
                        value,
                        answered.get(name).unwrap_or(&Value::Null),
                        &format!("{path}/{name}"),
                        found,
                    );
                }
            }
            (Value::Array(sent), Value::Array(answered)) => {
                for (at, value) in sent.iter().enumerate() {
                    missing(value, answered.get(at).unwrap_or(&Value::Null), &format!("{path}/{at}"), found);
                }
            }
            (sent, answered) if sent == answered => {}
            (sent, answered) => found.push(format!("{path}: {sent} {answered}")),
        }
    }

    #[test]
    fn what_is_sent_as_protobuf_is_in_the_recorded_answer() {
        let mut n_compared = 0;
        let mut found = Vec::new();
        for file in ["12-negotiation.json", "15-protobuf.json"] {
            for case in golden::cases(file) {
                for step in golden::steps(&case) {
                    let answer = &step["expect"]["body"];
                    let Some(body) = body(step).filter(|body| open(body).is_ok()) else { continue };
                    if answer["kind"] == "Status"
                        || answer["metadata"].is_null()
                        || open(&body).unwrap().kind.is_empty()
                    {
                        continue;
                    }
                    let (kind, sent) = decode_body(&body);
                    assert_eq!(answer["kind"], json!(kind), "{}", case["id"]);
                    missing(&sent, answer, case["id"].as_str().unwrap(), &mut found);
                    n_compared += 1;
                }
            }
        }
        expect_test::expect![[r#"protobuf/create-secret-string-data/stringData: {"k":"v"} null"#]]
            .assert_eq(&found.join("\n"));
        assert!(n_compared > 50, "{n_compared} compared");
    }

    #[test]
    fn bodies_that_are_none_are_refused_in_recorded_words() {
        let steps = golden::steps_of(&golden::cases("12-negotiation.json"), "negotiation/protobuf-bad");
        let mut n_refused = 0;
        for step in &steps {
            let Err(fault) = open(&body(step).unwrap()) else { continue };
            let message = step["expect"]["body"]["message"].as_str().unwrap();
            assert!(
                message.contains(&format!("(must be of type ConfigMap): {fault} (")),
                "{fault}: {message}"
            );
            n_refused += 1;
        }
        assert_eq!(n_refused, 5);
        let of = builtin().kind("", "v1", "ConfigMap").unwrap();
        assert_eq!(decode(b"\xff\xff", of).unwrap_err(), "unexpected EOF");
        assert_eq!(decode(&[0xff; 20], of).unwrap_err(), "proto: integer overflow");
        assert_eq!(decode(b"\x08\x01", of).unwrap_err(), "proto: wrong wireType for field metadata");
    }

    #[test]
    fn a_message_that_nests_without_end_is_refused() {
        let mut message = Vec::new();
        for _ in 0..1000 {
            // `not`, field 28: a schema within a schema.
            let mut outer = vec![0xe2, 0x01];
            let mut length = message.len();
            while length >= 0x80 {
                outer.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
                length >>= 7;
            }
            outer.push(u8::try_from(length).unwrap());
            outer.append(&mut message);
            message = outer;
        }
        let fault = decode(&message, schema_type().unwrap()).unwrap_err();
        assert_eq!(fault, "proto: exceeded max depth");
    }
}
