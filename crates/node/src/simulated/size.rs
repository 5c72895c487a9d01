//! How large a simulated cluster is: `nodes=1000,cpu=32,memory=128Gi`.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use krafla_api::{GoDuration, Quantity};

/// More nodes are not simulated: each is an object of a few kilobytes that every scheduling round looks at.
const NODES_MAX: u32 = 100_000;
const NODE_NAME: &str = "simulated-";

/// How many nodes there are, what each of them has, and how long pods run that do not say.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterSize {
    /// How many nodes.
    pub nodes: u32,
    /// What each has.
    pub capacity: BTreeMap<String, Quantity>,
    /// How long a pod runs that does not say.
    pub run_for: Duration,
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
    pub(super) fn is_node(&self, name: &str) -> bool {
        let n = name.strip_prefix(NODE_NAME).and_then(|n| n.parse::<u32>().ok());
        n.is_some_and(|n| n < self.nodes)
    }
}

impl Default for ClusterSize {
    fn default() -> ClusterSize {
        let whole = |name: &str, n| (name.to_owned(), Quantity::from_units(n));
        let memory = ("memory".to_owned(), "128Gi".parse().unwrap_or_default());
        let capacity = [whole("cpu", 32), memory, whole("pods", 110)].into();
        ClusterSize { nodes: 1, capacity, run_for: Duration::from_secs(1) }
    }
}

impl FromStr for ClusterSize {
    type Err = BadSize;

    fn from_str(text: &str) -> Result<ClusterSize, BadSize> {
        let mut size = ClusterSize::default();
        for pair in text.split(',') {
            let (name, value) = pair.split_once('=').ok_or_else(|| BadSize::NotAPair(pair.to_owned()))?;
            let bad = |why: String| BadSize::Value { name: name.to_owned(), value: value.to_owned(), why };
            match name.trim() {
                "nodes" => {
                    let nodes = value.trim().parse().ok().filter(|n| (1..=NODES_MAX).contains(n));
                    let why = || bad(format!("must be a whole number from 1 to {NODES_MAX}"));
                    size.nodes = nodes.ok_or_else(why)?;
                }
                "duration" => {
                    let duration: GoDuration = value
                        .trim()
                        .parse()
                        .map_err(|_| bad("must be a duration such as 500ms, 10s or 5m".into()))?;
                    size.run_for = duration.to_std();
                }
                resource => {
                    let amount = value.trim().parse().map_err(|_| {
                        bad("must be an amount such as 32 or 128Gi; besides resources there are nodes and duration".into())
                    })?;
                    size.capacity.insert(resource.to_owned(), amount);
                }
            }
        }
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_says_how_many_nodes_and_what_each_has() {
        let size: ClusterSize =
            "nodes=1000,cpu=64,memory=1Ti,nvidia.com/gpu=8,duration=1m30s".parse().unwrap();
        let amount = |name: &str| size.capacity.get(name).map(ToString::to_string);
        assert_eq!((size.nodes, size.run_for), (1000, Duration::from_secs(90)));
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
        ] {
            let error = text.parse::<ClusterSize>().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
