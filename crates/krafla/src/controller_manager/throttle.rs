//! No more than so many requests a second: `--kube-api-qps` and `--kube-api-burst`.
//!
//! Nothing is held back unless somebody asks for it: the server's own fairness knows better how much it can take.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use krafla_api::{Key, Kind};
use krafla_cluster::{Client, ClientError, Event, Listed, Step, Written};
use parking_lot::Mutex;
use tokio::time::Instant;

/// How many requests there may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    /// In the long run, each second.
    pub(super) per_second: f64,
    /// At once, after a time of quiet.
    pub(super) burst: u32,
}

/// However slow the rate, a request waits no longer than this for each one before it.
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// A cluster that is asked no more often than a rate allows. Watches are not counted: there is one per kind.
pub(super) struct Throttled {
    client: Arc<dyn Client>,
    interval: Duration,
    /// How much earlier than at an even pace a request may come.
    ahead_max: Duration,
    /// When the next request would be due at an even pace.
    due: Mutex<Instant>,
}

impl Throttled {
    pub(super) fn new(client: Arc<dyn Client>, rate: Rate) -> Throttled {
        let interval = Duration::try_from_secs_f64(1.0 / rate.per_second).unwrap_or(INTERVAL_MAX);
        let interval = interval.min(INTERVAL_MAX);
        let ahead_max = interval.saturating_mul(rate.burst.saturating_sub(1));
        Throttled { client, interval, ahead_max, due: Mutex::new(Instant::now()) }
    }

    /// Waits for this request's turn. Those that wait are served in the order in which they came.
    async fn turn(&self) {
        tokio::time::sleep_until(self.reserve(Instant::now())).await;
    }

    /// When a request that comes now may be made.
    fn reserve(&self, now: Instant) -> Instant {
        let mut due = self.due.lock();
        let mine = (*due).max(now);
        *due = mine + self.interval;
        mine.checked_sub(self.ahead_max).unwrap_or(now)
    }
}

impl Client for Throttled {
    fn list(&self, kind: Kind) -> BoxFuture<'_, Result<Listed, ClientError>> {
        Box::pin(async move {
            self.turn().await;
            self.client.list(kind).await
        })
    }

    fn watch(&self, kind: Kind, revision: u64) -> BoxStream<'static, Result<Event, ClientError>> {
        self.client.watch(kind, revision)
    }

    fn get(&self, kind: Kind, key: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>> {
        let key = key.clone();
        Box::pin(async move {
            self.turn().await;
            self.client.get(kind, &key).await
        })
    }

    fn write<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
        Box::pin(async move {
            self.turn().await;
            self.client.write(step).await
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt, stream};

    use super::*;

    /// A cluster that knows nothing.
    struct Nothing;

    impl Client for Nothing {
        fn list(&self, _: Kind) -> BoxFuture<'_, Result<Listed, ClientError>> {
            async { Ok(Listed { revision: 1, items: Vec::new() }) }.boxed()
        }

        fn watch(&self, _: Kind, _: u64) -> BoxStream<'static, Result<Event, ClientError>> {
            stream::pending().boxed()
        }

        fn get(&self, _: Kind, _: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>> {
            async { Ok(Bytes::new()) }.boxed()
        }

        fn write<'a>(&'a self, _: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
            async { Err(ClientError::Unknown("not asked for".to_owned())) }.boxed()
        }
    }

    /// Milliseconds after the first request at which each may be made, if these come so many milliseconds after it.
    fn turns(rate: Rate, come_at: &[u64]) -> Vec<u128> {
        let throttled = Throttled::new(Arc::new(Nothing), rate);
        let start = Instant::now();
        *throttled.due.lock() = start;
        let turn = |at: &u64| {
            let now = start + Duration::from_millis(*at);
            throttled.reserve(now).max(now).duration_since(start).as_millis()
        };
        come_at.iter().map(turn).collect()
    }

    #[tokio::test]
    async fn a_burst_goes_at_once_and_the_rest_at_an_even_pace() {
        let rate = Rate { per_second: 10.0, burst: 3 };
        assert_eq!(turns(rate, &[0, 0, 0, 0, 0]), [0, 0, 0, 100, 200]);
        assert_eq!(turns(rate, &[0, 0, 0, 1000, 1000, 1000, 1000]), [0, 0, 0, 1000, 1000, 1000, 1100]);
        assert_eq!(turns(Rate { per_second: 10.0, burst: 1 }, &[0, 0, 500]), [0, 100, 500]);
        let absurd = Rate { per_second: f64::MIN_POSITIVE, burst: u32::MAX };
        assert_eq!(turns(absurd, &[0, 0]), [0, 0]);
    }

    #[tokio::test]
    async fn a_request_waits_for_its_turn() {
        let throttled = Throttled::new(Arc::new(Nothing), Rate { per_second: 500.0, burst: 1 });
        let start = Instant::now();
        for _ in 0..3 {
            assert!(throttled.list(Kind::Pod).await.is_ok());
            assert!(throttled.get(Kind::Pod, &Key::new("a", "b")).await.is_ok());
        }
        assert!(start.elapsed() >= Duration::from_millis(10), "five times two milliseconds");
    }
}
