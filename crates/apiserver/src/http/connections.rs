//! Open connections: how many there may be, and which one goes when there is no room for another.
//!
//! A connection is a stranger until a request on it has shown who asks. Strangers are few. When there are too many, the oldest
//! one of the address with the most strangers goes, so that connections that say nothing cannot keep clients out, and one
//! address cannot take the places of all. All peers of a local server have the same address: there the oldest goes.
//!
//! When there is no room at all, the connection goes that has been idle for longest. One user never has all places.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::unread::{Outbox, Unread};

/// How many connections may be open at once, if there are files for so many.
const CONNECTIONS_MAX: usize = 10_000;
/// How many of them may be strangers'.
const STRANGERS_MAX: usize = 1_000;
/// How many files this process asks for.
const FILES_WANTED: u64 = 65_536;

/// How long a stranger may take to send the head of a first request.
const FIRST_REQUEST_WITHIN: Duration = Duration::from_secs(10);
/// How long a connection may be idle; a kube-apiserver waits as long.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(90);

/// Raises the limit of open files as far as the machine allows, and returns how many connections that leaves room for: a
/// quarter is kept for the store, for pods and for what the server itself asks.
pub(super) fn room_for_connections() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(FILES_WANTED, |most| most.min(FILES_WANTED));
    if limit.current.is_some_and(|now| now < wanted) {
        let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "cannot raise the limit of open files");
        }
    }
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(files / 4 * 3).unwrap_or(usize::MAX).clamp(1, CONNECTIONS_MAX)
}

/// All open connections of a server.
#[derive(Debug)]
pub(super) struct Connections {
    open: Mutex<Open>,
    n_max: usize,
    n_strangers_max: usize,
    /// How many may be one user's.
    n_of_user_max: usize,
    unread: Arc<Unread>,
}

#[derive(Debug, Default)]
struct Open {
    n_ever: u64,
    /// By their age.
    all: BTreeMap<u64, State>,
    strangers: Strangers,
    n_of_users: HashMap<Arc<str>, usize>,
}

/// Connections that have yet to show who asks, by where they come from.
#[derive(Debug, Default)]
struct Strangers {
    n: usize,
    by_network: BTreeMap<IpAddr, BTreeSet<u64>>,
}

impl Strangers {
    fn insert(&mut self, network: IpAddr, number: u64) {
        self.n += usize::from(self.by_network.entry(network).or_default().insert(number));
    }

    fn remove(&mut self, network: IpAddr, number: u64) {
        let Some(of_network) = self.by_network.get_mut(&network) else { return };
        self.n -= usize::from(of_network.remove(&number));
        if of_network.is_empty() {
            self.by_network.remove(&network);
        }
    }

    /// The oldest one of the network that has the most, were there one more from `network`.
    fn most_dispensable(&self, network: IpAddr) -> Option<u64> {
        let n_of = |of: IpAddr, strangers: &BTreeSet<u64>| strangers.len() + usize::from(of == network);
        let most = self.by_network.iter().max_by_key(|(of, strangers)| n_of(**of, strangers))?;
        most.1.first().copied()
    }
}

/// The part of an address that one peer cannot choose: a peer with an IPv6 address has all of its /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (!0 << 64)).into(),
        address => address,
    }
}

#[derive(Debug)]
struct State {
    network: IpAddr,
    /// Who asks, if a request has shown it.
    user: Option<Arc<str>>,
    /// How many requests are being answered, watches included.
    n_requests: usize,
    idle_since: Instant,
    told_to_go: Arc<Notify>,
    outbox: Arc<Outbox>,
}

/// One open connection. Dropping it makes room.
#[derive(Debug)]
pub(super) struct Connection {
    number: u64,
    told_to_go: Arc<Notify>,
    outbox: Arc<Outbox>,
    of: Arc<Connections>,
}

/// A request that is being answered. Dropping it ends that.
#[derive(Debug)]
pub(super) struct Busy(Arc<Connection>);

impl Connections {
    pub(super) fn new(n_max: usize, read_within: Duration) -> Arc<Connections> {
        let n_strangers_max = (n_max / 4).clamp(1, STRANGERS_MAX);
        let n_of_user_max = n_max - n_max / 4;
        let unread = Unread::new(read_within);
        Arc::new(Connections { open: Mutex::default(), n_max, n_strangers_max, n_of_user_max, unread })
    }

