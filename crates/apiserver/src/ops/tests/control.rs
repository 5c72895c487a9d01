//! APIServices and flow schemas: what the server itself keeps.

use super::*;

impl Cluster {
    fn keep(&self) {
        self.0.keep_api_services().now_or_never().unwrap().unwrap();
        self.0.keep_flow_control().now_or_never().unwrap().unwrap();
    }

    fn named(&self, group: &str, plural: &str) -> Vec<Value> {
        let resource = self.0.registry().find(group, "v1", plural).unwrap();
        let snapshot = self.0.store().snapshot(&resource.storage);
        snapshot.entries.values().map(|entry| serde_json::from_slice(&entry.bytes).unwrap()).collect()
    }

    fn remove(&self, group: &str, plural: &str, name: &str) {
        let resource = self.0.registry().find(group, "v1", plural).unwrap();
        let (key, options) = (Key::new("", name), DeleteOptions::default());
        self.0.delete(&resource, &key, &options).now_or_never().unwrap().unwrap();
    }
}

const FLOW: &str = "flowcontrol.apiserver.k8s.io";

fn names(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(krafla_schema::object::name).collect()
}

#[test]
fn every_served_version_of_a_group_has_an_api_service() {
    let cluster = Cluster::new();
    cluster.keep();
    let services = cluster.named("apiregistration.k8s.io", "apiservices");
    let batch = services.iter().find(|service| service["metadata"]["name"] == "v1.batch").unwrap();
    assert_eq!(
        batch["spec"],
        json!({"group": "batch", "version": "v1", "groupPriorityMinimum": 17400, "versionPriority": 15})
    );
    assert_eq!(batch["status"]["conditions"][0]["reason"], "Local");
    assert!(names(&services).contains(&"v1."));
    assert!(names(&services).contains(&"v1alpha1.batch.volcano.sh"));
    cluster.remove("apiregistration.k8s.io", "apiservices", "v1.batch");
    cluster.keep();
    assert_eq!(cluster.named("apiregistration.k8s.io", "apiservices").len(), services.len());
}

#[test]
fn an_api_service_goes_with_the_definition_that_asked_for_it() {
    let cluster = Cluster::new();
    let is_there = |cluster: &Cluster| {
        cluster.keep();
        names(&cluster.named("apiregistration.k8s.io", "apiservices")).contains(&"v1.example.com")
    };
    assert!(!is_there(&cluster));
    cluster.define("widgets", "Widget");
    assert!(is_there(&cluster));
    cluster.undefine("widgets");
    assert!(!is_there(&cluster));
}

#[test]
fn a_flow_schema_says_whether_its_priority_level_exists() {
    let cluster = Cluster::new();
    cluster.keep();
    assert_eq!(cluster.named(FLOW, "prioritylevelconfigurations").len(), 8);
    let dangling = |name: &str| {
        let schemas = cluster.named(FLOW, "flowschemas");
        let schema = schemas.iter().find(|schema| schema["metadata"]["name"] == name).unwrap();
        let condition = &schema["status"]["conditions"][0];
        format!("{} {}: {}", condition["type"], condition["status"], condition["message"])
    };
    expect![[r#""Dangling" "False": "This FlowSchema references the PriorityLevelConfiguration object named \"workload-low\" and it exists""#]]
        .assert_eq(&dangling("service-accounts"));
    let schemas = cluster.0.registry().find(FLOW, "v1", "flowschemas").unwrap();
    let rule = json!({
        "subjects": [{"kind": "User", "user": {"name": "a"}}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    });
    let own = json!({
        "metadata": {"name": "own"},
        "spec": {"priorityLevelConfiguration": {"name": "none"}, "rules": [rule]},
    });
    let n_flows = cluster.0.flows().len();
    cluster.0.create(&schemas, "", own, &WriteOptions::default()).now_or_never().unwrap().unwrap();
    cluster.keep();
    expect![[r#""Dangling" "True": "This FlowSchema references the PriorityLevelConfiguration object named \"none\" but there is no such object""#]]
        .assert_eq(&dangling("own"));
    assert_eq!((n_flows, cluster.0.flows().len()), (11, 11));
}
