//! Metrics: numbers with names and labels, in the text form that Prometheus reads.

mod family;

use krafla_api::Time;

pub use family::{Family, Sample};

/// Metrics of a part of this process, as one page for `/metrics`.
pub trait Page: Send + Sync {
    /// The page at this time.
    fn page(&self, now: Time) -> String;
}

/// A number with a name, and one series for every combination of its labels' values.
#[derive(Debug)]
pub struct Metric {
    /// The name that dashboards ask for.
    pub name: &'static str,
    /// A sentence that says what it is.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// How it behaves.
    pub kind: MetricKind,
}

impl Metric {
    /// A number that only grows.
    pub const fn counter(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Metric {
        Metric { name, help, labels, kind: MetricKind::Counter }
    }
}

/// How a number behaves.
#[derive(Clone, Copy, Debug)]
pub enum MetricKind {
    /// It only grows.
    Counter,
    /// It grows and shrinks.
    Gauge,
    /// Observations by size: so many up to each of these bounds.
    Histogram(&'static [f64]),
}
