//! Leader election over HTTPS: one at a time, and the next when it is free.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use krafla_api::{Key, Kind};
use krafla_cluster::{Client, ClientError, Event, Listed, Step, Written};
use krafla_runtime::SystemClock;
use krafla_runtime::lease::{Candidate, Election};
use serde_json::{Value, json};

use crate::support::Server;

fn election(identity: &str, lease_duration: Duration) -> Election {
    Election {
        lease: Key::new("volcano-system", "vc-controller-manager"),
        identity: identity.to_owned(),
        lease_duration,
        renew_deadline: Duration::from_secs(3600),
        retry_period: Duration::from_millis(10),
    }
}

async fn lease(client: &dyn Client) -> Value {
    let json = client.get(Kind::Lease, &Key::new("volcano-system", "vc-controller-manager")).await.unwrap();
    let lease: Value = serde_json::from_slice(&json).unwrap();
    lease["spec"].clone()
}

#[tokio::test]
async fn a_lease_that_is_given_back_goes_to_the_next_at_once() {
    let server = Server::start().await;
    let (https, hour) = (server.https(), Duration::from_secs(3600));
    let mut first = Candidate::new(election("first", hour), https.as_ref(), &SystemClock);
    let mut second = Candidate::new(election("second", hour), server.local.as_ref(), &SystemClock);
    first.acquire().await;
    let taken = lease(server.local.as_ref()).await;
    assert_eq!((&taken["holderIdentity"], &taken["leaseTransitions"]), (&"first".into(), &0.into()));
    assert_eq!(taken["leaseDurationSeconds"], 3600);
    first.release().await.unwrap();
    second.acquire().await;
    let taken = lease(server.local.as_ref()).await;
    assert_eq!((&taken["holderIdentity"], &taken["leaseTransitions"]), (&"second".into(), &1.into()));
}

#[tokio::test]
async fn a_lease_that_nobody_renews_goes_to_the_next_and_its_holder_learns_of_it() {
    let server = Server::start().await;
    let (https, second) = (server.https(), Duration::from_secs(1));
    let mut silent = Candidate::new(election("silent", second), https.as_ref(), &SystemClock);
    silent.acquire().await;
    let mut next = Candidate::new(election("next", Duration::from_secs(3600)), https.as_ref(), &SystemClock);
    next.acquire().await;
    assert_eq!(lease(server.local.as_ref()).await["holderIdentity"], "next");
    assert_eq!(silent.keep().await, "another process holds it");
}

/// A cluster where a renewal that was still under way arrives right after the first look at the lease.
struct LateRenewal<'a> {
    cluster: &'a dyn Client,
    has_come: AtomicBool,
}

impl Client for LateRenewal<'_> {
    fn list(&self, kind: Kind) -> BoxFuture<'_, Result<Listed, ClientError>> {
        self.cluster.list(kind)
    }

    fn watch(&self, kind: Kind, revision: u64) -> BoxStream<'static, Result<Event, ClientError>> {
        self.cluster.watch(kind, revision)
    }

    fn get(&self, kind: Kind, key: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>> {
        let key = key.clone();
        async move {
            let seen = self.cluster.get(kind, &key).await?;
            if !self.has_come.swap(true, Ordering::SeqCst) {
                let lease: Value = serde_json::from_slice(&seen).unwrap();
                let renewal = Step::Patch {
                    kind,
                    key,
                    uid: lease["metadata"]["uid"].as_str().unwrap().into(),
                    revision: None,
                    of_status: false,
                    patch: json!({ "spec": { "renewTime": "2027-01-15T08:00:00.000000Z" } }),
                };
                self.cluster.write(&renewal).await?;
            }
            Ok(seen)
        }
        .boxed()
    }

    fn write<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
        self.cluster.write(step)
    }
}

#[tokio::test]
async fn a_renewal_that_was_under_way_does_not_keep_a_lease_from_being_given_back() {
    let server = Server::start().await;
    let cluster = LateRenewal { cluster: server.local.as_ref(), has_come: AtomicBool::new(true) };
    let mut holder = Candidate::new(election("holder", Duration::from_secs(3600)), &cluster, &SystemClock);
    holder.acquire().await;
    cluster.has_come.store(false, Ordering::SeqCst);
    holder.release().await.unwrap();
    assert_eq!(lease(server.local.as_ref()).await["holderIdentity"], "");
}
