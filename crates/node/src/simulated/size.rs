//! How large a simulated cluster is: `nodes=1000,cpu=32,memory=128Gi`.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::time::Duration;

use krafla_api::{GoDuration, Quantity};

/// More nodes are not simulated: each is an object of a few kilobytes that every scheduling round looks at.
const NODES_MAX: u32 = 100_000;
const NODE_NAME: &str = "simulated-";

/// How many nodes there are, what each of them has, and how long pods run, and how they end, that do not say.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterSize {
    /// How many nodes.
    pub nodes: u32,
    /// What each has.
    pub capacity: BTreeMap<String, Quantity>,
    /// How long a pod runs that does not say.
    pub run_for: Duration,
    /// With which exit code the containers of a pod end that does not say.
    pub exit_code: i32,
}

/// Why a size makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSize {
    /// It is not a list of `name=value`.
    #[error(
        "{0:?} is not of the form name=value; write for example nodes=1000,cpu=32,memory=128Gi,duration=10s"
    )]
    NotAPair(String),
    /// A value can not be read.
    #[error("{name}={value}: {why}")]
    Value {
        /// What it is the value of.
        name: String,
        /// The value.
        value: String,
        /// What is wrong with it.
        why: String,
    },
}

impl ClusterSize {
    /// The name of a node.
    pub(super) fn node_name(&self, n: u32) -> String {
        format!("{NODE_NAME}{n}")
    }

    /// Whether a name is that of one of the nodes.
    pub fn is_node(&self, name: &str) -> bool {
        number(name).is_some_and(|n| n < self.nodes)
    }
}

/// Whether a name is that of a node of some simulated cluster.
pub fn is_simulated(name: &str) -> bool {
    number(name).is_some()
}

fn number(name: &str) -> Option<u32> {
    name.strip_prefix(NODE_NAME)?.parse().ok()
}

impl Default for ClusterSize {
    fn default() -> ClusterSize {
        let whole = |name: &str, n| (name.to_owned(), Quantity::from_units(n));
        let memory = ("memory".to_owned(), "128Gi".parse().unwrap_or_default());
        let capacity = [whole("cpu", 32), memory, whole("pods", 110)].into();
        ClusterSize { nodes: 1, capacity, run_for: Duration::from_secs(1), exit_code: 0 }
    }
}

impl FromStr for ClusterSize {
    type Err = BadSize;

    fn from_str(text: &str) -> Result<ClusterSize, BadSize> {
        let mut size = ClusterSize::default();
        let mut said = BTreeSet::new();
        for pair in text.split(',') {
            let (name, value) = pair.split_once('=').ok_or_else(|| BadSize::NotAPair(pair.to_owned()))?;
            let bad = |why: String| BadSize::Value { name: name.to_owned(), value: value.to_owned(), why };
            if !said.insert(name.trim()) {
                return Err(bad("it is there twice: remove one of them".into()));
            }
            match name.trim() {
                "nodes" => {
                    let nodes = value.trim().parse().ok().filter(|n| (1..=NODES_MAX).contains(n));
                    let why = || bad(format!("must be a whole number from 1 to {NODES_MAX}"));
                    size.nodes = nodes.ok_or_else(why)?;
                }
                "duration" => {
                    let duration = value.trim().parse::<GoDuration>().ok().filter(|it| !it.is_negative());
                    let why = || bad("must be a duration such as 500ms, 10s or 5m".into());
                    size.run_for = duration.map(GoDuration::to_std).ok_or_else(why)?;
                }
                "exit-code" => {
                    let why = || bad(format!("must be {EXIT_CODES}"));
                    size.exit_code = exit_code(value.trim()).ok_or_else(why)?;
                }
                resource if is_resource(resource) => {
                    let amount =
                        value.trim().parse().ok().filter(|amount: &Quantity| amount.milli_value() >= 0);
                    let why = || bad("must be an amount such as 32 or 128Gi".into());
                    size.capacity.insert(resource.to_owned(), amount.ok_or_else(why)?);
                }
                _ => {
                    let known = RESOURCES.join(", ");
                    let why = format!(
                        "want nodes, duration, exit-code, {known}, or a device such as example.com/gpu"
                    );
                    return Err(bad(why));
                }
            }
        }
        Ok(size)
    }
}

/// What an exit code can be, for messages.
pub(super) const EXIT_CODES: &str = "a whole number from 0 to 255";

/// An exit code, if a process could have it.
pub(super) fn exit_code(text: &str) -> Option<i32> {
    text.parse().ok().filter(|code| (0..=255).contains(code))
}

/// Kubernetes' own resources, beside huge pages.
const RESOURCES: [&str; 4] = ["cpu", "memory", "pods", "ephemeral-storage"];

/// Kubernetes' own resources have short names, and all others that of whoever makes them: a misspelt name is no new resource.
fn is_resource(name: &str) -> bool {
    let is_device = name.split_once('/').is_some_and(|(maker, device)| {
        !maker.is_empty() && !device.is_empty() && !name.contains(char::is_whitespace)
    });
    is_device || name.starts_with("hugepages-") || RESOURCES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_says_how_many_nodes_and_what_each_has() {
        let size: ClusterSize =
            "nodes=1000,cpu=64,memory=1Ti,nvidia.com/gpu=8,duration=1m30s,exit-code=3".parse().unwrap();
        let amount = |name: &str| size.capacity.get(name).map(ToString::to_string);
        assert_eq!((size.nodes, size.run_for, size.exit_code), (1000, Duration::from_secs(90), 3));
        assert_eq!(amount("nvidia.com/gpu").as_deref(), Some("8"));
        assert_eq!(amount("memory").as_deref(), Some("1Ti"));
        assert_eq!(amount("pods").as_deref(), Some("110"), "what is not said is as usual");
        assert!(size.is_node("simulated-999"));
        assert!(!size.is_node("simulated-1000") && !size.is_node("localhost"));
    }

    #[test]
    fn a_size_that_makes_no_sense_is_named() {
        for (text, expected) in [
            ("nodes", "\"nodes\" is not of the form name=value"),
            ("nodes=0", "nodes=0: must be a whole number from 1 to 100000"),
            ("cpu=many", "cpu=many: must be an amount"),
            ("duration=soon", "duration=soon: must be a duration"),
            ("duration=-5s", "duration=-5s: must be a duration"),
            ("exit-code=256", "exit-code=256: must be a whole number from 0 to 255"),
            ("cpu=-4", "cpu=-4: must be an amount"),
            ("memroy=1Gi", "memroy=1Gi: want nodes, duration, exit-code, cpu, memory"),
            ("a b=2", "a b=2: want nodes, duration"),
            ("nodes=2,nodes=3", "nodes=3: it is there twice"),
        ] {
            let error = text.parse::<ClusterSize>().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
