//! Sequences from a seed: what users make, and then step by step one of the things that are possible in the present state.
#![allow(clippy::indexing_slicing, reason = "fields are set in objects that are made here")]

mod choice;
mod cronjob;
mod flow;
mod job;
mod podgroup;
mod queue;

use krafla_sim::Rng;
use serde_json::Value;

use self::choice::Choices;

/// The sorts of sequences, and how many of a hundred are of each.
const SORTS: [(u64, Sort); 5] =
    [(78, Sort::Job), (10, Sort::Flow), (6, Sort::Queue), (5, Sort::PodGroup), (1, Sort::CronJob)];

/// What a sequence is mainly about.
#[derive(Clone, Copy, Debug)]
enum Sort {
    Job,
    Flow,
    Queue,
    PodGroup,
    CronJob,
}

/// The generator of one sequence.
pub(crate) struct Generator {
    rng: Rng,
    sort: Sort,
    objects: Vec<Value>,
    n_left: u64,
}

impl Generator {
    /// The generator of a seed. The same states lead to the same steps.
    pub(crate) fn new(seed: u64) -> Generator {
        let mut rng = Rng::new(seed);
        let sort = choice::weighted(&mut rng, &SORTS).unwrap_or(Sort::Job);
        let objects = match sort {
            Sort::Job => job::objects(&mut rng),
            Sort::Flow => flow::objects(&mut rng),
            Sort::Queue => queue::objects(&mut rng),
            Sort::PodGroup => podgroup::objects(&mut rng),
            Sort::CronJob => cronjob::objects(&mut rng),
        };
        let n_left = match sort {
            Sort::CronJob => 4 + rng.below(4),
            _ => 4 + rng.below(7),
        };
        Generator { rng, sort, objects, n_left }
    }

    /// Whether it waits for minutes to pass.
    pub(crate) fn is_slow(&self) -> bool {
        matches!(self.sort, Sort::CronJob)
    }

    /// What the sequence begins with.
    pub(crate) fn objects(&self) -> &[Value] {
        &self.objects
    }

    /// The next step, unless the sequence is over.
    pub(crate) fn next_step(&mut self, state: &Value) -> Option<Value> {
        self.n_left = self.n_left.checked_sub(1)?;
        let mut choices = Choices::new(&mut self.rng);
        match self.sort {
            Sort::Job => job::steps(&mut choices, state, &self.objects),
            Sort::Flow => flow::steps(&mut choices, state, &self.objects),
            Sort::Queue => queue::steps(&mut choices, state),
            Sort::PodGroup => podgroup::steps(&mut choices, state),
            Sort::CronJob => cronjob::steps(&mut choices, state),
        }
        choices.take()
    }
}
