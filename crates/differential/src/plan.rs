//! Which trials are made, in which order: every change of every field once, in an order that the seed decides, then pairs.

use std::collections::HashSet;

use krafla_schema::TypeRef;
use parking_lot::Mutex;

use crate::bases::Subject;
use crate::fields::{Change, Walk};
use crate::queries::query;
use crate::rng::Rng;
use crate::sequences::sequence;
use crate::trial::{STATUS, Trial, UPDATES, Way};

/// Of the changes inside a pod template of a kind other than Pod, one of so many is made: pods ask the others.
const TEMPLATE_SHARE: u64 = 25;

/// All trials of the chosen kinds.
pub(crate) struct Plan {
    kinds: Vec<Kind>,
    /// Only some fields are asked about.
    has_fields: bool,
    state: Mutex<State>,
}

struct Kind {
    subject: usize,
    name: String,
    has_status: bool,
    variants: usize,
    changes: Vec<(usize, Change)>,
    status_changes: Vec<(usize, Change)>,
    /// How often this kind is chosen, compared with others.
    weight: usize,
}

struct State {
    rng: Rng,
    /// Of each kind, the next change that was not made yet.
    next: Vec<[usize; 3]>,
    /// Stored objects that changes can be sent to: subject and variant.
    stored: HashSet<(usize, usize)>,
}

impl Plan {
    /// The plan of a seed for these kinds; `stored` says of which variants an object is stored.
    pub(crate) fn new(
        subjects: &[Subject],
        chosen: &[String],
        fields: &[String],
        stored: HashSet<(usize, usize)>,
        seed: u64,
    ) -> Plan {
        let mut rng = Rng::new(seed);
        let mut kinds = Vec::new();
        for (at, subject) in subjects.iter().enumerate() {
            let name = subject.name();
            let is_chosen = chosen.is_empty()
                || chosen.iter().any(|wanted| name == *wanted || name.split('.').next() == Some(wanted));
            if is_chosen && let Some(kind) = Kind::new(at, subject, fields, &mut rng) {
                kinds.push(kind);
            }
        }
        let next = vec![[0; 3]; kinds.len()];
        Plan { kinds, has_fields: !fields.is_empty(), state: Mutex::new(State { rng, next, stored }) }
    }

    /// How many different single changes there are.
    pub(crate) fn n_changes(&self) -> usize {
        self.kinds.iter().map(|kind| kind.changes.len() + kind.status_changes.len()).sum()
    }

    /// The next trial, and the kind it is about.
    pub(crate) fn next(&self, subjects: &[Subject]) -> Option<(usize, Trial)> {
        let state = &mut *self.state.lock();
        let total: usize = self.kinds.iter().map(|kind| kind.weight).sum();
        let mut drawn = state.rng.below(total);
        let at = self.kinds.iter().position(|kind| {
            let is_it = drawn < kind.weight;
            drawn = drawn.saturating_sub(kind.weight);
            is_it
        })?;
        let kind = self.kinds.get(at)?;
        let subject = subjects.get(kind.subject)?;
        let trial = match state.rng.below(100) {
            _ if self.has_fields => None,
            0..8 => kind.query(subject, state),
            8..12 => kind.sequence(subject, state),
            _ => None,
        };
        let trial = match trial {
            Some(trial) => trial,
            None => kind.next(at, state)?,
        };
        Some((kind.subject, trial))
    }
}

