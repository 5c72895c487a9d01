//! A Job whose pods ask for Volcano's scheduler.

use super::build::create_gang;
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-gang",
    shows: "the pods of a Job that ask for the scheduler volcano are one gang, of as many as its annotation says",
    script: || vec![create_gang("gang", 2)],
    pod: |_| Life::succeeds_after(10),
    end: "
        jobs.batch gang SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, 2 succeeded
        podgroup podgroup-<uid> Completed, of 2
        pod gang-<drawn> Succeeded
        pod gang-<drawn> Succeeded
    ",
};
