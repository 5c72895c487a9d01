//! The end of a run whose jobs have not ended: they are deleted, and their pods end in order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::StreamExt;
use krafla_api::{Key, Kind, Uid};
use krafla_cluster::{ClientError, EventType};
use krafla_plan::Object;
use tokio::time::{Instant, MissedTickBehavior};

use super::{Followed, Run, Signals};
use crate::changes::changes;
use crate::cli::Limit;
use crate::cluster::listed;
use crate::home::plainly;
use crate::outcome::Outcome;
use crate::pod_logs::is_of_job;
use crate::progress::{self, JobKey};
use crate::submit::{Making, deletion, patiently};

/// How often it is said which pods have yet to end, if they are others than before.
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// How often it is looked whether something went that no watch told of.
const LISTED_EVERY: Duration = Duration::from_secs(5);
/// How often, and after how long, it is asked again what is left.
const LIST_RETRIES_MAX: usize = 10;
const LIST_RETRIED_AFTER: Duration = Duration::from_secs(1);

impl Run<'_> {
    /// Ends what has not ended, unless all has. Returns whether somebody did not want to wait for that.
    pub(super) async fn end_early(
        &mut self,
        outcome: &anyhow::Result<Outcome>,
        timeout: Option<&Limit>,
        signals: &mut Signals,
    ) -> bool {
        match outcome {
            Ok(outcome) if !outcome.is_early() => return false,
            Ok(outcome) => self.say_why_early(*outcome, timeout),
            // What can not begin as a whole does not begin at all.
            Err(_) => {}
        }
        let is_hurried = signals.until_one(self.end_all()).await.is_none();
        if outcome.is_err() {
            self.say_what_is_left();
        }
        is_hurried
    }

    /// Says why jobs are ended that have not ended by themselves.
    fn say_why_early(&self, outcome: Outcome, timeout: Option<&Limit>) {
        for (job, followed) in self.unfinished() {
            let name = &job.1.name;
            match outcome {
                // What that is has been said.
                Outcome::Stuck => {
                    self.screen.line(&format!(
                        "{name}: cannot make progress: nothing in this cluster can change what it waits for"
                    ));
                }
                Outcome::TimedOut => {
                    let limit = timeout.map_or("its time", |limit| &limit.given);
                    let reason =
                        self.reason(job, followed, Instant::now()).map(|why| format!("waiting: {why}"));
                    let state = || followed.seen.as_ref().map_or("Pending".to_owned(), progress::phase);
                    let state = reason.unwrap_or_else(state);
                    self.screen.line(&format!("{name}: exceeded --timeout {limit}: {state}"));
                }
                _ => {}
            }
        }
        let [why, again] =
            if outcome == Outcome::Interrupted { ["interrupted: ", "another "] } else { ["", ""] };
        let hurry = if self.home.is_own() { "ends them at once" } else { "does not wait for their pods" };
        let line = format!("{why}ending all jobs; {again}Ctrl-C {hurry}");
        if self.to_end().next().is_some() {
            self.screen.line(&line);
        }
    }

    /// Of a run that could not begin: names what stays of it.
    fn say_what_is_left(&self) {
        if !self.made.is_empty() && !self.home.is_own() {
            let made = self.made.join(", ");
            self.screen.line(&format!("created before the mistake was found, and not deleted: {made}"));
        }
    }

    /// Ends all jobs in order, and prints what their pods write meanwhile.
    async fn end_all(&mut self) {
        self.follow_last_made().await;
        let is_reached = self.end_jobs().await;
        if let Some(logs) = self.logs.take().filter(|_| is_reached) {
            let is_whole = logs.finish().await;
            self.say_if_lost(is_whole);
        }
    }

    /// A job that was being made when the run was interrupted may be there.
    async fn follow_last_made(&mut self) {
        let Some(Making { kind, task }) = self.making.take() else { return };
        if let (Some(kind), Ok(Ok(made))) = (kind, task.await) {
            let followed = Followed::new(made.uid, self.followed.len(), Vec::new());
            self.followed.insert((kind, made.key), followed);
        }
    }

    /// What does not outlive a run that ends early: what has not ended, and CronJobs, which would make Jobs for ever.
    fn to_end(&self) -> impl Iterator<Item = (&JobKey, &Followed)> {
        self.followed.iter().filter(|((kind, _), followed)| {
            let goes_on = progress::made_by(*kind).is_some() && !followed.was_deleted;
            goes_on || !followed.has_ended()
        })
    }

    /// Deletes the jobs and flows of this run that have not ended, and waits until they, and with them their pods, are gone.
    /// Returns whether the cluster took that of any of them.
    async fn end_jobs(&self) -> bool {
        let mut deleted: BTreeMap<Kind, BTreeSet<&Uid>> = BTreeMap::new();
        let mut unreached = Vec::new();
        for ((kind, key), followed) in self.to_end() {
            let step = deletion(*kind, key, &followed.uid);
            match patiently(|| self.home.client.write(&step)).await {
                // One that is gone already, or another one of its name, has ended.
                Ok(_) | Err(ClientError::NotFound(_) | ClientError::Conflict(_)) => {
                    deleted.entry(*kind).or_default().insert(&followed.uid);
                }
                Err(error) => unreached.push((kind.info().singular, key, error)),
            }
        }
        if let Some((_, _, error)) = unreached.first() {
            let names: Vec<String> =
                unreached.iter().map(|(kind, key, _)| format!("{kind} {}", key.name)).collect();
            let (names, error) = (names.join(", "), plainly(error));
            let remedy = "delete it with kubectl when the cluster answers again";
            self.screen.line(&format!("cannot delete {names}: {error}; fix: {remedy}"));
        }
        let gone = async {
            for (kind, uids) in &deleted {
                self.until_gone(*kind, uids).await?;
            }
            Ok(())
        };
        let mut ticks = tokio::time::interval_at(Instant::now() + TOLD_EVERY, TOLD_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = String::new();
        tokio::pin!(gone);
        loop {
            tokio::select! {
                gone = &mut gone => {
                    if let Err(error) = gone {
                        let line = format!("cannot check whether all pods have terminated: {}", plainly(&error));
                        self.screen.line(&line);
                    }
                    return !deleted.is_empty();
                }
                _ = ticks.tick() => {
                    let left = self.pods_left().await;
                    let line = format!("pods that have not terminated yet: {}", listed(&left));
                    if !left.is_empty() && line != told {
                        self.screen.line(&line);
                        told = line;
                    }
                }
            }
        }
    }

    /// The pods of what is ended that are still there.
    async fn pods_left(&self) -> Vec<Key> {
        let pods = self.home.client.list(Kind::Pod).await.map(|pods| pods.items).unwrap_or_default();
        let pods = pods.iter().map(|json| Object::decode(Kind::Pod, json));
        let ended = self.to_end().flat_map(|(job, followed)| followed.steps.iter().chain([job]));
        let ended: Vec<&JobKey> = ended.collect();
        pods.filter(|pod| ended.iter().any(|job| is_of_job(pod, job))).map(|pod| pod.meta.key).collect()
    }

    /// Waits until these objects of a kind are gone. What those have made goes before them.
    async fn until_gone(&self, kind: Kind, uids: &BTreeSet<&Uid>) -> Result<(), ClientError> {
        let mut n_errors = 0;
        loop {
            let listed = match self.home.client.list(kind).await {
                Ok(listed) => listed,
                Err(error) if n_errors >= LIST_RETRIES_MAX => return Err(error),
                Err(_) => {
                    n_errors += 1;
                    tokio::time::sleep(LIST_RETRIED_AFTER).await;
                    continue;
                }
            };
            let there = listed.items.iter().map(|item| Object::decode(kind, item).meta.uid);
            let mut left: BTreeSet<Uid> = there.filter(|uid| uids.contains(uid)).collect();
            let mut events = changes(self.home.client.clone(), kind, listed.revision);
            let look_again_at = Instant::now() + LISTED_EVERY;
            while !left.is_empty() {
                // A watch that had to begin anew does not tell of what went meanwhile.
                let Ok(event) = tokio::time::timeout_at(look_again_at, events.next()).await else { break };
                if let Some(Ok(event)) = event
                    && event.event_type == EventType::Deleted
                {
                    left.remove(&Object::decode(kind, &event.object).meta.uid);
                }
            }
            if left.is_empty() {
                return Ok(());
            }
        }
    }
}
