//! Command lines of Volcano's manifests: flags that Krafla accepts and ignores.
//!
//! A manifest that starts Volcano's controller manager or webhook manager starts Krafla's unchanged. Flags with an effect are flags of the
//! parser. This module removes the others from the command line, and reports those whose effect a user could miss. Pure.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A program of Volcano's that this program replaces.
struct Program {
    /// Its name in Volcano's manifests.
    name: &'static str,
    /// The command that replaces it.
    command: &'static str,
    /// Its flags without effect, beside those about logs.
    flags: &'static [Flag],
}

const PROGRAMS: [Program; 2] = [
    Program { name: "vc-controller-manager", command: "controller-manager", flags: &CONTROLLER_MANAGER },
    Program { name: "vc-webhook-manager", command: "webhook-manager", flags: &WEBHOOK_MANAGER },
];

/// A flag of Volcano's that changes nothing here.
struct Flag {
    name: &'static str,
    takes: Takes,
    /// Why it changes nothing; empty if users cannot notice.
    because: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// True, unless `=false` follows.
    Switch,
    /// A value, after `=` or as the next word.
    Value,
}

const fn switch(name: &'static str, because: &'static str) -> Flag {
    Flag { name, takes: Takes::Switch, because }
}

const fn value(name: &'static str, because: &'static str) -> Flag {
    Flag { name, takes: Takes::Value, because }
}

const LOGS: &str = "logs go to stderr; --v and KRAFLA_LOG set the level";
const SHARDS: &str = "there is no sharding-controller";

const OF_LOGS: [Flag; 14] = [
    switch("logtostderr", ""),
    value("log-flush-frequency", ""),
    value("vmodule", LOGS),
    switch("alsologtostderr", LOGS),
    value("stderrthreshold", LOGS),
    value("log-dir", LOGS),
    value("log-file", LOGS),
    value("log-file-max-size", LOGS),
    value("log-backtrace-at", LOGS),
    switch("add-dir-header", LOGS),
    switch("skip-headers", LOGS),
    switch("skip-log-headers", LOGS),
    switch("one-output", LOGS),
    switch("legacy-stderr-threshold-behavior", LOGS),
];

const CONTROLLER_MANAGER: [Flag; 8] = [
    value("max-requeue-num", "failed work is retried until it succeeds"),
    value("feature-gates", "there are no feature gates; use --controllers"),
    value("leader-elect-resource-lock", ""),
    value("scheduler-configs", SHARDS),
    value("shard-sync-period", SHARDS),
    switch("enable-node-event-trigger", SHARDS),
    value("sharding-configmap", SHARDS),
    value("sharding-configmap-namespace", SHARDS),
];

const WEBHOOK_MANAGER: [Flag; 3] =
    [value("alsologtostderrthreshold", LOGS), value("kube-api-qps", ""), value("kube-api-burst", "")];

/// A command line that the parser knows, and what is to be said of what was taken out of it. Those of other commands stay
/// as they are.
pub(crate) fn settle(words: impl IntoIterator<Item = OsString>) -> (Vec<OsString>, Vec<String>) {
    let mut words = words.into_iter().peekable();
    let mut settled: Vec<OsString> = words.next().into_iter().collect();
    let called = settled.first().and_then(|called| Path::new(called).file_name());
    let program = PROGRAMS.iter().find(|program| called == Some(OsStr::new(program.name)));
    let program = if let Some(program) = program {
        settled.push(program.command.into());
        program
    } else if let Some(program) = words.peek().and_then(|word| PROGRAMS.iter().find(|it| word == it.command))
    {
        settled.extend(words.next());
        program
    } else {
        settled.extend(words);
        return (settled, Vec::new());
    };
    let mut remarks = Vec::new();
    while let Some(word) = words.next() {
        let Some((name, has_value)) = flag_of(&word) else {
            settled.push(word);
            continue;
        };
        // The parser's switch takes no value.
        if name == "version" {
            let is_on = !word.to_str().is_some_and(|word| word.ends_with("=false"));
            settled.extend(is_on.then(|| "--version".into()));
            continue;
        }
        let Some(flag) = OF_LOGS.iter().chain(program.flags).find(|flag| flag.name == name) else {
            settled.push(with_hyphens(&word));
            continue;
        };
        if flag.takes == Takes::Value && !has_value {
            // Its value is the next word, whatever that looks like.
            let _ = words.next();
        }
        if !flag.because.is_empty() {
            remarks.push(format!("--{name} has no effect: {}", flag.because));
        }
    }
    (settled, remarks)
}

