//! The everyday commands on `krafla up`: get, logs, wait and others.

use std::process::Output;

use crate::support::{Up, job, krafla, text};

/// A Kubernetes Job whose pod runs a shell command.
fn batch_job(name: &str, script: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec:\n  backoffLimit: 0\n  template:\n    spec:\n      \
         restartPolicy: Never\n      containers: [{{name: main, image: any, command: [sh, -c, '{script}']}}]\n"
    )
}

/// Runs krafla with the kubeconfig of a cluster.
fn run(up: &Up, args: &[&str]) -> Output {
    krafla().args(args).arg("--kubeconfig").arg(up.kubeconfig()).output().unwrap()
}

/// What krafla prints; it must succeed.
fn ok(up: &Up, args: &[&str]) -> String {
    let output = run(up, args);
    assert!(output.status.success(), "{args:?}: {}{}", text(&output.stderr), text(&output.stdout));
    text(&output.stdout)
}

/// What `krafla wait` prints; it must succeed.
fn waited(up: &Up, args: &[&str]) -> String {
    ok(up, &[&["wait", "--timeout", "60s"], args].concat())
}

/// The exit code and the complaint.
fn refused(up: &Up, args: &[&str]) -> (i32, String) {
    let output = run(up, args);
    (output.status.code().unwrap(), text(&output.stderr))
}

