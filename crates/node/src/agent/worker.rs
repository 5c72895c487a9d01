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
use crate::supervisor::protocol::Request;

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
    watch: Watch,
    /// What was said already.
    pub(super) notes: Vec<Note>,
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
            is_confirmed: false,
            watch: Watch::new(view.wake.clone()),
            notes: Vec::new(),
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
            self.refresh_volumes(&context).await;
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
                        Ok(request) => {
                            self.shared.link.send(request);
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
    ) -> Result<Request, Problem> {
        if self.volumes.is_none() {
            context.make_volumes().await?;
            self.volumes = Some(context.volumes_version);
        }
        let launch = context.launch(id.clone(), backoff_seconds).await?;
        Ok(Request::Start(Box::new(launch)))
    }

    /// Brings the volumes up to date if what they are made of has changed. What can not be read leaves them
    /// as they are.
    async fn refresh_volumes(&mut self, context: &Context) {
        if self.volumes.is_some_and(|version| version != context.volumes_version) {
            self.volumes = Some(context.volumes_version);
            if let Err(problem) = context.make_volumes().await {
                tracing::info!(pod = %context.pod.key(), problem.message, "volumes are not up to date");
            }
        }
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
        self.shared.hosts.changed(pod);
    }

    async fn wait(&self, wake_at: Option<Time>) {
        let wake_at = [wake_at, self.retry_at].into_iter().flatten().min();
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
