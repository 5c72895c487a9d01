//! What the pods of jobs write: followed while they run, or the last lines of those that failed.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use krafla_api::labels::TASK_SPEC;
use krafla_api::{Key, Kind, Uid};
use krafla_client::Attempt;
use krafla_node::pod::Pod;
use krafla_node::status::{ContainerState, ContainerStatus, Phase, Terminated};
use krafla_plan::Object;
use krafla_runtime::Client;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinHandle, JoinSet};

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
        known: BTreeMap::new(),
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

/// The containers whose output is printed.
struct Following {
    printer: Printer,
    jobs: Vec<Key>,
    printing: JoinSet<()>,
    /// By pod and container: which attempt comes next, and who prints it.
    known: BTreeMap<(Uid, String), (u32, UnboundedSender<Attempt>)>,
    colours: Colours,
}

impl Following {
    /// Has whatever a pod's containers have begun to write printed, one attempt after the other.
    fn observe(&mut self, json: &[u8]) {
        let object = Object::decode(Kind::Pod, json);
        if !self.jobs.iter().any(|job| is_of_job(&object, job)) {
            return;
        }
        let Ok(pod) = serde_json::from_slice::<Pod>(json) else { return };
        let is_only_one = pod.all_containers().count() == 1;
        let statuses = pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses);
        for status in statuses.filter(|status| has_started(status)) {
            let key = (object.meta.uid.clone(), status.name.clone());
            let (next, queue) = self.known.entry(key).or_insert_with(|| {
                let name = &pod.metadata.name;
                let prefix = if is_only_one { name.clone() } else { format!("{name}/{}", status.name) };
                let prefix = self.colours.paint(&object, &prefix);
                let (queue, attempts) = unbounded_channel();
                self.printing.spawn(self.printer.clone().print(
                    pod.key(),
                    status.name.clone(),
                    prefix,
                    attempts,
                ));
                (0, queue)
            });
            for attempt in attempts(*next, status.restart_count) {
                // A printer only ends when nobody can tell it of further attempts.
                let _ = queue.send(attempt);
            }
            *next = (*next).max(status.restart_count.saturating_add(1));
        }
    }
}

/// Whether there has been an attempt at a container.
fn has_started(status: &ContainerStatus) -> bool {
    let ContainerState { running, terminated, .. } = &status.state;
    running.is_some() || terminated.is_some() || status.last_state.terminated.is_some()
}

/// The attempts that have not been told of yet. Of those that came and went unseen only the last one has a log.
fn attempts(next: u32, current: u32) -> impl Iterator<Item = Attempt> {
    let first = next.max(current.saturating_sub(1));
    (first..=current).map(move |number| Attempt { number, is_previous: number < current })
}

#[derive(Clone)]
struct Printer {
    logs: Logs,
    screen: Arc<Screen>,
}

impl Printer {
    /// Prints a container's lines, attempt after attempt.
    async fn print(
        self,
        pod: Key,
        container: String,
        prefix: String,
        mut attempts: UnboundedReceiver<Attempt>,
    ) {
        while let Some(attempt) = attempts.recv().await {
            if let Some(log) = self.logs.follow(&pod, &container, attempt).await {
                self.print_attempt(log, &prefix).await;
            }
        }
    }

