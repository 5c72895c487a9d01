//! Services, their addresses and their ports.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use super::*;

fn service(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["ports"] = json!([{"port": 80}]);
    json!({"metadata": {"name": name}, "spec": spec})
}

/// Creates services on a disk, all at once: each is worked on before any other is durable, let alone visible.
fn create_at_once(services: Vec<Value>) -> Vec<Result<Value, Status>> {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let api = Api::new(store, Arc::new(Still::default()), Admission::default());
    let resource = api.registry().of_kind(Kind::Service).unwrap();
    let create = async {
        api.bootstrap().await.unwrap();
        let options = WriteOptions::default();
        let creations = services.into_iter().map(|service| {
            let service = crate::codec::normalise(&resource, &service).unwrap();
            api.create(&resource, "default", service, &options)
        });
        join_all(creations).await
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let read = |answer: Answer| serde_json::from_slice(&answer.bytes).unwrap();
    runtime.block_on(create).into_iter().map(|outcome| outcome.map(read)).collect()
}

#[test]
fn services_that_are_created_at_once_get_different_addresses_and_ports() {
    const N_SERVICES: usize = 300;
    let services = (0..N_SERVICES).map(|index| service(&format!("s{index}"), json!({"type": "NodePort"})));
    let created: Vec<Value> = create_at_once(services.collect()).into_iter().map(Result::unwrap).collect();
    let distinct = |pointer: &str| {
        let values: BTreeSet<String> =
            created.iter().map(|service| service.pointer(pointer).unwrap().to_string()).collect();
        values.len()
    };
    assert_eq!(distinct("/spec/clusterIP"), N_SERVICES);
    assert_eq!(distinct("/spec/ports/0/nodePort"), N_SERVICES);
}

#[test]
fn of_services_that_want_one_address_one_gets_it() {
    let services = (0..20).map(|index| service(&format!("s{index}"), json!({"clusterIP": "10.250.0.9"})));
    let (got, refused): (Vec<_>, Vec<_>) =
        create_at_once(services.collect()).into_iter().partition(Result::is_ok);
    assert_eq!((got.len(), refused.len()), (1, 19));
    says(
        &refused[18].clone().unwrap_err(),
        expect![[
            r#"422 Invalid: Service "s19" is invalid: spec.clusterIPs: Invalid value: ["10.250.0.9"]: failed to allocate IP 10.250.0.9: provided IP is already allocated"#
        ]],
    );
}

#[test]
fn an_address_is_free_again_when_its_service_is_gone_or_was_never_stored() {
    let cluster = Cluster::new();
    let asked = || json!({"clusterIP": "10.250.0.9"});
    // The address would do, but nothing that has it is stored: the name is bad, or it is a dry run.
    let (resource, options) =
        (cluster.resource(Kind::Service), WriteOptions { dry_run: true, ..WriteOptions::default() });
    cluster.create(Kind::Service, service("Bad", asked())).unwrap_err();
    let tried = cluster.0.create(&resource, "default", service("a", asked()), &options);
    tried.now_or_never().unwrap().unwrap();
    cluster.create(Kind::Service, service("a", asked())).unwrap();
    cluster.create(Kind::Service, service("b", asked())).unwrap_err();
    cluster.delete(Kind::Service, "a", &DeleteOptions::default()).unwrap();
    cluster.create(Kind::Service, service("b", asked())).unwrap();
    let external = json!({"spec": {"type": "ExternalName", "externalName": "example.com"}});
    let external = cluster.patch(Kind::Service, "b", Part::Main, external).unwrap();
    assert_eq!(external["spec"].get("clusterIP"), None);
    cluster.create(Kind::Service, service("c", asked())).unwrap();
    says(
        &cluster
            .patch(Kind::Service, "c", Part::Main, json!({"spec": {"clusterIP": "10.250.0.8"}}))
            .unwrap_err(),
        expect![[
            r#"422 Invalid: Service "c" is invalid: spec.clusterIPs: Invalid value: ["10.250.0.9"]: first value must match `clusterIP`"#
        ]],
    );
}
