//! Amounts of resources: what pods ask for, what nodes have, what queues may use.
//!
//! Resource names are looked up once, in [`Names`]; after that an amount is a short row of numbers and every comparison
//! is a few integer operations. That is what makes a decision over thousands of pods and nodes cheap.
//!
//! Units: thousandths for cpu, whole units (bytes, devices, pods) for everything else, rounded up. Absurd numbers
//! saturate; they never wrap and never panic.

use std::collections::BTreeMap;

use krafla_api::quantity::{Notation, Quantity};
use krafla_api::volcano::ResourceList;
use krafla_plan::object::{Container, PodSpec};
use krafla_plan::vcjob::pod_requests;
use krafla_why::Lack;

/// The place of cpu in a row.
const CPU: usize = 0;
/// The place of memory in a row.
const MEMORY: usize = 1;
/// The place of pods in a row: every pod takes one.
const PODS: usize = 2;
/// The resources that every cluster has, in the order of their places.
const WELL_KNOWN: [&str; 3] = ["cpu", "memory", "pods"];
/// More names than any cluster has, so that pods cannot fill the memory with names. What nodes and queues have of further
/// ones is ignored.
const NAMES_MAX: usize = 256;
/// The place of all further names that pods ask for. No node has any of it, so such a pod waits and says so.
const BEYOND: usize = NAMES_MAX;

/// The resource names that occur, each with its place in a row of amounts.
#[derive(Debug)]
pub(crate) struct Names {
    places: BTreeMap<String, usize>,
    names: Vec<String>,
}

impl Names {
    pub(crate) fn new() -> Names {
        let names: Vec<String> = WELL_KNOWN.map(str::to_owned).into();
        Names { places: names.iter().cloned().zip(0..).collect(), names }
    }

    /// The name that belongs to a place.
    pub(crate) fn name(&self, place: usize) -> &str {
        let unknown = if place == BEYOND { "resources of more than 256 names" } else { "?" };
        self.names.get(place).map_or(unknown, String::as_str)
    }

    /// An amount as people write it.
    pub(crate) fn amount(&self, place: usize, units: i64) -> String {
        quantity(self.name(place), units).to_string()
    }

    /// What to say when a node has too little of a resource.
    pub(crate) fn shortage(&self, place: usize) -> Lack {
        match place {
            PODS => Lack::TooManyPods,
            BEYOND => Lack::TooManyNames,
            _ => Lack::Insufficient { resource: self.name(place).into() },
        }
    }

    fn place(&mut self, name: &str) -> Option<usize> {
        // What nearly every pod asks for need not be looked up.
        match name {
            "cpu" => return Some(CPU),
            "memory" => return Some(MEMORY),
            _ => {}
        }
        if let Some(place) = self.places.get(name) {
            return Some(*place);
        }
        let place = self.names.len();
        if !is_schedulable(name) || place >= NAMES_MAX {
            return None;
        }
        self.places.insert(name.to_owned(), place);
        self.names.push(name.to_owned());
        Some(place)
    }

    /// A resource list that says what there is: a node's allocatable, or a queue's part of it.
    pub(crate) fn amounts(&mut self, list: &ResourceList) -> Amounts {
        let mut amounts = Amounts(Vec::with_capacity(WELL_KNOWN.len()));
        for (name, quantity) in list {
            if let Some(place) = self.place(name) {
                amounts.set(place, units(name, quantity));
            }
        }
        amounts
    }

    /// A resource list that says what is asked for: a container's requests, or a PodGroup's `minResources`.
    pub(crate) fn needs(&mut self, list: &ResourceList) -> Amounts {
        let mut needs = Amounts(Vec::with_capacity(WELL_KNOWN.len()));
        self.put(&mut needs, list);
        needs
    }

    /// The same as limits.
    pub(crate) fn limits(&mut self, list: &ResourceList) -> Limits {
        let places =
            list.iter().filter_map(|(name, quantity)| Some((self.place(name)?, units(name, quantity))));
        Limits(places.collect())
    }

