//! Everything between the processes and the server: it numbers the writes, makes them go wrong, and shows every stored
//! change to the oracle.
//!
//! ```text
//!   process --- Line ---> Wire ---> the server's own client
//!                          |
//!                          +-- oracle: before a deletion, after every write
//! ```
//!
//! A process dies by never getting an answer: its future stays pending, and the world drops it with all its memory.

use std::future::{pending, poll_fn};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::BoxStream;
use krafla_api::{Key, Kind, Time, Uid};
use krafla_cluster::{Client, ClientError, Event, Listed, Step, Written};
use krafla_runtime::Root;
use parking_lot::Mutex;
use serde_json::json;

use crate::clock::Clock;
use crate::fault::{Fault, Injection, OUTAGE};
use crate::oracle::{Memory, Oracle};
use crate::server::Server;
use crate::trace::Trace;

/// After a 429 the server wants to be left alone this long.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Everything between the processes and the server.
pub(crate) struct Wire {
    server: Arc<dyn Client>,
    clock: Clock,
    state: Mutex<State>,
}

pub(crate) struct State {
    /// Who watches over the properties.
    pub(crate) oracle: Oracle,
    /// What happened so far.
    pub(crate) trace: Trace,
    /// The writes that processes tried to make.
    pub(crate) attempts: Vec<Attempt>,
    injections: Vec<Injection>,
    /// How many writes may still be made before others get their turn; any number, if it is not said.
    permits: Option<u32>,
    is_author_dead: bool,
    is_author_asleep: bool,
    outage_ends: Option<Time>,
    struck: Vec<Fault>,
}

/// A write that a process tried to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The process.
    pub process: &'static str,
    /// Whether it was to store a new object.
    pub creates: bool,
    /// What it takes to be allowed to make it: a verb, and the kind or part of a kind.
    pub permission: (&'static str, Kind, &'static str),
}

/// The verb of a write, the kind that it is about, and which part of it; as roles name them.
fn permission(step: &Step) -> (&'static str, Kind, &'static str) {
    let (verb, part) = match step {
        Step::Create { .. } | Step::CreateGenerated { .. } => ("create", ""),
        Step::Patch { of_status: true, .. } => ("patch", "status"),
        Step::Patch { .. } => ("patch", ""),
        Step::Delete { .. } => ("delete", ""),
        Step::Bind { .. } => ("create", "binding"),
    };
    (verb, step.kind(), part)
}

impl Wire {
    pub(crate) fn new(
        server: Arc<dyn Client>,
        clock: Clock,
        injections: Vec<Injection>,
        oracle: Oracle,
        trace: Trace,
    ) -> Wire {
        let state = State {
            oracle,
            trace,
            attempts: Vec::new(),
            injections,
            permits: None,
            is_author_dead: false,
            is_author_asleep: false,
            outage_ends: None,
            struck: Vec::new(),
        };
        Wire { server, clock, state: Mutex::new(state) }
    }

    /// The same wire to a fork of its server, with other faults to come.
    pub(crate) fn fork(&self, server: &Server, clock: Clock, injections: Vec<Injection>) -> Wire {
        let state = self.state.lock();
        let state = State {
            oracle: state.oracle.fork(server.store.clone()),
            trace: state.trace.clone(),
            attempts: state.attempts.clone(),
            injections,
            struck: state.struck.clone(),
            ..*state
        };
        Wire { server: server.client(), clock, state: Mutex::new(state) }
    }

    /// Takes everything that decides about later requests into a number, unless faults are still to come.
    pub(crate) fn digest(&self, into: &mut impl Hasher) -> bool {
        let state = self.state.lock();
        (state.trace.hash(), state.outage_ends).hash(into);
        state.oracle.digest(into);
        let n_attempts = u32::try_from(state.attempts.len()).unwrap_or(u32::MAX);
        state.injections.iter().all(|injection| injection.write <= n_attempts)
    }

