//! Which address a service gets and, where it is to be reached from outside, which ports of the node.
//!
//! What is free is looked for from a place that depends on the service's name, so that a service that is made anew
//! mostly gets the address that it had.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use krafla_schema::field::FieldError;
use krafla_schema::object;
use serde_json::{Map, Value, json};

/// The first two numbers of every service's address.
const NETWORK: [u8; 2] = [10, 250];
/// The last two numbers, as one: the first address is the network's own, the last one is for everybody.
const ADDRESSES: RangeInclusive<u16> = 1..=u16::MAX - 1;
const NODE_PORTS: RangeInclusive<u16> = 30_000..=32_767;
const HEALTH_CHECK_PORT: &str = "healthCheckNodePort";

/// Addresses and ports that services have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Addresses.
    pub addresses: BTreeSet<String>,
    /// Ports of the node.
    pub ports: BTreeSet<u16>,
}

impl Taken {
    /// What a service has.
    pub fn by(service: &Value) -> Taken {
        let address = object::text_at(service, "spec.clusterIP");
        let ports = object::at(service, "/spec/ports").as_array().into_iter().flatten();
        Taken {
            addresses: Some(address).filter(|address| is_address(address)).into_iter().collect(),
            ports: ports.filter_map(node_port).chain(health_check_port(service)).collect(),
        }
    }

    /// What others have too.
    pub fn add(&mut self, other: &Taken) {
        self.addresses.extend(other.addresses.iter().cloned());
        self.ports.extend(&other.ports);
    }

    /// What is given back.
    pub fn remove(&mut self, other: &Taken) {
        self.addresses.retain(|address| !other.addresses.contains(address));
        self.ports.retain(|port| !other.ports.contains(port));
    }
}

/// Gives a service what it lacks, and says what it wants but cannot have. `taken` is what others have; what it had
/// itself it keeps.
pub fn give(taken: &Taken, service: &mut Value, old: Option<&Value>) -> Vec<FieldError> {
    let kind = object::text_at(service, "spec.type");
    if kind == "ExternalName" {
        return Vec::new();
    }
    let own = old.map(Taken::by).unwrap_or_default();
    let spread = spread(&format!("{}/{}", object::namespace(service), object::name(service)));
    let is_given_ports = match kind.as_str() {
        "NodePort" => true,
        "LoadBalancer" => object::at(service, "/spec/allocateLoadBalancerNodePorts") != false,
        _ => false,
    };
    let spec = object::part(service, "spec");
    let mut errors = Vec::from_iter(give_address(taken, &own, spread, spec).err());
    errors.extend(refuse_ports(taken, &own, spec));
    if is_given_ports {
        errors.extend(give_ports(taken, spread, spec).err());
    }
    let is_local = spec.get("externalTrafficPolicy").is_some_and(|policy| policy == "Local");
    if kind == "LoadBalancer" && is_local {
        give_health_check_port(taken, spread, spec);
    }
    errors
}

/// The port at which nodes say whether they have a pod of the service. If none is left, its absence is refused later.
fn give_health_check_port(taken: &Taken, spread: usize, spec: &mut Map<String, Value>) {
    let asked: BTreeSet<u16> =
        spec.get("ports").and_then(Value::as_array).into_iter().flatten().filter_map(node_port).collect();
    let mut free =
        from_place(NODE_PORTS, spread).filter(|port| !taken.ports.contains(port) && !asked.contains(port));
    let slot = spec.entry(HEALTH_CHECK_PORT).or_insert(Value::Null);
    if slot.as_i64().unwrap_or(0) == 0
        && let Some(port) = free.next()
    {
        *slot = port.into();
    }
}

