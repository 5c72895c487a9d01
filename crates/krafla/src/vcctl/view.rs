//! One job with all that Volcano's `job view` shows of it, and its events.

use std::fmt::Write;

use jiff::tz::TimeZone;
use krafla_api::{Kind, Time};
use serde_json::Value;

use super::cluster::Cluster;
use super::flags::Values;
use super::job::{each, number, text};
use super::table::age;

/// What Go prints for a moment that is not set.
const NO_TIME: &str = "0001-01-01 00:00:00 +0000 UTC";

/// The annotations of pods that are shown, and the labels in front of them.
const POD_ANNOTATIONS: [(&str, &str); 3] = [
    ("cri.cci.io/container-type", "Cri . Cci . Io / Container - Type:"),
    ("kubernetes.io/availablezone", "Kubernetes . Io / Availablezone:"),
    ("network.alpha.kubernetes.io/network", "Network . Alpha . Kubernetes . Io / Network:"),
];

/// A job and its events, and what went wrong while the events were listed. `vjobs` leaves out the conditions.
pub(super) async fn view(
    cluster: &Cluster,
    values: &Values,
    with_conditions: bool,
    now: Time,
) -> Result<(String, Option<String>), String> {
    let (name, namespace) = (values.text("name"), values.text("namespace"));
    if name.is_empty() {
        return Err("job name (specified by --name or -N) is mandatory to view a particular job".to_owned());
    }
    let job = cluster.get(Kind::VcJob, namespace, name).await?;
    let (events, complaint) = match cluster.list(Kind::Event, text(&job["metadata"]["namespace"])).await {
        Ok(events) => (events, None),
        Err(error) => (Vec::new(), Some(format!("cannot list events: {error}\n"))),
    };
    let about_job: Vec<&Value> = events.iter().filter(|event| is_about(event, &job)).collect();
    Ok((format!("{}{}", of_job(&job, with_conditions), of_events(&about_job, now)), complaint))
}

/// Whether an event is about a job. Events say whom they are about by UID, kind and name; some leave out the UID.
fn is_about(event: &Value, job: &Value) -> bool {
    let (object, metadata) = (&event["involvedObject"], &job["metadata"]);
    let is_same = |field: &str, other: &Value| text(&object[field]).is_empty() || object[field] == *other;
    text(&object["name"]) == text(&metadata["name"])
        && is_same("uid", &metadata["uid"])
        && is_same("kind", &Value::from("Job"))
        && !text(&object["apiVersion"]).starts_with("batch/v1")
}

/// Lines, each indented by its level.
#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, level: usize, label: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{:1$}{label}", "", level * 2);
    }

    fn line(&mut self, level: usize, pad: usize, label: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{:1$}{label:pad$}\t{value}", "", level * 2);
    }
}

fn of_job(job: &Value, with_conditions: bool) -> String {
    let (metadata, spec) = (&job["metadata"], &job["spec"]);
    let mut page = Page::default();
    page.line(0, 12, "Name:", text(&metadata["name"]));
    page.line(0, 12, "Namespace:", text(&metadata["namespace"]));
    page.line(0, 12, "Labels:", strings(&metadata["labels"]));
    page.line(0, 12, "Annotations:", strings(&metadata["annotations"]));
    // Volcano's client does not know the type of a single object, and prints none.
    page.line(0, 12, "API Version:", "");
    page.line(0, 12, "Kind:", "");
    page.head(0, "Metadata:");
    page.line(1, 19, "Creation Timestamp:", moment(&metadata["creationTimestamp"]));
    page.line(1, 19, "Generate Name:", text(&metadata["generateName"]));
    page.line(1, 19, "Generation:", number(&metadata["generation"]));
    page.line(1, 19, "Resource Version:", text(&metadata["resourceVersion"]));
    page.line(1, 19, "UID:", text(&metadata["uid"]));
    page.head(0, "Spec:");
    page.line(1, 19, "Min Available:", number(&spec["minAvailable"]));
    page.head(1, "Plugins:");
    for (plugin, label) in [("env", "Env:"), ("ssh", "Ssh:")] {
        let arguments: Vec<&str> = each(&spec["plugins"][plugin]).map(text).collect();
        page.line(2, 0, label, format_args!("[{}]", arguments.join(" ")));
    }
    page.line(1, 19, "Scheduler Name:", text(&spec["schedulerName"]));
    page.head(1, "Tasks:");
    for task in each(&spec["tasks"]) {
        page.task(task);
    }
    page.status(&job["status"], with_conditions);
    page.0
}

