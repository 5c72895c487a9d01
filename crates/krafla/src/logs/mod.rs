//! `krafla logs`: what the pods of a job, a flow or a CronJob write.

mod members;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::StreamExt;
use futures_util::future::join_all;
use krafla_api::Kind;
use krafla_api::labels::{TASK_INDEX, TASK_SPEC};
use krafla_client::{collection_path, encoded};
use krafla_cluster::{ClientError, LogOptions};
use krafla_node::pod::Pod;
use krafla_node::status::ContainerStatus;
use krafla_plan::Object;
use serde_json::Value;
use tokio::sync::watch;

use self::members::Members;
use crate::cli::everyday::Logs;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::home;
use crate::object_watch::{Change, changes};
use crate::pod_logs::{self, Colours, Following, Printer, Selection};
use crate::screen::{Screen, tell};
use crate::targets::{self, Target};
use crate::wait;

/// How long the last lines may take after all objects have finished.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(30);

/// Prints logs.
pub(crate) async fn logs(args: Logs) -> Result<ExitCode> {
    if args.previous && args.attempt.is_some() {
        return Err(
            Failure::usage("--previous and --attempt both choose an attempt; fix: use one of them").into()
        );
    }
    if args.follow && (args.previous || args.attempt.is_some()) {
        return Err(
            Failure::usage("--follow prints all attempts; fix: leave out --previous and --attempt").into()
        );
    }
    let connection = Connection::open(&args.cluster)?;
    let targets = targets::find(&connection, &args.words).await?;
    let mut members = Members::default();
    for target in &targets {
        members.add(&connection, target).await?;
    }
    let options = LogOptions {
        tail_lines: args.tail,
        since_seconds: args.since.as_ref().map(|since| since.duration.as_secs().max(1)),
        timestamps: args.timestamps,
        previous: args.previous,
        ..LogOptions::default()
    };
    let (wanted, task) = (members.clone(), args.task.clone());
    let is_wanted = move |pod: &Object| {
        let is_of_task = task.as_deref().is_none_or(|task| pod.meta.labels.get(TASK_SPEC) == Some(task));
        is_of_task && wanted.has(pod)
    };
    let has_prefix = !args.no_prefix && !is_single(&targets);
    let mut selection = Selection::new(is_wanted);
    (selection.container, selection.options, selection.has_prefix) =
        (args.container.clone(), options, has_prefix);
    let screen = Arc::new(Screen::new(false));
    let reader = Reader { connection: &connection, members: &members, targets: &targets, args: &args };
    let outcome = if args.follow {
        reader.follow(selection, &screen).await
    } else {
        reader.print_all(&selection, &screen).await
    };
    screen.until_written().await;
    outcome.map(|()| ExitCode::SUCCESS).map_err(Into::into)
}

/// Whether there can be only one log.
fn is_single(targets: &[Target]) -> bool {
    let n_containers = |object: &Value| {
        let of = |field: &str| object.pointer(field).and_then(Value::as_array).map_or(0, Vec::len);
        of("/spec/containers").saturating_add(of("/spec/initContainers"))
    };
    matches!(targets, [target] if target.of.known() == Some(Kind::Pod) && n_containers(&target.object) == 1)
}

struct Reader<'a> {
    connection: &'a Connection,
    members: &'a Members,
    targets: &'a [Target],
    args: &'a Logs,
}

