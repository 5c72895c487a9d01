//! Services.

pub mod address;

use krafla_admission::builtin::service;
use krafla_api::Time;
use krafla_schema::field::{self, FieldError};
use krafla_schema::object;
use serde_json::Value;

use super::{Rules, default_to};

/// Services.
pub struct Service;

impl Rules for Service {
    fn default(&self, service: &mut Value) {
        service::default(service);
    }

    fn on_create(&self, service: &mut Value, _now: Time) {
        object::remove(service, "status");
    }

    /// The address, once given, stays for as long as the service is of a kind that has one.
    fn on_update(&self, service: &mut Value, old: &Value) {
        let is_of = |service: &Value, kind: &str| object::at(service, "/spec/type") == kind;
        if is_of(service, "ExternalName") {
            return drop_unchanged(service, old, &ADDRESS);
        }
        if !is_of(service, "LoadBalancer") {
            drop_unchanged(service, old, &["allocateLoadBalancerNodePorts"]);
        }
        if is_exposed(old) && !is_exposed(service) {
            drop_node_ports(service);
        }
        for field in ADDRESS {
            if let Some(value) = old.get("spec").and_then(|spec| spec.get(field)).cloned() {
                default_to(object::part(service, "spec"), field, value);
            }
        }
    }

    fn warnings(&self, service: &Value) -> Vec<String> {
        service::warnings(service)
    }

    fn warnings_of_change(&self, service: &Value, _old: &Value) -> Vec<String> {
        service::warnings(service)
    }

    fn validate(&self, service: &Value) -> Vec<FieldError> {
        field::found(service::validate(service))
    }

    fn validate_update(&self, service: &Value, old: &Value) -> Vec<FieldError> {
        field::found(service::validate_update(service, old))
    }

    fn validate_status(&self, service: &Value, old: &Value) -> Vec<FieldError> {
        field::found(service::validate_status(service, old))
    }
}

/// What says where a service can be reached in the cluster.
const ADDRESS: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];

/// Whether the service can be reached at the nodes.
fn is_exposed(service: &Value) -> bool {
    service.pointer("/spec/type").is_some_and(|kind| kind == "NodePort" || kind == "LoadBalancer")
}

/// Takes away what means nothing any more to a service of another kind, unless its author has just said it.
fn drop_unchanged(service: &mut Value, old: &Value, fields: &[&str]) {
    let spec = object::part(service, "spec");
    for field in fields {
        if spec.get(*field).is_some_and(|value| old["spec"].get(*field) == Some(value)) {
            spec.remove(*field);
        }
    }
}

/// What is no longer to be reached at the nodes gives their ports back.
fn drop_node_ports(service: &mut Value) {
    let spec = object::part(service, "spec");
    spec.remove("externalTrafficPolicy");
    spec.remove("healthCheckNodePort");
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        object::remove(port, "nodePort");
    }
}
