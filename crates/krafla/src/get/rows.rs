//! Objects as rows of a list. Jobs, CronJobs and JobFlows have columns of their own, the same for Volcano's and Kubernetes' kinds; all
//! others have those of the API server. Pure.

use std::collections::BTreeMap;

use krafla_api::labels::{QUEUE_NAME, WANTED_QUEUE};
use krafla_api::{Kind, Served, Time};
use krafla_apiserver::table::age;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::progress::phase_of_conditions;

/// What stands where a value is missing.
const NONE: &str = "<none>";

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Shown with `-o wide` only.
    pub(crate) is_wide: bool,
}

/// One object of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The one word for how it is doing; empty if it has none.
    pub(crate) phase: String,
    pub(crate) queue: String,
    pub(crate) created: Option<Time>,
    pub(crate) revision: String,
    /// In the order of the columns, wide ones too.
    pub(crate) cells: Vec<String>,
    /// The whole object, where a filter or an order needs it.
    pub(crate) object: Value,
}

/// A page of a list.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    pub(crate) revision: String,
    /// Where the next page begins; empty at the end.
    pub(crate) rest: String,
}

/// How rows are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Making {
    pub(crate) now: Time,
    /// Whether rows keep their object.
    pub(crate) keeps_objects: bool,
}

/// Whether a kind has columns of its own here.
pub(crate) fn has_own_columns(of: &Served) -> bool {
    matches!(of.known(), Some(Kind::VcJob | Kind::Job | Kind::VcCronJob | Kind::CronJob | Kind::JobFlow))
}

