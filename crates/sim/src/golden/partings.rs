//! Faults of Volcano's after which its history and ours go separate ways: each stands for an entry of DEVIATIONS.md, and is told by
//! what was done and by what differs, not by the name of a sequence.

use krafla_api::volcano::JobPhase;
use serde_json::Value;

use super::compare::Difference;
use super::rules::Case;

type Rule = fn(&Parting<'_>) -> bool;

/// The entries, and whether the histories part by one.
const PARTINGS: &[(&str, Rule)] = &[
    ("B1, B15 to B18, B47", |it| it.has_policy(|policy| policy.has_timeout)),
    ("B22, B28", |it| {
        it.was_any("Restarting")
            && it.is_commanded(&["AbortJob", "CompleteJob", "TerminateJob", "RestartJob"])
    }),
    ("B48", |it| it.has_policy(|policy| policy.action == "RestartPartition")),
    ("B36", |it| {
        it.is_podgroup_set("Unknown")
            && it.has_policy(|policy| policy.is_about("Unknown") && is_part(policy.action))
    }),
    ("B6", |it| {
        it.is_podgroup_set("Unknown")
            && it.has_policy(|policy| policy.is_about("Unknown"))
            && it.has_restarted()
    }),
    ("B12", |it| it.has_policy(|policy| policy.exit_code.is_some()) && it.has_two_containers()),
    ("B50", |it| it.are_pods_made_too_early()),
    ("B8", |it| it.waits() && it.is_only_within(&["jobs/*/status", "jobflows/*/status", "phases"])),
    // A job ends here although its PodGroup waits, and what it needed goes.
    ("B8", |it| it.waits() && it.has_job_ended_only_here()),
    ("B29", |it| it.has_dotted_name() && it.has_volumes()),
    ("B4", |it| it.was_done("scale") && it.has_policy(|policy| policy.is_about("PodEvicted"))),
    ("B13", |it| it.is_finished_pod_removed() || it.has_pod_ended_on_demand()),
    ("B23", |it| {
        it.was_commanded("ResumeJob")
            && (it.is_phase_recorded("Failed") || it.passed_recorded("Restarting > Failed"))
    }),
    ("B41", |it| it.is_phase_recorded("Failed") && it.has_policy(|policy| is_part(policy.action))),
    // Version 1.14.1 makes a new PodGroup when a part of a job restarts; later ones do not.
    ("1.14.1", |it| it.has_policy(|policy| is_part(policy.action)) && it.is_podgroup_renewed()),
    ("B25", |it| it.has_policies() && it.are_several_pods_concerned()),
    ("C21", |it| it.is_kept_open_by_completed_gangs()),
    ("C1", |it| it.has_flow() && it.was_deleted("Job")),
    ("C3, C8", |it| it.has_flow() && (it.lacks_template() || it.was_deleted("JobTemplate"))),
    ("C24", |it| it.is_queue_blocked()),
    // Volcano knows pods by the names of their jobs: those that a job left behind are those of the next one.
    ("B20, B21", |it| it.has_left_orphans()),
    ("B39", |it| it.has_dependency_that_does_not_run()),
    ("C28", |it| it.is_only_within(&["podgroups"]) && it.has_object("ReplicaSet")),
    ("B38", |it| it.is_podgroup_missed()),
    ("B38", |it| it.is_deleted("PodGroup") || it.is_deleted("Service") || it.is_deleted("ConfigMap")),
];

/// The entry of DEVIATIONS.md by which the histories part, if they are meant to.
pub(super) fn parting(case: &Case<'_>, differences: &[Difference]) -> Option<&'static str> {
    let step = differences.first()?.step;
    let parting = Parting { case, step, differences };
    PARTINGS.iter().find(|(_, rule)| rule(&parting)).map(|(entry, _)| *entry)
}

/// The first step after which the two differ in a way that no rule about single fields explains.
struct Parting<'a> {
    case: &'a Case<'a>,
    step: usize,
    differences: &'a [Difference],
}

/// A policy of a job or a task.
struct Policy<'a> {
    events: Vec<&'a str>,
    exit_code: Option<i64>,
    action: &'a str,
    has_timeout: bool,
}

