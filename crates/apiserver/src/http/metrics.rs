//! How many requests of what kind were answered how, and how long it took: under kube-apiserver's names.

use std::time::Duration;

use http::Method;
use krafla_metrics::Family;

use super::path::ResourcePath;

const LABELS: &[&str] = &["verb", "group", "version", "resource", "subresource", "scope", "code"];
const BOUNDS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];

/// The server's own numbers.
pub(super) struct Metrics {
    requests: Family,
    durations: Family,
}

/// What a request is counted as.
pub(super) struct Counted {
    verb: &'static str,
    path: Option<ResourcePath>,
}

impl Counted {
    /// A request for a resource that is served.
    pub(super) fn resource(method: &Method, path: &ResourcePath, is_watch: bool) -> Counted {
        let is_list = path.name.is_empty();
        let verb = match *method {
            Method::GET if is_watch => "WATCH",
            Method::GET if is_list => "LIST",
            Method::GET => "GET",
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::PATCH => "PATCH",
            Method::DELETE if is_list => "DELETECOLLECTION",
            Method::DELETE => "DELETE",
            _ => "OTHER",
        };
        Counted { verb, path: Some(path.clone()) }
    }

    /// Anything else. What clients make up must not become a name here.
    pub(super) fn other(method: &Method) -> Counted {
        let verb = match *method {
            Method::GET => "GET",
            Method::POST => "POST",
            _ => "OTHER",
        };
        Counted { verb, path: None }
    }
}

impl Metrics {
    pub(super) const fn new() -> Metrics {
        let (_, without_code) = match LABELS.split_last() {
            Some(split) => split,
            None => (&"", LABELS),
        };
        Metrics {
            requests: Family::counter(
                "apiserver_request_total",
                "Requests by verb, group, version, resource, subresource, scope and HTTP code of the answer.",
                LABELS,
            ),
            durations: Family::histogram(
                "apiserver_request_duration_seconds",
                "How long requests took until their answer began, in seconds.",
                without_code,
                BOUNDS,
            ),
        }
    }

    /// Counts an answer.
    pub(super) fn answered(&self, counted: &Counted, code: u16, took: Duration) {
        let code = code.to_string();
        let path = counted.path.as_ref();
        let scope = match path {
            Some(path) if !path.name.is_empty() => "resource",
            Some(path) if path.is_namespaced => "namespace",
            Some(_) => "cluster",
            None => "",
        };
        let text = |of: fn(&ResourcePath) -> &String| path.map_or("", |path| of(path).as_str());
        let values = [
            counted.verb,
            text(|path| &path.group),
            text(|path| &path.version),
            text(|path| &path.resource),
            text(|path| &path.subresource),
            scope,
            &code,
        ];
        self.requests.add(&values, 1.0);
        if let Some((_, without_code)) = values.split_last() {
            self.durations.observe(without_code, took.as_secs_f64());
        }
    }

    /// All of them, as text.
    pub(super) fn page(&self) -> String {
        let mut page = String::new();
        for family in [&self.durations, &self.requests] {
            family.render(&mut page);
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_counted_by_what_was_asked() {
        let metrics = Metrics::new();
        let path = ResourcePath {
            version: "v1".into(),
            resource: "pods".into(),
            namespace: "default".into(),
            is_namespaced: true,
            ..ResourcePath::default()
        };
        let counted = Counted::resource(&Method::GET, &path, false);
        metrics.answered(&counted, 200, Duration::from_millis(10));
        metrics.answered(&Counted::other(&Method::GET), 404, Duration::ZERO);
        let page = metrics.page();
        let count = r#"apiserver_request_total{verb="LIST",group="",version="v1",resource="pods",subresource="",scope="namespace",code="200"} 1"#;
        assert!(page.contains(count), "{page}");
        assert!(page.contains(r#"scope="namespace",le="0.025"} 1"#), "{page}");
    }
}
