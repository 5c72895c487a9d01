//! A finished Job whose time to live is over.

use serde_json::json;

use super::build::create_job;
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-expired",
    shows: "a finished Job goes when its time is over, with its pods",
    script: || vec![create_job("expired", json!({ "ttlSecondsAfterFinished": 60 }))],
    pod: |_| Life::succeeds_after(5),
    end: "",
};
