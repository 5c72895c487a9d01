//! `krafla controller-manager`: the controllers in a process of their own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::support::{Kubectl, Up, job, krafla, text};

/// A running manager, killed at the end.
pub(crate) struct Manager(Child);

impl Manager {
    /// Starts a manager and waits until the lease is its own.
    pub(crate) fn start(cluster: &Kubectl) -> Manager {
        Manager::start_with(cluster, &[]).0
    }

    /// Starts one with further arguments, and returns it with what it has said so far.
    pub(crate) fn start_with(cluster: &Kubectl, args: &[&str]) -> (Manager, Vec<String>) {
        let mut child = krafla()
            .args(["controller-manager", "--kubeconfig"])
            .arg(cluster.kubeconfig())
            .args(args)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut said = Vec::new();
        let has_lease = lines.by_ref().any(|line| {
            let is_last = line.contains("acquired the lease");
            said.push(line);
            is_last
        });
        assert!(has_lease, "the manager ended before it had its lease: {:?}: {said:?}", child.wait());
        // Keep reading, so that it never waits for somebody to take its lines.
        std::thread::spawn(move || lines.for_each(drop));
        (Manager(child), said)
    }

    fn terminate(&mut self) -> Option<i32> {
        assert!(Command::new("kill").arg(self.0.id().to_string()).status().unwrap().success());
        self.0.wait().unwrap().code()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // One that has ended can not be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn jobs_complete_though_the_manager_is_killed_and_started_again() {
    let up = Up::start_with(&["--without-controllers"]);
    let go = up.file("go");
    up.apply(&job("a", 2, &format!("until test -e {}; do sleep 0.05; done", go.display()), ""));
    assert_eq!(up.field("vcjob/a", "{.status.state.phase}"), "", "nobody looks after it");

    let manager = Manager::start(&up);
    up.wait_for("vcjob/a", "{.status.state.phase}", "Running");
    let uid = up.field("pod/a-work-0", "{.metadata.uid}");
    drop(manager);
    std::fs::write(&go, "").unwrap();
    up.apply(&job("b", 2, "true", ""));

    let mut manager = Manager::start(&up);
    for name in ["vcjob/a", "vcjob/b"] {
        up.wait_for(name, "{.status.state.phase}", "Completed");
        assert_eq!(up.field(name, "{.status.retryCount}"), "");
    }
    assert_eq!(up.field("pod/a-work-0", "{.metadata.uid}"), uid, "the pod went on");

    let lease = ["get", "lease", "-n", "volcano-system", "vc-controller-manager", "-o"];
    let transitions = up.kubectl_ok(&[&lease[..], &["jsonpath={.spec.leaseTransitions}"]].concat());
    assert_eq!(transitions, "1", "the second took the lease of the first");
    assert_eq!(manager.terminate(), Some(0));
    let holder = up.kubectl_ok(&[&lease[..], &["jsonpath={.spec.holderIdentity}"]].concat());
    assert_eq!(holder, "", "the lease was given back");
}

#[test]
fn what_can_not_be_used_is_named_and_exits_with_2() {
    let refused = |args: &[&str]| {
        let output = krafla().arg("controller-manager").args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        text(&output.stderr)
    };
    let message = refused(&["--kubeconfig", "/nowhere/kubeconfig"]);
    assert!(message.contains("/nowhere/kubeconfig"), "{message}");
    let message = refused(&["--controllers", "*,-job-controler"]);
    assert!(message.contains("job-controler") && message.contains("jobflow-controller"), "{message}");
    let message = refused(&["--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=5s"]);
    assert!(message.contains("--leader-elect-renew-deadline"), "{message}");
    let message = refused(&[]);
    assert!(message.contains("--kubeconfig"), "{message}");
}

/// What is answered to GET: the status line and the body.
fn get(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

/// Where a manager has said that it tells a page.
fn address_of(page: &str, said: &[String]) -> String {
    let line = said.iter().find(|line| line.contains(&format!("{page} is told"))).unwrap();
    let line = line.split("127.0.0.1:").nth(1).unwrap();
    format!("127.0.0.1:{}", line.chars().take_while(char::is_ascii_digit).collect::<String>())
}

#[test]
fn a_manager_tells_how_it_is_and_what_it_has_counted() {
    let up = Up::start_with(&["--without-controllers"]);
    let anywhere = "127.0.0.1:0";
    let (_manager, said) = Manager::start_with(
        &up,
        &[
            "--enable-healthz",
            "--healthz-address",
            anywhere,
            "--enable-metrics=true",
            "--listen-address",
            anywhere,
        ],
    );
    assert!(!said.iter().any(|line| line.contains('\u{1b}')), "no colours but on a terminal: {said:?}");
    let (health, metrics) = (address_of("Health", &said), address_of("Metrics", &said));
    assert_eq!(get(&health, "/healthz"), ("HTTP/1.1 200 OK".to_owned(), "ok".to_owned()));
    assert_eq!(get(&health, "/readyz"), ("HTTP/1.1 200 OK".to_owned(), "ok: acting\n".to_owned()));

    up.apply(&job("counted", 2, "true", ""));
    up.wait_for("vcjob/counted", "{.status.state.phase}", "Completed");
    let completed = r#"volcano_job_completed_phase_count{job_name="default/counted",queue_name="default"} 1"#;
    let deadline = Instant::now() + Duration::from_secs(60);
    while !get(&metrics, "/metrics").1.lines().any(|line| line == completed) {
        assert!(Instant::now() < deadline, "{completed} is not in\n{}", get(&metrics, "/metrics").1);
    }
}

/// The body that is answered to GET over TLS by a server for whom this authority vouches.
fn get_over_tls(address: &str, path: &str, authority: &Path) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let mut stream = rustls::Stream::new(&mut connection, &mut stream);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn a_command_line_of_volcanos_manifests_works_and_health_is_told_over_tls() {
    let up = Up::start_with(&["--without-controllers"]);
    let program = up.file("vc-controller-manager");
    std::os::unix::fs::symlink(krafla().get_program(), &program).unwrap();
    let files = ["ca.crt", "server.crt", "server.key"].map(|file| up.data_dir().join(file));
    let flags = ["--ca-cert-file", "--tls-cert-file", "--tls-private-key-file"];
    let mut child = Command::new(program)
        .args([
            "--logtostderr",
            "--enable-healthz=true",
            "--healthz-address=127.0.0.1:0",
            "--leader-elect=false",
        ])
        .args(["--kube-api-qps=500", "--kube-api-burst=100", "--max_requeue_num=15", "-v=4", "2>&1"])
        .args(flags.into_iter().zip(&files).map(|(flag, file)| format!("{flag}={}", file.display())))
        .arg(format!("--kubeconfig={}", up.kubeconfig().display()))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let _manager = Manager(child);
    let mut said = Vec::new();
    assert!(lines.by_ref().any(|line| {
        let is_last = line.contains("ready");
        said.push(line);
        is_last
    }));
    std::thread::spawn(move || lines.for_each(drop));
    let is_said = |words: &str| said.iter().any(|line| line.contains(words));
    assert!(is_said("--max-requeue-num has no effect") && !is_said("logtostderr"), "{said:?}");
    assert_eq!(get_over_tls(&address_of("Health", &said), "/healthz", &files[0]), "ok");
    up.apply(&job("a", 2, "true", ""));
    up.wait_for("vcjob/a", "{.status.state.phase}", "Completed");
}

#[test]
fn a_cluster_out_of_reach_exits_with_3() {
    let kubeconfig = tempfile::NamedTempFile::new().unwrap();
    // Nothing listens on port 1.
    let text_of_file = "{kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}],\n\
                        clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]}\n";
    std::fs::write(kubeconfig.path(), text_of_file).unwrap();
    let output =
        krafla().args(["controller-manager", "--kubeconfig"]).arg(kubeconfig.path()).output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{message}");
    assert!(message.contains("cannot use the cluster of"), "{message}");
}

#[test]
fn an_address_in_use_is_named_with_its_flag() {
    let up = Up::start_with(&["--without-controllers"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = krafla()
        .args(["controller-manager", "--enable-metrics", "--listen-address", &address, "--kubeconfig"])
        .arg(up.kubeconfig())
        .output()
        .unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{message}");
    assert!(message.contains(&format!("--listen-address {address}")), "{message}");
}

/// A Job of Kubernetes, with further fields of its spec.
fn kubernetes_job(name: &str, more: &str) -> String {
    format!(
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {name}}}, spec: {{{more} template: {{spec: \
         {{restartPolicy: Never, containers: [{{name: main, image: any, command: ['true']}}]}}}}}}}}"
    )
}

#[test]
fn of_kubernetes_jobs_those_alone_are_run_that_ask_for_this_manager() {
    let up = Up::start_with(&["--without-controllers"]);
    let name = "krafla.dev/job-controller";
    up.apply(&kubernetes_job("others", ""));
    up.apply(&kubernetes_job("elsewhere", "managedBy: example.com/other,"));
    let controllers = "kubernetes-job-controller,job-pod-release-controller";
    let (_manager, _) = Manager::start_with(&up, &["--controllers", controllers, "--jobs-managed-by", name]);
    up.apply(&kubernetes_job("ours", &format!("managedBy: {name},")));
    up.kubectl_ok(&["wait", "job/ours", "--for=condition=Complete", "--timeout=60s"]);
    // They came first, and were seen first: had they been taken up, it would show by now.
    for left in ["job/others", "job/elsewhere"] {
        assert_eq!(up.field(left, "{.status}"), "{}", "{left}");
    }
}
