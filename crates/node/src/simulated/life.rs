//! What the containers of a simulated pod do: made up from its annotations, and from nothing else but the time.

use std::collections::BTreeMap;
use std::time::Duration;

use krafla_api::{GoDuration, Time};

use super::size::{ClusterSize, EXIT_CODES, exit_code};
use crate::container::{Cause, ContainerId, End, Record};
use crate::decide::{Action, Attempts, Decision, Sight, decide};
use crate::health::Health;
use crate::pod::{Container, Pod, RestartPolicy};
use crate::status::PodStatus;

/// How long the containers of a simulated pod run: `30s`, or `forever`.
pub const DURATION_ANNOTATION: &str = "krafla.dev/simulated-duration";
/// The exit code of the containers of a simulated pod.
pub const EXIT_CODE_ANNOTATION: &str = "krafla.dev/simulated-exit-code";

/// How the names of all annotations begin that say something of a simulation.
const PREFIX: &str = "krafla.dev/simulated-";
const ANNOTATIONS: [&str; 2] = [DURATION_ANNOTATION, EXIT_CODE_ANNOTATION];

/// 128 + SIGTERM: how a container ends that is told to.
const TERMINATED: i32 = 143;

/// How a pod's containers run and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Course {
    /// How long; none if they run until they are stopped.
    run_for: Option<Duration>,
    exit_code: i32,
}

impl Course {
    /// What a pod's annotations say, or else what is usual. The error says which of them makes no sense.
    pub(super) fn of(pod: &Pod, usually: &ClusterSize) -> Result<Course, String> {
        let annotations = &pod.metadata.annotations;
        let is_unknown = |name: &&String| name.starts_with(PREFIX) && !ANNOTATIONS.contains(&name.as_str());
        if let Some(unknown) = annotations.keys().find(is_unknown) {
            return Err(misspelt(unknown));
        }
        let said = |name: &str| annotations.get(name).map(String::as_str);
        let run_for =
            match said(DURATION_ANNOTATION) {
                // What is always started again is a service, and does not end by itself.
                None if pod.spec.restart_policy == RestartPolicy::Always => None,
                None => Some(usually.run_for),
                Some("forever") => None,
                Some(text) => {
                    let duration = text.parse::<GoDuration>().ok().filter(|it| !it.is_negative());
                    Some(duration.map(GoDuration::to_std).ok_or_else(|| {
                        bad(DURATION_ANNOTATION, text, "a duration such as 30s, or forever")
                    })?)
                }
            };
        let exit_code = match said(EXIT_CODE_ANNOTATION) {
            None => usually.exit_code,
            Some(text) => exit_code(text).ok_or_else(|| bad(EXIT_CODE_ANNOTATION, text, EXIT_CODES))?,
        };
        Ok(Course { run_for, exit_code })
    }

    /// When and how a container that started then ends by itself.
    fn end_of(&self, pod: &Pod, name: &str, started_at: Time) -> Option<(Time, i32)> {
        let init = pod.spec.init_containers.iter().find(|container| container.name == name);
        match init {
            Some(container) if container.is_sidecar() => None,
            // Only the containers proper take their time, and fail.
            Some(_) => Some((started_at, 0)),
            None => Some((started_at.after(self.run_for?), self.exit_code)),
        }
    }
}

fn bad(annotation: &str, text: &str, wanted: &str) -> String {
    format!("the annotation {annotation} is {text:?}, and must be {wanted}")
}

/// Nobody means an annotation of ours that there is not: the one that begins most like it is named.
fn misspelt(name: &str) -> String {
    let n_alike =
        |known: &&&str| known.bytes().zip(name.bytes()).take_while(|(known, said)| known == said).count();
    let meant = ANNOTATIONS.iter().max_by_key(n_alike).filter(|known| n_alike(known) > PREFIX.len());
    match meant {
        Some(meant) => format!("there is no annotation {name}, did you mean {meant}?"),
        None => format!("there is no annotation {name}, only {}", ANNOTATIONS.join(" and ")),
    }
}

/// What the containers of one pod have done.
#[derive(Debug)]
pub(super) struct Life {
    course: Course,
    attempts: Attempts,
    /// All containers that run are well.
    health: BTreeMap<String, Health>,
}

impl Life {
    /// Goes on from what a pod's status says: containers that ran still run.
    pub(super) fn of(pod: &Pod, course: Course, now: Time) -> Life {
        let well = |container| Health { is_started: true, is_ready: true, ..Health::at_start(container) };
        let health =
            pod.all_containers().map(|container| (container.name.clone(), well(container))).collect();
        let mut life = Life { course, attempts: Attempts::default(), health };
        for container in pod.all_containers() {
            let Some(status) = pod.status.container(&container.name) else { continue };
            if let Some(running) = &status.state.running {
                life.start(pod, container, status.restart_count, 0, running.started_at.unwrap_or(now));
            }
        }
        life.attempts.recover(pod, &pod.status, now.0);
        life
    }

