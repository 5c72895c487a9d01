//! What policies, retries and times to live come to when krafla is killed between a cause and its effect.

use std::path::Path;

use crate::support::{Up, job, until_at_rest, wait_until};

fn until_exists(file: &Path) {
    wait_until(&format!("{} is missing", file.display()), || file.exists());
}

#[test]
fn each_failure_costs_one_retry_though_krafla_is_dead_when_it_happens() {
    let mut up = Up::start();
    let file = |name: &str| up.file(name);
    let (starts, first, second) = (file("starts"), file("first"), file("second"));
    let (fail, go, short) = (file("fail"), file("go"), file("short"));
    // The first try of one pod fails at once, its second one when krafla is dead, and all others wait.
    let script = format!(
        "echo $HOSTNAME >> {starts}; if test $HOSTNAME = b-work-0; then \
         if ! test -e {first}; then touch {first}; exit 1; fi; \
         if ! test -e {second}; then until test -e {fail}; do sleep 0.05; done; touch {second}; exit 1; fi; fi; \
         until test -e {go}; do sleep 0.05; done",
        starts = starts.display(),
        first = first.display(),
        second = second.display(),
        fail = fail.display(),
        go = go.display(),
    );
    up.apply(&job("b", 3, &script, "  maxRetry: 5\n  policies: [{event: PodFailed, action: RestartJob}]"));
    let until_short = format!("until test -e {}; do sleep 0.05; done", short.display());
    up.apply(&job("c", 1, &until_short, "  ttlSecondsAfterFinished: 1"));
    up.wait_for("vcjob/b", "{.status.retryCount}", "1");
    up.wait_for("vcjob/b", "{.status.state.phase}", "Running");
    up.wait_for("vcjob/c", "{.status.state.phase}", "Running");

    up.child().kill().unwrap();
    std::fs::write(fail, "").unwrap();
    std::fs::write(short, "").unwrap();
    until_exists(&second);
    up.kill_and_restart();
    up.wait_for("vcjob/b", "{.status.retryCount}", "2");
    // Once more right after the effect: what was charged is not charged again.
    up.kill_and_restart();
    up.wait_for("vcjob/b", "{.status.state.phase}", "Running");
    std::fs::write(go, "").unwrap();
    up.wait_for("vcjob/b", "{.status.state.phase}", "Completed");
    assert_eq!(up.field("vcjob/b", "{.status.retryCount}"), "2");
    assert_eq!(up.field("vcjob/b", "{.status.succeeded}"), "3");
    let starts = std::fs::read_to_string(starts).unwrap();
    assert_eq!(starts.lines().filter(|pod| *pod == "b-work-0").count(), 3, "{starts}");

    // The job that ended meanwhile goes when its time is over, and its pods with it.
    up.kubectl_ok(&["wait", "vcjob/c", "--for=delete", "--timeout=60s"]);
    up.kubectl_ok(&["wait", "pod/c-work-0", "--for=delete", "--timeout=60s"]);

    let at_rest = until_at_rest(&up);
    assert_eq!(at_rest.lines().filter(|line| line.starts_with("b-work-")).count(), 3, "{at_rest}");
}
