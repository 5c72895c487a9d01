//! `krafla run` in a cluster that is there already.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::files::{MADE_IN_ORDER, of_many_kinds};
use crate::support::{Up, job, krafla, text, wait_until};

/// `krafla run` of a manifest in a directory of its own.
struct Run {
    dir: tempfile::TempDir,
}

impl Run {
    fn of(manifest: &str) -> Run {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("job.yaml"), manifest).unwrap();
        Run { dir }
    }

    fn command(&self) -> Command {
        let mut command = krafla();
        command.current_dir(self.dir.path()).args(["run", "job.yaml"]);
        command
    }
}

fn shown(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_run_uses_a_krafla_up_that_kubeconfig_names_and_its_job_stays() {
    let up = Up::start();
    let run = Run::of(&job("a", 1, "cat beside.txt; echo done", ""));
    std::fs::write(run.dir.path().join("beside.txt"), "found\n").unwrap();
    let (code, stdout, stderr) = shown(run.command().arg("--logs").env("KUBECONFIG", up.kubeconfig()));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    for line in ["job/a created", "[a-work-0] found", "[a-work-0] done", "a: Completed"] {
        assert!(stdout.contains(line), "{line} is missing in:\n{stdout}{stderr}");
    }
    assert_eq!(up.field("vcjob/a", "{.status.state.phase}"), "Completed");

    let (code, stdout, stderr) = shown(run.command().env("KUBECONFIG", up.kubeconfig()));
    assert_eq!(code, Some(2), "{stdout}{stderr}");
    assert!(stderr.contains("job.yaml") && stderr.contains("already exists"), "{stderr}");
    assert!(stderr.contains("use --replace"), "{stderr}");
    assert!(stderr.contains("kubectl delete job.batch.volcano.sh a"), "{stderr}");
}

#[test]
fn a_run_takes_the_place_of_what_has_its_name_if_that_is_asked() {
    let up = Up::start();
    let run = |manifest: &str| {
        let run = Run::of(manifest);
        shown(run.command().args(["--logs", "--replace"]).env("KUBECONFIG", up.kubeconfig()))
    };
    let replaced_by = |word: &str| {
        let before = up.field("vcjob/a", "{.metadata.uid}");
        let (code, stdout, stderr) = run(&job("a", 1, &format!("echo {word}"), ""));
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        for line in ["job/a replaced".to_owned(), format!("[a-work-0] {word}")] {
            assert!(stdout.contains(&line), "{line} is missing in:\n{stdout}{stderr}");
        }
        assert!(stderr.contains("job/a exists: deleting it first"), "{stderr}");
        assert_ne!(up.field("vcjob/a", "{.metadata.uid}"), before);
    };
    let (code, stdout, stderr) = run(&job("a", 1, "echo first", ""));
    assert!(code == Some(0) && stdout.contains("job/a created"), "{stdout}{stderr}");
    replaced_by("second");
    up.kubectl_ok(&["delete", "vcjob/a", "--timeout=60s"]);
    up.apply(&job("a", 1, "exec tail -f /dev/null", ""));
    up.wait_for("vcjob/a", "{.status.state.phase}", "Running");
    replaced_by("third");
    // What can not be made takes nobody's place.
    let before = up.field("vcjob/a", "{.metadata.uid}");
    let (code, stdout, stderr) = run(&job("a", 1, "true", "").replace("name: work", "name: Work!"));
    assert_eq!(code, Some(2), "{stdout}{stderr}");
    assert_eq!(up.field("vcjob/a", "{.metadata.uid}"), before);
}

#[test]
fn a_run_takes_the_place_of_what_fills_a_quota() {
    let up = Up::start();
    up.apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: one}, spec: {hard: {count/jobs.batch.volcano.sh: '1'}}}");
    let run = |name: &str, script: &str| {
        let run = Run::of(&job(name, 1, script, ""));
        shown(run.command().args(["--logs", "--replace"]).env("KUBECONFIG", up.kubeconfig()))
    };
    for (word, done) in [("first", "created"), ("second", "replaced")] {
        let (code, stdout, stderr) = run("a", &format!("echo {word}"));
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        for line in [format!("job/a {done}"), format!("[a-work-0] {word}")] {
            assert!(stdout.contains(&line), "{line} is missing in:\n{stdout}{stderr}");
        }
    }
    // Nobody's place is taken by what has another name.
    let (code, stdout, stderr) = run("b", "true");
    assert_eq!(code, Some(2), "{stdout}{stderr}");
    assert!(stderr.contains("exceeded quota: one"), "{stderr}");
    assert_eq!(up.kubectl_ok(&["get", "vcjob", "-o", "name"]), "job.batch.volcano.sh/a\n");
}

