//! What the server refuses stands in the status of the job that needs it, for as long as it is refused.

use super::fixture;

/// What a plan writes to the state of the job, whether that may wait, and how many steps it has.
fn planned(world: &str) -> (String, bool, usize) {
    let plan = fixture::plan(world);
    let status = plan.status.as_ref().map(ToString::to_string).unwrap_or_default();
    (status, plan.status_may_wait, plan.steps.len())
}

fn waiting(state: &str, more: &str) -> String {
    format!("job phase=Pending min=2 {state}\n task work replicas=2\n group Inqueue\n {more}")
}

#[test]
fn a_refusal_stands_in_the_status_and_is_not_hurried() {
    let (status, may_wait, n_steps) = planned(&waiting("", "refused FailedCreate exceeded quota"));
    assert_eq!(
        status,
        r#"patch job status a {"status":{"state":{"message":"exceeded quota","reason":"FailedCreate"}}}"#
    );
    // Most refusals at the start of a job are over before anybody could read of them. The group is repaired as well.
    assert_eq!((may_wait, n_steps), (true, 3));
}

#[test]
fn a_refusal_is_written_once() {
    let said = waiting("reason=FailedCreate", "refused FailedCreate because");
    assert_eq!(planned(&said).0, "");
    // Whoever takes over does not know of it, and takes nothing back before it has tried.
    assert_eq!(planned(&waiting("reason=FailedCreate", "")).0, "");
    let another = waiting("reason=FailedCreate", "refused FailedUpdate policy");
    assert!(planned(&another).0.contains("FailedUpdate"));
}

#[test]
fn a_refusal_is_taken_back_once_what_was_refused_is_there() {
    let there = waiting("reason=FailedCreate", "pod work-0 Pending\n pod work-1 Pending");
    let there = there.replace("Inqueue", "Inqueue going");
    let status = planned(&there).0;
    assert!(status.contains(r#""state":{"message":null,"reason":null}"#), "{status}");
}

#[test]
fn a_job_that_runs_says_what_it_is_refused_and_one_that_restarts_says_why_it_does() {
    let running = "job phase=Running min=1\n task work replicas=2\n group Running\n pod work-0 Running
                   refused FailedCreate exceeded quota";
    assert!(planned(running).0.contains("exceeded quota"));
    // The state is where a restart is on record: what is refused, or missing, meanwhile must not take its place.
    for obstacle in ["refused FailedCreate exceeded quota", "no-queue"] {
        let restarting = format!(
            "job phase=Restarting version=1 retry=1 min=2 reason=ResumeJob been=Running\n task work replicas=2
             pod work-0 Running version=0 going marked\n {obstacle}"
        );
        let status = planned(&restarting).0;
        assert!(!status.contains("reason"), "{obstacle}: {status}");
    }
}
