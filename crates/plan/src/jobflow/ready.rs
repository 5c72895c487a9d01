//! Readiness of a step's targets: completed, or ready by their probes.
//!
//! Signs are phases of the target's pods, which are seen, and answers of the target's pods, which are asked for. Pods are
//! asked only once all of a task run, and nobody but pods of the target's own job is ever asked.

use std::cell::LazyCell;
use std::collections::BTreeSet;

use krafla_api::volcano::{
    FlowDependsOn, HttpGet as WantedGet, JobPhase, Probe as Signs, TaskSpec, TaskStatus, TcpSocket,
};
use krafla_api::{Kind, labels};

use super::Flow;
use super::jobs::{Jobs, Seen};
use crate::object::{Pod, PodPhase};
use crate::probe::{HttpGet, Probe};
use crate::{Answer, Note, Object, Objects, Plan, Snapshot};

/// How many questions one flow may hang on. It bounds what one manifest can make this program dial.
const QUESTIONS_MAX: usize = 1000;

/// The phases in which a task's pods are counted.
const PHASES: [&str; 5] = ["Pending", "Running", "Succeeded", "Failed", "Unknown"];

/// Whether all that this flow waits for is ready. What must be asked to know goes into the plan.
///
/// Of several targets, each shows the signs of the tasks that it has. One that has none of them must complete.
pub(super) fn is_ready(step: &Flow, jobs: &Jobs<'_>, snapshot: &Snapshot<'_>, plan: &mut Plan) -> bool {
    let Some(depends_on) = &step.depends_on else { return true };
    let mistake = LazyCell::new(|| mistake(depends_on, jobs));
    depends_on.targets.iter().all(|target| {
        let has_completed = jobs.phase(target) == Some(&JobPhase::Completed);
        let (false, Some(signs)) = (has_completed, &depends_on.probe) else { return has_completed };
        if let Some(mistake) = &*mistake {
            let message = format!(
                "flow {} waits for its targets to complete, because {mistake}; correct dependsOn.probe",
                step.name
            );
            plan.notes.push(Note::warning("SyncJobFlow", message));
            return false;
        }
        jobs.get(target).filter(|job| !job.is_gone && has_task_of(job, signs)).is_some_and(|job| {
            let mut reached = signs.task_status_list.iter().filter(|wanted| has_task(job, &wanted.task_name));
            reached.all(|wanted| has_reached(job, wanted)) && has_answered(step, job, signs, snapshot, plan)
        })
    })
}

/// Why these signs will never be seen, if so. As long as a target is not there, nobody knows what tasks it will have.
fn mistake(depends_on: &FlowDependsOn, jobs: &Jobs<'_>) -> Option<String> {
    let signs = depends_on.probe.as_ref()?;
    let ports = signs.http_get_list.iter().filter_map(|get| port_of(get).is_none().then_some(get.port));
    let sockets = signs.tcp_socket_list.iter().map(|socket| socket.port);
    if let Some(port) = ports.chain(sockets.filter(|port| valid_port(*port).is_none())).next() {
        return Some(format!("nothing can listen at port {port}"));
    }
    let mut phases = signs.task_status_list.iter().map(|wanted| &wanted.phase);
    if let Some(phase) = phases.find(|phase| !PHASES.contains(&phase.as_str())) {
        return Some(format!("pods have no phase {phase:?}"));
    }
    let targets: Vec<&Seen<'_>> =
        depends_on.targets.iter().map(|target| jobs.get(target)).collect::<Option<_>>()?;
    let unknown = task_names(signs).find(|task| !targets.iter().any(|job| has_task(job, task)))?;
    Some(format!("none of them has a task {unknown:?}"))
}

fn task_names(signs: &Signs) -> impl Iterator<Item = &str> {
    let gets = signs.http_get_list.iter().map(|get| &get.task_name);
    let sockets = signs.tcp_socket_list.iter().map(|socket| &socket.task_name);
    let phases = signs.task_status_list.iter().map(|wanted| &wanted.task_name);
    gets.chain(sockets).chain(phases).map(String::as_str)
}

/// The port that a request goes to: without one, HTTP's own.
fn port_of(get: &WantedGet) -> Option<u16> {
    if get.port == 0 { Some(80) } else { valid_port(get.port) }
}

fn valid_port(port: i32) -> Option<u16> {
    u16::try_from(port).ok().filter(|port| *port != 0)
}

