//! `krafla top`: jobs, queues and nodes at a glance, live on a terminal.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use futures_util::future::join_all;
use krafla_api::labels::{JOB_NAME, QUEUE_NAME};
use krafla_api::{Kind, Quantity, Time};
use krafla_client::collection_path;
use serde_json::{Value, json};

use crate::cli::Output;
use crate::cli::everyday::Top;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::layout;
use crate::run::Signals;
use crate::screen::{Screen, print, terminal_width};

/// How often a live screen is drawn anew.
const REDRAWN_EVERY: Duration = Duration::from_secs(2);
/// Jobs that are shown where the height of the terminal does not say.
const JOBS_MAX: usize = 20;
/// The label of the pods of a Kubernetes Job, in all versions of Kubernetes.
const BATCH_JOB_NAME: &str = "job-name";
/// Columns of a bar.
const BAR: usize = 10;

/// Shows the cluster, once or until interrupted.
pub(crate) async fn top(args: Top) -> Result<ExitCode> {
    let connection = Connection::open(&args.cluster)?;
    let screen = Screen::new(false);
    let is_live = screen.is_live() && !args.once && args.output.is_none();
    if !is_live {
        let seen = read(&connection, &args).await?;
        print(&match args.output {
            Some(Output::Json) => format!("{:#}\n", seen.json()),
            None => seen.text(terminal_width(), JOBS_MAX),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut signals = Signals::new()?;
    loop {
        let seen = read(&connection, &args).await;
        let [width, height] = screen.size();
        let text = match &seen {
            Ok(seen) => seen.text(Some(width), height.saturating_sub(seen.n_lines_besides_jobs())),
            Err(failure) => format!("krafla: {failure}; retrying\n"),
        };
        screen.draw(text.lines().map(str::to_owned).collect());
        tokio::select! {
            () = signals.any() => break,
            () = tokio::time::sleep(REDRAWN_EVERY) => {}
        }
    }
    screen.keep();
    screen.until_written().await;
    Ok(ExitCode::SUCCESS)
}

/// Reads all that is shown. Kinds that the cluster does not serve, or that the user may not list, are left out.
async fn read(connection: &Connection, args: &Top) -> Result<Seen, Failure> {
    let namespace = if args.cluster.namespace.is_some() { connection.namespace.as_str() } else { "" };
    let kinds = [Kind::Node, Kind::Queue, Kind::Pod, Kind::VcJob, Kind::Job];
    let lists = join_all(kinds.map(|kind| {
        let namespace = if matches!(kind, Kind::Node | Kind::Queue) { "" } else { namespace };
        connection.read_json(collection_path(kind, namespace))
    }))
    .await;
    let mut lists = lists.into_iter().map(|listed| match listed {
        Ok(mut listed) => match listed.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => Ok(Vec::new()),
        },
        Err(Failure::NotFound(_) | Failure::Refused(_)) => Ok(Vec::new()),
        Err(failure) => Err(failure),
    });
    let mut next = || lists.next().unwrap_or(Ok(Vec::new()));
    let (nodes, queues, pods, vcjobs, jobs) = (next()?, next()?, next()?, next()?, next()?);
    Ok(Seen::new(&nodes, &queues, &pods, &vcjobs, &jobs, Time(jiff::Timestamp::now())))
}

/// Processors and memory, as amounts.
#[derive(Clone, Debug, Default, PartialEq)]
struct Amounts {
    millicpu: f64,
    bytes: f64,
}

impl Amounts {
    fn read(resources: Option<&Value>) -> Amounts {
        let amount = |name: &str| {
            let amount = resources.and_then(|resources| resources.get(name))?;
            let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
            text.parse::<Quantity>().ok()
        };
        Amounts {
            millicpu: amount("cpu").map_or(0.0, |amount| amount.milli_value() as f64),
            bytes: amount("memory").map_or(0.0, |amount| amount.value() as f64),
        }
    }

    fn add(&mut self, other: &Amounts) {
        self.millicpu += other.millicpu;
        self.bytes += other.bytes;
    }
}

/// Pods, and what they request together.
type Used = (usize, Amounts);

/// The requests of pods, added up by what they have in common.
fn summed<K: Ord>(pods: &[(&Value, Amounts)], key: impl Fn(&Value) -> K) -> BTreeMap<K, Used> {
    let mut sums: BTreeMap<K, Used> = BTreeMap::new();
    for (pod, amounts) in pods {
        let (n_pods, sum) = sums.entry(key(pod)).or_default();
        *n_pods = n_pods.saturating_add(1);
        sum.add(amounts);
    }
    sums
}

/// What a pod requests: its containers together, or the largest init container.
fn requests(pod: &Value) -> Amounts {
    let of = |pointer: &str| {
        let containers = pod.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        containers
            .map(|container| Amounts::read(container.pointer("/resources/requests")))
            .collect::<Vec<_>>()
    };
    let mut sum = Amounts::default();
    of("/spec/containers").iter().for_each(|amounts| sum.add(amounts));
    for init in of("/spec/initContainers") {
        sum.millicpu = sum.millicpu.max(init.millicpu);
        sum.bytes = sum.bytes.max(init.bytes);
    }
    sum
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

struct Seen {
    nodes: Vec<NodeUse>,
    queues: Vec<QueueUse>,
    jobs: Vec<JobUse>,
    n_pods: usize,
}

struct NodeUse {
    name: String,
    n_pods: usize,
    requested: Amounts,
    allocatable: Amounts,
    is_ready: bool,
}

struct QueueUse {
    name: String,
    state: String,
    weight: i64,
    /// The part of all weights beside it.
    share: f64,
    requested: Amounts,
    n_pods: usize,
}

struct JobUse {
    name: String,
    namespace: String,
    phase: String,
    queue: String,
    n_running: usize,
    requested: Amounts,
    age: String,
}

impl Seen {
    fn new(
        nodes: &[Value],
        queues: &[Value],
        pods: &[Value],
        vcjobs: &[Value],
        jobs: &[Value],
        now: Time,
    ) -> Seen {
        let is_active = |pod: &&Value| {
            !text(pod, "/spec/nodeName").is_empty()
                && !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
        };
        let active: Vec<(&Value, Amounts)> =
            pods.iter().filter(is_active).map(|pod| (pod, requests(pod))).collect();
        let label = |pod: &Value, name: &str| {
            let labels = pod.pointer("/metadata/labels");
            labels.and_then(|labels| labels.get(name)?.as_str()).unwrap_or_default().to_owned()
        };
        let by_node = summed(&active, |pod| text(pod, "/spec/nodeName").to_owned());
        let by_queue = summed(&active, |pod| label(pod, QUEUE_NAME));
        let of_job = |name: &'static str| {
            summed(&active, |pod| (text(pod, "/metadata/namespace").to_owned(), label(pod, name)))
        };
        let (by_vcjob, by_batch_job) = (of_job(JOB_NAME), of_job(BATCH_JOB_NAME));
        let node = |node: &Value| {
            let name = text(node, "/metadata/name").to_owned();
            let (n_pods, requested) = by_node.get(&name).cloned().unwrap_or_default();
            let conditions =
                node.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
            let mut ready = conditions.filter(|it| text(it, "/type") == "Ready");
            let is_ready = ready.any(|it| text(it, "/status") == "True");
            let allocatable = Amounts::read(node.pointer("/status/allocatable"));
            NodeUse { name, n_pods, requested, allocatable, is_ready }
        };
        let weight =
            |queue: &Value| queue.pointer("/spec/weight").and_then(Value::as_i64).unwrap_or(1).max(1);
        let siblings: BTreeMap<&str, i64> = queues.iter().fold(BTreeMap::new(), |mut weights, queue| {
            *weights.entry(text(queue, "/spec/parent")).or_default() += weight(queue);
            weights
        });
        let queue = |queue: &Value| {
            let name = text(queue, "/metadata/name").to_owned();
            let (n_pods, requested) = by_queue.get(&name).cloned().unwrap_or_default();
            let all = siblings.get(text(queue, "/spec/parent")).copied().unwrap_or(1).max(1);
            let share = weight(queue) as f64 / all as f64;
            let state = text(queue, "/status/state").to_owned();
            QueueUse { name, state, weight: weight(queue), share, requested, n_pods }
        };
        let job = |kind: Kind, used: &BTreeMap<(String, String), Used>, job: &Value| {
            let (name, namespace) = (text(job, "/metadata/name"), text(job, "/metadata/namespace"));
            let key = (namespace.to_owned(), name.to_owned());
            let (n_running, requested) = used.get(&key).cloned().unwrap_or_default();
            let created = job.pointer("/metadata/creationTimestamp").cloned().unwrap_or_default();
            JobUse {
                name: name.to_owned(),
                namespace: namespace.to_owned(),
                phase: crate::wait::phase(&kind.into(), job),
                queue: text(job, "/spec/queue").to_owned(),
                n_running,
                requested,
                age: krafla_apiserver::table::age(serde_json::from_value(created).ok(), now),
            }
        };
        let is_unfinished = |kind: Kind| move |job: &&Value| crate::wait::end(&kind.into(), job).is_none();
        let volcano = vcjobs.iter().filter(is_unfinished(Kind::VcJob));
        let volcano = volcano.map(|it| job(Kind::VcJob, &by_vcjob, it));
        let batch = jobs.iter().filter(is_unfinished(Kind::Job)).map(|it| job(Kind::Job, &by_batch_job, it));
        let mut unfinished: Vec<JobUse> = volcano.chain(batch).collect();
        unfinished.sort_by(|a, b| {
            let by_use =
                b.requested.millicpu.total_cmp(&a.requested.millicpu).then(b.n_running.cmp(&a.n_running));
            by_use.then_with(|| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)))
        });
        Seen {
            nodes: nodes.iter().map(node).collect(),
            queues: queues.iter().map(queue).collect(),
            jobs: unfinished,
            n_pods: active.len(),
        }
    }

    fn n_lines_besides_jobs(&self) -> usize {
        self.nodes.len().min(8).saturating_add(self.queues.len().min(8)).saturating_add(8)
    }

    /// The whole screen.
    fn text(&self, width: Option<usize>, n_jobs_max: usize) -> String {
        let headers = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let total = self.nodes.iter().fold(Amounts::default(), |mut total, node| {
            total.add(&node.allocatable);
            total
        });
        // Bars are for people.
        let fill =
            |part: f64, whole: f64| if width.is_some() { bar(part, whole) } else { percent(part, whole) };
        let node = |node: &NodeUse| {
            vec![
                node.name.clone(),
                if node.is_ready { "Ready" } else { "NotReady" }.to_owned(),
                node.n_pods.to_string(),
                fill(node.requested.millicpu, node.allocatable.millicpu),
                cpu_of(node.requested.millicpu, node.allocatable.millicpu),
                fill(node.requested.bytes, node.allocatable.bytes),
                format!("{} of {}", memory(node.requested.bytes), memory(node.allocatable.bytes)),
            ]
        };
        let queue = |queue: &QueueUse| {
            vec![
                queue.name.clone(),
                queue.state.clone(),
                queue.weight.to_string(),
                format!("{:.0}%", queue.share * 100.0),
                fill(queue.requested.millicpu, total.millicpu),
                cpu_of(queue.requested.millicpu, total.millicpu),
                queue.n_pods.to_string(),
            ]
        };
        let job = |job: &JobUse| {
            vec![
                format!("{}/{}", job.namespace, job.name),
                job.phase.clone(),
                job.n_running.to_string(),
                cpu(job.requested.millicpu),
                memory(job.requested.bytes),
                if job.queue.is_empty() { "-".to_owned() } else { job.queue.clone() },
                job.age.clone(),
            ]
        };
        let nodes: Vec<Vec<String>> = self.nodes.iter().map(node).collect();
        let queues: Vec<Vec<String>> = self.queues.iter().map(queue).collect();
        let jobs: Vec<Vec<String>> = self.jobs.iter().map(job).collect();
        let table = |names: &[&str], rows: &[Vec<String>], n_max: usize| {
            let shown = rows.get(..n_max.min(rows.len())).unwrap_or(rows);
            let mut text = layout::table_by_importance(&headers(names), shown, width, 4);
            let n_more = rows.len().saturating_sub(shown.len());
            if n_more > 0 {
                text += &format!("and {n_more} more\n");
            }
            text
        };
        let sections = [
            table(&["NODE", "STATE", "PODS", "CPU", "REQUESTED", "MEMORY", "REQUESTED"], &nodes, 8),
            table(&["QUEUE", "STATE", "WEIGHT", "SHARE", "CPU", "REQUESTED", "PODS"], &queues, 8),
            table(&["JOB", "PHASE", "PODS", "CPU", "MEMORY", "QUEUE", "AGE"], &jobs, n_jobs_max.max(3)),
        ];
        let is_full = [!nodes.is_empty(), !queues.is_empty(), true];
        let sections =
            sections.into_iter().zip(is_full).filter(|(_, is_full)| *is_full).map(|(text, _)| text);
        let counts =
            [(self.nodes.len(), "node"), (self.n_pods, "running pod"), (self.jobs.len(), "unfinished job")];
        let counts = counts.map(|(n, what)| format!("{n} {what}{}", if n == 1 { "" } else { "s" }));
        let head = counts.join(", ");
        std::iter::once(head + "\n").chain(sections).collect::<Vec<_>>().join("\n")
    }

    fn json(&self) -> Value {
        let amounts =
            |amounts: &Amounts| json!({ "cpu": cpu(amounts.millicpu), "memory": memory(amounts.bytes) });
        json!({
            "nodes": self.nodes.iter().map(|node| json!({
                "name": node.name, "ready": node.is_ready, "pods": node.n_pods,
                "requested": amounts(&node.requested), "allocatable": amounts(&node.allocatable),
            })).collect::<Vec<_>>(),
            "queues": self.queues.iter().map(|queue| json!({
                "name": queue.name, "state": queue.state, "weight": queue.weight, "share": queue.share,
                "requested": amounts(&queue.requested), "pods": queue.n_pods,
            })).collect::<Vec<_>>(),
            "jobs": self.jobs.iter().map(|job| json!({
                "name": job.name, "namespace": job.namespace, "phase": job.phase, "queue": job.queue,
                "pods": job.n_running, "requested": amounts(&job.requested),
            })).collect::<Vec<_>>(),
        })
    }
}

