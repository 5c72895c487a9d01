//! Scenarios: what users want, how their pods behave, and how it must end, whatever goes wrong on the way.
//!
//! A scenario is one file here and one line in [`ALL`]; every driver then runs it under every fault.

mod absurd;
mod again;
mod alone;
mod alternating;
mod any;
mod batch;
mod build;
mod chain;
mod claimed;
mod collected;
mod commanded;
mod cron_deleted;
mod cron_expired;
mod cron_forbid;
mod cron_history;
mod cron_missed;
mod cron_replace;
mod deleted;
mod depends;
mod elastic;
mod enough;
mod evicted;
mod exhausted;
mod exit_code;
mod expired;
mod failed;
mod flow;
mod flow_aborted;
mod flow_changed;
mod flow_cleared;
mod flow_deleted;
mod flow_failed;
mod flow_foreign;
mod flow_forms;
mod flow_kept;
mod flow_late;
mod flow_probed;
mod flow_restarted;
mod forgiven;
mod grouped;
mod hopeless;
mod interrupted;
mod keyed;
mod led;
mod minimum;
mod outvoted;
mod overdue;
mod owned;
mod pair;
mod partial;
mod partition;
mod patient;
mod prompt;
mod queue_below;
mod queue_closed;
mod queue_crowd;
mod queue_full;
mod queue_left;
mod queue_opened;
mod queued;
mod repaired;
mod replaced;
mod reserved;
mod restart;
mod resumed;
mod scaled;
mod served;
mod shrunk;
mod single;
mod spent;
mod squatted;
mod stopped;
mod straight;
mod stuck;
mod suspended;
mod taken;
mod terminal;
mod trimmed;
mod unclaimed;
mod vacated;
mod waiting;
mod withdrawn;
mod zero;

use std::time::Duration;

use krafla_api::batch::COMPLETION_INDEX;
use krafla_api::volcano::{Action, JobPhase};
use krafla_api::{Key, Kind, labels};
use krafla_plan::Object;
use serde_json::Value;

use crate::termination::Termination;

