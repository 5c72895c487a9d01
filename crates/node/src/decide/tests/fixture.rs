//! Pods and attempts from text: facts separated by commas, times as seconds.

use std::collections::BTreeMap;

use expect_test::Expect;
use jiff::Timestamp;
use krafla_api::Time;

use super::super::*;
use crate::container::{Cause, ContainerId};
use crate::health::{Check, Complaints, Failure};
use crate::pod::{ExitCodes, Handler, Probe, ReadinessGate, RestartRule};
use crate::status::{Condition, ContainerStatus, Phase};

/// Decides for the described pod and compares the printed decision.
#[track_caller]
pub(super) fn check(facts: &str, expected: Expect) {
    expected.assert_eq(&print(&World::parse(facts).decide()));
}

/// What is decided.
pub(super) fn decision_of(facts: &str) -> Decision {
    World::parse(facts).decide()
}

/// Compares the whole status as it would be written.
#[track_caller]
pub(super) fn status_of(facts: &str, expected: Expect) {
    let status = World::parse(facts).decide().status;
    expected.assert_eq(&serde_json::to_string_pretty(&status).unwrap());
}

/// Compares the starts that nobody was told of, in their order.
#[track_caller]
pub(super) fn starts_of(facts: &str, expected: &[&str]) {
    let starts = World::parse(facts).decide().starts;
    let starts: Vec<_> = starts.iter().map(|id| format!("{}/{}", id.name, id.attempt)).collect();
    assert_eq!(starts, expected);
}

/// Compares the conditions, one per line.
#[track_caller]
pub(super) fn conditions_of(facts: &str, expected: Expect) {
    let status = World::parse(facts).decide().status;
    let line = |condition: &Condition| {
        let Condition { condition_type, status, reason, message, .. } = condition;
        format!("{condition_type} {status} {reason} {message}").trim_end().to_owned() + "\n"
    };
    expected.assert_eq(&status.conditions.iter().map(line).collect::<String>());
}

#[derive(Default)]
struct World {
    pod: Pod,
    attempts: Attempts,
    troubles: BTreeMap<String, Trouble>,
    health: BTreeMap<String, Health>,
    pre_stops: BTreeMap<String, PreStop>,
    is_gone: bool,
    now: i64,
}

impl World {
    fn parse(facts: &str) -> World {
        let mut world = World::default();
        world.pod.metadata.name = "p".to_owned();
        world.pod.metadata.namespace = "ns".to_owned();
        world.pod.metadata.uid = "u".into();
        for fact in facts.split(',').map(str::trim) {
            let words: Vec<_> = fact.split_whitespace().collect();
            world.learn(&words);
        }
        world
    }

    fn decide(&self) -> Decision {
        decide(&Sight {
            pod: &self.pod,
            before: &self.pod.status,
            attempts: &self.attempts,
            troubles: &self.troubles,
            health: &self.health,
            pre_stops: &self.pre_stops,
            is_gone: self.is_gone,
            host_ip: "127.0.0.1",
            pod_ip: "127.64.0.1",
            now: Time::from_seconds(self.now),
        })
    }

