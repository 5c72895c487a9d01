//! A process: an engine with its watches and the plans it is carrying out. It can die at any write, and its next life
//! begins with nothing.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::{FutureExt, LocalBoxFuture};
use krafla_api::{Kind, Time};
use krafla_runtime::apply::{Applied, apply};
use krafla_runtime::{Engine, Outcome, Work, rest_until};
use parking_lot::Mutex;

use crate::actor::Kubelet;
use crate::fault::{AHEAD, BEHIND, Fault, GLITCH, GLITCH_BACK, HANG, LATE, PAUSE, TOGETHER};
use crate::feed::Feed;
use crate::oracle::Memory;
use crate::program::Part;
use crate::server::Server;
use crate::wire::{Line, Wire};

/// How many plans a process carries out side by side.
const PLANS_IN_FLIGHT_MAX: usize = 3;

/// How long a process is dead before its next life.
const REBIRTH: Duration = Duration::from_secs(1);

/// A process.
pub(crate) struct Process {
    part: Part,
    state: State,
    /// Until when it is stopped.
    stopped_until: Option<Time>,
    clock: Drift,
    /// Whether another is to take its place.
    needs_successor: bool,
    /// When it will learn that another has taken its place.
    ends_at: Option<Time>,
}

/// How a process' clock differs from the server's.
#[derive(Clone, Copy, Hash)]
enum Drift {
    None,
    Ahead,
    Behind,
    /// Far behind until a moment of the server's clock.
    Glitch {
        until: Time,
    },
}

impl Drift {
    /// What the process takes this moment for.
    fn seen(self, now: Time) -> Time {
        match self {
            Drift::None => now,
            Drift::Ahead => now.after(AHEAD),
            Drift::Behind => before(now, BEHIND),
            Drift::Glitch { until } if now < until => before(now, GLITCH_BACK),
            Drift::Glitch { .. } => now,
        }
    }

    /// When a process that begins to rest now, until a moment of its own clock, looks at that clock again. A clock that
    /// runs evenly is right about how long that is; what a glitch does to it is for the production loop to survive.
    fn looks_again(self, wake_at: Time, now: Time) -> Time {
        match self {
            Drift::None => wake_at,
            Drift::Ahead => before(wake_at, AHEAD),
            Drift::Behind => wake_at.after(BEHIND),
            Drift::Glitch { .. } => now.after(rest_until(wake_at, self.seen(now))),
        }
    }
}

fn before(moment: Time, duration: Duration) -> Time {
    let nanos = i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX);
    Time::from_nanos(moment.0.as_nanosecond().saturating_sub(nanos))
}

enum State {
    Dead {
        until: Time,
    },
    /// It was replaced, and finishes the plan that it was about.
    Deposed(Box<Life>),
    /// It does not come back.
    Gone,
    Alive(Box<Life>),
}

/// One life of a process: all that it knows.
struct Life {
    engine: Engine,
    feeds: Vec<Feed>,
    in_flight: Vec<LocalBoxFuture<'static, (Work, Applied)>>,
    memory: Arc<Mutex<Memory>>,
    /// Whether another has taken its place.
    is_replaced: Arc<AtomicBool>,
    /// Until when it does not look at its clock, unless there is news.
    rests_until: Option<Time>,
}

/// Something that a process can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Begin to live.
    Start,
    /// See the next thing of one kind.
    See(usize),
    /// Take a decision and begin to carry it out.
    Decide,
    /// Go on with a plan.
    GoOn(usize),
    /// Put a question to a pod.
    Ask,
}

/// What a process needs to do something.
pub(crate) struct Around<'a> {
    pub(crate) server: &'a Server,
    pub(crate) wire: &'a Arc<Wire>,
    pub(crate) kubelet: &'a Kubelet,
    pub(crate) now: Time,
}

impl Process {
    /// A process that is about to start.
    pub(crate) fn new(part: Part, starts_at: Time) -> Process {
        Process {
            part,
            state: State::Dead { until: starts_at },
            stopped_until: None,
            clock: Drift::None,
            needs_successor: false,
            ends_at: None,
        }
    }

