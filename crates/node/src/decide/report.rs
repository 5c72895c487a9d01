//! What a kubelet would report: phase, conditions and container states, in its words.

use krafla_api::Time;

use super::{Fate, NO_VOLUMES, Sight, Why, backoff, is_passed, may_restart};
use crate::container::{Cause, End, Record};
use crate::pod::Container;
use crate::status::{
    Condition, ContainerState, ContainerStatus, Ip, Phase, PodStatus, Running, Terminated, Waiting,
};

pub(super) fn status(sight: &Sight<'_>, fate: &Fate) -> PodStatus {
    let before = sight.before;
    let of = |containers: &[Container], is_init| -> Vec<ContainerStatus> {
        containers.iter().map(|container| container_status(sight, fate, container, is_init)).collect()
    };
    let mut status = PodStatus {
        observed_generation: observed_generation(sight, fate),
        conditions: before.conditions.clone(),
        host_ip: sight.host_ip.to_owned(),
        host_ips: vec![Ip { ip: sight.host_ip.to_owned() }],
        pod_ip: sight.pod_ip.to_owned(),
        pod_ips: vec![Ip { ip: sight.pod_ip.to_owned() }],
        start_time: before.start_time.or(Some(sight.now.whole_seconds())),
        init_container_statuses: of(&sight.pod.spec.init_containers, true),
        container_statuses: of(&sight.pod.spec.containers, false),
        ephemeral_container_statuses: of(&sight.pod.spec.ephemeral_containers, false),
        ..PodStatus::default()
    };
    let verdict = verdict(sight, fate, &status);
    (status.phase, status.reason, status.message) = (verdict.phase, verdict.reason, verdict.message);
    set_conditions(sight, &mut status);
    status
}

/// Which version of the pod this is about. The deletion of a pod is a new version of it, too: of that alone is told with the next
/// thing that there is to tell, for else every pod would cost a write more.
fn observed_generation(sight: &Sight<'_>, fate: &Fate) -> i64 {
    let is_only_news = match fate {
        Fate::End(Why::Finished) => true,
        Fate::End(_) | Fate::Live => sight.pod.is_deleting() && sight.attempts.any_running(),
    };
    if is_only_news { sight.before.observed_generation } else { sight.pod.metadata.generation }
}

struct Verdict {
    phase: Phase,
    reason: String,
    message: String,
}

impl From<Phase> for Verdict {
    fn from(phase: Phase) -> Verdict {
        Verdict { phase, reason: String::new(), message: String::new() }
    }
}

/// The phase. It becomes final only when nothing runs any more, and never changes after that.
fn verdict(sight: &Sight<'_>, fate: &Fate, status: &PodStatus) -> Verdict {
    let before = sight.before;
    let why = match fate {
        Fate::End(Why::Finished) => {
            let (reason, message) = (before.reason.clone(), before.message.clone());
            return Verdict { phase: before.phase, reason, message };
        }
        Fate::End(why) if !sight.attempts.any_running() => why,
        Fate::End(_) | Fate::Live => return phase_of_living(sight, status).into(),
    };
    match why {
        Why::DeadlineExceeded => Verdict {
            phase: Phase::Failed,
            reason: "DeadlineExceeded".to_owned(),
            message: "Pod was active on the node longer than the specified deadline".to_owned(),
        },
        Why::InitFailed => Phase::Failed.into(),
        Why::Deleted | Why::Completed | Why::Finished => {
            let succeeded = |container: &Container| {
                sight.attempts.latest_end(&container.name).is_some_and(|end| end.exit_code == 0)
            };
            let all_succeeded = sight.pod.spec.containers.iter().all(succeeded);
            if all_succeeded { Phase::Succeeded.into() } else { Phase::Failed.into() }
        }
    }
}

fn phase_of_living(sight: &Sight<'_>, status: &PodStatus) -> Phase {
    let is_initialized = sight.pod.spec.init_containers.iter().all(|container| is_passed(sight, container));
    // A container that waits after a failure counts as one that has run.
    let has_run =
        |status: &ContainerStatus| status.state.waiting.is_none() || status.last_state.terminated.is_some();
    if is_initialized && status.container_statuses.iter().all(has_run) {
        Phase::Running
    } else {
        Phase::Pending
    }
}

