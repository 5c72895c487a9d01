//! `krafla run`: from a file to an exit code.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::support::{job, krafla, krafla_as_nobody, repository_file, text};

pub(crate) fn run_text(manifest: &str) -> (Option<i32>, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("job.yaml");
    std::fs::write(&file, manifest).unwrap();
    let output = krafla().current_dir(dir.path()).args(["run", "job.yaml"]).output().unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn hello_completes_and_exits_with_0() {
    let output = krafla().arg("run").arg(repository_file("examples/hello.yaml")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    for word in ["hello", "Pending", "Running", "Completed"] {
        assert!(lines.contains(word), "{word} is missing in:\n{lines}");
    }
}

#[test]
fn a_job_that_fails_exits_with_1_and_shows_the_pods_last_words() {
    let (code, stdout, stderr) = run_text(&job("a", 1, "echo out of luck; exit 3", ""));
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("Failed"), "{stdout}");
    assert!(stderr.contains("a-work-0") && stderr.contains("exit code 3"), "{stderr}");
    assert!(stderr.contains("out of luck"), "{stderr}");
}

#[test]
fn a_policy_restarts_a_job_until_it_succeeds() {
    let output = krafla().arg("run").arg(repository_file("examples/restart.yaml")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    assert!(lines.contains("Restarting") && lines.contains("Completed"), "{lines}");
}

#[test]
fn a_command_that_does_not_exist_fails_the_job_and_is_named() {
    let manifest = job("a", 1, "true", "").replace("[sh, -c, 'true']", "[no-such-command]");
    let (code, stdout, stderr) = run_text(&manifest);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stderr.contains("no-such-command"), "{stderr}");
}

#[test]
fn a_job_finds_what_the_node_is_said_to_have() {
    let dir = tempfile::tempdir().unwrap();
    let asks = "name: main, resources: {limits: {nvidia.com/gpu: 2, ephemeral-storage: 1Mi}}, ";
    std::fs::write(dir.path().join("job.yaml"), job("a", 1, "true", "").replace("name: main, ", asks))
        .unwrap();
    let run = ["run", "--capacity", "nvidia.com/gpu=2", "job.yaml"];
    let output = krafla().current_dir(dir.path()).args(run).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
}

#[test]
fn a_mistake_in_the_last_document_is_found_before_the_first_runs() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("ran");
    let mut manifest = String::from("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n---\n");
    for index in 0..20 {
        manifest += &job(&format!("a{index}"), 1, &format!("touch {}", mark.display()), "");
        manifest += "---\n";
    }
    manifest += &job("b", 1, "true", "  maxRetry: -1");
    let (code, stdout, stderr) = run_text(&manifest);
    assert_eq!(code, Some(2), "{stdout}{stderr}");
    assert!(stderr.contains("job.yaml, document 22") && stderr.contains("spec.maxRetry"), "{stderr}");
    assert_eq!(stdout, "configmap/c created\n");
    assert!(!mark.exists(), "nothing has run");

    // Nor a server, which would be there for the jobs.
    let server = "{apiVersion: v1, kind: Pod, metadata: {name: s}, \
         spec: {containers: [{name: main, image: any, command: [sleep, '1000']}]}}\n---\n";
    let (code, stdout, stderr) = run_text(&format!("{server}{}", job("b", 1, "true", "  maxRetry: -1")));
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
}

#[test]
fn a_pod_that_ends_is_waited_for_like_a_job() {
    let pod = |name: &str, script: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{restartPolicy: Never, \
             containers: [{{name: main, image: any, command: [sh, -c, '{script}']}}]}}}}\n---\n"
        )
    };
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("job.yaml"),
        pod("good", "echo fine") + &pod("bad", "echo not fine; exit 3"),
    )
    .unwrap();
    let output =
        krafla().current_dir(dir.path()).args(["run", "--logs", "-o", "json", "job.yaml"]).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for line in [
        "good: Succeeded",
        "bad: Failed",
        "[good] fine",
        "[bad] not fine",
        "pod bad, container main: exit code 3\n",
    ] {
        assert!(stderr.contains(line), "{line} is missing in: {stderr}");
    }
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let ends: Vec<String> = result["pods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pod| {
            format!("{} {} {}", pod["name"], pod["phase"], pod["pods"][0]["containers"][0]["exitCode"])
        })
        .collect();
    assert_eq!(ends, ["\"bad\" \"Failed\" 3", "\"good\" \"Succeeded\" 0"]);
}

