//! Where a webhook listens: an address, or one of the pods behind a service.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use krafla_admission::webhook::{Client, Service};
use krafla_api::Key;
use krafla_schema::object;
use serde_json::Value;

use crate::ops::Api;
use crate::selector::LabelSelector;

/// Where a webhook listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The address as messages show it and as the request line has it, with the time that the webhook has.
    pub url: String,
    /// The host to connect to, as a name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The name that the server's certificate must be for.
    pub server_name: String,
    /// Who vouches for the server, as PEM; the machine's own authorities if it is empty.
    pub authorities: Vec<u8>,
}

impl Destination {
    /// Where a webhook that may take `timeout` seconds listens now.
    pub(crate) fn find(api: &Api, client: &Client, timeout: u32) -> Result<Destination, String> {
        let Client { url, service, ca_bundle } = client;
        let authorities = STANDARD.decode(ca_bundle).map_err(|error| format!("caBundle: {error}"))?;
        match (url, service) {
            (Some(url), _) => at_url(url, timeout, authorities),
            (None, Some(service)) => at_service(api, service, timeout, authorities),
            (None, None) => Err("neither url nor service is configured".into()),
        }
    }
}

fn at_url(url: &str, timeout: u32, authorities: Vec<u8>) -> Result<Destination, String> {
    let uri: http::Uri = url.parse().map_err(|error| format!("{url:?}: {error}"))?;
    let host = uri.host().ok_or_else(|| format!("{url:?} has no host"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok(Destination {
        url: format!("{url}?timeout={timeout}s"),
        port: uri.port_u16().unwrap_or(443),
        server_name: host.clone(),
        host,
        authorities,
    })
}

fn at_service(
    api: &Api,
    service: &Service,
    timeout: u32,
    authorities: Vec<u8>,
) -> Result<Destination, String> {
    let Service { namespace, name, path, port } = service;
    let key = Key::new(namespace, name);
    let stored = api.store().get(&"services".into(), &key);
    let stored = stored.ok_or_else(|| format!("service {name:?} not found"))?;
    let stored: Value = serde_json::from_slice(&stored.bytes).map_err(|error| error.to_string())?;
    let port = port.unwrap_or(443);
    let (host, target) = endpoint(api, &key, &stored, port)?;
    let server_name = format!("{name}.{namespace}.svc");
    let path = path.as_deref().filter(|path| !path.is_empty()).unwrap_or("/");
    Ok(Destination {
        url: format!("https://{server_name}:{port}{path}?timeout={timeout}s"),
        host,
        port: target,
        server_name,
        authorities,
    })
}

/// The address and port of a ready pod behind a port of a service. On one machine nobody routes a service's own address.
fn endpoint(api: &Api, key: &Key, service: &Value, port: u16) -> Result<(String, u16), String> {
    let ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    let mut ports = ports.filter(|candidate| candidate["port"].as_u64() == Some(u64::from(port)));
    let no_port = || format!("no service port {port} found for service {:?}", &*key.name);
    let target = ports.next().ok_or_else(no_port)?.get("targetPort").cloned().unwrap_or(port.into());
    let selector = object::at(service, "/spec/selector").as_object().cloned().unwrap_or_default();
    let selector: Vec<String> =
        selector.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?))).collect();
    let selector = LabelSelector::parse(&selector.join(",")).map_err(|status| status.message)?;
    let none = || format!("no endpoints available for service {:?}", &*key.name);
    if selector.is_empty() {
        return Err(none());
    }
    let pods = api.store().snapshot(&"pods".into());
    let pods = pods.range(Some(&key.namespace), None).filter(|pod| selector.matches(&pod.meta.labels));
    let mut pods = pods.filter_map(|entry| serde_json::from_slice::<Value>(&entry.bytes).ok());
    pods.find_map(|pod| Some((ready_address(&pod)?, port_of(&pod, &target)?))).ok_or_else(none)
}

fn ready_address(pod: &Value) -> Option<String> {
    let conditions = pod.pointer("/status/conditions")?.as_array()?;
    let is_ready =
        conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    let address = object::text_at(pod, "status.podIP");
    (is_ready && !address.is_empty() && !object::is_deleting(pod)).then_some(address)
}

/// A port by its number, or by the name that one of the pod's containers gives it.
fn port_of(pod: &Value, target: &Value) -> Option<u16> {
    if let Some(number) = target.as_u64() {
        return u16::try_from(number).ok();
    }
    let containers = pod.pointer("/spec/containers")?.as_array()?;
    let mut ports = containers.iter().filter_map(|container| container["ports"].as_array()).flatten();
    let port = ports.find(|port| port["name"] == *target)?;
    u16::try_from(port["containerPort"].as_u64()?).ok()
}