    /// Amounts as a resource list; what there is nothing of is left out.
    pub(crate) fn list(&self, amounts: &Amounts) -> ResourceList {
        let some = self.names.iter().enumerate().filter(|(place, _)| amounts.get(*place) > 0);
        some.map(|(place, name)| (name.clone(), quantity(name, amounts.get(place)))).collect()
    }

    fn put(&mut self, amounts: &mut Amounts, list: &ResourceList) {
        for (name, quantity) in list {
            match self.place(name) {
                Some(place) => amounts.set(place, units(name, quantity)),
                None if !is_schedulable(name) => {}
                None => amounts.set(BEYOND, amounts.get(BEYOND).max(units(name, quantity))),
            }
        }
    }

    /// What a pod asks for, and one pod. Most are a container and nothing more, and that is quickly said.
    pub(crate) fn of_pod(&mut self, spec: &PodSpec) -> Amounts {
        let PodSpec { containers, init_containers, overhead, resources, .. } = spec;
        let is_plain = init_containers.is_empty() && overhead.is_empty() && resources.is_none();
        let mut needs = match containers.as_slice() {
            [only] if is_plain => self.of_container(only),
            _ => self.needs(&pod_requests(spec)),
        };
        needs.set(PODS, 1);
        needs
    }

    /// A container's requests; where only a limit is given, the limit is the request.
    fn of_container(&mut self, container: &Container) -> Amounts {
        let mut amounts = self.needs(&container.resources.limits);
        self.put(&mut amounts, &container.resources.requests);
        amounts
    }
}

/// Quotas count objects and limits beside the resources themselves (`count/pods`, `requests.cpu`, `limits.memory`); no
/// node offers those.
fn is_schedulable(name: &str) -> bool {
    !["count/", "requests.", "limits."].iter().any(|prefix| name.starts_with(prefix))
}

fn units(name: &str, quantity: &Quantity) -> i64 {
    let units = if name == "cpu" { quantity.milli_value() } else { quantity.value() };
    units.max(0)
}

fn quantity(name: &str, units: i64) -> Quantity {
    match name {
        "cpu" => Quantity::from_milli(units),
        "memory" => Quantity::from_units(units).in_notation(Notation::Binary),
        _ => Quantity::from_units(units),
    }
}

/// An amount of each resource; places that are not there are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Amounts(Vec<i64>);

