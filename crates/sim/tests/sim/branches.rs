//! Cases that are played together go as they go alone.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use krafla_cluster::{Client, ClientError, Step, Written};
use krafla_plan::Plan;
use krafla_sim::driver::{Pairing, cases_of, exhaustive, pairs, play_cases};
use krafla_sim::{Program, play, scenario};

use crate::hooked::{Hooked, program_with};
use crate::mutants::tampered;

/// Plays all cases of a scenario together, and one in `every` of them alone. How many were stopped early, and how many found
/// something.
fn compare(scenario: &str, program: &Program, every: usize) -> (usize, usize) {
    let cases = cases_of(scenario::named(scenario).unwrap(), program);
    let mut verdicts = Vec::new();
    play_cases(&cases, program, |case, verdict| verdicts.push((case.to_string(), verdict)));
    assert_eq!(verdicts.len(), cases.len());
    for (case, (name, verdict)) in cases.iter().zip(&verdicts).step_by(every) {
        assert_eq!(case.to_string(), *name, "in the order of the cases");
        let alone = play(case, program, false);
        assert_eq!(alone.findings, verdict.findings, "{case}");
        if !verdict.is_joined {
            assert_eq!(alone.hash, verdict.hash, "{case}: what was stored differs");
        }
    }
    let n = |is_so: fn(&krafla_sim::Verdict) -> bool| verdicts.iter().filter(|it| is_so(&it.1)).count();
    (n(|verdict| verdict.is_joined), n(|verdict| !verdict.findings.is_empty()))
}

#[test]
fn what_ships_is_judged_alike_together_and_alone() {
    for (scenario, every) in [("waiting", 1), ("batch-plain", 3), ("again", 17), ("restart", 41)] {
        let (n_joined, n_failed) = compare(scenario, &Program::as_shipped(), every);
        assert_eq!(n_failed, 0, "{scenario}");
        assert!(n_joined > 20, "{scenario}: {n_joined} runs came to where another had been");
    }
}

/// Says that a write that the server was too busy for was made.
fn careless<'a>(client: &'a dyn Client, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
    async move {
        match client.write(step).await {
            Err(ClientError::Busy { .. }) => {
                Ok(Written { key: krafla_api::Key::new("", ""), uid: "".into(), revision: 0 })
            }
            answer => answer,
        }
    }
    .boxed()
}

/// Sends a write again at once if the server is too busy for it, and takes it for made whatever comes of that.
fn hasty<'a>(client: &'a dyn Client, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
    async move {
        match client.write(step).await {
            Err(ClientError::Busy { .. }) => careless(client, step).await,
            answer => answer,
        }
    }
    .boxed()
}

#[test]
fn what_only_two_faults_show_is_found_by_pairs() {
    let program = program_with(|inner| Arc::new(Hooked { inner, write: hasty }));
    let scenarios = [scenario::named("waiting").unwrap()];
    let single = exhaustive(&scenarios, &program, &|_, _| {});
    assert_eq!((single.n_violations, single.n_runs > 100), (0, true));
    let summary = pairs(&scenarios, Pairing::OfWrites, &program, &|_, _| {});
    let smallest: Vec<String> = summary.failures.iter().map(|it| it.smallest.to_string()).collect();
    assert!(smallest.iter().any(|case| case.matches(":busy").count() == 2), "{smallest:?}");
}

#[test]
fn what_ships_survives_every_pair_of_failed_writes_while_it_waits() {
    let scenarios = [scenario::named("waiting").unwrap()];
    let summary = pairs(&scenarios, Pairing::OfWrites, &Program::as_shipped(), &|_, _| {});
    assert_eq!(summary.n_violations, 0);
    assert!(summary.n_runs > 700 && summary.n_joined > 300, "{} {}", summary.n_runs, summary.n_joined);
}

#[test]
fn what_some_faults_alone_show_is_found_in_the_same_cases() {
    let program = program_with(|inner| Arc::new(Hooked { inner, write: careless }));
    let (n_joined, n_failed) = compare("straight", &program, 7);
    assert!(n_joined > 20 && n_failed > 0, "{n_joined} joined, {n_failed} failed");

    // A controller that forgets to come back, which only a failure in the wrong moment shows.
    let controllers = || {
        tampered(|_, plan| {
            let creates = plan.steps.iter().any(Step::creates);
            Plan { wake_at: plan.wake_at.filter(|_| creates), ..plan }
        })
    };
    let (n_joined, n_failed) = compare("patient", &Program::with_controllers(controllers), 5);
    assert!(n_failed > 0, "{n_joined} joined, {n_failed} failed");
}
