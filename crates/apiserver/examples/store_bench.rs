//! How fast the store takes durable writes, how fast it starts, and how much memory an object costs.
//!
//! ```text
//!   cargo run --release -p krafla-apiserver --example store_bench [directory]
//! ```
//!
//! The numbers belong to a disk, so the first line measures the disk alone: one file, one write, one sync at a time. The
//! rest is also given as a ratio to it.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use krafla_api::Key;
use krafla_apiserver::store::{Change, CommitError, Draft, EntryMeta, Expect, ResourceId, Store, Write};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

const RUN_FOR: Duration = Duration::from_secs(3);
const LOADED_PODS: usize = 20_000;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, dir] = arguments.as_slice()
        && flag == "--load"
    {
        return report_load(Path::new(dir));
    }
    let parent = arguments.first().map_or_else(std::env::temp_dir, Into::into);
    let dir = tempfile::tempdir_in(parent)?;
    println!("pod: {} bytes of JSON, {RUN_FOR:?} each", serde_json::to_vec(&pod("pod-0"))?.len());

    let disk = disk_alone(&dir.path().join("plain"))?;
    println!("disk alone, 1 writer      {disk:8.0} writes/s");
    for writers in [1, 16, 64] {
        let store = Store::open(&dir.path().join(format!("store-{writers}")))?;
        let rate = durable_commits(&store, writers)?;
        println!(
            "store, {writers:2} writers         {rate:8.0} commits/s   {:5.1} x the disk alone",
            rate / disk
        );
    }

    let loaded = dir.path().join("loaded");
    fill(&loaded)?;
    let empty = dir.path().join("empty");
    for dir in [empty, loaded] {
        Command::new(std::env::current_exe()?).arg("--load").arg(dir).status()?;
    }
    Ok(())
}

/// Appends and syncs, as the simplest durable program would.
fn disk_alone(path: &Path) -> Result<f64, Failure> {
    let mut file = File::create(path)?;
    let bytes = serde_json::to_vec(&pod("pod-0"))?;
    let (started, mut writes) = (Instant::now(), 0_u32);
    while started.elapsed() < RUN_FOR {
        file.write_all(&bytes)?;
        file.sync_data()?;
        writes += 1;
    }
    Ok(f64::from(writes) / started.elapsed().as_secs_f64())
}

fn durable_commits(store: &Store, writers: usize) -> Result<f64, Failure> {
    let started = Instant::now();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let commits = runtime.block_on(async {
        let writers: Vec<_> =
            (0..writers).map(|writer| tokio::spawn(write_for(store.clone(), writer))).collect();
        let mut commits = 0_u32;
        for writer in writers {
            commits += writer.await??;
        }
        Ok::<_, Failure>(commits)
    })?;
    Ok(f64::from(commits) / started.elapsed().as_secs_f64())
}

/// Creates pods and changes each a few times, as their lives do. All have the same text, made beforehand: what is
/// measured is the store, not the making of JSON.
async fn write_for(store: Store, writer: usize) -> Result<u32, CommitError> {
    let draft = draft("pod");
    let (started, mut commits) = (Instant::now(), 0);
    while started.elapsed() < RUN_FOR {
        let key = Key::new("default", &format!("pod-{writer}-{commits}"));
        let mut expect = Expect::Absent;
        for _ in 0..4 {
            let change = Change::Put(draft.clone());
            let entry =
                store.commit(Write { resource: resource(), key: key.clone(), expect, change }).await?;
            expect = Expect::Revision(entry.revision);
            commits += 1;
        }
    }
    Ok(commits)
}

/// Stores many pods, a few hundred at a time.
fn fill(dir: &Path) -> Result<(), Failure> {
    let store = Store::open(dir)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        for first in (0..LOADED_PODS).step_by(500) {
            let write = |n| {
                let (key, change) =
                    (Key::new("default", &format!("pod-{n}")), Change::Put(draft(&format!("pod-{n}"))));
                store.commit(Write { resource: resource(), key, expect: Expect::Absent, change })
            };
            futures_util::future::try_join_all((first..first + 500).map(write)).await?;
        }
        Ok::<_, Failure>(())
    })
}

/// In a process of its own, so that nothing else is in its memory.
fn report_load(dir: &Path) -> Result<(), Failure> {
    let (before, started) = (resident_bytes()?, Instant::now());
    let store = Store::open(dir)?;
    let took = started.elapsed();
    let pods = store.snapshot(&resource()).entries.len();
    let resident = resident_bytes()?.saturating_sub(before);
    print!("start with {pods:5} pods     {took:8.1?}");
    if pods > 0 {
        let per_pod = resident / pods as u64;
        print!("   {resident} bytes resident, {per_pod} per pod");
    }
    println!();
    Ok(())
}

fn resident_bytes() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes * 1024)
}

fn resource() -> ResourceId {
    "pods".into()
}

fn draft(name: &str) -> Draft {
    let object = pod(name);
    let fields = [("spec.nodeName", "node-1"), ("status.phase", "Running")].into_iter().collect();
    let meta = EntryMeta { fields, ..EntryMeta::of(&object) };
    Draft::new(object, meta)
}

/// A pod of a Volcano Job, about as large as they are.
fn pod(name: &str) -> Value {
    let environment: Vec<Value> = (0..40)
        .map(|n| json!({"name": format!("VARIABLE_{n}"), "value": "a value of ordinary length"}))
        .collect();
    let container = json!({
        "name": "main", "image": "registry.example.com/team/training:2026-11-15", "env": environment,
        "command": ["python3", "-m", "torch.distributed.run", "--nnodes=4", "train.py"],
        "resources": {"requests": {"cpu": "4", "memory": "16Gi"}, "limits": {"cpu": "4", "memory": "16Gi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "ssh", "mountPath": "/root/.ssh"}],
    });
    let conditions: Vec<Value> = ["PodScheduled", "Initialized", "ContainersReady", "Ready"]
        .map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-11-15T08:00:00Z"}))
        .into();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("7b0c8a52-54e0-4a0c-9d5d-{name:>12}"),
            "creationTimestamp": "2026-11-15T08:00:00Z",
            "labels": {
                "volcano.sh/job-name": "training", "volcano.sh/job-namespace": "default",
                "volcano.sh/queue-name": "default", "volcano.sh/task-spec": "worker", "volcano.sh/task-index": "7",
            },
            "annotations": {
                "scheduling.k8s.io/group-name": "training-7b0c8a52", "volcano.sh/job-version": "0",
                "volcano.sh/template-uid": "training-worker", "note": "n".repeat(900),
            },
            "ownerReferences": [{
                "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "training", "controller": true,
                "blockOwnerDeletion": true, "uid": "0f3c1a52-54e0-4a0c-9d5d-2f6f4f8d5a10",
            }],
        },
        "spec": {"containers": [container], "nodeName": "node-1", "schedulerName": "volcano", "restartPolicy": "OnFailure"},
        "status": {"phase": "Running", "podIP": "127.1.2.3", "hostIP": "127.0.0.1", "conditions": conditions},
    })
}
