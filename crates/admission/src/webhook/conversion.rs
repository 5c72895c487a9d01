//! Conversion webhooks: the question that carries objects of one version, and the answer in another version.

use serde_json::{Map, Value, json};

use super::hook::Client;

/// The webhook that converts the objects of a CustomResourceDefinition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converter {
    /// Where it listens.
    pub client: Client,
    /// The versions of the question that it reads, best first.
    pub review_versions: Vec<String>,
}

impl Converter {
    /// Reads `spec.conversion` of a definition; `None` if its strategy calls no webhook.
    pub fn parse(conversion: &Value) -> Option<Converter> {
        if conversion.get("strategy").and_then(Value::as_str) != Some("Webhook") {
            return None;
        }
        let webhook = conversion.get("webhook").unwrap_or(&Value::Null);
        let client = webhook.get("clientConfig").cloned().unwrap_or_default();
        let versions = webhook.get("conversionReviewVersions").and_then(Value::as_array);
        let versions = versions.into_iter().flatten().filter_map(Value::as_str);
        Some(Converter {
            client: serde_json::from_value(client).unwrap_or_default(),
            review_versions: versions.map(str::to_owned).collect(),
        })
    }

    /// The first version of the question that both sides know.
    pub fn review_version(&self) -> Option<&str> {
        self.review_versions.iter().map(String::as_str).find(|version| matches!(*version, "v1" | "v1beta1"))
    }
}

/// The question: these objects, in the version `desired`.
pub fn question(review_version: &str, uid: &str, objects: &[&Value], desired: &str) -> Value {
    json!({
        "kind": "ConversionReview", "apiVersion": format!("apiextensions.k8s.io/{review_version}"),
        "request": {"uid": uid, "desiredAPIVersion": desired, "objects": objects},
    })
}

/// Reads the converted objects from an answer, or why there are none.
pub fn converted(answer: Value, review_version: &str, uid: &str) -> Result<Vec<Value>, String> {
    let text = |value: &Value, pointer: &str| {
        value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    // The older version of the answer was never checked for what it is and which question it answers.
    let is_checked = review_version == "v1";
    let expected = format!("apiextensions.k8s.io/{review_version}");
    let (api_version, kind) = (text(&answer, "/apiVersion"), text(&answer, "/kind"));
    if is_checked && (api_version != expected || kind != "ConversionReview") {
        let slash = if api_version.contains('/') { "" } else { "/" };
        let got = format!("{slash}{api_version}, Kind={kind}");
        return Err(format!("expected webhook response of {expected}, Kind=ConversionReview, got {got}"));
    }
    if !answer.get("response").is_some_and(Value::is_object) {
        return Err("no response provided".to_owned());
    }
    let answered = text(&answer, "/response/uid");
    if is_checked && answered != uid {
        return Err(format!("expected response.uid={uid:?}, got {answered:?}"));
    }
    let status = text(&answer, "/response/result/status");
    if status != "Success" {
        let message = text(&answer, "/response/result/message");
        let unsaid = || format!("response.result.status was '{status}', not 'Success'");
        return Err(if message.is_empty() { unsaid() } else { message });
    }
    let mut answer = answer;
    match answer.pointer_mut("/response/convertedObjects").map(Value::take) {
        Some(Value::Array(objects)) => Ok(objects),
        _ => Ok(Vec::new()),
    }
}

/// Checks a converted object against the original, and restores the metadata that no conversion may change: everything
/// but labels and annotations.
pub fn settle(original: &Value, converted: &mut Value, desired: &str) -> Result<(), Refused> {
    let text = |object: &Value, pointer: &str| {
        object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let version = text(converted, "/apiVersion");
    if version != desired {
        let why = format!("invalid groupVersion (expected {desired}, received {version})");
        return Err(Refused::Type(why));
    }
    let (kind, received) = (text(original, "/kind"), text(converted, "/kind"));
    if kind != received {
        return Err(Refused::Type(format!("invalid kind (expected {kind}, received {received})")));
    }
    for (pointer, what) in
        [("/metadata/name", "name"), ("/metadata/namespace", "namespace"), ("/metadata/uid", "UID")]
    {
        let (own, received) = (text(original, pointer), text(converted, pointer));
        if own != received {
            return Err(Refused::Object(format!("must have the same {what}: {own} != {received}")));
        }
    }
    restore_metadata(original, converted).map_err(Refused::Metadata)
}

/// What is wrong with a converted object. Messages name the three apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is of another version or kind than was asked for.
    Type(String),
    /// It is another object.
    Object(String),
    /// Its labels or annotations cannot be read.
    Metadata(String),
}

fn restore_metadata(original: &Value, converted: &mut Value) -> Result<(), String> {
    let answered = match converted.get_mut("metadata").map(Value::take) {
        Some(Value::Object(metadata)) => metadata,
        Some(other) => {
            return Err(format!("invalid metadata of type {} in converted object", go_type(&other)));
        }
        None => return Err("missing metadata in converted object".to_owned()),
    };
    let mut metadata = original.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match answered.get(field) {
            None | Some(Value::Null) => {
                metadata.remove(field);
            }
            Some(Value::Object(pairs)) => {
                check_texts(field, pairs)?;
                metadata.insert(field.to_owned(), Value::Object(pairs.clone()));
            }
            Some(other) => {
                let kind = go_type(other);
                return Err(format!("invalid metadata.{field} of type {kind} in converted object"));
            }
        }
    }
    if let Some(fields) = converted.as_object_mut() {
        fields.insert("metadata".to_owned(), Value::Object(metadata));
    }
    Ok(())
}

