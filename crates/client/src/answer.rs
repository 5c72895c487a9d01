//! Interpretation of answers. Pure, and never fails on data: the outcome of an unreadable answer is unknown.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::RETRY_AFTER;
use krafla_api::{Key, Kind, Scope, Served, Uid};
use krafla_cluster::{ClientError, Details, Refusal, Written};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A server that asks for more patience than this is asked again all the same.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// What is read of every object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Head {
    metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
}

/// What is read of a refusal.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    code: u16,
    reason: String,
    message: String,
    details: Option<Value>,
}

/// The kinds in a document of discovery whose objects can be made and kept.
pub(crate) fn served(api_version: &str, body: &[u8]) -> Result<Vec<Served>, ClientError> {
    #[derive(Deserialize)]
    struct Document {
        #[serde(default)]
        resources: Vec<Resource>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Resource {
        name: String,
        singular_name: String,
        namespaced: bool,
        kind: String,
        verbs: Vec<String>,
    }
    let document: Document =
        serde_json::from_slice(body).map_err(|error| unreadable("list of kinds", &error))?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let is_kept = |resource: &Resource| {
        let can = |verb: &str| resource.verbs.iter().any(|other| other == verb);
        // What has a slash in its name is a part of another one's objects.
        !resource.name.contains('/') && can("create") && can("get")
    };
    let kept = document.resources.into_iter().filter(is_kept);
    let served = kept.map(|resource| Served {
        group: group.to_owned(),
        version: version.to_owned(),
        // Older servers do not say it.
        singular: if resource.singular_name.is_empty() {
            resource.kind.to_lowercase()
        } else {
            resource.singular_name
        },
        plural: resource.name,
        kind: resource.kind,
        scope: if resource.namespaced { Scope::Namespaced } else { Scope::Cluster },
    });
    Ok(served.collect())
}

/// One page of a list.
pub(crate) struct Page {
    pub(crate) revision: u64,
    pub(crate) items: Vec<Bytes>,
    /// Where the next page begins; empty at the end.
    pub(crate) rest: String,
}

/// Reads one page of a list.
pub(crate) fn page(kind: Kind, body: &[u8]) -> Result<Page, ClientError> {
    #[derive(Deserialize)]
    struct List<'a> {
        metadata: ListMetadata,
        #[serde(borrow, default)]
        items: Option<Vec<&'a RawValue>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ListMetadata {
        resource_version: String,
        #[serde(default, rename = "continue")]
        rest: String,
    }
    let list: List<'_> = serde_json::from_slice(body).map_err(|error| unreadable("list", &error))?;
    let items = list.items.unwrap_or_default();
    Ok(Page {
        revision: revision(&list.metadata.resource_version)?,
        items: items.into_iter().map(|item| with_type(kind, item.get())).collect(),
        rest: list.metadata.rest,
    })
}

/// The revision that an object is of.
pub(crate) fn revision_of(object: &str) -> Result<u64, ClientError> {
    let head: Head = serde_json::from_str(object).map_err(|error| unreadable("object", &error))?;
    revision(&head.metadata.resource_version)
}

/// Reads what a write led to. Some answers are not the object but only say that all is well: then it is whom the
/// request named.
pub(crate) fn written(body: &[u8], named: Option<(&Key, &Uid)>) -> Result<Written, ClientError> {
    let Metadata { namespace, name, uid, resource_version } =
        serde_json::from_slice::<Head>(body).map_err(|error| unreadable("object", &error))?.metadata;
    match named {
        Some((key, named)) if uid.is_empty() => {
            Ok(Written { key: key.clone(), uid: named.clone(), revision: 0 })
        }
        _ => {
            let revision = revision(&resource_version)?;
            Ok(Written { key: Key::new(&namespace, &name), uid: Uid(uid.into()), revision })
        }
    }
}

/// An object with `kind` and `apiVersion`: in lists, servers leave them out.
pub(crate) fn with_type(kind: Kind, object: &str) -> Bytes {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(borrow)]
        kind: Option<&'a RawValue>,
    }
    let is_typed = serde_json::from_str::<Typed<'_>>(object).is_ok_and(|typed| typed.kind.is_some());
    let Some(fields) = object.strip_prefix('{').filter(|_| !is_typed) else {
        return Bytes::copy_from_slice(object.as_bytes());
    };
    let info = kind.info();
    let comma = if fields.trim_start().starts_with('}') { "" } else { "," };
    format!(r#"{{"apiVersion":"{}","kind":"{}"{comma}{fields}"#, info.api_version(), info.kind).into()
}

/// What an answer that is not a success means.
pub(crate) fn refusal(code: u16, headers: &HeaderMap, body: &[u8]) -> ClientError {
    // A proxy before the server may answer in its own words.
    let status: Status = serde_json::from_slice(body).unwrap_or_else(|_| Status {
        message: String::from_utf8_lossy(body).chars().take(200).collect(),
        ..Status::default()
    });
    let header = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    of_status(code, header, status)
}

/// What an error in the middle of a watch means.
pub(crate) fn watch_error(status: &str) -> ClientError {
    let status: Status = serde_json::from_str(status).unwrap_or_default();
    of_status(status.code, None, status)
}

