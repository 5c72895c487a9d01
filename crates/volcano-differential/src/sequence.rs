//! One sequence: objects, and steps one after the other, with the state after each.

use std::time::{Duration, Instant};

use anyhow::Result;
use krafla_sim::golden::{self, Phases, Record, Site, Stage};
use serde_json::{Value, json};

use crate::generate::Generator;
use crate::volcano::Volcano;

/// One write of the manager leads to the next after as long as it takes to act on anything new.
const LAGS: u32 = 3;

/// How patient a sequence is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// When nothing has changed for so long, a step is over. Added to it is what the manager needs at present until it acts.
    pub(crate) quiet: Duration,
    /// A step is over by then, whatever still goes on.
    pub(crate) step_max: Duration,
}

/// Where the steps come from.
pub(crate) enum Steps<'a> {
    /// They are chosen one by one from what is possible.
    Generated(Generator),
    /// They are known.
    Given(std::slice::Iter<'a, Value>),
}

impl Steps<'_> {
    fn next(&mut self, state: &Value) -> Option<Value> {
        match self {
            Steps::Generated(generator) => generator.next_step(state),
            Steps::Given(steps) => steps.next().cloned(),
        }
    }
}

/// Plays a sequence with Volcano's controllers. None if the server refuses the objects that it begins with, which is told.
pub(crate) fn record(
    volcano: &Volcano,
    namespace: &str,
    patience: Patience,
    objects: &[Value],
    mut steps: Steps<'_>,
) -> Result<Option<Record>> {
    let site = volcano.site(namespace)?;
    if let Err(refusal) = golden::create_all(&site, objects) {
        eprintln!("refused: {refusal}");
        return Ok(None);
    }
    let mut stage = VolcanoStage { volcano, namespace, site, patience };
    let (mut deeds, mut states) = (Vec::new(), Vec::new());
    let (mut phases, mut n_commands) = (Phases::default(), 0);
    let mut next = Some(json!({ "op": "initial" }));
    while let Some(deed) = next {
        let refusal = golden::play(&mut stage, &deed, &mut n_commands);
        let mut state = golden::state(stage.site(), "");
        let mut note = |field: &str, value: Value| {
            state.as_object_mut().map(|state| state.insert(field.to_owned(), value));
        };
        let events = volcano.observer().take_phased(namespace);
        let events = events.iter().map(|(section, kind, event)| (*section, *kind, &**event));
        let seen = phases.follow(namespace, events);
        if seen.as_object().is_some_and(|seen| !seen.is_empty()) {
            note("phases", seen);
        }
        if let Some(refusal) = refusal {
            note("refusal", refusal.replace(namespace, "{ns}").into());
        }
        next = steps.next(&state);
        deeds.push(deed);
        states.push(state);
    }
    volcano.observer().forget(namespace);
    Ok(Some(Record::new(namespace, objects.to_vec(), deeds, &states)))
}

/// A namespace of the server with Volcano's controllers, in real time.
struct VolcanoStage<'a> {
    volcano: &'a Volcano,
    namespace: &'a str,
    site: Site,
    patience: Patience,
}

impl Stage for VolcanoStage<'_> {
    fn site(&self) -> &Site {
        &self.site
    }

    fn settle(&mut self) {
        let started = Instant::now();
        let end = started + self.patience.step_max;
        loop {
            let changed_at = self.volcano.observer().changed_at(self.namespace).unwrap_or(started);
            let quiet = self.patience.quiet + self.volcano.lag() * LAGS;
            let quiet_at = (changed_at.max(started) + quiet).min(end);
            match quiet_at.checked_duration_since(Instant::now()) {
                Some(left) if !left.is_zero() => std::thread::sleep(left),
                _ => return,
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn pass_to_next_minute(&mut self) {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let into_minute = since_epoch.map(|time| time.as_secs() % 60).unwrap_or(0);
        std::thread::sleep(Duration::from_secs(61 - into_minute));
    }

    // The manager is everybody's: no sequence of its own accord stops it.
    fn stop_controllers(&mut self) {}

    fn start_controllers(&mut self) {}
}
