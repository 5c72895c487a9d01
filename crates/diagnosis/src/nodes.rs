//! Why nodes do not take a pod, with the nodes at hand. A scheduler only counts them.

use krafla_api::meta::LabelSelectorRequirement;
use krafla_api::{Quantity, Time};
use krafla_plan::placement::is_met;
use krafla_why::{Lack, Name, Reason};
use serde_json::Value;

use crate::amounts::{allocatable, asked, is_cordoned, is_open, is_ready, used};
use crate::facts::{Facts, field, list, pairs, text};
use crate::resource::Resource;
use crate::{Link, Subject};

/// How many nodes a sentence names.
const NAMED_MAX: usize = 3;

/// What a scheduler's reason means for a pod: the obstacle of most nodes first.
pub(crate) fn details(facts: &Facts, pod: &Value, reason: &Reason, since: Option<Time>) -> Vec<Link> {
    let Reason::NoNode { lacks, .. } = reason.root() else { return Vec::new() };
    let mut counted: Vec<(u32, &Lack)> =
        lacks.0.iter().map(|(n, lack)| (n.unwrap_or(u32::MAX), lack)).collect();
    counted.sort_by_key(|(n, _)| std::cmp::Reverse(*n));
    let about = Subject::new(Resource::Pod, pod);
    let found = counted.into_iter().filter_map(|(_, lack)| detail(facts, pod, lack));
    found.map(|reason| Link { about: about.clone(), reason, since }).collect()
}

/// Why a pod fits no node, if no scheduler says so.
pub(crate) fn without_scheduler(facts: &Facts) -> Option<Reason> {
    let has_nodes = facts.all(Resource::Node).next().is_some();
    (!has_nodes && facts.is_missing(Resource::Node, "", "any")).then_some(Reason::NoNodes)
}

fn detail(facts: &Facts, pod: &Value, lack: &Lack) -> Option<Reason> {
    let spec = field(pod, "spec");
    match lack {
        Lack::Insufficient { resource } => short(facts, spec, resource.as_str()),
        Lack::TooManyPods => {
            let most = facts.all(Resource::Node).map(|node| allocatable(node, "pods")).max()?;
            Some(Reason::NodesCrowded { most: most.to_string().into() })
        }
        Lack::Taints | Lack::Taint { .. } => tainted(facts, spec),
        Lack::Selector => Some(unmatched(facts, spec)),
        Lack::Cordoned => Some(Reason::NodesCordoned { nodes: named(facts, is_cordoned)? }),
        Lack::NotReady => Some(Reason::NodesNotReady { nodes: named(facts, |node| !is_ready(node))? }),
        Lack::Ports => {
            let ports = list(spec, "containers").flat_map(|it| list(it, "ports"));
            let port = ports.filter_map(|it| it.get("hostPort")?.as_u64()).next()?;
            Some(Reason::PortTaken { port: u32::try_from(port).ok()? })
        }
        Lack::PodAffinity => Some(Reason::PodsUnmatched { rule: "podAffinity".to_owned() }),
        Lack::PodAntiAffinity | Lack::ExistingAntiAffinity => {
            Some(Reason::PodsUnmatched { rule: "podAntiAffinity".to_owned() })
        }
        Lack::Spread | Lack::SpreadLabel => {
            Some(Reason::PodsUnmatched { rule: "topologySpreadConstraints".to_owned() })
        }
        Lack::NotFound { kind, name } if kind.as_str() == "persistentvolumeclaim" => {
            Some(Reason::ClaimMissing { pod: text(pod, "metadata.name").into(), claim: name.clone() })
        }
        Lack::ClaimUnbound => {
            let mut claims = list(spec, "volumes").map(|it| text(it, "persistentVolumeClaim.claimName"));
            let claim = claims.find(|name| !name.is_empty())?;
            Some(Reason::ClaimPending { claim: claim.into() })
        }
        Lack::NotFound { .. }
        | Lack::Leaving
        | Lack::TooManyNames
        | Lack::VolumeElsewhere
        | Lack::Other { .. } => None,
    }
}

