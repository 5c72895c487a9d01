//! The verbs of kubectl, one after the other.

use crate::support::{Up, job, text};

fn config(value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata: {{key: {value}}}\n")
}

/// The words of a line, so that padding does not count.
fn squeezed(output: &str) -> Vec<String> {
    output.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn objects_are_created_in_many_forms() {
    let up = Up::start();
    up.kubectl_ok(&["create", "namespace", "n"]);
    for (arguments, made) in [
        ("configmap c --from-literal=key=one", "configmap/c"),
        ("secret generic s --from-literal=password=x", "secret/s"),
        ("serviceaccount robot", "serviceaccount/robot"),
        ("quota q --hard=pods=9", "resourcequota/q"),
        ("role r --verb=get --resource=pods", "role.rbac.authorization.k8s.io/r"),
        ("rolebinding b --role=r --serviceaccount=n:robot", "rolebinding.rbac.authorization.k8s.io/b"),
        ("service clusterip web --tcp=80", "service/web"),
        ("deployment d --image=any", "deployment.apps/d"),
        ("cronjob cj --image=any --schedule=@yearly -- true", "cronjob.batch/cj"),
        ("job j --image=any -- true", "job.batch/j"),
        ("job from-cj --from=cronjob/cj", "job.batch/from-cj"),
        ("secret docker-registry dr --docker-username=a --docker-password=b", "secret/dr"),
        ("service nodeport np --tcp=80", "service/np"),
        ("service externalname en --external-name=example.com", "service/en"),
        ("ingress i --rule=example.com/x=web:80", "ingress.networking.k8s.io/i"),
        ("clusterrole cr --verb=get --resource=pods", "clusterrole.rbac.authorization.k8s.io/cr"),
        (
            "clusterrolebinding crb --clusterrole=cr --user=u",
            "clusterrolebinding.rbac.authorization.k8s.io/crb",
        ),
        ("pdb p --selector=a=b --min-available=1", "poddisruptionbudget.policy/p"),
        ("priorityclass high --value=5", "priorityclass.scheduling.k8s.io/high"),
    ] {
        let words: Vec<&str> = ["create", "-n", "n"].into_iter().chain(arguments.split(' ')).collect();
        assert_eq!(up.kubectl_ok(&words), format!("{made} created\n"));
    }
    let shown = up.kubectl_ok(&["get", "quota,role,svc,deploy,cj,pdb,ing", "-n", "n", "-o", "name"]);
    assert_eq!(shown.lines().count(), 9, "{shown}");
}

#[test]
fn objects_are_labelled_annotated_patched_and_shown() {
    let up = Up::start();
    up.apply(&config("one"));
    assert_eq!(up.kubectl_ok(&["label", "cm/c", "a=b"]), "configmap/c labeled\n");
    assert_eq!(up.kubectl_ok(&["label", "cm/c", "a-"]), "configmap/c unlabeled\n");
    assert_eq!(up.kubectl_ok(&["annotate", "cm/c", "x=y"]), "configmap/c annotated\n");
    for (kind, patch, value) in [
        ("merge", r#"{"data":{"key":"two"}}"#, "two"),
        ("strategic", r#"{"data":{"key":"three"}}"#, "three"),
        ("json", r#"[{"op":"replace","path":"/data/key","value":"four"}]"#, "four"),
    ] {
        up.kubectl_ok(&["patch", "cm/c", "--type", kind, "-p", patch]);
        assert_eq!(up.field("cm/c", "{.data.key}"), value);
    }
    assert_eq!(
        up.kubectl_ok(&["get", "cm/c", "-o", "go-template={{.data.key}} {{.metadata.annotations.x}}"]),
        "four y"
    );
    let wide = squeezed(&up.kubectl_ok(&["get", "cm", "c", "-o", "wide"]));
    assert_eq!(wide.first().map(String::as_str), Some("NAME DATA AGE"));
    assert!(up.kubectl_ok(&["get", "cm/c", "-o", "yaml"]).contains("\n  key: four\n"));
    assert!(up.kubectl_ok(&["get", "cm/c", "-o", "json"]).contains(r#""key": "four""#));
    let description = up.kubectl_ok(&["describe", "cm/c"]);
    assert!(description.contains("key:\n----\nfour\n"), "{description}");
}

#[test]
fn both_sides_apply_and_differences_are_told() {
    let up = Up::start();
    up.apply(&config("one"));
    let diff = up.kubectl_with_input(&["diff", "-f", "-"], &config("two"));
    assert_eq!(diff.status.code(), Some(1), "{}", text(&diff.stderr));
    assert!(text(&diff.stdout).contains("+  key: two"), "{}", text(&diff.stdout));
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s}\ndata: {key: one}\n";
    let args = ["apply", "--server-side", "-f", "-"];
    let applied = up.kubectl_with_input(&args, manifest);
    assert_eq!(text(&applied.stdout), "configmap/s serverside-applied\n");
    up.kubectl_ok(&["patch", "cm/s", "--field-manager=other", "-p", r#"{"data":{"key":"theirs"}}"#]);
    let conflict = up.kubectl_with_input(&args, manifest);
    assert!(text(&conflict.stderr).contains("conflict with \"other\""), "{}", text(&conflict.stderr));
    let forced = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    up.kubectl_with_input(&forced, manifest);
    assert_eq!(up.field("cm/s", "{.data.key}"), "one");
}

#[test]
fn what_a_quota_and_a_limit_range_say_holds() {
    let up = Up::start();
    up.kubectl_ok(&["create", "namespace", "n"]);
    up.kubectl_ok(&["create", "quota", "q", "-n", "n", "--hard=count/secrets=1"]);
    up.kubectl_ok(&[
        "wait",
        "quota/q",
        "-n",
        "n",
        "--for=jsonpath={.status.used['count/secrets']}=0",
        "--timeout=60s",
    ]);
    up.kubectl_ok(&["create", "secret", "generic", "one", "-n", "n"]);
    let refused = up.kubectl(&["create", "secret", "generic", "two", "-n", "n"]);
    let why =
        "exceeded quota: q, requested: count/secrets=1, used: count/secrets=1, limited: count/secrets=1";
    assert!(text(&refused.stderr).contains(why), "{}", text(&refused.stderr));
    up.kubectl_ok(&["delete", "secret", "one", "-n", "n"]);
    up.kubectl_ok(&[
        "wait",
        "quota/q",
        "-n",
        "n",
        "--for=jsonpath={.status.used['count/secrets']}=0",
        "--timeout=60s",
    ]);
    up.kubectl_ok(&["create", "secret", "generic", "two", "-n", "n"]);
}

#[test]
fn what_there_is_is_told_and_explained() {
    let up = Up::start();
    let resources = squeezed(&up.kubectl_ok(&["api-resources"]));
    for row in ["pods po v1 true Pod", "jobs vcjob,vj batch.volcano.sh/v1alpha1 true Job"] {
        assert!(resources.iter().any(|line| line == row), "{row} is missing in:\n{}", resources.join("\n"));
    }
    let explained = up.kubectl_ok(&["explain", "pod.spec.containers"]);
    assert!(explained.contains("KIND:       Pod"), "{explained}");
    assert!(up.kubectl_ok(&["explain", "vcjob.spec"]).contains("minAvailable"));
    assert_eq!(up.kubectl_ok(&["auth", "can-i", "create", "pods"]), "yes\n");
    assert!(up.kubectl_ok(&["auth", "whoami"]).contains("krafla:admin"));
}

#[test]
fn a_deployment_gets_an_autoscaler_that_both_versions_show() {
    let up = Up::start();
    up.kubectl_ok(&["create", "deployment", "web", "--image=any"]);
    let made = up.kubectl_ok(&["autoscale", "deployment", "web", "--max=3", "--cpu=70%"]);
    assert_eq!(made, "horizontalpodautoscaler.autoscaling/web autoscaled\n");
    let shown = squeezed(&up.kubectl_ok(&["get", "hpa"]));
    assert_eq!(shown[0], "NAME REFERENCE TARGETS MINPODS MAXPODS REPLICAS AGE");
    assert!(shown[1].starts_with("web Deployment/web cpu: <unknown>/70% 1 3 0 "), "{shown:?}");
    let older = "horizontalpodautoscalers.v1.autoscaling/web";
    assert_eq!(up.field(older, "{.spec.targetCPUUtilizationPercentage}"), "70");
    let described = up.kubectl_ok(&["describe", "hpa", "web"]);
    assert!(described.contains("Deployment/web"), "{described}");
}

#[test]
fn everybody_writes_under_a_name() {
    let up = Up::start();
    up.apply(&job("a", 1, "sleep 600", ""));
    up.wait_for("vcjob/a", "{.status.state.phase}", "Running");
    let managers = |object: &str| {
        let managers = up.kubectl_ok(&[
            "get",
            object,
            "--show-managed-fields",
            "-o",
            "jsonpath={.metadata.managedFields[*].manager}",
        ]);
        let mut managers: Vec<String> = managers.split(' ').map(str::to_owned).collect();
        managers.sort();
        managers.dedup();
        managers
    };
    assert_eq!(managers("vcjob/a"), ["krafla-controllers", "kubectl-client-side-apply"]);
    assert_eq!(managers("pod/a-work-0"), ["krafla-controllers", "krafla-node"]);
    let pod_group = up.kubectl_ok(&["get", "podgroup", "-o", "name"]);
    assert_eq!(managers(pod_group.trim()), ["krafla-controllers", "krafla-scheduler"]);
}
