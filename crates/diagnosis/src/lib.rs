//! Diagnosis of one object: why it waits, restarts, failed or ended, what to do about it, and what happens next.
//!
//! ```text
//!   Facts       objects as the API server returns them, and the time        facts.rs, resource.rs
//!     |
//!     v         one module per kind finds the cause, and follows it down: flow -> job -> gang -> pod -> node
//!   Link        an object and its reason                                    vcjob.rs, batch.rs, gang.rs, pod.rs, ...
//!     |
//!     v
//!   Diagnosis   state, chain of causes, remedies with commands, what comes next, place in the queue, timeline
//! ```
//!
//! The diagnosis reads objects, conditions and Events only. So it works for Krafla's scheduler and controllers, for
//! Volcano's, and for Kubernetes' own.
//!
//! **Invariant:** pure. No clock, no I/O. Objects that could not be read are never taken to be missing.

mod amounts;
mod batch;
mod cron;
mod facts;
mod flow;
mod gang;
mod line;
mod next;
mod nodes;
mod pod;
mod remedy;
mod resource;
mod show;
mod timeline;
mod vcjob;

use krafla_api::Time;
use krafla_why::Reason;
use serde_json::Value;

pub use amounts::User;
pub use facts::Facts;
pub use line::{Ahead, Line};
pub use next::Next;
pub use remedy::Remedy;
pub use resource::Resource;
pub use show::{json, screen};
pub use timeline::Moment;

use facts::{list, text, time};

/// How many ConfigMaps and Secrets are looked for.
const REFERENCES_MAX: usize = 50;

/// An object, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// What it is.
    pub resource: Resource,
    /// Its namespace; empty if it is in none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Subject {
    pub(crate) fn new(resource: Resource, object: &Value) -> Subject {
        let namespace = if resource.is_namespaced() { text(object, "metadata.namespace") } else { "" };
        Subject { resource, namespace: namespace.to_owned(), name: text(object, "metadata.name").to_owned() }
    }

    pub(crate) fn find<'a>(&self, facts: &'a Facts) -> Option<&'a Value> {
        facts.get(self.resource, &self.namespace, &self.name)
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.resource.word(), self.name),
            namespace => write!(f, "{} {namespace}/{}", self.resource.word(), self.name),
        }
    }
}

/// An object and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The object.
    pub about: Subject,
    /// Its reason.
    pub reason: Reason,
    /// The time since which the reason holds, where that is known.
    pub since: Option<Time>,
}

/// How an object fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for something.
    Waiting,
    /// It runs; parts of it may wait.
    Running,
    /// A person or a policy stopped it for the time being.
    Stopped,
    /// It failed.
    Failed,
    /// It ended well.
    Completed,
    /// It is being deleted.
    Deleting,
}

impl State {
    /// The state as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Running => "running",
            State::Stopped => "stopped",
            State::Failed => "failed",
            State::Completed => "completed",
            State::Deleting => "deleting",
        }
    }
}

/// All that is known about one object's progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The object.
    pub subject: Subject,
    /// How it fares.
    pub state: State,
    /// The phase in its status, as its controller writes it; empty if there is none.
    pub phase: String,
    /// The time since which it is in this phase.
    pub since: Option<Time>,
    /// The causes, from the object itself down to the pod, node or queue that decides. Empty if nothing is wrong.
    pub chain: Vec<Link>,
    /// Who uses what is short, if something is; the largest first.
    pub users: Vec<User>,
    /// What to do about it, the best first.
    pub remedies: Vec<Remedy>,
    /// What happens without any action.
    pub next: Vec<Next>,
    /// Its place in the queue, if it waits for its turn.
    pub line: Option<Line>,
    /// What happened, the oldest first.
    pub timeline: Vec<Moment>,
}

impl Diagnosis {
    /// The cause at the end of the chain.
    pub fn cause(&self) -> Option<&Link> {
        self.chain.last()
    }
}

/// The diagnosis of an object, if it exists.
pub fn diagnose(facts: &Facts, subject: &Subject) -> Option<Diagnosis> {
    let object = subject.find(facts)?;
    let chain = chain(facts, subject.resource, object);
    let phase = phase(subject.resource, object);
    let state = state(subject.resource, object, &phase, &chain);
    Some(Diagnosis {
        remedies: remedy::remedies(facts, subject, &chain),
        users: chain.last().map(|link| amounts::users(facts, &link.reason)).unwrap_or_default(),
        next: next::next(facts, subject.resource, object, &chain),
        line: line::line(facts, subject.resource, object, state),
        timeline: timeline::timeline(facts, subject.resource, object),
        since: since(subject.resource, object),
        subject: subject.clone(),
        state,
        phase,
        chain,
    })
}

