//! The world: one thread, one clock, one source of chance, and everybody in it.
//!
//! ```text
//!   user   kubelet   garbage collector          processes: controllers, scheduler
//!      \      |      /                              ^ list and watch      | write
//!       v     v     v                               | kind by kind        v
//!       ┌─────────────────────────────── server ────┴─────────────────── wire ──┐
//!       │   the store, the API and the client that ship, in memory       faults │
//!       └───────────────────┬───────────────────────────────────────────────────┘
//!                           v every revision
//!                         oracle
//! ```
//!
//! The world asks everybody what they could do now, lets one of them do one thing, and asks again. When nobody can do
//! anything, time moves on to the next moment at which somebody can.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use krafla_api::{Kind, Time};
use krafla_apiserver::gc::Collector;

use crate::actor::{Kubelet, User};
use crate::case::{Case, Order};
use crate::clock::{self, Clock};
use crate::fault::Injection;
use crate::oracle::end;
use crate::oracle::{Finding, Oracle};
use crate::process::{Around, Deed, Process};
use crate::program::Program;
use crate::rng::Rng;
use crate::server::{self, Server};
use crate::trace::Trace;
use crate::wire::{Attempt, Wire};

/// P10: when nothing has been stored for so long, and nobody is known to have plans, all is quiet.
const QUIET: Duration = Duration::from_secs(600);
/// P10: by then all must be quiet. An outage and the back-off after it take minutes.
const AGE_MAX: Duration = Duration::from_secs(6 * 3600);
/// Somebody who could act may be slow, but not by more than this: else a schedule would be over before anybody has read it.
const SLOWNESS_MAX: Duration = Duration::from_secs(60);
/// P10: so many things never happen in a world that comes to rest.
const MOVES_MAX: u64 = 50_000;
/// P10: nor so many writes: the longest scenarios take about a hundred.
const WRITES_MAX: usize = 2_000;

/// How a run went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What must not be and was.
    pub findings: Vec<Finding>,
    /// Everything that was there at the end, printed.
    pub end: String,
    /// How many writes the processes tried to make.
    pub n_writes: u32,
    /// Those writes, in order.
    pub writes: Vec<Attempt>,
    /// The kinds of which anything was stored.
    pub kinds: BTreeSet<Kind>,
    /// How old the world was at the end.
    pub simulated: Duration,
    /// A number that two equal runs share.
    pub hash: u64,
    /// What happened, for people, if they asked for it.
    pub timeline: Vec<String>,
}

/// Plays one case to its end.
pub fn play(case: &Case, program: &Program, with_timeline: bool) -> Outcome {
    let mut world = World::new(case, program, with_timeline);
    world.run();
    world.end(case)
}

/// The world, with everybody in it.
pub(crate) struct World {
    clock: Clock,
    server: Server,
    wire: Arc<Wire>,
    processes: Vec<Process>,
    kubelet: Kubelet,
    user: User,
    collector: Collector,
    /// Up to which revision the garbage collector has looked.
    collected: u64,
    chance: Option<Chance>,
    n_moves: u64,
    is_over: bool,
}

/// What is left to chance, drawn from the seed.
#[derive(Clone)]
struct Chance {
    rng: Rng,
    /// How often, in a hundred moves, time moves on although somebody could still do something.
    hurry: u64,
    /// How often, in a hundred times, a process does not look although there is news. Kinds differ.
    sloth: [u64; 8],
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Somebody does something.
    Make(Move),
    /// Time moves on; early, if somebody could still do something.
    PassTime { is_early: bool },
}

/// Something that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    User,
    Collect,
    Process(usize, Deed),
    Kubelet,
}

impl World {
    pub(crate) fn new(case: &Case, program: &Program, with_timeline: bool) -> World {
        let clock = Clock::default();
        let server = Server::new(&clock);
        let oracle = Oracle::new(server.store.clone());
        let trace = Trace::new(with_timeline);
        let wire = Wire::new(server.client(), clock.clone(), case.injections.clone(), oracle, trace);
        let starts_at = clock::start();
        let chance = match case.order {
            Order::Calm => None,
            Order::Shuffled(seed) => Some(Chance::new(seed)),
        };
        World {
            kubelet: Kubelet::new(case.scenario, case.termination, server.watch(Kind::Pod)),
            user: User::new((case.scenario.script)(), case.termination.is_forced),
            processes: program.parts.iter().map(|part| Process::new(*part, starts_at)).collect(),
            collector: server.collector(),
            collected: 0,
            wire: Arc::new(wire),
            clock,
            server,
            chance,
            n_moves: 0,
            is_over: false,
        }
    }

    /// Plays on to the end.
    fn run(&mut self) {
        while !self.is_over {
            let next = self.next();
            self.advance(next);
        }
    }

