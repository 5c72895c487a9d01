//! Recorded sessions with controllers and admission: the test plays scheduler and kubelet.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use krafla_api::{Key, Kind, Uid};
use krafla_apiserver::LocalClient;
use krafla_cluster::{Client, Propagation, Step as Write};
use serde::Deserialize;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::{golden, read, tool};

/// The controllers are done with a step within this time, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

#[derive(Deserialize)]
struct Session {
    name: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Step {
    Run(Run),
    Wait {
        wait: Target,
        #[serde(default)]
        path: String,
        value: Value,
    },
    WaitPods {
        #[serde(rename = "waitPods")]
        wait: Pods,
    },
    Set {
        set: Target,
        status: Value,
    },
    Create {
        create: Value,
    },
    Delete {
        delete: Target,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    run: Vec<String>,
    exit_code: i32,
    stdout: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Target {
    kind: String,
    namespace: String,
    name: String,
    of_job: String,
    names: Vec<String>,
}

#[derive(Deserialize)]
struct Pods {
    namespace: String,
    job: String,
    names: Vec<String>,
}

#[test]
fn recorded_sessions_go_the_same_way_here() {
    #[derive(Deserialize)]
    struct File {
        cases: Vec<Session>,
    }
    let file: File = read(&golden("live.json"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for session in &file.cases {
        runtime.block_on(play(session));
    }
}

async fn play(session: &Session) {
    let cluster = Cluster::live().await;
    let client = LocalClient::new(cluster.api.clone());
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("kubeconfig"), cluster.kubeconfig()).unwrap();
    for (index, step) in session.steps.iter().enumerate() {
        let place = format!("{}, step {}", session.name, index + 1);
        match step {
            Step::Run(run) => command(dir.path(), run, &place).await,
            Step::Wait { wait, path, value } => {
                until(&place, || async { holds(&client, wait, path, value).await }).await;
            }
            Step::WaitPods { wait } => {
                until(&place, || async { names(&client, wait).await == wait.names }).await
            }
            Step::Set { set, status } => give_status(&client, set, status, &place).await,
            Step::Create { create } => {
                let kind = kind(create["kind"].as_str().unwrap());
                client.write(&Write::Create { kind, object: create.clone() }).await.unwrap();
            }
            Step::Delete { delete } => {
                let (key, uid) = find(&client, delete).await.unwrap();
                let propagation = Propagation::Background;
                let kind = kind(&delete.kind);
                let write =
                    Write::Delete { kind, key, uid, revision: None, propagation, grace_seconds: None };
                client.write(&write).await.unwrap();
            }
        }
    }
    cluster.stop().await;
}

fn kind(name: &str) -> Kind {
    match name {
        "Queue" => Kind::Queue,
        "PodGroup" => Kind::PodGroup,
        "JobFlow" => Kind::JobFlow,
        "Pod" => Kind::Pod,
        _ => Kind::VcJob,
    }
}

/// Runs a command. What only looks is run until it shows what was recorded: the controllers write when they get to it.
async fn command(dir: &Path, run: &Run, place: &str) {
    for (name, text) in &run.files {
        std::fs::write(dir.join(name), text).unwrap();
    }
    let looks =
        ["list", "get"].iter().any(|verb| run.run.iter().any(|word| word == verb)) || run.run[0] == "vqueues";
    let started_at = Instant::now();
    loop {
        let mut command = tool(&run.run[0]);
        command.args(&run.run[1..]).current_dir(dir).env("KUBECONFIG", dir.join("kubeconfig"));
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let found = String::from_utf8(output.stdout).unwrap();
        let code = output.status.code().unwrap_or(-1);
        // Here a refusal is an error, even where it was not one in the record.
        let is_refused = run.exit_code != 0 || run.stdout.starts_with("Failed to");
        let is_same = if is_refused {
            code != 0
        } else {
            code == 0 && squeezed(&found) == here(&squeezed(&run.stdout))
        };
        if is_same {
            return;
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            looks && started_at.elapsed() < PATIENCE,
            "{place}: {:?}\n{found}{errors}code {code}, recorded {}:\n{}",
            run.run,
            run.exit_code,
            run.stdout
        );
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Rows that differ from the record on purpose: the row there, the row here, and the entries of DEVIATIONS.md.
const DIFFERENT_ROWS: &[(&str, &str, &str)] = &[
    ("live-job <date> Running Batch 2 2 0 2 0 0 0 1", "live-job <date> Running Batch 2 2 0 2 0 0 0 0", "B23"),
    (
        "live-job <date> Completed Batch 2 2 0 0 0 0 0 1",
        "live-job <date> Completed Batch 2 2 0 0 2 0 0 0",
        "B5, B23",
    ),
    ("fail-job <date> Failed Batch 1 1 0 0 0 0 0 0", "fail-job <date> Failed Batch 1 1 0 0 0 1 0 0", "B5"),
    (
        "live-flow-a <date> Completed Batch 1 1 0 0 0 0 0 0",
        "live-flow-a <date> Completed Batch 1 1 0 0 1 0 0 0",
        "B5",
    ),
    (
        "live-flow-b <date> Completed Batch 1 1 0 0 0 0 0 0",
        "live-flow-b <date> Completed Batch 1 1 0 0 1 0 0 0",
        "B5",
    ),
];

/// A recorded text as it is here.
fn here(recorded: &str) -> String {
    let row = |line: &str| {
        DIFFERENT_ROWS
            .iter()
            .find(|(there, _, _)| *there == line)
            .map_or(line, |(_, here, _)| here)
            .to_owned()
    };
    recorded.lines().map(|line| row(line) + "\n").collect()
}

/// A text without its dates and ages, and without the widths that they have.
fn squeezed(text: &str) -> String {
    let is_age = |word: &str| {
        word == "<age>"
            || word.strip_suffix('s').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let is_date = |word: &str| {
        word == "<date>" || word.len() == 10 && word.starts_with("20") && word.matches('-').count() == 2
    };
    let word = |word: &str| match word {
        word if is_age(word) => "<age>".to_owned(),
        word if is_date(word) => "<date>".to_owned(),
        word => word.to_owned(),
    };
    text.lines().map(|line| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ") + "\n").collect()
}

async fn until<F: Future<Output = bool>>(place: &str, mut is_so: impl FnMut() -> F) {
    let started_at = Instant::now();
    while !is_so().await {
        assert!(started_at.elapsed() < PATIENCE, "{place}: not within {PATIENCE:?}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn get(client: &LocalClient, of: Kind, key: &Key) -> Option<Value> {
    client.get(of, key).await.ok().map(|bytes| serde_json::from_slice(&bytes).unwrap())
}

async fn list(client: &LocalClient, of: Kind) -> Vec<Value> {
    let listed = client.list(of).await.unwrap();
    listed.items.iter().map(|bytes| serde_json::from_slice(bytes).unwrap()).collect()
}

async fn holds(client: &LocalClient, target: &Target, path: &str, value: &Value) -> bool {
    let found = get(client, kind(&target.kind), &Key::new(&target.namespace, &target.name)).await;
    match (path, value.as_str()) {
        ("", Some("absent")) => found.is_none(),
        ("", _) => found.is_some(),
        (path, _) => {
            let pointer = format!("/{}", path.replace('.', "/"));
            found.is_some_and(|object| object.pointer(&pointer) == Some(value))
        }
    }
}

/// The names of the pods of a job.
async fn names(client: &LocalClient, pods: &Pods) -> Vec<String> {
    let is_of_job = |pod: &&Value| {
        pod["metadata"]["namespace"] == pods.namespace
            && pod["metadata"]["labels"]["volcano.sh/job-name"] == pods.job
    };
    let all = list(client, Kind::Pod).await;
    let names = all.iter().filter(is_of_job).map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// The object that a step names, or the PodGroup of a job.
async fn find(client: &LocalClient, target: &Target) -> Option<(Key, Uid)> {
    let is_meant = |object: &Value| match target.of_job.as_str() {
        "" => object["metadata"]["name"] == target.name,
        job => object["metadata"]["ownerReferences"][0]["name"] == job,
    };
    let all = list(client, kind(&target.kind)).await;
    let object = all.into_iter().find(is_meant)?;
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    Some((Key::new(text("namespace"), text("name")), text("uid").into()))
}

async fn give_status(client: &LocalClient, target: &Target, status: &Value, place: &str) {
    let names = if target.names.is_empty() { vec![target.name.clone()] } else { target.names.clone() };
    for name in names {
        let one =
            Target { name, kind: target.kind.clone(), of_job: target.of_job.clone(), ..Target::default() };
        until(place, || async {
            let Some((key, uid)) = find(client, &one).await else { return false };
            let kind = kind(&one.kind);
            let patch = serde_json::json!({ "status": status });
            let of_status = kind != Kind::PodGroup;
            client.write(&Write::Patch { kind, key, uid, revision: None, of_status, patch }).await.is_ok()
        })
        .await;
    }
}
