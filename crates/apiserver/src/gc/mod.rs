//! Garbage collection: objects go when their owners are gone.
//!
//! ```text
//!   store ── events of every resource ──> graph    who names whom as owner, and whom to look at
//!                                           |
//!                                         facts    how the owners are now, by UID
//!                                           |
//!                                         judge    what is to become of the object: pure
//!                                           |
//!     Api <── delete, patch, on the revision that was judged
//! ```
//!
//! A deletion leaves a finalizer in an object if its dependents come first (`foregroundDeletion`) or are to stay
//! (`orphan`); the collector does what it says and takes it away. Without one, dependents go after their owner.
//!
//! Everything is read from the store itself, which is never behind, so an owner that is not found is gone. A step needs no
//! runtime: over a store in memory it is done at its first poll.

mod act;
mod facts;
mod graph;
mod judge;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use krafla_api::Uid;
use tokio::time::Instant;

use crate::ops::Api;
use crate::registry::Table;
use crate::status::Status;
use crate::store::{ResourceId, Watcher};

use graph::{Graph, Item};
use judge::Verdict;

/// The finalizer of an object whose dependents are to go first.
const FOREGROUND: &str = "foregroundDeletion";

/// The finalizer of an object whose dependents are to stay.
const ORPHAN: &str = "orphan";

/// How many objects are dealt with at once, so that their writes share the disk's syncs.
const AT_ONCE: usize = 64;

/// How long to wait after a failure, at first and at most.
const RETRY_AFTER: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// It is gone, so there is nothing more to do.
const NOT_FOUND: u16 = 404;

/// It has changed since it was judged.
const CONFLICT: u16 = 409;

/// Nothing owns events, nothing is owned by them, and there are many.
const IGNORED: [&str; 2] = ["events", "events.events.k8s.io"];

/// The garbage collector of one server.
pub struct Collector {
    api: Api,
    graph: Graph,
    feeds: BTreeMap<ResourceId, Watcher>,
    /// What was served when the feeds were last looked over.
    served: Option<Arc<Table>>,
    /// What was refused, until it is tried again.
    refused: BTreeSet<Item>,
}

/// Something that the collector did, or tried to do.
#[derive(Clone, Debug)]
pub struct Deed {
    item: Item,
    verdict: Verdict,
    /// Whether it was done.
    pub outcome: Result<(), Status>,
}

impl Collector {
    /// A collector that begins with what is stored.
    pub fn new(api: Api) -> Collector {
        let (graph, feeds, served, refused) = Default::default();
        let mut collector = Collector { api, graph, feeds, served, refused };
        collector.follow_served();
        collector
    }

    /// The same collector for a fork of its server.
    pub fn fork(&self, api: Api) -> Collector {
        let feeds = self.feeds.iter().map(|(resource, feed)| (resource.clone(), feed.in_fork(api.store())));
        let (feeds, graph) = (feeds.collect(), self.graph.clone());
        Collector { feeds, graph, served: self.served.clone(), refused: self.refused.clone(), api }
    }

    /// Collects for as long as it is polled.
    pub async fn run(mut self) {
        let [at_first, at_most] = RETRY_AFTER;
        let (mut delay, mut retry_at) = (at_first, Instant::now());
        let store = self.api.store().clone();
        loop {
            let looked_at = store.revision();
            let had_refused = !self.refused.is_empty();
            self.step().await;
            if self.graph.has_due() {
                continue;
            }
            if self.refused.is_empty() {
                delay = at_first;
                store.changed_after(looked_at).await;
                continue;
            }
            if !had_refused {
                retry_at = Instant::now() + delay;
                delay = at_most.min(2 * delay);
            }
            if tokio::time::timeout_at(retry_at, store.changed_after(looked_at)).await.is_err() {
                self.retry();
            }
        }
    }

    /// Does what is to be done now, and says what it did. What follows from that is for the next step.
    pub async fn step(&mut self) -> Vec<Deed> {
        self.catch_up();
        let due = self.graph.take_due();
        // What is due is judged in the light of everything that happened before it, in whatever resource.
        self.catch_up();
        let collector = &*self;
        let deeds = futures_util::stream::iter(due).map(|item| collector.deal_with(item));
        let deeds: Vec<Deed> = deeds.buffered(AT_ONCE).filter_map(std::future::ready).collect().await;
        for Deed { item, outcome, .. } in &deeds {
            match outcome {
                Ok(()) => {}
                Err(status) if status.code == CONFLICT => self.graph.look_at(item.clone()),
                Err(status) => {
                    tracing::warn!(object = %item, %status, "could not be collected; another attempt follows");
                    self.refused.insert(item.clone());
                }
            }
        }
        deeds
    }

    /// Lets the next step try again what was refused.
    pub fn retry(&mut self) {
        std::mem::take(&mut self.refused).into_iter().for_each(|item| self.graph.look_at(item));
    }

    async fn deal_with(&self, item: Item) -> Option<Deed> {
        let judged = self.facts(&item)?;
        let verdict = judge::judge(&judged.facts);
        if verdict == Verdict::Keep {
            return None;
        }
        let outcome = match self.act(&item, &judged, &verdict).await {
            Err(status) if status.code == NOT_FOUND => Ok(()),
            outcome => outcome,
        };
        Some(Deed { item, verdict, outcome })
    }

    /// Takes in everything that has happened.
    fn catch_up(&mut self) {
        self.follow_served();
        let Collector { graph, feeds, .. } = self;
        let mut expired = Vec::new();
        for (resource, feed) in feeds.iter_mut() {
            while let Some(event) = feed.try_next() {
                match event {
                    Ok(event) => graph.observe(resource, &event),
                    Err(_) => {
                        expired.push(resource.clone());
                        break;
                    }
                }
            }
        }
        if !expired.is_empty() {
            *self = Collector::new(self.api.clone());
        }
    }

    /// Follows every resource that is served. What was served once stays followed: its objects are still there.
    fn follow_served(&mut self) {
        let table = self.api.registry().table();
        if self.served.as_ref().is_some_and(|served| Arc::ptr_eq(served, &table)) {
            return;
        }
        for resource in table.resources().map(|resource| &resource.storage) {
            if !self.feeds.contains_key(resource) && !IGNORED.contains(&resource.as_str()) {
                self.follow(resource);
            }
        }
        self.served = Some(table);
        // A kind that was unknown before may be that of an owner.
        let alive: BTreeSet<Uid> = self.feeds.keys().flat_map(|resource| self.uids(resource)).collect();
        self.graph.look_for_lost(&alive);
    }

    fn follow(&mut self, resource: &ResourceId) {
        let snapshot = self.api.store().snapshot(resource);
        snapshot.entries.values().for_each(|entry| self.graph.begin_with(resource, entry));
        if let Ok(feed) = self.api.store().watch(resource, snapshot.revision) {
            self.feeds.insert(resource.clone(), feed);
        }
    }

    fn uids(&self, resource: &ResourceId) -> Vec<Uid> {
        let entries = self.api.store().snapshot(resource).entries;
        entries.values().map(|entry| entry.uid.clone()).collect()
    }
}
