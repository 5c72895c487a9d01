//! Leader election by a Lease: of several programs that could act, one does.
//!
//! The rules are those of Volcano's and Kubernetes' own managers, so that this program can stand beside theirs. Clocks of
//! different machines are never compared: a lease is free when it has not changed for its duration by *our* clock since
//! *we* saw it change. Whoever can not renew in time stops acting before others may begin.

use std::time::Duration;

use krafla_api::{Key, Kind, Time, Uid};
use krafla_cluster::{Client, ClientError, Step};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::run::Clock;

/// Which lease, who wants it, and how patient everybody is.
#[derive(Clone, Debug)]
pub struct Election {
    /// The lease.
    pub lease: Key,
    /// Who we are: different for every process.
    pub identity: String,
    /// How long others wait after the last renewal.
    pub lease_duration: Duration,
    /// How long we try to renew before we stop acting; shorter than the lease.
    pub renew_deadline: Duration,
    /// How often we try.
    pub retry_period: Duration,
}

/// The lease as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Lease {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    uid: String,
    resource_version: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<u64>,
    lease_transitions: Option<u64>,
}

/// What is to be done about a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// Say that we are still there.
    Renew,
    /// It is free: take it.
    Take,
    /// Somebody has it.
    Wait,
}

/// Whose turn it is. `unchanged_for` is how long the lease has been as it is, by our clock.
fn claim(spec: &Spec, identity: &str, unchanged_for: Duration, lease_duration: Duration) -> Claim {
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    // Its holder knows best how long others should wait.
    let duration = spec.lease_duration_seconds.map_or(lease_duration, Duration::from_secs);
    match holder {
        holder if holder == identity => Claim::Renew,
        "" => Claim::Take,
        _ if unchanged_for > duration => Claim::Take,
        _ => Claim::Wait,
    }
}

/// Takes part in an election.
pub struct Candidate<'a> {
    election: Election,
    client: &'a dyn Client,
    clock: &'a dyn Clock,
    /// The lease as it was last seen to change, and when that was.
    seen: Option<(Lease, Instant)>,
}

