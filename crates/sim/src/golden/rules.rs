//! The differences that are meant, by rule. Each stands for an entry of DEVIATIONS.md.

use krafla_api::labels;
use krafla_api::volcano::{Action, JobPhase};
use serde_json::Value;

use super::compare::Difference;
use super::record::Record;

/// A record, and the state that is found after one of its steps.
pub(super) struct Case<'a> {
    pub(super) record: &'a Record,
    /// The recorded state, in the form in which it is compared.
    pub(super) recorded: &'a Value,
    pub(super) found: &'a Value,
}

type Rule = fn(&Case<'_>, &Difference) -> bool;

/// What each rule stands for, and whether a difference is one of those.
const RULES: &[(&str, Rule)] = &[
    ("B33", |_, it| it.is_at("jobs/*/status/state/reason") || it.is_at("jobs/*/status/state/message")),
    ("B33", |_, it| {
        it.is_event("Warning ")
            && it.recorded.is_none()
            && it.path.get(1).is_some_and(|event| event.contains(" Job/"))
    }),
    // Volcano says that it executes whatever it is asked for; here it is said when there is something to do. What was done
    // stands in the states.
    ("B28", |case, it| it.is_event("Normal ExecuteAction ") && it.found.is_none() && !case.is_delayed(it)),
    ("B9", |_, it| it.is_at("jobs/*/status/runningDuration") && it.recorded.is_none()),
    ("B5, B8", |case, it| {
        (case.shows("B5", it) || case.shows("B8", it)) && it.is_counter() && case.is_counted(it)
    }),
    ("B8", |case, it| it.is_earlier_pending() || (it.is_counter() && case.is_pending_earlier(it))),
    ("B46", |case, it| it.is_version() && (case.shows("B46", it) || case.is_finished())),
    ("B46", |case, it| it.is_version() && it.found.is_none() && case.is_of_finished_job(it)),
    ("B5, B8", |case, it| it.is_flows_counter() && case.is_as_the_job_says(it)),
    ("B9", |_, it| it.is_at("jobflows/*/status/conditions/*/runningDuration") && it.recorded.is_none()),
    ("B9", |_, it| it.is_at("jobflows/*/status/jobStatusList/*/endTimestamp") && it.recorded.is_none()),
    ("C16", |case, it| it.is_within("jobtemplates/*/status") && case.lists_what_is_there(it)),
    ("C26", |_, it| it.is_event("Normal OpenQueue ") && it.recorded.is_none()),
    // A gang that no scheduler has looked at yet waits; Volcano counts it nowhere.
    ("C18", |_, it| it.is_gauge_of_waiting_gangs()),
    ("B23", |case, it| it.is_cheaper_retry() && case.was_resumed(it)),
    ("B4", |_, it| it.is_at("pods/*/annotations/volcano.sh/controller-out-of-sync") && it.recorded.is_none()),
    ("B15", |_, it| {
        it.is_within("pods/*/annotations") && it.path.last().is_some_and(|key| key == labels::EVICTED_AT)
    }),
    ("B50", |_, it| it.is_version_of_podgroup() && it.recorded.is_none()),
    ("B24", |_, it| it.is_within("jobs/*/status/controlledResources") && it.recorded.is_none()),
    // The key lives as long as the job.
    ("B7, B24", |_, it| it.is_within("secrets") && it.path.get(1).is_some_and(|name| name.ends_with("-ssh"))),
    ("B7, B24", |case, it| {
        let is_of_plugins =
            ["services", "configmaps", "secrets", "networkpolicies", "jobs/*/status/controlledResources"];
        is_of_plugins.iter().any(|path| it.is_within(path)) && (case.shows("B7", it) || case.shows("B24", it))
    }),
];

/// What else is meant where nobody wrote the steps by hand. Of records, each such case is named in `deviations`.
const RULES_FOR_GENERATED: &[(&str, Rule)] = &[
    // The status follows the spec, also while the PodGroup waits; and so does what plugins make of it.
    ("B8", |case, it| it.is_at("jobs/*/status/minAvailable") && case.is_as_the_spec_says(it)),
    ("B8", |case, it| it.is_within("configmaps/*/data") && case.was_scaled(it)),
    // A pod that somebody removes counts for its task until it is gone.
    ("B3", |case, it| it.is_within("jobs/*/status/taskStatusCount") && case.has_pods_that_end()),
    ("B5", |case, it| it.is_flows_counter() && it.recorded.is_none() && case.is_job_gone(it)),
    ("B25", |_, it| it.is_history_with_fewer_states()),
    ("B25", |_, it| it.is_within("phases") && it.path[1].starts_with("jobflows/") && it.is_shorter_way()),
    ("B28", |case, it| it.is_within("commands") && it.recorded.is_none() && case.is_target_gone(it)),
    ("C19", |_, it| it.is_wish_of_queue()),
    ("C26", |_, it| it.is_event("Warning OpenQueue ") && it.recorded.is_none()),
    // These Events say FailedCreate here.
    ("B11", |_, it| {
        let of_volcano = ["Warning PodGroupError ", "Warning PVCError ", "Warning PluginError "];
        of_volcano.iter().any(|event| it.is_event(event)) && it.found.is_none()
    }),
    ("B5", |case, it| it.is_counter() && it.recorded.is_none() && case.is_of_finished_job(it)),
    ("B42", |case, it| it.is_within("pods/*/spec/containers") && case.has_plugin("pytorch")),
    ("C11", |case, it| it.is_list_of_flow() && case.has_jobs_that_end()),
    ("C15", |case, it| it.is_within("jobflows/*/status") && case.is_flow_failed(it)),
    ("B7", |case, it| it.is_of_plugins() && it.recorded.is_none() && case.is_owner_alive(it)),
    ("B24", |_, it| it.is_of_plugins() && it.path.len() == 3 && it.path[2] == "uid"),
];

/// The entry of DEVIATIONS.md that a difference stands for, if it is meant.
pub(super) fn deviation(case: &Case<'_>, difference: &Difference) -> Option<&'static str> {
    let others = if case.record.is_generated { RULES_FOR_GENERATED } else { &[] };
    RULES.iter().chain(others).find(|(_, rule)| rule(case, difference)).map(|(entry, _)| *entry)
}

impl Case<'_> {
    /// Whether the record says that this action is to be carried out later, and nothing else of it.
    fn is_delayed(&self, difference: &Difference) -> bool {
        let action = difference.path.get(1).and_then(|event| event.rsplit(' ').next()).unwrap_or_default();
        let entry = self.record.entries.get(difference.step);
        let events = entry.and_then(|entry| entry.state.get("events")?.as_object());
        let mut said = events
            .into_iter()
            .flatten()
            .map(|(event, _)| event)
            .filter(|event| event.contains(" ExecuteAction ") && event.contains(action));
        said.any(|event| event.contains(" after "))
    }

    /// Whether a fault of Volcano's shows in this record by now.
    fn shows(&self, bug: &str, difference: &Difference) -> bool {
        self.record.bugs_since.get(bug).is_some_and(|since| *since <= difference.step)
    }

    /// Whether what is found is what the job's spec says now.
    fn is_as_the_spec_says(&self, difference: &Difference) -> bool {
        let spec = &self.found["jobs"][&difference.path[1]]["spec"];
        difference.found.as_ref() == spec.get("minAvailable")
    }

    /// Whether a user has changed the number of pods by now.
    fn was_scaled(&self, difference: &Difference) -> bool {
        let so_far = self.record.entries.iter().take(difference.step + 1);
        so_far.map(|entry| entry.deed.to_string()).any(|deed| deed.contains("\"op\":\"scale\""))
    }

    fn has_plugin(&self, plugin: &str) -> bool {
        self.record.objects.iter().any(|object| object["spec"]["plugins"].get(plugin).is_some())
    }

    /// Whether a job is about to be complete, or terminated.
    fn has_jobs_that_end(&self) -> bool {
        let mut jobs = self.found["jobs"].as_object().into_iter().flatten();
        jobs.any(|(_, job)| {
            let phase = job["status"]["state"]["phase"].as_str().unwrap_or_default();
            ["Completing", "Terminating", "Aborting"].contains(&phase)
        })
    }

    fn is_flow_failed(&self, difference: &Difference) -> bool {
        self.recorded["jobflows"][&difference.path[1]]["status"]["state"]["phase"] == "Failed"
    }

    fn has_pods_that_end(&self) -> bool {
        let mut pods = self.found["pods"].as_object().into_iter().flatten();
        pods.any(|(_, pod)| pod.get("deleting").is_some())
    }

    /// Whether a Command names no job or queue that is there.
    fn is_target_gone(&self, difference: &Difference) -> bool {
        let target = &self.found["commands"][&difference.path[1]]["target"]["uid"];
        let all = ["jobs", "queues"].iter().flat_map(|section| self.found[section].as_object());
        !all.flatten().any(|(_, object)| object["uid"] == *target)
    }

    /// Whether an object belongs to a job that has not ended.
    fn is_owner_alive(&self, difference: &Difference) -> bool {
        let owner = &self.found[&difference.path[0]][&difference.path[1]]["ownerReferences"][0]["uid"];
        let mut jobs = self.found["jobs"].as_object().into_iter().flatten();
        jobs.any(|(_, job)| {
            let phase = job["status"]["state"]["phase"].as_str().unwrap_or_default();
            job["uid"] == *owner && !JobPhase::from(phase).is_finished()
        })
    }

    /// Whether the job has ended.
    fn is_finished(&self) -> bool {
        let phase = self.found.pointer("/jobs/a/status/state/phase").and_then(Value::as_str);
        phase.is_some_and(|phase| JobPhase::from(phase).is_finished())
    }

    /// Whether the difference is about a job that has ended.
    fn is_of_finished_job(&self, difference: &Difference) -> bool {
        let path = format!("/jobs/{}/status/state/phase", difference.path[1]);
        let phase = self.found.pointer(&path).and_then(Value::as_str);
        phase.is_some_and(|phase| JobPhase::from(phase).is_finished())
    }

    /// Whether a flow counts the pods of a job as the job itself does.
    fn is_as_the_job_says(&self, difference: &Difference) -> bool {
        let (flow, job) = (&difference.path[1], &difference.path[4]);
        let condition = &self.found["jobflows"][flow]["status"]["conditions"][job];
        condition["taskStatusCount"] == self.found["jobs"][job]["status"]["taskStatusCount"]
    }

    /// Whether the job of which a flow tells is no longer there.
    fn is_job_gone(&self, difference: &Difference) -> bool {
        self.found["jobs"].get(&difference.path[4]).is_none()
    }

    /// Whether a template lists exactly the jobs that were made of it and are there.
    fn lists_what_is_there(&self, difference: &Difference) -> bool {
        let template = &difference.path[1];
        let listed = self.found["jobtemplates"][template]["status"]["jobDependsOnList"].as_array();
        let listed: Vec<&str> = listed.into_iter().flatten().filter_map(Value::as_str).collect();
        let jobs = self.found["jobs"].as_object().into_iter().flatten();
        let is_made_of_it =
            |job: &Value| job["labels"]["volcano.sh/createdByJobTemplate"] == format!("{{ns}}.{template}");
        let there: Vec<&str> =
            jobs.filter(|(_, job)| is_made_of_it(job)).map(|(name, _)| name.as_str()).collect();
        listed == there
    }

    /// Whether the job is found Pending where the record still has it Restarting.
    fn is_pending_earlier(&self, difference: &Difference) -> bool {
        let path = format!("/jobs/{}/status/state/phase", difference.path[1]);
        let recorded = &self.record.entries[difference.step].state;
        let is = |state: &Value, phase: &str| state.pointer(&path).is_some_and(|it| it == phase);
        is(recorded, "Restarting") && is(self.found, "Pending") && self.is_counted(difference)
    }

    /// Whether a user has resumed the job by now.
    fn was_resumed(&self, difference: &Difference) -> bool {
        let so_far = self.record.entries.iter().take(difference.step + 1);
        let mut deeds = so_far.map(|entry| entry.deed.to_string());
        deeds.any(|deed| deed.contains(Action::ResumeJob.as_str()))
    }

    /// Whether what is found is the number of pods that are there.
    pub(super) fn is_counted(&self, difference: &Difference) -> bool {
        let job = &difference.path[1];
        let status = &self.found["jobs"][job]["status"];
        let pods = self.found["pods"].as_object().into_iter().flatten().map(|(_, pod)| pod);
        let own = pods.filter(|pod| pod["ownerReferences"][0]["uid"] == self.found["jobs"][job]["uid"]);
        let states: Vec<String> = own.map(state_of_pod).collect();
        COUNTERS.iter().all(|counter| {
            let n = states.iter().filter(|state| state == counter).count();
            status[counter].as_u64().unwrap_or(0) == n as u64
        })
    }
}

/// The counter of a job to which a pod belongs.
pub(super) fn state_of_pod(pod: &Value) -> String {
    match pod.get("deleting") {
        Some(_) => "terminating".to_owned(),
        None => pod["status"]["phase"].as_str().unwrap_or_default().to_lowercase(),
    }
}

pub(super) const COUNTERS: [&str; 6] =
    ["pending", "running", "succeeded", "failed", "terminating", "unknown"];

impl Difference {
    /// Whether it is at this path; `*` stands for any name.
    pub(super) fn is_at(&self, path: &str) -> bool {
        self.is_within(path)
            && self.path.len()
                == path.split_inclusive('/').count() - usize::from(path.contains("volcano.sh/"))
    }

    /// Whether it is at this path or below it.
    pub(super) fn is_within(&self, path: &str) -> bool {
        let path = path.replace("volcano.sh/", "volcano.sh|");
        let mut names = self.path.iter();
        path.split('/').all(|part| {
            let part = part.replace('|', "/");
            names.next().is_some_and(|name| part == "*" || *name == part)
        })
    }

    fn is_list_of_flow(&self) -> bool {
        ["completedJobs", "terminatedJobs", "failedJobs"]
            .iter()
            .any(|list| self.is_at(&format!("jobflows/*/status/{list}")))
    }

    /// Whether an object of a plugin is concerned, or a part of it.
    fn is_of_plugins(&self) -> bool {
        ["services", "configmaps", "secrets", "networkpolicies"].iter().any(|section| self.is_within(section))
    }

    /// Whether only the states are missing from the history of a flow's job that it left at once.
    fn is_history_with_fewer_states(&self) -> bool {
        let states = |value: &Option<Value>| -> Vec<Value> {
            let items = value.as_ref().and_then(Value::as_array);
            items.into_iter().flatten().map(|item| item["state"].clone()).collect()
        };
        let mut recorded = states(&self.recorded).into_iter();
        self.is_within("jobflows/*/status/jobStatusList/*/runningHistories")
            && states(&self.found).iter().all(|state| recorded.any(|it| it == *state))
    }

    /// Whether the same way was gone without stopping at each phase.
    fn is_shorter_way(&self) -> bool {
        let way = |value: &Option<Value>| -> Vec<String> {
            let way = value.as_ref().and_then(Value::as_str).unwrap_or_default();
            way.split(" > ").map(str::to_owned).collect()
        };
        let (recorded, found) = (way(&self.recorded), way(&self.found));
        let mut stops = recorded.iter();
        recorded.first() == found.first()
            && recorded.last() == found.last()
            && found.iter().all(|phase| stops.any(|it| it == phase))
    }

    /// Whether a queue says what was asked of it, and nothing else.
    fn is_wish_of_queue(&self) -> bool {
        let is_ours = |key: &String| key == labels::CLOSED_BY_PARENT;
        let only_ours = |found: &Value| found.as_object().is_some_and(|all| all.keys().all(is_ours));
        self.recorded.is_none()
            && self.is_within("queues/*/annotations")
            && (self.path.get(3).is_some_and(is_ours) || self.found.as_ref().is_some_and(only_ours))
    }

    fn is_flows_counter(&self) -> bool {
        self.is_within("jobflows/*/status/conditions/*/taskStatusCount")
    }

    fn is_event(&self, start: &str) -> bool {
        self.is_within("events") && self.path.get(1).is_some_and(|event| event.starts_with(start))
    }

    fn is_gauge_of_waiting_gangs(&self) -> bool {
        let number = |value: &Option<Value>| value.as_ref()?.as_str()?.parse::<u32>().ok();
        self.is_within("metrics")
            && self.path.get(1).is_some_and(|name| name.starts_with("volcano_queue_pod_group_pending_count"))
            && number(&self.recorded) < number(&self.found)
    }

    /// Whether a PodGroup says for which version of its job it was made, and nothing else.
    fn is_version_of_podgroup(&self) -> bool {
        let is_alone = |found: &Value| {
            let annotations = found.as_object();
            annotations.is_some_and(|all| all.keys().eq([labels::JOB_VERSION]))
        };
        self.is_at("podgroups/*/annotations/volcano.sh/job-version")
            || (self.is_at("podgroups/*/annotations") && self.found.as_ref().is_some_and(is_alone))
    }

    fn is_version(&self) -> bool {
        self.is_at("jobs/*/status/version") || self.is_at("pods/*/annotations/volcano.sh/job-version")
    }

    /// Whether fewer retries are found than recorded.
    fn is_cheaper_retry(&self) -> bool {
        let number = |value: &Option<Value>| match value {
            Some(Value::String(text)) => text.parse().unwrap_or(0),
            Some(value) => value.as_i64().unwrap_or(0),
            None => 0,
        };
        let is_retry = self.is_at("jobs/*/status/retryCount")
            || self.is_at("pods/*/annotations/volcano.sh/job-retry-count");
        is_retry && number(&self.found) < number(&self.recorded)
    }

    /// Whether a restarted job is found Pending when it was recorded as still Restarting, and nothing else.
    fn is_earlier_pending(&self) -> bool {
        let text =
            |value: &Option<Value>| value.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        let (recorded, found) = (text(&self.recorded), text(&self.found));
        if self.is_within("phases") {
            let pending = "Restarting > Pending";
            let is_done_later = recorded == pending && found.is_empty();
            let is_done_now = recorded.is_empty() && found == pending;
            return is_done_later
                || is_done_now
                || format!("{recorded} > Pending") == found
                || recorded.strip_prefix("Restarting > ") == Some(&found);
        }
        if self.is_at("jobs/*/status/conditions") {
            let phases = |value: &Option<Value>| {
                let conditions = value.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
                conditions
                    .iter()
                    .filter_map(|it| Some(it["status"].as_str()?.to_owned()))
                    .collect::<Vec<String>>()
            };
            let mut recorded = phases(&self.recorded);
            recorded.retain(|phase| phase != "Pending");
            recorded.push("Pending".to_owned());
            return recorded == phases(&self.found);
        }
        self.is_at("jobs/*/status/state/phase") && recorded == "Restarting" && found == "Pending"
    }

    pub(super) fn is_counter(&self) -> bool {
        self.is_within("jobs/*/status/taskStatusCount")
            || COUNTERS.iter().any(|counter| self.is_at(&format!("jobs/*/status/{counter}")))
    }
}