fn container_status(sight: &Sight<'_>, fate: &Fate, container: &Container, is_init: bool) -> ContainerStatus {
    let mut status = ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone(),
        started: Some(false),
        stop_signal: container.lifecycle.stop_signal.clone(),
        ..ContainerStatus::default()
    };
    let Some(record) = sight.attempts.latest(&container.name) else {
        status.state.waiting = Some(waiting_for_first_start(sight, container));
        return status;
    };
    status.allocated_resources = container.resources.requests.clone();
    status.resources = container.resources.clone();
    status.restart_count = record.id.attempt;
    status.container_id = record.id.reported();
    let previous =
        record.id.attempt.checked_sub(1).and_then(|attempt| sight.attempts.get(&container.name, attempt));
    status.last_state = match previous.and_then(|record| Some((record, record.end.as_ref()?))) {
        Some((record, end)) => terminated(record, end),
        None => remembered_last_state(sight, record),
    };
    match &record.end {
        None => {
            status.state.running = Some(Running { started_at: record.started_at.map(Time) });
            let health = sight.health(container);
            status.ready = health.is_started && health.is_ready;
            status.started = Some(health.is_started);
        }
        Some(end) => {
            let restarts = *fate == Fate::Live && may_restart(sight.pod, container, is_init, end);
            match waiting_for_restart(sight, container, record, end).filter(|_| restarts) {
                Some(waiting) => {
                    status.last_state = terminated(record, end);
                    status.state.waiting = Some(waiting);
                }
                None => status.state = terminated(record, end),
            }
            // An init container that has done its work is ready, in a kubelet's sense.
            status.ready = is_init && end.exit_code == 0 && !container.is_sidecar();
        }
    }
    status
}

fn waiting_for_first_start(sight: &Sight<'_>, container: &Container) -> Waiting {
    if let Some(trouble) = sight.troubles.get(&container.name) {
        return Waiting { reason: trouble.reason.to_owned(), message: trouble.message.clone() };
    }
    let has_init = !sight.pod.spec.init_containers.is_empty();
    let reason = if has_init { "PodInitializing" } else { "ContainerCreating" };
    Waiting { reason: reason.to_owned(), message: String::new() }
}

/// Why a container that ended is not started again at once; none if it is.
fn waiting_for_restart(
    sight: &Sight<'_>,
    container: &Container,
    record: &Record,
    end: &End,
) -> Option<Waiting> {
    if let Some(trouble) = sight.troubles.get(&container.name) {
        return Some(Waiting { reason: trouble.reason.to_owned(), message: trouble.message.clone() });
    }
    if backoff::restart_at(record, end) <= sight.now {
        return None;
    }
    let metadata = &sight.pod.metadata;
    let message = format!(
        "back-off {} restarting failed container={} pod={}_{}({})",
        go_duration(record.backoff_seconds),
        container.name,
        metadata.name,
        metadata.namespace,
        metadata.uid
    );
    Some(Waiting { reason: "CrashLoopBackOff".to_owned(), message })
}

/// `1m20s`, as Go prints it.
fn go_duration(seconds: u32) -> String {
    let (minutes, rest) = (seconds / 60, seconds % 60);
    if minutes == 0 { format!("{rest}s") } else { format!("{minutes}m{rest}s") }
}

/// What was reported before of the attempt before, if its record is gone.
fn remembered_last_state(sight: &Sight<'_>, record: &Record) -> ContainerState {
    let before = sight.before.container(&record.id.name);
    before
        .filter(|status| status.restart_count == record.id.attempt)
        .map_or_else(ContainerState::default, |status| status.last_state.clone())
}

fn terminated(record: &Record, end: &End) -> ContainerState {
    let reason = match (end.cause, end.exit_code) {
        (Cause::Exited, 0) => "Completed",
        (Cause::Exited, _) => "Error",
        (Cause::NotStarted, _) => "StartError",
        (Cause::Lost, _) => "ContainerStatusUnknown",
        (Cause::OutOfMemory, _) => "OOMKilled",
    };
    let terminated = Terminated {
        exit_code: end.exit_code,
        reason: reason.to_owned(),
        message: end.message.clone(),
        started_at: record.started_at.map(Time),
        finished_at: Some(Time(end.at)),
        container_id: record.id.reported(),
    };
    ContainerState { terminated: Some(terminated), ..ContainerState::default() }
}