impl Page {
    fn task(&mut self, task: &Value) {
        self.line(2, 0, "Name:", text(&task["name"]));
        self.line(2, 0, "Replicas:", number(&task["replicas"]));
        self.head(2, "Template:");
        let (metadata, spec) = (&task["template"]["metadata"], &task["template"]["spec"]);
        self.head(3, "Metadata:");
        self.head(4, "Annotations:");
        for (annotation, label) in POD_ANNOTATIONS {
            self.line(5, 44, label, text(&metadata["annotations"][annotation]));
        }
        self.line(4, 0, "Creation Timestamp:", moment(&metadata["creationTimestamp"]));
        self.head(3, "Spec:");
        self.head(4, "Containers:");
        for container in each(&spec["containers"]) {
            self.container(container);
        }
        self.head(4, "Image Pull Secrets:");
        for secret in each(&spec["imagePullSecrets"]) {
            self.line(5, 10, "Name:", text(&secret["name"]));
        }
        self.line(4, 18, "Restart Policy:", text(&spec["restartPolicy"]));
    }

    fn container(&mut self, container: &Value) {
        self.head(5, "Command:");
        for word in each(&container["command"]) {
            self.head(6, text(word));
        }
        self.line(5, 6, "Image:", text(&container["image"]));
        self.line(5, 6, "Name:", text(&container["name"]));
        self.head(5, "Ports:");
        for port in each(&container["ports"]) {
            self.line(6, 15, "Container Port:", number(&port["containerPort"]));
            self.line(6, 15, "Name:", text(&port["name"]));
        }
        self.head(5, "Resources:");
        for (field, label) in [("limits", "Limits:"), ("requests", "Requests:")] {
            let amounts = &container["resources"][field];
            self.head(6, label);
            self.line(7, 7, "Cpu:", amount(&amounts["cpu"]));
            self.line(7, 7, "Memory:", amount(&amounts["memory"]));
        }
        self.line(6, 0, "Working Dir:", text(&container["workingDir"]));
    }

    fn status(&mut self, status: &Value, with_conditions: bool) {
        const COUNTS: [(&str, &str); 9] = [
            ("succeeded", "Succeeded:"),
            ("pending", "Pending:"),
            ("running", "Running:"),
            ("failed", "Failed:"),
            ("terminating", "Terminating:"),
            ("unknown", "Unknown:"),
            ("retryCount", "RetryCount:"),
            ("minAvailable", "Min Available:"),
            ("version", "Version:"),
        ];
        self.head(0, "Status:");
        for (field, label) in COUNTS {
            if number(&status[field]) > 0 {
                self.line(1, 14, label, number(&status[field]));
            }
        }
        self.head(1, "State:");
        self.line(2, 0, "Phase:", text(&status["state"]["phase"]));
        if let Some(resources) = status["controlledResources"].as_object().filter(|all| !all.is_empty()) {
            self.head(1, "Controlled Resources:");
            for (resource, value) in resources {
                self.line(2, 0, &format!("{resource}: "), text(value));
            }
        }
        let mut conditions = each(&status["conditions"]).peekable();
        if with_conditions && conditions.peek().is_some() {
            self.head(1, "Conditions:");
            self.line(2, 0, "Status", "TransitionTime");
            for condition in conditions {
                let phase = format!("{} ", text(&condition["status"]));
                self.line(2, 0, &phase, format_args!("{} ", moment(&condition["lastTransitionTime"])));
            }
        }
    }
}

fn of_events(events: &[&Value], now: Time) -> String {
    if events.is_empty() {
        return "Events: \t<none>\n".to_owned();
    }
    let line = |kind: &str, reason: &str, age: &str, from: &str, message: &str| {
        format!("{kind:15}\t{reason:40}\t{age:30}\t{from:40}\t{message}\n")
    };
    let dashes = "-------";
    let mut text_of_all = String::from("Events:\n")
        + &line("Type", "Reason", "Age", "Form", "Message")
        + &line(dashes, dashes, dashes, dashes, dashes);
    for event in events {
        let ago = |field: &str| age(serde_json::from_value(event[field].clone()).ok(), now, true);
        let count = number(&event["count"]);
        let (first, last) = (ago("firstTimestamp"), ago("lastTimestamp"));
        let since = if count > 1 { format!("{last} (x{count} over {first})") } else { first };
        let (component, host) = (text(&event["source"]["component"]), text(&event["source"]["host"]));
        let from = if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") };
        let message = text(&event["message"]).trim();
        text_of_all += &line(text(&event["type"]), text(&event["reason"]), &since, &from, message);
    }
    text_of_all
}

/// Labels or annotations as Go writes them.
fn strings(map: &Value) -> String {
    match map.as_object() {
        Some(map) if !map.is_empty() => {
            let json = Value::Object(map.clone()).to_string();
            json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
        }
        _ => "<none>".to_owned(),
    }
}

fn amount(value: &Value) -> String {
    match value {
        Value::String(amount) => amount.clone(),
        Value::Null => "0".to_owned(),
        other => other.to_string(),
    }
}

/// A moment in the time zone of the user.
fn moment(value: &Value) -> String {
    let at: Option<Time> = serde_json::from_value(value.clone()).ok();
    let zoned = at.map(|at| at.0.to_zoned(TimeZone::system()));
    zoned.map_or(NO_TIME.to_owned(), |at| at.strftime("%Y-%m-%d %H:%M:%S %z %Z").to_string())
}
