//! Users: they do what the scenario's script says, one thing after the other.

use std::collections::VecDeque;
use std::time::Duration;

use krafla_api::{Kind, Time};

use crate::clock;
use crate::oracle::Oracle;
use crate::scenario::{Act, Deed, When, key};
use crate::server::Server;

/// Users with what is left of their script.
#[derive(Debug)]
pub(crate) struct User {
    script: VecDeque<Act>,
}

impl User {
    pub(crate) fn new(script: Vec<Act>) -> User {
        User { script: script.into() }
    }

    /// Whether the whole script has been played.
    pub(crate) fn is_done(&self) -> bool {
        self.script.is_empty()
    }

    /// Whether the time has come for the next act.
    pub(crate) fn is_ready(&self, oracle: &Oracle, elapsed: Duration) -> bool {
        let Some(act) = self.script.front() else { return false };
        match &act.when {
            When::Now => true,
            When::At(at) => *at <= elapsed,
            When::JobHasBeen(job, phase) => {
                let phases = oracle.phases_of(&key(Kind::VcJob, job));
                phases.is_some_and(|phases| phases.contains(phase))
            }
            When::JobIsGone(job) => oracle.phases_of(&key(Kind::VcJob, job)).is_none(),
        }
    }

    /// When the next act is due, if a moment is all it waits for.
    pub(crate) fn due_at(&self) -> Option<Time> {
        match self.script.front()?.when {
            When::At(at) => Some(clock::start().after(at)),
            When::Now | When::JobHasBeen(..) | When::JobIsGone(_) => None,
        }
    }

    /// Plays the next act, and says what it was.
    pub(crate) fn act(&mut self, server: &Server) -> String {
        let Some(Act { deed, .. }) = self.script.pop_front() else { return String::new() };
        let (said, answer) = match deed {
            Deed::Create(kind, manifest) => {
                (format!("create {}", kind.info().singular), server.create(kind, manifest))
            }
            Deed::Patch(kind, name, patch) => (
                format!("patch {} {name} {patch}", kind.info().singular),
                server.patch(kind, &key(kind, name), patch),
            ),
            Deed::Delete(kind, name) => {
                (format!("delete {} {name}", kind.info().singular), server.delete(kind, &key(kind, name)))
            }
        };
        match answer {
            Ok(()) => said,
            Err(error) => format!("{said} -> {error}"),
        }
    }
}
