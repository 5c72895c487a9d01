//! Services get an address and, where they are to be reached from outside, ports of the node.
//!
//! An address is free if no service has it. Two services that are created at the same moment could be given the same one;
//! that is refused to the second, which tries again.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Policy, Request};
use crate::object;
use crate::status::Status;

/// Gives addresses and ports to services.
pub(super) struct Addresses;

/// The first two numbers of every service's address.
const NETWORK: [u8; 2] = [10, 250];
const NODE_PORTS: std::ops::Range<u16> = 30_000..32_768;

impl Policy for Addresses {
    fn mutate(&self, request: &Request<'_>, service: &mut Value) -> Result<(), Status> {
        if request.resource.storage.as_str() != "services" {
            return Ok(());
        }
        let kind = object::text_at(service, "spec.type");
        if kind == "ExternalName" {
            return Ok(());
        }
        let taken = Taken::of(request, object::uid(service));
        give_address(&taken, object::part(service, "spec"))?;
        if kind == "NodePort" || kind == "LoadBalancer" {
            give_node_ports(&taken, object::part(service, "spec"))?;
        }
        Ok(())
    }
}

/// What other services have.
#[derive(Default)]
struct Taken {
    addresses: BTreeSet<String>,
    ports: BTreeSet<u16>,
}

impl Taken {
    fn of(request: &Request<'_>, uid: &str) -> Taken {
        let mut taken = Taken::default();
        let others = request.api.store().snapshot(&request.resource.storage);
        for entry in others.entries.values().filter(|entry| *entry.uid.0 != *uid) {
            let Ok(other) = serde_json::from_slice::<Value>(&entry.bytes) else { continue };
            taken.addresses.insert(object::text_at(&other, "spec.clusterIP"));
            let ports = other.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
            let ports = ports.filter_map(|port| port["nodePort"].as_u64());
            taken.ports.extend(ports.filter_map(|port| u16::try_from(port).ok()));
        }
        taken
    }
}

fn give_address(taken: &Taken, spec: &mut serde_json::Map<String, Value>) -> Result<(), Status> {
    let asked = spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default().to_owned();
    let address = if asked.is_empty() {
        let [first, second] = NETWORK;
        let mut free = (1..u16::MAX).map(|number| {
            let [third, fourth] = number.to_be_bytes();
            format!("{first}.{second}.{third}.{fourth}")
        });
        let full = || Status::internal("failed to allocate a serviceIP: range is full");
        free.find(|address| !taken.addresses.contains(address)).ok_or_else(full)?
    } else {
        asked
    };
    spec.insert("clusterIPs".into(), json!([address]));
    spec.insert("clusterIP".into(), json!(address));
    spec.entry("ipFamilies").or_insert_with(|| json!(["IPv4"]));
    spec.entry("ipFamilyPolicy").or_insert_with(|| json!("SingleStack"));
    Ok(())
}

fn give_node_ports(taken: &Taken, spec: &mut serde_json::Map<String, Value>) -> Result<(), Status> {
    let mut free = NODE_PORTS.filter(|port| !taken.ports.contains(port));
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if port["nodePort"].as_u64().unwrap_or(0) == 0 {
            let full = || Status::internal("failed to allocate a nodePort: range is full");
            object::set(port, "nodePort", free.next().ok_or_else(full)?);
        }
    }
    Ok(())
}
