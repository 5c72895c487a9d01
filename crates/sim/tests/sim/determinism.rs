//! The same word always leads to the same run.

use krafla_sim::driver::{case_of_seed, replay, swarm};
use krafla_sim::{Program, play, scenario};

#[test]
fn a_seed_leads_to_the_same_run_every_time() {
    let program = Program::as_shipped();
    for seed in 0..20 {
        let case = case_of_seed(scenario::ALL, seed).unwrap();
        let [one, other] = [(); 2].map(|()| play(&case, &program, true));
        assert_eq!(one.timeline, other.timeline, "{case}");
        assert_eq!((one.hash, one.end), (other.hash, other.end), "{case}");
    }
}

#[test]
fn different_seeds_lead_to_different_runs() {
    let program = Program::as_shipped();
    let hashes: std::collections::BTreeSet<u64> =
        (0..20).map(|seed| play(&case_of_seed(scenario::ALL, seed).unwrap(), &program, false).hash).collect();
    assert!(hashes.len() > 15, "{} different runs of 20", hashes.len());
}

#[test]
fn a_case_that_is_written_down_leads_to_the_run_of_its_seed() {
    let program = Program::as_shipped();
    let (case, of_seed) = replay("11", &program).unwrap();
    let (_, of_word) = replay(&case.to_string(), &program).unwrap();
    assert_eq!(of_seed.timeline, of_word.timeline);
}

#[test]
fn what_ships_keeps_its_promises_under_a_few_seeds() {
    let summary = swarm(scenario::ALL, &Program::as_shipped(), 1..41, &|_, _| {});
    let told: Vec<String> = summary.failures.iter().map(ToString::to_string).collect();
    assert_eq!((summary.n_runs, summary.n_violations), (40, 0), "{}", told.join("\n"));
}
