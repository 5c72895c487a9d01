//! The question that goes to a webhook, and what its answer means.

use serde_json::{Value, json};

use super::hook::{Target, Verb};

pub(super) const REVIEW_VERSION: &str = "admission.k8s.io/v1";

/// Where in the API a request is made: group, version, and the object's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The resource.
    pub target: Target<'a>,
    /// The kind of its objects.
    pub kind: &'a str,
}

/// One question.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// What tells the answer to this question from others.
    pub uid: &'a str,
    /// What the webhook is asked about: one of its rules names it.
    pub asked: Place<'a>,
    /// What the client asked for.
    pub requested: Place<'a>,
    /// The object's namespace; empty for cluster-wide kinds.
    pub namespace: &'a str,
    /// The object's name.
    pub name: &'a str,
    /// Who asks, as `userInfo`.
    pub user: &'a Value,
    /// The object as it would be; absent when it goes.
    pub object: Option<&'a Value>,
    /// The object as it is; absent when it is new.
    pub old: Option<&'a Value>,
    /// Whether nothing will be stored.
    pub is_dry_run: bool,
}

impl Question<'_> {
    /// As it is sent.
    pub fn to_json(&self) -> Value {
        let Question { asked, requested, .. } = self;
        let in_version = |object: Option<&Value>| object.map(|object| shown_as(object, asked));
        let mut request = json!({
            "uid": self.uid,
            "kind": kind(asked), "resource": resource(asked),
            "requestKind": kind(requested), "requestResource": resource(requested),
            "name": self.name,
            "operation": asked.target.verb.as_str(),
            "userInfo": self.user,
            "object": in_version(self.object), "oldObject": in_version(self.old),
            "dryRun": self.is_dry_run,
            "options": options(asked.target.verb, self.is_dry_run),
        });
        let Some(fields) = request.as_object_mut() else { return request };
        for (name, text) in [
            ("namespace", self.namespace),
            ("subResource", asked.target.subresource),
            ("requestSubResource", requested.target.subresource),
        ] {
            if !text.is_empty() {
                fields.insert(name.to_owned(), text.into());
            }
        }
        json!({"apiVersion": REVIEW_VERSION, "kind": "AdmissionReview", "request": request})
    }
}

fn kind(place: &Place<'_>) -> Value {
    json!({"group": place.target.group, "version": place.target.version, "kind": place.kind})
}

fn resource(place: &Place<'_>) -> Value {
    json!({"group": place.target.group, "version": place.target.version, "resource": place.target.resource})
}

/// Versions of one kind differ in nothing but what they are called.
fn shown_as(object: &Value, place: &Place<'_>) -> Value {
    let mut object = object.clone();
    let Target { group, version, .. } = place.target;
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".into(), api_version.into());
        fields.insert("kind".into(), place.kind.into());
    }
    object
}

fn options(verb: Verb, is_dry_run: bool) -> Value {
    let kind = match verb {
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Delete => "DeleteOptions",
        // What is asked of the connection is the object itself.
        Verb::Connect => return Value::Null,
    };
    let mut options = json!({"apiVersion": "meta.k8s.io/v1", "kind": kind});
    if let (true, Some(fields)) = (is_dry_run, options.as_object_mut()) {
        fields.insert("dryRun".into(), json!(["All"]));
    }
    options
}

/// What a webhook said.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Why not, as a `Status`; absent if the request may go on.
    pub refusal: Option<Value>,
    /// A JSON patch of the object, in base64; absent if it stays as it is.
    pub patch: Option<String>,
    /// What the client should know.
    pub warnings: Vec<String>,
}

/// Why an answer says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub String);

/// Reads the answer to the question of this UID.
pub fn read(answer: &Value, uid: &str) -> Result<Answer, Unreadable> {
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let of = (text(answer, "apiVersion"), text(answer, "kind"));
    if of != (REVIEW_VERSION.to_owned(), "AdmissionReview".to_owned()) {
        let got = format!("{}, Kind={}", of.0, of.1);
        let expected = format!("expected webhook response of {REVIEW_VERSION}, Kind=AdmissionReview");
        return Err(Unreadable(format!("{expected}, got {got}")));
    }
    let Some(response) = answer.get("response").filter(|response| response.is_object()) else {
        return Err(Unreadable("webhook response was absent".into()));
    };
    if text(response, "uid") != uid {
        let got = text(response, "uid");
        return Err(Unreadable(format!("expected response.uid={uid:?}, got {got:?}")));
    }
    let is_allowed = response.get("allowed").and_then(Value::as_bool).unwrap_or(false);
    let status = || response.get("status").cloned().unwrap_or(Value::Null);
    Ok(Answer {
        refusal: if is_allowed { None } else { Some(status()) },
        patch: patch(response)?,
        warnings: warnings(response),
    })
}