impl Amounts {
    /// How many places there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, place: usize) -> i64 {
        self.0.get(place).copied().unwrap_or(0)
    }

    /// The places of which there is some.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().filter(|(_, amount)| **amount > 0).map(|(place, _)| place)
    }

    /// Whether there is nothing of anything.
    pub(crate) fn is_nothing(&self) -> bool {
        self.0.iter().all(|amount| *amount == 0)
    }

    pub(crate) fn set(&mut self, place: usize, amount: i64) {
        if place >= self.0.len() {
            self.0.resize(place + 1, 0);
        }
        if let Some(old) = self.0.get_mut(place) {
            *old = amount;
        }
    }

    /// Adds another amount to this one.
    pub(crate) fn add(&mut self, other: &Amounts) {
        self.combine(other, i64::saturating_add);
    }

    /// Adds another amount to this one; what is overdrawn there counts as nothing.
    pub(crate) fn add_what_is_there(&mut self, other: &Amounts) {
        self.combine(other, |mine, theirs| mine.saturating_add(theirs.max(0)));
    }

    /// Takes another amount away from this one; what is overdrawn becomes negative.
    pub(crate) fn sub(&mut self, other: &Amounts) {
        self.combine(other, i64::saturating_sub);
    }

    /// Takes the larger of the two amounts of each resource.
    pub(crate) fn raise_to(&mut self, other: &Amounts) {
        self.combine(other, i64::max);
    }

    /// What is overdrawn counts as nothing.
    pub(crate) fn clear_overdrawn(&mut self) {
        self.0.iter_mut().for_each(|amount| *amount = (*amount).max(0));
    }

    /// This much percent of it.
    pub(crate) fn percent(&self, percent: i64) -> Amounts {
        Amounts(self.0.iter().map(|amount| amount.saturating_mul(percent) / 100).collect())
    }

    fn combine(&mut self, other: &Amounts, operation: impl Fn(i64, i64) -> i64) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = operation(*mine, *theirs);
        }
    }

    /// This as a part of `total`, in millionths: the mean over cpu and memory.
    pub(crate) fn share_of(&self, total: &Amounts) -> u32 {
        self.share_beside(Unasked::default(), total)
    }

    /// The same of what is left beside pods that have not asked for anything.
    pub(crate) fn share_beside(&self, Unasked { cpu, memory }: Unasked, total: &Amounts) -> u32 {
        let share = |place| {
            let unasked = if place == CPU { cpu } else { memory };
            let part = i128::from(self.get(place).saturating_sub(unasked).max(0));
            let whole = i128::from(total.get(place));
            if whole <= 0 { 0 } else { part.saturating_mul(1_000_000) / whole }
        };
        u32::try_from((share(CPU) + share(MEMORY)) / 2).unwrap_or(u32::MAX)
    }

    /// Whether all of this is free. What is not asked for is not missed, even where a node is overdrawn.
    pub(crate) fn fits_in(&self, free: &Amounts) -> bool {
        self.shortages(free).next().is_none()
    }

    /// The places of which more is asked than is free.
    pub(crate) fn shortages<'a>(&'a self, free: &'a Amounts) -> impl Iterator<Item = usize> + 'a {
        let places = self.0.iter().enumerate();
        places.filter(|(place, amount)| **amount > 0 && **amount > free.get(*place)).map(|(place, _)| place)
    }

    /// A place of which this asks for some and nothing at all is left.
    pub(crate) fn exhausted(&self, left: &Amounts) -> Option<usize> {
        self.places().find(|place| left.get(*place) <= 0)
    }

    /// The largest part that this is of `whole`, over all resources, in millionths.
    pub(crate) fn largest_part_of(&self, whole: &Amounts) -> u64 {
        let part = |place| {
            let (part, whole) = (i128::from(self.get(place).max(0)), i128::from(whole.get(place).max(1)));
            u64::try_from(part.saturating_mul(1_000_000) / whole).unwrap_or(u64::MAX)
        };
        (0..self.len()).map(part).max().unwrap_or(0)
    }
}

/// What pods are taken to use that they have not asked for. It matters only for the order of nodes: without it, pods that ask
/// for nothing would all go to one node, which they leave as empty as it was. The numbers are Kubernetes'.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unasked {
    cpu: i64,
    memory: i64,
}

impl Unasked {
    const CPU: i64 = 100;
    const MEMORY: i64 = 200 << 20;

    /// What a pod with these needs is taken to use beside them.
    pub(crate) fn by(needs: &Amounts) -> Unasked {
        let unless_asked = |place, amount| if needs.get(place) == 0 { amount } else { 0 };
        Unasked { cpu: unless_asked(CPU, Unasked::CPU), memory: unless_asked(MEMORY, Unasked::MEMORY) }
    }

    pub(crate) fn add(&mut self, other: Unasked) {
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.memory = self.memory.saturating_add(other.memory);
    }

    pub(crate) fn sub(&mut self, other: Unasked) {
        self.cpu = self.cpu.saturating_sub(other.cpu);
        self.memory = self.memory.saturating_sub(other.memory);
    }
}

/// How much of each resource may be used; what is not named is not limited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits(BTreeMap<usize, i64>);

