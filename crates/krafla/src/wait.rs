//! `krafla wait`: until objects finish, or until a condition holds.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures_util::StreamExt;
use futures_util::future::join_all;
use krafla_api::{Kind, Served};
use krafla_apiserver::table::Path;
use krafla_client::{collection_path, encoded};
use krafla_plan::Object;
use serde_json::{Value, json};

use crate::cli::everyday::Wait;
use crate::cli::{Limit, Output};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::object_watch::{Change, changes};
use crate::progress::{self, End};
use crate::screen::{print, tell};
use crate::targets::{self, Target};

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// It finishes.
    End,
    Created,
    Deleted,
    /// Its phase is this.
    Phase(String),
    /// A condition has this status.
    Condition(String, String),
    /// A field has this value, or any.
    Field(Path, Option<String>),
}

impl Goal {
    /// Reads the value of `--for`, in the notation of kubectl.
    pub(crate) fn parse(text: &str) -> Result<Goal, String> {
        let (word, value) = text.split_once('=').map_or((text, None), |(word, value)| (word, Some(value)));
        match (word, value.filter(|value| !value.is_empty())) {
            ("finished" | "end" | "done", None) => Ok(Goal::End),
            ("create", None) => Ok(Goal::Created),
            ("delete", None) => Ok(Goal::Deleted),
            ("phase", Some(phase)) => Ok(Goal::Phase(phase.to_owned())),
            ("condition", Some(condition)) => {
                let (name, status) = condition.split_once('=').unwrap_or((condition, "True"));
                Ok(Goal::Condition(name.to_owned(), status.to_owned()))
            }
            ("jsonpath", Some(expression)) => {
                let end = expression.find('}').map_or(0, |end| end.saturating_add(1));
                let (path, wanted) = match expression.split_at_checked(end) {
                    Some((path, wanted)) if end > 0 => (path, wanted.strip_prefix('=')),
                    _ => expression.split_once('=').map_or((expression, None), |(path, wanted)| (path, Some(wanted))),
                };
                let parsed = Path::parse(path).ok_or_else(|| format!("{path:?} is not a path such as {{.status.phase}}"))?;
                Ok(Goal::Field(parsed, wanted.map(|wanted| wanted.trim_matches(['"', '\'']).to_owned())))
            }
            _ => Err("want finished, create, delete, phase=NAME, condition=NAME[=STATUS] or jsonpath={PATH}[=VALUE]".to_owned()),
        }
    }
}

/// How waiting for an object ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Reached,
    /// It will not be reached.
    Failed(String),
}

/// Whether an object has reached a goal; none while it may still do so. `existed` says that it was there before.
fn verdict(of: &Served, object: Option<&Value>, existed: bool, goal: &Goal) -> Option<Verdict> {
    let Some(object) = object else {
        return match goal {
            Goal::Deleted => Some(Verdict::Reached),
            Goal::Created => None,
            _ if existed => Some(Verdict::Failed("was deleted".to_owned())),
            _ => None,
        };
    };
    let reached = |is_reached: bool| is_reached.then_some(Verdict::Reached);
    match goal {
        Goal::Created => Some(Verdict::Reached),
        Goal::Deleted => None,
        Goal::End => match end(of, object)? {
            End::Well => Some(Verdict::Reached),
            End::Badly => Some(Verdict::Failed(how_it_failed(of, object))),
        },
        Goal::Phase(wanted) => match phase(of, object) {
            phase if phase.eq_ignore_ascii_case(wanted) => Some(Verdict::Reached),
            phase if end(of, object).is_some() => Some(Verdict::Failed(format!("ended with phase {phase}"))),
            _ => None,
        },
        Goal::Condition(name, status) => {
            let conditions =
                object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
            let is_meant = |condition: &&Value| {
                let is = |field: &str, wanted: &str| {
                    condition
                        .get(field)
                        .and_then(Value::as_str)
                        .is_some_and(|text| text.eq_ignore_ascii_case(wanted))
                };
                is("type", name) && is("status", status)
            };
            reached(conditions.into_iter().any(|condition| is_meant(&condition)))
        }
        Goal::Field(path, wanted) => {
            let found = path.first(object);
            let is_equal = |found: &Value, wanted: &str| match found {
                Value::String(text) => text == wanted,
                other => serde_json::to_string(other).is_ok_and(|text| text == wanted),
            };
            reached(found.is_some_and(|found| wanted.as_deref().is_none_or(|wanted| is_equal(found, wanted))))
        }
    }
}

/// How an object ended, if its kind ends and it has.
pub(crate) fn end(of: &Served, object: &Value) -> Option<End> {
    let kind = of.known().filter(|kind| ends(*kind))?;
    progress::end(&Object::decode(kind, object.to_string().as_bytes()))
}

/// Whether objects of a kind finish.
fn ends(kind: Kind) -> bool {
    matches!(kind, Kind::VcJob | Kind::Job | Kind::JobFlow | Kind::Pod)
}

