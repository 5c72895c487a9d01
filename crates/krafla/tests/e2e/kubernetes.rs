//! `krafla controller-manager` on Kubernetes itself: a real kube-apiserver, which `scripts/install-tools kube-apiserver`
//! builds; without it there is nothing to run. No other part of Kubernetes is there: the tests stand in for the scheduler
//! and the kubelet, and nobody collects garbage. The managers run as the service account of `deploy`, and may do no more.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::controller_manager::Manager;
use crate::support::{Kubectl, job, krafla, repository_file, text, wait_until};

const QUEUE: &str =
    "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: default}, spec: {weight: 1}}";

/// A real kube-apiserver that knows Volcano's kinds.
struct Kubernetes {
    kubectl: Kubectl,
    child: Child,
    dir: TempDir,
}

impl Kubernetes {
    /// Starts one, if it is installed.
    fn start() -> Option<Kubernetes> {
        let program = repository_file("target/tools/bin/kube-apiserver");
        if !program.exists() {
            println!("{} is missing; scripts/install-tools kube-apiserver makes it", program.display());
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        let mut command = Command::new(program);
        command.arg(dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let is_ready = lines.any(|line| line == "ready");
        let log = || std::fs::read_to_string(dir.path().join("log")).unwrap();
        assert!(is_ready, "kube-apiserver ended before it was ready: {}", log());
        let kubernetes = Kubernetes { kubectl: Kubectl::in_dir(dir.path()), child, dir };
        kubernetes.prepare();
        Some(kubernetes)
    }

    fn prepare(&self) {
        let crds = krafla().arg("crds").output().unwrap();
        let apply = ["apply", "--server-side", "-f", "-"];
        let applied = self.kubectl.kubectl_with_input(&apply, &text(&crds.stdout));
        assert!(applied.status.success(), "{}", text(&applied.stderr));
        self.kubectl.kubectl_ok(&["wait", "crd", "--all", "--for=condition=Established", "--timeout=60s"]);
        for manifest in ["controllers", "kubernetes-jobs"] {
            let path = repository_file(&format!("deploy/{manifest}.yaml"));
            self.kubectl.apply(&std::fs::read_to_string(path).unwrap());
        }
        // Volcano's scheduler would have made it.
        self.kubectl.apply(QUEUE);
    }

    /// The cluster as it is open to the service account of `deploy`.
    fn as_deployed(&self) -> Kubectl {
        let account = "system:serviceaccount:volcano-system:krafla-controllers";
        let may = |what: &[&str]| {
            let question = [&["auth", "can-i"], what, &["--as", account]].concat();
            text(&self.kubectl.kubectl(&question).stdout)
        };
        assert_eq!(may(&["patch", "queues.scheduling.volcano.sh", "--subresource=status"]), "yes\n");
        assert_eq!(may(&["create", "clusterroles"]), "no\n", "it may not do everything");

        let token = ["create", "token", "krafla-controllers", "--namespace=volcano-system"];
        let token = self.kubectl.kubectl_ok(&token);
        let administrator = std::fs::read_to_string(self.kubectl.kubeconfig()).unwrap();
        let (before, _) = administrator.split_once("token: ").unwrap();
        let (_, after) = administrator.split_once("}}]\ncontexts").unwrap();
        let dir = self.dir.path().join("deployed");
        std::fs::create_dir(&dir).unwrap();
        let kubeconfig = format!("{before}token: {:?}}}}}]\ncontexts{after}", token.trim());
        std::fs::write(dir.join("kubeconfig"), kubeconfig).unwrap();
        Kubectl::in_dir(&dir)
    }

    /// The scheduler lets a job have its pods.
    fn admit(&self, job: &str) {
        let uid = self.kubectl.field(&format!("vcjob/{job}"), "{.metadata.uid}");
        let group = format!("podgroup/{job}-{uid}");
        self.kubectl.kubectl_ok(&["wait", &group, "--for=create", "--timeout=60s"]);
        // Volcano's PodGroups have no subresource for their status.
        let patch = r#"{"status": {"phase": "Inqueue"}}"#;
        self.kubectl.kubectl_ok(&["patch", &group, "--type=merge", "-p", patch]);
    }

    /// The kubelet says the same of these pods, once they are there.
    fn report_pods(&self, pods: &[&str], phase: &str) {
        for pod in pods {
            let pod = format!("pod/{pod}");
            self.kubectl.kubectl_ok(&["wait", &pod, "--for=create", "--timeout=60s"]);
            let patch = format!(r#"{{"status": {{"phase": "{phase}"}}}}"#);
            let how = ["--subresource=status", "--type=merge", "-p", &patch];
            self.kubectl.kubectl_ok(&[&["patch", &pod][..], &how].concat());
        }
    }
}

impl Drop for Kubernetes {
    fn drop(&mut self) {
        // It holds nothing that is worth an orderly end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_job_lives_its_whole_life() {
    let Some(kubernetes) = Kubernetes::start() else { return };
    let kubectl = &kubernetes.kubectl;
    let _manager = Manager::start(&kubernetes.as_deployed());
    let more = "  plugins: {env: [], svc: [], ssh: []}\n  policies: [{event: PodFailed, action: RestartJob}]\n  \
                ttlSecondsAfterFinished: 0";
    kubectl.apply(&job("a", 2, "true", more));
    kubectl.wait_for("vcjob/a", "{.status.state.phase}", "Pending");
    kubernetes.admit("a");
    let pods = ["a-work-0", "a-work-1"];
    kubernetes.report_pods(&pods, "Running");
    kubectl.wait_for("vcjob/a", "{.status.state.phase}", "Running");
    for object in ["service/a", "configmap/a-svc", "secret/a-ssh", "networkpolicy/a"] {
        let owner = kubectl.field(object, "{.metadata.ownerReferences[0].name}");
        assert_eq!(owner, "a", "{object}");
    }

    let first = kubectl.field("pod/a-work-0", "{.metadata.uid}");
    kubernetes.report_pods(&["a-work-1"], "Failed");
    kubectl.wait_for("vcjob/a", "{.status.retryCount}", "1");
    kubectl.wait_for("vcjob/a", "{.status.state.phase}", "Pending");
    kubernetes.admit("a");
    kubectl.wait_for("vcjob/a", "{.status.pending}", "2");
    assert_ne!(kubectl.field("pod/a-work-0", "{.metadata.uid}"), first, "it was started again");

    kubernetes.report_pods(&pods, "Running");
    kubectl.wait_for("vcjob/a", "{.status.running}", "2");
    kubernetes.report_pods(&pods, "Succeeded");
    // Its time to live is over at once, and it goes after its children, which nobody collects here.
    kubectl.kubectl_ok(&["wait", "vcjob/a", "--for=jsonpath={.metadata.deletionTimestamp}", "--timeout=60s"]);
    assert_eq!(kubectl.field("vcjob/a", "{.status.state.phase}"), "Completed");
}

#[test]
fn flows_and_queues_are_looked_after() {
    let Some(kubernetes) = Kubernetes::start() else { return };
    let kubectl = &kubernetes.kubectl;
    let _manager = Manager::start(&kubernetes.as_deployed());
    kubectl.apply(&std::fs::read_to_string(repository_file("examples/pipeline.yaml")).unwrap());
    let steps: [(&str, &[&str]); 3] = [
        ("data-preprocess", &["preprocess-0"]),
        ("model-training", &["trainer-0", "trainer-1"]),
        ("model-evaluation", &["evaluator-0"]),
    ];
    for (template, pods) in steps {
        let job = format!("ml-pipeline-{template}");
        kubectl.kubectl_ok(&["wait", &format!("vcjob/{job}"), "--for=create", "--timeout=60s"]);
        kubernetes.admit(&job);
        let pods: Vec<String> = pods.iter().map(|pod| format!("{job}-{pod}")).collect();
        let pods: Vec<&str> = pods.iter().map(String::as_str).collect();
        kubernetes.report_pods(&pods, "Running");
        kubernetes.report_pods(&pods, "Succeeded");
        kubectl.wait_for(&format!("vcjob/{job}"), "{.status.state.phase}", "Completed");
    }
    kubectl.wait_for("jobflow/ml-pipeline", "{.status.state.phase}", "Succeed");

    // Nobody refuses it here, so its status says what is wrong with it.
    kubectl.apply(
        "{apiVersion: flow.volcano.sh/v1alpha1, kind: JobFlow, metadata: {name: bad}, spec: {flows: \
         [{name: a, dependsOn: {targets: [b]}}, {name: b, dependsOn: {targets: [a]}}, {name: c}]}}",
    );
    kubectl.wait_for("jobflow/bad", "{.status.conditions.bad-a.phase}", "DependencyRing");
    kubectl.wait_for("jobflow/bad", "{.status.conditions.bad-c.phase}", "TemplateMissing");

    kubectl.apply(
        "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q}, spec: {weight: 1}}",
    );
    kubectl.wait_for("queue/q", "{.status.state}", "Open");
    let uid = kubectl.field("queue/q", "{.metadata.uid}");
    kubectl.apply(&format!(
        r#"
apiVersion: bus.volcano.sh/v1alpha1
kind: Command
metadata:
  name: close-q
  ownerReferences: [{{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, name: q, uid: {uid}, controller: true}}]
action: CloseQueue
target: {{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, name: q, uid: {uid}, controller: true}}
"#
    ));
    kubectl.wait_for("queue/q", "{.status.state}", "Closed");
}

#[test]
fn jobs_of_kubernetes_that_ask_for_it_are_looked_after() {
    let Some(kubernetes) = Kubernetes::start() else { return };
    let kubectl = &kubernetes.kubectl;
    let name = "krafla.dev/job-controller";
    let controllers = "kubernetes-job-controller,job-pod-release-controller";
    let args = ["--controllers", controllers, "--jobs-managed-by", name];
    let (_manager, _) = Manager::start_with(&kubernetes.as_deployed(), &args);
    let manifest = |job: &str, managed_by: &str| {
        format!(
            "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {job}}}, spec: {{completions: 3, completionMode: Indexed, \
             parallelism: 3, {managed_by} template: {{spec: {{restartPolicy: Never, containers: [{{name: main, image: any}}]}}}}}}}}"
        )
    };
    kubectl.apply(&manifest("theirs", ""));
    kubectl.apply(&manifest("ours", &format!("managedBy: {name},")));
    kubectl.wait_for("job/ours", "{.status.active}", "3");
    // What a Job is about to have stands in its status first.
    let pods = || kubectl.kubectl_ok(&["get", "pods", "-l", "job-name=ours", "-o", "name"]);
    wait_until("it has three pods", || pods().lines().count() == 3);
    let pods = pods();
    let pods: Vec<&str> = pods.lines().map(|pod| pod.trim_start_matches("pod/")).collect();
    kubernetes.report_pods(&pods, "Running");
    kubernetes.report_pods(&pods, "Succeeded");
    kubectl.kubectl_ok(&["wait", "job/ours", "--for=condition=Complete", "--timeout=60s"]);
    assert_eq!(kubectl.field("job/ours", "{.status.succeeded} {.status.completedIndexes}"), "3 0-2");
    let held = kubectl.kubectl_ok(&["get", "pods", "-o", "jsonpath={.items[*].metadata.finalizers}"]);
    assert_eq!(held, "", "the pods of a finished Job are free to go");
    assert_eq!(kubectl.field("job/theirs", "{.status}"), "{}", "that is for Kubernetes' own controller");
}