impl Reader<'_> {
    fn path(&self) -> String {
        collection_path(Kind::Pod, &self.connection.namespace)
    }

    /// Prints the logs as they are now, pod by pod.
    async fn print_all(&self, selection: &Selection, screen: &Arc<Screen>) -> Result<(), Failure> {
        let listed = self.connection.read_json(format!("{}?{}", self.path(), self.members.query())).await?;
        let items = listed.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut pods: Vec<(Object, Pod)> = items
            .into_iter()
            .filter_map(|json| {
                let object = Object::decode(Kind::Pod, json.to_string().as_bytes());
                Some((object, serde_json::from_value(json).ok()?))
            })
            .filter(|(object, _)| selection.has_pod(object))
            .collect();
        if pods.is_empty() {
            return Err(self.no_pods());
        }
        pods.sort_by_key(|(object, _)| position(object));
        let client = &self.connection.client;
        let printer =
            Printer::new(home::Logs::Server(client.clone()), screen.clone(), watch::channel(true).1);
        let mut colours = Colours::default();
        let mut n_containers = 0_usize;
        for (object, pod) in &pods {
            for status in statuses(pod).filter(|status| selection.has_container(&status.name)) {
                n_containers = n_containers.saturating_add(1);
                let title = pod_logs::title(pod, &status.name);
                let options = match self.options(&selection.options, status) {
                    Ok(options) => options,
                    Err(why) => {
                        tell(&format!("krafla: {title}: {why}\n"));
                        continue;
                    }
                };
                match client.log(&pod.key(), &status.name, &options).await {
                    Ok(log) => {
                        let log = log.scan((), |(), piece| std::future::ready(piece.ok())).boxed();
                        let prefix = if selection.has_prefix {
                            colours.paint(object, &title, screen.is_terminal())
                        } else {
                            String::new()
                        };
                        printer.print_attempt(log, &prefix).await;
                    }
                    Err(ClientError::Refused(refusal) | ClientError::NotFound(refusal)) => {
                        tell(&format!("krafla: {title} has no log: {refusal}\n"));
                    }
                    Err(error) => return Err(self.connection.failure(error)),
                }
            }
        }
        match (&selection.container, n_containers) {
            (Some(name), 0) => Err(Failure::NotFound(format!("no pod has a container {name:?}"))),
            _ => Ok(()),
        }
    }

    /// The options for a container: which attempt is meant.
    fn options(&self, options: &LogOptions, status: &ContainerStatus) -> Result<LogOptions, String> {
        let current = status.restart_count;
        let Some(wanted) = self.args.attempt else { return Ok(options.clone()) };
        if wanted > current {
            return Err(format!("attempt {wanted} has not begun; the current attempt is {current}"));
        }
        if wanted.saturating_add(1) < current {
            return Err(format!("the log of attempt {wanted} is not kept; nodes keep the last two attempts"));
        }
        Ok(LogOptions { attempt: Some(wanted), previous: wanted < current, ..options.clone() })
    }

    /// Why there is nothing to print.
    fn no_pods(&self) -> Failure {
        let titles: Vec<&str> = self.targets.iter().map(|target| target.title.as_str()).collect();
        let titles = titles.join(", ");
        match &self.args.task {
            Some(task) => Failure::NotFound(format!("{titles} has no pods of task {task:?}")),
            None => {
                let fix = "wait for them with --follow, or see `krafla get jobs -o wide`";
                Failure::NotFound(format!("{titles} has no pods; fix: {fix}"))
            }
        }
    }

    /// Prints the logs until all objects have finished.
    async fn follow(&self, selection: Selection, screen: &Arc<Screen>) -> Result<(), Failure> {
        let client = self.connection.client.clone();
        let (stop, is_ending) = watch::channel(false);
        let printer = Printer::new(home::Logs::Server(client.clone()), screen.clone(), is_ending);
        let mut following = Following::new(printer, selection);
        let query = format!("&{}", self.members.query());
        let mut events = changes(client, self.path(), query.clone(), None, String::new());
        let finished =
            join_all(self.targets.iter().map(|target| wait::until_finished(self.connection, target)));
        tokio::pin!(finished);
        loop {
            tokio::select! {
                change = events.next() => match change {
                    Some(Ok(Change::Put(json))) => following.observe(&json),
                    Some(Ok(Change::Deleted(json))) => following.forget(&json),
                    Some(Ok(Change::Anew)) => {}
                    Some(Err(error)) => return Err(self.connection.failure(error)),
                    None => break,
                },
                outcomes = &mut finished => {
                    outcomes.into_iter().collect::<Result<Vec<()>, Failure>>()?;
                    break;
                }
            }
        }
        // That a job has finished may be known before the last of what its pods did.
        let listed = self.connection.read_json(format!("{}?{}", self.path(), self.members.query())).await?;
        for pod in listed.get("items").and_then(Value::as_array).into_iter().flatten() {
            let json = pod.to_string();
            following.observe(json.as_bytes());
            following.leave_if_it_goes_on(json.as_bytes());
        }
        stop.send_replace(true);
        let mut printing = following.into_printing();
        let all = async { while printing.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST_LINES_WITHIN, all).await.is_err() {
            tell("krafla: the last lines of some pods are missing: their nodes do not answer\n");
        }
        Ok(())
    }
}

/// The containers of a pod that have started.
fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let all = pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses);
    all.filter(|status| pod_logs::has_started(status))
}

/// The order of pods: by task, then by index.
fn position(pod: &Object) -> (String, u64, String) {
    let label = |name: &str| pod.meta.labels.get(name).unwrap_or_default().to_owned();
    let index = label(TASK_INDEX).parse().unwrap_or_default();
    (label(TASK_SPEC), index, pod.meta.key.name.to_string())
}

/// A label selector in a query.
fn selector(labels: &str) -> String {
    format!("labelSelector={}", encoded(labels))
}
