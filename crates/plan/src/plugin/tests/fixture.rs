//! A job and its plugins in a few words, and what the plugins make of it, one fact per line.
//!
//! ```text
//! job a
//! plugin svc --inject-hosts-env=false
//! task work replicas=2 hostname=h subdomain=s containers=main,side init=prep env=RANK:5 port=own:22 annotation=key:value
//! ```
//!
//! What is not said: the job is `a`, a task has one replica and the container `main`. `env` and `port` are those of every
//! regular container.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use expect_test::Expect;
use krafla_api::Uid;
use krafla_api::volcano::{JobSpec, TaskSpec};
use serde_json::{Map, Value, json};

use crate::plugin::{Desired, Follows, JobView, Lifetime, Plugins};

/// All that the plugins make of the job.
pub(in crate::plugin) fn check(text: &str, expected: Expect) {
    let world = world(text);
    let mut all = world.findings();
    for desired in world.desired() {
        print_desired(&desired, &mut all);
    }
    for task in &world.spec.tasks {
        for index in 0..task.replicas {
            all.push_str(&world.pod(&task.name, index));
        }
    }
    expected.assert_eq(&all);
}

/// What is wrong with the plugins.
pub(in crate::plugin) fn check_findings(text: &str, expected: Expect) {
    expected.assert_eq(&world(text).findings());
}

/// A job.
pub(in crate::plugin) struct World {
    name: String,
    uid: Uid,
    spec: JobSpec,
}

/// The job that `text` describes.
pub(in crate::plugin) fn world(text: &str) -> World {
    let mut world = World { name: "a".to_owned(), uid: "u1".into(), spec: JobSpec::default() };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "job" => world.name = words[1].to_owned(),
            "plugin" => {
                let arguments = words[2..].iter().map(|word| (*word).to_owned()).collect();
                world.spec.plugins.insert(words[1].to_owned(), arguments);
            }
            "task" => world.spec.tasks.push(new_task(words[1], &words[2..])),
            other => panic!("unknown line {other:?}"),
        }
    }
    world
}

fn new_task(name: &str, words: &[&str]) -> TaskSpec {
    let values = |key: &'static str| {
        words.iter().filter_map(move |word| word.strip_prefix(key)?.strip_prefix('=')).map(str::to_owned)
    };
    let pairs = |key: &'static str| values(key).map(|pair| split_pair(&pair));
    let list = |key: &'static str, default: &str| {
        let names = values(key).next().unwrap_or_else(|| default.to_owned());
        names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<String>>()
    };
    let env: Vec<Value> = pairs("env").map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let ports: Vec<Value> = pairs("port")
        .map(|(name, port)| json!({ "name": name, "containerPort": port.parse::<u16>().unwrap() }))
        .collect();
    let mut spec = Map::new();
    for field in ["hostname", "subdomain"] {
        spec.extend(values(field).map(|value| (field.to_owned(), Value::from(value))));
    }
    let container = |name: &String| json!({ "name": name, "env": env, "ports": ports });
    spec.insert("containers".to_owned(), list("containers", "main").iter().map(container).collect());
    let init: Vec<Value> = list("init", "").iter().map(|name| json!({ "name": name })).collect();
    if !init.is_empty() {
        spec.insert("initContainers".to_owned(), init.into());
    }
    let annotations: Map<String, Value> =
        pairs("annotation").map(|(key, value)| (key, Value::from(value))).collect();
    TaskSpec {
        name: name.to_owned(),
        replicas: values("replicas").next().map_or(1, |n| n.parse().unwrap()),
        template: json!({ "metadata": { "annotations": annotations }, "spec": spec }),
        ..TaskSpec::default()
    }
}

fn split_pair(pair: &str) -> (String, String) {
    let (key, value) = pair.split_once(':').unwrap();
    (key.to_owned(), value.to_owned())
}

