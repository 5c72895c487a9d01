//! `krafla webhook-manager`: recorded requests over HTTPS, recorded starts, and an API server that asks it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

use crate::support::{Up, job, krafla, repository_file, text, wait_until};

const PORT: u16 = 8443;

/// A loopback address of this test's own, so that the port is free.
fn own_address() -> String {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    format!("127.{high}.{low}.{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A running webhook manager, killed at the end.
struct Webhooks {
    child: Child,
    address: String,
    said: Vec<String>,
}

impl Webhooks {
    fn start(up: &Up, args: &[&str]) -> Webhooks {
        Webhooks::start_as(&up.kubeconfig(), args)
    }

    fn start_as(kubeconfig: &Path, args: &[&str]) -> Webhooks {
        let address = own_address();
        let mut child = krafla()
            .args(["webhook-manager", "--kubeconfig"])
            .arg(kubeconfig)
            .args(["--listen-address", &address, "--webhook-url", &format!("https://{address}:{PORT}")])
            .args(["--webhook-namespace", "volcano-system"])
            .args(args)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut said = Vec::new();
        let is_ready = lines.by_ref().any(|line| {
            let is_last = line.contains(" ready ");
            said.push(line);
            is_last
        });
        assert!(is_ready, "{:?}: {said:?}", child.wait());
        std::thread::spawn(move || lines.for_each(drop));
        Webhooks { child, address, said }
    }

    /// Sends a request, and returns status and body of the answer.
    fn ask(&self, authority: &[u8], request: &[u8]) -> (u16, String) {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(self.address.clone()).unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = TcpStream::connect((self.address.as_str(), PORT)).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        // A server that refuses a long body may close before all of it is sent.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = text(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }
}

impl Drop for Webhooks {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The certificate authority that the manager has made.
fn authority(up: &Up) -> Vec<u8> {
    let path = "go-template={{index .data \"ca.crt\" | base64decode}}";
    up.kubectl_ok(&["get", "secret", "-n", "volcano-system", "krafla-webhook-certificate", "-o", path])
        .into_bytes()
}

fn recorded(name: &str) -> Value {
    let path = repository_file(&format!("tests/golden/admission/{name}"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn volcano_46_recorded_requests_are_answered_over_https() {
    let up = Up::start();
    let webhooks = Webhooks::start(&up, &[]);
    let authority = authority(&up);
    let file = recorded("http.json");
    for case in file["cases"].as_array().unwrap() {
        let field = |name: &str| case[name].as_str().unwrap_or_default();
        let mut body = field("body").to_owned();
        let size = |name: &str| case[name].as_u64().map(|size| usize::try_from(size).unwrap());
        if let Some(size) = size("padTo") {
            body.push_str(&" ".repeat(size - body.len()));
        }
        if let Some(size) = size("bodySize") {
            body = "x".repeat(size);
        }
        let content_type = case["contentType"].as_str().map(|it| format!("Content-Type: {it}\r\n"));
        let request = format!(
            "{} {} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{}Content-Length: {}\r\n\r\n{body}",
            field("method"),
            field("path"),
            content_type.unwrap_or_default(),
            body.len()
        );
        let (status, said) = webhooks.ask(&authority, request.as_bytes());
        let (name, response) = (field("name"), &case["response"]);
        if response["closed"] == true {
            // Volcano cuts the connection.
            assert_eq!(status, 400, "{name}");
            assert!(said.contains("must be an AdmissionReview"), "{name}: {said}");
            continue;
        }
        assert_eq!(u64::from(status), response["status"].as_u64().unwrap(), "{name}: {said}");
        match response.get("json") {
            Some(json) => assert_eq!(&serde_json::from_str::<Value>(&said).unwrap(), json, "{name}"),
            None => assert_eq!(said, response["text"].as_str().unwrap(), "{name}"),
        }
    }
}

/// A kubeconfig of the webhooks' own account, with the rights of `deploy/webhooks.yaml`.
fn kubeconfig_of_account(up: &Up) -> PathBuf {
    up.kubectl_ok(&["apply", "-f", repository_file("deploy/webhooks.yaml").to_str().unwrap()]);
    let token = up.kubectl_ok(&["create", "token", "-n", "volcano-system", "krafla-webhooks"]);
    let text = std::fs::read_to_string(up.kubeconfig()).unwrap();
    let lines = text.lines().map(|line| match line.split_once("token:") {
        Some((before, _)) => format!("{before}token: {}\n", token.trim()),
        None => format!("{line}\n"),
    });
    let path = up.file("account.kubeconfig");
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    path
}

#[test]
fn an_api_server_asks_it_and_trusts_it_without_further_steps() {
    let audit = tempfile::NamedTempFile::new().unwrap();
    let up = Up::start_with(&["--audit-log-path", audit.path().to_str().unwrap()]);
    let kubeconfig = kubeconfig_of_account(&up);
    let webhooks = Webhooks::start_as(&kubeconfig, &["--max-queue-depth=1"]);
    let url = format!("https://{}:{PORT}", webhooks.address);
    let manifests =
        krafla().args(["manifests", "--webhook-url", &url, "--only", "webhooks"]).output().unwrap();
    up.apply(&text(&manifests.stdout));
    let kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
    let are_trusted = || {
        let path = "jsonpath={range .items[*]}{.webhooks[0].clientConfig.caBundle}{\"\\n\"}{end}";
        let bundles = up.kubectl_ok(&["get", kinds, "-o", path]);
        bundles.lines().filter(|bundle| !bundle.is_empty()).count() == 11
    };
    wait_until("all configurations know the authority", are_trusted);
    up.apply("{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: a}}");
    let below =
        "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: b}, spec: {parent: a}}";
    let refused = text(&up.kubectl_with_input(&["apply", "-f", "-"], below).stderr);
    let expected = "admission webhook \"validatequeue.volcano.sh\" denied the request: ";
    assert!(refused.contains(expected) && refused.contains("depth"), "{refused}");
    up.apply(&job("a", 1, "true", ""));
    up.wait_for("vcjob/a", "{.status.state.phase}", "Completed");

    // Configurations that are created again learn the authority from the next replica, which adds its own name to the certificate.
    up.kubectl_ok(&["delete", kinds, "--all"]);
    drop(webhooks);
    up.apply(&text(&manifests.stdout));
    let webhooks = Webhooks::start_as(&kubeconfig, &[]);
    wait_until("all configurations know the authority", are_trusted);
    assert!(!webhooks.said.iter().any(|line| line.contains("will not trust")), "{:?}", webhooks.said);
    assert_eq!(rights_used(audit.path()), rights_given(), "used on the left, given on the right");
}

/// What the webhooks' account did, as `verb resource`; refused requests fail the test.
fn rights_used(audit: &Path) -> BTreeSet<String> {
    let log = std::fs::read_to_string(audit).unwrap();
    let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ours =
        events.filter(|it| it["user"]["username"] == "system:serviceaccount:volcano-system:krafla-webhooks");
    let used = ours.filter(|it| it["objectRef"].is_object()).map(|event| {
        assert_ne!(event["responseStatus"]["code"], 403, "{event}");
        format!("{} {}", event["verb"].as_str().unwrap(), event["objectRef"]["resource"].as_str().unwrap())
    });
    used.collect()
}

/// What `deploy/webhooks.yaml` allows.
fn rights_given() -> BTreeSet<String> {
    let text = std::fs::read_to_string(repository_file("deploy/webhooks.yaml")).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let rules = objects.iter().flat_map(|object| object["rules"].as_array().cloned().unwrap_or_default());
    let words = |rule: &Value, field: &str| -> Vec<String> {
        rule[field].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let pairs = rules.flat_map(|rule| {
        let (verbs, resources) = (words(&rule, "verbs"), words(&rule, "resources"));
        let of_verb = move |verb: String| {
            resources.clone().into_iter().map(move |resource| format!("{verb} {resource}"))
        };
        verbs.into_iter().flat_map(of_verb).collect::<Vec<_>>()
    });
    pairs.collect()
}

#[test]
fn it_stops_with_its_last_answer_and_says_when_it_is_ready() {
    let up = Up::start();
    let health = format!("{}:11251", own_address());
    let mut webhooks = Webhooks::start(&up, &["--enable-healthz", "--healthz-address", &health]);
    let get = |path: &str| {
        let mut stream = TcpStream::connect(&health).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(get("/healthz").starts_with("HTTP/1.1 200"));
    wait_until("it is ready", || get("/readyz").starts_with("HTTP/1.1 200"));
    assert!(Command::new("kill").arg(webhooks.child.id().to_string()).status().unwrap().success());
    assert_eq!(webhooks.child.wait().unwrap().code(), Some(0));
}

/// Starts that end differently from Volcano's, and how.
const STARTS: [(&str, &str); 2] = [
    ("no certificate files named", "runs: it makes its own certificate"),
    (
        "known path without its configuration object before an unknown path: waits",
        "ends: the unknown path is noticed at once",
    ),
];

#[test]
fn recorded_starts_run_or_end_as_recorded() {
    let up = Up::start();
    let dir = tempfile::tempdir().unwrap();
    for (from, to) in [("ca.crt", "ca.crt"), ("server.crt", "server.crt"), ("server.key", "server.key")] {
        std::fs::copy(up.data_dir().join(from), dir.path().join(to)).unwrap();
    }
    std::fs::copy(up.kubeconfig(), dir.path().join("controller.kubeconfig")).unwrap();
    let file = recorded("startup.json");
    for case in file["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let mut flags = file["usual"].as_object().unwrap().clone();
        for (flag, value) in case["flags"].as_object().unwrap() {
            flags.insert(flag.clone(), value.clone());
        }
        flags.insert("listen-address".into(), own_address().into());
        if flags["port"] == "<free>" {
            flags.insert("port".into(), PORT.to_string().into());
        }
        let conf = dir.path().display().to_string();
        let words = flags.iter().filter_map(|(flag, value)| {
            value.as_str().map(|value| format!("--{flag}={}", value.replace("{conf}", &conf)))
        });
        let mut child = krafla();
        let child = child.arg("webhook-manager").args(words).current_dir(dir.path());
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut said = Vec::new();
        let runs = lines.into_iter().any(|line| {
            let is_ready = line.contains(" ready ");
            said.push(line);
            is_ready
        });
        if runs {
            child.kill().unwrap();
        }
        let code = child.wait().unwrap().code();
        let recorded = &case["result"];
        let is_listed = STARTS.iter().any(|(listed, _)| *listed == name);
        assert_eq!(runs != is_listed, recorded["runs"] == true, "{name}: {said:?}");
        if !runs {
            let is_success = code == Some(0);
            assert_eq!(is_success, recorded["exitCode"] == 0 && !is_listed, "{name}: {code:?}: {said:?}");
            assert!(is_success || code == Some(2), "{name}: {code:?}");
        }
    }
    // The flags of the records are all taken.
    let all = file["flags"].as_array().unwrap().iter().map(|flag| flag["name"].as_str().unwrap());
    for flag in all {
        let output = krafla().args(["webhook-manager", &format!("--{flag}=1"), "--port=0"]).output().unwrap();
        let said = text(&output.stderr);
        assert!(!said.contains("unexpected argument"), "{flag}: {said}");
    }
}
