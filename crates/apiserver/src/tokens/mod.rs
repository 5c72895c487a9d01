//! Tokens of service accounts: made on request, believed when they are shown.
//!
//! ```text
//!   POST serviceaccounts/NAME/token ┐                     ┌ a request's bearer token
//!   the node, for a pod's files     ├─> issue -> a token ─┤
//!                                   ┘                     └ TokenReview -> whose
//! ```
//!
//! A token is good as long as its time lasts and as what it names is there: the account and, if it was made for one, the
//! pod or Secret. All by UID: a successor of the same name does not inherit it.

mod jwt;

use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use krafla_api::{Key, Time};
use krafla_schema::field::FieldError;
use krafla_schema::object;
use serde_json::{Value, json};

use crate::http::write_private;
use crate::ops::Api;
use crate::status::{Qualified, Status};
use jwt::Signer;

/// Who makes the tokens, and for whom they are if nobody says.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// How long a token lasts that does not say.
const SECONDS_DEFAULT: i64 = 3600;
const SECONDS_MIN: i64 = 10 * 60;
const SECONDS_MAX: i64 = 1 << 32;
/// Pods' tokens of exactly this duration are for programs that may read them once only: they last a year.
pub const POD_SECONDS: i64 = 3607;
const POD_SECONDS_GRANTED: i64 = 365 * 24 * 3600;
/// The file of the key in the data directory.
const FILE: &str = "service-account.key";

/// Makes tokens of service accounts, and knows them again.
pub struct Tokens {
    /// Made when it is first needed: most runs of a job need none, and making a key takes as long as a short job.
    signer: OnceLock<Signer>,
}

/// Whose a token is.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    /// `system:serviceaccount:NAMESPACE:NAME`.
    pub name: String,
    /// The account's UID.
    pub uid: String,
    /// The groups of all accounts, of those of the namespace, and of all who have a name.
    pub groups: Vec<String>,
    /// What else is known: the token's own name, and the pod that it was made for.
    pub extra: Value,
    /// For whom the token is, of those that were asked about.
    pub audiences: Vec<String>,
}

impl Tokens {
    /// Tokens that nobody knows again after a restart.
    pub fn for_now() -> Tokens {
        Tokens { signer: OnceLock::new() }
    }

    /// Tokens whose key is kept in a directory.
    pub fn kept_in(dir: &Path) -> io::Result<Tokens> {
        let path = dir.join(FILE);
        let kept = match std::fs::read_to_string(&path) {
            Ok(text) => STANDARD.decode(text.trim()).map_err(io::Error::other)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = Signer::new_key().map_err(io::Error::other)?;
                write_private(&path, &STANDARD.encode(&made))?;
                made
            }
            Err(error) => return Err(error),
        };
        let signer =
            Signer::of_key(&kept).map_err(|why| io::Error::other(format!("{}: {why}", path.display())))?;
        Ok(Tokens { signer: signer.into() })
    }

    fn signer(&self) -> Result<&Signer, String> {
        if let Some(signer) = self.signer.get() {
            return Ok(signer);
        }
        let made = Signer::of_key(&Signer::new_key()?)?;
        // If two make one at a time, the first is the one that counts.
        Ok(self.signer.get_or_init(|| made))
    }

    /// The public keys, for those who check tokens by themselves.
    pub(crate) fn public_keys(&self) -> Value {
        self.signer().map_or_else(|_| json!({"keys": []}), Signer::public_keys)
    }

    /// Answers a TokenRequest for an account.
    pub fn issue(&self, api: &Api, account: &Key, request: &Value) -> Result<Value, Status> {
        let spec = Asked::read(request)?;
        let found = find(api, "ServiceAccount", account).ok_or_else(|| {
            Status::not_found(&Qualified { group: "", what: "serviceaccounts" }, &account.name)
        })?;
        let bound = spec.bound_object(api, account)?;
        let now = api.env().now();
        let is_pods = bound.as_ref().is_some_and(|(kind, _)| kind == "pod");
        let granted = match spec.seconds {
            POD_SECONDS if is_pods && spec.audiences == [ISSUER] => POD_SECONDS_GRANTED,
            seconds => seconds,
        };
        let mut about = json!({
            "namespace": &*account.namespace,
            "serviceaccount": {"name": &*account.name, "uid": object::uid(&found)},
        });
        if granted != spec.seconds {
            object::set(&mut about, "warnafter", seconds_of(later(now, spec.seconds)));
        }
        if let Some((kind, bound)) = bound {
            object::set(&mut about, &kind, json!({"name": object::name(&bound), "uid": object::uid(&bound)}));
        }
        let claims = json!({
            "aud": spec.audiences, "iss": ISSUER, "jti": &*api.env().uid().0,
            "iat": seconds_of(now), "nbf": seconds_of(now), "exp": seconds_of(later(now, granted)),
            "sub": account_name(account), "kubernetes.io": about,
        });
        let token = self.signer().and_then(|signer| signer.sign(&claims));
        let token = token.map_err(|why| Status::internal(&why))?;
        Ok(json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "metadata": {
                "name": &*account.name, "namespace": &*account.namespace, "creationTimestamp": now,
            },
            "spec": {
                "audiences": spec.audiences, "expirationSeconds": spec.seconds,
                "boundObjectRef": object::at(request, "/spec/boundObjectRef"),
            },
            "status": {"token": token, "expirationTimestamp": later(now, spec.seconds)},
        }))
    }

    /// Whose a token is, if it is one of ours, for one of these audiences, and still good.
    pub fn holder(&self, api: &Api, token: &str, audiences: &[String]) -> Option<Holder> {
        let claims = &self.signer.get()?.read(token)?;
        let now = seconds_of(api.env().now());
        let is_in_time = claims["nbf"].as_i64()? <= now && now < claims["exp"].as_i64()?;
        let named = object::strings(claims.get("aud"));
        let meant: Vec<String> =
            audiences.iter().filter(|audience| named.contains(&audience.as_str())).cloned().collect();
        if !is_in_time || claims["iss"] != ISSUER || meant.is_empty() {
            return None;
        }
        let about = claims.get("kubernetes.io")?;
        let namespace = about["namespace"].as_str()?;
        let is_there = |kind: &str, claim: &Value| {
            let name = claim["name"].as_str().unwrap_or_default();
            let found = find(api, kind, &Key::new(namespace, name));
            found.is_some_and(|found| claim["uid"] == *object::uid(&found))
        };
        let account = &about["serviceaccount"];
        if !is_there("ServiceAccount", account) {
            return None;
        }
        let mut extra = json!({});
        let credential = format!("JTI={}", claims["jti"].as_str().unwrap_or_default());
        object::set(&mut extra, "authentication.kubernetes.io/credential-id", json!([credential]));
        for (kind, field) in BOUND {
            let Some(claim) = about.get(field) else { continue };
            if !is_there(kind, claim) {
                return None;
            }
            if field == "pod" {
                object::set(&mut extra, "authentication.kubernetes.io/pod-name", json!([claim["name"]]));
                object::set(&mut extra, "authentication.kubernetes.io/pod-uid", json!([claim["uid"]]));
            }
        }
        Some(Holder {
            name: claims["sub"].as_str()?.to_owned(),
            uid: account["uid"].as_str()?.to_owned(),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ],
            extra,
            audiences: meant,
        })
    }
}