/// The one word for how an object is doing.
pub(crate) fn phase(of: &Served, object: &Value) -> String {
    let text =
        |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    match of.known().filter(|kind| progress::FOLLOWED.contains(kind)) {
        Some(kind) => progress::phase(&Object::decode(kind, object.to_string().as_bytes())),
        None => {
            let found = text("/status/phase")
                .or_else(|| text("/status/state/phase"))
                .or_else(|| text("/status/state"));
            found.unwrap_or("Pending").to_owned()
        }
    }
}

fn how_it_failed(of: &Served, object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let failed = conditions.filter(|it| it.get("type").and_then(Value::as_str) == Some("Failed"));
    let of_condition =
        failed.filter_map(|it| it.get("message")?.as_str()).next().unwrap_or_default().to_owned();
    let why = [text("/status/state/message"), text("/status/message"), of_condition];
    let why = why.into_iter().find(|why| !why.is_empty());
    let phase = phase(of, object);
    why.map_or(phase.clone(), |why| format!("{phase}: {why}"))
}

/// What waiting for one object came to.
struct Waited {
    title: String,
    phase: String,
    verdict: Option<Verdict>,
    seconds: f64,
}

/// Waits for objects.
pub(crate) async fn wait(args: Wait) -> Result<ExitCode> {
    let connection = Connection::open(&args.cluster)?;
    let goal = args.goal.clone().unwrap_or(Goal::End);
    let targets = match goal {
        Goal::Created | Goal::Deleted => targets::find_or_expect(&connection, &args.words).await?,
        _ => targets::find(&connection, &args.words).await?,
    };
    for target in &targets {
        if goal == Goal::End && !target.of.known().is_some_and(ends) {
            let message =
                format!("{} does not finish by itself; fix: say what to wait for with --for", target.title);
            return Err(Failure::usage(message).into());
        }
    }
    let limit = args.timeout.as_ref().map(|limit| limit.duration);
    let waited = join_all(targets.iter().map(|target| until(&connection, target, &goal, limit))).await;
    let waited: Vec<Waited> = waited.into_iter().collect::<Result<_, _>>()?;
    match args.output {
        Some(Output::Json) => print(&format!("{:#}\n", waited.iter().map(as_json).collect::<Value>()))?,
        None => print(&waited.iter().filter_map(line).collect::<String>())?,
    }
    let failures: Vec<String> = waited.iter().filter_map(complaint).collect();
    if failures.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let message = failures.join("\n        ");
    let is_late = waited.iter().all(|it| !matches!(it.verdict, Some(Verdict::Failed(_))));
    Err(if is_late { Failure::TimedOut(message) } else { Failure::Failed(message) }.into())
}

fn line(waited: &Waited) -> Option<String> {
    let is_reached = waited.verdict == Some(Verdict::Reached);
    is_reached.then(|| format!("{} {} ({:.1} s)\n", waited.title, waited.phase, waited.seconds))
}

fn complaint(waited: &Waited) -> Option<String> {
    let Waited { title, phase, verdict, .. } = waited;
    match verdict {
        Some(Verdict::Reached) => None,
        Some(Verdict::Failed(why)) => Some(format!("{title}: {why}; fix: see `krafla logs {title}`")),
        None => Some(format!("{title} is still {phase} after {:.0} s", waited.seconds)),
    }
}

fn as_json(waited: &Waited) -> Value {
    let (outcome, reason) = match &waited.verdict {
        Some(Verdict::Reached) => ("Reached", None),
        Some(Verdict::Failed(why)) => ("Failed", Some(why)),
        None => ("TimedOut", None),
    };
    json!({
        "object": waited.title, "outcome": outcome, "phase": waited.phase, "reason": reason, "seconds": waited.seconds,
    })
}

/// Waits until an object finishes, well or badly, or is deleted. A kind that does not finish is waited for until it is deleted.
pub(crate) async fn until_finished(connection: &Connection, target: &Target) -> Result<(), Failure> {
    let goal = if target.of.known().is_some_and(ends) { Goal::End } else { Goal::Deleted };
    let mut seen = Some(target.object.clone()).filter(|object| !object.is_null());
    follow(connection, target, &goal, &mut seen).await.map(drop)
}

/// Waits until a deleted object is gone.
pub(crate) async fn until_gone(
    connection: &Connection,
    target: &Target,
    limit: Option<&Limit>,
) -> Result<(), Failure> {
    let target = Target { object: Value::Null, ..target.clone() };
    let present = match connection.read_json(target.path()).await {
        Err(Failure::NotFound(_)) => return Ok(()),
        object => Target { object: object?, ..target },
    };
    let waited = until(connection, &present, &Goal::Deleted, limit.map(|limit| limit.duration)).await?;
    match waited.verdict {
        Some(_) => Ok(()),
        None => Err(Failure::TimedOut(format!("is still there after {:.0} s", waited.seconds))),
    }
}