    fn learn(&mut self, words: &[&str]) {
        let spec = &mut self.pod.spec;
        let named = |name: &str| Container {
            name: name.to_owned(),
            image: "busybox".to_owned(),
            ..Container::default()
        };
        match words {
            ["policy", name] => spec.restart_policy = policy(name),
            ["init", name] => spec.init_containers.push(named(name)),
            ["sidecar", name] => spec
                .init_containers
                .push(Container { restart_policy: Some(RestartPolicy::Always), ..named(name) }),
            ["container", name] => spec.containers.push(named(name)),
            ["ephemeral", name] => spec.ephemeral_containers.push(named(name)),
            ["container", name, "policy", own, rules @ ..] => {
                let restart_policy_rules = match rules {
                    [rule @ ("restarts-on" | "restarts-all-on"), code] => {
                        let exit_codes =
                            ExitCodes { operator: "In".to_owned(), values: vec![number(code) as i32] };
                        let action = if *rule == "restarts-on" { "Restart" } else { "RestartAllContainers" };
                        vec![RestartRule { action: action.to_owned(), exit_codes }]
                    }
                    _ => Vec::new(),
                };
                let restart_policy = Some(policy(own));
                spec.containers.push(Container { restart_policy, restart_policy_rules, ..named(name) });
            }
            ["grace", seconds] => spec.termination_grace_period_seconds = Some(number(seconds)),
            ["deadline", seconds] => spec.active_deadline_seconds = Some(number(seconds)),
            ["started", at] => self.pod.status.start_time = Some(Time::from_seconds(number(at))),
            ["phase", "Failed"] => self.pod.status.phase = Phase::Failed,
            ["deleting", at] => self.pod.metadata.deletion_timestamp = Some(Time::from_seconds(number(at))),
            ["gate", condition_type] => {
                spec.readiness_gates.push(ReadinessGate { condition_type: (*condition_type).to_owned() });
            }
            ["condition", condition_type, status] => self.pod.status.conditions.push(Condition {
                condition_type: (*condition_type).to_owned(),
                status: (*status).to_owned(),
                ..Condition::default()
            }),
            ["reported", attempt] => {
                let id = record(attempt, &["0.."]).id;
                self.pod.status.container_statuses.push(ContainerStatus {
                    container_id: id.reported(),
                    restart_count: id.attempt,
                    name: id.name,
                    ..ContainerStatus::default()
                });
            }
            ["generation", number_of] => self.pod.metadata.generation = number(number_of),
            ["observed", number_of] => self.pod.status.observed_generation = number(number_of),
            ["asks", name, cpu] => {
                let container = spec.containers.iter_mut().find(|container| container.name == *name).unwrap();
                container.resources.requests.insert("cpu".to_owned(), cpu.parse().unwrap());
            }
            ["gone"] => self.is_gone = true,
            ["now", at] => self.now = number(at),
            ["trouble", name, "until", at] => {
                let message = "configmap \"c\" not found".to_owned();
                let retry_at = Time::from_seconds(number(at));
                let trouble = Trouble { reason: "CreateContainerConfigError", message, retry_at };
                self.troubles.insert((*name).to_owned(), trouble);
            }
            ["probes", name] => {
                let mut all = spec.init_containers.iter_mut().chain(&mut spec.containers);
                let container = all.find(|container| container.name == *name).unwrap();
                container.startup_probe = Some(Probe::default());
                container.readiness_probe = Some(Probe::default());
                container.liveness_probe = Some(Probe::default());
            }
            ["hook", name] => {
                let container = spec.containers.iter_mut().find(|container| container.name == *name).unwrap();
                container.lifecycle.pre_stop = Some(Handler::default());
            }
            ["hook", name, "begun", at, rest @ ..] => {
                let hook = PreStop {
                    begun_at: Time::from_seconds(number(at)),
                    is_done: !rest.is_empty(),
                    failure: rest.contains(&"failed").then(|| "exit code 1".to_owned()),
                };
                self.pre_stops.insert((*name).to_owned(), hook);
            }
            ["health", name, words @ ..] => {
                let failure = Failure { of: Check::Liveness, grace_seconds: Some(5) };
                let mut health = Health {
                    is_started: words.contains(&"started"),
                    is_ready: words.contains(&"ready"),
                    complaints: Complaints::default(),
                    failure: words.contains(&"failed").then_some(failure),
                };
                if words.contains(&"failed") || words.contains(&"failing") {
                    health.complaints.add(Check::Liveness, "no");
                }
                self.health.insert((*name).to_owned(), health);
            }
            [attempt, rest @ ..] => self.attempts.insert(record(attempt, rest)),
            [] => {}
        }
    }
}

