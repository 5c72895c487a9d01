//! Makes trials on both servers, many at a time, and collects what differs.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use krafla_recorded::case::Who;
use krafla_recorded::client::{Client, Target};
use krafla_recorded::play::{play_in, unique};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::accepted::Accepted;
use crate::bases::Subject;
use crate::compare::{Difference, differences};
use crate::plan::Plan;
use crate::report::{Example, GroupKey, Report, key};
use crate::trial::Trial;

/// Both servers, and the namespaces where everything happens.
#[derive(Clone)]
pub(crate) struct Pair {
    real: Target,
    embedded: Target,
    unique: String,
}

/// When a run ends.
pub(crate) struct Limits {
    pub(crate) within: Duration,
    pub(crate) n_trials: usize,
    pub(crate) n_workers: usize,
}

impl Pair {
    /// Two servers, with the namespaces made.
    pub(crate) async fn prepare(real: Target, embedded: Target) -> Result<Pair> {
        let pair = Pair { real, embedded, unique: unique() };
        for namespace in ["", "-b", "-s"].map(|suffix| format!("g-{}{suffix}", pair.unique)) {
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            for target in [&pair.real, &pair.embedded] {
                let (code, body) = pair.post(target, "/api/v1/namespaces", &body).await?;
                // Both may be the same server.
                anyhow::ensure!(matches!(code, 201 | 409), "namespace {namespace}: {body}");
            }
        }
        Ok(pair)
    }

    async fn post(&self, target: &Target, path: &str, body: &Value) -> Result<(u16, String)> {
        let filled =
            |text: &str| text.replace("{{ns}}", &format!("g-{}", self.unique)).replace("{{u}}", &self.unique);
        let request = http_request(&filled(path), filled(&body.to_string()))?;
        let answer =
            Client::new(target.clone()).ask(Who::Admin, request).await.map_err(|error| anyhow!(error))?;
        Ok((answer.code, String::from_utf8_lossy(&answer.body).into_owned()))
    }

    /// Stores an object of every variant on both servers. Returns those that both have.
    pub(crate) async fn store(&self, subjects: &[Subject]) -> Result<HashSet<(usize, usize)>> {
        let mut stored = HashSet::new();
        for (at, subject) in subjects.iter().enumerate() {
            for variant in 0..subject.bases.len() {
                let object = subject.stored(variant);
                let (real, real_text) = self.post(&self.real, &subject.path(), &object).await?;
                let (embedded, embedded_text) = self.post(&self.embedded, &subject.path(), &object).await?;
                let is_taken = [&real_text, &embedded_text].iter().any(|text| text.contains("AlreadyExists"));
                if real != 201 && !is_taken {
                    eprintln!("variant {variant} of {} is not valid: {real_text}", subject.name());
                }
                if embedded != 201 && !is_taken {
                    eprintln!(
                        "variant {variant} of {} is refused by the embedded server: {embedded_text}",
                        subject.name()
                    );
                }
                if real == 201 && embedded == 201 {
                    stored.insert((at, variant));
                }
            }
        }
        Ok(stored)
    }

    /// A worker's ways to both servers.
    pub(crate) fn clients(&self) -> Clients {
        let (real, embedded) = (Client::new(self.real.clone()), Client::new(self.embedded.clone()));
        Clients { unique: self.unique.clone(), both: Some((real, embedded)) }
    }
}

fn http_request(path: &str, body: String) -> Result<http::Request<bytes::Bytes>> {
    let request = http::Request::builder().method("POST").uri(path);
    let request = request.header("accept", "application/json").header("content-type", "application/json");
    Ok(request.body(bytes::Bytes::from(body))?)
}

/// One worker's connections.
pub(crate) struct Clients {
    unique: String,
    both: Option<(Client, Client)>,
}

/// The answers of both servers to a trial.
pub(crate) struct Answers {
    pub(crate) real: Vec<Value>,
    pub(crate) embedded: Vec<Value>,
}

impl Clients {
    /// Asks both servers.
    pub(crate) async fn ask(&mut self, subject: &Subject, trial: &Trial) -> Answers {
        let case = trial.case(subject);
        let steps = case.steps();
        let Some((real, embedded)) = self.both.take() else {
            return Answers { real: vec![], embedded: vec![] };
        };
        let (real, embedded) = tokio::join!(
            play_in(&self.unique, real, &case, &steps),
            play_in(&self.unique, embedded, &case, &steps)
        );
        self.both = Some((real.0, embedded.0));
        Answers { real: real.1, embedded: embedded.1 }
    }