    /// What happens next.
    pub(crate) fn next(&mut self) -> Next {
        let hurry = self.chance.as_mut().is_some_and(|chance| chance.rng.percent(chance.hurry));
        let next = if hurry { None } else { self.next_move() };
        next.map_or(Next::PassTime { is_early: hurry }, Next::Make)
    }

    /// Lets something happen. Afterwards the world may be over.
    pub(crate) fn advance(&mut self, next: Next) {
        self.n_moves += 1;
        match next {
            Next::Make(next) => self.make(next),
            Next::PassTime { is_early } => {
                if !self.pass_time(is_early) {
                    self.is_over = true;
                    return;
                }
            }
        }
        let (has_findings, n_writes) =
            self.wire.with(|state| (state.oracle.has_findings(), state.attempts.len()));
        // What follows the first violation is seldom news, and a world gone wrong may never come to rest.
        self.is_over = has_findings;
        if !has_findings
            && (self.n_moves >= MOVES_MAX || n_writes > WRITES_MAX || self.clock.elapsed() > AGE_MAX)
        {
            let message = format!("still not at rest after {:.0} s", self.clock.elapsed().as_secs_f64());
            self.wire.with(|state| state.oracle.found("P10", message));
            self.is_over = true;
        }
    }

    /// Whether nothing more will happen.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// How many writes the processes have tried to make.
    pub(crate) fn n_writes(&self) -> usize {
        self.wire.with(|state| state.attempts.len())
    }

    /// A world like this one, in which other faults are to come; unless a process is just carrying out a plan. What happens to one
    /// does not happen to the other.
    pub(crate) fn fork(&self, injections: &[Injection]) -> Option<World> {
        let clock = self.clock.fork();
        let server = self.server.fork(&clock);
        let processes: Option<Vec<Process>> =
            self.processes.iter().map(|process| process.fork(&server)).collect();
        Some(World {
            processes: processes?,
            wire: Arc::new(self.wire.fork(&server, clock.clone(), injections.to_vec())),
            kubelet: self.kubelet.fork(&server),
            user: self.user.clone(),
            collector: server.collector_like(&self.collector),
            collected: self.collected,
            chance: self.chance.clone(),
            n_moves: self.n_moves,
            is_over: self.is_over,
            clock,
            server,
        })
    }

    /// A number that says what will happen from now on, and what will be found: two worlds of the same scenario that share it go on
    /// alike. There is none while faults are to come or a process is just carrying out a plan.
    pub(crate) fn digest(&self) -> Option<u64> {
        let mut into = DefaultHasher::new();
        let now = self.clock.now();
        (now, self.server.store.revision(), self.server.n_identities()).hash(&mut into);
        (self.user.n_left(), self.collected).hash(&mut into);
        self.kubelet.digest(&mut into);
        let is_known = self.wire.digest(&mut into)
            && self.processes.iter().all(|process| process.digest(now, &mut into));
        (is_known && self.chance.is_none()).then(|| into.finish())
    }

    fn next_move(&mut self) -> Option<Move> {
        if self.chance.is_none() {
            let mut first = None;
            self.offers(|offer| {
                first = Some(offer);
                true
            });
            return first;
        }
        let mut offers = Vec::with_capacity(16);
        self.offers(|offer| {
            offers.push(offer);
            false
        });
        self.chance.as_mut()?.choose(&offers)
    }

    /// Everything that can happen now, until `found` says that it is enough. In calm order, the first is what happens:
    /// users and pods before news, news before decisions.
    fn offers(&mut self, mut found: impl FnMut(Move) -> bool) {
        let now = self.clock.now();
        let is_outage = self.wire.outage_ends().is_some();
        if !is_outage {
            self.wire.catch_up();
            self.kubelet.look(&self.server, now);
            if self.is_users_turn() && found(Move::User) {
                return;
            }
            if self.kubelet.due_at().is_some_and(|at| at <= now) && found(Move::Kubelet) {
                return;
            }
            if self.collected < self.server.store.revision() && found(Move::Collect) {
                return;
            }
        }
        let around = Around { server: &self.server, wire: &self.wire, kubelet: &self.kubelet, now };
        for (index, process) in self.processes.iter_mut().enumerate() {
            if process.offers(&around, |deed| found(Move::Process(index, deed))) {
                return;
            }
        }
    }

    fn is_users_turn(&self) -> bool {
        let elapsed = self.clock.elapsed();
        self.wire.with(|state| self.user.is_ready(&state.oracle, elapsed))
    }

