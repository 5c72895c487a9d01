//! Services, their endpoints, and what leads to ports of pods: `port-forward` and the proxies of the API.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::support::{Up, text, wait_until};

/// A server in a pod, and a Service that leads to it.
const WEB: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: any
      ports: [{name: http, containerPort: 28765}]
      env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
      command: [sh, -c, "mkdir -p $KRAFLA_VOLUME_WWW/a && cd $KRAFLA_VOLUME_WWW && echo hello > a/file && exec python3 -m http.server --bind $IP 28765"]
      readinessProbe: {httpGet: {port: 28765, path: /a/file}, periodSeconds: 1}
      volumeMounts: [{name: www, mountPath: /krafla-www}]
  volumes: [{name: www, emptyDir: {}}]
"#;

fn up_with_web() -> Up {
    let up = Up::start();
    up.apply(WEB);
    up.kubectl_ok(&["wait", "pod/web", "--for=condition=Ready", "--timeout=60s"]);
    up
}

#[test]
fn a_service_has_the_addresses_of_its_ready_pods() {
    let up = up_with_web();
    let address = up.field("pod/web", "{.status.podIP}");
    up.wait_for("endpoints/web", "{.subsets[0].addresses[0].ip}", &address);
    up.wait_for("endpointslice/web-0", "{.ports[0].port}", "28765");
    assert_eq!(up.field("service/kubernetes", "{.spec.ports[0].port}"), "443");
}

#[test]
fn the_api_leads_to_servers_in_pods() {
    let up = up_with_web();
    up.wait_for("endpoints/web", "{.subsets[0].ports[0].port}", "28765");
    for to in ["pods/web:28765", "pods/web", "services/web:http", "services/web:80"] {
        let path = format!("/api/v1/namespaces/default/{to}/proxy/a/file");
        assert_eq!(up.kubectl_ok(&["get", "--raw", &path]), "hello\n", "{to}");
    }
    let missing = up.kubectl(&["get", "--raw", "/api/v1/namespaces/default/services/web:81/proxy/"]);
    assert!(text(&missing.stderr).contains("no service port 81 found"), "{missing:?}");
}

/// A `kubectl port-forward`, which ends with the test.
struct Forwarding(Child);

impl Drop for Forwarding {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_port_is_forwarded_again_and_again() {
    let up = up_with_web();
    // Since 1.31 kubectl speaks SPDY inside of a WebSocket; before that, and with this variable, SPDY alone.
    for websockets in ["true", "false"] {
        let mut command = up.kubectl_command(&["port-forward", "pod/web", ":28765"]);
        command.env("KUBECTL_PORT_FORWARD_WEBSOCKETS", websockets);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.next().unwrap();
        let _forwarding = Forwarding(child);
        let address = line.split_whitespace().nth(2).unwrap();
        for _ in 0..3 {
            let mut connection = TcpStream::connect(address).unwrap();
            connection.write_all(b"GET /a/file HTTP/1.0\r\n\r\n").unwrap();
            let mut answer = String::new();
            connection.read_to_string(&mut answer).unwrap();
            assert!(answer.ends_with("hello\n"), "{answer:?}");
        }
    }
}

#[test]
fn a_command_runs_over_spdy_too() {
    let up = up_with_web();
    let run = |script: &str| {
        let mut command = up.kubectl_command(&["exec", "-i", "web", "--", "sh", "-c", script]);
        command.env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "false");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"hello").unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    assert_eq!(run("cat; echo error >&2"), (Some(0), "hello".to_owned(), "error\n".to_owned()));
    let (code, _, error) = run("cat > /dev/null; exit 3");
    assert_eq!(code, Some(3), "{error}");
}

#[test]
fn what_pods_use_is_measured() {
    let up = up_with_web();
    wait_until("nothing is measured", || up.kubectl(&["top", "node"]).status.success());
    let pods = up.kubectl_ok(&["top", "pod", "--containers"]);
    let line = pods.lines().find(|line| line.starts_with("web")).unwrap_or_else(|| panic!("{pods}"));
    assert!(!line.contains(" 0Mi"), "a server uses memory: {line}");
    up.kubectl_ok(&["wait", "lease/localhost", "-n=kube-node-lease", "--for=create", "--timeout=60s"]);
}
