//! Amounts of resources: what pods ask for, what nodes have, what queues may use.
//!
//! Resource names are looked up once, in [`Names`]; after that an amount is a short row of numbers and every comparison
//! is a few integer operations. That is what makes a decision over thousands of pods and nodes cheap.
//!
//! Units: thousandths for cpu, whole units (bytes, devices, pods) for everything else, rounded up. Absurd numbers
//! saturate; they never wrap and never panic.

use std::collections::BTreeMap;

use krafla_api::quantity::Quantity;
use krafla_api::volcano::ResourceList;
use krafla_plan::object::{Container, PodSpec};

/// The place of cpu in a row.
const CPU: usize = 0;
/// The place of memory in a row.
const MEMORY: usize = 1;
/// The place of pods in a row: every pod takes one.
const PODS: usize = 2;
/// The resources that every cluster has, in the order of their places.
const WELL_KNOWN: [&str; 3] = ["cpu", "memory", "pods"];
/// More names than any cluster has; what comes after them is ignored, so that pods cannot fill the memory with names.
const NAMES_MAX: usize = 256;

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
        self.names.get(place).map_or("?", String::as_str)
    }

    /// What to say when a node has too little of a resource.
    pub(crate) fn shortage(&self, place: usize) -> String {
        if place == PODS { "Too many pods".to_owned() } else { format!("Insufficient {}", self.name(place)) }
    }

    fn place(&mut self, name: &str) -> Option<usize> {
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

    /// A resource list as it stands in a node's allocatable, a container's requests or a PodGroup's `minResources`.
    pub(crate) fn amounts(&mut self, list: &ResourceList) -> Amounts {
        let mut amounts = Amounts::default();
        self.put(&mut amounts, list);
        amounts
    }

    fn put(&mut self, amounts: &mut Amounts, list: &ResourceList) {
        for (name, quantity) in list {
            if let Some(place) = self.place(name) {
                amounts.set(place, units(name, quantity));
            }
        }
    }

    /// What a pod asks for: the sum of its containers, or its init containers where one of them needs more, plus the
    /// sidecars that run beside both, plus its overhead; and one pod.
    pub(crate) fn of_pod(&mut self, spec: &PodSpec) -> Amounts {
        let mut needs = Amounts::default();
        for container in &spec.containers {
            needs.add(&self.of_container(container));
        }
        let mut sidecars = Amounts::default();
        let mut starting = Amounts::default();
        for container in &spec.init_containers {
            let mut beside = self.of_container(container);
            beside.add(&sidecars);
            if container.restart_policy == "Always" {
                sidecars = beside.clone();
            }
            starting.raise_to(&beside);
        }
        needs.add(&sidecars);
        needs.raise_to(&starting);
        needs.add(&self.amounts(&spec.overhead));
        needs.set(PODS, 1);
        needs
    }

    /// A container's requests; where only a limit is given, the limit is the request.
    fn of_container(&mut self, container: &Container) -> Amounts {
        let mut amounts = self.amounts(&container.resources.limits);
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
    if name == "cpu" { quantity.milli_value() } else { quantity.value() }
}

/// An amount of each resource; places that are not there are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Amounts(Vec<i64>);

impl Amounts {
    fn get(&self, place: usize) -> i64 {
        self.0.get(place).copied().unwrap_or(0)
    }

    fn set(&mut self, place: usize, amount: i64) {
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

    /// This as a part of `total`, in thousandths: the mean over cpu and memory.
    pub(crate) fn share_of(&self, total: &Amounts) -> u32 {
        let share = |place| {
            let (part, whole) = (i128::from(self.get(place).max(0)), i128::from(total.get(place)));
            if whole <= 0 { 0 } else { part.saturating_mul(1000) / whole }
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
}
