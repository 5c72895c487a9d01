//! Service accounts: what namespaces have of them, and what their tokens open.

use crate::support::{Up, text};

#[test]
fn a_token_lets_its_account_in_for_as_long_as_the_account_is_there() {
    let up = Up::start();
    up.kubectl_ok(&["create", "serviceaccount", "robot"]);
    let token = up.kubectl_ok(&["create", "token", "robot", "--duration=10m"]);
    let as_robot = |args: &[&str]| up.kubectl_command(args).args(["--token", token.trim()]).output().unwrap();
    let name = as_robot(&["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]);
    assert_eq!(text(&name.stdout), "system:serviceaccount:default:robot", "{}", text(&name.stderr));
    assert_eq!(text(&as_robot(&["auth", "can-i", "list", "pods"]).stdout), "yes\n");

    let review = format!(
        r#"{{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {{"token": "{}"}}}}"#,
        token.trim()
    );
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let reviewed = up.kubectl_with_input(&["create", "--raw", path, "-f", "-"], &review);
    let shown = text(&reviewed.stdout);
    assert!(shown.contains(r#""authenticated":true"#), "{shown} {}", text(&reviewed.stderr));
    assert!(shown.contains(r#""username":"system:serviceaccount:default:robot""#), "{shown}");

    up.kubectl_ok(&["delete", "serviceaccount", "robot"]);
    let refused = as_robot(&["get", "pods"]);
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("Unauthorized"), "{}", text(&refused.stderr));
}

#[test]
fn every_namespace_has_an_account_and_the_certificate() {
    let up = Up::start();
    up.kubectl_ok(&["create", "namespace", "n"]);
    for object in ["serviceaccount/default", "configmap/kube-root-ca.crt"] {
        up.kubectl_ok(&["wait", object, "-n", "n", "--for=create", "--timeout=60s"]);
    }
    let shown =
        up.kubectl_ok(&["get", "configmap/kube-root-ca.crt", "-n", "n", "-o", r"jsonpath={.data.ca\.crt}"]);
    assert!(shown.starts_with("-----BEGIN CERTIFICATE-----"), "{shown}");
    up.kubectl_ok(&["delete", "namespace", "n"]);
}
