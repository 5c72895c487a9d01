//! Open connections: how many there may be, and which one goes when there is no room for another.
//!
//! A connection is a stranger until a request on it has shown who asks. Strangers are few, and the oldest of them goes for a
//! new one, so that connections that say nothing cannot keep clients out. When there is no room at all, the connection goes
//! that has been idle for longest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::Notify;
use tokio::time::Instant;

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
}

#[derive(Debug, Default)]
struct Open {
    n_ever: u64,
    /// By their age.
    all: BTreeMap<u64, State>,
    strangers: BTreeSet<u64>,
}

#[derive(Debug)]
struct State {
    /// How many requests are being answered, watches included.
    n_requests: usize,
    idle_since: Instant,
    told_to_go: Arc<Notify>,
}

/// One open connection. Dropping it makes room.
#[derive(Debug)]
pub(super) struct Connection {
    number: u64,
    told_to_go: Arc<Notify>,
    of: Arc<Connections>,
}

/// A request that is being answered. Dropping it ends that.
#[derive(Debug)]
pub(super) struct Busy(Arc<Connection>);

impl Connections {
    pub(super) fn new(n_max: usize) -> Arc<Connections> {
        let n_strangers_max = (n_max / 4).clamp(1, STRANGERS_MAX);
        Arc::new(Connections { open: Mutex::default(), n_max, n_strangers_max })
    }

    /// Takes in a new connection. If that is one too many, another one is told to go; if none can, the new one is refused.
    pub(super) fn admit(self: &Arc<Connections>) -> Option<Arc<Connection>> {
        let mut open = self.open.lock();
        let victim = if open.strangers.len() >= self.n_strangers_max {
            open.strangers.first().copied()
        } else if open.all.len() >= self.n_max {
            Some(open.strangers.first().copied().or_else(|| open.longest_idle())?)
        } else {
            None
        };
        if let Some(victim) = victim {
            open.strangers.remove(&victim);
            if let Some(state) = open.all.remove(&victim) {
                state.told_to_go.notify_one();
            }
        }
        open.n_ever += 1;
        let (number, told_to_go) = (open.n_ever, Arc::new(Notify::new()));
        let state = State { n_requests: 0, idle_since: Instant::now(), told_to_go: told_to_go.clone() };
        open.all.insert(number, state);
        open.strangers.insert(number);
        Some(Arc::new(Connection { number, told_to_go, of: self.clone() }))
    }
}

impl Open {
    fn longest_idle(&self) -> Option<u64> {
        let idle = self.all.iter().filter(|(_, state)| state.n_requests == 0);
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

    /// A request has shown who asks.
    pub(super) fn is_known(&self) {
        self.of.open.lock().strangers.remove(&self.number);
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
        let patience = if open.strangers.contains(&self.number) { FIRST_REQUEST_WITHIN } else { IDLE_MAX };
        Some(if state.n_requests > 0 { Instant::now() + patience } else { state.idle_since + patience })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.of.open.lock();
        open.all.remove(&self.number);
        open.strangers.remove(&self.number);
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

    fn must_go(connection: &Connection) -> bool {
        connection.told_to_go().now_or_never().is_some()
    }

    #[test]
    fn strangers_make_room_for_each_other_and_not_for_long() {
        let connections = Connections::new(40);
        let client = connections.admit().unwrap();
        client.is_known();
        let strangers: Vec<_> = (0..100).map(|_| connections.admit().unwrap()).collect();
        assert!(!must_go(&client), "whoever has shown who asks stays");
        let n_left = strangers.iter().filter(|stranger| !must_go(stranger)).count();
        assert_eq!(n_left, 10, "a quarter of all");
        assert!(!must_go(&strangers[99]), "the oldest goes first");
    }

    #[test]
    fn when_all_places_are_taken_the_connection_goes_that_has_been_idle_for_longest() {
        let connections = Connections::new(3);
        let all: Vec<_> = (0..3)
            .map(|_| {
                let connection = connections.admit().unwrap();
                connection.is_known();
                connection
            })
            .collect();
        let busy = [all[0].request(), all[2].request()];
        let fourth = connections.admit().unwrap();
        assert!(must_go(&all[1]) && !must_go(&all[0]) && !must_go(&all[2]));
        fourth.is_known();
        let _busy = fourth.request();
        assert!(connections.admit().is_none(), "nobody is interrupted");
        drop(busy);
        assert!(connections.admit().is_some());
    }

    #[test]
    fn a_connection_that_is_gone_makes_room() {
        let connections = Connections::new(1);
        for _ in 0..10 {
            let connection = connections.admit().unwrap();
            connection.is_known();
            let _busy = connection.request();
        }
        assert!(connections.open.lock().all.is_empty());
    }
}
