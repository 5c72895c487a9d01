//! Whether all that a flow waits for has completed, or counts as ready before that by the signs that it names.
//!
//! Signs are phases of the target's pods, which are seen, and answers of the target's pods, which are asked for. Pods are
//! asked only once all of a task run, and nobody but pods of the target's own job is ever asked.

use krafla_api::volcano::{HttpGet as WantedGet, JobPhase, Probe as Signs, TaskStatus, TcpSocket};
use krafla_api::{Kind, labels};

use super::Flow;
use super::jobs::{Jobs, Seen};
use crate::object::{Pod, PodPhase};
use crate::probe::{HttpGet, Probe};
use crate::{Answer, Note, Object, Objects, Plan, Severity, Snapshot};

/// How many questions one flow may hang on. It bounds what one manifest can make this program dial.
const QUESTIONS_MAX: usize = 1000;

/// Whether all that this flow waits for is ready. What must be asked to know goes into the plan.
pub(super) fn is_ready(step: &Flow, jobs: &Jobs<'_>, snapshot: &Snapshot<'_>, plan: &mut Plan) -> bool {
    let Some(depends_on) = &step.depends_on else { return true };
    depends_on.targets.iter().all(|target| {
        jobs.phase(target) == Some(&JobPhase::Completed)
            || match (jobs.get(target), &depends_on.probe) {
                (Some(job), Some(signs)) if !job.is_gone && !is_empty(signs) => {
                    signs.task_status_list.iter().all(|wanted| has_reached(job, wanted))
                        && has_answered(step, job, signs, snapshot, plan)
                }
                _ => false,
            }
    })
}

/// Whether a flow asks pods: then it must look again when they change.
pub(super) fn asks_pods(step: &Flow) -> bool {
    let signs = step.depends_on.iter().filter_map(|depends_on| depends_on.probe.as_ref());
    signs.into_iter().any(|signs| !signs.http_get_list.is_empty() || !signs.tcp_socket_list.is_empty())
}

fn is_empty(signs: &Signs) -> bool {
    let Signs { http_get_list, tcp_socket_list, task_status_list } = signs;
    http_get_list.is_empty() && tcp_socket_list.is_empty() && task_status_list.is_empty()
}

/// Whether all pods of the task are in the phase.
fn has_reached(job: &Seen<'_>, wanted: &TaskStatus) -> bool {
    let task = job.job.status.task_status_count.get(&wanted.task_name);
    let n_in_phase = task.and_then(|task| task.phase.get(&wanted.phase)).copied().unwrap_or(0);
    let replicas = job.job.spec.tasks.iter().find(|task| task.name == wanted.task_name);
    n_in_phase > 0 && replicas.is_some_and(|task| n_in_phase >= task.replicas)
}

/// Whether all pods that the signs name have given a good answer.
fn has_answered(
    step: &Flow,
    job: &Seen<'_>,
    signs: &Signs,
    snapshot: &Snapshot<'_>,
    plan: &mut Plan,
) -> bool {
    let questions = match questions(job, signs, snapshot.objects) {
        Ok(questions) => questions,
        Err(Unasked::PodsAreMissing) => return false,
        Err(Unasked::Never(why)) => {
            let message = format!(
                "flow {} waits for job {} to complete, because {why}; correct dependsOn.probe",
                step.name, job.object.meta.key.name
            );
            plan.notes.push(Note { severity: Severity::Warning, reason: "SyncJobFlow", message });
            return false;
        }
    };
    let answers = || questions.iter().map(|question| snapshot.answers.get(question));
    let is_ready = answers().all(|answer| answer.is_some_and(Answer::is_good));
    // What is due now is asked now, and its answer leads to the next look.
    let ask_again_at =
        answers().flatten().filter_map(Answer::ask_again_at).filter(|at| *at > snapshot.now).min();
    plan.wake_at = [plan.wake_at, ask_again_at].into_iter().flatten().min();
    if let Some(failure) = answers().flatten().find_map(|answer| answer.failure.as_ref()) {
        let message =
            format!("flow {} waits until job {} answers: {failure}", step.name, job.object.meta.key.name);
        plan.notes.push(Note { severity: Severity::Normal, reason: "WaitingForProbe", message });
    }
    plan.probes.extend(questions);
    is_ready
}

/// Why pods are not asked.
enum Unasked {
    /// They do not all run yet.
    PodsAreMissing,
    /// It would be of no use, and why.
    Never(String),
}

fn questions(job: &Seen<'_>, signs: &Signs, objects: &Objects) -> Result<Vec<Probe>, Unasked> {
    let gets = signs.http_get_list.iter().map(|get| {
        let WantedGet { task_name, path, port, http_header } = get;
        let headers = http_header.iter().map(|header| (header.name.clone(), header.value.clone())).collect();
        // A request without a port goes to HTTP's own.
        let port = if *port == 0 { 80 } else { *port };
        (task_name, port, Some(HttpGet { path: path.clone(), headers }))
    });
    let sockets = signs.tcp_socket_list.iter().map(|TcpSocket { task_name, port }| (task_name, *port, None));
    let mut questions = Vec::new();
    for (task, port, http_get) in gets.chain(sockets) {
        let port = u16::try_from(port).ok().filter(|port| *port != 0);
        let port =
            port.ok_or_else(|| Unasked::Never("nothing can listen at the port that it names".into()))?;
        for (object, pod) in running_pods(job, task, objects)? {
            let address = pod.status.pod_ip.ok_or(Unasked::PodsAreMissing)?;
            let pod = object.meta.uid.clone();
            questions.push(Probe { pod, address, port, http_get: http_get.clone() });
        }
    }
    if questions.len() > QUESTIONS_MAX {
        let why = format!("{} questions are more than the {QUESTIONS_MAX} that are asked", questions.len());
        return Err(Unasked::Never(why));
    }
    Ok(questions)
}

/// The pods of a task, or of all tasks if none is named, once all of them run.
fn running_pods<'a>(
    job: &Seen<'_>,
    task: &str,
    objects: &'a Objects,
) -> Result<Vec<(&'a Object, &'a Pod)>, Unasked> {
    let tasks = job.job.spec.tasks.iter().filter(|of_job| task.is_empty() || of_job.name == task);
    let replicas: Vec<i32> = tasks.map(|task| task.replicas).collect();
    if replicas.is_empty() {
        return Err(Unasked::Never(format!("the job has no task {task:?}")));
    }
    let n_wanted: i64 = replicas.into_iter().map(i64::from).sum();
    let pods = objects.children(&job.object.meta.uid, Kind::Pod).filter(|object| {
        let of_task = object.meta.annotations.get(labels::TASK_SPEC);
        !object.meta.is_deleting() && (task.is_empty() || of_task == Some(task))
    });
    let running = pods.filter_map(|object| {
        let pod = object.as_pod().filter(|pod| pod.status.phase == PodPhase::Running)?;
        Some((object.as_ref(), pod))
    });
    let running: Vec<_> = running.collect();
    let n_running = i64::try_from(running.len()).unwrap_or(i64::MAX);
    if running.is_empty() || n_running < n_wanted { Err(Unasked::PodsAreMissing) } else { Ok(running) }
}