    /// Looks at the oracle and the trace.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock())
    }

    /// Adds a line to the trace.
    pub(crate) fn say(&self, who: &str, what: impl FnOnce() -> String) {
        let at = self.clock.elapsed();
        self.state.lock().trace.line(at, who, what);
    }

    /// Shows the oracle what has been stored since it last looked.
    pub(crate) fn catch_up(&self) {
        let State { oracle, trace, outage_ends, .. } = &mut *self.state.lock();
        oracle.catch_up(&self.clock, trace, *outage_ends);
    }

    /// The next process to write may make so many writes before it waits for its next turn; any number, if not said.
    pub(crate) fn grant(&self, permits: Option<u32>) {
        let mut state = self.state.lock();
        state.permits = permits;
        state.is_author_dead = false;
        state.is_author_asleep = false;
    }

    /// The faults that struck the last author and that the world has to carry out.
    pub(crate) fn take_struck(&self) -> Vec<Fault> {
        std::mem::take(&mut self.state.lock().struck)
    }

    /// Until when no request is answered.
    pub(crate) fn outage_ends(&self) -> Option<Time> {
        self.state.lock().outage_ends.filter(|ends| *ends > self.clock.now())
    }

    /// When the last outage ended, or ends.
    pub(crate) fn last_outage_end(&self) -> Option<Time> {
        self.state.lock().outage_ends
    }

    /// Waits until it is the author's turn; for ever, once the author is dead.
    async fn turn(&self) {
        poll_fn(|context| {
            let mut state = self.state.lock();
            if state.is_author_dead {
                return Poll::Pending;
            }
            if state.is_author_asleep {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            match &mut state.permits {
                None => Poll::Ready(()),
                Some(0) => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                Some(permits) => {
                    *permits -= 1;
                    Poll::Ready(())
                }
            }
        })
        .await;
    }

    /// Gives the write its number, and says what goes wrong with it.
    fn begin(&self, attempt: Attempt) -> (u32, Option<Fault>) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        state.attempts.push(attempt);
        let number = u32::try_from(state.attempts.len()).unwrap_or(u32::MAX);
        if state.outage_ends.is_some_and(|ends| now < ends) {
            return (number, Some(Fault::TimeoutBefore));
        }
        let fault = state.injections.iter().find(|injection| injection.write == number).map(|it| it.fault);
        match fault {
            Some(Fault::Outage) => state.outage_ends = Some(now.after(OUTAGE)),
            Some(fault @ (Fault::CrashBefore | Fault::CrashAfter)) => {
                state.is_author_dead = true;
                state.struck.push(fault);
            }
            Some(fault @ (Fault::Paused | Fault::Deposed)) => {
                state.is_author_asleep = true;
                state.struck.push(fault);
            }
            Some(
                fault @ (Fault::Late(_)
                | Fault::Hang(_)
                | Fault::Relist(_)
                | Fault::Repeat(_)
                | Fault::ClockAhead
                | Fault::ClockBehind
                | Fault::ClockGlitch
                | Fault::TwoLeaders),
            ) => state.struck.push(fault),
            _ => {}
        }
        (number, fault)
    }
}

/// One process' line to the server, for the plan of one root.
pub(crate) struct Line {
    pub(crate) wire: Arc<Wire>,
    pub(crate) process: &'static str,
    pub(crate) root: Root,
    /// Who the process took the root for when it decided.
    pub(crate) uid: Option<Uid>,
    /// What this life of the process was told about its own writes.
    pub(crate) memory: Arc<Mutex<Memory>>,
    /// Whether another has taken the process' place.
    pub(crate) is_replaced: Arc<AtomicBool>,
}

impl Client for Line {
    fn list(&self, kind: Kind) -> BoxFuture<'_, Result<Listed, ClientError>> {
        self.wire.server.list(kind)
    }

    fn watch(&self, kind: Kind, revision: u64) -> BoxStream<'static, Result<Event, ClientError>> {
        self.wire.server.watch(kind, revision)
    }

    fn get(&self, kind: Kind, key: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>> {
        let key = key.clone();
        async move {
            self.wire.turn().await;
            match self.wire.outage_ends() {
                Some(_) => Err(no_answer()),
                None => self.wire.server.get(kind, &key).await,
            }
        }
        .boxed()
    }

    fn write<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
        async move {
            self.wire.turn().await;
            let permission = permission(step);
            let attempt = Attempt { process: self.process, creates: step.creates(), permission };
            let (number, fault) = self.wire.begin(attempt);
            let answer = self.write_with(step, fault).await;
            let at = self.wire.clock.elapsed();
            self.wire.with(|state| state.trace.line(at, self.process, || told(number, step, fault, &answer)));
            match answer {
                Some(answer) => {
                    if let Ok(written) = &answer {
                        self.memory.lock().learn(&self.root, step, written);
                    }
                    answer
                }
                None => pending().await,
            }
        }
        .boxed()
    }
}

