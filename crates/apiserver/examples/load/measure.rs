//! The measurements.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::try_join_all;
use http::Method;
use http_body_util::BodyExt;
use serde_json::Value;

use crate::client::Client;
use crate::pod::Pods;
use crate::table::Table;
use crate::target::{Embedded, Target};
use crate::{Failure, megabytes};

const NAMESPACE: &str = "krafla-bench";
const MERGE: &str = "application/merge-patch+json";

/// How much is done.
pub(crate) struct Effort {
    seconds: Duration,
    listed: usize,
    watchers: usize,
    burst: usize,
    stored: usize,
    starts: usize,
}

impl Effort {
    /// What the figures in the documentation are taken with.
    pub(crate) fn whole() -> Self {
        let seconds = Duration::from_secs(3);
        Self { seconds, listed: 10_000, watchers: 100, burst: 1_000, stored: 100_000, starts: 10 }
    }

    /// Enough to see that it works.
    pub(crate) fn quick() -> Self {
        let seconds = Duration::from_millis(300);
        Self { seconds, listed: 500, watchers: 10, burst: 100, stored: 1_000, starts: 1 }
    }
}

/// How long the embedded server takes from nothing to ready: the median of some starts.
pub(crate) async fn starts(parent: &Path, effort: &Effort, table: &mut Table) -> Result<(), Failure> {
    let mut took = Vec::new();
    for _ in 0..effort.starts {
        took.push(Embedded::start(parent).await?.ready_after);
    }
    table.add("start to ready", "ms", median(took).as_secs_f64() * 1e3);
    Ok(())
}

/// Everything that can be asked of any server.
pub(crate) async fn requests(target: &Target, effort: &Effort, table: &mut Table) -> Result<(), Failure> {
    let mut client = Client::connect(target).await?;
    let namespace = format!(r#"{{"metadata":{{"name":"{NAMESPACE}"}}}}"#);
    client.create("/api/v1/namespaces", namespace).await?;
    for writers in [1, 16, 64] {
        let rate = creates(target, writers, effort.seconds)?;
        table.add(&format!("pod creates, {writers} writers"), "/s", rate);
    }
    clear(&mut client).await?;
    for writers in [1, 16, 64] {
        let rate = status_patches(target, writers, effort.seconds).await?;
        table.add(&format!("status patches, {writers} writers"), "/s", rate);
    }
    clear(&mut client).await?;
    fill(target, "listed", effort.listed).await?;
    let took = lists(&mut client, effort.listed).await?;
    table.add(&format!("list of {} pods", effort.listed), "ms", took.as_secs_f64() * 1e3);
    clear(&mut client).await?;
    let took = fan_out(target, effort).await?;
    let what = format!("{} creates seen by {} watchers", effort.burst, effort.watchers);
    table.add(&what, "ms", took.as_secs_f64() * 1e3);
    clear(&mut client).await?;
    let path = format!("/api/v1/namespaces/{NAMESPACE}");
    client.ask(Method::DELETE, &path, "application/json", Bytes::new()).await?;
    Ok(())
}

/// What many pods cost in memory.
pub(crate) async fn memory(embedded: &Embedded, effort: &Effort, table: &mut Table) -> Result<(), Failure> {
    let target = embedded.target();
    let mut client = Client::connect(target).await?;
    let namespace = format!(r#"{{"metadata":{{"name":"{NAMESPACE}-memory"}}}}"#);
    client.create("/api/v1/namespaces", namespace).await?;
    let before = embedded.resident_bytes()?;
    let path = format!("/api/v1/namespaces/{NAMESPACE}-memory/pods");
    fill_at(target, &path, "stored", effort.stored).await?;
    let after = embedded.resident_bytes()?;
    table.add(&format!("resident, {} pods", effort.stored), "MB", megabytes(after));
    // Filling takes longer than an idle connection is kept open.
    let mut client = Client::connect(target).await?;
    let stored = client.get(&format!("{path}/stored-0")).await?.len();
    table.add("one pod as answered", "bytes", stored as f64);
    table.add("resident per pod", "bytes", after.saturating_sub(before) as f64 / effort.stored as f64);
    Ok(())
}

fn pods() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods")
}

/// Durable creates per second.
fn creates(target: &Target, writers: usize, seconds: Duration) -> Result<f64, Failure> {
    let (path, texts) = (pods(), Pods::new());
    rate(target, writers, seconds, async |client, writer, n| {
        client.create(&path, texts.named(&format!("c{writers}-{writer}-{n}"))).await
    })
}

/// Changes of status per second, each writer on a pod of its own, as a kubelet makes them.
async fn status_patches(target: &Target, writers: usize, seconds: Duration) -> Result<f64, Failure> {
    let name = |writer: usize| format!("p{writers}-{writer}");
    let (path, texts) = (pods(), Pods::new());
    let mut client = Client::connect(target).await?;
    for writer in 0..writers {
        client.create(&path, texts.named(&name(writer))).await?;
    }
    rate(target, writers, seconds, async |client, writer, n| {
        let patch = format!(r#"{{"status":{{"phase":"Running","message":"step {n}"}}}}"#);
        let path = format!("{path}/{}/status", name(writer));
        client.ask(Method::PATCH, &path, MERGE, patch.into()).await.map(drop)
    })
}

/// How often writers, each with a connection of its own, get something done in a second. They share one thread, so that
/// none has to wake another: what they take of the machine, the server lacks.
fn rate<W>(target: &Target, writers: usize, seconds: Duration, work: W) -> Result<f64, Failure>
where
    W: AsyncFn(&mut Client, usize, usize) -> Result<(), Failure> + Sync,
{
    std::thread::scope(|threads| {
        let measured = threads.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(rate_here(target, writers, seconds, &work))
        });
        measured.join().map_err(|_| "the writers' thread panicked")?
    })
}

