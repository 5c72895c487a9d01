//! Autoscalers through both of their versions.

use super::*;

fn version(cluster: &Cluster, version: &str) -> Arc<Resource> {
    cluster.0.registry().find("autoscaling", version, "horizontalpodautoscalers").expect("served")
}

fn autoscaler(spec: Value) -> Value {
    let mut spec = spec;
    spec["scaleTargetRef"] = json!({"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"});
    json!({"metadata": {"name": "web"}, "spec": spec})
}

#[test]
fn what_is_created_in_one_version_is_read_in_the_other() {
    let cluster = Cluster::new();
    let (v1, v2) = (version(&cluster, "v1"), version(&cluster, "v2"));
    assert_eq!(v1.storage, v2.storage);
    let options = WriteOptions::default();
    let spec = json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 70});
    let created = cluster.0.create(&v1, "default", autoscaler(spec), &options);
    created.now_or_never().unwrap().unwrap();
    let stored = cluster.0.store().get(&v2.storage, &Key::new("default", "web")).unwrap();
    let stored: Value = serde_json::from_slice(&stored.bytes).unwrap();
    expect![[r#""autoscaling/v2" {"maxReplicas":3,"metrics":[{"resource":{"name":"cpu","target":{"averageUtilization":70,"type":"Utilization"}},"type":"Resource"}],"minReplicas":1,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}"#]]
        .assert_eq(&format!("{} {}", stored["apiVersion"], stored["spec"]));
    let patch = Patch::Merge(json!({"spec": {"targetCPUUtilizationPercentage": 50}}));
    let key = Key::new("default", "web");
    let patched = cluster.0.patch(&v1, &key, Part::Main, &patch, &options);
    let patched: Value = serde_json::from_slice(&patched.now_or_never().unwrap().unwrap().bytes).unwrap();
    let percentage = "/spec/metrics/0/resource/target/averageUtilization";
    assert_eq!(patched.pointer(percentage), Some(&json!(50)), "{patched}");
}

#[test]
fn a_bad_autoscaler_is_refused_in_either_version() {
    let cluster = Cluster::new();
    for version in ["v1", "v2"].map(|name| version(&cluster, name)) {
        let bad = autoscaler(json!({"maxReplicas": 0}));
        let options = WriteOptions::default();
        let refused = cluster.0.create(&version, "default", bad, &options);
        says(
            &refused.now_or_never().unwrap().unwrap_err(),
            expect![[
                r#"422 Invalid: HorizontalPodAutoscaler.autoscaling "web" is invalid: [spec.maxReplicas: Required value: must be set and greater than 0, spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`]"#
            ]],
        );
    }
}