impl Policy<'_> {
    fn is_about(&self, event: &str) -> bool {
        self.events.iter().any(|it| *it == event || *it == "*")
    }
}

impl<'a> Parting<'a> {
    /// What was done just now, one thing after the other.
    fn deeds(&self) -> Vec<&'a Value> {
        let entry = self.case.record.entries.get(self.step);
        entry.map(|entry| flat(&entry.deed)).unwrap_or_default()
    }

    /// Everything that was done so far.
    fn deeds_so_far(&self) -> impl Iterator<Item = &'a Value> {
        self.case.record.entries.iter().take(self.step + 1).flat_map(|entry| flat(&entry.deed))
    }

    /// The recorded state before.
    fn before(&self) -> &'a Value {
        let before = self.step.checked_sub(1).and_then(|step| self.case.record.entries.get(step));
        before.map_or(&Value::Null, |entry| &entry.state)
    }

    /// The jobs, with or without a life of their own.
    fn jobs(&self) -> impl Iterator<Item = &'a Value> {
        self.case.record.objects.iter().filter(|object| object["kind"] == "Job").map(|job| &job["spec"])
    }

    fn policies(&self) -> impl Iterator<Item = Policy<'a>> {
        self.jobs().flat_map(|spec| {
            let of_tasks = list(&spec["tasks"]).flat_map(|task| list(&task["policies"]));
            list(&spec["policies"]).chain(of_tasks).map(|policy| Policy {
                events: list(&policy["events"])
                    .chain(policy.get("event"))
                    .filter_map(Value::as_str)
                    .collect(),
                exit_code: policy["exitCode"].as_i64(),
                action: policy["action"].as_str().unwrap_or_default(),
                has_timeout: policy.get("timeout").is_some(),
            })
        })
    }

    fn has_policy(&self, is_meant: impl Fn(&Policy<'_>) -> bool) -> bool {
        self.policies().any(|policy| is_meant(&policy))
    }

    fn has_two_containers(&self) -> bool {
        let mut tasks = self.jobs().flat_map(|spec| list(&spec["tasks"]));
        tasks.any(|task| list(&task["template"]["spec"]["containers"]).count() > 1)
    }

    /// Whether a job was in this phase before, or passed through it.
    fn was_any(&self, phase: &str) -> bool {
        let mut jobs = self.before()["jobs"].as_object().into_iter().flatten();
        jobs.any(|(_, job)| job["status"]["state"]["phase"] == phase)
    }

    /// Whether a job has begun anew.
    fn has_restarted(&self) -> bool {
        let mut jobs = self.before()["jobs"].as_object().into_iter().flatten();
        jobs.any(|(_, job)| job["status"]["version"].as_i64().unwrap_or(0) > 0)
    }

    /// Whether Volcano made pods for a PodGroup that nobody has let in.
    fn are_pods_made_too_early(&self) -> bool {
        let of_pods = self.differences.iter().filter(|difference| difference.is_within("pods"));
        let mut of_pods = of_pods.peekable();
        self.waits_now() && of_pods.peek().is_some() && of_pods.all(|difference| difference.found.is_none())
    }

    /// Whether a PodGroup waits to be let in after this step, where Volcano's controllers are.
    fn waits_now(&self) -> bool {
        waits(self.case.recorded)
    }

    /// Whether a PodGroup waits, or waited before this step.
    fn waits(&self) -> bool {
        self.waits_now() || waits(self.before())
    }

    /// Whether all differences are at these paths or below.
    fn is_only_within(&self, paths: &[&str]) -> bool {
        self.differences.iter().all(|difference| paths.iter().any(|path| difference.is_within(path)))
    }

    /// Whether a job has ended here and has not where Volcano's controllers are, and all else that differs is what a job that
    /// has ended no longer needs.
    fn has_job_ended_only_here(&self) -> bool {
        let has_ended = |state: &Value, job: &str| {
            let phase = state["jobs"][job]["status"]["state"]["phase"].as_str().unwrap_or_default();
            JobPhase::from(phase).is_finished()
        };
        let jobs = self.case.found["jobs"].as_object().into_iter().flatten().map(|(name, _)| name);
        let mut jobs = jobs.filter(|job| has_ended(self.case.found, job));
        let needless = ["podgroups", "services", "configmaps", "networkpolicies", "secrets"];
        jobs.any(|job| !has_ended(self.case.recorded, job))
            && self.differences.iter().all(|difference| {
                ["jobs/*/status", "jobflows/*/status", "phases"].iter().any(|path| difference.is_within(path))
                    || (difference.found.is_none()
                        && needless.iter().any(|section| difference.is_within(section)))
            })
    }

    /// Whether Volcano lacks the PodGroup of a job that began anew: it saw the old one just before that went, and does not see
    /// PodGroups go.
    fn is_podgroup_missed(&self) -> bool {
        self.is_only_within(&["podgroups"])
            && self.differences.iter().all(|difference| difference.recorded.is_none())
            && self.case.recorded["jobs"].as_object().into_iter().flatten().any(|(_, job)| {
                job["status"]["state"]["phase"] == "Pending"
                    && job["status"]["version"].as_i64().unwrap_or(0) > 0
            })
    }

    /// Whether a job went a part of this way just now, where Volcano's controllers are.
    fn passed_recorded(&self, way: &str) -> bool {
        let mut ways = self.case.recorded["phases"].as_object().into_iter().flatten();
        ways.any(|(_, passed)| passed.as_str().is_some_and(|passed| passed.contains(way)))
    }

    /// Whether Volcano may not write the state of a queue, because another field manager has.
    fn is_queue_blocked(&self) -> bool {
        let entry = self.case.record.entries.get(self.step);
        let events = entry.and_then(|entry| entry.state["events"].as_object()).into_iter().flatten();
        let mut events = events.map(|(event, _)| event);
        let is_refused = |event: &String| {
            event.contains("Queue failed for Apply failed") && event.contains(".status.state")
        };
        events.any(is_refused)
    }

    /// Whether a job was removed without what it owned, and another of its name was made.
    fn has_left_orphans(&self) -> bool {
        let mut is_orphaned = false;
        self.deeds_so_far().any(|deed| {
            is_orphaned |= deed["op"] == "delete" && deed["propagation"] == "Orphan";
            is_orphaned && deed["op"] == "create"
        })
    }

    /// Whether pods differ of a job in which a task depends on pods that succeeded, or that are being removed.
    fn has_dependency_that_does_not_run(&self) -> bool {
        let targets: Vec<&Value> = self
            .jobs()
            .flat_map(|spec| list(&spec["tasks"]))
            .flat_map(|task| list(&task["dependsOn"]["name"]))
            .collect();
        let mut pods = self.case.recorded["pods"].as_object().into_iter().flatten();
        let does_not_run =
            |pod: &Value| pod["status"]["phase"] == "Succeeded" || pod.get("deleting").is_some();
        self.differences.iter().any(|difference| difference.is_within("pods"))
            && pods.any(|(_, pod)| {
                targets.contains(&&pod["annotations"]["volcano.sh/task-spec"]) && does_not_run(pod)
            })
    }

    fn has_dotted_name(&self) -> bool {
        let mut jobs = self.case.record.objects.iter().filter(|object| object["kind"] == "Job");
        jobs.any(|job| job["metadata"]["name"].as_str().unwrap_or_default().contains('.'))
    }

    fn has_volumes(&self) -> bool {
        self.jobs().any(|spec| list(&spec["volumes"]).next().is_some())
    }

    fn was_done(&self, op: &str) -> bool {
        self.deeds_so_far().any(|deed| deed["op"] == op)
    }

    fn was_commanded(&self, action: &str) -> bool {
        self.deeds_so_far().any(|deed| deed["op"] == "command" && deed["action"] == action)
    }

    fn has_policies(&self) -> bool {
        self.has_policy(|_| true)
    }

    /// Whether a job ended in this phase, where Volcano's controllers are, and in another here.
    fn is_phase_recorded(&self, phase: &str) -> bool {
        let mut jobs = self.case.recorded["jobs"].as_object().into_iter().flatten();
        jobs.any(|(_, job)| job["status"]["state"]["phase"] == phase)
    }

    /// Whether somebody removed a pod that had ended.
    fn is_finished_pod_removed(&self) -> bool {
        let has_ended = |name: &Value| {
            let phase = &self.before()["pods"][name.as_str().unwrap_or_default()]["status"]["phase"];
            *phase == "Succeeded" || *phase == "Failed"
        };
        self.deeds().into_iter().any(|deed| deed["op"] == "evict" && has_ended(&deed["name"]))
    }

    /// Whether a pod ended well or badly after somebody had asked it to go.
    fn has_pod_ended_on_demand(&self) -> bool {
        self.deeds_so_far().any(|deed| deed["op"] == "pods" && deed["deleting"] == true)
    }

    /// Whether Volcano has a new PodGroup, and the old one is still there here.
    fn is_podgroup_renewed(&self) -> bool {
        self.differences.iter().any(|difference| difference.is_at("podgroups/*/uid"))
    }

    /// Whether what was done concerns several pods: Volcano acts on each event by itself, and what it has seen by then is chance.
    fn are_several_pods_concerned(&self) -> bool {
        let deeds = self.deeds();
        let is_of_pods =
            |deed: &&&Value| deed["op"] == "pods" || deed["op"] == "evict" || deed["op"] == "reap";
        let n_of_pods = deeds.iter().filter(is_of_pods).count();
        n_of_pods > 1 || deeds.iter().filter(is_of_pods).any(|deed| deed.get("name").is_none())
    }

    fn was_deleted(&self, kind: &str) -> bool {
        self.deeds_so_far().any(|deed| deed["op"] == "delete" && deed["kind"] == kind)
    }

    fn has_object(&self, kind: &str) -> bool {
        self.case.record.objects.iter().any(|object| object["kind"] == kind)
    }

    fn has_flow(&self) -> bool {
        self.has_object("JobFlow")
    }

    /// Whether a flow names a template that is not there.
    fn lacks_template(&self) -> bool {
        let objects = self.case.record.objects.iter();
        let mut flows = objects
            .clone()
            .filter(|object| object["kind"] == "JobFlow")
            .flat_map(|flow| list(&flow["spec"]["flows"]));
        let is_there = |name: &Value| {
            objects
                .clone()
                .any(|object| object["kind"] == "JobTemplate" && object["metadata"]["name"] == *name)
        };
        flows.any(|flow| !is_there(&flow["name"]))
    }

    /// Whether a queue closes for us, and Volcano still waits for gangs that have ended.
    fn is_kept_open_by_completed_gangs(&self) -> bool {
        let is_closing = |difference: &Difference| {
            difference.is_at("queues/*/status/state")
                && difference.recorded.as_ref().is_some_and(|it| it == "Closing")
        };
        let groups = self.case.recorded["podgroups"].as_object().into_iter().flatten();
        self.differences.iter().any(is_closing)
            && groups.clone().any(|(_, group)| group["status"]["phase"] == "Completed")
    }

    fn is_commanded(&self, actions: &[&str]) -> bool {
        let mut deeds = self.deeds().into_iter();
        deeds.any(|deed| deed["op"] == "command" && actions.iter().any(|action| deed["action"] == *action))
    }

    fn is_podgroup_set(&self, phase: &str) -> bool {
        self.deeds().into_iter().any(|deed| deed["op"] == "podgroup" && deed["phase"] == phase)
    }

    fn is_deleted(&self, kind: &str) -> bool {
        self.deeds().into_iter().any(|deed| deed["op"] == "delete" && deed["kind"] == kind)
    }
}

/// Whether an action restarts a part of a job.
fn is_part(action: &str) -> bool {
    ["RestartTask", "RestartPod", "RestartPartition"].contains(&action)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A step, or the steps of a burst.
fn flat(deed: &Value) -> Vec<&Value> {
    if deed["op"] == "burst" { list(&deed["ops"]).flat_map(flat).collect() } else { vec![deed] }
}

/// Whether a PodGroup waits to be let in.
fn waits(state: &Value) -> bool {
    let mut groups = state["podgroups"].as_object().into_iter().flatten();
    groups.any(|(_, group)| ["", "Pending"].contains(&group["status"]["phase"].as_str().unwrap_or_default()))
}