/// What a pod needs of a resource, and what nodes have.
pub(crate) fn short(facts: &Facts, pod_spec: &Value, resource: &str) -> Option<Reason> {
    let need = asked(pod_spec, resource);
    let nodes: Vec<&Value> = facts.all(Resource::Node).filter(|node| is_open(node)).collect();
    let (node, largest) = nodes
        .iter()
        .map(|node| (text(node, "metadata.name"), allocatable(node, resource)))
        .max_by_key(|(_, amount)| *amount)?;
    let (need_text, resource_name): (Name, Name) = (need.to_string().into(), resource.into());
    if largest.is_zero() {
        return Some(Reason::ResourceUnknown { resource: resource_name });
    }
    if need > largest {
        return Some(Reason::LargerThanNodes {
            need: need_text,
            resource: resource_name,
            node: node.into(),
            largest: largest.to_string().into(),
        });
    }
    let used = used(facts, resource);
    let free = nodes.iter().map(|node| {
        let taken = used.get(text(node, "metadata.name")).copied().unwrap_or(Quantity::ZERO);
        (allocatable(node, resource) - taken).max(Quantity::ZERO)
    });
    let free = free.max().unwrap_or(Quantity::ZERO);
    Some(Reason::NodesFull { need: need_text, resource: resource_name, free: free.to_string().into() })
}

fn named(facts: &Facts, is_it: impl Fn(&Value) -> bool) -> Option<Vec<Name>> {
    let nodes = facts.all(Resource::Node).filter(|node| is_it(node)).take(NAMED_MAX);
    let names: Vec<Name> = nodes.map(|node| text(node, "metadata.name").into()).collect();
    (!names.is_empty()).then_some(names)
}

fn tainted(facts: &Facts, spec: &Value) -> Option<Reason> {
    let repels = |taint: &&Value| {
        matches!(text(taint, "effect"), "NoSchedule" | "NoExecute") && !is_tolerated(taint, spec)
    };
    let taint_of = |node: &'_ Value| list(node, "spec.taints").find(repels).map(shown);
    let taint = facts.all(Resource::Node).find_map(taint_of)?;
    let nodes = named(facts, |node| list(node, "spec.taints").filter(repels).any(|it| shown(it) == taint))?;
    Some(Reason::Tainted { nodes, taint })
}

fn shown(taint: &Value) -> String {
    let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
    if value.is_empty() { format!("{key}:{effect}") } else { format!("{key}={value}:{effect}") }
}

fn is_tolerated(taint: &Value, spec: &Value) -> bool {
    list(spec, "tolerations").any(|toleration| {
        let (key, effect) = (text(toleration, "key"), text(toleration, "effect"));
        let same_key = key == text(taint, "key");
        (effect.is_empty() || effect == text(taint, "effect"))
            && match text(toleration, "operator") {
                "Exists" => key.is_empty() || same_key,
                _ => same_key && text(toleration, "value") == text(taint, "value"),
            }
    })
}

/// The part of a pod's selector or affinity that no node satisfies.
fn unmatched(facts: &Facts, spec: &Value) -> Reason {
    let labels = |node: &Value, key: &str| {
        field(node, "metadata.labels").get(key).and_then(Value::as_str).map(str::to_owned)
    };
    let mut wanted = pairs(spec, "nodeSelector").filter_map(|(key, value)| Some((key, value.as_str()?)));
    let missing = wanted.find(|(key, value)| {
        !facts.all(Resource::Node).any(|node| labels(node, key).as_deref() == Some(*value))
    });
    if let Some((key, value)) = missing {
        return Reason::SelectorUnmatched { wanted: format!("{key}={value}") };
    }
    if let Some((key, value)) = pairs(spec, "nodeSelector").next() {
        let is_matched = facts.all(Resource::Node).any(|node| {
            pairs(spec, "nodeSelector").all(|(key, value)| labels(node, key).as_deref() == value.as_str())
        });
        if !is_matched {
            return Reason::SelectorUnmatched {
                wanted: format!("{key}={}", value.as_str().unwrap_or_default()),
            };
        }
    }
    Reason::AffinityUnmatched
}

/// A label that would satisfy a pod's required affinity, if one label is enough.
pub(crate) fn label_for_affinity(facts: &Facts, spec: &Value) -> Option<(String, String)> {
    const PATH: &str =
        "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    let node = facts.all(Resource::Node).find(|node| is_open(node))?;
    let term = list(spec, PATH).next()?;
    let mut unmet = list(term, "matchExpressions").filter_map(|it| {
        let requirement: LabelSelectorRequirement = serde_json::from_value(it.clone()).ok()?;
        let value = field(node, "metadata.labels").get(&requirement.key).and_then(Value::as_str);
        (!is_met(&requirement, value)).then_some(requirement)
    });
    let requirement = unmet.next()?;
    let value = match requirement.operator.as_str() {
        "In" => requirement.values.first()?.clone(),
        "Exists" => "true".to_owned(),
        _ => return None,
    };
    unmet.next().is_none().then_some((requirement.key, value))
}