/// What a token can be made for: the kind, and the claim that names the object.
const BOUND: [(&str, &str); 2] = [("Pod", "pod"), ("Secret", "secret")];

/// What a TokenRequest asks for.
struct Asked<'a> {
    audiences: Vec<&'a str>,
    seconds: i64,
    bound: &'a Value,
}

impl Asked<'_> {
    fn read(request: &Value) -> Result<Asked<'_>, Status> {
        let seconds = object::at(request, "/spec/expirationSeconds").as_i64().unwrap_or(SECONDS_DEFAULT);
        let why = match seconds {
            ..SECONDS_MIN => Some("may not specify a duration less than 10 minutes"),
            SECONDS_MIN..=SECONDS_MAX => None,
            _ => Some("may not specify a duration larger than 2^32 seconds"),
        };
        if let Some(why) = why {
            let error = FieldError::invalid("spec.expirationSeconds", seconds, why);
            let about = Qualified { group: "authentication.k8s.io", what: "TokenRequest" };
            return Err(Status::invalid(&about, object::name(request), &[error]));
        }
        let mut audiences = object::strings(request.pointer("/spec/audiences"));
        if audiences.is_empty() {
            audiences = vec![ISSUER];
        }
        Ok(Asked { audiences, seconds, bound: object::at(request, "/spec/boundObjectRef") })
    }

    /// The object that the token is made for, and the claim that names it.
    fn bound_object(&self, api: &Api, account: &Key) -> Result<Option<(String, Value)>, Status> {
        if self.bound.is_null() {
            return Ok(None);
        }
        let text = |field: &str| self.bound[field].as_str().unwrap_or_default();
        let (kind, name) = (text("kind"), text("name"));
        let Some((_, claim)) = BOUND.iter().find(|(bound, _)| *bound == kind && text("apiVersion") == "v1")
        else {
            let what = "cannot bind token for serviceaccount";
            return Err(Status::bad_request(format!(
                "{what} {:?} to object type {}, Kind={kind}: use a Pod or a Secret of version v1",
                account.name,
                text("apiVersion")
            )));
        };
        let plural = format!("{}s", kind.to_lowercase());
        let about = Qualified { group: "", what: &plural };
        let found = find(api, kind, &Key::new(&account.namespace, name));
        let found = found.ok_or_else(|| Status::not_found(&about, name))?;
        let (asked, uid) = (text("uid"), object::uid(&found));
        if !asked.is_empty() && asked != uid {
            let why = format!(
                "the UID in the bound object reference ({asked}) does not match the UID in record ({uid}). The object \
                 might have been deleted and then recreated"
            );
            return Err(Status::conflict(&about, name, &why));
        }
        let runs_as = object::text_at(&found, "spec.serviceAccountName");
        if kind == "Pod" && *runs_as != *account.name {
            return Err(Status::bad_request(format!(
                "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
                account.name
            )));
        }
        Ok(Some(((*claim).to_owned(), found)))
    }
}

/// What a service account is called as a user.
fn account_name(account: &Key) -> String {
    format!("system:serviceaccount:{}:{}", account.namespace, account.name)
}

/// An object of the core group, unless it is gone or going.
fn find(api: &Api, kind: &str, key: &Key) -> Option<Value> {
    let table = api.registry().table();
    let entry = api.store().get(&table.of_manifest("v1", kind)?.storage, key)?;
    if kind == "ServiceAccount" && entry.meta.is_deleting {
        return None;
    }
    serde_json::from_slice(&entry.bytes).ok()
}

fn later(now: Time, seconds: i64) -> Time {
    now.after(Duration::from_secs(seconds.unsigned_abs()))
}

fn seconds_of(time: Time) -> i64 {
    time.0.as_second()
}

#[cfg(test)]
mod tests;