/// The words of each line.
fn words(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn jobs_of_volcano_and_kubernetes_are_listed_together() {
    let up = Up::start();
    up.apply(&job("train", 2, "true", ""));
    up.apply(&batch_job("index", "exit 3"));
    up.wait_for("vcjob/train", "{.status.state.phase}", "Completed");
    up.wait_for("jobs.batch/index", "{.status.failed}", "1");
    up.wait_for("jobs.batch/index", "{.status.conditions[?(@.type==\"Failed\")].status}", "True");

    let listed = ok(&up, &["get"]);
    let lines = words(&listed);
    assert_eq!(lines[0], ["KIND", "NAME", "PHASE", "RUNNING", "DONE", "QUEUE", "AGE"]);
    assert_eq!(lines[1][..6], ["job", "index", "Failed", "0", "0/1", "<none>"]);
    assert_eq!(lines[2][..6], ["vcjob", "train", "Completed", "0", "2/2", "default"]);

    assert_eq!(ok(&up, &["get", "jobs", "-o", "name"]), "job.batch/index\njob.batch.volcano.sh/train\n");
    assert_eq!(
        ok(&up, &["get", "jobs", "-o", "name", "--phase", "completed"]),
        "job.batch.volcano.sh/train\n"
    );
    assert_eq!(ok(&up, &["get", "jobs", "-o", "name", "--queue", "default"]), "job.batch.volcano.sh/train\n");
    let pods = ok(
        &up,
        &["get", "pods", "-A", "-l", "volcano.sh/job-name=train", "--no-headers", "--sort-by", "name"],
    );
    let pods = words(&pods);
    assert_eq!(pods[1][..4], ["default", "train-work-1", "0/1", "Completed"]);
    let one: serde_json::Value =
        serde_json::from_str(&ok(&up, &["get", "vcjob/train", "-o", "json"])).unwrap();
    assert_eq!((&one["kind"], &one["metadata"]["name"]), (&"Job".into(), &"train".into()));
    assert!(one["metadata"].get("managedFields").is_none());
    let yaml = ok(&up, &["get", "queue", "default", "-o", "yaml"]);
    assert!(yaml.starts_with("apiVersion: scheduling.volcano.sh/v1beta1\n"), "{yaml}");
    // Kinds that Krafla has no name for are looked up.
    assert!(
        ok(&up, &["get", "clusterroles/view", "-o", "name"])
            .starts_with("clusterrole.rbac.authorization.k8s.io/view")
    );

    let missing = "krafla: job/nothing does not exist in namespace default; fix: list the names with `krafla get job -A`\n";
    assert_eq!(refused(&up, &["get", "job/nothing"]), (4, missing.to_owned()));
    let unknown = refused(&up, &["get", "jbos"]);
    assert_eq!(unknown, (4, "krafla: the cluster has no kind \"jbos\"; did you mean jobs?\n".to_owned()));
    assert_eq!(refused(&up, &["get", "jobs", "-n", "empty"]), (0, "no jobs in namespace empty\n".to_owned()));
}

#[test]
fn changes_are_printed_until_the_command_is_interrupted() {
    use std::io::{BufRead, BufReader};
    let up = Up::start();
    up.apply(&job("first", 1, "true", ""));
    up.wait_for("vcjob/first", "{.status.state.phase}", "Completed");
    let mut child = krafla();
    child
        .args(["get", "jobs", "--watch", "--kubeconfig"])
        .arg(up.kubeconfig())
        .stdout(std::process::Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.next().unwrap().starts_with("KIND"));
    assert!(lines.next().unwrap().contains("first"));
    up.apply(&job("second", 1, "true", ""));
    assert!(lines.any(|line| line.contains("second") && line.contains("Completed")));
    up.kubectl_ok(&["delete", "vcjob/second"]);
    assert!(lines.any(|line| line.contains("second") && line.contains("Deleted")));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn waiting_ends_with_the_object_and_its_exit_code_says_how() {
    let up = Up::start();
    up.apply(&job("good", 1, "true", ""));
    up.apply(&batch_job("bad", "exit 3"));
    let finished = waited(&up, &["job/good"]);
    assert!(finished.starts_with("job/good Completed ("), "{finished}");
    let (code, complaint) = refused(&up, &["wait", "job", "good", "bad"]);
    assert_eq!(code, 1);
    assert!(
        complaint.starts_with("krafla: job/bad: Failed: Job has reached the specified backoff limit"),
        "{complaint}"
    );
    up.apply(&job("long", 1, "sleep 600", ""));
    let running = waited(&up, &["vcjob/long", "--for=phase=Running", "-o", "json"]);
    let running: serde_json::Value = serde_json::from_str(&running).unwrap();
    assert_eq!((&running[0]["outcome"], &running[0]["phase"]), (&"Reached".into(), &"Running".into()));
    let (code, late) = refused(&up, &["wait", "vcjob/long", "--timeout", "10ms"]);
    assert_eq!((code, late.as_str()), (5, "krafla: vcjob/long is still Running after 0 s\n"));
    let (code, endless) = refused(&up, &["wait", "queue/default"]);
    assert_eq!((code, endless.contains("fix: say what to wait for with --for")), (2, true), "{endless}");

    // What is deleted is gone when the command ends, with its pods.
    assert_eq!(
        ok(&up, &["delete", "job/long", "jobs.batch/bad"]),
        "job/long deleted\njobs.batch/bad deleted\n"
    );
    assert_eq!(refused(&up, &["delete", "job/long"]).0, 4);
    assert_eq!(ok(&up, &["delete", "jobs", "--all", "-o", "name"]), "job.batch.volcano.sh/good\n");
    assert_eq!(refused(&up, &["delete", "jobs", "--all"]), (0, "no jobs in namespace default\n".to_owned()));
    let versions: serde_json::Value = serde_json::from_str(&ok(&up, &["version", "-o", "json"])).unwrap();
    assert!(versions["server"].as_str().unwrap().ends_with("+krafla"), "{versions}");
}

#[test]
fn jobs_of_both_kinds_are_suspended_and_resumed() {
    let up = Up::start();
    up.apply(&job("train", 1, "sleep 600", ""));
    up.apply(&batch_job("index", "sleep 600"));
    waited(&up, &["job/train", "job/index", "--for=phase=Running"]);
    assert_eq!(ok(&up, &["suspend", "job/train", "job/index"]), "job/train suspended\njob/index suspended\n");
    waited(&up, &["job/index", "--for=phase=Suspended"]);
    waited(&up, &["job/train", "--for=phase=Aborted"]);
    ok(&up, &["resume", "job/train", "job/index"]);
    waited(&up, &["job/train", "job/index", "--for=phase=Running"]);
    let before = ok(&up, &["get", "pods", "-o", "json", "-l", "volcano.sh/job-name=train"]);
    assert_eq!(ok(&up, &["restart", "job/train"]), "job/train restarted\n");
    waited(&up, &["job/train", "--for=jsonpath={.status.version}=3"]);
    waited(&up, &["job/train", "--for=phase=Running"]);
    assert_ne!(ok(&up, &["get", "pods", "-o", "json", "-l", "volcano.sh/job-name=train"]), before);
    let (code, complaint) = refused(&up, &["restart", "job/index"]);
    assert_eq!(
        (code, complaint.contains("a Kubernetes Job cannot be restarted; fix:")),
        (2, true),
        "{complaint}"
    );
    // Two objects of one name are told apart.
    up.apply(&job("index", 1, "true", ""));
    let (code, complaint) = refused(&up, &["delete", "job/index"]);
    let fix =
        "krafla: job/index means two objects; fix: name jobs.batch.volcano.sh/index or jobs.batch/index\n";
    assert_eq!((code, complaint.as_str()), (2, fix));
}

#[test]
fn the_logs_of_all_members_are_printed_with_their_names() {
    let up = Up::start();
    up.apply(&job("train", 2, "echo one; echo two", ""));
    up.apply(&batch_job("index", "echo indexed"));
    waited(&up, &["job/train", "job/index"]);
    let lines = ["[train-work-0] one", "[train-work-0] two", "[train-work-1] one", "[train-work-1] two", ""]
        .join("\n");
    assert_eq!(ok(&up, &["logs", "job/train"]), lines);
    assert_eq!(ok(&up, &["logs", "job/train", "--tail", "1", "--no-prefix"]), "two\ntwo\n");
    assert_eq!(ok(&up, &["logs", "pod/train-work-1"]), "one\ntwo\n");
    let both = ok(&up, &["logs", "job/index", "vcjob/train", "--tail=1"]);
    assert!(both.contains("] indexed\n") && both.contains("[train-work-0] two\n"), "{both}");
    let stamped = ok(&up, &["logs", "pod/train-work-1", "--timestamps", "--since", "1h", "--tail", "1"]);
    assert!(stamped.starts_with("20") && stamped.ends_with("Z two\n"), "{stamped}");
    let (code, complaint) = refused(&up, &["logs", "job/train", "--task", "ps"]);
    assert_eq!((code, complaint.as_str()), (4, "krafla: job/train has no pods of task \"ps\"\n"));
    let (code, complaint) = refused(&up, &["logs", "queue/default"]);
    assert_eq!((code, complaint.contains("has no logs; fix:")), (2, true), "{complaint}");
}

#[test]
fn logs_are_followed_until_the_job_finishes() {
    let up = Up::start();
    let gate = up.file("gate");
    let script = format!("echo waiting; while ! [ -e {} ]; do sleep 0.02; done; echo opened", gate.display());
    up.apply(&job("train", 2, &script, ""));
    let mut child = krafla();
    child
        .args(["logs", "-f", "vcjob/train", "--kubeconfig"])
        .arg(up.kubeconfig())
        .stdout(std::process::Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut lines =
        std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap())).map_while(Result::ok);
    let mut first = [lines.next().unwrap(), lines.next().unwrap()];
    first.sort();
    assert_eq!(first, ["[train-work-0] waiting", "[train-work-1] waiting"]);
    std::fs::write(&gate, "").unwrap();
    let mut rest: Vec<String> = lines.collect();
    rest.sort();
    assert_eq!(rest, ["[train-work-0] opened", "[train-work-1] opened"]);
    assert!(child.wait().unwrap().success());
}

#[test]
fn queues_are_created_closed_and_shown_as_a_tree() {
    let up = Up::start();
    let created = ok(&up, &["queue", "create", "nlp", "--weight", "4", "--capability", "cpu=2,memory=1Gi"]);
    assert_eq!(created, "queue/nlp created\n");
    waited(&up, &["queue/nlp", "--for=phase=Open"]);
    let tree = ok(&up, &["queue", "tree"]);
    assert!(tree.lines().any(|line| line.contains("─ nlp") && line.contains("cpu=2,memory=1Gi")), "{tree}");
    assert_eq!(ok(&up, &["queue", "close", "nlp"]), "queue/nlp closed\n");
    waited(&up, &["queue/nlp", "--for=phase=Closed"]);
    let (code, complaint) = refused(&up, &["queue", "open", "nothing"]);
    assert_eq!(
        (code, complaint.starts_with("krafla: queue/nothing does not exist; fix:")),
        (4, true),
        "{complaint}"
    );
    let (code, complaint) = refused(&up, &["queue", "create", "nlp"]);
    assert_eq!((code, complaint.contains("already exists")), (6, true), "{complaint}");
}

#[test]
fn a_context_and_a_namespace_choose_where_commands_act() {
    let up = Up::start();
    up.kubectl_ok(&["create", "namespace", "ml"]);
    let two = up.file("two");
    let one = std::fs::read_to_string(up.kubeconfig()).unwrap();
    let context = "- name: ml\n  context:\n    cluster: krafla\n    user: krafla\n    namespace: ml\n";
    std::fs::write(&two, one.replace("contexts:\n", &format!("contexts:\n{context}"))).unwrap();
    let file = up.file("job.yaml");
    std::fs::write(&file, job("train", 1, "true", "")).unwrap();
    let chosen = |args: &[&str]| {
        let output = krafla().args(args).env("KUBECONFIG", &two).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", text_of(&output));
        text(&output.stdout)
    };
    chosen(&["run", "--context", "ml", file.to_str().unwrap()]);
    assert_eq!(chosen(&["get", "jobs", "-o", "name", "--context", "ml"]), "job.batch.volcano.sh/train\n");
    assert_eq!(chosen(&["get", "jobs", "-o", "name"]), "");
    assert_eq!(chosen(&["get", "jobs", "-o", "name", "-n", "ml"]), "job.batch.volcano.sh/train\n");
    // A run in a cluster of its own creates the namespace.
    let own = chosen(&["run", "--own-cluster", "-n", "lab", "-o", "json", file.to_str().unwrap()]);
    let own: serde_json::Value = serde_json::from_str(&own).unwrap();
    assert_eq!(own["jobs"][0]["namespace"], "lab");
}

fn text_of(output: &Output) -> String {
    format!("{}{}", text(&output.stderr), text(&output.stdout))
}

#[test]
fn a_cluster_runs_in_the_background_until_it_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| krafla().args(args).current_dir(dir.path()).output().unwrap();
    let status = || run(&["status", "-o", "json"]);
    assert_eq!(status().status.code(), Some(3));
    let up = run(&["up", "--detach"]);
    assert!(up.status.success(), "{}", text_of(&up));
    assert!(text(&up.stdout).ends_with("stop it with: krafla down\n"), "{}", text_of(&up));
    let said = status();
    let found: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(
        (&found["running"], &found["ready"], &found["objects"]["nodes"]),
        (&true.into(), &true.into(), &1.into())
    );
    // Commands in this directory use the cluster.
    std::fs::write(dir.path().join("job.yaml"), job("train", 1, "echo hello", "")).unwrap();
    let ran = run(&["run", "job.yaml"]);
    assert!(ran.status.success(), "{}", text_of(&ran));
    assert_eq!(text(&run(&["logs", "job/train"]).stdout), "[train-work-0] hello\n");
    let top: serde_json::Value = serde_json::from_slice(&run(&["top", "-o", "json"]).stdout).unwrap();
    assert_eq!(top["nodes"].as_array().unwrap().len(), 1);
    // A second cluster in the same directory is refused, with its reason.
    let second = run(&["up", "--detach"]);
    assert!(!second.status.success() && !second.stderr.is_empty(), "{}", text_of(&second));
    let down = run(&["down"]);
    assert_eq!(text(&down.stdout), "stopped the cluster in .krafla\n", "{}", text_of(&down));
    assert_eq!(status().status.code(), Some(3));
    assert_eq!(text(&run(&["down"]).stdout), "no cluster is running in .krafla\n");
    let (code, complaint) = (run(&["get"]).status.code(), text(&run(&["get"]).stderr));
    assert_eq!(code, Some(3), "{complaint}");
}

