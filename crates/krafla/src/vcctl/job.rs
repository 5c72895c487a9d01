//! Jobs: `vcctl job`, `vsub`, `vjobs`, `vcancel`, `vsuspend`, `vresume`.

use std::path::Path;

use jiff::tz::TimeZone;
use krafla_api::{Kind, Quantity, Time};
use serde_json::{Map, Value, json};

use super::cluster::Cluster;
use super::flags::Values;
use super::table::{Column, NOTHING_FOUND, Width, table};
use crate::get::compare_cells;
use crate::manifest;
use crate::printable;

/// The label that names the kind of work that a job does.
const JOB_TYPE: &str = "volcano.sh/job-type";

/// Creates a job: that of the file, if one is given, or else one of the flags.
pub(super) async fn run(cluster: &Cluster, values: &Values) -> Result<String, String> {
    let (name, file) = (values.text("name"), values.text("filename"));
    if name.is_empty() && file.is_empty() {
        return Err("job name cannot be left blank".to_owned());
    }
    let resources = Resources::of(values)?;
    let job = if file.is_empty() { described(values, resources, Vec::new()) } else { of_file(file)? };
    create(cluster, values, job).await
}

/// Creates a job with a command.
pub(super) async fn submit(cluster: &Cluster, values: &Values) -> Result<String, String> {
    if values.text("name").is_empty() {
        return Err("job name cannot be left blank".to_owned());
    }
    let resources = Resources::of(values)?;
    let command = shlex::split(values.text("command")).ok_or_else(|| {
        format!("--command {:?} ends within quotes or after a backslash", values.text("command"))
    })?;
    create(cluster, values, described(values, resources, command)).await
}

async fn create(cluster: &Cluster, values: &Values, job: Value) -> Result<String, String> {
    let created = cluster.create(Kind::VcJob, values.text("namespace"), job).await?;
    Ok(format!("run job {} successfully\n", text(&created["metadata"]["name"])))
}

/// Requests and limits of a container.
struct Resources {
    requests: Map<String, Value>,
    limits: Map<String, Value>,
}

impl Resources {
    fn of(values: &Values) -> Result<Resources, String> {
        Ok(Resources { requests: amounts(values.text("requests"))?, limits: amounts(values.text("limits"))? })
    }
}

/// Amounts of resources: `cpu=1,memory=1Gi`.
fn amounts(list: &str) -> Result<Map<String, Value>, String> {
    let amount = |entry: &str| match entry.split('=').collect::<Vec<_>>()[..] {
        [resource, amount] => {
            let amount: Quantity = amount
                .parse()
                .map_err(|_| format!("{entry}: {amount:?} is not a quantity such as 500m or 1Gi"))?;
            Ok((resource.to_owned(), amount.to_string().into()))
        }
        _ => Err(format!("invalid argument syntax {entry}, expected <resource>=<value>")),
    };
    if list.is_empty() { Ok(Map::new()) } else { list.split(',').map(amount).collect() }
}

/// The job that the flags describe.
fn described(values: &Values, resources: Resources, command: Vec<String>) -> Value {
    let name = values.text("name");
    let mut container = json!({ "name": name, "imagePullPolicy": "IfNotPresent" });
    let mut set = |field: &str, value: Value, is_empty: bool| {
        if !is_empty {
            container[field] = value;
        }
    };
    set("image", values.text("image").into(), values.text("image").is_empty());
    set("command", command.clone().into(), command.is_empty());
    let mut amounts = Map::new();
    for (field, of) in [("requests", resources.requests), ("limits", resources.limits)] {
        if !of.is_empty() {
            amounts.insert(field.to_owned(), of.into());
        }
    }
    set("resources", amounts.into(), false);
    let template = json!({
        "metadata": { "name": name, "labels": { "job.volcano.sh": name } },
        "spec": { "restartPolicy": "Never", "containers": [container] },
    });
    let mut task = json!({ "template": template });
    let mut spec = json!({ "schedulerName": values.text("scheduler") });
    // The tools cut numbers to 32 bits, and leave out what is 0.
    for (object, field, flag) in [(&mut task, "replicas", "replicas"), (&mut spec, "minAvailable", "min")] {
        let number = values.number(flag) as i32;
        if number != 0 {
            object[field] = number.into();
        }
    }
    spec["tasks"] = json!([task]);
    json!({ "metadata": { "name": name, "namespace": values.text("namespace") }, "spec": spec })
}