#[test]
fn a_krafla_up_of_this_directory_is_used_if_it_answers_unless_one_wants_another() {
    let up = Up::start();
    let run = Run::of(&job("a", 1, "true", ""));
    std::fs::create_dir(run.dir.path().join(".krafla")).unwrap();
    std::fs::copy(up.kubeconfig(), run.dir.path().join(".krafla/kubeconfig")).unwrap();
    let (code, stdout, stderr) = shown(run.command().arg("--own-cluster"));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_eq!(up.kubectl_ok(&["get", "vcjob", "-o", "name"]), "");
    let (code, stdout, stderr) = shown(&mut run.command());
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stderr.contains("in the cluster of context \"krafla\" of .krafla/kubeconfig"), "{stderr}");
    assert_eq!(up.kubectl_ok(&["get", "vcjob", "-o", "name"]), "job.batch.volcano.sh/a\n");
    drop(up);
    let (code, stdout, stderr) = shown(&mut run.command());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
}

#[test]
fn a_job_that_fails_there_exits_with_1_and_shows_its_last_words() {
    let up = Up::start();
    let run = Run::of(&job("a", 1, "echo out of luck; exit 3", ""));
    let (code, stdout, stderr) = shown(run.command().arg("--kubeconfig").arg(up.kubeconfig()));
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stderr.contains("a-work-0") && stderr.contains("out of luck"), "{stderr}");
}

/// Reads lines until each of some signs was in one of them.
fn until_told(lines: &mut impl Iterator<Item = String>, mut signs: Vec<&str>) {
    while !signs.is_empty() {
        let line = lines.next().unwrap_or_else(|| panic!("{signs:?}"));
        signs.retain(|sign| !line.contains(sign));
    }
}

