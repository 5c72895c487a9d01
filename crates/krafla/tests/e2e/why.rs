//! `krafla why`: the remedy that it prints lets the object go on.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Up, job, krafla, kubectl_path, text};

fn ask(up: &Up, args: &[&str]) -> Output {
    krafla().arg("why").args(args).env("KUBECONFIG", up.kubeconfig()).output().unwrap()
}

/// Asks about an object until its cause is the expected one.
fn diagnosis(up: &Up, about: &str, cause: &str) -> Value {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        let output = ask(up, &[about, "-o", "json"]);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        if found["cause"]["reason"] == cause {
            return found;
        }
        assert!(
            Instant::now() < deadline,
            "{about}: {cause} is not found in {found:#}{}",
            text(&output.stderr)
        );
    }
}

/// Runs the command of the first remedy that has one, as a user would paste it.
fn fix(up: &Up, about: &str, cause: &str) -> Value {
    let found = diagnosis(up, about, cause);
    let remedies = found["remedies"].as_array().cloned().unwrap_or_default();
    let command =
        remedies.iter().find_map(|it| it["command"].as_str()).unwrap_or_else(|| panic!("{found:#}"));
    let krafla = krafla().get_program().to_owned();
    let dirs = [kubectl_path().parent().unwrap(), std::path::Path::new(&krafla).parent().unwrap()];
    let path = std::env::join_paths(
        dirs.into_iter()
            .map(std::path::PathBuf::from)
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("PATH", path.unwrap()).env("KUBECONFIG", up.kubeconfig());
    let output = shell.env("HOME", up.data_dir()).output().unwrap();
    assert!(output.status.success(), "{command}: {}{}", text(&output.stdout), text(&output.stderr));
    found
}

fn wait_for_completion(up: &Up, name: &str) {
    up.wait_for(&format!("vcjob/{name}"), "{.status.state.phase}", "Completed");
}

/// A Volcano Job of one pod with further fields of the pod's spec and of its container.
fn with(name: &str, pod: &str, container: &str) -> String {
    let job = job(name, 1, "true", "");
    let job = job.replace("restartPolicy: Never", &format!("restartPolicy: Never\n          {pod}"));
    job.replace("image: any,", &format!("image: any, {container}"))
}

/// A Kubernetes Job.
fn batch(name: &str, spec: &str, pod: &str) -> String {
    format!(
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {name}}}, spec: {{{spec} template: {{spec: {{{pod} restartPolicy: Never, \
         containers: [{{name: main, image: any, command: ['true'], resources: {{limits: {{cpu: 200m}}}}}}]}}}}}}}}"
    )
}

#[test]
fn missing_objects_are_named_and_their_creation_helps() {
    let up = Up::start();
    let variable = |of: &str| format!("env: [{{name: A, valueFrom: {{{of}: {{name: settings, key: a}}}}}}],");
    up.apply(&with("map", "", &variable("configMapKeyRef")));
    up.apply(&with("secret", "", &variable("secretKeyRef")));
    up.apply(&with("claim", "volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]", ""));
    up.apply(&with("account", "serviceAccountName: runner", ""));
    up.apply(&batch("class", "", "priorityClassName: urgent,"));
    fix(&up, "vcjob/map", "NotFound");
    fix(&up, "vcjob/secret", "NotFound");
    fix(&up, "vcjob/claim", "ClaimMissing");
    fix(&up, "vcjob/account", "AccountMissing");
    fix(&up, "job/class", "PriorityClassMissing");
    ["map", "secret", "claim", "account"].iter().for_each(|name| wait_for_completion(&up, name));
    up.wait_for("job/class", "{.status.succeeded}", "1");
}

#[test]
fn nodes_that_take_no_pods_are_named_and_the_remedy_helps() {
    let up = Up::start();
    up.apply(&with("selects", "nodeSelector: {disk: ssd}", ""));
    fix(&up, "vcjob/selects", "SelectorUnmatched");
    wait_for_completion(&up, "selects");
    up.apply(&with("gated", "schedulingGates: [{name: example.com/wait}]", ""));
    fix(&up, "vcjob/gated", "Gated");
    wait_for_completion(&up, "gated");
    let node = up.kubectl_ok(&["get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"]);
    up.kubectl_ok(&["taint", "node", &node, "gpu=true:NoSchedule"]);
    up.apply(&job("tainted", 1, "true", ""));
    fix(&up, "vcjob/tainted", "Tainted");
    wait_for_completion(&up, "tainted");
    up.kubectl_ok(&["cordon", &node]);
    up.apply(&job("cordoned", 1, "true", ""));
    let found = fix(&up, "vcjob/cordoned", "NodesCordoned");
    assert_eq!(found["state"], "waiting", "{found:#}");
    wait_for_completion(&up, "cordoned");
}

