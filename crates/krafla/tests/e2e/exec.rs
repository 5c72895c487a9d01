//! `kubectl exec` and `kubectl attach`: commands beside those of containers.

use std::io::{BufRead, BufReader, Write};
use std::process::{Output, Stdio};

use crate::support::{Up, text, wait_for_log};

/// A pod that runs until it is deleted, with a variable and a volume of its own.
const POD: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: any
      env: [{name: WHO, value: me}]
      volumeMounts: [{name: data, mountPath: /krafla-data}]
      command: [sh, -c, "echo kept > $KRAFLA_VOLUME_DATA/file; echo up; exec tail -f /dev/null"]
    - {name: plain, image: any, command: [tail, -f, /dev/null]}
  volumes: [{name: data, emptyDir: {}}]
"#;

fn up_with_pod() -> Up {
    let up = Up::start();
    up.apply(POD);
    up.kubectl_ok(&["wait", "pod/p", "--for=condition=Ready", "--timeout=60s"]);
    wait_for_log(&up, &["p", "-c", "main"], "up\n");
    up
}

fn shown(output: &Output) -> (Option<i32>, String, String) {
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_command_sees_what_its_container_sees() {
    let up = up_with_pod();
    let exec = ["exec", "p", "-c", "main", "--", "sh", "-c"];
    let in_main = |script: &str| shown(&up.kubectl(&[&exec[..], &[script]].concat()));
    let (code, stdout, stderr) = in_main("echo $WHO; echo aside >&2; cat $KRAFLA_VOLUME_DATA/file");
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), "me\nkept\n", "aside\n"));
    let plain = up.kubectl_ok(&["exec", "p", "-c", "plain", "--", "sh", "-c", "echo [$WHO] $HOSTNAME"]);
    assert_eq!(plain, "[] p\n");
}

#[test]
fn the_exit_code_of_a_command_is_kubectls() {
    let up = up_with_pod();
    let (code, _, stderr) = shown(&up.kubectl(&["exec", "p", "-c", "plain", "--", "sh", "-c", "exit 3"]));
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("command terminated with exit code 3"), "{stderr}");
}

#[test]
fn a_command_reads_to_the_end_of_what_is_given_to_it() {
    let up = up_with_pod();
    let lines = "a line of text\n".repeat(20_000);
    let output = up.kubectl_with_input(&["exec", "-i", "p", "-c", "plain", "--", "wc", "-c"], &lines);
    assert_eq!(shown(&output), (Some(0), format!("{}\n", lines.len()), String::new()));
}

#[test]
fn what_can_not_run_is_refused_with_the_reason() {
    let up = up_with_pod();
    for container in ["main", "plain"] {
        let (code, stdout, stderr) =
            shown(&up.kubectl(&["exec", "p", "-c", container, "--", "no-such-thing"]));
        assert_ne!(code, Some(0), "{stdout}");
        assert!(
            stderr.contains("no-such-thing") && stderr.contains("not found in PATH"),
            "{container}: {stderr}"
        );
    }
    let (code, _, stderr) = shown(&up.kubectl(&["exec", "p", "-c", "other", "--", "true"]));
    assert_eq!(code, Some(1));
    assert!(stderr.contains("other"), "{stderr}");
}

#[test]
fn nothing_runs_in_a_container_that_has_ended() {
    let up = Up::start();
    let ended = POD.replace("[tail, -f, /dev/null]", "[\"true\"]");
    up.apply(&ended);
    up.wait_for("pod/p", "{.status.containerStatuses[1].state.terminated.exitCode}", "0");
    let (code, _, stderr) = shown(&up.kubectl(&["exec", "p", "-c", "plain", "--", "true"]));
    assert_ne!(code, Some(0));
    assert!(stderr.contains("does not run"), "{stderr}");
}

#[test]
fn attach_shows_what_comes_until_the_container_ends() {
    let up = Up::start();
    let go = up.file("go");
    let script = format!("until test -e {}; do echo tick; sleep 0.05; done; echo at last", go.display());
    up.apply(&format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{restartPolicy: Never, containers: \
         [{{name: main, image: any, command: [sh, -c, '{script}']}}]}}}}"
    ));
    up.kubectl_ok(&["wait", "pod/p", "--for=condition=Ready", "--timeout=60s"]);
    let mut attached = up.kubectl_command(&["attach", "p"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(attached.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(lines.next().as_deref(), Some("tick"), "it is connected");
    std::fs::write(&go, "").unwrap();
    assert_eq!(lines.last().as_deref(), Some("at last"));
    assert_eq!(attached.wait().unwrap().code(), Some(0));
}

/// A pod that runs a shell script and can be written to.
fn pod_with_stdin(script: &str, more: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{restartPolicy: Never, containers: \
         [{{name: main, image: any, stdin: true, {more} command: [sh, -c, '{script}']}}]}}}}"
    )
}

#[test]
fn attach_passes_on_what_is_typed_also_for_the_second_who_comes() {
    let up = Up::start();
    up.apply(&pod_with_stdin("while read line; do echo got $line; test $line = end && exit; done", ""));
    up.kubectl_ok(&["wait", "pod/p", "--for=condition=Ready", "--timeout=60s"]);
    for (word, code) in [("one", None), ("end", Some(0))] {
        let mut attached = up
            .kubectl_command(&["attach", "-i", "p"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut typing = attached.stdin.take().unwrap();
        writeln!(typing, "{word}").unwrap();
        let mut lines = BufReader::new(attached.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert_eq!(lines.next(), Some(format!("got {word}")));
        if code.is_none() {
            attached.kill().unwrap();
        }
        assert_eq!(attached.wait().unwrap().code(), code);
    }
    up.wait_for("pod/p", "{.status.phase}", "Succeeded");
}

#[test]
fn a_container_with_stdin_once_reads_to_the_end_of_the_first_input() {
    let up = Up::start();
    up.apply(&pod_with_stdin("wc -c", "stdinOnce: true,"));
    up.kubectl_ok(&["wait", "pod/p", "--for=condition=Ready", "--timeout=60s"]);
    let input = "a line of text\n".repeat(20_000);
    let (code, stdout, stderr) = shown(&up.kubectl_with_input(&["attach", "-i", "p"], &input));
    assert_eq!((code, stdout.trim()), (Some(0), input.len().to_string().as_str()), "{stderr}");
    up.wait_for("pod/p", "{.status.phase}", "Succeeded");
}

#[test]
fn run_with_input_shows_the_output_and_ends_with_the_exit_code() {
    let up = Up::start();
    let script = "read word; echo got $word; exit 3";
    let args = ["run", "p", "-i", "--image=any", "--restart=Never", "--command", "--", "sh", "-c", script];
    let (code, stdout, stderr) = shown(&up.kubectl_with_input(&args, "hello\n"));
    assert_eq!((code, stdout.as_str()), (Some(3), "got hello\n"), "{stderr}");
}