    async fn print_attempt(&self, mut log: BoxStream<'static, Bytes>, prefix: &str) {
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
    // The Jobs of a CronJob are named after it and the minute of their run, those of Volcano's perhaps the second too.
    let is_run = |name: &str| {
        let minute = name.strip_prefix(&*job.name).and_then(|rest| rest.strip_prefix('-'));
        let is_time = |time: &str| time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        minute
            .is_some_and(|minute| minute.starts_with(|first: char| first.is_ascii_digit()) && is_time(minute))
    };
    let mut owners = pod.meta.owners.iter();
    pod.meta.key.namespace == job.namespace
        && owners.any(|owner| *owner.name == *job.name || (owner.kind == "Job" && is_run(&owner.name)))
}

/// Shows how the pods of a failed job ended.
pub(crate) async fn explain(home: &Home, job: &Key) -> Result<()> {
    let pods = home.client.list(Kind::Pod).await?;
    let of_job = pods.items.iter().filter(|json| is_of_job(&Object::decode(Kind::Pod, json), job));
    let pods = of_job.filter_map(|json| serde_json::from_slice::<Pod>(json).ok());
    for pod in pods.filter(|pod| pod.status.phase == Phase::Failed).take(FAILED_PODS_SHOWN_MAX) {
        if let Some(line) = why_it_failed(&pod) {
            eprintln!("{line}");
        }
        for (container, end) in ends(&pod) {
            let (name, code) = (&pod.metadata.name, end.exit_code);
            eprintln!("pod {name}, container {container}: exit code {code}{}", detail(end));
            show_last_lines(&home.logs, &pod.key(), container).await;
        }
    }
    Ok(())
}

/// What is said of a failed pod as a whole: whether it took too long, or was evicted.
fn why_it_failed(pod: &Pod) -> Option<String> {
    let words = [pod.status.reason.as_str(), pod.status.message.as_str()];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    (!words.is_empty()).then(|| format!("pod {}: {}", pod.metadata.name, words.join(": ")))
}

/// The containers of a failed pod that ended badly, or its main ones if all ended well and the pod failed otherwise.
fn ends(pod: &Pod) -> Vec<(&str, &Terminated)> {
    let statuses = pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses);
    let all = statuses.filter_map(|status| Some((status.name.as_str(), status.state.terminated.as_ref()?)));
    let bad: Vec<_> = all.filter(|(_, end)| end.exit_code != 0).collect();
    if !bad.is_empty() {
        return bad;
    }
    let main = pod.status.container_statuses.iter();
    main.filter_map(|status| Some((status.name.as_str(), status.state.terminated.as_ref()?))).collect()
}

async fn show_last_lines(logs: &Logs, pod: &Key, container: &str) {
    // A container that never started has no log, and its exit reason has been told.
    let Some(log) = logs.last_lines(pod, container, LAST_LINES).await else { return };
    let text = log.collect::<Vec<_>>().await.concat();
    for line in String::from_utf8_lossy(&text).lines() {
        eprintln!("  {line}");
    }
}

/// Why a container ended, where its exit code does not say it all.
fn detail(end: &Terminated) -> String {
    match (end.reason.as_str(), end.message.as_str()) {
        ("" | "Error" | "Completed", "") => String::new(),
        (reason, "") => format!(" ({reason})"),
        (_, message) => format!(": {message}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "status": status})).unwrap()
    }

    fn ended(name: &str, exit_code: i32) -> Value {
        json!({"name": name, "state": {"terminated": {"exitCode": exit_code}}})
    }

    #[test]
    fn every_attempt_that_has_a_log_is_printed_once_and_in_order() {
        let told = |next, current| -> Vec<(u32, bool)> {
            attempts(next, current).map(|attempt| (attempt.number, attempt.is_previous)).collect()
        };
        assert_eq!(told(0, 0), [(0, false)]);
        assert_eq!(told(0, 1), [(0, true), (1, false)], "the first one was over before it was seen");
        assert_eq!(told(1, 1), [(1, false)]);
        assert_eq!(told(2, 1), []);
        assert_eq!(told(1, 7), [(6, true), (7, false)], "a node keeps the last two");
    }

    #[test]
    fn a_container_is_printed_from_its_first_start_on() {
        let status = |status: Value| serde_json::from_value::<ContainerStatus>(status).unwrap();
        let ended = json!({"terminated": {"exitCode": 1}});
        for (json, expected) in [
            (json!({"state": {"waiting": {"reason": "PodInitializing"}}}), false),
            (json!({"state": {"running": {}}}), true),
            (json!({"state": ended}), true),
            (json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended}), true),
        ] {
            assert_eq!(has_started(&status(json.clone())), expected, "{json}");
        }
    }

    #[test]
    fn a_failed_pod_shows_what_failed_in_it() {
        let names = |pod: &Pod| ends(pod).iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>();
        let init = [ended("fetch", 0), ended("unpack", 3)];
        let waiting = json!({"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}});
        let of_init = pod(json!({"initContainerStatuses": init, "containerStatuses": [waiting]}));
        assert_eq!((names(&of_init), why_it_failed(&of_init)), (vec!["unpack".to_owned()], None));

        let late = json!({"reason": "DeadlineExceeded", "message": "it took too long",
            "initContainerStatuses": [ended("fetch", 0)], "containerStatuses": [ended("main", 0)]});
        let late = pod(late);
        assert_eq!(names(&late), ["main"]);
        assert_eq!(why_it_failed(&late).as_deref(), Some("pod p: DeadlineExceeded: it took too long"));
    }
}
