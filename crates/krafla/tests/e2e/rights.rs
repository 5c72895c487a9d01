//! Who may do what: roles, bindings and those who act as others, asked by kubectl and by a pod.

use crate::support::{Up, text};

fn said(output: &std::process::Output) -> String {
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_user_may_do_what_a_binding_says_and_nothing_else() {
    let up = Up::start();
    let refused = said(&up.kubectl(&["get", "pods", "--as=ann"]));
    let expected = "Error from server (Forbidden): pods is forbidden: User \"ann\" cannot list resource \"pods\" in API \
                    group \"\" in the namespace \"default\"\n";
    assert_eq!(refused, expected);
    up.kubectl_ok(&["create", "rolebinding", "ann", "--clusterrole=view", "--user=ann"]);
    up.kubectl_ok(&["get", "pods", "--as=ann"]);
    let can = |args: &[&str]| said(&up.kubectl(&[&["auth", "can-i"], args].concat()));
    assert_eq!(can(&["list", "jobs.batch", "--as=ann"]), "yes\n");
    assert_eq!(can(&["create", "jobs.batch", "--as=ann"]), "no\n");
    assert_eq!(can(&["list", "pods", "--as=ann", "-n", "kube-system"]), "no\n");
    assert_eq!(can(&["*", "*", "--all-namespaces"]), "yes\n");
    let listed = can(&["--list", "--as=ann"]);
    assert!(listed.contains("selfsubjectaccessreviews") && listed.contains("configmaps"), "{listed}");
    let whoami = up.kubectl_ok(&["auth", "whoami", "--as=ann", "--as-group=dev", "--as-uid=7"]);
    assert!(whoami.contains("[dev system:authenticated]") && whoami.contains('7'), "{whoami}");

    // A role that is marked for it becomes a part of `view`.
    let queues = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: vcjobs\n  labels: \
                  {rbac.authorization.k8s.io/aggregate-to-view: \"true\"}\nrules:\n- apiGroups: [batch.volcano.sh]\n  resources: \
                  [jobs]\n  verbs: [get, list, watch]\n";
    assert_eq!(can(&["list", "jobs.batch.volcano.sh", "--as=ann"]), "no\n");
    up.kubectl_with_input(&["auth", "reconcile", "-f", "-"], queues);
    crate::support::wait_until("the role is part of view", || {
        can(&["list", "jobs.batch.volcano.sh", "--as=ann"]) == "yes\n"
    });

    let escalated = said(&up.kubectl(&[
        "create",
        "rolebinding",
        "more",
        "--clusterrole=admin",
        "--user=ann",
        "--as=ann",
    ]));
    assert!(escalated.contains("User \"ann\" cannot create resource \"rolebindings\""), "{escalated}");
}

#[test]
fn a_pod_may_do_what_its_account_may() {
    let up = Up::start();
    let token = up.kubectl_ok(&["create", "token", "default"]);
    let as_pod =
        |args: &[&str]| said(&up.kubectl_command(args).args(["--token", token.trim()]).output().unwrap());
    let refused = as_pod(&["create", "configmap", "a"]);
    assert!(
        refused
            .contains("User \"system:serviceaccount:default:default\" cannot create resource \"configmaps\""),
        "{refused}"
    );
    let binding = ["create", "rolebinding", "pods", "--clusterrole=edit", "--serviceaccount=default:default"];
    up.kubectl_ok(&binding);
    assert_eq!(as_pod(&["create", "configmap", "a"]), "configmap/a created\n");
    let elsewhere = as_pod(&["get", "configmaps", "-n", "kube-system"]);
    assert!(elsewhere.contains("in the namespace \"kube-system\""), "{elsewhere}");
}

#[test]
fn a_token_file_names_users_and_always_allow_asks_no_roles() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens.csv");
    std::fs::write(&tokens, "t-ann,ann,1,\"dev,ops\"\n").unwrap();
    let flags = ["--token-auth-file", tokens.to_str().unwrap()];
    let ask =
        |up: &Up, args: &[&str]| said(&up.kubectl_command(args).args(["--token", "t-ann"]).output().unwrap());
    let up = Up::start_with(&flags);
    assert!(ask(&up, &["auth", "whoami"]).contains("[dev ops system:authenticated]"));
    assert!(ask(&up, &["get", "nodes"]).contains("User \"ann\" cannot list resource \"nodes\""));
    drop(up);
    let up = Up::start_with(&[flags[0], flags[1], "--authorization-mode=AlwaysAllow"]);
    assert!(ask(&up, &["get", "nodes"]).contains("localhost"));
}
