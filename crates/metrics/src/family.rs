//! A family of numbers has a name, and one series for every combination of its labels' values. Names are upstream's, exactly, since
//! dashboards ask for them: nothing is appended to them here. The number of series is bounded: what comes after that is
//! not counted, and that it was not is.

use std::collections::BTreeMap;
use std::fmt::Write;

use parking_lot::Mutex;

use crate::{Metric, MetricKind};

/// How many series one family may have.
const SERIES_MAX: usize = 10_000;

/// What one family counts.
pub struct Family {
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    kind: MetricKind,
    series: Mutex<Series>,
}

#[derive(Default)]
struct Series {
    by_values: BTreeMap<Vec<String>, Sample>,
    n_left_out: u64,
}

/// The numbers of one series.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    total: f64,
    count: u64,
    /// How many observations were within each bound, and not within the one before.
    within: Vec<u64>,
}

impl Sample {
    /// Adds one observation to a series of a histogram with these bounds.
    pub fn observe(&mut self, bounds: &[f64], amount: f64) {
        let place = bounds.iter().position(|bound| amount <= *bound).unwrap_or(bounds.len());
        self.total += amount;
        self.count += 1;
        self.within.resize(bounds.len() + 1, 0);
        if let Some(within) = self.within.get_mut(place) {
            *within += 1;
        }
    }
}

impl Family {
    /// Something that only grows.
    pub const fn counter(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Family {
        Family::new(name, help, labels, MetricKind::Counter)
    }

    /// Something that grows and shrinks.
    pub const fn gauge(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Family {
        Family::new(name, help, labels, MetricKind::Gauge)
    }

    /// How long things take, or how large they are, up to each of `bounds`.
    pub const fn histogram(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        bounds: &'static [f64],
    ) -> Family {
        Family::new(name, help, labels, MetricKind::Histogram(bounds))
    }

    /// What a controller counts.
    pub const fn of(metric: &Metric) -> Family {
        Family::new(metric.name, metric.help, metric.labels, metric.kind)
    }

    const fn new(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        kind: MetricKind,
    ) -> Family {
        let series = Mutex::new(Series { by_values: BTreeMap::new(), n_left_out: 0 });
        Family { name, help, labels, kind, series }
    }

    /// Adds to a counter or a gauge.
    pub fn add(&self, values: &[&str], amount: f64) {
        self.change(values, |sample| sample.total += amount);
    }

    /// Sets a gauge.
    pub fn set(&self, values: &[&str], amount: f64) {
        self.change(values, |sample| sample.total = amount);
    }

    /// Adds one observation to a histogram.
    pub fn observe(&self, values: &[&str], amount: f64) {
        let MetricKind::Histogram(bounds) = self.kind else { return };
        self.change(values, |sample| sample.observe(bounds, amount));
    }

    /// Sets a series to what was observed elsewhere.
    pub fn put(&self, values: &[&str], observed: Sample) {
        self.change(values, |sample| *sample = observed);
    }

    /// Forgets a series, when what it was about is gone.
    pub fn forget(&self, values: &[&str]) {
        self.series.lock().by_values.remove(&owned(values));
    }

    fn change(&self, values: &[&str], change: impl FnOnce(&mut Sample)) {
        debug_assert_eq!(values.len(), self.labels.len(), "{}: one value for each label", self.name);
        let mut series = self.series.lock();
        let values = owned(values);
        if series.by_values.len() >= SERIES_MAX && !series.by_values.contains_key(&values) {
            series.n_left_out += 1;
            return;
        }
        change(series.by_values.entry(values).or_default());
    }

    /// Appends the family to a page. A family without series is not shown.
    pub fn render(&self, page: &mut String) {
        let series = self.series.lock();
        if series.by_values.is_empty() {
            return;
        }
        let kind = match self.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram(_) => "histogram",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(page, "# HELP {} {}\n# TYPE {} {kind}", self.name, self.help, self.name);
        for (values, sample) in &series.by_values {
            let labels = self.shown_labels(values);
            match self.kind {
                MetricKind::Counter | MetricKind::Gauge => {
                    let _ = writeln!(page, "{}{} {}", self.name, braced(&labels), sample.total);
                }
                MetricKind::Histogram(bounds) => self.render_histogram(page, bounds, &labels, sample),
            }
        }
        if series.n_left_out > 0 {
            let _ = writeln!(
                page,
                "# {} changes of further series of {} were not counted",
                series.n_left_out, self.name
            );
        }
    }

    fn render_histogram(&self, page: &mut String, bounds: &[f64], labels: &str, sample: &Sample) {
        let comma = if labels.is_empty() { "" } else { "," };
        let mut so_far = 0;
        let bounds = bounds.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        // A series of which nothing has been observed yet has all its bounds too.
        for (bound, within) in bounds.zip(sample.within.iter().chain(std::iter::repeat(&0))) {
            so_far += within;
            let _ = writeln!(page, "{}_bucket{{{labels}{comma}le=\"{bound}\"}} {so_far}", self.name);
        }
        let _ = writeln!(page, "{}_sum{} {}", self.name, braced(labels), sample.total);
        let _ = writeln!(page, "{}_count{} {}", self.name, braced(labels), sample.count);
    }

    fn shown_labels(&self, values: &[String]) -> String {
        let pairs = self.labels.iter().zip(values).map(|(label, value)| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("{label}=\"{value}\"")
        });
        pairs.collect::<Vec<_>>().join(",")
    }
}

fn owned(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

fn braced(labels: &str) -> String {
    if labels.is_empty() { String::new() } else { format!("{{{labels}}}") }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn families_are_shown_as_prometheus_reads_them() {
        let counter = Family::counter("things_total", "How many things.", &["kind"]);
        counter.add(&["a\"b"], 1.0);
        counter.add(&["a\"b"], 2.0);
        let gauge = Family::gauge("things_now", "How many things there are.", &[]);
        gauge.set(&[], 4.0);
        gauge.add(&[], -1.0);
        let histogram = Family::histogram("thing_seconds", "How long things take.", &["kind"], &[0.1, 1.0]);
        for seconds in [0.1, 0.5, 7.0] {
            histogram.observe(&["a"], seconds);
        }
        let mut page = String::new();
        for family in [&counter, &gauge, &histogram] {
            family.render(&mut page);
        }
        expect![[r#"
            # HELP things_total How many things.
            # TYPE things_total counter
            things_total{kind="a\"b"} 3
            # HELP things_now How many things there are.
            # TYPE things_now gauge
            things_now 3
            # HELP thing_seconds How long things take.
            # TYPE thing_seconds histogram
            thing_seconds_bucket{kind="a",le="0.1"} 1
            thing_seconds_bucket{kind="a",le="1"} 2
            thing_seconds_bucket{kind="a",le="+Inf"} 3
            thing_seconds_sum{kind="a"} 7.6
            thing_seconds_count{kind="a"} 3
        "#]]
        .assert_eq(&page);
    }

    #[test]
    fn the_number_of_series_is_bounded_and_what_is_gone_is_forgotten() {
        let counter = Family::counter("things_total", "How many things.", &["kind"]);
        for kind in 0..=SERIES_MAX {
            counter.add(&[&kind.to_string()], 1.0);
        }
        let mut page = String::new();
        counter.render(&mut page);
        assert!(page.ends_with("# 1 changes of further series of things_total were not counted\n"));
        counter.forget(&["0"]);
        assert_eq!(counter.series.lock().by_values.len(), SERIES_MAX - 1);
    }
}