/// Every scenario.
pub static ALL: &[&Scenario] = &[
    &straight::SCENARIO,
    &restart::SCENARIO,
    &exhausted::SCENARIO,
    &scaled::SCENARIO,
    &deleted::SCENARIO,
    &again::SCENARIO,
    &waiting::SCENARIO,
    &depends::SCENARIO,
    &enough::SCENARIO,
    &pair::SCENARIO,
    &stopped::SCENARIO,
    &replaced::SCENARIO,
    &evicted::SCENARIO,
    &partial::SCENARIO,
    &single::SCENARIO,
    &suspended::SCENARIO,
    &served::SCENARIO,
    &flow::SCENARIO,
    &flow_cleared::SCENARIO,
    &flow_failed::SCENARIO,
    &flow_probed::SCENARIO,
    &flow_forms::SCENARIO,
    &flow_restarted::SCENARIO,
    &flow_aborted::SCENARIO,
    &flow_changed::SCENARIO,
    &flow_kept::SCENARIO,
    &flow_late::SCENARIO,
    &flow_deleted::SCENARIO,
    &flow_foreign::SCENARIO,
    &cron_forbid::SCENARIO,
    &cron_replace::SCENARIO,
    &cron_history::SCENARIO,
    &cron_missed::SCENARIO,
    &cron_expired::SCENARIO,
    &cron_deleted::SCENARIO,
    &queue_closed::SCENARIO,
    &queue_opened::SCENARIO,
    &queue_full::SCENARIO,
    &queue_left::SCENARIO,
    &queue_crowd::SCENARIO,
    &queue_below::SCENARIO,
    &grouped::SCENARIO,
    &owned::SCENARIO,
    &commanded::SCENARIO,
    &queued::SCENARIO,
    &spent::SCENARIO,
    &partition::SCENARIO,
    &exit_code::SCENARIO,
    &outvoted::SCENARIO,
    &any::SCENARIO,
    &led::SCENARIO,
    &patient::SCENARIO,
    &stuck::SCENARIO,
    &prompt::SCENARIO,
    &interrupted::SCENARIO,
    &keyed::SCENARIO,
    &hopeless::SCENARIO,
    &chain::SCENARIO,
    &zero::SCENARIO,
    &claimed::SCENARIO,
    &unclaimed::SCENARIO,
    &expired::SCENARIO,
    &withdrawn::SCENARIO,
    &terminal::SCENARIO,
    &alternating::SCENARIO,
    &elastic::SCENARIO,
    &failed::SCENARIO,
    &minimum::SCENARIO,
    &reserved::SCENARIO,
    &repaired::SCENARIO,
    &taken::SCENARIO,
    &squatted::SCENARIO,
    &absurd::SCENARIO,
    &shrunk::SCENARIO,
    &trimmed::SCENARIO,
    &collected::SCENARIO,
    &resumed::SCENARIO,
    &forgiven::SCENARIO,
    &vacated::SCENARIO,
    &overdue::SCENARIO,
    &alone::SCENARIO,
    &batch::plain::SCENARIO,
    &batch::parallel::SCENARIO,
    &batch::gang::SCENARIO,
    &batch::work_queue::SCENARIO,
    &batch::indexed::SCENARIO,
    &batch::failed_indexes::SCENARIO,
    &batch::elastic::SCENARIO,
    &batch::failure_policy::SCENARIO,
    &batch::success_policy::SCENARIO,
    &batch::unschedulable::SCENARIO,
    &batch::suspended::SCENARIO,
    &batch::deadline::SCENARIO,
    &batch::replaced::SCENARIO,
    &batch::deleted::SCENARIO,
    &batch::orphaned::SCENARIO,
    &batch::expired::SCENARIO,
    &batch::spent::SCENARIO,
    &batch::resized::SCENARIO,
    &batch::adopted::SCENARIO,
    &batch::again::SCENARIO,
    &batch::held::SCENARIO,
    &batch::cron_allow::SCENARIO,
    &batch::cron_forbid::SCENARIO,
    &batch::cron_replace::SCENARIO,
    &batch::cron_missed::SCENARIO,
    &batch::cron_history::SCENARIO,
    &batch::cron_expired::SCENARIO,
];

/// The scenario of a name.
pub fn named(name: &str) -> Option<&'static Scenario> {
    ALL.iter().find(|scenario| scenario.name == name).copied()
}

/// The scenarios that end otherwise where pods end well when they are asked to go.
static OTHER_ENDS: [OtherEnd; 2] = [
    // Kubernetes: a pod that is deleted and ends well has succeeded.
    OtherEnd { scenario: "batch-replaced", end: batch::replaced::END_IF_IT_YIELDS },
    OtherEnd { scenario: "batch-held", end: batch::held::END_IF_IT_YIELDS },
];

struct OtherEnd {
    scenario: &'static str,
    end: &'static str,
}

/// The namespace in which scenarios play.
pub(crate) const NAMESPACE: &str = "default";

/// What users want, how their pods behave, and how it must end.
#[derive(Debug)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows.
    pub shows: &'static str,
    /// What users do, one thing after the other.
    pub script: fn() -> Vec<Act>,
    /// How each pod behaves.
    pub pod: fn(&PodFacts<'_>) -> Life,
    /// What must be there at the end, as [`crate::oracle::end`] prints it.
    pub end: &'static str,
}

impl Scenario {
    /// What must be there at the end, if pods that are asked to go end like this.
    pub(crate) fn end_with(&self, termination: &Termination) -> &'static str {
        let is_it = |other: &&OtherEnd| other.scenario == self.name && termination.ends_well();
        OTHER_ENDS.iter().find(is_it).map_or(self.end, |other| other.end)
    }
}

/// One thing that a user does.
#[derive(Clone, Debug)]
pub struct Act {
    /// When; the act before it must have happened too.
    pub when: When,
    /// What.
    pub deed: Deed,
}