/// krafla where containers can not have mounts of their own: no name spaces can be made below a user's whose limits
/// are zero.
fn krafla_without_mounts() -> Command {
    let forbid =
        "for kind in user mnt; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done; exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", forbid]).arg(krafla().get_program());
    command.env_remove("KUBECONFIG");
    command
}

#[test]
fn a_volume_that_is_not_where_it_should_be_is_told_once() {
    let mounts = "name: main, volumeMounts: [{name: data, mountPath: /data}], ";
    let volumes = "volumes: [{name: data, emptyDir: {}}]\n          containers:";
    let manifest = job("a", 3, "true", "").replace("name: main, ", mounts).replace("containers:", volumes);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("job.yaml"), manifest).unwrap();
    let output = krafla_without_mounts().current_dir(dir.path()).args(["run", "job.yaml"]).output().unwrap();
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    let told: Vec<&str> = lines.lines().filter(|line| line.contains("mounts are not possible")).collect();
    assert_eq!(told.len(), 1, "{lines}");
    assert!(told[0].starts_with("a: pod a-work-"), "{told:?}");
    assert!(told[0].contains("volume \"data\" is not at /data but at $KRAFLA_VOLUME_DATA"), "{told:?}");
}

#[test]
fn a_container_that_only_waits_is_told() {
    let manifest = job("a", 1, "true", "").replace(", command: [sh, -c, 'true']", "");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("job.yaml"), manifest).unwrap();
    let mut run =
        krafla().current_dir(dir.path()).args(["run", "job.yaml"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut told = lines.skip_while(|line| !line.starts_with("job/a: "));
    let line = told.next().unwrap_or_default();
    assert!(line.contains("container main has no command"), "{line}");
    assert!(told.any(|line| line.contains("Running")), "it waits");
    assert!(Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap().success());
    told.for_each(drop);
    assert_eq!(run.wait().unwrap().code(), Some(130));
}

#[test]
fn a_misspelt_field_is_refused_with_what_was_meant() {
    let misspelt = job("a", 1, "true", "").replace("command:", "comand:");
    let (code, stdout, stderr) = run_text(&misspelt);
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
    for word in ["job.yaml", "spec.tasks[0].template.spec.containers[0].comand", "did you mean command?"] {
        assert!(stderr.contains(word), "{word} is missing in: {stderr}");
    }
}

#[test]
fn a_missing_field_is_named() {
    let (code, _, stderr) =
        run_text("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec: {}\n");
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("job.yaml") && stderr.contains("task"), "{stderr}");
    let unnamed = job("a", 1, "true", "").replace("name: main, ", "");
    let (code, _, stderr) = run_text(&unnamed);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("containers[0].name"), "{stderr}");
}

#[test]
fn bad_input_exits_with_2_and_names_file_field_and_remedy() {
    let (code, _, stderr) = run_text("apiVersion: batch/v1\nkind: Sparkle\nmetadata: {name: a}\n");
    assert_eq!(code, Some(2));
    assert!(stderr.contains("job.yaml") && stderr.contains("Sparkle"), "{stderr}");

    let (code, _, stderr) = run_text(&job("a", 1, "true", "  maxRetry: -1"));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("job.yaml") && stderr.contains("spec.maxRetry"), "{stderr}");

    // What is started again whenever it ends has no end to wait for.
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a}]}\n";
    let (code, stdout, stderr) = run_text(pod);
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "nothing has been done");
    assert!(stderr.contains("no Job, JobFlow or CronJob") && stderr.contains("krafla up"), "{stderr}");

    let (code, _, stderr) = run_text("a: [");
    assert_eq!(code, Some(2));
    assert!(stderr.contains("job.yaml"), "{stderr}");
}

#[test]
fn a_wrong_flag_exits_with_2_and_says_what_there_is() {
    let output = krafla().args(["run", "--wait", "job.yaml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--wait"), "{}", text(&output.stderr));
}

