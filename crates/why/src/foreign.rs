//! What other programs write: Volcano's scheduler, kube-scheduler, kubelets, and API servers in front of which they stand.
//!
//! This is the only place that knows their texts. A text that differs from Krafla's own only in its frame (a prefix, a full
//! stop, another word) is brought into Krafla's form and read there.

use crate::lack::Lacks;
use crate::reason::{Pending, Reason};
use crate::sentence::{Gap, Name, Tally, gap, read as fill};

/// Frames that add nothing to the reason within.
const PREFIXES: [&str; 6] =
    ["Error: ", "Error creating: ", "failed to create pod ", "error: ", "rpc error: ", "PreBind: "];

/// Older or other words for what nodes lack, and Kubernetes' present ones.
const LACKS: [(&str, &str); 6] = [
    ("node(s) had untolerated taint", "node(s) had untolerated taint(s)"),
    ("node(s) didn't match node selector", "node(s) didn't match Pod's node affinity/selector"),
    ("node(s) didn't match Pod's node affinity", "node(s) didn't match Pod's node affinity/selector"),
    ("node(s) resource fit failed", "Insufficient resources"),
    ("node(s) pod number exceeded", "Too many pods"),
    ("node(s) were not schedulable", "node(s) were unschedulable"),
];

/// Reads a text of another program.
pub(crate) fn read(text: &str) -> Option<Reason> {
    nodes(text)
        .or_else(|| gang(text))
        .or_else(|| queue(text))
        .or_else(|| container(text))
        .or_else(|| framed(text))
        .or_else(|| refusal(text))
}

fn known(text: &str) -> Option<Reason> {
    Some(Reason::parse(text)).filter(|reason| !matches!(reason, Reason::Other { .. }))
}

/// A known reason within a frame.
fn framed(text: &str) -> Option<Reason> {
    let inner =
        PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)).or_else(|| text.strip_suffix('.'));
    inner.filter(|inner| !inner.is_empty()).and_then(known)
}

/// `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {a: b}. preemption: ...`, and Volcano's
/// `all nodes are unavailable: ...`.
fn nodes(text: &str) -> Option<Reason> {
    let (n, rest) = if let Some(rest) = text.strip_prefix("all nodes are unavailable") {
        (0, rest)
    } else {
        let (count, rest) = text.split_once(" nodes are ")?;
        let (free, n) = count.split_once('/')?;
        u32::read(free)?;
        (u32::read(n)?, rest.strip_prefix("unavailable").or_else(|| rest.strip_prefix("available"))?)
    };
    let rest = rest.strip_prefix(':').unwrap_or(rest).trim();
    // What preemption would change is said after a full stop; a version number within a name has no space after it.
    let list = rest.split_once(". ").map_or(rest, |(list, _)| list).trim_end_matches('.');
    let list = LACKS.iter().fold(list.to_owned(), |list, (other, own)| replace_whole(&list, other, own));
    let list = taints(&list);
    Some(Reason::NoNode { nodes: n, lacks: Lacks::parse_list(&list) })
}

/// Whether a list of what nodes lack is not in Krafla's form.
pub(crate) fn has_other_words(list: &str) -> bool {
    let is_other =
        |item: &str| LACKS.iter().any(|(other, own)| item.ends_with(other) && !item.ends_with(own));
    list.contains(". ") || list.ends_with('.') || list != taints(list) || list.split(", ").any(is_other)
}

/// Replaces an item of a list, and not the beginning of a longer one.
fn replace_whole(list: &str, other: &str, own: &str) -> String {
    let items = list.split(", ").map(|item| match item.strip_suffix(other) {
        Some(before) if !item.ends_with(own) => format!("{before}{own}"),
        _ => item.to_owned(),
    });
    items.collect::<Vec<_>>().join(", ")
}

