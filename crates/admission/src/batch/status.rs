//! The status of a Job: what its controller, ours or another, cannot say.
//!
//! Most rules are looked at only when something that they are about has changed, so that an old mistake does not stand in
//! the way of other reports.

use std::collections::BTreeSet;

use krafla_api::Time;
use serde::Deserialize;
use serde_json::Value;

use crate::json::At;
use crate::look::findings_of_change;
use crate::{Finding, Reason, Verdict};

use super::{indexes, job};

/// Says everything that is wrong with a changed status.
pub fn validate_job_status(job: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(job, old, |job, old, verdict| {
        let report = Report { spec: job.get("spec"), new: job.get("status"), old: old.get("status") };
        report.validate_counts(verdict);
        report.validate_outcome(verdict);
        report.validate_times(verdict);
        report.validate_order(verdict);
        report.validate_finished(verdict);
        report.validate_indexes(verdict);
        report.validate_success(verdict);
        report.validate_progress(verdict);
    })
}

/// A change of a Job's status.
struct Report<'a> {
    spec: At<'a>,
    new: At<'a>,
    old: At<'a>,
}

impl Report<'_> {
    fn is_changed(&self, field: &str) -> bool {
        self.new.get(field).value() != self.old.get(field).value()
    }

    /// Whether the status says now that this holds.
    fn is(&self, condition: &str) -> bool {
        holds(&self.new, condition)
    }

    fn was(&self, condition: &str) -> bool {
        holds(&self.old, condition)
    }

    fn becomes(&self, condition: &str) -> bool {
        self.is(condition) != self.was(condition)
    }

    fn is_finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn finishes(&self) -> bool {
        self.is_finished() != (self.was("Complete") || self.was("Failed"))
    }

    fn refuse_conditions(&self, rule: &str, verdict: &mut Verdict) {
        let path = self.new.path().field("conditions");
        verdict.refuse(&path, Reason::Invalid, format!("Invalid value: {rule}"));
    }

    fn validate_counts(&self, verdict: &mut Verdict) {
        for field in ["active", "succeeded", "failed", "ready", "terminating"] {
            job::not_negative(&self.new.get(field), verdict);
        }
        let uncounted = self.new.get("uncountedTerminatedPods");
        let mut seen = BTreeSet::new();
        for uid in ["succeeded", "failed"].iter().flat_map(|list| uncounted.items(list)) {
            if uid.text().is_empty() {
                verdict.invalid(uid.path(), uid.text(), "must not be empty");
            } else if !seen.insert(uid.text()) {
                verdict.duplicate(uid.path(), uid.text());
            }
        }
    }

    /// A Job does not end twice.
    fn validate_outcome(&self, verdict: &mut Verdict) {
        for other in ["Failed", "FailureTarget"] {
            let is_new = self.becomes("Complete") || self.becomes(other);
            if is_new && self.is("Complete") && self.is(other) {
                let rule = format!("cannot set Complete=True and {other}=true conditions");
                self.refuse_conditions(&rule, verdict);
            }
        }
    }

    fn validate_times(&self, verdict: &mut Verdict) {
        let (completed, started) = (self.new.get("completionTime"), self.new.get("startTime"));
        if self.becomes("Complete") || self.is_changed("completionTime") {
            if completed.is_set() && !self.is("Complete") {
                let rule = "cannot set completionTime when there is no Complete=True condition";
                verdict.invalid(completed.path(), completed.value(), rule);
            }
            if !completed.is_set() && self.is("Complete") {
                verdict.required(completed.path(), "completionTime is required for Complete jobs");
            }
        }
        let time = |at: &At<'_>| Time::deserialize(at.value()).ok();
        if (self.is_changed("completionTime") || self.is_changed("startTime"))
            && let (Some(end), Some(start)) = (time(&completed), time(&started))
            && end < start
        {
            verdict.invalid(completed.path(), completed.value(), "must be equal to or after `startTime`");
        }
    }

    /// The decision is reported before the outcome.
    fn validate_order(&self, verdict: &mut Verdict) {
        let fails = self.becomes("Failed") || self.is_changed("failedIndexes");
        if fails && self.is("Failed") && !self.is("FailureTarget") {
            let rule = "cannot set Failed=True condition without the FailureTarget=true condition";
            self.refuse_conditions(rule, verdict);
        }
        let succeeds = self.becomes("Complete")
            || self.becomes("SuccessCriteriaMet")
            || self.spec.get("successPolicy").is_set();
        if succeeds && self.is("Complete") && !self.is("SuccessCriteriaMet") {
            let rule = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
            self.refuse_conditions(rule, verdict);
        }
    }

    /// A Job that has ended has nothing running and nothing left to count.
    fn validate_finished(&self, verdict: &mut Verdict) {
        let status = &self.new;
        let is_about = |field: &str| self.is_finished() && (self.finishes() || self.is_changed(field));
        let above_zero = |field: &str| status.get(field).int().filter(|count| *count > 0);
        if let Some(active) = above_zero("active").filter(|_| is_about("active")) {
            verdict.invalid(status.get("active").path(), active, "active>0 is invalid for finished job");
        }
        let never_ran = self.spec.get("suspend").is_true() && self.spec.get("completions").int() == Some(0);
        if is_about("startTime") && !status.get("startTime").is_set() && !never_ran {
            verdict.required(status.get("startTime").path(), "startTime is required for finished job");
        }
        let uncounted = status.get("uncountedTerminatedPods");
        let has_uncounted = ["succeeded", "failed"].iter().any(|list| !uncounted.get(list).is_empty());
        if is_about("uncountedTerminatedPods") && has_uncounted {
            let rule = "must be empty for finished job";
            verdict.invalid_object(
                uncounted.path(),
                "batch.UncountedTerminatedPods",
                uncounted.value(),
                rule,
            );
        }
        if let Some(count) = above_zero("terminating").filter(|_| is_about("terminating")) {
            let rule = "terminating>0 is invalid for finished job";
            verdict.invalid(status.get("terminating").path(), count, rule);
        }
        let (ready, active) = (status.get("ready"), status.get("active").int().unwrap_or(0));
        let is_recounted = self.is_changed("ready") || self.is_changed("active");
        if let Some(count) = ready.int().filter(|count| is_recounted && *count > active) {
            verdict.invalid(ready.path(), count, "cannot set more ready pods than active");
        }
    }

    fn validate_indexes(&self, verdict: &mut Verdict) {
        let completions = self.spec.get("completions").int();
        let [completed, failed] = ["completedIndexes", "failedIndexes"].map(|field| self.new.get(field));
        let has_changed = ["completedIndexes", "failedIndexes"].map(|field| self.is_changed(field));
        for ((at, name), is_changed) in
            [(&completed, "completedIndexes"), (&failed, "failedIndexes")].into_iter().zip(has_changed)
        {
            let parsed = completions.map(|completions| indexes::parse(at.text(), completions));
            if let (Some(Err(why)), true) = (parsed, is_changed) {
                verdict.invalid(at.path(), at.text(), format!("error parsing {name}: {why}"));
            }
        }
        let [completed_changed, failed_changed] = has_changed;
        if completed_changed && !completed.is_empty() && !job::is_indexed(&self.spec) {
            let rule = "cannot set non-empty completedIndexes when non-indexed completion mode";
            verdict.invalid(completed.path(), completed.text(), rule);
        }
        if failed_changed && failed.is_set() && !self.spec.get("backoffLimitPerIndex").is_set() {
            let rule = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            verdict.invalid(failed.path(), failed.text(), rule);
        }
        // What can not be read of one keeps the rest from being compared with the other no more than it has to.
        let both = completions.filter(|_| completed_changed || failed_changed).and_then(|completions| {
            let [completed, failed] =
                [&completed, &failed].map(|at| indexes::readable(at.text(), completions));
            indexes::overlap(&completed, &failed)
        });
        if let Some(index) = both {
            let rule = format!("failedIndexes and completedIndexes overlap at index: {index}");
            verdict.invalid(failed.path(), failed.text(), rule);
        }
    }

    fn validate_success(&self, verdict: &mut Verdict) {
        for other in ["Failed", "FailureTarget"] {
            if self.is("SuccessCriteriaMet") && self.is(other) {
                let rule = format!("cannot set SuccessCriteriaMet=True and {other}=true conditions");
                self.refuse_conditions(&rule, verdict);
            }
        }
    }

    /// What has been said stays said.
    fn validate_progress(&self, verdict: &mut Verdict) {
        for condition in ["Failed", "Complete", "FailureTarget"] {
            if self.was(condition) && !self.is(condition) {
                let rule = format!("cannot disable the terminal {condition}=True condition");
                self.refuse_conditions(&rule, verdict);
            }
        }
        self.validate_counters_grow(verdict);
        let (completed, old) = (self.new.get("completionTime"), self.old.get("completionTime"));
        if old.is_set() && completed.is_set() && completed.value() != old.value() {
            verdict.invalid(completed.path(), completed.value(), "field is immutable");
        }
        let (started, old) = (self.new.get("startTime"), self.old.get("startTime"));
        let resumes = self.was("Suspended") && !self.is("Suspended");
        let is_kept = old.value() == started.value() || !old.is_set();
        if !is_kept && !self.spec.get("suspend").is_true() && !resumes {
            let rule = "field is immutable for unsuspended job once set";
            verdict.invalid(started.path(), started.value(), rule);
        }
        if self.was("SuccessCriteriaMet") && !self.is("SuccessCriteriaMet") {
            self.refuse_conditions("cannot disable the SuccessCriteriaMet=True condition", verdict);
        }
        if !self.was("SuccessCriteriaMet") && self.is("SuccessCriteriaMet") && self.was("Complete") {
            let rule = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
            self.refuse_conditions(rule, verdict);
        }
    }

    fn validate_counters_grow(&self, verdict: &mut Verdict) {
        // An Indexed Job that has become smaller forgets the indexes that it no longer has.
        let is_elastic = job::is_indexed(&self.spec)
            && self.spec.get("completions").is_set()
            && self.spec.get("completions").value() == self.spec.get("parallelism").value();
        for (counter, may_fall) in [("failed", false), ("succeeded", is_elastic)] {
            let count = |status: &At<'_>| status.get(counter).int().unwrap_or(0);
            if count(&self.new) < count(&self.old) && !may_fall {
                let rule = format!("cannot decrease the {counter} counter");
                verdict.invalid(self.new.get(counter).path(), count(&self.new), rule);
            }
        }
    }
}

fn holds(status: &At<'_>, condition: &str) -> bool {
    let conditions = status.items("conditions");
    let mut named = conditions.iter().filter(|item| item.str("type") == condition);
    named.any(|item| item.str("status") == "True")
}
