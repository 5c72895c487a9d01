//! Looks after one pod: decides, carries out, reports, and waits for the next change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use krafla_api::{Time, Uid};
use krafla_plan::Note;
use tokio::sync::Notify;

use super::Shared;
use super::addresses::HOST;
use super::launch::{Context, Problem};
use super::pods::View;
use super::reports::backoff;
use crate::container::ContainerId;
use crate::decide::{Action, Decision, Next, Sight, Trouble, decide};
use crate::health::Watch;
use crate::pod::Pod;
use crate::status::PodStatus;
use crate::supervisor::protocol::{Launch, Request};

/// How long to wait after volumes could not be brought up to date.
const REFRESH_AGAIN_AFTER: Duration = Duration::from_secs(10);

pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) uid: Uid,
    wake: Arc<Notify>,
    /// The newest status, ours or the server's, and its revision.
    pub(super) status: PodStatus,
    pub(super) revision: u64,
    /// What was asked for on this connection to the supervisor and is not visible yet.
    asked: BTreeSet<ContainerId>,
    session: u64,
    /// Why containers can not be started, and how often each was tried.
    troubles: BTreeMap<String, Trouble>,
    n_tries: BTreeMap<String, u32>,
    /// Which version of the volumes' sources was written to them, once they have been made.
    volumes: Option<u64>,
    /// When they must be brought up to date though nothing has changed.
    renew_at: Option<Time>,
    watch: Watch,
    /// What was said already.
    pub(super) notes: Vec<Note>,
    /// The last start of each container that was told of.
    pub(super) starts: BTreeMap<String, u32>,
    /// What containers lack although they were started.
    pub(super) shortcomings: BTreeSet<String>,
    /// Whether the server knows that nothing runs any more.
    pub(super) is_confirmed: bool,
    /// When to try a write again that failed, and how often it has failed.
    pub(super) retry_at: Option<Time>,
    pub(super) n_failed_writes: u32,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, view: &View) -> Worker {
        Worker {
            shared,
            uid: view.pod.metadata.uid.clone(),
            wake: view.wake.clone(),
            status: PodStatus::default(),
            revision: 0,
            asked: BTreeSet::new(),
            session: 0,
            troubles: BTreeMap::new(),
            n_tries: BTreeMap::new(),
            volumes: None,
            renew_at: None,
            is_confirmed: false,
            watch: Watch::new(view.wake.clone()),
            notes: Vec::new(),
            starts: BTreeMap::new(),
            shortcomings: BTreeSet::new(),
            retry_at: None,
            n_failed_writes: 0,
        }
    }

    /// Returns once nothing is left of the pod.
    pub(super) async fn run(mut self) {
        while let Some(mut view) = self.shared.pods.view(&self.uid) {
            self.take_in(&mut view);
            let context = Context::of(self.shared.clone(), &view);
            self.refresh_volumes(&context, view.attempts.any_running()).await;
            let running =
                view.attempts.all_running().map(|record| (record.id.name.as_str(), record)).collect();
            self.watch.update(&context, &running, &self.status);
            let now = self.shared.clock.now();
            // What is due again is tried again below.
            self.retry_at = self.retry_at.filter(|at| *at > now);
            let decision = self.decide(&view, now);
            let has_new_trouble = self.carry_out(&context, &decision.actions, now).await;
            if has_new_trouble {
                continue;
            }
            if !view.is_gone {
                if !decision.is_passing() {
                    self.report(&view.pod, &decision.status).await;
                }
                self.say_starts(&view.pod, &decision.starts).await;
                self.say(&view.pod, decision.notes).await;
            }
            match decision.next {
                Next::Wait => {}
                Next::ConfirmDeletion => self.confirm(&view.pod).await,
                Next::CleanUp => return self.clean_up(&view.pod),
            }
            self.wait(decision.wake_at).await;
        }
    }

    fn take_in(&mut self, view: &mut View) {
        if view.pod.metadata.revision() > self.revision {
            self.revision = view.pod.metadata.revision();
            self.status = view.pod.status.clone();
        }
        if self.session != view.session {
            self.session = view.session;
            self.asked.clear();
        }
        self.asked.retain(|id| view.attempts.get(&id.name, id.attempt).is_none());
        view.attempts.recover(&view.pod, &self.status, self.shared.clock.now().0);
    }

    fn decide(&self, view: &View, now: Time) -> Decision {
        let (health, pre_stops) = self.watch.found();
        decide(&Sight {
            pod: &view.pod,
            before: &self.status,
            attempts: &view.attempts,
            troubles: &self.troubles,
            health: &health,
            pre_stops: &pre_stops,
            is_gone: view.is_gone,
            host_ip: &HOST.to_string(),
            pod_ip: &view.address.to_string(),
            now,
        })
    }

    /// Returns whether a container could not be started: then there is something new to report.
    async fn carry_out(&mut self, context: &Context, actions: &[Action], now: Time) -> bool {
        let pod = self.uid.clone();
        let id = |name: &str, attempt| ContainerId { pod: pod.clone(), name: name.to_owned(), attempt };
        let mut has_new_trouble = false;
        for action in actions {
            match action {
                Action::Stop { container, attempt, how } => {
                    self.shared.link.send(Request::Stop { id: id(container, *attempt), how: *how });
                }
                Action::PreStop { container, attempt, grace_seconds } => {
                    let grace = Duration::from_secs((*grace_seconds).into());
                    self.watch.begin_pre_stop(context, &id(container, *attempt), grace, now);
                }
                Action::Start { container, attempt, backoff_seconds } => {
                    let id = id(container, *attempt);
                    if self.asked.contains(&id) {
                        continue;
                    }
                    match self.launch(context, &id, *backoff_seconds).await {
                        Ok(launch) => {
                            context.remember(&launch);
                            self.shared.link.send(Request::Start(Box::new(launch)));
                            self.asked.insert(id);
                            self.troubles.remove(container);
                            self.n_tries.remove(container);
                            self.shortcomings.extend(context.shortcoming(container).await);
                        }
                        Err(trouble) => {
                            self.trouble(container, trouble);
                            has_new_trouble = true;
                        }
                    }
                }
            }
        }
        has_new_trouble
    }

    async fn launch(
        &mut self,
        context: &Context,
        id: &ContainerId,
        backoff_seconds: u32,
    ) -> Result<Launch, Problem> {
        if self.volumes.is_none() {
            context.make_volumes().await?;
            self.volumes = Some(context.volumes_version);
            self.renew_at = context.renew_after().map(|after| self.shared.clock.now().after(after));
        }
        let launch = context.launch(id.clone(), backoff_seconds).await?;
        if !launch.can_be_sent() {
            let message = "its command and its environment are too large: Linux takes about 2 MiB of them";
            return Err(Problem { reason: "CreateContainerError", message: message.to_owned() });
        }
        Ok(launch)
    }

    /// Brings the volumes up to date if what they are made of has changed, or their tokens are old. Of those that were made for
    /// containers that run already, nobody knows how old they are. What can not be read leaves them as they are.
    async fn refresh_volumes(&mut self, context: &Context, is_running: bool) {
        if self.status.phase.is_finished() {
            self.renew_at = None;
            return;
        }
        let now = self.shared.clock.now();
        let is_due = self.renew_at.is_some_and(|at| at <= now);
        let is_old = match self.volumes {
            Some(version) => is_due || version != context.volumes_version,
            None => is_running,
        };
        if !is_old {
            return;
        }
        self.volumes = Some(context.volumes_version);
        let refreshed = context.refresh_volumes().await;
        let again_after = match refreshed {
            Ok(()) => context.renew_after(),
            Err(problem) => {
                tracing::info!(pod = %context.pod.key(), problem.message, "volumes are not up to date");
                Some(REFRESH_AGAIN_AFTER)
            }
        };
        self.renew_at = again_after.map(|after| now.after(after));
    }

    fn trouble(&mut self, container: &str, problem: Problem) {
        let n_tries = self.n_tries.entry(container.to_owned()).or_default();
        let retry_at = self.shared.clock.now().after(backoff(*n_tries));
        *n_tries = n_tries.saturating_add(1);
        let Problem { reason, message } = problem;
        self.troubles.insert(container.to_owned(), Trouble { reason, message, retry_at });
    }

    fn clean_up(self, pod: &Pod) {
        self.shared.link.send(Request::Forget { pod: self.uid.clone() });
        self.shared.pods.remove(&self.uid);
        self.shared.hosts.gone(pod);
    }

    async fn wait(&self, wake_at: Option<Time>) {
        let wake_at = [wake_at, self.retry_at, self.renew_at].into_iter().flatten().min();
        match wake_at {
            None => self.wake.notified().await,
            Some(at) => {
                // A moment more, so that it is past the time and not just before it.
                let delay = at.since(self.shared.clock.now()) + Duration::from_millis(1);
                let _ = tokio::time::timeout(delay, self.wake.notified()).await;
            }
        }
    }
}