fn set_conditions(sight: &Sight<'_>, status: &mut PodStatus) {
    // Not before its volumes are there, nor once all of it is over.
    let lacks_volumes = sight.troubles.values().any(|trouble| trouble.reason == NO_VOLUMES);
    let may_start = !status.phase.is_finished() && !lacks_volumes;
    let incomplete = names(&sight.pod.spec.init_containers, |container| !is_passed(sight, container));
    let initialized = if status.phase == Phase::Succeeded {
        Judgement::new(true, "PodCompleted")
    } else if incomplete.is_empty() {
        Judgement::new(true, "")
    } else {
        let message = format!("containers with incomplete status: [{incomplete}]");
        Judgement { message, ..Judgement::new(false, "ContainersNotInitialized") }
    };
    // Sidecars serve too.
    let sidecars = sight.pod.spec.init_containers.iter().filter(|container| container.is_sidecar());
    let unready = names(sidecars.chain(&sight.pod.spec.containers), |container| {
        status.container(&container.name).is_none_or(|status| !status.ready)
    });
    let containers_ready = match status.phase {
        Phase::Succeeded => Judgement::new(false, "PodCompleted"),
        Phase::Failed => Judgement::new(false, "PodFailed"),
        Phase::Pending | Phase::Running | Phase::Unknown if unready.is_empty() => Judgement::new(true, ""),
        Phase::Pending | Phase::Running | Phase::Unknown => {
            let message = format!("containers with unready status: [{unready}]");
            Judgement { message, ..Judgement::new(false, "ContainersNotReady") }
        }
    };
    let closed = closed_gates(sight, status);
    let ready = if containers_ready.holds && !closed.is_empty() {
        Judgement { message: closed, ..Judgement::new(false, "ReadinessGatesNotReady") }
    } else {
        containers_ready.clone()
    };
    set_condition(status, "PodReadyToStartContainers", Judgement::new(may_start, ""), sight.now);
    set_condition(status, "Initialized", initialized, sight.now);
    set_condition(status, "Ready", ready, sight.now);
    set_condition(status, "ContainersReady", containers_ready, sight.now);
    set_condition(status, "PodScheduled", Judgement::new(true, ""), sight.now);
}

/// What others have yet to say of the pod before it is ready; empty if nothing.
fn closed_gates(sight: &Sight<'_>, status: &PodStatus) -> String {
    let gates = sight.pod.spec.readiness_gates.iter().map(|gate| gate.condition_type.as_str());
    let closed = gates.filter_map(|gate| match status.condition(gate).map(|found| found.status.as_str()) {
        None => Some(format!("corresponding condition of pod readiness gate {gate:?} does not exist.")),
        Some("True") => None,
        Some(other) => {
            Some(format!("the status of pod readiness gate {gate:?} is not \"True\", but {other}"))
        }
    });
    closed.collect::<Vec<_>>().join(", ")
}

fn names<'a>(
    containers: impl IntoIterator<Item = &'a Container>,
    is_meant: impl Fn(&Container) -> bool,
) -> String {
    let names: Vec<_> = containers.into_iter().filter(|c| is_meant(c)).map(|c| c.name.as_str()).collect();
    names.join(" ")
}

#[derive(Clone)]
struct Judgement {
    holds: bool,
    reason: &'static str,
    message: String,
}

impl Judgement {
    fn new(holds: bool, reason: &'static str) -> Judgement {
        Judgement { holds, reason, message: String::new() }
    }
}

/// Replaces our own condition in its place, and leaves those of others alone.
fn set_condition(status: &mut PodStatus, condition_type: &str, judgement: Judgement, now: Time) {
    let before = status.conditions.iter_mut().find(|condition| condition.condition_type == condition_type);
    let holds = if judgement.holds { "True" } else { "False" };
    let is_unchanged = before.as_ref().is_some_and(|condition| condition.status == holds);
    let since = before.as_ref().and_then(|condition| condition.last_transition_time).filter(|_| is_unchanged);
    let condition = Condition {
        condition_type: condition_type.to_owned(),
        observed_generation: status.observed_generation,
        status: holds.to_owned(),
        reason: judgement.reason.to_owned(),
        message: judgement.message,
        last_transition_time: since.or(Some(now.whole_seconds())),
        others: before.as_ref().map(|condition| condition.others.clone()).unwrap_or_default(),
    };
    match before {
        Some(before) => *before = condition,
        None => status.conditions.push(condition),
    }
}