#[test]
fn the_steps_of_a_flow_are_drawn() {
    let up = Up::start();
    let template = |name: &str| {
        job(name, 1, "true", "")
            .replace("batch.volcano.sh", "flow.volcano.sh")
            .replace("kind: Job", "kind: JobTemplate")
    };
    let flow = "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: etl}\nspec:\n  jobRetainPolicy: retain\n  \
                flows: [{name: load}, {name: train, dependsOn: {targets: [load]}}]\n";
    up.apply(&[template("load"), template("train"), flow.to_owned()].join("\n---\n"));
    waited(&up, &["flow/etl"]);
    let drawn = ok(&up, &["graph", "jobflow/etl"]);
    assert!(drawn.starts_with("etl: Succeed, 2 of 2 jobs completed\n  █ load     Completed"), "{drawn}");
    assert!(ok(&up, &["graph", "flow/etl", "-o", "mermaid"]).contains("  s0 --> s1\n"));
    assert!(ok(&up, &["graph", "flow/etl", "-o", "svg"]).starts_with("<svg "));
    assert_eq!(refused(&up, &["graph", "queue/default"]).0, 2);
    let logs = run(&up, &["logs", "flow/etl"]);
    assert!(logs.status.success(), "{}", text_of(&logs));
}

#[test]
fn the_last_lines_of_a_failed_pod_are_printed_once() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("job.yaml"), batch_job("bad", "echo last words; exit 3")).unwrap();
    for flags in [&["run", "job.yaml"][..], &["run", "--logs", "job.yaml"]] {
        let output = krafla().current_dir(dir.path()).args(flags).output().unwrap();
        let said = text_of(&output);
        assert_eq!((output.status.code(), said.matches("last words").count()), (Some(1), 1), "{said}");
        assert!(said.contains("container main: exit code 3"), "{said}");
    }
}

#[test]
fn names_of_objects_are_completed() {
    let up = Up::start();
    let completed = |words: &[&str]| {
        let output = krafla()
            .args(["__complete", "--"])
            .args(words)
            .env("KUBECONFIG", up.kubeconfig())
            .output()
            .unwrap();
        text(&output.stdout)
    };
    assert_eq!(completed(&["get", "queues", "def"]), "default\n");
    assert_eq!(completed(&["delete", "queue/def"]), "queue/default\n");
    assert_eq!(completed(&["get", "pods", "-n", "kube-sys"]), "kube-system\n");
    assert_eq!(completed(&["lo"]), "logs\n");
}