fn give_address(
    taken: &Taken,
    own: &Taken,
    spread: usize,
    spec: &mut Map<String, Value>,
) -> Result<(), FieldError> {
    let asked = spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_listed = spec.get("clusterIPs").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let is_readable = |asked: &str| !is_address(asked) || asked.parse::<std::net::IpAddr>().is_ok();
    if !asked.is_empty() && !is_listed {
        spec.insert("clusterIPs".into(), json!([asked]));
    }
    let address = match asked.as_str() {
        // What contradicts itself, or is no address, is refused with everything else that is wrong.
        "" if is_listed => return Ok(()),
        "" => free_address(taken, spread)?,
        asked if is_readable(asked) => asked_address(taken, own, asked)?,
        asked => asked.to_owned(),
    };
    if !is_listed {
        spec.insert("clusterIPs".into(), json!([address]));
    }
    spec.insert("clusterIP".into(), json!(address));
    spec.entry("ipFamilies").or_insert_with(|| json!(["IPv4"]));
    spec.entry("ipFamilyPolicy").or_insert_with(|| json!("SingleStack"));
    Ok(())
}

fn free_address(taken: &Taken, spread: usize) -> Result<String, FieldError> {
    let [first, second] = NETWORK;
    let mut candidates = from_place(ADDRESSES, spread).map(|number| {
        let [third, fourth] = number.to_be_bytes();
        format!("{first}.{second}.{third}.{fourth}")
    });
    let full = || cannot_allocate("", "failed to allocate a serviceIP: range is full");
    candidates.find(|address| !taken.addresses.contains(address)).ok_or_else(full)
}

