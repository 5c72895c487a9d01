//! kubectl's ways to change, watch and remove objects.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::support::{Up, text};

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {key: one}\n";

/// Runs `kubectl edit` with an editor that replaces one text by another.
fn edit(up: &Up, object: &str, [from, to]: [&str; 2]) -> std::process::Output {
    let editor = up.file("editor");
    std::fs::write(&editor, format!("#!/bin/sh\nexec sed -i 's/{from}/{to}/' \"$1\"\n")).unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    // What is refused is kept in a temporary file.
    let temporary = editor.parent().unwrap();
    let mut kubectl = up.kubectl_command(&["edit", object]);
    kubectl.env("KUBE_EDITOR", &editor).env("TMPDIR", temporary).output().unwrap()
}

#[test]
fn what_an_editor_changes_is_stored_or_refused() {
    let up = Up::start();
    up.apply(CONFIG);
    let edited = edit(&up, "cm/c", ["key: one", "key: two"]);
    assert_eq!(text(&edited.stdout), "configmap/c edited\n", "{}", text(&edited.stderr));
    assert_eq!(up.field("cm/c", "{.data.key}"), "two");
    let unchanged = edit(&up, "cm/c", ["nothing like it", "x"]);
    assert_eq!(text(&unchanged.stderr), "Edit cancelled, no changes made.\n");
    let refused = edit(&up, "cm/c", ["  key: two", "  key\\/: two"]);
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("configmaps \"c\" is invalid"), "{}", text(&refused.stderr));
    assert_eq!(up.field("cm/c", "{.data.key}"), "two");
}

#[test]
fn a_watch_shows_what_is_there_and_then_what_happens() {
    let up = Up::start();
    up.apply(CONFIG);
    let mut watching = up
        .kubectl_command(&["get", "cm", "-w", "--output-watch-events", "--field-selector=metadata.name=c"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut next = || lines.next().unwrap().split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    assert_eq!(next(), "EVENT NAME DATA");
    assert_eq!(next(), "ADDED c 1");
    up.kubectl_ok(&["patch", "cm/c", "-p", r#"{"data":{"other":"x"}}"#]);
    assert_eq!(next(), "MODIFIED c 2");
    up.kubectl_ok(&["delete", "cm/c"]);
    assert_eq!(next(), "DELETED c 2");
    watching.kill().unwrap();
    watching.wait().unwrap();
}

/// A pod of one container that ends at once.
fn short_pod(name: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  restartPolicy: Never
  containers: [{{name: main, image: any, command: ["true"]}}]
"#
    )
}

#[test]
fn a_short_pod_is_written_once_by_each_who_has_to_do_with_it() {
    let up = Up::start();
    up.apply(&short_pod("first"));
    // Before there is a node that takes pods, the scheduler writes to them why they wait.
    up.wait_for("pod/first", "{.status.phase}", "Succeeded");
    let mut watching = up
        .kubectl_command(&["get", "pods", "-w", "--output-watch-events", "--no-headers", "-L", "end"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines().map(Result::unwrap);
    // Everything after this line is told of.
    assert!(lines.find(|line| line.contains("first")).is_some());
    up.apply(&short_pod("short"));
    up.wait_for("pod/short", "{.status.phase}", "Succeeded");
    up.kubectl_ok(&["label", "pod/short", "end=told"]);
    let told: Vec<String> = lines
        .map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter(|columns| columns[1] == "short")
        .take_while(|columns| columns.last().is_none_or(|end| end != "told"))
        .map(|columns| format!("{} {}", columns[0], columns[3]))
        // On a busy machine the node may tell that it runs before it has seen it end.
        .filter(|line| line != "MODIFIED Running")
        .collect();
    watching.kill().unwrap();
    watching.wait().unwrap();
    // Whoever made it, the scheduler, and the node.
    assert_eq!(told, ["ADDED Pending", "MODIFIED Pending", "MODIFIED Completed"]);
}

#[test]
fn dependents_go_or_stay_as_a_deletion_says() {
    let up = Up::start();
    for cascade in ["background", "foreground", "orphan"] {
        up.kubectl_ok(&["create", "configmap", "owner"]);
        let uid = up.field("cm/owner", "{.metadata.uid}");
        let child = format!("child-of-{cascade}");
        up.apply(&format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {child}, ownerReferences: [{{apiVersion: v1, kind: \
             ConfigMap, name: owner, uid: {uid}, blockOwnerDeletion: true}}]}}\n"
        ));
        up.kubectl_ok(&["delete", "cm/owner", &format!("--cascade={cascade}")]);
        let child = format!("cm/{child}");
        match cascade {
            "background" => {
                up.kubectl_ok(&["wait", &child, "--for=delete", "--timeout=60s"]);
            }
            // Whoever waits for the owner has waited for its dependents.
            "foreground" => assert_eq!(up.kubectl_ok(&["get", &child, "--ignore-not-found"]), ""),
            _ => assert_eq!(up.field(&child, "{.metadata.ownerReferences}"), ""),
        }
    }
}

#[test]
fn a_manifest_that_was_applied_by_kubectl_goes_over_to_the_server() {
    let up = Up::start();
    up.apply(CONFIG);
    let without = CONFIG.replace("key: one", "other: two");
    let output = up.kubectl_with_input(&["apply", "--server-side", "-f", "-"], &without);
    assert_eq!(text(&output.stdout), "configmap/c serverside-applied\n", "{}", text(&output.stderr));
    assert_eq!(up.field("cm/c", "{.data}"), r#"{"other":"two"}"#);
}

#[test]
fn events_are_shown_through_both_groups() {
    let up = Up::start();
    up.kubectl_ok(&["create", "job", "j", "--image=any", "--", "true"]);
    up.kubectl_ok(&["wait", "job/j", "--for=condition=Complete", "--timeout=60s"]);
    up.wait_for_event("Job", "j", "SuccessfulCreate");
    let reasons = |kind: &str, field: &str| {
        let selector = format!("--field-selector={field}=Job");
        let path = "-o=jsonpath={range .items[?(@.reason=='SuccessfulCreate')]}{.reason}{end}";
        up.kubectl_ok(&["get", kind, &selector, path])
    };
    assert_eq!(reasons("events", "involvedObject.kind"), "SuccessfulCreate");
    assert_eq!(reasons("events.events.k8s.io", "regarding.kind"), "SuccessfulCreate");
}
