//! The engine with tasks, a clock and a client: one watch per kind, a few workers, no polling.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use krafla_api::{Kind, Time};
use krafla_cluster::{Client, ClientError, Step};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::apply::apply;
use crate::dial;
use crate::engine::{Engine, Outcome, Work};
use crate::events::Recorder;

/// How long to wait after a list that failed or a watch that broke: twice as long each time, up to a limit.
const WATCH_RETRY: Duration = Duration::from_millis(250);
const WATCH_RETRY_MAX: Duration = Duration::from_secs(16);

/// How long a worker rests at least, and at most, while something is due later.
const REST_MIN: Duration = Duration::from_millis(1);
const REST_MAX: Duration = Duration::from_secs(5);

/// How many pods are asked at once.
const DIALS_IN_FLIGHT_MAX: usize = 32;

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// This moment.
    fn now(&self) -> Time;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time::from_nanos(i128::try_from(since_1970.as_nanos()).unwrap_or(i128::MAX))
    }
}

struct Shared {
    engine: Mutex<Engine>,
    client: Arc<dyn Client>,
    clock: Arc<dyn Clock>,
    /// Told whenever there may be something to decide.
    news: Notify,
    /// Told whenever there may be something to say.
    remarks: Notify,
    /// Told whenever there may be something to ask.
    inquiries: Notify,
}

/// Runs the engine until the future is dropped. `workers` bounds how many plans are carried out at once.
pub async fn run(engine: Engine, client: Arc<dyn Client>, clock: Arc<dyn Clock>, workers: usize) {
    let kinds: Vec<Kind> = engine.kinds().collect();
    let shared = Arc::new(Shared {
        engine: Mutex::new(engine),
        client,
        clock,
        news: Notify::new(),
        remarks: Notify::new(),
        inquiries: Notify::new(),
    });
    let watches = join_all(kinds.into_iter().map(|kind| watch(shared.clone(), kind)));
    let workers = join_all((0..workers.max(1)).map(|_| work(shared.clone())));
    tokio::join!(watches, workers, say(&shared), ask(&shared));
}

async fn watch(shared: Arc<Shared>, kind: Kind) {
    let mut pause = WATCH_RETRY;
    loop {
        if let Err(error) = list(&shared, kind).await {
            tracing::warn!(%kind, %error, "list failed");
            pause = wait(pause, &error).await;
            continue;
        }
        loop {
            let revision = shared.engine.lock().revision(kind);
            let ended = follow(&shared, kind, revision).await;
            if shared.engine.lock().revision(kind) > revision {
                pause = WATCH_RETRY;
            }
            match ended {
                Ok(()) => {}
                Err(ClientError::Expired(_)) => break,
                Err(error) => {
                    tracing::warn!(%kind, %error, "watch broke");
                    pause = wait(pause, &error).await;
                }
            }
        }
    }
}

/// Waits before asking again, for as long as the server wants; returns how long to wait the next time.
async fn wait(pause: Duration, error: &ClientError) -> Duration {
    let wanted = match error {
        ClientError::Busy { retry_after, .. } => retry_after.unwrap_or_default(),
        _ => Duration::ZERO,
    };
    tokio::time::sleep(pause.max(wanted)).await;
    pause.saturating_mul(2).min(WATCH_RETRY_MAX)
}

async fn list(shared: &Shared, kind: Kind) -> Result<(), ClientError> {
    let listed = shared.client.list(kind).await?;
    let taken = shared.engine.lock().listed(kind, &listed, shared.clock.now());
    taken.map_err(|outdated| ClientError::Unknown(outdated.to_string()))?;
    shared.news.notify_waiters();
    Ok(())
}

/// Follows a watch from a revision until it ends.
async fn follow(shared: &Shared, kind: Kind, revision: u64) -> Result<(), ClientError> {
    let mut events = shared.client.watch(kind, revision);
    while let Some(event) = events.next().await {
        let event = event?;
        let has_work = {
            let now = shared.clock.now();
            let mut engine = shared.engine.lock();
            engine.observed(kind, &event, now);
            engine.has_work(now)
        };
        if has_work {
            shared.news.notify_one();
        }
    }
    Ok(())
}

