//! Acting as another user: `Impersonate-User` and its sisters.
//!
//! A user who may `impersonate` a user, group, account, UID or extra value may do so in every request. Beside that there are
//! constrained modes, as Kubernetes has them since 1.36: the verb `impersonate:MODE` says as whom, and
//! `impersonate-on:MODE:VERB` what may be done as that user. The modes are tried in order, and the first refusal is the
//! one that is told.

use std::collections::BTreeMap;

use http::HeaderMap;
use krafla_admission::rbac::{Attributes, ResourceTarget, Target, User};
use krafla_schema::json::go_quote;
use krafla_schema::names;

use super::query::percent_decode;
use super::request_info::RequestInfo;
use crate::authorizer::forbidden;
use crate::ops::Api;
use crate::status::Status;
use crate::users::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED};

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";

const AUTHENTICATION: &str = "authentication.k8s.io";
/// From how many values on it is asked first whether all of them are allowed.
const MANY: usize = 4;

/// Whether a request wants to act as another user.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with("impersonate-"))
}

/// The user that a request wants to act as, if it wants to and may.
pub(super) fn user(
    api: &Api,
    requestor: &User,
    headers: &HeaderMap,
    info: &RequestInfo,
) -> Result<Option<User>, Status> {
    let Some(wanted) = wanted(headers)? else { return Ok(None) };
    let asking = Asking { api, requestor, wanted: &wanted };
    let mut first_refusal = None;
    for mode in [ARBITRARY_NODE, ACCOUNT, USER_INFO, LEGACY] {
        if !mode.applies(&wanted) {
            continue;
        }
        match asking.try_mode(&mode, info) {
            Ok(user) => return Ok(Some(user)),
            Err(refusal) => {
                first_refusal.get_or_insert(refusal);
            }
        }
    }
    Err(first_refusal.unwrap_or_else(|| Status::internal("all impersonation modes failed")))
}

/// Reads the headers.
fn wanted(headers: &HeaderMap) -> Result<Option<User>, Status> {
    let text =
        |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let mut wanted = User { name: text(USER), uid: text(UID), ..User::default() };
    let values = |name: &http::HeaderName| -> Vec<String> {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(str::to_owned).collect()
    };
    for name in headers.keys() {
        if name.as_str() == GROUP {
            wanted.groups = values(name);
        } else if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            let key = percent_decode(key).unwrap_or_else(|| key.to_owned());
            wanted.extra.entry(key).or_default().extend(values(name));
        }
    }
    let User { name, uid, groups, extra } = &wanted;
    if !name.is_empty() {
        return Ok(Some(wanted));
    }
    if uid.is_empty() && groups.is_empty() && extra.is_empty() {
        return Ok(None);
    }
    let list = |list: &[String]| {
        if list.is_empty() { "[]string(nil)".to_owned() } else { format!("[]string{{{}}}", joined(list)) }
    };
    let pairs: Vec<String> =
        extra.iter().map(|(key, values)| format!("{}:{}", go_quote(key), list(values))).collect();
    let extra = match pairs.is_empty() {
        true => "map[string][]string(nil)".to_owned(),
        false => format!("map[string][]string{{{}}}", pairs.join(", ")),
    };
    Err(Status::bad_request(format!(
        "requested &user.DefaultInfo{{Name:\"\", UID:{}, Groups:{}, Extra:{extra}}} without impersonating a user name",
        go_quote(uid),
        list(groups)
    )))
}

fn joined(list: &[String]) -> String {
    list.iter().map(|item| go_quote(item)).collect::<Vec<_>>().join(", ")
}

/// One way to be allowed to act as another user.
struct Mode {
    /// Its name in verbs; empty for the one that knows no constraints.
    name: &'static str,
}

const ARBITRARY_NODE: Mode = Mode { name: "arbitrary-node" };
const ACCOUNT: Mode = Mode { name: "serviceaccount" };
const USER_INFO: Mode = Mode { name: "user-info" };
const LEGACY: Mode = Mode { name: "" };

impl Mode {
    fn is_constrained(&self) -> bool {
        !self.name.is_empty()
    }

    fn applies(&self, wanted: &User) -> bool {
        let has_only_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let (is_node, is_account) = (node_name(&wanted.name).is_some(), account(&wanted.name).is_some());
        match self.name {
            "arbitrary-node" => has_only_name && is_node,
            "serviceaccount" => has_only_name && is_account,
            "user-info" => !is_node && !is_account,
            _ => true,
        }
    }

    fn verb(&self) -> String {
        if self.is_constrained() { format!("impersonate:{}", self.name) } else { "impersonate".to_owned() }
    }
}

struct Asking<'a> {
    api: &'a Api,
    requestor: &'a User,
    wanted: &'a User,
}

