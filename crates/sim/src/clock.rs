//! Virtual time: it stands still until the world moves it on.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use krafla_api::{Time, Uid};
use krafla_apiserver::env::Env;
use krafla_cluster::SshKeyPair;

/// When every world begins: 2026-01-01T00:00:00Z.
const START_SECONDS: i64 = 1_767_225_600;

/// The clock of one world, shared by everybody in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    /// Nanoseconds since the world began.
    elapsed: Arc<AtomicI64>,
}

impl Clock {
    /// This moment.
    pub(crate) fn now(&self) -> Time {
        start().after(self.elapsed())
    }

    /// A clock that shows the same and goes its own way from now on.
    pub(crate) fn fork(&self) -> Clock {
        let elapsed = AtomicI64::new(self.elapsed.load(Ordering::Relaxed));
        Clock { elapsed: Arc::new(elapsed) }
    }

    /// How old the world is.
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.elapsed.load(Ordering::Relaxed).unsigned_abs())
    }

    /// Moves time on to a moment; it never goes back.
    pub(crate) fn advance_to(&self, moment: Time) {
        let elapsed = i64::try_from(moment.since(start()).as_nanos()).unwrap_or(i64::MAX);
        self.elapsed.fetch_max(elapsed, Ordering::Relaxed);
    }
}

/// The moment at which every world begins.
pub(crate) fn start() -> Time {
    Time::from_seconds(START_SECONDS)
}

/// What the server takes from its surroundings: virtual time, and identities in the order of their making.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    clock: Clock,
    n_identities: AtomicU64,
}

impl Surroundings {
    /// Surroundings in the time of a clock. `n_identities` have been given before, to what the world begins with.
    pub(crate) fn new(clock: Clock, n_identities: u64) -> Surroundings {
        Surroundings { clock, n_identities: AtomicU64::new(n_identities) }
    }

    /// How many identities have been given so far.
    pub(crate) fn n_identities(&self) -> u64 {
        self.n_identities.load(Ordering::Relaxed)
    }

    fn next_identity(&self) -> u64 {
        self.n_identities.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Env for Surroundings {
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn uid(&self) -> Uid {
        // Shaped like a UUID, and short enough to be told apart in a timeline.
        Uid(format!("00000000-0000-4000-8000-{:012}", self.next_identity()).into())
    }

    fn suffix(&self) -> String {
        format!("{:05}", self.next_identity() % 100_000)
    }

    fn has_time_zone(&self, name: &str) -> bool {
        krafla_api::time_zone(name).is_some()
    }

    fn ssh_key_pair(&self) -> Result<SshKeyPair, String> {
        // Nobody reads it here, and a real one takes longer than a whole run.
        let number = self.next_identity();
        Ok(SshKeyPair {
            private_key: format!("private {number}\n"),
            public_key: format!("ssh-rsa {number}\n"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stands_still_until_it_is_moved_and_never_goes_back() {
        let clock = Clock::default();
        assert_eq!(clock.now().to_string(), "2026-01-01T00:00:00Z");
        clock.advance_to(clock.now().after(Duration::from_millis(1500)));
        assert_eq!(clock.elapsed(), Duration::from_millis(1500));
        clock.advance_to(start());
        assert_eq!(clock.elapsed(), Duration::from_millis(1500));
    }

    #[test]
    fn identities_follow_the_order_of_their_making() {
        let surroundings = Surroundings::default();
        assert_eq!(&*surroundings.uid().0, "00000000-0000-4000-8000-000000000001");
        assert_eq!(surroundings.suffix(), "00002");
    }
}