#[test]
fn an_interrupted_run_deletes_what_has_not_ended_of_it_and_nothing_else() {
    let up = Up::start();
    up.apply(&job("other", 1, "exec tail -f /dev/null", ""));
    up.wait_for("vcjob/other", "{.status.state.phase}", "Running");
    let cron_job = "{apiVersion: batch/v1, kind: CronJob, metadata: {name: tick}, spec: {schedule: '@every 2s', jobTemplate: \
         {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: any, command: ['true']}]}}}}}}";
    let (endless, ended) = (job("a", 1, "exec tail -f /dev/null", ""), job("b", 1, "true", ""));
    let run = Run::of(&format!("{endless}---\n{ended}---\n{cron_job}"));
    let mut child =
        run.command().arg("--kubeconfig").arg(up.kubeconfig()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    until_told(&mut lines, vec!["a: Running", "b: Completed", ": Complete, 1 succeeded"]);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // A CronJob would go on for ever. What it was about to make when it was deleted goes after it.
    let left = || up.kubectl_ok(&["get", "vcjob,job,cronjob.batch,pod", "-o", "name"]);
    let jobs = "job.batch.volcano.sh/b\njob.batch.volcano.sh/other\n";
    let stays = format!("{jobs}pod/b-work-0\npod/other-work-0\n");
    wait_until(&format!("something else than {stays} is left"), || left() == stays);
}

#[test]
fn what_can_not_be_ended_is_named_and_the_others_are_waited_for() {
    let up = Up::start();
    let policy = |kind: &str, spec: &str| {
        format!(
            "{{apiVersion: admissionregistration.k8s.io/v1, kind: {kind}, metadata: {{name: keep}}, spec: {{{spec}}}}}"
        )
    };
    let rules =
        "{apiGroups: [batch.volcano.sh], apiVersions: ['*'], operations: [DELETE], resources: [jobs]}";
    let kept = policy(
        "ValidatingAdmissionPolicy",
        &format!(
            "matchConstraints: {{resourceRules: [{rules}]}}, validations: [{{expression: \"oldObject.metadata.name != 'a'\"}}]"
        ),
    );
    let binding = policy("ValidatingAdmissionPolicyBinding", "policyName: keep, validationActions: [Deny]");
    up.apply(&format!("{kept}\n---\n{binding}"));
    let farewell = "trap \"sleep 1; exit\" TERM; echo up; while :; do sleep 0.05; done";
    let run =
        Run::of(&format!("{}---{}", job("a", 1, "exec tail -f /dev/null", ""), job("b", 1, farewell, "")));
    let mut command = run.command();
    command.arg("--logs").arg("--kubeconfig").arg(up.kubeconfig());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    until_told(&mut lines, vec!["a: Running", "[b-work-0] up"]);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let told = lines.find(|line| line.starts_with("cannot delete")).unwrap_or_default();
    assert!(told.contains("job a") && !told.contains("job b"), "{told}");
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(up.kubectl_ok(&["get", "vcjob", "-o", "name"]), "job.batch.volcano.sh/a\n");
}

#[test]
fn a_job_that_somebody_deletes_is_a_failure_and_the_others_are_waited_for() {
    let up = Up::start();
    let go = up.file("go");
    let until_told = format!("until test -e {}; do sleep 0.05; done", go.display());
    let both = format!("{}---{}", job("a", 1, "exec tail -f /dev/null", ""), job("b", 1, &until_told, ""));
    let run = Run::of(&both);
    let mut command = run.command();
    command.args(["-o", "json", "--kubeconfig"]).arg(up.kubeconfig());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    up.wait_for("vcjob/a", "{.status.state.phase}", "Running");
    up.kubectl_ok(&["delete", "vcjob/a", "--timeout=60s"]);
    assert!(lines.any(|line| line == "job a was deleted before it ended"));
    std::fs::write(go, "").unwrap();
    assert!(lines.any(|line| line.starts_with("b: Completed")));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["outcome"], "Failed");
}

#[test]
fn a_cron_job_that_somebody_deletes_before_its_first_run_is_a_failure() {
    let up = Up::start();
    let pod = "{restartPolicy: Never, containers: [{name: main, image: any, command: ['true']}]}";
    for (name, api_version, job) in [
        ("k", "batch/v1", format!("{{template: {{spec: {pod}}}}}")),
        (
            "v",
            "batch.volcano.sh/v1alpha1",
            format!("{{tasks: [{{name: work, replicas: 1, template: {{spec: {pod}}}}}]}}"),
        ),
    ] {
        // It is not due for as long as this test lasts.
        let run = Run::of(&format!(
            "{{apiVersion: {api_version}, kind: CronJob, metadata: {{name: {name}}}, \
             spec: {{schedule: '@every 9999h', jobTemplate: {{spec: {job}}}}}}}"
        ));
        let mut command = run.command();
        command.arg("--kubeconfig").arg(up.kubeconfig());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.starts_with(&format!("{name}: waits for its next run"))));
        let group = api_version.split('/').next().unwrap_or_default();
        up.kubectl_ok(&["delete", &format!("cronjobs.{group}/{name}"), "--timeout=60s"]);
        assert!(lines.any(|line| line == format!("cronjob {name} was deleted before it ended")));
        lines.for_each(drop);
        assert_eq!(child.wait().unwrap().code(), Some(1));
    }
}