    /// The same process beside a fork of its server, unless a plan is being carried out: that cannot be told twice.
    pub(crate) fn fork(&self, server: &Server) -> Option<Process> {
        let state = match &self.state {
            State::Dead { until } => State::Dead { until: *until },
            State::Gone => State::Gone,
            State::Alive(life) => State::Alive(Box::new(life.fork(&self.part, server)?)),
            State::Deposed(_) => return None,
        };
        Some(Process { state, ..*self })
    }

    /// Takes everything that decides about what the process will do into a number, unless a plan is being carried out.
    pub(crate) fn digest(&self, now: Time, into: &mut impl Hasher) -> bool {
        let stopped_until = self.stopped_until.filter(|until| *until > now);
        (stopped_until, self.clock, self.needs_successor, self.ends_at).hash(into);
        match &self.state {
            State::Dead { until } => (0, until).hash(into),
            State::Gone => 1.hash(into),
            State::Alive(life) => {
                2.hash(into);
                return life.digest(now, into);
            }
            State::Deposed(_) => return false,
        }
        true
    }

    /// Who takes its place, if it has just been replaced.
    pub(crate) fn take_successor(&mut self, now: Time) -> Option<Process> {
        std::mem::take(&mut self.needs_successor).then(|| Process::new(self.part, now))
    }

    /// Everything that the process can do now, until `found` says that it is enough.
    pub(crate) fn offers(&mut self, around: &Around<'_>, mut found: impl FnMut(Deed) -> bool) -> bool {
        let now = around.now;
        if self.stopped_until.is_some_and(|until| until > now) {
            return false;
        }
        if self.ends_at.is_some_and(|at| at <= now) {
            self.end(around);
        }
        let life = match &mut self.state {
            State::Dead { until } => return *until <= now && found(Deed::Start),
            State::Deposed(_) => return found(Deed::GoOn(0)),
            State::Gone => return false,
            State::Alive(life) => life,
        };
        // An outage stops news, but not the process: it goes on trying.
        if around.wire.outage_ends().is_none() {
            for (index, feed) in life.feeds.iter_mut().enumerate() {
                if feed.is_ready(around.server, now) && found(Deed::See(index)) {
                    return true;
                }
            }
        }
        if (0..life.in_flight.len()).any(|index| found(Deed::GoOn(index))) {
            return true;
        }
        if life.engine.has_inquiry() && found(Deed::Ask) {
            return true;
        }
        if life.rests_until.is_some_and(|until| until <= now) {
            life.rests_until = None;
        }
        let may_decide = life.in_flight.len() < PLANS_IN_FLIGHT_MAX
            && life.rests_until.is_none()
            && life.engine.has_work(self.clock.seen(now));
        may_decide && found(Deed::Decide)
    }

    /// When the process will be able to do something, if nothing happens before.
    pub(crate) fn due_at(&mut self, around: &Around<'_>) -> Option<Time> {
        if let Some(until) = self.stopped_until.filter(|until| *until > around.now) {
            return Some(until);
        }
        let life = match &mut self.state {
            State::Dead { until } => return Some(*until),
            State::Deposed(_) | State::Gone => return None,
            State::Alive(life) => life,
        };
        let outage_ends = around.wire.outage_ends();
        let news = life.feeds.iter_mut().filter_map(|feed| match outage_ends {
            Some(ends) => Some(ends),
            None => feed.due_at(around.server, around.now),
        });
        // While a kind has not been listed nothing is decided, whatever is due.
        let clock = self.clock;
        let wake = life.engine.next_wake().filter(|_| life.engine.is_synced());
        let look = || wake.map(|at| clock.looks_again(at, around.now));
        // A process that still has work is only slow: it does not rest.
        let timer = if life.engine.has_work(clock.seen(around.now)) {
            look()
        } else {
            life.rests_until = life.rests_until.or_else(look);
            life.rests_until
        };
        news.chain(timer).chain(self.ends_at).min()
    }