/// How full something is: `███░░░░░░░`.
fn bar(part: f64, whole: f64) -> String {
    let filled = if whole > 0.0 { (part / whole * BAR as f64).round().clamp(0.0, BAR as f64) } else { 0.0 };
    let n_filled = (0..BAR).filter(|n| (*n as f64) < filled).count();
    "█".repeat(n_filled) + &"░".repeat(BAR.saturating_sub(n_filled))
}

fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.0}%", part / whole * 100.0) } else { "-".to_owned() }
}

/// Processors: `1.5`, `250m`.
fn cpu(millicpu: f64) -> String {
    match millicpu {
        millicpu if millicpu >= 1000.0 || millicpu == 0.0 => {
            let text = format!("{:.1}", millicpu / 1000.0);
            text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
        }
        millicpu => format!("{millicpu:.0}m"),
    }
}

fn cpu_of(part: f64, whole: f64) -> String {
    format!("{} of {}", cpu(part), cpu(whole))
}

/// Memory: `1.5Gi`, `300Mi`.
fn memory(bytes: f64) -> String {
    const UNITS: [(&str, f64); 4] =
        [("Ti", 1_099_511_627_776.0), ("Gi", 1_073_741_824.0), ("Mi", 1_048_576.0), ("Ki", 1024.0)];
    match UNITS.into_iter().find(|(_, unit)| bytes >= *unit) {
        None => format!("{bytes:.0}"),
        Some((name, unit)) => {
            let text = format!("{:.1}", bytes / unit);
            format!("{}{name}", text.strip_suffix(".0").unwrap_or(&text))
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn seen() -> Seen {
        let node = json!({
            "metadata": { "name": "n1" },
            "status": { "allocatable": { "cpu": "8", "memory": "16Gi" }, "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        let queue = |name: &str, weight: i64| json!({ "metadata": { "name": name }, "spec": { "weight": weight }, "status": { "state": "Open" } });
        let pod = |name: &str, phase: &str| {
            json!({
                "metadata": { "name": name, "namespace": "ml", "labels": { "volcano.sh/job-name": "train", "volcano.sh/queue-name": "research" } },
                "spec": { "nodeName": "n1", "containers": [{ "resources": { "requests": { "cpu": "1500m", "memory": "2Gi" } } }],
                          "initContainers": [{ "resources": { "requests": { "memory": "3Gi" } } }] },
                "status": { "phase": phase },
            })
        };
        let vcjob = |name: &str, phase: &str| {
            json!({
                "metadata": { "name": name, "namespace": "ml", "creationTimestamp": "2026-11-18T11:50:00Z" },
                "spec": { "queue": "research" }, "status": { "state": { "phase": phase } },
            })
        };
        let pods = [pod("a", "Running"), pod("b", "Running"), pod("c", "Succeeded")];
        let jobs = [vcjob("idle", "Pending"), vcjob("train", "Running"), vcjob("old", "Completed")];
        let now = serde_json::from_value(json!("2026-11-18T12:00:00Z")).unwrap();
        Seen::new(&[node], &[queue("default", 1), queue("research", 3)], &pods, &jobs, &[], now)
    }

    #[test]
    fn nodes_queues_and_jobs_stand_on_one_screen() {
        expect![[r#"
            1 node, 2 running pods, 2 unfinished jobs

            NODE   STATE   PODS   CPU          REQUESTED   MEMORY       REQUESTED
            n1     Ready   2      ████░░░░░░   3 of 8      ████░░░░░░   6Gi of 16Gi

            QUEUE      STATE   WEIGHT   SHARE   CPU          REQUESTED   PODS
            default    Open    1        25%     ░░░░░░░░░░   0 of 8      0
            research   Open    3        75%     ████░░░░░░   3 of 8      2

            JOB        PHASE     PODS   CPU   MEMORY   QUEUE      AGE
            ml/train   Running   2      3     6Gi      research   10m
            ml/idle    Pending   0      0     0        research   10m
        "#]]
        .assert_eq(&seen().text(Some(80), 20));
        expect![[r#"
            1 node, 2 running pods, 2 unfinished jobs

            NODE   STATE   PODS   CPU          REQUESTED   MEMORY       REQUESTED
            n1     Ready   2      ████░░░░░░   3 of 8      ████░░░░░░   6Gi of 16Gi

            QUEUE      STATE   WEIGHT   SHARE   CPU          REQUESTED   PODS
            default    Open    1        25%     ░░░░░░░░░░   0 of 8      0
            research   Open    3        75%     ████░░░░░░   3 of 8      2

            JOB        PHASE     PODS   CPU   MEMORY   QUEUE      AGE
            ml/train   Running   2      3     6Gi      research   10m
            ml/idle    Pending   0      0     0        research   10m
        "#]]
        .assert_eq(&seen().text(Some(120), 20));
        assert!(!seen().text(None, 20).contains('█'), "a program reads no bars");
        assert_eq!(seen().json()["jobs"][0]["requested"]["memory"], "6Gi");
    }

    #[test]
    fn amounts_are_short() {
        assert_eq!([0.0, 250.0, 1000.0, 1500.0].map(cpu), ["0", "250m", "1", "1.5"]);
        assert_eq!([0.0, 2048.0, 1_610_612_736.0].map(memory), ["0", "2Ki", "1.5Gi"]);
        assert_eq!(bar(1.0, 4.0), "███░░░░░░░");
        assert_eq!(bar(1.0, 0.0), "░░░░░░░░░░");
    }
}