async fn until(
    connection: &Connection,
    target: &Target,
    goal: &Goal,
    limit: Option<Duration>,
) -> Result<Waited, Failure> {
    let started = Instant::now();
    let mut seen = Some(target.object.clone()).filter(|object| !object.is_null());
    let verdict = {
        let reached = follow(connection, target, goal, &mut seen);
        match limit {
            None => Some(reached.await?),
            Some(limit) => tokio::time::timeout(limit, reached).await.ok().transpose()?,
        }
    };
    let phase = match &seen {
        Some(object) => phase(&target.of, object),
        None => "missing".to_owned(),
    };
    Ok(Waited { title: target.title.clone(), phase, verdict, seconds: started.elapsed().as_secs_f64() })
}

async fn follow(
    connection: &Connection,
    target: &Target,
    goal: &Goal,
    seen: &mut Option<Value>,
) -> Result<Verdict, Failure> {
    let mut existed = seen.is_some();
    if let Some(verdict) = verdict(&target.of, seen.as_ref(), existed, goal) {
        return Ok(verdict);
    }
    let revision = seen.as_ref().and_then(|object| object.pointer("/metadata/resourceVersion")?.as_str());
    let revision = revision.unwrap_or_default().to_owned();
    let path = collection_path(&*target.of, &target.key.namespace);
    let query = format!("&fieldSelector={}", encoded(&format!("metadata.name={}", target.key.name)));
    let mut events = changes(connection.client.clone(), path, query, None, revision);
    let mut told = String::new();
    while let Some(change) = events.next().await {
        *seen = match change.map_err(|error| connection.failure(error))? {
            Change::Put(json) => serde_json::from_slice(&json).ok(),
            Change::Deleted(_) => None,
            // It may have gone while nothing was watched.
            Change::Anew => match connection.read_json(target.path()).await {
                Err(Failure::NotFound(_)) => None,
                object => Some(object?),
            },
        };
        if let Some(verdict) = verdict(&target.of, seen.as_ref(), existed, goal) {
            return Ok(verdict);
        }
        existed |= seen.is_some();
        let phase = seen.as_ref().map(|object| phase(&target.of, object)).unwrap_or_default();
        if phase != told && std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            tell(&format!("{}: {phase}\n", target.title));
            told = phase;
        }
    }
    Err(Failure::Unreachable(format!("the watch of {} ended", target.title)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_written_as_in_kubectl() {
        let path = |text: &str| Path::parse(text).unwrap();
        for (text, goal) in [
            ("finished", Goal::End),
            ("delete", Goal::Deleted),
            ("create", Goal::Created),
            ("phase=Running", Goal::Phase("Running".to_owned())),
            ("condition=Ready", Goal::Condition("Ready".to_owned(), "True".to_owned())),
            ("condition=Ready=false", Goal::Condition("Ready".to_owned(), "false".to_owned())),
            ("jsonpath={.status.n}=3", Goal::Field(path(".status.n"), Some("3".to_owned()))),
            ("jsonpath={.a[?(@.b==\"c\")].d}", Goal::Field(path(".a[?(@.b==\"c\")].d"), None)),
        ] {
            assert_eq!(Goal::parse(text), Ok(goal), "{text}");
        }
        for wrong in ["", "phase=", "ready", "finished=yes", "jsonpath=", "jsonpath=a b"] {
            assert!(Goal::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn waiting_ends_when_the_goal_is_reached_or_out_of_reach() {
        let vcjob = |phase: &str| json!({ "metadata": { "name": "a" }, "status": { "state": { "phase": phase, "message": "m" } } });
        let of = Served::from(Kind::VcJob);
        let judge = |object: Option<&Value>, existed, goal: &str| match verdict(
            &of,
            object,
            existed,
            &Goal::parse(goal).unwrap(),
        ) {
            None => "waits".to_owned(),
            Some(Verdict::Reached) => "reached".to_owned(),
            Some(Verdict::Failed(why)) => why,
        };
        for (object, existed, goal, expected) in [
            (Some("Running"), true, "finished", "waits"),
            (Some("Completed"), true, "finished", "reached"),
            (Some("Failed"), true, "finished", "Failed: m"),
            (None, true, "finished", "was deleted"),
            (None, false, "finished", "waits"),
            (None, false, "create", "waits"),
            (Some("Pending"), false, "create", "reached"),
            (None, true, "delete", "reached"),
            (Some("Pending"), true, "delete", "waits"),
            (Some("running"), true, "phase=Running", "reached"),
            (Some("Pending"), true, "phase=Running", "waits"),
            (Some("Completed"), true, "phase=Running", "ended with phase Completed"),
            (Some("Running"), true, "jsonpath={.status.state.phase}=Running", "reached"),
            (Some("Running"), true, "jsonpath={.status.state.phase}", "reached"),
            (Some("Running"), true, "jsonpath={.status.n}", "waits"),
        ] {
            let object = object.map(vcjob);
            assert_eq!(judge(object.as_ref(), existed, goal), expected, "{object:?} {goal}");
        }
        let node = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
        let ready = Goal::parse("condition=ready").unwrap();
        assert_eq!(verdict(&Served::from(Kind::Node), Some(&node), true, &ready), Some(Verdict::Reached));
    }
}
