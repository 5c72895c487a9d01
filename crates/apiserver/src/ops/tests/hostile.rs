//! Whatever a client sends, a write happens as a whole or not at all.

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Places in a pod, among them some that do not exist and some that nobody may write.
const PLACES: [&str; 18] = [
    "/apiVersion",
    "/kind",
    "/metadata",
    "/metadata/name",
    "/metadata/namespace",
    "/metadata/uid",
    "/metadata/labels",
    "/metadata/finalizers",
    "/metadata/resourceVersion",
    "/metadata/deletionTimestamp",
    "/metadata/managedFields",
    "/metadata/ownerReferences",
    "/spec",
    "/spec/containers",
    "/spec/containers/0",
    "/spec/containers/0/image",
    "/spec/tolerations",
    "/unknown",
];

/// A new cluster, of which every case has a copy: making one takes longer than the case.
static NEW: LazyLock<Cluster> = LazyLock::new(Cluster::new);

/// A pod, or what is left of it after somebody has put odd values in odd places.
fn nearly_a_pod() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(json!({})),
        Just(json!([])),
        Just(json!([{"name": "c", "image": "other"}])),
        Just(json!([{"$patch": "delete", "name": "c"}])),
        Just(json!({"$patch": "replace", "a": "b"})),
        Just(
            json!([{"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": 1}}])
        ),
        Just(json!([{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u"}])),
        any::<i64>().prop_map(Value::from),
        "[a-z/]{0,6}".prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
    ];
    let edits = vec((proptest::sample::select(&PLACES[..]), leaf), 0..4);
    edits.prop_map(|edits| {
        let mut body = json!({"apiVersion": "v1", "kind": "Pod"});
        let template = pod("a");
        for field in ["metadata", "spec"] {
            body[field] = template[field].clone();
        }
        for (place, value) in edits {
            let (parent, field) = place.rsplit_once('/').unwrap();
            match body.pointer_mut(parent) {
                Some(Value::Object(fields)) => drop(fields.insert(field.to_owned(), value)),
                Some(Value::Array(items)) if !items.is_empty() => items[0] = value,
                _ => {}
            }
        }
        body
    })
}

/// Makes one write, and checks that the store has either what was answered or what it had before.
fn write(cluster: &Cluster, act: impl Future<Output = Result<Answer, Status>>) -> Result<(), TestCaseError> {
    let pods = cluster.resource(Kind::Pod);
    let everything = |cluster: &Cluster| cluster.0.store().snapshot(&pods.storage).entries;
    let (before, revision) = (everything(cluster), cluster.0.store().revision());
    match act.now_or_never().expect("ready at once") {
        Err(refused) => {
            prop_assert!(refused.code >= 400, "{:?}", refused);
            prop_assert_eq!(cluster.0.store().revision(), revision, "{:?}", refused);
            prop_assert_eq!(everything(cluster), before);
        }
        Ok(answer) => {
            let Some(entry) = cluster.0.store().get(&pods.storage, &answer.key) else { return Ok(()) };
            prop_assert_eq!(&entry.bytes, &answer.bytes);
            let stored: Value = serde_json::from_slice(&entry.bytes).unwrap();
            let again = crate::codec::normalise(&pods, &stored).map_err(TestCaseError::fail)?;
            let faults = pods.rules.validate(&again);
            prop_assert!(faults.is_empty(), "{:?} in {}", faults, stored);
            prop_assert_eq!(object_identity(&stored), ("a", "default", true));
        }
    }
    Ok(())
}

fn object_identity(object: &Value) -> (&str, &str, bool) {
    use krafla_schema::object;
    (object::name(object), object::namespace(object), !object::uid(object).is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_write_happens_as_a_whole_or_not_at_all(bodies in vec((nearly_a_pod(), 0..7_usize), 1..4)) {
        let cluster = Cluster(NEW.0.fork(Arc::new(Still::default())));
        let (pods, key) = (cluster.resource(Kind::Pod), key(Kind::Pod, "a"));
        let options = WriteOptions { manager: Some("m".into()), ..WriteOptions::default() };
        for (body, how) in bodies {
            let text = body.to_string();
            let patch_as = |media_type: &str| Patch::decode(media_type, text.as_bytes());
            match how {
                0 => {
                    let Ok(decoded) = crate::codec::decode(&pods, "application/json", text.as_bytes()) else { continue };
                    let named = krafla_schema::object::name(&decoded.object) == "a";
                    if named {
                        write(&cluster, cluster.0.create(&pods, "default", decoded.object, &options))?;
                    }
                }
                1 => {
                    let Ok(decoded) = crate::codec::decode(&pods, "application/yaml", text.as_bytes()) else { continue };
                    write(&cluster, cluster.0.update(&pods, &key, Part::Main, decoded.object, &options))?;
                }
                2 | 3 => {
                    let applied = Applied { object: body, is_forced: how == 3 };
                    write(&cluster, cluster.0.apply(&pods, &key, Part::Main, &applied, &options))?;
                }
                4 => {
                    let operations = json!([{"op": "replace", "path": "/spec", "value": body["spec"]}, {"op": "test", "path": "/metadata/name", "value": "a"}]);
                    let patch = Patch::decode("application/json-patch+json", operations.to_string().as_bytes());
                    let Some(Ok((patch, _))) = patch else { continue };
                    write(&cluster, cluster.0.patch(&pods, &key, Part::Main, &patch, &options))?;
                }
                other => {
                    let media_type =
                        if other == 5 { "application/merge-patch+json" } else { "application/strategic-merge-patch+json" };
                    let Some(Ok((patch, _))) = patch_as(media_type) else { continue };
                    write(&cluster, cluster.0.patch(&pods, &key, Part::Main, &patch, &options))?;
                }
            }
        }
    }
}
