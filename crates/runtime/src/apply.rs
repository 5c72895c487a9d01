//! Applies a plan. It decides nothing: it reports how each write ended, and the next plan decides.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use krafla_api::{Key, Kind, Uid};
use krafla_cluster::{Client, ClientError, Step, Write, Written};
use krafla_plan::{Object, Plan};

use crate::barrier::Expectation;

/// How many writes of one plan may be under way at once.
const WRITES_IN_FLIGHT_MAX: usize = 32;

/// What carrying out a plan came to.
#[derive(Debug, Default)]
pub struct Applied {
    /// What the cache must show before the root is looked at again.
    pub expectations: Vec<Expectation>,
    /// How many writes were made.
    pub writes: usize,
    /// How many of them should have created something, and did not.
    pub creations_failed: usize,
    /// The writes that the plan's notes tell of and that were not made: these notes are not true.
    pub unwritten: BTreeSet<Write>,
    /// Why it ended early, if it did.
    pub failure: Option<Failure>,
}

/// A write that did not succeed.
#[derive(Debug)]
pub struct Failure {
    /// The write, as plans print it.
    pub step: String,
    /// The reason of the Event that says so, if the server refused it.
    pub refusal_reason: &'static str,
    /// Why.
    pub error: ClientError,
}

/// The root as it was when a plan was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Premise {
    /// Its kind.
    pub kind: Kind,
    /// Where it was.
    pub key: Key,
    /// Who it was.
    pub uid: Uid,
    /// Its revision.
    pub revision: u64,
}

/// Makes the writes of a plan: the status first, then the steps in order. Neighbouring steps of one sort and kind do not
/// depend on each other and are made side by side, in one wave or in several that grow ([`waves`]). The first failure ends
/// the plan after its wave, but for what stands [aside](Plan::aside).
///
/// A plan with a premise is carried out if the server says that it holds.
pub async fn apply(client: &dyn Client, premise: Option<&Premise>, plan: &Plan) -> Applied {
    let mut applied = Applied { unwritten: told_of(plan), ..Applied::default() };
    if let Some(premise) = premise {
        applied.verify(premise, client.get(premise.kind, &premise.key).await);
        if applied.failure.is_some() || !applied.expectations.is_empty() {
            return applied;
        }
    }
    make(client, plan.status.as_slice(), &mut applied).await;
    // Nothing is made for a root that is no more: it would be removed again, and that would lead here again.
    if let [Expectation::Gone { .. }] = applied.expectations.as_slice() {
        return applied;
    }
    for wave in plan.steps.chunk_by(may_run_beside).flat_map(|group| waves(plan, group)) {
        if applied.failure.is_some() {
            break;
        }
        make(client, wave, &mut applied).await;
    }
    make(client, &plan.aside, &mut applied).await;
    applied
}

/// The writes of the plan that its notes tell of.
fn told_of(plan: &Plan) -> BTreeSet<Write> {
    let told: BTreeSet<&Write> = plan.notes.iter().filter_map(|note| note.tells_of.as_ref()).collect();
    if told.is_empty() {
        return BTreeSet::new();
    }
    plan.writes().map(Step::write).filter(|write| told.contains(write)).collect()
}

/// The parts of a group that are made one after the other: all at once, or, of things that are created and are all alike, one at
/// first and then twice as many each time. So a server that takes them is soon asked for as many at once as may be, and one that
/// refuses them is asked for little more than twice as many as it takes.
fn waves<'a>(plan: &Plan, group: &'a [Step]) -> impl Iterator<Item = &'a [Step]> + use<'a> {
    let starts_slowly = plan.creates_alike && group.iter().all(Step::creates);
    let mut n_next = if starts_slowly { 1 } else { group.len() };
    let mut rest = group;
    std::iter::from_fn(move || {
        let (wave, later) = rest.split_at_checked(n_next.min(rest.len()))?;
        (rest, n_next) = (later, n_next.saturating_mul(2));
        (!wave.is_empty()).then_some(wave)
    })
}

/// Makes writes that do not depend on each other.
async fn make(client: &dyn Client, group: &[Step], applied: &mut Applied) {
    let writes: Vec<_> = group.iter().map(|step| client.write(step)).collect();
    let mut answers = stream::iter(writes).buffered(WRITES_IN_FLIGHT_MAX);
    for step in group {
        let Some(answer) = answers.next().await else { break };
        applied.writes += 1;
        applied.record(step, answer);
    }
}

impl Applied {
    /// Takes in what the server says about the root. If that is news, the cache must show it before the next plan.
    fn verify(&mut self, premise: &Premise, answer: Result<Bytes, ClientError>) {
        let Premise { kind, key, uid, revision } = premise.clone();
        let error = match answer.map(|root| Object::decode(kind, &root).meta) {
            Ok(live) if live.uid == uid && live.revision <= revision => return,
            Ok(live) if live.uid == uid => {
                self.expectations.push(Expectation::Revision { kind, revision: live.revision });
                ClientError::conflict("it has changed since it was decided for")
            }
            Ok(_) | Err(ClientError::NotFound(_)) => {
                return self.expectations.push(Expectation::Gone { kind, key, uid });
            }
            Err(error) => error,
        };
        let step = format!("get {kind:?} {key}");
        self.failure = Some(Failure { step, refusal_reason: "FailedGet", error });
    }

    fn record(&mut self, step: &Step, answer: Result<Written, ClientError>) {
        let is_gone = matches!((step, &answer), (Step::Delete { .. }, Err(ClientError::NotFound(_))));
        if !self.unwritten.is_empty() && (answer.is_ok() || is_gone) {
            self.unwritten.remove(&step.write());
        }
        match (step, answer) {
            // What should go or change may be gone already. The next plan starts from that, so the cache must show it.
            (Step::Delete { kind, key, uid, .. }, Ok(_))
            | (
                Step::Delete { kind, key, uid, .. } | Step::Patch { kind, key, uid, .. },
                Err(ClientError::NotFound(_)),
            ) => {
                self.expectations.push(Expectation::Gone { kind: *kind, key: key.clone(), uid: uid.clone() });
            }
            (_, Ok(written)) => {
                self.expectations
                    .push(Expectation::Revision { kind: step.kind(), revision: written.revision });
            }
            (_, Err(error)) => {
                self.creations_failed += usize::from(step.creates());
                let failure =
                    Failure { step: step.to_string(), refusal_reason: step.refusal_reason(), error };
                self.failure.get_or_insert(failure);
            }
        }
    }
}

fn may_run_beside(one: &Step, next: &Step) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(next) && one.kind() == next.kind()
}
