//! Pods as processes: what they are given, what is reported of them, and what is left of them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

mod common;

use common::{Machine, once, sh, until_ended};
use expect_test::expect;
use krafla_api::Kind;
use krafla_cluster::LogOptions;
use krafla_node::{LogError, Mode};
use serde_json::{Value, json};

fn machine() -> Machine {
    Machine::new(Mode::EndWithNode)
}

/// The parts of a status that do not differ between two runs.
fn summary(pod: &Value) -> String {
    let status = &pod["status"];
    let states = status["containerStatuses"].as_array().unwrap().iter().map(|container| {
        let ended = &container["state"]["terminated"];
        format!(
            "{} {} {} {}\n",
            container["name"], ended["reason"], ended["exitCode"], container["restartCount"]
        )
    });
    format!("{}\n{}", status["phase"], states.collect::<String>()).replace('"', "")
}

#[tokio::test]
async fn a_pod_that_ends_well_has_succeeded() {
    let machine = machine();
    let node = machine.start_node();
    machine.server.create_pod("p", once("echo hello; echo oh >&2"));
    let pod = machine.server.until_phase("p", "Succeeded").await;
    expect![[r#"
        Succeeded
        main Completed 0 0
    "#]]
    .assert_eq(&summary(&pod));
    assert_eq!(node.logs("p", LogOptions::default()).await, "hello\noh\n");
    node.stop().await;
}

#[tokio::test]
async fn a_pod_that_ends_badly_has_failed() {
    let machine = machine();
    let node = machine.start_node();
    machine.server.create_pod("p", once("exit 3"));
    machine.server.create_pod("killed", once("kill -9 $$"));
    expect![[r#"
        Failed
        main Error 3 0
    "#]]
    .assert_eq(&summary(&machine.server.until_phase("p", "Failed").await));
    expect![[r#"
        Failed
        main Error 137 0
    "#]]
    .assert_eq(&summary(&machine.server.until_phase("killed", "Failed").await));
    node.stop().await;
}

#[tokio::test]
async fn a_command_that_does_not_exist_is_named() {
    let machine = machine();
    let node = machine.start_node();
    let container = json!({"name": "main", "command": ["no-such-command", "x"]});
    machine.server.create_pod("p", json!({"restartPolicy": "Never", "containers": [container]}));
    let pod = machine.server.until_phase("p", "Failed").await;
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&ended["reason"], &ended["exitCode"]), (&json!("StartError"), &json!(128)));
    assert!(
        ended["message"].as_str().unwrap().starts_with(r#"command "no-such-command" was not found in PATH"#),
        "{ended}"
    );
    node.stop().await;
}

#[tokio::test]
async fn a_container_sees_its_environment_and_volumes() {
    let machine = machine();
    let node = machine.start_node();
    let metadata = |name: &str| json!({"name": name, "namespace": "default"});
    let map = json!({"metadata": metadata("settings"), "data": {"colour": "blue", "size": "5"}});
    machine.server.create(Kind::ConfigMap, map);
    machine.server.create(Kind::Secret, json!({"metadata": metadata("s"), "data": {"password": "aHVzaA=="}}));
    let script = "echo $COLOUR $CM_size $PASSWORD $POD $HOSTNAME $1; cat $KRAFLA_VOLUME_CONFIG/colour; \
                  touch $KRAFLA_VOLUME_SCRATCH/x && pwd";
    machine.server.create_pod(
        "p",
        json!({
            "restartPolicy": "Never",
            "volumes": [{"name": "config", "configMap": {"name": "settings"}}, {"name": "scratch", "emptyDir": {}}],
            "containers": [{
                "name": "main",
                "command": ["sh", "-c", script, "sh"],
                "args": ["$(COLOUR)-ish"],
                "env": [
                    {"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "colour"}}},
                    {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}},
                    {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ],
                "envFrom": [{"prefix": "CM_", "configMapRef": {"name": "settings"}}],
                "volumeMounts": [{"name": "config", "mountPath": "/c"}, {"name": "scratch", "mountPath": "/s"}],
            }],
        }),
    );
    machine.server.until_phase("p", "Succeeded").await;
    let workdir = machine.workdir().canonicalize().unwrap();
    let expected = format!("blue 5 hush p p blue-ish\nblue{}\n", workdir.display());
    assert_eq!(node.logs("p", LogOptions::default()).await, expected);
    node.stop().await;
}

#[tokio::test]
async fn a_missing_configmap_is_waited_for_and_named() {
    let machine = machine();
    let node = machine.start_node();
    let env = json!([{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "k"}}}]);
    let container = json!({"name": "main", "command": ["sh", "-c", "echo $X"], "env": env});
    machine.server.create_pod("p", json!({"restartPolicy": "Never", "containers": [container]}));
    let waits = |pod: &Value| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["reason"] == "CreateContainerConfigError"
            && waiting["message"] == "configmap \"late\" not found"
    };
    machine.server.until("p", waits).await;
    let map = json!({"metadata": {"name": "late", "namespace": "default"}, "data": {"k": "v"}});
    machine.server.create(Kind::ConfigMap, map);
    machine.server.until_phase("p", "Succeeded").await;
    assert_eq!(node.logs("p", LogOptions::default()).await, "v\n");
    node.stop().await;
}

#[tokio::test]
async fn init_containers_run_in_order_and_before_the_others() {
    let machine = machine();
    let node = machine.start_node();
    machine.server.create_pod(
        "p",
        json!({
            "restartPolicy": "Never",
            "initContainers": [sh("a", "echo a >> order"), sh("b", "echo b >> order")],
            "containers": [sh("main", "echo main >> order")],
        }),
    );
    machine.server.until_phase("p", "Succeeded").await;
    assert_eq!(machine.read("order"), "a\nb\nmain\n");
    node.stop().await;
}

#[tokio::test]
async fn a_sidecar_runs_beside_the_containers_and_ends_after_them() {
    let machine = machine();
    let node = machine.start_node();
    let mut sidecar = sh(
        "sidecar",
        "trap 'echo over >> order; exit 0' TERM; echo up >> order; while :; do sleep 0.01; done",
    );
    sidecar["restartPolicy"] = json!("Always");
    let main = sh("main", "until test -s order; do sleep 0.01; done; echo work >> order");
    machine.server.create_pod(
        "p",
        json!({"restartPolicy": "Never", "initContainers": [sidecar], "containers": [main]}),
    );
    let pod = machine.server.until_phase("p", "Succeeded").await;
    assert_eq!(machine.read("order"), "up\nwork\nover\n");
    let sidecar = &pod["status"]["initContainerStatuses"][0];
    assert_eq!((&sidecar["started"], &sidecar["restartCount"]), (&json!(false), &json!(0)));
    assert_eq!(sidecar["state"]["terminated"]["exitCode"], 0);
    node.stop().await;
}

#[tokio::test]
async fn a_container_that_fails_once_is_started_again_at_once() {
    let machine = machine();
    let node = machine.start_node();
    let script = "if [ -e was-here ]; then echo second; else touch was-here; echo first; exit 1; fi";
    machine.server.create_pod("p", json!({"restartPolicy": "OnFailure", "containers": [sh("main", script)]}));
    let pod = machine.server.until_phase("p", "Succeeded").await;
    expect![[r#"
        Succeeded
        main Completed 0 1
    "#]]
    .assert_eq(&summary(&pod));
    assert_eq!(pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"], 1);
    assert_eq!(node.logs("p", LogOptions::default()).await, "second\n");
    assert_eq!(node.logs("p", LogOptions { previous: true, ..LogOptions::default() }).await, "first\n");
    for (attempt, line) in [(0, "first\n"), (1, "second\n")] {
        assert_eq!(node.logs("p", LogOptions { attempt: Some(attempt), ..follow() }).await, line);
    }
    node.stop().await;
}

#[tokio::test]
async fn the_previous_log_of_a_container_that_waits_is_that_of_its_last_attempt() {
    let machine = machine();
    let node = machine.start_node();
    let script = "echo x >> starts; wc -l < starts; exit 1";
    machine.server.create_pod("p", json!({"restartPolicy": "OnFailure", "containers": [sh("main", script)]}));
    let waits = |pod: &Value| {
        let main = &pod["status"]["containerStatuses"][0];
        main["restartCount"] == 1 && main["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    };
    machine.server.until("p", waits).await;
    for previous in [true, false] {
        assert_eq!(node.logs("p", LogOptions { previous, ..LogOptions::default() }).await.trim(), "2");
    }
    node.stop().await;
}

#[tokio::test]
async fn a_deleted_pod_may_say_goodbye_and_leaves_nothing() {
    let machine = machine();
    let node = machine.start_node();
    let script = "trap 'echo bye > bye; exit 0' TERM; echo $$ > pid; echo up; while :; do sleep 0.05; done";
    let uid = machine.server.create_pod("p", once(script));
    machine.server.until_phase("p", "Running").await;
    let mut follow = node.node.logs("default", "p", None, follow()).await.unwrap();
    assert_eq!(next(&mut follow).await, "up\n");
    machine.server.delete_pod("p", None);
    assert_eq!(machine.server.until_gone("p").await["status"]["phase"], "Succeeded");
    assert_eq!(machine.read("bye"), "bye\n");
    until_ended(&machine.read("pid")).await;
    node.stop().await;
    assert!(!machine.root().join("pods").join(&*uid.0).exists());
}

#[tokio::test]
async fn a_container_is_asked_to_end_by_the_signal_that_it_names() {
    let machine = machine();
    let node = machine.start_node();
    let script = "trap 'echo term > got; exit 0' TERM; trap 'echo usr1 > got; exit 0' USR1; echo up; \
                  while :; do sleep 0.05; done";
    let mut pod = once(script);
    pod["containers"][0]["lifecycle"] = json!({"stopSignal": "SIGUSR1"});
    machine.server.create_pod("p", pod);
    machine.server.until_phase("p", "Running").await;
    node.until_output("p").await;
    machine.server.delete_pod("p", None);
    let pod = machine.server.until_gone("p").await;
    assert_eq!(machine.read("got"), "usr1\n");
    assert_eq!(pod["status"]["containerStatuses"][0]["stopSignal"], "SIGUSR1");
    node.stop().await;
}

#[tokio::test]
async fn a_pod_that_will_not_end_is_killed_after_its_grace() {
    let machine = machine();
    let node = machine.start_node();
    let script = "trap '' TERM; echo $$ > pid; echo up; while :; do sleep 0.05; done";
    machine.server.create_pod("p", once(script));
    machine.server.until_phase("p", "Running").await;
    let mut log = node.node.logs("default", "p", None, follow()).await.unwrap();
    assert_eq!(next(&mut log).await, "up\n");
    machine.server.delete_pod("p", Some(1));
    let pod = machine.server.until_gone("p").await;
    assert_eq!(pod["status"]["phase"], "Failed");
    assert_eq!(pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 137);
    node.stop().await;
}

#[tokio::test]
async fn a_pod_without_a_command_pauses_until_it_is_deleted() {
    let machine = machine();
    let node = machine.start_node();
    machine.server.create_pod("p", json!({"containers": [{"name": "main", "image": "nginx"}]}));
    let pod = machine.server.until_phase("p", "Running").await;
    assert_eq!(pod["status"]["containerStatuses"][0]["ready"], true);
    machine.server.delete_pod("p", None);
    machine.server.until_gone("p").await;
    node.stop().await;
}

#[tokio::test]
async fn a_container_that_is_too_large_to_be_started_keeps_no_other_from_running() {
    let machine = machine();
    let gate = machine.make_gate("gate");
    let node = machine.start_node();
    machine.server.create_pod("small", once("read x < gate"));
    machine.server.until_phase("small", "Running").await;
    let mut large = once("true");
    large["containers"][0]["env"] = json!([{"name": "LARGE", "value": "x".repeat(9 << 20)}]);
    machine.server.create_pod("large", large);
    let waiting = |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["waiting"].clone();
    let large = machine.server.until("large", |pod| waiting(pod)["reason"] == "CreateContainerError").await;
    let message = "its command and its environment are too large: Linux takes about 2 MiB of them";
    assert_eq!(waiting(&large)["message"], message);
    gate.open().await;
    machine.server.until_phase("small", "Succeeded").await;
    node.stop().await;
}

#[tokio::test]
async fn a_pod_with_limits_runs_whether_they_can_be_set_or_not() {
    let machine = machine();
    let node = machine.start_node();
    let mut pod = once("echo $LIMIT");
    pod["containers"][0]["resources"] = json!({"limits": {"cpu": "500m", "memory": "64Mi"}});
    let limit = json!({"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}});
    pod["containers"][0]["env"] = json!([{"name": "LIMIT", "valueFrom": limit}]);
    machine.server.create_pod("p", pod);
    machine.server.until_phase("p", "Succeeded").await;
    assert_eq!(node.logs("p", LogOptions::default()).await, "64\n");
    node.stop().await;
}

#[tokio::test]
async fn a_log_is_followed_to_its_end() {
    let machine = machine();
    let (first, second) = (machine.make_gate("first"), machine.make_gate("second"));
    let node = machine.start_node();
    machine.server.create_pod("p", once("echo one; read x < first; echo two; read x < second; printf three"));
    machine.server.until_phase("p", "Running").await;
    let mut log = node.node.logs("default", "p", Some("main"), follow()).await.unwrap();
    assert_eq!(next(&mut log).await, "one\n");
    first.open().await;
    assert_eq!(next(&mut log).await, "two\n");
    second.open().await;
    assert_eq!(next(&mut log).await, "three");
    assert_eq!(next(&mut log).await, "");
    let tail = LogOptions { tail_lines: Some(2), ..LogOptions::default() };
    assert_eq!(node.logs("p", tail).await, "two\nthree");
    node.stop().await;
}

#[tokio::test]
async fn a_reader_that_is_slower_than_its_pod_is_told_what_it_missed() {
    let machine = machine();
    let gate = machine.make_gate("gate");
    let node = machine.start_node();
    // More than the 50 MiB that are kept of a log, times and streams included.
    machine.server.create_pod("p", once("echo 1; read x < gate; seq 2 1500000"));
    machine.server.until_phase("p", "Running").await;
    let mut log = node.node.logs("default", "p", None, follow()).await.unwrap();
    assert_eq!(next(&mut log).await, "1\n");
    gate.open().await;
    machine.server.until_phase("p", "Succeeded").await;
    let (mut last, mut missed) = (1, Vec::new());
    loop {
        let piece = next(&mut log).await;
        for line in piece.lines() {
            match line.parse::<u32>() {
                // After a line that says what is missing any number may come.
                Ok(number)
                    if number == last + 1 || missed.last().is_some_and(|(after, _)| *after == last) =>
                {
                    last = number;
                }
                Ok(number) => panic!("{number} after {last}"),
                Err(_) => missed.push((last, line.to_owned())),
            }
        }
        if piece.is_empty() {
            break;
        }
    }
    assert_eq!(last, 1_500_000);
    let [(_, line)] = missed.as_slice() else { panic!("{missed:?}") };
    let n_bytes: u32 =
        line.strip_prefix('(').and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap();
    assert_eq!(
        *line,
        format!("({n_bytes} bytes of this log were written faster than they could be read, and are gone)")
    );
    // A whole attempt is expected by whoever names it, and what there is of a log by all others.
    for (attempt, is_told) in [(Some(0), true), (None, false)] {
        let log = node.logs("p", LogOptions { attempt, limit_bytes: Some(200), ..follow() }).await;
        assert_eq!(log.contains("are gone"), is_told, "{log}");
    }
    node.stop().await;
}

#[tokio::test]
async fn a_log_that_does_not_exist_is_refused_with_the_reason() {
    let machine = machine();
    let node = machine.start_node();
    machine
        .server
        .create_pod("p", json!({"restartPolicy": "Never", "containers": [sh("a", "true"), sh("b", "true")]}));
    machine.server.until_phase("p", "Succeeded").await;
    let refusal = async |pod, container, options| {
        node.node.logs("default", pod, container, options).await.map(drop).unwrap_err()
    };
    assert_eq!(refusal("q", None, LogOptions::default()).await, LogError::NoPod("q".to_owned()));
    let message = refusal("p", None, LogOptions::default()).await.to_string();
    assert_eq!(message, "a container name must be specified for pod p, choose one of: [a b]");
    let message = refusal("p", Some("c"), LogOptions::default()).await.to_string();
    assert_eq!(message, "container c is not valid for pod p");
    let previous = LogOptions { previous: true, ..LogOptions::default() };
    let message = refusal("p", Some("a"), previous).await.to_string();
    assert_eq!(message, "previous terminated container \"a\" in pod \"p\" not found");
    node.stop().await;
}

#[tokio::test]
async fn a_pod_that_can_not_be_read_fails_and_can_be_deleted() {
    let machine = machine();
    let node = machine.start_node();
    machine.server.create_pod("p", json!({"containers": "none"}));
    let pod = machine.server.until_phase("p", "Failed").await;
    assert_eq!(pod["status"]["reason"], "UnexpectedAdmissionError");
    machine.server.delete_pod("p", None);
    machine.server.until_gone("p").await;
    node.stop().await;
}

#[tokio::test]
async fn a_short_pod_costs_few_writes_and_a_finished_one_none() {
    let machine = machine();
    let node = machine.start_node();
    machine.server.create_pod("p", once("true"));
    machine.server.until_phase("p", "Succeeded").await;
    machine.server.create_pod("q", once("true"));
    machine.server.until_phase("q", "Succeeded").await;
    assert!(machine.server.n_status_writes() <= 4, "{} writes", machine.server.n_status_writes());
    node.stop().await;
}

fn follow() -> LogOptions {
    LogOptions { follow: true, ..LogOptions::default() }
}

/// The next piece of a log; empty at its end.
async fn next(log: &mut krafla_node::LogStream) -> String {
    use futures_util::StreamExt;
    let piece = log.next().await.map(|piece| piece.unwrap()).unwrap_or_default();
    String::from_utf8(piece.to_vec()).unwrap()
}