/// An address that the author of a service wants; a service that is only a name in DNS wants none.
fn asked_address(taken: &Taken, own: &Taken, asked: &str) -> Result<String, FieldError> {
    let is_ours = |address: Ipv4Addr| address.octets().starts_with(&NETWORK);
    let why = if !is_address(asked) || own.addresses.contains(asked) {
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

fn is_address(asked: &str) -> bool {
    !matches!(asked, "" | "None")
}

fn cannot_allocate(asked: &str, why: &str) -> FieldError {
    FieldError::invalid("spec.clusterIPs", json!([asked]), why)
}

/// Ports that the author of a service wants and cannot have.
fn refuse_ports(taken: &Taken, own: &Taken, spec: &Map<String, Value>) -> Vec<FieldError> {
    let ports = spec.get("ports").and_then(Value::as_array).into_iter().flatten().enumerate();
    let refused = ports.filter_map(|(index, port)| {
        let asked = port["nodePort"].as_i64().filter(|asked| *asked != 0)?;
        let (first, last) = NODE_PORTS.into_inner();
        let why = match node_port(port).filter(|asked| NODE_PORTS.contains(asked)) {
            None => {
                format!("provided port is not in the valid range. The range of valid ports is {first}-{last}")
            }
            Some(asked) if taken.ports.contains(&asked) && !own.ports.contains(&asked) => {
                "provided port is already allocated".to_owned()
            }
            Some(_) => return None,
        };
        Some(FieldError::invalid(format!("spec.ports[{index}].nodePort"), asked, why))
    });
    refused.collect()
}

fn give_ports(taken: &Taken, spread: usize, spec: &mut Map<String, Value>) -> Result<(), FieldError> {
    let Some(ports) = spec.get_mut("ports").and_then(Value::as_array_mut) else { return Ok(()) };
    let asked: BTreeSet<u16> = ports.iter().filter_map(node_port).collect();
    let is_free = |port: &u16| !taken.ports.contains(port) && !asked.contains(port);
    let mut free = from_place(NODE_PORTS, spread).filter(is_free);
    for (index, port) in ports.iter_mut().enumerate() {
        if port["nodePort"].as_i64().unwrap_or(0) == 0 {
            let field = format!("spec.ports[{index}].nodePort");
            let full = || FieldError::invalid(field, 0, "failed to allocate a nodePort: range is full");
            object::set(port, "nodePort", free.next().ok_or_else(full)?);
        }
    }
    Ok(())
}

fn health_check_port(service: &Value) -> Option<u16> {
    let port = service.get("spec")?.get(HEALTH_CHECK_PORT)?.as_u64()?;
    u16::try_from(port).ok().filter(|port| *port != 0)
}

fn node_port(port: &Value) -> Option<u16> {
    port["nodePort"].as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0)
}

/// All numbers of a range, beginning at one of them and ending before it.
fn from_place(range: RangeInclusive<u16>, place: usize) -> impl Iterator<Item = u16> {
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
    use expect_test::{Expect, expect};

    use super::*;

    /// What becomes of a service beside others that have 10.250.0.9 and port 30009.
    fn check(spec: Value, old: Option<Value>, expected: Expect) {
        let taken = Taken { addresses: ["10.250.0.9".to_owned()].into(), ports: [30_009].into() };
        let mut service = json!({"metadata": {"namespace": "ns", "name": "s"}, "spec": spec});
        let errors = give(&taken, &mut service, old.map(|spec| json!({"spec": spec})).as_ref());
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let ports = object::at(&service, "/spec/ports").as_array().into_iter().flatten();
        let ports: Vec<&Value> = ports.map(|port| &port["nodePort"]).collect();
        let outcome = match errors.as_slice() {
            [] => format!("{} {ports:?}", object::at(&service, "/spec/clusterIP")),
            errors => errors.join("\n"),
        };
        expected.assert_eq(&outcome);
    }

    #[test]
    fn a_service_gets_what_it_lacks() {
        check(json!({"ports": [{"port": 1}]}), None, expect![[r#""10.250.123.13" [Null]"#]]);
        check(
            json!({"type": "NodePort", "ports": [{"port": 1}, {"nodePort": 30_008}]}),
            None,
            expect![[r#""10.250.123.13" [Number(30104), Number(30008)]"#]],
        );
        check(json!({"clusterIP": "None"}), None, expect![[r#""None" []"#]]);
        check(json!({"type": "ExternalName"}), None, expect!["null []"]);
        let closed = json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": [{}]});
        check(closed, None, expect![[r#""10.250.123.13" [Null]"#]]);
    }

    #[test]
    fn what_others_have_or_nobody_can_have_is_refused_all_at_once() {
        let ports = json!([{"nodePort": 30_009}, {"nodePort": 80}, {"nodePort": 30_010}]);
        let wanted = json!({"type": "NodePort", "clusterIP": "10.250.0.9", "ports": ports});
        check(
            wanted.clone(),
            None,
            expect![[r#"
                spec.clusterIPs: Invalid value: ["10.250.0.9"]: failed to allocate IP 10.250.0.9: provided IP is already allocated
                spec.ports[0].nodePort: Invalid value: 30009: provided port is already allocated
                spec.ports[1].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767"#]],
        );
        check(
            json!({"clusterIP": "1.2.3.4"}),
            None,
            expect![[
                r#"spec.clusterIPs: Invalid value: ["1.2.3.4"]: failed to allocate IP 1.2.3.4: the provided network does not match the current range"#
            ]],
        );
    }

    #[test]
    fn a_service_keeps_what_it_had() {
        let had = json!({"type": "NodePort", "clusterIP": "10.250.0.9", "ports": [{"nodePort": 30_009}]});
        check(had.clone(), Some(had), expect![[r#""10.250.0.9" [Number(30009)]"#]]);
        let had = json!({"type": "ExternalName"});
        check(
            json!({"clusterIP": "10.250.0.9"}),
            Some(had),
            expect![[
                r#"spec.clusterIPs: Invalid value: ["10.250.0.9"]: failed to allocate IP 10.250.0.9: provided IP is already allocated"#
            ]],
        );
    }

    #[test]
    fn every_number_is_given_before_none_is_left() {
        let all: BTreeSet<u16> = from_place(1..=8, 6).collect();
        assert_eq!(from_place(1..=8, 6).next(), Some(7));
        assert_eq!(all.len(), 8);
        let taken = Taken { ports: NODE_PORTS.collect(), ..Taken::default() };
        let mut spec = Map::from_iter([("ports".to_owned(), json!([{"port": 1}]))]);
        let full = give_ports(&taken, 0, &mut spec).unwrap_err();
        assert_eq!(full.detail, "failed to allocate a nodePort: range is full");
    }
}