impl World {
    /// Asks the job's plugins something.
    pub(in crate::plugin) fn plugins<T>(&self, ask: impl FnOnce(&Plugins<'_>) -> T) -> T {
        ask(&Plugins::of(self.view()))
    }

    pub(in crate::plugin) fn view(&self) -> JobView<'_> {
        JobView { name: &self.name, namespace: "ns", uid: &self.uid, spec: &self.spec }
    }

    pub(in crate::plugin) fn desired(&self) -> Vec<Desired> {
        self.plugins(|plugins| plugins.desired())
    }

    pub(in crate::plugin) fn findings(&self) -> String {
        let line = |finding: &crate::plugin::Finding| format!("{:?}: {finding}\n", finding.effect);
        self.plugins(|plugins| plugins.findings().iter().map(line).collect())
    }

    /// The pod as it would be created, printed.
    pub(in crate::plugin) fn pod(&self, task: &str, index: i32) -> String {
        let task = self.spec.tasks.iter().find(|other| other.name == task).unwrap();
        let mut pod = task.template.clone();
        self.plugins(|plugins| plugins.decorate(task, index, &mut pod));
        let mut text = format!("pod {}-{}-{index}\n", self.name, task.name);
        print_pod(&pod, &mut text);
        text
    }
}

fn print_desired(desired: &Desired, text: &mut String) {
    write!(text, "{} {}", desired.kind.info().singular, desired.name).unwrap();
    match desired.follows {
        Follows::Nothing => {}
        Follows::Data => text.push_str(", data follows the job"),
        Follows::DataKey(key) => write!(text, ", data.{key} follows the job").unwrap(),
    }
    match desired.lifetime {
        Lifetime::Try => {}
        Lifetime::Job => text.push_str(", kept for the life of the job"),
    }
    match &desired.generate {
        None => {}
        Some(recipe) => write!(text, ", with {recipe:?}").unwrap(),
    }
    text.push('\n');
    for (key, value) in desired.object["data"].as_object().into_iter().flatten() {
        let plain = value.as_str().unwrap();
        let plain = match desired.object["type"].as_str() {
            Some("Opaque") => String::from_utf8(STANDARD.decode(plain).unwrap()).unwrap(),
            _ => plain.to_owned(),
        };
        writeln!(text, "  {key} = {plain:?}").unwrap();
    }
    if let Some(spec) = desired.object.get("spec") {
        writeln!(text, "  {spec}").unwrap();
    }
}

fn print_pod(pod: &Value, text: &mut String) {
    for (key, value) in pod["metadata"]["annotations"].as_object().into_iter().flatten() {
        writeln!(text, "  annotation {key} = {value}").unwrap();
    }
    let spec = &pod["spec"];
    for field in ["hostname", "subdomain"] {
        if let Some(value) = spec[field].as_str() {
            writeln!(text, "  {field} {value}").unwrap();
        }
    }
    for volume in items(&spec["volumes"]) {
        writeln!(text, "  volume {volume}").unwrap();
    }
    for (list, prefix) in [("initContainers", "init "), ("containers", "")] {
        for container in items(&spec[list]) {
            print_container(prefix, container, text);
        }
    }
}

fn print_container(prefix: &str, container: &Value, text: &mut String) {
    let name = container["name"].as_str().unwrap();
    let mut line = |what: &str, fact: String| writeln!(text, "  {prefix}{name} {what} {fact}").unwrap();
    if let Some(image) = container.get("image") {
        line("image", image.to_string());
    }
    for (position, word) in items(&container["command"]).enumerate() {
        let word = word.as_str().unwrap();
        line(&format!("command[{position}]"), word.lines().next().unwrap_or_default().to_owned());
    }
    for variable in items(&container["env"]) {
        let name = variable["name"].as_str().unwrap();
        let source = &variable["valueFrom"]["configMapKeyRef"];
        match variable["value"].as_str() {
            Some(value) => line("env", format!("{name}={value}")),
            None => line("env", format!("{name} from {} {}", source["name"], source["key"])),
        }
    }
    for port in items(&container["ports"]) {
        line("port", format!("{} {}", port["name"], port["containerPort"]));
    }
    for mount in items(&container["volumeMounts"]) {
        line("mount", mount.to_string());
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