fn of_status(code: u16, retry_after: Option<u64>, status: Status) -> ClientError {
    let details = status.details.as_ref().map(|details| Box::new(Details::read(details)));
    let seconds = retry_after.or(details.as_ref().map(|details| details.retry_after_seconds.into()));
    let retry_after = seconds
        .filter(|seconds| *seconds > 0)
        .map(|seconds| Duration::from_secs(seconds).min(RETRY_AFTER_MAX));
    let message = if status.message.is_empty() { format!("HTTP status {code}") } else { status.message };
    let refusal = Refusal { code, reason: status.reason, message, details };
    // Our patches name whom they mean. A server takes that for an attempt to change who the object is.
    if code == 422 && refusal.causes().iter().any(|cause| cause.field == "metadata.uid") {
        return ClientError::Conflict(refusal);
    }
    ClientError::from_refusal(refusal, retry_after)
}

fn revision(text: &str) -> Result<u64, ClientError> {
    let wrong = |_| ClientError::Unknown(format!("the resourceVersion {text:?} is not a number"));
    text.parse().map_err(wrong)
}

fn unreadable(what: &str, error: &serde_json::Error) -> ClientError {
    ClientError::Unknown(format!("the answer is not a readable {what}: {error}"))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use krafla_cluster::Cause;

    use super::*;

    #[test]
    fn objects_of_lists_get_their_type_back() {
        let typed = |object: &str| String::from_utf8(with_type(Kind::VcJob, object).to_vec()).unwrap();
        let full = r#"{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{}}"#;
        assert_eq!(typed(r#"{"metadata":{}}"#), full);
        assert_eq!(typed(full), full);
        assert_eq!(typed("{ }"), r#"{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job" }"#);
        assert_eq!(typed("7"), "7");
    }

    #[test]
    fn of_what_is_served_only_kinds_count_whose_objects_are_kept() {
        let document = r#"{"resources":[
            {"name":"widgets","singularName":"","namespaced":true,"kind":"Widget","verbs":["create","get","list"]},
            {"name":"widgets/status","singularName":"","namespaced":true,"kind":"Widget","verbs":["create","get"]},
            {"name":"reviews","singularName":"review","namespaced":false,"kind":"Review","verbs":["create"]}]}"#;
        let [group, version, kind, plural, singular] =
            ["example.com", "v1", "Widget", "widgets", "widget"].map(str::to_owned);
        let widget = Served { group, version, kind, plural, singular, scope: Scope::Namespaced };
        assert_eq!(served("example.com/v1", document.as_bytes()), Ok(vec![widget]));
        assert!(served("v1", b"<html>").is_err());
    }

    fn check(code: u16, header: Option<&str>, body: &str, expected: Expect) {
        let headers = header.map(|seconds| (RETRY_AFTER, seconds.parse().unwrap()));
        let error = refusal(code, &headers.into_iter().collect(), body.as_bytes());
        let mut told = format!("{}: {}", error.label(), error.message());
        if let ClientError::Busy { retry_after, .. } = &error {
            told += &format!(", again after {retry_after:?}");
        }
        for Cause { reason, message, field } in error.refusal().map_or(&[][..], Refusal::causes) {
            told += &format!("\n{reason} {field}: {message}");
        }
        expected.assert_eq(&told);
    }

    #[test]
    fn a_refusal_is_understood_whoever_it_is_from() {
        let exists =
            r#"{"kind":"Status","code":409,"reason":"AlreadyExists","message":"pods \"a\" already exists"}"#;
        check(409, None, exists, expect![[r#"already_exists: pods "a" already exists"#]]);
        check(409, None, r#"{"reason":"Conflict","message":"changed"}"#, expect!["conflict: changed"]);
        check(410, None, r#"{"message":"too old"}"#, expect!["expired: too old"]);
        check(429, Some("2"), "later", expect!["busy: later, again after Some(2s)"]);
        check(
            429,
            None,
            r#"{"details":{"retryAfterSeconds":9999}}"#,
            expect!["busy: HTTP status 429, again after Some(60s)"],
        );
        check(502, None, "<html>bad gateway</html>", expect!["unknown: <html>bad gateway</html>"]);
        check(403, None, r#"{"message":"no"}"#, expect!["refused: no"]);
        let invalid = r#"{"code":422,"reason":"Invalid","message":"Pod \"p\" is invalid","details":{"name":"p",
            "kind":"Pod","causes":[{"reason":"FieldValueRequired","message":"Required value","field":"spec"}]}}"#;
        check(
            422,
            None,
            invalid,
            expect![[r#"
            refused: Pod "p" is invalid
            FieldValueRequired spec: Required value"#]],
        );
    }

    #[test]
    fn an_answer_without_an_object_is_about_whom_was_named() {
        let (key, uid) = (Key::new("ns", "a"), Uid("u".into()));
        let answer = written(br#"{"kind":"Status","status":"Success"}"#, Some((&key, &uid))).unwrap();
        assert_eq!(answer, Written { key: key.clone(), uid: uid.clone(), revision: 0 });
        let body = br#"{"metadata":{"namespace":"ns","name":"b","uid":"v","resourceVersion":"9"}}"#;
        let answer = written(body, Some((&key, &uid))).unwrap();
        assert_eq!(answer, Written { key: Key::new("ns", "b"), uid: Uid("v".into()), revision: 9 });
        assert!(written(b"nonsense", None).is_err());
    }
}