    fn make(&mut self, next: Move) {
        let now = self.clock.now();
        match next {
            Move::User => {
                let said = self.user.act(&self.server);
                self.wire.say("user", || said);
            }
            Move::Kubelet => {
                let said = self.kubelet.act(&self.server, now);
                self.wire.say("kubelet", || said);
            }
            Move::Collect => {
                self.collected = self.server.store.revision();
                for deed in server::collect(&mut self.collector) {
                    self.wire.say("collector", || deed.to_string());
                }
            }
            Move::Process(index, deed) => {
                // In calm order a plan is carried out in one go; else others act between its writes.
                self.wire.grant(self.chance.as_ref().map(|_| 1));
                let around = Around { server: &self.server, wire: &self.wire, kubelet: &self.kubelet, now };
                if let Some(process) = self.processes.get_mut(index) {
                    process.perform(deed, &around);
                    // Whoever takes its place starts at once.
                    if let Some(successor) = process.take_successor(now) {
                        self.processes.push(successor);
                    }
                }
            }
        }
    }

    /// Moves time on to the next moment at which somebody can do something. Whether there is such a moment: if not, or
    /// if all has been quiet for long, the run is over.
    fn pass_time(&mut self, is_early: bool) -> bool {
        let now = self.clock.now();
        let Some(next) = self.due_at(now) else { return is_early };
        if is_early && next > now.after(SLOWNESS_MAX) {
            return true;
        }
        let is_over = {
            let has_plans = self.kubelet.due_at().is_some() || self.user.due_at().is_some();
            let last_change = self.wire.with(|state| state.oracle.last_change_at());
            // Nothing can be stored in an outage, however much there is to do.
            let quiet_since = self.wire.last_outage_end().map_or(last_change, |ended| ended.max(last_change));
            !has_plans && !is_early && next > quiet_since.after(QUIET)
        };
        if is_over {
            return false;
        }
        self.clock.advance_to(next);
        true
    }

    /// The next moment at which somebody can do something.
    fn due_at(&mut self, now: Time) -> Option<Time> {
        let outage_ends = self.wire.outage_ends();
        let others = self.user.due_at().into_iter().chain(self.kubelet.due_at());
        let others: Vec<Time> = others.map(|at| outage_ends.map_or(at, |ends| at.max(ends))).collect();
        let around = Around { server: &self.server, wire: &self.wire, kubelet: &self.kubelet, now };
        let processes = self.processes.iter_mut().filter_map(|process| process.due_at(&around));
        processes.chain(others).chain(outage_ends).filter(|at| *at > now).min()
    }

    /// How old the world is.
    pub(crate) fn age(&self) -> Duration {
        self.clock.elapsed()
    }

    /// A number for all that has been stored so far.
    pub(crate) fn hash(&self) -> u64 {
        self.wire.with(|state| state.trace.hash())
    }

    /// What must not be and was, now that the world is over.
    pub(crate) fn judge(&self, case: &Case) -> Vec<Finding> {
        self.wire.catch_up();
        self.wire.with(|state| {
            if !state.oracle.has_findings() {
                self.judge_end(&mut state.oracle, case);
            }
            state.oracle.take_findings()
        })
    }

    fn end(self, case: &Case) -> Outcome {
        let findings = self.judge(case);
        let (writes, kinds, trace) = self.wire.with(|state| {
            let writes = std::mem::take(&mut state.attempts);
            (writes, state.oracle.kinds(), std::mem::replace(&mut state.trace, Trace::new(false)))
        });
        let (hash, timeline) = trace.finish();
        let end = end::print(&self.server.store);
        let n_writes = u32::try_from(writes.len()).unwrap_or(u32::MAX);
        Outcome { findings, end, n_writes, writes, kinds, simulated: self.clock.elapsed(), hash, timeline }
    }

    /// What must hold once all is quiet.
    fn judge_end(&self, oracle: &mut Oracle, case: &Case) {
        if !self.user.is_done() {
            oracle.found("P11", "users still wait for what the script says".to_owned());
        }
        oracle.ended();
        for violation in end::check(case, &self.server.store) {
            oracle.broken(violation);
        }
        for process in &self.processes {
            if let Some(work) = process.afresh(&self.server, self.clock.now()) {
                let message = format!("{}, started afresh, would still write: {}", process.name(), work.plan);
                oracle.found("P10", message);
            }
        }
    }
}

impl Chance {
    fn new(seed: u64) -> Chance {
        let mut rng = Rng::new(seed);
        let hurry = [0, 1, 5, 20];
        let sloth = [0, 0, 50, 95];
        let mut pick = |from: &[u64; 4]| rng.pick(from).copied().unwrap_or(0);
        Chance { hurry: pick(&hurry), sloth: std::array::from_fn(|_| pick(&sloth)), rng }
    }

    fn choose(&mut self, offers: &[Move]) -> Option<Move> {
        loop {
            let offer = *self.rng.pick(offers)?;
            let sloth = match offer {
                Move::Process(process, Deed::See(feed)) => {
                    let index = (process * 4 + feed) % self.sloth.len();
                    self.sloth.get(index).copied().unwrap_or(0)
                }
                _ => 0,
            };
            if !self.rng.percent(sloth) {
                return Some(offer);
            }
        }
    }
}
