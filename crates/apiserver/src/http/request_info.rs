//! What a request asks for, as authorisation and the audit log see it.

use http::Method;
use krafla_admission::rbac::{Attributes, ResourceTarget, Target, User};

use super::path::Route;
use super::query::{Query, percent_decode};
use crate::selector::FieldSelector;

/// A verb and what it is about. Everything is taken from the path and the query alone: what is served makes no difference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestInfo {
    /// `list`, `create`; of a path that is no resource, the method in lower case.
    pub verb: String,
    /// The path.
    pub path: String,
    /// Whether the path is one of a resource.
    pub is_resource: bool,
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Namespace; empty for all of them and for cluster-wide kinds.
    pub namespace: String,
    /// Plural of the resource.
    pub resource: String,
    /// The part of the object; empty for the whole.
    pub subresource: String,
    /// Name of one object; empty for all of them.
    pub name: String,
}

impl RequestInfo {
    /// Reads a request.
    pub(super) fn read(method: &Method, path: &str, query: &Query) -> RequestInfo {
        let path = percent_decode(path).unwrap_or_else(|| path.to_owned());
        let verb = method.as_str().to_ascii_lowercase();
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let info = match parts.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => resource(method, "", version, rest, query),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => {
                resource(method, group, version, rest, query)
            }
            _ => RequestInfo { verb, ..RequestInfo::default() },
        };
        RequestInfo { path, ..info }
    }

    /// The question to the authoriser.
    pub(super) fn attributes<'a>(&'a self, user: &'a User) -> Attributes<'a> {
        let target = ResourceTarget {
            group: &self.group,
            version: &self.version,
            resource: &self.resource,
            subresource: &self.subresource,
            namespace: &self.namespace,
            name: &self.name,
        };
        let target = if self.is_resource { Target::Resource(target) } else { Target::Path(&self.path) };
        Attributes { user, verb: &self.verb, target }
    }

    /// Whether the path leads to what was authorised. It does, unless a client writes paths in a way that is read
    /// differently in two places.
    pub(super) fn is_about(&self, route: &Route) -> bool {
        let Route::Resource(path) = route else { return true };
        let is_namespace = self.group.is_empty() && self.resource == "namespaces";
        let is_name_selected = path.name.is_empty() && matches!(self.verb.as_str(), "list" | "watch");
        self.is_resource
            && self.group == path.group
            && self.resource == path.resource
            && self.subresource == path.subresource
            && (self.name == path.name || is_name_selected)
            && (self.namespace == path.namespace || is_namespace && path.namespace.is_empty())
    }
}

fn resource(method: &Method, group: &str, version: &str, rest: &[&str], query: &Query) -> RequestInfo {
    let verb = match *method {
        Method::POST => "create",
        Method::GET | Method::HEAD => "get",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    };
    let (verb, rest) = match rest {
        [special @ ("proxy" | "watch"), rest @ ..] if !rest.is_empty() => (*special, rest),
        _ => (verb, rest),
    };
    let (namespace, parts) = match rest {
        ["namespaces", namespace, part, ..] if !["status", "finalize"].contains(part) => {
            (*namespace, rest.get(2..).unwrap_or_default())
        }
        ["namespaces", namespace, ..] => (*namespace, rest),
        _ => ("", rest),
    };
    let part = |index: usize| parts.get(index).map_or_else(String::new, |part| (*part).to_owned());
    let mut info = RequestInfo {
        verb: verb.to_owned(),
        is_resource: true,
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        resource: part(0),
        name: part(1),
        subresource: if verb == "proxy" { String::new() } else { part(2) },
        path: String::new(),
    };
    match (info.verb.as_str(), info.name.is_empty()) {
        ("get", true) => {
            info.verb = if query.flag("watch") { "watch" } else { "list" }.to_owned();
            info.name = selected_name(query).unwrap_or_default();
        }
        ("delete", true) => info.verb = "deletecollection".to_owned(),
        _ => {}
    }
    info
}