/// The job of a file: of its first document, of whatever kind that says it is.
fn of_file(file: &str) -> Result<Value, String> {
    if ![".yaml", ".yml"].iter().any(|ending| file.contains(ending)) {
        return Err(format!("{file}: the name of the file must end with .yaml or .yml"));
    }
    let text =
        manifest::read_text(Path::new(file)).map_err(|error| format!("cannot read {file}: {error:#}"))?;
    let documents = manifest::documents(&text);
    let Some((n_lines_before, document)) = documents.first() else { return Ok(json!({})) };
    object(file, *n_lines_before, document)
}

/// The object in a document.
pub(super) fn object(file: &str, n_lines_before: usize, document: &str) -> Result<Value, String> {
    match manifest::parse(document, n_lines_before) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err(format!("{file}: must hold objects, each with metadata and spec")),
        Err(error) => Err(format!("{file}: {error}")),
    }
}

/// Lists jobs. `vjobs` sizes columns by all jobs of the namespace, `vcctl` by those that it shows.
pub(super) async fn list(cluster: &Cluster, values: &Values, sizes_by_all: bool) -> Result<String, String> {
    let is_everywhere = values.is_on("all-namespaces");
    let namespace = if is_everywhere { "" } else { values.text("namespace") };
    let jobs = cluster.list(Kind::VcJob, namespace).await?;
    let is_of = |wanted: &str, found: &Value| wanted.is_empty() || text(found) == wanted;
    let is_shown = |job: &&Value| {
        is_of(values.text("queue"), &job["spec"]["queue"])
            && is_of(values.text("scheduler"), &job["spec"]["schedulerName"])
            && text(&job["metadata"]["name"]).contains(values.text("selector"))
            && (values.text("phase").is_empty()
                || text(&job["status"]["state"]["phase"]).eq_ignore_ascii_case(values.text("phase")))
    };
    let with_reason = values.is_on("show-reason");
    let row = |job: &Value| row(job, is_everywhere, with_reason);
    let mut shown: Vec<Vec<String>> = jobs.iter().filter(is_shown).map(row).collect();
    if shown.is_empty() {
        return Ok(NOTHING_FOUND.to_owned());
    }
    let all: Vec<Vec<String>> = jobs.iter().map(row).collect();
    let mut columns = if is_everywhere { COLUMNS.to_vec() } else { COLUMNS[1..].to_vec() };
    if with_reason {
        columns.push(Column { header: "Reason", width: Width::Longest(0) });
    }
    sort(&mut shown, &columns, values.text("sort-by"))?;
    Ok(table(&columns, &shown, if sizes_by_all { &all } else { &shown }))
}

/// Sorts rows by a column; numbers by their size.
fn sort(rows: &mut [Vec<String>], columns: &[Column], by: &str) -> Result<(), String> {
    if by.is_empty() {
        return Ok(());
    }
    let Some(index) = columns.iter().position(|column| column.header.eq_ignore_ascii_case(by)) else {
        let names: Vec<String> = columns.iter().map(|column| column.header.to_lowercase()).collect();
        return Err(format!("--sort-by: there is no column {by:?}; columns: {}", names.join(", ")));
    };
    let cell = |row: &Vec<String>| row.get(index).cloned().unwrap_or_default();
    rows.sort_by(|a, b| compare_cells(&cell(a), &cell(b)));
    Ok(())
}

const COLUMNS: [Column; 13] = [
    Column { header: "Namespace", width: Width::Longest(3) },
    Column { header: "Name", width: Width::Longest(3) },
    Column { header: "Creation", width: Width::Fixed(15) },
    Column { header: "Phase", width: Width::Fixed(12) },
    Column { header: "JobType", width: Width::Fixed(12) },
    Column { header: "Replicas", width: Width::Fixed(12) },
    Column { header: "Min", width: Width::Fixed(6) },
    Column { header: "Pending", width: Width::Fixed(10) },
    Column { header: "Running", width: Width::Fixed(10) },
    Column { header: "Succeeded", width: Width::Fixed(12) },
    Column { header: "Failed", width: Width::Fixed(10) },
    Column { header: "Unknown", width: Width::Fixed(12) },
    Column { header: "RetryCount", width: Width::Fixed(10) },
];