#[test]
fn logs_go_on_after_the_cluster_was_away() {
    let mut up = Up::start();
    let go = up.file("go");
    let script = format!(
        "i=0; until test -e {}; do i=$((i+1)); echo tick $i; sleep 0.02; done; echo last $i",
        go.display()
    );
    let run = Run::of(&job("a", 1, &script, ""));
    let mut command = run.command();
    let mut child = command
        .arg("--logs")
        .arg("--kubeconfig")
        .arg(up.kubeconfig())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut ticks = Vec::new();
    let tick = |line: &str| line.strip_prefix("[a-work-0] tick ").and_then(|n| n.parse::<usize>().ok());
    ticks.extend(lines.by_ref().find_map(|line| tick(&line)));
    up.kill_and_restart();
    std::fs::write(go, "").unwrap();
    let rest: Vec<String> = lines.collect();
    ticks.extend(rest.iter().filter_map(|line| tick(line)));
    assert_eq!(ticks, (1..=ticks.len()).collect::<Vec<_>>(), "each is there once");
    assert!(rest.contains(&format!("[a-work-0] last {}", ticks.len())), "{rest:?}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_cluster_without_podgroups_is_in_contact_all_the_same() {
    let up = Up::start();
    up.kubectl_ok(&["delete", "crd", "podgroups.scheduling.volcano.sh", "--timeout=60s"]);
    // It lasts longer than a watch that fails takes to be begun anew.
    let run = Run::of(
        "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {restartPolicy: Never, \
         containers: [{name: main, image: any, command: [sleep, '1']}]}}}}",
    );
    let (code, stdout, stderr) = shown(run.command().env("KUBECONFIG", up.kubeconfig()));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("a: Complete") && !stdout.contains("no contact"), "{stdout}");
}

#[test]
fn an_interrupted_run_says_what_it_could_not_end() {
    let mut up = Up::start();
    let run = Run::of(&job("a", 1, "exec tail -f /dev/null", ""));
    let mut command = run.command();
    let mut child = command.arg("--kubeconfig").arg(up.kubeconfig()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("a: Running")), "the job runs");
    up.child().kill().unwrap();
    assert!(lines.any(|line| line.contains("lost the connection to the cluster")));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let told = lines.find(|line| line.starts_with("cannot delete")).unwrap_or_default();
    assert!(told.contains("job a") && told.contains("delete it with kubectl"), "{told}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // It goes on, so that it can be ended.
    up.kill_and_restart();
    up.kubectl_ok(&["delete", "vcjob/a", "--timeout=60s"]);
}