    /// Asks one of the servers alone.
    #[cfg(test)]
    pub(crate) async fn ask_one(
        &mut self,
        subject: &Subject,
        trial: &Trial,
        of_embedded: bool,
    ) -> Vec<Value> {
        let case = trial.case(subject);
        let Some((real, embedded)) = self.both.take() else { return Vec::new() };
        let (asked, other) = if of_embedded { (embedded, real) } else { (real, embedded) };
        let (asked, answers) = play_in(&self.unique, asked, &case, &case.steps()).await;
        self.both = Some(if of_embedded { (other, asked) } else { (asked, other) });
        answers
    }

    /// The difference again, if it comes again.
    async fn again(
        &mut self,
        subject: &Subject,
        trial: &Trial,
        wanted: &GroupKey,
    ) -> Option<(Trial, Answers, Difference)> {
        let answers = self.ask(subject, trial).await;
        let found = differences(&answers.real, &answers.embedded);
        let difference = found.into_iter().find(|difference| key(trial, difference) == *wanted)?;
        Some((trial.clone(), answers, difference))
    }

    /// The smallest trial that shows a difference; none if the difference does not come again.
    async fn shrink(
        &mut self,
        subject: &Subject,
        trial: &Trial,
        wanted: &GroupKey,
        deadline: Instant,
    ) -> Option<(Trial, Answers, Difference)> {
        let mut smallest = self.again(subject, trial, wanted).await?;
        let mut at = 0;
        while at < smallest.0.n_parts() && smallest.0.n_parts() > 1 && Instant::now() < deadline {
            match self.again(subject, &smallest.0.without(at), wanted).await {
                Some(smaller) => smallest = smaller,
                None => at += 1,
            }
        }
        Some(smallest)
    }
}

/// Makes trials until the time is over.
pub(crate) async fn run(
    pair: &Pair,
    subjects: Arc<Vec<Subject>>,
    plan: Arc<Plan>,
    accepted: Arc<Accepted>,
    limits: &Limits,
    out: &Path,
) -> Result<Report> {
    let report = Arc::new(Mutex::new(Report::default()));
    let n_made = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let deadline = started + limits.within;
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..limits.n_workers {
        let (subjects, plan, accepted) = (subjects.clone(), plan.clone(), accepted.clone());
        let (report, n_made, mut clients) = (report.clone(), n_made.clone(), pair.clients());
        let n_max = limits.n_trials;
        workers.spawn(async move {
            while Instant::now() < deadline && n_made.fetch_add(1, Ordering::Relaxed) < n_max {
                let Some((at, trial)) = plan.next(&subjects) else { return };
                if let Some(subject) = subjects.get(at) {
                    one(&mut clients, subject, &trial, &report, &accepted, deadline).await;
                }
            }
        });
    }
    let mut ticks = tokio::time::interval(Duration::from_secs(10));
    ticks.tick().await;
    loop {
        tokio::select! {
            ended = workers.join_next() => match ended {
                Some(ended) => ended?,
                None => break,
            },
            _ = ticks.tick() => {
                let report = report.lock();
                report.write(out)?;
                let rate = report.n_trials as f64 / started.elapsed().as_secs_f64();
                eprintln!("{:5.0} s  {:4.0}/s  {}", started.elapsed().as_secs_f64(), rate, report.summary());
            }
        }
    }
    Ok(std::mem::take(&mut *report.lock()))
}

async fn one(
    clients: &mut Clients,
    subject: &Subject,
    trial: &Trial,
    report: &Mutex<Report>,
    accepted: &Accepted,
    deadline: Instant,
) {
    let answers = clients.ask(subject, trial).await;
    let found = differences(&answers.real, &answers.embedded);
    let mut fresh = Vec::new();
    {
        let mut report = report.lock();
        report.n_trials += 1;
        report.n_differing += usize::from(!found.is_empty());
        for difference in &found {
            let key = key(trial, difference);
            if report.is_new(&key) {
                fresh.push((key, difference.clone()));
            } else {
                report.add(key, difference, || example(trial, &answers, difference), accepted);
            }
        }
    }
    for (key, difference) in fresh {
        let Some((trial, answers, difference)) = clients.shrink(subject, trial, &key, deadline).await else {
            eprintln!(
                "seen once and not again: {} {} {}: {}",
                trial.id(),
                difference.class,
                difference.field,
                difference.text
            );
            continue;
        };
        report.lock().add(key, &difference, || example(&trial, &answers, &difference), accepted);
    }
}

fn example(trial: &Trial, answers: &Answers, difference: &Difference) -> Example {
    Example {
        id: trial.id(),
        trial: trial.clone(),
        text: difference.text.clone(),
        real: answers.real.clone(),
        embedded: answers.embedded.clone(),
    }
}