fn patch(response: &Value) -> Result<Option<String>, Unreadable> {
    let text = |name: &str| response.get(name).and_then(Value::as_str).unwrap_or_default();
    match (text("patch"), text("patchType")) {
        ("", "") => Ok(None),
        ("", _) => Err(Unreadable("webhook returned response.patchType but not response.patch".into())),
        (_, "") => Err(Unreadable("webhook returned response.patch but not response.patchType".into())),
        (patch, "JSONPatch") => Ok(Some(patch.to_owned())),
        (_, other) => Err(Unreadable(format!(
            "invalid webhook response.patchType of {other:?}, expected \"JSONPatch\""
        ))),
    }
}

/// How many warnings one webhook may give, and how long each may be.
const WARNINGS_MAX: usize = 64;
const WARNING_BYTES_MAX: usize = 4096;

fn warnings(response: &Value) -> Vec<String> {
    let list = response.get("warnings").and_then(Value::as_array).into_iter().flatten();
    let texts = list.filter_map(Value::as_str).filter(|text| text.len() <= WARNING_BYTES_MAX);
    texts.take(WARNINGS_MAX).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(response: Value, expected: Expect) {
        let answer =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        expected.assert_eq(&format!("{:?}", read(&answer, "u")));
    }

    #[test]
    fn an_answer_allows_refuses_changes_or_says_nothing() {
        check(
            json!({"uid": "u", "allowed": true, "warnings": ["w", 1]}),
            expect![[r#"Ok(Answer { refusal: None, patch: None, warnings: ["w"] })"#]],
        );
        check(
            json!({"uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": "W10="}),
            expect![[r#"Ok(Answer { refusal: None, patch: Some("W10="), warnings: [] })"#]],
        );
        check(
            json!({"uid": "u", "status": {"message": "no"}}),
            expect![[
                r#"Ok(Answer { refusal: Some(Object {"message": String("no")}), patch: None, warnings: [] })"#
            ]],
        );
        check(
            json!({"uid": "v", "allowed": true}),
            expect![[r#"Err(Unreadable("expected response.uid=\"u\", got \"v\""))"#]],
        );
        check(json!(null), expect![[r#"Err(Unreadable("webhook response was absent"))"#]]);
        check(
            json!({"uid": "u", "allowed": true, "patch": "W10="}),
            expect![[r#"Err(Unreadable("webhook returned response.patch but not response.patchType"))"#]],
        );
        check(
            json!({"uid": "u", "allowed": true, "patch": "W10=", "patchType": "Merge"}),
            expect![[
                r#"Err(Unreadable("invalid webhook response.patchType of \"Merge\", expected \"JSONPatch\""))"#
            ]],
        );
    }

    #[test]
    fn an_answer_of_another_kind_is_none() {
        let answer = json!({"apiVersion": "v1", "kind": "Pod"});
        assert_eq!(
            read(&answer, "u"),
            Err(Unreadable(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got v1, Kind=Pod"
                    .into()
            ))
        );
    }

    #[test]
    fn the_question_names_what_was_requested_and_shows_what_is_asked() {
        let target = |version| Target {
            group: "g",
            version,
            resource: "things",
            subresource: "status",
            is_namespaced: true,
            verb: Verb::Update,
        };
        let (asked, requested) =
            (Place { target: target("v1"), kind: "Thing" }, Place { target: target("v2"), kind: "Thing" });
        let object = json!({"apiVersion": "g/v2", "kind": "Thing", "metadata": {"name": "a"}});
        let question = Question {
            uid: "u",
            asked,
            requested,
            namespace: "n",
            name: "a",
            user: &json!({"username": "me"}),
            object: Some(&object),
            old: None,
            is_dry_run: true,
        };
        expect![[r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"dryRun":true,"kind":{"group":"g","kind":"Thing","version":"v1"},"name":"a","namespace":"n","object":{"apiVersion":"g/v1","kind":"Thing","metadata":{"name":"a"}},"oldObject":null,"operation":"UPDATE","options":{"apiVersion":"meta.k8s.io/v1","dryRun":["All"],"kind":"UpdateOptions"},"requestKind":{"group":"g","kind":"Thing","version":"v2"},"requestResource":{"group":"g","resource":"things","version":"v2"},"requestSubResource":"status","resource":{"group":"g","resource":"things","version":"v1"},"subResource":"status","uid":"u","userInfo":{"username":"me"}}}"#]]
        .assert_eq(&question.to_json().to_string());
    }
}