    /// Does one thing.
    pub(crate) fn perform(&mut self, deed: Deed, around: &Around<'_>) {
        let seen = &Around { now: self.clock.seen(around.now), ..*around };
        let life = match &mut self.state {
            State::Alive(life) => life,
            State::Dead { .. } => {
                self.state = State::Alive(Box::new(Life::new(&self.part)));
                around.wire.say(self.part.name, || "starts".to_owned());
                return;
            }
            State::Deposed(life) => {
                // What it was about to do, and no more.
                around.wire.grant(None);
                life.go_on(0, seen);
                around.wire.take_struck();
                return self.end(around);
            }
            State::Gone => return,
        };
        life.rests_until = None;
        match deed {
            Deed::Start => {}
            Deed::See(index) => {
                if let Some(feed) = life.feeds.get_mut(index) {
                    feed.show_next(around.server, &mut life.engine, seen.now);
                }
            }
            Deed::Decide => life.decide(&self.part, seen),
            Deed::GoOn(index) => life.go_on(index, seen),
            Deed::Ask => life.ask(seen),
        }
        self.suffer(around);
    }

    /// Carries out the faults that struck the process while it wrote.
    fn suffer(&mut self, around: &Around<'_>) {
        for fault in around.wire.take_struck() {
            let State::Alive(life) = &mut self.state else { return };
            match fault {
                // Who was replaced waits for its turn when it comes back, and nobody gives it one.
                Fault::CrashBefore | Fault::CrashAfter if life.is_replaced() => return self.end(around),
                Fault::CrashBefore | Fault::CrashAfter => {
                    self.state = State::Dead { until: around.now.after(REBIRTH) };
                }
                Fault::Paused => self.stopped_until = Some(around.now.after(PAUSE)),
                Fault::Deposed => self.depose(around.now),
                Fault::TwoLeaders => {
                    self.needs_successor |= life.replace();
                    self.ends_at.get_or_insert(around.now.after(TOGETHER));
                }
                Fault::ClockAhead => self.clock = Drift::Ahead,
                Fault::ClockBehind => self.clock = Drift::Behind,
                Fault::ClockGlitch => self.clock = Drift::Glitch { until: around.now.after(GLITCH) },
                Fault::Late(kind) => life.feed(kind, |feed, _| feed.hold(around.now.after(LATE))),
                Fault::Hang(kind) => life.feed(kind, |feed, _| feed.hold(around.now.after(HANG))),
                Fault::Relist(kind) => life.feed(kind, |feed, _| feed.forget_place()),
                Fault::Repeat(kind) => life.feed(kind, |feed, engine| feed.go_back(around.server, engine)),
                // These strike the write alone.
                Fault::TimeoutBefore
                | Fault::TimeoutAfter
                | Fault::Busy
                | Fault::Refused
                | Fault::Outage
                | Fault::Conflict
                | Fault::Touched
                | Fault::Retried => {}
            }
        }
    }

    /// Another takes its place. It keeps the plan that it was about to go on with, and nothing else.
    fn depose(&mut self, now: Time) {
        self.stopped_until = Some(now.after(PAUSE));
        if let State::Alive(life) = std::mem::replace(&mut self.state, State::Gone) {
            self.needs_successor |= life.replace();
            self.state = State::Deposed(life);
        }
    }

    /// It learns that another has taken its place.
    fn end(&mut self, around: &Around<'_>) {
        self.ends_at = None;
        self.state = State::Gone;
        around.wire.say(self.part.name, || "finds itself replaced, and ends".to_owned());
    }