#[test]
fn what_supports_a_job_may_be_there_and_a_run_that_can_not_begin_leaves_no_job() {
    let up = Up::start();
    let config = |value: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata: {{k: {value}}}\n---\n")
    };
    up.apply(&config("old"));
    let run = Run::of(&format!("{}{}", config("new"), job("a", 1, "true", "")));
    let (code, stdout, stderr) = shown(run.command().arg("--kubeconfig").arg(up.kubeconfig()));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("configmap/c configured"), "{stdout}");
    assert_eq!(up.field("configmap/c", "{.data.k}"), "new");

    // The server has added to it what it needs for its account.
    let server = "{apiVersion: v1, kind: Pod, metadata: {name: s}, spec: {containers: [{name: main, image: any, command: [sleep, '1000']}]}}";
    for (name, done) in [("c", "created"), ("d", "unchanged")] {
        let run = Run::of(&format!("{server}\n---\n{}", job(name, 1, "true", "")));
        let (code, stdout, stderr) =
            shown(run.command().arg("--workdir=/").arg("--kubeconfig").arg(up.kubeconfig()));
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        assert!(stdout.contains(&format!("pod/s {done}")), "{stdout}");
        // What its node writes about it would be a change.
        up.wait_for("pod/s", "{.status.phase}", "Running");
    }
    up.kubectl_ok(&["delete", "vcjob/c", "vcjob/d", "--timeout=60s"]);

    let fixed = |value: &str| format!("immutable: true\n{}", config(value));
    up.kubectl_ok(&["delete", "configmap/c"]);
    up.apply(&fixed("old"));
    let run = Run::of(&format!("{}{}", fixed("new"), job("b", 1, "true", "")));
    let (code, stdout, stderr) = shown(run.command().arg("--kubeconfig").arg(up.kubeconfig()));
    assert_eq!(code, Some(2), "{stdout}{stderr}");
    assert!(stderr.contains("job.yaml, document 1: ") && stderr.contains("immutable"), "{stderr}");

    let run = Run::of(&format!("{}---{}", job("b", 1, "true", ""), job("Bad Name", 1, "true", "")));
    let (code, stdout, stderr) = shown(run.command().arg("--kubeconfig").arg(up.kubeconfig()));
    assert_eq!(code, Some(2), "{stdout}{stderr}");
    assert!(stderr.contains("job.yaml, document 2"), "{stderr}");
    assert_eq!(up.kubectl_ok(&["get", "vcjob", "-o", "name"]), "job.batch.volcano.sh/a\n");
}

#[test]
fn any_kind_that_the_cluster_serves_is_made_there_and_stays() {
    let up = Up::start();
    let run = Run::of(&of_many_kinds());
    let (code, stdout, stderr) = shown(run.command().arg("--kubeconfig").arg(up.kubeconfig()));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let made: Vec<&str> = stdout.lines().filter(|line| line.ends_with(" created")).collect();
    assert_eq!(made, MADE_IN_ORDER);
    assert_eq!(up.kubectl_ok(&["get", "widget/w", "-n", "shop", "-o", "jsonpath={.size}"]), "3");

    // A definition that is there already says what is made of its kind; only the server knows its fields.
    let widget = |name: &str, field: &str| {
        format!("{{apiVersion: example.com/v1, kind: Widget, metadata: {{name: {name}}}, {field}: 4}}\n---")
    };
    let again = |manifest: String| {
        let run = Run::of(&manifest);
        let (code, stdout, stderr) = shown(run.command().arg("--kubeconfig").arg(up.kubeconfig()));
        (code, stdout + &stderr)
    };
    let (code, said) = again(widget("x", "size") + &job("b", 1, "true", ""));
    assert!(code == Some(0) && said.contains("widget/x created"), "{said}");
    let (code, said) = again(widget("x", "size") + &job("c", 1, "true", ""));
    assert!(code == Some(0) && said.contains("widget/x unchanged"), "{said}");
    let (code, said) = again(widget("z", "sise") + &job("d", 1, "true", ""));
    assert!(
        code == Some(2) && said.contains("job.yaml, document 1: ") && said.contains("unknown field \"sise\""),
        "{said}"
    );
}

#[test]
fn a_cluster_that_is_gone_is_missed_only_if_it_was_named() {
    let kubeconfig = {
        let up = Up::start();
        std::fs::read_to_string(up.kubeconfig()).unwrap()
    };
    let run = Run::of(&job("a", 1, "true", ""));
    let file = run.dir.path().join("kubeconfig");
    std::fs::write(&file, kubeconfig).unwrap();
    let (code, _, stderr) = shown(run.command().arg("--kubeconfig").arg(&file));
    assert_eq!(code, Some(2), "{stderr}");
    assert!(
        stderr.contains("cannot use the cluster of")
            && stderr.contains("kubeconfig")
            && stderr.contains(": no connection: "),
        "{stderr}"
    );

    let (code, stdout, stderr) = shown(run.command().env("KUBECONFIG", &file));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stderr.contains("an embedded cluster instead"), "{stderr}");
}