async fn work(shared: Arc<Shared>) {
    loop {
        // Ask to be told before looking, so that news between the look and the wait are not missed.
        let news = shared.news.notified();
        let (now, next, wake_at, has_inquiry) = {
            let mut engine = shared.engine.lock();
            // Under the lock: to wait for it is no part of a decision.
            let now = shared.clock.now();
            let next = engine.next(now);
            engine.decided_by(shared.clock.now());
            (now, next, engine.next_wake(), engine.has_inquiry())
        };
        if has_inquiry {
            shared.inquiries.notify_one();
        }
        match next {
            Some(work) => carry_out(&shared, work).await,
            None => {
                // Plans that write nothing may still have something to say.
                shared.remarks.notify_one();
                rest(wake_at, now, news).await;
            }
        }
    }
}

/// Waits for news, or for the next moment at which something is due.
async fn rest(wake_at: Option<Time>, now: Time, news: Notified<'_>) {
    match wake_at {
        Some(at) => {
            // That the time is over is as good as news.
            let _ = tokio::time::timeout(rest_until(at, now), news).await;
        }
        None => news.await,
    }
}

/// How long to rest before looking at the clock again, if something is due at a moment. The clock may be wrong now and be
/// set right meanwhile, and nothing tells of that: so the rest is never long.
pub fn rest_until(wake_at: Time, now: Time) -> Duration {
    wake_at.since(now).clamp(REST_MIN, REST_MAX)
}

/// Writes Events, beside the work: what is said never holds up what is done, and what can not be said is not tried again.
async fn say(shared: &Shared) {
    let mut recorder = Recorder::default();
    loop {
        shared.remarks.notified().await;
        let remarks = shared.engine.lock().take_remarks();
        for remark in remarks {
            let step = recorder.record(&remark);
            match (&step, shared.client.write(&step).await) {
                (Step::Create { .. }, Ok(written)) => recorder.stored(&written.key, Some(written.uid)),
                (Step::Patch { key, .. }, Err(_)) => recorder.stored(key, None),
                (_, Ok(_)) => {}
                (_, Err(error)) => tracing::debug!(%step, %error, "an event could not be written"),
            }
        }
    }
}

/// Asks pods, beside the work, so many at once.
async fn ask(shared: &Shared) {
    let mut dials = FuturesUnordered::new();
    loop {
        while dials.len() < DIALS_IN_FLIGHT_MAX
            && let Some(inquiry) = shared.engine.lock().next_inquiry()
        {
            dials.push(async move {
                let outcome = dial::ask(&inquiry.probe).await;
                (inquiry, outcome)
            });
        }
        tokio::select! {
            () = shared.inquiries.notified() => {}
            Some((inquiry, outcome)) = dials.next() => {
                shared.engine.lock().answered(inquiry, outcome, shared.clock.now());
                shared.news.notify_one();
            }
        }
    }
}

async fn carry_out(shared: &Shared, work: Work) {
    // More may be ready: let another worker look while this one writes.
    shared.news.notify_one();
    let applied = apply(shared.client.as_ref(), work.premise.as_ref(), &work.plan).await;
    let now = shared.clock.now();
    shared.engine.lock().finished(work, Outcome::Applied(applied), now);
    shared.news.notify_one();
    shared.remarks.notify_one();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_short_whatever_the_clock_says() {
        let now = Time::from_seconds(1_800_000_000);
        assert_eq!(rest_until(now.after(Duration::from_secs(2)), now), Duration::from_secs(2));
        assert_eq!(rest_until(now.after(Duration::from_secs(3600)), now), REST_MAX);
        assert_eq!(rest_until(Time::from_seconds(0), now), REST_MIN);
    }
}
