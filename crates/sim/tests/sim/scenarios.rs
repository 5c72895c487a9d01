//! Every scenario without faults, and the one that matters most with a crash at every write.

use std::time::Duration;

use krafla_sim::{Case, Fault, Injection, Program, TERMINATIONS, play, scenario};

#[test]
fn every_scenario_ends_as_it_says_when_nothing_goes_wrong() {
    let program = Program::as_shipped();
    for termination in TERMINATIONS {
        for scenario in scenario::ALL {
            let case = Case { termination, ..Case::calm(scenario) };
            let outcome = play(&case, &program, false);
            assert_eq!(outcome.findings, [], "{case}:\n{}", outcome.end);
        }
    }
}

#[test]
fn a_job_survives_a_crash_at_every_write() {
    let program = Program::as_shipped();
    let calm: Case = "restart".parse().unwrap();
    let n_writes = play(&calm, &program, false).n_writes;
    assert!(n_writes > 20, "the scenario has shrunk to {n_writes} writes");
    // The other faults take minutes; `krafla-sim exhaustive` plays them all.
    for write in 1..=n_writes {
        let case = calm.with([Injection { write, fault: Fault::CrashAfter }]);
        assert_eq!(play(&case, &program, false).findings, [], "{case}");
    }
}

#[test]
fn outages_that_follow_each_other_are_waited_out() {
    let calm: Case = "restart".parse().unwrap();
    let outages = (3..=80).map(|write| Injection { write, fault: Fault::Outage });
    let outcome = play(&calm.with(outages), &Program::as_shipped(), false);
    // Longer than a world without news is watched.
    assert!(outcome.simulated > Duration::from_secs(900), "all was over after {:?}", outcome.simulated);
    assert_eq!(outcome.findings, [], "{}", outcome.end);
}

/// The list that follows a broken watch shows neither the mark of a pod that was deleted meanwhile nor how it went.
#[test]
fn a_pod_that_a_list_no_longer_names_was_not_evicted_if_its_own_job_deleted_it() {
    let case: Case = "partial+yields-unseen:17:relist-pods".parse().unwrap();
    let outcome = play(&case, &Program::as_shipped(), false);
    assert_eq!(outcome.findings, [], "{}", outcome.end);
}
