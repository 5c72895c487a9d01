//! Whatever arrives, the readers of bodies, patches and selectors answer: with a value or with a reason, never with a panic.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use krafla_apiserver::patch::Patch;
use krafla_apiserver::selector::LabelSelector;
use krafla_schema::decode;
use krafla_schema::json::{DEPTH_MAX, Node};
use krafla_schema::table::{TypeId, builtin};
use krafla_schema::{protobuf, yaml};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

const PATCHES: [&str; 3] =
    ["application/merge-patch+json", "application/json-patch+json", "application/strategic-merge-patch+json"];

fn pod_type() -> TypeId {
    builtin().kind("", "v1", "Pod").unwrap()
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "b"}, "finalizers": ["x/y"]},
        "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "X", "value": "1"}]}]},
    })
}

/// JSON whose fields are those that readers know, or nearly so: more of it gets deep into them than of plain noise.
fn json_like() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z/$.~ -]{0,12}".prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    let field = prop_oneof![
        proptest::sample::select(vec![
            "apiVersion",
            "kind",
            "metadata",
            "labels",
            "finalizers",
            "spec",
            "containers",
            "env",
            "name",
            "ports",
            "resources",
            "limits",
            "op",
            "path",
            "from",
            "value",
            "$patch",
            "$retainKeys",
            "$setElementOrder/containers",
            "$deleteFromPrimitiveList/finalizers",
        ])
        .prop_map(str::to_owned),
        "[a-z]{1,6}",
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((field.clone(), inner), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Applies a body as a patch of each type.
fn patch_with(body: &[u8]) {
    for media_type in PATCHES {
        if let Some(Ok((patch, _))) = Patch::decode(media_type, body)
            && let Ok(patched) = patch.apply(&pod(), Some(pod_type()))
        {
            let _ = decode::decode(&Node::from(&patched), pod_type());
            let _ = decode::decode_patched(&patched, pod_type());
        }
    }
}

proptest! {
    #[test]
    fn noise_is_read_or_refused(body in vec(any::<u8>(), 0..300)) {
        if let Ok(node) = Node::parse(&body) {
            let _ = decode::decode(&node, pod_type());
            let _ = decode::decode_custom(&node);
        }
        let _ = yaml::parse(&body);
        let _ = protobuf::decode(&body, pod_type());
        let enveloped = [b"k8s\0", body.as_slice()].concat();
        if let Ok(envelope) = protobuf::open(&enveloped) {
            let _ = protobuf::decode(envelope.message, pod_type());
        }
        patch_with(&body);
    }

    #[test]
    fn what_is_nearly_a_pod_is_read_or_refused(body in json_like()) {
        let node = Node::from(&body);
        let _ = decode::decode(&node, pod_type());
        let _ = decode::decode_custom(&node);
        let _ = yaml::parse(body.to_string().as_bytes());
    }

    #[test]
    fn what_is_nearly_a_patch_is_applied_or_refused(body in json_like()) {
        patch_with(body.to_string().as_bytes());
    }

    #[test]
    fn selectors_are_read_or_refused(text in "\\PC{0,40}", near in "[a-z!=, ()<>0-9./-]{0,40}") {
        let _ = LabelSelector::parse(&text);
        let _ = LabelSelector::parse(&near);
    }

    #[test]
    fn what_was_read_once_reads_the_same_again(body in json_like()) {
        let read = |text: String| Node::parse(text.as_bytes()).map(Node::into_value);
        let once = read(body.to_string()).unwrap();
        prop_assert_eq!(read(once.to_string()), Ok(once));
    }
}

#[test]
fn documents_that_are_too_deep_are_refused() {
    let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    assert!(Node::parse(nested(DEPTH_MAX - 1).as_bytes()).is_ok());
    for depth in [DEPTH_MAX + 1, 100_000] {
        assert!(Node::parse(nested(depth).as_bytes()).is_err());
        assert!(yaml::parse(nested(depth).as_bytes()).is_err());
        for media_type in PATCHES {
            assert!(Patch::decode(media_type, nested(depth).as_bytes()).unwrap().is_err());
        }
    }
}
