//! What the pods of jobs write: followed while they run, or the last lines of those that failed.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::Arc;

use anyhow::Result;
use futures_util::StreamExt;
use krafla_api::labels::TASK_SPEC;
use krafla_api::{Key, Kind, Uid};
use krafla_plan::Object;
use krafla_plan::object::{PodPhase, Terminated};
use krafla_runtime::Client;
use tokio::task::JoinHandle;
use tokio::task::JoinSet;

use crate::changes::changes;
use crate::home::{Home, Logs};
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
    pub(crate) fn start(home: &Home, jobs: Option<Vec<Key>>, revision: u64, screen: Arc<Screen>) -> Follower {
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let client = home.client.clone();
        let printer = Printer { logs: home.logs.clone(), screen };
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
    let mut following = Following {
        printer,
        jobs,
        printing: JoinSet::new(),
        known: BTreeSet::new(),
        colours: Colours::default(),
    };
    let mut events = changes(client.clone(), Kind::Pod, revision);
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(event)) => following.observe(&event.object),
                // Whoever follows the jobs says that there is no contact.
                Some(Err(_)) => {}
                None => break,
            },
            _ = stopped.wait_for(|stopped| *stopped) => break,
        }
    }
    // That a job has ended may be known before the last of what its pods did.
    if let Ok(listed) = client.list(Kind::Pod).await {
        listed.items.iter().for_each(|pod| following.observe(pod));
    }
    following.printing
}

/// The pods whose output is printed.
struct Following {
    printer: Printer,
    jobs: Vec<Key>,
    printing: JoinSet<()>,
    known: BTreeSet<Uid>,
    colours: Colours,
}

impl Following {
    /// Begins to print what a pod writes, once it has started.
    fn observe(&mut self, json: &[u8]) {
        let pod = Object::decode(Kind::Pod, json);
        let Some(body) = pod.as_pod().filter(|body| body.status.phase != PodPhase::Pending) else { return };
        if !self.jobs.iter().any(|job| is_of_job(&pod, job)) || !self.known.insert(pod.meta.uid.clone()) {
            return;
        }
        let containers = &body.spec.containers;
        for container in containers {
            let prefix = if containers.len() == 1 {
                pod.meta.key.name.to_string()
            } else {
                format!("{}/{}", pod.meta.key.name, container.name)
            };
            let prefix = self.colours.paint(&pod, &prefix);
            self.printing.spawn(self.printer.clone().print(
                pod.meta.key.clone(),
                container.name.clone(),
                prefix,
            ));
        }
    }
}

#[derive(Clone)]
struct Printer {
    logs: Logs,
    screen: Arc<Screen>,
}

impl Printer {
    /// Prints a container's lines until it ends.
    async fn print(self, pod: Key, container: String, prefix: String) {
        let Some(mut log) = self.logs.read(&pod, &container, None).await else { return };
        let mut rest = Vec::new();
        while let Some(chunk) = log.next().await {
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
    // The Jobs of a CronJob are named after it and the minute of their run.
    let is_run = |name: &str| {
        let minute = name.strip_prefix(&*job.name).and_then(|rest| rest.strip_prefix('-'));
        minute.is_some_and(|minute| !minute.is_empty() && minute.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let mut owners = pod.meta.owners.iter();
    pod.meta.key.namespace == job.namespace
        && owners.any(|owner| *owner.name == *job.name || (owner.kind == "Job" && is_run(&owner.name)))
}

/// Shows how the pods of a failed job ended.
pub(crate) async fn explain(home: &Home, job: &Key) -> Result<()> {
    let pods = home.client.list(Kind::Pod).await?;
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
            show_last_lines(&home.logs, &pod.meta.key, &container.name).await;
        }
    }
    Ok(())
}

async fn show_last_lines(logs: &Logs, pod: &Key, container: &str) {
    // A container that never started has no log, and its exit reason has been told.
    let Some(log) = logs.read(pod, container, Some(LAST_LINES)).await else { return };
    let text = log.collect::<Vec<_>>().await.concat();
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