/// The ConfigMaps and Secrets that an object's pods name. They are asked for one by one: there may be many others.
pub fn references(
    facts: &Facts,
    subjects: &[Resource],
    namespace: &str,
    name: &str,
) -> Vec<(Resource, String)> {
    let mut found = std::collections::BTreeSet::new();
    for resource in subjects {
        let Some(object) = facts.get(*resource, namespace, name) else { continue };
        let mut add = |spec: &Value| {
            let needed = pod::referenced(spec).into_iter().filter(|(_, _, is_optional)| !is_optional);
            found.extend(needed.map(|(resource, name, _)| (resource, name)));
        };
        if *resource == Resource::Pod {
            add(facts::field(object, "spec"));
        }
        for (child, _) in
            timeline::family(facts, *resource, object).into_iter().filter(|(_, it)| *it == Resource::Pod)
        {
            add(facts::field(child, "spec"));
        }
    }
    found.into_iter().take(REFERENCES_MAX).collect()
}

/// The causes of an object's state, from itself down.
pub(crate) fn chain(facts: &Facts, resource: Resource, object: &Value) -> Vec<Link> {
    if let Some(link) = deleted(facts, resource, object) {
        return vec![link];
    }
    match resource {
        Resource::VcJob => vcjob::chain(facts, object),
        Resource::Job => batch::chain(facts, object),
        Resource::Pod => pod::chain(facts, object),
        Resource::PodGroup => gang::chain(facts, object),
        Resource::Queue => gang::queue_chain(facts, object),
        Resource::JobFlow => flow::chain(facts, object),
        Resource::CronJob | Resource::VcCronJob => cron::chain(facts, resource, object),
        _ => Vec::new(),
    }
}

fn deleted(facts: &Facts, resource: Resource, object: &Value) -> Option<Link> {
    let since = time(object, "metadata.deletionTimestamp")?;
    let about = Subject::new(resource, object);
    let finalizers: Vec<&str> = list(object, "metadata.finalizers").filter_map(Value::as_str).collect();
    if !finalizers.is_empty() {
        let finalizers = finalizers.into_iter().map(Into::into).collect();
        return Some(Link { about, reason: Reason::Deleted { finalizers }, since: Some(since) });
    }
    // A pod that takes longer than its grace period is not let go by its node.
    let is_late = resource == Resource::Pod && facts.now > since;
    let reason = Reason::PodEnding { pod: about.name.as_str().into() };
    is_late.then_some(Link { about, reason, since: Some(since) })
}

/// The phase as the controller writes it.
fn phase(resource: Resource, object: &Value) -> String {
    let path = match resource {
        Resource::VcJob | Resource::JobFlow => "status.state.phase",
        Resource::Queue => "status.state",
        Resource::Pod | Resource::PodGroup => "status.phase",
        Resource::Job => return batch::phase(object).to_owned(),
        Resource::CronJob | Resource::VcCronJob => return cron::phase(object).to_owned(),
        _ => return String::new(),
    };
    text(object, path).to_owned()
}

fn since(resource: Resource, object: &Value) -> Option<Time> {
    let paths: &[&str] = match resource {
        Resource::VcJob => &["status.state.lastTransitionTime"],
        Resource::Job => &["status.completionTime", "status.startTime"],
        Resource::Pod => &["status.startTime"],
        _ => &[],
    };
    let paths = paths.iter().chain(&["metadata.creationTimestamp"]);
    paths.filter_map(|path| time(object, path)).next()
}

fn state(resource: Resource, object: &Value, phase: &str, chain: &[Link]) -> State {
    if time(object, "metadata.deletionTimestamp").is_some() {
        return State::Deleting;
    }
    match phase {
        "Completed" | "Succeeded" | "Succeed" | "Complete" => State::Completed,
        "Failed" | "Terminated" => State::Failed,
        "Aborted" | "Suspended" | "Closed" | "Closing" => State::Stopped,
        "Running" | "Open" | "Scheduled" | "Active" => {
            // Jobs of several pods run even if a part of them waits.
            let is_whole = !matches!(
                resource,
                Resource::VcJob | Resource::JobFlow | Resource::PodGroup | Resource::Queue
            );
            let is_on_time = matches!(chain.last(), None | Some(Link { reason: Reason::NextRun { .. }, .. }));
            if is_whole && !is_on_time { State::Waiting } else { State::Running }
        }
        _ if chain.is_empty() => State::Running,
        _ => State::Waiting,
    }
}
