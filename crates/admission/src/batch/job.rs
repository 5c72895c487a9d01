//! The spec of a Job.

use crate::json::At;
use crate::pod::check;
use crate::pod::{Dialect, template};
use crate::{PODS_MAX, Verdict, names};

use super::{failure_policy, success_policy};

/// The most pods that an Indexed Job runs at once, and the most of its indexes that may fail.
const INDEXED_MAX: i64 = PODS_MAX;
/// The same for Jobs of more than [`INDEXED_MAX`] completions that count failures per index.
const LARGE_INDEXED_MAX: i64 = 10_000;
/// The longest name of a controller.
const MANAGED_BY_LENGTH_MAX: usize = 63;

/// Checks what a Job says, apart from its selector.
pub(super) fn validate(spec: &At<'_>, verdict: &mut Verdict) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    for field in counts {
        not_negative(&spec.get(field), verdict);
    }
    let (per_index, max_failed) = (spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes"));
    if max_failed.is_set() && !per_index.is_set() {
        verdict.required(per_index.path(), "when maxFailedIndexes is specified");
    }
    validate_managed_by(&spec.get("managedBy"), verdict);
    validate_completion_mode(spec, verdict);
    if spec.get("podFailurePolicy").is_set() {
        failure_policy::validate(spec, verdict);
    }
    let success_policy = spec.get("successPolicy");
    if success_policy.is_set() && !is_indexed(spec) {
        let rule = "requires indexed completion mode";
        verdict.invalid_object(success_policy.path(), "batch.SuccessPolicy", success_policy.value(), rule);
    } else if success_policy.is_set() {
        success_policy::validate(spec, verdict);
    }
    validate_replacement_policy(spec, verdict);
    let template = spec.get("template");
    template::validate_unnamed(&template, Dialect::Kubernetes, verdict);
    validate_restart_policy(spec, &template.get("spec").get("restartPolicy"), verdict);
}

/// Whether the pods of the Job have indexes.
pub(super) fn is_indexed(spec: &At<'_>) -> bool {
    spec.str("completionMode") == "Indexed"
}

/// A count is not negative.
pub(super) fn not_negative(at: &At<'_>, verdict: &mut Verdict) {
    if let Some(count) = at.int().filter(|count| *count < 0) {
        verdict.invalid(at.path(), count, "must be greater than or equal to 0");
    }
}

/// Refuses a Job that would have, or grows to, more pods at a time than one may have. Kubernetes limits those with indexes
/// alone, which [`validate`] does; here the server that is asked runs the pods as well.
pub(super) fn validate_size(spec: &At<'_>, old: Option<&At<'_>>, verdict: &mut Verdict) {
    let n_pods = n_pods_at_once(spec);
    if !is_indexed(spec) && n_pods > PODS_MAX.max(old.map_or(0, n_pods_at_once)) {
        let rule = format!("a Job may have at most {PODS_MAX} pods at a time");
        let parallelism = spec.get("parallelism");
        verdict.invalid(parallelism.path(), parallelism.value(), rule);
    }
}

fn n_pods_at_once(spec: &At<'_>) -> i64 {
    let [parallelism, completions] = ["parallelism", "completions"].map(|field| spec.get(field).int());
    parallelism.unwrap_or(1).min(completions.unwrap_or(i64::MAX))
}

/// The pods of an Indexed Job are named after it; their names must be good host names.
pub(super) fn validate_pod_names(job: &At<'_>, verdict: &mut Verdict) {
    let spec = job.get("spec");
    let completions = spec.get("completions").int().filter(|completions| *completions > 0);
    let (name, Some(completions)) = (job.get("metadata").get("name"), completions) else { return };
    let longest = format!("{}-{}", name.text(), completions - 1);
    if is_indexed(&spec) && !names::dns_label(&longest).is_empty() {
        let rule = format!("will not able to create pod with invalid DNS label: {longest}");
        verdict.invalid(name.path(), name.text(), rule);
    }
}