impl<'a> Candidate<'a> {
    /// A candidate that has not looked yet.
    pub fn new(election: Election, client: &'a dyn Client, clock: &'a dyn Clock) -> Candidate<'a> {
        Candidate { election, client, clock, seen: None }
    }

    /// Waits until the lease is ours.
    pub async fn acquire(&mut self) {
        let mut told: Option<String> = None;
        loop {
            match self.attempt().await {
                Ok(true) => return,
                Ok(false) => {
                    let holder = self.seen.as_ref().and_then(|(lease, _)| lease.spec.holder_identity.clone());
                    if told != holder {
                        tracing::info!(lease = %self.election.lease, holder = holder.as_deref(), "waiting for the lease");
                        told = holder;
                    }
                }
                Err(error) => tracing::warn!(lease = %self.election.lease, %error, "no lease yet"),
            }
            tokio::time::sleep(self.election.retry_period).await;
        }
    }

    /// Renews the lease for as long as that is possible; returns why it was lost.
    pub async fn keep(&mut self) -> String {
        let mut renewed_at = Instant::now();
        loop {
            tokio::time::sleep(self.election.retry_period).await;
            let deadline = renewed_at + self.election.renew_deadline;
            match tokio::time::timeout_at(deadline, self.attempt()).await {
                Ok(Ok(true)) => renewed_at = Instant::now(),
                Ok(Ok(false)) => return "another process holds it".to_owned(),
                Ok(Err(error)) if Instant::now() < deadline => {
                    tracing::warn!(lease = %self.election.lease, %error, "cannot renew the lease");
                }
                Ok(Err(error)) => return error.to_string(),
                Err(_) => return format!("not renewed within {:?}", self.election.renew_deadline),
            }
        }
    }

    /// Gives the lease back, so that the next need not wait.
    pub async fn release(mut self) -> Result<(), ClientError> {
        loop {
            let Some(lease) = self.look().await? else { return Ok(()) };
            if lease.spec.holder_identity.as_deref() != Some(self.election.identity.as_str()) {
                return Ok(());
            }
            match self.patch(&lease, json!({ "holderIdentity": "", "leaseDurationSeconds": 1 })).await {
                // A renewal that was still under way came in between.
                Err(ClientError::Conflict(_)) => {}
                outcome => return outcome,
            }
        }
    }

    /// Tries once to take or renew the lease; whether it is ours now.
    async fn attempt(&mut self) -> Result<bool, ClientError> {
        let Some(lease) = self.look().await? else { return self.create().await };
        let now = Instant::now();
        let unchanged_for = match &self.seen {
            Some((seen, since)) if *seen == lease => now.saturating_duration_since(*since),
            _ => Duration::ZERO,
        };
        if unchanged_for.is_zero() {
            self.seen = Some((lease.clone(), now));
        }
        let Election { identity, lease_duration, .. } = &self.election;
        let spec = match claim(&lease.spec, identity, unchanged_for, *lease_duration) {
            Claim::Wait => return Ok(false),
            Claim::Renew => json!({ "renewTime": self.now() }),
            Claim::Take => self.taken(lease.spec.lease_transitions.unwrap_or_default().saturating_add(1)),
        };
        // If somebody was faster this is a conflict, and the next look tells who.
        self.patch(&lease, spec).await.map(|()| true)
    }

    async fn look(&mut self) -> Result<Option<Lease>, ClientError> {
        match self.client.get(Kind::Lease, &self.election.lease).await {
            Ok(json) => {
                let unreadable = |error| ClientError::Unknown(format!("cannot read the lease: {error}"));
                serde_json::from_slice(&json).map(Some).map_err(unreadable)
            }
            Err(ClientError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self) -> Result<bool, ClientError> {
        let Key { namespace, name } = &self.election.lease;
        let metadata = json!({ "namespace": &**namespace, "name": &**name });
        let object = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": self.taken(0),
        });
        match self.client.write(&Step::Create { kind: Kind::Lease, object }).await {
            Ok(_) => Ok(true),
            Err(ClientError::AlreadyExists(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn taken(&self, n_transitions: u64) -> Value {
        let now = self.now();
        json!({
            "holderIdentity": self.election.identity,
            "leaseDurationSeconds": self.election.lease_duration.as_secs().max(1),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": n_transitions,
        })
    }

    async fn patch(&self, lease: &Lease, spec: Value) -> Result<(), ClientError> {
        let step = Step::Patch {
            kind: Kind::Lease,
            key: self.election.lease.clone(),
            uid: Uid(lease.metadata.uid.as_str().into()),
            revision: lease.metadata.resource_version.parse().ok(),
            of_status: false,
            patch: json!({ "spec": spec }),
        };
        self.client.write(&step).await.map(|_| ())
    }

    fn now(&self) -> String {
        let now: Time = self.clock.now();
        now.to_micro_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_taken_only_from_whoever_has_left_it() {
        let of = |holder: Option<&str>, seconds| Spec {
            holder_identity: holder.map(str::to_owned),
            lease_duration_seconds: seconds,
            lease_transitions: None,
        };
        let after =
            |spec: &Spec, seconds| claim(spec, "me", Duration::from_secs(seconds), Duration::from_secs(15));
        assert_eq!(after(&of(None, None), 0), Claim::Take);
        assert_eq!(after(&of(Some(""), Some(15)), 0), Claim::Take);
        assert_eq!(after(&of(Some("me"), Some(15)), 0), Claim::Renew);
        assert_eq!(after(&of(Some("me"), Some(15)), 99), Claim::Renew);
        assert_eq!(after(&of(Some("other"), Some(15)), 0), Claim::Wait);
        assert_eq!(after(&of(Some("other"), Some(15)), 15), Claim::Wait);
        assert_eq!(after(&of(Some("other"), Some(15)), 16), Claim::Take);
        // The holder's word counts, not ours.
        assert_eq!(after(&of(Some("other"), Some(60)), 16), Claim::Wait);
        assert_eq!(after(&of(Some("other"), None), 16), Claim::Take);
    }
}
