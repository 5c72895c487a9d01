//! Queues: `vcctl queue` and `vqueues`.

use std::collections::BTreeMap;

use krafla_api::Kind;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::flags::Values;
use super::job::{number, text};
use super::table::{Column, NOTHING_FOUND, Width, table};

/// Creates a queue. What went along that has no effect is the second text.
pub(super) async fn create(cluster: &Cluster, values: &Values) -> Result<(String, Option<String>), String> {
    let mut spec = json!({});
    if values.number("weight") != 0 {
        spec["weight"] = values.number("weight").into();
    }
    let (name, state) = (values.text("name"), values.text("state"));
    cluster.create(Kind::Queue, "", json!({ "metadata": { "name": name }, "spec": spec })).await?;
    let remark = (state != "Open").then(|| {
        format!(
            "--state {state} has no effect: queue {name} is open; \
             fix: vcctl queue operate --name {name} --action close\n"
        )
    });
    Ok((String::new(), remark))
}

/// Deletes a queue.
pub(super) async fn delete(cluster: &Cluster, values: &Values) -> Result<String, String> {
    let name = named(values, "queue name must be specified")?;
    cluster.delete(Kind::Queue, "", name).await.map(|()| String::new())
}

/// Opens, closes or changes a queue.
pub(super) async fn operate(cluster: &Cluster, values: &Values) -> Result<String, String> {
    let name = named(values, "queue name must be specified")?;
    match values.text("action") {
        "open" => cluster.command(Kind::Queue, "", name, "OpenQueue").await?,
        "close" => cluster.command(Kind::Queue, "", name, "CloseQueue").await?,
        "update" => {
            let weight = values.number("weight");
            if weight == 0 {
                return Err(format!("--weight of queue {name} must be specified and greater than 0"));
            }
            cluster.patch(Kind::Queue, name, json!({ "spec": { "weight": weight } })).await?;
        }
        "" => return Err("--action must be specified: one of open, close and update".to_owned()),
        action => {
            return Err(format!("action {action} invalid, valid actions are open, close and update"));
        }
    }
    Ok(String::new())
}

fn named<'a>(values: &'a Values, why: &str) -> Result<&'a str, String> {
    Some(values.text("name")).filter(|name| !name.is_empty()).ok_or_else(|| why.to_owned())
}

/// PodGroups by phase.
type Counts = BTreeMap<String, i64>;

/// One queue, with the PodGroups in it.
pub(super) async fn get(cluster: &Cluster, values: &Values) -> Result<String, String> {
    let name = named(values, "name is mandatory to get the particular queue details")?;
    rows(cluster, &[cluster.get(Kind::Queue, "", name).await?], &[]).await
}

/// All queues, with the PodGroups in them.
pub(super) async fn list(cluster: &Cluster) -> Result<String, String> {
    rows(cluster, &cluster.list(Kind::Queue, "").await?, &[]).await
}

/// All queues or one, in the columns of `vqueues`.
pub(super) async fn show(cluster: &Cluster, values: &Values) -> Result<String, String> {
    let queues = match values.text("name") {
        "" => cluster.list(Kind::Queue, "").await?,
        name => vec![cluster.get(Kind::Queue, "", name).await?],
    };
    rows(cluster, &queues, &["Parent", "Completed"]).await
}

/// A table of queues with the PodGroups in them, without some columns.
async fn rows(cluster: &Cluster, queues: &[Value], without: &[&str]) -> Result<String, String> {
    if queues.is_empty() {
        return Ok(NOTHING_FOUND.to_owned());
    }
    let counts = count(cluster).await?;
    let is_shown = |column: &Column| !without.contains(&column.header);
    let columns: Vec<Column> = COLUMNS.into_iter().filter(is_shown).collect();
    let row = |queue: &Value| {
        let cells = COLUMNS.iter().zip(row(queue, &counts));
        cells.filter(|(column, _)| is_shown(column)).map(|(_, cell)| cell).collect()
    };
    let rows: Vec<Vec<String>> = queues.iter().map(row).collect();
    Ok(table(&columns, &rows, &rows))
}

/// The phases of PodGroups that are counted, in the order of the columns.
const PHASES: [&str; 5] = ["Inqueue", "Pending", "Running", "Unknown", "Completed"];

const fn narrow(header: &'static str) -> Column {
    Column { header, width: Width::Fixed(8) }
}

const COLUMNS: [Column; 9] = [
    Column { header: "Name", width: Width::Fixed(25) },
    narrow("Weight"),
    narrow("State"),
    narrow("Parent"),
    narrow("Inqueue"),
    narrow("Pending"),
    narrow("Running"),
    narrow("Unknown"),
    narrow("Completed"),
];

fn row(queue: &Value, counts: &BTreeMap<String, Counts>) -> Vec<String> {
    let name = text(&queue["metadata"]["name"]);
    let in_phase = |phase: &&str| {
        counts.get(name).and_then(|of_queue| of_queue.get(*phase)).copied().unwrap_or(0).to_string()
    };
    let head = [
        name.to_owned(),
        number(&queue["spec"]["weight"]).to_string(),
        text(&queue["status"]["state"]).to_owned(),
        text(&queue["spec"]["parent"]).to_owned(),
    ];
    head.into_iter().chain(PHASES.iter().map(in_phase)).collect()
}

/// PodGroups of all namespaces by queue and phase.
async fn count(cluster: &Cluster) -> Result<BTreeMap<String, Counts>, String> {
    let groups = cluster.list(Kind::PodGroup, "").await;
    let groups = groups.map_err(|error| format!("cannot list the PodGroups of all namespaces: {error}"))?;
    let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
    for group in &groups {
        let of_queue = counts.entry(text(&group["spec"]["queue"]).to_owned()).or_default();
        *of_queue.entry(text(&group["status"]["phase"]).to_owned()).or_default() += 1;
    }
    Ok(counts)
}