/// The columns of a kind that has its own.
pub(crate) fn own_columns(of: &Served) -> Vec<Column> {
    const JOB: [&str; 12] = [
        "NAME",
        "PHASE",
        "RUNNING",
        "DONE",
        "QUEUE",
        "AGE",
        "+PENDING",
        "+FAILED",
        "+MIN",
        "+RETRIES",
        "+DURATION",
        "+REASON",
    ];
    const CRON: [&str; 8] = ["NAME", "PHASE", "SCHEDULE", "ACTIVE", "LAST", "AGE", "+TIMEZONE", "+POLICY"];
    const FLOW: [&str; 7] = ["NAME", "PHASE", "DONE", "RUNNING", "FAILED", "AGE", "+RETAIN"];
    let names: &[&str] = match of.known() {
        Some(Kind::VcJob | Kind::Job) => &JOB,
        Some(Kind::VcCronJob | Kind::CronJob) => &CRON,
        _ => &FLOW,
    };
    let column = |name: &&str| match name.strip_prefix('+') {
        Some(name) => Column { name: name.to_owned(), is_wide: true },
        None => Column { name: (*name).to_owned(), is_wide: false },
    };
    names.iter().map(column).collect()
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    resource_version: String,
    creation_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

/// A job of either kind, narrowed to what a list shows: there may be ten thousand.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Job {
    metadata: Metadata,
    spec: JobSpec,
    status: JobStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct JobSpec {
    queue: String,
    min_available: i64,
    tasks: Vec<Task>,
    completions: Option<i64>,
    parallelism: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Task {
    replicas: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct JobStatus {
    state: State,
    pending: i64,
    running: i64,
    succeeded: i64,
    failed: i64,
    retry_count: i64,
    active: i64,
    ready: Option<i64>,
    start_time: Option<Time>,
    completion_time: Option<Time>,
    conditions: Vec<Condition>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct State {
    phase: String,
    reason: String,
    message: String,
    last_transition_time: Option<Time>,
}

/// A condition of a Kubernetes Job. In those of a Volcano Job, `status` is a phase.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    condition_type: String,
    status: String,
    reason: String,
    message: String,
    last_transition_time: Option<Time>,
}

#[derive(Deserialize)]
struct List<T> {
    metadata: ListMetadata,
    #[serde(default)]
    items: Option<Vec<T>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
    #[serde(rename = "continue")]
    rest: String,
}

/// Reads a page of a kind that has its own columns.
pub(crate) fn own_page(of: &Served, body: &[u8], making: Making) -> Result<Page, serde_json::Error> {
    let is_job = matches!(of.known(), Some(Kind::VcJob | Kind::Job));
    let (metadata, rows) = if is_job && !making.keeps_objects {
        let list: List<Job> = serde_json::from_slice(body)?;
        let rows = list.items.unwrap_or_default().into_iter().map(|job| job.row(of, making.now)).collect();
        (list.metadata, rows)
    } else {
        let list: List<Value> = serde_json::from_slice(body)?;
        let items = list.items.unwrap_or_default().into_iter();
        let rows = items.map(|object| row_of_value(of, object, making)).collect();
        (list.metadata, rows)
    };
    let ListMetadata { resource_version, rest } = metadata;
    Ok(Page { columns: own_columns(of), rows, revision: resource_version, rest })
}

/// Reads one object of a kind that has its own columns.
pub(crate) fn own_row(of: &Served, body: &[u8], making: Making) -> Result<Row, serde_json::Error> {
    Ok(row_of_value(of, serde_json::from_slice(body)?, making))
}

fn row_of_value(of: &Served, object: Value, making: Making) -> Row {
    let now = making.now;
    let row = match of.known() {
        Some(Kind::VcJob | Kind::Job) => Job::deserialize(&object).unwrap_or_default().row(of, now),
        Some(Kind::VcCronJob | Kind::CronJob) => row_of_cron_job(&object, now),
        _ => row_of_flow(&object, now),
    };
    Row { object: if making.keeps_objects { object } else { Value::Null }, ..row }
}

impl Job {
    fn row(self, of: &Served, now: Time) -> Row {
        let Job { metadata, spec, status } = self;
        let is_batch = of.known() == Some(Kind::Job);
        let is_true = |wanted: &str| {
            status.conditions.iter().find(|it| it.condition_type == wanted && it.status == "True")
        };
        let end = is_true("Complete").or_else(|| is_true("Failed"));
        let phase = if is_batch {
            let end = end.map(|end| end.condition_type.as_str());
            phase_of_conditions(end, is_true("Suspended").is_some(), status.start_time.is_some()).to_owned()
        } else if status.state.phase.is_empty() {
            "Pending".to_owned()
        } else {
            status.state.phase.clone()
        };
        let queue = if spec.queue.is_empty() { wanted_queue(&metadata) } else { spec.queue };
        let n_pods = if is_batch {
            // A Job without completions ends with the first pod that succeeds.
            spec.completions.or(spec.parallelism).unwrap_or(1)
        } else {
            spec.tasks.iter().map(|task| task.replicas.unwrap_or(1)).sum()
        };
        let running = if is_batch { status.ready.unwrap_or(status.active) } else { status.running };
        let pending = if is_batch { status.active.saturating_sub(running) } else { status.pending };
        let ended_at = if is_batch {
            status.completion_time.or_else(|| end.and_then(|end| end.last_transition_time))
        } else if is_final(&phase) {
            status.state.last_transition_time
        } else {
            None
        };
        let began_at = if is_batch { status.start_time } else { metadata.creation_timestamp };
        let duration = began_at.map_or(NONE.to_owned(), |began| age(Some(began), ended_at.unwrap_or(now)));
        let (reason, message) = match (is_batch, is_true("Failed")) {
            (true, Some(failed)) => (failed.reason.as_str(), failed.message.as_str()),
            (true, None) => ("", ""),
            (false, _) => (status.state.reason.as_str(), status.state.message.as_str()),
        };
        let reason =
            [reason, message].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
        let cells = vec![
            metadata.name.clone(),
            phase.clone(),
            running.to_string(),
            format!("{}/{n_pods}", status.succeeded),
            or_none(&queue),
            age(metadata.creation_timestamp, now),
            pending.to_string(),
            status.failed.to_string(),
            if is_batch { NONE.to_owned() } else { spec.min_available.to_string() },
            if is_batch { status.failed.to_string() } else { status.retry_count.to_string() },
            duration,
            or_none(&reason),
        ];
        Row { phase, queue, cells, ..Row::from(metadata) }
    }
}

/// The last row of an object that is gone.
pub(crate) fn deleted(of: &Served, mut row: Row) -> Row {
    const DELETED: &str = "Deleted";
    let phase =
        own_columns(of).iter().position(|column| column.name == "PHASE").filter(|_| has_own_columns(of));
    if let Some(cell) = phase.and_then(|index| row.cells.get_mut(index)) {
        *cell = DELETED.to_owned();
    }
    row
}

/// Whether a Volcano Job in this phase has ended.
fn is_final(phase: &str) -> bool {
    matches!(phase, "Completed" | "Failed" | "Terminated" | "Aborted")
}

fn or_none(text: &str) -> String {
    if text.is_empty() { NONE } else { text }.to_owned()
}

fn wanted_queue(metadata: &Metadata) -> String {
    let of = |map: &Option<BTreeMap<String, String>>, key: &str| {
        map.as_ref().and_then(|map| map.get(key)).cloned()
    };
    let queue = of(&metadata.annotations, WANTED_QUEUE).or_else(|| of(&metadata.labels, QUEUE_NAME));
    queue.or_else(|| of(&metadata.annotations, QUEUE_NAME)).unwrap_or_default()
}

impl From<Metadata> for Row {
    fn from(metadata: Metadata) -> Row {
        Row {
            namespace: metadata.namespace,
            name: metadata.name,
            created: metadata.creation_timestamp,
            revision: metadata.resource_version,
            ..Row::default()
        }
    }
}

fn metadata(object: &Value) -> Metadata {
    object.get("metadata").and_then(|metadata| Metadata::deserialize(metadata).ok()).unwrap_or_default()
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn n_items(object: &Value, pointer: &str) -> usize {
    object.pointer(pointer).and_then(Value::as_array).map_or(0, Vec::len)
}

fn row_of_cron_job(object: &Value, now: Time) -> Row {
    let metadata = metadata(object);
    let last = object.pointer("/status/lastScheduleTime").and_then(|at| Time::deserialize(at).ok());
    let is_suspended = object.pointer("/spec/suspend").and_then(Value::as_bool) == Some(true);
    let phase = match last {
        _ if is_suspended => "Suspended",
        Some(_) => "Scheduled",
        None => "Pending",
    };
    let cells = vec![
        metadata.name.clone(),
        phase.to_owned(),
        text(object, "/spec/schedule").to_owned(),
        n_items(object, "/status/active").to_string(),
        last.map_or(NONE.to_owned(), |last| age(Some(last), now)),
        age(metadata.creation_timestamp, now),
        or_none(text(object, "/spec/timeZone")),
        or_none(text(object, "/spec/concurrencyPolicy")),
    ];
    let queue = text(object, "/spec/jobTemplate/spec/queue").to_owned();
    Row { phase: phase.to_owned(), queue, cells, ..Row::from(metadata) }
}

fn row_of_flow(object: &Value, now: Time) -> Row {
    let metadata = metadata(object);
    let phase =
        Some(text(object, "/status/state/phase")).filter(|phase| !phase.is_empty()).unwrap_or("Pending");
    let cells = vec![
        metadata.name.clone(),
        phase.to_owned(),
        format!("{}/{}", n_items(object, "/status/completedJobs"), n_items(object, "/spec/flows")),
        n_items(object, "/status/runningJobs").to_string(),
        n_items(object, "/status/failedJobs").to_string(),
        age(metadata.creation_timestamp, now),
        or_none(text(object, "/spec/jobRetainPolicy")),
    ];
    Row { phase: phase.to_owned(), cells, ..Row::from(metadata) }
}

/// Reads a page that the server has laid out.
pub(crate) fn table_page(body: &[u8], making: Making) -> Result<Page, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Table<'a> {
        #[serde(default)]
        metadata: ListMetadata,
        #[serde(default)]
        column_definitions: Vec<Definition>,
        #[serde(borrow, default)]
        rows: Option<Vec<TableRow<'a>>>,
    }
    #[derive(Deserialize)]
    struct Definition {
        name: String,
        #[serde(default)]
        priority: i64,
    }
    #[derive(Deserialize)]
    struct TableRow<'a> {
        cells: Vec<Value>,
        #[serde(borrow)]
        object: Option<&'a RawValue>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Head {
        metadata: Metadata,
    }
    let table: Table<'_> = serde_json::from_slice(body)?;
    let columns: Vec<Column> = table
        .column_definitions
        .into_iter()
        .map(|column| Column { name: column.name.to_uppercase(), is_wide: column.priority > 0 })
        .collect();
    let status_at =
        columns.iter().position(|column| ["STATUS", "PHASE", "STATE"].contains(&column.name.as_str()));
    let queue_at = columns.iter().position(|column| column.name == "QUEUE");
    let row = |row: TableRow<'_>| {
        let json = row.object.map_or("{}", RawValue::get);
        let head = serde_json::from_str::<Head>(json).unwrap_or_default().metadata;
        let object: Value =
            if making.keeps_objects { serde_json::from_str(json).unwrap_or_default() } else { Value::Null };
        let cells: Vec<String> = row.cells.iter().map(cell).collect();
        let at = |index: Option<usize>| index.and_then(|index| cells.get(index)).cloned().unwrap_or_default();
        let queue = match text(&object, "/spec/queue") {
            "" if queue_at.is_some() => at(queue_at),
            "" => wanted_queue(&head),
            queue => queue.to_owned(),
        };
        Row { phase: at(status_at), queue, cells, object, ..Row::from(head) }
    };
    let rows = table.rows.unwrap_or_default().into_iter().map(row).collect();
    Ok(Page { columns, rows, revision: table.metadata.resource_version, rest: table.metadata.rest })
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::get::{Sheet, Shown};

    fn now() -> Time {
        serde_json::from_value(json!("2026-11-18T12:00:00Z")).unwrap()
    }

    fn making() -> Making {
        Making { now: now(), keeps_objects: false }
    }

    fn jobs() -> Vec<(Served, Value)> {
        let at = |minutes: u32| format!("2026-11-18T11:{minutes:02}:00Z");
        let vcjob = json!({
            "metadata": { "name": "train-a-large-language-model-on-a-lot-of-text", "namespace": "ml", "creationTimestamp": at(10) },
            "spec": { "queue": "research", "minAvailable": 3, "tasks": [{ "replicas": 1 }, { "replicas": 4 }] },
            "status": { "state": { "phase": "Running" }, "running": 4, "succeeded": 1, "retryCount": 2,
                        "conditions": [{ "status": "Pending" }] },
        });
        let failed = json!({
            "metadata": { "name": "eval", "namespace": "ml", "creationTimestamp": at(50) },
            "spec": { "queue": "default", "minAvailable": 1, "tasks": [{}] },
            "status": { "state": { "phase": "Failed", "reason": "TooFewSucceeded", "message": "0 of 1 tasks succeeded",
                                   "lastTransitionTime": at(52) }, "failed": 1 },
        });
        let batch = json!({
            "metadata": { "name": "index", "namespace": "web", "creationTimestamp": at(58) },
            "spec": { "completions": 10, "parallelism": 2 },
            "status": { "active": 2, "ready": 1, "succeeded": 3, "startTime": at(59) },
        });
        let of = |kind: Kind, object: Value| (Served::from(kind), object);
        vec![of(Kind::VcJob, vcjob), of(Kind::VcJob, failed), of(Kind::Job, batch)]
    }

    fn sheet(objects: &[(Served, Value)]) -> Sheet {
        let mut sheet = Sheet::default();
        for (of, object) in objects {
            let page = json!({ "metadata": { "resourceVersion": "7" }, "items": [object] });
            let page = own_page(of, page.to_string().as_bytes(), making()).unwrap();
            sheet.add(of, page, true);
        }
        sheet
    }

    #[test]
    fn jobs_of_both_kinds_stand_in_one_list() {
        let sheet = sheet(&jobs());
        let shown = |is_wide, width| {
            sheet.render(&Shown { is_wide, has_namespace: true, kind_in_name: None, has_header: true }, width)
        };
        expect![[r#"
            NAMESPACE   KIND    NAME               PHASE     RUNNING   DONE   QUEUE      AGE
            ml          vcjob   train-a-…of-text   Running   4         1/5    research   50m
            ml          vcjob   eval               Failed    0         0/1    default    10m
            web         job     index              Running   1         3/10   <none>     2m
        "#]]
        .assert_eq(&shown(false, Some(80)));
        expect![[r#"
            NAMESPACE   KIND    NAME                                            PHASE     RUNNING   DONE   QUEUE      AGE
            ml          vcjob   train-a-large-language-model-on-a-lot-of-text   Running   4         1/5    research   50m
            ml          vcjob   eval                                            Failed    0         0/1    default    10m
            web         job     index                                           Running   1         3/10   <none>     2m
        "#]].assert_eq(&shown(false, Some(120)));
        expect![[r#"
            NAMESPACE   KIND    NAME                                            PHASE     RUNNING   DONE   QUEUE      AGE   PENDING   FAILED   MIN      RETRIES   DURATION   REASON
            ml          vcjob   train-a-large-language-model-on-a-lot-of-text   Running   4         1/5    research   50m   0         0        3        2         50m        <none>
            ml          vcjob   eval                                            Failed    0         0/1    default    10m   0         1        1        0         2m         TooFewSucceeded: 0 of 1 tasks succeeded
            web         job     index                                           Running   1         3/10   <none>     2m    1         0        <none>   0         60s        <none>
        "#]].assert_eq(&shown(true, None));
    }

    #[test]
    fn cron_jobs_and_flows_have_columns_of_their_own() {
        let cron = json!({
            "metadata": { "name": "nightly", "namespace": "ml", "creationTimestamp": "2026-11-10T12:00:00Z" },
            "spec": { "schedule": "0 3 * * *", "timeZone": "Europe/Berlin", "concurrencyPolicy": "Forbid" },
            "status": { "active": [{}], "lastScheduleTime": "2026-11-18T02:00:00Z" },
        });
        let mut suspended = cron.clone();
        suspended["spec"]["suspend"] = json!(true);
        let both = [(Served::from(Kind::VcCronJob), cron), (Served::from(Kind::CronJob), suspended)];
        let wide = Shown { is_wide: true, has_namespace: false, kind_in_name: None, has_header: true };
        expect![[r#"
            KIND        NAME      PHASE       SCHEDULE    ACTIVE   LAST   AGE   TIMEZONE        POLICY
            vccronjob   nightly   Scheduled   0 3 * * *   1        10h    8d    Europe/Berlin   Forbid
            cronjob     nightly   Suspended   0 3 * * *   1        10h    8d    Europe/Berlin   Forbid
        "#]]
        .assert_eq(&sheet(&both).render(&wide, Some(120)));
        let flow = json!({
            "metadata": { "name": "etl", "namespace": "ml", "creationTimestamp": "2026-11-18T11:59:00Z" },
            "spec": { "flows": [{ "name": "a" }, { "name": "b" }], "jobRetainPolicy": "retain" },
            "status": { "state": { "phase": "Running" }, "completedJobs": ["etl-a"], "runningJobs": ["etl-b"] },
        });
        expect![[r#"
            KIND      NAME   PHASE     DONE   RUNNING   FAILED   AGE   RETAIN
            jobflow   etl    Running   1/2    1         0        60s   retain
        "#]]
        .assert_eq(&sheet(&[(Served::from(Kind::JobFlow), flow)]).render(&wide, Some(80)));
    }

    #[test]
    fn the_servers_tables_are_read_with_their_columns() {
        let table = json!({
            "metadata": { "resourceVersion": "9", "continue": "more" },
            "columnDefinitions": [{ "name": "Name" }, { "name": "Status" }, { "name": "Node", "priority": 1 }],
            "rows": [{ "cells": ["a", "Running", "n1"], "object": { "metadata": { "name": "a", "namespace": "ns",
                       "annotations": { "scheduling.volcano.sh/queue-name": "q" } } } }],
        });
        let page = table_page(table.to_string().as_bytes(), making()).unwrap();
        assert_eq!((page.rest.as_str(), page.revision.as_str()), ("more", "9"));
        assert!(page.columns[2].is_wide && !page.columns[1].is_wide);
        let row = &page.rows[0];
        assert_eq!([&row.namespace, &row.name, &row.phase, &row.queue], ["ns", "a", "Running", "q"]);
        assert!(table_page(b"<html>", making()).is_err());
    }

    #[test]
    fn a_job_that_no_controller_has_seen_is_pending() {
        for kind in [Kind::VcJob, Kind::Job] {
            let of = Served::from(kind);
            let row =
                own_row(&of, br#"{"metadata":{"name":"a","creationTimestamp":null},"spec":{}}"#, making());
            assert_eq!(row.unwrap().phase, "Pending");
        }
    }
}
