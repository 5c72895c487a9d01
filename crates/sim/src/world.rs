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
use std::sync::Arc;
use std::time::Duration;

use krafla_api::{Kind, Time};
use krafla_apiserver::gc::Collector;

use crate::actor::{Kubelet, User};
use crate::case::{Case, Order};
use crate::clock::{self, Clock};
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

struct World {
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
}

/// What is left to chance, drawn from the seed.
struct Chance {
    rng: Rng,
    /// How often, in a hundred moves, time moves on although somebody could still do something.
    hurry: u64,
    /// How often, in a hundred times, a process does not look although there is news. Kinds differ.
    sloth: [u64; 8],
}

/// Something that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    User,
    Collect,
    Process(usize, Deed),
    Kubelet,
}

impl World {
    fn new(case: &Case, program: &Program, with_timeline: bool) -> World {
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
        }
    }

    fn run(&mut self) {
        for _ in 0..MOVES_MAX {
            let hurry = self.chance.as_mut().is_some_and(|chance| chance.rng.percent(chance.hurry));
            let next = if hurry { None } else { self.next_move() };
            match next {
                Some(next) => self.make(next),
                None => {
                    if !self.pass_time(hurry) {
                        return;
                    }
                }
            }
            // What follows the first violation is seldom news, and a world gone wrong may never come to rest.
            if self.wire.with(|state| state.oracle.has_findings()) {
                return;
            }
            let n_writes = self.wire.with(|state| state.attempts.len());
            if n_writes > WRITES_MAX || self.clock.elapsed() > AGE_MAX {
                break;
            }
        }
        let message = format!("still not at rest after {:.0} s", self.clock.elapsed().as_secs_f64());
        self.wire.with(|state| state.oracle.found("P10", message));
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

    fn end(self, case: &Case) -> Outcome {
        self.wire.catch_up();
        let writes = self.wire.with(|state| std::mem::take(&mut state.attempts));
        let (findings, trace) = self.wire.with(|state| {
            if !state.oracle.has_findings() {
                self.judge_end(&mut state.oracle, case);
            }
            (state.oracle.take_findings(), std::mem::replace(&mut state.trace, Trace::new(false)))
        });
        let kinds = self.wire.with(|state| state.oracle.kinds());
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