    pub(crate) fn name(&self) -> &'static str {
        self.part.name
    }

    /// What a process that has just started would write, knowing everything that is stored: nothing, at rest.
    pub(crate) fn afresh(&self, server: &Server, now: Time) -> Option<Work> {
        if matches!(self.state, State::Deposed(_) | State::Gone) {
            return None;
        }
        // On the same machine, with the same clock.
        let now = self.clock.seen(now);
        let Life { mut engine, feeds, .. } = Life::new(&self.part);
        for mut feed in feeds {
            feed.show_next(server, &mut engine, now);
        }
        // Counters may wait a moment before they are written: give them that moment.
        engine.next(now).or_else(|| engine.next(now.after(Duration::from_secs(1))))
    }
}

impl Life {
    fn new(part: &Part) -> Life {
        let engine = Engine::new((part.controllers)());
        let feeds = engine.kinds().map(Feed::new).collect();
        let (memory, is_replaced) = (Arc::default(), Arc::default());
        Life { engine, feeds, in_flight: Vec::new(), memory, is_replaced, rests_until: None }
    }

    fn fork(&self, part: &Part, server: &Server) -> Option<Life> {
        self.in_flight.is_empty().then(|| Life {
            engine: self.engine.fork((part.controllers)()),
            feeds: self.feeds.iter().map(|feed| feed.fork(server)).collect(),
            in_flight: Vec::new(),
            memory: Arc::new(Mutex::new(self.memory.lock().clone())),
            is_replaced: Arc::new(AtomicBool::new(self.is_replaced())),
            rests_until: self.rests_until,
        })
    }

    fn digest(&self, now: Time, into: &mut impl Hasher) -> bool {
        (self.is_replaced(), self.rests_until).hash(into);
        self.memory.lock().hash(into);
        self.feeds.iter().for_each(|feed| feed.digest(now, into));
        self.engine.digest(into);
        self.in_flight.is_empty()
    }

    fn is_replaced(&self) -> bool {
        self.is_replaced.load(Ordering::Relaxed)
    }

    /// Another takes its place. Whether it is the first that does.
    fn replace(&self) -> bool {
        !self.is_replaced.swap(true, Ordering::Relaxed)
    }

    /// Does something to the feed of a kind, if the process watches it.
    fn feed(&mut self, kind: Kind, change: impl FnOnce(&mut Feed, &Engine)) {
        if let Some(feed) = self.feeds.iter_mut().find(|feed| feed.kind == kind) {
            change(feed, &self.engine);
        }
    }

    fn decide(&mut self, part: &Part, around: &Around<'_>) {
        let before = self.engine.counts();
        let work = self.engine.next(around.now);
        let after = self.engine.counts();
        around.wire.with(|state| {
            if after.refusals > before.refusals {
                state.oracle.found("guard", format!("{} decided what the guard refused", part.name));
            }
            if after.panics > before.panics {
                state.oracle.found("panic", format!("a decision of {} panicked", part.name));
            }
        });
        let Some(work) = work else { return };
        let (wire, memory) = (around.wire.clone(), self.memory.clone());
        let line = Line {
            wire,
            memory,
            is_replaced: self.is_replaced.clone(),
            process: part.name,
            root: work.root.clone(),
            uid: work.object.as_ref().map(|object| object.meta.uid.clone()),
        };
        let client = (part.client)(Arc::new(line));
        self.in_flight.push(
            async move {
                let applied = apply(client.as_ref(), work.premise.as_ref(), &work.plan).await;
                (work, applied)
            }
            .boxed_local(),
        );
        self.go_on(self.in_flight.len() - 1, around);
    }

    fn ask(&mut self, around: &Around<'_>) {
        if let Some(inquiry) = self.engine.next_inquiry() {
            let outcome = around.kubelet.answer(&inquiry.probe, around.now);
            self.engine.answered(inquiry, outcome, around.now);
        }
    }

    fn go_on(&mut self, index: usize, around: &Around<'_>) {
        let Some(plan) = self.in_flight.get_mut(index) else { return };
        let answer = plan.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready((work, applied)) = answer {
            drop(self.in_flight.swap_remove(index));
            self.engine.finished(work, Outcome::Applied(applied), around.now);
        }
    }
}