/// The tasks of a job that a sign is about: the one that it names, or all if it names none.
fn tasks_of<'a>(job: &Seen<'a>, task: &str) -> impl Iterator<Item = &'a TaskSpec> {
    job.job.spec.tasks.iter().filter(move |of_job| task.is_empty() || of_job.name == task)
}

fn has_task(job: &Seen<'_>, task: &str) -> bool {
    tasks_of(job, task).next().is_some()
}

/// Whether any of the signs are about this job.
fn has_task_of(job: &Seen<'_>, signs: &Signs) -> bool {
    task_names(signs).any(|task| has_task(job, task))
}

/// Whether a flow asks pods: then it must look again when they change.
pub(super) fn asks_pods(step: &Flow) -> bool {
    let signs = step.depends_on.iter().filter_map(|depends_on| depends_on.probe.as_ref());
    signs.into_iter().any(|signs| !signs.http_get_list.is_empty() || !signs.tcp_socket_list.is_empty())
}

/// Whether all pods of the task are in the phase.
fn has_reached(job: &Seen<'_>, wanted: &TaskStatus) -> bool {
    let n_in_phase = |task: &TaskSpec| {
        let counts = job.job.status.task_status_count.get(&task.name);
        counts.and_then(|counts| counts.phase.get(&wanted.phase)).copied().unwrap_or(0)
    };
    let mut tasks = tasks_of(job, &wanted.task_name);
    tasks.all(|task| n_in_phase(task) > 0 && n_in_phase(task) >= task.replicas)
}

/// Whether all pods that the signs name have given a good answer.
fn has_answered(
    step: &Flow,
    job: &Seen<'_>,
    signs: &Signs,
    snapshot: &Snapshot<'_>,
    plan: &mut Plan,
) -> bool {
    let Some(questions) = questions(job, signs, snapshot.objects) else { return false };
    let n_questions = plan.probes.len() + questions.difference(&plan.probes).count();
    if n_questions > QUESTIONS_MAX {
        let message = format!(
            "flow {} waits for job {} to complete, because {n_questions} questions of one JobFlow are more than the \
             {QUESTIONS_MAX} that are asked at a time; ask fewer in dependsOn.probe",
            step.name, job.object.meta.key.name
        );
        plan.notes.push(Note::warning("SyncJobFlow", message));
        return false;
    }
    let answers = || questions.iter().map(|question| snapshot.answers.get(question));
    let is_ready = answers().all(|answer| answer.is_some_and(Answer::is_good));
    // What is due now is asked now, and its answer leads to the next look.
    let ask_again_at =
        answers().flatten().filter_map(Answer::ask_again_at).filter(|at| *at > snapshot.now).min();
    plan.wake_at = [plan.wake_at, ask_again_at].into_iter().flatten().min();
    if let Some(failure) = answers().flatten().find_map(|answer| answer.failure.as_ref()) {
        let message =
            format!("flow {} waits until job {} answers: {failure}", step.name, job.object.meta.key.name);
        plan.notes.push(Note::normal("WaitingForProbe", message));
    }
    plan.probes.extend(questions);
    is_ready
}

/// What the signs ask of a job's pods; none as long as not all of these run.
fn questions(job: &Seen<'_>, signs: &Signs, objects: &Objects) -> Option<BTreeSet<Probe>> {
    let gets = signs.http_get_list.iter().map(|get| {
        let WantedGet { task_name, path, http_header, .. } = get;
        let headers = http_header.iter().map(|header| (header.name.clone(), header.value.clone())).collect();
        (task_name, port_of(get), Some(HttpGet { path: path.clone(), headers }))
    });
    let sockets = signs
        .tcp_socket_list
        .iter()
        .map(|TcpSocket { task_name, port }| (task_name, valid_port(*port), None));
    let mut questions = BTreeSet::new();
    for (task, port, http_get) in gets.chain(sockets).filter(|(task, ..)| has_task(job, task)) {
        for (object, pod) in running_pods(job, task, objects)? {
            let (pod, address) = (object.meta.uid.clone(), pod.status.pod_ip?);
            questions.insert(Probe { pod, address, port: port?, http_get: http_get.clone() });
        }
    }
    Some(questions)
}

/// The pods of a task, or of all tasks if none is named, once all of them run.
fn running_pods<'a>(job: &Seen<'_>, task: &str, objects: &'a Objects) -> Option<Vec<(&'a Object, &'a Pod)>> {
    let n_wanted: i64 = tasks_of(job, task).map(|task| i64::from(task.replicas)).sum();
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
    (!running.is_empty() && n_running >= n_wanted).then_some(running)
}