impl Asking<'_> {
    fn try_mode(&self, mode: &Mode, info: &RequestInfo) -> Result<User, Status> {
        if mode.is_constrained() {
            let verb = format!("impersonate-on:{}:{}", mode.name, info.verb);
            let attributes = info.attributes(self.requestor);
            self.check(&Attributes { verb: &verb, ..attributes })?;
        }
        let (verb, wanted) = (mode.verb(), self.wanted);
        let group = if mode.is_constrained() { AUTHENTICATION } else { "" };
        let target = ResourceTarget { group, version: "v1", ..ResourceTarget::default() };
        let mut user = wanted.clone();
        let of_name = match (node_name(&wanted.name), account(&wanted.name)) {
            (Some(name), _) if mode.is_constrained() => {
                user.groups = vec!["system:nodes".to_owned()];
                ResourceTarget { resource: "nodes", name, ..target }
            }
            (_, Some((namespace, name))) => {
                if wanted.groups.is_empty() {
                    user.groups =
                        vec!["system:serviceaccounts".into(), format!("system:serviceaccounts:{namespace}")];
                }
                ResourceTarget { resource: "serviceaccounts", namespace, name, ..target }
            }
            _ => ResourceTarget { resource: "users", name: &wanted.name, ..target },
        };
        self.check_one(&verb, of_name)?;
        if !wanted.uid.is_empty() {
            let of_uid =
                ResourceTarget { group: AUTHENTICATION, resource: "uids", name: &wanted.uid, ..target };
            self.check_one(&verb, of_uid)?;
        }
        self.check_groups(mode, &verb, ResourceTarget { resource: "groups", ..target })?;
        let extras = ResourceTarget { group: AUTHENTICATION, resource: "userextras", ..target };
        self.check_extra(mode, &verb, extras)?;
        complete(&mut user);
        Ok(user)
    }

    fn check_groups(&self, mode: &Mode, verb: &str, target: ResourceTarget<'_>) -> Result<(), Status> {
        let groups = &self.wanted.groups;
        if mode.is_constrained() {
            let refused = |name, why| Err(self.refusal(verb, ResourceTarget { name, ..target }, why));
            if groups.iter().any(String::is_empty) {
                return refused("", "impersonating the empty string group is not allowed");
            }
            let masters = krafla_admission::rbac::MASTERS;
            if groups.iter().any(|group| group == masters) {
                return refused(masters, "impersonating the system:masters group is not allowed");
            }
            let all = ResourceTarget { name: "*", ..target };
            if groups.len() >= MANY && self.check_one(verb, all).is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.check_one(verb, ResourceTarget { name: group, ..target }))
    }

    fn check_extra(&self, mode: &Mode, verb: &str, target: ResourceTarget<'_>) -> Result<(), Status> {
        let extra = &self.wanted.extra;
        if mode.is_constrained() {
            if let Some(why) = faulty_extra(extra) {
                return Err(self.refusal(verb, target, &why));
            }
            let is_large = extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
            let all = ResourceTarget { subresource: "*", name: "*", ..target };
            if is_large && self.check_one(verb, all).is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.check_one(verb, ResourceTarget { subresource: key, name: value, ..target })?;
            }
        }
        Ok(())
    }

    fn check_one(&self, verb: &str, target: ResourceTarget<'_>) -> Result<(), Status> {
        self.check(&Attributes { user: self.requestor, verb, target: Target::Resource(target) })
    }

    fn check(&self, asked: &Attributes<'_>) -> Result<(), Status> {
        let decision = self.api.authorize(asked);
        if decision.allowed { Ok(()) } else { Err(forbidden(asked, &decision.reason)) }
    }

    fn refusal(&self, verb: &str, target: ResourceTarget<'_>, why: &str) -> Status {
        forbidden(&Attributes { user: self.requestor, verb, target: Target::Resource(target) }, why)
    }
}

/// What is wrong with extra values, where constrained modes are stricter.
fn faulty_extra(extra: &BTreeMap<String, Vec<String>>) -> Option<String> {
    for (key, values) in extra {
        if key.is_empty() {
            return Some("impersonating the empty string key in extra is not allowed".to_owned());
        }
        if key
            .split_once('/')
            .is_none_or(|(domain, path)| !names::dns_subdomain(domain).is_empty() || path.is_empty())
        {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            let why = format!("extra.key: Invalid value: {}: {why}", go_quote(key));
            return Some(format!("impersonating an invalid key in extra is not allowed: {why}"));
        }
        if values.is_empty() {
            return Some("impersonating empty values in extra is not allowed".to_owned());
        }
        if values.iter().any(String::is_empty) {
            return Some("impersonating the empty string value in extra is not allowed".to_owned());
        }
    }
    None
}

/// Everybody is in one of the two groups of those whose name is known and those whose is not.
fn complete(user: &mut User) {
    let has = |user: &User, wanted: &str| user.groups.iter().any(|group| group == wanted);
    if user.name == ANONYMOUS {
        if !has(user, UNAUTHENTICATED) {
            user.groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !has(user, UNAUTHENTICATED) && !has(user, AUTHENTICATED) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
}

/// The node that a user name stands for.
fn node_name(user: &str) -> Option<&str> {
    user.strip_prefix("system:node:").filter(|name| names::dns_subdomain(name).is_empty())
}

/// Namespace and name of the service account that a user name stands for.
fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let is_good = names::dns_label(namespace).is_empty() && names::dns_subdomain(name).is_empty();
    is_good.then_some((namespace, name))
}