    /// Lets things happen until now, and says what is to be reported.
    pub(super) fn until(&mut self, pod: &Pod, before: &PodStatus, pod_ip: &str, now: Time) -> Decision {
        loop {
            let next_end = self.end_what_is_over(pod, now);
            let mut decision = decide(&Sight {
                pod,
                before,
                attempts: &self.attempts,
                troubles: &BTreeMap::new(),
                health: &self.health,
                pre_stops: &BTreeMap::new(),
                is_gone: false,
                host_ip: "10.255.255.254",
                pod_ip,
                now,
            });
            if decision.actions.is_empty() {
                decision.wake_at = [decision.wake_at, next_end].into_iter().flatten().min();
                return decision;
            }
            for action in &decision.actions {
                self.carry_out(pod, action, now);
            }
        }
    }

    /// Containers whose time is over end. Returns when the next one will.
    fn end_what_is_over(&mut self, pod: &Pod, now: Time) -> Option<Time> {
        let ends: Vec<(Record, Time, i32)> = self
            .attempts
            .all_running()
            .filter_map(|record| {
                let (at, exit_code) = self.course.end_of(pod, &record.id.name, Time(record.started_at?))?;
                Some((record.clone(), at, exit_code))
            })
            .collect();
        let next = ends.iter().map(|(_, at, _)| *at).filter(|at| *at > now).min();
        for (record, at, exit_code) in ends {
            if at <= now {
                self.end(record, at, exit_code);
            }
        }
        next
    }

    fn carry_out(&mut self, pod: &Pod, action: &Action, now: Time) {
        match action {
            Action::Start { container, attempt, backoff_seconds } => {
                if let Some(container) = pod.all_containers().find(|known| known.name == *container) {
                    self.start(pod, container, *attempt, *backoff_seconds, now);
                }
            }
            // Hooks are not played, and whoever is told to end does so at once.
            Action::PreStop { container, .. } | Action::Stop { container, .. } => {
                if let Some(record) = self.attempts.running(container).cloned() {
                    self.end(record, now, TERMINATED);
                }
            }
        }
    }

    fn start(&mut self, pod: &Pod, container: &Container, attempt: u32, backoff_seconds: u32, at: Time) {
        let id = ContainerId { pod: pod.metadata.uid.clone(), name: container.name.clone(), attempt };
        self.attempts.insert(Record {
            id,
            backoff_seconds,
            grace_seconds: 0,
            pid: None,
            started_at: Some(at.0),
            address: None,
            is_unlimited: false,
            stopping_at: None,
            end: None,
        });
    }

    fn end(&mut self, record: Record, at: Time, exit_code: i32) {
        let end = End { at: at.0, exit_code, cause: Cause::Exited, message: String::new() };
        self.attempts.insert(Record { end: Some(end), ..record });
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn pod(policy: RestartPolicy, annotations: &[(&str, &str)]) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.annotations =
            annotations.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        pod.spec.restart_policy = policy;
        pod.spec.init_containers = vec![Container { name: "init".to_owned(), ..Container::default() }];
        pod.spec.containers = vec![Container { name: "main".to_owned(), ..Container::default() }];
        pod
    }

    fn usual() -> ClusterSize {
        ClusterSize { run_for: Duration::from_secs(10), ..ClusterSize::default() }
    }

    /// What a pod reports at these seconds, and when it wants to be looked at again.
    fn story(mut pod: Pod, seconds: &[i64]) -> String {
        let course = match Course::of(&pod, &usual()) {
            Ok(course) => course,
            Err(why) => return why,
        };
        let mut life = Life::of(&pod, course, Time::from_seconds(0));
        let mut lines = Vec::new();
        for second in seconds {
            let before = pod.status.clone();
            let decision = life.until(&pod, &before, "10.0.0.1", Time::from_seconds(*second));
            pod.status = decision.status;
            let restarts = pod.status.container("main").map_or(0, |status| status.restart_count);
            let wake = decision.wake_at.map_or("never".to_owned(), |at| at.to_string());
            lines.push(format!("{second} {:?} restarts {restarts}, again {wake}", pod.status.phase));
        }
        lines.join("\n")
    }

