//! What the pods of jobs write: followed while they run, or the last lines of those that failed.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use krafla_api::labels::TASK_SPEC;
use krafla_api::{Key, Kind, Uid};
use krafla_cluster::{Client, ClientError, EventType, LogOptions};
use krafla_node::pod::Pod;
use krafla_node::status::{ContainerState, ContainerStatus, Phase, Terminated};
use krafla_plan::Object;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, watch};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

use crate::changes::changes;
use crate::home::{Attempt, Home, Logs};
use crate::printable;
use crate::progress::{self, JobKey};
use crate::screen::{Screen, line_of_pod, wants_colour};

/// How many of a failed pod's last lines are shown.
const LAST_LINES: u64 = 10;
/// How many failed pods are shown.
const FAILED_PODS_SHOWN_MAX: usize = 5;
/// How much of a line is kept until it ends: one that does not end must not fill the memory.
const PIECE_BYTES_MAX: usize = 64 << 10;
/// So many containers may have lines on their way to the screen.
const SHOWN_AT_ONCE: usize = 16;
/// How often a cluster is asked whether it is there while the last lines are printed, and how often it may say nothing.
const ASKED_EVERY: Duration = Duration::from_secs(1);
const ANSWERS_MISSED_MAX: usize = 30;
/// What stands before a piece of a line that is not its first.
const GOES_ON: &str = "…";
/// The colours of prefixes on a terminal: cyan, green, yellow, blue, magenta, red.
const COLOURS: [u8; 6] = [36, 32, 33, 34, 35, 31];

/// Follows the logs of all pods of some jobs.
pub(crate) struct Follower {
    following: JoinHandle<JoinSet<()>>,
    stop: watch::Sender<bool>,
    client: Arc<dyn Client>,
}

impl Follower {
    /// Begins to print what the pods of these jobs write.
    pub(crate) fn start(home: &Home, jobs: Vec<JobKey>, revision: u64, screen: Arc<Screen>) -> Follower {
        let (stop, stopped) = watch::channel(false);
        let client = home.client.clone();
        let printer = Printer::new(home.logs.clone(), screen, stopped.clone());
        let is_wanted = move |pod: &Object| jobs.iter().any(|job| is_of_job(pod, job));
        let following = Following::new(printer, Selection::new(is_wanted));
        let following = tokio::spawn(follow(client.clone(), following, revision, stopped));
        Follower { following, stop, client }
    }

    /// Waits until everything has been printed that pods wrote that have ended or are about to. Others go on, and nobody waits
    /// for them. Returns false if the cluster went away, and with it what is left.
    pub(crate) async fn finish(self) -> bool {
        let Follower { following, stop, client } = self;
        stop.send_replace(true);
        let all_printed = async {
            if let Ok(mut printing) = following.await {
                while printing.join_next().await.is_some() {}
            }
        };
        tokio::select! {
            () = all_printed => true,
            () = lost(&*client) => false,
        }
    }
}

/// Returns when a cluster has not answered for so long that no task waits for it any more.
async fn lost(client: &dyn Client) {
    let mut n_missed = 0;
    while n_missed < ANSWERS_MISSED_MAX {
        tokio::time::sleep(ASKED_EVERY).await;
        let answer = client.get(Kind::Namespace, &Key::new("", "default")).await;
        n_missed = if matches!(answer, Err(ClientError::Unknown(_))) { n_missed + 1 } else { 0 };
    }
}

async fn follow(
    client: Arc<dyn Client>,
    mut following: Following,
    revision: u64,
    mut stopped: watch::Receiver<bool>,
) -> JoinSet<()> {
    let mut events = changes(client.clone(), Kind::Pod, revision);
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(event)) if event.event_type == EventType::Deleted => following.forget(&event.object),
                Some(Ok(event)) => following.observe(&event.object),
                // Whoever follows the jobs says that there is no contact.
                Some(Err(_)) => {}
                None => break,
            },
            _ = stopped.wait_for(|stopped| *stopped) => break,
        }
    }
    // That a job has ended may be known before the last of what its pods did.
    let listed = loop {
        match client.list(Kind::Pod).await {
            Ok(listed) => break listed,
            Err(_) => tokio::time::sleep(ASKED_EVERY).await,
        }
    };
    for pod in &listed.items {
        following.observe(pod);
        following.leave_if_it_goes_on(pod);
    }
    following.into_printing()
}