#[test]
fn crds_are_printed_as_yaml_documents() {
    let output = krafla().arg("crds").output().unwrap();
    let yaml = text(&output.stdout);
    assert!(output.status.success());
    assert_eq!(yaml.matches("kind: CustomResourceDefinition").count(), 11, "{yaml}");
    assert!(yaml.contains("name: jobs.batch.volcano.sh"), "{yaml}");
}

#[test]
fn logs_are_printed_with_their_pods_names() {
    let output =
        krafla().args(["run", "--logs"]).arg(repository_file("examples/hello.yaml")).output().unwrap();
    let lines = text(&output.stdout);
    for pod in ["hello-greeter-0", "hello-greeter-1"] {
        assert!(lines.contains(&format!("[{pod}] hello from {pod}")), "{lines}");
    }
}

#[test]
fn logs_have_every_attempt_and_init_containers() {
    let first_fails = "if test -e again; then echo second; else touch again; echo first; exit 1; fi";
    let manifest = job("a", 1, first_fails, "").replace(
        "restartPolicy: Never",
        "restartPolicy: OnFailure\n          \
         initContainers: [{name: before, image: any, command: [sh, -c, \"echo prepared\"]}]",
    );
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("job.yaml"), manifest).unwrap();
    let output = krafla().current_dir(dir.path()).args(["run", "--logs", "job.yaml"]).output().unwrap();
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    // Containers are followed side by side, each from its beginning to its end.
    let of = |container: &str| -> Vec<&str> {
        lines.lines().filter_map(|line| line.strip_prefix(&format!("[a-work-0/{container}] "))).collect()
    };
    assert_eq!(of("before"), ["prepared"], "{lines}");
    assert_eq!(of("main"), ["first", "second"], "{lines}");
}

#[test]
fn a_failure_before_or_beside_the_main_container_is_explained() {
    let init = "restartPolicy: Never\n          \
                initContainers: [{name: before, image: any, command: [sh, -c, \"echo no disk; exit 4\"]}]";
    let (code, stdout, stderr) = run_text(&job("a", 1, "true", "").replace("restartPolicy: Never", init));
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    let told = "pod a-work-0, container before: exit code 4\n  no disk\n";
    assert!(stderr.contains(told), "{stderr}");

    let late = "restartPolicy: Never\n          activeDeadlineSeconds: 10";
    let script = "trap \"exit 0\" TERM; echo working; while :; do sleep 0.05; done";
    let (code, stdout, stderr) = run_text(&job("a", 1, script, "").replace("restartPolicy: Never", late));
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stderr.contains("pod a-work-0: DeadlineExceeded: "), "{stderr}");
    assert!(stderr.contains("exit code 0\n  working\n"), "{stderr}");
}

#[test]
fn the_result_can_be_read_by_a_program() {
    let hello = repository_file("examples/hello.yaml");
    let output = krafla().args(["run", "--output", "json"]).arg(hello).output().unwrap();
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["jobs"][0]["name"], "hello");
    assert_eq!(result["jobs"][0]["phase"], "Completed");
    assert_eq!(result["jobs"][0]["status"]["succeeded"], 2);
    assert_eq!(result["jobs"][0]["apiVersion"], "batch.volcano.sh/v1alpha1");
    assert_eq!(result["jobs"][0]["pods"][1]["containers"][0]["exitCode"], 0);
    assert_eq!(result["outcome"], "Succeeded");
    assert!(text(&output.stderr).contains("hello: Completed"), "progress goes beside the result");
}