impl Line {
    /// Makes a write go as well as the fault lets it; no answer means that the author is dead.
    async fn write_with(&self, step: &Step, fault: Option<Fault>) -> Option<Result<Written, ClientError>> {
        Some(match fault {
            None
            | Some(
                Fault::Late(_)
                | Fault::Hang(_)
                | Fault::Relist(_)
                | Fault::Repeat(_)
                | Fault::ClockAhead
                | Fault::ClockBehind
                | Fault::ClockGlitch
                | Fault::TwoLeaders,
            ) => self.send(step).await,
            Some(Fault::Paused | Fault::Deposed) => {
                // Its next turn comes when it wakes.
                self.wire.turn().await;
                self.send(step).await
            }
            Some(Fault::CrashBefore) => return None,
            Some(Fault::CrashAfter) => {
                // Whatever the answer is, nobody hears it.
                let _ = self.send(step).await;
                return None;
            }
            Some(Fault::TimeoutBefore | Fault::Outage) => Err(no_answer()),
            Some(Fault::TimeoutAfter) => {
                let _ = self.send(step).await;
                Err(no_answer())
            }
            Some(Fault::Busy) => Err(ClientError::busy("overloaded", Some(RETRY_AFTER))),
            Some(Fault::Refused) => Err(ClientError::forbidden("exceeded quota")),
            Some(Fault::Conflict) => Err(ClientError::conflict("the object has been modified")),
            Some(Fault::Touched) => {
                self.touch(step).await;
                self.send(step).await
            }
            Some(Fault::Retried) => {
                let _ = self.send(step).await;
                self.wire.server.write(step).await
            }
        })
    }

    /// Sends a write to the server, under the eyes of the oracle.
    async fn send(&self, step: &Step) -> Result<Written, ClientError> {
        self.wire.catch_up();
        self.wire.with(|State { oracle, .. }| {
            oracle.about_to_write(&self.root, self.uid.as_ref(), step);
            let is_stored = |kind, key: &Key, uid: &Uid| oracle.is_stored(kind, key, uid);
            if let Some(message) = self.memory.lock().repeats(&self.root, step, is_stored) {
                oracle.found("P9", message);
            }
        });
        let answer = self.wire.server.write(step).await;
        if self.is_replaced.load(Ordering::Relaxed)
            && step.creates()
            && let Ok(written) = &answer
        {
            self.wire.with(|state| state.oracle.made_late(written.uid.clone()));
        }
        answer
    }

    /// Somebody else changes the object that the step is about.
    async fn touch(&self, step: &Step) {
        let (kind, key, uid) = match step {
            Step::Create { .. } | Step::CreateGenerated { .. } => return,
            Step::Patch { kind, key, uid, .. } | Step::Delete { kind, key, uid, .. } => (*kind, key, uid),
            Step::Bind { pod, uid, .. } => (Kind::Pod, pod, uid),
        };
        let touch = Step::Patch {
            kind,
            key: key.clone(),
            uid: uid.clone(),
            revision: None,
            of_status: false,
            patch: json!({ "metadata": { "annotations": { "example.com/touched": "yes" } } }),
        };
        // It may be gone already, and then there is nothing to touch.
        let _ = self.wire.server.write(&touch).await;
    }
}

fn no_answer() -> ClientError {
    ClientError::Unknown("no answer in time".to_owned())
}

/// A step as timelines show it: the beginning of a long patch says enough.
pub(crate) fn brief(step: &Step) -> String {
    const CHARACTERS_MAX: usize = 160;
    let text = step.to_string();
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

fn told(
    number: u32,
    step: &Step,
    fault: Option<Fault>,
    answer: &Option<Result<Written, ClientError>>,
) -> String {
    let fault = fault.map(|fault| format!("  [{fault}]")).unwrap_or_default();
    let answer = match answer {
        None => "process dies".to_owned(),
        Some(Ok(written)) => format!("revision {}", written.revision),
        Some(Err(error)) => error.to_string(),
    };
    format!("#{number} {}{fault} -> {answer}", brief(step))
}
