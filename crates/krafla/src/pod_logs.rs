//! What the pods of jobs write: followed while they run, or the last lines of those that failed.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::Arc;

use anyhow::Result;
use futures_util::StreamExt;
use krafla_api::labels::TASK_SPEC;
use krafla_api::{Key, Kind, Uid};
use krafla_node::{LogOptions, Node};
use krafla_plan::Object;
use krafla_plan::object::{PodPhase, Terminated};
use krafla_runtime::Client;
use tokio::task::JoinHandle;
use tokio::task::JoinSet;

use crate::cluster::Cluster;
use crate::screen::{Screen, wants_colour};

/// How many of a failed pod's last lines are shown.
const LAST_LINES: u64 = 10;
/// How many failed pods are shown.
const FAILED_PODS_SHOWN_MAX: usize = 5;
/// The colours of prefixes on a terminal: cyan, green, yellow, blue, magenta, red.
const COLOURS: [u8; 6] = [36, 32, 33, 34, 35, 31];

/// Follows the logs of all pods of some jobs.
pub(crate) struct Follower(Option<JoinHandle<JoinSet<()>>>, tokio::sync::watch::Sender<bool>);

impl Follower {
    /// Begins to print what the pods of these jobs write.
    pub(crate) fn start(
        cluster: &Cluster,
        jobs: Option<Vec<Key>>,
        revision: u64,
        screen: Arc<Screen>,
    ) -> Follower {
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let client = cluster.client.clone();
        let printer = Printer { node: cluster.node.clone(), screen };
        let task = jobs.map(|jobs| tokio::spawn(follow(client, printer, jobs, revision, stopped)));
        Follower(task, stop)
    }

    /// Waits until everything that was written has been printed.
    pub(crate) async fn finish(self) {
        self.1.send_replace(true);
        let Some(task) = self.0 else { return };
        if let Ok(mut printing) = task.await {
            while printing.join_next().await.is_some() {}
        }
    }
}

async fn follow(
    client: Arc<dyn Client>,
    printer: Printer,
    jobs: Vec<Key>,
    revision: u64,
    mut stopped: tokio::sync::watch::Receiver<bool>,
) -> JoinSet<()> {
    let mut printing = JoinSet::new();
    let mut known: BTreeSet<Uid> = BTreeSet::new();
    let mut colours = Colours::default();
    let mut events = client.watch(Kind::Pod, revision);
    loop {
        let event = tokio::select! {
            // What has already happened comes before the end.
            biased;
            event = events.next() => event,
            _ = stopped.wait_for(|stopped| *stopped) => None,
        };
        let Some(Ok(event)) = event else { return printing };
        let pod = Object::decode(Kind::Pod, &event.object);
        let has_started = pod.as_pod().is_some_and(|body| body.status.phase != PodPhase::Pending);
        if has_started && jobs.iter().any(|job| is_of_job(&pod, job)) && known.insert(pod.meta.uid.clone()) {
            let containers: Vec<String> = pod
                .as_pod()
                .into_iter()
                .flat_map(|body| &body.spec.containers)
                .map(|c| c.name.clone())
                .collect();
            let is_alone = containers.len() == 1;
            for container in containers {
                let prefix = if is_alone {
                    pod.meta.key.name.to_string()
                } else {
                    format!("{}/{container}", pod.meta.key.name)
                };
                let prefix = colours.paint(&pod, &prefix);
                printing.spawn(printer.clone().print(pod.meta.key.clone(), container, prefix));
            }
        }
    }
}

#[derive(Clone)]
struct Printer {
    node: Arc<Node>,
    screen: Arc<Screen>,
}

impl Printer {
    /// Prints a container's lines until it ends.
    async fn print(self, pod: Key, container: String, prefix: String) {
        let options = LogOptions { follow: true, ..LogOptions::default() };
        let log = self.node.logs(&pod.namespace, &pod.name, Some(&container), options).await;
        let Ok(mut log) = log else { return };
        let mut rest = Vec::new();
        while let Some(Ok(chunk)) = log.next().await {
            rest.extend_from_slice(&chunk);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                self.screen.log(&format!("{prefix} {}", String::from_utf8_lossy(&line).trim_end()));
            }
        }
        if !rest.is_empty() {
            self.screen.log(&format!("{prefix} {}", String::from_utf8_lossy(&rest)));
        }
    }
}

/// One colour for all pods of a task, where a person looks at a terminal and did not ask for none.
#[derive(Default)]
struct Colours(Vec<String>);

impl Colours {
    fn paint(&mut self, pod: &Object, prefix: &str) -> String {
        let task = pod.meta.labels.get(TASK_SPEC).unwrap_or_default().to_owned();
        let index = self.0.iter().position(|known| *known == task).unwrap_or_else(|| {
            self.0.push(task);
            self.0.len().saturating_sub(1)
        });
        let wants_colour = std::io::stdout().is_terminal() && wants_colour();
        match COLOURS.get(index % COLOURS.len()) {
            Some(colour) if wants_colour => format!("\u{1b}[{colour}m[{prefix}]\u{1b}[0m"),
            _ => format!("[{prefix}]"),
        }
    }
}

fn is_of_job(pod: &Object, job: &Key) -> bool {
    pod.meta.key.namespace == job.namespace && pod.meta.owners.iter().any(|owner| *owner.name == *job.name)
}

/// Shows how the pods of a failed job ended.
pub(crate) async fn explain(cluster: &Cluster, job: &Key) -> Result<()> {
    let pods = cluster.client.list(Kind::Pod).await?;
    let pods = pods.items.iter().map(|pod| Object::decode(Kind::Pod, pod));
    let failed = pods.filter(|pod| {
        is_of_job(pod, job) && pod.as_pod().is_some_and(|body| body.status.phase == PodPhase::Failed)
    });
    for pod in failed.take(FAILED_PODS_SHOWN_MAX) {
        let Some(body) = pod.as_pod() else { continue };
        for container in &body.status.container_statuses {
            let Some(end) = container.state.terminated.as_ref().filter(|end| end.exit_code != 0) else {
                continue;
            };
            let (name, code) = (&pod.meta.key.name, end.exit_code);
            eprintln!("pod {name}, container {}: exit code {code}{}", container.name, detail(end));
            show_last_lines(&cluster.node, &pod.meta.key, &container.name).await;
        }
    }
    Ok(())
}

async fn show_last_lines(node: &Node, pod: &Key, container: &str) {
    let options = LogOptions { tail_lines: Some(LAST_LINES), ..LogOptions::default() };
    // A container that never started has no log, and its exit reason has been told.
    let Ok(mut log) = node.logs(&pod.namespace, &pod.name, Some(container), options).await else { return };
    let mut text = Vec::new();
    while let Some(Ok(chunk)) = log.next().await {
        text.extend_from_slice(&chunk);
    }
    for line in String::from_utf8_lossy(&text).lines() {
        eprintln!("  {line}");
    }
}

/// Why a container ended, where its exit code does not say it all.
fn detail(end: &Terminated) -> String {
    match (end.reason.as_str(), end.message.as_str()) {
        ("" | "Error", "") => String::new(),
        (reason, "") => format!(" ({reason})"),
        (_, message) => format!(": {message}"),
    }
}
