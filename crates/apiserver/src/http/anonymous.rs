//! What whoever shows neither a token nor a certificate may see: whether the server is well, and its version.

use http::Method;

use super::path::{ResourcePath, Route};
use super::query::Query;
use crate::status::{Qualified, Status};

/// The name of whoever shows nothing.
pub(super) const NAME: &str = "system:anonymous";

/// The paths that are open to everybody, as a kube-apiserver's own role says.
const OPEN: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// Whether a request needs neither token nor certificate.
pub(super) fn is_open(method: &Method, path: &str) -> bool {
    *method == Method::GET && OPEN.contains(&path)
}

/// Why a request of whoever shows nothing is refused.
pub(super) fn refusal(method: &Method, path: &str, route: &Route, query: &Query) -> Status {
    let Route::Resource(asked) = route else {
        let verb = method.as_str().to_ascii_lowercase();
        return Status::forbidden_path(&format!("User \"{NAME}\" cannot {verb} path {path:?}"));
    };
    let (verb, group) = (verb(method, asked, query), &asked.group);
    let slash = if asked.subresource.is_empty() { "" } else { "/" };
    let what = format!("{}{slash}{}", asked.resource, asked.subresource);
    let is_namespace = asked.resource == "namespaces" && asked.group.is_empty();
    let place = match if is_namespace { &asked.name } else { &asked.namespace } {
        namespace if namespace.is_empty() => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace \"{namespace}\""),
    };
    let why = format!("User \"{NAME}\" cannot {verb} resource \"{what}\" in API group \"{group}\" {place}");
    Status::forbidden(&Qualified { group, what: &asked.resource }, &asked.name, &why)
}

fn verb(method: &Method, path: &ResourcePath, query: &Query) -> &'static str {
    let is_collection = path.name.is_empty();
    match *method {
        Method::GET if path.is_watch || is_collection && query.flag("watch") => "watch",
        Method::GET if is_collection => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if is_collection => "deletecollection",
        Method::DELETE => "delete",
        _ => "get",
    }
}

#[cfg(test)]
mod tests {
    use super::super::path::route;
    use super::*;

    #[test]
    fn a_refusal_says_what_was_asked_and_by_whom() {
        let cases = [
            ("GET", "/metrics", "", r#"forbidden: User "system:anonymous" cannot get path "/metrics""#),
            (
                "GET",
                "/api/v1/namespaces/default/pods/a/log",
                "",
                r#"pods "a" is forbidden: User "system:anonymous" cannot get resource "pods/log" in API group "" in the namespace "default""#,
            ),
            (
                "GET",
                "/apis/batch/v1/jobs",
                "watch=1",
                r#"jobs.batch is forbidden: User "system:anonymous" cannot watch resource "jobs" in API group "batch" at the cluster scope"#,
            ),
            (
                "GET",
                "/api/v1/namespaces/default",
                "",
                r#"namespaces "default" is forbidden: User "system:anonymous" cannot get resource "namespaces" in API group "" in the namespace "default""#,
            ),
        ];
        for (method, path, query, expected) in cases {
            let (method, query) = (Method::from_bytes(method.as_bytes()).unwrap(), Query::parse(query));
            let refused = refusal(&method, path, &route(path), &query);
            assert_eq!((refused.code, refused.message.as_str()), (403, expected));
        }
    }

    #[test]
    fn health_and_version_are_open() {
        assert!(is_open(&Method::GET, "/readyz"));
        assert!(!is_open(&Method::GET, "/readyz/ping"));
        assert!(!is_open(&Method::POST, "/version"));
    }
}
