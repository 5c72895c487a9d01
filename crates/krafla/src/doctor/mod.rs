//! `krafla doctor`: what this machine offers to pods, what that means, and what to do about it.

mod probes;

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use crate::cli::{self, Output};

/// One thing that pods need or would like to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// What it is.
    pub(crate) what: &'static str,
    pub(crate) state: State,
    /// What was found, and what it means for pods.
    pub(crate) meaning: String,
    /// What to do about it; empty if there is nothing to do.
    pub(crate) remedy: String,
}

/// How much of it there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// All that pods could want.
    Ok,
    /// Pods run, but lack something.
    Limited,
    /// Pods can not run.
    Missing,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Limited => "limited",
            State::Missing => "missing",
        }
    }
}

impl Finding {
    fn ok(what: &'static str, meaning: impl Into<String>) -> Finding {
        Finding { what, state: State::Ok, meaning: meaning.into(), remedy: String::new() }
    }

    fn limited(what: &'static str, meaning: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { what, state: State::Limited, meaning: meaning.into(), remedy: remedy.into() }
    }

    fn missing(what: &'static str, meaning: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { what, state: State::Missing, meaning: meaning.into(), remedy: remedy.into() }
    }
}

/// Looks at everything and prints what was found. The exit code is 0 when pods can run.
pub(crate) fn doctor(args: &cli::Doctor) -> Result<ExitCode> {
    let findings = probes::all(&args.data_dir);
    match args.output {
        None => print!("{}", text(&findings)),
        Some(Output::Json) => println!("{:#}", to_json(&findings)),
    }
    Ok(if can_run_pods(&findings) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn can_run_pods(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.state != State::Missing)
}

fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { what, state, meaning, remedy } in findings {
        text += &format!("{:8} {what}: {meaning}\n", state.as_str());
        if !remedy.is_empty() {
            text += &format!("{:8} to do: {remedy}\n", "");
        }
    }
    let n_limited = findings.iter().filter(|finding| finding.state == State::Limited).count();
    text + &match (can_run_pods(findings), n_limited) {
        (false, _) => "\npods can not run on this machine\n".to_owned(),
        (true, 0) => "\npods can run on this machine\n".to_owned(),
        (true, n) => {
            format!("\npods can run on this machine, with {n} limitation{}\n", if n == 1 { "" } else { "s" })
        }
    }
}

fn to_json(findings: &[Finding]) -> serde_json::Value {
    let list = findings.iter().map(|Finding { what, state, meaning, remedy }| {
        json!({ "what": what, "state": state.as_str(), "meaning": meaning, "remedy": remedy })
    });
    json!({ "podsCanRun": can_run_pods(findings), "findings": list.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn what_is_not_ok_says_what_to_do() {
        let mut findings = vec![
            Finding::ok("pod addresses", "each pod has its own"),
            Finding::limited("open files", "room for about 300 pods", "raise the limit: ulimit -Hn 10000"),
        ];
        expect![[r#"
            ok       pod addresses: each pod has its own
            limited  open files: room for about 300 pods
                     to do: raise the limit: ulimit -Hn 10000

            pods can run on this machine, with 1 limitation
        "#]]
        .assert_eq(&text(&findings));
        assert_eq!(to_json(&findings)["podsCanRun"], true);
        findings.push(Finding::missing("free space", "5 MiB", "remove something"));
        assert!(text(&findings).ends_with("\npods can not run on this machine\n"));
        assert_eq!(to_json(&findings)["podsCanRun"], false);
    }
}