#[test]
fn a_program_is_told_of_a_mistake_too() {
    let output = krafla().args(["run", "-o", "json", "no-such-file.yaml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["error"].as_str().unwrap().contains("no-such-file.yaml"), "{result}");
}

#[test]
fn a_flow_is_followed_step_by_step() {
    let pipeline = repository_file("examples/pipeline.yaml");
    let output = krafla().args(["run", "--logs"]).arg(pipeline).output().unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    for line in [
        // As a whole at first and at last, and in between what changed.
        ", model-training waits, model-evaluation waits",
        "step data-preprocess Completed",
        "[ml-pipeline-model-training-trainer-1] trainer 1 has trained its part",
        "ml-pipeline: Succeed, data-preprocess Completed, model-training Completed, model-evaluation Completed",
    ] {
        assert!(stdout.contains(line), "{line} is missing in:\n{stdout}");
    }
}

#[test]
fn processes_of_one_job_find_each_other_and_agree() {
    for (example, line) in [
        ("mpi-style", "[mpi-style-launcher-0] pi is about 3.141593"),
        ("all-reduce", "[all-reduce-worker-2] rank 3 of 4: the sum of all is 10"),
    ] {
        let file = repository_file(&format!("examples/{example}.yaml"));
        let output = krafla().args(["run", "--logs"]).arg(file).output().unwrap();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
        assert!(stdout.contains(line), "{stdout}{stderr}");
    }
}

/// A flow `f` whose only step is this job, which is `a`.
pub(crate) fn flow_of(job: &str) -> String {
    let template =
        job.replace("batch.volcano.sh", "flow.volcano.sh").replace("kind: Job", "kind: JobTemplate");
    let flow = "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: f}\nspec: {flows: [{name: a}]}";
    format!("{template}---\n{flow}\n")
}

#[test]
fn a_flow_whose_job_fails_exits_with_1_and_shows_why() {
    let (code, stdout, stderr) = run_text(&flow_of(&job("a", 1, "echo no luck; exit 3", "")));
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("f: Failed, a Failed"), "{stdout}");
    assert!(stderr.contains("f-a-work-0") && stderr.contains("no luck"), "{stderr}");
}

#[test]
fn every_example_completes() {
    let mut examples: Vec<_> =
        std::fs::read_dir(repository_file("examples")).unwrap().map(|entry| entry.unwrap().path()).collect();
    examples.sort();
    for example in
        examples.iter().filter(|file| file.extension().is_some_and(|extension| extension == "yaml"))
    {
        let output = krafla().arg("run").arg(example).output().unwrap();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{}:\n{stdout}{stderr}", example.display());
    }
}

#[test]
fn a_job_of_kubernetes_runs_to_its_end_and_shows_its_progress() {
    let output = krafla().arg("run").arg(repository_file("examples/indexed-job.yaml")).output().unwrap();
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    for word in ["indexed: Running, 2 active", "indexed: Complete, 5 succeeded"] {
        assert!(lines.contains(word), "{word} is missing in:\n{lines}");
    }
}

#[test]
fn a_cron_job_is_followed_to_the_end_of_its_first_run() {
    let output =
        krafla().args(["run", "--logs"]).arg(repository_file("examples/cron.yaml")).output().unwrap();
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    for word in ["tick: waits for its next run at 20", "it is time", ": Complete, 1 succeeded"] {
        assert!(lines.contains(word), "{word} is missing in:\n{lines}");
    }
}

#[test]
fn a_cron_job_of_volcano_is_followed_to_the_end_of_its_first_run() {
    let manifest = cron_job_of(&job("tick", 1, "echo it is time", ""));
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("job.yaml"), &manifest).unwrap();
    let output = krafla().current_dir(dir.path()).args(["run", "--logs", "job.yaml"]).output().unwrap();
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{manifest}\n{lines}{}", text(&output.stderr));
    for word in ["cronjob/tick created", "tick: waits for its next run at 20", "it is time", ": Completed"] {
        assert!(lines.contains(word), "{word} is missing in:\n{lines}");
    }
}

#[test]
fn a_job_of_kubernetes_is_done_with_its_leader() {
    let output = krafla().arg("run").arg(repository_file("examples/success-policy.yaml")).output().unwrap();
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    assert!(lines.contains("led: Complete, 1 succeeded"), "{lines}");
}

#[test]
fn a_job_of_kubernetes_that_fails_exits_with_1_and_shows_why() {
    let (code, stdout, stderr) = run_text(
        r#"
apiVersion: batch/v1
kind: Job
metadata: {name: a}
spec:
  podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [42]}}]}
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: any, command: [sh, -c, 'echo out of luck; exit 42']}]
"#,
    );
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("failed with exit code 42 matching FailJob rule at index 0"), "{stdout}");
    assert!(stderr.contains("out of luck"), "{stderr}");
}

