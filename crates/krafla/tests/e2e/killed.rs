//! The properties after `kill -9`, with more than a hundred pods that start, run, are restarted and end.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use crate::recorder::Recorder;
use crate::support::{Up, processes_of, until_at_rest, wait_until};

/// Pods write down that they start, wait for the lock of a file, and write down that they end. Each job has more to it: a
/// gang of which one pod fails and has all of them started again, tasks that wait for others, indexes of which one
/// is tried again.
fn jobs(up: &Up) -> String {
    let file = |name: &str| up.file(name).display().to_string();
    let [starts, gate, ends, fail, failed, once] =
        ["starts", "gate", "ends", "fail", "failed", "once"].map(file);
    let begin = |name: &str| format!("echo {name} >> {starts}");
    let end = |name: &str| format!("flock -s {gate} true; echo {name} >> {ends}");
    let simple = format!("{}; {}", begin("$HOSTNAME"), end("$HOSTNAME"));
    let gang = format!(
        "{}; if test $HOSTNAME = gang-work-7 && ! test -e {failed}; then flock -s {fail} true; touch {failed}; exit 3; fi; {}",
        begin("$HOSTNAME"),
        end("$HOSTNAME"),
    );
    let index = "part-$JOB_COMPLETION_INDEX";
    let part = format!(
        "{}; if test $JOB_COMPLETION_INDEX = 5 && mkdir {once}; then exit 1; fi; {}",
        begin(index),
        end(index)
    );
    let pod = |script: &str| {
        format!(
            "{{spec: {{restartPolicy: Never, containers: [{{name: main, image: any, command: [sh, -c, '{script}'], \
             resources: {{limits: {{memory: 1Gi}}, requests: {{memory: 1Mi}}}}}}]}}}}"
        )
    };
    format!(
        r"
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: gang}}
spec:
  minAvailable: 60
  tasks:
    - {{name: work, replicas: 60, policies: [{{exitCode: 3, action: RestartTask}}], template: {gang}}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: chain}}
spec:
  minAvailable: 10
  tasks:
    - {{name: first, replicas: 10, template: {simple}}}
    - {{name: second, replicas: 10, dependsOn: {{name: [first]}}, template: {simple}}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: part}}
spec: {{completions: 40, parallelism: 40, completionMode: Indexed, template: {part}}}
",
        gang = pod(&gang),
        simple = pod(&simple),
        part = pod(&part),
    )
}

/// How often each line stands in a file.
fn tally(file: &Path) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for line in std::fs::read_to_string(file).unwrap_or_default().lines() {
        *tally.entry(line.to_owned()).or_default() += 1;
    }
    tally
}

fn until_lines(file: &Path, n_lines: usize) {
    let n = || tally(file).values().sum::<usize>();
    wait_until(&format!("{} has not got {n_lines} lines", file.display()), || n() >= n_lines);
}

/// Kills krafla, and starts it again after something happened without it.
fn kill(up: &mut Up, recorder: &mut Recorder, meanwhile: impl FnOnce()) {
    up.child().kill().unwrap();
    up.child().wait().unwrap();
    meanwhile();
    up.kill_and_restart();
    recorder.resume(up);
}

fn locked(file: &Path) -> File {
    let lock = File::create(file).unwrap();
    lock.lock().unwrap();
    lock
}

#[test]
fn the_properties_hold_though_krafla_is_killed_among_120_pods() {
    let mut up = Up::start();
    let mut recorder = Recorder::of(&up);
    let (starts, ends, failed) = (up.file("starts"), up.file("ends"), up.file("failed"));
    let (gate, fail) = (locked(&up.file("gate")), locked(&up.file("fail")));
    up.apply(&jobs(&up));

    // While they start, while all of them run, while some of them are ended to be started again, and while they end.
    until_lines(&starts, 30);
    kill(&mut up, &mut recorder, || {});
    // The second try of part-5 among them: where it stands in the order depends on how long the others take.
    until_lines(&starts, 121);
    kill(&mut up, &mut recorder, || {
        drop(fail);
        wait_until("no pod has failed", || failed.exists());
    });
    up.wait_for("vcjob/gang", "{.status.retryCount}", "1");
    kill(&mut up, &mut recorder, || {});
    until_lines(&starts, 181);
    drop(gate);
    until_lines(&ends, 20);
    kill(&mut up, &mut recorder, || {});
    up.wait_for("vcjob/gang", "{.status.state.phase}", "Completed");
    up.wait_for("vcjob/chain", "{.status.state.phase}", "Completed");
    up.kubectl_ok(&["wait", "job/part", "--for=condition=Complete", "--timeout=60s"]);

    until_at_rest(&up);
    kill(&mut up, &mut recorder, || {});
    let (n_revisions, broken) = recorder.findings();
    assert_eq!(broken, [""; 0]);
    // Each pod was at least seen new and ended.
    assert!(n_revisions > 180 * 2, "only {n_revisions} revisions were seen");

    let counters = "{.status.succeeded} {.status.failed} {.status.retryCount}";
    assert_eq!(up.field("vcjob/gang", counters), "60  1");
    assert_eq!(up.field("vcjob/chain", counters), "20  ");
    assert_eq!(
        up.field("job/part", "{.status.succeeded} {.status.failed} {.status.completedIndexes}"),
        "40 1 0-39"
    );
    let all = |n_of_gang: usize, n_of_fifth: usize| {
        let of = |prefix: &'static str, n: usize| (0..n).map(move |index| format!("{prefix}-{index}"));
        let gang = of("gang-work", 60).map(|name| (name, n_of_gang));
        let chain = of("chain-first", 10).chain(of("chain-second", 10)).map(|name| (name, 1));
        let parts = of("part", 40).map(|name| {
            let n = if name == "part-5" { n_of_fifth } else { 1 };
            (name, n)
        });
        gang.chain(chain).chain(parts).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(tally(&starts), all(2, 2), "every try was started once");
    assert_eq!(tally(&ends), all(1, 1), "every place has ended once");
    assert_eq!(processes_of(&up.file("gate")), "", "no process is left");

    let uids = up.kubectl_ok(&["get", "pod", "-o", "jsonpath={.items[*].metadata.uid}"]);
    up.kubectl_ok(&["delete", "vcjob,job", "--all"]);
    let pods = up.data_dir().join("node/pods");
    wait_until("files of pods are left", || std::fs::read_dir(&pods).unwrap().next().is_none());
    let groups = std::process::Command::new("find").args(["/sys/fs/cgroup", "-type", "d"]).output().unwrap();
    let groups = String::from_utf8_lossy(&groups.stdout).into_owned();
    let left: Vec<&str> = uids.split(' ').filter(|uid| groups.contains(uid)).collect();
    assert_eq!(left, [""; 0], "no control group is left");
}
