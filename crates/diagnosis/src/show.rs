//! A diagnosis on one screen, and as JSON.

use krafla_api::Time;
use krafla_why::Reason;
use serde_json::{Value, json as object};

use crate::resource::Resource;
use crate::{Diagnosis, Link, Next, State};

/// How long ago a moment was, or how far ahead it is.
fn distance(from: Time, to: Time) -> String {
    let seconds = to.since(from).as_secs().max(from.since(to).as_secs());
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn ago(at: Time, now: Time) -> String {
    if at > now { format!("in {}", distance(now, at)) } else { format!("{} ago", distance(at, now)) }
}

/// The state in one sentence.
fn sentence(diagnosis: &Diagnosis, now: Time) -> String {
    let Diagnosis { subject, state, phase, since, .. } = diagnosis;
    let what = match state {
        State::Waiting => "waits",
        State::Running if subject.resource == Resource::Queue => "takes jobs",
        State::Running if matches!(diagnosis.cause(), Some(it) if !matches!(it.reason, Reason::NextRun { .. })) => {
            "runs, and a part of it waits"
        }
        State::Running => "makes progress",
        State::Stopped => "is stopped",
        State::Failed => "failed",
        State::Completed => "completed",
        State::Deleting => "is being deleted",
    };
    let phase = if phase.is_empty() { "no phase yet".to_owned() } else { phase.clone() };
    let since = since.map(|it| format!(", {}", ago(it, now))).unwrap_or_default();
    match diagnosis.cause() {
        Some(Link { reason, .. }) => format!("{subject} {what} ({phase}{since}): {}", reason.root()),
        None => format!("{subject} {what} ({phase}{since})"),
    }
}

/// One screen of text.
pub fn screen(diagnosis: &Diagnosis, now: Time) -> String {
    let mut text = format!("{}\n", sentence(diagnosis, now));
    let mut section = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text += &format!("\n{title}:\n");
            lines.iter().for_each(|line| text += &format!("  {line}\n"));
        }
    };
    let link = |(depth, it): (usize, &Link)| {
        let since = it.since.map(|since| format!(" ({})", ago(since, now))).unwrap_or_default();
        format!("{}{}: {}{since}", "  ".repeat(depth), it.about, it.reason)
    };
    let users = diagnosis.users.iter().map(|it| format!("used by {}: {}", it.name, it.uses));
    section("cause", diagnosis.chain.iter().enumerate().map(link).chain(users).collect());
    let remedies = diagnosis.remedies.iter().flat_map(|it| {
        let command = it.command.iter().map(|command| format!("  $ {command}"));
        std::iter::once(format!("- {}", it.what)).chain(command)
    });
    section("fix", remedies.collect());
    let next = |it: &Next| match it.at {
        Some(at) if at > now => format!("- {} {} ({at})", it.what, ago(at, now)),
        Some(_) => format!("- {}: due now", it.what),
        None => format!("- {}", it.what),
    };
    section("next", diagnosis.next.iter().map(next).collect());
    if let Some(line) = &diagnosis.line {
        let first = match line.position {
            0 => format!("{} jobs wait in queue {}", line.waiting, line.queue),
            position => format!("place {position} of {} in queue {}", line.waiting, line.queue),
        };
        let ahead = line.ahead.iter().map(|it| {
            let needs = if it.needs.is_empty() { String::new() } else { format!(", needs {}", it.needs) };
            let class = if it.priority_class.is_empty() {
                String::new()
            } else {
                format!(", priority {}", it.priority_class)
            };
            format!("  ahead: {}{needs}{class}", it.name)
        });
        section("queue", std::iter::once(first).chain(ahead).collect());
    }
    let moments = diagnosis.timeline.iter().map(|it| {
        let what = if it.what.is_empty() { String::new() } else { format!(": {}", it.what) };
        format!("{:>8}  {}  {}{what}", ago(it.at, now), it.about, it.rule)
    });
    section("timeline", moments.collect());
    text
}

/// The same for programs.
pub fn json(diagnosis: &Diagnosis, now: Time) -> Value {
    let subject = |it: &crate::Subject| {
        object!({
            "apiVersion": it.resource.api_version(), "kind": it.resource.kind(),
            "namespace": it.namespace, "name": it.name,
        })
    };
    let chain = diagnosis.chain.iter().map(|it| {
        object!({
            "object": subject(&it.about), "reason": it.reason.root().word(), "message": it.reason.to_string(),
            "decider": it.reason.decider().as_str(), "since": it.since,
        })
    });
    let remedies = diagnosis.remedies.iter().map(|it| object!({ "what": it.what, "command": it.command }));
    let next = diagnosis.next.iter().map(|it| object!({ "what": it.what, "at": it.at }));
    let line = diagnosis.line.as_ref().map(|line| {
        let ahead = line.ahead.iter().map(|it| {
            object!({ "name": it.name, "needs": it.needs, "priorityClassName": it.priority_class })
        });
        object!({
            "queue": line.queue, "position": line.position, "waiting": line.waiting, "ahead": ahead.collect::<Vec<_>>(),
        })
    });
    let timeline = diagnosis
        .timeline
        .iter()
        .map(|it| object!({ "at": it.at, "object": subject(&it.about), "rule": it.rule, "what": it.what }));
    object!({
        "object": subject(&diagnosis.subject),
        "state": diagnosis.state.as_str(),
        "phase": diagnosis.phase,
        "since": diagnosis.since,
        "sentence": sentence(diagnosis, now),
        "cause": chain.clone().next_back(),
        "chain": chain.collect::<Vec<_>>(),
        "usedBy": diagnosis.users.iter().map(|it| object!({ "name": it.name, "uses": it.uses })).collect::<Vec<_>>(),
        "remedies": remedies.collect::<Vec<_>>(),
        "next": next.collect::<Vec<_>>(),
        "queue": line,
        "timeline": timeline.collect::<Vec<_>>(),
    })
}