/// The one name that a list or a watch is restricted to.
fn selected_name(query: &Query) -> Option<String> {
    super::list_options::check_numbers(query).ok()?;
    let name = FieldSelector::exact_name(query.text("fieldSelector"))?;
    let is_segment = ![".", ".."].contains(&name.as_str()) && !name.contains(['/', '%']);
    is_segment.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::path::route;
    use super::*;
    use crate::authorizer::forbidden;

    /// `VERB GROUP RESOURCE SUBRESOURCE NAMESPACE NAME`, or `VERB PATH`.
    fn read(method: &str, path: &str, query: &str) -> String {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let info = RequestInfo::read(&method, path, &Query::parse(query));
        if !info.is_resource {
            return format!("{} {}", info.verb, info.path);
        }
        let RequestInfo { verb, group, resource, subresource, namespace, name, .. } = info;
        let dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
        [verb, group, resource, subresource, namespace, name].map(dash).join(" ")
    }

    #[test]
    fn a_request_is_read_as_a_kube_apiserver_reads_it() {
        let cases = [
            ("GET", "/api/v1/namespaces", "", "list - namespaces - - -"),
            ("GET", "/api/v1/namespaces/a", "", "get - namespaces - a a"),
            ("PUT", "/api/v1/namespaces/a/status", "", "update - namespaces status a a"),
            ("PUT", "/api/v1/namespaces/a/finalize", "", "update - namespaces finalize a a"),
            ("GET", "/api/v1/namespaces/a/pods", "", "list - pods - a -"),
            ("GET", "/api/v1/namespaces/a/pods", "watch=1", "watch - pods - a -"),
            ("GET", "/api/v1/namespaces/a/pods", "watch=false", "list - pods - a -"),
            ("GET", "/api/v1/namespaces/a/pods", "fieldSelector=metadata.name%3Dx", "list - pods - a x"),
            (
                "GET",
                "/api/v1/pods",
                "watch=1&fieldSelector=metadata.name==x,spec.nodeName=n",
                "watch - pods - - x",
            ),
            ("GET", "/api/v1/pods", "fieldSelector=metadata.name!=x", "list - pods - - -"),
            ("GET", "/api/v1/pods", "fieldSelector=metadata.name=a/b", "list - pods - - -"),
            ("GET", "/api/v1/pods", "fieldSelector=metadata.name=x&limit=many", "list - pods - - -"),
            (
                "DELETE",
                "/api/v1/namespaces/a/pods",
                "fieldSelector=metadata.name=x",
                "deletecollection - pods - a -",
            ),
            ("HEAD", "/api/v1/namespaces/a/pods/x", "", "get - pods - a x"),
            ("GET", "/api/v1/namespaces/a/pods/x/log", "", "get - pods log a x"),
            ("POST", "/api/v1/namespaces/a/pods/x/exec", "", "create - pods exec a x"),
            ("GET", "/api/v1/namespaces/a/pods/x/proxy/p/q", "", "get - pods proxy a x"),
            ("GET", "/api/v1/watch/namespaces/a/pods", "", "watch - pods - a -"),
            ("GET", "/api/v1/watch/pods", "", "watch - pods - - -"),
            ("GET", "/api/v1/proxy/namespaces/a/pods/x/y", "", "proxy - pods - a x"),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/d/scale",
                "",
                "patch apps deployments scale a d",
            ),
            ("OPTIONS", "/api/v1/pods", "", "- - pods - - -"),
            ("GET", "/api/v1/namespaces/a/pods/", "", "list - pods - a -"),
            ("GET", "//api/v1/namespaces/a/secrets", "", "list - secrets - a -"),
            ("GET", "/api/v1/namespaces/a%2Fb/pods", "", "get - b - a pods"),
            ("GET", "/apis/batch/v1", "", "get /apis/batch/v1"),
            ("GET", "/apis/batch/v1/", "", "get /apis/batch/v1/"),
            ("GET", "/api/v1", "", "get /api/v1"),
            ("POST", "/healthz", "", "post /healthz"),
        ];
        for (method, path, query, expected) in cases {
            assert_eq!(read(method, path, query), expected, "{method} {path}?{query}");
        }
    }

    #[test]
    fn what_is_routed_is_what_was_authorised() {
        let cases = [
            ("/api/v1/namespaces/a/pods/x/log", true),
            ("/api/v1/namespaces/a", true),
            ("/api/v1/namespaces/a/finalize", true),
            ("/api/v1/watch/pods", true),
            ("/healthz", true),
            ("/api/v1/namespaces/a%2Fpods/secrets", false),
            ("/api%2Fv1/namespaces/a/secrets", true),
        ];
        for (path, is_same) in cases {
            let info = RequestInfo::read(&Method::GET, path, &Query::default());
            assert_eq!(info.is_about(&route(path)), is_same, "{path}: {info:?}");
        }
    }

    #[test]
    fn a_refusal_says_what_was_asked_and_by_whom() {
        let cases = [
            ("GET", "/metrics", "", r#"forbidden: User "<u>" cannot get path "/metrics""#),
            (
                "GET",
                "/api/v1/namespaces/default/pods/a/log",
                "",
                r#"pods "a" is forbidden: User "<u>" cannot get resource "pods/log" in API group "" in the namespace "default""#,
            ),
            (
                "GET",
                "/apis/batch/v1/jobs",
                "watch=1",
                r#"jobs.batch is forbidden: User "<u>" cannot watch resource "jobs" in API group "batch" at the cluster scope"#,
            ),
            (
                "GET",
                "/api/v1/namespaces/default",
                "",
                r#"namespaces "default" is forbidden: User "<u>" cannot get resource "namespaces" in API group "" in the namespace "default""#,
            ),
        ];
        for (method, path, query, expected) in cases {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let info = RequestInfo::read(&method, path, &Query::parse(query));
            let user = User { name: "<u>".to_owned(), ..User::default() };
            let refused = forbidden(&info.attributes(&user), "");
            let expected = expected.replace("<u>", "&lt;u&gt;");
            assert_eq!((refused.code, refused.message), (403, expected));
        }
    }
}