/// Which logs are printed, and how much of them.
#[derive(Clone)]
pub(crate) struct Selection {
    is_wanted: Arc<dyn Fn(&Object) -> bool + Send + Sync>,
    /// This container of each pod, and no other.
    pub(crate) container: Option<String>,
    /// How much of a log is read.
    pub(crate) options: LogOptions,
    /// Whether each line begins with the name of its pod.
    pub(crate) has_prefix: bool,
}

impl Selection {
    /// All of the logs of these pods.
    pub(crate) fn new(is_wanted: impl Fn(&Object) -> bool + Send + Sync + 'static) -> Selection {
        let is_wanted = Arc::new(is_wanted);
        Selection { is_wanted, container: None, options: LogOptions::default(), has_prefix: true }
    }

    /// Whether the logs of a pod are printed.
    pub(crate) fn has_pod(&self, pod: &Object) -> bool {
        (self.is_wanted)(pod)
    }

    /// Whether the log of a container is printed.
    pub(crate) fn has_container(&self, name: &str) -> bool {
        self.container.as_deref().is_none_or(|wanted| wanted == name)
    }
}

/// The containers whose output is printed.
pub(crate) struct Following {
    printer: Printer,
    selection: Selection,
    printing: JoinSet<()>,
    /// By pod and container: which attempt comes next, and who prints it.
    known: BTreeMap<(Uid, String), Known>,
    colours: Colours,
}

struct Known {
    next: u32,
    queue: UnboundedSender<Attempt>,
    printer: AbortHandle,
}

impl Following {
    pub(crate) fn new(printer: Printer, selection: Selection) -> Following {
        let (printing, known, colours) = (JoinSet::new(), BTreeMap::new(), Colours::default());
        Following { printer, selection, printing, known, colours }
    }

    /// Has whatever a pod's containers have begun to write printed, one attempt after the other.
    pub(crate) fn observe(&mut self, json: &[u8]) {
        let object = Object::decode(Kind::Pod, json);
        if !self.selection.has_pod(&object) {
            return;
        }
        let Ok(pod) = serde_json::from_slice::<Pod>(json) else { return };
        let statuses = pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses);
        let is_shown =
            |status: &&ContainerStatus| has_started(status) && self.selection.has_container(&status.name);
        for status in statuses.filter(is_shown) {
            let key = (object.meta.uid.clone(), status.name.clone());
            let Known { next, queue, .. } = self.known.entry(key).or_insert_with(|| {
                let is_terminal = self.printer.screen.is_terminal();
                let prefix = if self.selection.has_prefix {
                    self.colours.paint(&object, &title(&pod, &status.name), is_terminal)
                } else {
                    String::new()
                };
                let (queue, attempts) = unbounded_channel();
                let options = self.selection.options.clone();
                let print =
                    self.printer.clone().print(pod.key(), status.name.clone(), prefix, options, attempts);
                Known { next: 0, queue, printer: self.printing.spawn(print) }
            });
            for attempt in attempts(*next, status.restart_count) {
                // A printer only ends when nobody can tell it of further attempts.
                let _ = queue.send(attempt);
            }
            *next = (*next).max(status.restart_count.saturating_add(1));
        }
    }
}

impl Following {
    /// What is still being printed. Nothing more is added.
    pub(crate) fn into_printing(self) -> JoinSet<()> {
        self.printing
    }

    /// Lets go of a pod that is gone, when all is printed that is left of it. There may be very many in the life of a run.
    pub(crate) fn forget(&mut self, json: &[u8]) {
        self.observe(json);
        let uid = Object::decode(Kind::Pod, json).meta.uid;
        self.known.retain(|(of, _), _| *of != uid);
        while self.printing.try_join_next().is_some() {}
    }

    /// Stops to print what a pod writes that nobody has asked to end.
    pub(crate) fn leave_if_it_goes_on(&mut self, json: &[u8]) {
        let object = Object::decode(Kind::Pod, json);
        let has_ended = object.as_pod().is_none_or(|pod| pod.status.phase.is_finished());
        if has_ended || object.meta.is_deleting() {
            return;
        }
        let of_pod = self.known.iter().filter(|((uid, _), _)| *uid == object.meta.uid);
        of_pod.for_each(|(_, known)| known.printer.abort());
    }
}