/// Older schedulers: `1 node(s) had taint {a: b}, that the pod didn't tolerate`.
fn taints(list: &str) -> String {
    list.replace(", that the pod didn't tolerate", "")
        .replace("node(s) had taint {", "node(s) had untolerated taint {")
}

/// `3/4 tasks in gang unschedulable: pod group is not ready, 2 Pending, 4 minAvailable; Pending: 2 Unschedulable`, of which
/// versions of Volcano leave out one part or the other.
fn gang(text: &str) -> Option<Reason> {
    let (counts, rest) = match text.split_once(" tasks in gang unschedulable") {
        Some((counts, rest)) => (Some(counts), rest.trim_start_matches(':').trim()),
        None => (None, text),
    };
    let rest = rest.trim_end_matches('.');
    let count = |counts: &str| {
        let (waiting, members) = counts.rsplit(' ').next()?.split_once('/')?;
        Some((u32::read(waiting)?, u32::read(members)?))
    };
    let state =
        rest.strip_prefix("pod group is not ready, ").or_else(|| rest.strip_prefix("job is not ready, "));
    let Some(state) = state else {
        // Only what pods lack.
        let (waiting, members) = count(counts?)?;
        let because = lacking(rest).unwrap_or_else(|| Reason::parse(rest));
        let (summary, pending) = (Tally(vec![(waiting, "Pending".to_owned())]), Pending::default());
        return Some(Reason::Gang {
            waiting,
            members,
            summary,
            min: members,
            pending,
            because: Box::new(because),
        });
    };
    let (summary, detail) = state.split_once("; ").unwrap_or((state, ""));
    let (summary, min) = match summary.rsplit_once(", ") {
        Some((before, min)) if min.ends_with(" minAvailable") => {
            (before, u32::read(min.strip_suffix(" minAvailable")?)?)
        }
        _ => match summary.strip_suffix(" minAvailable").and_then(u32::read) {
            Some(min) => ("no pods", min),
            None => (summary, 0),
        },
    };
    let summary = Tally::read(summary)?;
    let Some((waiting, members)) = counts.and_then(count).or_else(|| (!detail.is_empty()).then_some((0, 0)))
    else {
        return Some(Reason::GangNotReady { summary, min });
    };
    let (pending, because) = details(detail);
    Some(Reason::Gang { waiting, members, summary, min, pending, because: Box::new(because) })
}

/// `Pending: 1 Unschedulable, 2 Schedulable. Origin reason is a-w-0: 0/3 nodes are unavailable: 1 Insufficient cpu.`
fn details(detail: &str) -> (Pending, Reason) {
    let (tally, origin) = match detail.split_once("Origin reason is ") {
        Some((tally, origin)) => (tally, Some(origin)),
        None => (detail, None),
    };
    let tally = tally.trim_start_matches("Pending:").trim().trim_end_matches([';', '.', ' ']);
    let pending = Tally::read(tally).map(|tally| Pending(tally.0)).unwrap_or_default();
    let origin = origin.map(|origin| {
        let origin = origin.trim_end_matches('.');
        origin.split_once(": ").and_then(|(_, why)| known(why)).unwrap_or_else(|| Reason::parse(origin))
    });
    let because = origin.or_else(|| lacking(tally)).unwrap_or(Reason::Unstated);
    (pending, because)
}

/// What nodes lack for some pods of a gang, if that is what is counted.
fn lacking(list: &str) -> Option<Reason> {
    use crate::Lack;
    let Lacks(all) = Lacks::parse_list(list);
    let lacks: Vec<_> = all.into_iter().filter(|(_, lack)| !matches!(lack, Lack::Other { .. })).collect();
    (!lacks.is_empty()).then_some(Reason::NoNode { nodes: 0, lacks: Lacks(lacks) })
}

