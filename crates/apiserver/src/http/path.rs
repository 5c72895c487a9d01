//! What a request path is about.
//!
//! ```text
//!   /api/v1/namespaces/NS/pods/NAME/log          core group
//!   /apis/GROUP/VERSION/namespaces/NS/...        named groups
//!   /api/v1/watch/...                            the old way to ask for a watch
//! ```

use super::query::percent_decode;

/// A request for resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ResourcePath {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Namespace; empty for all of them and for cluster-wide kinds.
    pub namespace: String,
    /// Whether the path names a namespace.
    pub is_namespaced: bool,
    /// Plural of the resource.
    pub resource: String,
    /// Name of one object; empty for the collection.
    pub name: String,
    /// What below the object.
    pub subresource: String,
    /// Whether the path itself asks for a watch.
    pub is_watch: bool,
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1`, `/apis/GROUP/VERSION`: group and version.
    Resources(String, String),
    /// Resources.
    Resource(ResourcePath),
    /// Everything else, as its parts.
    Other(Vec<String>),
    /// A path below `/api` or `/apis` that names nothing.
    Unknown,
}

/// Reads a path.
pub(super) fn route(path: &str) -> Route {
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    let Some(parts) = path.split('/').map(percent_decode).collect::<Option<Vec<String>>>() else {
        return Route::Unknown;
    };
    let words: Vec<&str> = parts.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["api", version] => Route::Resources(String::new(), (*version).to_owned()),
        ["apis", group] => Route::Group((*group).to_owned()),
        ["apis", group, version] => Route::Resources((*group).to_owned(), (*version).to_owned()),
        ["api", version, rest @ ..] => resource_route("", version, rest),
        ["apis", group, version, rest @ ..] => resource_route(group, version, rest),
        _ => Route::Other(parts),
    }
}

fn resource_route(group: &str, version: &str, rest: &[&str]) -> Route {
    let (is_watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        _ => (false, rest),
    };
    let mut path =
        ResourcePath { group: group.into(), version: version.into(), is_watch, ..ResourcePath::default() };
    let rest = match rest {
        // A namespace is itself an object; only these two words can follow it as something of its own.
        ["namespaces"] | ["namespaces", _] | ["namespaces", _, "status" | "finalize"] if group.is_empty() => {
            rest
        }
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
            path.namespace = (*namespace).to_owned();
            path.is_namespaced = true;
            rest
        }
        _ => rest,
    };
    // No name contains a slash, so what was escaped in the path stands for nothing.
    let texts = match rest {
        [resource] => [*resource, "", ""],
        [resource, name] => [*resource, *name, ""],
        [resource, name, subresource] => [*resource, *name, *subresource],
        [resource, name, subresource, ..] if *subresource == "proxy" => [*resource, *name, *subresource],
        _ => return Route::Unknown,
    };
    let [resource, name, subresource] = texts;
    if resource.is_empty() || [name, subresource].iter().any(|text| text.contains('/')) {
        return Route::Unknown;
    }
    path.resource = resource.to_owned();
    path.name = name.to_owned();
    path.subresource = subresource.to_owned();
    Route::Resource(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> [String; 6] {
        match route(path) {
            Route::Resource(path) => {
                let watch = if path.is_watch { "watch" } else { "" };
                [path.group, path.namespace, path.resource, path.name, path.subresource, watch.into()]
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn paths_name_group_namespace_resource_name_and_subresource() {
        let cases = [
            ("/api/v1/pods", ["", "", "pods", "", "", ""]),
            ("/api/v1/namespaces/ns/pods/", ["", "ns", "pods", "", "", ""]),
            ("/api/v1/namespaces/ns/pods/p/log", ["", "ns", "pods", "p", "log", ""]),
            ("/api/v1/namespaces", ["", "", "namespaces", "", "", ""]),
            ("/api/v1/namespaces/ns", ["", "", "namespaces", "ns", "", ""]),
            ("/api/v1/namespaces/ns/finalize", ["", "", "namespaces", "ns", "finalize", ""]),
            ("/api/v1/namespaces//configmaps", ["", "", "configmaps", "", "", ""]),
            (
                "/apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs/j",
                ["batch.volcano.sh", "ns", "jobs", "j", "", ""],
            ),
            ("/api/v1/watch/namespaces/ns/secrets/a", ["", "ns", "secrets", "a", "", "watch"]),
        ];
        for (path, expected) in cases {
            assert_eq!(resource(path), expected.map(str::to_owned), "{path}");
        }
    }

    #[test]
    fn other_paths_are_told_apart() {
        assert_eq!(route("/api"), Route::CoreVersions);
        assert_eq!(route("/apis/"), Route::Groups);
        assert_eq!(route("/apis/batch/"), Route::Group("batch".into()));
        assert_eq!(route("/api/v1/"), Route::Resources("".into(), "v1".into()));
        assert_eq!(route("/healthz/ping"), Route::Other(vec!["healthz".into(), "ping".into()]));
        for path in [
            "/api/v1//namespaces/ns/configmaps",
            "/api/v1/configmaps/a%2Fb",
            "/api/v1/pods/%zz",
            "/api/v1/a/b/c/d",
        ] {
            assert_eq!(route(path), Route::Unknown, "{path}");
        }
    }
}