/// Whether there has been an attempt at a container.
pub(crate) fn has_started(status: &ContainerStatus) -> bool {
    let ContainerState { running, terminated, .. } = &status.state;
    running.is_some() || terminated.is_some() || status.last_state.terminated.is_some()
}

/// The attempts that have not been told of yet. Of those that came and went unseen only the last one has a log.
fn attempts(next: u32, current: u32) -> impl Iterator<Item = Attempt> {
    let first = next.max(current.saturating_sub(1));
    (first..=current).map(move |number| Attempt { number, is_previous: number < current })
}

/// How a container is called before its lines: by its pod, if that has no other.
pub(crate) fn title(pod: &Pod, container: &str) -> String {
    let name = &pod.metadata.name;
    if pod.all_containers().count() == 1 { name.clone() } else { format!("{name}/{container}") }
}

/// Prints logs.
#[derive(Clone)]
pub(crate) struct Printer {
    logs: Logs,
    screen: Arc<Screen>,
    /// Who may wait for a reader that stands still: the node needs threads too.
    at_once: Arc<Semaphore>,
    is_ending: watch::Receiver<bool>,
}

impl Printer {
    /// A printer of the logs that a cluster has. When the run `is_ending`, nodes that do not answer are waited for a little.
    pub(crate) fn new(logs: Logs, screen: Arc<Screen>, is_ending: watch::Receiver<bool>) -> Printer {
        Printer { logs, screen, at_once: Arc::new(Semaphore::new(SHOWN_AT_ONCE)), is_ending }
    }

    /// Prints a container's lines, attempt after attempt.
    async fn print(
        self,
        pod: Key,
        container: String,
        prefix: String,
        mut options: LogOptions,
        mut attempts: UnboundedReceiver<Attempt>,
    ) {
        while let Some(attempt) = attempts.recv().await {
            if let Some(log) = self.logs.follow(&pod, &container, attempt, &options, &self.is_ending).await {
                self.print_attempt(log, &prefix).await;
            }
            // The last lines of one attempt are followed by all lines of the next.
            options.tail_lines = None;
        }
    }

    /// Prints one log to its end.
    pub(crate) async fn print_attempt(&self, mut log: BoxStream<'static, Bytes>, prefix: &str) {
        let mut lines = Lines::new(prefix, self.screen.is_terminal());
        let mut shown = String::new();
        // What comes next is read while this is shown: a log goes away that is read too slowly.
        while let (Some(chunk), ()) = tokio::join!(log.next(), self.show(shown)) {
            shown = lines.add(&chunk);
        }
        self.show(lines.finish()).await;
    }

    /// Shows lines, all at once: there may be very many. Whoever reads them slowly holds up this one reader, and not
    /// those threads that the jobs depend on.
    async fn show(&self, lines: String) {
        let Some(text) = lines.strip_suffix('\n').map(str::to_owned) else { return };
        let (screen, at_once) = (self.screen.clone(), self.at_once.clone().acquire_owned().await);
        // It ends badly only if this process does.
        let _ = tokio::task::spawn_blocking(move || {
            screen.line_in_turn(&text);
            drop(at_once);
        })
        .await;
    }
}

/// A container's output, line by line as it is shown.
struct Lines<'a> {
    prefix: &'a str,
    on_terminal: bool,
    /// The beginning of a line that has not ended yet.
    rest: Vec<u8>,
    /// Whether there was more of this line before.
    goes_on: bool,
}

