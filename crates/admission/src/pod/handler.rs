//! Probes and lifecycle hooks: what is called in a container, and when.

use serde_json::Value;

use crate::json::At;
use crate::{Verdict, names};

use super::check;
use super::spec::{Dialect, Pod};

/// Checks what is called when a container starts and stops.
pub(super) fn validate_lifecycle(lifecycle: &At<'_>, pod: &Pod<'_>, verdict: &mut Verdict) {
    for hook in ["postStart", "preStop"].map(|name| lifecycle.get(name)) {
        if hook.is_set() {
            validate_handler(&hook, &["exec", "httpGet", "tcpSocket", "sleep"], pod, verdict);
        }
    }
    let signal = lifecycle.get("stopSignal");
    if signal.is_set() {
        validate_stop_signal(&signal, &pod.os, verdict);
    }
}

/// Checks the three probes of a container.
pub(super) fn validate_probes(container: &At<'_>, pod: &Pod<'_>, verdict: &mut Verdict) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.get(name);
        if !probe.is_set() {
            continue;
        }
        validate_handler(&probe, &["exec", "httpGet", "tcpSocket", "grpc"], pod, verdict);
        let numbers = [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ];
        numbers
            .map(|number| probe.get(number))
            .iter()
            .for_each(|number| check::not_negative(number, verdict));
        let grace = probe.get("terminationGracePeriodSeconds");
        if let Some(seconds) = grace.int().filter(|seconds| *seconds <= 0) {
            verdict.invalid(grace.path(), seconds, "must be greater than 0");
        }
        let threshold = probe.get("successThreshold");
        if name == "readinessProbe" {
            if let Some(seconds) = grace.int() {
                verdict.invalid(grace.path(), seconds, "must not be set for readinessProbes");
            }
        } else if let Some(number) = threshold.int().filter(|number| ![0, 1].contains(number)) {
            verdict.invalid(threshold.path(), number, "must be 1");
        }
    }
}

/// Exactly one way to call must be given.
fn validate_handler(at: &At<'_>, kinds: &[&str], pod: &Pod<'_>, verdict: &mut Verdict) {
    let mut is_given = false;
    for kind in kinds {
        let handler = at.get(kind);
        if !handler.is_set() {
            continue;
        }
        if is_given {
            verdict.forbidden(handler.path(), "may not specify more than 1 handler type");
            continue;
        }
        is_given = true;
        match *kind {
            "exec" => check::list(&handler.get("command"), verdict),
            "httpGet" => validate_http_get(&handler, verdict),
            "tcpSocket" | "grpc" => validate_port(&handler.get("port"), verdict),
            _ => validate_sleep(&handler, pod, verdict),
        }
    }
    if !is_given {
        verdict.required(at.path(), "must specify a handler type");
    }
}

fn validate_http_get(http: &At<'_>, verdict: &mut Verdict) {
    validate_port(&http.get("port"), verdict);
    check::word_or_default(&http.get("scheme"), &["HTTP", "HTTPS"], verdict);
    let headers = http.get("httpHeaders");
    for header in headers.list() {
        verdict.invalid_each(headers.path(), header.str("name"), names::http_header(header.str("name")));
    }
}

/// A port by its number or its name; none at all is the number 0.
fn validate_port(port: &At<'_>, verdict: &mut Verdict) {
    if let Value::String(name) = port.value() {
        verdict.invalid_each(port.path(), name, names::port_name(name));
        return;
    }
    let number = port.int().unwrap_or(0);
    if !(1..=65535).contains(&number) {
        verdict.invalid(port.path(), number, "must be between 1 and 65535, inclusive");
    }
}

fn validate_sleep(sleep: &At<'_>, pod: &Pod<'_>, verdict: &mut Verdict) {
    let (seconds, grace) = (sleep.get("seconds").int().unwrap_or(0), pod.grace_period_seconds);
    let rule = match pod.dialect {
        Dialect::Kubernetes if seconds < 0 || seconds > grace => {
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})")
        }
        Dialect::Volcano if seconds <= 0 || seconds > grace => format!(
            "must be greater than 0 and less than terminationGracePeriodSeconds ({grace}). Enable \
             AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
        ),
        Dialect::Kubernetes | Dialect::Volcano => return,
    };
    verdict.invalid(sleep.path(), seconds, rule);
}

#[rustfmt::skip]
const SIGNALS: [&str; 65] = [
    "SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT",
    "SIGIO", "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGRTMAX",
    "SIGRTMAX-1", "SIGRTMAX-10", "SIGRTMAX-11", "SIGRTMAX-12", "SIGRTMAX-13", "SIGRTMAX-14", "SIGRTMAX-2",
    "SIGRTMAX-3", "SIGRTMAX-4", "SIGRTMAX-5", "SIGRTMAX-6", "SIGRTMAX-7", "SIGRTMAX-8", "SIGRTMAX-9",
    "SIGRTMIN", "SIGRTMIN+1", "SIGRTMIN+10", "SIGRTMIN+11", "SIGRTMIN+12", "SIGRTMIN+13", "SIGRTMIN+14",
    "SIGRTMIN+15", "SIGRTMIN+2", "SIGRTMIN+3", "SIGRTMIN+4", "SIGRTMIN+5", "SIGRTMIN+6", "SIGRTMIN+7",
    "SIGRTMIN+8", "SIGRTMIN+9", "SIGSEGV", "SIGSTKFLT", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP",
    "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ",
];

/// What a signal is called depends on the system.
fn validate_stop_signal(signal: &At<'_>, os: &At<'_>, verdict: &mut Verdict) {
    match os.str("name") {
        _ if !os.is_set() => {
            verdict.forbidden(signal.path(), "may not be set for containers with empty `spec.os.name`");
        }
        "windows" => check::word(signal, &["SIGKILL", "SIGTERM"], verdict),
        "linux" => check::word(signal, &SIGNALS, verdict),
        _ => {}
    }
}