/// Volcano's words about queues and the cluster.
fn queue(text: &str) -> Option<Reason> {
    // A condition without a message has its reason only.
    if text == "NotEnoughResources" || text.starts_with("not enough ") {
        return Some(Reason::ClusterOverused);
    }
    if let Some(rest) = text.strip_prefix("queue resource quota insufficient") {
        let rest = rest.trim_start_matches(':').trim();
        let resource = rest.rsplit(' ').next().filter(|word| !word.is_empty()).unwrap_or("resources");
        return Some(Reason::QueueQuota {
            queue: "of-the-job".into(),
            resource: resource.trim_end_matches('.').into(),
        });
    }
    let named = |template: &'static str| {
        let filled =
            fill(template, text.trim_end_matches('.'), &|filled| Some(gap(filled, "queue")?.to_owned()))?;
        Name::read(filled.trim_matches(['\'', '"', '`', '<', '>']))
    };
    let closed = [
        "can only submit job to queue with state `Open`, queue {queue} status is `Closed`",
        "can only submit job to queue with state `Open`, queue {queue} status is `Closing`",
        "queue {queue} is not open",
        "queue {queue} state is not open",
        "the queue {queue} is closed",
    ];
    let missing = [
        "unable to find job queue: queue {queue} not found",
        "unable to find job queue: queues.scheduling.volcano.sh {queue} not found",
    ];
    let queue = closed.into_iter().find_map(named).map(|queue| Reason::QueueIsClosed { queue });
    queue.or_else(|| missing.into_iter().find_map(named).map(|queue| Reason::QueueMissing { queue }))
}

/// What kubelets and container runtimes say.
fn container(text: &str) -> Option<Reason> {
    let quoted = |before: &str| {
        let (_, after) = text.split_once(before)?;
        after.split_once('"').map(|(quoted, _)| quoted)
    };
    if text.contains("executable file not found in $PATH") || text.contains("no such file or directory") {
        let command = quoted("exec: \"").and_then(Name::read);
        if let Some(command) = command {
            return Some(Reason::CommandNotInImage { command });
        }
    }
    if let Some(image) = quoted("Back-off pulling image \"") {
        return Some(Reason::ImagePull { image: image.to_owned() });
    }
    if let Some(image) =
        quoted("failed to pull and unpack image \"").or_else(|| quoted("Failed to pull image \""))
    {
        return Some(Reason::ImagePullFailed { image: image.to_owned(), why: text.to_owned() });
    }
    if text == "The node was low on resource" || text.starts_with("The node was low on resource: ") {
        return Some(Reason::Evicted { why: text.to_owned() });
    }
    if text == "Pod was active on the node longer than the specified deadline" {
        return Some(Reason::PodDeadline);
    }
    // Newer kubelets: `Readiness probe failed: ...`, with more than one word before.
    None
}

/// What API servers say, with more around it.
fn refusal(text: &str) -> Option<Reason> {
    for known_start in [
        "exceeded quota: ",
        "failed quota: ",
        "error looking up service account ",
        "pod rejected: RuntimeClass ",
        "no PriorityClass with name ",
        "maximum ",
        "minimum ",
        "admission webhook ",
    ] {
        if let Some(at) = text.find(known_start).filter(|at| *at > 0) {
            let (_, within) = text.split_at_checked(at)?;
            // Several limits are listed in brackets.
            let within = within.trim_end_matches(']');
            let within = within
                .split_once(", m")
                .filter(|_| known_start.ends_with("imum "))
                .map_or(within, |(first, _)| first);
            let within = within.split_once(", and ").map_or(within, |(first, _)| first);
            if let Some(reason) = known(within) {
                return Some(reason);
            }
        }
    }
    let (before, within) = text.split_once(" is forbidden: ")?;
    let (resource, name) = before.rsplit_once(' ').unwrap_or(("object", before));
    let resource = resource.rsplit(' ').next().and_then(Name::read).unwrap_or_else(|| "object".into());
    let name = Name::read(name.trim_matches('"')).unwrap_or_else(|| "?".into());
    Some(Reason::Forbidden { resource, name, because: Box::new(Reason::parse(within)) })
}