impl Lines<'_> {
    fn new(prefix: &str, on_terminal: bool) -> Lines<'_> {
        Lines { prefix, on_terminal, rest: Vec::new(), goes_on: false }
    }

    /// The lines that are whole now, and the pieces of one that is too long to wait for its end.
    fn add(&mut self, chunk: &[u8]) -> String {
        let mut shown = String::with_capacity(chunk.len().saturating_mul(2));
        for line in lines(chunk) {
            let (text, has_ended) = line.strip_suffix(b"\n").map_or((line, false), |text| (text, true));
            if has_ended && self.rest.is_empty() && text.len() <= PIECE_BYTES_MAX {
                self.show(text, &mut shown);
                continue;
            }
            self.rest.extend_from_slice(text);
            self.show_pieces(&mut shown);
            if has_ended {
                shown.push_str(&self.finish());
            }
        }
        shown
    }

    /// What was not ended by a line end.
    fn finish(&mut self) -> String {
        let mut shown = String::new();
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            self.show(&rest, &mut shown);
        }
        self.goes_on = false;
        shown
    }

    fn show_pieces(&mut self, shown: &mut String) {
        while self.rest.len() > PIECE_BYTES_MAX {
            let rest = self.rest.split_off(last_boundary(&self.rest, PIECE_BYTES_MAX));
            let piece = std::mem::replace(&mut self.rest, rest);
            self.show(&piece, shown);
            self.goes_on = true;
        }
    }

    fn show(&self, text: &[u8], shown: &mut String) {
        if !self.prefix.is_empty() {
            shown.push_str(self.prefix);
            shown.push(' ');
        }
        if self.goes_on {
            shown.push_str(GOES_ON);
        }
        let text = String::from_utf8_lossy(text);
        let text = text.trim_end();
        shown.push_str(if self.on_terminal { printable::last_written(text) } else { text });
        shown.push('\n');
    }
}

/// The lines of a text, each with its end. A slice's own ways to divide it take several times as long.
fn lines(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let all = text;
        // Memory can be read without fail.
        let n_bytes = text.skip_until(b'\n').unwrap_or_default();
        all.get(..n_bytes).filter(|line| !line.is_empty())
    })
}

/// The last place in a text, not after `at`, at which no character is cut.
fn last_boundary(text: &[u8], at: usize) -> usize {
    let is_inside = |place: &usize| text.get(*place).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
    (at.saturating_sub(3)..=at).rev().find(|place| !is_inside(place)).unwrap_or(at)
}

/// One colour for all pods of a task, where a person looks at a terminal and did not ask for none.
#[derive(Default)]
pub(crate) struct Colours(Vec<String>);

impl Colours {
    pub(crate) fn paint(&mut self, pod: &Object, prefix: &str, on_terminal: bool) -> String {
        let task = pod.meta.labels.get(TASK_SPEC).unwrap_or_default().to_owned();
        let index = self.0.iter().position(|known| *known == task).unwrap_or_else(|| {
            self.0.push(task);
            self.0.len().saturating_sub(1)
        });
        let wants_colour = on_terminal && wants_colour();
        match COLOURS.get(index % COLOURS.len()) {
            Some(colour) if wants_colour => format!("\u{1b}[{colour}m[{prefix}]\u{1b}[0m"),
            _ => format!("[{prefix}]"),
        }
    }
}

/// Whether a job made a pod, or the Job of a CronJob. A pod that nobody made is a job of its own.
pub(crate) fn is_of_job(pod: &Object, (kind, job): &JobKey) -> bool {
    if *kind == Kind::Pod || pod.meta.key.namespace != job.namespace {
        return pod.meta.owners.is_empty() && pod.meta.key == *job;
    }
    // The Jobs of a CronJob are named after it and the minute of their run, those of Volcano's perhaps the second too.
    let is_run = |name: &str| {
        let minute = name.strip_prefix(&*job.name).and_then(|rest| rest.strip_prefix('-'));
        let is_time = |time: &str| time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        minute
            .is_some_and(|minute| minute.starts_with(|first: char| first.is_ascii_digit()) && is_time(minute))
    };
    let made = progress::made_by(*kind);
    let is_named = |name: &str| if made.is_some() { is_run(name) } else { *name == *job.name };
    let maker = made.unwrap_or(*kind);
    let mut owners = pod.meta.owners.iter();
    owners.any(|owner| {
        Kind::of_manifest(&owner.api_version, &owner.kind) == Some(maker) && is_named(&owner.name)
    })
}