async fn rate_here<W>(target: &Target, writers: usize, seconds: Duration, work: &W) -> Result<f64, Failure>
where
    W: AsyncFn(&mut Client, usize, usize) -> Result<(), Failure>,
{
    let clients = try_join_all((0..writers).map(|_| Client::connect(target))).await?;
    let started = Instant::now();
    let write = async |writer: usize, mut client: Client| {
        let mut done = 0;
        while started.elapsed() < seconds {
            work(&mut client, writer, done).await?;
            done += 1;
        }
        Ok::<_, Failure>(done)
    };
    let write = &write;
    let done =
        try_join_all(clients.into_iter().enumerate().map(|(writer, client)| write(writer, client))).await?;
    Ok(done.iter().sum::<usize>() as f64 / started.elapsed().as_secs_f64())
}

async fn fill(target: &Target, prefix: &str, count: usize) -> Result<(), Failure> {
    fill_at(target, &pods(), prefix, count).await
}

/// Makes pods as fast as it goes.
async fn fill_at(target: &Target, path: &str, prefix: &str, count: usize) -> Result<(), Failure> {
    let (texts, next) = (Pods::new(), AtomicUsize::new(0));
    let fill = async || {
        let mut client = Client::connect(target).await?;
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= count {
                return Ok::<_, Failure>(());
            }
            client.create(path, texts.named(&format!("{prefix}-{n}"))).await?;
        }
    };
    try_join_all((0..64).map(|_| fill())).await.map(drop)
}

/// The median time of a list, which must be whole.
async fn lists(client: &mut Client, count: usize) -> Result<Duration, Failure> {
    let mut took = Vec::new();
    for _ in 0..5 {
        let started = Instant::now();
        let answer = client.open(Method::GET, &pods(), "application/json", Bytes::new()).await?;
        let body = answer.into_body().collect().await?;
        // The last byte is here; to put them all in one place is no work of the server.
        took.push(started.elapsed());
        let list: Value = serde_json::from_slice(&body.to_bytes())?;
        let found = list.get("items").and_then(Value::as_array).map_or(0, Vec::len);
        if found != count {
            return Err(format!("the list holds {found} pods where {count} were made").into());
        }
    }
    Ok(median(took))
}

/// From the first write of a burst until every watcher has seen all of it, every event once and in order.
async fn fan_out(target: &Target, effort: &Effort) -> Result<Duration, Failure> {
    let path = format!("{}?watch=true&resourceVersion=0", pods());
    let mut open = Vec::new();
    for _ in 0..effort.watchers {
        let mut client = Client::connect(target).await?;
        let stream = client.open(Method::GET, &path, "application/json", Bytes::new()).await?;
        open.push((client, stream.into_body()));
    }
    let started = Instant::now();
    let burst = effort.burst;
    let watching = try_join_all(open.into_iter().map(|(client, body)| async move {
        let outcome = tokio::spawn(see(body, burst)).await?;
        drop(client);
        outcome
    }));
    tokio::try_join!(fill(target, "burst", burst), watching)?;
    Ok(started.elapsed())
}

/// Reads events until all of the burst were seen.
async fn see(mut body: hyper::body::Incoming, burst: usize) -> Result<(), Failure> {
    let (mut unread, mut seen, mut last) = (Vec::new(), std::collections::HashSet::new(), 0_u64);
    while seen.len() < burst {
        let frame = body.frame().await.ok_or("a watch ended early")??;
        unread.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = unread.drain(..=end).collect();
            let event: Event = serde_json::from_slice(&line)?;
            let revision: u64 = event.object.metadata.resource_version.parse()?;
            let name = event.object.metadata.name;
            if event.kind != "ADDED" || revision <= last || !seen.insert(name.clone()) {
                return Err(format!(
                    "{} of {name} at {revision} after {last}: not once, or not in order",
                    event.kind
                )
                .into());
            }
            last = revision;
        }
    }
    Ok(())
}

#[derive(serde::Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    object: Object,
}

#[derive(serde::Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    resource_version: String,
}

/// Removes all pods, and waits until they are gone.
async fn clear(client: &mut Client) -> Result<(), Failure> {
    let now = format!("{}?gracePeriodSeconds=0", pods());
    client.ask(Method::DELETE, &now, "application/json", Bytes::new()).await?;
    loop {
        let left: Value = serde_json::from_slice(&client.get(&format!("{}?limit=1", pods())).await?)?;
        if left.get("items").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
