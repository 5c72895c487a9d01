//! Jobs that can never run, or ask for far too much: each says what is wrong, and none costs more than another. A missing
//! queue, a missing claim and an unknown plugin stand in `life`.

use expect_test::expect;

use super::{check, fixture};
use crate::Step;

#[test]
fn a_job_without_tasks_says_so_and_never_runs() {
    check(
        "job min=0",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Pending"}],"state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"spec.tasks is empty, so there is nothing to run; create the job anew with a task","phase":"Pending","reason":"NoTasks"}}}
            note Warning NoTasks: spec.tasks is empty, so there is nothing to run; create the job anew with a task
        "#]],
    );
    let said = fixture::plan_after_status("job min=0");
    assert!(said.is_quiet(), "{said}");
}

#[test]
fn a_job_of_ten_thousand_pods_gets_them_in_many_small_plans() {
    let plan = fixture::plan(
        "job phase=Pending min=10000
         task work replicas=10000
         group Inqueue",
    );
    let n_pods = plan.steps.iter().filter(|step| matches!(step, Step::Create { .. })).count();
    assert_eq!(n_pods, 500);
}

#[test]
fn the_most_replicas_that_a_number_can_say_overflow_nothing() {
    let plan = fixture::plan(
        "job phase=Running min=2147483647
         task one replicas=2147483647
         task two replicas=2147483647
         group Running
         pod one-0 Running",
    );
    let n_pods = plan.steps.iter().filter(|step| matches!(step, Step::Create { .. })).count();
    assert_eq!(n_pods, 500);
}