/// A CronJob of this job, which is due every other second.
pub(crate) fn cron_job_of(job: &str) -> String {
    let (start, spec) = job.split_once("spec:\n").unwrap();
    let start = start.replace("kind: Job", "kind: CronJob");
    let spec: String = spec.lines().map(|line| format!("    {line}\n")).collect();
    format!("{start}spec:\n  schedule: \"@every 2s\"\n  jobTemplate:\n    spec:\n{spec}")
}

/// The plugin mpi brings keys to `/root/.ssh`, where only root may look.
#[test]
fn an_example_that_mounts_below_root_runs_for_everybody() {
    if !rustix::process::geteuid().is_root() {
        return println!(
            "not tested, because only root can become somebody else: the other tests are run by such a one"
        );
    }
    let dir = tempfile::tempdir().unwrap();
    let example = std::fs::read_to_string(repository_file("examples/mpi-style.yaml")).unwrap();
    std::fs::write(dir.path().join("job.yaml"), example).unwrap();
    let ran = krafla_as_nobody(dir.path(), "", "run job.yaml");
    assert!(ran.status.success(), "{}\n{}", text(&ran.stdout), text(&ran.stderr));
}

#[test]
fn what_needs_another_object_of_the_files_may_come_before_it() {
    let child = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: small}, spec: {weight: 1, parent: large}}";
    let parent = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: large}, spec: {weight: 1}}";
    let server = "{apiVersion: v1, kind: Pod, metadata: {name: server}, spec: {priorityClassName: high, containers: \
                  [{name: main, image: any, command: [sleep, '1000']}]}}";
    let class = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 7}";
    let jobs = job("a", 1, "true", "  queue: small\n  priorityClassName: high");
    for order in [[parent, child, class, server], [class, server, parent, child]] {
        let (code, stdout, stderr) = run_text(&format!("{}\n---\n{jobs}", order.join("\n---\n")));
        assert_eq!(code, Some(0), "{stdout}{stderr}");
    }
}

#[test]
fn a_queue_and_a_job_that_uses_it_may_come_together() {
    let queue = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: small}, spec: {weight: 1}}\n---\n";
    for _ in 0..5 {
        let (code, stdout, stderr) = run_text(&format!("{queue}{}", job("a", 1, "true", "  queue: small")));
        assert_eq!(code, Some(0), "{stdout}{stderr}");
    }
}

#[test]
fn text_that_yaml_takes_for_something_else_and_doubled_fields_are_refused_by_their_place() {
    let (code, _, stderr) =
        run_text(&job("a", 1, "true", "").replace("image: any", "image: any, env: [{name: X, value: on}]"));
    let expected = "krafla: job.yaml: spec.tasks[0].template.spec.containers[0].env[0].value: YAML reads it as true and not as text: put it between quotes\n";
    assert_eq!((code, stderr.as_str()), (Some(2), expected));
    let (code, _, stderr) = run_text(&job("a", 1, "true", "  minAvailable: 2"));
    let expected = "krafla: job.yaml: spec.minAvailable is given twice: remove one of them\n";
    assert_eq!((code, stderr.as_str()), (Some(2), expected));
}

#[test]
fn a_result_that_nobody_reads_or_that_can_not_be_written_is_no_panic() {
    let hello = repository_file("examples/hello.yaml");
    let krafla = env!("CARGO_BIN_EXE_krafla");
    for (script, code) in [
        (format!("{krafla} run -o json {} | true", hello.display()), 0),
        (format!("{krafla} run -o json {} >/dev/full", hello.display()), 1),
        (format!("{krafla} run --logs -o json {} | python3 -m json.tool", hello.display()), 0),
        (format!("{krafla} run nosuchfile 2>/dev/full"), 2),
        (format!("{krafla} crds | head -1"), 0),
    ] {
        let script = format!("set -o pipefail; {script}");
        let output = Command::new("bash").args(["-c", &script]).env_remove("KUBECONFIG").output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{script}: {}", text(&output.stderr));
        assert!(!text(&output.stderr).contains("panicked"), "{script}: {}", text(&output.stderr));
    }
}
