//! Leader election over HTTPS: one at a time, and the next when it is free.

use std::time::Duration;

use krafla_api::{Key, Kind};
use krafla_runtime::lease::{Candidate, Election};
use krafla_runtime::{Client, SystemClock};
use serde_json::Value;

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
    assert_eq!(silent.keep().await, "somebody else has it");
}