/// When a user does something.
#[derive(Clone, Debug)]
pub enum When {
    /// At once.
    Now,
    /// When the world is this old.
    At(Duration),
    /// Once this job is or has been in this phase.
    JobHasBeen(&'static str, JobPhase),
    /// When there is no such job.
    JobIsGone(&'static str),
    /// When an object of this name shows this.
    Shows(Kind, &'static str, fn(&Value) -> bool),
}

/// What a user can do.
#[derive(Clone, Debug)]
pub enum Deed {
    /// Store a new object.
    Create(Kind, Value),
    /// Store a new object that belongs to the one of this kind and name.
    CreateFor(Kind, &'static str, Kind, Value),
    /// Change some fields of an object of this name.
    Patch(Kind, &'static str, Value),
    /// Remove an object of this name.
    Delete(Kind, &'static str),
    /// Remove an object of this name once its children are gone.
    DeleteInForeground(Kind, &'static str),
    /// Remove an object of this name and let its children live on.
    Orphan(Kind, &'static str),
    /// Remove a pod that belongs to an object of this name.
    DeletePodOf(&'static str),
    /// Ask for something to be done to a job.
    Command(&'static str, Action),
    /// Ask for something to be done to a queue.
    CommandQueue(&'static str, Action),
}

/// What tells one pod of a scenario from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodFacts<'a> {
    /// The job's name.
    pub job: &'a str,
    /// The task's name.
    pub task: &'a str,
    /// The index within the task, or the completion index.
    pub index: i32,
    /// How often the job had restarted when the pod was made.
    pub retry: i32,
    /// The job's version when the pod was made.
    pub version: i32,
    /// How many pods of the same owner had ended when this one started.
    pub n_ended: u32,
}

impl<'a> PodFacts<'a> {
    /// Reads the facts from a pod.
    pub(crate) fn of(pod: &'a Object, n_ended: u32) -> PodFacts<'a> {
        let annotation = |key: &str| pod.meta.annotations.get(key).unwrap_or_default();
        let index = [labels::TASK_INDEX, COMPLETION_INDEX].map(annotation);
        PodFacts {
            job: annotation(labels::JOB_NAME),
            task: annotation(labels::TASK_SPEC),
            index: index.iter().find_map(|index| index.parse().ok()).unwrap_or(-1),
            n_ended,
            retry: annotation(labels::JOB_RETRY_COUNT).parse().unwrap_or(0),
            version: annotation(labels::JOB_VERSION).parse().unwrap_or(0),
        }
    }
}

/// How a pod behaves once it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It ends by itself.
    Ends {
        /// After so long.
        after: Duration,
        /// With this code.
        exit_code: i32,
    },
    /// It runs until somebody removes it.
    RunsOn,
    /// Its node never gets it to run.
    NeverStarts,
    /// The node has no room for it after all: it fails without having run.
    Rejected,
    /// It runs until somebody removes it, and listens at every port.
    Listens {
        /// From so long after its start on.
        from: Duration,
    },
}

impl Life {
    /// It ends well after so many seconds.
    pub(crate) const fn succeeds_after(seconds: u64) -> Life {
        Life::Ends { after: Duration::from_secs(seconds), exit_code: 0 }
    }

    /// It listens from so many seconds after its start on.
    pub(crate) const fn listens_after(seconds: u64) -> Life {
        Life::Listens { from: Duration::from_secs(seconds) }
    }

    /// It ends after so many seconds with a code that says that it failed.
    pub(crate) const fn fails_after(seconds: u64, exit_code: i32) -> Life {
        Life::Ends { after: Duration::from_secs(seconds), exit_code }
    }
}

/// The key of an object of a scenario.
pub(crate) fn key(kind: Kind, name: &str) -> Key {
    match kind.info().scope {
        krafla_api::Scope::Cluster => Key::new("", name),
        krafla_api::Scope::Namespaced => Key::new(NAMESPACE, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_is_found_by_its_name_and_no_two_share_it() {
        for scenario in ALL {
            assert!(std::ptr::eq(named(scenario.name).unwrap(), *scenario), "{}", scenario.name);
        }
    }

    #[test]
    fn every_other_end_is_one_of_a_scenario() {
        for other in &OTHER_ENDS {
            assert_ne!(named(other.scenario).unwrap().end, other.end, "{}", other.scenario);
        }
    }
}
