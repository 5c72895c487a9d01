//! Pods of jobs: `vcctl pod list`.

use krafla_api::Kind;

use super::cluster::{Cluster, Row};
use super::flags::Values;
use super::job::text;
use super::table::{Column, NOTHING_FOUND, Width, table};

const JOB: &str = "volcano.sh/job-name";
const QUEUE: &str = "volcano.sh/queue-name";
const QUEUE_ANNOTATION: &str = "scheduling.volcano.sh/queue-name";

/// Lists the pods of jobs. The server renders them, as for `kubectl get pods`.
pub(super) async fn list(cluster: &Cluster, values: &Values) -> Result<String, String> {
    let is_everywhere = values.is_on("all-namespaces");
    let namespace = if is_everywhere { "" } else { values.text("namespace") };
    let (job, queue) = (values.text("job"), values.text("queue"));
    let selector = match (job, queue) {
        ("", "") => JOB.to_owned(),
        ("", _) => String::new(),
        (job, _) => format!("{JOB} in ({job})"),
    };
    let mut pods = cluster.rows(Kind::Pod, namespace, &selector).await?;
    if !job.is_empty() && !queue.is_empty() {
        let is_elsewhere = |pod: &Row| {
            let label = text(&pod.metadata()["labels"][QUEUE]);
            !label.is_empty() && label != queue
        };
        if pods.iter().any(is_elsewhere) {
            return Err(format!("the input vcjob {job} does not match the queue {queue}"));
        }
    } else if !queue.is_empty() {
        pods.retain(|pod| {
            let metadata = pod.metadata();
            text(&metadata["labels"][QUEUE]) == queue
                || text(&metadata["annotations"][QUEUE_ANNOTATION]) == queue
        });
    }
    if pods.is_empty() {
        return Ok(NOTHING_FOUND.to_owned());
    }
    let key = |pod: &Row| {
        let metadata = pod.metadata();
        (text(&metadata["namespace"]).to_owned(), text(&metadata["name"]).to_owned())
    };
    pods.sort_by_cached_key(key);
    let row = |pod: &Row| {
        let namespace = is_everywhere.then(|| text(&pod.metadata()["namespace"]).to_owned());
        let cells = ["Name", "Ready", "Status", "Restarts", "Age"].map(|column| pod.cell(column));
        namespace.into_iter().chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = pods.iter().map(row).collect();
    let columns = ["Namespace", "Name", "Ready", "Status", "Restart", "Age"]
        .map(|header| Column { header, width: Width::LongestOrHeader(8, 2) });
    Ok(table(if is_everywhere { &columns } else { &columns[1..] }, &rows, &rows))
}
