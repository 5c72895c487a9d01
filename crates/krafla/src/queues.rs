//! `krafla queue`: create, open and close queues, and show them as a tree.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Result;
use krafla_api::{Key, Kind};
use krafla_client::{Request, collection_path, object_path};
use serde_json::{Map, Value, json};

use crate::bus_command::command;
use crate::cli::Output;
use crate::cli::everyday::{Queue, QueueCommand, QueueCreate};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::layout;
use crate::screen::{print, terminal_width};

/// The queue above all others.
const ROOT: &str = "root";

/// Carries out a command about queues.
pub(crate) async fn queue(args: Queue) -> Result<ExitCode> {
    match args.command {
        QueueCommand::Create(args) => create(&args).await,
        QueueCommand::Open(args) => operate(&args.cluster, &args.names, "OpenQueue", "opened").await,
        QueueCommand::Close(args) => operate(&args.cluster, &args.names, "CloseQueue", "closed").await,
        QueueCommand::Tree(args) => {
            let connection = Connection::open(&args.cluster)?;
            let listed = connection.read_json(collection_path(Kind::Queue, "")).await;
            let listed = listed.map_err(|failure| match failure {
                Failure::NotFound(_) => crate::get::not_served(&Kind::Queue.into()),
                other => other,
            })?;
            let queues = listed.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
            match args.output {
                Some(Output::Json) => print(&format!("{:#}\n", nested(&queues)))?,
                None => print(&tree(&queues, terminal_width()))?,
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn create(args: &QueueCreate) -> Result<ExitCode> {
    let connection = Connection::open(&args.cluster)?;
    let queue = described(args);
    connection.write(&Request::post(collection_path(Kind::Queue, ""), queue)).await?;
    print(&format!("queue/{} created\n", args.name))?;
    Ok(ExitCode::SUCCESS)
}

/// The queue that flags describe.
fn described(args: &QueueCreate) -> Value {
    let amounts = |amounts: &[(String, krafla_api::Quantity)]| {
        let amounts = amounts.iter().map(|(name, amount)| (name.clone(), Value::from(amount.to_string())));
        amounts.collect::<Map<String, Value>>()
    };
    let mut spec = Map::new();
    let mut set = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            spec.insert(field.to_owned(), value);
        }
    };
    set("weight", args.weight.map(Value::from));
    set("parent", args.parent.clone().map(Value::from));
    set("reclaimable", args.reclaimable.map(Value::from));
    let map = |list: &[(String, krafla_api::Quantity)]| {
        if list.is_empty() { None } else { Some(Value::Object(amounts(list))) }
    };
    set("capability", map(&args.capability));
    set("deserved", map(&args.deserved));
    set("guarantee", map(&args.guarantee).map(|resource| json!({ "resource": resource })));
    let info = Kind::Queue.info();
    json!({ "apiVersion": info.api_version(), "kind": info.kind, "metadata": { "name": args.name }, "spec": spec })
}

async fn operate(
    cluster: &crate::cli::target::ClusterFlags,
    names: &[String],
    action: &str,
    done: &str,
) -> Result<ExitCode> {
    let connection = Connection::open(cluster)?;
    let mut targets = Vec::new();
    for name in names {
        let object = connection.read_json(object_path(Kind::Queue, &Key::new("", name))).await;
        targets.push((name, object.map_err(|failure| named(name, failure))?));
    }
    for (name, object) in targets {
        let uid = object.pointer("/metadata/uid").cloned().unwrap_or_default();
        let (namespace, command) = command(Kind::Queue, "", name, &uid, action);
        connection.write(&Request::post(collection_path(Kind::Command, &namespace), command)).await?;
        print(&format!("queue/{name} {done}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn named(name: &str, failure: Failure) -> Failure {
    match failure {
        Failure::NotFound(_) => Failure::NotFound(format!(
            "queue/{name} does not exist; fix: list the names with `krafla get queues`"
        )),
        other => other,
    }
}

fn text<'a>(queue: &'a Value, pointer: &str) -> &'a str {
    queue.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn name(queue: &Value) -> &str {
    text(queue, "/metadata/name")
}

/// The name of the queue above a queue. One that names no other is below the root.
fn parent(queue: &Value) -> &str {
    match (text(queue, "/spec/parent"), name(queue)) {
        (_, ROOT) => "",
        ("", _) => ROOT,
        (parent, _) => parent,
    }
}

/// Queues in the order of the tree, each with how deep it is and whether it is the last below its parent.
struct Node<'a> {
    queue: &'a Value,
    /// For each level above it, whether more queues follow there.
    goes_on: Vec<bool>,
    is_last: bool,
}

fn ordered(queues: &[Value]) -> Vec<Node<'_>> {
    let names: BTreeSet<&str> = queues.iter().map(name).collect();
    let mut roots: Vec<&Value> = queues.iter().filter(|queue| !names.contains(parent(queue))).collect();
    roots.sort_by_key(|queue| name(queue));
    let mut nodes = Vec::new();
    for queue in roots {
        nodes.push(Node { queue, goes_on: Vec::new(), is_last: true });
        add_children(queues, queue, &[], &mut nodes);
    }
    // Queues in a circle, which a server refuses, have no root: they are not left out.
    let known: BTreeSet<String> = nodes.iter().map(|node| name(node.queue).to_owned()).collect();
    let lost = queues.iter().filter(|queue| !known.contains(name(queue)));
    nodes.extend(lost.map(|queue| Node { queue, goes_on: Vec::new(), is_last: true }));
    nodes
}

fn add_children<'a>(queues: &'a [Value], above: &Value, goes_on: &[bool], nodes: &mut Vec<Node<'a>>) {
    let mut children: Vec<&Value> = queues.iter().filter(|queue| parent(queue) == name(above)).collect();
    children.sort_by_key(|queue| name(queue));
    let n_children = children.len();
    for (index, queue) in children.into_iter().enumerate() {
        let is_last = index.saturating_add(1) == n_children;
        let goes_on_here = [goes_on, &[!is_last]].concat();
        nodes.push(Node { queue, goes_on: goes_on_here.clone(), is_last });
        add_children(queues, queue, &goes_on_here, nodes);
    }
}

/// The tree as a table.
pub(crate) fn tree(queues: &[Value], width: Option<usize>) -> String {
    let headers = ["QUEUE", "STATE", "WEIGHT", "ALLOCATED", "RUNNING", "PENDING", "CAPABILITY", "DESERVED"]
        .map(str::to_owned);
    let row = |node: &Node<'_>| {
        let queue = node.queue;
        let (levels, branch) = match node.goes_on.split_last() {
            None => (&[][..], ""),
            Some((_, above)) => (above, if node.is_last { "└─ " } else { "├─ " }),
        };
        let lines: String = levels.iter().map(|goes_on| if *goes_on { "│  " } else { "   " }).collect();
        let number =
            |pointer: &str| queue.pointer(pointer).and_then(Value::as_i64).unwrap_or_default().to_string();
        vec![
            format!("{lines}{branch}{}", name(queue)),
            Some(text(queue, "/status/state"))
                .filter(|state| !state.is_empty())
                .unwrap_or("Unknown")
                .to_owned(),
            number("/spec/weight"),
            amounts(queue.pointer("/status/allocated")),
            number("/status/running"),
            number("/status/pending"),
            amounts(queue.pointer("/spec/capability")),
            amounts(queue.pointer("/spec/deserved")),
        ]
    };
    let rows: Vec<Vec<String>> = ordered(queues).iter().map(row).collect();
    layout::table_by_importance(&headers, &rows, width, 4)
}