    /// Closes the connections of clients that do not read, for as long as the server runs.
    pub(super) async fn close_stalled(&self) {
        let mut ticks = tokio::time::interval(self.unread.look_every());
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let now = ticks.tick().await;
            self.open.lock().remove_stalled(now);
        }
    }

    /// Takes in a new connection. If that is one too many, another one is told to go; if none can, the new one is refused.
    pub(super) fn admit(self: &Arc<Connections>, address: IpAddr) -> Option<Arc<Connection>> {
        let network = network(address);
        let mut open = self.open.lock();
        let victim = if open.strangers.n >= self.n_strangers_max {
            open.strangers.most_dispensable(network)
        } else if open.all.len() >= self.n_max {
            let stranger = open.strangers.most_dispensable(network);
            Some(stranger.or_else(|| open.longest_idle(|_| true))?)
        } else {
            None
        };
        if let Some(victim) = victim {
            open.remove(victim);
        }
        open.n_ever += 1;
        let (number, told_to_go) = (open.n_ever, Arc::new(Notify::new()));
        let outbox = Outbox::new(self.unread.clone());
        let state = State {
            network,
            user: None,
            n_requests: 0,
            idle_since: Instant::now(),
            told_to_go: told_to_go.clone(),
            outbox: outbox.clone(),
        };
        open.all.insert(number, state);
        open.strangers.insert(network, number);
        Some(Arc::new(Connection { number, told_to_go, outbox, of: self.clone() }))
    }
}

impl Open {
    /// Forgets a connection, and tells it to go if it is still there.
    fn remove(&mut self, number: u64) {
        let Some(state) = self.all.remove(&number) else { return };
        state.told_to_go.notify_one();
        let Some(user) = state.user else { return self.strangers.remove(state.network, number) };
        match self.n_of_users.get_mut(&user) {
            Some(n_of_user) if *n_of_user > 1 => *n_of_user -= 1,
            _ => {
                self.n_of_users.remove(&user);
            }
        }
    }

    /// Notes who asks on a connection. If that user has too many, its longest idle one goes, or else this one.
    fn know(&mut self, number: u64, user: &str, n_of_user_max: usize) {
        let Some(state) = self.all.get_mut(&number).filter(|state| state.user.is_none()) else { return };
        let user: Arc<str> = user.into();
        state.user = Some(user.clone());
        self.strangers.remove(state.network, number);
        let n_of_user = self.n_of_users.entry(user.clone()).or_default();
        *n_of_user += 1;
        if *n_of_user > n_of_user_max {
            let victim = self.longest_idle(|state| state.user.as_ref() == Some(&user));
            self.remove(victim.unwrap_or(number));
        }
    }

    fn remove_stalled(&mut self, now: Instant) {
        let stalled = self.all.iter().filter(|(_, state)| state.outbox.is_stalled(now));
        let stalled: Vec<u64> = stalled.map(|(number, _)| *number).collect();
        for number in stalled {
            tracing::debug!("a client does not read its answers");
            self.remove(number);
        }
    }

    fn longest_idle(&self, is_meant: impl Fn(&State) -> bool) -> Option<u64> {
        let idle = self.all.iter().filter(|(_, state)| state.n_requests == 0 && is_meant(state));
        idle.min_by_key(|(_, state)| state.idle_since).map(|(number, _)| *number)
    }
}

impl Connection {
    /// A request has come.
    pub(super) fn request(self: &Arc<Connection>) -> Busy {
        if let Some(state) = self.of.open.lock().all.get_mut(&self.number) {
            state.n_requests += 1;
        }
        Busy(self.clone())
    }

    /// The connection is more than requests and answers from now on: it is never idle again.
    pub(super) fn is_upgraded(&self) {
        if let Some(state) = self.of.open.lock().all.get_mut(&self.number) {
            state.n_requests += 1;
        }
    }

    /// What the client has yet to read.
    pub(super) fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    /// A request has shown who asks.
    pub(super) fn is_known(&self, user: &str) {
        self.of.open.lock().know(self.number, user, self.of.n_of_user_max);
    }

    /// Returns when the connection must make room at once.
    pub(super) async fn told_to_go(&self) {
        self.told_to_go.notified().await;
    }