/// The name of the flag that a word is, with hyphens, and whether its value is in the same word.
fn flag_of(word: &OsStr) -> Option<(String, bool)> {
    let flag = word.to_str()?.strip_prefix("--").filter(|flag| !flag.is_empty())?;
    let (name, has_value) = flag.split_once('=').map_or((flag, false), |(name, _)| (name, true));
    Some((name.replace('_', "-"), has_value))
}

/// Volcano takes underscores in the names of flags for hyphens.
fn with_hyphens(word: &OsStr) -> OsString {
    let Some(text) = word.to_str() else { return word.to_owned() };
    match text.split_once('=') {
        Some((name, value)) => format!("{}={value}", name.replace('_', "-")).into(),
        None => text.replace('_', "-").into(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(line: &str, expected: Expect) {
        let (settled, remarks) = settle(line.split(' ').map(OsString::from));
        let settled: Vec<&str> = settled.iter().filter_map(|word| word.to_str()).collect();
        let lines = std::iter::once(settled.join(" ")).chain(remarks);
        expected.assert_eq(&lines.map(|line| format!("{line}\n")).collect::<String>());
    }

    #[test]
    fn what_volcanos_chart_passes_is_taken() {
        check(
            "/vc-controller-manager --logtostderr --enable-healthz=true --enable-metrics=true --leader-elect=false \
             --leader-elect-resource-namespace=volcano-system --kube-api-qps=50 --kube-api-burst=100 \
             --worker-threads=3 --worker-threads-for-gc=1 -v=4 2>&1",
            expect![[r#"
                /vc-controller-manager controller-manager --enable-healthz=true --enable-metrics=true --leader-elect=false --leader-elect-resource-namespace=volcano-system --kube-api-qps=50 --kube-api-burst=100 --worker-threads=3 --worker-threads-for-gc=1 -v=4 2>&1
            "#]],
        );
    }

    #[test]
    fn volcano_42_what_has_no_effect_is_said() {
        check(
            "krafla controller-manager --max-requeue-num 15 --feature-gates=WorkLoadSupport=true --log_dir /var/log \
             --alsologtostderr --worker_threads=3 --kubeconfig a_b",
            expect![[r#"
                krafla controller-manager --worker-threads=3 --kubeconfig a_b
                --max-requeue-num has no effect: failed work is retried until it succeeds
                --feature-gates has no effect: there are no feature gates; use --controllers
                --log-dir has no effect: logs go to stderr; --v and KRAFLA_LOG set the level
                --alsologtostderr has no effect: logs go to stderr; --v and KRAFLA_LOG set the level
            "#]],
        );
    }

    #[test]
    fn the_webhook_manager_of_volcanos_chart_starts_ours() {
        check(
            "/vc-webhook-manager --enabled-admission=/jobs/mutate --logtostderr --port=8443 -v=4 --kube-api-qps=50 --vmodule=a 2>&1",
            expect![[r#"
                /vc-webhook-manager webhook-manager --enabled-admission=/jobs/mutate --port=8443 -v=4 2>&1
                --vmodule has no effect: logs go to stderr; --v and KRAFLA_LOG set the level
            "#]],
        );
    }

    #[test]
    fn the_flags_of_other_commands_are_their_own() {
        check(
            "krafla run --log_dir x_y.yaml",
            expect![[r#"
            krafla run --log_dir x_y.yaml
        "#]],
        );
        check(
            "krafla",
            expect![[r#"
            krafla
        "#]],
        );
    }
}