/// Shows how the pods of a failed job ended, with their last lines if those have not been printed yet.
pub(crate) async fn explain(
    home: &Home,
    screen: &Screen,
    job: &JobKey,
    with_lines: bool,
) -> Result<(), ClientError> {
    let pods = home.client.list(Kind::Pod).await?;
    let of_job = pods.items.iter().filter(|json| is_of_job(&Object::decode(Kind::Pod, json), job));
    let pods = of_job.filter_map(|json| serde_json::from_slice::<Pod>(json).ok());
    for pod in pods.filter(|pod| pod.status.phase == Phase::Failed).take(FAILED_PODS_SHOWN_MAX) {
        if let Some(line) = why_it_failed(&pod) {
            screen.tell(&format!("{line}\n"));
        }
        for (container, end) in ends(&pod) {
            let (name, code) = (&pod.metadata.name, end.exit_code);
            screen.tell(&format!("pod {name}, container {container}: exit code {code}{}\n", detail(end)));
            if with_lines {
                show_last_lines(&home.logs, screen, &pod.key(), container).await;
            }
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

async fn show_last_lines(logs: &Logs, screen: &Screen, pod: &Key, container: &str) {
    // A container that never started has no log, and its exit reason has been told.
    let Some(log) = logs.last_lines(pod, container, LAST_LINES).await else { return };
    let text = log.collect::<Vec<_>>().await.concat();
    for line in String::from_utf8_lossy(&text).lines() {
        screen.tell(&line_of_pod(line));
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
    use krafla_client::{Access, HttpsClient, Limits};
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "status": status})).unwrap()
    }

    fn ended(name: &str, exit_code: i32) -> Value {
        json!({"name": name, "state": {"terminated": {"exitCode": exit_code}}})
    }

    /// Logs of a cluster that never answers.
    fn silent() -> Logs {
        let file = tempfile::NamedTempFile::new().unwrap();
        let kubeconfig = "current-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n\
            clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n";
        std::fs::write(file.path(), kubeconfig).unwrap();
        let access = Access::of_file(file.path()).unwrap();
        Logs::Server(HttpsClient::new(access, Limits::default()).unwrap())
    }

    #[tokio::test]
    async fn a_pod_that_is_gone_is_forgotten() {
        let printer = Printer::new(silent(), Arc::new(Screen::new(false)), watch::channel(false).1);
        let job = (Kind::VcJob, Key::new("ns", "a"));
        let mut following = Following::new(printer, Selection::new(move |pod| is_of_job(pod, &job)));
        let pod = |uid: &str| {
            let owner =
                json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "a", "uid": "1"});
            let metadata = json!({"namespace": "ns", "name": uid, "uid": uid, "ownerReferences": [owner]});
            let status = json!({"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]});
            json!({"metadata": metadata, "spec": {"containers": [{"name": "main"}]}, "status": status})
                .to_string()
        };
        for uid in ["a-0", "a-1"] {
            following.observe(pod(uid).as_bytes());
        }
        assert_eq!(following.known.len(), 2);
        following.forget(pod("a-0").as_bytes());
        let left: Vec<&str> = following.known.keys().map(|(uid, _)| &*uid.0).collect();
        assert_eq!(left, ["a-1"]);
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
    fn lines_are_shown_when_they_have_ended() {
        let mut lines = Lines::new("[p]", false);
        for (chunk, expected) in [
            ("one\ntwo\r\n\nth", "[p] one\n[p] two\n[p] \n"),
            ("r", ""),
            ("ee\nfour", "[p] three\n"),
            ("\n", "[p] four\n"),
            ("five", ""),
        ] {
            assert_eq!(lines.add(chunk.as_bytes()), expected, "{chunk:?}");
        }
        assert_eq!(lines.finish(), "[p] five\n");
        assert_eq!(lines.finish(), "");
    }

    #[test]
    fn a_line_that_does_not_end_is_shown_in_pieces() {
        let longest = "x".repeat(PIECE_BYTES_MAX);
        let text = format!("{longest}yö{longest}z\nend\n");
        let piece =
            format!("[p] {longest}\n[p] …yö{}\n[p] …xxxz\n[p] end\n", "x".repeat(PIECE_BYTES_MAX - 3));
        // However it arrives.
        for n_bytes in [1, 1000, PIECE_BYTES_MAX, usize::MAX] {
            let mut lines = Lines::new("[p]", false);
            let shown: Vec<String> =
                text.as_bytes().chunks(n_bytes.min(text.len())).map(|chunk| lines.add(chunk)).collect();
            assert!(shown.concat() == piece, "{n_bytes}");
            assert!(lines.rest.is_empty());
        }
        // No character is cut.
        let mut lines = Lines::new("[p]", false);
        let shown = lines.add("ö€😀".repeat(PIECE_BYTES_MAX).as_bytes());
        assert!(!shown.contains(char::REPLACEMENT_CHARACTER) && lines.rest.len() <= PIECE_BYTES_MAX);
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
