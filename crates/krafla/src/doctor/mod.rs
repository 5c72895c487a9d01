//! `krafla doctor`: what this machine offers to pods, why jobs wait, and what to do about it.

mod probes;
mod reading;
mod waiting;

use std::process::ExitCode;

use anyhow::Result;
use krafla_api::{Kind, Time};
use krafla_runtime::{Clock, SystemClock};
use serde_json::{Value, json};

pub(crate) use self::reading::lease;
use self::waiting::Waiting;
pub(crate) use self::waiting::{
    Cause, Means, not_scheduled, remedy_of_container, remedy_of_scheduler, remedy_of_scheduling,
    remedy_of_warning,
};
use crate::cli::{self, Output};
use crate::data_dir;
use crate::home::{Choice, Home};
use crate::screen::print;

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

/// A cluster that was looked at.
struct Visit {
    /// Which one.
    origin: String,
    waiting: Vec<Waiting>,
    /// What could not be read.
    unread: Vec<String>,
}

/// Looks at everything and prints what was found. The exit code is 0 when pods can run.
pub(crate) async fn doctor(args: cli::Doctor) -> Result<ExitCode> {
    let findings = probes::all(&args.data_dir);
    let visit = visit(&args).await?;
    match args.output {
        None => {
            print(&format!("{}{}", text(&findings), visit.as_ref().map(text_of_visit).unwrap_or_default()))?;
        }
        Some(Output::Json) => print(&format!("{:#}\n", to_json(&findings, visit.as_ref())))?,
    }
    Ok(if can_run_pods(&findings) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Looks into the cluster that is named, or into a `krafla up` that is running: the one that KUBECONFIG names, or else
/// that of the data directory. A `krafla up` that is not running is not missed.
async fn visit(args: &cli::Doctor) -> Result<Option<Visit>> {
    let variable = std::env::var_os("KUBECONFIG");
    if args.kubeconfig.is_none()
        && args.context.is_none()
        && variable.is_none()
        && data_dir::distrust(&args.data_dir).is_some()
    {
        // It is a finding of its own.
        return Ok(None);
    }
    let choice = match &args.context {
        Some(context) => Choice::of_context(args.kubeconfig.as_deref(), context)?,
        None => Choice::of(args.kubeconfig.as_deref(), variable.as_deref(), &args.data_dir)?,
    };
    let access = match choice {
        Choice::There(access) | Choice::Here(access) => *access,
        Choice::Own => return Ok(None),
    };
    let origin = format!("{} ({})", access.origin, access.server);
    let home = match Home::there(access, &args.data_dir).await {
        Ok(home) => home,
        Err(error) if args.kubeconfig.is_some() || args.context.is_some() => return Err(error),
        Err(_) => return Ok(None),
    };
    let now: Time = SystemClock.now();
    let reading::Reading { seen, unread } = reading::read(home.client.as_ref(), now).await;
    Ok(Some(Visit { origin, waiting: waiting::waiting(&seen, now), unread }))
}

fn can_run_pods(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.state != State::Missing)
}

fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { what, state, meaning, remedy } in findings {
        text += &format!("{:8} {what}: {meaning}\n", state.as_str());
        if !remedy.is_empty() {
            text += &format!("{:8} fix: {remedy}\n", "");
        }
    }
    let n_limited = findings.iter().filter(|finding| finding.state == State::Limited).count();
    text + &match (can_run_pods(findings), n_limited) {
        (false, _) => "\npods cannot run on this machine\n".to_owned(),
        (true, 0) => "\npods can run on this machine\n".to_owned(),
        (true, n) => {
            format!("\npods can run on this machine, with {n} limitation{}\n", if n == 1 { "" } else { "s" })
        }
    }
}

/// What `kubectl get` calls a kind.
fn word(kind: Kind) -> &'static str {
    if kind == Kind::VcJob { "vcjob" } else { kind.info().singular }
}

fn text_of_visit(visit: &Visit) -> String {
    let Visit { origin, waiting, unread } = visit;
    let mut text = format!("\nin the cluster of {origin}:\n");
    for Waiting { kind, key, cause } in waiting {
        text += &format!("{:8} {} {key}: {cause}\n", "waits", word(*kind));
        text += &format!("{:8} fix: {}\n", "", cause.remedy());
    }
    for what in unread {
        text += &format!("{:8} {what}\n", "unread");
    }
    if waiting.is_empty() {
        text += "nothing waits\n";
    }
    text
}

fn json_of_visit(visit: &Visit) -> Value {
    let waiting = visit.waiting.iter().map(|Waiting { kind, key, cause }| {
        json!({
            "kind": kind.info().kind, "apiVersion": kind.info().api_version(),
            "namespace": key.namespace, "name": key.name,
            "reason": cause.reason(), "cause": cause.to_string(), "remedy": cause.remedy(),
        })
    });
    json!({ "origin": visit.origin, "waiting": waiting.collect::<Vec<_>>(), "unread": visit.unread })
}

fn to_json(findings: &[Finding], visit: Option<&Visit>) -> Value {
    let list = findings.iter().map(|Finding { what, state, meaning, remedy }| {
        json!({ "what": what, "state": state.as_str(), "meaning": meaning, "remedy": remedy })
    });
    let (list, visit) = (list.collect::<Vec<_>>(), visit.map(json_of_visit));
    json!({ "podsCanRun": can_run_pods(findings), "findings": list, "cluster": visit })
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
                     fix: raise the limit: ulimit -Hn 10000

            pods can run on this machine, with 1 limitation
        "#]]
        .assert_eq(&text(&findings));
        assert_eq!(to_json(&findings, None)["podsCanRun"], true);
        findings.push(Finding::missing("free space", "5 MiB", "remove something"));
        assert!(text(&findings).ends_with("\npods cannot run on this machine\n"));
        assert_eq!(to_json(&findings, None)["podsCanRun"], false);
    }
}