impl Limits {
    /// Whether nothing is limited.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, place: usize) -> i64 {
        self.0.get(&place).copied().unwrap_or(i64::MAX)
    }

    /// Of these amounts no more than the limits allow.
    pub(crate) fn cut(&self, amounts: &mut Amounts) {
        for (place, limit) in &self.0 {
            amounts.set(*place, amounts.get(*place).min(*limit));
        }
    }

    /// Leaves to others what is theirs, and keeps what is its own: where more is promised than there is, whoever comes first
    /// gets it.
    pub(crate) fn leave(&mut self, available: &Amounts, of_others: &Amounts, own: &Amounts) {
        for place in (0..of_others.len()).filter(|place| of_others.get(*place) > 0) {
            let rest = available.get(place).saturating_sub(of_others.get(place)).max(own.get(place));
            self.0.insert(place, self.get(place).min(rest));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What a pod asks for, as a resource list in JSON.
    fn asks_for(spec: &Value) -> Value {
        let spec: PodSpec = serde_json::from_value(spec.clone()).unwrap();
        let mut names = Names::new();
        let needs = names.of_pod(&spec);
        json!(names.list(&needs))
    }

    fn container(requests: &Value) -> Value {
        json!({ "resources": { "requests": requests } })
    }

    #[test]
    fn containers_add_up() {
        let spec = json!({ "containers": [container(&json!({ "cpu": "500m", "memory": "1Gi" })), container(&json!({ "cpu": 1 }))] });
        assert_eq!(asks_for(&spec), json!({ "cpu": "1500m", "memory": "1Gi", "pods": "1" }));
    }

    #[test]
    fn a_limit_without_a_request_is_the_request() {
        let resources = json!({ "limits": { "cpu": 2, "nvidia.com/gpu": 1 }, "requests": { "cpu": 1 } });
        let spec = json!({ "containers": [{ "resources": resources }] });
        assert_eq!(asks_for(&spec), json!({ "cpu": "1", "nvidia.com/gpu": "1", "pods": "1" }));
    }

    #[test]
    fn init_containers_run_one_after_the_other_before_the_rest() {
        let init = [container(&json!({ "cpu": 3 })), container(&json!({ "cpu": 2, "memory": "4Gi" }))];
        let spec = json!({ "initContainers": init, "containers": [container(&json!({ "cpu": 1, "memory": "1Gi" }))] });
        assert_eq!(asks_for(&spec), json!({ "cpu": "3", "memory": "4Gi", "pods": "1" }));
    }

    #[test]
    fn sidecars_run_beside_everything_that_follows() {
        let mut sidecar = container(&json!({ "cpu": 1 }));
        sidecar["restartPolicy"] = "Always".into();
        let init =
            [container(&json!({ "cpu": 4 })), sidecar.clone(), container(&json!({ "cpu": 4 })), sidecar];
        let spec = json!({ "initContainers": init, "containers": [container(&json!({ "cpu": 1 }))] });
        assert_eq!(asks_for(&spec), json!({ "cpu": "5", "pods": "1" }));
        let spec = json!({ "initContainers": init, "containers": [container(&json!({ "cpu": 4 }))] });
        assert_eq!(asks_for(&spec), json!({ "cpu": "6", "pods": "1" }));
    }

    #[test]
    fn overhead_comes_on_top() {
        let init = [container(&json!({ "cpu": 3 }))];
        let spec = json!({ "overhead": { "cpu": "250m" }, "initContainers": init, "containers": [container(&json!({ "cpu": 1 }))] });
        assert_eq!(asks_for(&spec), json!({ "cpu": "3250m", "pods": "1" }));
    }

    #[test]
    fn what_a_pod_asks_for_as_a_whole_goes_before_what_its_containers_add_up_to() {
        let containers =
            [container(&json!({ "cpu": 1, "nvidia.com/gpu": 1 })), container(&json!({ "memory": "1Gi" }))];
        let spec = json!({ "resources": { "requests": { "cpu": 6 } }, "containers": containers });
        assert_eq!(
            asks_for(&spec),
            json!({ "cpu": "6", "memory": "1Gi", "nvidia.com/gpu": "1", "pods": "1" })
        );
        // One container alone does not hide it, a limit alone is a request, and devices are not shared.
        let whole = json!({ "limits": { "cpu": 2, "nvidia.com/gpu": 4 } });
        let spec = json!({ "resources": whole, "containers": [container(&json!({ "cpu": 1 }))] });
        assert_eq!(asks_for(&spec), json!({ "cpu": "2", "pods": "1" }));
        let spec = json!({ "resources": whole, "overhead": { "cpu": "500m" }, "containers": [{}] });
        assert_eq!(asks_for(&spec), json!({ "cpu": "2500m", "pods": "1" }));
    }

    #[test]
    fn a_flood_of_names_is_cut_off() {
        let mut names = Names::new();
        let flood: ResourceList =
            (0..10_000).map(|index| (format!("example.com/{index}"), Quantity::from_units(1))).collect();
        assert_eq!(names.amounts(&flood).len(), NAMES_MAX);
    }
}
