//! Services get an address and, where they are to be reached from outside, ports of the node.
//!
//! An address is free if no service has it. Which free one a service gets depends on its name, so that two services that
//! are created at the same moment are not given the same one.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::ops::Range;

use serde_json::{Value, json};

use super::{Operation, Policy, Request};
use crate::field::FieldError;
use crate::object;
use crate::status::Status;

/// Gives addresses and ports to services.
pub(super) struct Addresses;

/// The first two numbers of every service's address.
const NETWORK: [u8; 2] = [10, 250];
const NODE_PORTS: Range<u16> = 30_000..32_768;

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
        let name = object::name(service).to_owned();
        let spread = spread(&format!("{}/{name}", object::namespace(service)));
        let refuse = |error: FieldError| Status::invalid(&request.resource.qualified_kind(), &name, &[error]);
        give_address(&taken, spread, object::part(service, "spec"), request.operation).map_err(refuse)?;
        if kind == "NodePort" || kind == "LoadBalancer" {
            give_node_ports(&taken, spread, object::part(service, "spec")).map_err(refuse)?;
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

fn give_address(
    taken: &Taken,
    spread: usize,
    spec: &mut serde_json::Map<String, Value>,
    operation: Operation,
) -> Result<(), FieldError> {
    let asked = spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default().to_owned();
    let address = match asked.as_str() {
        "" => free_address(taken, spread)?,
        asked if operation == Operation::Create => asked_address(taken, asked)?,
        asked => asked.to_owned(),
    };
    spec.insert("clusterIPs".into(), json!([address]));
    spec.insert("clusterIP".into(), json!(address));
    spec.entry("ipFamilies").or_insert_with(|| json!(["IPv4"]));
    spec.entry("ipFamilyPolicy").or_insert_with(|| json!("SingleStack"));
    Ok(())
}

fn free_address(taken: &Taken, spread: usize) -> Result<String, FieldError> {
    let [first, second] = NETWORK;
    let mut candidates = from_place(1..u16::MAX, spread).map(|number| {
        let [third, fourth] = number.to_be_bytes();
        format!("{first}.{second}.{third}.{fourth}")
    });
    let full = || cannot_allocate("", "failed to allocate a serviceIP: range is full");
    candidates.find(|address| !taken.addresses.contains(address)).ok_or_else(full)
}

/// An address that the author of a service wants; a service that is only a name in DNS wants none.
fn asked_address(taken: &Taken, asked: &str) -> Result<String, FieldError> {
    let is_ours = |address: Ipv4Addr| address.octets().starts_with(&NETWORK);
    let why = if asked == "None" {
        None
    } else if !asked.parse().is_ok_and(is_ours) {
        Some("the provided network does not match the current range")
    } else if taken.addresses.contains(asked) {
        Some("provided IP is already allocated")
    } else {
        None
    };
    match why {
        Some(why) => Err(cannot_allocate(asked, &format!("failed to allocate IP {asked}: {why}"))),
        None => Ok(asked.to_owned()),
    }
}

fn cannot_allocate(asked: &str, why: &str) -> FieldError {
    FieldError::invalid("spec.clusterIPs", json!([asked]), why)
}

fn give_node_ports(
    taken: &Taken,
    spread: usize,
    spec: &mut serde_json::Map<String, Value>,
) -> Result<(), FieldError> {
    let mut free = from_place(NODE_PORTS, spread).filter(|port| !taken.ports.contains(port));
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for (index, port) in ports.into_iter().flatten().enumerate() {
        if port["nodePort"].as_u64().unwrap_or(0) == 0 {
            let field = format!("spec.ports[{index}].nodePort");
            let full = || FieldError::invalid(field, 0, "failed to allocate a nodePort: range is full");
            object::set(port, "nodePort", free.next().ok_or_else(full)?);
        }
    }
    Ok(())
}

/// All numbers of a range, beginning at one of them and ending before it.
fn from_place(range: Range<u16>, place: usize) -> impl Iterator<Item = u16> {
    let first = place % range.len().max(1);
    range.clone().skip(first).chain(range.take(first))
}

/// A number that names spread evenly over (FNV-1a).
fn spread(name: &str) -> usize {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_given_before_none_is_left() {
        let all: BTreeSet<u16> = from_place(1..9, 6).collect();
        assert_eq!(from_place(1..9, 6).next(), Some(7));
        assert_eq!(all.len(), 8);
        let mut taken = Taken::default();
        let first = free_address(&taken, 3).unwrap();
        taken.addresses.insert(first.clone());
        assert_ne!(free_address(&taken, 3).unwrap(), first);
    }
}