#[test]
fn queues_and_limits_are_named_and_the_remedy_helps() {
    let up = Up::start();
    up.apply("{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: small}, spec: {weight: 1, capability: {cpu: 100m}}}");
    up.wait_for("queue/small", "{.status.state}", "Open");
    let asks = "resources: {requests: {cpu: 200m}},";
    up.apply(&with("queued", "", asks).replace("minAvailable: 1", "minAvailable: 1\n  queue: small"));
    diagnosis(&up, "vcjob/queued", "NeverFitsQueue");
    let close = krafla()
        .args(["vcctl", "queue", "operate", "--action", "close", "--name", "small", "--kubeconfig"])
        .arg(up.kubeconfig())
        .output()
        .unwrap();
    assert!(close.status.success(), "{}", text(&close.stderr));
    fix(&up, "vcjob/queued", "QueueClosed");
    let found = fix(&up, "vcjob/queued", "NeverFitsQueue");
    assert_eq!(found["queue"]["position"], 1, "{found:#}");
    wait_for_completion(&up, "queued");

    up.apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: few}, spec: {hard: {pods: '0'}}}");
    up.apply(&batch("quota", "", ""));
    fix(&up, "job/quota", "QuotaExceeded");
    up.wait_for("job/quota", "{.status.succeeded}", "1");
    up.kubectl_ok(&["delete", "resourcequota", "few"]);

    up.apply("{apiVersion: v1, kind: LimitRange, metadata: {name: low}, spec: {limits: [{type: Container, max: {cpu: 100m}}]}}");
    up.apply(&batch("limit", "", ""));
    fix(&up, "job/limit", "AboveLimit");
    up.wait_for("job/limit", "{.status.succeeded}", "1");
}

#[test]
fn stopped_objects_say_who_stopped_them_and_go_on() {
    let up = Up::start();
    up.apply(&batch("suspended", "suspend: true,", ""));
    fix(&up, "job/suspended", "Suspended");
    up.wait_for("job/suspended", "{.status.succeeded}", "1");

    up.apply(&job("aborted", 1, "sleep 1000", ""));
    up.wait_for("vcjob/aborted", "{.status.state.phase}", "Running");
    let suspend = krafla()
        .args(["vcctl", "job", "suspend", "--name", "aborted", "--kubeconfig"])
        .arg(up.kubeconfig())
        .output()
        .unwrap();
    assert!(suspend.status.success(), "{}", text(&suspend.stderr));
    fix(&up, "vcjob/aborted", "Commanded");
    up.wait_for("vcjob/aborted", "{.status.state.phase}", "Running");

    up.apply(
        &job("kept", 1, "true", "").replace("{name: kept}", "{name: kept, finalizers: [example.com/keep]}"),
    );
    wait_for_completion(&up, "kept");
    up.kubectl_ok(&["delete", "vcjob/kept", "--wait=false"]);
    fix(&up, "vcjob/kept", "Deleted");
    up.kubectl_ok(&["wait", "vcjob/kept", "--for=delete", "--timeout=60s"]);

    let failed = job("failed", 1, "exit 3", "");
    up.apply(&failed);
    let found = fix(&up, "vcjob/failed", "Exited");
    assert_eq!(found["state"], "failed", "{found:#}");
}

#[test]
fn an_object_that_does_not_exist_has_an_exit_code_of_its_own() {
    let up = Up::start();
    up.apply(&job("train", 1, "true", ""));
    let output = ask(&up, &["vcjob/trian"]);
    assert_eq!(output.status.code(), Some(4));
    let told = text(&output.stderr);
    assert!(told.contains("vcjob default/trian does not exist; did you mean train?"), "{told}");
    let output = ask(&up, &["job", "train"]);
    let shown = text(&output.stdout);
    assert!(
        output.status.success() && shown.starts_with("vcjob default/train "),
        "{shown}{}",
        text(&output.stderr)
    );
}