impl Kind {
    fn new(at: usize, subject: &Subject, fields: &[String], rng: &mut Rng) -> Option<Kind> {
        let of = TypeRef::of(subject.resource.schema?);
        let is_pod = &*subject.resource.names.kind == "Pod";
        let (mut changes, mut status_changes) = (Vec::new(), Vec::new());
        for (variant, base) in subject.bases.iter().enumerate() {
            for change in Walk::object(&of, base).changes {
                let is_inside_template = change.last().is_some_and(|edit| {
                    edit.at.contains("emplate/spec/containers/")
                        || edit.at.contains("emplate/spec/") && edit.at.matches('/').count() > 4
                });
                let is_inside_schema = change.last().is_some_and(|edit| {
                    edit.at.matches("/properties/").count() > 1
                        || change.len() > 1 && edit.at.contains("openAPIV3Schema")
                });
                let is_repeated = is_inside_template && !is_pod || is_inside_schema;
                if !is_repeated || rng.next().is_multiple_of(TEMPLATE_SHARE) {
                    changes.push((variant, change));
                }
            }
            if subject.resource.has_status() && base.get("status").is_some() {
                status_changes
                    .extend(Walk::status(&of, base).changes.into_iter().map(|change| (variant, change)));
            }
        }
        let is_wanted = |(_, change): &(usize, Change)| {
            let at = change.last().map(|edit| edit.at.as_str()).unwrap_or_default();
            fields.is_empty() || fields.iter().any(|field| at.contains(field.as_str()))
        };
        changes.retain(is_wanted);
        status_changes.retain(is_wanted);
        rng.shuffle(&mut changes);
        rng.shuffle(&mut status_changes);
        let weight = changes.len().isqrt();
        let has_status = subject.resource.has_status();
        Some(Kind {
            subject: at,
            name: subject.name(),
            has_status,
            variants: subject.bases.len(),
            changes,
            status_changes,
            weight,
        })
    }

    fn next(&self, at: usize, state: &mut State) -> Option<Trial> {
        let drawn = state.rng.below(100);
        let counters = state.next.get_mut(at)?;
        let (way, list, counter) = match drawn {
            0..10 if self.has_status && !self.status_changes.is_empty() => {
                (*state.rng.pick(&STATUS)?, &self.status_changes, counters.get_mut(2)?)
            }
            0..40 => (*state.rng.pick(&UPDATES)?, &self.changes, counters.get_mut(1)?),
            40..45 => (Way::CreateStrict, &self.changes, counters.get_mut(0)?),
            _ => (Way::Create, &self.changes, counters.get_mut(0)?),
        };
        let position = *counter;
        *counter += 1;
        // Once every change was made alone, or now and then before, two are made at once.
        let is_alone = position < list.len() && drawn % 10 != 9;
        let (variant, change) = if is_alone { list.get(position)? } else { state.rng.pick(list)? };
        let mut changes = vec![change.clone()];
        if !is_alone {
            let same = |(other, _): &&(usize, Change)| other == variant;
            let second = (0..20).find_map(|_| state.rng.pick(list).filter(same));
            changes.extend(second.into_iter().map(|(_, change)| change.clone()));
        }
        let is_update = !matches!(way, Way::Create | Way::CreateStrict);
        let way =
            if is_update && !state.stored.contains(&(self.subject, *variant)) { Way::Create } else { way };
        Some(Trial { kind: self.name.clone(), variant: *variant, way, changes, steps: Vec::new() })
    }

    fn query(&self, subject: &Subject, state: &mut State) -> Option<Trial> {
        let variant = state.rng.below(self.variants);
        let steps = vec![query(subject, variant, &mut state.rng)];
        let is_stored = state.stored.contains(&(self.subject, variant));
        is_stored.then(|| Trial {
            kind: self.name.clone(),
            variant,
            way: Way::Query,
            changes: Vec::new(),
            steps,
        })
    }

    fn sequence(&self, subject: &Subject, state: &mut State) -> Option<Trial> {
        let variant = state.rng.below(self.variants);
        let drawn = (0..20).filter_map(|_| state.rng.pick(&self.changes)).collect::<Vec<_>>();
        let changes: Vec<&Change> =
            drawn.into_iter().filter(|(other, _)| *other == variant).map(|(_, change)| change).collect();
        let steps = sequence(subject, variant, &changes, &mut state.rng);
        (!steps.is_empty()).then(|| Trial {
            kind: self.name.clone(),
            variant,
            way: Way::Sequence,
            changes: Vec::new(),
            steps,
        })
    }
}