fn row(job: &Value, with_namespace: bool, with_reason: bool) -> Vec<String> {
    let (metadata, status) = (&job["metadata"], &job["status"]);
    let created: Option<Time> = serde_json::from_value(metadata["creationTimestamp"].clone()).ok();
    let created = created.map(|at| at.0.to_zoned(TimeZone::system()).strftime("%Y-%m-%d").to_string());
    let job_type = text(&metadata["labels"][JOB_TYPE]);
    let replicas: i64 = each(&job["spec"]["tasks"]).map(|task| number(&task["replicas"])).sum();
    let mut row = Vec::with_capacity(COLUMNS.len());
    if with_namespace {
        row.push(text(&metadata["namespace"]).to_owned());
    }
    row.extend([
        text(&metadata["name"]).to_owned(),
        created.unwrap_or_default(),
        text(&status["state"]["phase"]).to_owned(),
        if job_type.is_empty() { "Batch" } else { job_type }.to_owned(),
        replicas.to_string(),
    ]);
    let counts = ["minAvailable", "pending", "running", "succeeded", "failed", "unknown", "retryCount"];
    row.extend(counts.iter().map(|count| number(&status[*count]).to_string()));
    if with_reason {
        let state = &status["state"];
        let reason = [text(&state["reason"]), text(&state["message"])];
        let reason: Vec<&str> = reason.into_iter().filter(|part| !part.is_empty()).collect();
        row.push(printable::plain(&reason.join(": ")));
    }
    row
}

/// Asks the controllers to abort or resume a job, or deletes it; `verb` names what the user asked for.
pub(super) async fn act(cluster: &Cluster, values: &Values, verb: &str) -> Result<String, String> {
    let (name, namespace) = (values.text("name"), values.text("namespace"));
    if name.is_empty() {
        return Err(format!("job name is mandatory to {verb} a particular job"));
    }
    match verb {
        "suspend" => cluster.command(Kind::VcJob, namespace, name, "AbortJob").await?,
        "resume" => cluster.command(Kind::VcJob, namespace, name, "ResumeJob").await?,
        _ => {
            cluster.delete(Kind::VcJob, namespace, name).await?;
            return Ok(format!("{verb} job {name} successfully\n"));
        }
    }
    Ok(String::new())
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(super) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// The elements of a list; none of anything else.
pub(super) fn each(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_by_a_column_and_numbers_by_their_size() {
        let columns = [COLUMNS[1], COLUMNS[8]];
        let row = |name: &str, running: &str| vec![name.to_owned(), running.to_owned()];
        let sorted = |by: &str| {
            let mut rows = [row("b", "9"), row("a", "10")];
            sort(&mut rows, &columns, by).map(|()| rows.map(|row| row[0].clone()).join(" "))
        };
        assert_eq!(sorted(""), Ok("b a".to_owned()));
        assert_eq!(sorted("name"), Ok("a b".to_owned()));
        assert_eq!(sorted("Running"), Ok("b a".to_owned()));
        assert_eq!(
            sorted("size"),
            Err("--sort-by: there is no column \"size\"; columns: name, running".to_owned())
        );
    }

    #[test]
    fn a_reason_is_a_column_of_its_own() {
        let job = json!({ "metadata": { "name": "a" }, "status": { "state": { "reason": "R", "message": "two\nlines" } } });
        assert_eq!(row(&job, false, true).last().unwrap(), "R: two lines");
        assert_eq!(row(&job, false, false).len(), COLUMNS.len() - 1);
    }

    #[test]
    fn amounts_are_a_list_of_resources_in_their_canonical_form() {
        let shown = |list: &str| amounts(list).map(|amounts| Value::from(amounts).to_string());
        assert_eq!(shown("cpu=0.5,memory=1024Mi"), Ok(r#"{"cpu":"500m","memory":"1Gi"}"#.to_owned()));
        assert_eq!(shown("cpu=1,cpu=2"), Ok(r#"{"cpu":"2"}"#.to_owned()));
        assert_eq!(shown(""), Ok("{}".to_owned()));
        for wrong in ["cpu", "cpu=1=2", "cpu=1,"] {
            assert!(shown(wrong).unwrap_err().contains("expected <resource>=<value>"), "{wrong}");
        }
        for wrong in ["cpu=", "cpu=abc", "memory=1GiB"] {
            assert!(shown(wrong).unwrap_err().contains("is not a quantity"), "{wrong}");
        }
    }
}