/// Warns of names that are no host names, and of Jobs too large to be quick. `job` is the named object itself, or its template.
pub(super) fn warn(named: &At<'_>, job: &At<'_>, verdict: &mut Verdict) {
    let (name, spec) = (named.get("metadata").get("name"), job.get("spec"));
    let wrong = names::dns_label(name.text());
    if !name.is_empty() && !wrong.is_empty() {
        let rule = "this is used in Pod names and hostnames, which can result in surprising behavior; \
            a DNS label is recommended";
        verdict.warn(name.path(), format!("{rule}: [{}]", wrong.join(" ")));
    }
    let [completions, parallelism] = ["completions", "parallelism"].map(|field| spec.get(field).int());
    if is_indexed(&spec) && completions > Some(INDEXED_MAX) && parallelism > Some(LARGE_INDEXED_MAX) {
        let rule = format!(
            "In Indexed Jobs with a number of completions higher than {INDEXED_MAX}, the parallelism is \
             recommended to be lower than {LARGE_INDEXED_MAX}"
        );
        verdict.warn(spec.path(), rule);
    }
}

/// The name of a controller: `example.com/name`.
fn validate_managed_by(at: &At<'_>, verdict: &mut Verdict) {
    if !at.is_set() {
        return;
    }
    check::domain_prefixed_path(at, verdict);
    if at.text().len() > MANAGED_BY_LENGTH_MAX {
        verdict.too_long(at.path(), MANAGED_BY_LENGTH_MAX);
    }
}

fn validate_completion_mode(spec: &At<'_>, verdict: &mut Verdict) {
    let mode = spec.get("completionMode");
    match mode.text() {
        "Indexed" => validate_indexed(spec, verdict),
        "NonIndexed" => {}
        _ if !mode.is_set() => {}
        other => verdict.unsupported(mode.path(), other, &["NonIndexed", "Indexed"]),
    }
    if mode.text() != "NonIndexed" {
        return;
    }
    for field in ["backoffLimitPerIndex", "maxFailedIndexes"].map(|field| spec.get(field)) {
        if let Some(number) = field.int() {
            verdict.invalid(field.path(), number, "requires indexed completion mode");
        }
    }
}

fn validate_indexed(spec: &At<'_>, verdict: &mut Verdict) {
    let [completions, parallelism, max_failed] =
        ["completions", "parallelism", "maxFailedIndexes"].map(|field| spec.get(field));
    if !completions.is_set() {
        verdict.required(completions.path(), "when completion mode is Indexed");
    }
    let at_most = |at: &At<'_>, max: i64, detail: &str, verdict: &mut Verdict| {
        if let Some(number) = at.int().filter(|number| *number > max) {
            verdict.invalid(at.path(), number, format!("must be less than or equal to {detail}"));
        }
    };
    let detail = format!("{INDEXED_MAX} when completion mode is Indexed");
    at_most(&parallelism, INDEXED_MAX, &detail, verdict);
    let total = completions.int().unwrap_or(i64::MAX);
    at_most(&max_failed, total, "completions", verdict);
    at_most(&max_failed, INDEXED_MAX, &INDEXED_MAX.to_string(), verdict);
    if completions.int().is_none_or(|total| total <= INDEXED_MAX)
        || !spec.get("backoffLimitPerIndex").is_set()
    {
        return;
    }
    if !max_failed.is_set() {
        let rule = format!("must be specified when completions is above {INDEXED_MAX}");
        verdict.required(max_failed.path(), &rule);
    }
    let detail = format!(
        "{LARGE_INDEXED_MAX} when completions are above {INDEXED_MAX} and used with backoff limit per index"
    );
    at_most(&parallelism, LARGE_INDEXED_MAX, &detail, verdict);
    at_most(&max_failed, LARGE_INDEXED_MAX, &detail, verdict);
}

/// With a failure policy, a pod is replaced only once it is known how it ended.
fn validate_replacement_policy(spec: &At<'_>, verdict: &mut Verdict) {
    let policy = spec.get("podReplacementPolicy");
    let supported: &[&str] =
        if spec.get("podFailurePolicy").is_set() { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    if policy.is_set() && !supported.contains(&policy.text()) {
        verdict.unsupported(policy.path(), policy.text(), supported);
    }
}

/// A pod that is started again for ever never completes.
fn validate_restart_policy(spec: &At<'_>, policy: &At<'_>, verdict: &mut Verdict) {
    match policy.text() {
        "" | "Always" => verdict.required(policy.path(), "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if spec.get("podFailurePolicy").is_set() => {
            let rule = "only \"Never\" is supported when podFailurePolicy is specified";
            verdict.invalid(policy.path(), policy.text(), rule);
        }
        "OnFailure" | "Never" => {}
        other => verdict.unsupported(policy.path(), other, &["OnFailure", "Never"]),
    }
}