    #[test]
    fn a_pod_runs_its_time_and_ends_as_it_is_told() {
        let told = [(DURATION_ANNOTATION, "20s"), (EXIT_CODE_ANNOTATION, "3")];
        expect![[r#"
            0 Running restarts 0, again 1970-01-01T00:00:10Z
            9 Running restarts 0, again 1970-01-01T00:00:10Z
            10 Succeeded restarts 0, again never"#]]
        .assert_eq(&story(pod(RestartPolicy::Never, &[]), &[0, 9, 10]));
        expect![[r#"
            0 Running restarts 0, again 1970-01-01T00:00:20Z
            20 Failed restarts 0, again never"#]]
        .assert_eq(&story(pod(RestartPolicy::Never, &told), &[0, 20]));
    }

    #[test]
    fn what_may_be_started_again_is() {
        let told = [(EXIT_CODE_ANNOTATION, "1")];
        expect![[r#"
            0 Running restarts 0, again 1970-01-01T00:00:10Z
            10 Running restarts 1, again 1970-01-01T00:00:20Z
            20 Running restarts 1, again 1970-01-01T00:00:30Z"#]]
        .assert_eq(&story(pod(RestartPolicy::OnFailure, &told), &[0, 10, 20]));
        expect!["0 Running restarts 0, again never"].assert_eq(&story(pod(RestartPolicy::Always, &[]), &[0]));
    }

    #[test]
    fn a_pod_that_is_deleted_ends() {
        let mut deleted = pod(RestartPolicy::Never, &[(DURATION_ANNOTATION, "forever")]);
        let course = Course::of(&deleted, &usual()).unwrap();
        let mut life = Life::of(&deleted, course, Time::from_seconds(0));
        deleted.status =
            life.until(&deleted, &PodStatus::default(), "10.0.0.1", Time::from_seconds(0)).status;
        deleted.metadata.deletion_timestamp = Some(Time::from_seconds(5));
        let decision = life.until(&deleted, &deleted.status.clone(), "10.0.0.1", Time::from_seconds(5));
        assert_eq!(decision.next, crate::decide::Next::ConfirmDeletion);
        assert_eq!(decision.status.phase, crate::status::Phase::Failed);
    }

    #[test]
    fn after_a_restart_containers_run_on() {
        let mut running = pod(RestartPolicy::Never, &[]);
        let course = Course::of(&running, &usual()).unwrap();
        let mut life = Life::of(&running, course, Time::from_seconds(0));
        running.status =
            life.until(&running, &PodStatus::default(), "10.0.0.1", Time::from_seconds(0)).status;
        expect![[r#"
            4 Running restarts 0, again 1970-01-01T00:00:10Z
            10 Succeeded restarts 0, again never"#]]
        .assert_eq(&story(running, &[4, 10]));
    }

    #[test]
    fn an_annotation_that_makes_no_sense_is_named() {
        let bad = |name, value| story(pod(RestartPolicy::Never, &[(name, value)]), &[]);
        expect![[r#"the annotation krafla.dev/simulated-duration is "soon", and must be a duration such as 30s, or forever"#]]
            .assert_eq(&bad(DURATION_ANNOTATION, "soon"));
        assert!(bad(DURATION_ANNOTATION, "-5s").contains("must be a duration"));
        expect![[r#"the annotation krafla.dev/simulated-exit-code is "256", and must be a whole number from 0 to 255"#]]
            .assert_eq(&bad(EXIT_CODE_ANNOTATION, "256"));
    }

    #[test]
    fn a_misspelt_annotation_is_named_with_the_one_that_was_meant() {
        let misspelt = |name| story(pod(RestartPolicy::Never, &[(name, "1")]), &[]);
        expect![
            "there is no annotation krafla.dev/simulated-duraton, did you mean krafla.dev/simulated-duration?"
        ]
        .assert_eq(&misspelt("krafla.dev/simulated-duraton"));
        expect!["there is no annotation krafla.dev/simulated-exitcode, did you mean krafla.dev/simulated-exit-code?"]
            .assert_eq(&misspelt("krafla.dev/simulated-exitcode"));
        expect!["there is no annotation krafla.dev/simulated-luck, only krafla.dev/simulated-duration and krafla.dev/simulated-exit-code"]
            .assert_eq(&misspelt("krafla.dev/simulated-luck"));
    }

    #[test]
    fn pods_that_do_not_say_end_as_it_is_usual() {
        let failing = ClusterSize { exit_code: 3, ..usual() };
        let exit_code =
            |annotations| Course::of(&pod(RestartPolicy::Never, annotations), &failing).unwrap().exit_code;
        assert_eq!((exit_code(&[]), exit_code(&[(EXIT_CODE_ANNOTATION, "0")])), (3, 0));
    }
}
