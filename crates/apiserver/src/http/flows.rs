//! Names the flow of a request in the headers of its answer, as kube-apiserver does.

use http::{HeaderName, HeaderValue, Request};
use krafla_admission::rbac::User;

use super::is_long_running;
use super::path::Route;
use super::query::Query;
use super::request_info::RequestInfo;
use crate::flow::{self, Asked, What};
use crate::ops::Api;

const SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// The headers for a request. Connections that are no requests, such as exec, belong to no flow.
pub(super) fn headers<T>(
    api: &Api,
    user: &User,
    request: &Request<T>,
    route: &Route,
    query: &Query,
) -> Vec<(HeaderName, HeaderValue)> {
    let info = RequestInfo::read(request.method(), request.uri().path(), query);
    if is_long_running(route, query) && info.verb != "watch" {
        return Vec::new();
    }
    let below = format!("{}/{}", info.resource, info.subresource);
    let resource = if info.subresource.is_empty() { info.resource.as_str() } else { &below };
    let what = if info.is_resource {
        What::Resource { group: &info.group, resource, namespace: &info.namespace }
    } else {
        What::Path(&info.path)
    };
    let flows = api.flows();
    let asked = Asked { user: &user.name, groups: &user.groups, verb: &info.verb, what };
    let flow = flow::classify(&flows, &asked);
    let header = |name: HeaderName, uid: &str| Some((name, HeaderValue::from_str(uid).ok()?));
    let named = |flow: &flow::Flow| [header(SCHEMA, &flow.schema_uid), header(LEVEL, &flow.level_uid)];
    flow.map(named).into_iter().flatten().flatten().collect()
}
