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
    assert_eq!(text(&as_robot(&["auth", "can-i", "list", "pods"]).stdout), "no\n");

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

#[test]
fn a_pod_can_talk_to_the_server() {
    let up = Up::start();
    // What client libraries look for in a pod, seen from the shell.
    let script = "cd ${KRAFLA_VOLUME_ACCESS:-/var/run/secrets/kubernetes.io/serviceaccount}; \
        echo $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT; cat namespace; echo; head -1 ca.crt; cat token";
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  restartPolicy: Never\n  containers:\n  \
         - {{name: c, image: any, command: [sh, -c, '{script}'], volumeMounts: [{{name: access, mountPath: \
         /var/run/secrets/kubernetes.io/serviceaccount}}]}}\n  volumes:\n  - name: access\n    projected: {{sources: \
         [{{serviceAccountToken: {{path: token}}}}, {{configMap: {{name: kube-root-ca.crt}}}}, {{downwardAPI: {{items: \
         [{{path: namespace, fieldRef: {{fieldPath: metadata.namespace}}}}]}}}}]}}\n"
    );
    up.apply(&pod);
    up.wait_for("pod/p", "{.status.phase}", "Succeeded");
    let printed = up.kubectl_ok(&["logs", "p"]);
    let [address, namespace, certificate, token] = printed.lines().collect::<Vec<_>>()[..] else {
        panic!("{printed}");
    };
    let server = up.kubectl_ok(&["config", "view", "-o", "jsonpath={.clusters[0].cluster.server}"]);
    assert_eq!(format!("https://{address}"), server);
    assert_eq!((namespace, certificate), ("default", "-----BEGIN CERTIFICATE-----"));
    let whoami = ["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}", "--token", token];
    assert_eq!(up.kubectl_ok(&whoami), "system:serviceaccount:default:default");
}

#[test]
fn a_pod_gets_its_account_and_the_way_to_the_server() {
    let up = Up::start();
    up.kubectl_ok(&["run", "p", "--image=any", "--restart=Never", "--", "true"]);
    let path = "{.spec.serviceAccountName} {.spec.containers[0].volumeMounts[0].mountPath}";
    assert_eq!(up.field("pod/p", path), "default /var/run/secrets/kubernetes.io/serviceaccount");
    up.wait_for("pod/p", "{.status.phase}", "Succeeded");
    let refused =
        up.kubectl(&["run", "q", "--image=any", "--overrides", r#"{"spec":{"serviceAccountName":"none"}}"#]);
    assert!(text(&refused.stderr).contains("serviceaccount \"none\" not found"), "{}", text(&refused.stderr));
}