fn check_texts(field: &str, pairs: &Map<String, Value>) -> Result<(), String> {
    match pairs.iter().find(|(_, value)| !value.is_string()) {
        Some((key, value)) => {
            let kind = go_type(value);
            Err(format!("metadata.{field}[{key}] must be a string, but is {kind} in converted object"))
        }
        None => Ok(()),
    }
}

/// The type of a decoded value, as upstream's messages print it.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(response: Value) -> Value {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response})
    }

    #[test]
    fn an_answer_without_success_says_why() {
        let read = |answer: Value, version: &str| converted(answer, version, "u");
        let success = json!({"uid": "u", "result": {"status": "Success"}, "convertedObjects": [{"a": 1}]});
        assert_eq!(read(answer(success.clone()), "v1"), Ok(vec![json!({"a": 1})]));
        let cases = [
            (
                json!({}),
                "v1",
                "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=",
            ),
            (answer(Value::Null), "v1", "no response provided"),
            (answer(json!({"uid": "x"})), "v1", "expected response.uid=\"u\", got \"x\""),
            (answer(json!({"uid": "u"})), "v1", "response.result.status was '', not 'Success'"),
            (
                answer(json!({"uid": "u", "result": {"status": "Failed", "message": "no way"}})),
                "v1",
                "no way",
            ),
            (
                json!({"response": {"result": {"status": "Failure"}}}),
                "v1beta1",
                "response.result.status was 'Failure', not 'Success'",
            ),
        ];
        for (answer, version, expected) in cases {
            assert_eq!(read(answer, version), Err(expected.to_owned()));
        }
        assert_eq!(read(json!({"response": success}), "v1beta1"), Ok(vec![json!({"a": 1})]));
    }

    #[test]
    fn a_conversion_changes_labels_and_annotations_and_no_other_metadata() {
        let original = json!({
            "apiVersion": "g.io/v1", "kind": "K",
            "metadata": {"name": "a", "uid": "u", "labels": {"x": "1"}, "annotations": {"y": "2"}, "generation": 3},
        });
        let settled = |change: fn(&mut Value)| {
            let mut object = original.clone();
            object["apiVersion"] = "g.io/v2".into();
            change(&mut object);
            settle(&original, &mut object, "g.io/v2").map(|()| object["metadata"].clone())
        };
        let metadata = settled(|object| {
            object["metadata"] = json!({"name": "a", "uid": "u", "labels": {"z": "3"}, "generation": 9});
        });
        let expected = json!({"name": "a", "uid": "u", "labels": {"z": "3"}, "generation": 3});
        assert_eq!(metadata, Ok(expected));
        type Case = (fn(&mut Value), Refused);
        let cases: [Case; 5] = [
            (
                |object| object["apiVersion"] = "g.io/v3".into(),
                Refused::Type("invalid groupVersion (expected g.io/v2, received g.io/v3)".into()),
            ),
            (
                |object| object["kind"] = "L".into(),
                Refused::Type("invalid kind (expected K, received L)".into()),
            ),
            (
                |object| object["metadata"]["uid"] = "other".into(),
                Refused::Object("must have the same UID: u != other".into()),
            ),
            (
                |object| object["metadata"]["labels"] = json!({"a": 1}),
                Refused::Metadata(
                    "metadata.labels[a] must be a string, but is int64 in converted object".into(),
                ),
            ),
            (
                |object| object["metadata"]["annotations"] = json!([]),
                Refused::Metadata(
                    "invalid metadata.annotations of type []interface {} in converted object".into(),
                ),
            ),
        ];
        for (change, expected) in cases {
            assert_eq!(settled(change), Err(expected));
        }
    }

    #[test]
    fn a_question_has_the_first_version_that_both_sides_know() {
        let converter = Converter::parse(&json!({
            "strategy": "Webhook",
            "webhook": {"conversionReviewVersions": ["v9", "v1beta1", "v1"], "clientConfig": {"url": "https://a"}},
        }));
        assert_eq!(converter.as_ref().and_then(Converter::review_version), Some("v1beta1"));
        assert_eq!(Converter::parse(&json!({"strategy": "None"})), None);
    }
}
