//! The life of tokens, told as stories.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use expect_test::expect;
use futures_util::FutureExt;
use krafla_api::{Kind, Uid};

use super::*;
use crate::admit::Admission;
use crate::env::{Env, uid_of};
use crate::ops::{DeleteOptions, WriteOptions};
use crate::store::Store;

/// Surroundings in which time is what a test says.
#[derive(Default)]
struct Clock {
    seconds: AtomicI64,
    n_uids: AtomicI64,
}

impl Env for Clock {
    fn now(&self) -> Time {
        Time::from_seconds(1_800_000_000 + self.seconds.load(Ordering::Relaxed))
    }

    fn uid(&self) -> Uid {
        let mut bytes = [0; 16];
        bytes[8..].copy_from_slice(&self.n_uids.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        uid_of(bytes)
    }

    fn suffix(&self) -> String {
        "abcde".to_owned()
    }
}

struct Cluster {
    api: Api,
    clock: Arc<Clock>,
    tokens: Tokens,
}

impl Cluster {
    fn new() -> Cluster {
        let clock = Arc::new(Clock::default());
        let api = Api::new(Store::in_memory(), clock.clone(), Admission::default());
        api.bootstrap().now_or_never().expect("ready at once").expect("a new cluster");
        let cluster = Cluster { api, clock, tokens: Tokens::for_now() };
        cluster.create(Kind::ServiceAccount, json!({"metadata": {"name": "robot"}}));
        cluster
    }

    fn create(&self, kind: Kind, object: Value) {
        let resource = self.api.registry().of_kind(kind).unwrap();
        let object = crate::codec::normalise(&resource, &object).unwrap();
        let options = WriteOptions::default();
        self.api.create(&resource, "default", object, &options).now_or_never().unwrap().unwrap();
    }

    fn delete(&self, kind: Kind, name: &str) {
        let resource = self.api.registry().of_kind(kind).unwrap();
        let options = DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() };
        let key = Key::new("default", name);
        self.api.delete(&resource, &key, &options).now_or_never().unwrap().unwrap();
    }

    fn issue(&self, spec: Value) -> Result<Value, Status> {
        self.tokens.issue(&self.api, &Key::new("default", "robot"), &json!({"spec": spec}))
    }

    fn token(&self, spec: Value) -> String {
        self.issue(spec).unwrap()["status"]["token"].as_str().unwrap().to_owned()
    }

    fn holder(&self, token: &str, audience: &str) -> Option<Holder> {
        self.tokens.holder(&self.api, token, &[audience.to_owned()])
    }

    fn pod(&self) -> Value {
        self.create(
            Kind::Pod,
            json!({
                "metadata": {"name": "p"},
                "spec": {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "any"}]},
            }),
        );
        json!({"apiVersion": "v1", "kind": "Pod", "name": "p"})
    }
}

#[test]
fn a_token_says_whose_it_is_for_as_long_as_it_lasts() {
    let cluster = Cluster::new();
    let token = cluster.token(json!({"expirationSeconds": 600}));
    let holder = cluster.holder(&token, ISSUER).unwrap();
    assert_eq!(holder.name, "system:serviceaccount:default:robot");
    assert_eq!(
        holder.groups,
        ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
    );
    cluster.clock.seconds.store(599, Ordering::Relaxed);
    assert_eq!(cluster.holder(&token, ISSUER), Some(holder));
    cluster.clock.seconds.store(600, Ordering::Relaxed);
    assert_eq!(cluster.holder(&token, ISSUER), None);
}

#[test]
fn a_token_is_for_those_it_names() {
    let cluster = Cluster::new();
    let token = cluster.token(json!({"audiences": ["vault"]}));
    assert_eq!(cluster.holder(&token, ISSUER), None);
    assert_eq!(cluster.holder(&token, "vault").unwrap().audiences, ["vault"]);
}

#[test]
fn a_token_does_not_outlive_its_account_not_even_by_a_namesake() {
    let cluster = Cluster::new();
    let token = cluster.token(json!({}));
    assert!(cluster.holder(&token, ISSUER).is_some());
    cluster.delete(Kind::ServiceAccount, "robot");
    assert_eq!(cluster.holder(&token, ISSUER), None);
    cluster.create(Kind::ServiceAccount, json!({"metadata": {"name": "robot"}}));
    assert_eq!(cluster.holder(&token, ISSUER), None);
}

#[test]
fn a_pods_token_goes_with_the_pod_and_lasts_as_long() {
    let cluster = Cluster::new();
    let token = cluster.token(json!({"expirationSeconds": POD_SECONDS, "boundObjectRef": cluster.pod()}));
    cluster.clock.seconds.store(30 * 24 * 3600, Ordering::Relaxed);
    let holder = cluster.holder(&token, ISSUER).unwrap();
    assert_eq!(holder.extra["authentication.kubernetes.io/pod-name"], json!(["p"]));
    cluster.delete(Kind::Pod, "p");
    assert_eq!(cluster.holder(&token, ISSUER), None);
}

#[test]
fn what_cannot_be_asked_for_is_refused() {
    let cluster = Cluster::new();
    let pod = cluster.pod();
    let refusal = |spec: Value| cluster.issue(spec).unwrap_err().to_string();
    let of_other = |field: &str, value: &str| {
        let mut other = pod.clone();
        other[field] = value.into();
        refusal(json!({"boundObjectRef": other}))
    };
    let said = [
        refusal(json!({"expirationSeconds": 599})),
        refusal(json!({"expirationSeconds": 5_000_000_000_i64})),
        of_other("kind", "Node"),
        of_other("name", "q"),
        of_other("uid", "another"),
    ];
    expect![[r#"
        TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes
        TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 5000000000: may not specify a duration larger than 2^32 seconds
        cannot bind token for serviceaccount "robot" to object type v1, Kind=Node: use a Pod or a Secret of version v1
        pods "q" not found
        Operation cannot be fulfilled on pods "p": the UID in the bound object reference (another) does not match the UID in record (00000000-0000-4000-8000-000000000015). The object might have been deleted and then recreated"#]].assert_eq(&said.join("\n"));
}

#[test]
fn a_kept_key_knows_the_tokens_of_before() {
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::new();
    cluster.tokens = Tokens::kept_in(dir.path()).unwrap();
    let token = cluster.token(json!({}));
    cluster.tokens = Tokens::kept_in(dir.path()).unwrap();
    assert!(cluster.holder(&token, ISSUER).is_some());
    std::fs::write(dir.path().join(FILE), "bm8ga2V5").unwrap();
    assert!(Tokens::kept_in(dir.path()).is_err());
}