/// Amounts of resources: `cpu=1,memory=1Gi`.
pub(crate) fn amounts(resources: Option<&Value>) -> String {
    let resources = resources.and_then(Value::as_object).into_iter().flatten();
    let amount = |(name, amount): (&String, &Value)| match amount.as_str() {
        Some("0") | None => None,
        Some(amount) => Some(format!("{name}={amount}")),
    };
    let amounts: Vec<String> = resources.filter_map(amount).collect();
    if amounts.is_empty() { "-".to_owned() } else { amounts.join(",") }
}

/// The tree as nested documents.
fn nested(queues: &[Value]) -> Value {
    fn below(queues: &[Value], queue: &Value, depth: usize) -> Value {
        let children = queues.iter().filter(|other| parent(other) == name(queue) && depth < queues.len());
        let children: Vec<Value> =
            children.map(|child| below(queues, child, depth.saturating_add(1))).collect();
        json!({
            "name": name(queue), "spec": queue.get("spec"), "status": queue.get("status"), "queues": children,
        })
    }
    let names: BTreeSet<&str> = queues.iter().map(name).collect();
    queues
        .iter()
        .filter(|queue| !names.contains(parent(queue)))
        .map(|queue| below(queues, queue, 0))
        .collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn queue(name: &str, parent: &str, allocated: Value) -> Value {
        json!({
            "metadata": { "name": name }, "spec": { "weight": 2, "parent": parent, "capability": { "cpu": "8" } },
            "status": { "state": "Open", "running": 1, "allocated": allocated },
        })
    }

    fn queues() -> Vec<Value> {
        vec![
            queue("default", "", json!({})),
            queue("root", "", json!({ "cpu": "3" })),
            queue("research", "root", json!({ "cpu": "3", "memory": "2Gi", "pods": "0" })),
            queue("vision", "research", json!({})),
            queue("nlp", "research", json!({ "cpu": "3" })),
            queue("large-models", "nlp", json!({})),
        ]
    }

    #[test]
    fn queues_are_shown_below_their_parents() {
        expect![[r#"
            QUEUE                   STATE   WEIGHT   ALLOCATED          RUNNING   PENDING   CAPABILITY   DESERVED
            root                    Open    2        cpu=3              1         0         cpu=8        -
            ├─ default              Open    2        -                  1         0         cpu=8        -
            └─ research             Open    2        cpu=3,memory=2Gi   1         0         cpu=8        -
               ├─ nlp               Open    2        cpu=3              1         0         cpu=8        -
               │  └─ large-models   Open    2        -                  1         0         cpu=8        -
               └─ vision            Open    2        -                  1         0         cpu=8        -
        "#]].assert_eq(&tree(&queues(), Some(120)));
        expect![[r#"
            QUEUE                   STATE   WEIGHT   ALLOCATED          RUNNING   PENDING
            root                    Open    2        cpu=3              1         0
            ├─ default              Open    2        -                  1         0
            └─ research             Open    2        cpu=3,memory=2Gi   1         0
               ├─ nlp               Open    2        cpu=3              1         0
               │  └─ large-models   Open    2        -                  1         0
               └─ vision            Open    2        -                  1         0
        "#]]
        .assert_eq(&tree(&queues(), Some(80)));
        let document = nested(&queues());
        assert_eq!(document[0]["queues"][1]["queues"][1]["queues"][0]["name"], "large-models");
    }

    #[test]
    fn a_circle_of_queues_is_shown_and_ends() {
        let circle = [queue("a", "b", json!({})), queue("b", "a", json!({}))];
        assert_eq!(tree(&circle, None).lines().count(), 3);
        assert_eq!(nested(&circle), json!([]));
    }
}
