//! Objects in the form that a client wants.

use std::sync::Arc;

use bytes::Bytes;
use krafla_api::Time;
use krafla_schema::encode;
use krafla_schema::json::stored;
use krafla_schema::object;
use krafla_schema::wire::Message;
use serde_json::{Value, json};

use super::accept::{Accept, Encoding, Form, OFFERED};
use super::body::{self, Reply};
use super::query::Query;
use crate::ops::Listing;
use crate::registry::Resource;
use crate::status::Status;
use crate::table::{self, Include};

/// What `includeObject` says about tables.
pub(super) fn include(query: &Query) -> Result<Include, Status> {
    match query.text("includeObject") {
        "" | "Metadata" => Ok(Include::Metadata),
        "Object" => Ok(Include::Object),
        "None" => Ok(Include::Nothing),
        other => {
            let problem = "must be 'Metadata', 'Object', 'None', or empty";
            let message = "Unable to convert to Table as requested: includeObject: Invalid value";
            Err(Status::bad_request(format!("{message}: \"{other}\": {problem}")))
        }
    }
}

/// One object.
pub(super) fn one(
    code: u16,
    resource: &Resource,
    bytes: Bytes,
    accept: &Accept,
    query: &Query,
    now: Time,
) -> Result<Reply, Status> {
    let bytes = in_version(resource, bytes);
    if *accept == Accept::PLAIN {
        return Ok(body::json(code, bytes));
    }
    let object = parse(&bytes)?;
    let shown = match &accept.form {
        Form::Object => object,
        Form::Partial(version) => table::partial(&object, version),
        Form::Table(version) => {
            let row = table::row(&resource.columns, &object, include(query)?, version, now);
            let revision = object::meta(&object, "resourceVersion");
            json!({
                "kind": "Table", "apiVersion": format!("meta.k8s.io/{version}"),
                "metadata": {"resourceVersion": revision},
                "columnDefinitions": resource.columns.to_json(), "rows": [row],
            })
        }
        Form::PartialList(_) => {
            let message = "you requested PartialObjectMetadataList, but the requested object is not a list";
            return Err(Status::wrong_form(format!("{message} (*{})", resource.go_type())));
        }
    };
    Ok(body::value(code, &shown, accept.encoding))
}

/// A list of objects. It is written while it is sent, so that a large one never stands in memory as a whole.
pub(super) fn listing(
    resource: &Arc<Resource>,
    listing: Listing,
    accept: &Accept,
    query: &Query,
    now: Time,
) -> Result<Reply, Status> {
    let head = match &accept.form {
        Form::Object => {
            let mut metadata = list_meta(&listing);
            if resource.is_custom {
                // Lists of custom kinds are not typed upstream, and show the token even if there is none.
                object::fields(&mut metadata).entry("continue").or_insert_with(|| "".into());
            }
            head(&resource.names.list_kind, &resource.names.api_version(), &metadata)
        }
        Form::Table(version) => table_head(resource, version, &listing),
        Form::PartialList(version) => {
            head("PartialObjectMetadataList", &format!("meta.k8s.io/{version}"), &list_meta(&listing))
        }
        Form::Partial(_) => {
            let message = "you requested PartialObjectMetadata, but the requested object is a list";
            let of = match resource.is_custom {
                true => "unstructured.UnstructuredList".to_owned(),
                false => format!("{}List", resource.go_type()),
            };
            return Err(Status::wrong_form(format!("{message} (*{of})")));
        }
    };
    if accept.encoding == Encoding::Protobuf {
        return listing_as_protobuf(resource, listing, &accept.form);
    }
    // Upstream's lists of metadata and its plain tables are null where they are empty.
    let is_null = match &accept.form {
        Form::PartialList(_) => true,
        Form::Table(_) => resource.columns.are_standard(),
        Form::Object | Form::Partial(_) => false,
    };
    let (head, end) = if is_null && listing.items.is_empty() {
        (head.slice(..head.len().saturating_sub(1)), &b"null}\n"[..])
    } else {
        (head, &b"]}\n"[..])
    };
    let item = item_printer(resource, &accept.form, query, now)?;
    let items = listing.items.into_iter().enumerate().flat_map(move |(index, entry)| {
        let comma = if index == 0 { Bytes::new() } else { Bytes::from_static(b",") };
        std::iter::once(comma).chain(item(&entry.bytes))
    });
    let pieces = std::iter::once(head).chain(items).chain([Bytes::from_static(end)]);
    match accept.encoding {
        Encoding::Json => Ok(body::stream("application/json", body::chunks(pieces))),
        Encoding::Yaml => {
            let whole: Vec<u8> = pieces.flatten().collect();
            Ok(body::value(200, &parse(&whole)?, Encoding::Yaml))
        }
        Encoding::Protobuf => Err(Status::internal("a list was to be written as protobuf after it was")),
    }
}