    /// Returns when the connection has been idle for too long.
    pub(super) async fn idled(&self) {
        while let Some(until) = self.idle_until() {
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    /// Until when the connection may be idle, if it goes on as it is now; none if it is closed.
    fn idle_until(&self) -> Option<Instant> {
        let open = self.of.open.lock();
        let state = open.all.get(&self.number)?;
        let patience = if state.user.is_none() { FIRST_REQUEST_WITHIN } else { IDLE_MAX };
        Some(if state.n_requests > 0 { Instant::now() + patience } else { state.idle_since + patience })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.of.open.lock().remove(self.number);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(state) = self.0.of.open.lock().all.get_mut(&self.0.number) {
            state.n_requests = state.n_requests.saturating_sub(1);
            state.idle_since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::http::unread::Reading;

    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn connections(n_max: usize) -> Arc<Connections> {
        Connections::new(n_max, Duration::from_secs(30))
    }

    fn must_go(connection: &Connection) -> bool {
        connection.told_to_go().now_or_never().is_some()
    }

    #[test]
    fn strangers_make_room_for_each_other_and_not_for_long() {
        let connections = connections(40);
        let client = connections.admit(LOCAL).unwrap();
        client.is_known("u");
        let strangers: Vec<_> = (0..100).map(|_| connections.admit(LOCAL).unwrap()).collect();
        assert!(!must_go(&client), "a client that has shown who asks stays");
        let n_left = strangers.iter().filter(|stranger| !must_go(stranger)).count();
        assert_eq!(n_left, 10, "a quarter of all");
        assert!(!must_go(&strangers[99]), "the oldest goes first");
    }

    #[test]
    fn one_address_does_not_take_the_places_of_all_strangers() {
        let connections = connections(40);
        let from = |address: &str| connections.admit(address.parse().unwrap()).unwrap();
        let others = [from("192.0.2.1"), from("192.0.2.2"), from("2001:db8:2::1")];
        let mut flood: Vec<_> = (0..100).map(|_| from("192.0.2.9")).collect();
        flood.extend((0..100).map(|n| from(&format!("2001:db8:1::{n}"))));
        assert!(others.iter().all(|other| !must_go(other)), "they have few");
        let n_left = flood.iter().filter(|stranger| !must_go(stranger)).count();
        assert_eq!(n_left, 7);
        assert_eq!(connections.open.lock().strangers.n, 10);
    }

    #[test]
    fn one_user_does_not_take_all_places() {
        let connections = connections(12);
        let connect = |user: &str| {
            let connection = connections.admit(LOCAL).unwrap();
            let busy = connection.request();
            connection.is_known(user);
            (connection, busy)
        };
        let mut greedy: Vec<_> = (0..30).map(|_| connect("greedy")).collect();
        let others = ["a", "b"].map(connect);
        assert!(others.iter().all(|(other, _)| !must_go(other)));
        assert_eq!(greedy.iter().filter(|(connection, _)| !must_go(connection)).count(), 9, "three quarters");
        let (idle, busy) = greedy.remove(3);
        drop(busy);
        let another = connect("greedy");
        assert!(must_go(&idle) && !must_go(&another.0), "an idle one of the same user makes room");
        drop((greedy, others, idle, another));
        assert!(connections.open.lock().n_of_users.is_empty());
    }

    #[test]
    fn when_all_places_are_taken_the_connection_goes_that_has_been_idle_for_longest() {
        let connections = connections(3);
        let all: Vec<_> = (0..3)
            .map(|_| {
                let connection = connections.admit(LOCAL).unwrap();
                connection.is_known("u");
                connection
            })
            .collect();
        let busy = [all[0].request(), all[2].request()];
        let fourth = connections.admit(LOCAL).unwrap();
        assert!(must_go(&all[1]) && !must_go(&all[0]) && !must_go(&all[2]));
        fourth.is_known("u");
        let _busy = fourth.request();
        assert!(connections.admit(LOCAL).is_none(), "no request is interrupted");
        drop(busy);
        assert!(connections.admit(LOCAL).is_some());
    }

    #[test]
    fn a_connection_that_is_gone_makes_room() {
        let connections = connections(1);
        for _ in 0..10 {
            let connection = connections.admit(LOCAL).unwrap();
            connection.is_known("u");
            let _busy = connection.request();
        }
        assert!(connections.open.lock().all.is_empty());
    }

    #[test]
    fn a_client_that_does_not_read_loses_its_connection() {
        let connections = connections(10);
        let [reads, stalls] = [(); 2].map(|()| connections.admit(LOCAL).unwrap());
        let give = |to: &Arc<Connection>| {
            let outbox = to.outbox();
            outbox.give(outbox.answer(), Reading::Steady, bytes::Bytes::from_static(b"news"))
        };
        drop(give(&reads));
        let _unread = give(&stalls);
        connections.open.lock().remove_stalled(Instant::now());
        assert_eq!(connections.open.lock().all.len(), 2);
        connections.open.lock().remove_stalled(Instant::now() + Duration::from_secs(30));
        assert!(must_go(&stalls) && !must_go(&reads));
    }
}