/// `main/0 10..20 exit 1 backoff 10 stopping 15`, with `oom` if it wanted too much memory, `unlimited` if its
/// limits can not be kept; or `main/0 fails at 10`.
fn record(attempt: &str, words: &[&str]) -> Record {
    let (name, attempt) = attempt.split_once('/').unwrap();
    let value = |word: &str| words.iter().skip_while(|w| **w != word).nth(1).map(|value| number(value));
    let span = words.iter().find_map(|word| word.split_once(".."));
    let end = |at: i64, exit_code: i64, cause, message: &str| End {
        at: second(at),
        exit_code: exit_code as i32,
        cause,
        message: message.to_owned(),
    };
    Record {
        id: ContainerId { pod: "u".into(), name: name.to_owned(), attempt: attempt.parse().unwrap() },
        backoff_seconds: value("backoff").unwrap_or(0) as u32,
        address: None,
        is_unlimited: words.contains(&"unlimited"),
        grace_seconds: 30,
        pid: None,
        started_at: span.map(|(start, _)| second(number(start))),
        stopping_at: value("stopping").map(second),
        end: match span {
            None => Some(end(value("at").unwrap(), 128, Cause::NotStarted, "no such command")),
            Some((_, "")) => None,
            Some((_, at)) => {
                let cause = if words.contains(&"oom") { Cause::OutOfMemory } else { Cause::Exited };
                Some(end(number(at), value("exit").unwrap(), cause, ""))
            }
        },
    }
}

fn policy(name: &str) -> RestartPolicy {
    match name {
        "Always" => RestartPolicy::Always,
        "OnFailure" => RestartPolicy::OnFailure,
        "Never" => RestartPolicy::Never,
        other => panic!("no restart policy: {other}"),
    }
}

fn number(text: &str) -> i64 {
    text.parse().unwrap_or_else(|_| panic!("not a number: {text}"))
}

fn second(at: i64) -> Timestamp {
    Timestamp::from_second(at).unwrap()
}

fn print(decision: &Decision) -> String {
    let mut lines = Vec::new();
    for action in &decision.actions {
        lines.push(match action {
            Action::Start { container, attempt, backoff_seconds: 0 } => {
                format!("start {container} #{attempt}")
            }
            Action::Start { container, attempt, backoff_seconds } => {
                format!("start {container} #{attempt} backoff {backoff_seconds}")
            }
            Action::PreStop { container, attempt, .. } => format!("pre-stop {container} #{attempt}"),
            Action::Stop { container, attempt, how: Stop::Terminate } => {
                format!("terminate {container} #{attempt}")
            }
            Action::Stop { container, attempt, how: Stop::Kill } => format!("kill {container} #{attempt}"),
        });
    }
    let status = &decision.status;
    let reason =
        if status.reason.is_empty() { "" } else { &format!(" {}: {}", status.reason, status.message) };
    lines.push(format!("{:?}{reason}", status.phase));
    let own = status.init_container_statuses.iter().chain(&status.container_statuses);
    lines.extend(own.chain(&status.ephemeral_container_statuses).map(container));
    lines.extend(
        decision.notes.iter().map(|note| format!("{:?} {}: {}", note.severity, note.reason, note.message)),
    );
    match decision.next {
        Next::Wait => {}
        Next::ConfirmDeletion => lines.push("then confirm the deletion".to_owned()),
        Next::CleanUp => lines.push("then clean up".to_owned()),
    }
    lines.extend(decision.wake_at.map(|at| format!("wake at {}", at.0.as_second())));
    lines.join("\n") + "\n"
}

fn container(status: &ContainerStatus) -> String {
    let bracket = |message: &str| if message.is_empty() { String::new() } else { format!(" ({message})") };
    let ended = |state: &crate::status::ContainerState| {
        state.terminated.as_ref().map(|t| format!("{} {}{}", t.reason, t.exit_code, bracket(&t.message)))
    };
    let mut text = format!("{}: ", status.name);
    if let Some(waiting) = &status.state.waiting {
        text += &format!("waiting {}{}", waiting.reason, bracket(&waiting.message));
    }
    if status.state.running.is_some() {
        text += "running";
    }
    text += &ended(&status.state).unwrap_or_default();
    text += &ended(&status.last_state).map(|last| format!(", was {last}")).unwrap_or_default();
    if status.ready {
        text += ", ready";
    }
    if status.restart_count > 0 {
        text += &format!(", restarts {}", status.restart_count);
    }
    text
}