/// A list as one message, whose length has to be known before it is sent.
fn listing_as_protobuf(resource: &Resource, listing: Listing, form: &Form) -> Result<Reply, Status> {
    let (api_version, kind, of_item) = match form {
        Form::Partial(version) | Form::PartialList(version) => {
            let of = encode::of_meta("PartialObjectMetadata");
            (format!("meta.k8s.io/{version}"), "PartialObjectMetadataList", of)
        }
        Form::Object | Form::Table(_) => {
            (resource.names.api_version(), &*resource.names.list_kind, resource.schema)
        }
    };
    let (Some(of_item), Some(of_meta)) = (of_item, encode::of_meta("ListMeta")) else {
        return Err(Status::not_acceptable(OFFERED));
    };
    // Every list has these two fields, under these numbers.
    let mut list = Message::default();
    list.message(1, &encode::encode(&list_meta(&listing), of_meta));
    for entry in &listing.items {
        let object = parse(&in_version(resource, entry.bytes.clone()))?;
        list.message(2, &encode::encode(&object, of_item));
    }
    Ok(body::full(200, body::PROTOBUF, encode::seal(&api_version, kind, &list)))
}

type ItemPrinter = Box<dyn Fn(&Bytes) -> Vec<Bytes> + Send>;

/// How one item of a list is written.
fn item_printer(
    resource: &Arc<Resource>,
    form: &Form,
    query: &Query,
    now: Time,
) -> Result<ItemPrinter, Status> {
    let resource = resource.clone();
    let reparse = |make: Box<dyn Fn(Value) -> Value + Send>| -> ItemPrinter {
        let resource = resource.clone();
        Box::new(move |bytes| {
            let object = parse(&in_version(&resource, bytes.clone()));
            object.map(|object| vec![make(object).to_string().into()]).unwrap_or_default()
        })
    };
    Ok(match form {
        Form::Object if resource.is_custom => {
            Box::new(move |bytes| vec![in_version(&resource, bytes.clone())])
        }
        // The items of a typed list do not repeat what they are.
        Form::Object => {
            let names = &resource.names;
            let start = format!(r#"{{"apiVersion":"{}","kind":"{}","#, names.api_version(), names.kind);
            Box::new(move |bytes| without_type(&in_version(&resource, bytes.clone()), start.as_bytes()))
        }
        Form::Table(version) => {
            let (columns, include, version) = (resource.columns.clone(), include(query)?, *version);
            reparse(Box::new(move |object| table::row(&columns, &object, include, version, now)))
        }
        Form::Partial(version) | Form::PartialList(version) => {
            let version = *version;
            reparse(Box::new(move |object| table::partial(&object, version)))
        }
    })
}

fn list_meta(listing: &Listing) -> Value {
    let mut metadata = json!({"resourceVersion": listing.revision.to_string()});
    if let Some(token) = &listing.continue_token {
        object::set(&mut metadata, "continue", token.as_str());
    }
    if let Some(remaining) = listing.remaining {
        object::set(&mut metadata, "remainingItemCount", remaining);
    }
    metadata
}

/// A list up to its first item.
fn head(kind: &str, api_version: &str, metadata: &Value) -> Bytes {
    let (kind, version) = (Value::from(kind), Value::from(api_version));
    format!(r#"{{"kind":{kind},"apiVersion":{version},"metadata":{metadata},"items":["#).into()
}

fn table_head(resource: &Resource, version: &str, listing: &Listing) -> Bytes {
    let (metadata, columns) = (list_meta(listing), resource.columns.to_json());
    let version = Value::from(format!("meta.k8s.io/{version}"));
    let head = r#""kind":"Table","apiVersion""#;
    format!(r#"{{{head}:{version},"metadata":{metadata},"columnDefinitions":{columns},"rows":["#).into()
}

/// An object in the version of the request, where that is not how it is stored.
pub(super) fn in_version(resource: &Resource, bytes: Bytes) -> Bytes {
    if resource.is_shown_as_stored() {
        return bytes;
    }
    match parse(&bytes) {
        Ok(mut object) => {
            resource.from_stored(&mut object);
            object::set(&mut object, "apiVersion", resource.names.api_version());
            resource.rules.default(&mut object);
            object.to_string().into()
        }
        Err(_) => bytes,
    }
}

/// A stored object without its two top-level fields that say what it is. The rest is shared, not copied. Most kinds have
/// no field between the two: those objects begin with `start` and need not be searched.
fn without_type(bytes: &Bytes, start: &[u8]) -> Vec<Bytes> {
    if bytes.starts_with(start) {
        return vec![Bytes::from_static(b"{"), bytes.slice(start.len()..)];
    }
    let mut pieces = vec![Bytes::from_static(b"{")];
    let mut is_first = true;
    for field in top_level_fields(bytes) {
        let text = bytes.get(field.clone()).unwrap_or_default();
        let is_type = text.starts_with(b"\"apiVersion\":") || text.starts_with(b"\"kind\":");
        if !is_type {
            if !is_first {
                pieces.push(Bytes::from_static(b","));
            }
            is_first = false;
            pieces.push(bytes.slice(field));
        }
    }
    pieces.push(Bytes::from_static(b"}"));
    pieces
}

/// Where the fields of an object stand in its text, which is canonical JSON.
fn top_level_fields(text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut fields = Vec::new();
    let (mut depth, mut is_in_string, mut is_escaped, mut start) = (0_usize, false, false, 1);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_in_string => is_escaped = true,
            b'"' => is_in_string = !is_in_string,
            _ if is_in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && at > start {
                    fields.push(start..at);
                }
            }
            b',' if depth == 1 => {
                fields.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    fields
}

fn parse(bytes: &[u8]) -> Result<Value, Status> {
    stored(bytes).map_err(|error| Status::internal(&format!("stored object cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(text: &'static str) -> String {
        let text = Bytes::from_static(text.as_bytes());
        let searched = without_type(&text, b"nothing begins so").concat();
        let cut = without_type(&text, br#"{"apiVersion":"v1","kind":"Pod","#).concat();
        assert_eq!(searched, cut);
        String::from_utf8(cut).unwrap()
    }

    #[test]
    fn items_of_a_typed_list_do_not_say_what_they_are() {
        let cases = [
            (r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#, r#"{"metadata":{"name":"a"}}"#),
            (r#"{"apiVersion":"v1","data":{"kind":"x, \"y"},"kind":"C"}"#, r#"{"data":{"kind":"x, \"y"}}"#),
            (r#"{"apiVersion":"v1","a":[1,{"b":2}],"kind":"C","z":"}"}"#, r#"{"a":[1,{"b":2}],"z":"}"}"#),
            (r#"{"apiVersion":"v1","kind":"C"}"#, "{}"),
            ("{}", "{}"),
        ];
        for (text, expected) in cases {
            assert_eq!(stripped(text), expected, "{text}");
        }
    }
}
